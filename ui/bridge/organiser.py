"""Where conversations are, for the screens: folders, pins, the archive, tags, copies, and the trash for several."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, Unpack

from PySide6.QtCore import QObject, Signal

from desktop_agent.engine.engine import Engine
from desktop_agent.engine.exchange.conversation_copies import duplicate_conversation, merge_conversations
from desktop_agent.types.errors import AgentError, Sentence
from desktop_agent.types.folders import Folder, Placement, PlacementChanges
from ui.bridge.conversation import OpenConversation
from ui.bridge.event_loop import BackgroundTasks, in_background
from ui.bridge.library import ConversationLibrary


class Organiser(QObject):
    """Changes where conversations are. Errors are shown as those of any other background task."""

    done = Signal(object, object)
    """A Sentence that says what was done, and what undoes it: a callable without arguments."""
    folders_read = Signal(list, object)
    """Every Folder, in no order, and the argument of `read_folders`."""
    tags_read = Signal(list, list)
    """Every tag, and the Placements of the conversations that were asked about."""

    folder_refused = Signal(Folder)
    """A folder that could not be created or changed; the error is reported separately."""

    def __init__(
        self, engine: Engine, library: ConversationLibrary, tasks: BackgroundTasks, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._engine = engine
        self._store = engine.store
        self._library = library
        self._tasks = tasks
        library.opened.connect(self._on_opened)

    def pin(self, ids: Sequence[str], *, pinned: bool) -> None:
        """Pin conversations in their folder, or no longer."""
        done = _Done(Sentence("Pinned “{title}”."), Sentence("Pinned conversations: {count}."))
        undone = _Done(Sentence("Unpinned “{title}”."), Sentence("Unpinned conversations: {count}."))
        self._tasks.start(self._change(ids, done if pinned else undone, pinned=pinned))

    def archive(self, ids: Sequence[str], *, archived: bool) -> None:
        """Put conversations into the archive, or bring them back to where they were."""
        into = _Done(Sentence("Archived “{title}”."), Sentence("Archived conversations: {count}."))
        back = _Done(Sentence("Brought back “{title}”."), Sentence("Brought back conversations: {count}."))
        self._tasks.start(self._change(ids, into if archived else back, archived=archived))

    def move(self, ids: Sequence[str], folder: str | None) -> None:
        """Move conversations into a folder, or to the top."""
        self._tasks.start(self._change(ids, _moved(), folder=folder))

    def tag(self, ids: Sequence[str], added: Sequence[str], removed: Sequence[str]) -> None:
        """Give these tags to conversations, and take those away."""
        done = _Done(Sentence("Changed the tags of “{title}”."), Sentence("Tagged conversations: {count}."))
        self._tasks.start(self._change(ids, done, add_tags=added, remove_tags=removed))

    @in_background
    async def trash(self, ids: Sequence[str]) -> None:
        """Put conversations into the trash; running ones are stopped."""
        deleted, error = await _do_with_each(ids, self._library.put_into_trash)
        for conversation_id in deleted:
            self._library.replace_shown(conversation_id)
        self._library.refresh()
        self._library.trash.list()
        if deleted:
            sentence = _counted(Sentence("Conversations put into the trash: {count}."), len(deleted))
            self.done.emit(sentence, lambda: self._restore(deleted))
        if error is not None:
            raise error

    def duplicate(self, conversation_id: str, title: Callable[[str], str]) -> None:
        """Make a copy with all branches, and show it. `title` turns the original's title into that of the copy."""
        self._show_created(lambda: duplicate_conversation(self._engine, conversation_id, title))

    def merge(self, ids: Sequence[str], heading: Callable[[str], str]) -> None:
        """Merge conversations into a new one, and show it; they stay. `heading` turns each title into a heading."""
        self._show_created(lambda: merge_conversations(self._engine, ids, heading))

    @in_background
    async def create_folder(self, new: Folder, ids: Sequence[str] = ()) -> None:
        """Create a folder like this one, but with a new id, and move conversations into it."""
        work = self._store.folders.create(new.name, new.colour, new.parent, new.instructions)
        folder = await self._unless_refused(new, work)
        if ids:
            await self._change(ids, _moved(), folder=folder.id)
        else:
            self._library.refresh()

    @in_background
    async def change_folder(self, new: Folder) -> None:
        """Give a folder this name, this colour and these instructions."""
        previous = await self._unless_refused(new, self._store.folders.change(new))
        self._library.refresh()
        if previous != replace(new, parent=previous.parent):
            sentence = Sentence("Changed the folder “{name}”.", {"name": new.name})
            self.done.emit(sentence, lambda: self.change_folder(previous))

    @in_background
    async def move_folder(self, folder: str, parent: str | None) -> None:
        """Move a folder into another one, or to the top."""
        previous: Folder = await self._store.folders.move(folder, parent)
        self._library.refresh()
        if previous.parent != parent:
            sentence = Sentence("Moved the folder “{name}”.", {"name": previous.name})
            self.done.emit(sentence, lambda: self.move_folder(folder, previous.parent))

    @in_background
    async def delete_folder(self, folder: str) -> None:
        """Delete a folder; what is in it moves up."""
        await self._store.folders.delete(folder)
        self._library.refresh()

    @in_background
    async def read_folders(self, moved: Folder | Sequence[str]) -> None:
        """Read every folder, to move one or conversations; `folders_read` answers."""
        self.folders_read.emit(list(await self._store.folders.all()), moved)

    @in_background
    async def read_tags(self, ids: Sequence[str]) -> None:
        """Read every tag and those of some conversations; `tags_read` answers."""
        tags = await self._store.placements.tags()
        self.tags_read.emit(list(tags), list(await self._store.placements.of(ids)))

    async def _change(self, ids: Sequence[str], done: "_Done", **changes: Unpack[PlacementChanges]) -> None:
        previous = await self._store.placements.change(ids, **changes)
        self._library.refresh()
        if previous:
            sentence = await self._done_sentence(done, previous)
            self.done.emit(sentence, lambda: self._put_back(previous))

    async def _done_sentence(self, done: "_Done", placements: Sequence[Placement]) -> Sentence:
        title = (await self._store.record(placements[0].conversation_id)).title if len(placements) == 1 else ""
        if not title:
            return _counted(done.with_several, len(placements))
        return Sentence(done.with_one.template, {"title": title})

    @in_background
    async def _put_back(self, placements: Sequence[Placement]) -> None:
        await self._store.placements.put_back(placements)
        self._library.refresh()

    @in_background
    async def _restore(self, ids: Sequence[str]) -> None:
        _, error = await _do_with_each(ids, self._store.restore_conversation)
        self._library.waiting.find_interrupted()
        self._library.refresh()
        self._library.trash.list()
        if error is not None:
            raise error

    def _show_created(self, create: Callable[[], Awaitable[str]]) -> None:
        """Create a conversation and show it, unless another is chosen meanwhile."""
        is_wanted = self._library.begin_choice()

        async def work() -> None:
            await self._engine.write_all()
            conversation_id = await create()
            if is_wanted():
                self._library.open(conversation_id)
            self._library.refresh()

        self._tasks.start(work())

    async def _unless_refused(self, new: Folder, work: Awaitable[Folder]) -> Folder:
        """Emit `folder_refused` if the work fails, so that typed text is not lost."""
        try:
            return await work
        except AgentError:
            self.folder_refused.emit(new)
            raise

    def _on_opened(self, conversation: OpenConversation) -> None:
        """Put a new conversation into the folder that is shown."""
        folder = self._library.listing.folder
        if folder is not None and not conversation.is_stored and not conversation.is_found:
            conversation.begin_in(folder)


class _Done(NamedTuple):
    """The sentences after a change of conversations: for one with its `title`, for several with their `count`."""

    with_one: Sentence
    with_several: Sentence


def _moved() -> _Done:
    return _Done(Sentence("Moved “{title}”."), Sentence("Moved conversations: {count}."))


async def _do_with_each(
    ids: Sequence[str], work: Callable[[str], Awaitable[None]]
) -> tuple[list[str], AgentError | None]:
    """Do this with each conversation, also after a failure; return those that succeeded, and the first error."""
    done: list[str] = []
    first: AgentError | None = None
    for id_ in ids:
        try:
            await work(id_)
        except AgentError as error:
            first = first or error
        else:
            done.append(id_)
    return done, first


def _counted(sentence: Sentence, count: int) -> Sentence:
    return Sentence(sentence.template, {"count": str(count)})
