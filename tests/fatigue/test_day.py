"""How often a person is asked on a day of work, and that what is dangerous never passes among all the rest."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from desktop_agent.engine.session import Session
from desktop_agent.permissions.approvals import Approval
from desktop_agent.tools.builtin_tools import builtin_tools
from desktop_agent.tools.tool import ToolRegistry
from desktop_agent.tools.web.fetch_page import fetch_page
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.blocks import Outcome
from desktop_agent.types.engine_events import ToolFinished
from desktop_agent.types.permissions import CommandsPattern, PathPattern, Rule, RuleScope
from desktop_agent.types.policies import Limits, Specialist
from desktop_agent.types.tool_calls import AllowAlways, AllowForConversation, Decision, Deny
from tests.escape.attack import Trial, is_for_more_than_this
from tests.fakes.scripted_provider import Turn
from tests.fakes.web_servers import RawServer, answer, sending, way_of
from tests.fatigue.day import Step, day

REVIEWER = Specialist(
    name="reviewer", description="Reviews.", system_prompt="Review.", tools=("read_file", "search_files")
)
FILES = {
    "README.md": "# Shapes\n\nShapes.\n",
    "pyproject.toml": "[project]\nname = 'shapes'\n",
    "src/__init__.py": "",
    "src/shapes.py": "def area(w, h):\n    return w + h\n\n\n# TODO circle\n",
    "tests/test_shapes.py": "from src.shapes import area\n\ndef test_area():\n    assert area(2, 3) == 6\n\n\n# more\n",
    "docs/notes.md": "circles: to do\n",
}
# What a person is asked about once: each kind of command and of site, changing files, and whether to trust the sites.
QUESTIONS = {
    "git status": 1,
    "python3 -m pytest -q": 1,
    "src/shapes.py": 1,
    "ruff format src": 1,
    "git add src/shapes.py": 1,
    "circles": 1,
    "pi": 1,
    "ellipses": 1,
}
GIT_FOLDER = {".git/config": "[core]\n"}


def limits() -> Limits:
    return Limits(tool_iterations=200)


class Day(Trial):
    """The day, with a person who reads what is offered and grants nothing of what is dangerous.

    Their policy: of the rules that are offered, the narrowest that spares them the next question of the same kind, and
    never one that holds outside of this workspace. A beginning of a command that belongs to a bundle is granted with
    its bundle: they see each command in it. Changing a file is granted for both tools that do, anywhere in this
    workspace, because the work is all over it. All else is granted by the first rule that is offered: the narrowest.
    """

    def __init__(self, folder: Path, steps: Sequence[Step]) -> None:
        super().__init__(folder)
        self.steps = {f"{at}": step for at, step in enumerate(steps)}
        self.turns = (*self.script(), Turn())
        self.person = self.decide
        self.patience = 120

    def script(self) -> list[Turn]:
        turns: list[Turn] = []
        for id_, step in self.steps.items():
            turns.append(Turn(step.use(id_)))
            turns += [Turn(each.use(f"{id_}.{at}")) for at, each in enumerate(step.inside)]
            turns += [Turn()] if step.inside else []
        return turns

    def tools(self, *_: object) -> ToolRegistry:
        made = builtin_tools(Workspace(self.work), "all", (self.folder,))
        web = fetch_page(frozenset, way=way_of())
        return ToolRegistry(tuple(web if each.name == "fetch_page" else each for each in made))

    def begin(self, session: Session) -> None:
        setup = replace(session._runs._setup, tools_for=self.tools, specialists=lambda: (REVIEWER,), limits=limits)
        session._runs._setup = session._runs.run_factory._setup = setup

    def decide(self, card: Approval) -> Decision:
        step = self.steps[card.tool_use.id]
        if step.is_dangerous:
            return Deny()
        if "came into this conversation" in card.reason:
            # They read the pages, and trust the sites; the question is thereby answered.
            self.session.permission_policy.lift_suspension()
            return AllowForConversation()
        return AllowAlways(rule_id=self.useful(card.proposals).id)

    def useful(self, proposals: Sequence[Rule]) -> Rule:
        here = [each for each in proposals if each.scope is RuleScope.WORKSPACE]
        bundles = [each for each in here if isinstance(each.pattern, CommandsPattern)]
        whole = [each for each in here if each.also and each.pattern == PathPattern(prefix=self.work.as_posix())]
        return (*bundles, *whole, *here)[0]

    @property
    def questions(self) -> Counter[str]:
        return Counter(self.steps[id_].about for id_ in self.asked if not self.steps[id_].is_dangerous)


class ShyDay(Day):
    """The same, with a person who always takes the first rule that is offered for here: the narrowest."""

    def useful(self, proposals: Sequence[Rule]) -> Rule:
        return next(each for each in proposals if each.scope is RuleScope.WORKSPACE)


async def day_of_work(folder: Path, kind: type[Day] = Day) -> Day:
    async with RawServer(sending(answer(b"<p>Pi is three.", content_type="text/html"))) as server:
        steps = day(server.url("docs.example.org"), server.url("wiki.example.net"))
        async with kind(folder, steps) as made:
            for name, text in (FILES | GIT_FOLDER).items():
                (made.work / name).parent.mkdir(exist_ok=True)
                (made.work / name).write_text(text)
            made.prepare = made.begin
            await made.play()
            return made


def assert_nothing_dangerous_passed(lived: Day) -> None:
    dangerous = {id_ for id_, step in lived.steps.items() if step.is_dangerous}
    common = set(lived.steps) - dangerous
    assert (len(common), len(dangerous)) == (60, 30)

    ended = {each.id: each.result.outcome for each in lived.of(ToolFinished)}
    for id_ in dangerous:
        held_back = id_ in lived.asked and id_ not in lived.started
        assert held_back or ended[id_] is Outcome.FAILED, lived.steps[id_]
    # The one that nobody is asked about reads only, and finds itself outside of the workspace.
    assert [lived.steps[id_].given for id_ in dangerous - set(lived.asked)] == [{"path": "../.ssh/id_ed25519"}]

    assert common <= set(lived.started)
    assert not [rule for rule in lived.session.permission_policy.rules if rule.scope is RuleScope.ALWAYS]


async def test_sixty_calls_are_few_questions_and_nothing_dangerous_passes_unasked(tmp_path: Path) -> None:
    lived = await day_of_work(tmp_path)
    assert_nothing_dangerous_passed(lived)
    assert all(is_for_more_than_this(rule) for rule in lived.session.permission_policy.rules)
    assert lived.questions == QUESTIONS


@pytest.mark.exhaustive(
    "tests/escape/test_programs.py, where the narrowest rule is granted each time",
    "tests/desktop_agent/permissions/test_rule_proposals.py",
)
async def test_whoever_grants_only_the_narrowest_is_asked_more_often_and_no_less_safe(tmp_path: Path) -> None:
    lived = await day_of_work(tmp_path, ShyDay)
    assert_nothing_dangerous_passed(lived)
    assert lived.questions.total() == 10
