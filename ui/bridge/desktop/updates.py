"""Look for a newer version of the program: when the person asks, or once a day if they switched that on.

Nothing is downloaded or installed. The address to ask is set when the program is built: docs/releasing.md.
"""

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import AwareDatetime, BaseModel
from PySide6.QtCore import QCoreApplication, QObject, QTimer, Signal, Slot

from desktop_agent.engine.engine import Engine
from desktop_agent.network.hosts import FetchFailed
from desktop_agent.network.release_feed import Release, fetch_release, is_newer
from desktop_agent.storage.files import write_atomically
from desktop_agent.types.errors import Sentence
from desktop_agent.types.preferences import Preferences
from resources import resource_path
from ui.bridge.desktop.autostart import is_sandboxed_package
from ui.bridge.event_loop import BackgroundTasks

FEED_RESOURCE = "updates.json"
"""Written by `packaging/build.py`; a checkout has none."""
BY_SYSTEM = "system"
"""In place of an address: a store or the system's package manager updates this build."""

IDLE_MS = 60_000
"""Milliseconds after the start, and after a check that a run has prevented."""
_CHECK_INTERVAL_MS = 3_600_000
_INTERVAL = timedelta(days=1)
_MAX_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class UpdateSource:
    """The address of the feed; or an empty one, and why there is none."""

    feed: str
    why_not: Sentence | None = None

    @property
    def host(self) -> str:
        """The host that is asked, as a person reads it."""
        return self.feed.partition("://")[2].partition("/")[0].rpartition("@")[2]


def update_source() -> UpdateSource:
    """Return the address that this build asks. It reads a small file."""
    by_system = UpdateSource("", Sentence("New versions come with your system's software updates."))
    if is_sandboxed_package():
        return by_system
    try:
        feed: Any = json.loads(resource_path(FEED_RESOURCE).read_text(encoding="utf-8"))["feed"]
    except (OSError, ValueError, KeyError, TypeError):
        feed = None
    if feed == BY_SYSTEM:
        return by_system
    if isinstance(feed, str) and feed:
        return UpdateSource(feed)
    return UpdateSource("", Sentence("This build has no address to ask for new versions."))


class _State(BaseModel):
    """What is remembered from one start to the next."""

    asked: AwareDatetime | None = None
    answered: AwareDatetime | None = None
    release: Release | None = None
    dismissed: str = ""


class UpdateChecks(QObject):
    """Checks for updates, and remembers what the last check found. `changed`: read the properties again."""

    changed = Signal()
    found = Signal(object)
    """A newer Release, not dismissed, once for each version; only with the daily check switched on."""

    def __init__(self, engine: Engine, tasks: BackgroundTasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._path = engine.folder / "update-check.json"
        self._tasks = tasks
        self._state = _State()
        self._is_loaded = False
        self._lock = asyncio.Lock()
        self._announced = ""
        self._is_daily = self.is_daily
        self.source = update_source()
        self.is_checking = False
        self.problem: Sentence | None = None
        """Why the last check failed."""
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self._on_idle)
        engine.on_preferences(self._on_preferences)

    @property
    def answered(self) -> datetime | None:
        """When the feed last named a version."""
        return self._state.answered

    @property
    def newer(self) -> Release | None:
        """The newest known release, if it is newer than this program."""
        release, own = self._state.release, QCoreApplication.applicationVersion()
        return release if release is not None and is_newer(release.version, own) else None

    @property
    def is_daily(self) -> bool:
        """Whether the person switched the daily check on."""
        return self._engine.preferences.network.check_for_updates

    def start(self) -> None:
        """Check once a day from now on, while no run is under way."""
        self._timer.start(IDLE_MS)

    def close(self) -> None:
        """Stop the daily check: the program ends."""
        self._timer.stop()

    def load(self) -> None:
        """Read what the last check found."""
        self._tasks.start(self._load())

    def check(self) -> None:
        """Check now, as the person requested."""
        if self.source.feed and not self.is_checking:
            self._tasks.start(self._check())

    def dismiss(self, version: str) -> None:
        """Do not announce this version again."""
        self._tasks.start(self._remember(dismissed=version))

    def _on_preferences(self, _: Preferences) -> None:
        was_daily, self._is_daily = self._is_daily, self.is_daily
        if self._is_daily and not was_daily and self._timer.isActive():
            self._timer.start(IDLE_MS)
        if self._is_daily != was_daily:
            self.changed.emit()

    @Slot()
    def _on_idle(self) -> None:
        if not self.is_daily or not self.source.feed:
            self._timer.start(_CHECK_INTERVAL_MS)
        elif self._engine.working_sessions:
            self._timer.start(IDLE_MS)
        else:
            self._timer.start(_CHECK_INTERVAL_MS)
            self._tasks.start(self._check_daily())

    async def _check_daily(self) -> None:
        await self._load()
        if self._is_due():
            await self._check()
        release = self.newer
        is_news = release is not None and release.version not in {self._announced, self._state.dismissed}
        if release is not None and is_news and self.is_daily:
            self._announced = release.version
            self.found.emit(release)

    def _is_due(self) -> bool:
        # A clock that was set back must not delay the next check.
        asked, now = self._state.asked, datetime.now(UTC)
        return asked is None or not asked <= now < asked + _INTERVAL

    async def _check(self) -> None:
        if self.is_checking:
            return
        self.is_checking = True
        self.problem = None
        self.changed.emit()
        try:
            # Before the answer, so that a failed check counts too.
            await self._remember(asked=datetime.now(UTC))
            release = await fetch_release(self.source.feed)
            await self._remember(release=release, answered=datetime.now(UTC))
        except FetchFailed as error:
            self.problem = Sentence("The check failed: {why}", {"why": error.sentence})
        finally:
            self.is_checking = False
            self.changed.emit()

    async def _load(self) -> None:
        async with self._lock:
            if not self._is_loaded:
                self._state = await asyncio.to_thread(_read, self._path)
                self._is_loaded = True
        self.changed.emit()

    async def _remember(self, **changes: Any) -> None:
        await self._load()
        async with self._lock:
            self._state = self._state.model_copy(update=changes)
            await asyncio.to_thread(_write, self._path, self._state)


def _read(path: Path) -> _State:
    try:
        with path.open("rb") as file:
            return _State.model_validate_json(file.read(_MAX_BYTES))
    except (OSError, ValueError):
        return _State()


def _write(path: Path, state: _State) -> None:
    """Write the state. If that fails, the check is repeated after the next start, at worst."""
    with suppress(OSError):
        write_atomically(path, state.model_dump_json().encode())
