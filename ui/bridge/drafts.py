"""Drafts of messages on the disk, and what the disk still refuses when the program ends."""

import asyncio
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce

from desktop_agent.conversation.picture_preparation import ImportedPicture
from desktop_agent.storage.records import Draft, DraftResource
from desktop_agent.storage.store import Store
from desktop_agent.storage.write_behind import UnsavedConversation, unsaved_as_markdown
from desktop_agent.types.blocks import Base64Source, Block, Image, Text
from desktop_agent.types.errors import AgentError, ImageRefused, Sentence, StorageFailed, WrongUse
from desktop_agent.types.messages import Message
from desktop_agent.types.tool_calls import UntrustedSource
from ui.bridge.conversation import OpenConversation
from ui.bridge.storage import PictureStore

DraftPicture = tuple[ImportedPicture, str]


@dataclass(frozen=True, slots=True)
class ComposerDraft:
    """What was being written. `outside` are the MCP servers whose words or pictures are in it.

    `pasted` are the texts too long for an editor. `unreadable` are pictures whose files cannot be read now. `problems`
    say why others are left out.
    """

    text: str
    pictures: list[DraftPicture]
    resources: tuple[DraftResource, ...] = ()
    outside: tuple[UntrustedSource, ...] = ()
    pasted: tuple[str, ...] = ()
    unreadable: tuple[Image, ...] = ()
    problems: tuple[ImageRefused, ...] = field(default=(), compare=False)


class DraftStore:
    """One draft for each conversation; conversations that were never sent share one under no conversation.

    A draft that the disk refuses stays in memory and is read from there until the disk takes it.
    """

    def __init__(self, store: Store, pictures: PictureStore) -> None:
        self._store = store
        self._pictures = pictures
        # What is given back to a draft must not be lost to one who reads and writes it meanwhile.
        self._lock = asyncio.Lock()
        self._unsent_id = ""
        """The conversation whose draft lies under no conversation: of those never sent the last that had it."""
        self._refused: list[tuple[OpenConversation | str, ComposerDraft]] = []
        """What the disk did not take, or not yet, and whose it is: one draft each."""
        self._refused_additions: list[tuple[OpenConversation | str, ComposerDraft]] = []
        """What the disk did not take behind the drafts of conversations."""
        self._in_front = Draft()
        """The draft under no conversation, without `_of_deleted`."""
        self._of_deleted: dict[str, Draft] = {}
        """Drafts of conversations that are gone. They lie behind it until all of it is read into a composer."""

    async def keep(self, conversation: OpenConversation, kept: ComposerDraft) -> None:
        """Save the draft of a conversation. Raises StorageFailed; `load` returns it all the same."""
        async with self._lock:
            await self._save_draft(conversation, kept)

    async def save_immediately(
        self, conversation: OpenConversation | None, kept: ComposerDraft, *, behind: bool
    ) -> None:
        """Save the draft at the program's end, on any loop and without the lock, because the window's loop stands
        still.

        Refused drafts of other conversations are tried again. Raises AgentError if there is text but no conversation.
        `behind`: the saved draft was not loaded yet, so append this one to it.
        """
        try:
            if conversation is not None and not behind:
                await self._save_draft(conversation, kept)
            elif conversation is not None and kept != ComposerDraft("", []):
                await self._add(conversation, await self._as_record(kept))
            elif kept != ComposerDraft("", []):
                # There is none that it could be kept in, and none can be made without the window's loop.
                raise AgentError(Sentence("No conversation was shown yet."))
        finally:
            await self._retry_refused()

    async def retry_refused(self) -> None:
        """Try once more to save each draft that the disk refused. Raises StorageFailed."""
        async with self._lock:
            await self._retry_refused()

    @property
    def refused(self) -> tuple[ComposerDraft, ...]:
        """The drafts that are in memory alone."""
        return tuple(kept for _, kept in (*self._refused, *self._refused_additions))

    async def add(self, of: OpenConversation | str, added: ComposerDraft) -> None:
        """Append to the draft of a conversation, or of the stored one with this id. Raises as `keep`."""
        async with self._lock:
            try:
                await self._add(of, await self._as_record(added))
            except StorageFailed:
                self._refused_additions.append((of, added))
                raise

    async def load(self, conversation: OpenConversation) -> ComposerDraft:
        """Return the draft of a conversation; pictures that are gone or damaged are left out."""
        async with self._lock:
            current = self._refused_of(conversation)
            if current is None:
                current = await self._read(await self._load(conversation))
            else:
                self._hold_in_memory(conversation, current)
                self._unsent_id = self._unsent_id if _draft_key(conversation) else conversation.id
            behind = [each for each in self._refused_additions if _draft_key(each[0]) == _draft_key(conversation)]
            if behind:
                current = merge_drafts((current, *(added for _, added in behind)))
                self._hold_in_memory(conversation, current)
                self._refused_additions = [each for each in self._refused_additions if each not in behind]
            return current

    async def give_back(self, of: OpenConversation | str, message: Message) -> None:
        """Append an undelivered message to the draft of a conversation that is not shown. Raises as `keep`."""
        async with self._lock:
            try:
                await self._add(of, Draft(message.text, _images(message)))
            except StorageFailed:
                self._refused_additions.append((of, await self.content_of(message)))
                raise

    async def content_of(self, message: Message) -> ComposerDraft:
        """Return a message as a draft; pictures that are gone or damaged are left out."""
        return await self._read(Draft(message.text, _images(message)))

    async def _add(self, of: OpenConversation | str, added: Draft) -> None:
        # As a record: a picture that cannot be read now would be left out for good.
        before = self._of_deleted.get(_conversation_id(of), Draft())
        try:
            if (refused := self._refused_of(of)) is not None:
                before = await self._as_record(refused)
            else:
                before = await (self._store.load_draft(of) if isinstance(of, str) else self._load(of))
            await self._save(of, _merge_records(before, added))
        except WrongUse:
            # The conversation went away with a file that was replaced: what comes back to it did not.
            await self._save_of_deleted(of, _merge_records(before, added))
        self._forget_refused(of)

    async def _read(self, draft: Draft) -> ComposerDraft:
        pictures: list[DraftPicture] = []
        unreadable: list[Image] = []
        problems: list[ImageRefused] = []
        for image in draft.images:
            try:
                pictures.append((await self._pictures.reload(image), image.name or ""))
            except StorageFailed:
                unreadable.append(image)
            except ImageRefused as refused:
                problems.append(refused)
        return ComposerDraft(
            draft.text, pictures, draft.resources, draft.outside, draft.pasted, tuple(unreadable), tuple(problems)
        )

    async def _save_draft(self, of: OpenConversation | str, kept: ComposerDraft) -> None:
        # Before: whoever waits for the disk may never hear what it says.
        self._hold_in_memory(of, kept)
        draft = await self._as_record(kept)
        try:
            await self._save(of, draft)
        except WrongUse:
            # As in `_add`.
            await self._save_of_deleted(of, draft)
        self._forget_refused(of)

    async def _retry_refused(self) -> None:
        failed: StorageFailed | None = None
        for of, kept in tuple(self._refused):
            try:
                await self._save_draft(of, kept)
            except StorageFailed as error:
                failed = error
        for each in tuple(self._refused_additions):
            of, added = each
            try:
                await self._add(of, await self._as_record(added))
            except StorageFailed as error:
                failed = error
            else:
                self._refused_additions.remove(each)
        if failed is not None:
            raise failed

    def _refused_of(self, of: OpenConversation | str) -> ComposerDraft | None:
        return next((kept for other, kept in self._refused if _draft_key(other) == _draft_key(of)), None)

    def _hold_in_memory(self, of: OpenConversation | str, kept: ComposerDraft) -> None:
        self._forget_refused(of)
        self._refused.append((of, kept))

    def _forget_refused(self, of: OpenConversation | str) -> None:
        # By what they are now: one that was never sent may have been sent since.
        self._refused = [each for each in self._refused if _draft_key(each[0]) != _draft_key(of)]

    async def _save(self, of: OpenConversation | str, draft: Draft) -> None:
        if isinstance(of, str):
            await self._store.save_draft(of, draft)
            return
        if not await of.ensure_stored():
            await self._save_unsent(draft, self._of_deleted)
            self._unsent_id = of.id
            return
        is_first = of.id == self._unsent_id
        if is_first and self._of_deleted:
            # What was written before the first prompt has been sent by now; what lies behind it was not.
            await self._save_unsent(Draft(), self._of_deleted)
        await self._store.save_draft(of.id, draft, was_new=is_first and not self._of_deleted)
        if is_first:
            self._unsent_id = ""

    async def _save_unsent(self, in_front: Draft, of_gone: dict[str, Draft]) -> None:
        await self._store.save_draft(None, reduce(_merge_records, of_gone.values(), in_front))
        self._in_front, self._of_deleted = in_front, of_gone

    async def _save_of_deleted(self, of: OpenConversation | str, draft: Draft) -> None:
        """Save behind the shared draft, in place of an earlier one of the same conversation."""
        in_front = self._in_front if self._of_deleted else await self._store.load_draft(None)
        await self._save_unsent(in_front, {**self._of_deleted, _conversation_id(of): draft})

    async def _as_record(self, kept: ComposerDraft) -> Draft:
        images = tuple([await self._pictures.keep(taken, name) for taken, name in kept.pictures])
        return Draft(kept.text, (*images, *kept.unreadable), kept.resources, kept.outside, kept.pasted)

    async def _load(self, conversation: OpenConversation) -> Draft:
        draft = await self._store.load_draft(conversation.id) if conversation.is_stored else Draft()
        if not conversation.is_empty or draft != Draft():
            return draft
        draft = await self._store.load_draft(None)
        self._unsent_id = conversation.id
        self._of_deleted = {}
        return draft


def merge_drafts(drafts: Sequence[ComposerDraft]) -> ComposerDraft:
    """Join drafts in this order."""
    return ComposerDraft(
        "\n\n".join(each.text for each in drafts if each.text),
        [picture for each in drafts for picture in each.pictures],
        tuple(resource for each in drafts for resource in each.resources),
        tuple(dict.fromkeys(source for each in drafts for source in each.outside)),
        tuple(text for each in drafts for text in each.pasted),
        tuple(image for each in drafts for image in each.unreadable),
        tuple(problem for each in drafts for problem in each.problems),
    )


def _draft_key(of: OpenConversation | str) -> str:
    """Return what the draft is saved under; "" for all conversations that were never sent."""
    if isinstance(of, str):
        return of
    return of.id if of.is_stored else ""


def _conversation_id(of: OpenConversation | str) -> str:
    return of if isinstance(of, str) else of.id


def _merge_records(draft: Draft, added: Draft) -> Draft:
    return Draft(
        "\n\n".join(each for each in (draft.text, added.text) if each),
        (*draft.images, *added.images),
        (*draft.resources, *added.resources),
        tuple(dict.fromkeys((*draft.outside, *added.outside))),
        (*draft.pasted, *added.pasted),
    )


def _images(message: Message) -> tuple[Image, ...]:
    return tuple(block for block in message.blocks if isinstance(block, Image))


_MAX_NAMED = 3
"""So many conversations are named; the others are counted."""
_DRAFT_UNSAVED = Sentence("What is being written could not be saved.")
_DRAFT_UNSAVED_TOO = Sentence("What is being written could not be saved either.")


@dataclass(frozen=True, slots=True)
class UnsavedContent:
    """What the disk refused: conversations and the draft."""

    conversations: tuple[UnsavedConversation, ...] = ()
    draft: ComposerDraft | None = None

    def __bool__(self) -> bool:
        return bool(self.conversations or self.draft)

    @property
    def sentence(self) -> Sentence:
        """Say what could not be saved, and why."""
        if not self.conversations:
            return _DRAFT_UNSAVED
        titles = ", ".join(f"“{each.record.title}”" for each in self.conversations[:_MAX_NAMED])
        more = len(self.conversations) - _MAX_NAMED
        values = {"titles": titles, "more": str(more), "why": self.conversations[0].reason.sentence}
        sentence = Sentence("{titles} could not be saved: {why}", values)
        if more > 0:
            sentence = Sentence("{titles} and {more} more could not be saved: {why}", values)
        if self.draft is None:
            return sentence
        return Sentence("{conversations} {draft}", {"conversations": sentence, "draft": _DRAFT_UNSAVED_TOO})

    def to_markdown(self) -> bytes:
        """See `desktop_agent.storage.write_behind`. Slow with pictures."""
        draft = None if self.draft is None else _as_message(self.draft)
        return unsaved_as_markdown(self.conversations, draft).encode("utf-8", "backslashreplace")


def _as_message(draft: ComposerDraft) -> Message:
    blocks: list[Block] = [Text(text=text) for text in (draft.text, *draft.pasted) if text]
    blocks += [Text(text=f"{each.title} ({each.uri}):\n\n{each.text}") for each in draft.resources]
    for taken, name in draft.pictures:
        source = Base64Source(media_type=taken.media_type, data=b64encode(taken.data).decode())
        blocks.append(Image(source=source, name=name))
    blocks += draft.unreadable
    return Message.user_with_blocks(blocks)
