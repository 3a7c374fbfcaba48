import asyncio
import base64
import os
import sqlite3
import string
import threading
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image as Pillow

from desktop_agent.storage import opening
from desktop_agent.storage.locks.open_files import find_other_processes
from desktop_agent.storage.opening import DATABASE_NAME
from desktop_agent.storage.records import Draft, ListScope
from desktop_agent.storage.store import Store
from desktop_agent.types.blocks import (
    Base64Source,
    Image,
    Json,
    Outcome,
    StoredSource,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Unknown,
    UrlSource,
)
from desktop_agent.types.engine_events import Envelope, RunStarted
from desktop_agent.types.errors import ImageRefused, StorageFailed, WrongUse
from desktop_agent.types.messages import Message, MessageState, Role
from desktop_agent.types.provider_events import StopReason, Usage
from desktop_agent.types.providers import ConversationParameters, ReasoningEffort
from tests.frame.examples import examples

NASTY = "a\0b \ud800 \udfff é 漢字 🙂 \u2028 \x1b"


def png(colour: str = "red") -> str:
    buffer = BytesIO()
    Pillow.new("RGB", (7, 5), colour).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


async def test_a_conversation_comes_back_as_it_was_committed(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "data")
    assert store.notices == ()
    conversation = await store.create_conversation(title="First", endpoint_id="ollama", model="m", workspace="/tmp/w")
    messages = (Message.user("Hello"), Message.assistant("Hi"))
    await store.commit(conversation.id, *messages)
    await store.close()

    again = await Store.open(tmp_path / "data")
    loaded = await again.load(conversation.id)
    assert loaded.messages == messages
    assert loaded.journal == ()
    assert loaded.record.message_count == 2
    assert loaded.record.head_message_id == messages[1].id
    assert (loaded.record.endpoint_id, loaded.record.model, loaded.record.workspace) == ("ollama", "m", "/tmp/w")
    assert loaded.record.created_at == conversation.created_at
    assert loaded.record.updated_at > conversation.updated_at
    await again.close()


async def test_closing_twice_is_harmless_and_ends_the_thread(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    assert any(thread.name.startswith("conversations") for thread in threading.enumerate())
    await asyncio.gather(store.close(), store.close())
    await store.close()
    assert not any(thread.name.startswith("conversations") for thread in threading.enumerate())
    with pytest.raises(WrongUse):
        await store.list_conversations()


async def test_a_cancelled_closing_is_completed_all_the_same(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    closing_it = asyncio.ensure_future(store.close())
    await asyncio.sleep(0)
    closing_it.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing_it
    await store.close()


async def test_the_same_message_id_replaces_in_place(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    conversation = await store.create_conversation(title="t")
    first, second = Message.user("one"), Message.assistant("two")
    await store.commit(conversation.id, first, second)
    longer = first.model_copy(update={"blocks": (Text(text="one, corrected"),), "state": MessageState.INTERRUPTED})
    await store.commit(conversation.id, longer)
    await store.commit(conversation.id, longer, second)
    loaded = await store.load(conversation.id)
    assert loaded.messages == (longer, second)
    assert loaded.record.message_count == 2
    await store.close()


async def test_moving_the_head_makes_a_branch_and_keeps_the_other(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    conversation = await store.create_conversation(title="t")
    a, b, c = Message.user("a"), Message.assistant("b"), Message.assistant("c")
    await store.commit(conversation.id, a, b)
    moved = await store.update_conversation(conversation.id, head_message_id=a.id)
    assert moved.message_count == 1
    await store.commit(conversation.id, c)
    assert (await store.load(conversation.id)).messages == (a, c)
    await store.update_conversation(conversation.id, head_message_id=b.id)
    assert (await store.load(conversation.id)).messages == (a, b)
    await store.update_conversation(conversation.id, head_message_id=None)
    assert (await store.load(conversation.id)).messages == ()
    with pytest.raises(WrongUse):
        await store.update_conversation(conversation.id, head_message_id="nobody")
    await store.close()


async def test_a_commit_that_fails_half_way_leaves_nothing(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    conversation = await store.create_conversation(title="t")
    broken = Message.user("x").model_copy(update={"id": None})  # NOT NULL in the table
    row = Envelope(1, "run", None, None, datetime.now(UTC), RunStarted("p"))
    with pytest.raises(sqlite3.IntegrityError):
        await store.commit(conversation.id, Message.user("good"), broken, envelopes=(row,))
    loaded = await store.load(conversation.id)
    assert (loaded.messages, loaded.journal) == ((), ())
    await store.commit(conversation.id, Message.user("still works"), envelopes=(row,))
    loaded = await store.load(conversation.id)
    assert (len(loaded.messages), loaded.journal) == (1, (row,))
    await store.close()


async def test_the_list_has_the_newest_first_and_a_limit(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    ids = [(await store.create_conversation(title=str(number))).id for number in range(4)]
    await store.commit(ids[1], Message.user("newest"))
    assert [record.id for record in await store.list_conversations()] == [ids[1], ids[3], ids[2], ids[0]]
    assert [record.id for record in await store.list_conversations(limit=2)] == [ids[1], ids[3]]
    await store.close()


async def test_a_title_given_by_the_person_is_not_automatic(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    conversation = await store.create_conversation(title="New conversation")
    assert conversation.title_is_automatic
    automatic = await store.update_conversation(conversation.id, title="About cats", title_is_automatic=True)
    assert automatic.title_is_automatic
    named = await store.update_conversation(conversation.id, title="Cats")
    assert (named.title, named.title_is_automatic) == ("Cats", False)
    assert named.updated_at == conversation.updated_at
    changed: Any = {"id": "x"}
    with pytest.raises(WrongUse):
        await store.update_conversation(conversation.id, **changed)
    await store.close()


@pytest.mark.parametrize(
    "chosen",
    [
        {"parameters": ConversationParameters(temperature=0.5), "reasoning": ReasoningEffort(level="low")},
        {"title_is_automatic": False, "id_": "chosen before", "workspace": "/w"},
        {},
    ],
)
async def test_what_is_chosen_for_a_new_conversation_is_kept(tmp_path: Path, chosen: dict[str, Any]) -> None:
    store = await Store.open(tmp_path)
    conversation = await store.create_conversation(title="t", **chosen)
    expected = {"title_is_automatic": True, "parameters": ConversationParameters(), "reasoning": None, **chosen}
    assert conversation.id == expected.pop("id_", conversation.id)
    assert {name: getattr(conversation, name) for name in expected} == expected
    assert await store.record(conversation.id) == conversation
    await store.close()


async def test_trash_and_back(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    conversation = await store.create_conversation(title="t")
    await store.commit(conversation.id, Message.user("kept"))
    await store.delete_conversation(conversation.id)
    assert await store.list_conversations() == ()
    (in_trash,) = await store.list_conversations(in_trash=True)
    assert in_trash.deleted_at is not None
    assert await store.record(conversation.id) == in_trash
    await store.restore_conversation(conversation.id)
    assert [record.id for record in await store.list_conversations()] == [conversation.id]
    assert (await store.load(conversation.id)).messages[0].text == "kept"
    for call in (store.delete_conversation, store.restore_conversation, store.load, store.record):
        with pytest.raises(WrongUse):
            await call("nobody")
    await store.close()


def files_with(folder: Path, marker: bytes) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file() and marker in path.read_bytes()]


@pytest.mark.parametrize("deletion", ["one", "all", "opening"])
async def test_what_is_deleted_for_good_is_in_no_log(
    tmp_path: Path, deletion: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await Store.open(tmp_path)
    conversation = await store.create_conversation(title="zqxmarker")
    await store.commit(conversation.id, Message.user("zqxmarker"))
    await store.delete_conversation(conversation.id)
    if deletion == "one":
        await store.purge_conversation(conversation.id)
    elif deletion == "all":
        assert await store.empty_trash() == 1
    else:
        await store.close()
        monkeypatch.setattr(opening, "TRASH_RETENTION", timedelta(0))
        store = await Store.open(tmp_path)
    assert await store.list_conversations(in_trash=True) == ()
    assert files_with(tmp_path, b"zqxmarker") == []
    await store.close()


async def test_deleting_for_good_waits_for_no_reader(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    conversation = await store.create_conversation(title="t")
    await store.delete_conversation(conversation.id)
    with closing(sqlite3.connect(tmp_path / DATABASE_NAME)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM conversations").fetchall()
        started = time.monotonic()
        await store.purge_conversation(conversation.id)
        assert time.monotonic() - started < 2
    await store.close()


async def test_old_trash_goes_at_opening_with_pictures_that_nothing_else_uses(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    old, recent, kept = [(await store.create_conversation(title=t)).id for t in ("old", "recent", "kept")]
    only_old, shared = (Message.user_with_base64_image("p", png(colour), "image/png") for colour in ("red", "blue"))
    (first,) = await store.commit(old, only_old)
    (second,) = await store.commit(old, shared)
    await store.commit(kept, shared)
    await store.save_draft(old, Draft("half"))
    await store.delete_conversation(old)
    await store.delete_conversation(recent)
    await store.close()
    age(tmp_path, old, timedelta(days=31))
    age(tmp_path, recent, timedelta(days=29))
    age_pictures(tmp_path)

    again = await Store.open(tmp_path)
    assert [record.id for record in await again.list_conversations(in_trash=True)] == [recent]
    with pytest.raises(WrongUse):
        await again.load(old)
    assert not again.pictures.path_of(source_of(first)).exists()
    assert again.pictures.path_of(source_of(second)).exists()
    await again.close()
    with closing(sqlite3.connect(tmp_path / "conversations.sqlite3")) as db:
        for table in ("journal", "drafts"):
            assert db.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
        assert db.execute("SELECT count(*) FROM messages").fetchone() == (1,)
        assert db.execute("SELECT count(*) FROM pictures").fetchone() == (1,)


@pytest.mark.parametrize("only_one", [False, True])
async def test_what_goes_from_the_trash_goes_with_its_pictures_and_saved_files(
    tmp_path: Path, *, only_one: bool
) -> None:
    store = await Store.open(tmp_path)
    deleted, other, kept = [(await store.create_conversation(title=t)).id for t in ("gone", "other", "kept")]
    pictures = [Message.user_with_base64_image("p", png(colour), "image/png") for colour in ("red", "blue")]
    (first,), (second,) = [
        await store.commit(id_, message) for id_, message in zip((deleted, kept), pictures, strict=True)
    ]
    needed_no_more = await store.blobs.put(b"saved before it was changed")
    await store.delete_conversation(deleted)
    await store.delete_conversation(other)
    age_pictures(tmp_path)
    with pytest.raises(WrongUse):
        await store.purge_conversation(kept)
    if only_one:
        await store.purge_conversation(deleted)
    else:
        assert await store.empty_trash() == 2
    assert [record.id for record in await store.list_conversations(in_trash=True)] == [other][: int(only_one)]
    assert [record.id for record in await store.list_conversations()] == [kept]
    assert not store.pictures.path_of(source_of(first)).exists()
    assert store.pictures.path_of(source_of(second)).exists()
    assert not store.blobs.has(needed_no_more)
    await store.close()


async def test_a_picture_that_is_attached_while_the_trash_is_emptied_is_not_lost(tmp_path: Path) -> None:
    window, asking = await Store.open(tmp_path), await Store.open(tmp_path)
    old, new = [(await store.create_conversation(title="t")).id for store in (window, asking)]
    (committed,) = await window.commit(old, Message.user_with_base64_image("p", png(), "image/png"))
    source = source_of(committed)
    await window.delete_conversation(old)
    age_pictures(tmp_path)
    again = await asking.pictures.put(base64.b64decode(png()), "image/png", source.width, source.height)
    assert again == source
    await window.empty_trash()
    await asking.commit(new, committed.model_copy(update={"id": "another"}))
    assert await asking.pictures.get(source) == base64.b64decode(png())
    # An unused picture is deleted once it is old.
    await asking.delete_conversation(new)
    age_pictures(tmp_path)
    await window.empty_trash()
    assert not window.pictures.path_of(source).exists()
    await window.close()
    await asking.close()


async def test_a_draft_whose_picture_is_gone_is_refused_so_that_it_is_put_again(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    data = base64.b64decode(png())
    source = await store.pictures.put(data, "image/png", 7, 5)
    store.pictures.path_of(source).unlink()
    with pytest.raises(StorageFailed, match="was removed before"):
        await store.save_draft(None, Draft("half", (Image(source=source),)))
    assert await store.load_draft(None) == Draft()
    await store.pictures.put(data, "image/png", 7, 5)
    await store.save_draft(None, Draft("half", (Image(source=source),)))
    conversation = await store.create_conversation(title="t")
    store.pictures.path_of(source).unlink()
    await store.commit(conversation.id, Message.user_with_blocks([Text(text="the only copy"), Image(source=source)]))
    assert [message.text for message in (await store.load(conversation.id)).messages] == ["the only copy"]
    await store.close()


def age(folder: Path, id_: str, by: timedelta) -> None:
    moment = int((datetime.now(UTC) - by).timestamp() * 1_000_000)
    with closing(sqlite3.connect(folder / "conversations.sqlite3")) as db, db:
        db.execute("UPDATE conversations SET deleted_at = ? WHERE id = ?", (moment, id_))


def picture_files(folder: Path) -> list[Path]:
    return list(folder.glob("pictures/*/*"))


def age_pictures(folder: Path) -> None:
    """Set the times of the files to two days ago."""
    for path in picture_files(folder):
        os.utime(path, (time.time() - 2 * 86400,) * 2)


def source_of(message: Message) -> StoredSource:
    (source,) = [block.source for block in message.blocks if isinstance(block, Image)]
    assert isinstance(source, StoredSource)
    return source


async def test_base64_becomes_a_file_and_never_reaches_the_database(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    conversation = await store.create_conversation(title="t")
    data = png()
    inner = Image(source=Base64Source(media_type="image/png", data=data), name="shot")
    result = ToolResult(tool_use_id="1", content=(Text(text="see"), inner))
    web = Image(source=UrlSource(url="https://example.org/a.png"))
    committed = await store.commit(
        conversation.id,
        Message.user_with_blocks([inner, web]),
        Message.tool_results([result, ToolResult(tool_use_id="2")]),
    )
    assert (await store.load(conversation.id)).messages == committed
    assert committed[0].blocks[1] == web
    source = source_of(Message.user_with_blocks([committed[0].blocks[0]]))
    assert (source.width, source.height, source.size) == (7, 5, len(base64.b64decode(data)))
    assert await store.pictures.get(source) == base64.b64decode(data)
    tool_result = committed[1].blocks[0]
    assert isinstance(tool_result, ToolResult)
    assert tool_result.content == (Text(text="see"), Image(source=source, name="shot"))
    await store.close()
    assert data[:40].encode() not in (tmp_path / "conversations.sqlite3").read_bytes()


async def test_a_picture_of_unknown_size_is_kept_as_a_file_and_said_to_be_unknown(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    conversation = await store.create_conversation(title="t")
    stump = b"\x89PNG\r\n\x1a\n"
    image = Image(source=Base64Source(media_type="image/png", data=base64.b64encode(stump).decode()), name="stump")
    (user, tool) = await store.commit(
        conversation.id,
        Message.user_with_blocks([image]),
        Message.tool_results([ToolResult(tool_use_id="1", content=(image,))]),
    )
    (block,) = user.blocks
    assert isinstance(block, Unknown)
    assert (block.raw["name"], block.raw["size"]) == ("stump", 8)
    assert store.pictures.path_for(block.raw["digest"], "image/png").read_bytes() == stump
    (result,) = tool.blocks
    assert isinstance(result, ToolResult)
    assert result.content == (Json(value=block.raw),)
    with pytest.raises(ImageRefused):
        await store.save_draft(None, Draft(images=(image,)))
    await store.close()


async def test_drafts_of_a_conversation_and_of_none(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    conversation = await store.create_conversation(title="t")
    image = Image(source=Base64Source(media_type="image/png", data=png()), name="n")
    await store.save_draft(None, Draft(NASTY, (image,)))
    await store.save_draft(conversation.id, Draft("other"))
    await store.close()

    again = await Store.open(tmp_path)
    draft = await again.load_draft(None)
    assert draft.text == NASTY
    source = draft.images[0].source
    assert isinstance(source, StoredSource)
    assert await again.pictures.get(source) == base64.b64decode(png())
    assert await again.load_draft(conversation.id) == Draft("other")
    await again.save_draft(None, Draft())
    assert await again.load_draft(None) == Draft()
    await again.close()
    age_pictures(tmp_path)

    last = await Store.open(tmp_path)
    assert not last.pictures.path_of(source).exists()
    await last.close()


async def test_the_shared_draft_keeps_its_picture_whatever_is_drafted_elsewhere(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    new, other = [(await store.create_conversation(title=t)).id for t in ("made", "other")]
    mine, theirs = [Image(source=Base64Source(media_type="image/png", data=png(c))) for c in ("red", "blue")]
    await store.save_draft(None, Draft("mine", (mine,)))
    await store.save_draft(other, Draft("theirs", (theirs,)))
    shared, beside = await store.load_draft(None), await store.load_draft(other)
    for is_adopted in (False, True):
        if is_adopted:
            # Now the new conversation exists, and the draft belongs to it.
            await store.save_draft(new, shared, was_new=True)
            assert await store.load_draft(None) == Draft()
        assert await store.load_draft(new if is_adopted else None) == shared
        assert await store.load_draft(other) == beside
        await store.close()
        age_pictures(tmp_path)
        store = await Store.open(tmp_path)
        assert len(picture_files(tmp_path)) == 2
    await store.close()


async def test_a_picture_that_was_taken_out_of_the_shared_draft_goes(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    conversation = (await store.create_conversation(title="t")).id
    image = Image(source=Base64Source(media_type="image/png", data=png()))
    for was_new in (False, True):
        await store.save_draft(None, Draft("with", (image,)))
        await store.save_draft(conversation if was_new else None, Draft("without"), was_new=was_new)
        await store.close()
        age_pictures(tmp_path)
        store = await Store.open(tmp_path)
        assert picture_files(tmp_path) == []
    await store.close()


async def test_surrogates_and_nul_anywhere(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    conversation = await store.create_conversation(title=NASTY, endpoint_id=NASTY, model=NASTY, workspace=NASTY)
    assert (conversation.title, conversation.model, conversation.workspace) == (NASTY, NASTY, NASTY)
    message = Message(
        id=NASTY,
        role=Role.ASSISTANT,
        blocks=(Text(text=NASTY), ToolUse(id=NASTY, name=NASTY, input={NASTY: [NASTY]}), Unknown(raw=NASTY)),
    )
    await store.commit(conversation.id, message)
    await store.commit(conversation.id, message)
    loaded = await store.load(conversation.id)
    assert loaded.messages == (message,)
    assert loaded.record.head_message_id == NASTY
    assert (await store.update_conversation(conversation.id, title="\udcff")).title == "\udcff"
    await store.close()


async def test_a_snapshot_is_a_whole_database_and_overwrites_nothing(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "data")
    conversation = await store.create_conversation(title="t")
    await store.commit(conversation.id, Message.user("saved"))
    (tmp_path / "copy").mkdir()
    target = tmp_path / "copy" / "conversations.sqlite3"
    await store.snapshot(target)
    with pytest.raises(Exception, match="exists already"):
        await store.snapshot(target)
    await store.commit(conversation.id, Message.user("later"))
    await store.close()

    copy = await Store.open(target.parent)
    assert copy.notices == ()
    assert [message.text for message in (await copy.load(conversation.id)).messages] == ["saved"]
    await copy.close()


async def test_what_was_to_be_written_before_a_snapshot_is_in_it(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "data")
    conversation = await store.create_conversation(title="t")
    gate = threading.Event()
    holding = asyncio.ensure_future(store.run(lambda _: gate.wait()))
    committing = asyncio.ensure_future(store.commit(conversation.id, Message.user("saved")))
    await asyncio.sleep(0)  # both are requested
    (tmp_path / "copy").mkdir()
    copying = asyncio.ensure_future(store.snapshot(tmp_path / "copy" / DATABASE_NAME))
    await asyncio.wait([copying], timeout=0.1)  # one that did not wait would be done
    gate.set()
    await asyncio.gather(holding, committing, copying)
    await store.close()
    copy = await Store.open(tmp_path / "copy")
    assert [message.text for message in (await copy.load(conversation.id)).messages] == ["saved"]
    await copy.close()


async def test_a_cancelled_caller_does_not_undo_the_work(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    conversation = await store.create_conversation(title="t")
    commit = asyncio.ensure_future(store.commit(conversation.id, Message.user("kept")))
    await asyncio.sleep(0)
    commit.cancel()
    with pytest.raises(asyncio.CancelledError):
        await commit
    assert len((await store.load(conversation.id)).messages) == 1
    await store.close()


async def test_an_opening_that_is_cancelled_leaves_nothing_open(tmp_path: Path) -> None:
    opening = asyncio.ensure_future(Store.open(tmp_path))
    await asyncio.sleep(0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    store = await Store.open(tmp_path)
    await store.close()


# No low surrogates: a surrogate pair would come back as the one character that it encodes.
texts = st.text(st.characters(exclude_categories=["Cs"]) | st.just("\ud800") | st.just("\0"), max_size=40)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
json_objects = st.dictionaries(texts, json_values, max_size=3)
stored = st.builds(
    StoredSource,
    digest=st.text("0123456789abcdef", min_size=64, max_size=64),
    media_type=st.sampled_from(["image/png", "image/webp"]),
    size=st.integers(0, 10**9),
    width=st.integers(1, 9999),
    height=st.integers(1, 9999),
)
images = st.builds(Image, source=stored | st.builds(UrlSource, url=st.just("https://example.org/")), name=texts)
results = st.builds(
    ToolResult,
    tool_use_id=texts,
    content=st.lists(st.builds(Text, text=texts) | st.builds(Json, value=json_values) | images, max_size=3).map(tuple),
    outcome=st.sampled_from(Outcome),
)
blocks = (
    st.builds(Text, text=texts)
    | images
    | st.builds(Thinking, text=texts, provider=texts, metadata=json_objects)
    | st.builds(ToolUse, id=texts, name=texts, input=json_objects, malformed=st.none() | texts)
    | results
    | st.builds(Unknown, raw=json_values)
)
some_messages = st.builds(
    Message,
    role=st.sampled_from(Role),
    blocks=st.lists(blocks, max_size=4).map(tuple),
    state=st.sampled_from(MessageState),
    created_at=st.datetimes(timezones=st.just(UTC)),
    model=st.none() | st.text(string.printable),
    usage=st.none() | st.builds(Usage, input_tokens=st.none() | st.integers(0, 10**12), cost=st.none() | st.just(0.25)),
    stop_reason=st.none() | st.sampled_from(StopReason),
)


@settings(
    max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(st.lists(some_messages, max_size=6))
def test_any_messages_come_back_identical(tmp_path_factory: pytest.TempPathFactory, batch: list[Message]) -> None:
    async def write_and_load(folder: Path) -> tuple[Message, ...]:
        store = await Store.open(folder)
        conversation = await store.create_conversation(title="t")
        for message in batch:
            await store.commit(conversation.id, message)
        await store.close()
        again = await Store.open(folder)
        loaded = await again.load(conversation.id)
        await again.close()
        return loaded.messages

    assert asyncio.run(write_and_load(tmp_path_factory.mktemp("store"))) == tuple(batch)


async def test_the_list_is_read_page_by_page_and_loses_none_of_the_same_moment(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    conversations = [await store.create_conversation(title=str(number)) for number in range(7)]
    await store.delete_conversation(conversations[3].id)
    await store.run(lambda db: db.execute("UPDATE conversations SET updated_at = 5 WHERE number < 6"))
    titles: list[str] = []
    page, position = await store.list_page(2)
    while position is not None:
        titles += [row.title for row in page]
        page, position = await store.list_page(2, position)
    titles += [row.title for row in page]
    assert titles == ["6", "5", "4", "2", "1", "0"]
    assert titles == [record.title for record in await store.list_conversations()]
    await store.close()


async def test_titles_are_found_by_parts_of_their_words_wherever_they_are(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    for title in ("Über Bäume", "50% off_sale", "about TREES", "trees again"):
        await store.create_conversation(title=title)
    deleted = await store.create_conversation(title="trees gone")
    await store.delete_conversation(deleted.id)

    async def titles(typed: str, limit: int = 10) -> list[str]:
        page, _ = await store.list_page(limit, None, ListScope(title=typed))
        return [listed.title for listed in page]

    assert await titles("") == ["trees again", "about TREES", "50% off_sale", "Über Bäume"]
    assert await titles("", 2) == ["trees again", "about TREES"]
    assert await titles("Tree") == ["trees again", "about TREES"]
    assert await titles("rees bout") == ["about TREES"]
    assert await titles("über") == ["Über Bäume"]
    assert await titles("% _") == ["50% off_sale"]
    assert await titles("0_o") == []
    assert await titles("\ud800\0") == []
    await store.close()


async def test_the_trash_is_read_in_parts(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    conversations = [await store.create_conversation(title=str(number)) for number in range(5)]
    for conversation in conversations:
        await store.delete_conversation(conversation.id)
    titles, after = list[str](), None
    for _ in range(3):
        page, after = await store.list_page(2, after, ListScope(in_trash=True))
        assert all(listed.deleted_at is not None for listed in page)
        titles += [listed.title for listed in page]
    assert titles == ["4", "3", "2", "1", "0"]
    assert after is None
    await store.close()


async def test_a_closing_that_is_cancelled_closes_everything(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    await store.search.index_all()
    ending = asyncio.create_task(store.close())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending
    assert find_other_processes(tmp_path).present == ()
