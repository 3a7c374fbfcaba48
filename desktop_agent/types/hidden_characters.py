"""Invisible, control and bidirectional characters in a text, which may deceive its reader."""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cached_property

# Controls, the separators of lines and paragraphs, halves of pairs (UnicodeData.txt: Cc, Zl, Zp, Cs); tab and line
# feed are what they seem.
_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
# DerivedCoreProperties.txt 16.0, Default_Ignorable_Code_Point: drawn as nothing, also where nothing is assigned yet.
_IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8"
)
# The same in plane 14, with the planes around it that have no characters.
_EMPTY_PLANES = "\U0003fffe-\U000effff"
_IGNORABLE_SIGNS = "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
# UnicodeData.txt 16.0: what else is of the category Cf, and is drawn in its own script only.
_SCRIPT_FORMATS = "\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\U00013430-\U0001343f"
_KAITHI_FORMATS = "\U000110bd\U000110cd"
# Filed under symbols or letters, and yet nothing to see; and what stands for objects.
_EMPTY_SIGNS = "\u2800\ufff9-\ufffc"
_EMPTY_NOTE = "\U0001d159"
_KHITAN_FILLER = "\U00016fe4"
# PropList.txt 16.0, Noncharacter_Code_Point: of every plane the last two, and some of the first.
_NO_CHARACTERS = "\ufdd0-\ufdef\ufffe\uffff\U0001fffe-\U0001ffff\U0002fffe-\U0002ffff"
_LAST_NO_CHARACTERS = "\U000ffffe-\U000fffff\U0010fffe-\U0010ffff"
_SUPPLEMENTARY_HIDDEN = f"{_IGNORABLE_SIGNS}{_KAITHI_FORMATS}{_EMPTY_NOTE}{_LAST_NO_CHARACTERS}"
_SEPARATE_RANGES = (
    f"{_CONTROLS}{_IGNORABLE}{_EMPTY_PLANES}{_SCRIPT_FORMATS}{_EMPTY_SIGNS}{_KHITAN_FILLER}{_NO_CHARACTERS}"
)
HIDDEN_CHARACTERS = f"{_SEPARATE_RANGES}{_SUPPLEMENTARY_HIDDEN}"
"""Exactly what cannot be seen, for the inside of a pattern's brackets."""
# Each range beyond U+FFFF costs a third as much again for every character that is looked at. Among these stand only
# dandas of Kaithi, notes, and characters for private use.
_WIDE_RANGES = "\U000110bd-\U000110cd\U0001bca0-\U0001d17a\U000ffffe-\U0010ffff"
DECEPTIVE_CHARACTERS = f"{_SEPARATE_RANGES}{_WIDE_RANGES}"
"""What may deceive, for the inside of a pattern's brackets. Where it stands decides: `deceptive` looks at that."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_CANDIDATE = re.compile(f"[{DECEPTIVE_CHARACTERS}]")
PRIVATE_USE_CHARACTERS = "\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd"
"""For use between friends (UnicodeData.txt: Co): drawn as anything or nothing."""
_PRIVATE_USE = re.compile(f"[{PRIVATE_USE_CHARACTERS}]")
_INVISIBLE = re.compile(f"[{DECEPTIVE_CHARACTERS}{PRIVATE_USE_CHARACTERS}]")
_DIRECTION_MARKS = frozenset("\u061c\u200e\u200f")
_DIRECTION_MARK = re.compile(f"[{''.join(_DIRECTION_MARKS)}]")
_HIDDEN_CHARACTER = re.compile(f"[{HIDDEN_CHARACTERS}]")
_SELECTOR = re.compile("[\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_SCRIPT_FORMAT = re.compile(f"[{_SCRIPT_FORMATS}{_KAITHI_FORMATS}{_KHITAN_FILLER}]")
# England, Scotland and Wales: the only flags that are spelled in tags (Unicode, emoji-sequences.txt).
_TAG_FLAG = re.compile(
    "\U0001f3f4\U000e0067\U000e0062"
    "(\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074|\U000e0077\U000e006c\U000e0073)\U000e007f"
)
_RIGHT_TO_LEFT = re.compile("[\u0590-\u061b\u061d-\u08ff\ufb1d-\ufdcf\ufdf0-\ufdff\ufe70-\ufefc]")
_NEAR_DISTANCE = 200
# Scripts whose letters are joined or kept apart by zero-width characters: Syriac, Arabic, those of India, Mongolian.
_JOINING = re.compile("[\u0600-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u18af\ufb50-\ufdcf\ufdf0-\ufdff\ufe70-\ufefc]")
# Scripts written without spaces, in which a zero-width space says where a line may break.
_SPACELESS = re.compile("[\u0e00-\u0eff\u0f00-\u109f\u1780-\u17ff\u1980-\u19df\u3040-\u30ff\u3400-\u9fff]")
_BRAILLE = re.compile("[\u2801-\u28ff]")
_JAMO = re.compile("[\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff]")
# emoji-data.txt, Emoji; digits, # and * become one together with a keycap only.
_EMOJI = re.compile(
    "[©®‼⁉™\u2139↔-↙↩↪⌚⌛⌨⏏⏩-⏳⏸-⏺Ⓜ▪▫▶◀◻-◾☀-☄☎☑☔☕☘☝☠☢☣☦☪☮☯☸-☺♀♂♈-♓♟♠♣♥♦♨♻♾♿⚒-⚗⚙⚛⚜⚠⚡⚧⚪⚫⚰⚱⚽⚾⛄⛅⛈⛎⛏⛑⛓⛔⛩⛪⛰-⛵⛷-⛺⛽"
    "✂✅✈-✍✏✒✔✖✝✡✨✳✴❄❇❌❎❓-❕❗❣❤\u2795-➗➡➰➿⤴⤵⬅-⬇⬛⬜⭐⭕〰〽㊗㊙\U0001f000-\U0001faff]"
)
_KEYCAP = re.compile("[0-9#*]\ufe0f\u20e3")
_IDEOGRAPH = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_MONGOLIAN = re.compile("[\u1820-\u18aa]")
# StandardizedVariants.txt, with selector 1: mathematical operators and script capitals, letters of Myanmar, Phags-pa,
# and Manichaean, punctuation of CJK. A slashed zero is left out: a selector behind digits is a cipher.
_VARIATION_BASES = re.compile(
    "[\u2205\u2229\u222a\u2268\u2269\u2272\u2273\u228a\u228b\u2293\u2294\u2295\u2297\u229c\u22da\u22db\u2a3c\u2a3d\u2a9d\u2a9e\u2aac\u2aad\u2acb\u2acc\u210b\u2110\u2112\u211b\u212c\u2130\u2131\u2133\U0001d49c-\U0001d4b5\u3001\u3002\uff01\uff0c\uff0e\uff1a\uff1b\uff1f"
    "\u1000\u1002\u1004\u1010\u1011\u1015\u1019\u101a\u101c\u101d\u1022\u1031\u1075\u1078\u107a\u1080"
    "\uaa60-\uaa66\uaa6b\uaa6c\uaa6f\uaa7a\ua856\ua85c\ua85e-\ua860\ua868"
    "\U00010ac5\U00010ac6\U00010ad6\U00010ad7\U00010ae1]"
)
# And with selector 2.
_VARIATION_2_BASES = re.compile(
    "[\u210b\u2110\u2112\u211b\u212c\u2130\u2131\u2133\U0001d49c-\U0001d4b5\u3001\u3002\uff01\uff0c\uff0e\uff1a\uff1b\uff1f]"
)
# For each script with format characters of its own: those characters, and what they stand beside.
_SCRIPT_FORMAT_RULES = (
    (re.compile("[\u0600-\u0605\u06dd\u0890\u0891\u08e2]"), re.compile("[\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff]")),
    (re.compile("\u070f"), re.compile("[\u0710-\u074f]")),
    (re.compile("[\U000110bd\U000110cd]"), re.compile("[\U00011080-\U000110bc]")),
    (re.compile(_KHITAN_FILLER), re.compile("[\U00018b00-\U00018cff]")),
    (re.compile("[\U00013430-\U0001343f]"), re.compile("[\U00013000-\U0001342f]")),
)


def replace_hidden(text: str) -> str:
    """The text with � for each character that cannot be seen: a model is to read no more than a person could."""
    if not (_CONTROL if text.isascii() else _INVISIBLE).search(text):
        return text
    hidden = set(find_deceptive(text, is_code=True))
    return "".join("�" if at in hidden or _PRIVATE_USE.match(each) else each for at, each in enumerate(text))


def mark_hidden(text: str) -> str:
    """The text with ⟨U+202E⟩ for each character that hides something.

    So a model reads what a person sees, and both see where something was. Soft hyphens within words stay.
    """
    pieces: list[str] = []
    end = 0
    for at in find_deceptive(text):
        if text[at] != "\u00ad" or not (text[at - 1 : at].isalpha() and text[at + 1 : at + 2].isalpha()):
            pieces += (text[end:at], f"⟨U+{ord(text[at]):04X}⟩")
            end = at + 1
    return "".join((*pieces, text[end:])) if pieces else text


def find_deceptive(text: str, *, is_code: bool = False) -> Iterator[int]:
    """Where characters stand that hide something: they reorder, or take no room, and are no part of what is seen.

    Joiners within emoji and within the scripts that need them, single direction marks near as many letters written
    from right to left, and variation selectors behind what has variants stay. In code every direction mark counts. Soft
    hyphens are all named: which of them may stay says the text around, and `spell_out_hidden` looks at that.
    """
    if not (_CONTROL if text.isascii() else _CANDIDATE).search(text):
        return
    flags = {at for found in _TAG_FLAG.finditer(text) for at in range(found.start() + 1, found.end())}
    around = _TextContext(text, is_code=is_code)
    for found in _CANDIDATE.finditer(text):
        at = found.start()
        if at not in flags and _HIDDEN_CHARACTER.match(found[0]) and not around.is_legitimate(at):
            yield at


class _TextContext:
    """What is asked about the whole of a text is asked once: a text may be full of such characters."""

    def __init__(self, text: str, *, is_code: bool) -> None:
        self._text = text
        self._is_code = is_code

    @cached_property
    def _has_braille(self) -> bool:
        return _BRAILLE.search(self._text) is not None

    @cached_property
    def _right_to_left_positions(self) -> list[int]:
        return [found.start() for found in _RIGHT_TO_LEFT.finditer(self._text)]

    @cached_property
    def _mark_positions(self) -> list[int]:
        return [found.start() for found in _DIRECTION_MARK.finditer(self._text)]

    def is_legitimate(self, at: int) -> bool:
        """Whether a character that could deceive is an ordinary part of what stands around it."""
        text = self._text
        char, before, after = text[at], text[at - 1 : at] if at else "", text[at + 1 : at + 2]
        if char in _DIRECTION_MARKS:
            # Two kinds of them in any number could spell whatever somebody likes.
            is_single = before not in _DIRECTION_MARKS and after not in _DIRECTION_MARKS
            return (
                not self._is_code
                and is_single
                and _count_near(at, self._mark_positions) <= _count_near(at, self._right_to_left_positions)
            )
        if char == "\u2800":
            return not self._is_code and self._has_braille
        if _SELECTOR.match(char):
            return _selects_variant(char, before) or _KEYCAP.match(text, max(0, at - 1)) is not None
        if char in "\u115f\u1160":
            return bool(_JAMO.match(before) or _JAMO.match(after)) and before != char
        if char == "\u034f":
            return unicodedata.combining(before or " ") != 0
        return _is_joiner_allowed(char, before, after) or (
            _SCRIPT_FORMAT.match(char) is not None and _is_in_own_script(char, before, after)
        )


def _count_near(at: int, places: list[int]) -> int:
    return bisect_left(places, at + _NEAR_DISTANCE) - bisect_right(places, at - _NEAR_DISTANCE)


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
    """Whether a format character stands in its own script."""
    beside = next(beside for own, beside in _SCRIPT_FORMAT_RULES if own.match(char))
    return bool(beside.match(after)) or (char >= "\U00013430" and bool(beside.match(before)))
