"""The state machine: everything that a person, a model and a power cut may do, in any order, at any await."""

import shutil
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from desktop_agent.engine.session import Session
from desktop_agent.types.errors import ToolFailed
from desktop_agent.types.permissions import RuleEffect
from desktop_agent.types.policies import StopTool, StopTurn
from desktop_agent.types.tool_calls import AllowForConversation, AllowOnce, Deny, DenyAndStop
from tests.frame.examples import leave_out_constants_of_modules
from tests.invariants.moments import ASKED, MOMENTS
from tests.invariants.sameness import sameness
from tests.invariants.scripts import BREAK, HANG, READ, STUBBORN, WRITE
from tests.invariants.world import World

T = TypeVar("T")

leave_out_constants_of_modules()

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
_steps = st.sampled_from([40, 0, 1, 2, 3, 5, 8, 13, 20, 30, 60, 100])
_tools = st.sampled_from([WRITE, WRITE, READ, HANG, STUBBORN, BREAK])


_moments = st.sampled_from(MOMENTS)
_late = st.sampled_from([0, 0, 1, 2, 4, 9])
_DEEDS = ("plan", "default", "accept-edits", "deny", "ask", "stop", "steer")


class Machine(RuleBasedStateMachine):
    """One conversation, several lives.

    Rules have no preconditions: what is possible depends on the order in which sets of tasks are gone through, and
    hypothesis must be able to draw the same again.
    """

    on_digest: Callable[[str], None] = staticmethod(lambda _digest: None)
    """Gets the digest of each world at its end."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = Path(tempfile.mkdtemp(prefix="desktop-agent-world-", dir=_memory()))
        self._same = ExitStack()
        self._same.enter_context(sameness(self._clock))
        self.world: World

    def _clock(self) -> float:
        return self.world.life.loop.time()

    @property
    def _session(self) -> Session:
        return self.world.session

    @initialize(seed=st.integers(0, 2**32), steps=_steps)
    def begin(self, seed: int, steps: int) -> None:
        self.world = World(self._folder, seed)
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

    @rule(
        position=st.integers(0, 3), decision=_decisions, stop=st.sampled_from([False, False, False, True]), steps=_steps
    )
    def the_person_decides(self, position: int, decision: object, stop: bool, steps: int) -> None:
        self._wait_for(ASKED, 0)
        self.world.decide(position, decision, and_stop=stop)  # type: ignore[arg-type]
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

    @rule(name=st.sampled_from(["default", "default", "plan", "accept-edits"]), steps=_steps)
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

    @rule()
    def the_rules_are_taken_back(self) -> None:
        self.world.revoke_rules()

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

    @rule(moment=_moments, late=_late, deed=st.sampled_from(_DEEDS), steps=_steps)
    def the_person_does_something_just_then(self, moment: str, late: int, deed: str, steps: int) -> None:
        self._wait_for(moment, late)
        match deed:
            case "plan" | "default" | "accept-edits":
                self.world.set_mode(deed)
            case "stop":
                self.world.stop()
            case "steer":
                self.the_person_writes(0)
            case _:
                tools = (*self.world.moments.starting.values(), WRITE, READ)
                self.world.add_rule(RuleEffect(deed), tools[late % len(tools)])
        self.world.life.loop.steps(steps)

    @rule(moment=_moments, late=_late, resume=st.sampled_from([True, True, False]), steps=_steps)
    def the_process_dies_just_then(self, moment: str, late: int, resume: bool, steps: int) -> None:
        self._wait_for(moment, late)
        self.the_process_dies(resume, steps)

    def _wait_for(self, moment: str, late: int) -> None:
        """Run until the moment comes, and `late` steps more. Allow every call, and give work to an idle session."""
        for _ in range(200):
            if self.world.has_arrived(moment):
                break
            if self._session.approvals.open_approvals:
                self.world.decide(0, AllowOnce())
            elif not self._session.working:
                self.world.send("do more")
            elif not self.world.life.loop.step():
                break
        self.world.life.loop.steps(late)

    @rule()
    def the_program_is_closed_and_opened(self) -> None:
        self.world.reopen()

    @rule(decision=_decisions, endless=st.sampled_from(["", "", "", "calls", "pauses", "guards", "delegates"]))
    def all_comes_to_rest(self, decision: object, endless: str) -> None:
        if endless and not self._session.working:
            self.world.send("without an end")
        self.world.endless = endless
        self.world.settle(decision)  # type: ignore[arg-type]

    @invariant()
    def nothing_is_broken(self) -> None:
        self.world.check()

    def teardown(self) -> None:
        try:
            self._end(self.world)
        finally:
            self._same.close()
            shutil.rmtree(self._folder, ignore_errors=True)

    def _end(self, world: World) -> None:
        try:
            world.settle(Deny())
            world.check_usable()
            world.reopen()
            world.check()
            world.leave()
            self.on_digest(world.moments.digest)
        finally:
            world.abandon()


def _memory() -> str | None:
    """Return a folder in memory, on systems that have one."""
    place = Path("/dev/shm")
    return str(place) if place.is_dir() else None
