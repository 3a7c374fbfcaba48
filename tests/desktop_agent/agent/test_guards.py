"""Continuation guards: bounded whatever they do, and gone once they misbehave."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from desktop_agent.agent import guards as module
from desktop_agent.agent.guards import GuardOutcome, Guards
from desktop_agent.processes.foreign_code import read_only_copy
from desktop_agent.types.blocks import ToolUse
from desktop_agent.types.engine_events import ContinuationInjected, EngineEvent, GuardAborted
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.policies import (
    Guard,
    GuardAbort,
    GuardCheck,
    GuardContinue,
    GuardMoment,
    GuardPass,
    GuardStop,
    GuardVerdict,
)
from desktop_agent.types.provider_events import StopReason
from tests.frame.examples import examples

At = Literal["turn_end", "session_stop"]
Behaviour = Literal["pass", "none", "continue", "stop", "abort", "raise", "hang", "nonsense", "blank"]
AT = st.sampled_from(("turn_end", "session_stop"))
NAMES = st.sampled_from("abcd")
BEHAVIOURS = st.sampled_from(
    ("pass", "none", "continue", "continue", "continue", "stop", "abort", "raise", "hang", "nonsense", "blank")
)
MISBEHAVES = ("raise", "hang", "nonsense", "blank")


async def behave(behaviour: Behaviour, name: str) -> GuardVerdict | None:
    if behaviour == "raise":
        raise RuntimeError("a secret of the guard")
    if behaviour == "hang":
        await asyncio.Event().wait()
    verdicts: dict[str, object] = {
        "pass": GuardPass(),
        "none": None,
        "continue": GuardContinue(f"go on, {name}"),
        "stop": GuardStop(),
        "abort": GuardAbort(f"enough, {name}"),
        "nonsense": "yes",
        "blank": GuardContinue(" \n"),
    }
    return verdicts[behaviour]  # type: ignore[return-value]


@dataclass
class Known:
    """One guard of the model."""

    name: str
    at: At
    most: int
    behaviour: Behaviour


class Guarded(RuleBasedStateMachine):
    """Guards that behave at random, compared with a model of the outcome."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.guards = Guards()
        self.model: dict[str, Known] = {}
        self.counts: dict[str, int] = {}
        self.seen: dict[str, int] = {}

    def teardown(self) -> None:
        self.runner.close()

    def check_of(self, known: Known) -> GuardCheck:
        async def check(moment: GuardMoment) -> GuardVerdict | None:
            self.seen[known.name] = moment.iteration
            return await behave(known.behaviour, known.name)

        return check

    @rule(name=NAMES, at=AT, most=st.integers(1, 3), behaviour=BEHAVIOURS)
    def add(self, name: str, at: At, most: int, behaviour: Behaviour) -> None:
        known = Known(name, at, most, behaviour)
        guard = Guard(name, self.check_of(known), most, at)
        if name in self.model:
            with pytest.raises(WrongUse):
                self.guards.add(guard)
            return
        self.guards.add(guard)
        self.model[name] = known

    @rule(name=NAMES)
    def remove(self, name: str) -> None:
        if self.model.pop(name, None) is not None:
            self.guards.remove(name)
            return
        with pytest.raises(WrongUse):
            self.guards.remove(name)

    @precondition(lambda self: self.model)
    @rule(place=st.integers(0, 3), behaviour=BEHAVIOURS)
    def change_its_mind(self, place: int, behaviour: Behaviour) -> None:
        list(self.model.values())[place % len(self.model)].behaviour = behaviour

    @rule()
    def begin_run(self) -> None:
        self.guards.begin_run()
        self.counts.clear()

    @rule(at=AT)
    def consult(self, at: At) -> None:
        events: list[EngineEvent] = []
        consulted = [known for known in self.model.values() if known.at == at]
        iterations = {known.name: self.counts.get(known.name, 0) for known in consulted}
        self.seen.clear()
        outcome = self.runner.run(
            self.guards.consult(at, history=(), stop_reason=StopReason.END_TURN, turns=1, emit=events.append)
        )
        assert self.seen == iterations
        assert (outcome, described(events)) == self.expected(consulted)

    def expected(self, consulted: list[Known]) -> tuple[GuardOutcome, list[str]]:
        events = [f"gone {known.name}" for known in consulted if known.behaviour in MISBEHAVES]
        aborts = [known.name for known in consulted if known.behaviour == "abort"]
        events += [f"gone {name}" for name in aborts]
        stops = [known.name for known in consulted if known.behaviour == "stop"]
        going_on: list[str] = []
        if not aborts and not stops:
            for known in consulted:
                if known.behaviour != "continue":
                    continue
                count = self.counts.get(known.name, 0)
                if count >= known.most:
                    events.append(f"gone {known.name}")
                    continue
                self.counts[known.name] = count + 1
                events.append(f"{known.name} {count + 1}")
                going_on.append(known.name)
        for event in events:
            if event.startswith("gone "):
                del self.model[event.removeprefix("gone ")]
        if aborts:
            return GuardOutcome("abort", guard_name=aborts[0]), events
        if stops:
            return GuardOutcome("stop", guard_name=stops[0]), events
        if not going_on:
            return GuardOutcome(), events
        prompt = "\n\n".join(f"go on, {name}" for name in going_on)
        return GuardOutcome("continue", prompt, ", ".join(going_on)), events

    @invariant()
    def it_holds_what_the_model_holds(self) -> None:
        assert [guard.name for guard in self.guards.list()] == list(self.model)


def described(events: list[EngineEvent]) -> list[str]:
    words: list[str] = []
    for event in events:
        if isinstance(event, ContinuationInjected):
            words.append(f"{event.guard_name} {event.iteration}")
        else:
            assert isinstance(event, GuardAborted)
            assert event.reason
            assert "secret" not in event.reason
            words.append(f"gone {event.guard_name}")
    return words


def test_guards_are_bounded_and_one_that_misbehaves_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TIME_LIMIT", 0.001)
    run_state_machine_as_test(Guarded, settings=settings(deadline=None, max_examples=examples(100)))


def ignore(_event: EngineEvent) -> None: ...


async def ask(guards: Guards, *history: Message, emit: Callable[[EngineEvent], None] = ignore) -> GuardOutcome:
    return await guards.consult("session_stop", history=history, stop_reason=None, turns=3, emit=emit)


def always(verdict: GuardVerdict) -> GuardCheck:
    async def check(_moment: GuardMoment) -> GuardVerdict:
        return verdict

    return check


def test_one_that_would_never_be_asked_is_wrong_use() -> None:
    async def check(_moment: GuardMoment) -> None: ...

    with pytest.raises(WrongUse, match="would never be asked"):
        Guard("g", check, max_iterations=1, at="every_turn")  # type: ignore[arg-type]


async def test_stubborn_guards_come_to_an_end() -> None:
    events: list[EngineEvent] = []
    guards = Guards(Guard(name, always(GuardContinue("more")), most) for name, most in (("a", 2), ("b", 3)))
    guards.begin_run()
    kinds = [(await ask(guards, emit=events.append)).kind for _ in range(5)]
    assert kinds == ["continue", "continue", "continue", "pass", "pass"]
    assert described(events) == ["a 1", "b 1", "a 2", "b 2", "gone a", "b 3", "gone b"]


async def test_a_guard_that_comes_back_in_the_same_run_gets_no_new_iterations() -> None:
    guard = Guard("a", always(GuardContinue("more")), 1)
    guards = Guards((guard,))
    guards.begin_run()
    assert (await ask(guards)).kind == "continue"
    guards.remove("a")
    guards.add(guard)
    assert (await ask(guards)).kind == "pass"
    guards.add(guard)
    guards.begin_run()
    assert (await ask(guards)).kind == "continue"


async def test_a_guard_sees_what_was_said_and_why_it_ended() -> None:
    moments: list[GuardMoment] = []

    async def check(moment: GuardMoment) -> None:
        moments.append(moment)

    message = Message.user("hello")
    await Guards((Guard("a", check, 1, "turn_end"),)).consult(
        "turn_end", history=[message], stop_reason=StopReason.END_TURN, turns=2, emit=ignore
    )
    assert moments == [GuardMoment((message,), StopReason.END_TURN, 0, 2)]


async def test_a_guard_that_is_removed_while_it_thinks_has_no_say() -> None:
    async def check(_moment: GuardMoment) -> GuardVerdict:
        guards.remove("a")
        guards.remove("b")
        return GuardAbort("never heard")

    asked: list[str] = []

    async def late(_moment: GuardMoment) -> None:
        asked.append("b")

    guards = Guards((Guard("a", check, 1), Guard("b", late, 1)))
    assert await ask(guards) == GuardOutcome()
    assert (asked, guards.list()) == ([], ())


@pytest.mark.parametrize("later", [True, False])
@pytest.mark.parametrize("kind", [SystemExit, GeneratorExit, KeyboardInterrupt, asyncio.CancelledError])
async def test_whatever_a_guard_raises_it_alone_is_gone(kind: type[BaseException], later: bool) -> None:
    async def burst(_moment: GuardMoment) -> None:
        if later:
            await asyncio.sleep(0)
        raise kind("a secret")

    events: list[EngineEvent] = []
    guards = Guards((Guard("a", burst, 1), Guard("b", always(GuardContinue("more")), 1)))
    assert (await ask(guards, emit=events.append)).prompt == "more"
    assert described(events) == ["gone a", "b 1"]


async def test_a_guard_that_is_no_coroutine_function_is_gone() -> None:
    def check(_moment: GuardMoment) -> GuardVerdict:
        raise SystemExit

    guards = Guards((Guard("a", check, 1), Guard("b", lambda _: GuardStop(), 1)))  # type: ignore[arg-type, return-value]
    assert (await ask(guards)).kind == "pass"
    assert guards.list() == ()


async def test_what_a_guard_does_to_the_history_changes_nothing_of_it() -> None:
    use = ToolUse(id="1", name="look", input={"words": ["one"]})
    history = (Message.user("go"), Message(role=Role.ASSISTANT, blocks=(use,)))
    before = [message.model_dump_json() for message in history]

    async def vandal(moment: GuardMoment) -> None:
        moment.history[1].tool_uses[0].input["words"].append("two")
        moment.history[1].tool_uses[0].metadata["more"] = 1

    await ask(Guards((Guard("a", vandal, 1),)), *history)
    assert [message.model_dump_json() for message in history] == before


async def test_however_long_the_history_is_a_guard_costs_what_was_added(monkeypatch: pytest.MonkeyPatch) -> None:
    copies: list[int] = []

    def counted(messages: list[Message]) -> list[Message]:
        copies.append(len(messages))
        return read_only_copy(messages)

    monkeypatch.setattr("desktop_agent.processes.foreign_code.read_only_copy", counted)
    seen: list[int] = []

    async def check(moment: GuardMoment) -> None:
        seen.append(len(moment.history))

    guards = Guards((Guard("a", check, 1), Guard("b", check, 1)))
    history = [Message.user("go") for _ in range(10_000)]
    for _ in range(20):
        await ask(guards, *history)
        history.append(Message.user("more"))
    assert seen[:2] + seen[-2:] == [10_000, 10_000, 10_019, 10_019]
    assert copies == [10_000, *([1] * 19)]


class Deaf:
    """A guard that ignores its cancellation until it is released."""

    def __init__(self) -> None:
        self.has_begun = asyncio.Event()
        self.released = asyncio.Event()
        self.ended = asyncio.Event()
        self.cancelled = 0

    async def check(self, _moment: GuardMoment) -> GuardVerdict:
        self.has_begun.set()
        while not self.released.is_set():
            try:
                await self.released.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
        self.ended.set()
        raise RuntimeError("nobody listens any more")

    async def release(self) -> None:
        self.released.set()
        await self.ended.wait()
        await asyncio.sleep(0)


async def test_a_guard_that_ignores_its_end_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CANCEL_GRACE", 0.01)
    monkeypatch.setattr(module, "TIME_LIMIT", 0.01)
    deaf = Deaf()
    events: list[EngineEvent] = []
    guards = Guards((Guard("a", deaf.check, 1), Guard("b", always(GuardStop()), 1)))
    assert (await ask(guards, emit=events.append)).kind == "stop"
    assert events == [GuardAborted("a", "It gave no answer within 0.01 seconds.")]
    assert deaf.cancelled == 1
    await deaf.release()


@pytest.mark.parametrize("obedient", [True, False])
async def test_a_cancel_goes_through(monkeypatch: pytest.MonkeyPatch, obedient: bool) -> None:
    monkeypatch.setattr(module, "CANCEL_GRACE", 0.01)
    deaf = Deaf()
    cancelled: list[str] = []

    async def obey(_moment: GuardMoment) -> None:
        deaf.has_begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append("a")

    events: list[EngineEvent] = []
    check: Callable[[GuardMoment], Awaitable[GuardVerdict | None]] = obey if obedient else deaf.check
    guards = Guards((Guard("a", check, 1),))
    consulting = asyncio.ensure_future(ask(guards, emit=events.append))
    await deaf.has_begun.wait()
    consulting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await consulting
    # Stop is not the guard's fault: it stays for the next run.
    assert (events, [guard.name for guard in guards.list()]) == ([], ["a"])
    if obedient:
        assert cancelled == ["a"]
    else:
        assert deaf.cancelled == 1
        await deaf.release()


async def test_a_guard_that_cancels_itself_is_removed() -> None:
    async def check(_moment: GuardMoment) -> None:
        raise asyncio.CancelledError

    events: list[EngineEvent] = []
    assert await ask(Guards((Guard("a", check, 1),)), emit=events.append) == GuardOutcome()
    assert described(events) == ["gone a"]


def test_two_guards_of_one_name_are_refused() -> None:
    guard = Guard("a", always(GuardPass()), 1)
    with pytest.raises(WrongUse):
        Guards((guard, guard))


async def test_what_a_guard_raises_is_logged_without_what_it_says(caplog: pytest.LogCaptureFixture) -> None:
    async def check(_moment: GuardMoment) -> GuardVerdict | None:
        return await behave("raise", "a")

    guards = Guards([Guard("a", check, 1, "turn_end")])
    await guards.consult("turn_end", history=(), stop_reason=None, turns=1, emit=ignore)
    assert "RuntimeError" in caplog.text
    assert "in behave" in caplog.text
    assert "a secret" not in caplog.text
