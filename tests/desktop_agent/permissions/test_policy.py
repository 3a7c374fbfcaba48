import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.permissions.gate import Allowed, Ask, Denied, Verdict
from desktop_agent.permissions.policy import PermissionPolicy
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


async def verdict(policy: PermissionPolicy, tool: AnyTool, *paths: str) -> Verdict:
    return await policy.verdict(use(*paths), tool, ["act"])


async def test_a_rule_counts_until_it_is_revoked(tool: AnyTool) -> None:
    policy = PermissionPolicy()
    assert isinstance(await verdict(policy, tool, "/ws/a"), Ask)
    allow = rule(tool=tool.identity)
    policy.add(allow)
    assert await verdict(policy, tool, "/ws/a") == Allowed(tool.digest({"paths": ["/ws/a"]}), "rule", allow.id)
    assert policy.revoke(allow.id) is not None
    assert policy.revoke(allow.id) is None
    assert isinstance(await verdict(policy, tool, "/ws/a"), Ask)
    policy.add(rule(RuleEffect.DENY))
    assert isinstance(await verdict(policy, tool, "/ws/a"), Denied)


async def test_adding_a_rule_twice_is_adding_it_once(tool: AnyTool) -> None:
    policy, allow = PermissionPolicy(), rule()
    policy.add(allow)
    policy.add(allow)
    assert policy.rules == (allow,)


async def test_a_rule_ends_when_it_expires(tool: AnyTool) -> None:
    moment = START
    policy = PermissionPolicy([rule(expires_at=START + timedelta(hours=1))], clock=lambda: moment)
    assert isinstance(await verdict(policy, tool, "/ws/a"), Allowed)
    moment += timedelta(hours=1)
    assert isinstance(await verdict(policy, tool, "/ws/a"), Ask)


async def test_a_time_without_a_zone_is_that_of_the_clock_on_the_wall(tool: AnyTool) -> None:
    wall = datetime.now()  # noqa: DTZ005 - that is what people write
    policy = PermissionPolicy([rule(expires_at=wall - timedelta(seconds=1))])
    assert isinstance(await verdict(policy, tool, "/ws/a"), Ask)
    policy.add(rule(expires_at=wall + timedelta(hours=1)))
    assert isinstance(await verdict(policy, tool, "/ws/a"), Allowed)


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
    policy = PermissionPolicy([rule(**more)], conversation_id="here", workspace="/ws")
    assert isinstance(await verdict(policy, tool, "/ws/a"), Allowed) is holds


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
    policy = PermissionPolicy(mode=mode, conversation_id="here", workspace="/ws", clock=lambda: START)
    assert isinstance(await verdict(policy, tool, "/ws/a"), Allowed) is holds
    assert isinstance(await verdict(policy.nested(), tool, "/ws/a"), Allowed) is holds
    assert policy.mode is mode


async def test_a_rule_that_does_not_say_where_it_holds_is_bound_when_it_is_added() -> None:
    policy = PermissionPolicy(conversation_id="here", workspace="/ws")
    policy.add(rule())
    policy.add(rule(scope=RuleScope.WORKSPACE))
    assert [(bound.conversation_id, bound.workspace) for bound in policy.rules] == [("here", None), (None, "/ws")]


async def test_without_a_workspace_no_rule_can_be_laid_down_for_one(tool: AnyTool) -> None:
    policy = PermissionPolicy()
    with pytest.raises(WrongUse):
        policy.add(rule(scope=RuleScope.WORKSPACE))
    assert policy.rules == ()
    elsewhere = PermissionPolicy([rule(scope=RuleScope.WORKSPACE, workspace="/ws")])
    assert isinstance(await verdict(elsewhere, tool, "/ws/a"), Ask)


async def test_a_deny_rule_without_a_workspace_holds_in_every_workspace(tool: AnyTool) -> None:
    for workspace in (None, "/ws"):
        policy = PermissionPolicy([rule(RuleEffect.DENY, scope=RuleScope.WORKSPACE)], workspace=workspace)
        assert isinstance(await verdict(policy, tool, "/ws/a"), Denied)


async def test_a_rule_without_a_conversation_holds_in_no_known_conversation(tool: AnyTool) -> None:
    nowhere = PermissionPolicy()
    nowhere.add(rule())
    assert isinstance(await verdict(nowhere, tool, "/ws/a"), Allowed)
    here = PermissionPolicy(conversation_id="here")
    here._rules = nowhere.rules
    assert isinstance(await verdict(here, tool, "/ws/a"), Ask)


async def test_a_name_that_may_not_be_used_is_refused_before_anything_else(tool: AnyTool) -> None:
    refused = await verdict(PermissionPolicy([rule()], names=frozenset({"look"})), tool, "/ws/a")
    assert isinstance(refused, Denied)
    assert refused.outcome is Outcome.DENIED
    unknown = await PermissionPolicy(names=frozenset()).verdict(use(), None)
    assert isinstance(unknown, Denied)
    assert unknown.outcome is Outcome.DENIED


async def test_a_mode_holds_at_once_and_everybody_is_told(tool: AnyTool) -> None:
    notified: list[str] = []
    policy = PermissionPolicy([rule()])
    child = policy.nested(mode=ACCEPT_EDITS_MODE)

    def listener() -> None:
        notified.append("child")

    with child.watched(listener):
        policy.set_mode(PLAN_MODE)
        assert policy.mode is PLAN_MODE
        assert isinstance(await verdict(child, tool, "/ws/a"), Denied)
        child.set_mode(DEFAULT_MODE)
        policy.add(rule())
        assert notified == ["child"] * 3
    policy.set_mode(DEFAULT_MODE)
    child.set_mode(PLAN_MODE)
    assert notified == ["child"] * 3


async def test_a_nested_one_follows_its_parent_and_never_goes_further(tool: AnyTool) -> None:
    policy = PermissionPolicy()
    child = policy.nested(rules=[rule()], mode=ACCEPT_EDITS_MODE)
    assert isinstance(await verdict(child, tool, "/ws/a"), Ask)
    policy.add(rule())
    assert isinstance(await verdict(child, tool, "/ws/a"), Allowed)
    follower = policy.nested()
    assert isinstance(await verdict(follower, tool, "/ws/a"), Allowed)
    policy.set_mode(PLAN_MODE)
    assert follower.mode is PLAN_MODE
    assert isinstance(await verdict(follower, tool, "/ws/a"), Denied)


async def test_what_a_nested_one_is_denied_its_parent_may_still_do(tool: AnyTool) -> None:
    policy = PermissionPolicy([rule()])
    for child in (
        policy.nested(rules=[rule(RuleEffect.DENY)]),
        policy.nested(mode=PLAN_MODE),
        policy.nested(names=frozenset()),
    ):
        assert isinstance(await verdict(child, tool, "/ws/a"), Denied)
        assert isinstance(await verdict(child.nested(rules=[rule()]), tool, "/ws/a"), Denied)
    assert isinstance(await verdict(policy, tool, "/ws/a"), Allowed)


async def test_what_a_person_allows_a_nested_one_holds_for_the_conversation(tool: AnyTool) -> None:
    policy = PermissionPolicy(conversation_id="here")
    child, allow = policy.nested().nested(), rule()
    child.add(allow)
    assert [bound.id for bound in policy.rules] == [allow.id]
    assert isinstance(await verdict(child, tool, "/ws/a"), Allowed)
    child.revoke(allow.id)
    assert policy.rules == ()


async def test_the_rule_that_let_a_call_run_below_is_noted_as_used(tool: AnyTool) -> None:
    allow = rule()
    policy = PermissionPolicy([allow], clock=lambda: START)
    policy.nested().mark_used(allow.id)
    assert policy.rules[0].last_used_at == START


async def test_what_is_suspended_above_is_suspended_below(tool: AnyTool) -> None:
    policy = PermissionPolicy([rule()])
    child = policy.nested()
    policy.mark_untrusted(UntrustedSource("web", "a.example"))
    assert isinstance(await verdict(child, tool, "/ws/a"), Allowed)
    sending = replace(tool, effects=frozenset({Effect.NETWORK}))
    question = await verdict(child, sending, "/ws/a")
    assert isinstance(question, Ask)
    assert "a.example" in question.reason
    policy.lift_suspension()
    assert isinstance(await verdict(child, sending, "/ws/a"), Allowed)


@pytest.mark.parametrize("error", [OutsideWorkspace("out"), RuntimeError("broken"), SystemExit(), GeneratorExit()])
async def test_a_tool_that_fails_to_say_what_a_call_is_about(tool: AnyTool, error: BaseException) -> None:
    async def failing(_input: Any) -> Any:
        raise error

    def make_failing(effect: Effect, tool_class: ToolClass) -> AnyTool:
        effects = frozenset({effect})
        return Tool("act", "", tool.schema, tool.run, tool_class=tool_class, effects=effects, subjects=failing)

    reading, writing = make_failing(Effect.READ, ToolClass.READ_ONLY), make_failing(Effect.WRITE, ToolClass.MUTATING)
    assert isinstance(await verdict(PermissionPolicy(), reading), Allowed)
    assert isinstance(await verdict(PermissionPolicy([rule()]), writing), Ask)
    deny = rule(RuleEffect.DENY, pattern=PathPattern(prefix="/secret"))
    question = await verdict(PermissionPolicy([deny]), reading)
    assert isinstance(question, Ask)
    assert "not certain" in question.reason


async def test_rules_are_proposed_for_here_and_for_always(tool: AnyTool) -> None:
    tool = replace(tool, scope="")
    policy = PermissionPolicy(workspace="/ws")
    proposed = await policy.proposals(use("/ws/src/a"), tool)
    assert [(proposal.scope, proposal.workspace) for proposal in proposed] == [
        (RuleScope.WORKSPACE, "/ws"),
        (RuleScope.ALWAYS, None),
    ]
    assert await policy.proposals(ToolUse(id="c", name="act", input={"bad": 1}), tool) == ()
    for proposal in proposed:
        once = PermissionPolicy(workspace="/ws")
        once.add(proposal)
        assert isinstance(await verdict(once, tool, "/ws/src/b"), Allowed)
        assert isinstance(await verdict(once, tool, "/ws/other/b"), Ask)


async def test_own_folders_are_never_written_to_but_for_a_workspace_in_them(tool: AnyTool) -> None:
    policy = PermissionPolicy([rule()], own_folders=("/data/app",), workspace="/data/app/demo")
    assert isinstance(await verdict(policy, tool, "/data/app/store.db"), Denied)
    assert isinstance(await verdict(policy.nested(), tool, "/data/app/store.db"), Denied)
    assert isinstance(await verdict(policy, tool, "/data/app/demo/a.txt"), Allowed)


async def test_what_belongs_together_is_asked_about_where_parent_or_child_asks(make_open_tool: MakeTool) -> None:
    shell = make_open_tool([Effect.EXECUTE])
    call = ToolUse(id="c", name="act", input={"lines": ["git log; git diff"]})
    log_and_diff = CommandsPattern(title="git", beginnings=(("git", "log"), ("git", "diff")))
    log_alone = CommandsPattern(title="git", beginnings=(("git", "log"),))
    allowing, denying = rule(pattern=log_and_diff), rule(RuleEffect.DENY, pattern=log_alone)
    assert isinstance(await PermissionPolicy([allowing]).nested().verdict(call, shell), Allowed)
    assert isinstance(
        await PermissionPolicy([rule(pattern=log_alone)]).nested(rules=[allowing]).verdict(call, shell), Ask
    )
    assert isinstance(await PermissionPolicy([allowing]).nested(rules=[denying]).verdict(call, shell), Denied)
    assert isinstance(await PermissionPolicy([denying]).nested(rules=[allowing]).verdict(call, shell), Denied)


async def test_leave_for_several_tools_ends_with_the_rule(make_open_tool: MakeTool) -> None:
    tool = make_open_tool([Effect.WRITE], name="write_file")
    call = ToolUse(id="c", name="write_file", input={"paths": ["/ws/a"]})
    policy = PermissionPolicy(workspace="/ws")
    allowing = rule(pattern=PathPattern(prefix="/ws")).model_copy(
        update={"tool": "edit_file @ /ws", "also": ("write_file @ /ws",)}
    )
    policy.add(allowing)
    assert await policy.verdict(call, tool) == Allowed(tool.digest(call.input), "rule", allowing.id)
    policy.revoke(allowing.id)
    assert isinstance(await policy.verdict(call, tool), Ask)


async def test_the_disk_is_looked_at_off_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_open_tool: MakeTool
) -> None:
    threads = list[int]()

    def note_thread(*_: object) -> tuple[()]:
        threads.append(threading.get_ident())
        return ()

    monkeypatch.setattr(workspace_survey, "startup_paths", note_thread)
    monkeypatch.setattr(workspace_survey, "private_paths_in", note_thread)
    root = PermissionPolicy(workspace=str(tmp_path))
    await root.nested().verdict(use(str(tmp_path / "a")), make_open_tool([Effect.WRITE], "act"))
    # Once for all policies that decide together.
    assert len(threads) == 2
    assert threading.get_ident() not in threads
