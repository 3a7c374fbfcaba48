"""The stored conversations, for programs and for the command line."""

import asyncio
import base64
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from desktop_agent.engine.exchange.conversation_exchange import (
    ConversationExchange,
    ExportFormat,
    ExportResult,
    FoundProgram,
    ImportResult,
)
from desktop_agent.engine.exchange.found_histories import FoundHistorySource
from desktop_agent.exchange.readers.reader import FoundConversation
from desktop_agent.storage.backups.backup import (
    BACKUP_FOLDER,
    Backup,
    StoredCounts,
    list_backups,
    restore_backup,
    write_backup,
)
from desktop_agent.storage.compaction import CompactionSizes, compact
from desktop_agent.storage.content_files import PictureFiles
from desktop_agent.storage.files import data_folder, file_error, whole_path
from desktop_agent.storage.opening import DATABASE_NAME
from desktop_agent.storage.preferences_file import PreferencesFile
from desktop_agent.storage.records import ConversationRecord, ListScope
from desktop_agent.storage.store import Store
from desktop_agent.types.blocks import Base64Source, Block, Image, StoredSource, Text, ToolResult
from desktop_agent.types.conversation_tree import ConversationTree
from desktop_agent.types.errors import ImageRefused, Sentence, StorageFailed, WrongUse
from desktop_agent.types.folders import Folder, folder_paths
from desktop_agent.types.messages import Message
from desktop_agent.types.search import SearchQuery, SearchResults

AnyPath = Path | str
_MAX_INDEXING_SECONDS = 30.0
_MAX_NAMED_TAGS = 20


class History:
    """The conversations of one data folder, the same that the window shows.

        async with History() as history:
            for record in await history.conversations():
                print(record.title)

    `folder` is the data folder, by default the platform's own. It must exist, unless `create` makes a new one, such as
    for an import on another computer. All methods raise StorageFailed, those that name a conversation WrongUse for an
    unknown one. Other processes may work in the same folder.
    """

    def __init__(self, folder: AnyPath | None = None, *, create: bool = False) -> None:
        self._chosen = None if folder is None else Path(folder)
        self._creates = create
        self._opened: Store | None = None

    async def __aenter__(self) -> Self:
        folder = _whole_path(self._chosen) if self._creates else existing_data_folder(self._chosen)
        self._opened = await Store.open(folder)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        store, self._opened = self._store, None
        await store.close()

    @property
    def folder(self) -> Path:
        """The data folder."""
        return existing_data_folder(self._chosen)

    @property
    def notices(self) -> Sequence[Sentence]:
        """What the opening says: that something was repaired, or that nothing can be written."""
        return self._store.notices

    async def conversations(
        self,
        limit: int | None = None,
        *,
        in_trash: bool = False,
        archived: bool | None = False,
        folder: str | None = None,
        tag: str | None = None,
    ) -> Sequence[ConversationRecord]:
        """Return the newest conversations, without their messages.

        `archived`: True returns archived ones, False the others, None both, as in the trash. `folder` is a path of
        names such as `Work/Import`; folders within it are included. Raises WrongUse for an unknown folder and an
        unknown tag.
        """
        folder_id = None if folder is None else await self.find_folder(folder)
        found_tag = None if tag is None else await self.find_tag(tag)
        scope = ListScope(folder=folder_id, archived=None if in_trash else archived, tag=found_tag)
        return await self._store.list_conversations(limit, in_trash=in_trash, scope=scope)

    async def folders(self) -> Sequence[Folder]:
        """Return every folder, in no order."""
        return await self._store.folders.all()

    async def find_folder(self, path: str) -> str:
        """Return the id of a folder by its path of names, such as `Work/Import`. Raises WrongUse for an unknown one."""
        return _find_folder(await self.folders(), path)

    async def find_tag(self, name: str) -> str:
        """Return a tag as it is spelled where it is in use. Raises WrongUse for an unknown one."""
        tags = await self._store.placements.tags()
        for tag in tags:
            if tag.casefold() == name.casefold():
                return tag
        known = ", ".join(tags[:_MAX_NAMED_TAGS]) + ", …" * (len(tags) > _MAX_NAMED_TAGS)
        raise WrongUse(
            Sentence("No conversation has the tag “{tag}”.", {"tag": name}),
            Sentence("Name one of: {known}.", {"known": known}) if tags else "Tags are given in the window.",
        )

    async def conversation(self, conversation_id: str) -> ConversationTree:
        """Return one conversation with all its branches."""
        return await self._store.load_tree(conversation_id)

    async def messages(self, conversation_id: str) -> tuple[Message, ...]:
        """Return the branch in view with the bytes of its pictures: `Client.edit_history` takes it to go on.

        A picture whose file is missing or damaged becomes a text that says so.
        """
        tree = await self.conversation(conversation_id)
        return tuple([await _with_pictures(message, self._store.pictures) for message in tree.branch()])

    async def add(self, conversation: ConversationTree) -> bool:
        """Store a conversation; return False where one with its id is there already, also in the trash."""
        return await self._store.import_tree(conversation)

    async def search(self, query: str | SearchQuery, limit: int = 30) -> SearchResults:
        """Find messages and titles; see SearchQuery. What is not in the index yet is put there first.

        Conversations of other assistants that the preferences show are found too: such results have an `origin`. What
        is new of these is indexed for half a minute at most; `is_complete` says whether that was enough.
        """
        await self._store.search.index_all()
        histories = (await PreferencesFile(self.folder).load()).histories
        with suppress(TimeoutError):
            async with asyncio.timeout(_MAX_INDEXING_SECONDS):
                await self._store.search.found.index_all(FoundHistorySource(histories.shown))
        search_query = SearchQuery(text=query) if isinstance(query, str) else query
        return await self._store.search.find(search_query, limit) or SearchResults()

    async def export(
        self, conversation_ids: Sequence[str], target: AnyPath, export_format: ExportFormat = ExportFormat.ARCHIVE
    ) -> ExportResult:
        """Write conversations into a file, or several Markdown or HTML files into a folder; see ExportFormat.

        Raises ExtraMissing too, and WrongUse for an unknown format.
        """
        try:
            chosen = ExportFormat(export_format)
        except ValueError:
            known = ", ".join(ExportFormat)
            raise WrongUse(f"There is no format “{export_format}”.", f"Name one of ExportFormat: {known}.") from None
        return await ConversationExchange(self._store).export(_ids(conversation_ids), Path(target), chosen)

    async def import_file(self, path: AnyPath) -> ImportResult:
        """Import an archive of ours, or an account's export of ChatGPT or Claude: the zip, its folder or its JSON.

        Conversations that are there already are left alone. Raises ExchangeFailed too.
        """
        return await ConversationExchange(self._store).import_file(Path(path))

    async def found_programs(self) -> Sequence[FoundProgram]:
        """Return the other assistants that left conversations on this disk."""
        return await ConversationExchange(self._store).found_programs()

    async def found_conversations(self, program: str) -> Sequence[FoundConversation]:
        """Return what one of them left, the newest first. Raises WrongUse for an unknown program."""
        return await ConversationExchange(self._store).found_conversations(program)

    async def import_found(self, program: str, conversation_ids: Sequence[str] | None = None) -> ImportResult:
        """Import what another assistant left, all of it or these conversations. Its own files stay as they are."""
        ids = None if conversation_ids is None else _ids(conversation_ids)
        return await ConversationExchange(self._store).import_found(program, ids)

    async def back_up(self, backups: AnyPath | None = None) -> Backup:
        """Write a backup as a new folder in `backups`, by default the folder `backups` of the data folder."""
        return await write_backup(self._store, self.folder, Path(backups or self.folder / BACKUP_FOLDER))

    async def backups(self, backups: AnyPath | None = None) -> Sequence[Backup]:
        """Return the finished backups in a folder, by default that of the data folder; the newest first."""
        return await list_backups(Path(backups or self.folder / BACKUP_FOLDER))

    @staticmethod
    async def restore(backup: AnyPath, into: AnyPath) -> tuple[StoredCounts, StoredCounts]:
        """Restore a backup into a new or empty data folder; return what the backup has, and what the folder has.

        Raises StorageFailed where something is in the folder, or the backup is unfinished.
        """
        return await restore_backup(Path(backup), Path(into))

    async def compact(self) -> CompactionSizes:
        """Make the database as small as its content. Raises DatabaseBusy while another process has it open."""
        return await compact(self._store, self.folder)

    async def check(self) -> Sentence | None:
        """Check everything that is stored, and repair what can be; return what to report."""
        return await self._store.integrity_checker.run(full=True)

    @property
    def _store(self) -> Store:
        if self._opened is None:
            raise WrongUse("The history is not open: use `async with History() as history`.")
        return self._opened


def _ids(ids: Sequence[str]) -> Sequence[str]:
    """Return the ids; a single string is one id."""
    return (ids,) if isinstance(ids, str) else ids


async def _with_pictures(message: Message, pictures: PictureFiles) -> Message:
    blocks: list[Block] = []
    for block in message.blocks:
        if isinstance(block, ToolResult):
            content = [await _with_bytes(part, pictures) if isinstance(part, Image) else part for part in block.content]
            blocks.append(block.model_copy(update={"content": tuple(content)}))
        else:
            blocks.append(await _with_bytes(block, pictures) if isinstance(block, Image) else block)
    return message.model_copy(update={"blocks": tuple(blocks)})


async def _with_bytes(image: Image, pictures: PictureFiles) -> Image | Text:
    source = image.source
    if not isinstance(source, StoredSource):
        return image
    try:
        data = await pictures.get(source)
    except ImageRefused as error:
        return Text(text=f"[{error}]")
    held = Base64Source(media_type=source.media_type, data=base64.b64encode(data).decode("ascii"))
    return image.model_copy(update={"source": held})


def _find_folder(folders: Sequence[Folder], path: str) -> str:
    name = path.strip("/").casefold()
    for id_, names in folder_paths(folders).items():
        if "/".join(names).casefold() == name:
            return id_
    raise WrongUse(
        Sentence("There is no folder “{path}”.", {"path": path}),
        "Write its name, and before it those of the folders that it is in, with a slash between them.",
    )


def _whole_path(chosen: Path | None) -> Path:
    return whole_path(chosen) if chosen is not None else data_folder()


def existing_data_folder(chosen: Path | None) -> Path:
    """Return the data folder. Nothing is created where nothing was saved: raises StorageFailed."""
    folder = _whole_path(chosen)
    try:
        is_there = (folder / DATABASE_NAME).exists()
    except OSError as error:
        raise file_error(error, folder) from error
    if not is_there:
        sentence = Sentence("There are no saved conversations in “{folder}”.", {"folder": str(folder)})
        raise StorageFailed(sentence, "Name the folder that has them with --data-dir.")
    return folder
