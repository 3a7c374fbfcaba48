"""Backups for the screens: written by hand and by the program itself, restored; and copies made before an upgrade."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from desktop_agent.engine.engine import Engine
from desktop_agent.storage.backups.backup import (
    BACKUP_FOLDER,
    Backup,
    StoredCounts,
    find_backup_folders,
    find_with_conversations,
    find_with_message,
    forget_backup_folders,
    is_backup_due,
    list_backups,
    remove_backup,
    remove_old_backups,
    remove_unfinished_backups,
    restore_backup,
    write_backup,
)
from desktop_agent.storage.backups.migration_copies import MigrationCopy, list_migration_copies, open_migration_copy
from desktop_agent.storage.compaction import compact
from desktop_agent.storage.files import delete_with_logs, find_set_aside
from desktop_agent.storage.opening import DATABASE_NAME
from desktop_agent.types.errors import AgentError, Sentence, StorageFailed, join_remedy
from ui.bridge.event_loop import BackgroundTasks, in_background

__all__ = ["Backup", "Backups", "MigrationCopy", "StoredCounts"]

_DAMAGED = ("damaged", "foreign", "kept")
"""The words in the names of files, also logs, that a repair or an opening has set aside."""
_REPLACED = ("replaced",)
"""A whole database: see `OpenFiles.keep_copy`."""
_INTERVALS = {"daily": timedelta(days=1), "weekly": timedelta(days=7)}


_AFTER_AUTOMATIC = Sentence("An automatic backup is being written. This begins by itself when it is done.")
_AFTER_OTHER = Sentence("Something else is being done with backups. This begins by itself when it is done.")
Work = Callable[[], Awaitable[tuple[Sentence, bool]]]
"""Returns how it ended, and whether it went well."""


class Backups(QObject):
    """Backs up, restores and compacts, one thing at a time. `done` says how each ended."""

    changed = Signal(list)
    """The backups in the folder that was chosen, the newest first."""
    copies_changed = Signal(list)
    """The MigrationCopies, the newest first."""
    begun = Signal(object)
    """A Sentence: what is being done just now, or waited for."""
    done = Signal(object, bool)
    """How it ended, as a Sentence, and whether it went well."""
    restored = Signal(object)
    """The Path of a new data folder that can be opened."""
    noticed = Signal(object)
    """A Sentence about an automatic backup that could not be written; once until one could."""
    deleted_but_kept = Signal(list, list, list)
    """Three lists of Paths: backups and copies that still have what was deleted for good, damaged files that may have
    it, and missing folders that had backups.
    """

    def __init__(self, engine: Engine, tasks: BackgroundTasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._tasks = tasks
        self._lock = asyncio.Lock()
        self._is_automatic = False
        """Whether the automatic backup has the lock."""
        self._running: set[asyncio.Task[None]] = set()
        """The running task, and those that wait for their turn."""
        self._has_failed = False

    @property
    def folder(self) -> Path:
        """The folder for backups. Raises StorageFailed if the chosen one is no absolute path."""
        chosen = self._engine.preferences.storage.backup_folder.strip()
        if not chosen:
            return self._engine.folder / BACKUP_FOLDER
        folder = Path(os.path.expanduser(chosen))  # noqa: PTH111  an unknown user is no error
        if not folder.is_absolute():
            sentence = Sentence("“{folder}” is not the full path of a folder for backups.", {"folder": chosen})
            raise StorageFailed(sentence, "Write the full path, or leave the field empty.")
        return folder

    def refresh(self) -> None:
        """Read backups and copies again."""
        self._tasks.start(self._refresh())

    def back_up(self) -> None:
        """Write a backup."""
        self._start(Sentence("Writing a backup…"), self._back_up)

    def restore(self, backup: Path, folder: Path) -> None:
        """Restore a backup into a new folder. What is open here stays as it is."""
        self._start(Sentence("Restoring…"), lambda: self._report_restored(restore_backup(backup, folder), folder))

    def open_copy(self, copy: Path, folder: Path) -> None:
        """Make a new data folder of a copy that was made before an upgrade."""
        self._start(
            Sentence("Restoring…"),
            lambda: self._report_restored(open_migration_copy(copy, self._engine.folder, folder), folder),
        )

    def delete(self, *paths: Path) -> None:
        """Delete these backups, and copies that were made before an upgrade."""
        self._start(Sentence("Deleting…"), lambda: self._delete(paths))

    def compact(self) -> None:
        """Make the database as small as its content."""
        self._start(Sentence("Compacting…"), self._compact)

    def cancel(self) -> None:
        """Cancel the running task and those that wait; nothing half done stays. An automatic backup goes on."""
        for task in self._running:
            task.cancel()

    async def write_if_due(self) -> None:
        """Write the automatic backup if it is due, and delete automatic ones beyond the number to keep."""
        preferences = self._engine.preferences.storage
        interval = _INTERVALS.get(preferences.backups)
        if interval is None or self._engine.store.read_only is not None or self._lock.locked():
            return
        try:
            async with self._lock:
                self._is_automatic = True
                await remove_unfinished_backups(self.folder)
                if not await is_backup_due(self._engine.folder, self.folder, interval):
                    return
                await write_backup(self._engine.store, self._engine.folder, self.folder, is_automatic=True)
                await remove_old_backups(self.folder, preferences.keep_backups)
        except AgentError as error:
            if not self._has_failed:
                why = Sentence("The automatic backup was not written: {why}", {"why": error.sentence})
                self.noticed.emit(join_remedy(why, error.remedy))
            self._has_failed = True
        else:
            self._has_failed = False
            await self._refresh()
        finally:
            self._is_automatic = False

    def find_deleted_conversations(self, conversation_ids: list[str]) -> None:
        """Find backups and copies that still have these conversations; `deleted_but_kept` names any."""
        self._tasks.start(self._find_deleted(lambda paths: find_with_conversations(paths, conversation_ids)))

    def find_deleted_message(self, conversation_id: str, message_id: str) -> None:
        """Find backups and copies that still have this message; `deleted_but_kept` names any."""
        self._tasks.start(self._find_deleted(lambda paths: find_with_message(paths, conversation_id, message_id)))

    def forget_folders(self, folders: Sequence[Path]) -> None:
        """Do not name these missing folders again."""
        self._tasks.start(forget_backup_folders(self._engine.folder, folders))

    async def _find_deleted(self, find: Callable[[Sequence[Path]], Awaitable[Sequence[Path]]]) -> None:
        folders, missing = await find_backup_folders(self._engine.folder)
        kept = await find([*await self._all_backups(folders), *await self._all_copies()])
        damaged = await asyncio.to_thread(find_set_aside, self._engine.folder / DATABASE_NAME, _DAMAGED)
        if kept or damaged or missing:
            self.deleted_but_kept.emit([*kept], [*damaged], [*missing])

    async def _all_backups(self, folders: Sequence[Path]) -> list[Path]:
        with suppress(StorageFailed):
            # The chosen folder may have backups of other versions or computers.
            folders = [*folders, self.folder]
        lists = [await list_backups(folder) for folder in folders]
        return list({backup.folder.resolve(): backup.folder for backups in lists for backup in backups}.values())

    async def _all_copies(self) -> list[Path]:
        replaced = await asyncio.to_thread(find_set_aside, self._engine.folder / DATABASE_NAME, _REPLACED)
        return [*(copy.path for copy in await list_migration_copies(self._engine.folder)), *replaced]

    async def _refresh(self) -> None:
        self.changed.emit([*await list_backups(self.folder)])
        self.copies_changed.emit([*await list_migration_copies(self._engine.folder)])

    @in_background
    async def _start(self, begun: Sentence, work: Work) -> None:
        task = asyncio.ensure_future(self._run_in_turn(begun, work))
        self._running.add(task)
        try:
            await asyncio.wait((task,))
            task.result()
        except asyncio.CancelledError:
            if not task.cancelled():
                # The program ends.
                task.cancel()
                await asyncio.wait((task,))
                raise
            self.done.emit(Sentence("Cancelled. Everything is as it was."), False)
        finally:
            self._running.discard(task)
        await self._refresh()

    async def _run_in_turn(self, begun: Sentence, work: Work) -> None:
        if self._lock.locked():
            self.begun.emit(_AFTER_AUTOMATIC if self._is_automatic else _AFTER_OTHER)
        async with self._lock:
            self.begun.emit(begun)
            try:
                result = await work()
            except AgentError as error:
                result = error.whole, False
            self.done.emit(*result)

    async def _back_up(self) -> tuple[Sentence, bool]:
        # The newest messages may still wait to be written.
        await self._engine.write_all()
        backup = await write_backup(self._engine.store, self._engine.folder, self.folder)
        return Sentence("The backup is in “{folder}”.", {"folder": str(backup.folder)}), True

    async def _report_restored(
        self, work: Awaitable[tuple[StoredCounts, StoredCounts]], folder: Path
    ) -> tuple[Sentence, bool]:
        before, after = await work
        self.restored.emit(folder)
        values = {"conversations": str(after.conversations + after.in_trash), "messages": str(after.messages)}
        if before == after:
            words = "Restored, as much as there was: conversations: {conversations}, messages: {messages}."
            return Sentence(words, values), True
        words = "Less was restored than there was. Conversations: {conversations} of {expected}."
        return Sentence(words, {**values, "expected": str(before.conversations + before.in_trash)}), False

    async def _delete(self, paths: Sequence[Path]) -> tuple[Sentence, bool]:
        for path in paths:
            is_backup = await asyncio.to_thread(path.is_dir)
            await (remove_backup(path) if is_backup else asyncio.to_thread(delete_with_logs, path))
        return Sentence("Backups and copies that were deleted: {count}.", {"count": str(len(paths))}), True

    async def _compact(self) -> tuple[Sentence, bool]:
        if self._engine.working_sessions:
            raise StorageFailed(Sentence("The model is still working."), "Wait until it is done, then compact.")
        sizes = await compact(self._engine.store, self._engine.folder)
        values = {"before": _megabytes(sizes.before), "after": _megabytes(sizes.after)}
        return Sentence("Compacted: {before} before, {after} now.", values), True


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
