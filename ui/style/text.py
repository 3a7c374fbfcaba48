"""Text for people: translated sentences, numbers, plain tooltips, hidden characters made visible, typed keys."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache

from PySide6.QtCore import QCoreApplication, QLocale
from PySide6.QtGui import QKeyEvent

from desktop_agent.types.errors import Sentence
from desktop_agent.types.sentence_places import fill_in, places_in

_SPACES = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
# More stacked marks than any language needs are drawn over the lines above and below.
_STACKED = "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u06d6-\u06dc"
_STACKED_SIGNS = "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd\u0f71-\u0f84"
_STACKED_MARKS = "\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
_MAX_STACKED = 4
LEFT_ISOLATE, RIGHT_ISOLATE, POP_ISOLATE = BIDI_MARKS = "\u2066\u2067\u2069"
"""Invisible marks, which must not be copied or spoken."""
_WITHOUT_BIDI_MARKS = str.maketrans("", "", BIDI_MARKS)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def strip_bidi_marks(text: str) -> str:
    """Return the text without the marks that keep its written order."""
    return text.translate(_WITHOUT_BIDI_MARKS)


def one_line(text: str, max_length: int) -> str:
    """Show text from a model or server on one line, with hidden characters spelled out."""
    return " ".join(show_hidden(text[:max_length]).split())


def begin_later(text: str, matches: Sequence[tuple[int, int]], before: int) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Leave out words at the beginning of a line, so that the first match is seen where only the line's start fits.

    At most `before` characters stay before it. The ranges of the matches are returned for the shorter text.
    """
    begin = max(0, matches[0][0] - before) if matches else 0
    begin = text.find(" ", begin, matches[0][0]) + 1 if begin else 0
    if not begin:
        return text, tuple(matches)
    return f"…{text[begin:]}", tuple((start - begin + 1, end - begin + 1) for start, end in matches)


def truncate(text: str, max_length: int) -> str:
    """Return the text; if it is too long, its beginning with an ellipsis."""
    return text if len(text) <= max_length else text[: max_length - 1] + "…"


def replace_hidden(text: str, write: Callable[[str], str]) -> str:
    """Replace each control, direction and zero-width character by what `write` returns for it; tab and line feed stay.

    Marks on a letter that has several already are replaced too.
    """
    hidden = _CONTROL if text.isascii() else _hidden_pattern()
    return hidden.sub(lambda match: write(match.group()), text)


@cache
def _hidden_pattern() -> re.Pattern[str]:
    # Late: compiling it takes longer than painting the window, which has no such text at first.
    from desktop_agent.types.hidden_characters import HIDDEN_CHARACTERS, PRIVATE_USE_CHARACTERS

    stacked = f"[{_STACKED}{_STACKED_SIGNS}{_STACKED_MARKS}]"
    return re.compile(f"[{HIDDEN_CHARACTERS}{_SPACES}{PRIVATE_USE_CHARACTERS}]|(?<={stacked * _MAX_STACKED}){stacked}")


def title_or_new(title: str) -> str:
    """Return the title of a conversation, or what one without a title is called."""
    return title or QCoreApplication.translate("Conversation", "New conversation")


def show_hidden(text: str) -> str:
    """Show control, direction and zero-width characters as ⟨U+202E⟩; tab and line feed stay."""
    return replace_hidden(text.replace("\r\n", "⟨CR⟩\n"), code_point_text)


@lru_cache(maxsize=4096)
def code_point_text(character: str) -> str:
    """Return a character as ⟨U+202E⟩."""
    return f"⟨U+{ord(character):04X}⟩"


def show_deceptive(text: str) -> str:
    """Show the characters that hide something as ⟨U+202E⟩; joined emoji and the marks that a script needs stay."""
    text = text.replace("\r\n", "\n")
    if text.isascii() and not _CONTROL.search(text):
        return text
    # Late: its patterns take longer to compile than the window takes to be painted.
    from desktop_agent.types.hidden_characters import mark_hidden

    return mark_hidden(text)


def translate_sentence(sentence: Sentence, prepare: Callable[[str], str] = show_deceptive) -> str:
    """Return the translated template, filled in. A translation with unknown values falls back to English.

    `prepare` is applied to the values: servers, files and models wrote many of them.
    """
    template = QCoreApplication.translate("Sentence", sentence.template)
    if template != sentence.template and not places_in(template) <= sentence.values.keys():
        template = sentence.template
    values = {
        name: translate_sentence(value, prepare) if isinstance(value, Sentence) else prepare(value)
        for name, value in sentence.values.items()
    }
    return fill_in(template, values)


def translated(words: Sentence | str) -> str:
    """Return a sentence translated, and text of others as it is."""
    return translate_sentence(words) if isinstance(words, Sentence) else words


def escape_mnemonics(text: str) -> str:
    """Escape ampersands for buttons, tabs and menus, where they would be mnemonics."""
    return text.replace("&", "&&")


def writes_text(event: QKeyEvent) -> bool:
    """Return whether an editor would insert something for this key. A space alone would begin no message."""
    from PySide6.QtCore import Qt
    from PySide6.QtGui import QKeySequence

    if event.matches(QKeySequence.StandardKey.Paste):
        return True
    modifiers = Qt.KeyboardModifier
    both = modifiers.ControlModifier | modifiers.AltModifier
    # Both together are AltGr on Windows.
    is_plain = event.modifiers() & both in {modifiers.NoModifier, both}
    return is_plain and event.text().isprintable() and bool(event.text().strip())


def native_shortcut(keys: str) -> str:
    """Return "Ctrl+Enter" and the like in the person's language. Both Enter keys are called Enter."""
    from PySide6.QtGui import QKeySequence

    names = keys.replace("Return", "Enter")
    return QKeySequence(names).toString(QKeySequence.SequenceFormat.NativeText)


def with_keys(text: str, keys: str) -> str:
    """Return a text with the keys behind it in brackets, if there are any."""
    return in_brackets(text, native_shortcut(keys)) if keys else text


def in_brackets(text: str, detail: str) -> str:
    """Return a text with a detail behind it in the brackets of the person's language."""
    return QCoreApplication.translate("Text", "{0} ({1})").format(text, detail)


def labelled(name: str, text: str) -> str:
    """Return a text with its name before it, and the colon of the person's language."""
    return QCoreApplication.translate("Text", "{0}: {1}").format(name, text)


def join_names(names: Iterable[str]) -> str:
    """Return a list in one line, with the commas of the person's language."""
    return _join(names, QCoreApplication.translate("Text", "{0}, {1}", "two names in a list"))


def join_sentences(sentences: Iterable[str]) -> str:
    """Return sentences behind each other, with what the person's language has between them: in Chinese nothing."""
    return _join(filter(None, sentences), QCoreApplication.translate("Text", "{0} {1}", "two sentences"))


def _join(parts: Iterable[str], template: str) -> str:
    return template.removeprefix("{0}").removesuffix("{1}").join(parts)


_MAX_TOOLTIP_LINE = 80
"""Characters of a line: Qt wraps longer ones only where there is markup."""


def plain_tooltip(text: str) -> str:
    """Return a tooltip that Qt does not read as HTML: text from outside must show as it is and fetch nothing.

    A short text without a tag stays as it is: assistive technology reads tooltips too, and would read out the markup.
    """
    if not set(text) & set("<&") and max(map(len, text.split("\n"))) <= _MAX_TOOLTIP_LINE:
        return text
    # Late: it brings 2,000 names of characters, and the first paint has no such tooltip.
    import html

    lines = "<br>".join(html.escape(text).split("\n"))
    return f"<qt>{lines}</qt>" if text else ""


_BLANK_LINES = re.compile(r"\A(?:[^\S\n]*\n)+")


def trim_prompt(text: str) -> str:
    """Return what is sent of a prompt: without blank lines at its beginning, and white space at its end.

    The indentation of the first line stays: it may be code.
    """
    return _BLANK_LINES.sub("", text).rstrip()


def format_number(number: float, decimals: int = 0) -> str:
    """Return a number as the locale groups its digits: 1,234 or 1.234."""
    locale = QLocale()
    # Without a locale of the person, Qt has C, which does not group digits.
    if locale.language() is QLocale.Language.C:
        return f"{number:,.{decimals}f}"
    return locale.toString(float(number), "f", decimals)


def localize_point(number: str) -> str:
    """Return a number that is written with a point as the locale writes it, to be edited: 0.25 or 0,25."""
    return number.replace(".", QLocale().decimalPoint())


def format_dollars(cost: float) -> str:
    """Return US dollars in whole cents, or that it is less than one."""
    return f"< {_dollars(0.01, 2)}" if 0 < cost < 0.005 else _dollars(cost, 2)


def _dollars(amount: float, decimals: int) -> str:
    return QCoreApplication.translate("Size", "${0}").format(format_number(amount, decimals))


def format_price(per_million: float) -> str:
    """Return US dollars for a million tokens, as short as possible: $3, $0.075."""
    is_cents = round(per_million, 2) == per_million and per_million % 1
    return _dollars(per_million, 2 if is_cents else len(f"{per_million:g}".partition(".")[2]))


def format_count(count: int) -> str:
    """Return a rounded number: 950, 19.7k, 200k, 1M."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if count >= size * 0.9995:
            amount = count / size
            is_whole = amount >= 99.95 or round(amount, 1) % 1 == 0
            return f"{format_number(amount, 0 if is_whole else 1)}{unit}"
    return str(count)


def format_bytes(size: int) -> str:
    """Return a number of bytes: 512 bytes, 2.4 KB, 50 MB."""
    if size < 1000:
        return QCoreApplication.translate("Size", "{0} bytes").format(size)
    amount, unit = float(size), "KB"
    for candidate in ("KB", "MB", "GB"):
        amount, unit = amount / 1000, candidate
        if amount < 999.5:
            break
    return f"{format_number(amount, 1 if amount < 10 and round(amount, 1) % 1 else 0)} {unit}"
