"""Deleted data leaves no byte in the files."""

import random
from contextlib import closing
from pathlib import Path

import pytest

from desktop_agent.storage import connection
from desktop_agent.storage.connection import connect, remove_traces, rewrite_if_small

OFTEN = 6
"""With this seed SQLite 3.40.1 leaves a copy of a row."""


def marks_left(path: Path, seed: int) -> list[str]:
    """Write, change and delete rows of all lengths; return the marks of deleted rows that are still in the file."""
    chance, group_of_mark = random.Random(seed), dict[str, int]()
    path.touch()
    with closing(connect(path)) as db:
        db.execute("PRAGMA synchronous=OFF")
        db.execute("CREATE TABLE m (number INTEGER PRIMARY KEY, c INT, id TEXT, body TEXT, UNIQUE (c, id))")
        db.execute("CREATE INDEX i ON m (c, number)")
        for number in range(400):
            group = chance.randrange(20)
            db.execute(
                "INSERT INTO m (c, id, body) VALUES (?, ?, ?)",
                (group, f"{chance.getrandbits(128):032x}", f"mark{number:05d}e {'tea ' * chance.randrange(1, 600)}"),
            )
            group_of_mark[f"mark{number:05d}e"] = group
            if chance.random() < 0.1:
                row, group = chance.choice(db.execute("SELECT number, c FROM m").fetchall())
                body = f"mark{number:05d}r {'cup ' * chance.randrange(1, 600)}"
                db.execute("UPDATE m SET body = ? WHERE number = ?", (body, row))
                group_of_mark[f"mark{number:05d}r"] = group
        for group in range(0, 20, 2):
            db.execute("DELETE FROM m WHERE c = ?", (group,))
        remove_traces(db)
        data = b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*"))
    return [mark for mark, group in group_of_mark.items() if group % 2 == 0 and mark.encode() in data]


@pytest.mark.parametrize("seed", [1, OFTEN])
def test_what_was_deleted_is_in_no_byte(tmp_path: Path, seed: int) -> None:
    assert marks_left(tmp_path / "a", seed) == []


def test_a_large_file_is_not_written_anew_for_every_deletion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "REWRITTEN_BYTES", 100_000)
    path = tmp_path / "large"
    path.touch()
    with closing(connect(path)) as db:
        db.execute("CREATE TABLE m (body TEXT)")
        db.execute("INSERT INTO m VALUES (?)", ("tea " * 100_000,))
        db.execute("DELETE FROM m")
        pages = db.execute("PRAGMA page_count").fetchone()
        rewrite_if_small(db)
        assert db.execute("PRAGMA page_count").fetchone() == pages
