import hashlib
import os
import stat
import time
from pathlib import Path

import pytest

from desktop_agent.storage.content_files import BlobFiles
from desktop_agent.types.errors import StorageFailed

DATA = b"\x00\xff bytes"
DIGEST = hashlib.sha256(DATA).hexdigest()


def path_of(folder: Path, digest: str = DIGEST) -> Path:
    return folder / "saved-files" / digest[:2] / digest


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


async def test_what_is_put_can_be_got_again_and_twice_is_one_file(tmp_path: Path) -> None:
    blobs = BlobFiles(tmp_path)
    assert not blobs.has(DIGEST)
    assert [await blobs.put(DATA), await blobs.put(DATA), await blobs.put(b"")] == [
        DIGEST,
        DIGEST,
        hashlib.sha256(b"").hexdigest(),
    ]
    assert blobs.has(DIGEST)
    assert await blobs.get(DIGEST) == DATA
    assert names_in(path_of(tmp_path).parent) == [DIGEST]


async def test_only_the_person_may_read_them(tmp_path: Path) -> None:
    await BlobFiles(tmp_path).put(DATA)
    assert stat.S_IMODE(path_of(tmp_path).stat().st_mode) == 0o600
    assert stat.S_IMODE(path_of(tmp_path).parent.stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "saved-files").stat().st_mode) & 0o077 == 0


async def test_what_is_missing_or_damaged_is_said_and_putting_it_again_mends_it(tmp_path: Path) -> None:
    blobs = BlobFiles(tmp_path)
    with pytest.raises(StorageFailed, match="missing"):
        await blobs.get(DIGEST)
    await blobs.put(DATA)
    path_of(tmp_path).write_bytes(DATA[:-1])
    with pytest.raises(StorageFailed, match="damaged"):
        await blobs.get(DIGEST)
    await blobs.put(DATA)
    assert await blobs.get(DIGEST) == DATA


async def test_a_folder_that_is_a_file_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "saved-files").write_bytes(b"")
    blobs = BlobFiles(tmp_path)
    with pytest.raises(StorageFailed, match="saved-files"):
        await blobs.put(DATA)
    with pytest.raises(StorageFailed, match="saved-files"):
        await blobs.get(DIGEST)
    blobs.remove_all_but(())


async def test_only_what_is_needed_stays_and_what_is_being_written(tmp_path: Path) -> None:
    blobs = BlobFiles(tmp_path)
    blobs.remove_all_but(())  # there is nothing yet
    other = await blobs.put(b"other")
    await blobs.put(DATA)
    folder = path_of(tmp_path).parent
    (folder / ".writing-now").write_bytes(b"half")
    (folder / ".writing-long-ago").write_bytes(b"half")
    long_ago = time.time() - 2 * 24 * 60 * 60
    os.utime(folder / ".writing-long-ago", (long_ago, long_ago))
    blobs.remove_all_but({DIGEST})
    assert names_in(tmp_path) == [".writing-now", DIGEST]
    assert not blobs.has(other)


async def test_files_on_a_disk_that_is_not_mounted_are_not_called_missing(tmp_path: Path) -> None:
    blobs = BlobFiles(tmp_path)
    await blobs.put(DATA)
    (tmp_path / "saved-files").rename(tmp_path / "disk")
    (tmp_path / "saved-files").symlink_to(tmp_path / "mounted")
    with pytest.raises(StorageFailed, match="leads to nothing"):
        await blobs.get(DIGEST)
    with pytest.raises(StorageFailed, match="leads to nothing"):
        await blobs.put(DATA)
