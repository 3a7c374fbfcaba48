"""Hosts in ASCII and in their own letters, and which letters may be shown: those that cannot pass for others.

The rules are those of browsers: UTS 39, "Highly Restrictive", and its confusables; what does not meet them is shown
as punycode.
"""

import re
import unicodedata
from functools import lru_cache

from desktop_agent.vocabulary.text.hidden_characters import DECEPTIVE_CHARACTERS
from desktop_agent.vocabulary.text.lookalikes import ascii_lookalike_in_host

_HIDDEN = re.compile(f"[{DECEPTIVE_CHARACTERS}]")
_MAX_LABEL_LENGTH = 63
"""Of a label (RFC 1035); longer ones lead nowhere."""

# UAX 31, table 5, "Recommended Scripts", as the first words of the names of their letters.
_SCRIPTS = (
    "ARABIC ARMENIAN BENGALI BOPOMOFO CJK CYRILLIC DEVANAGARI ETHIOPIC GEORGIAN GREEK GUJARATI GURMUKHI HANGUL HEBREW"
    " HIRAGANA KANNADA KATAKANA KHMER LAO LATIN MALAYALAM MYANMAR ORIYA SINHALA TAMIL TELUGU THAANA THAI"
    " TIBETAN"
)
_RECOMMENDED = frozenset(_SCRIPTS.split())
_SCRIPTS_USED_TOGETHER = (
    frozenset({"LATIN", "CJK", "HIRAGANA", "KATAKANA"}),
    frozenset({"LATIN", "CJK", "BOPOMOFO"}),
    frozenset({"LATIN", "CJK", "HANGUL"}),
)
# Whose mark is seen at a glance, also above the line under a link.
_LATIN = frozenset("ßàáâãäåæçèéêëìíîïñòóôõöøùúûüýÿœāăćĉčďēĕěĝğĥĩīĭĵĺľńňōŏőŕřśŝšťũūŭůűŵŷźž")
_VIETNAMESE = "đơư" + "".join(map(chr, range(0x1EA1, 0x1EFA)))
# Others are seen where people write them.
_LATIN_OF = {
    "az": "əışç",
    "ba": "đ",
    "fo": "ð",
    "hr": "đ",
    "is": "ðþ",
    "lt": "ąęėįų",
    "lv": "ģķļņ",
    "md": "șțşţ",
    "me": "đ",
    "mt": "ċġħż",
    "pl": "ąęłż",
    "ro": "șțşţ",
    "rs": "đ",
    "tr": "ış",
    "vn": _VIETNAMESE,
}
# Signs of Chinese and Japanese that pass for marks where no other sign stands beside them.
_AMBIGUOUS_LETTERS = "ノンソゾーヽヾ一丨丶丿亅〇"
_EAST_ASIAN = "\u3041-\u30ff\u3400-\u9fff"
_AMBIGUOUS_ALONE = re.compile(f"(?<![{_EAST_ASIAN}])[{_AMBIGUOUS_LETTERS}]|[{_AMBIGUOUS_LETTERS}](?![{_EAST_ASIAN}])")
_ASCII_LETTER = re.compile(r"[a-z0-9]")


def skeleton(text: str) -> str:
    """With the ASCII letters that its letters pass for (UTS 39)."""
    if text.isascii():
        return text
    plain = ((char, ascii_lookalike_in_host(char)) for char in text)
    return "".join(like if like.isalpha() else char for char, like in plain)


def ascii_host(host: str) -> str:
    """As it is looked up (UTS 46): in small letters and punycode."""
    host = host.rstrip(".")
    return host.lower() if host.isascii() else ".".join(map(_label_in_ascii, host.split(".")))


def unicode_host(host: str) -> str:
    """In its own letters, which may deceive."""
    return ".".join(map(_label_in_unicode, host.lower().split("."))) if "xn--" in host.lower() else host.lower()


@lru_cache(maxsize=1024)
def display_host(host: str) -> str:
    """A host as it may be shown: in its own letters where they cannot pass for others, otherwise as punycode."""
    own = unicode_host(ascii_host(host))
    ending = ascii_host(own.rpartition(".")[2])
    return own if all(_is_plain(label, ending) for label in own.split(".")) else ascii_host(host)


def _label_in_ascii(label: str) -> str:
    # UTS 46 keeps these two, which other folding replaces.
    folded = "".join(each if each in "ßς" else each.casefold() for each in unicodedata.normalize("NFKC", label))
    folded = _HIDDEN.sub("", unicodedata.normalize("NFKC", folded))
    if folded.isascii() or len(folded) > _MAX_LABEL_LENGTH:
        return folded
    return f"xn--{folded.encode('punycode').decode('ascii')}"


def _label_in_unicode(label: str) -> str:
    if not label.startswith("xn--") or not label.isascii() or len(label) > _MAX_LABEL_LENGTH:
        return label
    try:
        own = label[4:].encode("ascii").decode("punycode")
    except ValueError:
        return label
    return own if _label_in_ascii(own) == label else label


def _is_plain(label: str, ending: str) -> bool:
    """Letters of one script, or of scripts that are written together; not a word of nothing but lookalikes."""
    if label.isascii():
        return not label.startswith("xn--")
    foreign = [char for char in label if not char.isascii()]
    if any(unicodedata.category(char)[0] not in "LM" for char in foreign):
        return False
    scripts = {_script(char) for char in label if not char.isascii() or char.isalpha()}
    together = len(scripts) == 1 or any(scripts <= allowed for allowed in _SCRIPTS_USED_TOGETHER)
    if not together or not scripts <= _RECOMMENDED:
        return False
    if any(_script(char) == "LATIN" and not _is_latin_of(char, ending) for char in foreign):
        return False
    if _ASCII_LETTER.search(label) and _AMBIGUOUS_ALONE.search(label):
        return False
    return not all(map(ascii_lookalike_in_host, foreign)) or "LATIN" in scripts


def _is_latin_of(char: str, ending: str) -> bool:
    return char in _LATIN or char in _LATIN_OF.get(ending, "")


def _script(char: str) -> str:
    """The first word of a letter's Unicode name, which is its script for all that matters here."""
    name = unicodedata.name(char, "?").split(" ")[0].split("-")[0]
    return "CJK" if name == "IDEOGRAPHIC" else name
