"""A conversation that a dead process left, opened while the disk takes nothing."""

from pathlib import Path

from desktop_agent.conversation.items import AnswerItem, NoticeItem
from desktop_agent.engine.engine import Engine
from desktop_agent.types.engine_events import RunStarted, TurnStarted
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.session import DISK, Shaky, envelope


async def left_behind(engine: Engine) -> str:
    """A prompt, and an answer that broke off with its process."""
    record = await engine.store.create_conversation(title="t")
    prompt = Message.user("go")
    await engine.store.commit(record.id, prompt)
    begun = [
        envelope(1, RunStarted(prompt.id), turn_id=None),
        envelope(2, TurnStarted("turn", "answer", "m")),
        envelope(3, ContentDelta("half")),
    ]
    await engine.store.append_journal(record.id, begun)
    return record.id


async def test_what_broke_off_can_be_read_and_is_written_when_there_is_room(tmp_path: Path) -> None:
    engine = await Engine.open(tmp_path)
    id_ = await left_behind(engine)
    store = engine.store
    shaky = Shaky(store)
    engine.store = shaky  # type: ignore[assignment]
    load = store.load
    # Only writing is refused.
    shaky.load, shaky.record = load, store.record  # type: ignore[attr-defined]
    shaky.refuse = DISK
    session = await engine.session(id_)
    assert [message.text for message in session.history] == ["go", "half"]
    assert [type(item) for item in session.transcript][1:] == [AnswerItem, NoticeItem, NoticeItem]
    assert len((await load(id_)).messages) == 1
    shaky.refuse = None
    await session.close()
    stored = await load(id_)
    assert [message.text for message in stored.messages] == ["go", "half"]
    assert stored.journal == ()
    engine.store = store
    await engine.close()
