"""Conversations that other assistants left on this disk: listed, read where they are, and continued as copies."""

import asyncio
import logging
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from desktop_agent.engine.exchange.conversation_copies import OWN_PROGRAM
from desktop_agent.engine.session_controls import SessionSetup
from desktop_agent.engine.session_opening import read_only_session
from desktop_agent.exchange.foreign_tree import found_id
from desktop_agent.exchange.import_conversations import ExportKind
from desktop_agent.exchange.import_report import Omission
from desktop_agent.exchange.readers import HISTORY_READERS
from desktop_agent.exchange.readers.foreign_database import SharedCopies, remove_left_copies
from desktop_agent.exchange.readers.reader import (
    FoundConversation,
    HistoryReader,
    HistoryUnreadable,
    Limits,
    LoadedConversation,
    Machine,
)
from desktop_agent.processes.worker_threads import WorkerThread, wait_to_end
from desktop_agent.providers.provider import Provider
from desktop_agent.storage.records import ConversationRecord
from desktop_agent.storage.search.found_index import FoundEntry, IndexingStopped
from desktop_agent.tools.tool import ToolRegistry
from desktop_agent.types.conversation_tree import ConversationTree
from desktop_agent.types.errors import Sentence, StorageFailed, WrongUse
from desktop_agent.types.messages import Message, new_id, now
from desktop_agent.types.providers import ProviderConfig

if TYPE_CHECKING:
    from desktop_agent.engine.engine import Engine
    from desktop_agent.engine.session import Session

_log = logging.getLogger(__name__)
T = TypeVar("T")

_INDEX_LIMITS = Limits(file=64_000_000, database_copy=500_000_000)
"""Of one conversation so much is indexed: nobody waits for it, but others need the processor.

It is the beginning of what is read when the conversation is opened. No line in between may be left out: where a
program's messages have no ids, they are numbered.
"""


_ACCOUNTS = {ExportKind.CHATGPT.value: "ChatGPT", ExportKind.CLAUDE.value: "Claude"}
"""Programs whose exports are imported, with their names for people."""

_CONTENT_VERSION = 2
"""One more when more of a conversation is indexed than before: then all are read again."""


@dataclass(frozen=True, slots=True)
class FoundProgram:
    """Another assistant with conversations on this disk; `title` is its name for people."""

    program: str
    title: str
    count: int


def reader_of(program: str) -> HistoryReader:
    """Return the reader of a program. Raises WrongUse for one that is unknown."""
    for reader in HISTORY_READERS:
        if reader.program == program:
            return reader(Machine.current())
    known = ", ".join(reader.program for reader in HISTORY_READERS)
    raise WrongUse(
        Sentence("No histories of “{program}” can be read.", {"program": program}),
        Sentence("Name one of: {known}.", {"known": known}),
    )


def program_title(program: str) -> str:
    """Return the name for people of the program that a conversation came from; "" where it began in this one."""
    titles = {reader.program: reader.title for reader in HISTORY_READERS}
    return {**titles, **_ACCOUNTS, OWN_PROGRAM: ""}.get(program, program)


def list_programs() -> tuple[FoundProgram, ...]:
    """Return the programs with conversations on this disk. Blocking."""
    readers = [reader_class(Machine.current()) for reader_class in HISTORY_READERS]
    counted = ((reader, _count(reader)) for reader in readers)
    return tuple(FoundProgram(reader.program, reader.title, count) for reader, count in counted if count)


def _count(reader: HistoryReader) -> int:
    try:
        return sum(1 for _ in reader.list_conversations()) if reader.is_present() else 0
    except Exception:  # noqa: BLE001 - what is in the folder of one program must not hide the others
        _log.exception("the conversations of %s could not be listed", reader.program)
        return 0


def list_conversations(program: str) -> tuple[FoundConversation, ...]:
    """Return what a program left, the newest first. Blocking. Raises WrongUse for an unknown program."""
    return tuple(sorted(reader_of(program).list_conversations(), key=lambda found: -found.updated_at.timestamp()))


def load_found(reader: HistoryReader, conversation_id: str) -> LoadedConversation:
    """Return a conversation; one whose folder is gone works in none. Blocking. Raises HistoryUnreadable."""
    loaded = reader.load(conversation_id)
    workspace = loaded.tree.workspace
    if workspace is None or Path(workspace).is_dir():
        return loaded
    return replace(loaded, tree=loaded.tree.model_copy(update={"workspace": None}))


class FoundHistorySource:
    """What the search indexes of these programs: all branches of each conversation. Unknown programs are ignored.

    Blocking, and for one thread at a time. See FoundSource of `desktop_agent.storage.search.found_indexer`.
    """

    def __init__(self, programs: Iterable[str]) -> None:
        names = set(programs)
        self._readers = [reader for reader in HISTORY_READERS if reader.program in names]
        self.titles = {reader.program: reader.title for reader in self._readers}

    def entries(self, pause: Callable[[], None]) -> tuple[Sequence[FoundEntry], Collection[str]]:
        """Return what the programs left, and which of them could not be listed whole just now."""
        remove_left_copies()
        limits = replace(_INDEX_LIMITS, pause=pause)
        entries: list[FoundEntry] = []
        unclear: set[str] = set()
        for reader_class in self._readers:
            listed = _list_entries(reader_class(Machine.current(), limits))
            if listed is None:
                unclear.add(reader_class.program)
            else:
                entries += listed
        return entries, unclear

    def load(
        self, entries: Iterable[FoundEntry], pause: Callable[[], None]
    ) -> Generator[tuple[FoundEntry, Sequence[Message] | None]]:
        """Yield the messages of each; None for what cannot be read."""
        limits = replace(_INDEX_LIMITS, pause=pause)
        readers = {reader.program: reader(Machine.current(), limits) for reader in self._readers}
        with SharedCopies() as copies:
            for entry in entries:
                with copies.in_use():
                    messages = _load_messages(readers[entry.origin[0]], entry.origin[1])
                yield entry, messages


def _load_messages(reader: HistoryReader, conversation_id: str) -> Sequence[Message] | None:
    try:
        return [node.message for node in reader.load(conversation_id).tree.messages]
    except HistoryUnreadable:
        return None
    except IndexingStopped:
        raise
    except Exception:  # noqa: BLE001 - what one file does must not keep the others from being found
        _log.exception("a conversation of %s could not be indexed", reader.program)
        return None


def _list_entries(reader: HistoryReader) -> Sequence[FoundEntry] | None:
    """Return what a program left; None where that cannot be read just now."""
    try:
        entries = [_entry_of(reader.program, found) for found in reader.list_conversations()]
        # A database that is being written: all of it is missing, not one file of many.
        is_unclear = not entries and reader.report.count(Omission.UNREADABLE_FILE) and reader.is_present()
    except IndexingStopped:
        raise
    except Exception:  # noqa: BLE001 - what is in the folder of one program must not keep the others from being found
        _log.exception("the conversations of %s could not be listed", reader.program)
        return None
    return None if is_unclear else entries


def _entry_of(program: str, found: FoundConversation) -> FoundEntry:
    changed = f"{_CONTENT_VERSION} {found.updated_at.isoformat()} {found.file_state} {found.title}"
    return FoundEntry(
        (program, found.id),
        found_id(program, found.id),
        found.title,
        found.created_at,
        found.updated_at,
        changed.encode("utf-8", "replace").decode(),
        found.workspace,
        found.model,
    )


class FoundHistories:
    """Reads in a thread of its own, and never writes to the files of other programs."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine

    async def programs(self) -> tuple[FoundProgram, ...]:
        """Return the programs with conversations on this disk."""
        return await self._in_thread(list_programs)

    async def conversations(self, program: str) -> tuple[FoundConversation, ...]:
        """Return what a program left, the newest first. Raises WrongUse for an unknown program."""
        return await self._in_thread(lambda: list_conversations(program))

    async def open(self, program: str, conversation_id: str, session_id: str) -> "tuple[Session, StorageFailed]":
        """Return a session, closed to every change, that shows a conversation as its program has it now, and why.

        Its record has `session_id`. In view is the branch that the program shows; others can be shown.
        Raises WrongUse and HistoryUnreadable.
        """
        tree = await self._load(program, conversation_id)
        sentence = Sentence("From {program}, read only.", {"program": reader_of(program).title})
        held = StorageFailed(sentence, "Continue it here to send something.")
        tree = tree.model_copy(update={"id": session_id})
        return read_only_session(self._setup(), tree, held), held

    async def copy(self, program: str, conversation_id: str) -> str:
        """Store a copy that can be continued, marked as content from outside, and return its id.

        Each copy is a conversation of its own; its `origin` says where it is from. Raises as `open`, and StorageFailed.
        """
        tree = await self._load(program, conversation_id)
        new = self._engine.new_session().record
        # The other program's models are not this one's: what is in use here applies until the person chooses.
        tree = tree.model_copy(update={"id": new_id(), "model": new.model, "updated_at": now()})
        await self._engine.store.import_tree(tree, endpoint_id=new.endpoint_id)
        return tree.id

    def _setup(self) -> SessionSetup:
        """Return what a session needs that asks no model."""

        async def refuse(_record: ConversationRecord, _model: str) -> Provider:
            raise WrongUse("This conversation is only read here.", "Continue it here to send something.")

        return SessionSetup(
            open_provider=refuse,
            read_picture=self._engine.pictures.get,
            tools_for=lambda _: ToolRegistry(()),
            config_for=lambda _: ProviderConfig(),
        )

    async def _load(self, program: str, conversation_id: str) -> ConversationTree:
        return (await self._in_thread(lambda: load_found(reader_of(program), conversation_id))).tree

    @staticmethod
    async def _in_thread(work: Callable[[], T]) -> T:
        worker = WorkerThread("histories")
        try:
            return await wait_to_end(asyncio.wrap_future(worker.submit(work)), lambda: None)
        finally:
            worker.stop()
