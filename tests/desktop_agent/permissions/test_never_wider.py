"""Whatever rules there are: one that denies or asks, and one more agent between, never let more happen."""

import asyncio
from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from desktop_agent.permissions.approvals import ApprovalBroker
from desktop_agent.permissions.gate import Allowed, Verdict, strictness
from desktop_agent.permissions.policy import PermissionPolicy, ToolNamePolicy
from desktop_agent.tools.tool import AnyTool, ModelSchema, Tool
from desktop_agent.types.blocks import Text, ToolUse
from desktop_agent.types.permissions import (
    BUILT_IN_MODES,
    ArgumentsPattern,
    CommandPattern,
    CommandsPattern,
    CommandSubject,
    HostPattern,
    HostSubject,
    Mode,
    PathPattern,
    PathSubject,
    Rule,
    RuleEffect,
    RuleScope,
    Subject,
)
from desktop_agent.types.tool_calls import (
    AllowForConversation,
    AllowOnce,
    Decision,
    Deny,
    DenyAndStop,
    Effect,
    ToolClass,
    UntrustedSource,
    call_digest,
)
from tests.frame.examples import examples

PATHS = ["/ws", "/ws/a", "/ws/a/b", "/other", "/ws/../other", "relative", "/home/x/.local/share/keyrings/k"]
HOSTS = ["example.org", "a.example.org", "other.net"]
PARTS = [
    "git log",
    "git push",
    "ls -l",
    "rm x",
    "rm -rf /",
    "sudo ls",
    "sh -c 'git log'",
    "$x",
    "ls $(rm x)",
    "ls > f",
    "A=1 ls",
]
JOINS = [" && ", "; ", " | ", " & ", "\n", " || "]
NAMES = ["act", "look"]


class Wanted(BaseModel):
    paths: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()


async def run(_input: Wanted, _call: object) -> tuple[Text, ...]:
    return ()


async def says(wanted: Wanted) -> tuple[Subject, ...]:
    return (
        *(PathSubject(each) for each in wanted.paths),
        *(HostSubject(each) for each in wanted.hosts),
        *(CommandSubject(each) for each in wanted.lines),
    )


async def fails(_wanted: Wanted) -> tuple[Subject, ...]:
    raise RuntimeError("nothing to say")


def made_tool(name: str, effects: frozenset[Effect], tool_class: ToolClass, subjects: Any) -> AnyTool:
    schema = ModelSchema(Wanted)
    return Tool(name, "", schema, run, tool_class=tool_class, effects=effects, subjects=subjects, scope="/ws")


lines = st.tuples(st.lists(st.sampled_from(PARTS), min_size=1, max_size=3), st.sampled_from(JOINS)).map(
    lambda parts: parts[1].join(parts[0])
)
inputs = st.fixed_dictionaries(
    {},
    optional={
        "paths": st.lists(st.sampled_from(PATHS), max_size=2),
        "hosts": st.lists(st.sampled_from(HOSTS), max_size=2),
        "lines": st.lists(lines, max_size=2),
        "unknown": st.none(),
    },
)
tools = st.builds(
    made_tool,
    st.sampled_from(NAMES),
    st.frozensets(st.sampled_from(Effect), max_size=3),
    st.sampled_from(ToolClass),
    st.sampled_from([says, fails, None]),
)
words = st.sampled_from([("git",), ("git", "log"), ("ls",), ("rm",), ("sudo", "ls"), ("sh",)])
bundles = st.builds(
    CommandsPattern,
    title=st.just("Some"),
    beginnings=st.lists(words, min_size=1, max_size=3).map(tuple),
)
patterns = st.one_of(
    st.none(),
    bundles,
    st.builds(PathPattern, prefix=st.sampled_from(PATHS)),
    st.builds(HostPattern, host=st.sampled_from([*HOSTS, "*.example.org"])),
    st.builds(
        CommandPattern,
        words=words,
        exact=st.booleans(),
    ),
    inputs.map(lambda given: ArgumentsPattern(digest=call_digest("act @ /ws", dict(given)))),
)


TOOLS = ["*", "act", "act @ /ws", "look"]


def rules(effects: Sequence[RuleEffect] = tuple(RuleEffect)) -> st.SearchStrategy[Rule]:
    return st.builds(
        Rule,
        effect=st.sampled_from(effects),
        tool=st.sampled_from(TOOLS),
        also=st.lists(st.sampled_from(TOOLS), max_size=2).map(tuple),
        pattern=patterns,
        scope=st.sampled_from(RuleScope),
        conversation_id=st.sampled_from([None, "here", "there"]),
        workspace=st.sampled_from([None, "/ws", "/other"]),
    )


stricter = rules([RuleEffect.DENY, RuleEffect.ASK])
modes = st.one_of(
    st.sampled_from(BUILT_IN_MODES),
    st.builds(
        lambda mutating, own: Mode(name="own", title="Own", mutating=mutating, rules=tuple(own)),
        st.sampled_from(["deny", "ask", "accept_edits"]),
        st.lists(rules(), max_size=2),
    ),
)
policies = st.builds(
    ToolNamePolicy,
    st.one_of(st.none(), st.frozensets(st.sampled_from(NAMES))),
    st.frozensets(st.sampled_from(NAMES), max_size=1),
)
calls = st.builds(lambda given: ToolUse(id="c", name="act", input=given), inputs)


def judged(standing: PermissionPolicy, call: ToolUse, tool: AnyTool | None) -> Verdict:
    return asyncio.run(standing.verdict(call, tool, NAMES))


def made_standing(
    held: Sequence[Rule], mode: Mode, names: ToolNamePolicy, has_untrusted_content: bool
) -> PermissionPolicy:
    standing = PermissionPolicy(held, mode=mode, names=names, conversation_id="here", workspace="/ws")
    if has_untrusted_content:
        standing.mark_untrusted(UntrustedSource("web", "a.example"))
    return standing


standings = st.builds(made_standing, st.lists(rules(), max_size=4), modes, policies, st.booleans())


@settings(max_examples=examples(100), deadline=None)
@given(standings, calls, tools, stricter)
def test_a_rule_that_denies_or_asks_never_lets_more_happen(
    standing: PermissionPolicy, call: ToolUse, tool: AnyTool, rule: Rule
) -> None:
    before = judged(standing, call, tool)
    standing.add(rule)
    assert strictness(judged(standing, call, tool)) >= strictness(before)


@settings(max_examples=examples(100), deadline=None)
@given(standings, calls, tools, st.lists(rules(), max_size=3), st.one_of(st.none(), modes), policies, st.integers(1, 3))
def test_nesting_never_lets_more_happen(
    standing: PermissionPolicy,
    call: ToolUse,
    tool: AnyTool,
    own: list[Rule],
    mode: Mode | None,
    names: ToolNamePolicy,
    depth: int,
) -> None:
    inner, before = standing, judged(standing, call, tool)
    for _ in range(depth):
        inner = inner.nested(rules=own, mode=mode, names=names)
        after = judged(inner, call, tool)
        assert strictness(after) >= strictness(before)
        before = after


@settings(max_examples=examples(40), deadline=None)
@given(standings, calls, tools)
def test_a_nested_agent_without_anything_of_its_own_may_do_what_its_parent_may(
    standing: PermissionPolicy, call: ToolUse, tool: AnyTool
) -> None:
    assert judged(standing.nested(), call, tool) == judged(standing, call, tool)


def taken_apart(rule: Rule) -> list[Rule]:
    """The rules for one tool and one command each that it stands for."""
    pattern = rule.pattern
    single: list[Any] = [pattern]
    if isinstance(pattern, CommandsPattern):
        single = [CommandPattern(words=each) for each in pattern.beginnings]
    each_one = [(tool, pattern) for tool in rule.tools for pattern in single]
    return [
        rule.model_copy(update={"id": f"{rule.id}-{at}", "tool": tool, "also": (), "pattern": pattern})
        for at, (tool, pattern) in enumerate(each_one)
    ]


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(rules(), min_size=1, max_size=4), modes, calls, tools)
def test_a_rule_for_several_tools_or_commands_is_exactly_the_rules_that_it_stands_for(
    held: list[Rule], mode: Mode, call: ToolUse, tool: AnyTool
) -> None:
    together = made_standing(held, mode, ToolNamePolicy(), frozenset())
    apart = made_standing([part for rule in held for part in taken_apart(rule)], mode, ToolNamePolicy(), frozenset())
    one, other = judged(together, call, tool), judged(apart, call, tool)
    assert type(one) is type(other)
    assert one.by == other.by if isinstance(one, Allowed) and isinstance(other, Allowed) else one == other


parts_of_bundles = st.sampled_from(["git log", "git", "git push", "ls -l", "rm x", "sudo ls", "sh -c ls", "cp a b"])


@settings(max_examples=examples(200), deadline=None)
@given(bundles, st.lists(parts_of_bundles, min_size=1, max_size=3), st.sampled_from(JOINS))
def test_a_bundle_allows_a_line_exactly_if_its_commands_allow_it_together(
    bundle: CommandsPattern, parts: list[str], join: str
) -> None:
    tool = made_tool("act", frozenset({Effect.EXECUTE}), ToolClass.MUTATING, says)
    rule = Rule(effect=RuleEffect.ALLOW, tool="act", pattern=bundle)
    call = ToolUse(id="c", name="act", input={"lines": [join.join(parts)]})
    allowed = [isinstance(judged(PermissionPolicy(each), call, tool), Allowed) for each in ([rule], taken_apart(rule))]
    assert allowed[0] is allowed[1]


@settings(max_examples=examples(40), deadline=None)
@given(standings, calls, tools)
def test_the_same_question_has_the_same_answer(standing: PermissionPolicy, call: ToolUse, tool: AnyTool) -> None:
    assert judged(standing, call, tool) == judged(standing, call, tool)


@settings(max_examples=examples(40), deadline=None)
@given(standings, calls, tools)
def test_plan_and_suspension_only_take_away(standing: PermissionPolicy, call: ToolUse, tool: AnyTool) -> None:
    before = judged(standing, call, tool)
    standing.mark_untrusted(UntrustedSource("web", "b.example"))
    assert strictness(judged(standing, call, tool)) >= strictness(before)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.sampled_from(["git log -1", "ls", "ls -l x", "time ls"]), max_size=3),
    st.sampled_from(
        ["rm x", "git push", "sudo ls", "echo $(rm x)", "ls > f", "A=1 ls", "eval $x", "ls `rm x`", "sh x"]
    ),
    st.sampled_from(JOINS),
    st.integers(0, 3),
    st.sampled_from(["{}", "({})", "{{ {}; }}", "if ls; then {}; fi", "bash -c '{}'", "for i in a; do {}; done"]),
)
def test_a_chain_with_one_part_that_is_not_allowed_is_never_allowed(
    allowed: list[str], other: str, join: str, at: int, frame: str
) -> None:
    line = frame.format(join.join([*allowed[:at], other, *allowed[at:]]))
    tool = made_tool("act", frozenset({Effect.EXECUTE}), ToolClass.MUTATING, says)
    held = [
        Rule(effect=RuleEffect.ALLOW, tool="act", pattern=CommandPattern(words=words))
        for words in (("git", "log"), ("ls",))
    ]
    standing = PermissionPolicy(held)
    assert not isinstance(judged(standing, ToolUse(id="c", name="act", input={"lines": [line]}), tool), Allowed)
    harmless = ToolUse(id="c", name="act", input={"lines": [frame.format(join.join([*allowed, "ls"]))]})
    assert isinstance(judged(standing, harmless, tool), Allowed)


decisions: st.SearchStrategy[Decision] = st.sampled_from(
    [AllowOnce(), AllowForConversation(), Deny(), DenyAndStop(message="no")]
)


@given(st.lists(st.one_of(decisions, st.booleans(), st.none()), min_size=1, max_size=6))
def test_the_first_decision_stands_whatever_comes_after(given_: list[Decision | bool | None]) -> None:
    async def decide() -> None:
        broker = ApprovalBroker()
        tool = made_tool("act", frozenset(), ToolClass.MUTATING, None)
        approval = broker.open(ToolUse(id="c", name="act", input={}), tool)
        stands = None
        for each in given_:
            if each is None:
                broker.withdraw(approval.approval_id)
            elif isinstance(each, bool):
                broker.resolve_by_rule(approval.approval_id, allow=each)
            else:
                broker.answer(approval.approval_id, each)
            now = await approval.resolution()
            stands = stands or now
            assert now == stands

    asyncio.run(decide())
