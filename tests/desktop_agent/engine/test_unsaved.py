"""What the disk refused, as a file that people and programs can read."""

import json
from pathlib import Path

from desktop_agent.engine.engine import Engine, RunDefaults
from desktop_agent.engine.unsaved import as_markdown
from desktop_agent.providers.scripted import ScriptedProvider, Turn
from desktop_agent.vocabulary.messages import Message
from desktop_agent.vocabulary.provider_events import ContentDelta


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

    text = as_markdown(engine.unsaved, Message.user("half a thought"))
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


async def test_what_is_kept_is_not_left(tmp_path: Path) -> None:
    engine = await Engine.open(tmp_path, RunDefaults(model="m"))
    engine.connections._providers["e"] = ScriptedProvider(Turn(ContentDelta("ok")))
    session = engine.new_session(endpoint_id="e")
    session.send(Message.user("hello"))
    await session.wait_idle()
    await engine.write_all()
    assert engine.unsaved == ()
    await engine.close()
    assert engine.unsaved == ()
