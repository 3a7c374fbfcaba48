"""From a conversation to one question for the model."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import is_

from desktop_agent.agent.pictures import PictureSupport, count_pictures, prepare_pictures
from desktop_agent.conversation.compacted import compacted_view, newest_summary, summary_of
from desktop_agent.conversation.repair import normalised_history
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


class PreparedHistory:
    """What a model reads of one conversation. What no later message can change is worked out once and remembered.

    A history whose beginning is not the one that was read last, message by message the same objects, is read afresh.
    """

    def __init__(self) -> None:
        self._forget()

    def read(self, history: tuple[Message, ...]) -> tuple[list[Message], dict[int, int]]:
        """The repaired history as it is sent, without what was given up; and how many pictures stand at which place."""
        if not self._is_prefix_of(history):
            self._forget()
        self._remember_settled(history)
        newer = normalised_history(history[len(self._settled) :])
        if self._is_changed_by(newer):
            read = without_abandoned(compacted_view(normalised_history(history)))
            return read, count_pictures(read)
        rest = without_abandoned(newer)
        return [*self._prepared, *rest], {**self._pictures, **count_pictures(rest, len(self._prepared))}

    def _forget(self) -> None:
        self._settled: tuple[Message, ...] = ()
        self._prepared: list[Message] = []
        self._pictures: dict[int, int] = {}
        self._first_kept: str | None = None

    def _is_prefix_of(self, history: tuple[Message, ...]) -> bool:
        count = len(self._settled)
        # Results at the place where the rest begins belong to what stands before it.
        goes_on = count == len(history) or (count < len(history) and history[count].role is not Role.TOOL)
        return count == 0 or (goes_on and all(map(is_, self._settled, history)))

    def _remember_settled(self, history: tuple[Message, ...]) -> None:
        """Remember what is before the last prompt, answer or instruction, if its end stays whatever follows it."""
        end = next((at for at in range(len(history) - 1, -1, -1) if history[at].role is not Role.TOOL), 0)
        newer = normalised_history(history[len(self._settled) : end])
        if not newer:
            return
        if not self._is_changed_by(newer):
            if _is_final(newer[-1]):
                self._append(without_abandoned(newer))
                self._settled = history[:end]
            return
        whole = normalised_history(history[:end])
        sent, newest = compacted_view(whole), newest_summary(whole)
        if sent and _is_final(sent[-1]):
            self._prepared, self._pictures = [], {}
            self._append(without_abandoned(sent))
            self._settled = history[:end]
            self._first_kept = newest.first_kept_id if newest is not None else None

    def _append(self, read: list[Message]) -> None:
        self._pictures |= count_pictures(read, len(self._prepared))
        self._prepared += read

    def _is_changed_by(self, newer: Sequence[Message]) -> bool:
        """Whether what stands before these is read otherwise because of them."""
        # What a summary kept stands before it; in a history where it stands behind, the summary begins to count there.
        return any(message.id == self._first_kept or summary_of(message) is not None for message in newer)


def _is_final(message: Message) -> bool:
    """Whether it is sent, whatever comes behind it: see `without_abandoned`."""
    if message.role is Role.ASSISTANT and not message.blocks:
        return False
    return message.state is not MessageState.INTERRUPTED


async def build_request(
    history: tuple[Message, ...],
    settings: RunSettings,
    tools: tuple[ToolSpec, ...],
    pictures: PictureSupport,
    addenda: Sequence[str] = (),
    prepared: PreparedHistory | None = None,
) -> BuiltRequest:
    """The repaired history with stored pictures as bytes that fit; a picture that is gone is said in words instead.

    `addenda` are added to the instructions. `prepared` remembers from one request to the next. Raises
    ImagesNotSupported.
    """
    read, places = (prepared or PreparedHistory()).read(history)
    messages, adjustments = await prepare_pictures(read, pictures, places)
    request = ModelRequest(
        model=settings.model,
        messages=tuple(messages),
        tools=tools,
        config=_with_addenda(settings.config, addenda),
        conversation_id=settings.conversation_id,
    )
    return BuiltRequest(request, tuple(adjustments))


def _with_addenda(config: ProviderConfig, addenda: Sequence[str]) -> ProviderConfig:
    if not addenda:
        return config
    parts = [part for part in (config.system_prompt, *addenda) if part]
    return config.model_copy(update={"system_prompt": "\n\n".join(parts)})


def without_abandoned(messages: Sequence[Message]) -> list[Message]:
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
