"""A session under attack: a scripted model calls tools, and a person allows only the call that is the bait."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.engine.session import Session
from desktop_agent.permissions.approvals import Approval
from desktop_agent.types.blocks import Outcome, ToolResult, ToolUse
from desktop_agent.types.engine_events import ApprovalRequested, ToolStarted
from desktop_agent.types.messages import Message
from desktop_agent.types.permissions import ACCEPT_EDITS_MODE, ArgumentsPattern, Pattern, Rule, RuleEffect, RuleScope
from desktop_agent.types.tool_calls import AllowAlways, Decision, Deny
from tests.desktop_agent.engine.test_taking_back import Office
from tests.fakes.scripted_provider import Turn
from tests.fakes.session import LIMIT, results_of

BAIT = "bait"
ATTACK = "attack"
Person = Callable[[Approval], Decision]
Attempting = Callable[..., Any]
"""The class that plays an attack; see the fixture `attempt` in tests/escape/conftest.py."""


def run(line: str, id_: str = ATTACK, **more: Any) -> ToolUse:
    return ToolUse(id=id_, name="run_command", input={"command": line, **more})


def write(path: str, text: str = "mine now", id_: str = ATTACK) -> ToolUse:
    return ToolUse(id=id_, name="write_file", input={"path": path, "content": text})


def fetch(url: str, id_: str = ATTACK) -> ToolUse:
    return ToolUse(id=id_, name="fetch_page", input={"url": url})


def allows(tool: str, pattern: Pattern | None = None, effect: RuleEffect = RuleEffect.ALLOW) -> Rule:
    return Rule(effect=effect, tool=tool, pattern=pattern, scope=RuleScope.ALWAYS)


def taking_the_bait(approval: Approval) -> Decision:
    """Always allow the bait, by the narrowest rule that is offered; deny everything else."""
    return AllowAlways(rule_id=approval.proposals[0].id) if approval.tool_use.id.startswith(BAIT) else Deny()


class Attempt:
    """An attack that was played, with its outcome."""

    asked: Sequence[str]
    started: Sequence[str]
    result: Callable[[], ToolResult]

    def assert_held_back(self) -> None:
        """Assert that a person was asked and the call never started."""
        assert ATTACK in self.asked
        assert ATTACK not in self.started
        assert self.result().outcome is Outcome.DENIED

    def assert_refused(self) -> None:
        """Assert that the call failed or was denied without asking a person, so that nobody could allow it."""
        assert ATTACK not in self.asked
        assert self.result().outcome in {Outcome.DENIED, Outcome.FAILED}


class Trial(Office, Attempt):
    """Plays calls one by one through a whole session; `person` answers each approval request."""

    def __init__(self, folder: Path, *uses: ToolUse, person: Person = taking_the_bait) -> None:
        super().__init__(folder, *(Turn(use) for use in uses), Turn())
        self.person = person
        self.cards: list[Approval] = []
        self.rules: tuple[Rule, ...] = ()
        self.edits = False
        self.patience: float = LIMIT
        self.prepare: Callable[[Session], None] = lambda _: None

    async def play(self) -> "Trial":
        self.session = session = self.new_session()
        for rule in self.rules:
            session.permission_policy.add(rule)
        if self.edits:
            session.permission_policy.set_mode(ACCEPT_EDITS_MODE)
        self.prepare(session)
        await self.see_through(session)
        return self

    async def see_through(self, session: Session) -> None:
        session.send(Message.user("go"))
        idle = asyncio.create_task(session.wait_idle())
        async with asyncio.timeout(self.patience):
            while not idle.done():
                for card in session.approvals.open_approvals:
                    self.cards.append(card)
                    session.approvals.answer(card.approval_id, self.person(card))
                await asyncio.wait([idle], timeout=0.005)
        await idle

    @property
    def asked(self) -> list[str]:
        return [event.tool_use_id for event in self.of(ApprovalRequested)]

    @property
    def started(self) -> list[str]:
        return [event.id for event in self.of(ToolStarted)]

    def result(self, id_: str = ATTACK) -> ToolResult:
        return results_of(self.session.history)[id_]


def one_end_to_end(attacks: Iterable[Any]) -> list[Any]:
    """Mark the first of these attacks to be played through a whole session on every push."""
    first, *rest = [attack if isinstance(attack, tuple) else (attack,) for attack in attacks]
    return [pytest.param(*first, marks=pytest.mark.end_to_end), *(pytest.param(*attack) for attack in rest)]


def is_for_more_than_this(rule: Rule) -> bool:
    return not isinstance(rule.pattern, ArgumentsPattern)
