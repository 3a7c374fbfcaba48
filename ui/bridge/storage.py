"""The disk for the screens: its state and checks, picture files, files that the person saves."""

import asyncio
import errno
import os
import stat
from base64 import b64encode
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from uuid import uuid4

from PySide6.QtCore import QObject, QTimer, Signal

from desktop_agent.conversation.picture_preparation import ImportedPicture
from desktop_agent.engine.engine import Engine
from desktop_agent.storage.backups.backup import StoredCounts, measure_folder
from desktop_agent.storage.store import Store
from desktop_agent.types.blocks import Base64Source, Image, StoredSource, decode_base64, read_image_size
from desktop_agent.types.errors import AgentError, DiskFull, ImageRefused, Sentence, StorageFailed
from ui.bridge.backups import Backups
from ui.bridge.event_loop import BackgroundTasks, in_background

IDLE_MS = 60_000
"""Milliseconds after the start, and after a check that a run has prevented."""
_CHECK_INTERVAL_MS = 6 * 3_600_000


class DiskMonitor(QObject):
    """Watches the disk. `noticed` carries a Sentence about what was found and repaired."""

    trouble_changed = Signal(object)
    """A StorageFailed, or None when the disk takes everything again."""
    recovered = Signal()
    """The disk takes everything again. The database may be another file by now, so earlier reads are outdated."""
    noticed = Signal(object)
    checking = Signal()
    """A check that the person requested has begun."""
    checked = Signal(object, bool)
    """The result as a Sentence, and whether all is well."""

    def __init__(self, engine: Engine, tasks: BackgroundTasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._tasks = tasks
        self._store = engine.store
        self.backups = Backups(engine, tasks, self)
        self.backups.noticed.connect(self.noticed)
        self._is_closed = False
        """Whether nothing is emitted any more: the engine, which closes later, still reports troubles of the disk."""
        self._store.on_notice(self._on_notice)
        self._store.disk.on_change(self._on_change)
        self._idle = QTimer(self, singleShot=True, interval=IDLE_MS)
        self._idle.timeout.connect(self._on_idle)
        self._idle.start()

    @property
    def trouble(self) -> StorageFailed | None:
        """The last error of the disk; None while everything is saved."""
        return self._store.disk.trouble

    @property
    def folder(self) -> str:
        return str(self._engine.folder)

    @in_background
    async def check(self) -> None:
        """Check everything now; `checked` carries the result."""
        self.checking.emit()
        try:
            result = await self._store.integrity_checker.run(full=True)
        except AgentError as error:
            self.checked.emit(error.whole, False)
            raise
        if result is not None:
            self.checked.emit(result, True)

    async def count(self) -> tuple[StoredCounts, int]:
        """Return how much is stored, and its size in bytes without backups. Raises StorageFailed."""
        return await asyncio.to_thread(measure_folder, self._engine.folder)

    async def last_check(self) -> datetime | None:
        """Return when a check last found no fault."""
        return await asyncio.to_thread(self._store.integrity_checker.last)

    def close(self) -> None:
        """Begin no more checks, and emit nothing more."""
        self._is_closed = True
        self._idle.stop()

    def _on_notice(self, notice: Sentence) -> None:
        if not self._is_closed:
            self.noticed.emit(notice)

    def _on_change(self, trouble: StorageFailed | None) -> None:
        if self._is_closed:
            return
        self.trouble_changed.emit(trouble)
        if trouble is None:
            self.recovered.emit()

    def _on_idle(self) -> None:
        if self._engine.working_sessions or self.trouble is not None:
            self._idle.start(IDLE_MS)
            return
        self._idle.start(_CHECK_INTERVAL_MS)
        self._tasks.start(self._check_if_due())

    async def _check_if_due(self) -> None:
        if await asyncio.to_thread(self._store.integrity_checker.is_due):
            await self._store.integrity_checker.run(full=False)
        await self.backups.write_if_due()


class PictureStore:
    """The pictures of messages and drafts on the disk."""

    def __init__(self, store: Store) -> None:
        self._disk = store.disk
        self._files = store.pictures

    async def hold(self, picture: ImportedPicture, name: str) -> Image:
        """Return a block that contains the whole picture; nothing is saved."""
        data = await asyncio.to_thread(b64encode, picture.data)
        return Image(source=Base64Source(media_type=picture.media_type, data=data.decode()), name=name)

    async def save(self, picture: ImportedPicture, name: str) -> Image:
        """Save a picture. Returns its block for a message. Raises StorageFailed."""
        try:
            source = await self._files.put(picture.data, picture.media_type, picture.width, picture.height)
        except StorageFailed as error:
            self._disk.report_trouble(error)
            raise
        return Image(source=source, name=name)

    async def reload(self, image: Image) -> ImportedPicture:
        """Load a saved picture.

        Raises ImageRefused when its file is gone or damaged, StorageFailed when it cannot be read now.
        """
        source = image.source
        if isinstance(source, Base64Source):
            data = await asyncio.to_thread(decode_base64, source.data)
            width, height = read_image_size(data) or (0, 0)
            return ImportedPicture(data, source.media_type, width, height, ())
        if not isinstance(source, StoredSource):
            raise ImageRefused.unreadable(image.name or "")
        return ImportedPicture(await self._files.get(source), source.media_type, source.width, source.height, ())

    def path_of(self, source: StoredSource) -> Path:
        """Return the file of a saved picture."""
        return self._files.path_of(source)


class WebPictures:
    """Loads web pictures. A private address is loaded only after the person insisted on it."""

    def __init__(self) -> None:
        self._refused: dict[str, str] = {}
        self._allowed: dict[str, frozenset[str]] = {}

    async def load(self, address: str, *, insists: bool = False) -> bytes:
        """Return the bytes of a picture. `insists`: the person read why it was refused and wants it nevertheless.

        Raises ImageRefused; its kind is "private_address" if insisting helps.
        """
        # Late: most people never load a picture.
        from desktop_agent.network.fetch import PrivateImageHost, fetch_image

        allowed = self._allowed.get(address, frozenset[str]())
        if insists and address in self._refused:
            allowed = self._allowed[address] = allowed | {self._refused.pop(address)}
        try:
            return await fetch_image(address, allowed=allowed)
        except PrivateImageHost as error:
            self._refused[address] = error.host
            raise


_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NOT_ALLOWED = {errno.EACCES, errno.EPERM, errno.EROFS}
_NEW_FILE_MODE = 0o666
"""Before the umask."""


async def save_file(path: Path, data: bytes) -> None:
    """Write a file in a thread; an existing one is replaced and keeps its rights. Raises StorageFailed."""
    try:
        await asyncio.to_thread(_write_atomically, path, data)
    except OSError as error:
        raise _save_error(error, path) from error


def _write_atomically(path: Path, data: bytes) -> None:
    # Follow links: replacing a link would leave the old file where people expect the new one.
    target = path.resolve()
    temporary = target.with_name(f".{uuid4().hex}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    handle = os.open(temporary, flags, _NEW_FILE_MODE)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            _check_writable(target)
            temporary.chmod(stat.S_IMODE(target.stat().st_mode))
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def _check_writable(target: Path) -> None:
    """Raise OSError for a folder, and for a write-protected file."""
    with target.open("r+b"):
        pass


def _save_error(error: OSError, path: Path) -> AgentError:
    name, detail = str(path), f"{error.strerror}: {path}"
    if error.errno in _NO_ROOM:
        sentence = Sentence("There is no room left for “{path}”.", {"path": name})
        return DiskFull(sentence, "Free some space, or save it on another disk.", detail=detail)
    if error.errno in _NOT_ALLOWED:
        sentence = Sentence("“{path}” cannot be written to.", {"path": name})
        return StorageFailed(sentence, "Choose another folder, or change the rights of this one.", detail=detail)
    if error.errno in {errno.ENOENT, errno.ENOTDIR}:
        sentence = Sentence("The folder of “{path}” is gone.", {"path": name})
        return StorageFailed(sentence, "Choose another folder.", detail=detail)
    sentence = Sentence("“{path}” cannot be saved: {reason}.", {"path": name, "reason": error.strerror or str(error)})
    return StorageFailed(sentence, "Choose another name or another folder.", detail=detail)
