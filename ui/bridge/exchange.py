"""Exports and imports of conversations for the screens."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from PySide6.QtCore import QObject, Signal

from desktop_agent.engine.engine import Engine
from desktop_agent.engine.exchange.conversation_exchange import (
    ConversationExchange,
    ExportFormat,
    ExportResult,
    ImportResult,
    require_any,
)
from desktop_agent.engine.exchange.export_paths import ExportFolder, export_target
from desktop_agent.engine.exchange.found_histories import FoundProgram
from desktop_agent.exchange.print_export import PrintedPart
from desktop_agent.types.conversation_tree import ConversationTree
from desktop_agent.types.errors import WrongUse
from ui.bridge.event_loop import BackgroundTasks, in_background
from ui.bridge.unstored import UnstoredConversations

_PROGRESS_SECONDS = 0.3
Progress = Callable[[int, int], None]


class Exchange(QObject):
    """One export or import at a time; another one waits for it."""

    progressed = Signal(int, int)
    """The amount that is done, and the whole amount."""
    exported = Signal(ExportResult)
    """`gone` has titles where they are known, otherwise ids."""
    imported = Signal(ImportResult)
    programs_found = Signal(list)
    """The FoundPrograms, in the order in which they are shown."""
    stopped = Signal()
    """The person stopped all of them."""
    ended = Signal()
    """Emitted also after a failure, which is shown as any other error."""

    def __init__(
        self, engine: Engine, unstored: UnstoredConversations, tasks: BackgroundTasks, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._engine = engine
        self._unstored = unstored
        self._tasks = tasks
        self._exchange = ConversationExchange(engine.store)
        self._lock = asyncio.Lock()
        self._jobs: set[asyncio.Task[Any]] = set()

    def export(
        self,
        target: Path,
        export_format: ExportFormat,
        ids: Sequence[str] | None = None,
        *,
        in_folder: bool = False,
    ) -> None:
        """Export these conversations, or all of them; `in_folder`: each into a file in the folder `target`."""
        work = partial(self._export, target, export_format, ids, in_folder=in_folder)
        self._tasks.start(self._do(work))

    def export_pdf(self, target: Path, conversation_id: str) -> None:
        """Print this conversation into a file."""
        self._tasks.start(self._do(lambda progress: self._export_pdf(target, conversation_id, progress)))

    def export_pdfs(self, folder: Path, ids: Sequence[str] | None = None) -> None:
        """Print these conversations, or all of them, each into a file in the folder."""
        self._tasks.start(self._do(lambda progress: self._export_pdfs(folder, ids, progress)))

    def import_file(self, path: Path) -> None:
        """Import an archive of ours, or an account's export of ChatGPT or Claude."""
        self._tasks.start(self._do(lambda progress: self._import(path, progress)))

    @in_background
    async def stop(self) -> None:
        """Stop the one that works and those that wait. A file that is not complete is deleted; the others stay."""
        jobs = tuple(self._jobs)
        for job in jobs:
            job.cancel()
        if jobs:
            await asyncio.wait(jobs)
            self.stopped.emit()

    @in_background
    async def find_programs(self) -> None:
        """Look for other assistants' conversations on this disk; `programs_found` answers."""
        programs: tuple[FoundProgram, ...] = await self._exchange.found_programs()
        self.programs_found.emit(list(programs))

    def import_found(self, programs: Sequence[str]) -> None:
        """Import the conversations of these programs; `imported` is emitted for each."""
        for program in programs:
            self._tasks.start(self._do(partial(self._import_found, program)))

    async def _import_found(self, program: str, progress: Progress) -> None:
        self.imported.emit(await self._exchange.import_found(program, on_progress=progress))

    async def _do(self, work: Callable[[Progress], Awaitable[None]]) -> None:
        job = cast("asyncio.Task[Any]", asyncio.current_task())
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)
        async with self._lock:
            try:
                await work(self._progress_reporter())
            finally:
                self.ended.emit()

    async def _export(
        self,
        target: Path,
        export_format: ExportFormat,
        ids: Sequence[str] | None,
        progress: Progress,
        *,
        in_folder: bool,
    ) -> None:
        conversations, titles = await self._select(ids)
        result = await self._exchange.export(conversations, target, export_format, progress, in_folder=in_folder)
        self.exported.emit(replace(result, gone=tuple(titles.get(id_, id_) for id_ in result.gone)))

    async def _export_pdf(self, target: Path, conversation_id: str, progress: Progress) -> None:
        (conversation,), _ = await self._select([conversation_id])
        lost = await self._print(conversation, await self._title_of(conversation), target, progress)
        self.exported.emit(ExportResult((target,), lost))

    async def _export_pdfs(self, folder: Path, ids: Sequence[str] | None, progress: Progress) -> None:
        conversations, titles = await self._select(ids)
        require_any(conversations)
        names = await asyncio.to_thread(ExportFolder, folder, "pdf")
        files: list[Path] = []
        deleted: list[str] = []
        lost = 0
        for conversation in conversations:
            progress(len(files) + len(deleted), len(conversations))
            try:
                title = await self._title_of(conversation)
                path = names.path_for(title)
                lost += await self._print(conversation, title, path, lambda _done, _total: None)
            except WrongUse:
                id_ = conversation if isinstance(conversation, str) else conversation.id
                deleted.append(titles.get(id_, id_))
                if len(deleted) == len(conversations):
                    raise
            else:
                files.append(path)
        self.exported.emit(ExportResult(tuple(files), lost, tuple(deleted)))

    async def _print(self, conversation: ConversationTree | str, title: str, target: Path, progress: Progress) -> int:
        """Print a conversation into a file; return the number of lost pictures."""
        # Late: few people need Qt's printing.
        from ui.bridge.pdf_pages import open_pdf

        path = await asyncio.to_thread(export_target, target, self._engine.folder)
        with open_pdf(path, title) as pages:

            async def add(part: PrintedPart) -> None:
                pages.add(part)
                progress(part.done, part.total)

            return await self._exchange.print_parts(conversation, add)

    async def _select(self, ids: Sequence[str] | None) -> tuple[Sequence[ConversationTree | str], dict[str, str]]:
        """Return the conversations to export, and by id the titles of those that may be deleted meanwhile."""
        # The newest messages may still wait to be written.
        await self._engine.write_all()
        if ids is None:
            titles = {record.id: record.title for record in await self._engine.store.list_conversations()}
            return list(titles), titles
        conversations, titles = [self._unstored.tree(id_) or id_ for id_ in ids], dict[str, str]()
        for conversation in conversations:
            # One that is already deleted is named by its id.
            with suppress(WrongUse):
                titles |= {conversation: await self._title_of(conversation)} if isinstance(conversation, str) else {}
        return conversations, titles

    async def _title_of(self, conversation: ConversationTree | str) -> str:
        if isinstance(conversation, str):
            return (await self._engine.record(conversation)).title
        return conversation.title

    async def _import(self, path: Path, progress: Progress) -> None:
        self.imported.emit(await self._exchange.import_file(path, progress))

    def _progress_reporter(self) -> Progress:
        """Return a function that another thread may call often; some of its calls are shown."""
        # Nothing is shown of a job that ends at once.
        loop, last = asyncio.get_running_loop(), time.monotonic()

        def report(done: int, total: int) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= _PROGRESS_SECONDS:
                last = now
                loop.call_soon_threadsafe(self.progressed.emit, done, total)

        return report
