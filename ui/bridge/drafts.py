"""What is being written, kept on disk."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from desktop_agent.conversation.picture_intake import TakenPicture
from desktop_agent.storage.records import Draft, DraftResource
from desktop_agent.storage.store import Store
from desktop_agent.vocabulary.blocks import Image
from desktop_agent.vocabulary.errors import ImageRefused, StorageFailed, WrongUse
from desktop_agent.vocabulary.messages import Message
from desktop_agent.vocabulary.tool_calls import UntrustedSource
from ui.bridge.conversation import OpenConversation
from ui.bridge.pictures import Pictures

__all__ = ["DraftPicture", "DraftResource", "KeptDraft", "KeptDrafts", "together"]

DraftPicture = tuple[TakenPicture, str]


@dataclass(frozen=True, slots=True)
class KeptDraft:
    """What was being written. `outside` are the MCP servers whose words or pictures are in it.

    `pasted` are the texts too long for an editor.
    """

    text: str
    pictures: list[DraftPicture]
    resources: tuple[DraftResource, ...] = ()
    outside: tuple[UntrustedSource, ...] = ()
    pasted: tuple[str, ...] = ()


class KeptDrafts:
    """One draft a conversation; the one of a conversation that was never sent lies under no conversation."""

    def __init__(self, store: Store, pictures: Pictures) -> None:
        self._store = store
        self._pictures = pictures
        # What is given back to a draft must not be lost to one who reads and writes it meanwhile.
        self._lock = asyncio.Lock()
        self._under_none: set[str] = set()
        """Conversations whose draft lies under no conversation, as they had no place on the disk."""
        self._refused: dict[str, tuple[OpenConversation, KeptDraft]] = {}
        """What the disk did not take; under the empty name that of all that were never sent."""

    async def keep(self, conversation: OpenConversation, kept: KeptDraft) -> None:
        """Keep what is being written there, for the next start. Raises StorageFailed; `load` knows it all the same."""
        async with self._lock:
            name = _name(conversation)
            try:
                await self._keep(conversation, kept)
            except StorageFailed:
                self._refused[name] = conversation, kept
                raise
            self._forget_refused(conversation)

    async def keep_refused(self) -> None:
        """Try once more to keep the drafts that the disk refused. Raises StorageFailed."""
        for conversation, kept in tuple(self._refused.values()):
            await self.keep(conversation, kept)

    @property
    def refused(self) -> tuple[KeptDraft, ...]:
        """The drafts that the disk refused, which are in memory alone."""
        return tuple(kept for _, kept in self._refused.values())

    async def add(self, conversation: OpenConversation, added: KeptDraft) -> None:
        """Keep this behind what is being written there. As `keep`."""
        async with self._lock:
            key = conversation.id if await conversation.has_place() else None
            behind = await self._as_record(added)
            try:
                await self._store.save_draft(key, _joined(await self._current(conversation), behind))
                self._forget_refused(conversation)
            except WrongUse:
                # As in `keep`.
                await self._store.save_draft(None, _joined(await self._store.load_draft(None), behind))

    async def load(self, conversation: OpenConversation) -> KeptDraft:
        """What was being written there; pictures that are gone are left out."""
        async with self._lock:
            if (refused := self._refused.get(_name(conversation))) is not None:
                return refused[1]
            draft = await self._load(conversation)
        return KeptDraft(draft.text, await self._taken(draft.images), draft.resources, draft.outside, draft.pasted)

    async def give_back(self, conversation_id: str, message: Message) -> None:
        """A message was not delivered while nobody looked: it is to be written again, after what is. As `keep`."""
        async with self._lock:
            refused = self._refused.get(conversation_id)
            before = await (self._as_record(refused[1]) if refused else self._store.load_draft(conversation_id))
            await self._store.save_draft(conversation_id, _joined(before, Draft(message.text, _images(message))))
            self._refused.pop(conversation_id, None)

    async def content_of(self, message: Message) -> tuple[str, list[DraftPicture]]:
        """A message as it was written; pictures that are gone are left out."""
        return message.text, await self._taken(_images(message))

    def _forget_refused(self, conversation: OpenConversation) -> None:
        self._refused.pop(_name(conversation), None)
        # It may have been sent since.
        if (never_sent := self._refused.get("")) is not None and never_sent[0].id == conversation.id:
            del self._refused[""]

    async def _current(self, conversation: OpenConversation) -> Draft:
        refused = self._refused.get(_name(conversation))
        return await (self._as_record(refused[1]) if refused else self._load(conversation))

    async def _keep(self, conversation: OpenConversation, kept: KeptDraft) -> None:
        key = conversation.id if await conversation.has_place() else None
        draft = await self._as_record(kept)
        try:
            await self._store.save_draft(key, draft)
        except WrongUse:
            # The conversation went away with a file that was replaced: what is being written did not.
            await self._store.save_draft(None, draft)
            return
        if key is None:
            self._under_none.add(conversation.id)
        elif conversation.id in self._under_none:
            # What was written before the first prompt has been sent by now.
            await self._store.save_draft(None, Draft())
            self._under_none.discard(conversation.id)

    async def _as_record(self, kept: KeptDraft) -> Draft:
        images = tuple([await self._pictures.keep(taken, name) for taken, name in kept.pictures])
        return Draft(kept.text, images, kept.resources, kept.outside, kept.pasted)

    async def _load(self, conversation: OpenConversation) -> Draft:
        draft = await self._store.load_draft(conversation.id) if conversation.is_kept else Draft()
        if not conversation.is_empty or draft != Draft():
            return draft
        self._under_none.add(conversation.id)
        return await self._store.load_draft(None)

    async def _taken(self, images: Sequence[Image]) -> list[DraftPicture]:
        pictures: list[DraftPicture] = []
        for image in images:
            with suppress(ImageRefused):
                pictures.append((await self._pictures.again(image), image.name or ""))
        return pictures


def together(drafts: Sequence[KeptDraft]) -> KeptDraft:
    """All of them as one."""
    return KeptDraft(
        "\n\n".join(each.text for each in drafts if each.text),
        [picture for each in drafts for picture in each.pictures],
        tuple(resource for each in drafts for resource in each.resources),
        tuple(dict.fromkeys(source for each in drafts for source in each.outside)),
        tuple(text for each in drafts for text in each.pasted),
    )


def _name(conversation: OpenConversation) -> str:
    """All that were never sent have one draft."""
    return conversation.id if conversation.is_kept else ""


def _joined(draft: Draft, added: Draft) -> Draft:
    return Draft(
        "\n\n".join(each for each in (draft.text, added.text) if each),
        (*draft.images, *added.images),
        (*draft.resources, *added.resources),
        tuple(dict.fromkeys((*draft.outside, *added.outside))),
        (*draft.pasted, *added.pasted),
    )


def _images(message: Message) -> tuple[Image, ...]:
    return tuple(block for block in message.blocks if isinstance(block, Image))
