"""The comparison with real shells, with few lines, and that it finds what is wrong."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pytest

from desktop_agent.permissions.shell import parser, syntax
from desktop_agent.permissions.shell.parser import parse_line
from tests.frame.examples import examples
from tests.shell_differential.__main__ import Comparison, Report
from tests.shell_differential.box import HERE, SHELLS, Box, why_none
from tests.shell_differential.grammar import lines

# How many of the 500 lines were understood when the comparison was made.
UNDERSTOOD_BEFORE = 472
SEED = 1
LINES = examples(2_000)
_MAX_LINES = 3_000


@pytest.fixture(scope="module")
def can_run() -> None:
    if (reason := why_none()) is not None:
        pytest.skip(reason)


@pytest.fixture(scope="module")
def in_bash(can_run: None) -> Iterator[Comparison]:
    del can_run
    with Box("bash") as box:
        yield Comparison(box)


@pytest.fixture(scope="module", params=SHELLS)
def comparison(can_run: None, request: pytest.FixtureRequest) -> Iterator[Comparison]:
    del can_run
    with Box(request.param) as box:
        yield Comparison(box)


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    parser._parse.cache_clear()
    yield
    parser._parse.cache_clear()


def test_nothing_differs_from_what_a_shell_does(comparison: Comparison) -> None:
    comparison.report = Report()
    for kind, line in islice(lines(SEED), LINES):
        comparison.compare(kind, line)
    report = comparison.report
    assert report.found == {}
    assert report.made == LINES
    assert report.share >= 0.4
    assert min(report.processes, report.commands) > LINES / 2
    assert report.files > LINES / 40


def test_ordinary_lines_are_understood_and_do_not_differ(comparison: Comparison) -> None:
    ordinary = (HERE / "ordinary_lines.txt").read_text().splitlines()
    assert len(ordinary) == 500
    assert sum(parse_line(line).understood for line in ordinary) >= UNDERSTOOD_BEFORE
    comparison.report = Report()
    for line in ordinary:
        comparison.compare("ordinary", line)
    assert comparison.report.found == {}


def _forgets_substitutions(patch: pytest.MonkeyPatch) -> None:
    read = parser._LineReader.read

    def forgetful(self: Any, node: Any, level: int = 0) -> None:
        if node.type not in {"command_substitution", "process_substitution"}:
            read(self, node, level)

    patch.setattr(parser._LineReader, "read", forgetful)


FAULTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "forgets substitutions": _forgets_substitutions,
    "takes all for sound": lambda patch: patch.setattr(parser, "is_unambiguous", lambda *_: True),
    "forgets what is started": lambda patch: patch.setattr(parser, "unwrap", lambda _: None),
    "reads own commands as words": lambda patch: patch.setattr(parser, "is_plain_builtin", lambda *_, **__: True),
    "forgets redirections": lambda patch: patch.setattr(parser._LineReader, "_redirect", lambda *_: None),
    "forgets variables": lambda patch: patch.setattr(parser, "sets_variable", lambda _: False),
    "forgets moves": lambda patch: patch.setattr(syntax, "_MOVING", frozenset()),
    "forgets live variables": lambda patch: patch.setattr(syntax, "_SPECIAL_VARIABLES", frozenset()),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(in_bash: Comparison, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    FAULTS[fault](monkeypatch)
    in_bash.report = Report()
    for kind, line in islice(lines(SEED), _MAX_LINES):
        in_bash.compare(kind, line)
        if in_bash.report.found:
            return
    pytest.fail(f"a parser that {fault} is not found out")


@pytest.mark.parametrize(
    ("line", "taken_for", "difference"),
    [
        ("a b", "a c", "started ('a', 'b')"),
        ("a b", "a", "started ('a', 'b')"),
        ("echo b", "echo c", "ran 'echo b"),
        ("a > o", "a", "wrote /w/o"),
        ("a > o", "a < o", "wrote /w/o"),
        ("a < f", "a", "opened /w/f"),
        ("A=1 a", "a", "set 'A=1"),
        ("export A=1; a", "echo; a", "started ('a',) with other variables"),
        ("cd sub && a", "cd . && a", "started ('a',) in /w/sub"),
        ("for PATH in b; do a; done", "a", "set PATH"),
    ],
)
def test_each_kind_of_difference_is_seen(in_bash: Comparison, line: str, taken_for: str, difference: str) -> None:
    assert in_bash.differences(line) == ()
    assert any(each.startswith(difference) for each in in_bash.differences(line, parse_line(taken_for)))


def test_what_differs_is_made_short(in_bash: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    FAULTS["forgets substitutions"](monkeypatch)
    short = in_bash.shortened('ls -l "x $(rm -rf y)" && git status')
    assert len(short) < 10
    assert in_bash.differences(short)
