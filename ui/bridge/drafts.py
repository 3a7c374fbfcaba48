"""Drafts of messages on the disk, and what the disk still refuses when the program ends."""

import asyncio
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from PySide6.QtCore import QObject, Signal

from desktop_agent.conversation.picture_preparation import ImportedPicture
from desktop_agent.storage.records import Draft
from desktop_agent.storage.store import Store
from desktop_agent.storage.write_behind import UnsavedConversation, unsaved_as_markdown
from desktop_agent.types.blocks import Base64Source, Block, Image, Text
from desktop_agent.types.errors import AgentError, ImageRefused, Sentence, StorageFailed, WrongUse
from desktop_agent.types.messages import Message, split_attached
from ui.bridge.conversation import OpenConversation
from ui.bridge.found_histories import is_found_id
from ui.bridge.sentence_lists import quoted_names
from ui.bridge.storage import PictureStore

# `Draft` too: the shell imports nothing from the storage.
__all__ = ["ComposerDraft", "Draft", "DraftPicture", "DraftStore", "UnsavedContent", "merge_drafts"]

DraftPicture = tuple[ImportedPicture, str]
DraftOwner = OpenConversation | str
"""A conversation, or the id of a stored one."""


@dataclass(frozen=True, slots=True)
class ComposerDraft:
    """A draft with its pictures loaded. The images of `record` are those whose files cannot be read now.

    `problems` say why other pictures are left out.
    """

    record: Draft = field(default_factory=Draft)
    pictures: tuple[DraftPicture, ...] = ()
    problems: tuple[ImageRefused, ...] = field(default=(), compare=False)


class DraftStore(QObject):
    """One draft for each conversation; conversations that were never sent share one under no conversation.

    A draft that the disk refuses stays in memory and is read from there until the disk takes it. Drafts of
    conversations that are never stored are only in memory; conversations of other programs have none.
    """

    saved = Signal(str, object, object)
    """A draft was saved: its conversation's id, the text with its attachments, and who saved it."""

    def __init__(self, store: Store, pictures: PictureStore) -> None:
        super().__init__()
        self._store = store
        self._pictures = pictures
        # Nothing may be appended to a draft between reading and writing it.
        self._lock = asyncio.Lock()
        self._unsent_id = ""
        """The conversation without messages that last had the draft under no conversation."""
        self._refused: list[tuple[DraftOwner, ComposerDraft]] = []
        """Drafts that the disk did not take, or not yet: one for each owner."""
        self._refused_additions: list[tuple[DraftOwner, ComposerDraft]] = []
        """Additions to drafts that the disk did not take."""
        self._in_memory_drafts: dict[str, ComposerDraft | None] = {}
        """By the ids of conversations that are never stored; None for one that was closed."""
        self._in_front = Draft()
        """The draft under no conversation, without `_of_deleted`."""
        self._of_deleted: dict[str, Draft] = {}
        """Drafts of deleted conversations, saved after `_in_front` until a composer loads all of it."""

    async def save(self, conversation: OpenConversation, draft: ComposerDraft) -> None:
        """Save the draft of a conversation. Raises StorageFailed; `load` returns the draft even then."""
        if self._save_in_memory(conversation, draft):
            return
        async with self._lock:
            await self._save_draft(conversation, draft)

    def hold_in_memory(self, conversation_id: str) -> None:
        """Never store the drafts of this conversation."""
        self._in_memory_drafts[conversation_id] = ComposerDraft()

    def in_memory(self, conversation_id: str) -> ComposerDraft | None:
        """Return the draft of a conversation that is never stored; None if it is empty."""
        draft = self._in_memory_drafts.get(conversation_id)
        return None if draft == ComposerDraft() else draft

    def discard_in_memory(self, conversation_id: str) -> None:
        """Forget the draft of such a conversation, and ignore drafts saved for it later."""
        self._in_memory_drafts[conversation_id] = None

    async def store_from_memory(self, conversation_id: str) -> None:
        """Save the draft of such a conversation, which is stored by now. Raises as `save`."""
        draft = self._in_memory_drafts.pop(conversation_id, None)
        if draft is not None and draft != ComposerDraft():
            await self.add(conversation_id, draft)

    def _save_in_memory(self, owner: DraftOwner, draft: ComposerDraft, *, is_addition: bool = False) -> bool:
        """Save a draft in memory if it must not be stored, and return whether that is so."""
        key = _conversation_id(owner)
        if is_found_id(key):
            return True
        if key not in self._in_memory_drafts:
            return False
        previous = self._in_memory_drafts[key]
        if previous is not None:
            self._in_memory_drafts[key] = merge_drafts((previous, draft)) if is_addition else draft
        return True

    async def save_immediately(
        self, conversation: OpenConversation | None, draft: ComposerDraft, *, is_addition: bool
    ) -> None:
        """Save the draft at the program's end, on any loop and without the lock: the window's loop is stopped.

        Refused drafts of other conversations are tried again. Raises AgentError if there is text but no conversation.
        `is_addition`: the saved draft was not loaded yet, so append this one to it.
        """
        try:
            if conversation is not None and self._save_in_memory(conversation, draft, is_addition=is_addition):
                pass
            elif conversation is not None and not is_addition:
                await self._save_draft(conversation, draft)
            elif conversation is not None and draft != ComposerDraft():
                await self._add(conversation, await self._to_record(draft))
            elif draft != ComposerDraft():
                # No conversation can be made without the window's loop.
                raise AgentError(Sentence("No conversation was shown yet."))
        finally:
            await self._retry_refused()

    async def retry_refused(self) -> None:
        """Try once more to save each draft that the disk refused. Raises StorageFailed."""
        async with self._lock:
            await self._retry_refused()

    @property
    def refused(self) -> tuple[ComposerDraft, ...]:
        """The drafts that the disk refused and that are only in memory."""
        return tuple(draft for _, draft in (*self._refused, *self._refused_additions))

    async def add(self, owner: DraftOwner, draft: ComposerDraft) -> None:
        """Append to the draft of a conversation. Raises as `save`."""
        if self._save_in_memory(owner, draft, is_addition=True):
            return
        async with self._lock:
            try:
                await self._add(owner, await self._to_record(draft))
            except StorageFailed:
                self._refused_additions.append((owner, draft))
                raise

    async def load(self, conversation: OpenConversation) -> ComposerDraft:
        """Return the draft of a conversation; pictures that are gone or damaged are left out."""
        if conversation.is_found or conversation.id in self._in_memory_drafts:
            return self._in_memory_drafts.get(conversation.id) or ComposerDraft()
        async with self._lock:
            draft = self._refused_of(conversation)
            if draft is None:
                draft = await self._load_pictures(await self._load(conversation))
            else:
                self._remember_refused(conversation, draft)
                self._unsent_id = self._unsent_id if _draft_key(conversation) else conversation.id
            key = _draft_key(conversation)
            additions = [addition for addition in self._refused_additions if _draft_key(addition[0]) == key]
            if additions:
                draft = merge_drafts((draft, *(added for _, added in additions)))
                self._remember_refused(conversation, draft)
                self._refused_additions = [other for other in self._refused_additions if other not in additions]
            return draft

    async def add_message(self, owner: DraftOwner, message: Message) -> None:
        """Append an undelivered message to the draft of a conversation that is not shown. Raises as `save`."""
        if _conversation_id(owner) in self._in_memory_drafts:
            self._save_in_memory(owner, await self.content_of(message), is_addition=True)
            return
        async with self._lock:
            try:
                await self._add(owner, _message_record(message))
            except StorageFailed:
                self._refused_additions.append((owner, await self.content_of(message)))
                raise

    async def content_of(self, message: Message) -> ComposerDraft:
        """Return a message as a draft; pictures that are gone or damaged are left out."""
        return await self._load_pictures(_message_record(message))

    async def _add(self, owner: DraftOwner, added: Draft) -> None:
        # As a record: otherwise a picture that cannot be read now would be lost.
        draft = self._of_deleted.get(_conversation_id(owner), Draft())
        try:
            if (refused := self._refused_of(owner)) is not None:
                draft = await self._to_record(refused)
            else:
                draft = await (self._store.load_draft(owner) if isinstance(owner, str) else self._load(owner))
            await self._save(owner, _merge_records(draft, added))
        except WrongUse:
            # The conversation was deleted with a file that was replaced; keep what is added now.
            await self._save_of_deleted(owner, _merge_records(draft, added))
        self._forget_refused(owner)

    async def _load_pictures(self, record: Draft) -> ComposerDraft:
        pictures: list[DraftPicture] = []
        unreadable: list[Image] = []
        problems: list[ImageRefused] = []
        for image in record.images:
            try:
                pictures.append((await self._pictures.reload(image), image.name or ""))
            except StorageFailed:
                unreadable.append(image)
            except ImageRefused as error:
                problems.append(error)
        return ComposerDraft(replace(record, images=tuple(unreadable)), tuple(pictures), tuple(problems))

    async def _to_record(self, draft: ComposerDraft) -> Draft:
        images = [await self._pictures.save(picture, name) for picture, name in draft.pictures]
        return replace(draft.record, images=(*images, *draft.record.images))

    async def _save_draft(self, owner: DraftOwner, draft: ComposerDraft) -> None:
        # Remember it first: the caller may be cancelled before the disk answers.
        self._remember_refused(owner, draft)
        record = await self._to_record(draft)
        try:
            await self._save(owner, record)
        except WrongUse:
            # As in `_add`.
            await self._save_of_deleted(owner, record)
        self._forget_refused(owner)

    async def _retry_refused(self) -> None:
        failed: StorageFailed | None = None
        for owner, draft in tuple(self._refused):
            try:
                await self._save_draft(owner, draft)
            except StorageFailed as error:
                failed = error
        for addition in tuple(self._refused_additions):
            owner, draft = addition
            try:
                await self._add(owner, await self._to_record(draft))
            except StorageFailed as error:
                failed = error
            else:
                self._refused_additions.remove(addition)
        if failed is not None:
            raise failed

    def _refused_of(self, owner: DraftOwner) -> ComposerDraft | None:
        return next((draft for other, draft in self._refused if _draft_key(other) == _draft_key(owner)), None)

    def _remember_refused(self, owner: DraftOwner, draft: ComposerDraft) -> None:
        self._forget_refused(owner)
        self._refused.append((owner, draft))

    def _forget_refused(self, owner: DraftOwner) -> None:
        # By the current keys: a conversation without messages may have got one since.
        self._refused = [refused for refused in self._refused if _draft_key(refused[0]) != _draft_key(owner)]

    async def _save(self, owner: DraftOwner, record: Draft) -> None:
        if isinstance(owner, str):
            await self._store.save_draft(owner, record)
            return
        if not await owner.ensure_stored():
            await self._save_unsent(record, self._of_deleted)
            self._unsent_id = owner.id
            return
        is_first = owner.id == self._unsent_id
        if is_first and self._of_deleted:
            # The draft in front was sent as the first prompt; the drafts saved after it were not.
            await self._save_unsent(Draft(), self._of_deleted)
        await self._store.save_draft(owner.id, record, was_new=is_first and not self._of_deleted)
        if is_first:
            self._unsent_id = ""

    async def _save_unsent(self, in_front: Draft, of_deleted: dict[str, Draft]) -> None:
        await self._store.save_draft(None, _merge_records(in_front, *of_deleted.values()))
        self._in_front, self._of_deleted = in_front, of_deleted

    async def _save_of_deleted(self, owner: DraftOwner, record: Draft) -> None:
        """Save the record after the shared draft, in place of an earlier one of the same conversation."""
        in_front = self._in_front if self._of_deleted else await self._store.load_draft(None)
        await self._save_unsent(in_front, {**self._of_deleted, _conversation_id(owner): record})

    async def _load(self, conversation: OpenConversation) -> Draft:
        record = await self._store.load_draft(conversation.id) if conversation.is_stored else Draft()
        if not conversation.is_empty or record != Draft():
            return record
        record = await self._store.load_draft(None)
        self._unsent_id = conversation.id
        self._of_deleted = {}
        return record


def merge_drafts(drafts: Sequence[ComposerDraft]) -> ComposerDraft:
    """Join drafts in this order."""
    return ComposerDraft(
        _merge_records(*(draft.record for draft in drafts)),
        tuple(picture for draft in drafts for picture in draft.pictures),
        tuple(problem for draft in drafts for problem in draft.problems),
    )


def _merge_records(*records: Draft) -> Draft:
    return Draft(
        "\n\n".join(record.text for record in records if record.text),
        tuple(image for record in records for image in record.images),
        tuple(resource for record in records for resource in record.resources),
        tuple(dict.fromkeys(source for record in records for source in record.outside)),
        tuple(text for record in records for text in record.pasted),
        records[0].resource_places if records else (),
    )


def _message_record(message: Message) -> Draft:
    typed, attached = split_attached(message.text)
    images = tuple(block for block in message.blocks if isinstance(block, Image))
    return Draft(typed, images, attached)


def _draft_key(owner: DraftOwner) -> str:
    """Return the id under which the draft is saved; "" for all conversations without messages."""
    if isinstance(owner, str):
        return owner
    return owner.id if owner.is_stored else ""


def _conversation_id(owner: DraftOwner) -> str:
    return owner if isinstance(owner, str) else owner.id


_MAX_NAMED = 3
"""Conversations that are named; the others are counted."""
_DRAFT_UNSAVED = Sentence("The message that you are writing could not be saved.")
_DRAFT_UNSAVED_TOO = Sentence("The message that you are writing could not be saved either.")


@dataclass(frozen=True, slots=True)
class UnsavedContent:
    """What the disk refused: conversations and the draft."""

    conversations: tuple[UnsavedConversation, ...] = ()
    draft: ComposerDraft | None = None

    def __bool__(self) -> bool:
        return bool(self.conversations or self.draft)

    @property
    def sentence(self) -> Sentence:
        """What could not be saved, and why."""
        if not self.conversations:
            return _DRAFT_UNSAVED
        titles = quoted_names([unsaved.record.title for unsaved in self.conversations[:_MAX_NAMED]])
        more = len(self.conversations) - _MAX_NAMED
        values = {"titles": titles, "more": str(more), "why": self.conversations[0].reason.sentence}
        sentence = Sentence("{titles} could not be saved: {why}", values)
        if more > 0:
            sentence = Sentence("{titles} and {more} more could not be saved: {why}", values)
        if self.draft is None:
            return sentence
        return Sentence("{conversations} {draft}", {"conversations": sentence, "draft": _DRAFT_UNSAVED_TOO})

    def to_markdown(self) -> bytes:
        """Return the content as `unsaved_as_markdown` does. Slow with pictures."""
        draft = None if self.draft is None else _as_message(self.draft)
        return unsaved_as_markdown(self.conversations, draft).encode("utf-8", "backslashreplace")


def _as_message(draft: ComposerDraft) -> Message:
    record = draft.record
    blocks: list[Block] = [Text(text=text) for text in (record.text, *record.pasted) if text]
    for resource in record.resources:
        name = f"{resource.title} ({resource.uri})" if resource.uri else resource.title
        blocks.append(Text(text=f"{name}:\n\n{resource.text}"))
    for picture, name in draft.pictures:
        source = Base64Source(media_type=picture.media_type, data=b64encode(picture.data).decode())
        blocks.append(Image(source=source, name=name))
    blocks += record.images
    return Message.user_with_blocks(blocks)
