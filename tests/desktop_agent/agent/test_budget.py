"""What a run may still use."""

import asyncio

import pytest

from desktop_agent.agent import run_context as module
from desktop_agent.agent.run_context import Budget
from desktop_agent.types.engine_events import RunEnd, ToolFinished
from desktop_agent.types.permissions import Rule, RuleEffect
from desktop_agent.types.policies import Limits
from desktop_agent.types.provider_events import ContentDelta, Usage
from desktop_agent.types.tool_calls import AllowOnce
from tests.fakes.agent_run import call, tool
from tests.fakes.scripted_provider import Turn
from tests.fakes.specialist_run import Team, ask, specialist


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(module, "monotonic", lambda: self.now)


def used(tokens: int | None = None, cost: float | None = None) -> Usage:
    return Usage(total_tokens=tokens, cost=cost)


@pytest.mark.parametrize(
    ("limits", "use", "which"),
    [
        (Limits(turns=2), lambda budget: budget.count_turn(), "turns"),
        (Limits(tool_iterations=2), lambda budget: budget.count_tool_batch(), "tool rounds"),
        (Limits(tokens=20), lambda budget: budget.add_usage(used(10)), "tokens"),
        (Limits(cost=0.5), lambda budget: budget.add_usage(used(cost=0.25)), "cost"),
        (Limits(characters=8), lambda budget: budget.add_characters(4), "what one run may pile up in memory"),
    ],
)
def test_each_limit_is_reached_at_its_number_and_not_before(limits: Limits, use, which: str) -> None:
    budget = Budget(limits)
    assert budget.exceeded_limit is None
    use(budget)
    assert budget.exceeded_limit is None
    use(budget)
    assert str(budget.exceeded_limit) == which


def test_unknown_usage_counts_as_nothing_and_parts_stand_in_for_the_total() -> None:
    budget = Budget(Limits(tokens=10, cost=1.0))
    budget.add_usage(None)
    budget.add_usage(Usage())
    assert (budget.tokens_left, budget.cost, budget.cost_left) == (10, None, 1.0)
    budget.add_usage(Usage(input_tokens=4, output_tokens=3))
    assert budget.tokens_left == 3


def test_time_stands_still_while_a_person_is_waited_for_here_or_below(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    budget = Budget(Limits(seconds=10))
    below = budget.nested(Limits(), 0.5)
    clock.now += 4
    assert (budget.seconds_left, below.seconds_left) == (6, 6)
    with budget.paused(), below.paused():
        clock.now += 100
        assert budget.seconds_left == 6
    clock.now += 1
    assert (budget.seconds_left, below.seconds_left) == (5, 5)
    clock.now += 60
    assert str(budget.exceeded_limit) == str(below.exceeded_limit) == "time"


def test_a_specialist_has_its_share_of_what_is_left_and_uses_up_its_parents_too() -> None:
    root = Budget(Limits(tokens=100, cost=2.0, depth=2))
    root.add_usage(used(20, 0.5))
    below = root.nested(Limits(tokens=1000, depth=3), 0.5)
    assert (below.depth, below.tokens_left, below.cost_left, below.limits.depth) == (1, 40, 0.75, 2)
    below.add_usage(used(40))
    assert str(below.exceeded_limit) == "tokens"
    assert (root.exceeded_limit, root.tokens_left) == (None, 40)
    below.add_usage(used(40))
    assert str(root.exceeded_limit) == "tokens"
    own = Budget(Limits(turns=1)).nested(Limits(), 1)
    own.count_turn()
    assert own.exceeded_limit is None, "the turns of a run are its own"


def test_what_the_parent_has_used_up_ends_its_specialists() -> None:
    root = Budget(Limits(cost=1.0))
    below = root.nested(Limits(), 1.0).nested(Limits(), 1.0)
    assert below.exceeded_limit is None
    root.add_usage(used(cost=1.0))
    assert str(below.exceeded_limit) == "cost"


def test_a_share_of_nothing_is_nothing() -> None:
    root = Budget(Limits(tokens=1))
    root.add_usage(used(1))
    assert str(root.nested(Limits(), 1.0).exceeded_limit) == "tokens"


def test_what_is_piled_up_above_ends_a_specialist_too() -> None:
    root = Budget(Limits(characters=10_000))
    below = root.nested(Limits(), 1.0)
    below.add_characters(9_999)
    assert (root.exceeded_limit, below.exceeded_limit) == (None, None)
    below.add_characters(1)
    assert str(root.exceeded_limit) == str(below.exceeded_limit) == "what one run may pile up in memory"


def test_one_that_waits_for_a_person_does_not_stop_the_time_of_one_that_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    root = Budget(Limits(seconds=10))
    waits, works = root.nested(Limits(), 1.0), root.nested(Limits(), 1.0)
    with root.paused(), waits.paused():
        clock.now += 4
        assert (root.seconds_left, works.seconds_left) == (6, 6)
        with works.paused():
            clock.now += 100
            assert root.seconds_left == 6
        clock.now += 6
        assert str(root.exceeded_limit) == str(works.exceeded_limit) == "time"


async def test_a_run_below_is_over_with_the_call_that_made_it(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    root = Budget(Limits(seconds=10))

    async def worked() -> None:
        root.nested(Limits(), 1.0).nested(Limits(), 1.0)
        clock.now += 1

    with root.paused():
        await asyncio.create_task(worked())
        await asyncio.sleep(0)
        clock.now += 100
    assert root.seconds_left == 9


@pytest.mark.parametrize("beside", [False, True])
async def test_time_of_a_run_stands_still_when_all_its_specialists_wait(beside: bool) -> None:
    reached, may_end = asyncio.Event(), asyncio.Event()

    async def look(word: str) -> str:
        reached.set()
        await may_end.wait()
        return word

    names = ("asks", "looks") if beside else ("asks",)
    team = Team(
        Turn(*(ask(name, name) for name in names)),
        Turn(ContentDelta("done")),
        specialists=(specialist("asks", tools=("act",)), specialist("looks", tools=("look",))),
        plays={
            "asks": (Turn(call("1", "act")), Turn(ContentDelta("asked"))),
            "looks": (Turn(call("1", "look")), Turn(ContentDelta("looked"))),
        },
        tools=(tool("act", read_only=True), tool("look", look, read_only=True)),
    )
    team.permission_policy.add(Rule(effect=RuleEffect.ASK, tool="act"))
    running = team.start()
    await team.approvals_open()
    if beside:
        await reached.wait()
        assert team.run._budget.is_working
        may_end.set()
        while not any(finished.id == "looks" for finished in team.memory.of(ToolFinished)):
            await asyncio.sleep(0.001)
    await asyncio.sleep(0.01)
    assert not team.run._budget.is_working
    team.decide(AllowOnce())
    assert await running is RunEnd.COMPLETED
    assert team.run._budget.is_working
