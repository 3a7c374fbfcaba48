"""The rescue of real files with damage of every kind."""

import asyncio
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from desktop_agent.storage.files import delete_with_logs, find_set_aside
from desktop_agent.storage.migrations import MIGRATIONS, TABLES_BY_MARK
from desktop_agent.storage.opening import open_read_only
from desktop_agent.storage.records import Draft
from desktop_agent.storage.rescue import read_rows, rebuild_database
from desktop_agent.storage.store import Store
from desktop_agent.types.engine_events import Envelope
from desktop_agent.types.errors import DatabaseDamaged, DatabaseTooNew
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import ContentDelta

NAME = "conversations.sqlite3"
PAGE = 4096
AT = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Filled:
    """What a store of thirty conversations held before it was damaged."""

    folder: Path
    texts: dict[str, list[str]]

    @property
    def path(self) -> Path:
        return self.folder / NAME


async def fill(folder: Path) -> Filled:
    store, chance = await Store.open(folder), random.Random(7)
    texts: dict[str, list[str]] = {}
    for number in range(30):
        conversation = await store.create_conversation(title=f"Conversation {number} \ud800", model="m")
        # Some messages are longer than a page and continue on others.
        messages = [Message.user(f"{number}.{n} " + "long " * chance.randrange(0, 3000)) for n in range(10)]
        await store.commit(conversation.id, *messages)
        texts[conversation.id] = [message.text for message in messages]
    await store.append_journal(
        conversation.id, [Envelope(n, "run", None, None, AT, ContentDelta(str(n))) for n in range(50)]
    )
    await store.save_draft(conversation.id, Draft("half written"))
    await store.close()
    return Filled(folder, texts)


@pytest.fixture
async def filled(tmp_path: Path) -> Filled:
    return await fill(tmp_path / "data")


async def reopened(filled: Filled) -> tuple[Store, str]:
    store = await Store.open(filled.folder)
    (notice,) = store.notices
    (aside,) = [path for path in filled.folder.iterdir() if "damaged" in path.name and not path.name.endswith("-wal")]
    assert aside.name in str(notice)
    return store, str(notice)


async def count_carried_over(store: Store, filled: Filled) -> int:
    """Count the messages; assert that each is in its conversation, in its order, and none is invented."""
    count = 0
    for record in await store.list_conversations():
        loaded = await store.load(record.id)
        texts = [message.text for message in loaded.messages]
        assert len(texts) == record.message_count
        originals = [original_texts for original_texts in filled.texts.values() if texts and texts[0] in original_texts]
        if texts:
            (original,) = originals
            assert texts == [text for text in original if text in set(texts)]
        count += len(texts)
    with closing(sqlite3.connect(filled.path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []
    return count


def overwrite(path: Path, offset: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


def truncate(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size * 2 // 3 + 100)


def spoil_schema(path: Path) -> None:
    """Put a word into the schema that SQLite quotes in its error, which is then not valid UTF-8."""
    overwrite(path, path.read_bytes().index(b"CREATE TABLE messages") + 4, b"\xcd")


WHOLE: dict[str, Callable[[Path], None]] = {
    "magic": lambda path: overwrite(path, 0, b"not a database!!"),
    "header": lambda path: overwrite(path, 0, bytes(100)),
    "first page": lambda path: overwrite(path, 0, b"\xff" * PAGE),
    "page size": lambda path: overwrite(path, 16, b"\x00\x07"),
    "schema": spoil_schema,
}


@pytest.mark.parametrize("damage", WHOLE.values(), ids=WHOLE.keys())
async def test_a_damaged_header_costs_nothing(filled: Filled, damage: Callable[[Path], None]) -> None:
    damage(filled.path)
    before = filled.path.read_bytes()
    store, notice = await reopened(filled)
    assert "(conversations: 30, messages: 300)" in notice
    assert await count_carried_over(store, filled) == 300
    record = (await store.list_conversations())[0]
    assert record.title == "Conversation 29 \ud800"
    loaded = await store.load(record.id)
    assert [row.event for row in loaded.journal] == [ContentDelta(str(n)) for n in range(50)]
    assert await store.load_draft(record.id) == Draft("half written")
    await store.commit(record.id, Message.user("goes on"))
    await store.close()
    (aside,) = filled.folder.glob("*.damaged-*")
    assert aside.read_bytes() == before


async def test_a_truncated_file_keeps_what_is_before_the_cut(filled: Filled) -> None:
    truncate(filled.path)
    store, _ = await reopened(filled)
    assert await count_carried_over(store, filled) > 100
    await store.close()


async def fill_last_page_with_message(folder: Path) -> Path:
    """Create a database whose last bytes are the text of a message, which no check of SQLite reads."""
    store = await Store.open(folder)
    conversation = await store.create_conversation(title="one")
    await store.commit(conversation.id, Message.user("kept"), *(Message.assistant("words " * 200) for _ in range(3)))
    await store.close()
    assert b'"injected_by":null}' in (folder / NAME).read_bytes()[-30:]
    return folder / NAME


@pytest.mark.parametrize("missing", [1, 100, PAGE])
async def test_a_file_that_ends_within_its_last_page_is_told_of(tmp_path: Path, missing: int) -> None:
    path = await fill_last_page_with_message(tmp_path / "data")
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - missing)
    store = await Store.open(path.parent)
    assert "were damaged" in str(store.notices[0])
    (record,) = await store.list_conversations()
    texts = [message.text for message in (await store.load(record.id)).messages]
    assert 0 < len(texts) < 4
    assert texts == ["kept", "words " * 200, "words " * 200][: len(texts)]
    await store.close()


async def test_a_database_of_a_newer_version_that_is_cut_off_is_left_alone(tmp_path: Path) -> None:
    path = await fill_last_page_with_message(tmp_path / "data")
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version=9999")
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 100)
    before = path.read_bytes()
    with pytest.raises(DatabaseTooNew):
        await Store.open(path.parent)
    assert path.read_bytes() == before


async def test_rows_before_the_cut_of_a_last_page_are_carried_over(filled: Filled) -> None:
    pages = filled.path.stat().st_size // PAGE
    leaf = max(number for number in range(2, pages + 1) if page_kind(filled.path, number) == 0x0D)
    data = filled.path.read_bytes()
    all_rows = {row.number for row in read_rows(filled.path)}
    filled.path.write_bytes(data[: leaf * PAGE - 1])
    remaining_rows = {row.number for row in read_rows(filled.path)}
    filled.path.write_bytes(data[: (leaf - 1) * PAGE])
    assert {row.number for row in read_rows(filled.path)} < remaining_rows < all_rows


async def test_a_page_that_the_log_still_holds_is_no_cut(tmp_path: Path) -> None:
    path = await fill_last_page_with_message(tmp_path / "data")
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_autocheckpoint=0")
        with db:
            db.execute("UPDATE messages SET body = replace(body, 'words', 'WORDS')")
        copy = tmp_path / "copy"
        copy.mkdir()
        for file_path in path.parent.glob(f"{NAME}*"):
            shutil.copyfile(file_path, copy / file_path.name)
    with (copy / NAME).open("r+b") as file:
        file.truncate((copy / NAME).stat().st_size - 100)
    store = await Store.open(copy)
    assert store.notices == ()
    (record,) = await store.list_conversations()
    assert (await store.load(record.id)).messages[1].text == "WORDS " * 200
    await store.close()


async def test_one_broken_page_costs_only_its_own_rows(filled: Filled) -> None:
    pages = [filled.path.read_bytes()[offset : offset + PAGE] for offset in range(0, filled.path.stat().st_size, PAGE)]
    leaf = next(n for n, page in enumerate(pages) if page[0] == 0x0D and b'"blocks"' in page)
    overwrite(filled.path, leaf * PAGE, b"\xa5" * PAGE)
    store, _ = await reopened(filled)
    assert 270 < await count_carried_over(store, filled) < 300
    await store.close()


def page_kind(path: Path, number: int) -> int:
    with path.open("rb") as file:
        file.seek((number - 1) * PAGE)
        return file.read(1)[0]


async def test_pages_that_only_lead_to_rows_cost_nothing(filled: Filled) -> None:
    count = filled.path.stat().st_size // PAGE
    inner = [number for number in range(2, count + 1) if page_kind(filled.path, number) in {0x02, 0x05, 0x0A}]
    assert inner
    for number in inner:
        overwrite(filled.path, (number - 1) * PAGE, b"\xa5" * PAGE)
    store, notice = await reopened(filled)
    assert "(conversations: 30, messages: 300)" in notice
    assert await count_carried_over(store, filled) == 300
    await store.close()


@pytest.mark.parametrize("seed", range(12))
async def test_random_damage_never_crashes_and_never_invents(tmp_path: Path, seed: int, base: Filled) -> None:
    shutil.copytree(base.folder, tmp_path / "data")
    filled, chance = Filled(tmp_path / "data", base.texts), random.Random(seed)
    overwrite(filled.path, 0, bytes(16))
    pages = filled.path.stat().st_size // PAGE
    for _ in range(chance.randrange(1, pages // 3)):
        offset = chance.randrange(pages) * PAGE + chance.choice([0, chance.randrange(PAGE - 64)])
        overwrite(filled.path, offset, chance.randbytes(chance.choice([1, 2, 60])))
    store = await Store.open(filled.folder)
    assert store.notices
    for record in await store.list_conversations():
        assert len((await store.load(record.id)).messages) == record.message_count
    await store.close()


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Filled:
    return asyncio.run(fill(tmp_path_factory.mktemp("base") / "data"))


@pytest.mark.parametrize("content", [b"", b"\0" * 8192, b"hello", b"SQLite format 3\0"])
async def test_a_file_that_is_no_database_is_set_aside_never_silently_emptied(tmp_path: Path, content: bytes) -> None:
    (tmp_path / NAME).write_bytes(content)
    store, notice = await reopened(Filled(tmp_path, {}))
    assert "(conversations: 0," in notice
    (aside,) = kept_in(tmp_path)
    assert aside.read_bytes() == content
    assert await store.list_conversations() == ()
    await store.close()
    again = await Store.open(tmp_path)
    assert again.notices == ()
    await again.close()


def kept_in(folder: Path) -> list[Path]:
    return list(folder.glob("*.damaged-*"))


async def test_the_log_counts_too_and_is_kept_beside(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "live")
    conversation = await store.create_conversation(title="only in the log")
    await store.commit(conversation.id, Message.user("a"), Message.user("b" * 9000))
    copy_files(tmp_path / "live", tmp_path / "data")  # as a crash would leave them
    await store.close()
    filled = Filled(tmp_path / "data", {conversation.id: ["a", "b" * 9000]})
    assert b"only in the log" not in filled.path.read_bytes()
    tear(filled.path.with_name(NAME + "-wal"))  # a half-written transaction at its end does not count
    assert "(conversations: 1, messages: 2)" in str(rebuild_database(filled.path))
    assert {path.name[-4:] for path in kept_in(filled.folder)} > {"-wal"}
    store = await Store.open(filled.folder)
    assert [record.title for record in await store.list_conversations()] == ["only in the log"]
    assert await count_carried_over(store, filled) == 2
    await store.close()


async def test_only_what_the_log_committed_whole_counts(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "live")
    for title in ("first", "second"):
        await store.create_conversation(title=title)
    path = tmp_path / "live" / NAME
    copy_files(path.parent, tmp_path / "damaged")
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA cache_size=2")  # so that what is not yet committed is in the log already
        db.execute("BEGIN")
        values = ((f"never {n}" + "x" * 3000,) for n in range(200))
        db.executemany("INSERT INTO drafts (body) VALUES (?)", values)
        copy_files(path.parent, tmp_path / "uncommitted")
        db.execute("ROLLBACK")
    await store.close()
    assert b"never 7" in (tmp_path / "uncommitted" / f"{NAME}-wal").read_bytes()
    assert texts_in(tmp_path / "uncommitted") == {"first", "second"}
    flip_last_byte(tmp_path / "damaged" / f"{NAME}-wal")
    assert texts_in(tmp_path / "damaged") == {"first"}


def texts_in(folder: Path) -> set[object]:
    """Return the titles of conversations and the drafts."""
    return {
        row.values[{101: 3, 105: 2}[row.values[1]]] for row in read_rows(folder / NAME) if row.values[1] in {101, 105}
    }


def flip_last_byte(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


def copy_files(source: Path, target: Path) -> None:
    shutil.copytree(source, target)


def tear(log: Path) -> None:
    data = log.read_bytes()
    log.write_bytes(data + data[-(PAGE + 24) :][: PAGE // 2])


async def test_what_was_deleted_for_good_does_not_come_back(filled: Filled) -> None:
    store = await Store.open(filled.folder)
    deleted, *remaining = filled.texts
    await store.delete_conversation(deleted)
    await store.empty_trash()
    await store.close()
    assert b"Conversation 0 " not in filled.path.read_bytes()
    overwrite(filled.path, 0, bytes(100))
    store, _ = await reopened(filled)
    assert {record.id for record in await store.list_conversations()} == set(remaining)
    await store.close()


async def test_a_lost_parent_and_a_lost_head_are_mended(filled: Filled) -> None:
    first, second = list(filled.texts)[:2]
    with closing(sqlite3.connect(filled.path)) as db, db:
        db.execute("PRAGMA foreign_keys=OFF")
        numbers = "SELECT m.number FROM messages m JOIN conversations c ON c.number = m.conversation WHERE c.id = ?"
        numbers += " ORDER BY m.number"
        numbers_of_first = [row[0] for row in db.execute(numbers, (first,))]
        db.execute("DELETE FROM messages WHERE number IN (?, ?)", (numbers_of_first[3], numbers_of_first[-1]))
        db.execute(
            "UPDATE messages SET parent = ? WHERE number = ?", (numbers_of_first[8], numbers_of_first[5])
        )  # a circle
        db.execute("DELETE FROM conversations WHERE id = ?", (second,))
    overwrite(filled.path, 0, bytes(16))
    store, _ = await reopened(filled)
    assert [m.text for m in (await store.load(first)).messages] == [
        *filled.texts[first][:3],
        *filled.texts[first][4:-1],
    ]
    recovered = [record for record in await store.list_conversations() if record.title == "Recovered conversation"]
    assert [m.text for m in (await store.load(recovered[0].id)).messages] == filled.texts[second]
    await store.close()


async def load_all(store: Store, filled: Filled) -> None:
    for id_ in filled.texts:
        await store.load(id_)


async def test_values_that_cannot_be_are_left_out_or_made_possible(filled: Filled) -> None:
    ids = list(filled.texts)
    with closing(sqlite3.connect(filled.path)) as db, db:
        db.execute("UPDATE conversations SET updated_at = ? WHERE id = ?", (2**62, ids[0]))
        db.execute("UPDATE conversations SET title = x'fffe80' WHERE id = ?", (ids[1],))
        db.execute("UPDATE conversations SET updated_at = 'soon' WHERE id = ?", (ids[2],))
    overwrite(filled.path, 0, bytes(16))
    store, notice = await reopened(filled)
    assert "(conversations: 30, messages: 300)" in notice
    records = await store.list_conversations()
    assert len(records) == 30
    assert [record.title for record in records].count("Recovered conversation") == 1
    await store.close()


async def test_damage_found_while_reading_is_rescued_at_the_next_opening(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("desktop_agent.storage.opening.MAX_CHECKED_AT_OPENING", 0)  # as if the file were large
    count = filled.path.stat().st_size // PAGE
    leaves = [number for number in range(8, count + 1) if page_kind(filled.path, number) == 0x0D]
    for number in leaves[:: len(leaves) // 4 + 1]:
        overwrite(filled.path, (number - 1) * PAGE, b"\xa5" * PAGE)
    store = await Store.open(filled.folder)
    assert store.notices == ()
    with pytest.raises(DatabaseDamaged, match="damaged"):
        await load_all(store, filled)
    await store.close()
    store, _ = await reopened(filled)
    assert await count_carried_over(store, filled) > 200
    await store.close()
    again = await Store.open(filled.folder)
    assert again.notices == ()
    await again.close()


async def test_rows_read_from_pages_are_those_that_sqlite_reads(filled: Filled) -> None:
    tables = {name: mark for mark, name in TABLES_BY_MARK.items()}
    rows_by_mark: dict[object, list[list[object]]] = {}
    for row in read_rows(filled.path):
        rows_by_mark.setdefault(row.values[1] if len(row.values) > 1 else None, []).append(
            [row.number, *row.values[1:]]
        )
    with closing(sqlite3.connect(filled.path)) as db:
        for table in ("conversations", "messages", "runs", "journal", "drafts"):
            rows = [list(row) for row in db.execute(f"SELECT * FROM {table} ORDER BY number")]
            assert rows
            assert sorted(rows_by_mark[tables[table]], key=lambda row: row[0]) == rows  # type: ignore[arg-type,return-value]


async def test_what_was_set_aside_is_found_and_deleted_with_its_log(filled: Filled) -> None:
    # Not a valid log: whatever is beside the database is set aside with it.
    filled.path.with_name(NAME + "-wal").write_bytes(b"no log")
    rebuild_database(filled.path)
    (filled.folder / f"{NAME}-wal.kept-20260101-101112-2").write_bytes(b"log")
    (filled.folder / f"{NAME}.before-version-3").write_bytes(b"another kind")
    aside, log = sorted(kept_in(filled.folder))
    assert log.name == aside.name + "-wal"
    set_aside = find_set_aside(filled.path, ("damaged", "kept"))
    assert [path.name for path in set_aside] == [f"{NAME}-wal.kept-20260101-101112-2", aside.name]
    for path in set_aside:
        delete_with_logs(path)
    names = {path.name for path in filled.folder.iterdir()}
    assert {NAME, f"{NAME}.before-version-3"} <= names
    assert find_set_aside(filled.path, ("damaged", "kept")) == ()
    assert not kept_in(filled.folder)


STRANGE = {
    "a trigger": ("CREATE TRIGGER strange AFTER INSERT ON messages BEGIN DELETE FROM conversations; END",),
    "a view": ("ALTER TABLE conversations RENAME TO c", "CREATE VIEW conversations AS SELECT * FROM c"),
    "a version below zero": ("PRAGMA user_version = -5",),
    "an older version that has today's columns": ("PRAGMA user_version = 3",),
    "an older version that has today's tables": (f"PRAGMA user_version = {len(MIGRATIONS) - 1}",),
    "a table that is gone": ("DROP TRIGGER schedule_prompt_stored", "DROP TABLE schedule_runs"),
}


@pytest.mark.parametrize("kind", STRANGE)
async def test_what_no_version_of_ours_makes_is_not_carried_over(filled: Filled, kind: str) -> None:
    with closing(sqlite3.connect(filled.path)) as db, db:
        for statement in STRANGE[kind]:
            db.execute(statement)
    connection, notices = open_read_only(filled.path, check=False)
    with closing(connection):
        assert "messages: 300)." in str(notices[0])
    store, notice = await reopened(filled)
    assert "(conversations: 30, messages: 300)" in notice
    assert await count_carried_over(store, filled) == 300
    await store.commit(next(iter(filled.texts)), Message.user("and then"))
    await store.close()
    store = await Store.open(filled.folder)
    assert store.notices == ()
    await store.close()
