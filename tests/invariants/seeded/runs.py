"""Faults of runs and sessions: how they begin and end, what waits, the mode, and what bounds them."""

from typing import Any

from desktop_agent.agent import agent_loop
from desktop_agent.agent.guards import Guards
from desktop_agent.agent.modes import ModeSwitch
from desktop_agent.agent.run import Run
from desktop_agent.agent.run_context import NO_PRIOR_USE, Budget, PriorUse
from desktop_agent.agent.steering_queue import SteeringQueue
from desktop_agent.engine import session_controls
from desktop_agent.engine.session_controls import RuntimeControls
from desktop_agent.engine.session_runs import RunFactory, RunRecorder
from desktop_agent.types.engine_events import RunEnd, RunFinished
from tests.invariants.seeded.fault import Fault, replaced


def _ends_twice(real: Any) -> Any:
    def emit(self: RunRecorder, event: Any, pieces: Any = ()) -> None:
        real(self, event, pieces)
        if isinstance(event, RunFinished) and self.finished:
            self.finished = False
            real(self, event)

    return emit


def _skips_a_number(real: Any) -> Any:
    def emit(self: RunRecorder, event: Any, pieces: Any = ()) -> None:
        self._seq += event.type == "tool_results_received"
        real(self, event, pieces)

    return emit


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


def _keeps_none(_real: Any) -> Any:
    return lambda self: ()


def _believes_the_queue(_real: Any) -> Any:
    return lambda queue, history: tuple(queue)


def _waits_for_the_edge(_real: Any) -> Any:
    return lambda self, name: None


def _applies_at_once(real: Any) -> Any:
    def request(self: ModeSwitch, name: str) -> None:
        real(self, name)
        self._request = None
        self._change(self._modes_by_name[name], "agent")

    return request


def _forgets_the_mode(_real: Any) -> Any:
    return lambda state, modes, say: (None, None)


def _never_enough(_real: Any) -> Any:
    return property(lambda self: None)


def _goes_on_for_ever(real: Any) -> Any:
    def counted(self: Guards, guard: Any, notify: Any) -> bool:
        self._iterations.clear()
        return real(self, guard, notify)

    return counted


def _is_never_deep(real: Any) -> Any:
    def made(self: Budget, *args: Any, **more: Any) -> None:
        real(self, *args, **more)
        self.depth = 0

    return made


def _does_not_say_that_it_failed(real: Any) -> Any:
    def emit(self: RunRecorder, event: Any, pieces: Any = ()) -> None:
        if not (isinstance(event, RunFinished) and event.reason is RunEnd.FAILED):
            real(self, event, pieces)

    return emit


def _has_one_budget(_real: Any) -> Any:
    def run(
        self: RunFactory, recorder: RunRecorder, _used: PriorUse = NO_PRIOR_USE, *, only_compacts: bool = False
    ) -> Run:
        settings = self._settings()
        budget = vars(self).setdefault("_budget", Budget(settings.limits))
        return Run(self._context(recorder, budget), settings, budget, only_compacts=only_compacts)

    return run


def _stays_stopped(real: Any) -> Any:
    def run(
        self: RunFactory, recorder: RunRecorder, used: PriorUse = NO_PRIOR_USE, *, only_compacts: bool = False
    ) -> Run:
        created = real(self, recorder, used, only_compacts=only_compacts)
        created._stop_requested = vars(self).setdefault("_stop_asked", created._stop_requested)
        return created

    return run


OF_RUNS = (
    Fault("a run ends twice", (6,), replaced(RunRecorder, "emit", _ends_twice)),
    Fault("a number is left out", (6,), replaced(RunRecorder, "emit", _skips_a_number)),
    Fault("a message is delivered and stays", (7,), replaced(SteeringQueue, "remove", _takes_it_and_leaves_it)),
    Fault("nothing is handed back", (7,), replaced(SteeringQueue, "take_all", _hands_nothing_back)),
    Fault("what waits is not kept", (7,), replaced(RuntimeControls, "_unsent_messages", _keeps_none)),
    Fault(
        "what was delivered waits after a crash", (7,), replaced(session_controls, "_undelivered", _believes_the_queue)
    ),
    Fault("the person's mode waits", (8,), replaced(ModeSwitch, "set_by_person", _waits_for_the_edge)),
    Fault("the agent's mode does not wait", (8,), replaced(ModeSwitch, "request_by_agent", _applies_at_once)),
    Fault("the mode is forgotten", (8,), replaced(session_controls, "_restored_mode", _forgets_the_mode)),
    Fault("no limit holds", (12,), replaced(Budget, "exceeded_limit", _never_enough)),
    Fault("a guard has no bound", (12,), replaced(Guards, "_count_iteration", _goes_on_for_ever)),
    Fault("pauses have no bound", (12,), replaced(agent_loop, "MAX_PAUSES", lambda _: 10**9)),
    Fault("specialists may nest for ever", (12,), replaced(Budget, "__init__", _is_never_deep)),
    Fault("a run that fails does not end", (14,), replaced(RunRecorder, "emit", _does_not_say_that_it_failed)),
    Fault("all runs have one budget", (14,), replaced(RunFactory, "create_run", _has_one_budget)),
    Fault("Stop holds for the next run too", (14,), replaced(RunFactory, "create_run", _stays_stopped)),
)
