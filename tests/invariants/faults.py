"""Faults that are put into the engine on purpose, each against one invariant: the random worlds must find it."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

from desktop_agent.agent import request
from desktop_agent.agent.budget import Budget
from desktop_agent.agent.calls import schedule
from desktop_agent.agent.calls.left_over import LeftOver
from desktop_agent.agent.calls.round import CallRound
from desktop_agent.agent.conduct.guards import Guards
from desktop_agent.agent.conduct.mode_switch import ModeSwitch
from desktop_agent.agent.conduct.steering import SteeringQueue
from desktop_agent.agent.run import Run
from desktop_agent.agent.turn import Turns
from desktop_agent.conversation import compacted
from desktop_agent.conversation.answer_builder import AnswerBuilder
from desktop_agent.engine.session_parts import recovery
from desktop_agent.engine.session_parts.conduct import Conduct
from desktop_agent.engine.session_parts.recorder import RunRecorder
from desktop_agent.permissions import gate
from desktop_agent.permissions.approvals import AnswerReport, AnswerStatus, ApprovalBroker
from desktop_agent.permissions.gate import Allowed
from desktop_agent.permissions.standing import Standing
from desktop_agent.vocabulary.blocks import Thinking
from desktop_agent.vocabulary.conduct.rules import RuleEffect
from desktop_agent.vocabulary.engine_events import RunFinished
from desktop_agent.vocabulary.provider_events import ContentDelta, StopReason


@dataclass(frozen=True)
class Fault:
    """`breaks` are the invariants by which it may be found: a world is stopped by the first that it meets."""

    name: str
    breaks: tuple[int, ...]
    patch: Callable[[], Any]


def _replaced(owner: object, name: str, make: Callable[[Any], Any]) -> Callable[[], Any]:
    """A patch that gives `make` the real thing and puts what it answers in its place."""
    return lambda: mock.patch.object(owner, name, make(getattr(owner, name)))


def _loses_a_result(real: Any) -> Any:
    return lambda self, outcome: real(self, outcome)[:-1]


def _leaves_refused_calls_open(real: Any) -> Any:
    async def act_upon(self: Turns, answer: Any) -> Any:
        if answer.stop_reason is StopReason.REFUSAL:
            return await self._edge.end(answer, self._count)
        return await real(self, answer)

    return act_upon


def _asks_nobody(real: Any) -> Any:
    async def verdict(self: Standing, call: Any, tool: Any, known_names: Any = ()) -> Any:
        said = await real(self, call, tool, known_names)
        return Allowed(said.digest, "default") if isinstance(said, gate.Ask) else said

    return verdict


def _does_not_hear_stop(_real: Any) -> Any:
    def interrupt(self: Run, target: Any = None) -> bool:
        asyncio.get_running_loop().call_later(0.05, self._stop_asked.set)
        return True

    return interrupt


async def _at_once(_self: Any) -> None:
    return None


def _forgets_what_started(real: Any) -> Any:
    def left_over(turn: Any) -> LeftOver:
        return replace(real(turn), started=frozenset(), finished={})

    return left_over


def _ignores_denials(real: Any) -> Any:
    def decide(case: Any, rules: Any, mode: Any, **more: Any) -> Any:
        return real(case, [rule for rule in rules if rule.effect is not RuleEffect.DENY], mode, **more)

    return decide


def _turned_round(real: Any) -> Any:
    return lambda self, outcome: list(reversed(real(self, outcome)))


def _ends_twice(real: Any) -> Any:
    def emit(self: RunRecorder, event: Any) -> None:
        real(self, event)
        if isinstance(event, RunFinished) and self._finished:
            self._finished = False
            real(self, event)

    return emit


def _skips_a_number(real: Any) -> Any:
    def emit(self: RunRecorder, event: Any) -> None:
        self._seq += event.type == "tool_results_received"
        real(self, event)

    return emit


def _tells_and_keeps_another(real: Any) -> Any:
    """What is committed is not what was shown."""

    def message(self: AnswerBuilder, state: Any, at: Any) -> Any:
        whole = real(self, state, at)
        return whole.model_copy(update={"blocks": whole.blocks[1:]}) if len(whole.blocks) > 1 else whole

    return message


def _takes_it_and_leaves_it(real: Any) -> Any:
    def remove(self: SteeringQueue, message_id: str) -> Any:
        entry = real(self, message_id)
        if entry.when == "soon":
            self.add(entry.message, "idle")
        return entry

    return remove


def _hands_nothing_back(real: Any) -> Any:
    def hand_back(self: SteeringQueue) -> Any:
        real(self)
        return ()

    return hand_back


def _does_not_keep(_real: Any) -> Any:
    return lambda self: None


def _waits_for_the_edge(_real: Any) -> Any:
    return lambda self, name: None


def _applies_at_once(real: Any) -> Any:
    def request(self: ModeSwitch, name: str) -> None:
        real(self, name)
        self._request = None
        self._change(self._modes[name], "agent")

    return request


def _drops_pieces(real: Any) -> Any:
    def feed(self: AnswerBuilder, event: Any, at: Any) -> None:
        if not (isinstance(event, ContentDelta) and event.text.startswith("a")):
            real(self, event, at)

    return feed


def _touches_thinking(real: Any) -> Any:
    def kept(messages: Any) -> Any:
        return [
            message.model_copy(
                update={
                    "blocks": tuple(
                        block.model_copy(update={"metadata": {**block.metadata, "seen": True}})
                        if isinstance(block, Thinking)
                        else block
                        for block in message.blocks
                    )
                }
            )
            for message in real(messages)
        ]

    return kept


def _cuts_anywhere(_real: Any) -> Any:
    def cut(said: Any, first_kept_id: str) -> Any:
        at = next((place for place, message in enumerate(said) if message.id == first_kept_id), None)
        return None if at is None else min(at + 2, len(said))

    return cut


def _never_enough(_real: Any) -> Any:
    return property(lambda self: None)


def _goes_on_for_ever(real: Any) -> Any:
    def counted(self: Guards, guard: Any, tell: Any) -> bool:
        self._iterations.clear()
        return real(self, guard, tell)

    return counted


def _takes_every_answer(real: Any) -> Any:
    def answer(self: ApprovalBroker, approval_id: str, decision: Any) -> AnswerReport:
        report = real(self, approval_id, decision)
        return replace(report, status=AnswerStatus.TAKEN)

    return answer


def _dies_of_an_error(_real: Any) -> Any:
    async def guarded(self: Run, prompt: Any, left: Any) -> Any:
        return await self._turns.work(prompt, left)

    return guarded


@contextmanager
def _in_standing(make: Callable[[Any], Any]) -> Iterator[None]:
    from desktop_agent.permissions import standing

    with mock.patch.object(standing, "decide", make(standing.decide)):
        yield


@contextmanager
def _boundless_guards() -> Iterator[None]:
    with (
        mock.patch.object(Guards, "_counted", _goes_on_for_ever(Guards._counted)),
        mock.patch.object(Budget, "exceeded", _never_enough(None)),
    ):
        yield


FAULTS: tuple[Fault, ...] = (
    Fault("a result is lost", (1,), _replaced(CallRound, "close", _loses_a_result)),
    Fault("calls of a refused answer stay open", (1, 2, 12), _replaced(Turns, "_act_upon", _leaves_refused_calls_open)),
    Fault("nobody is asked", (2,), _replaced(Standing, "verdict", _asks_nobody)),
    Fault("Stop comes late", (1, 2), _replaced(Run, "interrupt", _does_not_hear_stop)),
    Fault("started is not written before the effect", (3,), _replaced(RunRecorder, "settle", lambda _: _at_once)),
    Fault("what started is run again", (3,), _replaced(recovery, "_left_over", _forgets_what_started)),
    Fault("rules that deny are ignored", (4,), lambda: _in_standing(_ignores_denials)),
    Fault("results are turned round", (5,), _replaced(CallRound, "close", _turned_round)),
    Fault(
        "no barrier", (5,), _replaced(schedule, "batches", lambda _: lambda calls: iter([list(calls)] if calls else []))
    ),
    Fault("a run ends twice", (6,), _replaced(RunRecorder, "emit", _ends_twice)),
    Fault("a number is left out", (6,), _replaced(RunRecorder, "emit", _skips_a_number)),
    Fault(
        "another message is kept than shown", (6, 9, 1), _replaced(AnswerBuilder, "message", _tells_and_keeps_another)
    ),
    Fault("a message is delivered and stays", (6, 7, 12), _replaced(SteeringQueue, "remove", _takes_it_and_leaves_it)),
    Fault("nothing is handed back", (7,), _replaced(SteeringQueue, "hand_back", _hands_nothing_back)),
    Fault("what waits is not kept", (7,), _replaced(Conduct, "keep", _does_not_keep)),
    Fault("the person's mode waits", (8,), _replaced(ModeSwitch, "set_by_person", _waits_for_the_edge)),
    Fault("the agent's mode does not wait", (8,), _replaced(ModeSwitch, "request_by_agent", _applies_at_once)),
    Fault("pieces are dropped", (9, 6), _replaced(AnswerBuilder, "feed", _drops_pieces)),
    Fault("thinking is touched", (10,), _replaced(request, "without_given_up", _touches_thinking)),
    Fault("compaction cuts anywhere", (11, 1), _replaced(compacted, "_cut", _cuts_anywhere)),
    Fault("no limit holds", (12,), _replaced(Budget, "exceeded", _never_enough)),
    Fault("a guard has no bound", (12,), _boundless_guards),
    Fault("every answer counts", (13,), _replaced(ApprovalBroker, "answer", _takes_every_answer)),
    Fault("an error ends the session", (14, 12, 6, 1, 7), _replaced(Run, "_guarded", _dies_of_an_error)),
)
