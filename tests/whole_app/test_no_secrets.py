"""A key goes to its own server and nowhere else: no file, no log, no output, no traceback, no other host."""

import json
import logging
import os
import subprocess
import sys
import traceback
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from pydantic import SecretStr

from desktop_agent.providers.provider import make_provider
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.storage.secrets import SERVICE
from desktop_agent.types.errors import AgentError
from desktop_agent.types.messages import Message
from desktop_agent.types.providers import ModelRequest, ProviderConfig, Timeouts
from tests.fakes.threaded_model_server import MODEL, Answer, ModelServer, Plain, Silence, Story, error, pieces_of
from tests.fakes.window_process import NO_TITLES, Program, Screen, wait_until
from tests.frame.displays import keyring
from tests.frame.patience import PATIENCE
from tests.frame.selection import few

KEY = "sk-planted-Zx7Qw9Lk3Vb5Nm1Ty8Pr2"
FORMS = (KEY.encode(), b64encode(KEY.encode()), KEY[::-1].encode(), KEY.encode("utf-16-le"), KEY[3:].encode())

# Debug logging and development mode for the whole program, so that it writes as much as it can.
LOUD = """
import logging, sys
from ui.__main__ import main
logging.basicConfig(level=logging.DEBUG)
sys.exit(main())
"""
LOUDLY = (sys.executable, "-X", "dev", "-W", "ignore", "-c", LOUD)
# A request to a silent server must fail before the test gives up.
_QUIET = ("headers_timeout", "first_event_timeout", "idle_timeout")
HASTY = {**NO_TITLES, "network": {"connect_timeout": 1.0, **dict.fromkeys(_QUIET, 0.5)}}


class Servers:
    """A server with several behaviours, and another host that must never get the key."""

    def __init__(self, server: ModelServer, elsewhere: ModelServer) -> None:
        self.server = server
        self.elsewhere = elsewhere

    def behaviours(self) -> Mapping[str, Answer]:
        # Another name for loopback is another host.
        target = self.elsewhere.url.replace("127.0.0.1", "localhost") + "/chat/completions"
        echo = {"authorization": f"Bearer {KEY}"}
        return {
            "success": Story(pieces_of("All is well.")),
            "401": error(401, "Incorrect API key provided.", "invalid_api_key"),
            "500": error(500, "Something broke.", "server_error"),
            "silence": Silence(),
            "redirect": Plain(b"", 307, {"location": target, "content-length": "0"}),
            "echo": Plain(json.dumps({"error": {"message": f"bad key {KEY}", "headers": echo}}).encode(), 401),
        }

    def check(self) -> None:
        """Check that the right server got the key and the other one got no request."""
        assert self.server.prompts
        assert all(asked.headers.get("authorization") == f"Bearer {KEY}" for asked in self.server.prompts)
        assert self.elsewhere.asked == []


@pytest.fixture
def servers() -> Iterator[Servers]:
    with ModelServer(Story(())) as server, ModelServer(Story(pieces_of("Caught."))) as elsewhere:
        yield Servers(server, elsewhere)


def holding(key: bytes, files: list[Path]) -> list[str]:
    return [str(file) for file in files if key in file.read_bytes()]


def assert_nowhere(folder: Path, *outputs: str) -> None:
    """Check that no file of the folder and no output has the key in any form."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert files, "nothing was searched"
    for form in FORMS:
        assert holding(form, files) == []
        assert [text for text in outputs if form.decode("latin-1") in text] == []


def hasty(data: Path, **providers: object) -> None:
    data.mkdir(parents=True, exist_ok=True)
    (data / "preferences.json").write_text(json.dumps({**HASTY, "providers": providers}))


def go_through(screen: Screen, servers: Servers) -> None:
    """Send a prompt for each behaviour."""
    for what, answer in servers.behaviours().items():
        servers.server.answer = answer
        known = len(servers.server.prompts)
        screen.send(f"prompt for {what}")
        wait_until(f"the server is asked: {what}", lambda n=known: len(servers.server.prompts) > n)
        screen.wait_for("Send")
        expected = "Assistant said" if what == "success" else "Error"
        wait_until(f"it is said: {what}", lambda name=expected: screen.last(name))
    assert KEY not in screen.says()


@contextmanager
def loudly(environment: dict[str, str], data: Path, *arguments: str) -> Iterator[tuple[Program, Screen]]:
    """The window, with everything logged."""
    running = Program({**environment, "PYTHONASYNCIODEBUG": "1"}, data, *arguments, command=LOUDLY)
    screen = Screen(environment, running.process.pid)
    try:
        wait_until("the window opens", lambda: screen.find("Message"))
        yield running, screen
        assert running.end() == 0
    finally:
        screen.close()
        if running.process.poll() is None:
            running.kill()
    assert "DEBUG" in running.said


@pytest.mark.exhaustive(
    "test_a_key_from_the_keyring, the same window with another source of the key", "test_ask_says_nothing_of_the_key"
)
def test_a_key_from_the_environment(real_display: dict[str, str], tmp_path: Path, servers: Servers) -> None:
    data = tmp_path / "data"
    hasty(data)
    environment = {**real_display, "DESKTOP_AGENT_API_KEY": KEY}
    with loudly(environment, data, "--base-url", servers.server.url, "--model", MODEL) as (running, screen):
        go_through(screen, servers)
    servers.check()
    assert_nowhere(tmp_path, running.said)


def test_a_key_from_the_keyring(real_display: dict[str, str], tmp_path: Path, servers: Servers) -> None:
    data = tmp_path / "data"
    endpoint = {"id": "planted", "title": "Planted", "base_url": servers.server.url, "needs_key": True}
    hasty(data, endpoints=[endpoint], endpoint_id="planted", model=MODEL)
    with keyring(real_display) as environment:
        store = "import keyring, sys; keyring.set_password(*sys.argv[1:])"
        subprocess.run(
            [sys.executable, "-c", store, SERVICE, "planted", KEY], env=environment, check=True, timeout=PATIENCE
        )
        with loudly(environment, data) as (running, screen):
            go_through(screen, servers)
    servers.check()
    listings = [asked for asked in servers.server.asked if asked.method == "GET"]
    assert all(asked.headers.get("authorization") == f"Bearer {KEY}" for asked in listings)
    assert_nowhere(tmp_path, running.said)


@pytest.mark.parametrize("what", few(["success", "401", "500", "silence", "redirect", "echo"], 2, "the test below"))
def test_ask_says_nothing_of_the_key(tmp_path: Path, servers: Servers, what: str) -> None:
    data = tmp_path / "data"
    hasty(data)
    servers.server.answer = servers.behaviours()[what]
    command = [sys.executable, "-X", "dev", "-W", "ignore", "-m", "ui", "ask", "--verbose", "--jsonl"]
    command += ["--data-dir", str(data), "--base-url", servers.server.url, "--model", MODEL, "Hello"]
    environment = {**base(), "DESKTOP_AGENT_API_KEY": KEY, "PYTHONASYNCIODEBUG": "1"}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert run.returncode == (0 if what == "success" else 1), run.stderr[-2000:]
    servers.check()
    assert "DEBUG" in run.stderr
    assert_nowhere(tmp_path, run.stdout, run.stderr)


def base() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


@pytest.mark.parametrize("what", ["401", "500", "silence", "redirect", "echo"])
async def test_no_traceback_holds_the_key_even_with_all_local_variables(
    servers: Servers, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    servers.server.answer = servers.behaviours()[what]
    http = HttpClient()
    provider = make_provider("openai-chat", servers.server.url, SecretStr(KEY), http)
    config = ProviderConfig(timeouts=Timeouts(connect=1.0, headers=0.5, idle=0.5))
    request = ModelRequest(MODEL, (Message.user("Hello"),), config=config)
    traceback_text = ""
    try:
        events = provider.stream(request)
        try:
            async for _ in events:
                pass
        finally:
            await events.aclose()
    except AgentError as failure:
        traceback_text = "".join(traceback.TracebackException.from_exception(failure, capture_locals=True).format())
        traceback_text += repr(failure) + repr(vars(failure)) + str(failure.remedy) + failure.detail
    finally:
        await http.aclose()
    assert "http_client" in traceback_text, "the frames of the transport were searched"
    assert KEY not in traceback_text
    assert KEY not in repr(provider) + repr(http) + repr(request)
    assert KEY not in caplog.text
    servers.check()


def test_the_search_finds_what_it_looks_for(tmp_path: Path) -> None:
    (tmp_path / "leak").write_bytes(b"\0" + KEY.encode() + b"\0")
    with pytest.raises(AssertionError):
        assert_nowhere(tmp_path)
