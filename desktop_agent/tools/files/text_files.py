"""Text in files: which encoding, byte order mark and line ends it has, and how to write it back the same way."""

import codecs
import re
from dataclasses import dataclass
from typing import Literal

from desktop_agent.vocabulary.errors import ToolFailed

Newline = Literal["\n", "\r\n", "\r"]

# UTF-32 first: its little-endian mark begins with that of UTF-16.
_BYTE_ORDER_MARKS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Control characters that text files do not contain; tab, line ends, form feed and escape they may.
_NOT_TEXT = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")
# Latin-1 decodes anything, so bytes with more than one control character in fifty are not called text.
_LATIN_1_TOLERANCE = 50


class NotText(ToolFailed):
    """The bytes are no text."""

    kind = "not_text"


@dataclass(frozen=True, slots=True)
class TextFormat:
    """How a text lies in its file. `newline` is None without line ends and with mixed ones."""

    encoding: str = "utf-8"
    byte_order_mark: bytes = b""
    newline: Newline | None = None

    @property
    def title(self) -> str:
        """The encoding in words."""
        name = {"latin-1": "Latin-1 (a guess: it is not UTF-8)"}.get(self.encoding, self.encoding.upper())
        return f"{name} with a byte order mark" if self.byte_order_mark else name


@dataclass(frozen=True, slots=True)
class TextFile:
    """Text with every line end as \\n, and the format it came in."""

    text: str
    format: TextFormat


def decode_text(data: bytes) -> TextFile:
    """Read bytes as text: by byte order mark, else UTF-8, else Latin-1. Raises NotText."""
    text, format_ = decode_with_newlines(data)
    return TextFile(normalize_newlines(text), format_)


def decode_with_newlines(data: bytes) -> tuple[str, TextFormat]:
    """The same with the line ends that the file has. Raises NotText."""
    mark, encoding = next(((mark, name) for mark, name in _BYTE_ORDER_MARKS if data.startswith(mark)), (b"", "utf-8"))
    body = data[len(mark) :]
    if encoding == "utf-8" and b"\0" in body:
        raise NotText("It is a binary file.")
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError:
        if mark or len(_NOT_TEXT.findall(body)) * _LATIN_1_TOLERANCE > len(body):
            raise NotText("It is a binary file.") from None
        encoding, text = "latin-1", body.decode("latin-1")
    return text, TextFormat(encoding, mark, _newline_of(text))


def encode_text(text: str, like: TextFormat | None) -> tuple[bytes, TextFormat]:
    """Bytes for a text in the format of the file it replaces, as far as that can hold it, and the format used.

    Without a format, or where line ends were mixed, the text's own line ends stay.
    """
    wanted = like or TextFormat()
    if wanted.newline is not None:
        text = normalize_newlines(text).replace("\n", wanted.newline)
    try:
        return wanted.byte_order_mark + text.encode(wanted.encoding), wanted
    except UnicodeEncodeError:
        used = TextFormat(newline=wanted.newline)
        # A lone surrogate is half a character and has no bytes in any encoding.
        return text.encode("utf-8", "replace"), used


def normalize_newlines(text: str) -> str:
    """Every line end as \\n."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _newline_of(text: str) -> Newline | None:
    windows = text.count("\r\n")
    found: dict[Newline, int] = {
        "\r\n": windows,
        "\n": text.count("\n") - windows,
        "\r": text.count("\r") - windows,
    }
    used: list[Newline] = [newline for newline, count in found.items() if count]
    return used[0] if len(used) == 1 else None
