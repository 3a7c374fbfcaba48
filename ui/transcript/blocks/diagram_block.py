"""A Mermaid diagram: code with a button that renders it. Selecting and copying always means the source."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, QSize
from PySide6.QtGui import QPainter

from ui.style.text import format_number, show_hidden
from ui.transcript.blocks.block import Control, PaintContext
from ui.transcript.blocks.buttons import Button, paint_focus_ring
from ui.transcript.blocks.code.code_block import CodeBlock, CodeCallbacks
from ui.transcript.blocks.diagram_renderer import (
    MAX_SOURCE_LENGTH,
    DiagramCache,
    DiagramError,
    DiagramErrorReason,
    DiagramRequest,
    RenderedDiagram,
    make_request,
)
from ui.transcript.blocks.image_store import InMemoryImage
from ui.transcript.blocks.math.formulas import max_device_pixel_ratio
from ui.transcript.blocks.text_layout import TextLayout, selection_overlay_color
from ui.transcript.markdown.inline import Line
from ui.transcript.markdown.text_units import utf16_length
from ui.transcript.style import RenderStyle
from ui.transcript.words import tr

_MAX_MESSAGE_LENGTH = 300
_ERROR_PREFIX = re.compile(r"^(?:Mermaid rendering failed:|\w*Error:)\s*")


def diagram_error_sentence(error: DiagramError) -> str:
    """Return the sentence for an error."""
    match error.reason:
        case DiagramErrorReason.NOT_INSTALLED:
            words = tr(
                "Diagrams are drawn by an optional part that is not installed here. "
                "Install the program with it: {0}. Until then the source is shown."
            )
            return words.format('pip install "desktop-agent[diagrams]"')
        case DiagramErrorReason.TOO_LONG:
            words = tr("This diagram is too long to be drawn: more than {0} characters.")
            return words.format(format_number(MAX_SOURCE_LENGTH))
        case DiagramErrorReason.TOO_SLOW:
            return tr("Drawing took too long and was stopped. A smaller diagram may work.")
        case DiagramErrorReason.WRONG:
            return tr(
                "This diagram cannot be drawn: {0}. Ask the model to correct it, or correct the source yourself."
            ).format(_shorten_message(error.message))
        case _:
            return tr("Drawing stopped early, perhaps because memory ran out. A smaller diagram may work.")


def _shorten_message(words: str) -> str:
    while (shorter := _ERROR_PREFIX.sub("", words)) != words:
        words = shorter
    # Further lines draw the location of the error as text.
    first = words.strip().partition("\n")[0]
    line = " ".join(show_hidden(first[:_MAX_MESSAGE_LENGTH]).split()).rstrip(".:")
    return line or tr("no reason was given")


DIAGRAM_LANGUAGES = {"mermaid", "mmd"}


@dataclass(frozen=True, slots=True)
class DiagramCallbacks:
    """The services of a diagram block. `shown` is the person's last choice; `on_shown` is called with a new one."""

    diagrams: DiagramCache
    open: Callable[[InMemoryImage], None]
    shown: bool
    on_shown: Callable[[bool], None]


class DiagramBlock(CodeBlock):
    """A code block that shows the rendered diagram on request."""

    def __init__(
        self,
        text: str,
        info: str,
        callbacks: CodeCallbacks,
        diagram_callbacks: DiagramCallbacks,
        *,
        is_open: bool = False,
    ) -> None:
        super().__init__(text, info, callbacks, is_open=is_open)
        self._diagram_callbacks = diagram_callbacks
        self._is_diagram_wanted = diagram_callbacks.shown
        self._asks_again = False
        self._pending_request: DiagramRequest | None = None
        self._diagram: RenderedDiagram | None = None
        self._error: DiagramError | None = None
        self._note: TextLayout | None = None
        self._box = QRect()

    def finish(self, text: str) -> None:
        """Finish the block; only then it can be rendered."""
        super().finish(text)
        self._buttons.clear()

    def layout(self, width: int, style: RenderStyle) -> int:
        """Lay out the diagram if it is wanted and available, otherwise the code, below a note that says why."""
        self._diagram = None
        if self._is_diagram_wanted and not self.is_open and not self._error:
            self._diagram = self._find_diagram(style)
        height = super().layout(width, style)
        if self._diagram:
            self._box = self._picture_box(self._diagram.size, style)
            return self._box.bottom() + 1 + style.px(14)
        return height

    def header_height(self, style: RenderStyle) -> int:
        message = diagram_error_sentence(self._error) if self._error else ""
        if self._pending_request:
            message = tr("Drawing…")
        self._note = None
        if message:
            self._note = TextLayout(
                Line(message), style.small, style, self._width - 2 * style.px(14), style.line_of(style.small)
            )
        return super().header_height(style) + (self._note.height + style.px(6) if self._note else 0)

    def _find_diagram(self, style: RenderStyle) -> RenderedDiagram | None:
        request = make_request(self.text, style.theme, style.px(90) / 100 * max_device_pixel_ratio())
        result = self._diagram_callbacks.diagrams.get(request)
        if isinstance(result, DiagramError):
            if not self._asks_again and request != self._pending_request:
                self._fail(result)
                return None
            # A retry may have more memory or time now.
            result = None
        if result is None and request != self._pending_request:
            self._pending_request, self._asks_again = request, False
            self._diagram_callbacks.diagrams.draw(request, lambda result: self._on_rendered(request, result))
        elif result:
            self._pending_request = None
        return result

    def _on_rendered(self, request: DiagramRequest, result: RenderedDiagram | DiagramError) -> None:
        if request != self._pending_request:
            return
        self._pending_request = None
        if isinstance(result, DiagramError):
            self._fail(result)
        self._renew_buttons()
        self._callbacks.notify_arrived()

    def _fail(self, error: DiagramError) -> None:
        """Record an error. A rebuilt block does not retry, unless rendering was only stopped."""
        self._is_diagram_wanted, self._pending_request = False, None
        self._buttons.clear()
        if error.reason is not DiagramErrorReason.STOPPED:
            self._error = error
            self._diagram_callbacks.on_shown(False)

    def _picture_box(self, natural_size: QSize, style: RenderStyle) -> QRect:
        room = max(1, self._width - 2 * self._pad)
        scale = min(style.px(90) / 100, room / max(1, natural_size.width()))
        size = QSize(max(1, round(natural_size.width() * scale)), max(1, round(natural_size.height() * scale)))
        return QRect(QPoint((self._width - size.width()) // 2, self._header_height + style.px(6)), size)

    def _header_buttons(self) -> list[Button]:
        buttons = super()._header_buttons()
        if self.is_open:
            return buttons
        if self._pending_request:
            words, press = tr("Stop drawing"), self._stop_rendering
        elif self._diagram:
            words, press = tr("Show source"), partial(self._choose, is_wanted=False)
            buttons = [button for button in buttons if button.press != self._toggle_wrap]
        else:
            words, press = tr("Show diagram"), partial(self._choose, is_wanted=True)
        return [*buttons, Button(words, press)]

    def _stop_rendering(self) -> None:
        if self._pending_request:
            self._diagram_callbacks.diagrams.stop(self._pending_request)
            self._pending_request = None
        self._choose(is_wanted=False)

    def _choose(self, *, is_wanted: bool) -> None:
        self._is_diagram_wanted, self._asks_again, self._error = is_wanted, is_wanted, None
        self._diagram_callbacks.on_shown(is_wanted)
        self._renew_buttons()
        self._callbacks.on_changed()

    def paint(self, context: PaintContext) -> None:
        if self._diagram:
            self.paint_box(context, self._box.bottom() + 1 + context.style.px(14))
            self._paint_picture(context, self._diagram)
        else:
            super().paint(context)
        if self._note:
            color = "danger" if self._error and self._error.reason is DiagramErrorReason.WRONG else "muted"
            origin = QPointF(self._pad, super().header_height(context.style))
            self._note.draw(context.painter, context.style, origin, color)

    def _paint_picture(self, context: PaintContext, diagram: RenderedDiagram) -> None:
        painter = context.painter
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        painter.drawPixmap(self._box, diagram.picture)
        if context.selection:
            painter.fillRect(QRectF(self._box), selection_overlay_color(context.style))
        painter.restore()
        if context.focused == _open_label():
            paint_focus_ring(painter, context.style, self._box)

    def controls(self) -> Sequence[Control]:
        """Return the buttons, and the diagram, which opens in the viewer."""
        if not self._diagram:
            return super().controls()
        return [*super().controls(), Control(_open_label(), self._box, self._open_image)]

    def _open_image(self) -> None:
        if self._diagram:
            self._diagram_callbacks.open(self._diagram.image)

    def offset_at(self, point: QPoint) -> int:
        """Return the start or the end of the text if the diagram is displayed."""
        if not self._diagram:
            return super().offset_at(point)
        return 0 if point.y() < self._box.center().y() else utf16_length(self.text)

    def scroll_horizontally(self, pixels: int) -> bool:
        """Scroll the code; a diagram always fits."""
        return False if self._diagram else super().scroll_horizontally(pixels)


def _open_label() -> str:
    return tr("Open diagram")
