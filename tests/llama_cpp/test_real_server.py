"""A real llama.cpp answers: as it writes, until it is stopped, with calls. `make llama-server` builds it, once.

Its model is chance (`model.py`), so nothing depends on what it says, only on when, and in which shape.
"""

import asyncio
import json
import socket
import subprocess
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from desktop_agent.api.client import Client
from desktop_agent.api.provider import Provider
from desktop_agent.tools.decorator import tool
from desktop_agent.types.blocks import Outcome, Text
from desktop_agent.types.engine_events import Event, RunEnd, RunFinished, ToolFinished
from desktop_agent.types.errors import ContextLengthExceeded
from desktop_agent.types.messages import MessageState, Role
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.providers import Dialect, ProviderConfig
from tests.frame.patience import PATIENCE
from tests.llama_cpp import build

pytestmark = pytest.mark.skipif(
    not (build.server().exists() and build.model().exists()),
    reason=f"llama.cpp is not built: make llama-server, or set {build.FOLDER_VARIABLE}",
)

DIALECTS: list[Dialect] = ["openai-chat", "openai-responses", "anthropic"]
CONTEXT = 4096
LONG = 3000


class LlamaServer:
    """One that runs, with a single slot."""

    def __init__(self, port: int) -> None:
        self.root = f"http://127.0.0.1:{port}"

    def address(self, dialect: Dialect) -> str:
        return self.root if dialect == "anthropic" else f"{self.root}/v1"

    def get(self, path: str) -> Any:
        return json.loads(self._fetch(path))

    def _fetch(self, path: str) -> bytes:
        with urllib.request.urlopen(f"{self.root}{path}", timeout=PATIENCE) as answer:
            return answer.read()

    async def slot(self) -> dict[str, Any]:
        return (await asyncio.to_thread(self.get, "/slots"))[0]

    async def steps(self) -> int:
        """How many steps it has computed in its life: one for each token that it wrote."""
        lines = (await asyncio.to_thread(self._fetch, "/metrics")).decode().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("llamacpp:n_decode_total "))

    async def until_idle(self) -> None:
        """Return when it writes no more."""
        async with asyncio.timeout(PATIENCE):
            while (await self.slot())["is_processing"]:
                await asyncio.sleep(0.01)


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("llama") / "log"
    words = [
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--ctx-size",
        str(CONTEXT),
        "--parallel",
        "1",
        "--threads",
        "1",
    ]
    with log.open("wb") as out:
        process = subprocess.Popen(
            [build.server(), "--model", build.model(), *words, "--jinja", "--slots", "--metrics", "--no-warmup"],
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        try:
            server = LlamaServer(port)
            _until_ready(server, process, log)
            yield server
        finally:
            process.terminate()
            process.wait(PATIENCE)


def _until_ready(server: LlamaServer, process: "subprocess.Popen[bytes]", log: Path) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        assert process.poll() is None, log.read_text("utf-8", "replace")
        try:
            server.get("/health")
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError(log.read_text("utf-8", "replace"))


def endless(tokens: int = LONG) -> ProviderConfig:
    """It goes on until it has so many, where the dialect lets one say so."""
    return ProviderConfig(max_tokens=tokens, extra_options={"ignore_eos": True})


async def events_of(client: Client, prompt: str, each: Callable[[Event], None] = lambda _: None) -> list[Event]:
    found: list[Event] = []
    async with asyncio.timeout(PATIENCE), client.stream(prompt) as events:
        async for event in events:
            found.append(event)
            each(event)
    return found


def text_of(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, ContentDelta))


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_text_appears_while_it_is_written(llama: LlamaServer, dialect: Dialect) -> None:
    # On a loaded machine the server may have written all before this process gets its turn, but not each time.
    for _ in range(20):
        async with Client(model="m", dialect=dialect, base_url=llama.address(dialect), config=endless(600)) as client:
            events: list[Event] = []
            slot: dict[str, Any] | None = None
            async with asyncio.timeout(PATIENCE), client.stream("Hello") as stream:
                async for event in stream:
                    events.append(event)
                    if slot is None and isinstance(event, ContentDelta):
                        # The first piece is here; is the server still at work on the rest?
                        slot = await llama.slot()
            assert slot is not None
            pieces = [event for event in events if isinstance(event, ContentDelta)]
            assert len(pieces) > 10
            assert client.history[-1].text == text_of(events)
        await llama.until_idle()
        if slot["is_processing"]:
            return
    pytest.fail("the server was always ready before the first piece was heard of")


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_stop_keeps_what_came_and_the_server_stops_too(llama: LlamaServer, dialect: Dialect) -> None:
    async with Client(model="m", dialect=dialect, base_url=llama.address(dialect), config=endless()) as client:

        def stop(event: Event) -> None:
            if isinstance(event, ContentDelta):
                client.interrupt()

        before = await llama.steps()
        events = await events_of(client, "Hello", stop)
        assert events[-1] == RunFinished(RunEnd.CANCELLED)
        last = client.history[-1]
        assert (last.role, last.state) == (Role.ASSISTANT, MessageState.INTERRUPTED)
        assert last.text == text_of(events) != ""
        await llama.until_idle()
        # Had the connection stayed open, it would have written all that it may.
        assert await llama.steps() - before < LONG
        # And the conversation goes on.
        assert text_of(await events_of(client, "Again", stop)) != ""
    await llama.until_idle()


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_calls_run_and_their_results_go_back(llama: LlamaServer, dialect: Dialect) -> None:
    seen: list[str] = []

    @tool
    async def look(where: Literal["left", "right"]) -> str:
        """Look somewhere."""
        seen.append(where)
        return f"On the {where} is a boat."

    # Then the server's grammar lets it end only behind a call.
    must = {"type": "any"} if dialect == "anthropic" else "required"
    config = ProviderConfig(max_tokens=LONG, extra_options={"tool_choice": must})
    options: dict[str, Any] = {"tools": [look], "auto_execute_tools": True, "max_tool_iterations": 2, "config": config}
    async with Client(model="m", dialect=dialect, base_url=llama.address(dialect), **options) as client:
        events = await events_of(client, "Look around.")
        finished = [event for event in events if isinstance(event, ToolFinished)]
        # Chance may call the same thing three times in a row: that is asked about, and here refused.
        results = [event.result.content for event in finished if event.outcome is Outcome.SUCCEEDED]
        assert results == [(Text(text=f"On the {where} is a boat."),) for where in seen] != []
        # It was asked again with the results, and took them.
        assert sum(message.role is Role.ASSISTANT for message in client.history) >= 2
    await llama.until_idle()


@pytest.fixture
async def provider(llama: LlamaServer) -> AsyncIterator[Provider]:
    async with await Provider.create("m", base_url=llama.address("openai-chat")) as made:
        yield made


async def test_it_is_known_by_its_listing(provider: Provider) -> None:
    (model,) = await provider.list_models()
    assert model.capabilities.context_window == CONTEXT


async def test_a_prompt_that_is_too_long_is_told_as_that(provider: Provider) -> None:
    with pytest.raises(ContextLengthExceeded):
        await provider.complete("boat " * CONTEXT * 2)
