"""Checks of the files of a data folder after a kill: by SQLite's own check, and byte by byte."""

import shutil
import sqlite3
import tempfile
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path

from desktop_agent.storage.opening import DATABASE_NAME
from desktop_agent.storage.search.index_file import INDEX_NAME

_LEFT_OVER = """
    SELECT (SELECT count(*) FROM messages WHERE conversation NOT IN (SELECT number FROM conversations)),
        (SELECT count(*) FROM runs WHERE conversation NOT IN (SELECT number FROM conversations)),
        (SELECT count(*) FROM journal WHERE number >> 32 NOT IN (SELECT number FROM runs)),
        (SELECT count(*) FROM picture_uses WHERE conversation <> 0
            AND conversation NOT IN (SELECT number FROM conversations)),
        (SELECT count(*) FROM drafts WHERE number <> 0 AND number NOT IN (SELECT number FROM conversations)),
        (SELECT count(*) FROM tags WHERE conversation NOT IN (SELECT number FROM conversations)),
        (SELECT count(*) FROM conversations WHERE folder IS NOT NULL AND folder NOT IN (SELECT number FROM folders)),
        (SELECT count(*) FROM folders WHERE parent NOT IN (SELECT number FROM folders))"""


def find_damage(data: Path) -> Iterator[str]:
    """Yield the damage in copies of the databases, as opening what a killed process left would change it."""
    with tempfile.TemporaryDirectory() as folder:
        for name in (DATABASE_NAME, INDEX_NAME):
            for path in data.glob(f"{name}*"):
                shutil.copyfile(path, Path(folder, path.name))
            if Path(folder, name).exists():
                yield from _find_damage_in(Path(folder, name))


def _find_damage_in(path: Path) -> Iterator[str]:
    with closing(sqlite3.connect(path)) as database:
        result = database.execute("PRAGMA integrity_check").fetchall()
        if result != [("ok",)]:
            yield f"{path.name}: {result[:3]}"
        has_tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if path.name == DATABASE_NAME and has_tables:
            leftovers = database.execute(_LEFT_OVER).fetchone()
            if any(leftovers):
                yield f"rows of what is gone: {leftovers}"


def find_words(data: Path, words: Collection[str]) -> Iterator[str]:
    """Yield a fault for each file that contains one of these words."""
    for path in sorted(data.rglob("*")):
        content = path.read_bytes() if path.is_file() else b""
        if found_words := [word for word in words if word.encode() in content]:
            yield f"of what was deleted for good {len(found_words)} words are in {path.name}: {found_words[:3]}"
