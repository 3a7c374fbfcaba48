"""Servers written by others, over both transports and with both generations of the protocol."""

import asyncio
import os
import re
import signal
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from desktop_agent.engine.mcp_tools import load_tool_offer
from desktop_agent.mcp.client import McpClient
from desktop_agent.types.blocks import Image, Json, Text
from desktop_agent.types.errors import ToolFailed
from desktop_agent.types.mcp import ElicitationAnswer, ElicitationRequest, SamplingAnswer, ServerRequestHandlers
from desktop_agent.types.tool_calls import ToolClass, UntrustedSource
from tests.desktop_agent.mcp.reference_servers import node_server, python_server
from tests.fakes.mcp_client import address, called, program, until
from tests.frame.patience import PATIENCE
from tests.frame.selection import few

TRANSPORTS = ("stdio", "http")


@asynccontextmanager
async def everything(transport: str, folder: Path, **named: object) -> AsyncIterator[McpClient]:
    if transport == "stdio":
        async with program(node_server("everything", "stdio"), folder, **named) as live:
            yield live
        return
    port = free_port()
    async with (
        listening(node_server("everything", "streamableHttp"), folder, port),
        address(f"http://127.0.0.1:{port}/mcp", **named) as live,
    ):
        yield live


@asynccontextmanager
async def listening(argv: Sequence[str], folder: Path, port: int) -> AsyncIterator[None]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "PORT": str(port)}
    process = await asyncio.create_subprocess_exec(
        *argv, cwd=folder, env=environment, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    try:
        async with asyncio.timeout(PATIENCE):
            while b"listening" not in await process.stderr.readline():
                pass
        yield
    finally:
        process.kill()
        await process.communicate()


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_everything_lists_and_answers(transport, tmp_path):
    async with everything(transport, tmp_path) as live:
        offer = await load_tool_offer(live)
        names = {tool.name.partition("__")[2] for tool in offer.tools}
        assert {"echo", "get-sum", "get-tiny-image", "trigger-long-running-operation"} <= names
        echo = next(candidate for candidate in offer.tools if candidate.name.endswith("__echo"))
        assert echo.brings is not None
        assert echo.brings({}) == UntrustedSource("mcp", live.lifecycle.server.title, live.lifecycle.server.id)
        prefix = live.lifecycle.server.id
        assert await called(live, f"{prefix}__echo", {"message": "hello"}) == (Text(text="Echo: hello"),)
        text, picture, *_ = await called(live, f"{prefix}__get-tiny-image", {})
        assert isinstance(text, Text)
        assert isinstance(picture, Image)
        weather = await called(live, f"{prefix}__get-structured-content", {"location": "Chicago"})
        assert weather == (Json(value={"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82}),)


@pytest.mark.parametrize("transport", few(TRANSPORTS, 1, "test_everything_lists_and_answers goes both ways"))
async def test_progress_comes_while_it_works_and_a_cancel_leaves_it_alive(transport, tmp_path):
    async with everything(transport, tmp_path) as live:
        progress: list[str] = []
        slow = f"{live.lifecycle.server.id}__trigger-long-running-operation"
        await called(live, slow, {"duration": 0.2, "steps": 4}, progress.append)
        assert [line.strip() for line in progress] == ["1 of 4", "2 of 4", "3 of 4", "4 of 4"]
        progress.clear()
        long = asyncio.create_task(called(live, slow, {"duration": 600, "steps": 6000}, progress.append))
        await until(lambda: bool(progress))
        long.cancel()
        with pytest.raises(asyncio.CancelledError):
            await long
        assert live.lifecycle.is_running
        assert await called(live, f"{live.lifecycle.server.id}__echo", {"message": "still"}) == (
            Text(text="Echo: still"),
        )
        assert live.lifecycle.start_count == 1


@pytest.mark.parametrize("transport", few(TRANSPORTS, 1, "test_everything_lists_and_answers goes both ways"))
async def test_a_form_is_asked_of_the_person(transport, tmp_path):
    requests: list[ElicitationRequest] = []

    async def person(request: ElicitationRequest) -> ElicitationAnswer:
        requests.append(request)
        return ElicitationAnswer("accept", {"name": "Ada"})

    async with everything(transport, tmp_path, handlers=lambda: ServerRequestHandlers(elicit=person)) as live:
        parts = await called(live, f"{live.lifecycle.server.id}__trigger-elicitation-request", {})
        assert "name" in requests[0].form["properties"]
        assert requests[0].server == live.lifecycle.server.title
        assert any("Ada" in part.text for part in parts if isinstance(part, Text))


@pytest.mark.exhaustive(
    "tests/desktop_agent/engine/test_mcp_catalog.py::test_who_answers_is_looked_for_at_each_question"
)
async def test_a_form_is_declined_where_nobody_is_there(tmp_path):
    async with everything("stdio", tmp_path) as live:
        parts = await called(live, "srv__trigger-elicitation-request", {})
        assert any("declined" in part.text for part in parts if isinstance(part, Text))


@pytest.mark.exhaustive(
    "tests/desktop_agent/mcp/test_elicitation_and_sampling.py", "tests/ui/shell/mcp/test_elicitation.py"
)
async def test_a_model_answers_only_where_the_person_may_agree(tmp_path):
    async with everything("stdio", tmp_path) as live:
        assert not any("sampling" in tool.name for tool in (await load_tool_offer(live)).tools)
    prompts: list[str] = []

    async def agreed(request, spent) -> SamplingAnswer | None:
        prompts.append(request.messages[0][1])
        return SamplingAnswer("forty-two", "some-model") if len(prompts) == 1 else None

    async with everything("stdio", tmp_path, handlers=lambda: ServerRequestHandlers(sample=agreed)) as live:
        asking = {"prompt": "What is it?", "maxTokens": 10}
        parts = await called(live, "srv__trigger-sampling-request", asking)
        assert any("forty-two" in part.text for part in parts if isinstance(part, Text))
        assert "What is it?" in prompts[0]
        with pytest.raises(ToolFailed, match="did not agree"):
            await called(live, "srv__trigger-sampling-request", asking)


@pytest.mark.exhaustive("tests/desktop_agent/engine/test_mcp_catalog.py")
async def test_roots_are_the_workspace_and_resources_and_prompts_can_be_read(tmp_path):
    async with everything("stdio", tmp_path) as live:
        await load_tool_offer(live)
        await asyncio.sleep(0)
        parts = await called(live, "srv__get-roots-list", {})
        assert tmp_path.as_uri() in "".join(part.text for part in parts if isinstance(part, Text))
        resources, templates, prompts = await live.resources(), await live.resource_templates(), await live.prompts()
        assert resources
        assert templates
        assert prompts
        resource = await live.read_resource(str(resources[0].uri))
        assert resource.contents
        simple = next(prompt for prompt in prompts if not prompt.arguments)
        assert (await live.get_prompt(simple.name)).messages


@pytest.mark.exhaustive("tests/desktop_agent/mcp/test_client.py::test_one_that_dies_again_and_again_is_waited_for")
async def test_a_killed_server_is_back_at_the_next_call(tmp_path):
    async with everything("stdio", tmp_path) as live:
        slow = asyncio.create_task(called(live, "srv__trigger-long-running-operation", {"duration": 600, "steps": 2}))
        await until(lambda: live.lifecycle.is_running and live.call_count > 1)
        (pid,) = (
            process.pid
            for process in psutil.Process().children(recursive=True)
            if "server-everything" in " ".join(process.cmdline())
        )
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(ToolFailed, match="ended while it was asked"):
            await slow
        assert await called(live, "srv__echo", {"message": "back"}) == (Text(text="Echo: back"),)
        assert live.lifecycle.start_count == 2


@pytest.mark.exhaustive("tests/desktop_agent/mcp/test_http.py", "tests/desktop_agent/mcp/test_http_responses.py")
async def test_a_web_server_that_was_started_anew_is_back(tmp_path):
    argv = node_server("everything", "streamableHttp")
    port = free_port()
    async with address(f"http://127.0.0.1:{port}/mcp") as live:
        with pytest.raises(ToolFailed, match="nothing answers at"):
            await load_tool_offer(live)
        async with listening(argv, tmp_path, port):
            assert await called(live, "web__echo", {"message": "one"}) == (Text(text="Echo: one"),)
        async with listening(argv, tmp_path, port):
            with pytest.raises(ToolFailed, match="ended while it was asked"):
                await live.call("echo", {"message": "lost"})
            await until(lambda: not live.lifecycle.is_running)
            live.lifecycle.reset_backoff()
            assert await called(live, "web__echo", {"message": "two"}) == (Text(text="Echo: two"),)


@pytest.mark.exhaustive("tests/desktop_agent/mcp/test_client.py")
async def test_files_of_the_workspace_by_somebody_elses_tools(tmp_path):
    (tmp_path / "note.txt").write_text("hello", encoding="utf-8")
    async with program(node_server("filesystem", str(tmp_path)), tmp_path, trusted=True) as live:
        offer = await load_tool_offer(live)
        classes = {tool.name: tool.tool_class for tool in offer.tools}
        assert classes["srv__read_text_file"] is ToolClass.READ_ONLY
        assert classes["srv__write_file"] is ToolClass.MUTATING
        parts = await called(live, "srv__read_text_file", {"path": str(tmp_path / "note.txt")})
        assert parts[0] == Text(text="hello")
        with pytest.raises(ToolFailed, match="denied"):
            await called(live, "srv__read_text_file", {"path": "/etc/passwd"})
    async with program(node_server("filesystem", str(tmp_path)), tmp_path) as live:
        assert {tool.tool_class for tool in (await load_tool_offer(live)).tools} == {ToolClass.MUTATING}


@pytest.mark.exhaustive("tests/desktop_agent/mcp/test_client.py")
async def test_a_memory_lasts_over_a_restart(tmp_path):
    env = {"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}
    ada = {"name": "Ada", "entityType": "person", "observations": ["wrote the first program"]}
    for _ in range(2):
        async with program(node_server("memory"), tmp_path, env) as live:
            await called(live, "srv__create_entities", {"entities": [ada]})
            (graph,) = await called(live, "srv__read_graph", {})
            assert isinstance(graph, Json)
            assert [entity["name"] for entity in graph.value["entities"]] == ["Ada"]


@pytest.fixture
def repository(tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    return tmp_path


async def test_git_and_time_speak_the_newer_protocol(tmp_path, repository):
    (repository / "new.txt").write_text("x", encoding="utf-8")
    async with program(python_server("git"), tmp_path) as live:
        parts = await called(live, "srv__git_status", {"repo_path": str(tmp_path)})
        assert any("new.txt" in part.text for part in parts if isinstance(part, Text))
        assert live.lifecycle.state.protocol == "2026-07-28"
    async with program(python_server("time"), tmp_path) as live:
        parts = await called(live, "srv__get_current_time", {"timezone": "Asia/Tokyo"})
        assert re.search(r"\+09:00", str(parts))
        with pytest.raises(ToolFailed):
            await called(live, "srv__get_current_time", {"timezone": "Nowhere/AtAll"})
        assert live.lifecycle.is_running
