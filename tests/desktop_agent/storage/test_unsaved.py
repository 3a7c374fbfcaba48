"""Messages that the disk refused are written to a file that people and programs can read."""

import asyncio
import gc
import json
from pathlib import Path

import pytest

from desktop_agent.engine import session_lifecycle
from desktop_agent.engine.engine import Engine, RunDefaults
from desktop_agent.storage.store import Store
from desktop_agent.storage.write_behind import unsaved_as_markdown
from desktop_agent.types.errors import StorageFailed
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.scripted_provider import ScriptedProvider, Turn


async def test_what_was_said_while_the_folder_was_gone_can_be_read_from_the_file(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    engine = await Engine.open(folder, RunDefaults(model="m"))
    engine.connections._providers["e"] = ScriptedProvider(Turn(ContentDelta("a ``` fence \ud800")))
    session = engine.new_session(endpoint_id="e")
    folder.rename(elsewhere)
    session.send(Message.user("precious"))
    await session.wait_idle()
    await engine.write_all()
    (unsaved,) = engine.unsaved
    assert "gone" in str(unsaved.reason.sentence)
    assert [message.text for message in unsaved.messages] == ["precious", "a ``` fence \ud800"]

    text = unsaved_as_markdown(engine.unsaved, Message.user("half a thought"))
    assert text.startswith("# precious\n\n## You\n\nprecious\n\n## Model\n\na ``` fence")
    assert text.endswith("# What was being written\n\nhalf a thought\n")
    fenced = text.partition("````jsonl\n")[2].partition("\n````")[0]
    lines = [json.loads(line) for line in fenced.splitlines()]
    assert lines[0]["conversation"]["id"] == session.record.id
    assert [line["message"]["blocks"][0]["text"] for line in lines[1:3]] == ["precious", "a ``` fence \ud800"]
    assert {"run_started", "run_finished"} <= {line["event"]["type"] for line in lines[3:]}

    elsewhere.rename(folder)
    await engine.close()
    assert engine.unsaved == ()


async def test_saved_messages_are_not_listed_as_unsaved(tmp_path: Path) -> None:
    engine = await Engine.open(tmp_path, RunDefaults(model="m"))
    engine.connections._providers["e"] = ScriptedProvider(Turn(ContentDelta("ok")))
    session = engine.new_session(endpoint_id="e")
    session.send(Message.user("hello"))
    await session.wait_idle()
    await engine.write_all()
    assert engine.unsaved == ()
    await engine.close()
    assert engine.unsaved == ()


async def test_what_can_never_be_written_is_known_after_its_conversation_was_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_lifecycle, "LINGER_SECONDS", 0)
    engine = await Engine.open(tmp_path, RunDefaults(model="m"))
    session = engine.new_session()
    monkeypatch.setattr(Store, "commit", _never)
    session._writer.add(Message.user("precious"))
    with pytest.raises(StorageFailed):
        await session.flush()
    engine.release_session(session)
    del session
    for _ in range(20):  # turns of the loop in which it would be closed
        await asyncio.sleep(0)
        await engine.store.list_conversations()
    gc.collect()
    assert [message.text for unsaved in engine.unsaved for message in unsaved.messages] == ["precious"]
    await engine.close()
    assert len(engine.unsaved) == 1


async def _never(*_: object, **__: object) -> None:
    raise ValueError("never")
