"""A saved file is wholly there or not at all, and every failure says what to do."""

import errno
import os
import stat

import pytest

from desktop_agent.types.errors import DiskFull, StorageFailed
from ui.bridge import storage
from ui.bridge.storage import save_file


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


async def test_a_new_file_has_the_rights_of_new_files(tmp_path):
    umask = os.umask(0o027)
    try:
        await save_file(tmp_path / "a.txt", b"text")
    finally:
        os.umask(umask)
    assert (tmp_path / "a.txt").read_bytes() == b"text"
    assert mode(tmp_path / "a.txt") == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


async def test_a_replaced_file_keeps_its_rights_and_links_stay_links(tmp_path):
    real, link = tmp_path / "real.sh", tmp_path / "link.sh"
    real.write_bytes(b"old")
    real.chmod(0o750)
    link.symlink_to(real)
    await save_file(link, b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    assert mode(real) == 0o750


@pytest.mark.parametrize(
    ("number", "kind", "problem", "remedy"),
    [
        (errno.ENOSPC, DiskFull, "no room", "another disk"),
        (errno.EACCES, StorageFailed, "cannot be written", "another folder"),
        (errno.EROFS, StorageFailed, "cannot be written", "another folder"),
        (errno.EIO, StorageFailed, "cannot be saved", "another name"),
    ],
)
async def test_what_goes_wrong_leaves_the_old_file_and_says_what_to_do(
    tmp_path, monkeypatch, number, kind, problem, remedy
):
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")

    def fail(handle):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(storage.os, "fsync", fail)
    with pytest.raises(kind) as caught:
        await save_file(path, b"new")
    assert problem in str(caught.value)
    assert str(path) in str(caught.value)
    assert remedy in str(caught.value.remedy)
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


async def test_a_folder_that_is_gone(tmp_path):
    with pytest.raises(StorageFailed, match="is gone"):
        await save_file(tmp_path / "gone" / "a.txt", b"x")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageFailed, match="is gone"):
        await save_file(tmp_path / "file" / "a.txt", b"x")


async def test_a_folder_of_that_name(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(StorageFailed, match="cannot be saved"):
        await save_file(tmp_path / "a", b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
