"""A Mermaid diagram: code with a control that shows what it draws. What is selected and copied is always the source."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication, QPoint, QPointF, QRect, QRectF, QSize
from PySide6.QtGui import QPainter

from ui.transcript.blocks.block import Brush, Control
from ui.transcript.blocks.buttons import focus_ring
from ui.transcript.blocks.code.code_block import CodeBlock
from ui.transcript.blocks.code.head import HeadButton
from ui.transcript.blocks.code.host import CodeHost
from ui.transcript.blocks.diagram.diagrams import Diagram, Diagrams, sketch_of
from ui.transcript.blocks.diagram.reasons import sentence_of
from ui.transcript.blocks.diagram.renderer import NoDiagram, Reason, Sketch
from ui.transcript.blocks.flow import Flow
from ui.transcript.blocks.inline_object import veil
from ui.transcript.look import Look
from ui.transcript.markdown.inline import Line, units
from ui.transcript.pictures import HeldPicture

LANGUAGES = {"mermaid", "mmd"}


@dataclass(frozen=True, slots=True)
class DiagramHost:
    """Whom a diagram talks to. `shown` is whether the person wanted to see it; `on_shown` hears of their choice."""

    diagrams: Diagrams
    ratio: Callable[[], float]
    open: Callable[[HeldPicture], None]
    shown: bool = False
    on_shown: Callable[[bool], None] | None = None


class DiagramBlock(CodeBlock):
    """As code, until the person asks for the picture."""

    def __init__(self, text: str, info: str, host: CodeHost, drawing: DiagramHost, *, is_open: bool = False) -> None:
        super().__init__(text, info, host, is_open=is_open)
        self._drawing = drawing
        self._wanted = drawing.shown
        self._asks_again = False
        self._awaited: Sketch | None = None
        self._diagram: Diagram | None = None
        self._problem: NoDiagram | None = None
        self._note: Flow | None = None
        self._box = QRect()

    def close(self, text: str) -> None:
        """Half a diagram is none: what shows it comes with the end."""
        super().close(text)
        self._buttons.clear()

    def lay(self, width: int, look: Look) -> int:
        """The picture, if it is wanted and there; the code otherwise, under a note why."""
        self._diagram = None
        if self._wanted and not self.is_open and not self._problem:
            self._diagram = self._find(look)
        height = super().lay(width, look)
        if self._diagram:
            self._box = self._picture_box(self._diagram.size, look)
            return self._box.bottom() + 1 + look.px(14)
        return height

    def head_height(self, look: Look) -> int:
        """With the note, if there is one."""
        words = sentence_of(self._problem) if self._problem else ""
        if self._awaited:
            words = QCoreApplication.translate("Transcript", "Drawing…")
        self._note = None
        if words:
            self._note = Flow(Line(words), look.small, look, self._width - 2 * look.px(14), look.line_of(look.small))
        return super().head_height(look) + (self._note.height + look.px(6) if self._note else 0)

    def _find(self, look: Look) -> Diagram | None:
        sketch = sketch_of(self.text, look.theme, look.px(90) / 100 * self._drawing.ratio())
        found = self._drawing.diagrams.get(sketch)
        if isinstance(found, NoDiagram):
            if not self._asks_again and sketch != self._awaited:
                self._fail(found)
                return None
            # Whoever asks again may have more memory or time now.
            found = None
        if found is None and sketch != self._awaited:
            self._awaited, self._asks_again = sketch, False
            self._drawing.diagrams.draw(sketch, lambda result: self._arrived(sketch, result))
        elif found:
            self._awaited = None
        return found

    def _arrived(self, sketch: Sketch, result: Diagram | NoDiagram) -> None:
        if sketch != self._awaited:
            return
        self._awaited = None
        if isinstance(result, NoDiagram):
            self._fail(result)
        self._look_again()
        (self._host.arrived or self._host.changed)()

    def _fail(self, problem: NoDiagram) -> None:
        """A block made anew does not try it again, unless it was only stopped."""
        self._wanted, self._awaited = False, None
        self._buttons.clear()
        if problem.reason is not Reason.STOPPED:
            self._problem = problem
            if self._drawing.on_shown:
                self._drawing.on_shown(False)

    def _picture_box(self, own: QSize, look: Look) -> QRect:
        """In the middle, not wider than the box."""
        room = max(1, self._width - 2 * self._pad)
        scale = min(look.px(90) / 100, room / max(1, own.width()))
        size = QSize(max(1, round(own.width() * scale)), max(1, round(own.height() * scale)))
        return QRect(QPoint((self._width - size.width()) // 2, self._head + look.px(6)), size)

    def _head_buttons(self) -> list[HeadButton]:
        """The one that shows the diagram stands furthest to the left."""
        translate = QCoreApplication.translate
        buttons = super()._head_buttons()
        if self.is_open:
            return buttons
        if self._awaited:
            words, press = translate("Transcript", "Stop drawing"), self._press_stop
        elif self._diagram:
            words, press = translate("Transcript", "Show source"), self._press_source
            buttons = [each for each in buttons if each.press != self._press_wrap]
        else:
            words, press = translate("Transcript", "Show diagram"), self._press_diagram
        return [*buttons, HeadButton(words, words, press)]

    def _press_diagram(self) -> None:
        self._choose(wanted=True)

    def _press_source(self) -> None:
        self._choose(wanted=False)

    def _press_stop(self) -> None:
        if self._awaited:
            self._drawing.diagrams.stop(self._awaited)
            self._awaited = None
        self._choose(wanted=False)

    def _choose(self, *, wanted: bool) -> None:
        self._wanted, self._asks_again, self._problem = wanted, wanted, None
        if self._drawing.on_shown:
            self._drawing.on_shown(wanted)
        self._look_again()
        self._host.changed()

    def _look_again(self) -> None:
        self.laid = False
        self._buttons.clear()

    def paint(self, brush: Brush) -> None:
        """Box, head and note, then the code or the picture."""
        if self._diagram:
            self.paint_box(brush, self._box.bottom() + 1 + brush.look.px(14))
            self._paint_picture(brush, self._diagram)
        else:
            super().paint(brush)
        if self._note:
            color = "danger" if self._problem and self._problem.reason is Reason.WRONG else "muted"
            at = QPointF(self._pad, super().head_height(brush.look))
            self._note.draw(brush.painter, brush.look, at, color)

    def _paint_picture(self, brush: Brush, diagram: Diagram) -> None:
        painter = brush.painter
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        painter.drawPixmap(self._box, diagram.picture)
        if brush.selection:
            painter.fillRect(QRectF(self._box), veil(brush.look))
        painter.restore()
        if brush.focused == _open_words():
            focus_ring(painter, brush.look, self._box)

    def controls(self) -> Sequence[Control]:
        """The buttons, and the picture, which opens large."""
        if not self._diagram:
            return super().controls()
        return [*super().controls(), Control(_open_words(), self._box, self._press_open)]

    def _press_open(self) -> None:
        if self._diagram:
            self._drawing.open(self._diagram.held)

    def offset_at(self, point: QPoint) -> int:
        """In the picture: before it or after it."""
        if not self._diagram:
            return super().offset_at(point)
        return 0 if point.y() < self._box.center().y() else units(self.text)

    def scroll_sideways(self, pixels: int) -> bool:
        """A picture always fits."""
        return False if self._diagram else super().scroll_sideways(pixels)


def _open_words() -> str:
    return QCoreApplication.translate("Transcript", "Open diagram")
