"""The branches of an open conversation for the screens: edit a prompt, regenerate, branch, show another version."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from desktop_agent.conversation.branches import Versions
from desktop_agent.conversation.items import ToolCallItem
from desktop_agent.conversation.message_tree import Deletion, MessageTree
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.messages import Message
from desktop_agent.types.tool_calls import UntrustedSource

if TYPE_CHECKING:
    from desktop_agent.engine.session import Session


class ConversationBranches(QObject):
    """Changes which branch of one conversation is in view; the previous one stays as another version.

    All methods raise WrongUse while a run is active and when closed. `changed`: another branch is in view.
    `changed_elsewhere`: another window that shows the conversation changed its branches, in view here or not.
    `effects_left` is about calls that are no longer in view: the ids of their checkpoints that are not restored, and
    the names of the tools that did what cannot be undone.
    """

    changed = Signal()
    changed_elsewhere = Signal()
    effects_left = Signal(tuple, tuple)

    def __init__(self, session: "Session", parent: QObject) -> None:
        super().__init__(parent)
        self._session = session
        self.is_attached = True
        """Whether its conversation is shown. If not, no signal is emitted; running operations still end."""

    @property
    def versions(self) -> Mapping[str, Versions]:
        """The versions of the messages in view, by the id of the first visible message of each."""
        return self._session.branches.versions

    @property
    def continuations(self) -> tuple[str, ...]:
        """The ids of the messages with which other branches continue below the end of the view, oldest first."""
        return self._session.branches.continuations

    def prompt(self, message_id: str) -> Message:
        """Return a message in view. Raises WrongUse."""
        message = next((message for message in self._session.history if message.id == message_id), None)
        if message is None:
            raise WrongUse("There is no such message in this conversation.", "Choose one that is shown.")
        return message

    def edit_prompt(self, message_id: str, edited: Message, untrusted_sources: Iterable[UntrustedSource] = ()) -> None:
        """Send a new message in place of an earlier prompt. `untrusted_sources` as in OpenConversation.send."""
        for source in untrusted_sources:
            self._session.permission_policy.mark_untrusted(source)
        self._change(lambda: self._session.branches.edit_prompt(message_id, edited))

    def regenerate(self, message_id: str) -> None:
        """Regenerate the answer that this message is part of. Raises WrongUse also for a prompt."""
        self._change(lambda: self._session.branches.regenerate(message_id))

    def branch_from(self, message_id: str) -> None:
        """Begin a branch after this message."""
        self._change(lambda: self._session.branches.branch_from(message_id))

    async def show(self, message_id: str) -> None:
        """Continue with the branch in which this message was seen last, or the newest. Raises StorageFailed too."""
        previous_calls, head, lacked_earlier = self._calls(), self._session.branches.head, self._lacks_earlier
        await self._session.branches.show(message_id, whole=False)
        if head is not None and (lacked_earlier or self._lacks_earlier):
            self._report_change()
            ids = await self._session.branches.load_ids_left(head)
            hidden_calls = [call for call in previous_calls if call.message_id in ids]
            self._report_effects(await self._session.branches.list_checkpoints(ids), hidden_calls)
        else:
            self._report(previous_calls)
        if self._session.checkpoints is not None:
            await self._session.checkpoints.publish_saved_calls()

    async def load_tree(self) -> MessageTree:
        """Return the tree of all branches. Raises StorageFailed, and no WrongUse."""
        return await self._session.branches.load_tree()

    async def plan_deletion(self, message_id: str) -> Deletion:
        """Return what `delete` would delete; nothing is changed, but all messages are loaded. Raises as `delete`."""
        lacks_earlier = self._lacks_earlier
        deletion = await self._session.branches.plan_deletion(message_id)
        if lacks_earlier and self._session.checkpoints is not None:
            await self._session.checkpoints.publish_saved_calls()
        return deletion

    async def delete(self, message_id: str) -> None:
        """Delete a prompt or a whole answer for good, with all that follows it on every branch.

        Raises StorageFailed too: then the message is no longer shown, and the deletion is tried again.
        """
        try:
            await self._session.branches.delete(message_id)
        finally:
            self._report_change()
        if self._session.checkpoints is not None:
            await self._session.checkpoints.publish_saved_calls()

    def _change(self, command: Callable[[], None]) -> None:
        previous_calls = self._calls()
        command()
        self._report(previous_calls)

    def _report(self, previous_calls: Sequence[ToolCallItem]) -> None:
        in_view = self._calls()
        ids = {call.message_id for call in in_view}
        hidden_calls = [call for call in previous_calls if call.message_id not in ids]
        checkpoints = _open_checkpoints(previous_calls).keys() - _open_checkpoints(in_view).keys()
        self._report_change()
        self._report_effects(tuple(checkpoints), hidden_calls)

    def _report_change(self) -> None:
        if self.is_attached:
            self.changed.emit()

    def _report_effects(self, checkpoint_ids: tuple[str, ...], hidden_calls: Sequence[ToolCallItem]) -> None:
        names = dict.fromkeys(call.name for call in hidden_calls if call.has_run)
        tools = tuple(name for name in names if self._session.branches.is_irreversible(name))
        if (checkpoint_ids or tools) and self.is_attached:
            self.effects_left.emit(checkpoint_ids, tools)

    @property
    def _lacks_earlier(self) -> bool:
        """Whether earlier messages of the branch are not loaded."""
        return self._session.history_loader.unloaded_count > 0

    def _calls(self) -> Sequence[ToolCallItem]:
        """Return the calls in view."""
        return [item for item in self._session.transcript if isinstance(item, ToolCallItem)]


def _open_checkpoints(calls: Iterable[ToolCallItem]) -> Mapping[str, None]:
    """Return the checkpoints of calls that were not restored."""
    return {id_: None for call in calls for id_, restored in call.checkpoints.items() if not restored}
