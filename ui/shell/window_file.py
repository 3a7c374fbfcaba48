"""The file that holds how the window looked last."""

import os
from collections.abc import Mapping
from pathlib import Path

from PySide6.QtCore import QByteArray, QSettings


class WindowFile:
    """`window.ini` in the data folder. It is written at once or not at all: QSettings by itself writes later, and makes
    a folder again that was moved away meanwhile, so that it could not be put back.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = str(folder / "window.ini")

    def values(self, *names: str) -> dict[str, object]:
        """What stands there under these names; those that are missing are left out."""
        settings = QSettings(self._path, QSettings.Format.IniFormat)
        return {name: settings.value(name) for name in names if settings.contains(name)}

    def text(self, name: str) -> str:
        """The same of one name, as text; empty where it is missing."""
        return str(self.values(name).get(name, ""))

    def save(self, values: Mapping[str, str | float | bool | QByteArray]) -> None:
        """Write what is new about these. Nothing happens where the folder is gone or cannot be written to."""
        old = self.values(*values)
        if all(str(old.get(name)).lower() == str(value).lower() for name, value in values.items()):
            return
        if not os.access(self._folder, os.W_OK):
            return
        settings = QSettings(self._path, QSettings.Format.IniFormat)
        for name, value in values.items():
            settings.setValue(name, value)
        settings.sync()
