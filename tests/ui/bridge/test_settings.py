"""Which tools there are to choose from: all that are built in, and those of the servers that run or ran."""

import asyncio

import pytest

from desktop_agent.engine.engine import Engine
from desktop_agent.types.mcp import McpServer, StdioConnection
from desktop_agent.types.permissions import Rule, RuleEffect
from desktop_agent.types.preferences import McpPreferences, Preferences
from tests.fakes.mcp_client import own_server
from tests.fakes.qt_loop import Heard
from ui.bridge.event_loop import BackgroundTasks
from ui.bridge.permissions import rule_sentence
from ui.bridge.settings import AvailableTools, Settings


def server(**changes):
    command, *args = own_server()
    connection = StdioConnection(command=command, args=tuple(args))
    return McpServer(id="own", title="Own tools", connection=connection, **changes)


@pytest.fixture
def engine_with(tmp_path):
    """Return a function that runs `work(engine, find)`; `find` returns the tool groups. Needs no Qt loop."""

    def run(work, *servers):
        async def run_all():
            engine = await Engine.open(tmp_path / "data")
            tasks = BackgroundTasks(pytest.fail)
            try:
                await engine.change_preferences(Preferences(mcp=McpPreferences(servers=servers)))
                tools = AvailableTools(engine, tasks)
                groups = Heard(tools.found)

                async def find(conversation=None):
                    tools.find(conversation)
                    return await groups.next()

                await work(engine, find)
            finally:
                await tasks.close()
                await engine.close()

        asyncio.run(run_all())

    return run


def test_what_is_built_in_is_known_without_any_conversation(engine_with):
    async def work(_engine, find):
        (built_in,) = await find()
        tools = {tool.name: tool for tool in built_in.tools}
        assert built_in.title == ""
        assert {"calculate", "read_file", "write_file", "run_command", "fetch_page"} <= set(tools)
        assert (tools["read_file"].changes, tools["write_file"].changes) == (False, True)
        # In every folder: a mode knows no folder.
        assert tools["write_file"].identity == "write_file"

    engine_with(work)


def test_those_of_servers_stand_under_their_titles_and_are_allowed_only_as_they_are(engine_with, tmp_path):
    (tmp_path / "work").mkdir()

    async def work(engine, find):
        session = engine.new_session(workspace=str(tmp_path / "work"))
        assert [group.title for group in await find(session.record.id)] == [""]
        await engine.mcp.test("own", tmp_path / "work")
        _, own = await find(session.record.id)
        tools = {tool.name: tool for tool in own.tools}
        assert own.title == "Own tools"
        assert "own__die" not in tools
        (running,) = [tool for tool in engine.mcp.tools(tmp_path / "work") if tool.name == "own__add"]
        assert tools["own__add"].identity == running.identity
        assert running.identity != "own__add"

    engine_with(work, server(off_tools=frozenset({"die"})))


def test_a_rule_about_every_tool_says_so():
    rule = Rule(effect=RuleEffect.ASK, tool="*")
    assert str(rule_sentence(rule)) == "every tool with any arguments"
    assert str(rule_sentence(rule.model_copy(update={"tool": "fetch_page"}))) == "“Read a web page” with any arguments"


def test_steps_of_the_zoom_that_come_at_once_all_count(tmp_path):
    async def work():
        engine = await Engine.open(tmp_path / "data")
        tasks = BackgroundTasks(pytest.fail)
        try:
            settings = Settings(engine, tasks)
            changes = Heard(settings.changed)
            for _ in range(3):
                settings.zoom(1)
            assert (await changes.next()).appearance.zoom == 130
            settings.zoom(-1)
            assert (await changes.next()).appearance.zoom == 120
            settings.zoom(0)
            settings.zoom(1)
            assert (await changes.next()).appearance.zoom == 110
        finally:
            await tasks.close()
            await engine.close()

    asyncio.run(work())
