"""Text files: their encoding, byte order mark and line ends, and replacing a passage of the text."""

import codecs
import re
from bisect import bisect_left
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice
from typing import Literal

from desktop_agent.types.errors import Sentence, ToolFailed

Newline = Literal["\n", "\r\n", "\r"]

# UTF-32 first: its little-endian mark begins with that of UTF-16.
_BYTE_ORDER_MARKS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Control characters that text files do not contain; they may contain tab, line ends, form feed and escape.
_NOT_TEXT = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")
# Latin-1 decodes anything, so bytes with more than one control character in fifty are not called text.
_LATIN_1_TOLERANCE = 50


class NotText(ToolFailed):
    """The bytes are no text."""

    kind = "not_text"


@dataclass(frozen=True, slots=True)
class TextFormat:
    """How a text is encoded in its file. `newline` is None without line ends and with mixed ones."""

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
    r"""Text with every line end as \n, and the format it came in."""

    text: str
    format: TextFormat


def normalize_newlines(text: str) -> str:
    r"""Write every line end as \n; what a terminal would write over stands in a line of its own."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def decode_text(data: bytes) -> TextFile:
    """Decode bytes by byte order mark, else as UTF-8, else as Latin-1. Raises NotText."""
    text, format_ = decode_with_newlines(data)
    return TextFile(normalize_newlines(text), format_)


def decode_with_newlines(data: bytes) -> tuple[str, TextFormat]:
    """Decode like `decode_text`, but keep the line ends of the file. Raises NotText."""
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
    """Encode a text in the format of the file it replaces, as far as possible; return bytes and format.

    Without a format, or where line ends were mixed, the text's own line ends stay.
    """
    text_format = like or TextFormat()
    if text_format.newline is not None:
        text = normalize_newlines(text).replace("\n", text_format.newline)
    try:
        return text_format.byte_order_mark + text.encode(text_format.encoding), text_format
    except UnicodeEncodeError:
        used = TextFormat(newline=text_format.newline)
        # A lone surrogate is half a character and has no bytes in any encoding.
        return text.encode("utf-8", "replace"), used


def _newline_of(text: str) -> Newline | None:
    windows = text.count("\r\n")
    counts: dict[Newline, int] = {
        "\r\n": windows,
        "\n": text.count("\n") - windows,
        "\r": text.count("\r") - windows,
    }
    used: list[Newline] = [newline for newline, count in counts.items() if count]
    return used[0] if len(used) == 1 else None


_LINE_END = re.compile(r"\r\n|\r|\n")
_MAX_NAMED_LINES = 10
# At most so many lines are compared with the first line of the passage: comparing is slow.
_MAX_COMPARED_LINES = 2_000
_MIN_SIMILARITY = 0.6
_MAX_SHOWN = 200
# A longer passage is not searched for with other spaces.
_MAX_PASSAGE_LINES = 200

# Start and end offsets in a text.
_Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class TextEdit:
    """A text before and after, with the line ends of its file. `lines` are where the passage stood, from 1."""

    before: str
    after: str
    format: TextFormat
    lines: tuple[int, ...]

    @property
    def description(self) -> str:
        """What was replaced, in words."""
        if len(self.lines) == 1:
            return f"replaced at line {self.lines[0]:,}"
        return f"replaced {len(self.lines):,} times, at {_format_lines(self.lines)}"


def replace_passage(
    path: str, text: str, format_: TextFormat, old_text: str, new_text: str, *, replace_all: bool = False
) -> TextEdit:
    """Replace one passage, or each. Raises ToolFailed with what the file has instead."""
    old, new = normalize_newlines(old_text), normalize_newlines(new_text)
    if old == new:
        raise ToolFailed("The old text and the new text are the same; nothing would change.")
    plain = normalize_newlines(text)
    starts = _find_all(plain, old)
    lines = _line_numbers(plain, starts)
    if not starts:
        raise ToolFailed(Sentence("The old text is not in “{path}”.", {"path": path}), _suggest(plain, old))
    if len(starts) > 1 and not replace_all:
        values = {"path": path, "count": f"{len(starts):,}", "lines": _format_lines(lines)}
        raise ToolFailed(
            Sentence("The old text is in “{path}” {count} times, at {lines}.", values),
            "Give more of the text around the one that is meant, or set replace_all.",
        )
    replaced, normalized = (
        _replace_spans(text, _spans_in_file(text, starts, len(old)), new, format_),
        plain.replace(old, new),
    )
    # In a file with mixed line ends, two halves of one may have come together.
    return TextEdit(text, replaced if normalize_newlines(replaced) == normalized else normalized, format_, lines)


def _find_all(text: str, passage: str) -> list[int]:
    """Return where it stands, without overlaps. Not by a regular expression, which may take for ever."""
    starts: list[int] = []
    offset = text.find(passage)
    while offset >= 0:
        starts.append(offset)
        offset = text.find(passage, offset + len(passage))
    return starts


def _spans_in_file(text: str, starts: list[int], length: int) -> list[_Span]:
    """Map the offsets to the text with the line ends of its file, of which those of Windows are two characters."""
    double = [match.start() - count for count, match in enumerate(re.finditer("\r\n", text))]

    def offset_in_file(offset: int) -> int:
        return offset + bisect_left(double, offset)

    return [(offset_in_file(start), offset_in_file(start + length)) for start in starts]


def _replace_spans(text: str, spans: list[_Span], new: str, format_: TextFormat) -> str:
    if format_.newline != "\n" and "\n" in new:
        new = new.replace("\n", format_.newline or _line_end_near(text, spans[0]))
    pieces: list[str] = []
    last = 0
    for start, end in spans:
        pieces += text[last:start], new
        last = end
    return "".join([*pieces, text[last:]])


def _line_end_near(text: str, span: _Span) -> str:
    """Return the line end to use there in a file of mixed ones: that in the passage, else after it, else before it."""
    line_end = _LINE_END.search(text, span[0]) or next(_LINE_END.finditer(text), None)
    return line_end[0] if line_end else "\n"


def _line_numbers(text: str, starts: list[int]) -> tuple[int, ...]:
    lines: list[int] = []
    line, last = 1, 0
    for start in starts:
        line += text.count("\n", last, start)
        lines.append(line)
        last = start
    return tuple(lines)


def _format_lines(lines: tuple[int, ...]) -> str:
    numbers = ", ".join(f"{line}" for line in lines[:_MAX_NAMED_LINES])
    more = len(lines) - _MAX_NAMED_LINES
    return f"{'lines' if len(lines) > 1 else 'line'} {numbers}" + (f" and {more:,} more" if more > 0 else "")


def _squeeze_spaces(lines: list[str]) -> list[str]:
    return [" ".join(line.split()) for line in lines]


def _suggest(text: str, old: str) -> str:
    """Suggest what to do about it: which lines are nearly what was searched for."""
    lines = text.split("\n")
    squeezed, plain = _squeeze_spaces(old.split("\n")), _squeeze_spaces(lines)
    first = _find_lines(squeezed, plain) if len(squeezed) <= _MAX_PASSAGE_LINES else None
    if first is not None:
        return f"At line {first + 1} it stands with other spaces or tabs; copy it from there."
    first_line = next((line for line in squeezed if line), "")
    similar = _most_similar_line(first_line[:_MAX_SHOWN], plain) if first_line else None
    if similar is None:
        return "Read the file again and copy the text from it."
    return f"The nearest is line {similar + 1}: {lines[similar].strip()[:_MAX_SHOWN]}"


def _find_lines(passage: list[str], lines: list[str]) -> int | None:
    places = (index for index, line in enumerate(lines) if line == passage[0])
    return next((index for index in places if lines[index : index + len(passage)] == passage), None)


def _most_similar_line(passage: str, lines: list[str]) -> int | None:
    best, best_index = _MIN_SIMILARITY, None
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(passage)
    for index, line in enumerate(islice(lines, _MAX_COMPARED_LINES)):
        matcher.set_seq1(line[:_MAX_SHOWN])
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and (ratio := matcher.ratio()) > best:
            best, best_index = ratio, index
    return best_index
