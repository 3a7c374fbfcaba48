"""Deleting a message of a conversation for good, and what is read of its branches for that."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from desktop_agent.conversation.history import is_own_prompt, unanswered_calls
from desktop_agent.conversation.message_tree import Deletion, MessageTree
from desktop_agent.engine.checkpoints import Checkpoints
from desktop_agent.engine.history_loader import HistoryLoader
from desktop_agent.engine.session_writer import SessionWriter
from desktop_agent.storage.records import BranchPart, ConversationChanges
from desktop_agent.storage.store import Store
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.messages import Message


class BranchLoader:
    """Reads branches of one conversation. `store` is None where it is in memory alone. All raise StorageFailed."""

    def __init__(self, writer: SessionWriter, store: Store | None, history_loader: HistoryLoader) -> None:
        self._writer = writer
        self._store = store
        self._history_loader = history_loader

    async def load_tree(self) -> MessageTree:
        """Return the tree of all branches."""
        await self._writer.flush()
        if self._store is None or self._writer.journal_queue.is_new:
            return MessageTree(self._writer.branches.outline(self._writer.history()), self._writer.head)
        outline = await self._store.branches.load_outline(self._writer.record.id)
        # Of a long one it takes longer than a frame.
        return await asyncio.to_thread(MessageTree, outline, self._writer.head)

    async def load_in_view(self) -> None:
        """Load all of the branch in view."""
        await self._history_loader.load_all()

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
        """Return the end of the branch in which a message was seen last; the message itself where that is unknown.

        So it is for what is in view.
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
        """Return the ids of the messages of the branch with this end that are in view no more."""
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


class MessageDeletion:
    """Deletes messages of one conversation.

    `refuse` raises WrongUse while a run is active and when the conversation is closed; `title_of` names a conversation
    after its first prompt.
    """

    def __init__(
        self,
        writer: SessionWriter,
        loader: BranchLoader,
        checkpoints: Checkpoints | None,
        refuse: Callable[[], None],
        title_of: Callable[[Message], str],
    ) -> None:
        self._writer = writer
        self._loader = loader
        self._checkpoints = checkpoints
        self._refuse = refuse
        self._title_of = title_of

    async def plan(self, message_id: str) -> Deletion:
        """Return what would be deleted with a message. Raises WrongUse and StorageFailed."""
        self._refuse_now()
        await self._loader.load_in_view()
        tree = await self._loader.load_tree()
        deletion = await asyncio.to_thread(tree.deletion, message_id)
        return replace(deletion, checkpoints=await self.list_checkpoints(deletion.ids))

    async def list_checkpoints(self, message_ids: Collection[str]) -> tuple[str, ...]:
        """Return the ids of the checkpoints of these messages' calls that are not restored. Raises StorageFailed."""
        return () if self._checkpoints is None else await self._checkpoints.list_unrestored(message_ids)

    async def delete(self, message_id: str) -> None:
        """Delete a message and all that follows it.

        Raises StorageFailed, and WrongUse, also where the conversation went on meanwhile: what was said then would be
        deleted too.
        """
        before = self._writer.head, self._writer.branches.deletions
        deletion = await self.plan(message_id)
        branch = await self._loader.load_branch_to(deletion.head)
        self._refuse_now()
        if (self._writer.head, self._writer.branches.deletions) != before:
            raise WrongUse("The conversation went on meanwhile.", "Look at what was said, then delete again.")
        self._writer.delete_messages(deletion, branch, **self._changed_title(deletion, branch))
        await self._writer.flush()

    def _changed_title(self, deletion: Deletion, branch: Sequence[Message]) -> ConversationChanges:
        """Name the conversation anew where it may have its name from what goes."""
        if not deletion.is_opening or not self._writer.record.title_is_automatic:
            return {}
        prompt = next(filter(is_own_prompt, branch), None)
        return {"title": "" if prompt is None else self._title_of(prompt), "title_is_automatic": True}

    def _refuse_now(self) -> None:
        self._refuse()
        if unanswered_calls(self._writer.history()):
            raise WrongUse("Calls of this conversation are still open.", "Decide about them first, then delete.")
        if self._checkpoints is not None:
            self._checkpoints.refuse_while_restoring()
