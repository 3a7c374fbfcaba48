"""How full the context of a conversation is."""

import math
from collections.abc import Sequence

from desktop_agent.conversation.history import compacted_view, normalised_history, summary_of
from desktop_agent.engine.session_controls import SessionSetup
from desktop_agent.engine.session_runs import ConversationFolders
from desktop_agent.engine.session_writer import SessionWriter
from desktop_agent.providers.catalogue.catalogue import estimate_token_count, text_token_count
from desktop_agent.types.errors import AgentError
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.providers import ModelRequest
from desktop_agent.types.spending import tokens_used
from desktop_agent.types.tool_calls import ToolSpec


class ContextSize:
    """Measures the context: what the server counted in the last answer, plus an estimate of the rest.

    The instructions of its `folders` are those that were read last.
    """

    def __init__(self, setup: SessionSetup, writer: SessionWriter, folders: ConversationFolders) -> None:
        self._folders = folders
        self._setup = setup
        self._writer = writer
        # Tokens by message, and of texts that are still being written: both are read again and again.
        self._message_weights: dict[str, int] = {}
        self._text_weights: dict[str, float] = {}
        self._fixed_part: tuple[object, int] | None = None

    def tokens(self, texts: Sequence[str] = ()) -> int:
        """Return about how many tokens the next request has if these texts are sent with it."""
        known, unread = self._counted_and_rest()
        self._text_weights = {text: self._text_weights.get(text) or text_token_count(text) for text in texts}
        written = math.ceil(sum(self._text_weights.values()))
        return (self._fixed_tokens() if known is None else known) + sum(map(self._message_tokens, unread)) + written

    def _counted_and_rest(self) -> tuple[int | None, Sequence[Message]]:
        """Return the server's count up to its last answer, or None, and the messages it has not read."""
        history = self._writer.history()
        for index in range(len(history) - 1, -1, -1):
            message = history[index]
            if summary_of(message) is not None:
                break
            if message.role is Role.ASSISTANT and message.usage is not None and (used := tokens_used(message.usage)):
                return used, history[index + 1 :]
        return None, compacted_view(normalised_history(history))

    def _message_tokens(self, message: Message) -> int:
        known = self._message_weights.get(message.id)
        if known is None:
            known = self._message_weights[message.id] = estimate_token_count(ModelRequest("", (message,))).tokens
        return known

    def _fixed_tokens(self) -> int:
        record = self._writer.record
        given = self._setup.config_for(record)
        instructions = "\n\n".join(filter(None, (given.system_prompt, *self._folders.last_instructions)))
        key = (record.workspace, instructions)
        if self._fixed_part is None or self._fixed_part[0] != key:
            config = given.model_copy(update={"system_prompt": instructions})
            self._fixed_part = key, estimate_token_count(ModelRequest("", (), self._tools(), config=config)).tokens
        return self._fixed_part[1]

    def _tools(self) -> tuple[ToolSpec, ...]:
        try:
            return tuple(self._setup.tools_for(self._writer.record).specs())
        except AgentError:
            # Its folder is gone: `send` reports it.
            return ()
