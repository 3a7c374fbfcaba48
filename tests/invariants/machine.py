"""The state machine: everything that a person, a model and a power cut may do, in any order, at any await."""

import asyncio
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar
from unittest import mock

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from desktop_agent.engine.session import Session
from desktop_agent.tools import in_thread
from desktop_agent.vocabulary.conduct.interrupts import StopTool, StopTurn
from desktop_agent.vocabulary.conduct.rules import RuleEffect
from desktop_agent.vocabulary.errors import ToolFailed
from desktop_agent.vocabulary.tool_calls import AllowForConversation, AllowOnce, Deny, DenyAndStop
from tests.invariants.scripts import BREAK, HANG, READ, STUBBORN, WRITE
from tests.invariants.world import World

T = TypeVar("T")
_decisions = st.sampled_from(
    [
        AllowOnce(),
        AllowOnce(),
        AllowOnce(edited_input={"word": "edited"}),
        AllowForConversation(),
        Deny(),
        Deny(message="no"),
        DenyAndStop(),
    ]
)
_steps = st.sampled_from([40, 1, 2, 3, 5, 8, 13, 20, 30, 60, 100])
_tools = st.sampled_from([WRITE, WRITE, READ, HANG, STUBBORN, BREAK])


class Machine(RuleBasedStateMachine):
    """One conversation, several lives.

    Rules have no preconditions: what is possible depends on the order in which sets of tasks are gone through, and
    hypothesis must be able to draw the same again.
    """

    def __init__(self) -> None:
        super().__init__()
        self._folder = Path(tempfile.mkdtemp(prefix="desktop-agent-world-", dir=_memory()))
        # A thread ends when it likes; here everything must come in the same order again.
        self._no_threads = mock.patch.object(in_thread, "in_own_thread", _in_no_thread)
        self._no_threads.start()
        self.world = World(self._folder)

    @property
    def _session(self) -> Session:
        return self.world.session

    @initialize(seed=st.integers(0, 2**32), steps=_steps)
    def begin(self, seed: int, steps: int) -> None:
        self.world.seed(seed)
        self.world.send("first")
        self.world.life.loop.steps(steps)

    @rule(steps=_steps)
    def time_passes(self, steps: int) -> None:
        self.world.life.loop.steps(steps)

    @rule(steps=_steps)
    def the_person_writes(self, steps: int) -> None:
        if not self._session.working:
            self.world.send("prompt")
        elif len(self._session.queue.entries) < 2:
            self.world.steer("steered", "soon")
        self.world.life.loop.steps(steps)

    @rule(steps=_steps)
    def a_message_for_later(self, steps: int) -> None:
        if self._session.working and len(self._session.queue.entries) < 2:
            self.world.steer("later", "idle")
        self.world.life.loop.steps(steps)

    @rule(position=st.integers(0, 3), decision=_decisions, steps=_steps)
    def the_person_decides(self, position: int, decision: object, steps: int) -> None:
        self.world.decide(position, decision)  # type: ignore[arg-type]
        self.world.life.loop.steps(steps)

    @rule(steps=_steps)
    def the_person_stops(self, steps: int) -> None:
        if self._session.working:
            self.world.stop()
        self.world.life.loop.steps(steps)

    @rule()
    def the_person_stops_the_turn(self) -> None:
        if self._session.working:
            self.world.stop(StopTurn())

    @rule(position=st.integers(0, 3))
    def the_person_stops_one_call(self, position: int) -> None:
        calls = self.world.running_calls
        if calls:
            self.world.stop(StopTool(calls[position % len(calls)]))

    @rule(name=st.sampled_from(["default", "plan", "accept-edits"]), steps=_steps)
    def the_person_changes_the_mode(self, name: str, steps: int) -> None:
        self.world.set_mode(name)
        self.world.life.loop.steps(steps)

    @rule(name=st.sampled_from(["plan", "default"]), steps=_steps)
    def the_agent_asks_for_a_mode(self, name: str, steps: int) -> None:
        with suppress(ToolFailed):
            self.world.in_loop(lambda: self._session.modes.request_by_agent(name))
        self.world.life.loop.steps(steps)

    @rule(effect=st.sampled_from([RuleEffect.DENY, RuleEffect.ASK, RuleEffect.ALLOW]), tool=_tools, steps=_steps)
    def a_rule_is_made(self, effect: RuleEffect, tool: str, steps: int) -> None:
        self.world.add_rule(effect, tool)
        self.world.life.loop.steps(steps)

    @rule(hooks=st.sampled_from([False, False, False, True]), guard=st.sampled_from(["pass", "raise", "continue"]))
    def hooks_and_guards_change_their_minds(self, hooks: bool, guard: str) -> None:
        self.world.hooks_raise, self.world.guard = hooks, guard

    @rule(resume=st.booleans(), steps=_steps)
    def the_process_dies_anywhere(self, resume: bool, steps: int) -> None:
        self.the_process_dies(resume, steps)

    def the_process_dies(self, resume: bool, steps: int) -> None:
        """As by a power cut; the program is started again."""
        self.world.crash()
        if resume:
            self.world.resume()
        self.world.life.loop.steps(steps)

    @rule(resume=st.sampled_from([True, True, False]), steps=_steps)
    def the_process_dies_while_a_call_runs(self, resume: bool, steps: int) -> None:
        for _ in range(60):
            if self.world.running_calls or not self.world.life.loop.step():
                break
        self.the_process_dies(resume, steps)

    @rule()
    def the_program_is_closed_and_opened(self) -> None:
        self.world.reopen()

    @rule(decision=_decisions, endless=st.booleans())
    def all_comes_to_rest(self, decision: object, endless: bool) -> None:
        self.world.endless = endless
        self.world.settle(decision)  # type: ignore[arg-type]

    @invariant()
    def nothing_is_broken(self) -> None:
        self.world.check()

    def teardown(self) -> None:
        try:
            self.world.settle(Deny())
            self.world.check_usable()
            self.world.reopen()
            self.world.check()
            self.world.leave()
        finally:
            self.world.abandon()
            self._no_threads.stop()
            shutil.rmtree(self._folder, ignore_errors=True)


async def _in_no_thread(work: Callable[[in_thread.StopSign], T], *, grace: float = 0) -> T:
    await asyncio.sleep(0)
    return work(in_thread.StopSign())


def _memory() -> str | None:
    """Where a database costs no disk, on systems that have such a place."""
    place = Path("/dev/shm")
    return str(place) if place.is_dir() else None
