"""Code: a language, Copy, Wrap, Save as…, and lines of which only the visible ones are ever laid out."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic

from PySide6.QtCore import QCoreApplication, QPoint, QRect, QRectF, Qt

from ui.transcript.blocks.block import Action, Brush, Control
from ui.transcript.blocks.code.code_places import PlacedLines
from ui.transcript.blocks.code.colours import CodeColours
from ui.transcript.blocks.code.file_names import suggested_name
from ui.transcript.blocks.code.head import CodeHead, HeadButton
from ui.transcript.blocks.code.host import CodeHost, Later
from ui.transcript.blocks.code.lines_block import LinesBlock
from ui.transcript.look import Look

_SAID = 2.0
"""Seconds for which it is said that the code was copied."""

_FIRST_WORD = re.compile(r"[\w+#.-]*")


@dataclass(slots=True)
class _Lasting:
    """On for some seconds after it was begun last."""

    is_on: bool = False
    _since: float = 0.0

    def begin(self, later: Later | None, over: Callable[[], None]) -> None:
        """`over` hears the end; without `later` there is none."""
        was_on, self.is_on, self._since = self.is_on, True, monotonic()
        if later and not was_on:
            later(partial(self._look, later, over))

    def _look(self, later: Later, over: Callable[[], None]) -> None:
        if monotonic() - self._since < _SAID:
            later(partial(self._look, later, over))
            return
        self.is_on = False
        over()


class CodeBlock(LinesBlock):
    """A box with a head. While `is_open`, text comes in at the end at the cost of the new text alone."""

    def __init__(self, text: str, language: str, host: CodeHost, *, is_open: bool = False, title: str = "") -> None:
        super().__init__(PlacedLines(text, wraps=host.wraps), host)
        word = _FIRST_WORD.match(language)
        self.language = word[0] if word else ""
        self.info = language
        self.is_open = is_open
        self._title = title
        self._colours = CodeColours(self._lines, self.language, host)
        self._buttons = CodeHead()
        self._copied = _Lasting()

    def grow(self, text: str) -> None:
        """More at the end."""
        first = self._lines.append(text)
        recoloured = self._colours.taken()
        if self.laid:
            self.dirty_from = self._head + self._lines.top(first if recoloured is None else min(first, recoloured))
        self.laid = False

    def close(self, text: str) -> None:
        """The whole text is known now."""
        self.is_open = False
        if text != self._lines.text:
            self._lines = self._lines.replaced(text)
            self._colours = CodeColours(self._lines, self.language, self._host)
            self.dirty_from = 0
        elif (recoloured := self._colours.taken()) is not None:
            self.dirty_from = min(self.dirty_from, self._head + self._lines.top(recoloured))
        self.laid = False

    def estimate(self, width: int, look: Look) -> int:
        """Exact unless lines wrap."""
        del width
        return look.px(34) + len(self._lines) * look.mono_line + look.px(12)

    def lay(self, width: int, look: Look) -> int:
        """Place the head's buttons; count the lines."""
        is_new = width != self._width or not self._buttons.controls
        self._width, self._pad = width, look.px(14)
        self._head = self.head_height(look)
        if is_new:
            self.dirty_from = 0
            self._buttons.place(self._head_buttons(), width, look)
        self._lines.lay(width - 2 * self._pad, look)
        self.laid = True
        self._count_on()
        self._colours.ask(is_open=self.is_open)
        return self._head + self._lines.height + look.px(12)

    def head_height(self, look: Look) -> int:
        """What stands above the lines."""
        return look.px(34)

    def forget(self) -> None:
        """Lines are laid out again when they are seen again."""
        self._lines.forget()
        self._colours.forget()
        self._buttons.clear()
        self.laid = False

    def _head_buttons(self) -> list[HeadButton]:
        """From right to left."""
        translate = QCoreApplication.translate
        copy = translate("Transcript", "Copied") if self._copied.is_on else translate("Transcript", "Copy")
        wrap = translate("Transcript", "No wrap") if self._lines.wraps else translate("Transcript", "Wrap")
        icon = "check" if self._copied.is_on else "copy"
        buttons = [
            HeadButton(translate("Transcript", "Copy code"), copy, self._press_copy, icon),
            HeadButton(translate("Transcript", "Wrap lines"), wrap, self._press_wrap, needed=0),
        ]
        if save := self._host.save:
            name, words = translate("Transcript", "Save code as…"), translate("Transcript", "Save as…")
            suggested = partial(suggested_name, self.language, self._title)
            buttons.append(HeadButton(name, words, lambda: save(suggested(), self.text), needed=1))
        return buttons

    def _press_copy(self) -> None:
        self._host.copy(self.text)

        def show(tell: Callable[[], None]) -> None:
            self._buttons.clear()
            self.laid = False
            tell()

        self._copied.begin(self._host.later, partial(show, self._host.arrived or self._host.changed))
        show(self._host.changed)

    def _press_wrap(self) -> None:
        self._lines.wraps = not self._lines.wraps
        self.forget()
        if self._host.on_wrap:
            self._host.on_wrap(self._lines.wraps)
        self._host.changed()

    def paint(self, brush: Brush) -> None:
        """Box, head, then the lines inside the clip."""
        self.paint_box(brush, self._head + self._lines.height + brush.look.px(12))
        painter, look = brush.painter, brush.look
        height = self._head + self._lines.height + look.px(12)
        painter.save()
        inner = QRect(1, self._head, self._width - 2, self._lines.height)
        painter.setClipRect(inner, Qt.ClipOperation.IntersectClip)
        painter.translate(self._pad, self._head)
        clip = brush.clip.intersected(inner).translated(-self._pad, -self._head)
        self._lines.paint(painter, look, clip, brush.selection)
        painter.restore()
        self._lines.paint_bar(painter, look, QRect(self._pad, height - look.px(8), self._width - 2 * self._pad, 4))

    def paint_box(self, brush: Brush, height: int) -> None:
        """The box and its head."""
        painter, look = brush.painter, brush.look
        painter.setPen(look.color("border"))
        painter.setBrush(look.color("code_background"))
        painter.drawRoundedRect(QRectF(0.5, 0.5, self._width - 1, height - 1), 8, 8)
        if brush.clip.top() < look.px(34):
            title = self._title or self.language or QCoreApplication.translate("Transcript", "text")
            self._buttons.paint(brush, self._pad, title)

    def controls(self) -> Sequence[Control]:
        """The buttons of the head."""
        return self._buttons.controls

    def actions(self, point: QPoint) -> Sequence[Action]:
        """What the buttons do."""
        del point
        words = QCoreApplication.translate("Transcript", "Copy code")
        return [Action(words, self._press_copy)] + [
            Action(button.words, button.press) for button in self._head_buttons()[1:]
        ]
