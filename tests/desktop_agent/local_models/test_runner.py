"""Loading, answering, unloading: over real sockets, with a real process."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from desktop_agent.local_models import llama_server
from desktop_agent.local_models.llama_server import LlamaServer, LocalModelFailed, ServerOptions
from desktop_agent.local_models.model_files import read_model
from desktop_agent.local_models.runner import LocalModels
from desktop_agent.providers.provider import make_provider
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.messages import Message
from desktop_agent.types.preferences import LocalModelPreferences
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.providers import LocalPhase, ModelRequest
from tests.fakes.local_models import install_server, servers_of, write_model
from tests.frame.patience import PATIENCE

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a shell script")
ROOT = Path(__file__).parents[3]


async def until(true):
    async with asyncio.timeout(PATIENCE):
        while not true():
            await asyncio.sleep(0.01)


class Rig:
    """Two model files, and what runs them."""

    def __init__(self, folder: Path) -> None:
        self.first = read_model(write_model(folder / "first.gguf"))
        self.second = read_model(write_model(folder / "second.gguf"))
        self.preferences = LocalModelPreferences(models=(self.first, self.second))
        self.program = install_server(folder)
        self.http = HttpClient()
        self.time = 0.0
        self.looks = 0
        self.models = LocalModels(
            self.look,
            lambda address, key: make_provider("openai-chat", address, key, self.http),
            program=lambda: self.program,
            clock=lambda: self.time,
            watch_seconds=0.02,
        )
        self.states = []
        self.models.on_state(self.states.append)

    def look(self):
        self.looks += 1
        return self.preferences

    async def looked_at(self):
        """Until the idle time was looked at some times more."""
        before = self.looks
        await until(lambda: self.looks > before + 3)

    @property
    def phases(self):
        seen = [state.phase.value for state in self.states]
        return [phase for place, phase in enumerate(seen) if place == 0 or seen[place - 1] != phase]

    async def ask(self, model) -> str:
        request = ModelRequest(model.id, (Message.user("Hello"),))
        events = [event async for event in self.models.provider.stream(request)]
        return "".join(event.text for event in events if isinstance(event, ContentDelta))


@pytest.fixture
async def rig(tmp_path):
    rig = Rig(tmp_path)
    yield rig
    await rig.models.close()
    await rig.http.aclose()
    assert servers_of(rig.first.path) + servers_of(rig.second.path) == []


async def test_a_request_loads_its_model(rig):
    assert await rig.ask(rig.first) == "Hello from first"
    assert rig.phases == ["loading", "ready"]
    await until(lambda: rig.models.state.memory)
    assert len(servers_of(rig.first.path)) == 1
    assert await rig.ask(rig.first) == "Hello from first"
    assert rig.phases == ["loading", "ready"]


async def test_it_is_ready_when_the_server_says_so(rig, tmp_path, monkeypatch):
    (tmp_path / "loading").touch()
    monkeypatch.setenv("LLAMA_TEST_LOADING", str(tmp_path / "loading"))
    starting = asyncio.create_task(rig.models.start(rig.first))
    await until(lambda: rig.models.state.memory)
    assert rig.models.state.phase is LocalPhase.LOADING
    (tmp_path / "loading").unlink()
    await starting
    assert rig.models.state.phase is LocalPhase.READY


async def test_nobody_else_can_use_it(rig):
    await rig.models.start(rig.first)
    (process,) = servers_of(rig.first.path)
    key, address = process.environ()["LLAMA_API_KEY"], rig.models._server.base_url
    assert len(key) >= 32
    assert key not in " ".join(process.cmdline())
    assert {each.laddr.ip for each in process.net_connections() if each.status == "LISTEN"} == {"127.0.0.1"}

    def ask(authorization):
        request = urllib.request.Request(f"{address}/models", headers=authorization)
        return urllib.request.urlopen(request, timeout=PATIENCE).status

    assert await asyncio.to_thread(ask, {"Authorization": f"Bearer {key}"}) == 200
    for wrong in ({}, {"Authorization": "Bearer wrong"}):
        with pytest.raises(urllib.error.HTTPError, match="401") as refused:
            await asyncio.to_thread(ask, wrong)
        refused.value.close()
    await rig.models.stop()
    await rig.models.start(rig.first)
    (process,) = servers_of(rig.first.path)
    assert process.environ()["LLAMA_API_KEY"] != key


async def test_stop_ends_it_and_the_next_request_loads_it_again(rig):
    await rig.models.start(rig.first)
    await rig.models.stop()
    assert rig.models.state.phase is LocalPhase.STOPPED
    assert servers_of(rig.first.path) == []
    assert await rig.ask(rig.first) == "Hello from first"


async def test_stop_while_it_loads(rig, tmp_path, monkeypatch):
    (tmp_path / "loading").touch()
    monkeypatch.setenv("LLAMA_TEST_LOADING", str(tmp_path / "loading"))
    starting = asyncio.create_task(rig.models.start(rig.first))
    await until(lambda: servers_of(rig.first.path))
    await rig.models.stop()
    with pytest.raises(LocalModelFailed, match="was stopped"):
        await starting
    assert rig.models.state.phase is LocalPhase.STOPPED
    assert servers_of(rig.first.path) == []


async def test_a_cancelled_request_ends_what_it_started(rig, tmp_path, monkeypatch):
    (tmp_path / "loading").touch()
    monkeypatch.setenv("LLAMA_TEST_LOADING", str(tmp_path / "loading"))
    asking = asyncio.create_task(rig.ask(rig.first))
    await until(lambda: servers_of(rig.first.path))
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert rig.models.state.phase is LocalPhase.STOPPED
    assert servers_of(rig.first.path) == []


async def test_one_that_is_loaded_in_the_moment_of_the_cancel_is_ended_too(rig):
    starting = asyncio.create_task(rig.models.start(rig.first))
    rig.models.on_state(lambda state: state.phase is LocalPhase.READY and starting.cancel())
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert servers_of(rig.first.path) == []
    assert rig.models.state.phase is LocalPhase.STOPPED


async def test_a_model_that_cannot_be_loaded_is_said_with_the_servers_words(rig, monkeypatch):
    monkeypatch.setenv("LLAMA_TEST_FAILS", "1")
    with pytest.raises(LocalModelFailed, match="could not load") as caught:
        await rig.ask(rig.first)
    assert "unknown model architecture" in caught.value.detail
    assert rig.phases == ["loading", "failed"]


async def test_no_server_is_said(rig):
    rig.program = None
    with pytest.raises(LocalModelFailed, match=r"no llama\.cpp server") as caught:
        await rig.ask(rig.first)
    assert "Install llama.cpp" in str(caught.value.remedy)


async def test_a_program_that_is_none_is_said(rig, tmp_path):
    rig.program = str(tmp_path)
    with pytest.raises(LocalModelFailed, match="could not load"):
        await rig.ask(rig.first)


async def test_one_that_never_gets_ready_is_given_up(rig, tmp_path, monkeypatch):
    (tmp_path / "loading").touch()
    monkeypatch.setenv("LLAMA_TEST_LOADING", str(tmp_path / "loading"))
    with pytest.raises(LocalModelFailed, match="not loaded in time"):
        await LlamaServer.start(rig.first, ServerOptions(rig.program, 512, start_timeout=1))
    assert servers_of(rig.first.path) == []


async def test_a_server_that_ends_by_itself_is_noticed_and_started_again(rig):
    await rig.models.start(rig.first)
    (process,) = servers_of(rig.first.path)
    process.kill()
    await until(lambda: rig.models.state.phase is LocalPhase.FAILED)
    assert "ended by itself" in str(rig.models.state.remark)
    assert await rig.ask(rig.first) == "Hello from first"


async def test_a_port_that_somebody_took_is_given_up(rig, monkeypatch):
    """Whoever answers there, even with 200, gets no prompt."""
    asked = []

    async def answer(reader, writer):
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b'HTTP/1.1 200 OK\r\ncontent-length: 15\r\n\r\n{"status":"ok"}')
        writer.close()

    stranger = await asyncio.start_server(answer, "127.0.0.1", 0)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        free = probe.getsockname()[1]
    ports = [stranger.sockets[0].getsockname()[1], free]
    monkeypatch.setattr(llama_server, "_free_port", lambda: ports.pop(0))
    assert await rig.ask(rig.first) == "Hello from first"
    assert ports == []
    assert all(request.startswith(b"GET /health") for request in asked)
    stranger.close()
    await stranger.wait_closed()


async def test_one_model_at_a_time(rig, tmp_path, monkeypatch):
    await rig.models.start(rig.first)
    assert await rig.ask(rig.second) == "Hello from second"
    assert servers_of(rig.first.path) == []
    (tmp_path / "answering").touch()
    monkeypatch.setenv("LLAMA_TEST_ANSWERING", str(tmp_path / "answering"))
    asking = asyncio.create_task(rig.ask(rig.first))
    await until(lambda: rig.models._in_use)
    with pytest.raises(WrongUse, match="“first” is still answering"):
        await rig.ask(rig.second)
    (tmp_path / "answering").unlink()
    assert await asking == "Hello from first"


async def test_a_model_that_nobody_uses_leaves_the_memory(rig, tmp_path, monkeypatch):
    (tmp_path / "answering").touch()
    monkeypatch.setenv("LLAMA_TEST_ANSWERING", str(tmp_path / "answering"))
    asking = asyncio.create_task(rig.ask(rig.first))
    await until(lambda: rig.models._in_use)
    rig.time = 15 * 60
    await rig.looked_at()
    (tmp_path / "answering").unlink()
    assert await asking == "Hello from first"
    rig.time += 15 * 60 - 1
    await rig.looked_at()
    assert rig.models.state.phase is LocalPhase.READY
    rig.time += 1
    await until(lambda: rig.models.state.phase is LocalPhase.STOPPED)
    assert "unloaded" in str(rig.models.state.remark)
    await until(lambda: not servers_of(rig.first.path))
    rig.preferences = rig.preferences.model_copy(update={"idle_minutes": 0})
    await rig.models.start(rig.first)
    rig.time += 10**9
    await rig.looked_at()
    assert rig.models.state.phase is LocalPhase.READY


async def test_a_model_that_is_stopped_while_it_answers_is_not_loaded_again(rig, tmp_path, monkeypatch):
    (tmp_path / "answering").touch()
    monkeypatch.setenv("LLAMA_TEST_ANSWERING", str(tmp_path / "answering"))
    asking = asyncio.create_task(rig.ask(rig.first))
    await until(lambda: rig.models._in_use)
    await rig.models.stop()
    with pytest.raises(LocalModelFailed, match="ended while it answered"):
        await asking
    assert rig.models.state.phase is LocalPhase.STOPPED


async def test_a_file_that_is_no_longer_chosen_is_said(rig):
    rig.preferences = LocalModelPreferences()
    with pytest.raises(WrongUse, match="no longer chosen"):
        await rig.ask(rig.first)


async def test_the_context_is_what_the_person_chose_and_never_more_than_the_model_has(rig):
    assert rig.models.model_info("first").capabilities.context_window == 16_384
    rig.preferences = rig.preferences.model_copy(update={"context_tokens": 1_000_000})
    assert rig.models.model_info("first").capabilities.context_window == 40_960
    await rig.models.start(rig.first)
    (process,) = servers_of(rig.first.path)
    words = process.cmdline()
    assert words[words.index("--ctx-size") + 1] == "40960"


HOLDER = """
import asyncio, sys
from pathlib import Path
from desktop_agent.local_models.llama_server import LlamaServer, ServerOptions
from desktop_agent.local_models.model_files import read_model

async def hold():
    await LlamaServer.start(read_model(Path(sys.argv[1])), ServerOptions(sys.argv[2], 512))
    print("ready", flush=True)
    await asyncio.Event().wait()

asyncio.run(hold())
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_it_dies_with_the_program_that_started_it(tmp_path, how):
    model = write_model(tmp_path / "held.gguf")
    words = [sys.executable, "-c", HOLDER, str(model), install_server(tmp_path)]
    with subprocess.Popen(  # noqa: ASYNC220
        words, cwd=ROOT, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)}
    ) as holder:
        assert await asyncio.to_thread(holder.stdout.readline) == b"ready\n"
        assert len(servers_of(model)) == 1
        holder.send_signal(how)
        await asyncio.to_thread(holder.wait)
    await until(lambda: not servers_of(model))
