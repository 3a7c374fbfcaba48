"""Changing what was said: edited prompts, answers asked for anew, and going from one branch to another."""

from collections.abc import Callable, Mapping, Sequence

from desktop_agent.conversation.branches import Versions
from desktop_agent.engine.session_writer import SessionWriter
from desktop_agent.storage.store import Store
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.messages import Message, Role

StartRun = Callable[[Callable[[], Message | None]], None]
"""Begins a run, with a prompt that is taken when nothing can be refused any more. Raises WrongUse."""


class SessionBranches:
    """The branches of one conversation. What is left stays as another version; nothing is ever overwritten.

    `refuse` raises WrongUse while a run is active and when the conversation is closed; `close_calls` closes calls of a
    dead process; `validate` raises WrongUse for what is no prompt; `take_prompt` returns what is sent first, which is
    the message unless others wait.
    """

    def __init__(
        self,
        writer: SessionWriter,
        store: Store | None,
        *,
        refuse: Callable[[], None],
        close_calls: Callable[[], None],
        validate: Callable[[Message], Message],
        has_waiting: Callable[[], bool],
        take_prompt: Callable[[Message], Message | None],
        start: StartRun,
    ) -> None:
        self._writer = writer
        self._store = store
        self._refuse = refuse
        self._close_calls = close_calls
        self._validate = validate
        self._has_waiting = has_waiting
        self._take_prompt = take_prompt
        self._start = start

    @property
    def versions(self) -> Mapping[str, Versions]:
        """Return the versions of what is in view, by the id of the first message of each that people see."""
        return self._writer.versions

    @property
    def continuations(self) -> tuple[str, ...]:
        """Return the ids of the messages with which other branches go on below what is in view, oldest first."""
        return self._writer.continuations

    def edit_prompt(self, message_id: str, edited: Message) -> None:
        """Send `edited`, a new message, in place of an earlier prompt.

        Raises WrongUse as Session.send does, and for an id that is no prompt of the person's in the branch in view.
        """
        self._refuse()
        if self._has_waiting():
            # They would go before it, onto the branch that it begins.
            raise WrongUse("Messages wait to be sent.", "Send them or remove them, then edit the earlier one.")
        edited = self._validate(edited)
        index = self._index_of_prompt(message_id)

        def take() -> Message | None:
            self._keep(index)
            return self._take_prompt(edited)

        self._start(take)

    def regenerate(self, message_id: str) -> None:
        """Ask anew for the answer that this message is part of.

        Raises WrongUse while a run is active, when closed, when its folder is gone, and for a prompt.
        """
        self._refuse()
        index = self._index_of_answer(message_id)

        def take() -> None:
            self._keep(index)

        self._start(take)

    def go_back_to(self, message_id: str) -> None:
        """Continue after this message and the results of its calls.

        Raises WrongUse while a run is active, when closed, and for a message that is not in the branch in view.
        """
        self._refuse()
        self._close_calls()
        history = self._writer.history()
        end = self._index_of(message_id) + 1
        while end < len(history) and history[end].role is Role.TOOL:
            end += 1
        self._keep(end)

    async def show(self, message_id: str) -> None:
        """Continue with the newest branch that has this message, which may be anywhere in the conversation.

        Raises WrongUse while a run is active, when closed, and for an unknown message; StorageFailed.
        """
        self._refuse()
        self._close_calls()
        messages = await self._load_branch(message_id)
        self._refuse()
        self._writer.show_branch(messages)

    async def _load_branch(self, message_id: str) -> Sequence[Message]:
        if self._store is None:
            return self._writer.newest_branch(message_id)
        await self._writer.flush()
        return await self._store.load_newest_branch(self._writer.record.id, message_id)

    def _keep(self, count: int) -> None:
        """Continue after so many messages."""
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
        if history[first].role is not Role.ASSISTANT:
            raise WrongUse("Only answers can be asked for anew.", "Choose an answer.")
        return first


def is_own_prompt(message: Message) -> bool:
    """Return whether the person wrote the message."""
    return message.role is Role.USER and message.injected_by is None
