"""Save and restore the draft of each conversation, with the attachments of the composer."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from itertools import chain, repeat
from typing import Any, TypeVar

from PySide6.QtCore import QObject

from desktop_agent.types.blocks import Block, Text
from desktop_agent.types.errors import AgentError
from desktop_agent.types.messages import AttachedText, Message, label_attached
from desktop_agent.types.tool_calls import UntrustedSource
from ui.bridge.conversation import OpenConversation
from ui.bridge.drafts import ComposerDraft, Draft
from ui.bridge.event_loop import BackgroundTasks
from ui.bridge.side_conversation import ConversationSource
from ui.bridge.storage import PictureStore
from ui.composer.attachment_chips import Attachment, PastedText
from ui.composer.attachment_items import AttachmentFetch, PendingPicture, UnreadablePicture
from ui.composer.composer import Composer

_Kind = TypeVar("_Kind", bound=Attachment)


def untrusted_sources(attached: Iterable[Attachment]) -> tuple[UntrustedSource, ...]:
    """Return the MCP servers and links that content came from, each once."""
    return tuple(dict.fromkeys(source for item in attached if (source := _source_of(item)) is not None))


def _source_of(item: Attachment) -> UntrustedSource | None:
    match item:
        case UntrustedSource():
            return item
        case PendingPicture() | AttachedText() if item.server:
            return UntrustedSource("mcp", item.server, item.server_id)
        case _:
            return None


def to_draft(text: str, attached: Sequence[Attachment]) -> ComposerDraft:
    """Return text and attachments as a draft."""
    placed = [item for item in attached if isinstance(item, PendingPicture | UnreadablePicture | AttachedText)]
    record = Draft(
        text,
        images=tuple(item.image for item in _of_type(UnreadablePicture, attached)),
        resources=tuple(_of_type(AttachedText, attached)),
        outside=untrusted_sources(attached),
        pasted=tuple(item.text for item in _of_type(PastedText, attached)),
        resource_places=tuple(place for place, item in enumerate(placed) if isinstance(item, AttachedText)),
    )
    return ComposerDraft(record, tuple((item.taken, item.name) for item in _of_type(PendingPicture, attached)))


def _of_type(kind: type[_Kind], attached: Iterable[Attachment]) -> list[_Kind]:
    return [item for item in attached if isinstance(item, kind)]


def from_draft(draft: ComposerDraft) -> list[Attachment]:
    """Return the attachments of a draft. Which server a picture came from is not saved, only all servers are."""
    record = draft.record
    placed: list[Attachment] = [PendingPicture(name, picture) for picture, name in draft.pictures]
    placed += (UnreadablePicture(image) for image in record.images)
    places = chain(record.resource_places, repeat(len(placed) + len(record.resources)))
    for resource, place in zip(record.resources, places, strict=False):
        placed.insert(place, resource)
    return [*(PastedText(text) for text in record.pasted), *placed, *record.outside]


async def to_blocks(
    text: str, attached: Sequence[Attachment], pictures: PictureStore, *, in_memory: bool = False
) -> list[Block]:
    """Return text and attachments as blocks; files and content of a server get labelled blocks of their own.

    `in_memory`: pictures are not saved. Raises StorageFailed, and ImageRefused for a picture that could not be read
    before and is gone now.
    """
    pasted = (attachment.text for attachment in _of_type(PastedText, attached))
    whole = "\n\n".join(filter(None, (text, *pasted)))
    blocks: list[Block] = [Text(text=whole)] if whole.strip() else []
    for attachment in attached:
        if isinstance(attachment, AttachedText):
            blocks.append(Text(text=label_attached(attachment)))
        elif isinstance(attachment, PendingPicture):
            if attachment.server:
                label = f"\n\n[The next picture, “{attachment.name}”, is from the server “{attachment.server}”.]\n"
                blocks.append(Text(text=label))
            blocks.append(await (pictures.hold if in_memory else pictures.save)(attachment.taken, attachment.name))
        elif isinstance(attachment, UnreadablePicture):
            picture, name = await pictures.reload(attachment.image), attachment.image.name or ""
            blocks.append(await (pictures.hold if in_memory else pictures.save)(picture, name))
    return blocks


_EMPTY: tuple[str, list[Attachment]] = ("", [])
_FETCH_SECONDS = 3.0
"""Seconds that the end of the program waits for attachments that are loading."""


class DraftSync(QObject):
    """Puts the draft of the open conversation into the composer, and saves it after each change."""

    def __init__(
        self,
        composer: Composer,
        other_texts: Callable[[], Sequence[str]],
        library: ConversationSource,
        tasks: BackgroundTasks,
        parent: QObject,
    ) -> None:
        """`other_texts` returns texts written elsewhere on the page, which are saved with the draft."""
        super().__init__(parent)
        self._composer = composer
        self._other_texts = other_texts
        self._library = library
        self._tasks = tasks
        self._conversation: OpenConversation | None = None
        self._shown: OpenConversation | None = None
        self._saved: tuple[str, list[Attachment]] | None = ("", [])
        self._fetching: dict[AttachmentFetch, OpenConversation] = {}
        """Attachments that are loading for the draft of a conversation that is not shown."""
        self._lock = asyncio.Lock()
        self._leaving = 0
        """Drafts that are being saved after their conversation was left."""
        self._saved_after_leaving = asyncio.Event()
        composer.draft_timer.timeout.connect(self.save_soon)
        library.drafts.saved.connect(self._on_saved)

    def show(self, conversation: OpenConversation) -> None:
        """Show the draft of this conversation; the composer's text stays with the previous one.

        Attachments that are still loading are added to the previous conversation's draft when they arrive.
        """
        if (previous := self._conversation) is not None:
            fetches = self._composer.attachments.take_pending()
            self._fetching |= dict.fromkeys(fetches, previous)
            self._tasks.start(self._leave(self._saving_of(previous), fetches))
            self._leaving += 1
            self._composer.set_draft("")
        self._shown, self._conversation = None, conversation
        self._tasks.start(self._load(conversation))

    @property
    def is_loaded(self) -> bool:
        """Whether the saved draft is in the composer: it is loaded after its conversation is shown."""
        return self._shown is not None

    def current(self) -> tuple[str, list[Attachment]]:
        """Return the text and the attachments to be saved."""
        text, attached = self._composer.draft()
        return "\n\n".join(filter(None, (text, *self._other_texts()))), attached

    async def finish_fetches(self) -> bool:
        """Wait a limited time for attachments that are loading. Returns whether all arrived.

        Raises StorageFailed if one could not be saved.
        """
        try:
            async with asyncio.timeout(_FETCH_SECONDS):
                while self._leaving:
                    self._saved_after_leaving.clear()
                    await self._saved_after_leaving.wait()
                for fetch in tuple(self._fetching):
                    await self._add_fetched(fetch)
                await self._composer.attachments.wait_until_ready()
        except TimeoutError:
            return False
        return True

    def save_soon(self) -> None:
        """Save the draft in the background."""
        self._tasks.start(self.save())

    def save(self) -> Coroutine[Any, Any, None]:
        """Return a coroutine that saves the draft, which is read now. Raises StorageFailed."""
        draft = self.current()
        if self._shown is None and self._conversation is not None and draft != _EMPTY:
            return self._save_when_loaded(self._conversation)
        if self._shown is None or draft == self._saved:
            return _do_nothing()
        # Not known until the write succeeds: if the program quits meanwhile, it must save again.
        self._saved = None
        return self._save_changed(self._shown, draft, is_shared=self._is_shared)

    async def _save_when_loaded(self, conversation: OpenConversation) -> None:
        # If loading failed before, it is tried again with each change.
        await self._load(conversation)
        if self._shown is conversation:
            await self.save()

    @property
    def _is_shared(self) -> bool:
        """Whether other windows show the same draft: not while it holds edited texts of other messages."""
        return self._composer.edited is None and not self._other_texts()

    def _saving_of(self, conversation: OpenConversation) -> Coroutine[Any, Any, None]:
        draft = self.current()
        if self._shown is not None or draft == _EMPTY:
            return self.save()
        # Written before its draft was loaded, so append it.
        return self._library.drafts.add(conversation, to_draft(*draft))

    async def _leave(self, saving: Coroutine[Any, Any, None], fetches: Sequence[AttachmentFetch]) -> None:
        try:
            await saving
        finally:
            self._leaving -= 1
            self._saved_after_leaving.set()
            for fetch in fetches:
                self._tasks.start(self._save_fetched(fetch))

    async def _save_fetched(self, fetch: AttachmentFetch) -> None:
        for problem in await self._add_fetched(fetch):
            raise problem

    async def _add_fetched(self, fetch: AttachmentFetch) -> Sequence[AgentError]:
        try:
            result = await fetch.result()
        except Exception:
            self._fetching.pop(fetch, None)
            raise
        async with self._lock:
            conversation = self._fetching.get(fetch)
            if conversation is None:
                # Its conversation is open again, or the attachment is saved already.
                return ()
            if result.items:
                await self._library.drafts.add(conversation, to_draft("", result.items))
            del self._fetching[fetch]
        return result.problems

    async def _save_changed(
        self, conversation: OpenConversation, draft: tuple[str, list[Attachment]], *, is_shared: bool
    ) -> None:
        await self._library.drafts.save(conversation, to_draft(*draft))
        if self._shown is conversation and self.current() == draft:
            self._saved = draft
        if is_shared:
            self._library.drafts.saved.emit(conversation.id, draft, self)

    def _on_saved(self, conversation_id: str, draft: tuple[str, list[Attachment]], origin: object) -> None:
        """Show what is written in another window, unless something else is written here."""
        if origin is self or self._shown is None or self._shown.id != conversation_id or draft == self._saved:
            return
        composer = self._composer
        if self._is_shared and composer.draft() == self._saved and not composer.attachments.is_preparing:
            self._saved = draft
            composer.set_draft(*draft)

    async def return_message(self, conversation: OpenConversation, message: Message) -> None:
        """Return an undelivered message to the composer, or to the draft of its conversation."""
        content = await self._library.drafts.content_of(message)
        if not self.belongs_to(conversation):
            await self._library.drafts.add_message(conversation, message)
            return
        self._composer.restore_message(content.record.text, from_draft(content))
        self._show_problems(content)
        self.save_soon()

    def belongs_to(self, conversation: OpenConversation) -> bool:
        """Return whether the composer holds the draft of this conversation, also if that was reopened since."""
        return self._conversation is not None and _share_draft(self._conversation, conversation)

    async def _load(self, conversation: OpenConversation) -> None:
        async with self._lock:
            if conversation is self._shown:
                return
            draft = await self._library.drafts.load(conversation)
            if conversation is self._conversation:
                self._show_saved(conversation, draft)

    def _show_saved(self, conversation: OpenConversation, draft: ComposerDraft) -> None:
        attachments, attached = self._composer.attachments, from_draft(draft)
        self._saved, self._shown = (draft.record.text, attached), conversation
        fetches = [fetch for fetch, owner in self._fetching.items() if _share_draft(owner, conversation)]
        for fetch in fetches:
            del self._fetching[fetch]
        if not draft.record.text and not attached:
            # The composer's text and pasted texts stay as they are.
            self.save_soon()
        else:
            # Text that was written while the draft was loading goes to the end.
            written, added = self._composer.draft()
            fetches += attachments.take_pending()
            text = "\n\n".join(filter(None, (draft.record.text, written)))
            self._composer.set_draft(text, [*attached, *added])
        attachments.add_fetches(fetches)
        self._show_problems(draft)

    def _show_problems(self, draft: ComposerDraft) -> None:
        for problem in draft.problems:
            self._composer.show_problem(problem.sentence, problem.remedy)


def _share_draft(first: OpenConversation, second: OpenConversation) -> bool:
    """Return whether both have the same draft: all conversations without a message share one."""
    return first.id == second.id or not any(other.is_stored or other.is_found for other in (first, second))


async def _do_nothing() -> None:
    """Complete at once."""
