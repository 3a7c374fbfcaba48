"""Backups: written while the program runs, listed, thinned out, restored into a new folder."""

import asyncio
import base64
import errno
import json
import os
import shutil
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.storage import store as store_module
from desktop_agent.storage.backups import backup as backup_module
from desktop_agent.storage.backups.backup import (
    BACKUP_FOLDER,
    StoredCounts,
    count_stored,
    find_backup_folders,
    find_with_conversations,
    find_with_message,
    forget_backup_folders,
    is_backup_due,
    list_backups,
    remove_backup,
    remove_old_backups,
    remove_unfinished_backups,
    restore_backup,
    write_backup,
)
from desktop_agent.storage.content_files import BLOB_FOLDER, PICTURE_FOLDER
from desktop_agent.storage.migrations import create_database
from desktop_agent.storage.store import DATABASE_NAME, Store
from desktop_agent.types.blocks import Base64Source, Image
from desktop_agent.types.errors import DatabaseTooNew, DiskFull, StorageFailed
from desktop_agent.types.messages import Message
from tests.desktop_agent.storage.test_conversation_trees import PIXEL, TREE


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
async def store(data: Path) -> AsyncIterator[Store]:
    store = await Store.open(data)
    await store.import_tree(TREE)
    picture = Image(source=Base64Source(media_type="image/png", data=PIXEL))
    await store.commit("imported", Message.user_with_blocks([picture]))
    (data / "preferences.json").write_text('{"a": 1}')
    yield store
    await store.close()


COUNTS = StoredCounts(conversations=1, in_trash=0, messages=7)


def break_folder(patch: pytest.MonkeyPatch, broken: Path) -> None:
    """Make `os.listdir` and `os.scandir` fail for this folder, as on a broken disk."""
    for name in ("listdir", "scandir"):
        plain = getattr(os, name)

        def fail_for_broken(path: Any = ".", plain: Callable[[Any], object] = plain) -> object:
            if isinstance(path, str | Path) and Path(path) == broken:
                raise OSError(errno.ENOTCONN, "Transport endpoint is not connected", str(path))
            return plain(path)

        patch.setattr(os, name, fail_for_broken)


async def test_a_backup_is_restored_whole_into_a_new_folder(store: Store, data: Path, tmp_path: Path) -> None:
    backup = await write_backup(store, data, tmp_path / "backups")
    assert backup.counts == COUNTS
    assert await list_backups(tmp_path / "backups") == (backup,)
    await store.commit("imported", Message.user("said since"))
    before, after = await restore_backup(backup.folder, tmp_path / "again")
    assert before == after == COUNTS
    assert (tmp_path / "again" / "preferences.json").read_text() == '{"a": 1}'
    again = await Store.open(tmp_path / "again")
    try:
        messages = (await again.load("imported")).messages
        (image,) = messages[-1].blocks
        assert isinstance(image, Image)
        assert await again.pictures.get(image.source) == base64.b64decode(PIXEL)  # type: ignore[arg-type]
    finally:
        await again.close()


async def test_what_is_deleted_since_is_in_the_backup_still(store: Store, data: Path, tmp_path: Path) -> None:
    backup = await write_backup(store, data, tmp_path / "backups")
    await store.delete_conversation("imported")
    await store.empty_trash()
    before, after = await restore_backup(backup.folder, tmp_path / "again")
    assert before == after == COUNTS
    assert count_stored(data) == StoredCounts(0, 0, 0)


async def test_only_the_newest_are_kept(store: Store, data: Path, tmp_path: Path) -> None:
    backups = [await write_backup(store, data, tmp_path / "backups", is_automatic=True) for _ in range(3)]
    assert len({backup.folder for backup in backups}) == 3
    assert await remove_old_backups(tmp_path / "backups", keep=1) == 2
    (newest,) = await list_backups(tmp_path / "backups")
    assert [path.name for path in (tmp_path / "backups").iterdir()] == [newest.folder.name]


async def test_nothing_is_restored_over_something(store: Store, data: Path, tmp_path: Path) -> None:
    backup = await write_backup(store, data, tmp_path / "backups")
    full = tmp_path / "full"
    full.mkdir()
    (full / "mine").write_text("x")
    with pytest.raises(StorageFailed, match="not empty"):
        await restore_backup(backup.folder, full)
    assert [path.name for path in full.iterdir()] == ["mine"]


async def test_an_unfinished_backup_is_none(store: Store, data: Path, tmp_path: Path) -> None:
    backup = await write_backup(store, data, tmp_path / "backups")
    (backup.folder / "backup.json").write_text("{")
    assert await list_backups(tmp_path / "backups") == ()
    with pytest.raises(StorageFailed, match="not a finished backup"):
        await restore_backup(backup.folder, tmp_path / "again")
    assert not (tmp_path / "again" / DATABASE_NAME).exists()


async def test_a_backup_that_fails_leaves_nothing(store: Store, data: Path, tmp_path: Path) -> None:
    (data / "preferences.json").unlink()
    (data / "preferences.json").mkdir()  # is no file: it is left out
    await write_backup(store, data, tmp_path / "backups")
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageFailed):
        await write_backup(store, data, tmp_path / "file")
    await store.close()
    with pytest.raises(Exception):  # noqa: B017, PT011 - a closed store fails in its own way
        await write_backup(store, data, tmp_path / "backups")
    assert len(list((tmp_path / "backups").iterdir())) == 1


def test_a_database_with_a_damaged_schema_is_reported(tmp_path: Path) -> None:
    path = tmp_path / DATABASE_NAME
    create_database(path)
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE messages", b"CREA\xcdE TABLE messages"))
    with pytest.raises(StorageFailed, match="no readable conversations"):
        count_stored(tmp_path)


@pytest.mark.parametrize("step", ["_make_target", "_share", "count_stored", "write_atomically", "_write_copy"])
async def test_a_backup_that_is_cancelled_leaves_nothing(
    store: Store, data: Path, tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = store_module if step == "_write_copy" else backup_module
    begun, original = threading.Event(), getattr(module, step)

    def slow(*arguments: Any) -> Any:
        begun.set()
        time.sleep(0.2)
        return original(*arguments)

    monkeypatch.setattr(module, step, slow)
    writing = asyncio.ensure_future(write_backup(store, data, tmp_path / "backups"))
    await asyncio.to_thread(begun.wait, 30)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    await asyncio.sleep(0.5)
    assert list((tmp_path / "backups").rglob("*")) == []


async def test_two_backups_of_one_moment_have_a_folder_each(
    store: Store, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if the other process created its folder after this one had checked.
    exists = Path.exists

    def exists_unseen(path: Path) -> bool:
        return exists(path) and path.parent != tmp_path / "backups"

    monkeypatch.setattr(Path, "exists", exists_unseen)
    for _ in range(2):
        await write_backup(store, data, tmp_path / "backups")
    assert len(await list_backups(tmp_path / "backups")) == 2


async def test_a_restore_that_fails_can_be_tried_again(
    store: Store, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup = await write_backup(store, data, tmp_path / "backups")
    original = shutil.copy2

    def refuse(source: Path, target: Path) -> None:
        if source.name == DATABASE_NAME:
            target.write_bytes(b"half")
            raise OSError(errno.ENOSPC, "No space left on device")
        original(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copy2", refuse)
        with pytest.raises(DiskFull):
            await restore_backup(backup.folder, tmp_path / "again")
    assert list((tmp_path / "again").iterdir()) == []
    assert (await restore_backup(backup.folder, tmp_path / "again"))[1] == COUNTS


async def test_a_backup_holds_what_links_lead_to_and_no_links(store: Store, data: Path, tmp_path: Path) -> None:
    picture = next(path for path in (data / PICTURE_FOLDER).rglob("*") if path.is_file())
    content = picture.read_bytes()
    picture.rename(tmp_path / "picture")
    picture.symlink_to(tmp_path / "picture")
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / "dotfiles" / "models.toml").write_text("# mine")
    (data / "models.toml").symlink_to(tmp_path / "dotfiles" / "models.toml")
    (data / "folder.toml").symlink_to(tmp_path / "dotfiles")
    backup = await write_backup(store, data, tmp_path / "backups")
    copies = {backup.folder / "models.toml": b"# mine", backup.folder / picture.relative_to(data): content}
    for copy, expected in copies.items():
        assert (copy.is_symlink(), copy.read_bytes()) == (False, expected)
    assert not (backup.folder / "folder.toml").exists()


async def test_no_backup_leaves_out_settings_whose_disk_is_not_mounted(
    store: Store, data: Path, tmp_path: Path
) -> None:
    (data / "models.toml").symlink_to(tmp_path / "not-mounted" / "models.toml")
    with pytest.raises(StorageFailed, match="leads to nothing") as failed:
        await write_backup(store, data, tmp_path / "backups")
    assert str(data / "models.toml") in str(failed.value)
    assert await list_backups(tmp_path / "backups") == ()


async def test_a_link_in_a_backup_is_not_followed(store: Store, data: Path, tmp_path: Path) -> None:
    backup = await write_backup(store, data, tmp_path / "backups")
    (tmp_path / "secret").write_text("s")
    (backup.folder / "models.toml").symlink_to(tmp_path / "secret")
    await restore_backup(backup.folder, tmp_path / "again")
    assert not (tmp_path / "again" / "models.toml").exists()


async def test_the_program_removes_only_automatic_backups(store: Store, data: Path) -> None:
    backups = data / "backups"
    manual = await write_backup(store, data, backups)
    automatic = [await write_backup(store, data, backups, is_automatic=True) for _ in range(3)]
    assert await remove_old_backups(backups, 2) == 1
    remaining = {backup.folder for backup in await list_backups(backups)}
    assert remaining == {manual.folder, automatic[1].folder, automatic[2].folder}
    await remove_backup(manual.folder)
    assert {backup.folder for backup in await list_backups(backups)} == remaining - {manual.folder}
    with pytest.raises(StorageFailed):
        await remove_backup(manual.folder)


async def test_what_a_dead_process_left_is_removed_a_day_later(store: Store, data: Path) -> None:
    backups = data / "backups"
    complete = await write_backup(store, data, backups)
    for name in "2020-01-01 00-00-00", "2020-01-01 00-00-00 2", "mine":
        (backups / name).mkdir()
    old = time.time() - 25 * 60 * 60
    for path in backups.iterdir():
        if path.name != "2020-01-01 00-00-00 2":
            os.utime(path, (old, old))
    await remove_unfinished_backups(backups)
    assert {path.name for path in backups.iterdir()} == {complete.folder.name, "2020-01-01 00-00-00 2", "mine"}


async def test_a_backup_is_due_when_the_newest_is_old_and_something_was_written_since(store: Store, data: Path) -> None:
    backups = data / "backups"
    assert await is_backup_due(data, backups, timedelta(days=7))
    backup = await write_backup(store, data, backups)
    assert not await is_backup_due(data, backups, timedelta(days=7))
    manifest = backup.folder / "backup.json"
    aged = {**json.loads(manifest.read_text()), "created_at": (backup.created_at - timedelta(days=8)).isoformat()}
    manifest.write_text(json.dumps(aged))
    await store.commit("imported", Message.user("said since"))
    assert await is_backup_due(data, backups, timedelta(days=7))
    assert not await is_backup_due(data, backups, timedelta(days=9))
    long_ago = (backup.created_at - timedelta(days=9)).timestamp()
    for path in data / DATABASE_NAME, data / f"{DATABASE_NAME}-wal":
        os.utime(path, (long_ago, long_ago))
    assert not await is_backup_due(data, backups, timedelta(days=7))


async def test_a_backup_from_the_future_neither_delays_nor_displaces_others(
    store: Store, data: Path, tmp_path: Path
) -> None:
    backups = tmp_path / "backups"
    ahead, current = [await write_backup(store, data, backups, is_automatic=True) for _ in range(2)]
    manifest = json.loads((ahead.folder / "backup.json").read_text())
    manifest["created_at"] = "2999-01-01T00:00:00Z"
    (ahead.folder / "backup.json").write_text(json.dumps(manifest))
    assert [backup.folder for backup in await list_backups(backups)] == [ahead.folder, current.folder]
    assert await remove_old_backups(backups, 1) == 0
    await remove_backup(current.folder)
    assert await is_backup_due(data, backups, timedelta(days=1))


async def test_the_backups_that_have_a_conversation_are_known(store: Store, data: Path) -> None:
    backups = data / "backups"
    backup = await write_backup(store, data, backups)
    paths = [backup.folder, data / DATABASE_NAME]
    assert await find_with_conversations(paths, ["imported", "another"]) == tuple(paths)
    assert await find_with_conversations(paths, ["another"]) == ()
    (backup.folder / DATABASE_NAME).write_bytes(b"unreadable")
    assert await find_with_conversations(paths, ["another"]) == (backup.folder,)


async def test_folders_of_backups_are_remembered_and_no_backup_has_them(
    store: Store, data: Path, tmp_path: Path
) -> None:
    own, first, second = data / BACKUP_FOLDER, tmp_path / "first", tmp_path / "second"
    assert await find_backup_folders(data) == ((own,), ())
    backups = [await write_backup(store, data, folder) for folder in (own, first, second, first)]
    assert await find_backup_folders(data) == ((own, first, second), ())
    assert not list(backups[-1].folder.glob("backup-folders*"))
    first.rename(tmp_path / "away")
    assert await find_backup_folders(data) == ((own, second), (first,))
    await forget_backup_folders(data, (first,))
    assert await find_backup_folders(data) == ((own, second), ())


async def test_a_folder_of_backups_that_cannot_be_looked_at_is_gone(store: Store, data: Path) -> None:
    # As on a network disk that fails; the system reports another error for it.
    strange = "/" + "x" * 300
    (data / "backup-folders").write_text(json.dumps([strange]))
    assert await find_backup_folders(data) == ((data / BACKUP_FOLDER,), (Path(strange),))


async def test_a_list_of_folders_that_cannot_be_read_now_is_not_written_over(
    store: Store, data: Path, tmp_path: Path
) -> None:
    await write_backup(store, data, tmp_path / "first")
    listed, aside = data / "backup-folders", tmp_path / "aside"
    listed.rename(aside)
    listed.mkdir()
    await write_backup(store, data, tmp_path / "second")
    with pytest.raises(StorageFailed):
        await find_backup_folders(data)
    listed.rmdir()
    aside.rename(listed)
    assert await find_backup_folders(data) == ((data / BACKUP_FOLDER, tmp_path / "first"), ())


@pytest.mark.parametrize("text", ["", "{}", "null", '[1, "relative", null, ["/x"]]', "[" * 10_000])
async def test_a_list_of_folders_that_nobody_can_read_is_none(store: Store, data: Path, text: str) -> None:
    (data / "backup-folders").write_text(text)
    assert await find_backup_folders(data) == ((data / BACKUP_FOLDER,), ())


async def test_the_backups_that_have_a_message_are_known(store: Store, data: Path) -> None:
    backup = await write_backup(store, data, data / "backups")
    paths = [backup.folder, data / DATABASE_NAME]
    since, before = Message.user("said since"), (await store.load_tree("imported")).messages[0].message
    await store.commit("imported", since)
    assert await find_with_message(paths, "imported", before.id) == tuple(paths)
    assert await find_with_message(paths, "imported", since.id) == (data / DATABASE_NAME,)
    assert await find_with_message(paths, "another", before.id) == ()
    (backup.folder / DATABASE_NAME).write_bytes(b"unreadable")
    assert await find_with_message(paths, "imported", since.id) == tuple(paths)


async def test_a_backup_of_a_moment_without_a_zone_keeps_no_other_from_being_listed(tmp_path: Path) -> None:
    counts = {"conversations": 1, "in_trash": 0, "messages": 1}
    for name, moment in (("a", "2026-01-01T00:00:00"), ("b", "2026-01-02T00:00:00+00:00")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "backup.json").write_text(json.dumps({"created_at": moment, "counts": counts}))
    assert [backup.folder.name for backup in await list_backups(tmp_path)] == ["b"]


@pytest.mark.parametrize("count", ["<b>1</b>", -1, 10**400, [1], True, 1.5, None])
async def test_counts_that_no_program_of_ours_writes_are_counted_anew(
    store: Store, data: Path, tmp_path: Path, count: Any
) -> None:
    backup = await write_backup(store, data, tmp_path / "backups")
    manifest = backup.folder / "backup.json"
    original = json.loads(manifest.read_text())
    for counts in (
        {**original["counts"], "messages": count},
        count,
        {"messages": 1},
        {**original["counts"], "more": count},
    ):
        manifest.write_text(json.dumps({**original, "counts": counts}))
        (listed,) = await list_backups(tmp_path / "backups")
        assert listed.counts == backup.counts
    for moment in (count, "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"):
        manifest.write_text(json.dumps({**original, "created_at": moment}))
        assert await list_backups(tmp_path / "backups") == ()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
async def test_nothing_waits_for_a_pipe(store: Store, data: Path, tmp_path: Path) -> None:
    backup = await write_backup(store, data, tmp_path / "backups")
    (backup.folder / DATABASE_NAME).unlink()
    os.mkfifo(backup.folder / DATABASE_NAME)
    assert await find_with_conversations([backup.folder], ["another"]) == (backup.folder,)
    with pytest.raises(StorageFailed, match="no readable conversations"):
        await restore_backup(backup.folder, tmp_path / "again")
    (backup.folder / "backup.json").unlink()
    os.mkfifo(backup.folder / "backup.json")
    assert await list_backups(tmp_path / "backups") == ()


async def test_a_manifest_of_any_size_is_not_read_whole(store: Store, data: Path, tmp_path: Path) -> None:
    backup = await write_backup(store, data, tmp_path / "backups")
    with (backup.folder / "backup.json").open("ab") as file:
        file.write(b" " * 200_000)
    assert await list_backups(tmp_path / "backups") == ()


def change_database(backup: Path, *statements: str) -> None:
    with closing(sqlite3.connect(backup / DATABASE_NAME)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


ENDLESS = (
    "CREATE VIEW messages AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT m.* FROM m, n"
)


async def test_a_view_that_never_ends_is_not_counted(store: Store, data: Path, tmp_path: Path) -> None:
    backup = await write_backup(store, data, tmp_path / "backups")
    change_database(backup.folder, "ALTER TABLE messages RENAME TO m", ENDLESS)
    with pytest.raises(StorageFailed, match="no readable conversations"):
        await restore_backup(backup.folder, tmp_path / "again")
    assert await find_with_conversations([backup.folder], ["another"]) == (backup.folder,)


async def test_a_backup_of_a_newer_version_leaves_the_folder_empty(store: Store, data: Path, tmp_path: Path) -> None:
    backup = await write_backup(store, data, tmp_path / "backups")
    change_database(backup.folder, "PRAGMA user_version = 99")
    with pytest.raises(DatabaseTooNew, match="backups"):
        await restore_backup(backup.folder, tmp_path / "again")
    assert not (tmp_path / "again").exists()


async def test_a_folder_on_a_network_disk_that_has_gone_is_told_of(
    store: Store, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backups = tmp_path / "backups"
    await write_backup(store, data, backups)
    with monkeypatch.context() as patch:
        break_folder(patch, backups)
        with pytest.raises(StorageFailed, match="not connected"):
            await list_backups(backups)


@pytest.mark.parametrize("broken", [PICTURE_FOLDER, f"{BLOB_FOLDER}/ab", "."])
async def test_no_backup_leaves_out_what_the_disk_fails_to_list(
    store: Store, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    (data / BLOB_FOLDER / "ab").mkdir(parents=True, exist_ok=True)
    with monkeypatch.context() as patch:
        break_folder(patch, data / broken)
        with pytest.raises(StorageFailed, match="not connected"):
            await write_backup(store, data, tmp_path / "backups")
    assert await list_backups(tmp_path / "backups") == ()


@pytest.mark.parametrize("link", [PICTURE_FOLDER, f"{PICTURE_FOLDER}/ab", f"{BLOB_FOLDER}/ab", BLOB_FOLDER])
async def test_no_backup_leaves_out_a_folder_whose_disk_is_not_mounted(
    store: Store, data: Path, tmp_path: Path, link: str
) -> None:
    elsewhere, folder = tmp_path / "disk", data / link
    folder.mkdir(parents=True, exist_ok=True)
    folder.rename(elsewhere)
    folder.symlink_to(elsewhere)
    elsewhere.rename(tmp_path / "not-mounted")
    with pytest.raises(StorageFailed, match="leads to nothing") as failed:
        await write_backup(store, data, tmp_path / "backups")
    assert str(folder) in str(failed.value)
    assert await list_backups(tmp_path / "backups") == ()
    (tmp_path / "not-mounted").rename(elsewhere)
    assert (await write_backup(store, data, tmp_path / "backups")).counts == COUNTS


async def test_backups_on_a_disk_that_is_not_mounted_are_not_called_none(data: Path, store: Store) -> None:
    (data / BACKUP_FOLDER).symlink_to(data / "nowhere")
    with pytest.raises(StorageFailed, match="leads to nothing"):
        await list_backups(data / BACKUP_FOLDER)
    with pytest.raises(StorageFailed, match="leads to nothing"):
        await write_backup(store, data, data / BACKUP_FOLDER)


async def test_a_disk_that_fails_before_a_restore_copies_anything_is_told_of(
    store: Store, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    backup = await write_backup(store, data, tmp_path / "backups")
    monkeypatch.setattr(backup_module, "refuse_newer", refuse)
    with pytest.raises(StorageFailed, match="no readable conversations"):
        await restore_backup(backup.folder, tmp_path / "new")
    assert not (tmp_path / "new").exists()
