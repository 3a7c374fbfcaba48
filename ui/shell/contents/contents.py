"""What a person does with the contents of a conversation, behind the signals of its transcript."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from desktop_agent.vocabulary.blocks import Image
from ui.bridge.pictures import Pictures
from ui.bridge.tasks import Tasks
from ui.look.theme import ThemeSource
from ui.shell.contents.saving import Saver
from ui.shell.contents.web_loading import WebLoading
from ui.transcript.pictures import HeldPicture, bytes_of, place_of
from ui.transcript.view import TranscriptView

if TYPE_CHECKING:
    from ui.shell.contents.decoding import Viewed
    from ui.shell.contents.picture_viewer import PictureViewer


class Contents(QObject):
    """Looks at pictures, loads them, saves code and pictures. `remark` carries a sentence for the person."""

    remark = Signal(object)

    def __init__(
        self, themes: ThemeSource, view: TranscriptView, pictures: Pictures, tasks: Tasks, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._themes = themes
        self._view = view
        self._pictures = pictures
        self._saver = Saver(tasks, self)
        self._loading = WebLoading(view.remote, tasks, self)
        self._viewer: PictureViewer | None = None
        self._saver.saved.connect(self.remark)
        view.save_requested.connect(self._save_text)
        view.image_opened.connect(self._open)

    def _save_text(self, name: str, text: str) -> None:
        # Half of a pair cannot be written; a sign for it can.
        self._saver.ask(self._view, name, lambda: text.encode("utf-8", "replace"))

    def _open(self, picture: Image | HeldPicture) -> None:
        # Imported and made when the first picture is looked at.
        from ui.shell.contents.gallery import pictures_of, place_in, viewed
        from ui.shell.contents.picture_viewer import PictureViewer

        wanted = viewed(picture)
        if wanted is None:
            return
        if self._viewer is None:
            self._viewer = PictureViewer(self._themes, self._pictures, self._view.window())
            self._viewer.save_requested.connect(self._save_picture)
        everything = list(pictures_of(self._view.surface.rows.transcript, self._view.remote))
        at = place_in(everything, wanted.source)
        if at is None:
            everything, at = [wanted], 0
        self._viewer.show_pictures(everything, at)

    def _save_picture(self, viewed: "Viewed") -> None:
        where = place_of(viewed.source, self._pictures)
        self._saver.ask(self._viewer or self._view.window(), viewed.file_name, lambda: bytes_of(where))
