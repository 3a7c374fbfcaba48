"""`window.json` in the data folder: the last place and look of the window, which is read before the preferences."""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


class WindowStateFile:
    """The file, read once and written in a thread, in the order in which values are saved: the disk may need seconds.

    QSettings cannot do that: it lets no other thread run Python while it waits for the disk.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "window.json"
        self._values = _read(self._path)
        self._writer: ThreadPoolExecutor | None = None

    def text(self, name: str) -> str:
        """Return a value as text, also one that is still being written; "" if it is missing."""
        return str(self._values.get(name, ""))

    def save(self, values: Mapping[str, str | float | bool]) -> None:
        """Begin to write what changed. Nothing is written if the folder is gone or read-only."""
        changed = {**self._values, **values}
        if changed == self._values:
            return
        self._values = changed
        # Late: nothing is saved before the first paint.
        from concurrent.futures import ThreadPoolExecutor

        if self._writer is None:
            self._writer = ThreadPoolExecutor(1, "window state")
        self._writer.submit(self._write, json.dumps(changed, indent=2))

    def close(self) -> None:
        """Wait until all is written."""
        if self._writer is not None:
            self._writer.shutdown()
            self._writer = None

    def _write(self, text: str) -> None:
        from desktop_agent.storage.files import write_atomically

        with suppress(OSError):
            write_atomically(self._path, text.encode("utf-8", "replace"))


def _read(path: Path) -> dict[str, object]:
    """Return what was saved; nothing where the file cannot be read or is damaged."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return _read_old(path.with_suffix(".ini"))
    except OSError:
        return {}
    with suppress(ValueError, TypeError, RecursionError):
        return cast("dict[str, object]", {**json.loads(data)})
    return {}


def _read_old(path: Path) -> dict[str, object]:
    """Return what earlier versions saved, with geometries in Base64."""
    if not path.exists():
        return {}
    from PySide6.QtCore import QByteArray, QSettings

    old = QSettings(str(path), QSettings.Format.IniFormat)
    values = {name: old.value(name) for name in old.allKeys()}
    return {
        name: value.toBase64().toStdString() if isinstance(value, QByteArray) else str(value)
        for name, value in values.items()
    }
