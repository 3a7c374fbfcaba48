"""Save and restore the draft of each conversation, with the attachments of the composer."""

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from secrets import token_hex
from typing import Any

from PySide6.QtCore import QObject

from desktop_agent.types.blocks import Block, Text
from desktop_agent.types.errors import AgentError
from desktop_agent.types.messages import Message
from desktop_agent.types.tool_calls import UntrustedSource
from ui.bridge.conversation import OpenConversation
from ui.bridge.drafts import ComposerDraft, DraftResource
from ui.bridge.event_loop import BackgroundTasks
from ui.bridge.library import ConversationLibrary
from ui.bridge.storage import PictureStore
from ui.composer.attachment_chips import Attachment, PastedText
from ui.composer.attachment_items import (
    AttachmentFetch,
    PendingPicture,
    PendingResource,
    PromptSource,
    UnreadablePicture,
)
from ui.composer.composer import Composer


def untrusted_sources(attached: Iterable[Attachment]) -> tuple[UntrustedSource, ...]:
    """Return the MCP servers that content came from, each once."""
    sources = [each for each in attached if not isinstance(each, PastedText | UnreadablePicture) and each.server]
    return tuple(dict.fromkeys(UntrustedSource("mcp", each.server, each.server_id) for each in sources))


def to_draft(text: str, attached: Sequence[Attachment]) -> ComposerDraft:
    """Return text and attachments as a draft."""
    pictures = [(each.taken, each.name) for each in attached if isinstance(each, PendingPicture)]
    resources = tuple(
        DraftResource(each.server, each.title, each.uri, each.text, each.server_id)
        for each in attached
        if isinstance(each, PendingResource)
    )
    pasted = tuple(each.text for each in attached if isinstance(each, PastedText))
    unreadable = tuple(each.image for each in attached if isinstance(each, UnreadablePicture))
    return ComposerDraft(text, pictures, resources, untrusted_sources(attached), pasted, unreadable)


def from_draft(draft: ComposerDraft) -> list[Attachment]:
    """Return the attachments of a draft. It has no record of which server a picture came from, only of all servers."""
    pictures = [PendingPicture(name, taken) for taken, name in draft.pictures]
    resources = [
        PendingResource(each.server, each.title, each.uri, each.text, each.server_id) for each in draft.resources
    ]
    pasted = [PastedText(text) for text in draft.pasted]
    unreadable = [UnreadablePicture(image) for image in draft.unreadable]
    return [*pasted, *pictures, *unreadable, *resources, *(PromptSource(each.name, each.id) for each in draft.outside)]


async def to_blocks(text: str, attached: Sequence[Attachment], pictures: PictureStore) -> list[Block]:
    """Return text and attachments as blocks; content of a server stands in labelled blocks of its own.

    Raises StorageFailed, and ImageRefused for a picture that could not be read before and is gone now.
    """
    whole = "\n\n".join(
        [part for part in (text, *(each.text for each in attached if isinstance(each, PastedText))) if part]
    )
    blocks: list[Block] = [Text(text=whole)] if whole.strip() else []
    for each in attached:
        if isinstance(each, PendingResource):
            blocks.append(Text(text=_labelled_resource(each)))
        elif isinstance(each, PendingPicture):
            if each.server:
                blocks.append(
                    Text(text=f"\n\n[The next picture, “{each.name}”, is from the server “{each.server}”.]\n")
                )
            blocks.append(await pictures.keep(each.taken, each.name))
        elif isinstance(each, UnreadablePicture):
            blocks.append(await pictures.keep(await pictures.reload(each.image), each.image.name or ""))
    return blocks


def _labelled_resource(resource: PendingResource) -> str:
    """Label a resource for the model. The random end marker cannot occur in the server's text."""
    sign, title = token_hex(4), " ".join(resource.title.split())
    head = f"[“{title}”, {resource.uri}, from the server “{resource.server}”, up to {sign}:]"
    return f"\n\n{head}\n{resource.text}\n[{sign}: end of “{title}”.]\n"


_EMPTY: tuple[str, list[Attachment]] = ("", [])
_FETCH_SECONDS = 3.0
"""Seconds that the end of the program waits for what is still on its way into a message."""


class DraftSync(QObject):
    """Puts the draft of the open conversation into the composer, and saves it after each change."""

    def __init__(
        self, composer: Composer, library: ConversationLibrary, tasks: BackgroundTasks, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._composer = composer
        self._library = library
        self._tasks = tasks
        self._wanted: OpenConversation | None = None
        self._shown: OpenConversation | None = None
        self._saved: tuple[str, list[Attachment]] | None = ("", [])
        self._fetching: dict[AttachmentFetch, OpenConversation] = {}
        """Still on its way into the draft of a conversation that is not shown."""
        self._lock = asyncio.Lock()
        self._leaving = 0
        """How many drafts are being kept whose conversation was left."""
        self._left = asyncio.Event()
        composer.draft_changed.connect(self.keep)

    def show(self, conversation: OpenConversation) -> None:
        """Show the draft of this conversation; the composer's text stays with the one before.

        Attachments that are still loading are added to the draft of the one before when they arrive.
        """
        if (left := self._wanted) is not None:
            fetching = self._composer.attachments.take_pending()
            self._fetching |= dict.fromkeys(fetching, left)
            self._tasks.start(self._leave(self._saving_of(left), fetching))
            self._leaving += 1
            self._composer.set_draft("")
        self._shown, self._wanted = None, conversation
        self._tasks.start(self._load(conversation))

    @property
    def is_loaded(self) -> bool:
        """Whether the saved draft is in the composer: it arrives a moment after its conversation."""
        return self._shown is not None

    async def settled(self) -> bool:
        """Wait a limited time for attachments that are loading. Returns whether all arrived.

        Raises StorageFailed if one could not be saved.
        """
        try:
            async with asyncio.timeout(_FETCH_SECONDS):
                while self._leaving:
                    self._left.clear()
                    await self._left.wait()
                for each in tuple(self._fetching):
                    await self._add_fetched(each)
                await self._composer.attachments.wait_until_ready()
        except TimeoutError:
            return False
        return True

    def keep(self) -> None:
        """Save the draft in the background."""
        self._tasks.start(self.kept())

    def kept(self) -> Coroutine[Any, Any, None]:
        """Return a coroutine that saves the draft, which is read now. Raises StorageFailed."""
        draft = self._composer.draft()
        if self._shown is None and self._wanted is not None and draft != _EMPTY:
            return self._save_when_loaded(self._wanted)
        if self._shown is None or draft == self._saved:
            return _do_nothing()
        # Not known before it is on the disk: who quits meanwhile must hear whether it is.
        self._saved = None
        return self._save_changed(self._shown, draft)

    async def save_for(self, conversation: OpenConversation, text: str, attached: Sequence[Attachment]) -> None:
        """Save the draft of a conversation that need not be open. Raises StorageFailed."""
        await self._library.drafts.keep(conversation, to_draft(text, attached))

    async def _save_when_loaded(self, conversation: OpenConversation) -> None:
        # Also where loading has failed before: it is tried again with whatever is written.
        await self._load(conversation)
        if self._shown is conversation:
            await self.kept()

    def _saving_of(self, left: OpenConversation) -> Coroutine[Any, Any, None]:
        draft = self._composer.draft()
        if self._shown is not None or draft == _EMPTY:
            return self.kept()
        # Written before the draft of that one was there: it goes behind it.
        return self._library.drafts.add(left, to_draft(*draft))

    async def _leave(self, kept: Coroutine[Any, Any, None], fetching: Sequence[AttachmentFetch]) -> None:
        try:
            await kept
        finally:
            self._leaving -= 1
            self._left.set()
            for each in fetching:
                self._tasks.start(self._save_fetched(each))

    async def _save_fetched(self, fetching: AttachmentFetch) -> None:
        for problem in await self._add_fetched(fetching):
            raise problem

    async def _add_fetched(self, fetching: AttachmentFetch) -> Sequence[AgentError]:
        try:
            fetched = await fetching.result()
        except Exception:
            self._fetching.pop(fetching, None)
            raise
        async with self._lock:
            conversation = self._fetching.get(fetching)
            if conversation is None:
                # It is on the screen again, or kept already.
                return ()
            if fetched.items:
                await self._library.drafts.add(conversation, to_draft("", fetched.items))
            del self._fetching[fetching]
        return fetched.problems

    async def _save_changed(self, conversation: OpenConversation, draft: tuple[str, list[Attachment]]) -> None:
        await self.save_for(conversation, *draft)
        if self._shown is conversation and self._composer.draft() == draft:
            self._saved = draft

    async def give_back(self, conversation: OpenConversation, message: Message) -> None:
        """Return an undelivered message to the composer, or to the draft of its conversation."""
        content = await self._library.drafts.content_of(message)
        if not self.belongs_to(conversation):
            await self._library.drafts.give_back(conversation, message)
            return
        self._composer.restore_message(content.text, from_draft(content))
        self._show_problems(content)
        self.keep()

    def belongs_to(self, conversation: OpenConversation) -> bool:
        """Return whether the composer holds its draft, also if it was reopened since."""
        return self._wanted is not None and _share_draft(self._wanted, conversation)

    async def _load(self, conversation: OpenConversation) -> None:
        async with self._lock:
            if conversation is self._shown:
                return
            kept = await self._library.drafts.load(conversation)
            if conversation is self._wanted:
                self._show_saved(conversation, kept)

    def _show_saved(self, conversation: OpenConversation, kept: ComposerDraft) -> None:
        attachments, attached = self._composer.attachments, from_draft(kept)
        self._saved, self._shown = (kept.text, attached), conversation
        fetching = [each for each, of in self._fetching.items() if _share_draft(of, conversation)]
        for each in fetching:
            del self._fetching[each]
        if not kept.text and not attached:
            # What was written meanwhile stays as it is: texts that were pasted beside it, too.
            self.keep()
        else:
            # Who was quicker than the disk loses nothing.
            written, added = self._composer.draft()
            fetching += attachments.take_pending()
            self._composer.set_draft("\n\n".join(each for each in (kept.text, written) if each), [*attached, *added])
        attachments.add_fetches(fetching)
        self._show_problems(kept)

    def _show_problems(self, kept: ComposerDraft) -> None:
        for problem in kept.problems:
            self._composer.show_problem(problem.sentence, problem.remedy)


def _share_draft(left: OpenConversation, conversation: OpenConversation) -> bool:
    """Return whether both have one draft, as all conversations that were never sent do."""
    return left.id == conversation.id or not (left.is_stored or conversation.is_stored)


async def _do_nothing() -> None:
    pass
