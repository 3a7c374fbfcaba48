from collections.abc import Callable
from typing import Any

import pytest

from desktop_agent.permissions.gate import Allowed, Ask
from desktop_agent.permissions.policy import PermissionPolicy
from desktop_agent.permissions.rule_proposals import BUNDLES, propose_rules, with_trust, with_words
from desktop_agent.tools.tool import AnyTool
from desktop_agent.types.blocks import ToolUse
from desktop_agent.types.permissions import (
    ArgumentsPattern,
    CommandPattern,
    CommandsPattern,
    CommandSubject,
    HostPattern,
    HostSubject,
    PathPattern,
    PathSubject,
    Pattern,
    Rule,
    RuleEffect,
    RuleScope,
    Subject,
)
from desktop_agent.types.tool_calls import Effect, UntrustedSource

MakeTool = Callable[..., AnyTool]


def patterns(tool: AnyTool, *subjects: Subject) -> list[Pattern | None]:
    return [rule.pattern for rule in propose_rules(tool, tool.digest({}), subjects)]


def test_files_are_allowed_by_their_folder(make_open_tool: MakeTool) -> None:
    tool = make_open_tool([Effect.WRITE])
    exact = ArgumentsPattern(digest=tool.digest({}))
    assert patterns(tool, PathSubject("/ws/src/a.py"), PathSubject("/ws/src/b.py")) == [PathPattern(prefix="/ws/src")]
    for wide in (["/a"], ["C:/a"], ["/ws/a", "/other/b"]):
        assert patterns(tool, *(PathSubject(path) for path in wide)) == [exact, None]
    assert patterns(tool) == [exact, None]


def test_a_host_is_allowed_by_its_name(make_open_tool: MakeTool) -> None:
    tool = make_open_tool([Effect.NETWORK])
    assert patterns(tool, HostSubject("Example.org")) == [HostPattern(host="example.org")]
    assert patterns(tool, HostSubject("a"), HostSubject("b"))[0] == ArgumentsPattern(digest=tool.digest({}))


COMMANDS: list[tuple[str, tuple[str, ...] | None]] = [
    ("pytest -q tests", ("pytest",)),
    ("git log --oneline", ("git", "log")),
    ("npm run build -- --watch", None),
    ("time git status", ("git", "status")),
    ("ruff check .", ("ruff", "check")),
    ("ruff --version", None),
    ("git log --output=x", None),
    ("git commit -m -- --amend", None),
    ("bash -c 'git status'", ("git", "status")),
    ("uv run python -c x", None),
    ("git -C x log", None),
    ("git config a b", None),
    ("python3.11 x.py", None),
    ("npm", None),
    ("git stash", ("git", "stash")),
    ("git stash list -p", ("git", "stash", "list")),
    ("git stash drop", None),
    ("git some-other", None),
    ("git remote add x y", None),
    ("cargo other", None),
    ("cargo run x", ("cargo", "run", "x")),
    ("npm run watch", ("npm", "run", "watch")),
    ("npm explore a -- sh", None),
    ("uv run pytest -q", ("uv", "run", "pytest")),
    ("uv run env sh", None),
    ("uv run mypy src", ("uv", "run", "mypy")),
    # operands that say what happens
    ("git checkout -b f", ("git", "checkout", "-b")),
    ("git checkout f", None),
    ("git checkout .", None),
    ("git checkout -- a", None),
    ("git restore a", None),
    ("git restore --staged a", ("git", "restore", "--staged")),
    ("git reset HEAD a", ("git", "reset", "HEAD")),
    ("git reset HEAD~3", None),
    ("git push", ("git", "push")),
    ("git push origin main", ("git", "push", "origin", "main")),
    ("git push -u origin f -q", ("git", "push", "-u", "origin", "f")),
    ("git push --force origin main", None),
    ("git push origin :main", None),
    ("npm install", ("npm", "install")),
    ("npm install left-pad", ("npm", "install", "left-pad")),
    ("pip install -r a.txt", ("pip", "install", "-r", "a.txt")),
    ("pip install --target=x a", None),
    ("npm exec a", None),
    # unknown programs
    ("hg status", None),
    ("nm --plugin x a", None),
    ("cloc --extract-with=x .", None),
    ("pulumi up", None),
    ("heroku pg:reset", None),
    ("mkfs.ext4 /dev/x", None),
    ("made-up", None),
    ("./build.sh", None),
    ("./made-up.py Down", None),
    # programs that only start others
    ("env", None),
    ("sudo -v", None),
    ("command -v git", None),
    ("uv run sudo x", None),
    ("uv run git log", None),
    ("uv run find .", None),
    ("fdfind x", ("fdfind",)),
    ("perl5.36 x", None),
    ("vim.tiny x", None),
    ("gh pr list", None),
    ("rm x", None),
    ("sudo ls", None),
    ("sh -c 'sudo ls'", None),
    ("/usr/bin/perl -e 1", None),
]


@pytest.mark.parametrize(("line", "first"), COMMANDS)
def test_a_command_is_allowed_by_the_words_that_say_what_it_does(
    make_open_tool: MakeTool, line: str, first: tuple[str, ...] | None
) -> None:
    proposed = patterns(make_open_tool([Effect.EXECUTE]), CommandSubject(line))
    begins = [pattern.words for pattern in proposed if isinstance(pattern, CommandPattern) and not pattern.exact]
    assert begins == ([] if first is None else [first])
    exact = [pattern for pattern in proposed if isinstance(pattern, CommandPattern) and pattern.exact]
    # The exact command is proposed only where no other rule is.
    assert len(exact) == (1 if first is None else 0)


@pytest.mark.parametrize(
    "line",
    [
        "env A=1 ls",
        "/usr/bin/env A=1 ls",
        "env -u A ls",
        "env -i ls",
        "nice env A=1 ls",
        "env env A=1 ls",
        "busybox env A=1 ls",
        "sudo A=1 ls",
        "env GIT_EXTERNAL_DIFF=x git diff",
        "env -S 'A=1 ls'",
        "ls && env A=1 make",
        "A=1 ls",
        "export A=1; ls",
        "declare -x A=1; ls",
    ],
)
def test_a_command_with_other_surroundings_is_allowed_by_its_arguments_only(
    make_open_tool: MakeTool, line: str
) -> None:
    tool = make_open_tool([Effect.EXECUTE])
    names = (CommandPattern(words=(item,)) for item in ("ls", "env", "sudo"))
    allowed = [Rule(effect=RuleEffect.ALLOW, tool=tool.identity, pattern=item) for item in names]
    proposed = propose_rules(tool, tool.digest({}), [CommandSubject(line)], allowed=allowed)
    assert [item.pattern for item in proposed] == [ArgumentsPattern(digest=tool.digest({}))]


READ_ONLY, RECORDING, RUFF = BUNDLES


@pytest.mark.parametrize(
    ("line", "bundle"),
    [
        ("git status", READ_ONLY),
        ("time git log -5", READ_ONLY),
        ("git add -A", RECORDING),
        ("ruff format src", RUFF),
        ("git push", None),
        ("git log --output=x", None),
        ("ls", None),
    ],
)
def test_a_command_is_also_allowed_with_those_that_belong_to_it(
    make_open_tool: MakeTool, line: str, bundle: CommandsPattern | None
) -> None:
    proposed = patterns(make_open_tool([Effect.EXECUTE]), CommandSubject(line))
    assert [pattern for pattern in proposed if isinstance(pattern, CommandsPattern)] == ([bundle] if bundle else [])
    if bundle is not None:
        # The narrower one comes first.
        assert isinstance(proposed[0], CommandPattern)
        assert proposed[1:] == [bundle]


@pytest.mark.parametrize(
    ("line", "bundle"),
    [
        ("git add -u && git commit -m x", RECORDING),
        ("git status; git diff | git log", READ_ONLY),
        ("git status; git add a", None),
        ("git status; git diff --output=x", None),
        ("git status; git diff > x", None),
        ("git status; git $x", None),
        ("git status; ls", None),
    ],
)
def test_of_a_chained_line_only_a_bundle_may_allow_several_commands(
    make_open_tool: MakeTool, line: str, bundle: CommandsPattern | None
) -> None:
    tool = make_open_tool([Effect.EXECUTE])
    exact = ArgumentsPattern(digest=tool.digest({}))
    assert patterns(tool, CommandSubject(line)) == [bundle or exact]


def rules_for_several_tools(
    tool: AnyTool, *paths: str, workspace: str | None = "/ws"
) -> list[tuple[tuple[str, ...], str | None]]:
    """Return the tools and folders of the proposed rules for several tools."""
    proposed = propose_rules(tool, "d", [PathSubject(item) for item in paths], workspace=workspace)
    several = [item for item in proposed if item.also]
    assert not several or len(proposed) == 1
    assert all((item.scope, item.workspace) == (RuleScope.WORKSPACE, workspace) for item in several)
    return [(item.tools, item.pattern.prefix if isinstance(item.pattern, PathPattern) else None) for item in several]


def test_for_edit_or_write_a_rule_for_both_in_the_whole_workspace_is_proposed(make_open_tool: MakeTool) -> None:
    editing, writing = (make_open_tool([Effect.WRITE], name=name) for name in ("edit_file", "write_file"))
    tools = ("edit_file @ /ws", "write_file @ /ws")
    assert rules_for_several_tools(editing, "/ws/src/a") == [(tools, "/ws")]
    assert rules_for_several_tools(writing, "/ws/src/a") == [(tools[::-1], "/ws")]
    assert rules_for_several_tools(editing, "/ws/a") == [(tools, "/ws")]


def test_no_other_tool_and_no_other_place_is_allowed_with_one_that_changes_a_file(make_open_tool: MakeTool) -> None:
    editing = make_open_tool([Effect.WRITE], name="edit_file")
    assert rules_for_several_tools(editing, "/other/a") == []
    assert rules_for_several_tools(editing, "/ws/../other/a") == []
    assert rules_for_several_tools(editing, "/ws2/a") == []
    assert rules_for_several_tools(editing, "/ws/src/a", workspace=None) == []
    assert rules_for_several_tools(editing, "/a", workspace="/") == []
    assert rules_for_several_tools(editing) == []
    other_tools = (
        make_open_tool([Effect.WRITE], name="delete_file"),
        make_open_tool([Effect.WRITE], name="move_file"),
        make_open_tool([Effect.WRITE, Effect.NETWORK], name="edit_file"),
        make_open_tool([], name="edit_file"),
        make_open_tool([Effect.WRITE], name="edit_file", scope=""),
    )
    assert [rules_for_several_tools(tool, "/ws/src/a") for tool in other_tools] == [[]] * len(other_tools)


def test_a_rule_may_trust_what_its_calls_bring_in_one_workspace(make_open_tool: MakeTool) -> None:
    tool = make_open_tool([Effect.NETWORK], scope="")
    rules = with_trust(propose_rules(tool, "d", [HostSubject("example.org")], workspace="/ws"))
    workspace, always = RuleScope.WORKSPACE, RuleScope.ALWAYS
    assert [(rule.scope, rule.trusts) for rule in rules] == [(workspace, False), (always, False), (workspace, True)]
    assert len({rule.id for rule in rules}) == 3
    assert len({rule.pattern for rule in rules}) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"lines": ["eval $x", 2, ["a"]]}, "eval $x, 2, …"),
        ({"lines": [1] * 30}, ", ".join("1" * 30)),
        ({"lines": [1] * 1_000}, ", ".join("1" * 40) + ", …"),
        ({"object": {"a": "b"}}, "…"),
        ({"text": "eval  $x\n"}, "eval $x"),
        ({"text": "x" * 200}, "x" * 120 + "…"),
        ({"text": "a", "count": 3, "is_on": True, "none": None}, "text: a · count: 3 · is_on: true · none: null"),
        ({}, ""),
    ],
)
def test_a_rule_for_one_call_says_which(make_open_tool: MakeTool, arguments: dict[str, Any], words: str) -> None:
    tool = make_open_tool([Effect.EXECUTE])
    (rule,) = with_words(propose_rules(tool, "d", None, workspace="/ws"), arguments)
    assert rule.pattern == ArgumentsPattern(digest="d", words=words)


async def test_what_is_offered_for_one_call_says_which(make_open_tool: MakeTool) -> None:
    use = ToolUse(id="c", name="act", input={"lines": ["eval $x"]})
    (rule,) = await PermissionPolicy(workspace="/ws").proposals(use, make_open_tool([Effect.EXECUTE]))
    assert isinstance(rule.pattern, ArgumentsPattern)
    assert rule.pattern.words == "eval $x"


@pytest.mark.parametrize("scope", ["", "version 1", "/ws"])
async def test_every_rule_holds_where_its_scope_says(make_open_tool: MakeTool, scope: str) -> None:
    here = make_open_tool([Effect.NETWORK], scope=scope)
    there = make_open_tool([Effect.NETWORK], scope=scope.replace("ws", "other"))
    use = ToolUse(id="c", name="act", input={"hosts": ["example.org"]})
    proposed = propose_rules(here, here.digest(use.input), [HostSubject("example.org")], workspace="/ws")
    everywhere = [rule for rule in proposed if rule.scope is RuleScope.ALWAYS]
    assert bool(everywhere) == (scope != "/ws")
    for rule in everywhere:
        policy = PermissionPolicy(workspace="/other")
        policy.add(rule)
        assert isinstance(await policy.verdict(use, there), Allowed)


@pytest.mark.parametrize("line", ["git log && ls", "git log > x", "A=1 git log", "eval $x", "broken (", ""])
def test_of_other_lines_only_the_very_line_is_proposed(make_open_tool: MakeTool, line: str) -> None:
    tool = make_open_tool([Effect.EXECUTE])
    assert patterns(tool, CommandSubject(line)) == [ArgumentsPattern(digest=tool.digest({}))]


@pytest.mark.parametrize(
    ("effects", "arguments"),
    [
        ([Effect.WRITE], {"paths": ["/ws/src/a"]}),
        ([Effect.WRITE], {"paths": ["/a"]}),
        ([Effect.NETWORK], {"hosts": ["example.org"]}),
        ([Effect.NETWORK], {"hosts": ["a", "b"]}),
        ([Effect.NETWORK, Effect.WRITE], {"hosts": ["a"], "paths": ["/ws/b"]}),
        *(([Effect.EXECUTE], {"lines": [line]}) for line, _ in COMMANDS),
        ([Effect.EXECUTE], {"lines": ["git log && rm x > y"]}),
        ([Effect.EXECUTE], {"lines": ["eval $x"]}),
        ([Effect.EXECUTE], {"lines": ["git add -u && git commit -m x"]}),
    ],
)
async def test_each_proposal_allows_the_call_by_itself(
    make_open_tool: MakeTool, effects: list[Effect], arguments: dict[str, Any]
) -> None:
    tool, use = make_open_tool(effects), ToolUse(id="c", name="act", input=arguments)
    proposed = await PermissionPolicy(workspace="/ws").proposals(use, tool)
    assert proposed
    assert {rule.scope for rule in proposed} == {RuleScope.WORKSPACE}
    for rule in proposed:
        policy = PermissionPolicy(workspace="/ws")
        assert not isinstance(await policy.verdict(use, tool), Allowed)
        policy.add(rule)
        assert await policy.verdict(use, tool) == Allowed(tool.digest(arguments), "rule", rule.id)


@pytest.mark.parametrize(
    ("line", "missing"),
    [
        ("git add -A && git commit -m x", ("git", "commit")),
        ("git commit -m x | ls", None),
        ("git add a; git add b; git commit -m x", ("git", "commit")),
        ("git add -A && git commit -m x > log", None),
    ],
)
async def test_of_a_chained_line_what_is_missing_is_proposed(
    make_open_tool: MakeTool, line: str, missing: tuple[str, ...] | None
) -> None:
    tool, use = make_open_tool([Effect.EXECUTE]), ToolUse(id="c", name="act", input={"lines": [line]})
    policy = PermissionPolicy(workspace="/ws")
    pattern = CommandPattern(words=("git", "add"))
    policy.add(Rule(effect=RuleEffect.ALLOW, tool="act", pattern=pattern, scope=RuleScope.ALWAYS))
    proposed = await policy.proposals(use, tool)
    assert proposed[0].pattern == (
        ArgumentsPattern(digest=tool.digest(use.input), words=line)
        if missing is None
        else CommandPattern(words=missing)
    )
    policy.add(proposed[0])
    assert isinstance(await policy.verdict(use, tool), Allowed)


FILES = {"edit_file": 1, "write_file": 1, "delete_file": 1, "move_file": 2}


@pytest.mark.parametrize("name", FILES)
async def test_of_a_startup_file_that_file_alone_is_proposed(make_open_tool: MakeTool, name: str) -> None:
    tool = make_open_tool([Effect.WRITE], name)
    paths = ["/ws/.envrc", "/ws/other"][: FILES[name]]
    use = ToolUse(id="c", name=name, input={"paths": paths})
    policy = PermissionPolicy(workspace="/ws")
    question = await policy.verdict(use, tool)
    (rule,) = await policy.proposals(use, tool)
    exact = ArgumentsPattern(digest=tool.digest(use.input), words=", ".join(paths))
    assert rule.pattern == (PathPattern(prefix="/ws/.envrc") if len(paths) == 1 else exact)
    assert rule.scope is RuleScope.WORKSPACE
    assert isinstance(question, Ask)
    policy.add(rule.model_copy(update={"answers": question.rules}))
    assert isinstance(await policy.verdict(use, tool), Allowed)
    for path in ("/ws/.vscode/tasks.json", "/ws/sub/.envrc", "/ws/other"):
        assert isinstance(await policy.verdict(ToolUse(id="d", name=name, input={"paths": [path]}), tool), Ask)


async def test_what_the_next_build_runs_is_such_a_file_after_content_from_outside(make_open_tool: MakeTool) -> None:
    tool = make_open_tool([Effect.WRITE], "write_file")
    use = ToolUse(id="c", name="write_file", input={"paths": ["/ws/Makefile"]})
    policy = PermissionPolicy(workspace="/ws")
    for path in ("/ws", "/ws/Makefile"):
        (rule,) = await policy.proposals(use, tool)
        assert rule.pattern == PathPattern(prefix=path)
        policy.mark_untrusted(UntrustedSource("web", "evil.example"))


async def test_a_line_that_names_a_startup_file_is_proposed_here_alone(make_open_tool: MakeTool) -> None:
    tool = make_open_tool([Effect.EXECUTE])
    use = ToolUse(id="c", name="act", input={"lines": ["cp a .envrc"]})
    proposed = await PermissionPolicy(workspace="/ws").proposals(use, tool)
    assert {rule.scope for rule in proposed} == {RuleScope.WORKSPACE}
