"""How much a model has to read for the next question, before it is asked."""

import math
from collections.abc import Sequence

from desktop_agent.agent.budget import tokens_of
from desktop_agent.conversation.compacted import as_sent, summary_of
from desktop_agent.conversation.repair import repaired
from desktop_agent.engine.session_parts.setup import SessionSetup
from desktop_agent.engine.writer import Writer
from desktop_agent.providers.catalogue.estimating import estimated, weight
from desktop_agent.vocabulary.errors import AgentError
from desktop_agent.vocabulary.messages import Message, Role
from desktop_agent.vocabulary.requests import ModelRequest
from desktop_agent.vocabulary.tool_calls import ToolSpec


class ContextSize:
    """Counts with what the last answer used, where its server says that, and estimates the rest."""

    def __init__(self, setup: SessionSetup, writer: Writer) -> None:
        self._setup = setup
        self._writer = writer
        # Tokens by message, and of texts that are still being written: both are asked about again and again.
        self._messages: dict[str, int] = {}
        self._texts: dict[str, float] = {}
        self._frame: tuple[object, int] | None = None

    def tokens(self, texts: Sequence[str] = ()) -> int:
        """Return about how many tokens the next request has if these texts are sent with it."""
        known, rest = self._split()
        self._texts = {text: self._texts.get(text) or weight(text) for text in texts}
        written = math.ceil(sum(self._texts.values()))
        return (self._frame_tokens() if known is None else known) + sum(map(self._weigh, rest)) + written

    def _split(self) -> tuple[int | None, Sequence[Message]]:
        """What the server counted up to its last answer, None where it did not, and the messages it has not read."""
        history = self._writer.history()
        for at in range(len(history) - 1, -1, -1):
            message = history[at]
            if summary_of(message) is not None:
                break
            if message.role is Role.ASSISTANT and message.usage is not None and (used := tokens_of(message.usage)):
                return used, history[at + 1 :]
        return None, as_sent(repaired(history))

    def _weigh(self, message: Message) -> int:
        known = self._messages.get(message.id)
        if known is None:
            known = self._messages[message.id] = estimated(ModelRequest("", (message,))).tokens
        return known

    def _frame_tokens(self) -> int:
        """Instructions and tools."""
        record = self._writer.record
        config = self._setup.config_for(record)
        key = (record.workspace, config.system_prompt)
        if self._frame is None or self._frame[0] != key:
            self._frame = key, estimated(ModelRequest("", (), self._tools(), config=config)).tokens
        return self._frame[1]

    def _tools(self) -> tuple[ToolSpec, ...]:
        try:
            return tuple(self._setup.tools_for(self._writer.record).specs())
        except AgentError:
            # Its folder is gone: sending says so.
            return ()
