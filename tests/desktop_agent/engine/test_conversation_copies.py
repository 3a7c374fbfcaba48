"""Copies of conversations: one with all its branches, and one made of several."""

from pathlib import Path

import pytest

from desktop_agent.conversation.items import NoticeItem
from desktop_agent.conversation.transcript import Transcript
from desktop_agent.conversation.transcript_notices import MERGE_AUTHOR
from desktop_agent.engine.engine import Engine, RunDefaults
from desktop_agent.engine.exchange.conversation_copies import OWN_PROGRAM, duplicate_conversation, merge_conversations
from desktop_agent.storage.records import ConversationState
from desktop_agent.types.blocks import Summary
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.providers import ConversationParameters
from desktop_agent.types.tool_calls import UntrustedSource

OUTSIDE = UntrustedSource("web", "example.org")


async def opened(folder: Path) -> Engine:
    return await Engine.open(folder, RunDefaults())


async def written(engine: Engine, title: str, *messages: Message) -> str:
    record = await engine.store.create_conversation(title=title, model="m", endpoint_id="here")
    await engine.store.commit(record.id, *messages)
    return record.id


async def test_a_copy_has_all_branches_settings_and_the_folder(tmp_path: Path) -> None:
    engine = await opened(tmp_path)
    store = engine.store
    first, answer, other = Message.user("first"), Message.assistant("answer"), Message.assistant("another answer")
    id_ = await written(engine, "One", first, answer)
    await store.update_conversation(
        id_,
        head_message_id=first.id,
        parameters=ConversationParameters(temperature=0.5),
        state=ConversationState(mode="plan", outside=(OUTSIDE,), stopped_run="r"),
    )
    await store.commit(id_, other)
    folder = await store.folders.create("Work")
    await store.placements.change([id_], folder=folder.id, add_tags=["later"], pinned=True)
    copy = await duplicate_conversation(engine, id_, "{} (copy)".format)
    before, after = await store.load_tree(id_), await store.load_tree(copy)
    assert (after.messages, after.head) == (before.messages, before.head)
    assert after.origin is not None
    assert (after.origin.program, after.origin.id, after.title) == (OWN_PROGRAM, id_, "One (copy)")
    record = await store.record(copy)
    assert record.state == ConversationState(mode="plan", outside=(OUTSIDE,))
    assert (record.endpoint_id, record.parameters.temperature) == ("here", 0.5)
    assert (record.folder, record.tags, record.pinned_at) == (folder.id, ("later",), None)
    await engine.close()


async def test_a_copy_is_where_the_original_was_moved_while_it_was_open(tmp_path: Path) -> None:
    engine = await opened(tmp_path)
    placements = engine.store.placements
    before, after = await engine.store.folders.create("Before"), await engine.store.folders.create("After")
    id_ = await written(engine, "One", Message.user("a"), Message.assistant("b"))
    await placements.change([id_], folder=before.id, add_tags=["old"])
    session = await engine.session(id_)
    await placements.change([id_], folder=after.id, remove_tags=["old"], add_tags=["new"])
    await engine.store.folders.delete(before.id)
    copy = await duplicate_conversation(engine, id_, str)
    merged = await merge_conversations(engine, [id_, copy], str)
    for record in await engine.store.record(copy), await engine.store.record(merged):
        assert (record.folder, record.tags) == (after.id, ("new",))
    await session.close()
    await engine.close()


async def test_merged_conversations_stand_behind_one_another_with_a_note_before_each(tmp_path: Path) -> None:
    engine = await opened(tmp_path)
    one = await written(engine, "One", Message.user("a"), Message.assistant("b"))
    summary = Message(role=Role.SYSTEM, blocks=(Summary(text="short", first_kept_id="x"),))
    two = await written(engine, "Two", Message.user("c"), summary, Message.assistant("d"))
    await engine.store.update_conversation(two, state=ConversationState(mode="plan", trusted=(OUTSIDE,)))
    merged = await merge_conversations(engine, [two, one], "From “{}”:".format)
    loaded = await engine.store.load(merged)
    assert [message.text for message in loaded.messages] == ["From “One”:", "a", "b", "From “Two”:", "c", "d"]
    assert [message.injected_by for message in loaded.messages[::3]] == [MERGE_AUTHOR, MERGE_AUTHOR]
    assert len({message.id for message in loaded.messages}) == len(loaded.messages)
    assert loaded.record.title == "One + Two"
    assert loaded.record.state == ConversationState(outside=(OUTSIDE,))
    assert [str(item.sentence) for item in Transcript(loaded.messages) if isinstance(item, NoticeItem)] == [
        "From “One”:",
        "From “Two”:",
    ]
    assert (await engine.store.record(one)).message_count == 2
    with pytest.raises(WrongUse):
        await merge_conversations(engine, [one, one], str)
    await engine.close()


async def test_a_copy_is_stored_in_one_transaction(tmp_path: Path) -> None:
    engine = await opened(tmp_path)
    ids = [await written(engine, title, Message.user(title)) for title in ("One", "Two")]
    statements: list[str] = []
    await engine.store.run(lambda db: db.set_trace_callback(statements.append))
    await duplicate_conversation(engine, ids[0], str)
    assert statements.count("COMMIT") == 1
    await merge_conversations(engine, ids, str)
    assert statements.count("COMMIT") == 2
    await engine.close()
