"""What is being written, kept on disk."""

from collections.abc import Sequence
from contextlib import suppress

from desktop_agent.conversation.picture_intake import TakenPicture
from desktop_agent.storage.records import Draft
from desktop_agent.storage.store import Store
from desktop_agent.vocabulary.errors import ImageRefused
from ui.bridge.conversation import OpenConversation
from ui.bridge.pictures import Pictures

DraftPicture = tuple[TakenPicture, str]


class KeptDrafts:
    """One draft a conversation; the one of a conversation that was never sent lies under no conversation."""

    def __init__(self, store: Store, pictures: Pictures) -> None:
        self._store = store
        self._pictures = pictures

    async def keep(self, conversation: OpenConversation, text: str, pictures: Sequence[DraftPicture]) -> None:
        """Keep what is being written there, for the next start. Raises StorageFailed."""
        key = None if conversation.is_empty else conversation.id
        images = tuple([await self._pictures.keep(taken, name) for taken, name in pictures])
        await self._store.save_draft(key, Draft(text, images))
        if key is not None and not text and not images:
            # What was written before the first prompt lay under no conversation; it has been sent by now.
            await self._store.save_draft(None, Draft())

    async def load(self, conversation: OpenConversation) -> tuple[str, list[DraftPicture]]:
        """What was being written there; pictures that are gone are left out."""
        key = None if conversation.is_empty else conversation.id
        draft = await self._store.load_draft(key)
        pictures: list[DraftPicture] = []
        for image in draft.images:
            with suppress(ImageRefused):
                pictures.append((await self._pictures.again(image), image.name or ""))
        return draft.text, pictures
