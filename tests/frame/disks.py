"""A disk of its own for a test, that can be filled and made read-only; and nobody waits for the common one."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


class Disk:
    """Whether what is written is waited for until it lies on the disk."""

    is_waited_for = False


@pytest.fixture(scope="session", autouse=True)
def nobody_waits_for_the_disk() -> Iterator[None]:
    """Let the system write when it likes. A kill takes nothing from its cache, and no test takes the power away."""
    from desktop_agent.storage import connection

    configure, sync = connection._configure, os.fsync

    def configure_without_sync(database: connection.DatabaseConnection) -> None:
        configure(database)
        if not Disk.is_waited_for:
            database.execute("PRAGMA synchronous=OFF")

    def sync_if_waited_for(descriptor: int) -> None:
        if Disk.is_waited_for:
            sync(descriptor)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "_configure", configure_without_sync)
        patch.setattr(os, "fsync", sync_if_waited_for)
        yield


@pytest.fixture
def waits_for_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for the disk, as the program does."""
    monkeypatch.setattr(Disk, "is_waited_for", True)


@pytest.fixture
def small_disk(tmp_path: Path, waits_for_disk: None) -> Iterator[Path]:
    """A file system of 2 MB, which only root may make."""
    mount, unmount = shutil.which("mount"), shutil.which("umount")
    if os.geteuid() != 0 or not mount or not unmount:
        pytest.skip("mounting a small file system needs root and mount")
    place = tmp_path / "small"
    place.mkdir()
    command = [mount, "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no small file system here: {made.stderr.strip()}")
    yield place
    # Lazily: a test that failed may still hold a file open.
    subprocess.run([unmount, "-l", str(place)], check=True)


def remount(disk: Path, mode: str) -> None:
    """Make it read-only (`ro`), or let it be written again (`rw`). Nothing of it may be open for writing."""
    subprocess.run([shutil.which("mount") or "", "-o", f"remount,{mode}", str(disk)], check=True)


def fill(ballast: Path) -> None:
    """Use up all room with a file of this name."""
    with ballast.open("wb", buffering=0) as file:
        for size in (65536, 4096):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
