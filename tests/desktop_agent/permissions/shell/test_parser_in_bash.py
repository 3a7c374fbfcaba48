"""The commands that bash really runs are among those that the parser finds in a line."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from desktop_agent.permissions.shell.parser import parse_line

BASH = shutil.which("bash")
PIECES = [
    *("a", "b", "c", "git", "'q w'", '"d e"', " ", ";", "&&", "||", "|", "\n", "(", ")", "{ ", "; }", "$(", "`", "'"),
    *('"', "\\", "\\\n", "#", " #", "$x", "${x}", "<<E\n", "\nE\n", "<<'E'\n", "!", "{a,b}", "*", "x=1 ", "if ", "fi"),
    *("; then ", "for i in ", "; do ", "; done", "case a in a) ", ";; esac", "f() ", "eval ", "command ", "[ ", "]"),
    *("<(", "\\'", "~", "$((", "))", "<<<", "2>&1", ">o", "$'", "}", "\\\"", "-", "é", "\t"),
    *("== ", "=~ ", ".", "]~", "<<<$", "$\n", "> ", "[[ ", " ]]", "@(", "+=", "function ", "select x in a", "time "),
]  # fmt: skip
# Bash calls this function for each command that it does not find, and on this PATH it finds none.
LISTEN = """PATH=/nowhere
command_not_found_handle() { local IFS=$'\\037'; printf '%s\\0' "$*" >&9; }
"""


def fits(words: tuple[str | None, ...], ran: list[str]) -> bool:
    if not words:
        return not ran
    if words[0] is None:
        return any(fits(words[1:], ran[skipped:]) for skipped in range(len(ran) + 1))
    return bool(ran) and ran[0] == words[0] and fits(words[1:], ran[1:])


def what_bash_runs(bash: str, lines: list[str], folder: Path) -> list[list[list[str]]]:
    """Return for each line the words of each command that bash runs; each line has its own subshell."""
    program = LISTEN + 'for line; do ( eval "$line"; wait ) 9>&1 >/dev/null 2>&1 </dev/null; printf "\\036"; done'
    process = subprocess.run(
        [bash, "--norc", "-c", program, "bash", *lines],
        cwd=folder,
        env={"LC_ALL": "C.UTF-8"},
        capture_output=True,
        check=False,
    )
    records = process.stdout.decode("utf-8", "replace").split("\x1e")[: len(lines)]
    return [[words.split("\x1f") for words in record.split("\0") if words] for record in records]


@pytest.mark.skipif(BASH is None, reason="needs bash")
def test_bash_tells_what_it_runs(tmp_path: Path) -> None:
    assert BASH is not None
    ran = what_bash_runs(BASH, ["a 'b c'; d | e &", "true", "$(a)"], tmp_path)
    assert [sorted(commands) for commands in ran] == [[["a", "b c"], ["d"], ["e"]], [], [["a"]]]


@pytest.mark.skipif(BASH is None, reason="needs bash")
# Shrinking a failure would take longer than a test may.
@settings(max_examples=25, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.lists(st.lists(st.sampled_from(PIECES), min_size=2, max_size=9).map("".join), min_size=40, max_size=40))
def test_nothing_runs_that_was_not_found(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    assert BASH is not None
    understood = [line for line in lines if parse_line(line).understood]
    ran = what_bash_runs(BASH, understood, tmp_path_factory.mktemp("bash"))
    assert len(ran) == len(understood)
    for line, commands in zip(understood, ran, strict=True):
        parsed_commands = parse_line(line).commands
        assert all(any(fits(command.words, words) for command in parsed_commands) for words in commands), (
            line,
            commands,
        )
