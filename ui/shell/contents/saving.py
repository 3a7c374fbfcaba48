"""Save as…: a dialog that waits without blocking, and a file that is written in a thread."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QDir, QObject, QStandardPaths, Qt, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from desktop_agent.vocabulary.errors import ImageRefused, Sentence
from ui.bridge.contents.saved_files import save_file
from ui.bridge.tasks import BackgroundTasks
from ui.look.visible_text import show_hidden

_MAX_STEM_LENGTH = 80
_MAX_NAME_BYTES = 255
"""Of a whole name, on most file systems."""

# Devices of Windows, whatever ending follows (Microsoft, "Naming Files, Paths, and Namespaces").
_DEVICE_NAME = re.compile(
    r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[1-9\u00b9\u00b2\u00b3]) *(?:\.|\Z)", re.IGNORECASE
)
_FORBIDDEN_CHARACTERS = set('/\\:*?"<>|')


class FileSaver(QObject):
    """Asks where, writes, and says so. `saved` carries a sentence for the person."""

    saved = Signal(object)

    def __init__(self, tasks: BackgroundTasks, parent: QObject) -> None:
        super().__init__(parent)
        self._tasks = tasks
        self._folder = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DownloadLocation)

    def ask(self, over: QWidget, name: str, data: Callable[[], bytes]) -> QFileDialog:
        """Open the dialog. `data` is called in another thread once a place is chosen; it may raise OSError."""
        dialog = QFileDialog(over, self.tr("Save as"))
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setFileMode(QFileDialog.FileMode.AnyFile)
        dialog.setDirectory(self._folder if QDir(self._folder).exists() else QDir.homePath())
        dialog.selectFile(safe_file_name(name))

        def chosen(path: str) -> None:
            self._folder = str(Path(path).parent)
            self._tasks.start(self._write(Path(path), data))

        dialog.fileSelected.connect(chosen)
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
    """A name that every system takes: no folder, nothing hidden, not too long, no hidden file, no device."""
    kept = "".join(
        " " if each in _FORBIDDEN_CHARACTERS or not each.isprintable() else each
        for each in words[: 4 * _MAX_STEM_LENGTH]
    )
    name = " ".join(kept.split()).strip(". ")
    stem, dot, ending = f"{'_' if _DEVICE_NAME.match(name) else ''}{name}".rpartition(".")
    if not dot or not ending.isalnum() or len(ending) > 8:
        stem, dot, ending = f"{stem}{dot}{ending}", "", ""
    room = _MAX_NAME_BYTES - len(f"{dot}{ending}".encode())
    stem = stem[:_MAX_STEM_LENGTH].encode()[:room].decode(errors="ignore")
    return f"{stem.strip('. ') or 'unnamed'}{dot}{ending}"
