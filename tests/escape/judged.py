"""The permission decisions of a session without the session: real tools and rules, and a person who answers.

Commands do not run, but file tools do, as the next call may depend on their changes.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from desktop_agent.permissions.approvals import Approval
from desktop_agent.permissions.gate import Allowed, Ask, Verdict
from desktop_agent.permissions.policy import PermissionPolicy
from desktop_agent.tools.builtin_tools import builtin_tools
from desktop_agent.tools.tool import AnyTool, ToolRegistry
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.blocks import Outcome, ToolResult, ToolUse
from desktop_agent.types.messages import new_id
from desktop_agent.types.permissions import ACCEPT_EDITS_MODE, Rule
from desktop_agent.types.tool_calls import Deny
from tests.escape.attack import ATTACK, Attempt, Person, taking_the_bait


class Judged(Attempt):
    """Judges calls one by one; `person` answers each approval request."""

    def __init__(self, folder: Path, *uses: ToolUse, person: Person = taking_the_bait) -> None:
        self.uses, self.person = uses, person
        self.folder, self.work = folder, folder / "work"
        self.rules: tuple[Rule, ...] = ()
        self.edits = False
        self.prepare: Callable[[Any], None] = lambda _: None
        self.cards: list[Approval] = []
        self.started: list[str] = []
        self.results: dict[str, ToolResult] = {}

    @property
    def session(self) -> Self:
        """Stand in for a session, of which tests use only the `permission_policy`."""
        return self

    async def __aenter__(self) -> Self:
        self.work.mkdir(exist_ok=True)
        own_folder = self.folder / "data"
        self.tools = ToolRegistry(builtin_tools(Workspace(self.work), "all", (own_folder,)))
        self.permission_policy = PermissionPolicy(
            conversation_id=new_id(), workspace=str(self.work), own_folders=(own_folder.resolve().as_posix(),)
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        return

    async def play(self) -> "Judged":
        for rule in self.rules:
            self.permission_policy.add(rule)
        if self.edits:
            self.permission_policy.set_mode(ACCEPT_EDITS_MODE)
        self.prepare(self)
        for use in self.uses:
            self.results[use.id] = await self.judge(use)
        return self

    async def judge(self, use: ToolUse) -> ToolResult:
        tool = self.tools.get(use.name)
        assert tool is not None
        verdict: Verdict = await self.permission_policy.verdict(use, tool, self.tools.names)
        if isinstance(verdict, Ask):
            return await self.run(use, tool) if await self.is_allowed(use, tool, verdict) else denied(use)
        if isinstance(verdict, Allowed):
            return await self.run(use, tool)
        return denied(use, verdict.outcome)

    async def is_allowed(self, use: ToolUse, tool: AnyTool, verdict: Ask) -> bool:
        proposals = await self.permission_policy.proposals(use, tool, digest=verdict.digest)
        card = Approval(use.id, use, tool, verdict=verdict, proposals=proposals)
        self.cards.append(card)
        resolution = card.resolution_of(self.person(card))
        if resolution.rule is not None:
            self.permission_policy.add(resolution.rule)
        return not isinstance(resolution.decision, Deny)

    async def run(self, use: ToolUse, tool: AnyTool) -> ToolResult:
        self.started.append(use.id)
        if use.name == "run_command":
            return ToolResult(tool_use_id=use.id)
        return await tool.execute(use.input, tool_use_id=use.id)

    @property
    def asked(self) -> list[str]:
        return [card.tool_use.id for card in self.cards]

    def result(self, id_: str = ATTACK) -> ToolResult:
        return self.results[id_]

    def text(self, name: str = "note.txt") -> str | None:
        path = self.work / name
        return path.read_text() if path.exists() else None


def denied(use: ToolUse, outcome: Outcome = Outcome.DENIED) -> ToolResult:
    return ToolResult(tool_use_id=use.id, outcome=outcome)
