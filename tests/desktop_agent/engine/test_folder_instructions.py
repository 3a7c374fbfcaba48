"""The instructions of the folders that a conversation is in reach the model, at each turn those of the moment."""

import math
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.engine.engine import Engine, RunDefaults
from desktop_agent.providers.demo import scripted_model
from desktop_agent.providers.demo.http import Request
from desktop_agent.storage.folder_rows import FolderRows
from desktop_agent.types.errors import StorageFailed
from desktop_agent.types.messages import Message
from desktop_agent.types.preferences import ChatPreferences, Preferences, ProviderPreferences
from desktop_agent.types.providers import ConversationParameters, Dialect
from tests.fakes.recording_server import RecordingServer
from tests.fakes.strict_server import answer_request, demo_endpoint

DIALECTS: tuple[Dialect, ...] = ("openai-chat", "openai-responses", "anthropic", "gemini")
GENERAL = "General."


class StrictServer(RecordingServer):
    """Keeps what it was sent."""

    def __init__(self) -> None:
        self.bodies: list[str] = []

        async def answer(request: Request) -> Any:
            self.bodies.append(request.body.decode())
            return await answer_request(request, scripted_model.play)

        super().__init__(math.inf, answer=answer)


@pytest.fixture
async def server() -> AsyncIterator[StrictServer]:
    server = StrictServer()
    yield server
    await server.aclose()


async def opened(folder: Path, server: StrictServer, dialect: Dialect = "openai-chat") -> Engine:
    engine = await Engine.open(folder, RunDefaults(toolset="none"))
    endpoint = demo_endpoint(await server.start(), dialect).model_copy(update={"id": "strict"})
    providers = ProviderPreferences(endpoints=(endpoint,), endpoint_id="strict", model="demo")
    chat = ChatPreferences(system_prompt=GENERAL, titles="local")
    await engine.change_preferences(Preferences(providers=providers, chat=chat))
    return engine


def sent(*instructions: str) -> str:
    """Return the instructions as the request has them, whatever its dialect calls them."""
    return '"' + "\\n\\n".join(instructions) + '"'


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_each_turn_has_those_of_the_folders_from_the_top_down(
    tmp_path: Path, server: StrictServer, dialect: Dialect
) -> None:
    engine = await opened(tmp_path, server, dialect)
    folders = engine.store.folders
    outer = await folders.create("Outer", instructions="Be brief.")
    inner = await folders.create("Inner", parent=outer.id, instructions="Write British English.")
    session = engine.new_session()
    session.folders.begin_in(inner.id)

    async def say(text: str) -> str:
        session.send(Message.user(text))
        await session.wait_idle()
        assert session.error is None
        return server.bodies[-1]

    assert sent(GENERAL, "Be brief.", "Write British English.") in await say("one")
    await folders.change(replace(inner, instructions="Write German."))
    assert sent(GENERAL, "Be brief.", "Write German.") in await say("two")
    session.change_record(parameters=ConversationParameters(system_prompt="Own."))
    await engine.store.placements.change([session.record.id], folder=outer.id)
    assert sent("Own.", "Be brief.") in await say("three")
    await engine.store.placements.change([session.record.id], folder=None)
    assert sent("Own.") in await say("four")
    await engine.close()


async def test_what_is_archived_keeps_them_and_what_is_in_memory_alone_has_none(
    tmp_path: Path, server: StrictServer
) -> None:
    engine = await opened(tmp_path, server)
    folder = await engine.store.folders.create("Work", instructions="Be brief.")
    stored, unstored = engine.new_session(), engine.new_session(in_memory=True)
    stored.folders.begin_in(folder.id)
    for session in (stored, unstored):
        session.send(Message.user("one"))
        await session.wait_idle()
    assert [sent(GENERAL, "Be brief.") in body for body in server.bodies] == [True, False]
    await engine.store.placements.change([stored.record.id], archived=True)
    stored.send(Message.user("two"))
    await stored.wait_idle()
    assert sent(GENERAL, "Be brief.") in server.bodies[-1]
    await engine.close()


async def test_one_begun_in_a_folder_that_is_gone_is_at_the_top(tmp_path: Path, server: StrictServer) -> None:
    engine = await opened(tmp_path, server)
    folder = await engine.store.folders.create("Work", instructions="Be brief.")
    session = engine.new_session()
    session.folders.begin_in(folder.id)
    await engine.store.folders.delete(folder.id)
    session.send(Message.user("one"))
    await session.wait_idle()
    assert sent(GENERAL) in server.bodies[-1]
    assert [record.folder for record in await engine.store.list_conversations()] == [None]
    await engine.close()


async def test_where_the_disk_refuses_those_that_were_read_last_hold_and_nothing_is_sent_without_them(
    tmp_path: Path, server: StrictServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await opened(tmp_path, server)
    folder = await engine.store.folders.create("Work", instructions="Be brief.")
    known, unread, elsewhere = engine.new_session(), engine.new_session(), engine.new_session()
    for session in (known, unread):
        session.folders.begin_in(folder.id)
    known.send(Message.user("one"))
    await known.wait_idle()

    async def refuse(*_: object) -> None:
        raise StorageFailed("The disk is gone.")

    monkeypatch.setattr(FolderRows, "with_instructions", refuse)
    errors: list[str] = []
    for session in (known, unread, elsewhere):
        session.send(Message.user("two"))
        await session.wait_idle()
        errors.append("" if session.error is None else str(session.error.sentence))
    assert errors == ["", "The disk is gone.", ""]
    assert [sent(GENERAL, "Be brief.") in body for body in server.bodies] == [True, True, False]
    await engine.close()


async def test_the_size_of_the_context_counts_those_that_were_read(tmp_path: Path, server: StrictServer) -> None:
    engine = await opened(tmp_path, server)
    folder = await engine.store.folders.create("Work", instructions="Be brief. " * 1_000)
    session = engine.new_session()
    session.folders.begin_in(folder.id)
    before = session.context_size.tokens()
    assert await session.folders.instructions()
    assert session.context_size.tokens() > before + 1_000
    await engine.close()
