"""Pictures and code of a conversation: view them, load them from the web, save them as files."""

import asyncio
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit
from weakref import ref

from PySide6.QtCore import QDir, QObject, QStandardPaths, Qt, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from desktop_agent.types.blocks import Image
from desktop_agent.types.errors import ImageRefused, Sentence
from ui.bridge.event_loop import BackgroundTasks
from ui.bridge.storage import PictureStore, WebPictures, save_file
from ui.style.text import show_hidden, translate_sentence
from ui.style.theme import ThemeSource
from ui.transcript.blocks.image_store import InMemoryImage, RemoteImages, locate_image, read_image_bytes
from ui.transcript.view import TranscriptView

if TYPE_CHECKING:
    from desktop_agent.conversation.transcript import Transcript
    from ui.shell.pictures.picture_canvas import ViewerPicture
    from ui.shell.pictures.picture_viewer import PictureViewer


_MAX_STEM_LENGTH = 80
_MAX_NAME_BYTES = 255
"""The limit of most file systems."""

# Devices of Windows, with any suffix (Microsoft, "Naming Files, Paths, and Namespaces").
_DEVICE_NAME = re.compile(
    r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[1-9\u00b9\u00b2\u00b3]) *(?:\.|\Z)", re.IGNORECASE
)
_FORBIDDEN_CHARACTERS = set('/\\:*?"<>|')


class FileSaver(QObject):
    """Asks for a path and writes the file. `saved` carries a sentence for the person."""

    saved = Signal(object)

    def __init__(self, tasks: BackgroundTasks, parent: QObject) -> None:
        super().__init__(parent)
        self._tasks = tasks
        self._folder = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DownloadLocation)

    def ask(self, over: QWidget, name: str, data: Callable[[], bytes]) -> QFileDialog:
        """Open the dialog. `data` is called in a thread once a path is chosen; it may raise OSError."""
        return self.ask_path(over, name, lambda path: self._tasks.start(self._write(path, data)))

    def ask_path(self, over: QWidget, name: str, on_chosen: Callable[[Path], object]) -> QFileDialog:
        """Open the dialog; `on_chosen` gets the path."""
        dialog = QFileDialog(over, self.tr("Save as"))
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setFileMode(QFileDialog.FileMode.AnyFile)
        dialog.setDirectory(self._folder if QDir(self._folder).exists() else QDir.homePath())
        dialog.selectFile(safe_file_name(name))

        def on_selected(path: str) -> None:
            self._folder = str(Path(path).parent)
            on_chosen(Path(path))

        dialog.fileSelected.connect(on_selected)
        dialog.open()
        return dialog

    async def _write(self, path: Path, data: Callable[[], bytes]) -> None:
        try:
            content = await asyncio.to_thread(data)
        except OSError as error:
            raise ImageRefused.not_read(path.name, error) from error
        except ValueError as error:
            raise ImageRefused.unreadable(path.name) from error
        await save_file(path, content)
        values = {"name": show_hidden(path.name), "folder": show_hidden(str(path.parent))}
        self.saved.emit(Sentence("“{name}” was saved in {folder}.", values))


def safe_file_name(words: str) -> str:
    """Return a name that every system accepts: no folder, device or invisible character, not hidden, not too long."""
    printable = "".join(
        " " if character in _FORBIDDEN_CHARACTERS or not character.isprintable() else character
        for character in words[: 4 * _MAX_STEM_LENGTH]
    )
    name = " ".join(printable.split()).strip(". ")
    stem, dot, ending = f"{'_' if _DEVICE_NAME.match(name) else ''}{name}".rpartition(".")
    if not dot or not ending.isalnum() or len(ending) > 8:
        stem, dot, ending = f"{stem}{dot}{ending}", "", ""
    room = _MAX_NAME_BYTES - len(f"{dot}{ending}".encode())
    stem = stem[:_MAX_STEM_LENGTH].encode()[:room].decode(errors="ignore")
    return f"{stem.strip('. ') or 'unnamed'}{dot}{ending}"


class WebPictureLoader(QObject):
    """Loads web pictures for a transcript."""

    def __init__(self, remote: RemoteImages, tasks: BackgroundTasks, parent: QObject) -> None:
        super().__init__(parent)
        self._remote = remote
        self._tasks = tasks
        self._web = WebPictures()
        self._loading: dict[str, asyncio.Task[Any] | None] = {}
        remote.wanted.connect(self._load)
        remote.unwanted.connect(self._cancel)

    def _load(self, address: str, insists: bool) -> None:  # noqa: FBT001  what the signal carries
        self._tasks.start(self._fetch(address, insists=insists))

    def _cancel(self, address: str) -> None:
        if task := self._loading.pop(address, None):
            task.cancel()

    async def _fetch(self, address: str, *, insists: bool) -> None:
        task = self._loading[address] = asyncio.current_task()
        try:
            data = await self._web.load(address, insists=insists)
        except ImageRefused as error:
            sentence, remedy = translate_sentence(error.sentence), translate_sentence(error.remedy)
            self._remote.failed(address, sentence, remedy, may_insist=error.kind == "private_address")
        except Exception:
            self._remote.cancelled(address)
            raise
        else:
            self._remote.arrived(address, data, unquote(urlsplit(address).path.rpartition("/")[2]))
        finally:
            if self._loading.get(address) is task:
                del self._loading[address]


class AttachmentsPresenter(QObject):
    """Opens, loads and saves attachments."""

    def __init__(
        self, themes: ThemeSource, view: TranscriptView, pictures: PictureStore, tasks: BackgroundTasks, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._themes = themes
        self._view = view
        self._pictures = pictures
        self.saver = FileSaver(tasks, self)
        self._loading = WebPictureLoader(view.remote_images, tasks, self)
        self._viewer: PictureViewer | None = None
        self._viewed: ref[Transcript] | None = None
        """The transcript of the pictures in the viewer."""
        view.save_requested.connect(self._save_text)
        view.image_opened.connect(self._open)

    def _save_text(self, name: str, text: str) -> None:
        # A lone surrogate cannot be encoded; a question mark can.
        self.saver.ask(self._view, name, lambda: text.encode("utf-8", "replace"))

    def _open(self, picture: Image | InMemoryImage) -> None:
        # Late: imported with the first picture that is opened.
        from ui.shell.pictures.picture_viewer import PictureViewer, conversation_pictures, index_of, to_viewer_picture

        viewer_picture = to_viewer_picture(picture)
        if viewer_picture is None:
            return
        if self._viewer is None:
            self._viewer = PictureViewer(self._themes, self._pictures, self._view.window())
            self._viewer.save_requested.connect(self._save_picture)
            self._viewer.earlier_wanted.connect(self._load_earlier)
        rows = self._view.row_viewport.rows
        self._viewed = ref(rows.transcript)
        pictures = list(conversation_pictures(rows.transcript, self._view.remote_images))
        index = index_of(pictures, viewer_picture.source)
        if index is None:
            self._viewer.show_pictures([viewer_picture], 0)
        else:
            self._viewer.show_pictures(pictures, index, has_earlier=not rows.render_context.is_whole())

    def _load_earlier(self) -> None:
        """Load the earlier messages, and go on to the picture before."""
        if self._viewer is not None and self._is_viewed:
            self._view.row_viewport.rows.render_context.when_whole(partial(self._show_earlier, self._viewer.current))

    def _show_earlier(self, requested_at: "ViewerPicture | None") -> None:
        from ui.shell.pictures.picture_viewer import conversation_pictures, index_of

        viewer = self._viewer
        if viewer is None or viewer.current is None or not self._is_viewed:
            return
        pictures = list(conversation_pictures(self._view.row_viewport.rows.transcript, self._view.remote_images))
        index = index_of(pictures, viewer.current.source)
        if index is not None:
            # The person may have turned to another picture meanwhile.
            viewer.set_pictures(pictures, max(0, index - 1) if viewer.current is requested_at else index)

    @property
    def _is_viewed(self) -> bool:
        """Whether the pictures in the viewer are those of the conversation that is shown."""
        return self._viewed is not None and self._view.row_viewport.rows.transcript is self._viewed()

    def _save_picture(self, picture: "ViewerPicture") -> None:
        location = locate_image(picture.source, self._pictures)
        self.saver.ask(self._viewer or self._view.window(), picture.file_name, lambda: read_image_bytes(location))
