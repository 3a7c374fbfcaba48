"""Show text from outside truthfully: long lines folded, host names with lookalikes named, URLs parsed for display.

Also the frames that set the words of an MCP server apart from the program's own.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from PySide6.QtCore import QCoreApplication, QUrl
from PySide6.QtWidgets import QFrame

from desktop_agent.types.line_diff import MAX_LINES
from desktop_agent.types.lookalikes import find_lookalike
from desktop_agent.types.providers import is_loopback
from ui.style.auto_height_text import ReadOnlyText
from ui.style.boxes import vbox
from ui.style.controls import label
from ui.style.text import show_hidden, truncate
from ui.style.text_display import isolate_untrusted
from ui.style.theme import SPACE_M, SPACE_S

MAX_CHARACTERS = 4_000_000
FOLD_WIDTH = 1000
FOLD_MARK = "\n↪ "


def truncate_text(text: str) -> tuple[str, int]:
    """Return as much of a text as Qt can lay out, and the number of omitted characters."""
    end, lines = -1, 0
    while lines < MAX_LINES and (end := text.find("\n", end + 1)) >= 0:
        lines += 1
    kept = text[: min(len(text) if end < 0 else end, MAX_CHARACTERS)]
    return kept, len(text) - len(kept)


def fold_lines(text: str, width: int = FOLD_WIDTH) -> str:
    """Break and mark very long lines: Qt lays out a line of megabytes for seconds."""
    if len(text) <= width:
        return text
    return "\n".join(_fold_line(line, width) for line in text.split("\n"))


def map_folded_positions(text: str, positions: Sequence[int], width: int = FOLD_WIDTH) -> list[int]:
    """Map rising positions in a text to positions in the result of `fold_lines` for it."""
    if len(text) <= width:
        return list(positions)
    folded: list[int] = []
    added, start, end = 0, 0, _line_end(text, 0)
    for position in positions:
        while position > end:
            added += _fold_count(end - start, end - start, width)
            start, end = end + 1, _line_end(text, end + 1)
        folded.append(position + len(FOLD_MARK) * (added + _fold_count(position - start, end - start, width)))
    return folded


def _line_end(text: str, offset: int) -> int:
    end = text.find("\n", offset)
    return len(text) if end < 0 else end


def _fold_count(offset: int, length: int, width: int) -> int:
    """Return how often a line of this length is broken before an offset."""
    return min(offset // width, (length - 1) // width) if length else 0


def _fold_line(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    return FOLD_MARK.join(line[start : start + width] for start in range(0, len(line), width))


_ACE = "xn--"
_HOST_PATTERN = re.compile(r"(\*\.)?(.*?)(:\d+)?", re.DOTALL)


def describe_host(host: str) -> str:
    """Return a host in ASCII, and if they differ, its letters (RFC 3492) with a warning of lookalikes.

    A wildcard before the host and a port after it stay in place.
    """
    match = _HOST_PATTERN.fullmatch(host)
    wildcard, name, port = (match[1] or "", match[2], match[3] or "") if match else ("", host, "")
    plain = name if name.isascii() else _encoded_host(name) or name
    letters = decode_punycode(name) if name.isascii() else name
    ascii_text = isolate_untrusted(f"{wildcard}{plain}{port}")
    if letters in {"", plain.lower()}:
        return ascii_text
    lookalike = find_lookalike(letters, is_name=True)
    if lookalike is None:
        return f"{ascii_text} ({isolate_untrusted(letters)})"
    words = QCoreApplication.translate("Hosts", "{0} (looks like “{1}”, but “{2}” is {3})")
    return words.format(ascii_text, isolate_untrusted(letters), lookalike.char, lookalike.name)


def decode_punycode(ascii_host: str) -> str:
    """Return the Unicode form of a host; empty if it cannot be decoded."""
    try:
        return ".".join(
            label.removeprefix(_ACE).encode("ascii").decode("punycode") if label.startswith(_ACE) else label
            for label in ascii_host.lower().split(".")
        )
    except UnicodeError:
        return ""


def _encoded_host(name: str) -> str:
    url = QUrl()
    url.setHost(name)
    return url.host(QUrl.ComponentFormattingOption.FullyEncoded)


@dataclass(frozen=True, slots=True)
class PageAddress:
    """A URL as it was sent, with the offset of its host. `ascii_host` is in punycode.

    `is_safe`: it may be opened, as it is https, or http on this machine. `user` is before the host and can look like
    one.
    """

    text: str
    host: str
    ascii_host: str
    host_start: int
    is_safe: bool
    user: str = ""
    is_idn: bool = False
    """Whether the host is internationalized (RFC 5890)."""
    unicode_host: str = ""
    """The host in Unicode; empty if it cannot be decoded."""


def parse_address(text: str) -> PageAddress:
    """Parse a URL. One that cannot be parsed has no host and is not safe."""
    try:
        parts = urlsplit(text)
        host = parts.hostname or ""
        _ = parts.port
    except ValueError:
        return PageAddress(text, "", "", -1, is_safe=False)
    user, _, authority = parts.netloc.rpartition("@")
    start = text.find(parts.netloc) + len(parts.netloc) - len(authority)
    host_start = text.lower().find(host, start) if host else -1
    # Qt opens the URL: if Qt parses another host than urlsplit, the URL is not safe.
    url = QUrl(text, QUrl.ParsingMode.StrictMode)
    ascii_host = url.host(QUrl.ComponentFormattingOption.FullyEncoded).lower()
    is_same_host = url.isValid() and bool(ascii_host) and _encoded_host(host).lower() == ascii_host
    has_hidden = any(letter.isspace() or not letter.isprintable() or letter == "\\" for letter in text)
    is_secure = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(ascii_host))
    is_unusual = any(label.startswith(_ACE) for label in ascii_host.split(".")) or not host.isascii()
    letters = decode_punycode(ascii_host) if is_unusual else ""
    is_safe = is_secure and is_same_host and not has_hidden
    return PageAddress(text, host, ascii_host, host_start, is_safe, user, is_unusual, letters)


def unusual_letters(host: str) -> list[tuple[str, str]]:
    """Return each non-ASCII letter once, with its Unicode name."""
    letters = dict.fromkeys(letter for letter in host if not letter.isascii())
    return [(show_hidden(letter), unicodedata.name(letter, f"U+{ord(letter):04X}").capitalize()) for letter in letters]


MAX_NAME_LENGTH = 80
# " and all variants of “ and «.
_QUOTATION_MARKS = str.maketrans(dict.fromkeys('"\u201c\u201d\u201e\u201f\xab\xbb\u2039\u203a\uff02', "'"))


def quote_name(name: str) -> str:
    """Return a name from outside as one short line without quotation marks, to be quoted in our sentences."""
    return truncate(" ".join(show_hidden(name).translate(_QUOTATION_MARKS).split()), MAX_NAME_LENGTH)


class ServerTextFrame(QFrame):
    """A frame whose first line, in the program's words, says whose words follow."""

    def __init__(self, whose: str, spacing: int = SPACE_S) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self.setAccessibleName(whose)
        self.column = vbox(
            label(whose, "small", wrap=True), parent=self, spacing=spacing, margins=(SPACE_M, SPACE_S, SPACE_M, SPACE_M)
        )


class ServerText(ReadOnlyText):
    """A read-only field for the words of an MCP server, with very long lines folded."""

    def __init__(self, name: str, most_lines: int = 8) -> None:
        super().__init__("", name, most_lines)

    def show_text(self, text: str) -> None:
        """Show another text, folded."""
        super().show_text(fold_lines(show_hidden(text)))
