"""Exports stored conversations into files, and imports them from files and from other programs' histories."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeVar

from desktop_agent.conversation.file_changes import file_changes
from desktop_agent.engine.exchange.export_paths import ExportFolder, export_target
from desktop_agent.engine.exchange.found_histories import (
    FoundProgram,
    list_conversations,
    list_programs,
    load_found,
    reader_of,
)
from desktop_agent.engine.undo_forecast import match_saved_calls
from desktop_agent.exchange.archive import picture_name, pictures_of, write_archive
from desktop_agent.exchange.branch_view import ShownCall
from desktop_agent.exchange.conversation_json import write_conversations
from desktop_agent.exchange.html_export import ShownChange, write_html
from desktop_agent.exchange.import_conversations import ConversationImport
from desktop_agent.exchange.import_report import ImportReport, Skipped
from desktop_agent.exchange.markdown_export import export_markdown
from desktop_agent.exchange.print_export import PrintedPart, printed_parts
from desktop_agent.exchange.readers.reader import FoundConversation, HistoryReader, HistoryUnreadable
from desktop_agent.processes.worker_threads import WorkerThread, wait_to_end
from desktop_agent.storage.files import file_error, write_atomically
from desktop_agent.storage.store import Store
from desktop_agent.types.blocks import Outcome, StoredSource
from desktop_agent.types.checkpoints import CheckpointedCall
from desktop_agent.types.conversation_tree import ConversationTree
from desktop_agent.types.errors import AgentError, ImageRefused, Sentence, StorageFailed, WrongUse
from desktop_agent.types.messages import new_id

T = TypeVar("T")
Progress = Callable[[int, int], None]
"""How much of how much is done; called in another thread."""


class ExportFormat(StrEnum):
    """ARCHIVE is a zip of JSON and pictures, which can be imported again; so can JSON, which has no pictures."""

    ARCHIVE = "zip"
    JSON = "json"
    MARKDOWN = "md"
    HTML = "html"


_SINGLE_FILES = {ExportFormat.ARCHIVE, ExportFormat.JSON}


@dataclass(frozen=True, slots=True)
class ExportResult:
    """What was written: the files, and how many pictures could not be read.

    `gone` are the ids of conversations that are not there, such as those that were deleted meanwhile.
    """

    files: tuple[Path, ...]
    lost_pictures: int = 0
    gone: tuple[str, ...] = ()


@dataclass(slots=True)
class ImportResult:
    """What came of an import. `present` were there already; `skipped` says what was left out, and why."""

    added: list[str] = field(default_factory=list[str])
    present: int = 0
    skipped: list[Skipped] = field(default_factory=list[Skipped])
    report: ImportReport = field(default_factory=ImportReport)


class ConversationExchange:
    """Exports from and imports into one store. The work is done in a thread, one conversation in memory at a time."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def export(
        self,
        conversations: Sequence[str | ConversationTree],
        target: Path,
        export_format: ExportFormat,
        on_progress: Progress | None = None,
        *,
        in_folder: bool = False,
    ) -> ExportResult:
        """Write conversations, by their ids or as they are in memory, into `target`.

        That is a file for JSON, for an archive, and for one conversation in another format; for several of them, and
        with `in_folder` or where it is a folder already for one too, it is a folder, named without the ending of the
        format. Pictures of Markdown lie in the folder `pictures` beside it.
        Raises WrongUse where none of the conversations is there, StorageFailed, and ExtraMissing where the libraries of
        the format are not installed.
        """
        export = _Export(target, export_format, on_progress, in_folder=in_folder)
        return await self._in_thread(lambda store: export.run(store, conversations))

    async def print_parts(
        self, conversation: str | ConversationTree, show: Callable[[PrintedPart], Awaitable[None]]
    ) -> int:
        """Hand a conversation, by its id or as it is in memory, to `show` part by part, each after the one before.

        `show` is awaited in this event loop. Return the number of lost pictures. Raises what it raises, WrongUse for an
        unknown conversation, StorageFailed, and ExtraMissing where the Markdown parser is missing.
        """
        return await self._in_thread(lambda store: _print_parts(store, conversation, show))

    async def import_file(self, path: Path, on_progress: Progress | None = None) -> ImportResult:
        """Import an archive, folder or file of this program, or an account's export of ChatGPT or Claude.

        What is there already is left alone. Raises ExchangeFailed for a file of another kind, and StorageFailed; what
        was imported until then stays.
        """
        return await self._in_thread(lambda store: _import_file(store, path, on_progress))

    async def found_programs(self) -> tuple[FoundProgram, ...]:
        """Return the other assistants that left conversations on this disk, with the number of these."""
        return await self._in_thread(lambda _: list_programs())

    async def found_conversations(self, program: str) -> tuple[FoundConversation, ...]:
        """Return what one of them left, the newest first. Raises WrongUse for an unknown program."""
        return await self._in_thread(lambda _: list_conversations(program))

    async def import_found(
        self, program: str, conversation_ids: Sequence[str] | None = None, on_progress: Progress | None = None
    ) -> ImportResult:
        """Import conversations of another assistant, all or these; their own files stay as they are.

        What is there already is left alone. Raises WrongUse for an unknown program, and StorageFailed.
        """
        reader = reader_of(program)
        return await self._in_thread(lambda store: _import_found(store, reader, conversation_ids, on_progress))

    async def _in_thread(self, work: Callable[["_BlockingStore"], T]) -> T:
        store = _BlockingStore(self._store, asyncio.get_running_loop())
        worker = WorkerThread("exchange")
        try:
            return await wait_to_end(asyncio.wrap_future(worker.submit(lambda: work(store))), store.stop)
        finally:
            worker.stop()


class _Stopped(Exception):
    """Nobody waits for the result any more."""


class _BlockingStore:
    """The store, for a thread: each call waits for the event loop."""

    def __init__(self, store: Store, loop: asyncio.AbstractEventLoop) -> None:
        self._store = store
        self._loop = loop
        self._is_stopped = threading.Event()

    def stop(self) -> None:
        """End the thread at its next call."""
        self._is_stopped.set()

    def raise_if_stopped(self) -> None:
        if self._is_stopped.is_set():
            raise _Stopped

    @property
    def folder(self) -> Path:
        return self._store.folder

    def load(self, conversation_id: str) -> ConversationTree:
        return self.wait(self._store.load_tree(conversation_id))

    def saved_calls(self, tree: ConversationTree) -> dict[tuple[str, str], CheckpointedCall]:
        """Return what checkpoints say of the calls in view, by the ids of message and call."""
        checkpoints = self.wait(self._store.checkpoints.of_conversation(tree.id))
        saved: dict[tuple[str, str], CheckpointedCall] = {}
        for call in match_saved_calls(checkpoints, tree.branch(), ()):
            if call.is_redo:
                continue
            # What was redone has a checkpoint more, and is undone again once all are restored.
            first = saved.setdefault((call.message_id, call.tool_use_id), call)
            saved[call.message_id, call.tool_use_id] = replace(first, restored=first.restored and call.restored)
        return saved

    def add(self, tree: ConversationTree) -> bool:
        return self.wait(self._store.import_tree(tree))

    def read_picture(self, source: StoredSource) -> bytes | None:
        try:
            return self.wait(self._store.pictures.get(source))
        except AgentError:
            return None

    def write_picture(self, source: StoredSource, data: bytes) -> None:
        self._store.pictures.write(source.digest, source.media_type, data)

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of this work, which is done in the event loop."""
        if self._is_stopped.is_set():
            work.close()
            raise _Stopped
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


def _find_changes(saved: Mapping[tuple[str, str], CheckpointedCall], shown: ShownCall) -> list[ShownChange]:
    """Return the files that a call changes, with what their checkpoint says of them."""
    call = saved.get((shown.message_id, shown.call.id))
    is_nothing = call is not None and call.changed_nothing
    real = None if call is None else (0, 0) if is_nothing else call.lines
    is_undone = call is not None and call.restored
    is_likely = real is not None or shown.result is None or shown.result.outcome is Outcome.SUCCEEDED
    return [
        ShownChange(
            change.path,
            change.counts if is_likely else (0, 0),
            change.text,
            change.is_diff,
            is_nothing=is_nothing,
            is_undone=is_undone,
        )
        for change in file_changes(shown.call.name, shown.arguments, real)
    ]


def _print_parts(
    store: _BlockingStore, conversation: str | ConversationTree, show: Callable[[PrintedPart], Awaitable[None]]
) -> int:
    lost = 0

    def read_picture(source: StoredSource) -> bytes | None:
        nonlocal lost
        data = store.read_picture(source)
        lost += data is None
        return data

    async def shown(part: PrintedPart) -> None:
        await show(part)

    tree = store.load(conversation) if isinstance(conversation, str) else conversation
    for part in printed_parts(tree, read_picture, partial(_find_changes, store.saved_calls(tree))):
        store.wait(shown(part))
    return lost


class _Export:
    _store: _BlockingStore

    def __init__(
        self, target: Path, export_format: ExportFormat, on_progress: Progress | None, *, in_folder: bool
    ) -> None:
        self._in_folder = in_folder
        self._target = target
        self._format = export_format
        self._on_progress = on_progress
        self._is_single = False
        self._lost = 0
        self._gone: list[str] = []

    def run(self, store: _BlockingStore, conversations: Sequence[str | ConversationTree]) -> ExportResult:
        self._store = store
        self._is_single = len(conversations) == 1
        require_any(conversations)
        try:
            if self._format in _SINGLE_FILES:
                self._write(self._target, lambda file: self._write_all(file, conversations))
                files = (self._target,)
            else:
                files = tuple(self._write_each(conversations))
            return ExportResult(files, self._lost, tuple(self._gone))
        except OSError as error:
            raise file_error(error, self._target) from error

    def _write_all(self, file: IO[bytes], conversations: Sequence[str | ConversationTree]) -> None:
        if self._format is ExportFormat.JSON:
            write_conversations(self._loaded(conversations), partial(self._write_piece, file))
        else:
            counts = write_archive(file, self._loaded(conversations), self._store.read_picture)
            self._lost += counts.lost_pictures

    def _write_each(self, conversations: Sequence[str | ConversationTree]) -> Iterator[Path]:
        is_file = self._is_single and not self._in_folder and not self._target.is_dir()
        folder = None if is_file else ExportFolder(self._target, self._format.value)
        for tree in self._loaded(conversations):
            path = self._target if folder is None else folder.path_for(tree.title)
            if self._format is ExportFormat.HTML:
                self._write(path, partial(self._write_page, tree))
            else:
                self._write_markdown(path, tree)
            yield path

    def _write_page(self, tree: ConversationTree, file: IO[bytes]) -> None:
        find_changes = partial(_find_changes, self._store.saved_calls(tree))
        write_html(tree, file.write, self._store.read_picture, find_changes, self._on_turn)

    def _write_piece(self, file: IO[bytes], piece: bytes) -> None:
        self._store.raise_if_stopped()
        file.write(piece)

    def _on_turn(self, done: int, total: int) -> None:
        self._store.raise_if_stopped()
        if self._is_single and self._on_progress is not None:
            self._on_progress(done, total)

    def _write_markdown(self, path: Path, tree: ConversationTree) -> None:
        # Before the pictures, so that none is left beside a file that cannot be written.
        path = export_target(path, self._store.folder)
        exported = export_markdown(tree)
        for source in exported.pictures:
            data = self._store.read_picture(source)
            if data is None:
                self._lost += 1
                continue
            picture = path.parent / picture_name(source)
            picture.parent.mkdir(exist_ok=True)
            write_atomically(picture, data)
        self._write(path, lambda file: file.write(exported.text.encode()))

    def _loaded(self, conversations: Sequence[str | ConversationTree]) -> Iterator[ConversationTree]:
        for done, conversation in enumerate(conversations):
            if self._on_progress is not None:
                self._on_progress(done, len(conversations))
            if not isinstance(conversation, str):
                yield conversation
                continue
            try:
                tree = self._store.load(conversation)
            except WrongUse:
                self._gone.append(conversation)
                if len(self._gone) == len(conversations):
                    raise
            else:
                yield tree

    def _write(self, path: Path, write: Callable[[IO[bytes]], object]) -> None:
        """Write a file that has its name only when it is whole. A link stays, and what it leads to is replaced."""
        path = export_target(path, self._store.folder)
        # A short name that nobody else writes: another export may have the same target.
        unfinished = path.with_name(f".{new_id()}.unfinished")
        try:
            with unfinished.open("wb") as file:
                write(file)
            unfinished.replace(path)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise


def require_any(conversations: Sequence[object]) -> None:
    """Raise WrongUse where there is nothing to export."""
    if not conversations:
        raise WrongUse("There is nothing to export.", "Name a conversation.")


def _import_file(store: _BlockingStore, path: Path, on_progress: Progress | None) -> ImportResult:
    result = ImportResult()

    def report_progress(done: int, total: int) -> None:
        store.raise_if_stopped()
        if on_progress is not None:
            on_progress(done, total)

    with ConversationImport(path, report_progress) as source:
        result.report = source.report
        for entry in source:
            if isinstance(entry, Skipped):
                result.skipped.append(entry)
                continue
            # A file from anywhere must not say where tools may work.
            tree = entry.model_copy(update={"workspace": None})
            with _naming_imported(result):
                _store_pictures(store, tree, source)
                is_new = store.add(tree)
            if not is_new:
                result.present += 1
                continue
            result.added.append(tree.id)
            if entry.workspace is not None:
                result.report.add(_NO_WORKSPACE)
    return result


_NO_WORKSPACE = Sentence("Workspace folders: the conversations start without one here. Choose it again.")
_IMPORT_AGAIN = "{remedy} Then import again; what is here already is left alone."


@contextmanager
def _naming_imported(result: ImportResult) -> Generator[None]:
    """Have an error of the disk say what was imported before it."""
    try:
        yield
    except StorageFailed as error:
        values = {"why": error.sentence, "added": str(len(result.added))}
        sentence = Sentence("{why} Imported before that, and kept: {added}.", values)
        remedy = Sentence(_IMPORT_AGAIN, {"remedy": error.remedy})
        raise type(error)(sentence, remedy, detail=error.detail) from error


def _import_found(
    store: _BlockingStore, reader: HistoryReader, chosen_ids: Sequence[str] | None, on_progress: Progress | None
) -> ImportResult:
    result = ImportResult()
    titles = {conversation.id: conversation.title for conversation in reader.list_conversations()}
    result.report.add_all(reader.report)
    ids = list(titles) if chosen_ids is None else chosen_ids
    for done, foreign_id in enumerate(ids):
        store.raise_if_stopped()
        if on_progress is not None:
            on_progress(done, len(ids))
        try:
            loaded = load_found(reader, foreign_id)
        except HistoryUnreadable as error:
            result.skipped.append(Skipped(titles.get(foreign_id, foreign_id), error.sentence))
            continue
        with _naming_imported(result):
            is_new = store.add(loaded.tree)
        if not is_new:
            result.present += 1
            continue
        result.added.append(loaded.tree.id)
        result.report.add_all(loaded.report)
    return result


def _store_pictures(store: _BlockingStore, tree: ConversationTree, source: ConversationImport) -> None:
    """Write the pictures of a conversation. One that is missing is missing in the conversation too."""
    for picture in _stored_sources(tree):
        try:
            data = source.read_picture(picture)
        except ImageRefused:
            continue
        store.write_picture(picture, data)


def _stored_sources(tree: ConversationTree) -> Iterable[StoredSource]:
    sources = (image.source for node in tree.messages for image in pictures_of(node.message))
    return {source.digest: source for source in sources if isinstance(source, StoredSource)}.values()
