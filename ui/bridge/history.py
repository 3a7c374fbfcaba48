"""What an open conversation has above the messages that are in memory, for the screens."""

from typing import TYPE_CHECKING

from desktop_agent.conversation.history import ConversationUsage

if TYPE_CHECKING:
    from desktop_agent.engine.session import Session

# Where all is wanted, larger parts: each of them moves everything below.
_LARGE_PART = 1_000


class ConversationHistory:
    """Loads earlier messages of one conversation, whose items then come as a change.

    All methods that load raise StorageFailed. `spending` sums up the usage of all messages.
    """

    def __init__(self, session: "Session") -> None:
        self._session = session
        state = session.record.state
        beside = [used for used in (state.title_usage, state.specialist_usage) if used is not None]
        self.spending = ConversationUsage(
            lambda: session.history,
            lambda: session.history_loader.unloaded_count,
            sum(beside[1:], beside[0]) if beside else None,
        )

    @property
    def unloaded_count(self) -> int:
        """The number of messages that are not loaded."""
        return self._session.history_loader.unloaded_count

    def has_turn(self, message_id: str) -> bool:
        """Return whether the prompt before this message is loaded, if there is one."""
        return self._session.history_loader.has_turn(message_id)

    async def load_more(self, *, whole: bool = False) -> None:
        """Load some more messages; where the `whole` is wanted, more at once."""
        await (self._session.history_loader.load(_LARGE_PART) if whole else self._session.history_loader.load())
        if not whole or not self.unloaded_count:
            await self._mark_calls()

    async def load_until(self, message_id: str) -> bool:
        """Load until this message is in memory; return whether it is in the branch that is shown."""
        before = self.unloaded_count
        is_in_view = await self._session.history_loader.load_until(message_id)
        if self.unloaded_count != before:
            await self._mark_calls()
        return is_in_view

    async def load_turn(self, message_id: str) -> None:
        """Load until the prompt before this message is in memory."""
        await self._session.history_loader.load_turn(message_id)
        await self._mark_calls()

    async def count_usage(self) -> None:
        """Let `spending` know what the messages have used that are not loaded."""
        if self.spending.lacks_earlier:
            used, is_complete = await self._session.history_loader.usage()
            self.spending.add_earlier(used, is_complete=is_complete)

    async def _mark_calls(self) -> None:
        """Let the calls that were loaded say which of them can be undone."""
        if self._session.checkpoints is not None:
            await self._session.checkpoints.publish_saved_calls()
