"""Files and pictures of other programs, dropped beside the composer."""

from PySide6.QtCore import QEvent, QObject, QPoint, QRect
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QLabel, QWidget

from ui.composer.composer import Composer
from ui.style.controls import set_by_name
from ui.style.theme import SPACE_S


class FileDrops(QLabel):
    """Lets files and pictures of other programs be dropped anywhere on the page, and says so while they are over it.

    The composer takes what is dropped on it by itself.
    """

    def __init__(self, page: QWidget, composer: Composer) -> None:
        super().__init__(page)
        self._page = page
        self._composer = composer
        self.setText(self.tr("Drop to attach"))
        self.setProperty("kind", "drop")
        set_by_name(self, alignment="AlignCenter")
        self.hide()
        page.setAcceptDrops(True)
        page.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Show the hint from the entry to the drop or the exit."""
        if isinstance(event, QDropEvent) and event.type() is QEvent.Type.Drop:
            self.hide()
            self._composer.dropEvent(event)
        elif isinstance(event, QDragEnterEvent):
            self._on_enter(event)
        elif event.type() is QEvent.Type.DragLeave:
            self.hide()
        else:
            return super().eventFilter(watched, event)
        return True

    def _on_enter(self, event: QDragEnterEvent) -> None:
        page, data = self._page, event.mimeData()
        if not event.source() and self._composer.isVisible() and (data.hasUrls() or data.hasImage()):
            event.acceptProposedAction()
            top = self._composer.mapTo(page, QPoint(0, 0)).y()
            # Where an earlier message is edited, the composer is in the midst of the transcript.
            area = QRect(0, 0, page.width(), top if top > page.height() // 2 else page.height())
            self.setGeometry(area.adjusted(SPACE_S, SPACE_S, -SPACE_S, -SPACE_S))
            self.raise_()
            self.show()
        else:
            event.ignore()
