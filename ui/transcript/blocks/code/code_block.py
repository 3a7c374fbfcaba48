"""Code: a language, Copy, Wrap, Save as…, and lines of which only the visible ones are ever laid out."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic

from PySide6.QtCore import QCoreApplication, QPoint, QRect, QRectF, Qt

from ui.transcript.blocks.block import Control, MenuAction, PaintContext
from ui.transcript.blocks.code.code_places import PositionedCodeLines
from ui.transcript.blocks.code.colours import CodeHighlighting
from ui.transcript.blocks.code.file_names import suggest_file_name
from ui.transcript.blocks.code.head import CodeHeader, HeaderButton
from ui.transcript.blocks.code.host import CodeCallbacks, RunLater
from ui.transcript.blocks.code.lines_block import CodeLinesBlock
from ui.transcript.look import RenderStyle

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
