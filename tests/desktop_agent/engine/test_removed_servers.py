"""A server that was removed gets nothing more: not what waits, not the results of calls, and never with its key."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from desktop_agent.engine.engine import Engine, RunDefaults
from desktop_agent.engine.session import Session
from desktop_agent.types.engine_events import ErrorOccurred, RetryScheduled
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.messages import Message
from desktop_agent.types.policies import When
from desktop_agent.types.preferences import Preferences, ProviderPreferences
from tests.fakes.http_server import Loopback, Reply, Request, chunk, sse
from tests.fakes.model_server import JSON, answer, endpoint, keys_seen, listing
from tests.frame.patience import PATIENCE


def answer_requests(server: Loopback) -> list[Request]:
    """Return the requests for an answer that reached the server."""
    return [request for request in server.requests if request.path.endswith("/chat/completions")]


def serving(*replies: Reply) -> Loopback:
    """Open a server that lists a model, and gives these answers one after the other."""
    rest = list(replies)
    return Loopback(choose=lambda request: rest.pop(0) if request.method == "POST" else listing("m"))


async def opened(folder: Path, server: Loopback) -> tuple[Engine, Session, list[object]]:
    """Open an engine with this server and its key. Return it, a conversation, and the events of that."""
    engine = await Engine.open(folder, RunDefaults(toolset="read"))
    engine.secrets.remember_for_session("mine", SecretStr("sk-removed"))
    providers = ProviderPreferences(endpoints=(endpoint(server),), endpoint_id="mine", model="m")
    await engine.change_preferences(Preferences(providers=providers))
    session, events = engine.new_session(workspace=str(folder)), list[object]()
    session.subscribe(on_event=lambda envelope: events.append(envelope.event))
    return engine, session, events


async def remove(engine: Engine) -> None:
    """As the window does it."""
    engine.connections.forget("mine")
    await engine.change_preferences(Preferences())
    await engine.connections.remove_key("mine")


async def until(is_so: Callable[[], Any]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not is_so():
            await asyncio.sleep(0.002)


def errors(events: list[object]) -> list[str]:
    return [event.message for event in events if isinstance(event, ErrorOccurred)]


@pytest.mark.parametrize("when", ["soon", "idle"])
async def test_what_waits_is_refused_by_name_and_goes_on_waiting(tmp_path: Path, when: When) -> None:
    release = asyncio.Event()
    reply = Reply(sse(chunk({"content": "Hello"}), done=False), hold=release, late=sse(chunk(finish="stop")))
    async with serving(reply, answer()) as server:
        engine, session, events = await opened(tmp_path, server)
        session.send(Message.user("first"))
        await until(lambda: answer_requests(server))
        session.steer(Message.user("second"), when)
        await remove(engine)
        release.set()
        await session.wait_idle()
        assert len(answer_requests(server)) == 1
        assert errors(events) == ["The server “mine” is no longer set up."]
        assert [entry.message.text for entry in session.queue.entries] == ["second"]
        assert [message.text for message in session.history] == ["first", "Hello"]
        for go_on in (session.continue_run, session.retry, lambda: session.steer(Message.user("third"))):
            with pytest.raises(WrongUse):
                go_on()
        assert [entry.message.text for entry in session.queue.entries] == ["second"]
        await engine.close()
        assert len(answer_requests(server)) == 1


CALL = {"index": 0, "id": "c", "type": "function", "function": {"name": "list_files", "arguments": "{}"}}


async def test_the_results_of_calls_go_to_no_server_that_was_removed(tmp_path: Path) -> None:
    release = asyncio.Event()
    called = Reply(sse(chunk({"tool_calls": [CALL]}), done=False), hold=release, late=sse(chunk(finish="tool_calls")))
    async with serving(called, answer()) as server:
        engine, session, events = await opened(tmp_path, server)
        session.send(Message.user("go"))
        await until(lambda: answer_requests(server))
        await remove(engine)
        release.set()
        await session.wait_idle()
        assert len(answer_requests(server)) == 1
        assert errors(events) == ["The server “mine” is no longer set up."]
        await engine.close()


async def test_what_is_asked_again_is_asked_with_the_key_of_that_moment(tmp_path: Path) -> None:
    busy = Reply(b'{"error": {"message": "busy"}}', 503, JSON, "length")
    async with serving(busy, answer()) as server:
        engine, session, events = await opened(tmp_path, server)
        session.send(Message.user("go"))
        await until(lambda: any(isinstance(event, RetryScheduled) for event in events))
        await engine.connections.save_key("mine", SecretStr("sk-other"), session_only=True)
        await session.wait_idle()
        keys = [request.headers["authorization"] for request in answer_requests(server)]
        assert keys == ["Bearer sk-removed", "Bearer sk-other"]
        await engine.close()


async def test_another_server_that_is_chosen_meanwhile_is_for_the_next_run(tmp_path: Path) -> None:
    release = asyncio.Event()
    called = Reply(sse(chunk({"tool_calls": [CALL]}), done=False), hold=release, late=sse(chunk(finish="tool_calls")))
    async with serving(called, answer()) as server, serving(answer()) as other:
        engine, session, _ = await opened(tmp_path, server)
        both = ProviderPreferences(endpoints=(endpoint(server), endpoint(other, "other")))
        await engine.change_preferences(Preferences(providers=both))
        session.send(Message.user("go"))
        await until(lambda: answer_requests(server))
        session.change_record(endpoint_id="other")
        release.set()
        await session.wait_idle()
        assert (len(answer_requests(server)), len(answer_requests(other))) == (2, 0)
        session.send(Message.user("on"))
        await session.wait_idle()
        assert (len(answer_requests(server)), len(answer_requests(other))) == (2, 1)
        assert keys_seen(other) == {None}
        await engine.close()


async def test_a_server_removed_while_its_key_is_read_is_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(answer()) as server:
        engine, _, _ = await opened(tmp_path, server)
        reading, read = asyncio.Event(), asyncio.Event()
        key_for = engine.connections._key_for

        async def slow(*args: Any) -> SecretStr | None:
            key = await key_for(*args)
            reading.set()
            await read.wait()
            return key

        monkeypatch.setattr(engine.connections, "_key_for", slow)
        opening = asyncio.create_task(engine.connections.provider("mine"))
        await reading.wait()
        await remove(engine)
        read.set()
        with pytest.raises(WrongUse, match="mine"):
            await opening
        await engine.close()


async def test_a_preset_that_was_removed_is_named(tmp_path: Path) -> None:
    engine = await Engine.open(tmp_path)
    session = engine.new_session(endpoint_id="ollama", model="m")
    with pytest.raises(WrongUse, match="Ollama"):
        session.send(Message.user("go"))
    assert session.history == ()
    await engine.close()


async def test_a_server_that_was_added_is_called_by_its_address(tmp_path: Path) -> None:
    async with serving() as server:
        engine, _, _ = await opened(tmp_path, server)
        with pytest.raises(WrongUse, match="The server “http://localhost:8080/v1” is no longer set up"):
            engine.connections.endpoint("custom:http://localhost:8080/v1")
        await engine.close()
