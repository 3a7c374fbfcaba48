"""Checkpoints in the database, and the saved files that are removed with them."""

import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from desktop_agent.storage.content_files import _checkpoint_json, _read_checkpoint
from desktop_agent.storage.opening import DATABASE_NAME, TRASH_RETENTION, mark_damaged
from desktop_agent.storage.store import Store
from desktop_agent.types.checkpoints import Checkpoint, FileState, SavedFile
from desktop_agent.types.errors import StorageFailed, WrongUse
from desktop_agent.types.messages import Message

AT = datetime(2024, 5, 1, 12, 0, 0, 123456, tzinfo=UTC)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await Store.open(tmp_path)
    yield store
    await store.close()


async def conversation(store: Store) -> str:
    record = await store.create_conversation(title="t")
    await store.commit(record.id, Message.user("hello"))
    return record.id


async def checkpoint_of(store: Store, conversation_id: str, id_: str, data: bytes, path: str = "a.txt") -> Checkpoint:
    return Checkpoint(
        id=id_,
        conversation_id=conversation_id,
        tool_use_id="call",
        message_id="message",
        workspace="/work",
        created_at=AT,
        files=(SavedFile(path=path, before=FileState(digest=await store.blobs.put(data), mode=0o644)),),
        new_folders=("new",),
    )


async def test_checkpoints_are_loaded_unchanged_in_the_order_of_creation(store: Store, tmp_path: Path) -> None:
    id_ = await conversation(store)
    first, second = [await checkpoint_of(store, id_, name, name.encode()) for name in ("z", "a")]
    await store.checkpoints.save(first)
    await store.checkpoints.save(second)
    first = first.model_copy(update={"restored": True})
    await store.checkpoints.save(first)
    assert await store.checkpoints.of_conversation(id_) == (first, second)
    assert await store.checkpoints.of_conversation(await conversation(store)) == ()
    assert await store.checkpoints.of_conversation("never written") == ()
    await store.close()
    again = await Store.open(tmp_path)
    assert await again.checkpoints.of_conversation(id_) == (first, second)
    await again.close()


async def test_names_that_are_no_unicode_survive(store: Store) -> None:
    id_ = await conversation(store)
    checkpoint = await checkpoint_of(store, id_, "c", b"x", path="d\udcff/“ä”\ud800.txt")
    checkpoint = checkpoint.model_copy(update={"workspace": "/w\udcff"})
    await store.checkpoints.save(checkpoint)
    assert await store.checkpoints.of_conversation(id_) == (checkpoint,)


async def test_a_conversation_that_was_never_written_has_none(store: Store) -> None:
    with pytest.raises(WrongUse):
        await store.checkpoints.save(await checkpoint_of(store, "nowhere", "c", b"x"))


async def test_a_checkpoint_whose_bytes_were_removed_is_not_saved(store: Store) -> None:
    id_ = await conversation(store)
    checkpoint = await checkpoint_of(store, id_, "c", b"x")
    await store.empty_trash()  # nothing names the bytes yet
    with pytest.raises(StorageFailed, match="was removed before"):
        await store.checkpoints.save(checkpoint)
    assert await store.checkpoints.of_conversation(id_) == ()
    await store.blobs.put(b"x")
    await store.checkpoints.save(checkpoint)
    store.blobs.remove_all_but(())
    await store.checkpoints.save(checkpoint.model_copy(update={"restored": True}))  # it can still be noted
    assert [stored.restored for stored in await store.checkpoints.of_conversation(id_)] == [True]


async def test_the_trash_takes_saved_files_along_that_nobody_else_needs(store: Store) -> None:
    going, staying = await conversation(store), await conversation(store)
    for id_, data in ((going, b"alone"), (going, b"shared"), (staying, b"shared")):
        await store.checkpoints.save(await checkpoint_of(store, id_, data.decode(), data))
    await store.delete_conversation(going)
    digests = [await store.blobs.put(data) for data in (b"alone", b"shared")]
    assert len(await store.checkpoints.of_conversation(going)) == 2  # in the trash everything is still there
    assert await store.empty_trash() == 1
    assert [store.blobs.has(digest) for digest in digests] == [False, True]
    assert await store.checkpoints.of_conversation(going) == ()
    assert len(await store.checkpoints.of_conversation(staying)) == 1


async def test_opening_after_the_retention_of_the_trash_removes_checkpoints(store: Store, tmp_path: Path) -> None:
    id_ = await conversation(store)
    checkpoint = await checkpoint_of(store, id_, "c", b"x")
    await store.checkpoints.save(checkpoint)
    await store.delete_conversation(id_)
    await store.close()
    with closing(sqlite3.connect(tmp_path / DATABASE_NAME)) as db, db:
        db.execute(
            "UPDATE conversations SET deleted_at = deleted_at - ?", (TRASH_RETENTION.total_seconds() * 1_000_000,)
        )
    again = await Store.open(tmp_path)
    assert not again.blobs.has(checkpoint.files[0].before.digest or "")
    await again.close()


async def test_a_row_that_cannot_be_read_is_left_out_and_keeps_its_files(store: Store, caplog) -> None:
    id_ = await conversation(store)
    good, bad = [await checkpoint_of(store, id_, name, name.encode()) for name in ("good", "bad")]
    await store.checkpoints.save(good)
    await store.checkpoints.save(bad)
    await store.run(
        lambda db: db.execute("UPDATE checkpoints SET body = replace(body, '\"files\"', '\"fules\"') WHERE id = 'bad'")
    )
    assert await store.checkpoints.of_conversation(id_) == (good,)
    await store.empty_trash()
    assert store.blobs.has(bad.files[0].before.digest or "")


async def test_a_damaged_database_carries_them_over(store: Store, tmp_path: Path) -> None:
    id_, lost = await conversation(store), await conversation(store)
    checkpoint = await checkpoint_of(store, id_, "kept", b"kept")
    await store.checkpoints.save(checkpoint)
    await store.checkpoints.save(await checkpoint_of(store, lost, "lost", b"lost"))

    def lose(db: sqlite3.Connection) -> None:
        db.execute("PRAGMA foreign_keys=OFF")
        db.execute("DELETE FROM messages WHERE conversation = (SELECT number FROM conversations WHERE id = ?)", (lost,))
        db.execute("DELETE FROM conversations WHERE id = ?", (lost,))

    await store.run(lose)
    await store.close()
    mark_damaged(tmp_path)
    again = await Store.open(tmp_path)
    assert again.notices
    assert await again.checkpoints.of_conversation(id_) == (checkpoint,)
    assert await again.run(lambda db: db.execute("SELECT count(*) FROM checkpoints").fetchone()[0]) == 1
    await again.close()


def test_a_checkpoint_row_from_before_undo_still_loads() -> None:
    body = (
        '{"id":"c","conversation_id":"v","tool_use_id":"t","message_id":"m","workspace":"/w",'
        '"created_at":"2026-01-02T03:04:05Z","files":[],"new_folders":[],"restored":false}'
    )
    checkpoint = _read_checkpoint(body)
    assert checkpoint is not None
    assert (checkpoint.tool, checkpoint.input, checkpoint.undone, checkpoint.needs_undo) == ("", None, False, False)
    undone = checkpoint.model_copy(update={"tool": "book", "input": {"a": [1]}, "succeeded": True, "undone": True})
    assert _read_checkpoint(_checkpoint_json(undone)) == undone


async def test_fields_that_older_versions_do_not_know_are_written_only_where_they_say_something(store: Store) -> None:
    id_ = await conversation(store)
    plain = await checkpoint_of(store, id_, "plain", b"old")
    redo = plain.model_copy(update={"id": "redo", "undoes": "plain", "is_redo": True, "note_id": "note"})
    old_fields = {
        "id",
        "conversation_id",
        "tool_use_id",
        "message_id",
        "workspace",
        "created_at",
        "files",
        "new_folders",
    }
    assert set(json.loads(_checkpoint_json(plain))) == old_fields
    assert set(json.loads(_checkpoint_json(redo))) == old_fields | {"undoes", "is_redo", "note_id"}
    assert [_read_checkpoint(_checkpoint_json(original)) for original in (plain, redo)] == [plain, redo]
