import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from desktop_agent.permissions.shell import parser
from desktop_agent.permissions.shell.parser import MAX_LINE_LENGTH, parse_line

N = None
# A line and its commands in order; a command that another one starts follows it.
UNDERSTOOD: list[tuple[str, list[tuple[str | None, ...]]]] = [
    ("ls", [("ls",)]),
    ("  ls   -l\t/tmp  ", [("ls", "-l", "/tmp")]),
    ("a && b || c; d & e | f |& g\nh", [(each,) for each in "abcdefgh"]),
    ("! a", [("a",)]),
    ("(a; b)", [("a",), ("b",)]),
    ("{ a; b; }", [("a",), ("b",)]),
    ("if a; then b; elif c; then d; else e; fi", [(each,) for each in "abcde"]),
    ("while a; do b; done; until c; do d; done", [(each,) for each in "abcd"]),
    ("for i in x y; do a $i; done", [("a", N)]),
    ("case $x in a|b) c;; *) d;; esac", [("c",), ("d",)]),
    ("f() { a; }; f", [("a",), ("f",)]),
    ("f() { a \"$1\" $2; }", [("a", N, N)]),
    ("'a b' \"c d\" e\\ f", [("a b", "c d", "e f")]),
    ("a'b'\"c\"d", [("abcd",)]),
    ("a ''", [("a", "")]),
    ('a "x\\"y\\$z\\q"', [("a", 'x"y$z\\q')]),
    ("a 'x\\'", [("a", "x\\")]),
    ("a \\$x \\* \\~ \\; \\#", [("a", "$x", "*", "~", ";", "#")]),
    ("a $x ${x} \"$x\" x$y", [("a", N, N, N, N)]),
    ("a *.py ? [ab] ~/x {b,c} x{1..3}", [("a", N, N, N, N, N, N)]),
    ("a {} x{}y --x=y 12 -3", [("a", "{}", "x{}y", "--x=y", "12", "-3")]),
    ("a $'b' $'b\\n'", [("a", N, N)]),
    ("a ${x%.js}.ts ${x##*/} ${x:-b} ${1:+--c} ${x-}", [("a", N, N, N, N, N)]),
    ('a "${x%%.*} ${y} $z $(b) ${v[0]}" "${v[@]}"', [("a", N, N), ("b",)]),
    ("a $((1024 * 2)) x$((3))", [("a", N, N)]),
    ('[ "$(a)" = b ] && [[ "$(c | d)" == "e f" ]]', [("[", N), ("a",), ("[[", N), ("c",), ("d",)]),
    ("a $(b c) `d`", [("a", N, N), ("b", "c"), ("d",)]),
    ('a "x $(b) y"', [("a", N), ("b",)]),
    ("a \"$(cat <<'E'\nb \"c\" $d\n\ne `f`\nE\n)\"", [("a", 'b "c" $d\n\ne `f`'), ("cat",)]),
    ("a \"$(cat <<'E'\n\n  b\nE\n)\"", [("a", "\n  b"), ("cat",)]),
    ("a \"$(cat <<'E' \n\t\n\n b\n\nE\n)\"", [("a", "\t\n\n b"), ("cat",)]),
    ("a \"$(cat <<'E'\n\n\nE\n)\"", [("a", ""), ("cat",)]),
    ("a \"$(cat <<E\nb\nE\n)\"", [("a", N), ("cat",)]),
    ("a \"$(cat <<-'E'\nb\nE\n)\"", [("a", N), ("cat",)]),
    ("a \"$(cat x <<'E'\nb\nE\n)\"", [("a", N), ("cat", "x")]),
    ("a $(cat <<'E'\nb\nE\n)", [("a", N), ("cat",)]),
    ("a $(b $(c))", [("a", N), ("b", N), ("c",)]),
    ("a <(b) >(c)", [("a", N, N), ("b",), ("c",)]),
    ("a # b", [("a",)]),
    ("a b#c", [("a", "b#c")]),
    ("# only a comment", []),
    ("", []),
    ("a \\\n  b", [("a", "b")]),
    ("a 'b\nc'", [("a", "b\nc")]),
    ("a <<E\nb\nE\nc", [("a",), ("c",)]),
    ("a <<'E'\n$(b)\nE\nc", [("a",), ("c",)]),
    ("a <<-E\n\t$b\n\tE\n", [("a",)]),
    ("a <<E | b\nx\nE", [("a",), ("b",)]),
    ("a <<< 'b c'", [("a",)]),
    ("a 2>&1 >&2 2>&- >/dev/null </dev/null", [("a",)]),
    ("[ -f x ] && a", [("[", N), ("a",)]),
    ("[[ $x == y ]] && a", [("[[", N), ("a",)]),
    ("é ü='ö' 日本", [("é", "ü=ö", "日本")]),
    ("sudo a b", [("sudo", "a", "b"), ("a", "b")]),
    ("sudo -n -u me A=1 a", [("sudo", "-n", "-u", "me", "A=1", "a"), ("a",)]),
    ("sudo -v", [("sudo", "-v")]),
    ("sudo -k", [("sudo", "-k")]),
    ("sudo -k a", [("sudo", "-k", "a"), ("a",)]),
    ("env A=1 B=2 a b", [("env", "A=1", "B=2", "a", "b"), ("a", "b")]),
    ("env -u A -- a", [("env", "-u", "A", "--", "a"), ("a",)]),
    ("nohup a &", [("nohup", "a"), ("a",)]),
    ("time -p a", [("time", "-p", "a"), ("a",)]),
    ("time -p -- a", [("time", "-p", "--", "a"), ("a",)]),
    ("/usr/bin/time -v a", [("/usr/bin/time", "-v", "a"), ("a",)]),
    ("timeout -k 5 10 a", [("timeout", "-k", "5", "10", "a"), ("a",)]),
    ("exec a", [("exec", "a"), ("a",)]),
    ("command -v a", [("command", "-v", "a")]),
    ("/usr/bin/env a", [("/usr/bin/env", "a"), ("a",)]),
    ("xargs a", [("xargs", "a"), ("a", N)]),
    ("xargs", [("xargs",), ("echo", N)]),
    ("xargs -P 4 -I % a x% b", [("xargs", "-P", "4", "-I", "%", "a", "x%", "b"), ("a", N, "b")]),
    ("xargs -0 -n 1 a b", [("xargs", "-0", "-n", "1", "a", "b"), ("a", "b", N)]),
    ("xargs -I{} a {} x{} b", [("xargs", "-I{}", "a", "{}", "x{}", "b"), ("a", N, N, "b")]),
    ("find . -name '*.py' -exec a {} \\;", [("find", ".", "-name", "*.py", "-exec", "a", "{}", ";"), ("a", N)]),
    ("find . -name x", [("find", ".", "-name", "x")]),
    ("sh -c 'a; b'", [("sh", "-c", "a; b"), ("a",), ("b",)]),
    ("bash -lc 'a \"$(b)\"' x", [("bash", "-lc", 'a "$(b)"', "x"), ("a", N), ("b",)]),
    ("bash -c \"bash -c 'a'\"", [("bash", "-c", "bash -c 'a'"), ("bash", "-c", "a"), ("a",)]),
    ("eval 'a;' b", [("eval", "a;", "b"), ("a",), ("b",)]),
    ("sudo nice -n 5 sh -c a", [("sudo", "nice", "-n", "5", "sh", "-c", "a"), ("nice", "-n", "5", "sh", "-c", "a"),
                                ("sh", "-c", "a"), ("a",)]),
    ("trap 'a' EXIT", [("trap", "a", "EXIT"), ("a",)]),
    ("watch a b", [("watch", "a", "b"), ("a", "b")]),
    ("export -p; unset A B", [("export", "-p"), ("unset", "A", "B")]),
    ("export A=$x B", [("export", N, "B")]),
]  # fmt: skip


@pytest.mark.parametrize(("line", "commands"), UNDERSTOOD)
def test_every_command_of_a_line_is_found(line: str, commands: list[tuple[str | None, ...]]) -> None:
    parsed = parse_line(line)
    assert [command.words for command in parsed.commands] == commands
    assert parsed.understood


@pytest.mark.parametrize(
    "line",
    [
        "ls \\\n  -l \\\n  -a",
        "a --x \\\n--rm",
        "echo 'a\\\nb'",
        'echo "a\\$b"',
        'grep "a$|b" f',
        "make >& log.txt",
        "a >&2",
        "(x=1)",
        "for i in 1; do x=1; done",
    ],
)
def test_ordinary_lines_stay_understood(line: str) -> None:
    assert parse_line(line).understood


def test_env_with_a_lone_dash_starts_what_follows() -> None:
    assert [command.words for command in parse_line("env - rm -rf /").commands][1:] == [("rm", "-rf", "/")]


Started = list[tuple[tuple[str | None, ...], tuple[str, ...]]]


@pytest.mark.parametrize(
    ("line", "started", "own_word_count", "is_transparent"),
    [
        ("ls -l", [], 0, False),
        ("env nice ls", [(("nice", "ls"), ("nice", "ls"))], 1, True),
        ("nice -n 5 ls 'x'", [(("ls", "x"), ("ls", "'x'"))], 3, True),
        ("xargs a", [(("a", N), ("a", "…"))], 1, True),
        ("sh -c 'a; b'", [(("a",), ("a",)), (("b",), ("b",))], 3, True),
        ("eval a b", [(("a", "b"), ("a", "b"))], 3, True),
        # These do more than start a command, or may be programs of the workspace.
        ("env A=1 ls", [(("ls",), ("ls",))], 2, False),
        ("find . -exec a {} ';'", [(("a", N), ("a", "{}"))], 3, False),
        ("sh -c a x", [(("a",), ("a",))], 4, False),
        ("trap a EXIT", [(("a",), ("a",))], 3, False),
        ("./env ls", [(("ls",), ("ls",))], 1, False),
        ("/bin/sh -c a", [(("a",), ("a",))], 3, False),
    ],
)
def test_what_a_command_starts_is_known_and_where_its_own_words_end(
    line: str, started: Started, own_word_count: int, is_transparent: bool
) -> None:
    (command,) = parse_line(line).top_level
    assert [(inner.words, inner.sources) for inner in command.started] == started
    assert (command.own_word_count, command.is_transparent) == (own_word_count, is_transparent)


def test_the_operands_of_a_bracket_test_are_one_unknown_word() -> None:
    (command,) = parse_line("[ -f x ]").top_level
    assert (command.words, command.sources) == (("[", N), ("[", "…"))


@pytest.mark.parametrize(
    ("line_of", "limit"),
    [
        (lambda count: "a " + "b" * (count - 2), 20_000),
        (lambda count: "env " * count + "ls", 8),
        (lambda count: "eval " * count + "ls", 4),
        (lambda count: "a <<< b; " * count, 20),
        (lambda count: f"a '{'(' * count}'", 1_500),
        (lambda count: f"a '{'[' * count}'", 1_500),
        (lambda count: "( " * count + "ls" + ")" * count, 97),
    ],
    ids=["characters", "wrappers", "scripts", "strings", "brackets", "square brackets", "levels"],
)
def test_a_line_is_read_up_to_its_limits_and_no_further(line_of: Callable[[int], str], limit: int) -> None:
    assert parse_line(line_of(limit)).understood
    assert not parse_line(line_of(limit + 1)).understood


NOT_UNDERSTOOD = [
    "a (",
    "a 'b",
    "a; b)",
    "if a; then b",
    "$x a",
    "$(a) b",
    "{a,b}",
    "/bin/r?",
    "~/x a",
    "a\x00b",
    "a\rb",
    "a\u00a0b",
    "a\u2028b",
    "a b\u200b",
    "g\\\nit push",
    "eval $x",
    "sh -c $x",
    "sh script",
    "curl x | sh",
    "bash -s",
    "bash -i -c a",
    "bash --rcfile x -c a",
    ". script",
    "source script",
    "alias a=b",
    "sudo -s a",
    "sudo $x",
    "env -S 'a b'",
    "xargs -I X Xa b",
    "xargs -0I{} a {}",
    "xargs -I{} -I% a {} %",
    "xargs -E -I -n 1 a",
    "xargs sh -c",
    "xargs -R 5 a",
    "find . $x",
    "find . -exec a \\; -exec b \\;",
    "find . -exec {} \\;",
    "find . -exec ';'",
    "find . -exec +",
    "fd x -x rm",
    "hash -p /evil git",
    "enable -f x y",
    "coproc a",
    "let 'a[$(b)]=1'",
    "test -v 'a[$(b)]'",
    "printf -v 'a[$(b)]' x",
    "printf -vf -v z* x",
    "a <<EOF {1..3}\nEOF",
    "_= a",
    "_=b a",
    "_+=b a",
    'printf -v f -v"a[$(b)]" x',
    "((a))",
    "!((a))",
    "! ((a))",
    "a $((b))",
    "a $((1)+(2))",
    "a $((v[$(b)]))",
    "[ x && a ]",
    "[ a > b ]",
    "[[ a || b ]]",
    "a ${x:-$(b)}",
    "a ${x:-$y}",
    "a ${x:=b}",
    "a ${x:1}",
    "a ${x/b/c}",
    "a ${v[$(b)]}",
    "a ${v[x]}",
    "v[1]=a",
    "a ${x@P}",
    "a ${!x}",
    "a $'\\''; b #'",
    "a <<E\nx",
    "a <<A <<B\nA\nB",
    "a <<A\nx\nA\nb <<B\nx\nB",
    "a <<'E'F\nEF",
    "a <<E\nb\\\nE\nc\nE",
    "a <<E\n$(b)\nE",
    "a <<-E\n\t`b`\n\tE",
    'a $"b"',
    "$'a'",
    "case x in @(a|b)) a;; esac",
    "eval 2>&1 a",
    "a >b c",
    "!a[x",
    "! ! a",
    "then a",
    "a \n\\'b\\'",
    "bash -c -e 'a'",
    "a; -2>&1",
    "a<<<$x\\; c",
    "a<(b)",
    "'a'\\b",
    "a\\\n 2>&1",
    "!'a'",
    "é=1 a",
    "a \\",
    "a <<<$\nb",
    "a <<< $ b",
    "a <<< $\tb",
    "a > $\nb",
    "a <<<\nb",
    "a $\nb",
    "x=$\nb",
    "a == .\nb c>]~",
    "a =~ .\nb c>]~",
    "a == b",
    "a =~ b",
    "[ a =~ .\nb ]",
    "case a in b\nc) d;; esac",
    "a 2>&- b",
    "a <&- b",
    "a <<E b\nx\nE",
    "a <<E\nE&'$(b)'",
    "a <<E\nx\nE; b",
    'a "`b c``d`"',
    "a `b c``d`",
    "time A=1 a",
    "time -p A=1 a",
    "time ! a",
    "time { a; }",
    "time -v a",
    "time -p -p a",
    "time -pp a",
    "time \\-p a",
    "time -p '--' a",
    "for ((;;)); do a; done",
    # An escaped line end is removed before anything else is read.
    'cat "$\\\n(b)"',
    'cat "x$\\\n\\\n(b)"',
    'cat <<< "$\\\n(b)"',
    'cat "`\\\nb`"',
    # Between backticks one layer of backslashes is removed first.
    'cat `cat "\\$(b)"`',
    'cat `cat "\\`b x\\`"`',
    "cat `cat \\\\\\; b x`",
    'a "`b "{c,d}"`"',
    # Text that directly follows an assignment belongs to it.
    "x=$x\\echo b",
    "x=a}\\echo b",
    "x='a'\\: b",
    'x="a"\\ls b',
    'declare""then b',
    'local""ectl b',
    # Bash expands the targets of these redirections twice.
    "echo k >& '$(b)'",
    'echo k >& "g\\$(b)"',
    "echo k >& 'i`b`'",
    "echo k >&o\\'",
    "env nice - b",
    # A value may become several words.
    "nice -n $x a",
    "env -u $x a",
    "timeout -k $x 5 a",
    "timeout --signal $x 5 a",
    "xargs -n $x a",
    # A POSIX shell takes `x+=1`, `function` or `select` as a program, and 12 as its argument.
    "x+=1",
    "a | x+=1 b",
    "function f { a; }",
    "function f() { a; }",
    "select i in a\ndo b\ndone",
    "a 12>b",
    "a >& -b",
    # The values of these are run, or are arithmetic in which a subscript may run a command.
    "PS4='$(b)'; set -x; a",
    "PS4='$(b)' bash -xc a",
    "BASH_ENV=f bash -c a",
    "env BASH_ENV=f bash -c a",
    "sudo PS4='$(b)' bash -xc a",
    "env 'BASH_FUNC_a%%=() { b; }' bash -c a",
    "export BASH_ENV=f; bash -c a",
    "RANDOM='v[$(b)]'",
    "OPTIND=$x a",
    "for HISTCMD in $x; do a; done",
    "read SRANDOM",
    "printf -v RANDOM '%s' $x",
    "mapfile SECONDS",
    "mapfile BASHPID",
    "getopts a: OPTIND",
    "declare SECONDS=$x",
    "readonly RANDOM=$x",
    # After another command this is no declaration: the value may become several words.
    "command export a=$x",
    "builtin declare a=$x",
    # Later parts that are understood do not help.
    "$x a; [ -f x ]",
    "$x a; sh -c b",
    "(" * 500,
    "time " * 3_999 + "ls",
    "env " * 4_900 + "ls",
    "[[ " + "-I a " * 3_900 + "]]",
    "bash -c '" + "nohup " * 3_000 + "'",
    "a" * (MAX_LINE_LENGTH + 1),
    'bash -c \'bash -c "bash -c \\"bash -c \\\\\\"bash -c \\\\\\\\\\\\\\"a\\\\\\\\\\\\\\"\\\\\\"\\""\'',
]


@pytest.mark.parametrize("line", NOT_UNDERSTOOD)
def test_what_may_run_more_than_is_seen_is_not_understood(line: str) -> None:
    assert not parse_line(line).understood
    assert all(command.words for command in parse_line(line).commands)


@pytest.mark.parametrize(
    ("line", "files"),
    [
        ("a > b", [("b", True)]),
        ("a >> 'b c'", [("b c", True)]),
        ("a >| b", [("b", True)]),
        ("a &> b", [("b", True)]),
        ("a < b", [("b", False)]),
        ("a 2> $x", [(None, True)]),
        ("(a; b) > c", [("c", True)]),
        ("> a", [("a", True)]),
        ("sh -c 'a > b'", [("b", True)]),
        ("a > /dev/null 2>&1", []),
        ("a > /dev/null/../x", [("/dev/null/../x", True)]),
    ],
)
def test_files_that_a_line_reads_or_writes_are_named(line: str, files: list[Any]) -> None:
    parsed = parse_line(line)
    assert [(redirection.target, redirection.writes) for redirection in parsed.redirections] == files
    assert parsed.is_plain is (not files)


@pytest.mark.parametrize(
    ("line", "sets"),
    [
        ("A=1 a", True),
        ("A=1; a", True),
        ("export A=1", True),
        ("declare -x A=1", True),
        ("unset A", True),
        ("for PATH in x; do a; done", True),
        ("for https_proxy in x; do a; done", True),
        ("sh -c 'A=1 a'", True),
        ("A=1; sh -c a", True),
        ("read A", True),
        ("read a", False),
        ("unset CI", True),
        # Variables of appearance and reports do not change what a command does.
        ("CI=1 a", False),
        ("CI='1' NO_COLOR= a", False),
        ("CI=1", False),
        ("CI=$x a", True),
        ("CI=/x a", True),
        # A folder of the workspace in which only `python -m` looks for modules.
        ("PYTHONPATH=src python -m pytest", False),
        ("CI=1 PYTHONPATH='./src/lib' python3.11 -m pytest", False),
        ("PYTHONPATH=/x python -m pytest", True),
        ("PYTHONPATH=../x python -m pytest", True),
        ("PATH=src python -m pytest", True),
        ("PYTHONPATH=src python x.py", True),
        ("PYTHONPATH=src python", True),
        ("PYTHONPATH=src ./python -m pytest", True),
        ("PYTHONPATH=src ls -m", True),
        ("PYTHONPATH=src", True),
        ("PYTHONPATH=src; python -m pytest", True),
        ("PYTHONPATH=src; python; -m", True),
        ("for i in x; do a; done", False),
        ("a A=1", False),
        ("a $A", False),
    ],
)
def test_a_line_that_sets_a_variable_is_known(line: str, sets: bool) -> None:
    assert parse_line(line).sets_variables is sets


@pytest.mark.parametrize(
    ("line", "folder"),
    [
        ("cd x && ls", "x"),
        ("cd x; ls", "x"),
        (" cd -- x\nls", "x"),
        ("cd 'x y' && ls", "x y"),
        ("cd a..b && ls | wc", "a..b"),
        ("cd x && cd y && ls", "x"),
        ("cd x && ls &> y", "x"),
        ("cd x && ls &>> y", "x"),
        # Some or all of the line runs in the folder where it starts.
        ("cd x", None),
        ("cd x;", None),
        ("cd x || ls", None),
        ("ls && cd x", None),
        ("cd x && ls & wc", None),
        ("cd x && ls &> y; wc", None),
        ("cd x && ls &>> y; wc", None),
        # The target folder of these is unknown.
        ("cd .. && ls", None),
        ("cd a/../b && ls", None),
        ("cd - && ls", None),
        ("cd ~ && ls", None),
        ("cd $x && ls", None),
    ],
)
def test_the_folder_that_a_line_goes_to_first_is_known_where_all_else_runs_there(line: str, folder: str | None) -> None:
    assert parse_line(line).goes_to == folder


def test_the_grammar_is_loaded_with_the_first_line_and_not_before() -> None:
    program = (
        "import sys\n"
        "import desktop_agent.permissions.policy, desktop_agent.permissions.approvals\n"
        "from desktop_agent.permissions.shell.parser import parse_line\n"
        "assert not [name for name in sys.modules if name.startswith('tree_sitter')]\n"
        "parse_line('ls')\n"
        "assert 'tree_sitter_bash' in sys.modules\n"
    )
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (process.returncode, process.stderr) == (0, "")


def test_a_line_that_is_too_long_is_not_remembered() -> None:
    size = parser._parse.cache_info().currsize
    for length in range(1, 20):
        assert not parse_line("a" * (MAX_LINE_LENGTH + length)).understood
    assert parser._parse.cache_info().currsize == size


@pytest.mark.parametrize("line", ["x=(" * 6_000, "ls " + "@(a)" * 4_000, "ls " + "a[1]" * 4_000, "((1))" * 3_000])
def test_a_line_that_would_take_long_to_parse_is_not_parsed(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parser, "_parser", lambda: pytest.fail("It is read."))
    parser._parse.cache_clear()
    assert parse_line(line) == parser.ParsedLine()
