"""Making the database and the index as small as their content."""

import asyncio
import shutil
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.storage import compaction
from desktop_agent.storage.compaction import compact
from desktop_agent.storage.connection import DatabaseConnection
from desktop_agent.storage.store import DATABASE_NAME, Store
from desktop_agent.types.errors import DatabaseBusy, DiskFull
from desktop_agent.types.messages import Message


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await Store.open(tmp_path)
    deleted = await store.create_conversation(title="gone")
    await store.commit(deleted.id, *(Message.user(f"{number} " + "word " * 500) for number in range(100)))
    await store.create_conversation(title="stays", id_="stays")
    await store.commit("stays", Message.user("Hello"))
    await store.search.index_all()
    await store.close()
    # As in a large database, which is not rewritten after a deletion.
    with closing(sqlite3.connect(tmp_path / DATABASE_NAME)) as db:
        db.execute("PRAGMA foreign_keys=ON")
        db.execute("DELETE FROM conversations WHERE id = ?", (deleted.id,))
        db.commit()
    store = await Store.open(tmp_path)
    await store.search.index_all()
    yield store
    await store.close()


async def test_what_was_deleted_gives_its_room_back(store: Store, tmp_path: Path) -> None:
    result = await compact(store, tmp_path)
    assert result.before > 200_000
    assert result.after < result.before / 2
    assert (tmp_path / DATABASE_NAME).stat().st_size <= result.after
    assert [message.text for message in (await store.load("stays")).messages] == ["Hello"]
    assert await store.integrity_checker.run(full=True) is not None
    assert await store.search.index_all()
    await store.commit("stays", Message.user("and on"))


async def test_it_is_refused_while_another_has_it_open(store: Store, tmp_path: Path) -> None:
    other = await Store.open(tmp_path)
    with pytest.raises(DatabaseBusy, match="another program has them open"):
        await compact(store, tmp_path)
    await other.close()
    await compact(store, tmp_path)


async def test_it_is_refused_without_room(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage: Any = shutil.disk_usage(tmp_path)

    def nearly_full(_: Path) -> Any:
        return usage._replace(free=100_000)

    monkeypatch.setattr(compaction.shutil, "disk_usage", nearly_full)
    size = (tmp_path / DATABASE_NAME).stat().st_size
    with pytest.raises(DiskFull, match="free room on the disk"):
        await compact(store, tmp_path)
    assert (tmp_path / DATABASE_NAME).stat().st_size == size


async def test_it_is_cancelled_and_everything_stays_as_it_was(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = threading.Event()

    def endless(db: DatabaseConnection, _: Path) -> None:
        begun.set()
        db.execute("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n").fetchone()

    monkeypatch.setattr(compaction, "_compact_database", endless)
    compacting = asyncio.create_task(compact(store, tmp_path))
    await asyncio.to_thread(begun.wait)
    compacting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await compacting
    assert store.disk.trouble is None
    await store.commit("stays", Message.user("and on"))
