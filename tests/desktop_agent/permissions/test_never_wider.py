"""Adding a rule that denies or asks, or nesting another agent, never allows more."""

import asyncio
from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from desktop_agent.permissions.approvals import Approval, ApprovalBroker
from desktop_agent.permissions.gate import Allowed, Verdict, strictness
from desktop_agent.permissions.policy import PermissionPolicy
from desktop_agent.tools.tool import AnyTool, ModelSchema, Tool
from desktop_agent.types.blocks import Text, ToolUse
from desktop_agent.types.messages import new_id
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


class SubjectsInput(BaseModel):
    paths: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()


async def run(_input: SubjectsInput, _call: object) -> tuple[Text, ...]:
    return ()


async def report_subjects(arguments: SubjectsInput) -> tuple[Subject, ...]:
    return (
        *(PathSubject(subject) for subject in arguments.paths),
        *(HostSubject(subject) for subject in arguments.hosts),
        *(CommandSubject(subject) for subject in arguments.lines),
    )


async def fail(_arguments: SubjectsInput) -> tuple[Subject, ...]:
    raise RuntimeError("nothing to say")


def make_tool(name: str, effects: frozenset[Effect], tool_class: ToolClass, subjects: Any) -> AnyTool:
    schema = ModelSchema(SubjectsInput)
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
    make_tool,
    st.sampled_from(NAMES),
    st.frozensets(st.sampled_from(Effect), max_size=3),
    st.sampled_from(ToolClass),
    st.sampled_from([report_subjects, fail, None]),
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
    inputs.map(lambda arguments: ArgumentsPattern(digest=call_digest("act @ /ws", dict(arguments)))),
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
allowed_names = st.none() | st.frozensets(st.sampled_from(NAMES))
calls = st.builds(lambda arguments: ToolUse(id="c", name="act", input=arguments), inputs)


def judged(policy: PermissionPolicy, call: ToolUse, tool: AnyTool | None) -> Verdict:
    return asyncio.run(policy.verdict(call, tool, NAMES))


def make_policy(
    initial_rules: Sequence[Rule], mode: Mode, names: frozenset[str] | None, has_untrusted_content: bool
) -> PermissionPolicy:
    policy = PermissionPolicy(initial_rules, mode=mode, names=names, conversation_id="here", workspace="/ws")
    if has_untrusted_content:
        policy.mark_untrusted(UntrustedSource("web", "a.example"))
    return policy


policies = st.builds(make_policy, st.lists(rules(), max_size=4), modes, allowed_names, st.booleans())


@settings(max_examples=examples(100), deadline=None)
@given(policies, calls, tools, stricter)
def test_a_rule_that_denies_or_asks_never_lets_more_happen(
    policy: PermissionPolicy, call: ToolUse, tool: AnyTool, rule: Rule
) -> None:
    before = judged(policy, call, tool)
    policy.add(rule)
    assert strictness(judged(policy, call, tool)) >= strictness(before)


@settings(max_examples=examples(100), deadline=None)
@given(
    policies, calls, tools, st.lists(rules(), max_size=3), st.one_of(st.none(), modes), allowed_names, st.integers(1, 3)
)
def test_nesting_never_lets_more_happen(
    policy: PermissionPolicy,
    call: ToolUse,
    tool: AnyTool,
    own: list[Rule],
    mode: Mode | None,
    names: frozenset[str] | None,
    depth: int,
) -> None:
    inner, before = policy, judged(policy, call, tool)
    for _ in range(depth):
        inner = inner.nested(rules=own, mode=mode, names=names)
        after = judged(inner, call, tool)
        assert strictness(after) >= strictness(before)
        before = after


@settings(max_examples=examples(40), deadline=None)
@given(policies, calls, tools)
def test_a_nested_agent_without_anything_of_its_own_may_do_what_its_parent_may(
    policy: PermissionPolicy, call: ToolUse, tool: AnyTool
) -> None:
    assert judged(policy.nested(), call, tool) == judged(policy, call, tool)


def single_rules(rule: Rule) -> list[Rule]:
    """Split a rule into equivalent rules for one tool and one command each."""
    pattern = rule.pattern
    single: list[Any] = [pattern]
    if isinstance(pattern, CommandsPattern):
        single = [CommandPattern(words=words) for words in pattern.beginnings]
    pairs = [(tool, pattern) for tool in rule.tools for pattern in single]
    return [
        rule.model_copy(update={"id": f"{rule.id}-{number}", "tool": tool, "also": (), "pattern": pattern})
        for number, (tool, pattern) in enumerate(pairs)
    ]


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(rules(), min_size=1, max_size=4), modes, calls, tools)
def test_a_rule_for_several_tools_or_commands_is_exactly_the_rules_that_it_stands_for(
    combined_rules: list[Rule], mode: Mode, call: ToolUse, tool: AnyTool
) -> None:
    together = make_policy(combined_rules, mode, None, frozenset())
    apart = make_policy([single for rule in combined_rules for single in single_rules(rule)], mode, None, frozenset())
    together_verdict, apart_verdict = judged(together, call, tool), judged(apart, call, tool)
    assert type(together_verdict) is type(apart_verdict)
    assert (
        together_verdict.by == apart_verdict.by
        if isinstance(together_verdict, Allowed) and isinstance(apart_verdict, Allowed)
        else together_verdict == apart_verdict
    )


parts_of_bundles = st.sampled_from(["git log", "git", "git push", "ls -l", "rm x", "sudo ls", "sh -c ls", "cp a b"])


@settings(max_examples=examples(200), deadline=None)
@given(bundles, st.lists(parts_of_bundles, min_size=1, max_size=3), st.sampled_from(JOINS))
def test_a_bundle_allows_a_line_exactly_if_its_commands_allow_it_together(
    bundle: CommandsPattern, parts: list[str], join: str
) -> None:
    tool = make_tool("act", frozenset({Effect.EXECUTE}), ToolClass.MUTATING, report_subjects)
    rule = Rule(effect=RuleEffect.ALLOW, tool="act", pattern=bundle)
    call = ToolUse(id="c", name="act", input={"lines": [join.join(parts)]})
    allowed = [
        isinstance(judged(PermissionPolicy(rules), call, tool), Allowed) for rules in ([rule], single_rules(rule))
    ]
    assert allowed[0] is allowed[1]


@settings(max_examples=examples(40), deadline=None)
@given(policies, calls, tools)
def test_the_same_question_has_the_same_answer(policy: PermissionPolicy, call: ToolUse, tool: AnyTool) -> None:
    assert judged(policy, call, tool) == judged(policy, call, tool)


@settings(max_examples=examples(40), deadline=None)
@given(policies, calls, tools)
def test_plan_and_suspension_only_take_away(policy: PermissionPolicy, call: ToolUse, tool: AnyTool) -> None:
    before = judged(policy, call, tool)
    policy.mark_untrusted(UntrustedSource("web", "b.example"))
    assert strictness(judged(policy, call, tool)) >= strictness(before)


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
    allowed: list[str], forbidden: str, join: str, index: int, frame: str
) -> None:
    line = frame.format(join.join([*allowed[:index], forbidden, *allowed[index:]]))
    tool = make_tool("act", frozenset({Effect.EXECUTE}), ToolClass.MUTATING, report_subjects)
    rules = [
        Rule(effect=RuleEffect.ALLOW, tool="act", pattern=CommandPattern(words=words))
        for words in (("git", "log"), ("ls",))
    ]
    policy = PermissionPolicy(rules)
    assert not isinstance(judged(policy, ToolUse(id="c", name="act", input={"lines": [line]}), tool), Allowed)
    harmless = ToolUse(id="c", name="act", input={"lines": [frame.format(join.join([*allowed, "ls"]))]})
    assert isinstance(judged(policy, harmless, tool), Allowed)


decisions: st.SearchStrategy[Decision] = st.sampled_from(
    [AllowOnce(), AllowForConversation(), Deny(), DenyAndStop(message="no")]
)


@given(st.lists(st.one_of(decisions, st.booleans(), st.none()), min_size=1, max_size=6))
def test_the_first_decision_stands_whatever_comes_after(answers: list[Decision | bool | None]) -> None:
    async def decide() -> None:
        broker = ApprovalBroker()
        tool = make_tool("act", frozenset(), ToolClass.MUTATING, None)
        approval = broker.open(Approval(new_id(), ToolUse(id="c", name="act", input={}), tool))
        first = None
        for decision in answers:
            if decision is None:
                broker.withdraw(approval.approval_id)
            elif isinstance(decision, bool):
                broker.resolve_by_rule(approval.approval_id, allow=decision)
            else:
                broker.answer(approval.approval_id, decision)
            resolution = await approval.resolution()
            first = first or resolution
            assert resolution == first

    asyncio.run(decide())
