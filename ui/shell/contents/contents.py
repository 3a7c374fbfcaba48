"""What a person does with the contents of a conversation, behind the signals of its transcript."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from desktop_agent.vocabulary.blocks import Image
from ui.bridge.pictures import PictureStore
from ui.bridge.tasks import BackgroundTasks
from ui.look.theme import ThemeSource
from ui.shell.contents.saving import FileSaver
from ui.shell.contents.web_loading import WebPictureLoader
from ui.transcript.pictures import InMemoryImage, locate_image, read_image_bytes
from ui.transcript.view import TranscriptView

if TYPE_CHECKING:
    from ui.shell.contents.decoding import ViewerPicture
    from ui.shell.contents.picture_viewer import PictureViewer


class AttachmentsPresenter(QObject):
    """Looks at pictures, loads them, saves code and pictures. `remark` carries a sentence for the person."""

    remark = Signal(object)

    def __init__(
        self, themes: ThemeSource, view: TranscriptView, pictures: PictureStore, tasks: BackgroundTasks, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._themes = themes
        self._view = view
        self._pictures = pictures
        self._saver = FileSaver(tasks, self)
        self._loading = WebPictureLoader(view.remote_images, tasks, self)
        self._viewer: PictureViewer | None = None
        self._saver.saved.connect(self.remark)
        view.save_requested.connect(self._save_text)
        view.image_opened.connect(self._open)

    def _save_text(self, name: str, text: str) -> None:
        # Half of a pair cannot be written; a sign for it can.
        self._saver.ask(self._view, name, lambda: text.encode("utf-8", "replace"))

    def _open(self, picture: Image | InMemoryImage) -> None:
        # Imported and made when the first picture is looked at.
        from ui.shell.contents.gallery import conversation_pictures, index_of, to_viewer_picture
        from ui.shell.contents.picture_viewer import PictureViewer

        wanted = to_viewer_picture(picture)
        if wanted is None:
            return
        if self._viewer is None:
            self._viewer = PictureViewer(self._themes, self._pictures, self._view.window())
            self._viewer.save_requested.connect(self._save_picture)
        everything = list(conversation_pictures(self._view.row_viewport.rows.transcript, self._view.remote_images))
        at = index_of(everything, wanted.source)
        if at is None:
            everything, at = [wanted], 0
        self._viewer.show_pictures(everything, at)

    def _save_picture(self, viewed: "ViewerPicture") -> None:
        where = locate_image(viewed.source, self._pictures)
        self._saver.ask(self._viewer or self._view.window(), viewed.file_name, lambda: read_image_bytes(where))
