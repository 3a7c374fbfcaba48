from collections.abc import Callable
from typing import Any

import pytest

from desktop_agent.permissions.rule_matching import (
    CallFacts,
    Match,
    commands_to_allow,
    find_allowing_rule,
    is_transparent_line,
    match_restriction,
    patterns_for_folder,
    reads_outside_workspace,
    run_folder,
)
from desktop_agent.permissions.shell.parser import parse_line
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
    return find_allowing_rule([allow(pattern) for pattern in patterns], CallFacts(tool, "d", subjects)) is not None


@pytest.mark.parametrize(
    ("name", "expected"), [("*", YES), ("act", YES), ("act @ /ws", YES), ("act @ /other", NO), ("Act", NO), ("ac", NO)]
)
def test_a_rule_names_its_tool_by_name_identity_or_star(tool: AnyTool, name: str, expected: Match) -> None:
    assert match_restriction(deny(tool=name), CallFacts(tool, "d")) is expected
    assert (find_allowing_rule([allow(tool=name)], CallFacts(tool, "d")) is not None) is (expected is YES)


@pytest.mark.parametrize(
    ("also", "expected"),
    [((), NO), (("act",), YES), (("b", "act @ /ws"), YES), (("act @ /other", "ac"), NO), (("*",), YES)],
)
def test_a_rule_names_the_tools_beside_its_first_in_the_same_way(
    tool: AnyTool, also: tuple[str, ...], expected: Match
) -> None:
    allowing, denying = (rule.model_copy(update={"tool": "other", "also": also}) for rule in (allow(), deny()))
    assert match_restriction(denying, CallFacts(tool, "d")) is expected
    assert (find_allowing_rule([allowing], CallFacts(tool, "d")) is not None) is (expected is YES)


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


@pytest.mark.parametrize(("prefix", "path", "expected"), PATHS)
def test_paths_are_compared_part_by_part(tool: AnyTool, prefix: str, path: str, expected: Match) -> None:
    pattern, subjects = PathPattern(prefix=prefix), (PathSubject(path),)
    assert match_restriction(deny(pattern), CallFacts(tool, "d", subjects)) is expected
    assert is_covered(tool, subjects, pattern) is (expected is YES)


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


@pytest.mark.parametrize(("host", "called_host", "expected"), HOSTS)
def test_hosts_are_compared_by_name(make_open_tool: MakeTool, host: str, called_host: str, expected: Match) -> None:
    tool = make_open_tool([Effect.NETWORK])
    pattern, subjects = HostPattern(host=host), (HostSubject(called_host),)
    assert match_restriction(deny(pattern), CallFacts(tool, "d", subjects)) is expected
    assert is_covered(tool, subjects, pattern) is (expected is YES)


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
    rule_b, rule_a, rule_of_all = allow(PathPattern(prefix="/b")), allow(PathPattern(prefix="/a")), allow()
    case = CallFacts(tool, "d", (PathSubject("/a/x"),))
    assert find_allowing_rule([rule_b, rule_a], case) == rule_a
    assert find_allowing_rule([rule_b, rule_a, rule_of_all], case) == rule_of_all
    exact = allow(ArgumentsPattern(digest="d"))
    assert find_allowing_rule([rule_of_all, exact], case) == exact
    two_paths = CallFacts(tool, "d", (PathSubject("/a/x"), PathSubject("/c/x")))
    unused = allow(ArgumentsPattern(digest="e"))
    assert find_allowing_rule([unused, rule_b, rule_a, allow(PathPattern(prefix="/c"))], two_paths) == rule_a


def test_of_rules_that_each_allow_a_call_the_one_that_trusts_what_it_brings_goes_first(tool: AnyTool) -> None:
    for pattern in (None, PathPattern(prefix="/a")):
        trusting = allow(pattern).model_copy(update={"trusts": True})
        case = CallFacts(tool, "d", (PathSubject("/a/x"),))
        assert find_allowing_rule([allow(pattern), trusting], case) == trusting


@pytest.mark.parametrize(
    ("effects", "tool_class", "subjects", "pattern", "expected"),
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
        # A command line may do anything, also in a tool that does not declare it.
        ([Effect.WRITE], ToolClass.MUTATING, (CommandSubject("ls"),), HostPattern(host="h"), MAYBE),
        ([Effect.WRITE], ToolClass.MUTATING, None, HostPattern(host="h"), NO),
    ],
)
def test_a_rule_about_every_tool_doubts_only_what_may_be_meant(
    make_open_tool: MakeTool,
    effects: list[Effect],
    tool_class: ToolClass,
    subjects: tuple[Subject, ...] | None,
    pattern: Pattern,
    expected: Match,
) -> None:
    tool = make_open_tool(effects, tool_class=tool_class)
    assert match_restriction(deny(pattern), CallFacts(tool, "d", subjects)) is expected


def test_a_rule_about_one_tool_doubts_every_call_that_says_nothing(make_open_tool: MakeTool) -> None:
    tool = make_open_tool([], tool_class=ToolClass.READ_ONLY)
    assert match_restriction(deny(PathPattern(prefix="/s"), "act"), CallFacts(tool, "d", ())) is MAYBE
    assert match_restriction(deny(PathPattern(prefix="/s"), "act"), CallFacts(tool, "d", None)) is MAYBE
    says_something = CallFacts(tool, "d", (HostSubject("h"),))
    assert match_restriction(deny(PathPattern(prefix="/s"), "act"), says_something) is NO


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
    ("git -C a b push", {"words": ("git", "push")}, NO),
    ("git --git-dir=a push", {"words": ("git", "push")}, YES),
    ("git --git-dir=a b push", {"words": ("git", "push")}, NO),
    ("git -C a", {"words": ("git", "push")}, NO),
    ("git remote x add", {"words": ("git", "remote", "add")}, NO),
    ("git remote -v add x", {"words": ("git", "remote", "add")}, YES),
    ("git $x", {"words": ("git", "push")}, MAYBE),
    ("git $x push", {"words": ("git", "push")}, MAYBE),
    ("$x push", {"words": ("git", "push")}, MAYBE),
    ("sudo git push", {"words": ("git", "push")}, YES),
    ("bash -c 'git push'", {"words": ("git", "push")}, YES),
    ("echo $(git push)", {"words": ("git", "push")}, YES),
    ("git push", {"words": ("git", "push"), "exact": True}, YES),
    ("git push origin", {"words": ("git", "push"), "exact": True}, NO),
    ("git push $x", {"words": ("git", "push"), "exact": True}, MAYBE),
    ("git $x", {"words": ("git", "push"), "exact": True}, MAYBE),
    ("git pull $x", {"words": ("git", "push"), "exact": True}, NO),
    ("git push a $x", {"words": ("git", "push"), "exact": True}, NO),
    ("git", {"words": ("git", "push"), "exact": True}, NO),
    ("GIT.exe push", {"words": ("git", "push"), "exact": True}, YES),
    ("echo git push", {"words": ("git", "push")}, NO),
    ("echo 'git push'", {"words": ("git", "push")}, NO),
    ("git log # git push", {"words": ("git", "push")}, NO),
    ("eval $x", {"words": ("git", "push")}, MAYBE),
    ("curl x | sh", {"words": ("git", "push")}, MAYBE),
    ("broken (", {"words": ("git", "push")}, MAYBE),
]


@pytest.mark.parametrize(("line", "pattern", "expected"), CAUGHT)
def test_a_rule_that_denies_finds_its_command_wherever_it_is(
    shell: AnyTool, line: str, pattern: dict[str, Any], expected: Match
) -> None:
    assert (
        match_restriction(deny(CommandPattern(**pattern)), CallFacts(shell, "d", (CommandSubject(line),))) is expected
    )


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
    ("line", "beginning", "exact", "covered"),
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
    shell: AnyTool, line: str, beginning: tuple[str, ...], exact: bool, covered: bool
) -> None:
    assert is_covered(shell, (CommandSubject(line),), CommandPattern(words=beginning, exact=exact)) is covered


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
        CommandPattern(words=(name,)) for name in ("env", "/usr/bin/env", "sudo", "nice", "xargs", "busybox", "ls")
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


@pytest.mark.parametrize(("line", "pattern", "expected"), [case for case in CAUGHT if "exact" not in case[1]])
def test_one_of_several_commands_that_are_denied_is_found(
    shell: AnyTool, line: str, pattern: dict[str, Any], expected: Match
) -> None:
    denied = CommandsPattern(title="Some", beginnings=(("nothing", "else"), pattern["words"]))
    assert match_restriction(deny(denied), CallFacts(shell, "d", (CommandSubject(line),))) is expected


def test_of_several_rules_the_one_is_named_whose_commands_they_are(shell: AnyTool) -> None:
    unrelated, bundle = allow(CommandsPattern(title="Others", beginnings=(("rm",), ("cp",)))), allow(SEVERAL)
    assert find_allowing_rule([unrelated, bundle], CallFacts(shell, "d", (CommandSubject("ls; git log"),))) is bundle
    first, second = allow(CommandPattern(words=("git", "log"))), allow(CommandPattern(words=("ls",)))
    assert (
        find_allowing_rule([unrelated, first, second], CallFacts(shell, "d", (CommandSubject("ls; git log"),))) is first
    )
    elsewhere = allow(CommandPattern(words=("ls",), folder="elsewhere"))
    assert (
        find_allowing_rule([elsewhere, first, second], CallFacts(shell, "d", (CommandSubject("ls; git log"),))) is first
    )


THERE, SANDBOXED = {"folder": "a", "changes_folder": True}, {"is_sandboxed": True}


@pytest.mark.parametrize(
    ("line", "more", "folder", "commands"),
    [
        ("ls", {}, ".", ["ls"]),
        ("ls", {"folder": "a"}, "a", ["ls"]),
        ("ls", {"folder": None}, None, ["ls"]),
        ("cd a && ls", THERE, "a", ["ls"]),
        ("cd a && ls", {"folder": "a"}, None, ["cd", "ls"]),
        ("cd a && cd b && ls", THERE, None, ["cd", "ls"]),
        ("ls; cd a", {}, None, ["ls", "cd"]),
        # In the sandbox only the commands that are not read-only, unless all are.
        ("ls; rm x", {}, ".", ["ls", "rm"]),
        ("ls; rm x", SANDBOXED, ".", ["rm"]),
        ("ls; cat x", SANDBOXED, ".", ["ls", "cat"]),
        ("cd a && ls && rm x", {**THERE, **SANDBOXED}, "a", ["rm"]),
        ("for i in /etc/*; do ls; rm $i; done", SANDBOXED, ".", ["ls", "rm"]),
    ],
)
def test_rules_must_allow_the_commands_of_a_line_where_they_run(
    line: str, more: dict[str, Any], folder: str | None, commands: list[str]
) -> None:
    subject = CommandSubject(line, **more)
    assert run_folder(subject) == folder
    assert [command.words[0] for command in commands_to_allow(subject, "/ws")] == commands


@pytest.mark.parametrize(
    ("line", "covered", "covered_in_sandbox"),
    [
        ("ls x", True, True),
        ("ls src/*", True, True),
        ("ls *.py", True, True),
        ("ls $x", False, True),
        ("nohup ls $x", False, True),
        ("true $x", True, True),
        ("for i in a b; do ls $i; done", False, True),
        ("for i in /etc/*; do ls $i; done", False, False),
        ("ls > y", False, False),
        ("eval $x", False, False),
    ],
)
def test_a_line_is_transparent_where_it_says_what_it_does(line: str, covered: bool, covered_in_sandbox: bool) -> None:
    results = [
        is_transparent_line(CommandSubject(line, is_sandboxed=is_sandboxed), "/ws") for is_sandboxed in (False, True)
    ]
    assert results == [covered, covered_in_sandbox]


@pytest.mark.parametrize(
    ("line", "reads"),
    [
        ("cat /etc/passwd", True),
        ("/bin/cat ../x", True),
        ("uv run cat /etc/passwd", True),
        ("python -m pytest /x", True),
        ("python3 -m mypy ../x", True),
        ("cat x /ws/y", False),
        ("uv run cat x", False),
        # Commands that are not known as readers of files.
        ("uv cat /etc/passwd", False),
        ("python -m http.server /x", False),
        ("uv run $x /etc/passwd", False),
        ("uv run x cat /etc/passwd", False),
        ("$x /etc/passwd", False),
        ("rm /etc/passwd", False),
        ("echo /etc/passwd", False),
        ("uv run", False),
    ],
)
def test_a_reader_of_files_may_be_given_one_outside_of_the_workspace(line: str, reads: bool) -> None:
    (command,) = parse_line(line).top_level
    assert reads_outside_workspace(command, "/ws") is reads


def test_a_call_is_read_only_if_it_does_nothing_but_run_read_only_lines(tool: AnyTool) -> None:
    line, changing_line = CommandSubject("ls", is_sandboxed=True), CommandSubject("rm x", is_sandboxed=True)
    results = {
        subjects: CallFacts(tool, "d", subjects, "/ws").is_read_only
        for subjects in (
            None,
            (),
            (line,),
            (line, line),
            (line, changing_line),
            (line, PathSubject("/ws/x")),
            (CommandSubject("ls"),),
        )
    }
    assert [subjects for subjects, is_read_only in results.items() if is_read_only] == [(line,), (line, line)]


def test_the_lines_of_a_call_are_those_that_it_runs(tool: AnyTool) -> None:
    subjects = (PathSubject("/ws/x"), CommandSubject("ls"), CommandSubject("a; b"))
    assert [line for line, _ in CallFacts(tool, "d", subjects).lines] == [parse_line("ls"), parse_line("a; b")]
    assert CallFacts(tool, "d", None).lines == ()


def test_patterns_hold_in_their_own_folder_or_in_any() -> None:
    anywhere, in_a, in_b = (CommandPattern(words=("ls",), folder=folder) for folder in (None, "a", "b"))
    assert patterns_for_folder([anywhere, in_a, in_b], "a") == [anywhere, in_a]
    assert patterns_for_folder([anywhere, in_a, in_b], None) == [anywhere]
