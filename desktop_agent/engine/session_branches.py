"""Changing what was said: edited prompts, answers asked for anew, and going from one branch to another."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from desktop_agent.conversation.branches import Versions
from desktop_agent.conversation.history import is_own_prompt, unanswered_calls
from desktop_agent.conversation.message_tree import Deletion, MessageTree
from desktop_agent.engine.checkpoints import Checkpoints
from desktop_agent.engine.history_loader import FIRST_PART, BranchLoader
from desktop_agent.engine.session_controls import RuntimeControls
from desktop_agent.engine.session_writer import SessionWriter
from desktop_agent.engine.titles import title_of
from desktop_agent.storage.records import ConversationChanges
from desktop_agent.types.conversation_tree import ConversationTree
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.messages import Message, Role, now

StartRun = Callable[[Callable[[], Message | None]], None]
"""Begins a run, with a prompt that is taken when nothing can be refused any more. Raises WrongUse."""


class SessionBranches:
    """The branches of one conversation. What is left stays as another version, until somebody deletes it.

    `refuse` raises WrongUse while a run is active and when the conversation is closed; `close_calls` closes calls of a
    dead process; `validate` raises WrongUse for what is no prompt.
    """

    def __init__(
        self,
        writer: SessionWriter,
        loader: BranchLoader,
        checkpoints: Checkpoints | None,
        controls: RuntimeControls,
        *,
        refuse: Callable[[], None],
        close_calls: Callable[[], None],
        validate: Callable[[Message], Message],
        start: StartRun,
    ) -> None:
        self._writer = writer
        self._loader = loader
        self._checkpoints = checkpoints
        self._controls = controls
        self._refuse = refuse
        self._close_calls = close_calls
        self._validate = validate
        self._start = start

    @property
    def versions(self) -> Mapping[str, Versions]:
        """Return the versions of what is in view, by the id of the first message of each that people see."""
        return self._writer.versions

    @property
    def tree(self) -> ConversationTree:
        """Return a conversation in memory with all its branches."""
        record, messages = self._writer.record, self._writer.history()
        return ConversationTree(
            id=record.id,
            title=record.title,
            created_at=record.created_at,
            updated_at=now(),
            messages=self._writer.branches.nodes(messages),
            head=messages[-1].id if messages else None,
            model=record.model,
            workspace=record.workspace,
            title_is_automatic=record.title_is_automatic,
        )

    @property
    def continuations(self) -> tuple[str, ...]:
        """Return the ids of the messages with which other branches go on below what is in view, oldest first."""
        return self._writer.continuations

    def edit_prompt(self, message_id: str, edited: Message) -> None:
        """Send `edited`, a new message, in place of an earlier prompt.

        Raises WrongUse as Session.send does, and for an id that is no prompt of the person's in the branch in view.
        """
        self._refuse()
        if self._controls.queue.entries:
            # They would go before it, onto the branch that it begins.
            raise WrongUse("Messages wait to be sent.", "Send them or remove them, then edit the earlier one.")
        edited = self._validate(edited)
        index = self._index_of_prompt(message_id)

        def take() -> Message | None:
            self._truncate_history(index)
            # Nothing waits, so it is the next.
            return self._controls.take_next(edited)

        self._start(take)

    def regenerate(self, message_id: str) -> None:
        """Ask anew for the answer that this message is part of.

        Raises WrongUse while a run is active, when closed, when its folder is gone, and for a prompt.
        """
        self._refuse()
        index = self._index_of_answer(message_id)

        def take() -> None:
            self._truncate_history(index)

        self._start(take)

    def branch_from(self, message_id: str) -> None:
        """Begin a branch after this message and the results of its calls.

        Raises WrongUse while a run is active, when closed, and for a message that is not in the branch in view.
        """
        self._refuse()
        self._close_calls()
        history = self._writer.history()
        end = self._index_of(message_id) + 1
        while end < len(history) and history[end].role is Role.TOOL:
            end += 1
        self._truncate_history(end)

    async def show(self, message_id: str, *, whole: bool = True) -> None:
        """Continue with a branch that has this message, which may be anywhere in the conversation.

        That is the one in which it was seen last since the conversation was opened, or else the newest. Unless it is
        wanted `whole`, messages above this one may be left on the disk: see Session.history_loader. Raises WrongUse
        while a run is active, when closed, and for an unknown message; StorageFailed.
        """
        self._refuse_showing()
        self._close_calls()
        while True:
            deletions = self._writer.branches.deletions
            part = await self._loader.load_branch(message_id, None if whole else FIRST_PART)
            self._refuse_showing()
            # What was read while messages were deleted may be gone.
            if deletions == self._writer.branches.deletions:
                break
        self._writer.show_branch(part)

    def _refuse_showing(self) -> None:
        if not self._writer.is_only_read:
            self._refuse()

    @property
    def head(self) -> str | None:
        """Return the id of the message that ends the branch in view."""
        return self._writer.head

    async def load_ids_left(self, head: str) -> frozenset[str]:
        """Return the ids of the messages on the branch up to `head` that are not in view. Raises StorageFailed."""
        return await self._loader.load_ids_left(head)

    async def list_checkpoints(self, message_ids: Collection[str]) -> tuple[str, ...]:
        """Return the ids of the checkpoints of these messages' calls that are not restored. Raises StorageFailed."""
        return () if self._checkpoints is None else await self._checkpoints.list_unrestored(message_ids)

    def is_irreversible(self, tool: str) -> bool:
        """Return whether calls of this tool may have changed something that nothing here can undo."""
        return self._controls.is_irreversible(tool)

    async def load_tree(self) -> MessageTree:
        """Return the tree of all branches. Raises StorageFailed."""
        return await self._loader.load_tree()

    async def plan_deletion(self, message_id: str) -> Deletion:
        """Return what `delete` would delete; nothing is changed. Raises as that does."""
        self._refuse_deleting()
        await self._loader.history_loader.load_all()
        tree = await self._loader.load_tree()
        deletion = await asyncio.to_thread(tree.deletion, message_id)
        return replace(deletion, checkpoints=await self.list_checkpoints(deletion.ids))

    async def delete(self, message_id: str) -> None:
        """Delete a prompt or a whole answer for good, with all that follows it on every branch.

        The nearest version of it comes in view, or else the conversation ends before it. It returns when nothing of it
        is on the disk any more, but what other processes still read. What tools did stays as it is. Raises WrongUse
        while a run is active, while calls are open, when closed, for an unknown message, and where the conversation
        went on meanwhile: what was said then would be deleted too; StorageFailed.
        """
        before = self._writer.head, self._writer.branches.deletions
        deletion = await self.plan_deletion(message_id)
        branch = await self._loader.load_branch_to(deletion.head)
        self._refuse_deleting()
        if (self._writer.head, self._writer.branches.deletions) != before:
            raise WrongUse("The conversation went on meanwhile.", "Look at what was said, then delete again.")
        self._writer.delete_messages(deletion, branch, **self._changed_title(deletion, branch))
        await self._writer.flush()

    def _changed_title(self, deletion: Deletion, branch: Sequence[Message]) -> ConversationChanges:
        """Return a new title where the present one may come from what is deleted."""
        if not deletion.is_opening or not self._writer.record.title_is_automatic:
            return {}
        prompt = next(filter(is_own_prompt, branch), None)
        return {"title": "" if prompt is None else title_of(prompt), "title_is_automatic": True}

    def _refuse_deleting(self) -> None:
        self._refuse()
        if unanswered_calls(self._writer.history()):
            raise WrongUse("Calls of this conversation are still open.", "Decide about them first, then delete.")
        if self._checkpoints is not None:
            self._checkpoints.refuse_while_restoring()

    def _truncate_history(self, count: int) -> None:
        """Continue after the first `count` messages."""
        self._writer.replace_history(self._writer.history()[:count])

    def _index_of(self, message_id: str) -> int:
        for index, message in enumerate(self._writer.history()):
            if message.id == message_id:
                return index
        raise WrongUse("There is no such message in this conversation.", "Choose one that is shown.")

    def _index_of_prompt(self, message_id: str) -> int:
        index = self._index_of(message_id)
        if not is_own_prompt(self._writer.history()[index]):
            raise WrongUse("Only what you wrote can be edited.", "Choose a message of your own.")
        return index

    def _index_of_answer(self, message_id: str) -> int:
        """Return the index of the first message of the answer, which ends at the next prompt of the person's."""
        history = self._writer.history()
        first = index = self._index_of(message_id)
        while index >= 0 and not is_own_prompt(history[index]):
            first = index if history[index].role is Role.ASSISTANT else first
            index -= 1
        if index < 0 and self._writer.above is not None:
            raise WrongUse("The prompt before this answer is not in memory.", "Scroll up to it, then ask again.")
        if history[first].role is not Role.ASSISTANT:
            raise WrongUse("Only answers can be regenerated.", "Choose an answer.")
        return first
