"""A code block: its header with Copy, Wrap and Save as, its callbacks, its syntax highlighting, and its lines."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from time import monotonic
from typing import TypeVar

from PySide6.QtCore import QCoreApplication, QPoint, QRect, QRectF, Qt
from PySide6.QtGui import QFontMetricsF

from ui.transcript.blocks.block import CodeSourceBlock, Control, MenuAction, PaintContext, TextRange
from ui.transcript.blocks.buttons import flat_button_width, paint_flat_button
from ui.transcript.blocks.code.code_lines import CodeLines, PositionedCodeLines
from ui.transcript.blocks.code.highlighter_protocol import MAX_TEXT_LENGTH, HighlightedLines, HighlightSlice, LexerState
from ui.transcript.style import RenderStyle


@dataclass(frozen=True, slots=True)
class HeaderButton:
    """`name` is for assistive technology, `words` are what is seen. Where there is no room, the least needed go."""

    name: str
    words: str
    press: Callable[[], None]
    icon: str = ""
    priority: int = 3


class CodeHeader:
    """Buttons are placed from the right."""

    def __init__(self) -> None:
        self.controls: list[Control] = []
        self._buttons: Sequence[HeaderButton] = ()
        self._room = 0

    def place_buttons(self, buttons: Sequence[HeaderButton], width: int, style: RenderStyle) -> None:
        """The first one stands at the right end."""
        buttons = list(buttons)
        while len(buttons) > 1 and sum(_button_width(each, style) for each in buttons) > width - style.px(12):
            buttons.remove(min(buttons, key=lambda each: each.priority))
        self._buttons, self.controls = buttons, []
        x = width - style.px(6)
        for button in buttons:
            wide = _button_width(button, style) - style.px(2)
            x -= wide
            self.controls.append(Control(button.name, QRect(x, style.px(5), wide, style.px(24)), button.press))
            x -= style.px(2)
        self._room = x

    def clear(self) -> None:
        """No buttons."""
        self.controls, self._buttons = [], ()

    def paint(self, context: PaintContext, left: int, title: str) -> None:
        """Title and buttons."""
        painter, style = context.painter, context.style
        painter.setPen(style.color("muted"))
        painter.setFont(style.small)
        room = max(0, self._room - left - style.px(4))
        words = QFontMetricsF(style.small).elidedText(title, Qt.TextElideMode.ElideRight, room)
        painter.drawText(QRect(left, style.px(5), room, style.px(24)), Qt.AlignmentFlag.AlignVCenter, words)
        for control, button in zip(self.controls, self._buttons, strict=True):
            paint_flat_button(context, control, button.words, button.icon)


def _button_width(button: HeaderButton, style: RenderStyle) -> int:
    return flat_button_width(style, button.words, icon=bool(button.icon)) + style.px(2)


RequestHighlight = Callable[[str, str, Callable[[HighlightSlice], None]], None]
"""Text, language, and whom to tell: asks for colours, which come later or at once, in slices."""

RequestMoreHighlight = Callable[[str, str, LexerState, Callable[[HighlightedLines | None], None]], None]
"""New lines of code that still grows, its language, what is known before them, and whom to tell, later."""

RunLater = Callable[[Callable[[], None]], None]
"""Do this once some frames have passed."""


@dataclass(frozen=True, slots=True)
class CodeCallbacks:
    """`wraps` is how it begins; `on_wrap` hears of the person's choice.

    `changed` hears that the person changed how it looks, `arrived` that it looks different by itself. `save` is given
    a name and a text.
    """

    copy: Callable[[str], None]
    on_changed: Callable[[], None]
    highlight: RequestHighlight | None = None
    wraps: bool = False
    on_wrap: Callable[[bool], None] | None = None
    save: Callable[[str, str], None] | None = None
    on_arrived: Callable[[], None] | None = None
    highlight_more: RequestMoreHighlight | None = None
    run_later: RunLater | None = None


_Result = TypeVar("_Result")


class CodeLinesBlock(CodeSourceBlock):
    """`_head` is what stands above the lines, `_pad` what stands beside them, in pixels."""

    def __init__(self, lines: PositionedCodeLines, callbacks: CodeCallbacks) -> None:
        self._lines = lines
        self._callbacks = callbacks
        self._width = 0
        self._header_height = 0
        self._pad = 0
        self._counts = False

    @property
    def text(self) -> str:
        """All of it."""
        return self._lines.text

    def _continue_counting(self) -> None:
        """Rows are counted a little at a time."""
        if not self._lines.rows.is_complete and not self._counts:
            self._counts = True
            if self._callbacks.run_later:
                self._callbacks.run_later(self._count)

    def _count(self) -> None:
        self._counts = False
        rows = self._lines.rows
        if rows.is_complete:
            return
        # All at its end: heights that change every few frames would let what is read jump.
        is_over = rows.count_more()
        if rows.was_wrong_on_screen or (is_over and rows.is_estimate_wrong):
            self.is_laid_out = False
            (self._callbacks.on_arrived or self._callbacks.on_changed)()
        self._continue_counting()

    def offset_at(self, point: QPoint) -> int:
        """The nearest place."""
        return self._after_lookup(self._lines.offset_at(point.x() - self._pad, point.y() - self._header_height))

    def _after_lookup(self, found: _Result) -> _Result:
        """Looking for places may have told more of the height than was known."""
        if self._lines.rows.was_wrong_on_screen or self._lines.rows.underestimated_lines():
            self.is_laid_out = False
        return found

    def boxes(self, start: int, end: int) -> list[QRectF]:
        """What a part of the code covers."""
        return self._after_lookup(
            [box.translated(self._pad, self._header_height) for box in self._lines.boxes((start, end))]
        )

    def caret_rect_at(self, offset: int) -> QRectF | None:
        """In its line."""
        return self._after_lookup(self._lines.caret_rect_at(offset).translated(self._pad, self._header_height))

    def caret_stop_at(self, offset: int) -> int:
        """Not within hidden characters that one label stands for."""
        return self._lines.caret_stop_at(offset)

    def visible_ranges(self, clip: QRect) -> list[TextRange]:
        """The parts of the code that are inside a clip, from above to below. Only when laid out."""
        inner = clip.intersected(QRect(1, self._header_height, self._width - 2, self._lines.height))
        return (
            list(self._lines.visible_ranges(inner.translated(-self._pad, -self._header_height)))
            if not inner.isEmpty()
            else []
        )

    def paragraph_at(self, offset: int) -> TextRange:
        """The line."""
        return self._lines.line_span(offset)

    def scroll_horizontally(self, pixels: int) -> bool:
        """Only when lines do not wrap and one is too long."""
        return self._lines.scroll_horizontally(pixels)


_REPEAT_SHARE = 5
"""What must be read again is read when this part of it has come in addition: so growing costs no square."""


class CodeHighlighting:
    """`dirty` is the first line that looks different since `taken` was called."""

    def __init__(self, lines: CodeLines, language: str, callbacks: CodeCallbacks) -> None:
        self._lines = lines
        self._language = language
        self._callbacks = callbacks
        self._lexer_state = LexerState()
        self._read = 0
        self._is_waiting = False
        self._is_requested = False
        self._complete = False
        self._dirty: int | None = None

    def request(self, *, is_open: bool) -> None:
        """Ask for what is not known yet."""
        if not self._language or self._lines.size > MAX_TEXT_LENGTH:
            return
        if is_open:
            self._request_more()
        elif not self._is_requested and self._callbacks.highlight:
            self._is_requested = True
            self._callbacks.highlight(self._lines.text, self._language, self._take)

    def forget(self) -> None:
        """It is far from the screen: ask again when it comes back, unless all is known."""
        self._is_requested = self._complete

    def take_dirty_line(self) -> int | None:
        """The first line that looks different since this was asked last."""
        dirty, self._dirty = self._dirty, None
        return dirty

    def _request_more(self) -> None:
        complete = len(self._lines) - 1
        again = self._read - self._lexer_state.line
        if self._is_waiting or not self._callbacks.highlight_more or complete - self._read <= again // _REPEAT_SHARE:
            return
        self._is_waiting, self._read = True, complete
        text = self._lines.lines_between(self._lexer_state.line, complete)
        self._callbacks.highlight_more(text, self._language, self._lexer_state, self._take_more)

    def _take_more(self, found: HighlightedLines | None) -> None:
        if found is None or self._is_requested:
            return
        self._is_waiting, self._lexer_state = False, found.lexer_state
        first = self._lines.highlight(found.line, found.words)
        if first is None:
            return
        # The next piece of text paints them too. Only when none comes they are painted by themselves.
        self._show_later(first)

    def _show_later(self, first: int) -> None:
        self._dirty = first if self._dirty is None else min(first, self._dirty)
        if self._callbacks.run_later:
            self._callbacks.run_later(self._show)

    def _show(self) -> None:
        if self._dirty is not None:
            self._dirty = None
            self._notify()

    def _take(self, found: HighlightSlice) -> None:
        """The first slice is what can be seen, so it is shown at once; and the last, so that all is."""
        self._complete = found.is_last
        first = self._lines.highlight(found.line, found.words) if found.words else None
        if found.line and not found.is_last:
            if first is not None:
                self._show_later(first)
        elif first is not None or self._dirty is not None:
            self._dirty = None
            self._notify()

    def _notify(self) -> None:
        (self._callbacks.on_arrived or self._callbacks.on_changed)()


# Where the first pattern of the grammar is not what people use, and words that are no grammar.
_EXTENSIONS = {
    "text": "txt",
    "plain": "txt",
    "plaintext": "txt",
    "bash": "sh",
    "sh": "sh",
    "shell": "sh",
    "zsh": "sh",
    "console": "txt",
    "mermaid": "mmd",
    "latex": "tex",
    "csv": "csv",
    "tsv": "tsv",
    "svg": "svg",
    "env": "env",
    "gitignore": "gitignore",
}
_FILE_NAMES = {"dockerfile": "Dockerfile", "docker": "Dockerfile", "makefile": "Makefile", "make": "Makefile"}
_FILE = re.compile(r"[\w][\w .+@-]{0,80}\.[A-Za-z0-9]{1,8}")


def suggest_file_name(language: str, title: str = "") -> str:
    """By a file's name in the title of the block, or by the language: `code.py`, `result.txt`. Never with a folder."""
    for words in (title, language):
        if _FILE.fullmatch(words):
            return words
    word = language.lower()
    if word in _FILE_NAMES:
        return _FILE_NAMES[word]
    stem = title if title.isalnum() and len(title) < 40 else "code"
    return f"{stem}.{_extension(word)}"


def _extension(language: str) -> str:
    if language in _EXTENSIONS:
        return _EXTENSIONS[language]
    for pattern in _patterns(language):
        ending = pattern.removeprefix("*.")
        if ending.isalnum() and fnmatchcase(f"code.{ending}", pattern):
            return ending.lower()
    return "txt"


def _patterns(language: str) -> Sequence[str]:
    """Of the files in a language, by the table of Pygments; no grammar is loaded."""
    if not language:
        return ()
    # Only who saves code needs the table.
    from pygments.lexers import get_all_lexers

    return next((patterns for _, names, patterns, _ in get_all_lexers(plugins=False) if language in names), ())


_COPIED_SECONDS = 2.0
"""Seconds for which it is said that the code was copied."""

_LANGUAGE = re.compile(r"[\w+#.-]*")


@dataclass(slots=True)
class _TimedFlag:
    """On for some seconds after it was begun last."""

    is_on: bool = False
    _since: float = 0.0

    def start(self, later: RunLater | None, over: Callable[[], None]) -> None:
        """`over` hears the end; without `later` there is none."""
        was_on, self.is_on, self._since = self.is_on, True, monotonic()
        if later and not was_on:
            later(partial(self._check, later, over))

    def _check(self, later: RunLater, over: Callable[[], None]) -> None:
        if monotonic() - self._since < _COPIED_SECONDS:
            later(partial(self._check, later, over))
            return
        self.is_on = False
        over()


class CodeBlock(CodeLinesBlock):
    """A box with a head. While `is_open`, text comes in at the end at the cost of the new text alone."""

    def __init__(
        self, text: str, language: str, callbacks: CodeCallbacks, *, is_open: bool = False, title: str = ""
    ) -> None:
        super().__init__(PositionedCodeLines(text, wraps=callbacks.wraps), callbacks)
        word = _LANGUAGE.match(language)
        self.language = word[0] if word else ""
        self.info = language
        self.is_open = is_open
        self._title = title
        self._highlighting = CodeHighlighting(self._lines, self.language, callbacks)
        self._buttons = CodeHeader()
        self._copied = _TimedFlag()

    def append(self, text: str) -> None:
        """More at the end."""
        first = self._lines.append(text)
        recoloured = self._highlighting.take_dirty_line()
        if self.is_laid_out:
            self.dirty_from = self._head + self._lines.top(first if recoloured is None else min(first, recoloured))
        self.is_laid_out = False

    def finish(self, text: str) -> None:
        """The whole text is known now."""
        self.is_open = False
        if text != self._lines.text:
            self._lines = self._lines.with_text(text)
            self._highlighting = CodeHighlighting(self._lines, self.language, self._callbacks)
            self.dirty_from = 0
        elif (recoloured := self._highlighting.take_dirty_line()) is not None:
            self.dirty_from = min(self.dirty_from, self._head + self._lines.top(recoloured))
        self.is_laid_out = False

    def estimate(self, width: int, style: RenderStyle) -> int:
        """Exact unless lines wrap."""
        del width
        return style.px(34) + len(self._lines) * style.mono_line + style.px(12)

    def layout(self, width: int, style: RenderStyle) -> int:
        """Place the head's buttons; count the lines."""
        is_new = width != self._width or not self._buttons.controls
        self._width, self._pad = width, style.px(14)
        self._head = self.header_height(style)
        if is_new:
            self.dirty_from = 0
            self._buttons.place_buttons(self._header_buttons(), width, style)
        self._lines.layout(width - 2 * self._pad, style)
        self.is_laid_out = True
        self._continue_counting()
        self._highlighting.request(is_open=self.is_open)
        return self._head + self._lines.height + style.px(12)

    def header_height(self, style: RenderStyle) -> int:
        """What stands above the lines."""
        return style.px(34)

    def forget(self) -> None:
        """Lines are laid out again when they are seen again."""
        self._lines.forget()
        self._highlighting.forget()
        self._buttons.clear()
        self.is_laid_out = False

    def _header_buttons(self) -> list[HeaderButton]:
        """From right to left."""
        translate = QCoreApplication.translate
        copy = translate("Transcript", "Copied") if self._copied.is_on else translate("Transcript", "Copy")
        wrap = translate("Transcript", "No wrap") if self._lines.wraps else translate("Transcript", "Wrap")
        icon = "check" if self._copied.is_on else "copy"
        buttons = [
            HeaderButton(translate("Transcript", "Copy code"), copy, self._copy, icon),
            HeaderButton(translate("Transcript", "Wrap lines"), wrap, self._toggle_wrap, priority=0),
        ]
        if save := self._callbacks.save:
            name, words = translate("Transcript", "Save code as…"), translate("Transcript", "Save as…")
            suggested = partial(suggest_file_name, self.language, self._title)
            buttons.append(HeaderButton(name, words, lambda: save(suggested(), self.text), priority=1))
        return buttons

    def _copy(self) -> None:
        self._callbacks.copy(self.text)

        def show(notify: Callable[[], None]) -> None:
            self._buttons.clear()
            self.is_laid_out = False
            notify()

        self._copied.start(
            self._callbacks.run_later, partial(show, self._callbacks.on_arrived or self._callbacks.on_changed)
        )
        show(self._callbacks.on_changed)

    def _toggle_wrap(self) -> None:
        self._lines.wraps = not self._lines.wraps
        self.forget()
        if self._callbacks.on_wrap:
            self._callbacks.on_wrap(self._lines.wraps)
        self._callbacks.on_changed()

    def paint(self, context: PaintContext) -> None:
        """Box, head, then the lines inside the clip."""
        self.paint_box(context, self._head + self._lines.height + context.style.px(12))
        painter, style = context.painter, context.style
        height = self._head + self._lines.height + style.px(12)
        painter.save()
        inner = QRect(1, self._head, self._width - 2, self._lines.height)
        painter.setClipRect(inner, Qt.ClipOperation.IntersectClip)
        painter.translate(self._pad, self._head)
        clip = context.clip.intersected(inner).translated(-self._pad, -self._head)
        self._lines.paint(painter, style, clip, context.selection)
        painter.restore()
        self._lines.paint_scroll_bar(
            painter, style, QRect(self._pad, height - style.px(8), self._width - 2 * self._pad, 4)
        )

    def paint_box(self, context: PaintContext, height: int) -> None:
        """The box and its head."""
        painter, style = context.painter, context.style
        painter.setPen(style.color("border"))
        painter.setBrush(style.color("code_background"))
        painter.drawRoundedRect(QRectF(0.5, 0.5, self._width - 1, height - 1), 8, 8)
        if context.clip.top() < style.px(34):
            title = self._title or self.language or QCoreApplication.translate("Transcript", "text")
            self._buttons.paint(context, self._pad, title)

    def controls(self) -> Sequence[Control]:
        """The buttons of the head."""
        return self._buttons.controls

    def actions(self, point: QPoint) -> Sequence[MenuAction]:
        """What the buttons do."""
        del point
        words = QCoreApplication.translate("Transcript", "Copy code")
        return [MenuAction(words, self._copy)] + [
            MenuAction(button.words, button.press) for button in self._header_buttons()[1:]
        ]
