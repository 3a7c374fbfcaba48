"""Copies of the database that were read back before anybody relies on them."""

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from desktop_agent.storage.files import sync_folder
from desktop_agent.vocabulary.errors import DatabaseDamaged, Sentence, StorageFailed


def write_verified_copy(connection: sqlite3.Connection, target: Path) -> None:
    """Write a compact copy to `target`, which must not exist, check it, and only then give it its name.

    Raises sqlite3.Error, OSError, StorageFailed if `target` exists, DatabaseDamaged if the copy does not hold.
    """
    if target.exists():
        raise StorageFailed(
            Sentence("“{path}” exists already.", {"path": str(target)}), "Choose another name for the copy."
        )
    unfinished = target.with_name(f".{target.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    try:
        os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        connection.execute("VACUUM INTO ?", (str(unfinished),))
        _verify_copy(unfinished, target)
        _sync_file(unfinished)
        unfinished.replace(target)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise
    sync_folder(target.parent)


def _verify_copy(copy: Path, target: Path) -> None:
    with closing(sqlite3.connect(copy)) as connection:
        found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(10)")]
    if found != ["ok"]:
        raise DatabaseDamaged(
            Sentence("The copy “{path}” could not be verified and was removed.", {"path": str(target)}),
            "Try again; if it fails again, the conversations themselves may be damaged.",
            detail="\n".join(found),
        )


def _sync_file(path: Path) -> None:
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
