"""The state of a conversation besides its messages."""

import base64
import sqlite3
from contextlib import closing
from io import BytesIO
from pathlib import Path

from PIL import Image as Pillow

from desktop_agent.storage.opening import DATABASE_NAME
from desktop_agent.storage.records import ConversationState, read_state, state_to_json
from desktop_agent.storage.store import Store
from desktop_agent.types.blocks import Base64Source, Image, StoredSource, Text
from desktop_agent.types.messages import Message
from desktop_agent.types.policies import PolicyTrigger, PromptPolicy, QueuedMessage

POLICY = PromptPolicy(id="brief", text="Be brief.", scope="persistent", trigger=PolicyTrigger(word="long"))
FULL = ConversationState(
    mode="plan",
    policies=(POLICY,),
    queue=(
        QueuedMessage(message=Message.user("later \ud800"), when="idle"),
        QueuedMessage(message=Message.user("soon")),
    ),
    stopped_run="run",
)


async def test_a_state_is_loaded_as_it_was_saved(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    conversation = await store.create_conversation(title="t")
    assert conversation.state == ConversationState()
    changed = await store.update_conversation(conversation.id, state=FULL)
    assert changed.state == FULL
    await store.close()
    store = await Store.open(tmp_path)
    assert (await store.load(conversation.id)).record.state == FULL
    assert [record.state for record in await store.list_conversations()] == [FULL]
    await store.update_conversation(conversation.id, title="another")
    assert (await store.load(conversation.id)).record.state == FULL
    await store.close()


async def test_what_every_conversation_begins_with_takes_no_room(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    conversation = await store.create_conversation(title="t")
    await store.update_conversation(conversation.id, state=FULL)
    await store.update_conversation(conversation.id, state=ConversationState())
    await store.close()
    with closing(sqlite3.connect(tmp_path / DATABASE_NAME)) as db:
        assert db.execute("SELECT state FROM conversations").fetchall() == [(None,)]


async def test_pictures_of_a_message_that_waits_become_files_that_are_kept(tmp_path: Path) -> None:
    buffer = BytesIO()
    Pillow.new("RGB", (7, 5), "red").save(buffer, "PNG")
    source = Base64Source(media_type="image/png", data=base64.b64encode(buffer.getvalue()).decode())
    message = Message.user_with_blocks([Text(text="look"), Image(source=source)])
    store = await Store.open(tmp_path)
    conversation = await store.create_conversation(title="t")
    await store.update_conversation(conversation.id, state=ConversationState(queue=(QueuedMessage(message=message),)))
    await store.close()
    store = await Store.open(tmp_path)
    (waiting,) = (await store.load(conversation.id)).record.state.queue
    assert waiting.id == message.id
    stored = next(block.source for block in waiting.message.blocks if isinstance(block, Image))
    assert isinstance(stored, StoredSource)
    assert await store.pictures.get(stored) == buffer.getvalue()
    await store.close()


def test_of_a_state_that_cannot_be_read_the_rest_is_kept() -> None:
    text = state_to_json(FULL)
    assert text is not None
    damaged = text.replace('"when":"idle"', '"when":"whenever"')
    assert damaged != text
    assert read_state(damaged) == FULL.model_copy(update={"queue": ()})
    assert read_state("no JSON") == ConversationState()
    assert read_state(None) == ConversationState()
    assert read_state('{"of_a_later_version":1,"mode":"plan"}') == ConversationState(mode="plan")
