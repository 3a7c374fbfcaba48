from collections.abc import Callable
from typing import Any

import pytest

from desktop_agent.permissions.rule_matching import CallFacts, Match, find_allowing_rule, match_restriction
from desktop_agent.tools.tool import AnyTool
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
    Subject,
)
from desktop_agent.types.tool_calls import Effect, ToolClass

MakeTool = Callable[..., AnyTool]
NO, MAYBE, YES = Match.NO, Match.MAYBE, Match.YES


@pytest.fixture
def tool(make_open_tool: MakeTool) -> AnyTool:
    return make_open_tool([Effect.WRITE])


@pytest.fixture
def shell(make_open_tool: MakeTool) -> AnyTool:
    return make_open_tool([Effect.EXECUTE], name="shell")


def deny(pattern: Pattern | None = None, tool: str = "*") -> Rule:
    return Rule(effect=RuleEffect.DENY, tool=tool, pattern=pattern)


def allow(pattern: Pattern | None = None, tool: str = "*") -> Rule:
    return Rule(effect=RuleEffect.ALLOW, tool=tool, pattern=pattern)


def is_covered(tool: AnyTool, subjects: tuple[Subject, ...] | None, *patterns: Pattern) -> bool:
    return find_allowing_rule([allow(each) for each in patterns], CallFacts(tool, "d", subjects)) is not None


@pytest.mark.parametrize(
    ("name", "found"), [("*", YES), ("act", YES), ("act @ /ws", YES), ("act @ /other", NO), ("Act", NO), ("ac", NO)]
)
def test_a_rule_names_its_tool_by_name_identity_or_star(tool: AnyTool, name: str, found: Match) -> None:
    assert match_restriction(deny(tool=name), CallFacts(tool, "d")) is found
    assert (find_allowing_rule([allow(tool=name)], CallFacts(tool, "d")) is not None) is (found is YES)


@pytest.mark.parametrize(
    ("also", "found"),
    [((), NO), (("act",), YES), (("b", "act @ /ws"), YES), (("act @ /other", "ac"), NO), (("*",), YES)],
)
def test_a_rule_names_the_tools_beside_its_first_in_the_same_way(
    tool: AnyTool, also: tuple[str, ...], found: Match
) -> None:
    allowing, denying = (each.model_copy(update={"tool": "other", "also": also}) for each in (allow(), deny()))
    assert match_restriction(denying, CallFacts(tool, "d")) is found
    assert (find_allowing_rule([allowing], CallFacts(tool, "d")) is not None) is (found is YES)


PATHS = [
    ("/ws/src", "/ws/src", YES),
    ("/ws/src", "/ws/src/a/b.py", YES),
    ("/ws/src/", "/ws//src/./a", YES),
    ("/", "/anything", YES),
    ("/ws/src", "/ws/src2/a", NO),
    ("/ws/src", "/ws", NO),
    ("/ws/src", "/ws/other/../src/a", MAYBE),
    ("/ws/src", "/ws/src/../../etc/passwd", MAYBE),
    ("/ws/../etc", "/etc/passwd", MAYBE),
    ("/ws/src", "ws/src/a", MAYBE),
    ("/ws/src", "/WS/src/a", MAYBE),
    ("C:/ws", "C:/ws/a", YES),
    ("C:/ws", "C:/other/a", NO),
    ("C:/ws", "C:\\ws\\a", MAYBE),
    ("/ws/é", "/ws/é/a", YES),
]


@pytest.mark.parametrize(("prefix", "path", "found"), PATHS)
def test_paths_are_compared_part_by_part(tool: AnyTool, prefix: str, path: str, found: Match) -> None:
    pattern, subjects = PathPattern(prefix=prefix), (PathSubject(path),)
    assert match_restriction(deny(pattern), CallFacts(tool, "d", subjects)) is found
    assert is_covered(tool, subjects, pattern) is (found is YES)


HOSTS = [
    ("example.org", "example.org", YES),
    ("example.org", "EXAMPLE.org.", YES),
    ("example.org", "sub.example.org", NO),
    ("*.example.org", "sub.example.org", YES),
    ("*.example.org", "a.b.example.org", YES),
    ("*.example.org", "example.org", NO),
    ("*.example.org", ".example.org", NO),
    ("*.example.org", "badexample.org", NO),
    ("example.org", "example.org.evil.net", NO),
    ("example.org", "", NO),
]


@pytest.mark.parametrize(("host", "asked", "found"), HOSTS)
def test_hosts_are_compared_by_name(make_open_tool: MakeTool, host: str, asked: str, found: Match) -> None:
    tool = make_open_tool([Effect.NETWORK])
    pattern, subjects = HostPattern(host=host), (HostSubject(asked),)
    assert match_restriction(deny(pattern), CallFacts(tool, "d", subjects)) is found
    assert is_covered(tool, subjects, pattern) is (found is YES)


def test_exact_arguments_match_by_digest(tool: AnyTool) -> None:
    pattern = ArgumentsPattern(digest="d")
    assert match_restriction(deny(pattern), CallFacts(tool, "d", None)) is YES
    assert match_restriction(deny(pattern), CallFacts(tool, "e", None)) is NO
    assert is_covered(tool, None, pattern)
    assert not is_covered(tool, None, ArgumentsPattern(digest="e"))


def test_everything_that_a_call_is_about_must_be_allowed(make_open_tool: MakeTool) -> None:
    tool = make_open_tool([Effect.WRITE, Effect.NETWORK])
    subjects = (PathSubject("/a/x"), PathSubject("/b/x"), HostSubject("h"))
    a, b, host = PathPattern(prefix="/a"), PathPattern(prefix="/b"), HostPattern(host="h")
    assert is_covered(tool, subjects, a, b, host)
    for some in ((a, b), (a, host), (b, host), ()):
        assert not is_covered(tool, subjects, *some)
    assert not is_covered(tool, (), a)
    assert not is_covered(tool, None, PathPattern(prefix="/"))


def test_the_rule_that_is_named_is_the_first_with_a_part_in_it(tool: AnyTool) -> None:
    other, here, whole = allow(PathPattern(prefix="/b")), allow(PathPattern(prefix="/a")), allow()
    case = CallFacts(tool, "d", (PathSubject("/a/x"),))
    assert find_allowing_rule([other, here], case) == here
    assert find_allowing_rule([other, here, whole], case) == whole
    exact = allow(ArgumentsPattern(digest="d"))
    assert find_allowing_rule([whole, exact], case) == exact


@pytest.mark.parametrize(
    ("effects", "tool_class", "subjects", "pattern", "found"),
    [
        ([Effect.WRITE], ToolClass.MUTATING, (), PathPattern(prefix="/s"), MAYBE),
        ([Effect.WRITE], ToolClass.MUTATING, None, PathPattern(prefix="/s"), MAYBE),
        ([Effect.WRITE], ToolClass.MUTATING, (PathSubject("/a"),), HostPattern(host="h"), NO),
        ([], ToolClass.MUTATING, (), HostPattern(host="h"), MAYBE),
        ([], ToolClass.READ_ONLY, (), PathPattern(prefix="/s"), NO),
        ([Effect.DELEGATE], ToolClass.READ_ONLY, (), PathPattern(prefix="/s"), NO),
        ([Effect.NETWORK], ToolClass.READ_ONLY, (HostSubject("h"),), PathPattern(prefix="/s"), NO),
        ([Effect.NETWORK], ToolClass.READ_ONLY, (), HostPattern(host="h"), MAYBE),
        ([Effect.EXECUTE], ToolClass.MUTATING, (CommandSubject("ls"),), PathPattern(prefix="/s"), MAYBE),
        ([Effect.EXECUTE], ToolClass.MUTATING, (CommandSubject("ls"),), HostPattern(host="h"), MAYBE),
        ([Effect.EXECUTE], ToolClass.MUTATING, (PathSubject("/a"),), PathPattern(prefix="/s"), MAYBE),
        ([Effect.EXECUTE], ToolClass.MUTATING, (PathSubject("/a"),), CommandPattern(words=("rm",)), MAYBE),
        ([Effect.EXECUTE], ToolClass.MUTATING, (CommandSubject("ls"),), CommandPattern(words=("rm",)), NO),
    ],
)
def test_a_rule_about_every_tool_doubts_only_what_may_be_meant(
    make_open_tool: MakeTool,
    effects: list[Effect],
    tool_class: ToolClass,
    subjects: tuple[Subject, ...] | None,
    pattern: Pattern,
    found: Match,
) -> None:
    tool = make_open_tool(effects, tool_class=tool_class)
    assert match_restriction(deny(pattern), CallFacts(tool, "d", subjects)) is found


def test_a_rule_about_one_tool_doubts_every_call_that_says_nothing(make_open_tool: MakeTool) -> None:
    tool = make_open_tool([], tool_class=ToolClass.READ_ONLY)
    assert match_restriction(deny(PathPattern(prefix="/s"), "act"), CallFacts(tool, "d", ())) is MAYBE


CAUGHT: list[tuple[str, dict[str, Any], Match]] = [
    ("git push", {"words": ("git", "push")}, YES),
    ("git push origin main", {"words": ("git", "push")}, YES),
    ("git pull", {"words": ("git", "push")}, NO),
    ("git", {"words": ("git", "push")}, NO),
    ("git log && git push", {"words": ("git", "push")}, YES),
    ("/usr/bin/git push", {"words": ("git", "push")}, YES),
    ("GIT push", {"words": ("git", "push")}, YES),
    ("g''it pu\\sh", {"words": ("git", "push")}, YES),
    ("git --no-pager push", {"words": ("git", "push")}, YES),
    ("git -C /elsewhere push", {"words": ("git", "push")}, MAYBE),
    ("git log push", {"words": ("git", "push")}, NO),
    ("git $x", {"words": ("git", "push")}, MAYBE),
    ("git $x push", {"words": ("git", "push")}, MAYBE),
    ("$x push", {"words": ("git", "push")}, MAYBE),
    ("sudo git push", {"words": ("git", "push")}, YES),
    ("bash -c 'git push'", {"words": ("git", "push")}, YES),
    ("echo $(git push)", {"words": ("git", "push")}, YES),
    ("git push", {"words": ("git", "push"), "exact": True}, YES),
    ("git push origin", {"words": ("git", "push"), "exact": True}, NO),
    ("git push $x", {"words": ("git", "push"), "exact": True}, MAYBE),
    ("echo git push", {"words": ("git", "push")}, NO),
    ("echo 'git push'", {"words": ("git", "push")}, NO),
    ("git log # git push", {"words": ("git", "push")}, NO),
    ("eval $x", {"words": ("git", "push")}, MAYBE),
    ("curl x | sh", {"words": ("git", "push")}, MAYBE),
    ("broken (", {"words": ("git", "push")}, MAYBE),
]


@pytest.mark.parametrize(("line", "pattern", "found"), CAUGHT)
def test_a_rule_that_denies_finds_its_command_wherever_it_is(
    shell: AnyTool, line: str, pattern: dict[str, Any], found: Match
) -> None:
    assert match_restriction(deny(CommandPattern(**pattern)), CallFacts(shell, "d", (CommandSubject(line),))) is found


COVERED = [
    ("git log", True),
    ("git log --oneline -5 'a b'", True),
    ("git log $x", False),
    ("git log *.py", False),
    ("git log src/*.py", True),
    ("git log -- *.py", True),
    ("git log && ls", True),
    ("git log; ls\ngit log", True),
    ("git log | ls", True),
    ("(git log) & { ls; }", True),
    ("! git log || ls", True),
    ("if git log; then ls; else ls -l; fi", True),
    ("for f in a b; do ls $f; done", False),
    ("git log $(ls)", False),
    ("ls $(git log)", False),
    ("git log 2>&1", True),
    ("git log >/dev/null 2>&1 </dev/null", True),
    ("time git log", True),
    ("nohup nice -n 5 git log", True),
    ("timeout 5 git log", True),
    ("bash -lc 'git log && ls'", True),
    ("ls | xargs git log", False),
    ("git log | xargs ls", False),
    ("command git log", True),
    ("ls <<EOF\ntext $x\nEOF", True),
    ("", False),
    ("# git log", False),
    ("git", False),
    ("git push", False),
    ("git log && rm -rf x", False),
    ("git log; rm x", False),
    ("git log | sh", False),
    ("git log\nrm x", False),
    ("git log & rm x", False),
    ("git log $(rm x)", False),
    ("git log `rm x`", False),
    ("git log <(rm x)", False),
    ('git log "$(rm x)"', False),
    ("git log ${x:-$(rm x)}", False),
    ("git log > out", False),
    ("git log >> out", False),
    ("git log &> out", False),
    ("git log < in", False),
    ("git log 2>/dev/sda", False),
    ("GIT_PAGER=x git log", False),
    ("PATH=/evil; git log", False),
    ("export PATH=/evil; git log", False),
    ("for PATH in /evil; do git log; done", False),
    ("env A=1 git log", False),
    ("sudo git log", False),
    ("./git log", False),
    ("/evil/git log", False),
    ("git\u00a0log", False),
    ("git log\r\nls", False),
    ("git log \\\n; rm x", False),
    ("gi\\\nt log", False),
    ("{git,log}", False),
    ("g?t log", False),
    ("$git log", False),
    ("eval git log", True),
    ("eval $x", False),
    ("bash -c 'git log; rm x'", False),
    ('bash -c "git log $(rm x)"', False),
    ("bash script.sh", False),
    ("bash -c $x", False),
    ("ls | xargs rm", False),
    ("find . -exec git log \\;", False),
    ("alias ls='rm -rf'; ls", False),
    ("ls() { rm x; }; ls", False),
    ("trap 'rm x' EXIT; ls", False),
    ("ls <<EOF\n$(rm x)\nEOF", False),
    ("ls <<'E'OF\nEOF\nrm x\nEOF", False),
    ("ls <<A; ls <<B\nA\nB", False),
    ("[ -f x ] && git log", False),
    ("((x)); git log", False),
    ("git log $'\\''; rm x #'", False),
    ("coproc rm x", False),
    ("test -v 'a[$(rm x)]'", False),
    ("ls [ x && rm x ]", False),
    ("git log (", False),
]


@pytest.mark.parametrize(("line", "covered"), COVERED)
def test_a_line_is_allowed_only_if_each_of_its_commands_is(shell: AnyTool, line: str, covered: bool) -> None:
    patterns = (CommandPattern(words=("git", "log")), CommandPattern(words=("ls",)))
    assert is_covered(shell, (CommandSubject(line),), *patterns) is covered


@pytest.mark.parametrize("line", ["for f in a b; do ls $f; done", "ls $(git log)", "git log | xargs ls"])
def test_files_that_no_line_names_are_allowed_a_reader_only_in_the_sandbox(shell: AnyTool, line: str) -> None:
    patterns = (CommandPattern(words=("git", "log")), CommandPattern(words=("ls",)))
    assert is_covered(shell, (CommandSubject(line, is_sandboxed=True),), *patterns)
    assert not is_covered(shell, (CommandSubject(line),), *patterns)


@pytest.mark.parametrize(
    ("line", "words", "exact", "covered"),
    [
        ("sudo apt update", ("sudo", "apt"), False, True),
        ("sudo -u root apt update", ("sudo", "apt"), False, False),
        ("sudo apt update", ("sudo",), False, False),
        ("sudo apt update", ("sudo", "apt", "update"), True, True),
        ("sudo nohup apt update", ("sudo", "nohup", "apt"), False, True),
        ("sudo nohup rm x", ("sudo", "nohup"), False, False),
        ("sudo sh -c 'rm x'", ("sudo", "sh"), False, False),
        ("sh -c 'rm x'", ("sh",), False, False),
        ("sh -c 'rm x'", ("sh", "-c", "rm x"), True, True),
        ("npm test", ("npm", "test"), True, True),
        ("npm test -- x", ("npm", "test"), True, False),
        ("npm test $x", ("npm", "test"), True, False),
        ("find . -exec rm {} +", ("find",), False, False),
    ],
)
def test_what_starts_another_command_is_allowed_only_with_it(
    shell: AnyTool, line: str, words: tuple[str, ...], exact: bool, covered: bool
) -> None:
    assert is_covered(shell, (CommandSubject(line),), CommandPattern(words=words, exact=exact)) is covered


@pytest.mark.parametrize(
    ("line", "covered"),
    [
        ("env ls", True),
        ("env", True),
        ("env A=1 ls", False),
        ("/usr/bin/env A=1 ls", False),
        ("env -u A ls", False),
        ("env -i ls", False),
        ("nice env A=1 ls", False),
        ("xargs env A=1 ls", False),
        ("busybox env A=1 ls", False),
        ("env env A=1 ls", False),
        ("sudo A=1 ls", False),
        ("sudo -u b ls", False),
        ("sudo ls", True),
        ("A=1 ls", False),
        ("export A=1; ls", False),
        ("env B=2 make all", True),
        ("env B=2 C=3 make all", False),
    ],
)
def test_what_a_program_is_started_with_is_never_allowed_by_the_names_alone(
    shell: AnyTool, line: str, covered: bool
) -> None:
    names = [
        CommandPattern(words=(each,)) for each in ("env", "/usr/bin/env", "sudo", "nice", "xargs", "busybox", "ls")
    ]
    spelled_out = CommandPattern(words=("env", "B=2", "make"))
    export = CommandPattern(words=("export",))
    assert is_covered(shell, (CommandSubject(line),), *names, spelled_out, export) is covered


def test_a_wrapper_and_what_it_starts_may_be_allowed_apart(shell: AnyTool) -> None:
    sudo, apt = CommandPattern(words=("sudo",)), CommandPattern(words=("apt",))
    assert is_covered(shell, (CommandSubject("sudo apt update"),), sudo, apt)
    assert not is_covered(shell, (CommandSubject("sudo apt update"),), apt)


SEVERAL = CommandsPattern(title="Some", beginnings=(("git", "log"), ("ls",)))


@pytest.mark.parametrize(("line", "covered"), COVERED)
def test_several_commands_in_one_rule_allow_what_they_allow_one_by_one(
    shell: AnyTool, line: str, covered: bool
) -> None:
    assert is_covered(shell, (CommandSubject(line),), SEVERAL) is covered


@pytest.mark.parametrize(("line", "pattern", "found"), [each for each in CAUGHT if "exact" not in each[1]])
def test_one_of_several_commands_that_are_denied_is_found(
    shell: AnyTool, line: str, pattern: dict[str, Any], found: Match
) -> None:
    denied = CommandsPattern(title="Some", beginnings=(("nothing", "else"), pattern["words"]))
    assert match_restriction(deny(denied), CallFacts(shell, "d", (CommandSubject(line),))) is found


def test_of_several_rules_the_one_is_named_whose_commands_they_are(shell: AnyTool) -> None:
    other, here = allow(CommandsPattern(title="Others", beginnings=(("rm",), ("cp",)))), allow(SEVERAL)
    assert find_allowing_rule([other, here], CallFacts(shell, "d", (CommandSubject("ls; git log"),))) is here
