"""What is being written, kept on disk."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from desktop_agent.conversation.picture_intake import TakenPicture
from desktop_agent.storage.records import Draft, DraftResource
from desktop_agent.storage.store import Store
from desktop_agent.vocabulary.blocks import Image
from desktop_agent.vocabulary.errors import ImageRefused, WrongUse
from desktop_agent.vocabulary.messages import Message
from desktop_agent.vocabulary.tool_calls import UntrustedSource
from ui.bridge.conversation import OpenConversation
from ui.bridge.pictures import Pictures

__all__ = ["DraftPicture", "DraftResource", "KeptDraft", "KeptDrafts"]

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

    async def keep(self, conversation: OpenConversation, kept: KeptDraft) -> None:
        """Keep what is being written there, for the next start. Raises StorageFailed."""
        key = conversation.id if await conversation.has_place() else None
        draft = await self._as_record(kept)
        async with self._lock:
            try:
                await self._store.save_draft(key, draft)
            except WrongUse:
                # The conversation went away with a file that was replaced: what is being written did not.
                await self._store.save_draft(None, draft)
            if key is not None and draft == Draft():
                # What was written before the first prompt lay under no conversation; it has been sent by now.
                await self._store.save_draft(None, Draft())

    async def add(self, conversation: OpenConversation, added: KeptDraft) -> None:
        """Keep this behind what is being written there. As `keep`."""
        key = conversation.id if await conversation.has_place() else None
        behind = await self._as_record(added)
        async with self._lock:
            try:
                await self._store.save_draft(key, _joined(await self._load(conversation), behind))
            except WrongUse:
                # As in `keep`.
                await self._store.save_draft(None, _joined(await self._store.load_draft(None), behind))

    async def load(self, conversation: OpenConversation) -> KeptDraft:
        """What was being written there; pictures that are gone are left out."""
        async with self._lock:
            draft = await self._load(conversation)
        return KeptDraft(draft.text, await self._taken(draft.images), draft.resources, draft.outside, draft.pasted)

    async def give_back(self, conversation_id: str, message: Message) -> None:
        """A message was not delivered while nobody looked: it is to be written again, after what is. As `keep`."""
        async with self._lock:
            draft = _joined(await self._store.load_draft(conversation_id), Draft(message.text, _images(message)))
            await self._store.save_draft(conversation_id, draft)

    async def content_of(self, message: Message) -> tuple[str, list[DraftPicture]]:
        """A message as it was written; pictures that are gone are left out."""
        return message.text, await self._taken(_images(message))

    async def _as_record(self, kept: KeptDraft) -> Draft:
        images = tuple([await self._pictures.keep(taken, name) for taken, name in kept.pictures])
        return Draft(kept.text, images, kept.resources, kept.outside, kept.pasted)

    async def _load(self, conversation: OpenConversation) -> Draft:
        draft = await self._store.load_draft(conversation.id) if conversation.is_kept else Draft()
        return await self._store.load_draft(None) if conversation.is_empty and draft == Draft() else draft

    async def _taken(self, images: Sequence[Image]) -> list[DraftPicture]:
        pictures: list[DraftPicture] = []
        for image in images:
            with suppress(ImageRefused):
                pictures.append((await self._pictures.again(image), image.name or ""))
        return pictures


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
