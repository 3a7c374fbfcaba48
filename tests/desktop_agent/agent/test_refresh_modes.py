"""Modes that change while they hold: at once for what has not started, and where one goes, never wider."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop_agent.agent.modes import ModeSwitch
from desktop_agent.permissions.gate import strictness
from desktop_agent.permissions.policy import PermissionPolicy
from desktop_agent.types.blocks import ToolUse
from desktop_agent.types.engine_events import EngineEvent, ModeChanged, ModeChangeRequested
from desktop_agent.types.errors import ToolFailed, WrongUse
from desktop_agent.types.permissions import (
    ACCEPT_EDITS_MODE,
    BUILT_IN_MODES,
    DEFAULT_MODE,
    PLAN_MODE,
    Mode,
    RuleEffect,
    fallback_mode,
)
from tests.desktop_agent.agent.test_mode_switch import MODES, PATHS, TOOLS, rule_of
from tests.frame.examples import examples

DENIES = rule_of("d", RuleEffect.DENY, "look", None)
ASKS = rule_of("a", RuleEffect.ASK, "write", None)
ALLOWS = rule_of("w", RuleEffect.ALLOW, "start", None)


def own(**values: object) -> Mode:
    return Mode.model_validate({"name": "own", "title": "Own", **values})


async def strictnesses(mode: Mode) -> list[int]:
    permission_policy = PermissionPolicy(mode=mode)
    calls = [(tool, ToolUse(id="c", name=tool.name, input={"path": path})) for tool in TOOLS for path in PATHS]
    return [strictness(await permission_policy.verdict(call, tool)) for tool, call in calls]


@settings(deadline=None, max_examples=examples(300))
@given(MODES, st.integers(0, 2))
def test_in_place_of_a_mode_that_is_gone_no_more_happens_than_in_it_or_in_the_default(
    modes: list[Mode], index: int
) -> None:
    async def check() -> None:
        removed = modes[index]
        now, before, default = [await strictnesses(mode) for mode in (fallback_mode(removed), removed, DEFAULT_MODE)]
        assert all(a >= max(b, c) for a, b, c in zip(now, before, default, strict=True))
        assert fallback_mode(fallback_mode(removed)) == fallback_mode(removed)

    asyncio.run(check())


@pytest.mark.parametrize(
    ("removed", "now"),
    [
        (own(mutating="accept_edits"), DEFAULT_MODE),
        (own(rules=(ALLOWS,)), DEFAULT_MODE),
        (own(mutating="deny", addendum="Look."), PLAN_MODE),
        (own(mutating="accept_edits", rules=(DENIES, ASKS, ALLOWS)), own(rules=(DENIES, ASKS))),
    ],
)
def test_it_is_a_built_in_one_where_one_fits_and_else_itself_without_what_it_allowed(removed: Mode, now: Mode) -> None:
    assert fallback_mode(removed) == now


class Follower:
    def __init__(self, *modes: Mode) -> None:
        self.modes = (*BUILT_IN_MODES, *modes)
        self.told: list[EngineEvent] = []
        self.permission_policy = PermissionPolicy()
        self.switch = ModeSwitch(self.permission_policy, lambda: self.modes, self.told.append)

    def now_are(self, *modes: Mode) -> Mode | None:
        self.modes = (*BUILT_IN_MODES, *modes)
        return self.switch.refresh_modes()


def test_a_new_one_can_be_chosen_at_once_and_one_that_is_gone_no_more() -> None:
    desk = Follower()
    assert desk.now_are(own()) is None
    assert desk.switch.modes[-1] == own()
    desk.switch.set_by_person("own")
    desk.switch.set_by_person("default")
    assert desk.now_are() is None
    with pytest.raises(WrongUse):
        desk.switch.set_by_person("own")
    with pytest.raises(ToolFailed):
        desk.switch.request_by_agent("own")


def test_one_that_is_changed_while_it_holds_holds_as_it_is_now_also_where_that_is_wider() -> None:
    desk = Follower(own(mutating="deny"))
    desk.switch.set_by_person("own")
    events: list[str] = []
    desk.permission_policy._listeners.append(lambda: events.append(desk.permission_policy.mode.mutating))
    wider = own(mutating="accept_edits", addendum="Quick.")
    assert desk.now_are(wider) is None
    assert (desk.permission_policy.mode, events, desk.switch.current.addendum) == (wider, ["accept_edits"], "Quick.")
    # No other mode: nothing to tell but the change of what it says.
    assert desk.told == [ModeChanged("default", "own", "person")]
    desk.now_are(wider)
    assert events == ["accept_edits"]


def test_one_that_is_gone_while_it_holds_is_said_once() -> None:
    desk = Follower(own(mutating="accept_edits"))
    desk.switch.set_by_person("own")
    assert desk.now_are() == own(mutating="accept_edits")
    assert desk.permission_policy.mode == DEFAULT_MODE
    assert desk.told[1:] == [ModeChanged("own", "default", "person")]
    assert desk.now_are() is None


def test_one_that_goes_on_without_what_it_allowed_comes_back_whole() -> None:
    whole = own(rules=(DENIES, ALLOWS))
    desk = Follower(whole)
    desk.switch.set_by_person("own")
    assert desk.now_are() == whole
    assert desk.permission_policy.mode == own(rules=(DENIES,))
    assert desk.now_are() is None
    assert desk.now_are(whole) is None
    assert desk.permission_policy.mode == whole


def test_another_one_of_its_name_holds_only_when_it_is_chosen() -> None:
    desk = Follower(own(rules=(DENIES, ALLOWS)))
    desk.switch.set_by_person("own")
    desk.now_are()
    desk.now_are(own(rules=(ALLOWS,)))
    assert desk.permission_policy.mode == own(rules=(DENIES,))
    below = desk.switch.nested(PermissionPolicy(mode=desk.permission_policy.mode), lambda _: None)
    desk.now_are(own(rules=(ALLOWS,), mutating="accept_edits"))
    assert below.current == own(rules=(DENIES,))
    desk.switch.set_by_person("own")
    assert desk.permission_policy.mode == own(rules=(ALLOWS,), mutating="accept_edits")
    assert desk.switch.removed_mode is None
    desk.now_are(own())
    assert desk.permission_policy.mode == own()


def test_what_the_agent_asked_for_is_void_when_it_is_gone() -> None:
    desk = Follower(own(mutating="deny"))
    desk.switch.request_by_agent("own")
    desk.switch.at_turn_boundary()
    desk.now_are()
    assert desk.switch.requested is None
    assert [type(event) for event in desk.told] == [ModeChangeRequested, ModeChanged]
    assert desk.told[-1] == ModeChanged("default", "default", "person")
    desk.switch.at_turn_boundary()
    assert len(desk.told) == 2


def test_agents_below_follow_too_and_never_pass_what_stands_above_them() -> None:
    desk = Follower(own(mutating="deny"))
    below_standing = desk.permission_policy.nested(mode=own(mutating="deny"))
    following = desk.permission_policy.nested()
    events: list[EngineEvent] = []
    below = desk.switch.nested(below_standing, events.append)
    other = desk.switch.nested(following, events.append)
    desk.now_are(own(mutating="accept_edits"))
    assert (below.current.mutating, other.current, desk.switch.current) == ("accept_edits", DEFAULT_MODE, DEFAULT_MODE)
    desk.switch.set_by_person("plan")
    desk.now_are()
    assert (below.current, events) == (DEFAULT_MODE, [ModeChanged("own", "default", "person")])
    # One that has no mode of its own still follows whoever called it.
    assert other.current == PLAN_MODE
    desk.switch.set_by_person(ACCEPT_EDITS_MODE.name)
    assert other.current == ACCEPT_EDITS_MODE
