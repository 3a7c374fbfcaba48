"""Output of programs: what a terminal would show of it, as a code block or as its last lines while it runs."""

import re
from collections import deque
from dataclasses import dataclass, field

from PySide6.QtCore import QCoreApplication, QRect, Qt

from ui.transcript.blocks.block import Block, PaintContext
from ui.transcript.blocks.code.code_block import CodeBlock, CodeCallbacks
from ui.transcript.blocks.code.code_lines import CodeLines
from ui.transcript.blocks.code.highlighter_protocol import StyledWord
from ui.transcript.markdown.text_units import utf16_length
from ui.transcript.style import BOLD, RenderStyle


class OutputBlock(CodeBlock):
    """Code in the colours that its program chose."""

    def __init__(self, text: str, words: list[list[StyledWord]], callbacks: CodeCallbacks, title: str) -> None:
        super().__init__(text, "", callbacks, title=title)
        self._lines.words = words

    def set_output(self, text: str, words: list[list[StyledWord]]) -> None:
        """Something else; whether lines wrap, and how far they were moved, stays."""
        if (text, words) == (self.text, self._lines.words):
            return
        if text.startswith(self.text) and self._lines.words == words[: len(self._lines.words)]:
            self._lines.append(text[len(self.text) :])
        else:
            self._lines = self._lines.with_text(text)
        self._lines.words = words
        self.is_laid_out = False


class OutputTailBlock(Block):
    """A few lines without a box. Those that are too long end at the edge."""

    def __init__(self, text: str, words: list[list[StyledWord]]) -> None:
        self._lines = CodeLines(text, wraps=False)
        self._lines.words = words
        self._width = 0

    def set_output(self, text: str, words: list[list[StyledWord]]) -> None:
        """The lines that are the last ones now."""
        if (text, words) != (self._lines.text, self._lines.words):
            self._lines = CodeLines(text, wraps=False)
            self._lines.words, self.is_laid_out = words, False

    def estimate(self, width: int, style: RenderStyle) -> int:
        """Exact."""
        del width
        return len(self._lines) * style.mono_line

    def layout(self, width: int, style: RenderStyle) -> int:
        """Exact."""
        self._width, self.is_laid_out = width, True
        self._lines.layout(width, style)
        return self._lines.height

    def forget(self) -> None:
        """Keep the text alone."""
        self._lines.forget()
        self.is_laid_out = False

    def paint(self, context: PaintContext) -> None:
        """The lines."""
        painter = context.painter
        painter.save()
        painter.setClipRect(QRect(0, 0, self._width, self._lines.height), Qt.ClipOperation.IntersectClip)
        self._lines.paint(painter, context.style, context.clip, context.selection)
        painter.restore()

    def plain(self) -> str:
        """The lines."""
        return self._lines.text


MAX_LINES = 20_000

MAX_LINE_LENGTH = 4_000
"""Characters of a line that are shown while it is written."""

_LEAD_IN = 16_000
"""Characters above the lines that are kept which are read for their colours."""

_TAB = 8
_MAX_COLUMNS = 240
"""Columns to which a command can jump; it may name any. Text goes on beyond them."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_CSI = re.compile(r"\[([0-?]{0,64})[ -/]{0,4}([@-~])")
_SHORT = re.compile(r"[ -/]{0,4}[0-~]")
_INCOMPLETE = re.compile(r"(?:\[[0-?]{0,64}[ -/]{0,4}|[ -/]{0,4})\Z")
_STRING_END = re.compile(r"\x07|\x1b\\?|\x9c")
_STRING_OPENERS = "PX^_]"
_COLOR_NAMES = ("", "red", "green", "yellow", "blue", "magenta", "cyan", "")


@dataclass(slots=True)
class _Line:
    """Characters and how each is drawn; what stands behind the first `longest` of them is not kept."""

    longest: int
    text: list[str] = field(default_factory=list[str])
    ink: list[str] = field(default_factory=list[str])

    def write(self, at: int, words: str, ink: str) -> None:
        words = words[: max(0, self.longest - at)]
        if not words:
            return
        missing = at - len(self.text)
        if missing > 0:
            self.text += " " * missing
            self.ink += [""] * missing
        self.text[at : at + len(words)] = words
        self.ink[at : at + len(words)] = [ink] * len(words)


class Terminal:
    """Fed with what a program writes, in any pieces. Of a line only so much is kept as is shown while it is written."""

    def __init__(self, longest: int = MAX_LINE_LENGTH + 1) -> None:
        self._longest = longest
        self._lines: deque[_Line] = deque([_Line(longest)], MAX_LINES)
        self._row = 0
        self._column = 0
        self._format = ""
        self._unread = ""
        self._in_string = False

    def feed(self, output: str) -> None:
        """More of it."""
        output, self._unread = self._unread + output, ""
        at, end = 0, len(output)
        while at < end:
            if self._in_string:
                at = self._skip_string(output, at)
                continue
            found = _CONTROL.search(output, at)
            stop = found.start() if found else end
            if stop > at:
                self._write(output[at:stop])
            if found is None:
                return
            at = stop + 1
            if found[0] == "\x1b":
                at = self._escape(output, at)
            else:
                self._control(found[0])

    def _escape(self, output: str, at: int) -> int:
        """What stands behind an escape; answers where it ends."""
        if _INCOMPLETE.match(output, at):
            self._unread = output[at - 1 :]
            return len(output)
        if command := _CSI.match(output, at):
            self._run_command(command[1], command[2])
            return command.end()
        if output[at] in _STRING_OPENERS:
            self._in_string = True
            return at + 1
        other = _SHORT.match(output, at)
        return other.end() if other else at

    def _skip_string(self, output: str, at: int) -> int:
        """A title or the like: it is not shown. It ends with a bell, or when another command begins."""
        found = _STRING_END.search(output, at)
        if found is None:
            return len(output)
        self._in_string = False
        return found.start() if found[0] == "\x1b" else found.end()

    def __len__(self) -> int:
        """Lines; an empty last one does not count."""
        return len(self._lines) - (not self._lines[-1].text)

    def last_lines(self, count: int) -> tuple[str, list[list[StyledWord]]]:
        """The last lines, and what is coloured in each. Those that are very long are cut."""
        end = len(self)
        lines = [_cut(self._lines[index]) for index in range(max(0, end - count), end)]
        return _texts(lines), [_words(line) for line in lines]

    def all_lines(self) -> tuple[str, list[list[StyledWord]]]:
        """All that is kept; takes its time."""
        lines = list(self._lines)[: len(self)]
        return _texts(lines), [_words(line) for line in lines]

    def _write(self, words: str) -> None:
        self._lines[self._row].write(self._column, words, self._format)
        self._column += len(words)

    def _control(self, control: str) -> None:
        if control == "\n":
            self._line_feed()
            self._column = 0
        elif control == "\r":
            self._column = 0
        elif control == "\b":
            self._column = max(0, self._column - 1)
        elif control == "\t":
            self._column = max(self._column, min(_MAX_COLUMNS, (self._column // _TAB + 1) * _TAB))

    def _line_feed(self) -> None:
        if self._row == len(self._lines) - 1:
            self._lines.append(_Line(self._longest))
        self._row = min(self._row + 1, len(self._lines) - 1)

    def _run_command(self, given: str, final: str) -> None:
        if final == "m":
            self._format = _format_after(given, self._format)
            return
        number = int(given) if given.isdecimal() and len(given) < 6 else None
        line = self._lines[self._row]
        match final:
            case "K":
                self._erase(line, number or 0)
            case "G":
                self._column = min(_MAX_COLUMNS, max(1, number or 1) - 1)
            case "C":
                self._column = max(self._column, min(_MAX_COLUMNS, self._column + (number or 1)))
            case "D":
                self._column = max(0, self._column - (number or 1))
            case "A" | "F":
                self._row = max(0, self._row - (number or 1))
                self._column = 0 if final == "F" else self._column
            case "B" | "E":
                self._row = min(len(self._lines) - 1, self._row + (number or 1))
                self._column = 0 if final == "E" else self._column
            case _:
                pass

    def _erase(self, line: _Line, what: int) -> None:
        if what == 0:
            del line.text[self._column :], line.ink[self._column :]
        elif what == 1:
            line.write(0, " " * min(self._column + 1, len(line.text)), "")
        else:
            line.text.clear()
            line.ink.clear()


def terminal_text(output: str) -> tuple[str, list[list[StyledWord]]]:
    """A whole output, or its last lines. Where nothing in it commands a terminal, it stays as it is."""
    if not _has_commands(output):
        return output, []
    terminal = Terminal(len(output))
    terminal.feed(output if _UPWARDS.search(output) else output[_start_of_kept(output) :])
    return terminal.all_lines()


def strip_commands(output: str) -> str:
    """A quick look at it: what commands a terminal is left out, nothing is written over."""
    return _COMMAND.sub("", output) if _has_commands(output) else output


_BARE_RETURN = re.compile(r"\r(?!\n)")
_COMMAND = re.compile(r"\x1b(?:\[[0-?]{0,64}[ -/]{0,4}[@-~])?|[\b\r]")
_UPWARDS = re.compile(r"\x1b\[[0-9]{0,6}[AF]")


def _has_commands(output: str) -> bool:
    # Signs by themselves are found in a fraction of the time that a pattern of all of them takes.
    return "\x1b" in output or "\b" in output or ("\r" in output and _BARE_RETURN.search(output) is not None)


def _start_of_kept(output: str) -> int:
    """Where the lines begin that are kept; and some text before them, for what its colour is."""
    start = len(output)
    for _ in range(MAX_LINES + 1):
        start = output.rfind("\n", 0, start)
        if start < 0:
            return 0
    return max(0, start - _LEAD_IN)


def _texts(lines: list[_Line]) -> str:
    return "\n".join("".join(line.text).rstrip() for line in lines)


def _cut(line: _Line) -> _Line:
    if len(line.text) <= MAX_LINE_LENGTH:
        return line
    # Without a number: a line that still grows would look different in each frame.
    said = list(QCoreApplication.translate("Transcript", "… (this line is too long and was cut)"))
    return _Line(line.longest, line.text[:MAX_LINE_LENGTH] + said, line.ink[:MAX_LINE_LENGTH] + [""] * len(said))


def _words(line: _Line) -> list[StyledWord]:
    found: list[StyledWord] = []
    at = offset = 0
    while at < len(line.ink):
        ink, start = line.ink[at], at
        while at < len(line.ink) and line.ink[at] == ink:
            at += 1
        length = utf16_length("".join(line.text[start:at]))
        if ink:
            found.append((offset, length, ink))
        offset += length
    return found


def _format_after(given: str, before: str) -> str:
    """Weight and colour of the text after a command of the kind SGR; backgrounds and shapes are left alone."""
    numbers = [int(each) if each.isdecimal() and len(each) < 4 else 0 for each in given.replace(":", ";").split(";")]
    weight, color = (BOLD, before[len(BOLD) + 1 :]) if before.startswith(BOLD) else ("", before)
    while numbers:
        number = numbers.pop(0)
        if number in {0, 1, 22}:
            weight, color = BOLD if number == 1 else "", color if number else ""
        elif number == 39:
            color = ""
        elif 30 <= number <= 37 or 90 <= number <= 97:
            color = "grey" if number == 90 else _COLOR_NAMES[number % 10]
        elif number in {38, 48}:
            found = _extended_color(numbers)
            color = found if number == 38 else color
    return f"{weight} {color}".strip()


def _extended_color(numbers: list[int]) -> str:
    """One of 256, or of all; the nearest of those that can be read on both backgrounds."""
    kind = numbers.pop(0) if numbers else 0
    if kind == 5 and numbers:
        number = numbers.pop(0)
        if number < 16:
            return "grey" if number == 8 else _COLOR_NAMES[number % 8]
        if number >= 232:
            return "grey"
        number -= 16
        return _nearest_color(number // 36 * 51, number // 6 % 6 * 51, number % 6 * 51)
    if kind == 2 and len(numbers) >= 3:
        red, green, blue = numbers[:3]
        del numbers[:3]
        return _nearest_color(red, green, blue)
    return ""


def _nearest_color(red: int, green: int, blue: int) -> str:
    most, least = max(red, green, blue), min(red, green, blue)
    if most - least < 48:
        return "grey" if 64 <= most <= 192 else ""
    middle = (most + least) / 2
    bits = (red > middle) + 2 * (green > middle) + 4 * (blue > middle)
    return _COLOR_NAMES[bits] or "grey"
