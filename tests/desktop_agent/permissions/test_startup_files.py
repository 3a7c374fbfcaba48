"""Every startup file of the table, for every kind of call, in every mode, with and without untrusted content."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product

import pytest

from desktop_agent.permissions.gate import NOTHING_SUSPENDED, Allowed, Ask, Denied, Suspension, Verdict, decide
from desktop_agent.permissions.hard_denies import ProtectedPaths
from desktop_agent.permissions.policy import NO_UNTRUSTED_CONTENT
from desktop_agent.permissions.rule_matching import CallFacts
from desktop_agent.sandbox.startup_files import AskLevel, StartupFile, startup_file_table
from desktop_agent.tools.tool import AnyTool
from desktop_agent.types.permissions import (
    ACCEPT_EDITS_MODE,
    DEFAULT_MODE,
    PLAN_MODE,
    ArgumentsPattern,
    CommandPattern,
    CommandSubject,
    Mode,
    PathPattern,
    PathSubject,
    Pattern,
    Rule,
    RuleEffect,
)
from desktop_agent.types.tool_calls import Effect, ToolClass, UntrustedSource
from tests.desktop_agent.sandbox.test_startup_files import examples

MakeTool = Callable[..., AnyTool]
WORK = "/home/me/project"
GROUNDS = ProtectedPaths(workspace=WORK)
TAINTED = NO_UNTRUSTED_CONTENT.with_source(UntrustedSource("web", "evil.example")).suspension


def entries(*levels: AskLevel) -> list[StartupFile]:
    return [entry for entry in startup_file_table() if entry.level in levels]


ALWAYS, AFTER_OUTSIDE = entries(AskLevel.ALWAYS), entries(AskLevel.AFTER_OUTSIDE)


def files_of(table: list[StartupFile]) -> Iterator[tuple[StartupFile, str]]:
    """Yield each file of these entries, with its entry."""
    return ((entry, path) for entry in table for path in examples(entry))


def allows(pattern: Pattern | None = None, answers: tuple[str, ...] = ()) -> Rule:
    return Rule(effect=RuleEffect.ALLOW, tool="*", pattern=pattern, answers=answers)


FOLDER = allows(PathPattern(prefix=WORK))
SETTINGS: dict[str, tuple[Mode, tuple[Rule, ...]]] = {
    "default": (DEFAULT_MODE, ()),
    "accept edits": (ACCEPT_EDITS_MODE, ()),
    "rule for the folder": (DEFAULT_MODE, (FOLDER,)),
    "rule for the tool": (DEFAULT_MODE, (allows(),)),
    "all of it": (ACCEPT_EDITS_MODE, (FOLDER, allows())),
}


def calls(make_open_tool: MakeTool, path: str) -> Iterator[CallFacts]:
    """Yield a call of each file tool that has the file among its subjects."""
    file, other = PathSubject(f"{WORK}/{path}"), PathSubject(f"{WORK}/other.txt")
    for name in ("write_file", "edit_file", "delete_file"):
        yield CallFacts(make_open_tool([Effect.WRITE], name), "d", (file,))
    for pair in ((other, file), (file, other)):
        yield CallFacts(make_open_tool([Effect.WRITE], "move_file"), "d", pair)


def verdict(case: CallFacts, setting: str, suspension: Suspension = NOTHING_SUSPENDED) -> Verdict:
    mode, rules = SETTINGS[setting]
    return decide(case, rules, mode, suspension=suspension, protected=GROUNDS)


def test_what_runs_by_itself_is_always_asked_about(make_open_tool: MakeTool) -> None:
    for (entry, path), setting, suspension in product(files_of(ALWAYS), SETTINGS, (NOTHING_SUSPENDED, TAINTED)):
        for case in calls(make_open_tool, path):
            question = verdict(case, setting, suspension)
            assert isinstance(question, Ask), (path, setting, suspension, case.tool.name)
            assert entry.sentence(path) in question.reasons, (path, setting, suspension, case.tool.name)


def test_plan_mode_denies_it_and_nobody_is_kept_from_reading(make_open_tool: MakeTool) -> None:
    reading = make_open_tool([Effect.READ], "read_file", tool_class=ToolClass.READ_ONLY)
    for _, path in files_of(ALWAYS):
        for case in calls(make_open_tool, path):
            assert isinstance(decide(case, (), PLAN_MODE, protected=GROUNDS), Denied), path
        looked = decide(CallFacts(reading, "d", (PathSubject(f"{WORK}/{path}"),)), (), PLAN_MODE, protected=GROUNDS)
        assert isinstance(looked, Allowed), path


def test_what_the_next_build_runs_is_asked_about_after_content_from_outside(make_open_tool: MakeTool) -> None:
    for (entry, path), setting in product(files_of(AFTER_OUTSIDE), SETTINGS):
        for case in calls(make_open_tool, path):
            mode, rules = SETTINGS[setting]
            clean = verdict(case, setting)
            # Trusted or not: a person who trusts a site has not read what it makes the next build do.
            after_content = decide(case, rules, mode, protected=replace(GROUNDS, has_untrusted_content=True))
            assert isinstance(clean, Ask if setting == "default" else Allowed), (path, setting)
            assert isinstance(after_content, Ask), (path, setting)
            assert after_content.reasons == (entry.sentence(path),), (path, setting)


def test_ordinary_files_are_worked_on_after_content_from_outside(make_open_tool: MakeTool) -> None:
    for path in ("src/main.py", "README.md", "notes/deploy.sh"):
        for case in calls(make_open_tool, path):
            assert isinstance(verdict(case, "accept edits", TAINTED), Allowed)


def ask_about(make_open_tool: MakeTool, path: str = ".vscode/tasks.json") -> tuple[CallFacts, Ask]:
    case = CallFacts(make_open_tool([Effect.WRITE], "write_file"), "d", (PathSubject(f"{WORK}/{path}"),))
    question = verdict(case, "accept edits")
    assert isinstance(question, Ask)
    return case, question


def test_who_allowed_these_very_arguments_is_not_asked_again(make_open_tool: MakeTool) -> None:
    case, _ = ask_about(make_open_tool)
    rule = allows(ArgumentsPattern(digest="d"))
    assert isinstance(decide(case, (rule,), DEFAULT_MODE, protected=GROUNDS), Allowed)


def test_a_rule_made_in_sight_of_the_sentence_is_for_that_file(make_open_tool: MakeTool) -> None:
    case, question = ask_about(make_open_tool)
    other, _ = ask_about(make_open_tool, ".vscode/settings.json")
    both_files = CallFacts(case.tool, "d", (*(case.subjects or ()), *(other.subjects or ())))
    for pattern in (None, PathPattern(prefix=f"{WORK}/.vscode")):
        rule = allows(pattern, answers=question.rules)
        assert isinstance(decide(case, (rule,), DEFAULT_MODE, protected=GROUNDS), Allowed)
        assert isinstance(decide(other, (rule,), DEFAULT_MODE, protected=GROUNDS), Ask)
        assert isinstance(decide(both_files, (rule,), DEFAULT_MODE, protected=GROUNDS), Ask)


def test_an_answer_to_the_sentence_allows_no_more_than_its_rule(make_open_tool: MakeTool) -> None:
    case, question = ask_about(make_open_tool)
    rule = allows(PathPattern(prefix=f"{WORK}/src"), answers=question.rules)
    assert isinstance(decide(case, (rule,), ACCEPT_EDITS_MODE, protected=GROUNDS), Ask)


def test_a_workspace_in_such_a_folder_is_worked_in(make_open_tool: MakeTool) -> None:
    work = "/home/me/.claude/worktrees/fix"
    tool = make_open_tool([Effect.WRITE], "write_file")
    for path, expected in (("main.py", Allowed), (".envrc", Ask)):
        case = CallFacts(tool, "d", (PathSubject(f"{work}/{path}"),))
        assert isinstance(decide(case, (), ACCEPT_EDITS_MODE, protected=ProtectedPaths(workspace=work)), expected)


def test_a_startup_file_outside_of_the_workspace_is_named_whole(make_open_tool: MakeTool) -> None:
    case = CallFacts(make_open_tool([Effect.WRITE]), "d", (PathSubject("/srv/app/.envrc"),))
    outcome = decide(case, (), ACCEPT_EDITS_MODE, protected=GROUNDS)
    assert isinstance(outcome, Ask)
    assert "“/srv/app/.envrc”" in outcome.reason


COMMANDS = ("cp", "mv", "tee", "sed", "ln", "git", "cat", "make", "install", "python3", "sort")
RULES = tuple(allows(CommandPattern(words=(word,), folder=None)) for word in COMMANDS)


def line(make_open_tool: MakeTool, text: str, folder: str = ".") -> Verdict:
    tool = make_open_tool([Effect.READ, Effect.WRITE, Effect.EXECUTE], "run_command")
    case = CallFacts(tool, "d", (CommandSubject(text, folder),))
    return decide(case, RULES, ACCEPT_EDITS_MODE, protected=GROUNDS)


def test_a_line_that_names_it_is_asked_about(make_open_tool: MakeTool) -> None:
    for entry, path in files_of([item for item in ALWAYS if not item.is_built]):
        if "$" in path:
            continue  # an expansion in a line; what it names is not that file
        for text in (f"cp a {path}", f"mv a {path}", f"tee {path}", f"install a {path}", f"ln -s a ./{path}"):
            outcome = line(make_open_tool, text)
            assert isinstance(outcome, Ask), text
            assert entry.sentence(path) in outcome.reasons, text
        outcome = line(make_open_tool, f"cat a > {path}")
        assert isinstance(outcome, Ask)
        assert entry.sentence(path) in outcome.reasons


@pytest.mark.parametrize("text", [".venv/bin/python -m pytest", "python3 -m venv .venv", "cat a > app.desktop"])
def test_a_line_may_name_what_builds_make(text: str, make_open_tool: MakeTool) -> None:
    outcome = line(make_open_tool, text)
    # It may be asked about only because no rule allows it.
    assert isinstance(outcome, Allowed) or (isinstance(outcome, Ask) and outcome.reasons == ())


WRITES_OR_MAY = ["sed -i s/a/b/ .envrc", "make .envrc", "cat .envrc && make x", "cp a ./.envrc"]
WRITES_OR_MAY += ["sed -n 'w .envrc' a", "sort -o .envrc a", "sed -n; cat .envrc"]
MOVES = ["mv conf .husky", "mv conf .vscode"]
ONLY_LOOKS = ["cat .envrc", "sed -n 1,20p .envrc", "git add .github/workflows/ci.yml", "cp a b"]
ONLY_LOOKS += ["git diff .envrc && cat .vscode/tasks.json"]


@pytest.mark.parametrize("text", [*WRITES_OR_MAY, *MOVES])
def test_a_line_that_may_write_it(text: str, make_open_tool: MakeTool) -> None:
    outcome = line(make_open_tool, text)
    assert isinstance(outcome, Ask)
    assert "without any confinement" in outcome.reason


@pytest.mark.parametrize("text", ONLY_LOOKS)
def test_a_line_that_only_looks_at_it(text: str, make_open_tool: MakeTool) -> None:
    assert isinstance(line(make_open_tool, text), Allowed)


def test_a_line_in_the_folder_of_such_a_file(make_open_tool: MakeTool) -> None:
    outcome = line(make_open_tool, "cp a tasks.json", ".vscode")
    assert isinstance(outcome, Ask)
    assert "“.vscode/tasks.json”" in outcome.reason
