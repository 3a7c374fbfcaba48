"""Builtins of the shell: those that are understood run nothing that is not in the line."""

import shutil
import subprocess
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from desktop_agent.permissions.shell.parser import parse_line

BASH = shutil.which("bash")
COMMANDS = [
    *("test", "[", "[[", "printf", "read", "wait -n", "wait", "getopts a", "unset", "declare", "typeset", "local"),
    *("export", "readonly", "mapfile", "readarray", "set", "shift", "jobs", "command export", "builtin declare"),
    *("'unset'", "hash", "ulimit -n", "exec", "return", "umask", "kill", "break", "echo", "true", ":"),
]
WORDS = [
    *("'c[b]'", "c[b]", "$b", '"$b"', "b", "-v", "-p", "-n", "-eq", "-gt", "=", "!", "-i", "-o", "-a", "'c[b]=1'"),
    *("$o", '"$o"', "-va[b]", "-pc[b]", "1", "b=1", "x=$b", "$'c\\x5bb\\x5d'", "{x[b]}>&1", "{b[b]}>&-", "-C"),
]
# One variable holds a subscript that runs a command when it is evaluated, the other an option.
WITHIN = "f() {{ for b in 'a[$(echo ran >&9)]'; do for o in -v -p -i -vc[b]; do {}; done; done; }}; f"


def lines() -> Iterator[str]:
    for name in COMMANDS:
        close = {"[": " ]", "[[": " ]]"}.get(name, "")
        # The last word is one that may contain the subscript.
        for words in product(["", *WORDS], WORDS[:4]):
            yield WITHIN.format(f"{name} {' '.join(filter(None, words))}{close}")


def lines_that_ran(lines: list[str], folder: Path) -> list[str]:
    """Return the lines in which bash ran the command of a subscript."""
    assert BASH is not None
    program = 'for line; do ( eval "$line" ) 9>&1 >/dev/null 2>&1 </dev/null; printf "\\036"; done'
    process = subprocess.run(
        [BASH, "--norc", "-c", program, "bash", *lines], cwd=folder, capture_output=True, check=False
    )
    records = process.stdout.decode().split("\x1e")[: len(lines)]
    assert len(records) == len(lines)
    return [line for line, record in zip(lines, records, strict=True) if "ran" in record]


@pytest.mark.skipif(BASH is None, reason="needs bash")
def test_bash_runs_what_a_subscript_holds(tmp_path: Path) -> None:
    dangerous = [
        WITHIN.format(command) for command in ("test -v 'c[b]'", "printf $o x", "ls {c[b]}>&1", "[[ b -eq 1 ]]")
    ]
    assert lines_that_ran(dangerous, tmp_path) == dangerous
    assert not [line for line in dangerous if parse_line(line).understood]


@pytest.mark.skipif(BASH is None, reason="needs bash")
def test_what_is_understood_runs_no_subscript(tmp_path: Path) -> None:
    understood = [line for line in lines() if parse_line(line).understood]
    assert len(understood) > 1000
    batches = [understood[start : start + 500] for start in range(0, len(understood), 500)]
    assert [line for batch in batches for line in lines_that_ran(batch, tmp_path)] == []


@pytest.mark.parametrize(
    ("line", "moves"),
    [
        ("cd x && ls", False),
        ("cd x && cd y && ls", True),
        ("ls && cd x", True),
        ("cd x", True),
        ("command cd x", True),
        ("pushd x", True),
        ("env -C x ls", True),
        ("env -iC x ls", True),
        ("env --chdir=x ls", True),
        ("sudo -D x ls", True),
        ("find . -execdir ls ';'", True),
        ("sh -c 'cd x'", True),
        ("sh -c 'cd x && ls'", True),
        ("sh -c 'ls && cd x'", True),
        ("sh -c ls", False),
        ("ls x", False),
        ("env A=1 ls", False),
        ("find . -exec ls ';'", False),
        ("echo cd x", False),
        ("cd x && ls &> y; ls", True),
        ("cd x && ls &> y", False),
    ],
)
def test_a_line_that_goes_to_another_folder_is_known(line: str, moves: bool) -> None:
    assert parse_line(line).changes_folder is moves
