"""Code: a language, Copy, Wrap, and lines of which only the visible ones are ever laid out."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication, QPoint, QRect, QRectF, Qt
from PySide6.QtGui import QColor, QTextCharFormat

from ui.transcript.blocks.block import Block, Brush, Control, Span
from ui.transcript.blocks.buttons import quiet_button, quiet_width
from ui.transcript.blocks.code.code_lines import CodeLines
from ui.transcript.blocks.code.syntax import COLORS, LONGEST, Word
from ui.transcript.look import Look

Colouring = Callable[[str, str, Callable[[list[list[Word]]], None]], None]
"""Text, language, and whom to tell: asks for colours, which come later or at once."""

_FIRST_WORD = re.compile(r"[\w+#.-]*")


@dataclass(frozen=True, slots=True)
class CodeHost:
    """Whom a code block talks to. `wraps` is how it begins; `on_wrap` hears of the person's choice."""

    copy: Callable[[str], None]
    changed: Callable[[], None]
    colouring: Colouring | None = None
    wraps: bool = False
    on_wrap: Callable[[bool], None] | None = None


class CodeBlock(Block):
    """A box with a head. While `is_open`, text comes in at the end at the cost of the new text alone."""

    def __init__(self, text: str, language: str, host: CodeHost, *, is_open: bool = False, title: str = "") -> None:
        word = _FIRST_WORD.match(language)
        self.language = word[0] if word else ""
        self._title = title
        self._host = host
        self.is_open = is_open
        self._lines = CodeLines(text, wraps=host.wraps)
        self._controls: list[Control] = []
        self._width = 0
        self._head = 0
        self._pad = 0
        self._asked = False
        self._copied = False

    @property
    def text(self) -> str:
        """All of it."""
        return self._lines.text

    def grow(self, text: str) -> None:
        """More at the end."""
        first = self._lines.append(text)
        if self.laid:
            self.dirty_from = self._head + self._lines.top(first)
        self.laid = False

    def close(self, text: str) -> None:
        """The whole text is known now."""
        self.is_open = False
        if text != self._lines.text:
            self._lines = CodeLines(text, wraps=self._lines.wraps)
            self.dirty_from = 0
        self.laid = False

    def estimate(self, width: int, look: Look) -> int:
        """Exact unless lines wrap."""
        del width
        return look.px(34) + len(self._lines) * look.mono_line + look.px(12)

    def lay(self, width: int, look: Look) -> int:
        """Place the head's buttons; count the lines."""
        self._head, self._pad = look.px(34), look.px(14)
        if width != self._width or not self._controls:
            self.dirty_from = 0
            self._width = width
            self._place_buttons(look)
        self._lines.lay(width - 2 * self._pad, look)
        self.laid = True
        self._ask_for_colours()
        return self._head + self._lines.height + look.px(12)

    def forget(self) -> None:
        """Lines are laid out again when they are seen again."""
        self._lines.forget()
        self._asked = self._asked and bool(self._lines.words)
        self._controls, self.laid = [], False

    def _place_buttons(self, look: Look) -> None:
        height, y, x = look.px(24), look.px(5), self._width - look.px(6)
        self._controls = []
        names = (
            QCoreApplication.translate("Transcript", "Copy code"),
            QCoreApplication.translate("Transcript", "Wrap lines"),
        )
        presses = (self._press_copy, self._press_wrap)
        for name, (words, icon), press in zip(names, self._faces(), presses, strict=True):
            wide = quiet_width(look, words, icon=bool(icon))
            x -= wide
            self._controls.append(Control(name, QRect(x, y, wide, height), press))
            x -= look.px(2)

    def _faces(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """Words and icon of Copy, and of Wrap."""
        copy = QCoreApplication.translate("Transcript", "Copy"), "copy"
        if self._copied:
            copy = QCoreApplication.translate("Transcript", "Copied"), "check"
        wrap = QCoreApplication.translate("Transcript", "Wrap")
        if self._lines.wraps:
            wrap = QCoreApplication.translate("Transcript", "No wrap")
        return copy, (wrap, "")

    def _press_copy(self) -> None:
        self._host.copy(self.text)
        self._copied = True
        self._controls, self.laid = [], False
        self._host.changed()

    def _press_wrap(self) -> None:
        self._lines.wraps = not self._lines.wraps
        self.forget()
        if self._host.on_wrap:
            self._host.on_wrap(self._lines.wraps)
        self._host.changed()

    def _ask_for_colours(self) -> None:
        colouring = self._host.colouring
        if self.is_open or self._asked or not colouring or not self.language or self._lines.size > LONGEST:
            return
        self._asked = True
        colouring(self.text, self.language, self._take_colours)

    def _take_colours(self, words: list[list[Word]]) -> None:
        if words:
            self._lines.words = words
            self._lines.forget_lines()
            if self.laid:
                self._host.changed()

    def paint(self, brush: Brush) -> None:
        """Box, head, then the lines inside the clip."""
        painter, look = brush.painter, brush.look
        height = self._head + self._lines.height + look.px(12)
        painter.setPen(look.color("border"))
        painter.setBrush(look.color("code_background"))
        painter.drawRoundedRect(QRectF(0.5, 0.5, self._width - 1, height - 1), 8, 8)
        if brush.clip.top() < self._head:
            self._paint_head(brush)
        painter.save()
        inner = QRect(1, self._head, self._width - 2, self._lines.height)
        painter.setClipRect(inner, Qt.ClipOperation.IntersectClip)
        painter.translate(self._pad, self._head)
        colors = {kind: _format(color) for kind, color in COLORS[look.theme.is_dark].items()}
        clip = brush.clip.intersected(inner).translated(-self._pad, -self._head)
        self._lines.paint(painter, look, clip, brush.selection, colors)
        painter.restore()
        self._lines.paint_bar(painter, look, QRect(self._pad, height - look.px(8), self._width - 2 * self._pad, 4))

    def _paint_head(self, brush: Brush) -> None:
        painter, look = brush.painter, brush.look
        painter.setPen(look.color("muted"))
        painter.setFont(look.small)
        label = QRect(self._pad, look.px(5), self._width // 2, look.px(24))
        title = self._title or self.language or QCoreApplication.translate("Transcript", "text")
        painter.drawText(label, Qt.AlignmentFlag.AlignVCenter, title)
        for control, (words, icon) in zip(self._controls, self._faces(), strict=True):
            quiet_button(brush, control, words, icon)

    def plain(self) -> str:
        """The code."""
        return self.text

    def offset_at(self, point: QPoint) -> int:
        """The nearest place."""
        return self._lines.offset_at(point.x() - self._pad, point.y() - self._head)

    def paragraph_at(self, offset: int) -> Span:
        """The line."""
        return self._lines.line_span(offset)

    def controls(self) -> Sequence[Control]:
        """Copy and Wrap."""
        return self._controls

    def scroll_sideways(self, pixels: int) -> bool:
        """Only when lines do not wrap and one is too long."""
        return self._lines.scroll_sideways(pixels)


def _format(color: str) -> QTextCharFormat:
    made = QTextCharFormat()
    made.setForeground(QColor(color))
    return made
