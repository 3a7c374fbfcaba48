import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.permissions.gate import Allowed, Ask, Denied, Verdict
from desktop_agent.permissions.policy import PermissionPolicy, ToolNamePolicy
from desktop_agent.tools.commands import workspace_survey
from desktop_agent.tools.tool import AnyTool, Tool
from desktop_agent.types.blocks import Outcome, ToolUse
from desktop_agent.types.errors import OutsideWorkspace, WrongUse
from desktop_agent.types.permissions import (
    ACCEPT_EDITS_MODE,
    DEFAULT_MODE,
    PLAN_MODE,
    CommandsPattern,
    Mode,
    PathPattern,
    Rule,
    RuleEffect,
    RuleScope,
)
from desktop_agent.types.tool_calls import Effect, ToolClass, UntrustedSource

MakeTool = Callable[..., AnyTool]
START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def tool(make_open_tool: MakeTool) -> AnyTool:
    return make_open_tool([Effect.WRITE])


def use(*paths: str, name: str = "act") -> ToolUse:
    return ToolUse(id="c", name=name, input={"paths": list(paths)})


def rule(effect: RuleEffect = RuleEffect.ALLOW, tool: str = "*", **more: Any) -> Rule:
    return Rule(effect=effect, tool=tool, **more)


async def verdict(standing: PermissionPolicy, tool: AnyTool, *paths: str) -> Verdict:
    return await standing.verdict(use(*paths), tool, ["act"])


async def test_a_rule_counts_until_it_is_revoked(tool: AnyTool) -> None:
    standing = PermissionPolicy()
    assert isinstance(await verdict(standing, tool, "/ws/a"), Ask)
    allow = rule(tool=tool.identity)
    standing.add(allow)
    assert await verdict(standing, tool, "/ws/a") == Allowed(tool.digest({"paths": ["/ws/a"]}), "rule", allow.id)
    assert standing.revoke(allow.id) is not None
    assert standing.revoke(allow.id) is None
    assert isinstance(await verdict(standing, tool, "/ws/a"), Ask)
    standing.add(rule(RuleEffect.DENY))
    assert isinstance(await verdict(standing, tool, "/ws/a"), Denied)


async def test_adding_a_rule_twice_is_adding_it_once(tool: AnyTool) -> None:
    standing, allow = PermissionPolicy(), rule()
    standing.add(allow)
    standing.add(allow)
    assert standing.rules == (allow,)


async def test_a_rule_ends_when_it_expires(tool: AnyTool) -> None:
    moment = START
    standing = PermissionPolicy([rule(expires_at=START + timedelta(hours=1))], clock=lambda: moment)
    assert isinstance(await verdict(standing, tool, "/ws/a"), Allowed)
    moment += timedelta(hours=1)
    assert isinstance(await verdict(standing, tool, "/ws/a"), Ask)


async def test_a_time_without_a_zone_is_that_of_the_clock_on_the_wall(tool: AnyTool) -> None:
    wall = datetime.now()  # noqa: DTZ005 - that is what people write
    standing = PermissionPolicy([rule(expires_at=wall - timedelta(seconds=1))])
    assert isinstance(await verdict(standing, tool, "/ws/a"), Ask)
    standing.add(rule(expires_at=wall + timedelta(hours=1)))
    assert isinstance(await verdict(standing, tool, "/ws/a"), Allowed)


@pytest.mark.parametrize(
    ("more", "holds"),
    [
        ({"scope": RuleScope.CONVERSATION, "conversation_id": "here"}, True),
        ({"scope": RuleScope.CONVERSATION, "conversation_id": "there"}, False),
        ({"scope": RuleScope.CONVERSATION}, True),
        ({"scope": RuleScope.WORKSPACE, "workspace": "/ws"}, True),
        ({"scope": RuleScope.WORKSPACE, "workspace": "/ws2"}, False),
        ({"scope": RuleScope.WORKSPACE}, False),
        ({"scope": RuleScope.ALWAYS, "conversation_id": "there", "workspace": "/ws2"}, True),
    ],
)
async def test_rules_of_other_conversations_and_workspaces_do_not_match(
    tool: AnyTool, more: dict[str, Any], holds: bool
) -> None:
    standing = PermissionPolicy([rule(**more)], conversation_id="here", workspace="/ws")
    assert isinstance(await verdict(standing, tool, "/ws/a"), Allowed) is holds


@pytest.mark.parametrize(
    ("more", "holds"),
    [
        ({}, True),
        ({"scope": RuleScope.ALWAYS}, True),
        ({"scope": RuleScope.CONVERSATION, "conversation_id": "there"}, False),
        ({"scope": RuleScope.WORKSPACE, "workspace": "/ws"}, True),
        ({"scope": RuleScope.WORKSPACE, "workspace": "/ws2"}, False),
        ({"scope": RuleScope.WORKSPACE}, False),
        ({"scope": RuleScope.ALWAYS, "expires_at": START}, False),
        ({"scope": RuleScope.ALWAYS, "expires_at": START + timedelta(hours=1)}, True),
    ],
)
async def test_rules_of_a_mode_hold_where_and_as_long_as_they_say_too(
    tool: AnyTool, more: dict[str, Any], holds: bool
) -> None:
    mode = Mode(name="mine", title="Mine", rules=(rule(**more),))
    standing = PermissionPolicy(mode=mode, conversation_id="here", workspace="/ws", clock=lambda: START)
    assert isinstance(await verdict(standing, tool, "/ws/a"), Allowed) is holds
    assert isinstance(await verdict(standing.nested(), tool, "/ws/a"), Allowed) is holds
    assert standing.mode is mode


async def test_a_rule_that_does_not_say_where_it_holds_is_bound_when_it_is_added() -> None:
    standing = PermissionPolicy(conversation_id="here", workspace="/ws")
    standing.add(rule())
    standing.add(rule(scope=RuleScope.WORKSPACE))
    assert [(each.conversation_id, each.workspace) for each in standing.rules] == [("here", None), (None, "/ws")]


async def test_without_a_workspace_no_rule_can_be_laid_down_for_one(tool: AnyTool) -> None:
    standing = PermissionPolicy()
    with pytest.raises(WrongUse):
        standing.add(rule(scope=RuleScope.WORKSPACE))
    assert standing.rules == ()
    elsewhere = PermissionPolicy([rule(scope=RuleScope.WORKSPACE, workspace="/ws")])
    assert isinstance(await verdict(elsewhere, tool, "/ws/a"), Ask)


async def test_one_that_does_not_say_for_which_workspace_forbids_in_each(tool: AnyTool) -> None:
    for workspace in (None, "/ws"):
        standing = PermissionPolicy([rule(RuleEffect.DENY, scope=RuleScope.WORKSPACE)], workspace=workspace)
        assert isinstance(await verdict(standing, tool, "/ws/a"), Denied)


async def test_a_rule_laid_down_without_a_conversation_holds_in_none_that_is_known(tool: AnyTool) -> None:
    nowhere = PermissionPolicy()
    nowhere.add(rule())
    assert isinstance(await verdict(nowhere, tool, "/ws/a"), Allowed)
    known = PermissionPolicy(conversation_id="here")
    known._rules = nowhere.rules
    assert isinstance(await verdict(known, tool, "/ws/a"), Ask)


async def test_a_name_that_may_not_be_used_is_refused_before_anything_else(tool: AnyTool) -> None:
    for names in (ToolNamePolicy(denied=frozenset({"act"})), ToolNamePolicy(allowed=frozenset({"look"}))):
        refused = await verdict(PermissionPolicy([rule()], names=names), tool, "/ws/a")
        assert isinstance(refused, Denied)
        assert refused.outcome is Outcome.DENIED
    unknown = await PermissionPolicy(names=ToolNamePolicy(allowed=frozenset())).verdict(use(), None)
    assert isinstance(unknown, Denied)
    assert unknown.outcome is Outcome.DENIED


async def test_a_mode_holds_at_once_and_everybody_is_told(tool: AnyTool) -> None:
    told: list[str] = []
    standing = PermissionPolicy([rule()])
    child = standing.nested(mode=ACCEPT_EDITS_MODE)

    def listener() -> None:
        told.append("child")

    with child.watched(listener):
        standing.set_mode(PLAN_MODE)
        assert standing.mode is PLAN_MODE
        assert isinstance(await verdict(child, tool, "/ws/a"), Denied)
        child.set_mode(DEFAULT_MODE)
        standing.add(rule())
        assert told == ["child"] * 3
    standing.set_mode(DEFAULT_MODE)
    child.set_mode(PLAN_MODE)
    assert told == ["child"] * 3


async def test_a_nested_one_follows_its_parent_and_never_goes_further(tool: AnyTool) -> None:
    standing = PermissionPolicy()
    child = standing.nested(rules=[rule()], mode=ACCEPT_EDITS_MODE)
    assert isinstance(await verdict(child, tool, "/ws/a"), Ask)
    standing.add(rule())
    assert isinstance(await verdict(child, tool, "/ws/a"), Allowed)
    follower = standing.nested()
    assert isinstance(await verdict(follower, tool, "/ws/a"), Allowed)
    standing.set_mode(PLAN_MODE)
    assert follower.mode is PLAN_MODE
    assert isinstance(await verdict(follower, tool, "/ws/a"), Denied)


async def test_what_a_nested_one_is_denied_its_parent_may_still_do(tool: AnyTool) -> None:
    standing = PermissionPolicy([rule()])
    for child in (
        standing.nested(rules=[rule(RuleEffect.DENY)]),
        standing.nested(mode=PLAN_MODE),
        standing.nested(names=ToolNamePolicy(allowed=frozenset())),
    ):
        assert isinstance(await verdict(child, tool, "/ws/a"), Denied)
        assert isinstance(await verdict(child.nested(rules=[rule()]), tool, "/ws/a"), Denied)
    assert isinstance(await verdict(standing, tool, "/ws/a"), Allowed)


async def test_what_a_person_allows_a_nested_one_holds_for_the_conversation(tool: AnyTool) -> None:
    standing = PermissionPolicy(conversation_id="here")
    child, allow = standing.nested().nested(), rule()
    child.add(allow)
    assert [each.id for each in standing.rules] == [allow.id]
    assert isinstance(await verdict(child, tool, "/ws/a"), Allowed)
    child.revoke(allow.id)
    assert standing.rules == ()


async def test_the_rule_that_let_a_call_run_below_is_noted_as_used(tool: AnyTool) -> None:
    allow = rule()
    standing = PermissionPolicy([allow], clock=lambda: START)
    standing.nested().mark_used(allow.id)
    assert standing.rules[0].last_used_at == START


async def test_what_is_suspended_above_is_suspended_below(tool: AnyTool) -> None:
    standing = PermissionPolicy([rule()])
    child = standing.nested()
    standing.mark_untrusted(UntrustedSource("web", "a.example"))
    assert isinstance(await verdict(child, tool, "/ws/a"), Allowed)
    sending = replace(tool, effects=frozenset({Effect.NETWORK}))
    asked = await verdict(child, sending, "/ws/a")
    assert isinstance(asked, Ask)
    assert "a.example" in asked.reason
    standing.lift_suspension()
    assert isinstance(await verdict(child, sending, "/ws/a"), Allowed)


@pytest.mark.parametrize("error", [OutsideWorkspace("out"), RuntimeError("broken"), SystemExit(), GeneratorExit()])
async def test_a_tool_that_fails_to_say_what_a_call_is_about(tool: AnyTool, error: BaseException) -> None:
    async def failing(_input: Any) -> Any:
        raise error

    def made(effect: Effect, tool_class: ToolClass) -> AnyTool:
        effects = frozenset({effect})
        return Tool("act", "", tool.schema, tool.run, tool_class=tool_class, effects=effects, subjects=failing)

    reading, writing = made(Effect.READ, ToolClass.READ_ONLY), made(Effect.WRITE, ToolClass.MUTATING)
    assert isinstance(await verdict(PermissionPolicy(), reading), Allowed)
    assert isinstance(await verdict(PermissionPolicy([rule()]), writing), Ask)
    deny = rule(RuleEffect.DENY, pattern=PathPattern(prefix="/secret"))
    asked = await verdict(PermissionPolicy([deny]), reading)
    assert isinstance(asked, Ask)
    assert "not certain" in asked.reason


async def test_rules_are_proposed_for_here_and_for_always(tool: AnyTool) -> None:
    standing = PermissionPolicy(workspace="/ws")
    proposed = await standing.proposals(use("/ws/src/a"), tool)
    assert [(each.scope, each.workspace) for each in proposed] == [
        (RuleScope.WORKSPACE, "/ws"),
        (RuleScope.ALWAYS, None),
    ]
    assert await standing.proposals(ToolUse(id="c", name="act", input={"bad": 1}), tool) == ()
    for each in proposed:
        once = PermissionPolicy(workspace="/ws")
        once.add(each)
        assert isinstance(await verdict(once, tool, "/ws/src/b"), Allowed)
        assert isinstance(await verdict(once, tool, "/ws/other/b"), Ask)


async def test_own_folders_are_never_written_to_but_for_a_workspace_in_them(tool: AnyTool) -> None:
    standing = PermissionPolicy([rule()], own_folders=("/data/app",), workspace="/data/app/demo")
    assert isinstance(await verdict(standing, tool, "/data/app/store.db"), Denied)
    assert isinstance(await verdict(standing.nested(), tool, "/data/app/store.db"), Denied)
    assert isinstance(await verdict(standing, tool, "/data/app/demo/a.txt"), Allowed)


async def test_what_belongs_together_is_asked_about_where_parent_or_child_asks(make_open_tool: MakeTool) -> None:
    shell = make_open_tool([Effect.EXECUTE])
    call = ToolUse(id="c", name="act", input={"lines": ["git log; git diff"]})
    both = CommandsPattern(title="git", beginnings=(("git", "log"), ("git", "diff")))
    one = CommandsPattern(title="git", beginnings=(("git", "log"),))
    allowing, denying = rule(pattern=both), rule(RuleEffect.DENY, pattern=one)
    assert isinstance(await PermissionPolicy([allowing]).nested().verdict(call, shell), Allowed)
    assert isinstance(await PermissionPolicy([rule(pattern=one)]).nested(rules=[allowing]).verdict(call, shell), Ask)
    assert isinstance(await PermissionPolicy([allowing]).nested(rules=[denying]).verdict(call, shell), Denied)
    assert isinstance(await PermissionPolicy([denying]).nested(rules=[allowing]).verdict(call, shell), Denied)


async def test_leave_for_several_tools_ends_with_the_rule(make_open_tool: MakeTool) -> None:
    tool = make_open_tool([Effect.WRITE], name="write_file")
    call = ToolUse(id="c", name="write_file", input={"paths": ["/ws/a"]})
    standing = PermissionPolicy(workspace="/ws")
    allowing = rule(pattern=PathPattern(prefix="/ws")).model_copy(
        update={"tool": "edit_file @ /ws", "also": ("write_file @ /ws",)}
    )
    standing.add(allowing)
    assert await standing.verdict(call, tool) == Allowed(tool.digest(call.input), "rule", allowing.id)
    standing.revoke(allowing.id)
    assert isinstance(await standing.verdict(call, tool), Ask)


async def test_the_disk_is_looked_at_off_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_open_tool: MakeTool
) -> None:
    threads = list[int]()

    def look(*_: object) -> tuple[()]:
        threads.append(threading.get_ident())
        return ()

    monkeypatch.setattr(workspace_survey, "startup_paths", look)
    monkeypatch.setattr(workspace_survey, "private_paths_in", look)
    root = PermissionPolicy(workspace=str(tmp_path))
    await root.nested().verdict(use(str(tmp_path / "a")), make_open_tool([Effect.WRITE], "act"))
    # Once for all who decide together.
    assert len(threads) == 2
    assert threading.get_ident() not in threads
