"""Everything that is stored about conversations, behind one object for the event loop."""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, Unpack

from desktop_agent.processes.worker_threads import runs_to_its_end, wait_to_end
from desktop_agent.storage import conversation_rows, journal_rows
from desktop_agent.storage.branch_parts import BranchParts
from desktop_agent.storage.branch_rows import BranchRows
from desktop_agent.storage.connection import (
    DatabaseConnection,
    RunInDatabase,
    connect,
    database_error,
    remove_traces,
    transaction,
    write_verified_copy,
)
from desktop_agent.storage.content_files import (
    BlobFiles,
    CheckpointRows,
    PictureFiles,
    PictureStorer,
    find_pictures_in_trash,
    remove_unused_blobs,
    remove_unused_pictures,
)
from desktop_agent.storage.conversation_lists import InterruptedRuns, find_interrupted, list_conversations, list_page
from desktop_agent.storage.conversation_rows import RuleRows
from desktop_agent.storage.database_thread import DatabaseThread, DiskWatch
from desktop_agent.storage.files import file_error
from desktop_agent.storage.folder_rows import FolderRows, PlacementRows
from desktop_agent.storage.guarded_database import FilePin, IntegrityChecker
from desktop_agent.storage.locks.conversation_locks import Program
from desktop_agent.storage.opening import DATABASE_NAME
from desktop_agent.storage.records import (
    EVERYTHING,
    ConversationChanges,
    ConversationRecord,
    Draft,
    JournalEntry,
    ListedConversation,
    ListPlace,
    ListScope,
    LoadedConversation,
)
from desktop_agent.storage.usage import UsageRows
from desktop_agent.types.conversation_tree import ConversationTree
from desktop_agent.types.engine_events import Envelope
from desktop_agent.types.errors import StorageFailed
from desktop_agent.types.messages import Message

if TYPE_CHECKING:
    from desktop_agent.storage.schedules import ScheduleRows
    from desktop_agent.storage.search.conversation_search import ConversationSearch

T = TypeVar("T")


class Store:
    """Conversations, their journal and their drafts in one folder.

    Made by `Store.open`. Writes are durable when a method returns. Every method raises StorageFailed or a subclass
    when the disk or the database fails, and WrongUse for an unknown conversation; the store stays usable. Work that
    was begun is completed even when the caller is cancelled.
    """

    def __init__(
        self, folder: Path, thread: DatabaseThread, pin: FilePin | None = None, search: "_LazySearch | None" = None
    ) -> None:
        self.notices = thread.notices
        self.on_notice, self.on_replaced = thread.on_notice, thread.on_replaced
        self.folder = folder
        self.pictures, self.blobs = PictureFiles(folder), BlobFiles(folder)
        self._thread = thread
        self._pin = pin
        self._search = search or _LazySearch(folder, thread.run_quietly)
        self.checkpoints = CheckpointRows(self.run, self.blobs)
        self.rules = RuleRows(self.run)
        self.folders = FolderRows(self.run)
        self.placements = PlacementRows(self.run)
        self.calls = journal_rows.CallRows(self.run)
        self.branches = BranchRows(self.run, self._purge)
        self.branch_parts = BranchParts(self.run)
        self.usage = UsageRows(self.run)

    @cached_property
    def schedules(self) -> "ScheduleRows":
        """The scheduled prompts, loaded when they are first used."""
        from desktop_agent.storage.schedules import ScheduleRows

        return ScheduleRows(self.run)

    @classmethod
    async def open(cls, folder: Path, program: Program = "library") -> "Store":
        """Open the store in `folder`, creating what is missing; `notices` has those for the person.

        Raises DatabaseTooNew, DatabaseBusy, DiskFull, StorageFailed. A damaged database is no error: it is renamed,
        and its readable rows are carried over.
        """
        return cls(folder, await DatabaseThread.open(folder, program))

    def pinned(self) -> "Store":
        """Return the same store, bound to the file that is open when it is first used.

        Once another file replaces it, every method raises DatabaseReplaced: content that continues the old file must
        not be written into the new one.
        """
        return Store(self.folder, self._thread, FilePin(), self._search)

    @runs_to_its_end
    async def close(self) -> None:
        """Finish what is queued, close the database and end its thread. Harmless when repeated."""
        if self._search.is_loaded:
            await self.search.close()
        await self._thread.close()

    @property
    def search(self) -> "ConversationSearch":
        return self._search.search

    @property
    def read_only(self) -> StorageFailed | None:
        """Return why nothing can be written, from the opening on; None where it can."""
        return self._thread.read_only

    @property
    def disk(self) -> DiskWatch:
        return self._thread.disk

    @property
    def integrity_checker(self) -> IntegrityChecker:
        return self._thread.integrity_checker

    async def list_conversations(
        self, limit: int | None = None, *, in_trash: bool = False, scope: ListScope = EVERYTHING
    ) -> tuple[ConversationRecord, ...]:
        """Return conversations, the last written first; or those in the trash, the last deleted first."""
        return await self.run(lambda db: list_conversations(db, limit, in_trash=in_trash, scope=scope))

    async def list_page(
        self, limit: int, after: ListPlace | None = None, scope: ListScope = EVERYTHING
    ) -> tuple[tuple[ListedConversation, ...], ListPlace | None]:
        """Return up to `limit` conversations, and the place after which the list goes on; None at its end.

        What is pinned comes first, then the last written. Raises WrongUse for an unknown folder.
        """
        return await self.run(lambda db: list_page(db, limit, after, scope))

    async def create_conversation(
        self, *, id_: str | None = None, folder: str | None = None, **values: Unpack[ConversationChanges]
    ) -> ConversationRecord:
        """Create an empty conversation with a title; `id_` is given when it was chosen before the first write.

        It is in this folder, or at the top where that is gone.
        """
        return await self._change(lambda db: conversation_rows.create_conversation(db, values, id_, folder))

    async def update_conversation(self, id_: str, **changes: Unpack[ConversationChanges]) -> ConversationRecord:
        """Change title, server, model, workspace, head or state; see ConversationChanges."""

        def work(db: DatabaseConnection) -> ConversationRecord:
            number = conversation_rows.conversation_number(db, id_)
            with transaction(db):
                # Pictures of messages that wait become files like those of any other message.
                stored = PictureStorer(db, self.pictures, number).store_changes(changes)
                conversation_rows.update_conversation(db, number, stored)
            return conversation_rows.load_record(db, id_)

        return await self._change(work)

    async def delete_conversation(self, id_: str) -> None:
        """Put it into the trash; the first opening after 30 days removes it for good."""
        await self._change(lambda db: conversation_rows.set_deleted(db, id_, deleted=True))

    async def restore_conversation(self, id_: str) -> None:
        """Take it out of the trash."""
        await self._change(lambda db: conversation_rows.set_deleted(db, id_, deleted=False))

    async def purge_conversation(self, id_: str) -> None:
        """Delete for good one that is in the trash, with its pictures and saved files. Raises WrongUse."""
        await self._purge(lambda db: conversation_rows.purge_conversation(db, id_))

    async def empty_trash(self) -> int:
        """Delete for good all that is in the trash, pictures and saved files too; return how many conversations.

        Raises DatabaseReplaced where another file has replaced the one whose trash the person saw.
        """

        pin = self._pin or self._thread.pin_to_known_file()
        return await self._purge(lambda db: conversation_rows.purge_trash(db, timedelta(0)), pin)

    async def record(self, id_: str) -> ConversationRecord:
        """Return the record of a conversation, also of one in the trash. Raises WrongUse for an unknown one."""
        return await self.run(lambda db: conversation_rows.load_record(db, id_))

    async def _purge(self, work: Callable[[DatabaseConnection], T], pin: FilePin | None = None) -> T:
        """Do work that deletes for good, and remove what nothing uses any more, and what is left of deleted rows."""

        def purge(db: DatabaseConnection) -> T:
            left_at = find_pictures_in_trash(db)
            result = work(db)
            remove_unused_pictures(db, self.pictures, left_at)
            remove_unused_blobs(db, self.blobs)
            remove_traces(db)
            return result

        try:
            return await self._thread.run(purge, pin or self._pin)
        finally:
            self.search.notice_deletion()

    async def load(self, id_: str, at_least: int | None = None) -> LoadedConversation:
        """Return the conversation with the branch in view and the journal of unfinished runs.

        With `at_least`, about so many messages from the end of the branch, and of the journal what recovery needs.
        """
        return await self.run(lambda db: journal_rows.load_conversation(db, id_, at_least))

    async def load_tree(self, conversation_id: str) -> ConversationTree:
        """Return a conversation with all its branches. Raises WrongUse for an unknown one."""
        from desktop_agent.storage.conversation_trees import load_tree

        return await self.run(lambda db: load_tree(db, conversation_id))

    async def import_tree(
        self, tree: ConversationTree, *, beside: str | None = None, **more: Unpack[ConversationChanges]
    ) -> bool:
        """Store a conversation with all its branches, all or nothing; return False where its id is there already.

        `beside`: the id of a conversation whose folder and tags it gets, instead of those of the tree. `more` is what
        no tree has. Without a `state` its content counts as untrusted. Raises WrongUse for an unknown `beside`.
        """
        from desktop_agent.storage.conversation_trees import insert_tree

        return await self._change(lambda db: insert_tree(db, tree, self.pictures, beside, more))

    async def begin_following(self, id_: str, at_least: int | None = None) -> journal_rows.Followed:
        """Load what another process may write, as `journal_rows.begin_following` does. Raises WrongUse."""
        return await self.run(lambda db: journal_rows.begin_following(db, id_, at_least))

    async def news(self, id_: str, since: journal_rows.ReadPosition) -> journal_rows.NewRows | None:
        """Return what other processes wrote since then; None when they wrote nothing. Raises WrongUse."""
        return await self.run(lambda db: journal_rows.load_news_since(db, id_, since))

    async def commit(
        self, conversation_id: str, *new: Message, envelopes: Sequence[Envelope] = ()
    ) -> tuple[Message, ...]:
        """Append messages after the head, all or none; one whose id exists replaces that in its place.

        `envelopes` go into the journal in the same transaction: the disk is waited for once. Return the messages as
        written: pictures held as base64 have become files (see PictureStorer).
        """
        rows = tuple(envelopes)

        def work(db: DatabaseConnection) -> tuple[Message, ...]:
            number = conversation_rows.conversation_number(db, conversation_id)
            with transaction(db):
                storer = PictureStorer(db, self.pictures, number)
                journal_rows.append_rows(db, number, [storer.store_envelope(row) for row in rows])
                stored = tuple(storer.store_message(message) for message in new)
                conversation_rows.commit_messages(db, number, stored)
            return stored

        return await self._change(work)

    async def append_journal(self, conversation_id: str, envelopes: Sequence[Envelope]) -> None:
        """Add to the journal, all or none. Raises WrittenElsewhere where another event has the same run and seq."""
        rows = tuple(envelopes)

        def work(db: DatabaseConnection) -> None:
            number = conversation_rows.conversation_number(db, conversation_id)
            with transaction(db):
                storer = PictureStorer(db, self.pictures, number)
                journal_rows.append_rows(db, number, [storer.store_envelope(row) for row in rows])

        await self.run(work)

    async def load_call_entries(self, before: int | None, limit: int) -> tuple[tuple[JournalEntry, ...], int | None]:
        """Return the newest `limit` rows about calls in all conversations before a place, oldest first.

        The second value is the place to continue from, None at the end. Results of calls are left out.
        """
        return await self.run(lambda db: journal_rows.load_call_entries(db, before, limit))

    async def find_interrupted_runs(self) -> tuple[InterruptedRuns, ...]:
        """Return conversations with runs that never ended, whether somebody works on them or not."""
        return await self.run(find_interrupted)

    async def finish_run(self, conversation_id: str, run_id: str) -> None:
        """Delete a run's streamed pieces, which its committed messages hold whole; the other events stay."""

        def work(db: DatabaseConnection) -> None:
            number = conversation_rows.conversation_number(db, conversation_id)
            with transaction(db):
                journal_rows.delete_deltas(db, number, run_id)

        await self.run(work)

    async def save_draft(self, conversation_id: str | None, draft: Draft, *, was_new: bool = False) -> None:
        """Store a draft; None is the conversation that does not exist yet. An empty draft removes it.

        `was_new`: the conversation exists by now, and takes over the draft of None. Raises ImageRefused too, for a
        base64 picture that cannot be read.
        """

        def work(db: DatabaseConnection) -> None:
            number = _draft_number(db, conversation_id)
            with transaction(db):
                if was_new or number == conversation_rows.NO_CONVERSATION_NUMBER:
                    sql = "DELETE FROM picture_uses WHERE conversation = ?"
                    db.execute(sql, (conversation_rows.NO_CONVERSATION_NUMBER,))
                storer = PictureStorer(db, self.pictures, number)
                images = tuple(storer.store_image(image) for image in draft.images)
                if was_new:
                    conversation_rows.save_draft(db, conversation_rows.NO_CONVERSATION_NUMBER, Draft())
                conversation_rows.save_draft(db, number, replace(draft, images=images))

        await self.run(work)

    async def load_draft(self, conversation_id: str | None) -> Draft:
        """Return the draft, or an empty one."""
        return await self.run(lambda db: conversation_rows.load_draft(db, _draft_number(db, conversation_id)))

    async def snapshot(self, target: Path) -> None:
        """Write a checked copy of the database to `target`, which must not exist. Pictures are files: not included.

        Its connection and thread are its own, so a long copy holds up no journal. Cancelled, it leaves nothing.
        """
        await self.run(lambda _: None)  # writes requested before are in the copy
        await _copy_database(self.folder / DATABASE_NAME, target)

    async def run(self, work: Callable[[DatabaseConnection], T]) -> T:
        """Do work in the database's thread."""
        return await self._thread.run(work, self._pin)

    async def _change(self, work: Callable[[DatabaseConnection], T]) -> T:
        """Do work that changes what can be found."""
        try:
            return await self.run(work)
        finally:
            if self._search.is_loaded:
                self.search.notice_change()


async def _copy_database(path: Path, target: Path) -> None:
    copying: list[DatabaseConnection] = []

    def interrupt() -> None:
        for connection in copying:
            with suppress(sqlite3.ProgrammingError):  # it is closed
                connection.interrupt()

    await wait_to_end(asyncio.ensure_future(asyncio.to_thread(_write_copy, path, target, copying)), interrupt)


class _LazySearch:
    """The search of one folder, for all its stores; loaded when it is first used: `desktop-agent ask` never does."""

    def __init__(self, folder: Path, run: RunInDatabase) -> None:
        self._folder = folder
        self._run = run

    @cached_property
    def search(self) -> "ConversationSearch":
        from desktop_agent.storage.search.conversation_search import ConversationSearch

        return ConversationSearch(self._folder, self._run)

    @property
    def is_loaded(self) -> bool:
        return "search" in vars(self)


def _write_copy(path: Path, target: Path, copying: list[DatabaseConnection]) -> None:
    """Write the copy; `copying` gets the connection, which may be interrupted."""
    try:
        with closing(connect(path)) as connection:
            copying.append(connection)
            write_verified_copy(connection, target)
    except sqlite3.DatabaseError as error:
        raise database_error(error, target) from error
    except OSError as error:
        raise file_error(error, target) from error


def _draft_number(connection: DatabaseConnection, conversation_id: str | None) -> int:
    if conversation_id is None:
        return conversation_rows.NO_CONVERSATION_NUMBER
    return conversation_rows.conversation_number(connection, conversation_id)
