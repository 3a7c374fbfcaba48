"""Exports and imports of conversations for the screens."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from desktop_agent.engine.engine import Engine
from desktop_agent.engine.exchange.conversation_exchange import (
    ConversationExchange,
    ExportFolder,
    ExportFormat,
    ExportResult,
    ImportResult,
    export_target,
    require_any,
)
from desktop_agent.engine.exchange.found_histories import FoundProgram
from desktop_agent.exchange.print_export import PrintedPart
from desktop_agent.types.conversation_tree import ConversationTree
from desktop_agent.types.errors import WrongUse
from ui.bridge.event_loop import BackgroundTasks
from ui.bridge.unstored import UnstoredConversations

_PROGRESS_SECONDS = 0.3
Progress = Callable[[int, int], None]


class Exchange(QObject):
    """One export or import at a time; another one waits for it."""

    progressed = Signal(int, int)
    """How much of how much is done."""
    exported = Signal(ExportResult)
    """`gone` has the titles, where they are known."""
    imported = Signal(ImportResult)
    programs_found = Signal(list)
    """The FoundPrograms, in the order in which they are shown."""
    ended = Signal()
    """Also after a failure, which is shown as any other error."""

    def __init__(
        self, engine: Engine, unstored: UnstoredConversations, tasks: BackgroundTasks, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._engine = engine
        self._unstored = unstored
        self._tasks = tasks
        self._exchange = ConversationExchange(engine.store)
        self._turn = asyncio.Lock()

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

    def find_programs(self) -> None:
        """Look for other assistants' conversations on this disk; `programs_found` answers."""
        self._tasks.start(self._find_programs())

    def import_found(self, programs: Sequence[str]) -> None:
        """Import what these programs left; `imported` is emitted for each."""
        for program in programs:
            self._tasks.start(self._do(partial(self._import_found, program)))

    async def _find_programs(self) -> None:
        programs: tuple[FoundProgram, ...] = await self._exchange.found_programs()
        self.programs_found.emit(list(programs))

    async def _import_found(self, program: str, progress: Progress) -> None:
        self.imported.emit(await self._exchange.import_found(program, on_progress=progress))

    async def _do(self, work: Callable[[Progress], Awaitable[None]]) -> None:
        async with self._turn:
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
        wanted, titles = await self._wanted(ids)
        result = await self._exchange.export(wanted, target, export_format, progress, in_folder=in_folder)
        self.exported.emit(replace(result, gone=tuple(titles.get(id_, id_) for id_ in result.gone)))

    async def _export_pdf(self, target: Path, conversation_id: str, progress: Progress) -> None:
        (conversation,), _ = await self._wanted([conversation_id])
        lost = await self._print(conversation, await self._title_of(conversation), target, progress)
        self.exported.emit(ExportResult((target,), lost))

    async def _export_pdfs(self, folder: Path, ids: Sequence[str] | None, progress: Progress) -> None:
        wanted, titles = await self._wanted(ids)
        require_any(wanted)
        names = await asyncio.to_thread(ExportFolder, folder, "pdf")
        files: list[Path] = []
        gone: list[str] = []
        lost = 0
        for conversation in wanted:
            progress(len(files) + len(gone), len(wanted))
            try:
                title = await self._title_of(conversation)
                path = names.path_for(title)
                lost += await self._print(conversation, title, path, lambda _done, _total: None)
            except WrongUse:
                id_ = conversation if isinstance(conversation, str) else conversation.id
                gone.append(titles.get(id_, id_))
                if len(gone) == len(wanted):
                    raise
            else:
                files.append(path)
        self.exported.emit(ExportResult(tuple(files), lost, tuple(gone)))

    async def _print(self, conversation: ConversationTree | str, title: str, target: Path, progress: Progress) -> int:
        """Print a conversation into a file; return the number of lost pictures."""
        # Late: the fonts and pages of Qt's printing are needed by few.
        from ui.bridge.pdf_pages import open_pdf

        place = await asyncio.to_thread(export_target, target, self._engine.folder)
        with open_pdf(place, title) as pages:

            async def add(part: PrintedPart) -> None:
                pages.add(part)
                progress(part.done, part.total)

            return await self._exchange.print_parts(conversation, add)

    async def _wanted(self, ids: Sequence[str] | None) -> tuple[Sequence[ConversationTree | str], dict[str, str]]:
        """Return what is to be exported, and the titles of what another process may delete meanwhile, by id."""
        # What was said a moment ago may wait for the disk.
        await self._engine.write_all()
        if ids is None:
            titles = {record.id: record.title for record in await self._engine.store.list_conversations()}
            return list(titles), titles
        wanted, titles = [self._in_memory_or_id(one) for one in ids], dict[str, str]()
        for one in wanted:
            # What is gone already is said by its id.
            with suppress(WrongUse):
                titles |= {one: await self._title_of(one)} if isinstance(one, str) else {}
        return wanted, titles

    async def _title_of(self, conversation: ConversationTree | str) -> str:
        if isinstance(conversation, str):
            return (await self._engine.record(conversation)).title
        return conversation.title

    def _in_memory_or_id(self, conversation_id: str) -> ConversationTree | str:
        return self._unstored.tree(conversation_id) or conversation_id

    async def _import(self, path: Path, progress: Progress) -> None:
        self.imported.emit(await self._exchange.import_file(path, progress))

    def _progress_reporter(self) -> Progress:
        """Return a function for another thread, of whose calls some are shown."""
        loop, last = asyncio.get_running_loop(), 0.0

        def report(done: int, total: int) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= _PROGRESS_SECONDS:
                last = now
                loop.call_soon_threadsafe(self.progressed.emit, done, total)

        return report
