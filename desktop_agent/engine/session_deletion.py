"""Deleting a message of a conversation for good."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from desktop_agent.conversation.history import is_own_prompt, unanswered_calls
from desktop_agent.conversation.message_tree import Deletion
from desktop_agent.engine.checkpoints import Checkpoints
from desktop_agent.engine.history_loader import BranchLoader
from desktop_agent.engine.session_writer import SessionWriter
from desktop_agent.storage.records import ConversationChanges
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.messages import Message


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
        await self._loader.history_loader.load_all()
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
