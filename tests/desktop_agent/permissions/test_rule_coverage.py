"""Rules that are proposed for a line allow what a person expects, and nothing that does something else."""

import tomllib
from pathlib import Path

import pytest

from desktop_agent.permissions.rule_matching import CallFacts, find_allowing_rule
from desktop_agent.permissions.rule_proposals import propose_rules
from desktop_agent.permissions.shell.safe_options import program_options
from desktop_agent.permissions.shell.syntax import word_set
from desktop_agent.permissions.shell.wrappers import CLEAR_BY_NAME, START_NOTHING
from desktop_agent.tools.tool import AnyTool
from desktop_agent.types.permissions import CommandSubject, Rule
from desktop_agent.types.tool_calls import Effect
from tests.desktop_agent.permissions.conftest import MakeTool

WORKSPACE = "/ws"
RULES = tomllib.loads(Path(__file__).with_name("rule_coverage.toml").read_text(encoding="utf-8"))["rule"]
COVERED = [(rule["for"], line) for rule in RULES for line in rule["covers"]]
LEFT = [(rule["for"], line) for rule in RULES for line in rule["leaves"]]
# With any options, these programs only show what they read.
SHOW_WHAT_THEY_READ = word_set(
    "b2sum cal cksum column expand expr fold free fmt groups hexdump join locale lsblk lscpu lsof md5 nproc od "
    "paste pgrep printenv pstree rev sha1sum sha512sum strings tsort tty unexpand uptime w who"
)


@pytest.fixture
def tool(make_open_tool: MakeTool) -> AnyTool:
    return make_open_tool([Effect.EXECUTE])


def offered(tool: AnyTool, line: str) -> tuple[Rule, ...]:
    return propose_rules(tool, f"digest of {line}", (CommandSubject(line),), workspace=WORKSPACE)


def covers(tool: AnyTool, rule: Rule, line: str) -> bool:
    return (
        find_allowing_rule([rule], CallFacts(tool, f"digest of {line}", (CommandSubject(line),), WORKSPACE)) is not None
    )


# A thousand lines in one test: a test for each line would take five times as long.
def test_what_a_person_expects_is_covered(tool: AnyTool) -> None:
    missed = [
        (approved_line, line)
        for approved_line, line in COVERED
        if not any(covers(tool, rule, line) for rule in offered(tool, approved_line))
    ]
    assert missed == []


def test_what_does_something_else_is_covered_by_no_rule_that_is_offered(tool: AnyTool) -> None:
    covered = [
        (approved_line, line, rule.pattern)
        for approved_line, line in LEFT
        for rule in offered(tool, approved_line)
        if covers(tool, rule, line)
    ]
    assert covered == []


def test_every_line_is_covered_by_what_is_offered_for_it(tool: AnyTool) -> None:
    for approved_line in dict.fromkeys(approved_line for approved_line, _ in COVERED):
        assert all(covers(tool, rule, approved_line) for rule in offered(tool, approved_line)), approved_line


def test_of_every_program_that_a_rule_names_alone_the_options_are_known() -> None:
    assert CLEAR_BY_NAME - START_NOTHING - program_options().keys() == SHOW_WHAT_THEY_READ
