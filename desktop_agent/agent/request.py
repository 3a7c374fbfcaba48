"""From a conversation to one question for the model."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from desktop_agent.agent.pictures import Pictures, with_pictures
from desktop_agent.conversation.compacted import as_sent
from desktop_agent.conversation.repair import repaired
from desktop_agent.vocabulary.conduct.limits import Limits
from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.messages import Message, MessageState, Role
from desktop_agent.vocabulary.requests import ModelRequest, ProviderConfig
from desktop_agent.vocabulary.tool_calls import ToolSpec


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What stays the same for all questions of a run.

    `execute_tools` False: the caller runs the calls itself, and the run ends with them. `compact_at` is the share of
    the model's context window from which on older messages are summarised; None: never.
    """

    model: str
    config: ProviderConfig = field(default_factory=ProviderConfig)
    conversation_id: str | None = None
    limits: Limits = field(default_factory=Limits)
    execute_tools: bool = True
    compact_at: float | None = 0.8


@dataclass(frozen=True, slots=True)
class BuiltRequest:
    """The question, and what was made to fit the model before it is sent."""

    request: ModelRequest
    adjustments: tuple[Sentence, ...] = ()


async def build_request(
    history: tuple[Message, ...],
    settings: RunSettings,
    tools: tuple[ToolSpec, ...],
    pictures: Pictures,
    addenda: Sequence[str] = (),
) -> BuiltRequest:
    """The repaired history with stored pictures as bytes that fit; a picture that is gone is said in words instead.

    `addenda` are added to the instructions. Raises ImagesNotSupported.
    """
    messages, adjustments = await with_pictures(without_given_up(as_sent(repaired(history))), pictures)
    request = ModelRequest(
        model=settings.model,
        messages=tuple(messages),
        tools=tools,
        config=_instructed(settings.config, addenda),
        conversation_id=settings.conversation_id,
    )
    return BuiltRequest(request, tuple(adjustments))


def _instructed(config: ProviderConfig, addenda: Sequence[str]) -> ProviderConfig:
    if not addenda:
        return config
    parts = [part for part in (config.system_prompt, *addenda) if part]
    return config.model_copy(update={"system_prompt": "\n\n".join(parts)})


def without_given_up(messages: Sequence[Message]) -> list[Message]:
    """Leave out answers that broke off and were asked for again: nobody answers its own half answer.

    They stay in the conversation. One that the person went on from (a prompt follows it) is part of what was said.
    An answer without anything in it says nothing to any model.
    """
    kept: list[Message] = []
    for message in reversed(messages):
        if message.role is Role.ASSISTANT and not message.blocks:
            continue
        next_is_prompt = bool(kept) and kept[-1].role is not Role.ASSISTANT
        if message.state is MessageState.INTERRUPTED and not message.tool_uses and not next_is_prompt:
            continue
        kept.append(message)
    kept.reverse()
    return kept
