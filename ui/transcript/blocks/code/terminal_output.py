"""Program output as a terminal would show it, as a code block, or as its last lines while it runs."""

import re
from collections import deque
from dataclasses import dataclass, field

from PySide6.QtCore import QRect, Qt

from ui.transcript.blocks.block import Block, PaintContext
from ui.transcript.blocks.code.code_block import CodeBlock, CodeCallbacks
from ui.transcript.blocks.code.code_lines import CodeLines
from ui.transcript.blocks.code.highlighter_protocol import StyledWord
from ui.transcript.markdown.text_units import utf16_length
from ui.transcript.style import BOLD, RenderStyle
from ui.transcript.words import tr


class OutputBlock(CodeBlock):
    """A code block in the colours of the program."""

    def __init__(self, text: str, words: list[list[StyledWord]], callbacks: CodeCallbacks, title: str) -> None:
        super().__init__(text, "", callbacks, title=title)
        self._lines.words = words

    def set_output(self, text: str, words: list[list[StyledWord]]) -> None:
        """Replace the output, keeping wrapping and scrolling."""
        if (text, words) == (self.text, self._lines.words):
            return
        if text.startswith(self.text) and self._lines.words == words[: len(self._lines.words)]:
            self._lines.append(text[len(self.text) :])
        else:
            self._lines = self._lines.with_text(text)
        self._lines.words = words
        self.is_laid_out = False


class OutputTailBlock(Block):
    """A few lines without a box; long ones end at the edge."""

    def __init__(self, text: str, words: list[list[StyledWord]]) -> None:
        self._lines = CodeLines(text, wraps=False)
        self._lines.words = words
        self._width = 0

    def set_output(self, text: str, words: list[list[StyledWord]]) -> None:
        """Replace the last lines."""
        if (text, words) != (self._lines.text, self._lines.words):
            self._lines = CodeLines(text, wraps=False)
            self._lines.words, self.is_laid_out = words, False

    def estimate(self, width: int, style: RenderStyle) -> int:
        del width
        return len(self._lines) * style.mono_line

    def layout(self, width: int, style: RenderStyle) -> int:
        self._width, self.is_laid_out = width, True
        self._lines.layout(width, style)
        return self._lines.height

    def forget(self) -> None:
        self._lines.forget()
        self.is_laid_out = False

    def paint(self, context: PaintContext) -> None:
        painter = context.painter
        painter.save()
        painter.setClipRect(QRect(0, 0, self._width, self._lines.height), Qt.ClipOperation.IntersectClip)
        self._lines.paint(painter, context.style, context.clip, context.selection)
        painter.restore()

    def plain(self) -> str:
        return self._lines.text


MAX_LINES = 20_000

# Characters of a line that are displayed while it is written.
MAX_LINE_LENGTH = 4_000

# Characters before the kept lines that are parsed for their colours.
_LEAD_IN = 16_000

_TAB = 8
# Columns to which a command can jump; text continues beyond.
_MAX_COLUMNS = 240

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_CSI = re.compile(r"\[([0-?]{0,64})[ -/]{0,4}([@-~])")
_SHORT = re.compile(r"[ -/]{0,4}[0-~]")
_INCOMPLETE = re.compile(r"(?:\[[0-?]{0,64}[ -/]{0,4}|[ -/]{0,4})\Z")
_STRING_END = re.compile(r"\x07|\x1b\\?|\x9c")
_STRING_OPENERS = "PX^_]"
_COLOR_NAMES = ("", "red", "green", "yellow", "blue", "magenta", "cyan", "")


@dataclass(slots=True)
class _Line:
    """Characters with their styles. Only the first `longest` are kept."""

    longest: int
    text: list[str] = field(default_factory=list[str])
    ink: list[str] = field(default_factory=list[str])

    def write(self, column: int, text: str, ink: str) -> None:
        text = text[: max(0, self.longest - column)]
        if not text:
            return
        missing = column - len(self.text)
        if missing > 0:
            self.text += " " * missing
            self.ink += [""] * missing
        self.text[column : column + len(text)] = text
        self.ink[column : column + len(text)] = [ink] * len(text)


class Terminal:
    """Interprets the output of a program, fed in pieces of any size. Lines are cut to `longest` characters."""

    def __init__(self, longest: int = MAX_LINE_LENGTH + 1) -> None:
        self._longest = longest
        self._lines: deque[_Line] = deque([_Line(longest)], MAX_LINES)
        self._row = 0
        self._column = 0
        self._format = ""
        self._unread = ""
        self._in_string = False

    def feed(self, output: str) -> None:
        """Interpret more output."""
        output, self._unread = self._unread + output, ""
        offset, end = 0, len(output)
        while offset < end:
            if self._in_string:
                offset = self._skip_string(output, offset)
                continue
            control = _CONTROL.search(output, offset)
            stop = control.start() if control else end
            if stop > offset:
                self._write(output[offset:stop])
            if control is None:
                return
            offset = stop + 1
            if control[0] == "\x1b":
                offset = self._escape(output, offset)
            else:
                self._control(control[0])

    def _escape(self, output: str, offset: int) -> int:
        if _INCOMPLETE.match(output, offset):
            self._unread = output[offset - 1 :]
            return len(output)
        if command := _CSI.match(output, offset):
            self._run_command(command[1], command[2])
            return command.end()
        if output[offset] in _STRING_OPENERS:
            self._in_string = True
            return offset + 1
        short_sequence = _SHORT.match(output, offset)
        return short_sequence.end() if short_sequence else offset

    def _skip_string(self, output: str, offset: int) -> int:
        """Skip a string such as a title, which ends with a bell or another command."""
        string_end = _STRING_END.search(output, offset)
        if string_end is None:
            return len(output)
        self._in_string = False
        return string_end.start() if string_end[0] == "\x1b" else string_end.end()

    def __len__(self) -> int:
        """Return the number of lines, without an empty last one."""
        return len(self._lines) - (not self._lines[-1].text)

    def last_lines(self, count: int) -> tuple[str, list[list[StyledWord]]]:
        """Return the last lines with their styles, without blank ones at the end; very long ones are cut."""
        end = len(self)
        while end and not any(character.strip() for character in self._lines[end - 1].text[:MAX_LINE_LENGTH]):
            end -= 1
        lines = [_cut(self._lines[index]) for index in range(max(0, end - count), end)]
        return _texts(lines), [_words(line) for line in lines]

    def all_lines(self) -> tuple[str, list[list[StyledWord]]]:
        """Return all kept lines with their styles. This is slow for long output."""
        lines = list(self._lines)[: len(self)]
        return _texts(lines), [_words(line) for line in lines]

    def _write(self, text: str) -> None:
        self._lines[self._row].write(self._column, text, self._format)
        self._column += len(text)

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

    def _run_command(self, parameters: str, final: str) -> None:
        if final == "m":
            self._format = _format_after(parameters, self._format)
            return
        number = int(parameters) if parameters.isdecimal() and len(parameters) < 6 else None
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

    def _erase(self, line: _Line, mode: int) -> None:
        if mode == 0:
            del line.text[self._column :], line.ink[self._column :]
        elif mode == 1:
            line.write(0, " " * min(self._column + 1, len(line.text)), "")
        else:
            line.text.clear()
            line.ink.clear()


def terminal_text(output: str) -> tuple[str, list[list[StyledWord]]]:
    """Return a whole output or its last lines. Output without terminal commands is unchanged."""
    if not _has_commands(output):
        return output, []
    terminal = Terminal(len(output))
    terminal.feed(output if _UPWARDS.search(output) else output[_start_of_kept(output) :])
    return terminal.all_lines()


def strip_commands(output: str) -> str:
    """Return the output without terminal commands, with nothing overwritten. This is fast."""
    return _COMMAND.sub("", output) if _has_commands(output) else output


_BARE_RETURN = re.compile(r"\r(?!\n)")
_COMMAND = re.compile(r"\x1b(?:\[[0-?]{0,64}[ -/]{0,4}[@-~])?|[\b\r]")
_UPWARDS = re.compile(r"\x1b\[[0-9]{0,6}[AF]")


def _has_commands(output: str) -> bool:
    # Searching single characters takes a fraction of the time of a pattern for all.
    return "\x1b" in output or "\b" in output or ("\r" in output and _BARE_RETURN.search(output) is not None)


def _start_of_kept(output: str) -> int:
    """Return where the kept lines begin, with some text before them for its colours."""
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
    # Without a number, because it would change in every frame of a growing line.
    notice = list(tr("… (this line is too long and was cut)"))
    return _Line(line.longest, line.text[:MAX_LINE_LENGTH] + notice, line.ink[:MAX_LINE_LENGTH] + [""] * len(notice))


def _words(line: _Line) -> list[StyledWord]:
    words: list[StyledWord] = []
    index = offset = 0
    while index < len(line.ink):
        ink, start = line.ink[index], index
        while index < len(line.ink) and line.ink[index] == ink:
            index += 1
        length = utf16_length("".join(line.text[start:index]))
        if ink:
            words.append((offset, length, ink))
        offset += length
    return words


def _format_after(parameters: str, before: str) -> str:
    """Return weight and colour after an SGR command; other attributes are ignored."""
    numbers = [
        int(parameter) if parameter.isdecimal() and len(parameter) < 4 else 0
        for parameter in parameters.replace(":", ";").split(";")
    ]
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
            extended = _extended_color(numbers)
            color = extended if number == 38 else color
    return f"{weight} {color}".strip()


def _extended_color(numbers: list[int]) -> str:
    """Return the nearest of the colours that are readable on both backgrounds, for 256-colour and RGB codes."""
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
    highest, lowest = max(red, green, blue), min(red, green, blue)
    if highest - lowest < 48:
        return "grey" if 64 <= highest <= 192 else ""
    middle = (highest + lowest) / 2
    bits = (red > middle) + 2 * (green > middle) + 4 * (blue > middle)
    return _COLOR_NAMES[bits] or "grey"
