"""The editor of an earlier message, over the row whose text it takes the place of."""

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication, QEvent, QPoint, QRect, QRectF, Qt, QTimer
from PySide6.QtGui import QContextMenuEvent, QKeyEvent, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QAbstractScrollArea, QApplication, QWidget

from ui.style.boxes import vbox
from ui.transcript.viewport.scroll_controller import ScrollController
from ui.transcript.viewport.viewport import RowViewport

_MARGIN = 8
"""Pixels between what is scrolled to and the edge of the viewport."""


class InPlaceEditor(QWidget):
    """Holds an editor over the row of a message, scrolls with it, and keeps the row as high as the editor.

    It is a child of the view. `on_height` is called with the row whenever the row must be rebuilt.
    """

    def __init__(
        self,
        viewport: RowViewport,
        scroller: ScrollController,
        on_wheel: Callable[[QWheelEvent], None],
        on_height: Callable[[int], None],
        view: QWidget,
    ) -> None:
        super().__init__(view)
        self._viewport = viewport
        self._scroller = scroller
        self._on_wheel = on_wheel
        self._on_height = on_height
        self._index = -1
        self._column = vbox(parent=self, spacing=0, margins=0)
        self._notice: QWidget | None = None
        self._layout_timer = QTimer(self, singleShot=True, interval=0)
        self._layout_timer.timeout.connect(self._scroll_to_notice)
        scroller.moved.connect(self._follow_row)
        app = QApplication.instance()
        if isinstance(app, QApplication):
            app.focusChanged.connect(self._on_focus_changed)
        self.hide()

    @property
    def has_keyboard(self) -> bool:
        """Whether the focus is in the editor."""
        focused = QApplication.focusWidget()
        return focused is not None and self.isAncestorOf(focused)

    def show_editor(self, message_id: str, editor: QWidget) -> bool:
        """Take the editor and show it in the place of this message; return False where that is not in the transcript.

        The caller takes the editor back after `hide_editor`.
        """
        context = self._viewport.rows.render_context
        context.edited_message = message_id
        index = self._find_row()
        if index is None:
            context.edited_message = ""
            return False
        self._column.addWidget(editor)
        self.resize(self._viewport.rows.width, 0)
        self.show()
        self._fit()
        self.scroll_to_editor()
        return True

    def hide_editor(self) -> None:
        """Show the text of the message again."""
        context, index = self._viewport.rows.render_context, self._find_row()
        context.edited_message, context.editor_height = "", 0
        self.hide()
        if index is not None:
            self._on_height(index)

    def scroll_to_editor(self) -> None:
        """Scroll until the editor is visible; of one that is higher than the view, what has the keyboard."""
        index, rows = self._find_row(), self._viewport.rows
        if index is None:
            return
        if self.has_keyboard and rows.row(index).stack.height > rows.view:
            self.scroll_to_keyboard()
        else:
            self._scroller.scroll_to_row(index)

    def scroll_to_keyboard(self) -> None:
        """Scroll until what has the keyboard in the editor is visible; in a text, its cursor."""
        # What is clicked must not move away before the button is released.
        is_clicked = QApplication.mouseButtons() != Qt.MouseButton.NoButton
        focused = QApplication.focusWidget()
        if focused is not None and self.has_keyboard and not is_clicked:
            # For anything but a text, the rectangle is as high as the widget.
            box = QRectF(focused.inputMethodQuery(Qt.InputMethodQuery.ImCursorRectangle)).toRect()
            part = focused.viewport() if isinstance(focused, QAbstractScrollArea) else focused
            # The text may be about to scroll to its cursor.
            box.moveTop(max(0, min(box.top(), part.height() - box.height())))
            self._scroll_to(part, box)

    def scroll_to_notice(self, notice: QWidget) -> None:
        """Scroll to a notice of the editor, which is placed with the next layout."""
        self._notice = notice
        self._layout_timer.start()

    def _scroll_to_notice(self) -> None:
        notice, self._notice = self._notice, None
        if notice is not None and self.has_keyboard and self.isAncestorOf(notice) and notice.isVisible():
            self.scroll_to_editor()
            self._scroll_to(notice, notice.rect())

    def _scroll_to(self, part: QWidget, box: QRect) -> None:
        if self._find_row() is None:
            return
        top = part.mapTo(self, box.topLeft()).y() + self.y() - self._viewport.widget.y() - _MARGIN
        below = top + box.height() + 2 * _MARGIN - self._viewport.rows.view
        if top < 0 or below > 0:
            self._scroller.scroll_by(top if top < 0 else min(top, below))

    def _on_focus_changed(self, before: QWidget | None, _now: QWidget | None) -> None:
        # Without a previous widget, the window was activated: the person may be reading elsewhere in it.
        if before is not None:
            self.scroll_to_keyboard()

    def _find_row(self) -> int | None:
        """Return the index of the message's row; the last one is tried first."""
        rows = self._viewport.rows
        message_id, items = rows.render_context.edited_message, rows.transcript
        if not message_id:
            return None
        if not (0 <= self._index < rows.count and items[self._index].message_id == message_id):
            self._index = next((index for index in range(rows.count) if items[index].message_id == message_id), -1)
        return self._index if self._index >= 0 else None

    def _fit(self) -> None:
        """Take the height that the editor needs in this width."""
        column, context, index = self._column, self._viewport.rows.render_context, self._find_row()
        column.activate()
        height = column.heightForWidth(self.width()) if column.hasHeightForWidth() else column.sizeHint().height()
        if index is not None and height != context.editor_height:
            is_in_view = self.geometry().intersects(self._viewport.widget.geometry())
            context.editor_height = height
            self.resize(self.width(), height)
            self._on_height(index)
            if is_in_view and self.has_keyboard:
                self.scroll_to_editor()
        self._follow_row()

    def _follow_row(self) -> None:
        index = self._find_row()
        if index is None:
            return
        rows = self._viewport.rows
        row = rows.existing_row(index)
        top = rows.row_top(index) - rows.top + (row.stack.above if row else 0)
        self.move(self._viewport.widget.pos() + QPoint(self._viewport.column, top))
        self.resize(rows.width, self.height())

    def event(self, event: QEvent) -> bool:
        """Fit the height when the editor wants another."""
        done = super().event(event)
        if event.type() == QEvent.Type.LayoutRequest and self.isVisible():
            self._fit()
        return done

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Ask for the height in another width, later: the rows are being measured now."""
        super().resizeEvent(event)
        if event.oldSize().width() != event.size().width():
            QCoreApplication.postEvent(self, QEvent(QEvent.Type.LayoutRequest))

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scroll the transcript by what the editor does not need."""
        self._on_wheel(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Keep keys that the editor does not need from the transcript, where they are commands."""
        event.accept()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Keep the menu key from the transcript too: its menu is about other messages."""
        event.accept()
