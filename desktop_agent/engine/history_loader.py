"""Loads messages of a conversation that are not in memory: above those of the branch in view, and other branches."""

import asyncio
from collections.abc import Sequence

from desktop_agent.conversation.history import is_own_prompt, newest_summary, summary_of
from desktop_agent.conversation.message_tree import MessageTree
from desktop_agent.engine.session_writer import SessionWriter
from desktop_agent.storage.records import BranchPart, MessagePlace
from desktop_agent.storage.store import Store
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import Usage

FIRST_PART = 24
"""Messages that fill a window: so many at least are loaded first."""
NEXT_PART = 200
_LARGE_PART = 1000
"""For loading all messages: between two parts the window responds, and others read and write."""


class HistoryLoader:
    """Loads what the history of one session lacks at its beginning.

    All methods that load raise StorageFailed. While they wait, another branch may come into view: what they read is
    dropped then.
    """

    def __init__(self, writer: SessionWriter, store: Store | None) -> None:
        self._writer = writer
        self._store = store
        self._without_instructions: MessagePlace | None = None

    @property
    def unloaded_count(self) -> int:
        return 0 if self._writer.above is None else self._writer.above.position

    async def load(self, at_least: int = NEXT_PART) -> None:
        """Load about so many more messages."""
        place = self._writer.above
        if place is None or self._store is None:
            return
        part = await self._store.branch_parts.load_above(self._writer.record.id, place, at_least)
        if self._writer.above == place:
            self._writer.prepend(part)

    async def load_all(self) -> None:
        """Load all messages."""
        while self.unloaded_count:
            await self.load(_LARGE_PART)

    async def load_until(self, message_id: str) -> bool:
        """Load until this message is in the history; return whether it is. Nothing is loaded where it is not above."""
        while not self._has(message_id) and await self._is_above(message_id):
            await self.load()
        return self._has(message_id)

    def has_turn(self, message_id: str) -> bool:
        """Return whether the history has the prompt before this message, or there is none."""
        return not self.unloaded_count or _has_prompt_before(self._writer.history(), message_id)

    async def load_turn(self, message_id: str) -> None:
        """Load until the history has the prompt before this message."""
        while not self.has_turn(message_id):
            await self.load()

    async def usage(self) -> tuple[Usage | None, bool]:
        """Return the usage of the messages that are not in memory, and whether the cost of each is known."""
        if self._writer.above is None or self._store is None:
            return None, True
        return await self._store.branch_parts.usage_above(self._writer.above)

    async def load_for_request(self) -> None:
        """Load what the model reads: from the newest summary on, or all where nothing was summarised.

        Instructions are always read by the model. Where any are further up, all is loaded.
        """
        while (place := self._writer.above) is not None and self._store is not None:
            if place != self._without_instructions:
                system = await self._store.branch_parts.load_system_messages(place)
                has_summary = bool(system) or newest_summary(self._writer.history()) is not None
                if not has_summary or not all(map(_is_summary_alone, system)):
                    await self.load_all()
                    return
            if _has_what_is_sent(self._writer.history()):
                self._without_instructions = place
                return
            await self.load()
            self._without_instructions = self._writer.above

    async def _is_above(self, message_id: str) -> bool:
        place = self._writer.above
        if place is None or self._store is None:
            return False
        return await self._store.branch_parts.is_above(self._writer.record.id, message_id, place.id)

    def _has(self, message_id: str) -> bool:
        return any(message.id == message_id for message in reversed(self._writer.history()))


class BranchLoader:
    """Reads branches of one conversation. `store` is None where it is in memory alone.

    `history_loader` loads the branch in view. All methods raise StorageFailed.
    """

    def __init__(self, writer: SessionWriter, store: Store | None, history_loader: HistoryLoader) -> None:
        self._writer = writer
        self._store = store
        self.history_loader = history_loader

    async def load_tree(self) -> MessageTree:
        """Return the tree of all branches."""
        await self._writer.flush()
        if self._store is None or self._writer.journal_queue.is_new:
            return MessageTree(self._writer.branches.outline(self._writer.history()), self._writer.head)
        outline = await self._store.branches.load_outline(self._writer.record.id)
        # Of a long one it takes longer than a frame.
        return await asyncio.to_thread(MessageTree, outline, self._writer.head)

    async def load_branch(self, message_id: str, at_least: int | None) -> BranchPart:
        """Return the branch that has this message: where it was seen last, or else the newest. Raises WrongUse.

        With `at_least`, about so many messages from its end, and as many as are needed to have this message.
        """
        await self._writer.flush()
        return await self._load_newest(await self._last_head(message_id), message_id, at_least)

    async def _load_newest(self, head: str, message_id: str, at_least: int | None) -> BranchPart:
        if self._store is None:
            return BranchPart(tuple(self._writer.branches.newest_branch(head, self._writer.history())))
        return await self._store.branch_parts.load_newest_branch(
            self._writer.record.id, head, message_id=message_id, at_least=at_least
        )

    async def _last_head(self, message_id: str) -> str:
        """Return the end of the branch in which a message was seen last.

        Return the message itself where that is unknown, and for what is in view.
        """
        if any(message.id == message_id for message in self._writer.history()):
            return message_id
        for below, head in self._writer.branches.last_heads(message_id):
            if below is None or await self._is_above(message_id, below):
                return head
        return message_id

    async def _is_above(self, message_id: str, below: str) -> bool:
        store, conversation = self._store, self._writer.record.id
        return store is not None and await store.branch_parts.is_above(conversation, message_id, below)

    async def load_ids_left(self, head: str) -> frozenset[str]:
        """Return the ids of the messages on the branch up to `head` that are not in view."""
        if self._store is None or self._writer.head is None:
            return frozenset()
        await self._writer.flush()
        return await self._store.branch_parts.ids_apart(self._writer.record.id, head, self._writer.head)

    async def load_branch_to(self, head: str | None) -> Sequence[Message]:
        """Return the messages up to the end of a branch; None is before all of them. Raises WrongUse.

        All of the branch in view is in memory.
        """
        history = self._writer.history()
        if head is None:
            return ()
        end = next((index for index, message in enumerate(history, 1) if message.id == head), None)
        if end is not None:
            return history[:end]
        await self._writer.flush()
        return (await self._load_newest(head, head, None)).messages


def _has_what_is_sent(history: Sequence[Message]) -> bool:
    """Return whether nothing before the history would be sent: see `compacted_view`."""
    position = next((index for index in range(len(history) - 1, -1, -1) if summary_of(history[index])), None)
    summary = None if position is None else summary_of(history[position])
    if summary is None or position is None:
        return False
    first_kept = next((index for index, message in enumerate(history) if message.id == summary.first_kept_id), None)
    # The prompt that the kept work is for follows the summary.
    return first_kept is not None and any(map(is_own_prompt, history[: min(first_kept + 1, position)]))


def _is_summary_alone(message: Message) -> bool:
    return summary_of(message) is not None and len(message.blocks) == 1


def _has_prompt_before(history: Sequence[Message], message_id: str) -> bool:
    """Return whether the history has a prompt of the person's before this message, or at it."""
    for message in history:
        if is_own_prompt(message):
            return True
        if message.id == message_id:
            return False
    return False
