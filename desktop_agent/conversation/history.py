"""A history as a model reads it: grouped, every call answered once, older messages summarised; and its usage."""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from itertools import chain
from operator import is_

from desktop_agent.conversation.answer_builder import AnswerUsage, add_usage
from desktop_agent.types.blocks import Outcome, Summary, Text, ToolResult, ToolUse
from desktop_agent.types.engine_events import (
    ContextCompacted,
    ConversationTitled,
    CostUpdated,
    Event,
    RetryScheduled,
    RunFinished,
    RunStarted,
    TurnStarted,
)
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.provider_events import AnswerStarted, StopReason, Usage, UsageUpdate

MessageGroup = tuple[Message, ...]

# The answer continues in the next message.
_UNFINISHED = {StopReason.PAUSE_TURN, StopReason.CONTINUATION}


def group_messages(messages: Sequence[Message]) -> tuple[MessageGroup, ...]:
    """Group the messages, in the same order: a prompt alone, an answer with its calls and their results.

    Results stay with what is before them, and an answer that its server interrupted with its continuation.
    """
    groups: list[list[Message]] = []
    for message in messages:
        if groups and _belongs_to_group(groups[-1], message):
            groups[-1].append(message)
        else:
            groups.append([message])
    return tuple(tuple(group) for group in groups)


def is_own_prompt(message: Message) -> bool:
    """Return whether the person wrote the message."""
    return message.role is Role.USER and message.injected_by is None


def last_prompt_index(messages: Sequence[Message]) -> int | None:
    """Return the index of the person's newest prompt; without one, as in a specialist's work, of the newest prompt."""
    prompts = [index for index, message in enumerate(messages) if message.role is Role.USER]
    own = [index for index in prompts if messages[index].injected_by is None]
    return next(reversed(own or prompts), None)


def _belongs_to_group(group: list[Message], message: Message) -> bool:
    last = group[-1]
    if message.role is Role.TOOL:
        return last.role in {Role.ASSISTANT, Role.TOOL}
    return message.role is Role.ASSISTANT and last.role is Role.ASSISTANT and last.stop_reason in _UNFINISHED


_NEVER_ANSWERED = "This call was never answered: the conversation was interrupted."


def unanswered_calls(messages: Sequence[Message]) -> tuple[ToolUse, ...]:
    """Return the calls of the last assistant message that have no result yet. Reads the end only."""
    answered: set[str] = set()
    for message in reversed(messages):
        if message.role is Role.ASSISTANT:
            calls = {call.id: call for call in message.tool_uses}
            return tuple(call for call in calls.values() if call.id not in answered)
        if message.role is Role.TOOL:
            answered |= {result.tool_use_id for result in _results(message)}
    return ()


def _results(message: Message) -> list[ToolResult]:
    return [block for block in message.blocks if isinstance(block, ToolResult)]


def missing_result(call: ToolUse, outcome: Outcome, why: str) -> ToolResult:
    """Return a result in place of one that will never come."""
    return ToolResult(tool_use_id=call.id, content=(Text(text=why),), outcome=outcome)


def normalised_history(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Return the history with every call answered once, right after its message; stray results are left out.

    Idempotent. A call id that a server repeats pairs with the message just before the result.
    """
    answers: list[tuple[Message, list[Message]]] = []
    for message in messages:
        if message.role is not Role.TOOL:
            answers.append((message, []))
        elif answers:
            answers[-1][1].append(message)
    fixed: list[Message] = []
    for message, carriers in answers:
        fixed.append(message)
        if message.role is Role.ASSISTANT and message.tool_uses:
            fixed.append(_answer_calls(message, carriers))
    return tuple(fixed)


def _answer_calls(message: Message, carriers: Sequence[Message]) -> Message:
    """Return the results of the answer's calls, in their order, as one message; `carriers` hold those that came."""
    results_by_id: defaultdict[str, deque[ToolResult]] = defaultdict(deque)
    for result in chain.from_iterable(map(_results, carriers)):
        results_by_id[result.tool_use_id].append(result)
    # Ids that occur twice in one answer pair by their order.
    results = tuple(
        results_by_id[call.id].popleft()
        if results_by_id[call.id]
        else missing_result(call, Outcome.CANCELLED, _NEVER_ANSWERED)
        for call in message.tool_uses
    )
    if len(carriers) == 1 and len(carriers[0].blocks) == len(results) and all(map(is_, carriers[0].blocks, results)):
        return carriers[0]
    if carriers:
        return carriers[0].model_copy(update={"blocks": results})
    return Message(id=f"{message.id}-results", role=Role.TOOL, blocks=results, created_at=message.created_at)


COMPACTION_AUTHOR = "compaction"
_SUMMARY_INTRO = "Summary of the conversation so far, in place of its older messages:\n\n"
_SUMMARY_INTRO_WITH_PROMPT = (
    "Summary of the conversation so far, in place of its older messages. The prompt that stands after it is older than "
    "the end of it: what the summary says was done for that prompt is done, and is not to be done again.\n\n"
)


def summary_of(message: Message) -> Summary | None:
    """Return the summary that a message holds, or None."""
    return next((block for block in message.blocks if isinstance(block, Summary)), None)


def newest_summary(messages: Sequence[Message]) -> Summary | None:
    """Return the summary in force, or None."""
    return next((summary for message in reversed(messages) if (summary := summary_of(message)) is not None), None)


def compacted_view(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the newest summary as a prompt of the runtime's own, and everything from the first message that it kept.

    Instructions (system messages) always stay. The last prompt too: if it was summarised with the work on it, it
    follows the summary word for word. A cut inside a group is moved before it. A summary whose first kept message is
    gone is ignored: all is sent. Idempotent; no Summary is left.
    """
    summary_index = next((index for index in range(len(messages) - 1, -1, -1) if summary_of(messages[index])), None)
    if summary_index is None:
        return tuple(messages)
    newest = messages[summary_index]
    visible = _without_summaries(messages)
    summary = summary_of(newest)
    cut = _kept_from(visible, summary.first_kept_id) if summary is not None else None
    if summary is None or cut is None:
        return tuple(visible)
    # Found in the history before the summary: later messages must not change how earlier ones are read.
    prompt_index = last_prompt_index(visible[: max(cut, len(_without_summaries(messages[:summary_index])))])
    prompts = visible[prompt_index : prompt_index + 1] if prompt_index is not None and prompt_index < cut else []
    instructions = [message for message in visible[:cut] if message.role is Role.SYSTEM]
    return (*instructions, _summary_prompt(newest, summary.text, has_prompt=bool(prompts)), *prompts, *visible[cut:])


def _summary_prompt(newest: Message, text: str, *, has_prompt: bool) -> Message:
    return Message(
        id=newest.id,
        role=Role.USER,
        blocks=(Text(text=(_SUMMARY_INTRO_WITH_PROMPT if has_prompt else _SUMMARY_INTRO) + text),),
        created_at=newest.created_at,
        injected_by=COMPACTION_AUTHOR,
    )


def _kept_from(visible: Sequence[Message], first_kept_id: str) -> int | None:
    """Return the index where the kept messages begin: before a group."""
    index = next((position for position, message in enumerate(visible) if message.id == first_kept_id), None)
    if index is None:
        return None
    begin = 0
    for group in group_messages(visible):
        if begin + len(group) > index:
            break
        begin += len(group)
    return begin


def _without_summaries(messages: Sequence[Message]) -> list[Message]:
    return [visible for message in messages if (visible := _without_summary(message)) is not None]


def _without_summary(message: Message) -> Message | None:
    """Return the message without its summary; None where nothing else is in it."""
    if summary_of(message) is None:
        return message
    blocks = tuple(block for block in message.blocks if not isinstance(block, Summary))
    return message.model_copy(update={"blocks": blocks}) if blocks else None


# In US dollars: sums of fractions differ by less than this.
_COST_TOLERANCE = 1e-9


class SpecialistUsage:
    """What specialists use, turn by turn; it is in no message."""

    def __init__(self) -> None:
        self._open: dict[str, AnswerUsage] = {}

    @property
    def open(self) -> Iterable[Usage]:
        """Return what the turns that are not over have used so far."""
        return (used for answer in self._open.values() if (used := answer.total) is not None)

    def take(self, event: Event, run_id: str) -> Usage | None:
        """Take in an event of a specialist's run; return what its turn, or a summary, used when that is over."""
        match event:
            case UsageUpdate() | AnswerStarted() | RetryScheduled():
                self._open.setdefault(run_id, AnswerUsage()).feed(event)
                return None
            case TurnStarted() | RunFinished():
                answer = self._open.pop(run_id, None)
                return None if answer is None else answer.total
            case ContextCompacted():
                return event.usage
            case _:
                return None


class ConversationUsage:
    """Sums up the committed messages, each once, and the current answer.

    `history` returns the committed messages that are in memory, oldest first, `count_above` how many there are above
    them; messages that are prepended are not counted. `beside` is what titles and specialists used, which is in no
    message. What they use while the conversation is open is added, and the cost of failed attempts, as for a summary,
    which alone is lost when the conversation is closed.
    """

    def __init__(
        self,
        history: Callable[[], Sequence[Message]],
        count_above: Callable[[], int] = lambda: 0,
        beside: Usage | None = None,
    ) -> None:
        self._history = history
        self._count_above = count_above
        self.lacks_earlier = count_above() > 0
        self._earlier: Usage | None = None
        self._counted = 0
        self._last_counted = ""
        self._committed: Usage | None = None
        self._open = AnswerUsage()
        self._has_gaps = False
        self._beside: Usage | None = None
        self._specialists = SpecialistUsage()
        self._before_run = 0.0
        self._run_cost = 0.0
        self._wasted_cost = 0.0
        if beside is not None:
            self._add_beside(beside)
        self.count_branch()

    @property
    def total(self) -> Usage | None:
        """Return the usage of all answers; None while nothing is known."""
        lost = Usage(cost=self._wasted_cost) if self._wasted_cost > _COST_TOLERANCE else None
        parts = (self._earlier, self._committed, self._open.total, self._beside, *self._specialists.open, lost)
        return reduce(add_usage, parts, None)

    @property
    def is_complete(self) -> bool:
        """Return whether the cost of every answer is known; otherwise the total's cost is a lower bound."""
        is_known = not self._has_gaps and not self.lacks_earlier
        used = self._open.total
        return is_known and (used is None or used.cost is not None)

    def add_earlier(self, used: Usage | None, *, is_complete: bool) -> None:
        """Add what those messages used that were not in memory when counting began."""
        self._earlier, self.lacks_earlier = used, False
        self._before_run += (used.cost if used is not None else None) or 0.0
        self._has_gaps = self._has_gaps or not is_complete

    def take(self, event: Event, sub_run: str | None = None) -> None:
        """Take in one event; `sub_run` is the id of the specialist's run that it belongs to, if any."""
        if sub_run is not None:
            if (used := self._specialists.take(event, sub_run)) is not None:
                self._add_beside(used)
            return
        match event:
            case UsageUpdate() | AnswerStarted() | RetryScheduled():
                self._open.feed(event)
            case RunStarted():
                self.count_branch()
                self._before_run, self._run_cost = self._cost, 0.0
            case CostUpdated():
                self._run_cost = event.cost
            case ConversationTitled(usage=Usage() as used):
                self._add_beside(used)
            case TurnStarted() | RunFinished():
                # The answer before was committed by now, with its usage.
                self._open = AnswerUsage()
                self.count_branch()
                self._wasted_cost += max(0.0, self._before_run + self._run_cost - self._cost)
            case _:
                pass

    @property
    def _cost(self) -> float:
        total = self.total
        return (total.cost if total is not None else None) or 0.0

    def _add_beside(self, used: Usage) -> None:
        self._has_gaps = self._has_gaps or used.cost is None
        self._beside = add_usage(self._beside, used)

    def count_branch(self) -> None:
        """Count the answers of the branch in view that were not counted yet."""
        messages = self._history()
        self._counted = next(
            (end for end in range(len(messages), 0, -1) if messages[end - 1].id == self._last_counted), 0
        )
        if self._last_counted and not self._counted:  # another branch
            self._committed, self._has_gaps = None, False
            self._earlier, self.lacks_earlier = None, self._count_above() > 0
        for message in messages[self._counted :]:
            self._add(message)
        self._counted, self._last_counted = len(messages), messages[-1].id if messages else ""

    def _add(self, message: Message) -> None:
        usage = message.usage
        # A summary cost something too.
        if message.role is not Role.ASSISTANT and usage is None:
            return
        self._has_gaps = self._has_gaps or usage is None or usage.cost is None
        if usage is not None:
            self._committed = add_usage(self._committed, usage)
