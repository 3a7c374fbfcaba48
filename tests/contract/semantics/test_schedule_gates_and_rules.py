"""Section Semantics: when calls run, what they pass before, and what rules say."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.permissions.gate import Allowed, Ask, Denied
from desktop_agent.permissions.policy import PermissionPolicy
from desktop_agent.tools.tool import AnyTool, Tool
from desktop_agent.types.blocks import Outcome, Text, ToolUse
from desktop_agent.types.engine_events import ApprovalRequested, RunEnd, ToolFinished, ToolStarted
from desktop_agent.types.messages import now
from desktop_agent.types.permissions import (
    CommandPattern,
    HostPattern,
    PathPattern,
    Pattern,
    Rule,
    RuleEffect,
    RuleScope,
)
from desktop_agent.types.policies import Hooks, PreToolUse
from desktop_agent.types.tool_calls import AllowOnce, Effect, ToolClass
from tests.contract.scenes import ACT, DONE, LOOK, on_disk, one, until
from tests.desktop_agent.permissions.conftest import open_tool
from tests.fakes.agent_run import Desk, call, tool
from tests.fakes.scripted_provider import Turn
from tests.fakes.specialist_run import Team, ask, specialist

ALLOW, ASK, DENY = RuleEffect.ALLOW, RuleEffect.ASK, RuleEffect.DENY


class Watch:
    """Remembers which calls ran at once."""

    def __init__(self) -> None:
        self.running: list[str] = []
        self.together: list[set[str]] = []
        self.ended: list[str] = []

    async def work(self, word: str) -> str:
        self.running.append(word)
        self.together.append(set(self.running))
        await asyncio.sleep(0.02 - 0.0005 * int(word))  # later calls end earlier
        self.running.remove(word)
        self.ended.append(word)
        return word

    def look(self) -> AnyTool:
        return tool("look", self.work, read_only=True)

    def act(self) -> AnyTool:
        return tool("act", self.work)


async def test_schedule__results_stand_in_call_order_whichever_ends_first() -> None:
    watch = Watch()
    desk = Desk(Turn(*(call(f"c{n}", "look", str(n)) for n in range(8))), DONE, tools=(watch.look(),))
    await desk.execute()
    assert watch.ended != sorted(watch.ended, key=int)
    assert [result.tool_use_id for result in desk.memory.results] == [f"c{n}" for n in range(8)]


async def test_schedule__twenty_reads_run_at_once_and_no_more() -> None:
    watch = Watch()
    desk = Desk(Turn(*(call(f"c{n}", "look", str(n)) for n in range(30))), DONE, tools=(watch.look(),))
    await desk.execute()
    assert max(len(group) for group in watch.together) == 20


async def test_schedule__changes_run_one_at_a_time_behind_a_barrier() -> None:
    watch = Watch()
    names = ["look", "look", "act", "act", "look", "look"]
    act = watch.act()
    desk = Desk(Turn(*(call(f"c{n}", name, str(n)) for n, name in enumerate(names))), DONE, tools=(watch.look(), act))
    desk.allow(act)
    await desk.execute()
    assert {frozenset(group) for group in watch.together if len(group) > 1} == {frozenset("01"), frozenset("45")}
    assert [sorted(watch.ended[index : index + 2]) for index in (0, 2, 4)] == [["0", "1"], ["2", "3"], ["4", "5"]]
    assert watch.ended[2:4] == ["2", "3"]


async def test_schedule__an_agent_that_calls_agents_never_waits_for_a_slot_of_its_own() -> None:
    deep = specialist("deep", tools=("look",), model="deep")
    wide = specialist("wide", specialists=("deep",), tools=("look",), model="wide")
    count = 8  # as many as work at once
    team = Team(
        Turn(*(ask(f"w{n}", "wide", task=f"task {n}") for n in range(count))),
        DONE,
        specialists=(wide, deep),
        plays={
            "wide": (*(Turn(ask(f"d{n}", "deep")) for n in range(count)), *(DONE for _ in range(count))),
            "deep": (*(Turn(call(f"l{n}", "look")) for n in range(count)), *(DONE for _ in range(count))),
        },
        tools=(LOOK,),
    )
    assert await team.execute() is RunEnd.COMPLETED
    assert team.memory.outcomes == [Outcome.SUCCEEDED] * count


async def gated(
    tmp_path: Path, *names: str, allowed: frozenset[str], rules: tuple[Rule, ...] = ()
) -> tuple[Any, list[str]]:
    async def look(moment: PreToolUse) -> None:
        names_seen.append(moment.name)

    names_seen: list[str] = []
    hooks = Hooks(pre_tool_use=(look,))
    turn = Turn(*(call(name, name) for name in names))
    async with on_disk(tmp_path, turn, DONE, tools=(LOOK, ACT), hooks=hooks, rules=rules) as stage:
        stage.session.permission_policy._names = allowed
        stage.session.modes.set_by_person("plan")
        await stage.say()
        await stage.session.close()
    return {event.id: event.outcome for event in stage.of(ToolFinished)}, names_seen


async def test_gates__name_then_registry_then_hooks_then_rules_then_mode(tmp_path: Path) -> None:
    outcomes, names_seen = await gated(
        tmp_path, "look", "nobody", "forbidden", "act",
        allowed=frozenset({"look", "nobody", "act"}),
        rules=(Rule(effect=DENY, tool="look", scope=RuleScope.ALWAYS),),
    )  # fmt: skip
    assert names_seen == ["look", "act"]  # no hook hears of a name that is forbidden, or that nobody has
    assert outcomes == {
        "look": Outcome.DENIED, "nobody": Outcome.FAILED, "forbidden": Outcome.DENIED, "act": Outcome.DENIED
    }  # fmt: skip


async def test_gates__what_rules_allow_the_mode_may_still_deny_and_nobody_is_asked() -> None:
    desk = Desk(Turn(call("1", "act")), DONE, tools=(ACT,))
    desk.allow(ACT)
    desk.modes.set_by_person("plan")
    assert await desk.execute() is RunEnd.COMPLETED
    assert desk.memory.outcomes == [Outcome.DENIED]
    assert not desk.memory.of(ApprovalRequested)


async def test_gates__a_denial_is_a_result_for_the_model_and_the_loop_goes_on() -> None:
    desk = Desk(Turn(call("1", "act")), DONE, tools=(ACT,))
    desk.permission_policy.add(Rule(effect=DENY, tool="act"))
    assert await desk.execute() is RunEnd.COMPLETED
    result = desk.provider.requests[1].messages[-1].blocks[0]
    assert result == one(desk.memory.results)
    assert result.is_error
    assert desk.memory.messages[-1].text == "Done."


@pytest.mark.parametrize("what", ["stop", "mode", "rule"])
async def test_gates__the_last_look_before_the_start_sees_what_changed_since_the_approval(what: str) -> None:
    began = asyncio.Event()
    go = asyncio.Event()

    async def work(word: str) -> str:
        began.set()
        await go.wait()
        return word

    act = tool("act", work)
    desk = Desk(Turn(call("1", "act"), call("2", "act", "b")), DONE, tools=(act,))
    running = desk.start()
    await desk.approvals_open(2)
    desk.decide(AllowOnce())
    desk.decide(AllowOnce())
    await began.wait()
    if what == "stop":
        desk.run.interrupt()
    elif what == "mode":
        desk.modes.set_by_person("plan")
    else:
        desk.permission_policy.add(Rule(effect=DENY, tool="act"))
    go.set()
    await running
    assert [event.id for event in desk.memory.of(ToolStarted)] == ["1"]
    assert desk.memory.outcomes[1] is (Outcome.CANCELLED if what == "stop" else Outcome.DENIED)


class Shifting(Tool[Any]):
    """A tool whose calls can become other calls."""

    shift = ""

    def digest(self, arguments: Any) -> str:
        return super().digest(arguments) + Shifting.shift


async def test_gates__another_digest_than_the_one_that_was_allowed_does_not_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[object] = []

    async def run(arguments: object, _call: object) -> tuple[Text, ...]:
        ran.append(arguments)
        return ()

    act = Shifting("act", "act", ACT.schema, run, effects=frozenset({Effect.WRITE}))
    desk = Desk(Turn(call("1", "act")), DONE, tools=(act,))
    running = desk.start()
    await desk.approvals_open()
    desk.decide(AllowOnce())
    monkeypatch.setattr(Shifting, "shift", "!")
    await until(lambda: running.done() or desk.approvals.open_approvals)
    desk.run.interrupt()
    await running
    assert ran == []
    assert desk.memory.outcomes[0] in {Outcome.DENIED, Outcome.CANCELLED}


def rule(effect: RuleEffect, pattern: Pattern | None = None, tool_name: str = "act", **more: Any) -> Rule:
    return Rule(effect=effect, tool=tool_name, pattern=pattern, **{"scope": RuleScope.ALWAYS, **more})


FAR = open_tool((Effect.WRITE, Effect.EXECUTE, Effect.NETWORK))
READS = open_tool((Effect.READ,), tool_class=ToolClass.READ_ONLY)


async def verdict(
    *rules: Rule, about: AnyTool = FAR, permission_policy: PermissionPolicy | None = None, **subjects: Any
) -> str:
    arguments = {name: [value] for name, value in subjects.items()}
    permission_policy = permission_policy or PermissionPolicy(rules, conversation_id="here", workspace="/ws")
    result = await permission_policy.verdict(ToolUse(id="1", name="act", input=arguments), about)
    return {Allowed: "allow", Ask: "ask", Denied: "deny"}[type(result)]


@pytest.mark.parametrize(
    ("effects", "expected"),
    [("", "ask"), ("allow", "allow"), ("allow ask", "ask"), ("ask deny", "deny"), ("allow deny ask", "deny")],
)
async def test_rules__deny_over_ask_over_allow_over_the_tools_default(effects: str, expected: str) -> None:
    rules = [rule(RuleEffect(effect)) for effect in effects.split()]
    assert await verdict(*rules) == expected
    assert await verdict(*reversed(rules)) == expected
    assert await verdict(about=READS) == "allow"


@pytest.mark.parametrize(
    "line", ["rm -rf /", "sudo rm -rf ~", ":(){ :|:& };:", "dd if=x of=/dev/sda", "ls && rm -fr /*"]
)
async def test_rules__nobody_can_allow_what_is_denied_in_the_code(line: str) -> None:
    everything = (rule(ALLOW, tool_name="*"), rule(ALLOW, CommandPattern(words=("rm",))))
    assert await verdict(*everything, lines=line) == "deny"
    assert await verdict(*everything, lines="ls") == "allow"


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        (PathPattern(prefix="/ws/a"), {"paths": "/ws/a/b.txt"}, {"paths": "/ws/ab"}),
        (PathPattern(prefix="/ws/a"), {"paths": "/ws/a"}, {"paths": "/ws/a/../b"}),
        (HostPattern(host="example.org"), {"hosts": "EXAMPLE.org"}, {"hosts": "www.example.org"}),
        (HostPattern(host="*.example.org"), {"hosts": "www.example.org"}, {"hosts": "badexample.org"}),
        (CommandPattern(words=("git", "log")), {"lines": "git log -3"}, {"lines": "git push"}),
        (CommandPattern(words=("ls",), exact=True), {"lines": "ls"}, {"lines": "ls -a"}),
    ],
)
@pytest.mark.parametrize("effect", [ALLOW, DENY])
async def test_rules__match_path_host_and_parsed_command(
    effect: RuleEffect, pattern: Pattern, yes: Any, no: Any
) -> None:
    assert await verdict(rule(effect, pattern), **yes) == str(effect)
    assert await verdict(rule(effect, pattern), **no) == "ask"


@pytest.mark.parametrize(
    "line",
    ["git log; curl x", "git log && curl x", "git log | curl x", "git log $(curl x)", "(curl x)", "git log &\ncurl x"],
)
async def test_rules__each_part_of_a_chained_command_is_matched_by_itself(line: str) -> None:
    git, curl = CommandPattern(words=("git",)), CommandPattern(words=("curl",))
    assert await verdict(rule(ALLOW, git), lines=line) == "ask"
    assert await verdict(rule(ALLOW, git), rule(DENY, curl), lines=line) == "deny"
    assert await verdict(rule(ALLOW, git), rule(ASK, curl), lines=line) == "ask"
    assert await verdict(rule(ALLOW, git), rule(ALLOW, curl), lines="git log && curl x") == "allow"


@pytest.mark.parametrize(
    "line", ["sudo curl x", "env A=1 curl x", "nohup curl x", "xargs curl", "sh -c 'curl x'", "c\\url x", "'cur'l x"]
)
async def test_rules__a_command_in_disguise_is_the_same_command(line: str) -> None:
    assert await verdict(rule(DENY, CommandPattern(words=("curl",))), lines=line) == "deny"


async def test_rules__hold_in_their_scope_and_until_they_expire() -> None:
    here = {"scope": RuleScope.CONVERSATION, "conversation_id": "here"}
    there = {"scope": RuleScope.CONVERSATION, "conversation_id": "there"}
    soon, past = now() + timedelta(hours=1), now() - timedelta(seconds=1)
    assert await verdict(rule(ALLOW, **here)) == "allow"
    assert await verdict(rule(ALLOW, **there)) == "ask"
    assert await verdict(rule(ALLOW, scope=RuleScope.WORKSPACE, workspace="/ws")) == "allow"
    assert await verdict(rule(ALLOW, scope=RuleScope.WORKSPACE, workspace="/else")) == "ask"
    assert await verdict(rule(ALLOW, expires_at=soon)) == "allow"
    assert await verdict(rule(ALLOW, expires_at=past)) == "ask"
    assert await verdict(rule(DENY, expires_at=past)) == "ask"


async def test_rules__a_decision_about_this_call_is_no_rule() -> None:
    desk = Desk(Turn(call("1", "act")), Turn(call("2", "act")), DONE, tools=(ACT,))
    running = desk.start()
    for _ in range(2):
        await desk.approvals_open()
        desk.decide(AllowOnce())
    await running
    assert len(desk.memory.of(ApprovalRequested)) == 2
    assert desk.permission_policy.rules == ()


@pytest.mark.parametrize("parent", ["allow", "ask", "deny"])
@pytest.mark.parametrize("child", ["allow", "ask", "deny"])
async def test_rules__below_parent_and_child_must_both_allow(parent: str, child: str) -> None:
    above = PermissionPolicy((rule(RuleEffect(parent)),))
    below = above.nested(rules=(rule(RuleEffect(child)),))
    strictest = min(parent, child, key=["deny", "ask", "allow"].index)
    assert await verdict(permission_policy=below) == strictest
    assert await verdict(permission_policy=below.nested()) == strictest
    assert await verdict(permission_policy=above) == parent
