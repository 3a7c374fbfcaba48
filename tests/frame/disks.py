"""A disk of its own for a test, that can be filled and made read-only."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB, which only root may make."""
    mount, unmount = shutil.which("mount"), shutil.which("umount")
    if os.geteuid() != 0 or not mount or not unmount:
        pytest.skip("mounting a small file system needs root and mount")
    place = tmp_path / "small"
    place.mkdir()
    command = [mount, "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
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
