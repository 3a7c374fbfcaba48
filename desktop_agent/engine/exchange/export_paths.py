"""The files that exports write: which path is allowed, and how each is named by the title of its conversation."""

import os
import re
import unicodedata
from pathlib import Path

from desktop_agent.storage.files import file_error, list_folder
from desktop_agent.types.conversation_tree import UNTITLED
from desktop_agent.types.errors import Sentence, StorageFailed
from desktop_agent.types.hidden_characters import HIDDEN_CHARACTERS

_MAX_NAME = 60
_MAX_NAME_BYTES = 200
"""File systems take 255, and an ending and a number follow."""
_NOT_IN_NAMES = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*]+')
_HIDDEN = re.compile(f"[{HIDDEN_CHARACTERS}]+")
# https://learn.microsoft.com/en-us/windows/win32/fileio/naming-a-file: devices, whatever follows a dot.
_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?=\.|$)", re.IGNORECASE)


def export_target(path: Path, data_folder: Path) -> Path:
    """Return the file that an export to `path` replaces or makes: what a link leads to.

    Raises StorageFailed for a folder, a device or pipe, for a file of the data folder that is there, and where the
    folder is missing.
    """
    path = Path(os.path.realpath(path))  # unlike `resolve` also for a link that leads to itself
    if not path.parent.is_dir():
        sentence = Sentence("There is no folder “{path}”.", {"path": str(path.parent)})
        raise StorageFailed(sentence, "Make it, or choose another one.")
    if path.is_dir():
        sentence = Sentence("“{path}” is a folder, and this export is one file.", {"path": str(path)})
        raise StorageFailed(sentence, "Choose the name of a file in it.")
    if path.exists() and not path.is_file():
        sentence = Sentence("“{path}” is not an ordinary file, so no export can replace it.", {"path": str(path)})
        raise StorageFailed(sentence, "Choose the name of a file.")
    if path.exists() and path.is_relative_to(data_folder.resolve()):
        sentence = Sentence("“{path}” is a file of the data folder, which no export replaces.", {"path": str(path)})
        raise StorageFailed(sentence, "Choose another name, or another folder.")
    return path


class ExportFolder:
    """A folder in which each exported conversation has a file of its own, named by its title."""

    def __init__(self, folder: Path, ending: str) -> None:
        """Make the folder, whose name is without the ending that the files get. Raises StorageFailed."""
        if folder.suffix.lower() == f".{ending}" and not folder.is_dir():
            folder = folder.with_suffix("")
        if folder.exists() and not folder.is_dir():
            sentence = Sentence("“{path}” is a file, and this export is a folder of files.", {"path": str(folder)})
            raise StorageFailed(sentence, "Choose the name of a folder.")
        self._folder = folder
        self._ending = ending
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise file_error(error, folder) from error
        # What is in the folder already is somebody's: nobody was asked whether to replace it.
        files = (path for path in list_folder(folder) if path.suffix == f".{ending}")
        self._names = {path.stem.casefold() for path in files}

    def path_for(self, title: str) -> Path:
        """Return a path that no other file has."""
        visible = _HIDDEN.sub("", title)
        plain = _NOT_IN_NAMES.sub(" ", unicodedata.normalize("NFC", visible).encode("utf-8", "replace").decode())
        short = " ".join(plain.split())[:_MAX_NAME].encode()[:_MAX_NAME_BYTES].decode(errors="ignore")
        stem = _DEVICE.sub(r"\1_", short.strip(" .")) or UNTITLED
        name, number = stem, 2
        while name.casefold() in self._names:
            name, number = f"{stem} {number}", number + 1
        self._names.add(name.casefold())
        return self._folder / f"{name}.{self._ending}"
