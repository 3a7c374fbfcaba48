"""A hostile model: whatever it says, and for however long, the run ends once and says why.

Each time the session answers the next prompt, every call has its one result, the disk has what the history has, and
memory stays within what the run's limits let it pile up (`Peak`). Where the cases are many they are small; the largest
come once in full.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.types.blocks import Outcome as CallOutcome
from desktop_agent.types.blocks import ServerStep, Text, ToolUse, Unknown
from desktop_agent.types.engine_events import (
    ApprovalRequested,
    ContextCompacted,
    DoomLoopSuspected,
    GuardAborted,
    RunEnd,
    RunFinished,
    ToolFinished,
    ToolStarted,
)
from desktop_agent.types.errors import AgentError, ContextLengthExceeded, Sentence, ServerFailed
from desktop_agent.types.messages import Message
from desktop_agent.types.policies import Guard, GuardContinue, GuardMoment, Limits, Specialist
from desktop_agent.types.provider_events import (
    AnswerNamed,
    AnswerStarted,
    ContentDelta,
    Done,
    MessageDelta,
    Origin,
    StopReason,
    TextClosed,
    ThinkingBlock,
    ThinkingDelta,
    ToolArgsDelta,
    Usage,
    UsageUpdate,
)
from desktop_agent.types.providers import ModelRequest
from desktop_agent.types.tool_calls import AllowOnce
from tests.desktop_agent.engine.enemy import (
    END,
    SMALL,
    Answer,
    Arena,
    Enemy,
    Outcome,
    Peak,
    arena,
    stream_of,
    without_end,
)
from tests.fakes.agent_run import call, tool
from tests.fakes.session import results_of
from tests.frame.selection import few

READ = tool("read", read_only=True)
LONG = "x" * 10_000
ONE_ANSWER = Outcome(RunEnd.LIMIT, ["the length of one answer"], [])
ROUNDS = Outcome(RunEnd.LIMIT, ["tool rounds"], [])
MEGABYTE = 1_000_000
EMPTY_PIECES = 20_000
"""A million takes most of a minute where memory is watched, and shows nothing else."""


async def fought(
    folder: Path, answer: Answer, limits: Limits = SMALL, *, uncounted: int = 0, window: int | None = None, **setup: Any
) -> tuple[Outcome, Arena]:
    """Run a prompt against this answer with limited memory, and the next prompt after it."""
    setup.setdefault("tools", (READ,))
    async with arena(folder, Enemy(answer, window=window), limits, **setup) as place:
        with Peak(limits, uncounted):
            outcome = await place.fight()
        for guard in place.session.guards.list():
            place.session.guards.remove(guard.name)
        await place.check_still_works()
        return outcome, place


# Without end


ORIGIN = Origin(provider="enemy")

FLOODS: dict[str, Callable[[int], Any]] = {
    "text": lambda n: ContentDelta("words, words, words "),
    "single characters": lambda n: ContentDelta(chr(0x4E00 + n % 20_000)),
    "empty text": lambda n: ContentDelta(""),
    "thinking": lambda n: ThinkingDelta("hm "),
    "empty thinking": lambda n: ThinkingDelta(""),
    "text and thinking in turn": lambda n: ContentDelta("a") if n % 2 else ThinkingDelta("b"),
    "blocks of thinking": lambda n: ThinkingBlock("", "enemy"),
    "long blocks of thinking": lambda n: ThinkingBlock(f"{n}{LONG}", "enemy"),
    "state of thinking": lambda n: ThinkingBlock("", "enemy", {"state": f"{n}{LONG}"}),
    "ends of text": lambda n: TextClosed("enemy"),
    "state of text": lambda n: TextClosed("enemy", {"state": f"{n}{LONG}"}),
    "pieces of one call": lambda n: ToolArgsDelta("c", "read", "1234 "),
    "calls that only begin": lambda n: ToolArgsDelta(f"c{n}", "read", ""),
    "names of one call": lambda n: ToolArgsDelta("c", f"{n}{LONG}", ""),
    "calls": lambda n: ToolUse(id=f"c{n}", name="read", input={"word": str(n)}),
    "calls of one id": lambda n: ToolUse(id="c", name="read", input={"word": str(n)}),
    "steps of the server": lambda n: ServerStep(provider="enemy", name="search", text=f"{n}{LONG}", raw=None),
    "unknown blocks": lambda n: Unknown(raw=None),
    "usage": lambda n: UsageUpdate(Usage(output_tokens=n)),
    "ends": lambda n: MessageDelta(StopReason.END_TURN),
    "ends with details": lambda n: MessageDelta(StopReason.END_TURN, None, {"state": f"{n}{LONG}"}),
    "ends of a call that nobody could read": lambda n: MessageDelta(StopReason.MALFORMED_TOOL_CALL),
    "text after such an end": lambda n: ContentDelta("abc") if n else MessageDelta(StopReason.MALFORMED_TOOL_CALL),
    "beginnings": lambda n: AnswerStarted(ORIGIN, (Sentence(f"Adjusted {n}."),)),
    "ids of the answer": lambda n: AnswerNamed(f"{n}{LONG}"),
}


@pytest.mark.parametrize("flood", few(FLOODS, 4, "the same limit"))
async def test_a_flood_of_anything_ends_at_the_length_of_one_answer(tmp_path: Path, flood: str) -> None:
    outcome, place = await fought(tmp_path, lambda *_: without_end(FLOODS[flood]))
    assert outcome == ONE_ANSWER
    assert not place.of(ToolStarted)


async def test_very_many_empty_pieces_within_the_limit_complete_the_run(tmp_path: Path) -> None:
    pieces = EMPTY_PIECES
    limits = Limits(answer_characters=2 * pieces)

    async def many(*_: Any) -> Any:
        for _ in range(pieces):
            yield ContentDelta("")
        for event in END:
            yield event

    outcome, _ = await fought(tmp_path, many, limits)
    assert outcome == Outcome(RunEnd.COMPLETED, [], [])


async def test_done_is_the_end_whatever_comes_behind_it(tmp_path: Path) -> None:
    async def more(*_: Any) -> Any:
        yield ContentDelta("Said.")
        for event in END:
            yield event
        yield ContentDelta(" Not said.")
        yield call("late", "read")
        for _ in count():
            yield Done()

    async def silence(*_: Any) -> Any:
        yield ContentDelta("Said.")
        yield Done()
        await asyncio.Event().wait()

    for number, answer in enumerate((more, silence)):
        outcome, place = await fought(tmp_path / str(number), answer)
        assert outcome == Outcome(RunEnd.COMPLETED, [], [])
        assert place.session.history[1].text == "Said."
        assert not place.of(ToolStarted)


@pytest.mark.parametrize("reason", [StopReason.PAUSE_TURN, StopReason.CONTINUATION])
async def test_pauses_without_end_reach_a_limit(tmp_path: Path, reason: StopReason) -> None:
    limits = SMALL.model_copy(update={"turns": 100})
    for number, word in enumerate(("", "and ")):
        outcome, _ = await fought(
            tmp_path / str(number), lambda *_, w=word: stream_of(ContentDelta(w), MessageDelta(reason), Done()), limits
        )
        assert outcome == Outcome(RunEnd.LIMIT, ["pauses of the server in a row"], [])


async def test_malformed_calls_are_asked_for_again_once(tmp_path: Path) -> None:
    outcome, place = await fought(tmp_path, lambda *_: stream_of(MessageDelta(StopReason.MALFORMED_TOOL_CALL), Done()))
    assert outcome.end is RunEnd.COMPLETED
    assert place.enemy.requests == 2


# Calls


async def test_calls_turn_after_turn_reach_a_limit(tmp_path: Path) -> None:
    def new_ids(_: ModelRequest, n: int) -> Any:
        return stream_of(call(f"c{n}", "read", str(n)), Done())

    def one_id(_: ModelRequest, n: int) -> Any:
        return stream_of(call("c", "read", str(n)), Done())

    def pauses_between(_: ModelRequest, n: int) -> Any:
        if n % 2:
            return stream_of(MessageDelta(StopReason.PAUSE_TURN), Done())
        return stream_of(call("c", "read", str(n)), Done())

    for number, answer in enumerate((new_ids, one_id, pauses_between)):
        outcome, place = await fought(tmp_path / str(number), answer)
        assert outcome.end is RunEnd.LIMIT
        assert outcome.limits in (["tool rounds"], ["turns"])
        assert len(place.of(ToolStarted)) == SMALL.tool_iterations


async def test_the_same_call_for_ever_with_a_person_who_allows_it_for_ever(tmp_path: Path) -> None:
    async with arena(tmp_path, Enemy(lambda *_: stream_of(call("c", "read"), Done())), tools=(READ,)) as place:

        def allow(envelope: Any) -> None:
            if isinstance(envelope.event, ApprovalRequested):
                place.session.approvals.answer(envelope.event.approval_id, AllowOnce())

        place.session.subscribe(on_event=allow)
        assert await place.fight() == ROUNDS
        assert place.of(DoomLoopSuspected)
        await place.check_still_works()


async def test_one_id_for_all_calls_of_an_answer(tmp_path: Path) -> None:
    outcome, place = await fought(tmp_path, lambda _, n: stream_of(*[call("c", "read", str(n))] * 5, Done()))
    assert outcome == ROUNDS
    assert len(place.of(ToolStarted)) == SMALL.tool_iterations


@pytest.mark.exhaustive("tests/desktop_agent/agent/tool_calls/test_many.py, without the engine")
async def test_ten_thousand_calls_at_once(tmp_path: Path) -> None:
    limits = Limits(tool_iterations=1)
    calls = [call(f"c{n}", "read", str(n)) for n in range(10_000)]
    outcome, place = await fought(tmp_path, lambda *_: stream_of(*calls, Done()), limits)
    assert outcome == Outcome(RunEnd.LIMIT, ["calls of one answer", "tool rounds"], [])
    assert len(place.of(ToolStarted)) == limits.calls_per_turn
    ends = [event.outcome for event in place.of(ToolFinished)]
    assert ends.count(CallOutcome.SUCCEEDED) == limits.calls_per_turn
    assert ends.count(CallOutcome.LIMIT) == len(calls) - limits.calls_per_turn


ODD = {
    "nothing": "",
    "space": " \t ",
    "control characters": "\x00\x1b[2J\r\n\x07",
    "half a character": "\ud800",
    "a novel": "n" * MEGABYTE,
}


@pytest.mark.parametrize("odd", ODD)
async def test_calls_with_odd_ids_and_names_each_get_their_result(tmp_path: Path, odd: str) -> None:
    limits = Limits(tool_iterations=2)
    text = ODD[odd]
    ids = [ToolUse(id=text, name="read", input={"word": "x"}), ToolUse(id="c", name=text, input={text: text})]
    outcome, place = await fought(
        tmp_path, lambda _, n: stream_of(*ids, call("d", "read", str(n)), Done()), limits, uncounted=len(text) * 4
    )
    assert outcome == ROUNDS
    results = results_of(place.session.history)
    assert results[text].outcome is CallOutcome.SUCCEEDED
    assert results["c"].outcome is CallOutcome.FAILED
    assert all(len(str(result.content)) < 10_000 for result in results.values())


@pytest.mark.parametrize("depth", few([50, 190, 250, 1_500, 100_000], 4, "test_arguments_that_are_nested_deeply"))
async def test_arguments_that_are_nested_deeply(tmp_path: Path, depth: int) -> None:
    value: Any = "x"
    for _ in range(depth):
        value = {"a": value}
    use = ToolUse(id="c", name="read", input={"word": value})
    outcome, place = await fought(
        tmp_path,
        lambda _, n: stream_of(use, Done()) if n == 0 else stream_of(ContentDelta("ok"), *END),
        uncounted=depth * 100,
    )
    if depth < 200:
        assert outcome == Outcome(RunEnd.COMPLETED, [], [])
        assert results_of(place.session.history)["c"].outcome is CallOutcome.FAILED
    else:
        assert outcome == Outcome(RunEnd.FAILED, [], ["no_event"])


async def test_fifty_megabytes_of_arguments(tmp_path: Path) -> None:
    size = 50 * MEGABYTE
    word = "x" * size

    async def pieces(*_: Any) -> Any:
        for start in range(0, size, 64_000):
            yield ToolArgsDelta("c", "read", word[start : start + 64_000])
        yield call("c", "read", word)
        yield Done()

    for number, answer in enumerate((pieces, lambda *_: stream_of(call("c", "read", word), Done()))):
        outcome, place = await fought(tmp_path / str(number), answer, Limits())
        assert outcome == ONE_ANSWER
        assert not place.of(ToolStarted)


async def test_fifty_megabytes_of_arguments_where_they_are_wanted(tmp_path: Path) -> None:
    limits = Limits(answer_characters=60 * MEGABYTE, characters=60 * MEGABYTE, tool_iterations=1)
    word = "x" * (50 * MEGABYTE)
    outcome, place = await fought(tmp_path, lambda *_: stream_of(call("c", "read", word), Done()), limits)
    assert outcome.end is RunEnd.LIMIT
    result = results_of(place.session.history)["c"]
    assert result.outcome is CallOutcome.SUCCEEDED
    assert len(str(result.content)) < limits.result_characters + 1_000


async def test_results_that_never_fit_reach_a_limit(tmp_path: Path) -> None:
    async def huge(_: str) -> str:
        return "x" * (10 * MEGABYTE)

    def reads(_: ModelRequest, n: int) -> Any:
        return stream_of(call(f"c{n}", "read", str(n)), UsageUpdate(Usage(total_tokens=5_000 * (n + 1))), Done())

    tools = (tool("read", huge, read_only=True),)
    outcome, _ = await fought(tmp_path, reads, uncounted=10 * MEGABYTE, window=1_000, tools=tools)
    assert outcome == ROUNDS


# Too long for the model


def is_summary(request: ModelRequest) -> bool:
    return "You summarise" in (request.config.system_prompt or "")


async def test_what_stays_too_long_fails_after_few_requests(tmp_path: Path) -> None:
    def always(*_: Any) -> Any:
        return stream_of(ContextLengthExceeded("too long"))

    def but_for_summaries(request: ModelRequest, n: int) -> Any:
        return stream_of(ContentDelta("In short: nothing."), *END) if is_summary(request) else always()

    for number, answer in enumerate((always, but_for_summaries)):
        outcome, place = await fought(tmp_path / str(number), answer)
        assert outcome == Outcome(RunEnd.FAILED, [], ["context_length"])
        assert place.enemy.requests <= 3


async def test_summaries_longer_than_what_they_summarise(tmp_path: Path) -> None:
    def full(request: ModelRequest, n: int) -> Any:
        if is_summary(request):
            return stream_of(ContentDelta("Nothing happened. " * 1_000), *END)
        return stream_of(ContentDelta(f"Answer {n}. "), UsageUpdate(Usage(total_tokens=10**9)), *END)

    async with arena(tmp_path, Enemy(full, window=100_000), tools=(READ,)) as place:
        with Peak(SMALL):
            for _ in range(8):
                assert await place.fight("Say it once more.") == Outcome(RunEnd.COMPLETED, [], [])
        assert place.of(ContextCompacted)
        assert place.enemy.requests <= 16
        await place.check_still_works()


# What it raises, and what it is


class Wordless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Odder(BaseException):
    """No Exception, so that `except Exception` does not catch it."""


RAISED: dict[str, Callable[[], BaseException]] = {
    "ValueError": lambda: ValueError("x"),
    "RuntimeError": lambda: RuntimeError("x"),
    "StopIteration": StopIteration,
    "StopAsyncIteration": StopAsyncIteration,
    "MemoryError": MemoryError,
    "RecursionError": RecursionError,
    "TimeoutError": TimeoutError,
    "CancelledError": asyncio.CancelledError,
    "GeneratorExit": GeneratorExit,
    "no Exception": lambda: Odder("x"),
    "a group": lambda: ExceptionGroup("g", [ValueError()]),
    "a group of no Exceptions": lambda: BaseExceptionGroup("g", [Odder()]),
    "an error without words": Wordless,
    "an error of ours": lambda: AgentError("Something."),
    "an error of the server": lambda: ServerFailed("down", retryable=False),
}


class Raising(Enemy):
    """Raises at one moment, and says something sensible before it."""

    def __init__(self, moment: str) -> None:
        super().__init__(lambda *_: None)
        self.moment = moment
        self.error: Callable[[], BaseException] = lambda: ValueError("never")

    def stream(self, request: ModelRequest) -> Any:
        if self.is_tame:
            return super().stream(request)
        if self.moment == "when asked":
            raise self.error()
        if self.moment == "when closed":
            return Unclosable(self.error)
        before = {
            "at once": (),
            "in the middle of a word": (ContentDelta("wor"),),
            "after a call": (call("c", "read"),),
            "after the end": END[:1],
        }
        return stream_of(*before[self.moment], self.error())

    def model_info(self, model: str) -> Any:
        if self.moment == "about its model" and not self.is_tame:
            raise self.error()
        return super().model_info(model)

    def picture_limits(self, model: str) -> Any:
        if self.moment == "about pictures" and not self.is_tame:
            raise self.error()
        return super().picture_limits(model)


class Unclosable:
    """Says the same for ever, and does not close."""

    def __init__(self, close: Callable[[], Any]) -> None:
        self._close = close

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        return ContentDelta("words, words, words ")

    async def aclose(self) -> None:
        result = self._close()
        if isinstance(result, BaseException):
            raise result
        await result


@pytest.mark.parametrize(
    "moment",
    [
        "when asked",
        "at once",
        "in the middle of a word",
        "after a call",
        "after the end",
        "when closed",
        "about its model",
        "about pictures",
    ],
)
async def test_whatever_it_raises_at_whatever_moment_ends_the_run(tmp_path: Path, moment: str) -> None:
    enemy = Raising(moment)
    async with arena(tmp_path, enemy, tools=(READ,)) as place:
        for name, error in RAISED.items():
            enemy.error, enemy.is_tame = error, False
            outcome = await place.fight(name)
            if moment == "when closed":
                assert outcome == ONE_ANSWER, name
            else:
                assert outcome.end is RunEnd.FAILED, name
                assert len(outcome.errors) == 1, name
            await place.check_still_works()
        assert not place.of(ToolStarted)


class Bare:
    """Nothing but a source of events."""

    def __aiter__(self) -> "Bare":
        return self

    async def __anext__(self) -> Any:
        return ContentDelta("words, words, words ")


@pytest.mark.parametrize(
    "answer", [lambda *_: Bare(), lambda *_: Unclosable(asyncio.Event().wait)], ids=["has no end", "waits for ever"]
)
async def test_a_stream_that_cannot_be_closed_ends_at_the_limit(tmp_path: Path, answer: Answer) -> None:
    outcome, _ = await fought(tmp_path, answer)
    assert outcome == ONE_ANSWER


async def test_a_stream_that_goes_on_when_closed_ends_at_the_limit(tmp_path: Path) -> None:
    async def ignoring() -> Any:
        try:
            for number in count():
                yield ContentDelta(f"{number} ")
        finally:
            yield ContentDelta("more")

    events = ignoring()
    outcome, _ = await fought(tmp_path, lambda *_: events)
    assert outcome == ONE_ANSWER
    with pytest.raises(GeneratorExit):
        await anext(events)


@pytest.mark.parametrize("stream", [None, 5, [ContentDelta("a")], stream_of], ids=["None", "5", "a list", "a function"])
async def test_what_is_no_stream_fails_the_run(tmp_path: Path, stream: Any) -> None:
    outcome, _ = await fought(tmp_path, lambda *_: stream)
    assert outcome == Outcome(RunEnd.FAILED, [], ["error"])


NO_EVENTS: dict[str, Any] = {
    "None": None,
    "a number": 5,
    "text": "text",
    "an object": object(),
    "a class": ContentDelta,
    "an event of the engine": ToolStarted("c", {}),
    "the end of the run": RunFinished(RunEnd.COMPLETED),
    "a call with an object": ToolUse(id="c", name="read", input={"word": object()}),
    "a call with a set": ToolUse(id="c", name="read", input={"word": {1, 2}}),
    "a call with no number": ToolUse(id="c", name="read", input={"word": float("nan")}),
    "a block with an object": Unknown(raw=object()),
}


async def test_what_is_no_event_fails_the_run(tmp_path: Path) -> None:
    enemy = Enemy(lambda *_: None)
    async with arena(tmp_path, enemy, tools=(READ,)) as place:
        for name, event in NO_EVENTS.items():
            enemy.is_tame = False
            enemy.answer = lambda *_, event=event: stream_of(ContentDelta("a"), event, *END)
            assert await place.fight(name) == Outcome(RunEnd.FAILED, [], ["no_event"]), name
            await place.check_still_works()
        assert not place.of(ToolStarted)


async def test_absurd_usage_is_kept_and_counts_for_limits(tmp_path: Path) -> None:
    reports = [Usage(total_tokens=10**30, cost=1e300), Usage(total_tokens=3, cost=0.0), Usage(output_tokens=10**18)]

    def absurd(_: ModelRequest, n: int) -> Any:
        return stream_of(*map(UsageUpdate, reports), call("c", "read", str(n)), Done())

    outcome, place = await fought(tmp_path / "unlimited", absurd, window=1_000)
    assert outcome == ROUNDS
    assert place.session.history[1].usage == Usage(total_tokens=10**30, output_tokens=10**18, cost=1e300)
    for which, limit in (("tokens", {"tokens": 1_000}), ("cost", {"cost": 1.0})):
        outcome, place = await fought(tmp_path / which, absurd, SMALL.model_copy(update=limit))
        assert outcome == Outcome(RunEnd.LIMIT, [which], [])
        assert place.enemy.requests == 1


# Guards and specialists


async def go_on(_: GuardMoment) -> GuardContinue:
    return GuardContinue("Go on.")


async def test_a_guard_that_always_goes_on_reaches_a_limit(tmp_path: Path) -> None:
    def done(_: ModelRequest, n: int) -> Any:
        return stream_of(ContentDelta(f"Done {n}."), *END)

    def calls(_: ModelRequest, n: int) -> Any:
        return stream_of(call("c", "read", str(n)), Done())

    outcome, place = await fought(tmp_path / "few", done, guards=(Guard("g", go_on, 5),))
    assert outcome == Outcome(RunEnd.COMPLETED, [], [])
    assert place.enemy.requests == 6
    assert place.of(GuardAborted)
    outcome, _ = await fought(tmp_path / "many", done, guards=(Guard("g", go_on, 10**9),))
    assert outcome == Outcome(RunEnd.LIMIT, ["turns"], [])
    outcome, _ = await fought(tmp_path / "calls", calls, guards=(Guard("g", go_on, 10**9, at="turn_end"),))
    assert outcome == ROUNDS


@pytest.mark.parametrize("at_once", few([1, 20], 1, "test_specialists_that_always_call_themselves"))
async def test_specialists_that_always_call_themselves(tmp_path: Path, at_once: int) -> None:
    def delegates(_: ModelRequest, n: int) -> Any:
        tasks = [ToolUse(id=f"c{i}", name="again", input={"task": f"{n}, {i}"}) for i in range(at_once)]
        return stream_of(*tasks, Done())

    specialist = Specialist(name="again", description="d", system_prompt="s", specialists=("again",), limits=SMALL)
    outcome, place = await fought(tmp_path, delegates, specialists=lambda: (specialist,), tools=())
    assert outcome.end is RunEnd.LIMIT
    assert set(outcome.limits) <= {"what one run may pile up in memory", "tool rounds"}
    assert place.enemy.requests < 500


# Stop


async def test_stop_ends_what_heeds_nothing(tmp_path: Path) -> None:
    reached, heeds = asyncio.Event(), asyncio.Event()

    async def deaf(*_: Any) -> Any:
        yield ContentDelta("Heard.")
        reached.set()
        while not heeds.is_set():
            with suppress(asyncio.CancelledError):
                await heeds.wait()
        yield call("late", "read")
        yield Done()

    others = asyncio.all_tasks()
    async with arena(tmp_path, Enemy(deaf), tools=(READ,)) as place:
        place.session.send(Message.user("go"))
        await reached.wait()
        place.session.interrupt()
        await place.session.wait_idle()
        assert place.outcome() == Outcome(RunEnd.CANCELLED, [], [])
        assert place.session.history[1].blocks == (Text(text="Heard."),)
        await place.check_still_works()
        heeds.set()
        await place.until(lambda: asyncio.all_tasks() <= others)
        await place.check_still_works()
        assert not place.of(ToolStarted)
