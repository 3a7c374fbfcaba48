"""Resources, prompts and completions for the composer; lists in pages; servers that say odd things."""

import sys
from pathlib import Path

import pytest

from desktop_agent.engine import mcp_server_instances
from desktop_agent.mcp.catalog import load_catalog
from desktop_agent.tools.tool import RunningCall
from desktop_agent.types.blocks import Image, Text
from desktop_agent.types.errors import AgentError, Overloaded, ToolFailed
from desktop_agent.types.mcp import (
    ElicitationAnswer,
    ElicitationRequest,
    McpServer,
    McpServerCatalog,
    SamplingAnswer,
    SamplingRequest,
    ServerRequestHandlers,
    StdioConnection,
    UsageListener,
)
from tests.fakes.mcp_client import until
from tests.fakes.mcp_servers import Stand, own, stand

RAW = Path(__file__).parents[1] / "mcp/raw_server.py"


def raw(*words: str, server_id: str = "raw") -> McpServer:
    connection = StdioConnection(command=sys.executable, args=("-S", "-B", str(RAW), *words))
    return McpServer(id=server_id, title="Raw", connection=connection)


def times_asked(setup: Stand, method: str) -> int:
    return sum(line.text.startswith(f"{method} ") for line in setup.servers.log("raw", None))


async def catalog_of(setup: Stand, server_id: str) -> McpServerCatalog:
    live = setup.servers.server(server_id, None)
    assert live is not None
    return await load_catalog(live)


async def test_what_servers_offer_beside_tools_is_cleaned_and_bounded(tmp_path):
    broken = McpServer(id="broken", title="Broken", connection=StdioConnection(command="/nowhere/program"))
    async with stand(tmp_path, broken, raw()) as setup:
        contents = await catalog_of(setup, "raw")
        assert (contents.server_id, contents.title) == ("raw", "Raw")
        text, picture = contents.resources
        assert (text.uri, text.name, text.size, text.media_type) == ("x://text", "te�xt", 5, "text/plain")
        assert len(text.description) < 2_100
        assert (picture.uri, picture.size) == ("x://picture", None)
        assert [template.uri_template for template in contents.templates] == ["x://{name}"]
        (greet,) = contents.prompts
        assert (greet.name, greet.title) == ("greet", "Greet")
        assert [(argument.name, argument.required) for argument in greet.arguments] == [("a", True), ("b", False)]
        with pytest.raises(AgentError):
            await catalog_of(setup, "broken")
        assert setup.servers.state("broken", None).state == "failed"


async def test_resources_come_as_text_and_pictures(tmp_path):
    async with stand(tmp_path, raw()) as setup:
        (text,) = await setup.servers.read_resource("raw", None, "x://text")
        assert isinstance(text, Text)
        assert text.text.endswith("hello")
        (picture,) = await setup.servers.read_resource("raw", None, "x://picture")
        assert isinstance(picture, Image)
        assert picture.name == "picture"
        odd = await setup.servers.read_resource("raw", None, "x://odd")
        assert len(odd) == 1_001
        assert "application/x-odd" in str(odd[0])
        assert "4,000 more parts" in str(odd[-1])
        with pytest.raises(ToolFailed, match="no server"):
            await setup.servers.read_resource("nobody", None, "x://text")


async def test_a_prompt_comes_with_all_its_blocks_in_order(tmp_path):
    async with stand(tmp_path, raw()) as setup:
        first, picture, sound, link = await setup.servers.get_prompt("raw", None, "greet", {"a": "1"})
        assert first == Text(text="first")
        assert isinstance(picture, Image)
        assert "audio" in str(sound)
        assert "x://text" in str(link)


async def test_completions_are_asked_of_prompts_and_templates(tmp_path):
    async with stand(tmp_path, raw(), own()) as setup:
        of_prompt = await setup.servers.complete("raw", None, "greet", "a", "x")
        assert of_prompt[:2] == ("ref/prompt", "xs")
        assert len(of_prompt) == 100
        assert (await setup.servers.complete("raw", None, "x://{name}", "name", ""))[0] == "ref/resource"
        # One that completes nothing is not asked.
        assert await setup.servers.complete("own", None, "greet", "a", "x") == ()


@pytest.mark.parametrize(("words", "completed"), [((), ["b=2"]), (("old",), [])])
async def test_what_is_filled_in_already_is_told_where_the_protocol_has_a_place_for_it(words, completed, tmp_path):
    async with stand(tmp_path, raw(*words)) as setup:
        values = await setup.servers.complete("raw", None, "greet", "a", "x", {"a": "x", "b": "2", "c": ""})
        assert [value for value in values if "=" in value] == completed


async def test_tools_in_several_pages_are_all_there(tmp_path):
    async with stand(tmp_path, raw()) as setup:
        state = await setup.servers.test("raw", None)
        assert [tool.name for tool in state.tools] == [f"t{number}" for number in range(120)]
        assert times_asked(setup, "tools/list") == 4


@pytest.mark.parametrize(("words", "most"), [("same-cursor", 50), ("empty-pages", 50), ("long-cursor", 50)])
async def test_pages_without_end_are_given_up(words, most, tmp_path):
    async with stand(tmp_path, raw(words)) as setup:
        state = await setup.servers.test("raw", None)
        assert state.state in ("running", "failed")
        assert len(state.tools) <= 1
        assert 1 <= times_asked(setup, "tools/list") <= most
        assert any("too long" in line.text for line in setup.servers.log("raw", None)) or state.state == "failed"


async def test_one_that_says_without_end_that_its_tools_are_others_is_asked_now_and_then(tmp_path, monkeypatch):
    monkeypatch.setattr(mcp_server_instances, "_FIRST_REFRESH_PAUSE", 3_600.0)
    async with stand(tmp_path, raw("floods")) as setup:
        state = await setup.servers.test("raw", None)
        assert (state.state, len(state.tools)) == ("running", 120)
        live = setup.servers.server("raw", None)
        assert live is not None
        await until(lambda: live.lifecycle.is_stale)
        assert "x" in str(await live.get_prompt("greet", {}))
        # Its four pages, once; eight thousand times it said that there is something else.
        assert times_asked(setup, "tools/list") == 4
    assert setup.servers.notices == []


async def test_content_of_an_unknown_kind_ends_neither_the_call_badly_nor_the_server(tmp_path):
    async with stand(tmp_path, raw()) as setup:
        await setup.servers.test("raw", None)
        tool = setup.servers.tools(None)[0]
        odd, text = await tool.run({}, RunningCall("call", lambda _: None))
        assert odd == Text(text="[left out: hologram, which is of no known kind]")
        assert text == Text(text="seen")
        assert setup.servers.state("raw", None).state == "running"
        live = setup.servers.server("raw", None)
        assert live is not None
        assert live.lifecycle.start_count == 1


async def test_who_answers_is_looked_for_at_each_question(tmp_path):
    async with stand(tmp_path, raw("asks")) as setup:
        await setup.servers.test("raw", None)
        live = setup.servers.server("raw", None)
        assert live is not None
        assert "decline" in str(await live.call("t0", {}))

        async def agree(request: ElicitationRequest) -> ElicitationAnswer:
            return ElicitationAnswer("accept", {"word": request.message})

        setup.people = ServerRequestHandlers(elicit=agree)
        assert "accept" in str(await live.call("t0", {}))
        assert live.lifecycle.start_count == 1


async def test_a_model_that_fails_after_the_person_agreed_is_told_to_the_person_each_time(tmp_path):
    async def busy(request: SamplingRequest, spent: UsageListener) -> SamplingAnswer:
        raise Overloaded("the model is busy")

    async with stand(tmp_path, raw("samples"), people=ServerRequestHandlers(sample=busy)) as setup:
        read: list[str] = []
        setup.servers.on_failure(lambda sentence: read.append(str(sentence)))
        await setup.servers.test("raw", None)
        live = setup.servers.server("raw", None)
        assert live is not None
        for _ in range(2):
            # The server hears nothing of the reasons.
            assert "busy" not in str(await live.call("t0", {}))
        assert len(read) == 2
        assert all("“Raw”" in text and "the model is busy" in text for text in read)
        assert str(setup.servers.notices[-1]) == read[0]


async def test_each_folder_has_a_server_of_its_own_which_is_told_that_folder_alone(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    async with stand(tmp_path, raw("roots")) as setup:
        for folder, other in ((one, two), (two, one)):
            await setup.servers.test("raw", folder)
            await until(lambda folder=folder: any("told" in line.text for line in setup.servers.log("raw", folder)))
            log_line = next(line.text for line in setup.servers.log("raw", folder) if "told" in line.text)
            assert folder.as_uri() in log_line
            assert other.as_uri() not in log_line
        assert setup.servers.server("raw", one) is not setup.servers.server("raw", two)
        assert (setup.servers.state("raw", one).state, setup.servers.state("raw", None).state) == ("running", "idle")


async def test_it_is_told_when_a_server_offers_other_prompts(tmp_path):
    async with stand(tmp_path, own("renews")) as setup:
        changes: list[str] = []
        setup.servers.on_catalog_changed(changes.append)
        contents = await catalog_of(setup, "own")
        assert [prompt.name for prompt in contents.prompts] == ["first"]
        assert changes == []
        live = setup.servers.server("own", None)
        assert live is not None
        await live.call("renew", {})
        await until(lambda: bool(changes))
        contents = await catalog_of(setup, "own")
        assert [prompt.name for prompt in contents.prompts] == ["first", "second"]


async def test_a_server_that_says_it_without_end_is_heard_once_in_a_while(tmp_path, monkeypatch):
    monkeypatch.setattr(mcp_server_instances, "_NOTIFY_INTERVAL", 3600.0)
    async with stand(tmp_path, raw("floods")) as setup:
        changes: list[str] = []
        setup.servers.on_catalog_changed(changes.append)
        await catalog_of(setup, "raw")
        await until(lambda: any("flooded" in line.text for line in setup.servers.log("raw", None)))
        assert changes == ["raw"]
        setup.servers.notifier._on_interval_over("raw")
        assert changes == ["raw", "raw"]
