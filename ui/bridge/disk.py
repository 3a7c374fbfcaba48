"""The disk for the screens: what it refuses, what was found and repaired on it, and checks of it."""

import asyncio
from datetime import datetime

from PySide6.QtCore import QObject, QTimer, Signal

from desktop_agent.engine.engine import Engine
from desktop_agent.vocabulary.errors import AgentError, StorageFailed
from ui.bridge.tasks import BackgroundTasks

IDLE_MS = 60_000
"""After the start, and after a moment in which a run was under way."""
_CHECK_INTERVAL_MS = 6 * 3_600_000


class DiskMonitor(QObject):
    """`noticed` carries a Sentence about what was found and repaired."""

    trouble_changed = Signal(object)
    """A StorageFailed, or None when the disk takes everything again."""
    recovered = Signal()
    """The same as None: what is listed may be another file now."""
    noticed = Signal(object)
    checking = Signal()
    """A check that somebody asked for has begun."""
    checked = Signal(object, bool)
    """How it went, as a Sentence, and whether all is well now."""

    def __init__(self, engine: Engine, tasks: BackgroundTasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._tasks = tasks
        self._store = engine.store
        self._store.on_notice(self.noticed.emit)
        self._store.disk.on_change(self._on_change)
        self._idle = QTimer(self, singleShot=True, interval=IDLE_MS)
        self._idle.timeout.connect(self._on_idle)
        self._idle.start()

    @property
    def trouble(self) -> StorageFailed | None:
        """What the disk refused last; None while it takes everything."""
        return self._store.disk.trouble

    @property
    def folder(self) -> str:
        """Where everything is."""
        return str(self._engine.folder)

    def check(self) -> None:
        """Check all of it, at once; `checked` says how it went."""
        self._tasks.start(self._check())

    async def last_check(self) -> datetime | None:
        """When nothing was found wrong last."""
        return await asyncio.to_thread(self._store.integrity_checker.last)

    def close(self) -> None:
        """Begin no more checks."""
        self._idle.stop()

    async def _check(self) -> None:
        self.checking.emit()
        try:
            result = await self._store.integrity_checker.run(full=True)
        except AgentError as error:
            self.checked.emit(error.whole, False)
            raise
        if result is not None:
            self.checked.emit(result, True)

    def _on_change(self, trouble: StorageFailed | None) -> None:
        self.trouble_changed.emit(trouble)
        if trouble is None:
            self.recovered.emit()

    def _on_idle(self) -> None:
        if self._engine.working or self.trouble is not None:
            self._idle.start(IDLE_MS)
            return
        self._idle.start(_CHECK_INTERVAL_MS)
        self._tasks.start(self._check_if_due())

    async def _check_if_due(self) -> None:
        if await asyncio.to_thread(self._store.integrity_checker.is_due):
            await self._store.integrity_checker.run(full=False)
