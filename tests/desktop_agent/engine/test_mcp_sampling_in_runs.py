"""A model answers a server in the middle of a run: the run counts it, and the server's own tools are its own."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from desktop_agent.conversation.history import ConversationUsage
from desktop_agent.engine.engine import Engine
from desktop_agent.engine.session import Session
from desktop_agent.types.blocks import Text, ToolResult, ToolUse
from desktop_agent.types.engine_events import CostUpdated, RunEnd, RunFinished
from desktop_agent.types.mcp import McpServer, SamplingAnswer, ServerCall, StdioConnection
from desktop_agent.types.messages import Message
from desktop_agent.types.policies import Limits, Specialist
from desktop_agent.types.preferences import UsagePreferences
from desktop_agent.types.provider_events import ContentDelta, Usage, UsageUpdate
from desktop_agent.types.tool_calls import AllowOnce, ToolSpec
from tests.desktop_agent.engine.test_mcp_sampling import Person
from tests.desktop_agent.engine.test_mcp_servers import engine_with, own
from tests.fakes.mcp_client import until
from tests.fakes.scripted_provider import Turn
from tests.frame.patience import PATIENCE

SERVER = str(Path(__file__).parents[1] / "mcp" / "raw_server.py")


def used(cost: float) -> UsageUpdate:
    return UsageUpdate(Usage(input_tokens=10, output_tokens=5, cost=cost))


def raw(*words: str) -> McpServer:
    connection = StdioConnection(command=sys.executable, args=("-B", SERVER, *words))
    return McpServer(id="raw", title="Raw", connection=connection)


class Run:
    """One prompt, whose only call is allowed; and what became of it."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.events: list[object] = []
        self.spending = ConversationUsage(lambda: session.history)
        session.subscribe(on_event=self._take)

    def _take(self, envelope) -> None:
        self.events.append(envelope.event)
        self.spending.take(envelope.event)

    async def to_its_end(self) -> None:
        self.session.send(Message.user("Go."))
        await until(lambda: bool(self.session.approvals.open_approvals))
        self.session.approvals.answer(self.session.approvals.open_approvals[0].approval_id, AllowOnce())
        await self.session.wait_idle()

    @property
    def result(self) -> str:
        blocks = [block for message in self.session.history for block in message.blocks]
        (tool_result,) = [block for block in blocks if isinstance(block, ToolResult)]
        return "".join(part.text for part in tool_result.content if isinstance(part, Text))

    @property
    def costs(self) -> list[float]:
        return [event.cost for event in self.events if isinstance(event, CostUpdated)]


@asynccontextmanager
async def running(
    folder: Path,
    person: Person,
    *turns: Turn,
    words: tuple[str, ...],
    model: str | None = None,
    workspace: str | None = None,
    in_memory: bool = False,
) -> AsyncIterator[tuple[Engine, Run]]:
    turn = Turn(ToolUse(id="1", name="raw__t0", input={}), used(1.0))
    async with engine_with(folder / "data", raw(*words), turns=(turn, *turns)) as engine:
        engine.consent_handlers = person.people
        yield engine, Run(engine.new_session(model=model, workspace=workspace, in_memory=in_memory))


async def test_what_a_model_costs_that_answers_a_server_counts_in_the_run(tmp_path):
    blue, done = Turn(ContentDelta("Blue."), used(0.5)), Turn(ContentDelta("It is blue."), used(0.25))
    async with running(tmp_path, Person(), blue, done, words=("samples",)) as (_, run):
        await run.to_its_end()
        assert "Blue." in run.result
        assert run.costs == [1.0, 1.5, 1.75]
        assert run.spending.total.cost == 1.75
        assert run.spending.is_complete


async def test_an_answer_that_the_person_keeps_was_paid_for_all_the_same(tmp_path):
    blue, done = Turn(ContentDelta("Blue."), used(0.5)), Turn(ContentDelta("Well."), used(0.25))
    async with running(tmp_path, Person(to_send=False), blue, done, words=("samples",)) as (_, run):
        await run.to_its_end()
        assert "did not agree" in run.result
        assert run.spending.total.cost == 1.75


async def test_the_limit_of_a_run_holds_for_it_too(tmp_path):
    blue = Turn(ContentDelta("Blue."), used(0.5))
    async with running(tmp_path, Person(), blue, words=("samples",)) as (engine, _):
        make_setup = engine._setup
        engine._setup = lambda store: replace(make_setup(store), limits=lambda: Limits(cost=1.4))
        run = Run(engine.new_session())
        await run.to_its_end()
        assert "Blue." in run.result
        assert [event.reason for event in run.events if isinstance(event, RunFinished)] == [RunEnd.LIMIT]


async def test_a_model_asks_for_tools_of_the_server_which_runs_them_itself(tmp_path):
    person = Person()
    look = Turn(ContentDelta("I look."), ToolUse(id="x", name="look", input={"of": "sky"}), used(0.5))
    blue, done = Turn(ContentDelta("Blue."), used(0.5)), Turn(ContentDelta("It is blue."), used(0.25))
    async with running(tmp_path, person, look, blue, done, words=("samples", "tools")) as (engine, run):
        await run.to_its_end()
        provider = engine.connections._providers["scripted"]
        assert '"stopReason": "endTurn"' in run.result
        assert "Blue." in run.result
        schema = {"type": "object", "properties": {"of": {"type": "string"}}}
        tools = (ToolSpec("look", "Looks at a thing.", schema),)
        assert [request.tools for request in person.requests] == [tools, tools]
        call = ToolUse(id="x", name="look", input={"of": "sky"})
        assert person.answers[0].calls == (call,)
        assert person.answers[1] == SamplingAnswer("Blue.", "m", person.answers[1].usage)
        # All that the server says came of it is shown to the person before a model reads it.
        assert person.requests[1].messages == (
            ("user", "Name a colour."),
            ("assistant", "I look."),
            ("assistant", call),
            ("user", ToolResult(tool_use_id="x", content=(Text(text="It is blue."),))),
        )
        # No tool of ours is offered to that model, and none of the server's ran as a call of this conversation.
        assert [[tool.name for tool in request.tools] for request in provider.requests[1:3]] == [["look"], ["look"]]
        assert run.costs == [1.0, 1.5, 2.0, 2.25]


async def test_a_server_of_the_newest_protocol_may_offer_tools_to_a_model_too(tmp_path):
    person = Person()
    turns = (
        Turn(ToolUse(id="1", name="own__colour", input={}), used(1.0)),
        Turn(ToolUse(id="x", name="look", input={}), used(0.5)),
        Turn(ContentDelta("Well.")),
    )
    async with engine_with(tmp_path / "data", own("samples"), turns=turns) as engine:
        engine.consent_handlers = person.people
        run = Run(engine.new_session())
        await run.to_its_end()
        assert engine.mcp.state("own", None).protocol == "2026-07-28"
        assert run.result == "toolUse: tool_use"
        assert [tool.name for tool in person.requests[0].tools] == ["look"]
        assert run.costs[:2] == [1.0, 1.5]


async def test_a_server_asks_for_the_conversation_of_the_run(tmp_path):
    person, blue, done = Person(), Turn(ContentDelta("Blue.")), Turn(ContentDelta("It is blue."))
    async with running(tmp_path, person, blue, done, words=("samples",)) as (_, run):
        await run.to_its_end()
        assert [request.conversation_id for request in person.requests] == [run.session.record.id]


async def test_a_specialist_s_call_is_one_of_the_conversation_above_it(tmp_path):
    person = Person()
    scout = Specialist(name="scout", description="d", system_prompt="s", tools=("raw__t0",))
    turns = (
        Turn(ToolUse(id="1", name="scout", input={"task": "Look."})),
        Turn(ToolUse(id="2", name="raw__t0", input={})),
        Turn(ContentDelta("Blue.")),
        Turn(ContentDelta("It is blue.")),
        Turn(ContentDelta("Well.")),
    )
    async with engine_with(tmp_path / "data", raw("samples"), turns=turns) as engine:
        engine.consent_handlers = person.people
        make_setup = engine._setup
        engine._setup = lambda store: replace(make_setup(store), specialists=lambda: (scout,))
        run = Run(engine.new_session())
        await run.to_its_end()
        assert [request.conversation_id for request in person.requests] == [run.session.record.id]


async def test_the_model_of_the_conversation_answers_a_server(tmp_path):
    person, blue, done = Person(), Turn(ContentDelta("Blue.")), Turn(ContentDelta("It is blue."))
    async with running(tmp_path, person, blue, done, words=("samples",), model="other") as (engine, run):
        assert engine.preferences.providers.model == "m"
        await run.to_its_end()
        assert [request.model for request in engine.connections._providers["scripted"].requests] == ["other"] * 3
        assert [request.answering_model.model for request in person.requests] == ["other"]
        assert [answer.model for answer in person.answers] == ["other"]


@pytest.mark.parametrize("in_memory", [False, True], ids=["stored", "in memory"])
async def test_what_it_used_counts_for_the_folder_of_the_conversation(tmp_path, in_memory):
    (tmp_path / "work").mkdir()
    folder, blue, done = str(tmp_path / "work"), Turn(ContentDelta("Blue."), used(0.5)), Turn(ContentDelta("Well."))
    async with running(tmp_path, Person(), blue, done, words=("samples",), workspace=folder, in_memory=in_memory) as (
        engine,
        run,
    ):
        await run.to_its_end()
        (row,) = (await engine.spending.report("project")).rows
        assert (row.key, row.figures.cost) == ("" if in_memory else folder, 1.5)


@pytest.mark.parametrize("goes_on", [False, True])
async def test_a_conversation_that_may_exceed_the_budget_may_so_for_a_server_too(tmp_path, goes_on):
    person = Person()
    turns = (Turn(ContentDelta("Blue."), used(0.5)), Turn(ContentDelta("It is blue."))) if goes_on else ()
    async with running(tmp_path, person, *turns, words=("samples",)) as (engine, run):
        budget = engine.preferences.model_copy(update={"usage": UsagePreferences(cost_per_day=0.9)})
        await engine.change_preferences(budget)
        if goes_on:
            engine.spending.override_budget(run.session.record.id)
        await run.to_its_end()
        assert [answer.text for answer in person.answers] == (["Blue."] if goes_on else [])
        # Nobody is asked about what could not be sent.
        assert len(person.requests) == int(goes_on)
        assert ("Blue." in run.result) is goes_on


async def test_the_default_model_answers_where_the_conversation_is_not_known(tmp_path):
    turns = (Turn(ContentDelta("Blue.")), Turn(ContentDelta("Blue.")))
    async with engine_with(tmp_path / "data", raw("samples"), turns=turns) as engine:
        engine.consent_handlers = Person().people
        await engine.mcp.ready(None, PATIENCE)
        for conversation_id in (None, "gone"):
            await engine.mcp.server("raw", None).call("t0", {}, server_call=ServerCall(conversation_id))
        provider = engine.connections._providers["scripted"]
        assert [request.model for request in provider.requests] == ["m", "m"]
