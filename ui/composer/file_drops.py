"""Files and pictures of other programs, dropped anywhere on the page."""

from PySide6.QtCore import QEvent, QMimeData, QObject
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QLabel, QWidget

from ui.composer.composer import Composer
from ui.composer.message_editor import accept_drop, is_picture
from ui.style.controls import set_by_name
from ui.style.theme import SPACE_S


class FileDrops(QLabel):
    """Accepts files and pictures of other programs anywhere on the page, and says so while they are dragged over it.

    While shown, it covers the composer too, so that drops there come to the page. Text and links go to the editor.
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
            is_accepted = not event.source() and self._composer.isVisible()
            if is_accepted and _has_files(event.mimeData()):
                accept_drop(event)
                self.setGeometry(self._page.rect().adjusted(SPACE_S, SPACE_S, -SPACE_S, -SPACE_S))
                self.raise_()
                self.show()
                return True
            if watched is self._page:
                # A link is written into the message.
                if is_accepted and event.mimeData().hasUrls():
                    accept_drop(event)
                else:
                    event.ignore()
                return True
        return super().eventFilter(watched, event)


def _has_files(data: QMimeData) -> bool:
    """Return whether the editor would attach this instead of writing it."""
    return is_picture(data) or (data.hasUrls() and all(url.isLocalFile() for url in data.urls()))
