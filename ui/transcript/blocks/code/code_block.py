"""A code block: its header with Copy, Wrap and Save as, its syntax highlighting, and its lines."""

import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, partial
from time import monotonic
from typing import TypeVar

from PySide6.QtCore import QPoint, QRect, QRectF, Qt

from resources import resource_path
from ui.transcript.blocks.block import WHOLE_TEXT, Block, Control, MenuAction, PaintContext, TextRange
from ui.transcript.blocks.buttons import Button, ButtonBar
from ui.transcript.blocks.code.code_lines import CodeLines
from ui.transcript.blocks.code.highlighter_protocol import MAX_TEXT_LENGTH, HighlightedLines, HighlightSlice, LexerState
from ui.transcript.markdown.inline import slice_utf16
from ui.transcript.markdown.serializer import code_html, code_markdown
from ui.transcript.style import RenderStyle
from ui.transcript.words import tr

RequestHighlight = Callable[[str, str, Callable[[HighlightSlice], None]], None]
"""Requests the highlighting of a text in a language; the callback gets it in slices, now or later."""

RequestMoreHighlight = Callable[[str, str, LexerState, Callable[[HighlightedLines | None], None]], None]
"""Requests the highlighting of new lines of growing code, from a lexer state; the callback gets it later."""

RunLater = Callable[[Callable[[], None]], None]
"""Calls back after some frames."""


def _do_nothing(*_: object) -> None:
    pass


@dataclass(frozen=True, slots=True)
class CodeCallbacks:
    """The services of code blocks. `wraps` is the initial state; `on_wrap` is called with the person's choice.

    `on_changed` is called after a change by the person, `on_arrived` after one by itself. `save` gets a name and a
    text.
    """

    copy: Callable[[str], None]
    on_changed: Callable[[], None]
    highlight: RequestHighlight = _do_nothing
    wraps: bool = False
    on_wrap: Callable[[bool], None] = _do_nothing
    save: Callable[[str, str], None] | None = None
    on_arrived: Callable[[], None] | None = None
    highlight_more: RequestMoreHighlight = _do_nothing
    run_later: RunLater = _do_nothing

    def notify_arrived(self) -> None:
        """Report a change by itself."""
        (self.on_arrived or self.on_changed)()


# Growing code is lexed again from the last lexer state. That waits until the new lines are at least a fifth of the
# repeated ones: otherwise growth would be quadratic.
_REPEAT_SHARE = 5


class CodeHighlighting:
    """Requests the highlighting of a code block and applies it to its lines."""

    def __init__(self, lines: CodeLines, language: str, callbacks: CodeCallbacks) -> None:
        self._lines = lines
        self._language = language
        self._callbacks = callbacks
        self._lexer_state = LexerState()
        self._requested_lines = 0
        self._is_waiting = False
        self._is_requested = False
        self._complete = False
        self._dirty: int | None = None

    def request(self, *, is_open: bool) -> None:
        """Request the highlighting that is still missing."""
        if not self._language or self._lines.is_diff or self._lines.size > MAX_TEXT_LENGTH:
            return
        if is_open:
            self._request_more()
        elif not self._is_requested:
            self._is_requested = True
            self._callbacks.highlight(self._lines.text, self._language, self._apply_slice)

    def forget(self) -> None:
        """Request again when the block comes back near the viewport, unless the highlighting is complete."""
        self._is_requested = self._complete

    def take_dirty_line(self) -> int | None:
        """Return the first line whose colours changed since the last call."""
        dirty, self._dirty = self._dirty, None
        return dirty

    def _request_more(self) -> None:
        complete = len(self._lines) - 1
        lexed_again = self._requested_lines - self._lexer_state.line
        if self._is_waiting or complete - self._requested_lines <= lexed_again // _REPEAT_SHARE:
            return
        self._is_waiting, self._requested_lines = True, complete
        text = self._lines.lines_between(self._lexer_state.line, complete)
        self._callbacks.highlight_more(text, self._language, self._lexer_state, self._apply_lines)

    def _apply_lines(self, highlighted: HighlightedLines | None) -> None:
        if highlighted is None or self._is_requested:
            return
        self._is_waiting, self._lexer_state = False, highlighted.lexer_state
        first = self._lines.highlight(highlighted.line, highlighted.words)
        if first is not None:
            # The next text repaints them too; without one they are repainted later.
            self._show_later(first)

    def _show_later(self, first: int) -> None:
        self._dirty = first if self._dirty is None else min(first, self._dirty)
        self._callbacks.run_later(self._show)

    def _show(self) -> None:
        if self._dirty is not None:
            self._dirty = None
            self._callbacks.notify_arrived()

    def _apply_slice(self, highlight_slice: HighlightSlice) -> None:
        """Show the first slice, which is what is visible, at once, and the last one, to complete it."""
        self._complete = highlight_slice.is_last
        first = self._lines.highlight(highlight_slice.line, highlight_slice.words) if highlight_slice.words else None
        if highlight_slice.line and not highlight_slice.is_last:
            if first is not None:
                self._show_later(first)
        elif first is not None or self._dirty is not None:
            self._dirty = None
            self._callbacks.notify_arrived()


_DIFFS = frozenset({"diff", "patch", "udiff"})
_FILE = re.compile(r"[\w][\w .+@-]{0,80}\.[A-Za-z0-9]{1,8}")


def suggest_file_name(language: str, title: str = "") -> str:
    """Suggest a file name by the title of the block, if it is one, or by the language. Never with a folder."""
    for candidate in (title, language):
        if _FILE.fullmatch(candidate):
            return candidate
    word = language.lower()
    if name := _known_files()["names"].get(word):
        return name
    stem = title if title.isalnum() and len(title) < 40 else "code"
    return f"{stem}.{_extension(word)}"


@cache
def _known_files() -> dict[str, dict[str, str]]:
    return tomllib.loads(resource_path("code_files.toml").read_text(encoding="utf-8"))


def _extension(language: str) -> str:
    if ending := _known_files()["extensions"].get(language):
        return ending
    for pattern in _patterns(language):
        ending = pattern.removeprefix("*.")
        if ending.isalnum() and fnmatchcase(f"code.{ending}", pattern):
            return ending.lower()
    return "txt"


def _patterns(language: str) -> Sequence[str]:
    """Return the file patterns of a language by the table of Pygments, without loading a lexer."""
    if not language:
        return ()
    # Only saving code needs the table.
    from pygments.lexers import get_all_lexers

    return next((patterns for _, names, patterns, _ in get_all_lexers(plugins=False) if language in names), ())


# Seconds for which the button says that the code was copied.
_COPIED_SECONDS = 2.0

_MAX_SUBJECT = 80
"""Characters of the code that assistive technology reads after the name of a button."""
_LANGUAGE = re.compile(r"[\w+#.-]*")

_Result = TypeVar("_Result")


class CodeBlock(Block):
    """A box with code below a header. While `is_open`, text is appended at the cost of the new text alone."""

    def __init__(
        self, text: str, language: str, callbacks: CodeCallbacks, *, is_open: bool = False, title: str = ""
    ) -> None:
        self._lines = CodeLines(text, wraps=callbacks.wraps)
        self._callbacks = callbacks
        self._width = 0
        self._header_height = 0
        self._pad = 0
        self._counts = False
        word = _LANGUAGE.match(language)
        self.language = word[0] if word else ""
        self.info = language
        self.is_open = is_open
        self._title = title
        self._lines.is_diff = self.language in _DIFFS
        self._highlighting = CodeHighlighting(self._lines, self.language, callbacks)
        self._buttons = ButtonBar()
        self._copied_at: float | None = None

    @property
    def label(self) -> str:
        """The name for people: with the title, or the language."""
        words = self._title or self.language
        if not words:
            return tr("Code")
        return tr("Code: {0}").format(words)

    def append(self, text: str) -> None:
        """Append text."""
        first = self._lines.append(text)
        highlighted = self._highlighting.take_dirty_line()
        if self.is_laid_out:
            self.dirty_from = self._header_height + self._lines.top(
                first if highlighted is None else min(first, highlighted)
            )
        self.is_laid_out = False

    def finish(self, text: str) -> None:
        """Set the complete text."""
        self.is_open = False
        if text != self._lines.text:
            self._lines = self._lines.with_text(text)
            self._highlighting = CodeHighlighting(self._lines, self.language, self._callbacks)
            self.dirty_from = 0
        elif (highlighted := self._highlighting.take_dirty_line()) is not None:
            self.dirty_from = min(self.dirty_from, self._header_height + self._lines.top(highlighted))
        self.is_laid_out = False

    def estimate(self, width: int, style: RenderStyle) -> int:
        """Return the height without wrapping."""
        del width
        return style.px(34) + len(self._lines) * style.mono_line + style.px(12)

    def layout(self, width: int, style: RenderStyle) -> int:
        is_new = width != self._width or not self._buttons.controls
        self._width, self._pad = width, style.px(14)
        self._header_height = self.header_height(style)
        if is_new:
            self.dirty_from = 0
            self._buttons.place_buttons(self._header_buttons(), width, style)
        self._lines.layout(width - 2 * self._pad, style)
        self.is_laid_out = True
        self._continue_counting()
        self._highlighting.request(is_open=self.is_open)
        return self._header_height + self._lines.height + style.px(12)

    def header_height(self, style: RenderStyle) -> int:
        """Return the height above the lines."""
        return style.px(34)

    def forget(self) -> None:
        self._lines.forget()
        self._highlighting.forget()
        self._buttons.clear()
        self.is_laid_out = False

    def _header_buttons(self) -> list[Button]:
        is_copied = self._copied_at is not None
        copy = tr("Copied") if is_copied else tr("Copy")
        wrap = tr("No wrap") if self._lines.wraps else tr("Wrap")
        buttons = [
            Button(copy, self._copy, tr("Copy code"), "check" if is_copied else "copy"),
            Button(wrap, self._toggle_wrap, tr("Wrap lines"), priority=0),
        ]
        if save := self._callbacks.save:
            name, suggested = tr("Save code as…"), partial(suggest_file_name, self.language, self._title)
            buttons.append(Button(tr("Save as…"), lambda: save(suggested(), self.text), name, priority=1))
        return buttons

    def _copy(self) -> None:
        self._callbacks.copy(self.text)
        was_copied, self._copied_at = self._copied_at is not None, monotonic()
        if not was_copied:
            self._callbacks.run_later(self._check_copied)
        self._renew_buttons()
        self._callbacks.on_changed()

    def _check_copied(self) -> None:
        if self._copied_at is not None and monotonic() - self._copied_at < _COPIED_SECONDS:
            self._callbacks.run_later(self._check_copied)
            return
        self._copied_at = None
        self._renew_buttons()
        self._callbacks.notify_arrived()

    def _renew_buttons(self) -> None:
        self._buttons.clear()
        self.is_laid_out = False

    def _toggle_wrap(self) -> None:
        self._lines.wraps = not self._lines.wraps
        self.forget()
        self._callbacks.on_wrap(self._lines.wraps)
        self._callbacks.on_changed()

    def paint(self, context: PaintContext) -> None:
        painter, style = context.painter, context.style
        height = self._header_height + self._lines.height + style.px(12)
        self.paint_box(context, height)
        painter.save()
        inner = QRect(1, self._header_height, self._width - 2, self._lines.height)
        painter.setClipRect(inner, Qt.ClipOperation.IntersectClip)
        painter.translate(self._pad, self._header_height)
        clip = context.clip.intersected(inner).translated(-self._pad, -self._header_height)
        self._lines.paint(painter, style, clip, context.selection)
        painter.restore()
        track = QRect(self._pad, height - style.px(8), self._width - 2 * self._pad, 4)
        self._lines.paint_scroll_bar(painter, style, track)

    def paint_box(self, context: PaintContext, height: int) -> None:
        """Paint the box and the header."""
        box, style = QRectF(0.5, 0.5, self._width - 1, height - 1), context.style
        style.paint_box(context.painter, box, 8, "code_background", "border")
        if context.clip.top() < style.px(34):
            title = self._title or self.language or tr("text")
            self._buttons.paint(context, self._pad, title)

    def controls(self) -> Sequence[Control]:
        return self._buttons.controls

    def subject(self) -> str:
        return self._lines.beginning(_MAX_SUBJECT)

    def actions(self, point: QPoint) -> Sequence[MenuAction]:
        del point
        others = self._header_buttons()[1:]
        return [MenuAction(tr("Copy code"), self._copy), *(MenuAction(button.text, button.press) for button in others)]

    @property
    def text(self) -> str:
        return self._lines.text

    def plain(self) -> str:
        return self.text

    def markdown(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        """Return the code in a fence."""
        return code_markdown(slice_utf16(self.text, start, end), self.info)

    def html(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        return code_html(slice_utf16(self.text, start, end), self.language)

    def _continue_counting(self) -> None:
        if not self._lines.rows.is_complete and not self._counts:
            self._counts = True
            self._callbacks.run_later(self._count)

    def _count(self) -> None:
        self._counts = False
        rows = self._lines.rows
        if rows.is_complete:
            return
        # Report the count at its end: heights that change every few frames would make the text jump.
        is_over = rows.count_more()
        if rows.was_wrong_on_screen or (is_over and rows.is_estimate_wrong):
            self.is_laid_out = False
            self._callbacks.notify_arrived()
        self._continue_counting()

    def offset_at(self, point: QPoint) -> int:
        return self._after_lookup(self._lines.offset_at(point.x() - self._pad, point.y() - self._header_height))

    def _after_lookup(self, result: _Result) -> _Result:
        """Return the result of a lookup; request a layout if the lookup revealed a larger height."""
        if self._lines.rows.was_wrong_on_screen or self._lines.rows.underestimated_lines():
            self.is_laid_out = False
        return result

    def boxes(self, start: int, end: int) -> list[QRectF]:
        boxes = self._lines.boxes((start, end))
        return self._after_lookup([box.translated(self._pad, self._header_height) for box in boxes])

    def caret_rect_at(self, offset: int) -> QRectF | None:
        return self._after_lookup(self._lines.caret_rect_at(offset).translated(self._pad, self._header_height))

    def caret_stop_at(self, offset: int) -> int:
        """Return the offset, or the end of the label of hidden characters that it is in."""
        return self._lines.caret_stop_at(offset)

    def visible_ranges(self, clip: QRect) -> list[TextRange]:
        """Return the ranges of the code inside a clip, from top to bottom. Requires a layout."""
        inner = clip.intersected(QRect(1, self._header_height, self._width - 2, self._lines.height))
        if inner.isEmpty():
            return []
        return list(self._lines.visible_ranges(inner.translated(-self._pad, -self._header_height)))

    def paragraph_at(self, offset: int) -> TextRange:
        return self._lines.line_span(offset)

    def scroll_horizontally(self, pixels: int) -> bool:
        """Scroll if lines do not wrap and one is too long."""
        return self._lines.scroll_horizontally(pixels)
