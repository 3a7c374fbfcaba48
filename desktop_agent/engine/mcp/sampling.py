"""An MCP server has a model answer: a person sees what it is asked first, and then what it said."""

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace

from desktop_agent.agent.answer_size import AnswerSize
from desktop_agent.agent.hearing import validated_events
from desktop_agent.conversation.answer_builder import AnswerBuilder
from desktop_agent.engine.connections import Connections
from desktop_agent.vocabulary.blocks import ToolResult, ToolUse
from desktop_agent.vocabulary.errors import ToolUseFailed, WrongUse
from desktop_agent.vocabulary.mcp.asking import (
    ConsentHandlers,
    SamplingAnswer,
    SamplingModel,
    SamplingRequest,
    ServerRequestHandlers,
    UsageListener,
)
from desktop_agent.vocabulary.messages import Message, MessageState, Role, new_id, now
from desktop_agent.vocabulary.provider_events import TRUNCATED_STOP_REASONS
from desktop_agent.vocabulary.requests import ModelRequest, ProviderConfig, ToolChoice
from desktop_agent.vocabulary.tool_calls import ToolSpec

MAX_TOKENS = 8_192
"""Of one answer, whatever the server wants."""
_MAX_CHARACTERS = 400_000


class SamplingHandler:
    """Asks the model in use, once; no tool of ours is offered to it.

    `chosen` is the ids of an endpoint and a model, or None each.
    """

    def __init__(
        self,
        people: Callable[[], ConsentHandlers],
        chosen: Callable[[], tuple[str | None, str | None]],
        connections: Connections,
    ) -> None:
        self._consent = people
        self._chosen_model = chosen
        self._connections = connections

    def handlers(self) -> ServerRequestHandlers:
        """Who answers now; no model where nobody could agree to it."""
        people = self._consent()
        can_agree = people.approve_sampling is not None and people.approve_answer is not None
        return ServerRequestHandlers(people.elicit, self.sample if can_agree else None)

    async def sample(self, request: SamplingRequest, spent: UsageListener) -> SamplingAnswer | None:
        """What the model said, once the person let it pass; else None. Raises what the model's server raises."""
        people = self._consent()
        if people.approve_sampling is None or people.approve_answer is None:
            return None
        endpoint_id, model = self._chosen_model()
        wanted = replace(
            request,
            max_tokens=max(1, min(request.max_tokens, MAX_TOKENS)),
            answering_model=self._describe_model(endpoint_id, model),
        )
        if not await people.approve_sampling(wanted):
            return None
        if endpoint_id is None or not model:
            raise WrongUse("No model is chosen.", "Choose a model first.")
        answer = await self._ask(endpoint_id, model, wanted, spent)
        return answer if await people.approve_answer(wanted, answer) else None

    def _describe_model(self, endpoint_id: str | None, model: str | None) -> SamplingModel | None:
        if endpoint_id is None or not model:
            return None
        try:
            endpoint = self._connections.endpoint(endpoint_id)
        except WrongUse:
            return None
        known = self._connections.known_model(endpoint_id, model)
        title = (known.title if known is not None else None) or model
        return SamplingModel(endpoint.title, model, title, known.price if known is not None else None)

    async def _ask(self, endpoint_id: str, model: str, wanted: SamplingRequest, spent: UsageListener) -> SamplingAnswer:
        provider = await self._connections.provider(endpoint_id)
        config = ProviderConfig(max_tokens=wanted.max_tokens, system_prompt=wanted.system_prompt or None)
        tools = tuple(ToolSpec(each.name, each.description, each.schema) for each in wanted.tools)
        asked = ModelRequest(model, _to_messages(wanted), tools, ToolChoice(wanted.tool_choice), config)
        answer = AnswerBuilder(new_id(), model)
        stream = validated_events(provider.stream(asked), AnswerSize(_MAX_CHARACTERS))
        try:
            async with aclosing(stream) as events:
                async for event in events:
                    answer.feed(event, now())
        finally:
            if answer.total_usage is not None:
                spent(answer.total_usage)
        said = answer.message(MessageState.COMPLETE, now())
        names = {each.name for each in wanted.tools}
        if any(each.malformed is not None or each.name not in names for each in said.tool_uses):
            raise ToolUseFailed("it asked for a tool of the server in a way that cannot be read.")
        return SamplingAnswer(said.text, model, said.usage, said.stop_reason in TRUNCATED_STOP_REASONS, said.tool_uses)


def _to_messages(wanted: SamplingRequest) -> tuple[Message, ...]:
    """Calls stand in the answer that they belong to, and what came of them together."""
    made: list[Message] = []
    for role, said in wanted.messages:
        last = made[-1] if made else None
        match said:
            case str():
                made.append(Message.user(said) if role == "user" else Message.assistant(said))
            case ToolUse() if last is not None and last.role is Role.ASSISTANT:
                made[-1] = last.model_copy(update={"blocks": (*last.blocks, said)})
            case ToolResult() if last is not None and last.role is Role.TOOL:
                made[-1] = last.model_copy(update={"blocks": (*last.blocks, said)})
            case ToolUse():
                made.append(Message(role=Role.ASSISTANT, blocks=(said,)))
            case ToolResult():
                made.append(Message.tool_results((said,)))
    return tuple(made)
