"""A permission for a server's tool is void if the tool has changed or is gone when the call would start."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from desktop_agent.engine.engine import Engine
from desktop_agent.engine.session import Session
from desktop_agent.types.blocks import Outcome, ToolResult, ToolUse
from desktop_agent.types.engine_events import ApprovalRequested, ApprovalResolved, Event, ToolStarted
from desktop_agent.types.mcp import McpServer
from desktop_agent.types.messages import Message
from desktop_agent.types.policies import Specialist
from desktop_agent.types.preferences import McpPreferences
from desktop_agent.types.tool_calls import AllowOnce, Deny, ToolClass
from tests.desktop_agent.engine.test_mcp_servers import engine_with
from tests.fakes.mcp_client import until
from tests.fakes.mcp_servers import own
from tests.fakes.scripted_provider import Turn
from tests.frame.patience import PATIENCE

TURN = "own__turn"


class Play:
    """One run with a server whose tool `turn` is defined by a file in the workspace."""

    def __init__(self, engine: Engine, work: Path) -> None:
        self.engine = engine
        self.work = work
        (work / "turn.json").write_text("{}")
        self.session: Session = engine.new_session(workspace=str(work))
        self.events: list[Event] = []
        self.session.subscribe(on_event=lambda envelope: self.events.append(envelope.event))

    async def until_asked(self) -> None:
        self.session.send(Message.user("go"))
        await until(lambda: bool(self.session.approvals.open_approvals))

    def of(self, event_type: type) -> list:
        return [event for event in self.events if isinstance(event, event_type)]

    def result(self, id_: str) -> ToolResult:
        (result,) = [
            block
            for message in self.session.history
            for block in message.blocks
            if isinstance(block, ToolResult) and block.tool_use_id == id_
        ]
        return result

    async def set_up(self, *servers: McpServer) -> None:
        preferences = self.engine.preferences
        await self.engine.change_preferences(preferences.model_copy(update={"mcp": McpPreferences(servers=servers)}))

    async def change(self, **fields: object) -> None:
        (server,) = self.engine.preferences.mcp.servers
        await self.set_up(server.model_copy(update=fields))

    async def with_tool_class_override(self, tool_class: ToolClass) -> None:
        """Let the person set the class of the tool."""
        (server,) = self.engine.preferences.mcp.servers
        listed = self.engine.mcp.state("own", self.work).tools
        (tool,) = [candidate for candidate in listed if candidate.name == "turn"]
        await self.set_up(server.with_tool_class_override("turn", tool.digest, tool_class))

    async def describe(self, **about: object) -> None:
        (self.work / "turn.json").write_text(json.dumps(about))
        server = self.engine.mcp.server("own", self.work)
        assert server is not None
        await server.call("change", {})


async def described_otherwise(play: Play) -> None:
    await play.describe(description="Sends everything away.")


async def another_schema(play: Play) -> None:
    await play.describe(inputSchema={"type": "object", "properties": {"to": {"type": "string"}}})


async def turned_off(play: Play) -> None:
    await play.change(off_tools=frozenset({"turn"}))


async def server_off(play: Play) -> None:
    await play.change(on=False)


async def server_removed(play: Play) -> None:
    await play.set_up()


async def another_program(play: Play) -> None:
    (server,) = play.engine.preferences.mcp.servers
    await play.change(connection=server.connection.model_copy(update={"env": {"EVIL": "1"}}))


CHANGES: list[Callable[[Play], Awaitable[None]]] = [
    described_otherwise,
    another_schema,
    turned_off,
    server_off,
    server_removed,
    another_program,
]


def turn(id_: str = "attack") -> ToolUse:
    return ToolUse(id=id_, name=TURN, input={})


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
async def test_a_card_whose_tool_is_not_what_it_was_is_resolved_at_once(change, tmp_path):
    (tmp_path / "work").mkdir()
    async with engine_with(tmp_path / "data", own("turns"), turns=(Turn(turn()), Turn())) as engine:
        play = Play(engine, tmp_path / "work")
        await play.until_asked()
        (card,) = play.session.approvals.open_approvals
        await change(play)
        await until(lambda: not play.session.approvals.open_approvals)
        assert not play.session.approvals.answer(card.approval_id, AllowOnce()).accepted
        await play.session.wait_idle()
        assert play.of(ToolStarted) == []
        assert play.result("attack").outcome is Outcome.DENIED
        (resolved,) = play.of(ApprovalResolved)
        assert (resolved.by, resolved.decision) == ("rule", "deny")
        assert f"“{TURN}”" in resolved.message
        assert play.result("attack").content[0].text == resolved.message


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
async def test_leave_that_was_given_just_before_is_none(change, tmp_path):
    """The person allows the call, and the tool changes before the call starts."""
    (tmp_path / "work").mkdir()
    uses = (ToolUse(id="first", name="own__add", input={"a": 1, "b": 2}), turn())
    async with engine_with(tmp_path / "data", own("turns"), turns=(Turn(*uses), Turn())) as engine:
        play = Play(engine, tmp_path / "work")
        await play.until_asked()
        first, attack = play.session.approvals.open_approvals
        play.session.approvals.answer(attack.approval_id, AllowOnce())
        identity = attack.tool.identity
        await change(play)
        await until(lambda: identity not in {tool.identity for tool in engine.mcp.tools(play.work)})
        if play.session.approvals.open_approvals:
            play.session.approvals.answer(first.approval_id, AllowOnce())
        await play.session.wait_idle()
        assert "attack" not in {event.id for event in play.of(ToolStarted)}
        assert play.result("attack").outcome in {Outcome.DENIED, Outcome.FAILED}


async def test_what_the_person_says_changes_something_is_asked_about_though_it_was_let_through(tmp_path):
    """The call was queued behind another one while its tool was still classed as read-only."""
    (tmp_path / "work").mkdir()
    uses = (ToolUse(id="first", name="own__add", input={"a": 1, "b": 2}), turn())
    async with engine_with(tmp_path / "data", own("turns"), turns=(Turn(*uses), Turn())) as engine:
        play = Play(engine, tmp_path / "work")
        await engine.mcp.test("own", play.work)
        await play.with_tool_class_override(ToolClass.READ_ONLY)
        await play.change(effects=frozenset())
        await play.until_asked()
        assert [event.tool_use_id for event in play.of(ApprovalRequested)] == ["first"]
        await play.with_tool_class_override(ToolClass.MUTATING)
        await until(lambda: len(play.session.approvals.open_approvals) == 2)
        first, attack = play.session.approvals.open_approvals
        play.session.approvals.answer(first.approval_id, AllowOnce())
        play.session.approvals.answer(attack.approval_id, Deny())
        await play.session.wait_idle()
        assert [event.id for event in play.of(ToolStarted)] == ["first"]


@pytest.mark.parametrize("change", [described_otherwise, turned_off], ids=lambda change: change.__name__)
async def test_a_specialist_has_no_tool_that_is_gone(change, tmp_path):
    (tmp_path / "work").mkdir()
    digger = Specialist(name="digger", description="Digs.", system_prompt="Dig.", tools=(TURN, "own__add"))
    turns = (Turn(ToolUse(id="d", name="digger", input={"task": "dig"})), Turn(turn()), Turn(), Turn())
    async with engine_with(tmp_path / "data", own("turns"), turns=turns) as engine:
        play = Play(engine, tmp_path / "work")
        session = play.session
        session._runs._setup = session._runs.run_factory._setup = replace(
            session._runs._setup, specialists=lambda: (digger,)
        )
        await play.until_asked()
        (card,) = session.approvals.open_approvals
        assert card.agent_path == ("digger",)
        await change(play)
        await until(lambda: not session.approvals.open_approvals)
        async with asyncio.timeout(PATIENCE):
            await session.wait_idle()
        assert "attack" not in {event.id for event in play.of(ToolStarted)}
