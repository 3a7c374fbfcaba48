"""The mouse and the wheel: selecting, clicking, tooltips, scrolling and zooming."""

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QPoint, Qt, QTimer
from PySide6.QtGui import QGuiApplication, QHelpEvent, QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QToolTip

from ui.style.text import plain_tooltip
from ui.transcript.input.links import LinkNavigator
from ui.transcript.viewport.selection import TextPosition, word_at
from ui.transcript.viewport.viewport import Hit, RowViewport

_EDGE_STEP = 24


class MouseHandler(QObject):
    """Handles the mouse and decides whether a press becomes a click or a drag."""

    def __init__(
        self, viewport: RowViewport, scroll: Callable[[int], None], links: LinkNavigator, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._viewport = viewport
        self._scroll = scroll
        self._links = links
        self._pressed: Hit | None = None
        self._press_point = QPoint()
        self._last_point = QPoint()
        self._selecting = False
        self._double_click_point = QPoint()
        self._triple_click_timer = QTimer(self, singleShot=True)
        self._edge_timer = QTimer(self, interval=30)
        self._edge_timer.timeout.connect(self._scroll_at_edge)

    def handle(self, event: QEvent) -> bool:
        """Handle an event of the viewport; return whether it was one of the mouse."""
        kind = event.type()
        if isinstance(event, QMouseEvent):
            return self._handle_mouse(event)
        if isinstance(event, QHelpEvent) and kind == QEvent.Type.ToolTip:
            words = plain_tooltip(self._links.tooltip_at(event.pos()))
            QToolTip.showText(event.globalPos(), words, self._viewport.widget)
            return True
        if kind == QEvent.Type.Leave:
            self._viewport.hover((-1, ""))
        return False

    def _handle_mouse(self, event: QMouseEvent) -> bool:
        kind = event.type()
        if kind == QEvent.Type.MouseMove:
            self._on_move(event)
            return True
        if event.button() != Qt.MouseButton.LeftButton:
            return False
        if kind == QEvent.Type.MouseButtonPress:
            self._on_press(event)
        elif kind == QEvent.Type.MouseButtonDblClick:
            self._on_double_click(event)
        elif kind == QEvent.Type.MouseButtonRelease:
            self._on_release(event)
        return True

    def _on_press(self, event: QMouseEvent) -> None:
        point = event.position().toPoint()
        self._press_point = self._last_point = point
        if self._triple_click_timer.isActive() and (point - self._double_click_point).manhattanLength() < 6:
            self._select_paragraph(point)
            return
        hit = self._viewport.hit(point)
        if hit and (hit.control or hit.link):
            self._pressed = hit
            if hit.control:
                return
        position = self._viewport.position_at(point)
        self._selecting = True
        extends = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        self._viewport.select(self._viewport.selection.start if extends else position, position)

    def _on_double_click(self, event: QMouseEvent) -> None:
        """Select the word; a third click within the interval selects the paragraph."""
        point = event.position().toPoint()
        if (hit := self._viewport.hit(point)) and hit.control:
            self._on_press(event)
            return
        position = self._viewport.position_at(point)
        blocks = self._viewport.rows.row(position.row).blocks if len(self._viewport.rows) else []
        if position.block < len(blocks) and (text := blocks[position.block].plain()):
            start, end = word_at(text, position.offset)
            self._selecting = False
            self._viewport.select(position.at(start), position.at(end))
        self._double_click_point = point
        self._triple_click_timer.start(QGuiApplication.styleHints().mouseDoubleClickInterval())

    def _select_paragraph(self, point: QPoint) -> None:
        position = self._viewport.position_at(point)
        row = self._viewport.rows.row(position.row)
        if not row.blocks:
            return
        start, end = row.blocks[position.block].paragraph_at(position.offset)
        first, last = row.whole(position.block)
        start = start if first == position.block else 0
        end = end if last == position.block else row.blocks[last].paragraph_at(0)[1]
        self._selecting = False
        self._viewport.select(TextPosition(position.row, first, start), TextPosition(position.row, last, end))

    def _on_move(self, event: QMouseEvent) -> None:
        point = event.position().toPoint()
        self._last_point = point
        if self._selecting and event.buttons() & Qt.MouseButton.LeftButton:
            self._viewport.select(self._viewport.selection.start, self._viewport.position_at(point))
            if 0 <= point.y() < self._viewport.widget.height():
                self._edge_timer.stop()
            elif not self._edge_timer.isActive():
                self._edge_timer.start()
            return
        hit = self._viewport.hit(point)
        self._viewport.hover((hit.row, hit.key) if hit else (-1, ""))
        self._viewport.widget.setCursor(self._viewport.cursor_for(point))

    def _on_release(self, event: QMouseEvent) -> None:
        """Press what was under the pointer, if it still is."""
        self._edge_timer.stop()
        self._selecting = False
        pressed, self._pressed = self._pressed, None
        point = event.position().toPoint()
        if not pressed or (point - self._press_point).manhattanLength() > 6:
            return
        if pressed.control:
            hit = self._viewport.hit(point)
            if hit and hit.control and (hit.row, hit.key) == (pressed.row, pressed.key):
                hit.control.press()
        elif pressed.link and self._viewport.selection.is_empty:
            self._links.follow(pressed.link, pressed.row)

    def stop(self) -> None:
        """End the drag."""
        self._edge_timer.stop()
        self._triple_click_timer.stop()
        self._selecting = False

    def _scroll_at_edge(self) -> None:
        height = self._viewport.widget.height()
        distance = self._last_point.y() if self._last_point.y() < 0 else max(0, self._last_point.y() - height)
        self._scroll(max(-4 * _EDGE_STEP, min(4 * _EDGE_STEP, distance)) or _EDGE_STEP)
        self._viewport.select(self._viewport.selection.start, self._viewport.position_at(self._last_point))


_NOTCH_DELTA = 120
"""The angle delta of one notch, in eighths of a degree."""


class WheelHandler:
    """Scrolls; with Ctrl it calls `zoom` with the number of steps."""

    def __init__(self, viewport: RowViewport, scroll: Callable[[int], None], zoom: Callable[[int], None]) -> None:
        self._viewport = viewport
        self._scroll = scroll
        self._zoom = zoom
        self._zoom_remainder = 0

    def handle(self, event: QWheelEvent) -> None:
        """Scroll by pixels where the device reports them, else by three lines for a notch."""
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self._zoom_by(event.angleDelta().y())
            event.accept()
            return
        self._zoom_remainder = 0
        delta = event.pixelDelta()
        if delta.isNull():
            delta = event.angleDelta() * (3 * self._viewport.rows.render_context.style.line) / _NOTCH_DELTA
        sideways = delta.y() if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else delta.x()
        if sideways and abs(sideways) >= abs(delta.y()):
            # Over the in-place editor, the position of the event is relative to the editor.
            point = self._viewport.widget.mapFromGlobal(event.globalPosition().toPoint())
            self._scroll_horizontally(point, -sideways)
        else:
            self._scroll(-delta.y())
        event.accept()

    def _zoom_by(self, delta: int) -> None:
        """Add up the deltas: fine wheels and touch pads report less than a notch at a time."""
        self._zoom_remainder += delta
        steps = int(self._zoom_remainder / _NOTCH_DELTA)
        if steps:
            self._zoom_remainder -= steps * _NOTCH_DELTA
            self._zoom(steps)

    def _scroll_horizontally(self, point: QPoint, pixels: int) -> None:
        rows, position = self._viewport.rows, self._viewport.position_at(point)
        blocks = rows.row(position.row).blocks if len(rows) else []
        if position.block < len(blocks) and blocks[position.block].scroll_horizontally(pixels):
            self._viewport.repaint_row(position.row)
