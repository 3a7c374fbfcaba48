"""The editor of an earlier message, over the row whose text it takes the place of."""

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication, QEvent, QPoint
from PySide6.QtGui import QKeyEvent, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QApplication, QWidget

from ui.style.boxes import vbox
from ui.transcript.viewport.scroll_controller import ScrollController
from ui.transcript.viewport.viewport import RowViewport


class InPlaceEditor(QWidget):
    """Holds an editor over the row of a message, scrolls with it, and keeps the row as high as the editor.

    It is a child of the view. `on_height` is called with the row whenever that has to be made anew.
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
        scroller.moved.connect(self._follow_row)
        self.hide()

    @property
    def has_keyboard(self) -> bool:
        """Whether the focus is in the editor."""
        focused = QApplication.focusWidget()
        return focused is not None and self.isAncestorOf(focused)

    def show_editor(self, message_id: str, editor: QWidget) -> bool:
        """Take the editor and show it in the place of this message; return False where that is not in the transcript.

        Whoever gave it takes it back after `hide_editor`.
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
        """Scroll until the editor is visible, or its beginning."""
        index = self._find_row()
        if index is not None:
            self._scroller.scroll_to_row(index)

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
        """Be as high as the editor wants to be in this width."""
        column, context, index = self._column, self._viewport.rows.render_context, self._find_row()
        column.activate()
        height = column.heightForWidth(self.width()) if column.hasHeightForWidth() else column.sizeHint().height()
        if index is not None and height != context.editor_height:
            context.editor_height = height
            self.resize(self.width(), height)
            self._on_height(index)
        self._follow_row()

    def _follow_row(self) -> None:
        """Move to where the row is."""
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
