"""Invisible, control and bidirectional characters in a text, which may deceive its reader."""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cached_property

from desktop_agent.data_files import load_table

_TABLE = load_table(__name__, "hidden_characters.toml")
# UnicodeData.txt: Cc, Zl, Zp, Cs. Tab and line feed are what they seem. TOML cannot have the surrogates.
_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"


def _ranges(*names: str) -> str:
    return "".join(_TABLE[name] for name in names)


def _one_of(*names: str) -> re.Pattern[str]:
    return re.compile(f"[{_ranges(*names)}]")


_SEPARATE_RANGES = _CONTROLS + _ranges(
    "ignorable", "empty_planes", "script_formats", "empty_signs", "khitan_filler", "noncharacters"
)
HIDDEN_CHARACTERS = _SEPARATE_RANGES + _ranges("ignorable_signs", "kaithi_formats", "empty_note", "last_noncharacters")
"""Exactly the characters that cannot be seen, for the brackets of a pattern."""
DECEPTIVE_CHARACTERS = _SEPARATE_RANGES + _ranges("wide_ranges")
"""Characters that may deceive, for the brackets of a pattern; `find_deceptive` decides by what is around them."""
PRIVATE_USE_CHARACTERS = _ranges("private_use")
"""Fonts draw these as anything or nothing."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_CANDIDATE = re.compile(f"[{DECEPTIVE_CHARACTERS}]")
_PRIVATE_USE = re.compile(f"[{PRIVATE_USE_CHARACTERS}]")
_INVISIBLE = re.compile(f"[{DECEPTIVE_CHARACTERS}{PRIVATE_USE_CHARACTERS}]")
_HIDDEN_CHARACTER = re.compile(f"[{HIDDEN_CHARACTERS}]")
_DIRECTION_MARKS = frozenset(_ranges("direction_marks"))
_DIRECTION_MARK = _one_of("direction_marks")
_SELECTOR = _one_of("selectors")
_SCRIPT_FORMAT = _one_of("script_formats", "kaithi_formats", "khitan_filler")
# England, Scotland and Wales: the only flags that are spelled in tags (Unicode, emoji-sequences.txt).
_TAG_FLAG = re.compile(
    "\U0001f3f4\U000e0067\U000e0062"
    "(\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074|\U000e0077\U000e006c\U000e0073)\U000e007f"
)
_RIGHT_TO_LEFT = _one_of("right_to_left")
# Characters between a direction mark and the writing from right to left that it belongs to.
_NEAR_DISTANCE = 200
_JOINING = _one_of("joining_scripts")
_SPACELESS = _one_of("spaceless_scripts")
_BRAILLE = _one_of("braille")
_JAMO = _one_of("hangul_jamo")
_EMOJI = _one_of("emoji")
_KEYCAP = re.compile("[0-9#*]\ufe0f\u20e3")
_IDEOGRAPH = _one_of("ideographs")
_MONGOLIAN = _one_of("mongolian")
_VARIATION_BASES = _one_of("variation_1_bases")
_VARIATION_2_BASES = _one_of("variation_2_bases")
_SCRIPT_FORMAT_RULES = tuple(
    (re.compile(f"[{rule['formats']}]"), re.compile(f"[{rule['beside']}]")) for rule in _TABLE["script_format_rules"]
)


def replace_hidden(text: str) -> str:
    """Return the text with � for each character that cannot be seen: a model must not read what a person could not."""
    if not (_CONTROL if text.isascii() else _INVISIBLE).search(text):
        return text
    hidden = set(find_deceptive(text, is_code=True))
    return "".join("�" if offset in hidden or _PRIVATE_USE.match(char) else char for offset, char in enumerate(text))


def mark_hidden(text: str) -> str:
    """Return the text with ⟨U+202E⟩ for each character that hides something.

    So a model reads what a person sees, and both see where something was. Soft hyphens within words stay.
    """
    pieces: list[str] = []
    end = 0
    for offset in find_deceptive(text):
        if text[offset] != "\u00ad" or not (
            text[offset - 1 : offset].isalpha() and text[offset + 1 : offset + 2].isalpha()
        ):
            pieces += (text[end:offset], f"⟨U+{ord(text[offset]):04X}⟩")
            end = offset + 1
    return "".join((*pieces, text[end:])) if pieces else text


def find_deceptive(text: str, *, is_code: bool = False) -> Iterator[int]:
    """Yield the offsets of characters that hide something: they reorder text, or are invisible.

    Joiners within emoji and within the scripts that need them, single direction marks near as many letters written from
    right to left, and variation selectors behind characters that have variants are left out. In code every direction
    mark counts. Soft hyphens are all included: `mark_hidden` decides by the text around which may stay.
    """
    if not (_CONTROL if text.isascii() else _CANDIDATE).search(text):
        return
    flags = {offset for match in _TAG_FLAG.finditer(text) for offset in range(match.start() + 1, match.end())}
    context = _TextContext(text, is_code=is_code)
    for match in _CANDIDATE.finditer(text):
        offset = match.start()
        if offset not in flags and _HIDDEN_CHARACTER.match(match[0]) and not context.is_legitimate(offset):
            yield offset


class _TextContext:
    """Answers questions about the text around a character; each searches the whole text only once."""

    def __init__(self, text: str, *, is_code: bool) -> None:
        self._text = text
        self._is_code = is_code

    @cached_property
    def _has_braille(self) -> bool:
        return _BRAILLE.search(self._text) is not None

    @cached_property
    def _right_to_left_positions(self) -> list[int]:
        return [match.start() for match in _RIGHT_TO_LEFT.finditer(self._text)]

    @cached_property
    def _mark_positions(self) -> list[int]:
        return [match.start() for match in _DIRECTION_MARK.finditer(self._text)]

    def is_legitimate(self, offset: int) -> bool:
        """Return whether a character that could deceive is ordinary beside its neighbours."""
        text = self._text
        char, before, after = text[offset], text[offset - 1 : offset] if offset else "", text[offset + 1 : offset + 2]
        if char in _DIRECTION_MARKS:
            # Two kinds of marks in a row could spell a hidden message.
            is_single = before not in _DIRECTION_MARKS and after not in _DIRECTION_MARKS
            return (
                not self._is_code
                and is_single
                and _count_near(offset, self._mark_positions) <= _count_near(offset, self._right_to_left_positions)
            )
        if char == "\u2800":
            return not self._is_code and self._has_braille
        if _SELECTOR.match(char):
            return _selects_variant(char, before) or _KEYCAP.match(text, max(0, offset - 1)) is not None
        if char in "\u115f\u1160":
            return bool(_JAMO.match(before) or _JAMO.match(after)) and before != char
        if char == "\u034f":
            return unicodedata.combining(before or " ") != 0
        return _is_joiner_allowed(char, before, after) or (
            _SCRIPT_FORMAT.match(char) is not None and _is_in_own_script(char, before, after)
        )


def _count_near(offset: int, positions: list[int]) -> int:
    return bisect_left(positions, offset + _NEAR_DISTANCE) - bisect_right(positions, offset - _NEAR_DISTANCE)


def _selects_variant(selector: str, before: str) -> bool:
    """Whether a character has variants among which this selector can choose."""
    if selector in "\ufe0e\ufe0f":
        return _EMOJI.match(before) is not None
    if selector <= "\u180f":
        return _MONGOLIAN.match(before) is not None
    # Of the Ideographic Variation Database, no character has more than 32 variants.
    if selector <= "\ufe02" or "\U000e0100" <= selector <= "\U000e011f":
        varied = {"\ufe00": _VARIATION_BASES, "\ufe01": _VARIATION_2_BASES}.get(selector, _IDEOGRAPH)
        return bool(_IDEOGRAPH.match(before) or varied.match(before))
    return False


def _is_joiner_allowed(char: str, before: str, after: str) -> bool:
    if char == "\u200d":
        is_picture = before == "\ufe0f" or _EMOJI.match(before)
        return bool(is_picture and _EMOJI.match(after)) or bool(_JOINING.match(before))
    if char == "\u200c":
        return bool(_JOINING.match(before))
    return char == "\u200b" and bool(_SPACELESS.match(before) or _SPACELESS.match(after))


def _is_in_own_script(char: str, before: str, after: str) -> bool:
    beside = next(beside for formats, beside in _SCRIPT_FORMAT_RULES if formats.match(char))
    return bool(beside.match(after)) or (char >= "\U00013430" and bool(beside.match(before)))
