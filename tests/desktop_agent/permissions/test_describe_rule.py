import pytest

from desktop_agent.permissions.rule_proposals import BUNDLES, describe_rule
from desktop_agent.types.errors import Sentence
from desktop_agent.types.permissions import (
    ArgumentsPattern,
    CommandPattern,
    CommandsPattern,
    HostPattern,
    PathPattern,
    Pattern,
    Rule,
    RuleEffect,
    RuleScope,
)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (PathPattern(prefix="/ws"), "act in /ws"),
        (HostPattern(host="h"), "act with h"),
        (
            CommandPattern(words=("git", "log")),
            "commands that begin with “git log”, in the top folder of the workspace",
        ),
        (
            CommandPattern(words=("ls",), folder=None),
            "commands that begin with “ls”, in every folder of the workspace",
        ),
        (
            CommandPattern(words=("ls",), folder="a/{b}"),
            "commands that begin with “ls”, in the folder a/{b} of the workspace",
        ),
        (
            CommandPattern(words=("git", "{x}"), exact=True),
            "exactly the command “git {x}”, in the top folder of the workspace",
        ),
        (
            CommandsPattern(title="{x}, looking", beginnings=(("git", "log"),), folder=None),
            "{x}, looking: commands that begin with “git log”, in every folder of the workspace",
        ),
        (
            CommandsPattern(title="git", beginnings=(("git", "log"), ("git", "{x}"), ("ls",))),
            "git: commands that begin with “git log”, “git {x}” or “ls”, in the top folder of the workspace",
        ),
        (ArgumentsPattern(digest="d"), "act with exactly these arguments"),
        (ArgumentsPattern(digest="d", words="make x"), "act with exactly these arguments: make x"),
        (None, "act with any arguments"),
    ],
)
def test_a_rule_is_said_in_words(pattern: Pattern | None, expected: str) -> None:
    assert str(describe_rule(Rule(effect=RuleEffect.ALLOW, tool="act", pattern=pattern))) == expected


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda words: words.title)
def test_each_command_of_a_bundle_is_said(bundle: CommandsPattern) -> None:
    description = str(describe_rule(Rule(effect=RuleEffect.ALLOW, tool="act", pattern=bundle)))
    assert description.startswith(f"{bundle.title}: ")
    assert [" ".join(words) in description for words in bundle.beginnings] == [True] * len(bundle.beginnings)


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda each: each.title)
def test_the_title_of_each_bundle_can_be_translated(bundle: CommandsPattern) -> None:
    description = describe_rule(Rule(effect=RuleEffect.ALLOW, tool="act", pattern=bundle))
    commands = description.values.get("commands")
    assert isinstance(commands, Sentence)
    assert commands.values["title"] == Sentence(bundle.title)


@pytest.mark.parametrize("effect", [RuleEffect.DENY, RuleEffect.ASK])
def test_what_denies_or_asks_does_so_in_every_folder(effect: RuleEffect) -> None:
    description = describe_rule(Rule(effect=effect, tool="act", pattern=CommandPattern(words=("ls",))))
    assert str(description) == "commands that begin with “ls”"


def test_that_a_commit_starts_hooks_is_said() -> None:
    descriptions = [
        str(describe_rule(Rule(effect=RuleEffect.ALLOW, tool="act", pattern=description))) for description in BUNDLES
    ]
    assert all("hooks" in description for description in descriptions if "git commit" in description)
    assert any("git commit" in description for description in descriptions)


@pytest.mark.parametrize(
    ("tools", "folder", "expected"),
    [
        (("edit @ /ws", "write @ /ws"), "/ws/src", "edit and write in /ws/src"),
        (("edit @ /ws", "write @ /ws"), "/ws", "edit and write anywhere in the workspace /ws"),
        (("edit @ /ws", "write @ /ws", "move"), "/ws/src", "edit, write and move in /ws/src"),
        (("edit @ /ws",), "/ws/src", "edit in /ws/src"),
        (("edit_file @ /ws", "s__put"), "/ws", "“Edit a file” and “Put (s)” anywhere in the workspace /ws"),
        (("edit @ /ws",), "/other", "edit for the workspace /ws in /other"),
        (("edit @ server:d1",), "/ws/src", "edit, as it is described now, in /ws/src"),
        (("a{b} @ /ws",), "/ws/{c}", "a{b} in /ws/{c}"),
    ],
)
def test_each_tool_of_a_rule_about_files_is_said(tools: tuple[str, ...], folder: str, expected: str) -> None:
    first, *also = tools
    rule = Rule(
        effect=RuleEffect.ALLOW,
        tool=first,
        also=tuple(also),
        pattern=PathPattern(prefix=folder),
        scope=RuleScope.WORKSPACE,
        workspace="/ws",
    )
    assert str(describe_rule(rule)) == expected


def test_each_tool_of_any_other_rule_is_said() -> None:
    rule = Rule(effect=RuleEffect.ALLOW, tool="a", also=("b", "c"))
    assert str(describe_rule(rule)) == "a, b and c with any arguments"
    assert str(describe_rule(rule.model_copy(update={"pattern": HostPattern(host="h")}))) == "a, b and c with h"


@pytest.mark.parametrize(
    ("tool", "workspace", "expected"),
    [
        ("act @ /ws", None, "act for the workspace /ws with any arguments"),
        ("act @ /ws", "/ws", "act with any arguments"),
        ("act @ /ws", "/other", "act for the workspace /ws with any arguments"),
        ("act @ server:d1", "/ws", "act, as it is described now, with any arguments"),
    ],
)
def test_what_a_rule_holds_its_tool_to_is_said(tool: str, workspace: str | None, expected: str) -> None:
    assert str(describe_rule(Rule(effect=RuleEffect.ALLOW, tool=tool, workspace=workspace))) == expected
