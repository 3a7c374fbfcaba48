"""Databases of other programs are read whether they run or not, and nothing changes in their folder."""

import os
import sqlite3
import tempfile
from pathlib import Path

import pytest

from desktop_agent.exchange.readers.files import NotReadable
from desktop_agent.exchange.readers.foreign_database import ForeignDatabase, read_database
from desktop_agent.exchange.readers.reader import LIMITS, Limits
from tests.desktop_agent.exchange.readers.foreign_homes import write_database

ROWS = {"chat": [{"id": "1", "title": "One"}, {"id": "2", "title": "Two"}]}


def titles(path: Path, limits: Limits = LIMITS) -> list[str]:
    return read_database(path, limits, lambda database: [row["title"] for row in database.select("chat", ("title",))])


def state(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in sorted(folder.iterdir())}


@pytest.fixture
def own_temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "own"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.mark.parametrize("keep_log", [False, True])
def test_a_database_is_read_and_its_folder_stays_as_it_was(tmp_path: Path, own_temporary: Path, keep_log: bool) -> None:
    path = tmp_path / "data" / "it's a #1 %41.db"
    connection = write_database(path, ROWS, keep_log=keep_log)
    before = state(path.parent)
    assert len(before) == (3 if keep_log else 1)
    assert titles(path) == ["One", "Two"]
    assert state(path.parent) == before
    assert list(own_temporary.iterdir()) == []
    connection.close()


def test_a_database_that_was_in_write_ahead_mode_is_read_at_rest(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    write_database(path, ROWS, keep_log=True).close()
    before = state(tmp_path)
    assert list(before) == ["a.db"]
    assert titles(path) == ["One", "Two"]
    assert state(tmp_path) == before


def test_what_a_killed_program_had_not_finished_is_rolled_back_in_the_copy(tmp_path: Path) -> None:
    path = tmp_path / "data" / "a.db"
    write_database(path, {"chat": [{"title": f"{number} {'x' * 1000}"} for number in range(100)]})
    whole = titles(path)
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("PRAGMA cache_size = 1")
    writer.execute("BEGIN")
    writer.execute("UPDATE chat SET title = 'half' || title")
    before = state(path.parent)
    assert b"half" in before["a.db"][0]
    assert titles(path) == whole
    assert state(path.parent) == before
    writer.rollback()
    writer.close()


def test_a_writer_is_not_held_up(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    write_database(path, ROWS)

    def write_meanwhile(database: ForeignDatabase) -> list[str]:
        found = [row["title"] for row in database.select("chat", ("title",))]
        if len(found) == 2:
            with sqlite3.connect(path, timeout=0) as writer:
                writer.execute("INSERT INTO chat VALUES ('3', 'Three')")
            writer.close()
        return found

    assert read_database(path, LIMITS, write_meanwhile) == ["One", "Two", "Three"]


def test_a_database_that_never_rests_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    write_database(path, ROWS)
    with pytest.raises(NotReadable, match="writing"):
        read_database(path, LIMITS, lambda _: os.utime(path, ns=(0, path.stat().st_mtime_ns + 1)))


def test_a_database_that_is_too_large_to_be_copied_is_refused_while_its_program_runs(tmp_path: Path) -> None:
    connection = write_database(tmp_path / "a.db", ROWS, keep_log=True)
    with pytest.raises(NotReadable, match="too large"):
        titles(tmp_path / "a.db", Limits(database_copy=10))
    connection.close()


def test_columns_and_tables_that_are_missing_are_empty(tmp_path: Path) -> None:
    write_database(tmp_path / "a.db", ROWS)

    def work(database: ForeignDatabase) -> tuple[object, object]:
        rows = list(database.select("chat", ("id", "model"), "WHERE id = ?", "2"))
        return rows, list(database.select("none", ("id",)))

    assert read_database(tmp_path / "a.db", LIMITS, work) == ([{"id": "2", "model": None}], [])


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0", b"SQLite format 3\0" + b"\xff" * 4096, b"no" * 100])
def test_what_is_no_database_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.db").write_bytes(content)
    with pytest.raises(NotReadable):
        titles(tmp_path / "a.db")


def test_one_whose_damage_is_told_in_words_that_are_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    write_database(path, ROWS)
    path.write_bytes(path.read_bytes().replace(b"CREATE", b"CREA\xcdE"))
    with pytest.raises(NotReadable, match="damaged"):
        titles(path)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    write_database(tmp_path / "a.db", ROWS)
    (tmp_path / "b.db").symlink_to(tmp_path / "a.db")
    with pytest.raises(NotReadable):
        titles(tmp_path / "b.db")


def test_text_that_is_none_is_repaired_and_a_value_that_is_too_long_refused(tmp_path: Path) -> None:
    connection = write_database(tmp_path / "a.db", ROWS, keep_log=True)
    connection.execute("UPDATE chat SET title = CAST(x'ff41' AS TEXT)")
    connection.close()
    assert titles(tmp_path / "a.db") == ["\ufffdA", "\ufffdA"]
    write_database(tmp_path / "b.db", {"chat": [{"title": "x" * 100_000}]})
    with pytest.raises(NotReadable, match="too big"):
        titles(tmp_path / "b.db", Limits(document=50_000))


def test_rows_that_are_too_large_together_are_refused(tmp_path: Path) -> None:
    write_database(tmp_path / "a.db", {"chat": [{"title": "x" * 1000} for _ in range(50)]})
    assert len(titles(tmp_path / "a.db", Limits(file=50_000))) == 50
    with pytest.raises(NotReadable, match="too large"):
        titles(tmp_path / "a.db", Limits(file=49_999))
