"""Files and pictures of other programs, dropped anywhere on the page."""

from PySide6.QtCore import QEvent, QMimeData, QObject
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QLabel, QWidget

from ui.composer.composer import Composer
from ui.composer.message_editor import is_picture
from ui.style.controls import set_by_name
from ui.style.theme import SPACE_S


class FileDrops(QLabel):
    """Lets files and pictures of other programs be dropped anywhere on the page, and says so while they are over it.

    Shown, it lies over the composer too, so what is dropped there comes to the page. Text and links are the editor's.
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
        for target in (page, composer, composer.editor.viewport()):
            target.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Show the hint from the entry to the drop or the exit."""
        if event.type() in (QEvent.Type.Drop, QEvent.Type.DragLeave):
            self.hide()
            if isinstance(event, QDropEvent) and watched is self._page:
                self._composer.dropEvent(event)
                return True
        elif isinstance(event, QDragEnterEvent):
            is_taken = not event.source() and self._composer.isVisible()
            if is_taken and _has_files(event.mimeData()):
                event.acceptProposedAction()
                self.setGeometry(self._page.rect().adjusted(SPACE_S, SPACE_S, -SPACE_S, -SPACE_S))
                self.raise_()
                self.show()
                return True
            if watched is self._page:
                # A link is written into the message.
                event.setAccepted(is_taken and event.mimeData().hasUrls())
                return True
        return super().eventFilter(watched, event)


def _has_files(data: QMimeData) -> bool:
    """Return whether the editor would attach what this is, and not write it."""
    return is_picture(data) or (data.hasUrls() and all(url.isLocalFile() for url in data.urls()))
