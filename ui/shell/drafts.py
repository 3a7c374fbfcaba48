"""What is being written, kept conversation by conversation."""

from collections.abc import Coroutine, Sequence
from typing import Any

from PySide6.QtCore import QObject

from desktop_agent.vocabulary.messages import Message
from ui.bridge.conversation import OpenConversation
from ui.bridge.library import Library
from ui.bridge.tasks import Tasks
from ui.composer.composer import Composer
from ui.composer.offers.chip_row import Attached
from ui.composer.pictures import PendingPicture
from ui.shell.mcp.attached import attached_of, draft_of

_NOTHING: tuple[str, list[Attached]] = ("", [])


class Drafts(QObject):
    """Puts the open conversation's draft into the composer, and keeps it whenever it changed."""

    def __init__(self, composer: Composer, library: Library, tasks: Tasks, parent: QObject) -> None:
        super().__init__(parent)
        self._composer = composer
        self._library = library
        self._tasks = tasks
        self._wanted: OpenConversation | None = None
        self._shown: OpenConversation | None = None
        self._kept: tuple[str, list[Attached]] | None = ("", [])
        composer.draft_changed.connect(self.keep)

    def show(self, conversation: OpenConversation) -> None:
        """Change over to this conversation; what was written in the one before stays with that one."""
        if self._shown is not None:
            self.keep()
            self._composer.set_draft("")
        elif self._wanted is not None and (draft := self._composer.draft()) != _NOTHING:
            # Written before the draft of that one was there: it goes behind it.
            self._tasks.start(self._keep_behind(self._wanted, draft))
            self._composer.set_draft("")
        self._shown, self._wanted = None, conversation
        self._tasks.start(self._load(conversation))

    def keep(self) -> None:
        """Keep what stands there."""
        self._tasks.start(self.kept())

    def kept(self) -> Coroutine[Any, Any, None]:
        """The same, to be awaited; what stands there is read at once. Raises StorageFailed."""
        draft = self._composer.draft()
        if self._shown is None and self._wanted is not None and draft != _NOTHING:
            return self._keep_when_loaded(self._wanted)
        if self._shown is None or draft == self._kept:
            return _nothing()
        # Not known before it is on the disk: who quits meanwhile must hear whether it is.
        self._kept = None
        return self._keep_again(self._shown, draft)

    async def keep_for(self, conversation: OpenConversation, text: str, attached: Sequence[Attached]) -> None:
        """Keep this as the draft of a conversation that need not be the one shown. Raises StorageFailed."""
        await self._library.drafts.keep(conversation, draft_of(text, attached))

    async def _keep_when_loaded(self, conversation: OpenConversation) -> None:
        # Also where loading has failed before: it is tried again with whatever is written.
        await self._load(conversation)
        if self._shown is conversation:
            await self.kept()

    async def _keep_behind(self, conversation: OpenConversation, written: tuple[str, list[Attached]]) -> None:
        kept = await self._library.drafts.load(conversation)
        text = "\n\n".join(each for each in (kept.text, written[0]) if each)
        await self.keep_for(conversation, text, [*attached_of(kept), *written[1]])

    async def _keep_again(self, conversation: OpenConversation, draft: tuple[str, list[Attached]]) -> None:
        await self.keep_for(conversation, *draft)
        if self._shown is conversation and self._composer.draft() == draft:
            self._kept = draft

    async def give_back(self, conversation: OpenConversation, message: Message) -> None:
        """A message was not delivered: it stands in the composer again, or in the draft of its conversation."""
        text, kept = await self._library.drafts.content_of(message)
        if conversation is not self._wanted:
            await self._library.drafts.give_back(conversation.id, message)
            return
        self._composer.give_back(text, [PendingPicture(name, taken) for taken, name in kept])
        self.keep()

    async def _load(self, conversation: OpenConversation) -> None:
        kept = await self._library.drafts.load(conversation)
        if conversation is not self._wanted or conversation is self._shown:
            return
        attached = attached_of(kept)
        self._kept, self._shown = (kept.text, attached), conversation
        if not kept.text and not attached:
            # What was written meanwhile stays as it is: texts that were pasted beside it, too.
            self.keep()
            return
        # Who was quicker than the disk loses nothing.
        written, added = self._composer.draft()
        self._composer.set_draft("\n\n".join(each for each in (kept.text, written) if each), [*attached, *added])


async def _nothing() -> None:
    """There is nothing to be done."""
