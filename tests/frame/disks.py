"""A small disk for a test, which can be filled and made read-only. No test waits until the common disk has written.

New databases are copies of one that is made when the run begins.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


class Disk:
    """Whether writing waits until the data is on the disk, and whether each new database is made step by step."""

    is_waited_for = False
    makes_databases = False


@pytest.fixture(scope="session", autouse=True)
def nobody_waits_for_the_disk() -> Iterator[None]:
    """Let the system write when it likes. A killed process loses nothing of its cache; only a power cut does."""
    from desktop_agent.storage import connection

    with_pragmas, sync = connection.with_pragmas, os.fsync

    def without_sync(database: connection.Connection, *pragmas: str) -> connection.Connection:
        with_pragmas(database, *pragmas)
        if not Disk.is_waited_for:
            database.execute("PRAGMA synchronous=OFF")
        return database

    def sync_if_waited_for(descriptor: int) -> None:
        if Disk.is_waited_for:
            sync(descriptor)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "with_pragmas", without_sync)
        patch.setattr(os, "fsync", sync_if_waited_for)
        yield


@pytest.fixture(scope="session", autouse=True)
def new_databases_are_copies(nobody_waits_for_the_disk: None) -> Iterator[None]:
    """Make the empty database once: creating its tables takes longer than what most tests do with it."""
    from desktop_agent.storage import opening

    create = opening.create_database
    with tempfile.TemporaryDirectory(prefix="desktop-agent-test-") as folder:
        create(first := Path(folder, opening.DATABASE_NAME))
        empty = first.read_bytes()

    def copy(path: Path) -> None:
        if Disk.makes_databases or Disk.is_waited_for:
            create(path)
            return
        unfinished = path.with_name(f"{path.name}.unfinished")
        unfinished.touch(mode=0o600)
        unfinished.write_bytes(empty)
        unfinished.replace(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "create_database", copy)
        yield


@pytest.fixture
def makes_databases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make each new database step by step, as the program does."""
    monkeypatch.setattr(Disk, "makes_databases", True)


@pytest.fixture
def waits_for_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for the disk, as the program does."""
    monkeypatch.setattr(Disk, "is_waited_for", True)


@pytest.fixture
def small_disk(tmp_path: Path, waits_for_disk: None) -> Iterator[Path]:
    """A file system of 2 MB; the test is skipped where it may not be mounted, which takes root."""
    mount, unmount = shutil.which("mount"), shutil.which("umount")
    if os.geteuid() != 0 or not mount or not unmount:
        pytest.skip("mounting a small file system needs root and mount")
    folder = tmp_path / "small"
    folder.mkdir()
    command = [mount, "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no small file system here: {mounted.stderr.strip()}")
    yield folder
    # Lazily: a test that failed may still hold a file open.
    subprocess.run([unmount, "-l", str(folder)], check=True)


def remount(disk: Path, mode: str) -> None:
    """Make the disk read-only (`ro`) or writable again (`rw`). No file on it may be open for writing."""
    subprocess.run([shutil.which("mount") or "", "-o", f"remount,{mode}", str(disk)], check=True)


def fill(ballast: Path) -> None:
    """Fill the disk with a file of this name."""
    with ballast.open("wb", buffering=0) as file:
        for size in (65536, 4096):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
