"""Shells run the command substitutions inside arithmetic and subscripts."""

from pathlib import Path

import pytest

from desktop_agent.permissions.approvals import Approval
from desktop_agent.types.permissions import CommandPattern, RuleEffect, RuleScope
from desktop_agent.types.tool_calls import AllowOnce, Decision
from tests.escape.attack import ATTACK, BAIT, Attempting, Trial, allows, one_end_to_end, run

IN_LOOP = "for b in 'a[$(touch pwn)]'; do {}; done"
# Each allowed command, and the line that its rule must not allow.
NAMED_STREAMS = [
    ("ls", "ls {a['$(touch pwn)']}>/dev/null"),
    ("ls", "ls {a['$(touch pwn)']}\\\n>/dev/null"),
    ("git status", "git status {a['$(touch pwn)']}>/dev/null"),
    ("ls", IN_LOOP.format("ls {c[b]}>/dev/null")),
    ("ls", IN_LOOP.format("ls {c[b]}>&1")),
    ("ls", IN_LOOP.format("ls {c[b]}<&0")),
    ("ls", IN_LOOP.format("ls {c[b]}>&-")),
    ("ls", IN_LOOP.format("ls {c[b]}<<<x")),
    ("ls", IN_LOOP.format("ls {c[b]}<<'E'\nx\nE\n")),
    ("ls", "ls {PATH}>/dev/null; ls"),
    ("ls", "{PATH}>/dev/null ls"),
    ("ls", "{ ls; }>/dev/null"),
]
TESTS = [
    ("[[", "[[ $'a[\\x24\\x28touch pwn\\x29]' -eq 1 ]]"),
    ("[[", IN_LOOP.format("[[ b -eq 1 ]]")),
    ("[[", IN_LOOP.format("[[ ! 1 -lt b ]]")),
    ("[[", IN_LOOP.format("[[ -v 'c[b]' ]]")),
    ("[[", IN_LOOP.format("[[ -R 'c[b]' ]]")),
    ("test", IN_LOOP.format("test -v 'c[b]'")),
    ("test", IN_LOOP.format("test -f x -o -v 'c[b]'")),
    ("test", "for o in -v; do for b in 'a[$(touch pwn)]'; do test $o 'c[b]'; done; done"),
    ("test", 'for o in -v; do for b in \'a[$(touch pwn)]\'; do test "$o" "$b"; done; done'),
    ("test", "for b in '-v a[$(touch${IFS}pwn)]'; do test $b; done"),
    ("[", IN_LOOP.format("[ -v 'c[b]' ]")),
    ("[", IN_LOOP.format("[ -v $b ]")),
    ("[", IN_LOOP.format("'[' -v 'c[b]' ]")),
]
BUILTINS = [
    ("wait", f"sleep 0 & {IN_LOOP.format('wait -n -p c[b]')}"),
    ("wait", f"sleep 0 & {IN_LOOP.format('wait -fnp c[b]')}"),
    ("wait", "sleep 0 & for b in '-n -p a[$(touch${IFS}pwn)]'; do wait $b; done"),
    ("printf", "for o in '-va[$(touch pwn)]'; do printf \"$o\" x; done"),
    ("printf", IN_LOOP.format("printf -v 'c[b]' x")),
    ("printf", IN_LOOP.format("printf -vc[b] x")),
    ("read", IN_LOOP.format("read 'c[b]' <<< x")),
    ("read", "read -raPATH <<< d; ls"),
    ("mapfile", IN_LOOP.format("mapfile 'c[b]' <<< x")),
    ("getopts", IN_LOOP.format("getopts a 'c[b]'")),
    ("unset", IN_LOOP.format("'unset' 'c[b]'")),
    ("export", IN_LOOP.format("command export 'c[b]=1'")),
    ("declare", "command declare -i x='a[$(touch pwn)]'"),
    ("declare", "for b in 'a[$(touch pwn)]'; do builtin declare -n r=b; done"),
    ("jobs", "jobs -x touch pwn"),
    ("set", "set -k; ls PATH=d"),
    ("shopt", "shopt -s extglob; ls !(x)"),
    ("ksh", "ksh -c 'shift \"a[\\$(touch pwn)]\"'"),
]
DECLARATIONS = [
    "'export' PATH=d:$PATH; ls",
    "command export PATH=d; ls",
    "builtin declare -x PATH=d; ls",
    "\\export PATH=d; ls",
    "'unset' PATH; ls",
    "command -p readonly PATH; ls",
]
# Everyday lines that are still allowed.
WELL = [
    ("[", "[ -f a ] && ls"),
    ("[", "[ ! -d a ] && ls"),
    ("[", 'for x in a b; do [ "$x" = a ] && ls; done'),
    ("[[", "for x in a b; do [[ $x == a* ]] && ls; done"),
    ("[[", "[[ -z $x ]]; ls"),
    ("test", 'test -n "$HOME" && ls'),
    ("test", "test 2 -gt 1 && ls"),
    ("wait", "sleep 0 & wait; ls"),
    ("printf", "printf '%s\\n' a; ls"),
    ("read", "ls | while read -r line; do ls; done"),
    ("set", "set -euo pipefail; ls"),
    ("ls", "ls 2>&1 >/dev/null"),
]


def allowed_by(first_words: str) -> tuple[CommandPattern, ...]:
    return tuple(
        CommandPattern(words=tuple(words_of_rule.split()))
        for words_of_rule in dict.fromkeys((first_words, "ls", "sleep"))
    )


@pytest.mark.parametrize(("first_words", "line"), one_end_to_end([*NAMED_STREAMS, *TESTS, *BUILTINS]))
async def test_a_rule_for_first_words_lets_nothing_else_be_run(
    first_words: str, line: str, tmp_path: Path, attempt: Attempting
) -> None:
    async with attempt(tmp_path, run(line)) as trial:
        trial.rules = tuple(allows("run_command", pattern) for pattern in allowed_by(first_words))
        await trial.play()
        trial.assert_held_back()
        assert trial.text("pwn") is None


@pytest.mark.parametrize("line", DECLARATIONS)
async def test_a_rule_for_a_declaration_lets_no_other_program_be_found(
    line: str, tmp_path: Path, attempt: Attempting
) -> None:
    names = ("export", "declare", "unset", "readonly")
    async with attempt(tmp_path, run(line)) as trial:
        trial.rules = tuple(allows("run_command", pattern) for name in names for pattern in allowed_by(name))
        await trial.play()
        trial.assert_held_back()


@pytest.mark.parametrize("line", ["export FOO", "declare -x FOO", "unset FOO", "set -e", "read x", "cd src", "shopt"])
async def test_no_rule_is_offered_for_what_only_prepares_the_next_command(
    line: str, tmp_path: Path, attempt: Attempting
) -> None:
    async with attempt(tmp_path, run(line)) as trial:
        await trial.play()
        patterns = [pattern.pattern for pattern in trial.cards[0].proposals]
        assert not [pattern for pattern in patterns if isinstance(pattern, CommandPattern) and not pattern.exact]


@pytest.mark.parametrize(("_", "line"), [*NAMED_STREAMS[:4], *TESTS[:6], *BUILTINS[:6]])
async def test_what_a_rule_denies_is_asked_about_where_it_may_stand_in_there(
    _: str, line: str, tmp_path: Path, attempt: Attempting
) -> None:
    def person(_: Approval) -> Decision:
        return AllowOnce()

    async with attempt(tmp_path, run(line.replace("touch pwn", "git push")), person=person) as trial:
        everything = allows("run_command")
        deny = allows("run_command", CommandPattern(words=("git", "push")), RuleEffect.DENY)
        trial.rules = (everything, deny)
        await trial.play()
        assert ATTACK in trial.asked


@pytest.mark.parametrize(("first_words", "line"), one_end_to_end(WELL))
async def test_plain_lines_go_on_unasked(first_words: str, line: str, tmp_path: Path, attempt: Attempting) -> None:
    async with attempt(tmp_path, run(line)) as trial:
        trial.rules = tuple(allows("run_command", pattern) for pattern in allowed_by(first_words))
        await trial.play()
        assert trial.asked == []
        assert trial.started == [ATTACK]


async def test_the_narrowest_rule_of_a_plain_call_is_no_rule_for_a_named_stream(tmp_path: Path) -> None:
    async with Trial(tmp_path, run("ls", BAIT), run("ls {a['$(touch pwn)']}>/dev/null")) as trial:
        await trial.play()
        assert trial.cards[0].proposals[0].scope is RuleScope.WORKSPACE
        trial.assert_held_back()
        assert trial.text("pwn") is None
