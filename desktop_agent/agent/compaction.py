"""Compaction: split a history, turn its older part into text, and ask a model for a summary."""

import asyncio
import json
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from time import monotonic

from desktop_agent.agent.model_request import RunSettings
from desktop_agent.agent.provider_stream import AnswerSize, collect_answer
from desktop_agent.agent.run_context import Budget, RunContext
from desktop_agent.conversation.answer_builder import AnswerBuilder
from desktop_agent.conversation.history import (
    COMPACTION_AUTHOR,
    MessageGroup,
    compacted_view,
    group_messages,
    last_prompt_index,
    normalised_history,
)
from desktop_agent.data_files import load_table
from desktop_agent.processes.foreign_code import Fault
from desktop_agent.providers.catalogue.catalogue import ESTIMATE_MARGIN, estimate_token_count
from desktop_agent.providers.provider import Provider
from desktop_agent.types.blocks import Block, Image, Json, ServerStep, Summary, Text, ToolResult, ToolUse
from desktop_agent.types.errors import AgentError
from desktop_agent.types.messages import Message, MessageState, Role, new_id, now
from desktop_agent.types.provider_events import StopReason, Usage
from desktop_agent.types.providers import Capabilities, ModelRequest, PromptCaching, ProviderConfig
from desktop_agent.types.spending import tokens_used

# What may be kept besides what must be: shares of the window, and of the history or the work on the last prompt.
_KEPT_SHARE_OF_WINDOW = 0.2
_KEPT_SHARE_OF_HISTORY = 0.25
# The last prompt stays with everything that follows it, where that is no more than this share.
_SHARE_FOR_PROMPT = 0.5
# Share of the window. Less work on the last prompt is not worth a summary: the window would soon be full again.
_MIN_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class HistorySplit:
    """A split of a history: `older` is to be summarised, earlier summaries included; `kept` begins with a whole
    group.

    `prompt` is the last prompt where it is among the older messages: the model reads it word for word all the same.
    """

    older: tuple[Message, ...]
    kept: tuple[Message, ...]
    prompt: Message | None = None


def split_history(sent: Sequence[Message], window: int | None, weigh: Callable[[Message], int]) -> HistorySplit | None:
    """Split a history as the model reads it, before the last prompt or in the middle of long work on it.

    The newest group always stays. `weigh` returns the tokens of a message; `window` is the model's, in tokens. Return
    None where nothing, or too little, comes before what stays.
    """
    prompt = last_prompt_index(sent)
    if prompt is None or sent[prompt].injected_by == COMPACTION_AUTHOR:
        return None
    weights = [weigh(message) for message in sent]
    # tail[n]: tokens from message n to the end.
    tail = [*reversed([*accumulate(reversed(weights))]), 0]
    size = min(window or tail[0], tail[0])
    starts = _group_starts(sent)
    is_work_long = tail[prompt] > size * _SHARE_FOR_PROMPT
    for latest in sorted({prompt, starts[-1]}, reverse=is_work_long):
        whole = tail[prompt + 1] if latest > prompt else tail[0]
        room = min((window or tail[0]) * _KEPT_SHARE_OF_WINDOW, whole * _KEPT_SHARE_OF_HISTORY)
        begin = _earliest_fitting(latest, starts, tail, room)
        older = [index for index in range(begin) if index != prompt and _may_be_summarised(sent[index])]
        minimum = (window or tail[0]) * _MIN_SHARE if begin > prompt else 0
        if sum(weights[index] for index in older) > minimum:
            messages = tuple(message for message in sent[:begin] if message.role is not Role.SYSTEM)
            return HistorySplit(messages, tuple(sent[begin:]), sent[prompt] if prompt < begin else None)
    return None


def _group_starts(sent: Sequence[Message]) -> list[int]:
    """Return where the groups begin. Instructions are left out: they stay wherever they are."""
    groups = group_messages(sent)
    starts = accumulate((len(group) for group in groups), initial=0)
    return [index for index, group in zip(starts, groups, strict=False) if group[0].role is not Role.SYSTEM]


def _earliest_fitting(begin: int, starts: Sequence[int], tail: Sequence[int], room: float) -> int:
    """Return the first index from which on everything fits into `room`; `begin` where nothing more fits."""
    return next((start for start in starts if start < begin and tail[start] <= room), begin)


def _may_be_summarised(message: Message) -> bool:
    return message.role is not Role.SYSTEM and message.injected_by != COMPACTION_AUTHOR


# Characters of one result and of one call's arguments: results can be read again, messages cannot.
MAX_RESULT_CHARACTERS = 2_000
MAX_ARGUMENT_CHARACTERS = 1_000
_MIN_CHARACTERS = 200


def conversation_as_text(older: Sequence[Message], room: int, weigh: Callable[[str], int]) -> str:
    """Return the messages as text of at most `room` tokens, as `weigh` counts them.

    An earlier summary stays; of the rest the oldest is left out first, with a note about it.
    """
    summaries = [message for message in older if message.injected_by == COMPACTION_AUTHOR]
    first = _shorten_to_fit("\n\n".join(message.text for message in summaries), room // 2, weigh)
    texts = [
        _group_text(group)
        for group in group_messages([message for message in older if message.injected_by != COMPACTION_AUTHOR])
    ]
    remaining = room - weigh(first)
    lines: list[str] = []
    for text in reversed(texts):
        needed = weigh(text)
        if needed > remaining:
            break
        lines.append(text)
        remaining -= needed
    missing = len(texts) - len(lines)
    if missing and not lines:
        lines.append(_shorten_to_fit(texts[-1], remaining, weigh))
        missing -= 1
    if missing:
        lines.append(f"[{missing} older parts of the conversation are left out here: they were too long.]")
    return "\n\n".join(part for part in (first, *reversed(lines)) if part)


def shorten_middle(text: str, limit: int) -> str:
    """Return the beginning and the end of a long text, with a note about what is missing between them."""
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 3
    return f"{text[:head]}\n[… {len(text) - head - tail:,} characters left out …]\n{text[len(text) - tail :]}"


def _shorten_to_fit(text: str, room: int, weigh: Callable[[str], int]) -> str:
    short, limit = text, len(text)
    while limit > _MIN_CHARACTERS and (needed := weigh(short)) > room:
        # Somewhat less than in proportion: characters do not all weigh the same.
        limit = max(_MIN_CHARACTERS, min(limit * 9 // 10, int(limit * max(room, 0) / needed * 0.95)))
        short = shorten_middle(text, limit)
    return short


def _group_text(group: MessageGroup) -> str:
    return "\n\n".join(text for message in group if (text := _message_text(message)))


def _message_text(message: Message) -> str:
    text = "\n".join(text for block in message.blocks if (text := _block_text(block)))
    if not text or message.role is Role.TOOL:
        return text
    return f"## {_speaker_of(message)}\n{text}"


def _speaker_of(message: Message) -> str:
    if message.role is Role.ASSISTANT:
        return "The assistant"
    return "The person" if message.injected_by is None else f"The program ({message.injected_by})"


def _block_text(block: Block) -> str:
    match block:
        case Text():
            return block.text.strip()
        case Image():
            return _picture_text(block)
        case ToolUse():
            arguments = json.dumps(block.input, ensure_ascii=False) if block.malformed is None else block.malformed
            return f"[call of {block.name}: {shorten_middle(arguments, MAX_ARGUMENT_CHARACTERS)}]"
        case ToolResult():
            result = shorten_middle(_parts_text(block.content), MAX_RESULT_CHARACTERS)
            return f"[its result, {block.outcome.value}: {result}]"
        case ServerStep():
            return f"[{block.name}: {shorten_middle(block.text, MAX_RESULT_CHARACTERS)}]"
        case _:
            return ""


def _parts_text(parts: Iterable[Text | Json | Image]) -> str:
    texts: list[str] = []
    for part in parts:
        if isinstance(part, Image):
            texts.append(_picture_text(part))
        else:
            texts.append(part.text if isinstance(part, Text) else json.dumps(part.value, ensure_ascii=False))
    return "\n".join(texts)


def _picture_text(image: Image) -> str:
    return f"[picture “{image.name}”]" if image.name else "[picture]"


_log = logging.getLogger(__name__)

# In tokens. A reasoning model spends most of them on reasoning.
MAX_SUMMARY_TOKENS = 16_000
# In tokens. Assumed for a model that states no window, unless this conversation has already used more.
_ASSUMED_WINDOW = 16_000
# A model that cannot summarise is not asked again and again: each attempt is billed.
MAX_FAILURES = 2
_SLICE_SECONDS = 0.008
# In tokens. A shorter history becomes text on the event loop, a longer one in a thread.
_SHORT_TOKENS = 5_000
_USABLE_ENDS = {StopReason.END_TURN, StopReason.STOP_SEQUENCE, StopReason.MAX_TOKENS, StopReason.UNKNOWN}
_TRUNCATED_MARK = "\n\n[The summary was cut off here.]"

INSTRUCTIONS: str = load_table(__name__, "compaction.toml")["instructions"]


def is_compaction_due(usage: Usage | None, capabilities: Capabilities, share: float) -> bool:
    """Return whether the last answer and what was read for it fill this share of the model's window, if known."""
    window = capabilities.context_window
    return usage is not None and window is not None and tokens_used(usage) >= window * share


class Compaction:
    """Summarises the history of one run. Its token use counts in the run's budget; it emits only AnswerAwaited."""

    def __init__(self, context: RunContext, settings: RunSettings, budget: Budget) -> None:
        self._retry = context.retry
        self._emit = context.recorder.emit
        self._tools = context.tools
        self._settings = settings
        self._budget = budget
        self._count_answer = context.count_answer
        self._failures = 0
        # Tokens by message id: a full history is weighed before each turn, and most of its messages are known by then.
        self._token_counts: dict[str, int] = {}

    async def compact(self, provider: Provider, history: Sequence[Message]) -> Message | None:
        """Return a system message with the summary, to be added to the history.

        Return None where everything stays as it was: nothing can be summarised, what must stay does not fit by
        itself, or no summary came. Raises only when cancelled.
        """
        if self._failures >= MAX_FAILURES:
            return None
        sent = compacted_view(normalised_history(history))
        window = provider.model_info(self._settings.model).capabilities.context_window
        await self._count_tokens(provider, sent)
        split = split_history(sent, window, self._tokens_of)
        if split is None or (window is not None and not self._fits(split, sent, window, provider)):
            return None
        if sum(map(self._tokens_of, split.older)) < _SHORT_TOKENS:
            request = self._request(split, sent, provider)
        else:
            request = await asyncio.to_thread(self._request, split, sent, provider)
        answer = await self._request_summary(provider, request)
        text = _usable_summary(answer)
        if not text:
            self._failures += 1
            return None
        block = Summary(text=text, first_kept_id=split.kept[0].id)
        return Message(role=Role.SYSTEM, blocks=(block,), model=self._settings.model, usage=answer.usage)

    def _fits(self, split: HistorySplit, sent: Sequence[Message], window: int, provider: Provider) -> bool:
        """Return whether what stays fits into the window with instructions and tools, as far as it can be estimated."""
        begin = len(sent) - len(split.kept)
        stays = [message for message in sent[:begin] if message.role is Role.SYSTEM or message is split.prompt]
        context = ModelRequest(self._settings.model, (), self._tools.specs(), config=self._settings.config)
        weights = sum(map(self._tokens_of, (*stays, *split.kept)))
        return estimate_token_count(context, provider.dialect).tokens + weights <= window

    def _tokens_of(self, message: Message) -> int:
        return self._token_counts[message.id]

    async def _count_tokens(self, provider: Provider, messages: Sequence[Message]) -> None:
        """Count the messages that were not counted before, in slices, so that the event loop goes on."""
        pause_at = monotonic() + _SLICE_SECONDS
        for message in messages:
            if message.id in self._token_counts:
                continue
            self._token_counts[message.id] = self._tokens(provider, (message,))
            if monotonic() > pause_at:
                await asyncio.sleep(0)
                pause_at = monotonic() + _SLICE_SECONDS

    def _request(self, split: HistorySplit, sent: Sequence[Message], provider: Provider) -> ModelRequest:
        """Return the request for the summary; it fits into the model's window even where the estimate is too low."""
        settings, capabilities = self._settings, provider.model_info(self._settings.model).capabilities
        most_used = max((tokens_used(message.usage) for message in sent if message.usage), default=0)
        window = capabilities.context_window or max(most_used, _ASSUMED_WINDOW)
        max_tokens = min(MAX_SUMMARY_TOKENS, window // 4, capabilities.max_output_tokens or MAX_SUMMARY_TOKENS)
        config = ProviderConfig(
            max_tokens=max_tokens,
            show_reasoning=False,
            caching=PromptCaching(enabled=False),
            system_prompt=INSTRUCTIONS,
            extra_options=settings.config.extra_options,
            timeouts=settings.config.timeouts,
        )

        def weigh(text: str) -> int:
            return self._tokens(provider, (Message.user(text),))

        # The mark is random, so that no text of the conversation can close it.
        mark = f"conversation-{new_id()[:12]}"
        room = int((window - max_tokens) / (1 + ESTIMATE_MARGIN)) - weigh(INSTRUCTIONS) - weigh(mark) * 3
        text = f"<{mark}>\n{conversation_as_text(split.older, room, weigh)}\n</{mark}>\n\nSummarise this."
        return ModelRequest(
            settings.model,
            (Message.user(text),),
            config=config,
            conversation_id=settings.conversation_id,
            text_only=True,
        )

    def _tokens(self, provider: Provider, messages: tuple[Message, ...]) -> int:
        return estimate_token_count(ModelRequest(self._settings.model, messages), provider.dialect).tokens

    async def _request_summary(self, provider: Provider, request: ModelRequest) -> Message:
        """Return the model's answer, marked as interrupted where it failed."""
        answer = AnswerBuilder(new_id(), self._settings.model)
        size = AnswerSize(self._settings.limits.answer_characters)
        state = MessageState.COMPLETE
        try:
            await self._ask(provider, request, answer, size)
        except AgentError as error:
            _log.warning("older messages could not be summarised: %s", error.kind)
            state = MessageState.INTERRUPTED
        except Exception as error:  # noqa: BLE001 - whatever fails here, the conversation itself can still continue
            _log.warning("older messages could not be summarised: %s", Fault(error).trace)
            state = MessageState.INTERRUPTED
        finally:
            self._budget.add_usage(answer.total_usage)
            self._count_answer(provider, answer)
            self._budget.add_characters(size.characters)
        return answer.message(state, now())

    async def _ask(self, provider: Provider, request: ModelRequest, answer: AnswerBuilder, size: AnswerSize) -> None:
        attempt = 1
        while True:
            try:
                await collect_answer(provider.stream(request), answer, size, self._emit)
                return
            except AgentError as error:
                wait = None if answer.has_content else self._retry.delay(error, attempt)
                if wait is None:
                    raise
                await asyncio.sleep(wait)
                attempt += 1


def _usable_summary(answer: Message) -> str:
    """Return the summary, with a note where it was cut off; "" where the answer broke off or was withheld."""
    text = answer.text.strip()
    if answer.stop_reason not in _USABLE_ENDS or not text:
        return ""
    return text + _TRUNCATED_MARK if answer.stop_reason is StopReason.MAX_TOKENS else text
