"""File attributes that a file passes on to the one that replaces it."""

import contextlib
import os
from pathlib import Path

import pytest

from desktop_agent.tools import open_folders
from desktop_agent.tools.open_folders import (
    FileAttributes,
    apply_attributes,
    copy_attributes,
    open_folder,
    read_attributes,
)

pytestmark = pytest.mark.skipif(not hasattr(os, "setxattr"), reason="no extended attributes")


def copied_names(folder: Path) -> list[str]:
    """Return the names of the attributes that a new file gets from the old one."""
    new, opened = folder / "new", open_folder(folder)
    with new.open("wb") as file:
        copy_attributes(opened, "old", file.fileno())
    opened.close()
    return os.listxattr(new)


def test_the_persons_own_and_not_those_of_the_systems_security(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.touch()
    os.setxattr(old, "user.note", b"hers")
    with contextlib.suppress(PermissionError):
        os.setxattr(old, "trusted.note", b"the system's")
    assert copied_names(tmp_path) == ["user.note"]
    assert os.getxattr(tmp_path / "new", "user.note") == b"hers"


def test_where_none_was_or_a_link_is_there_are_none(tmp_path: Path) -> None:
    assert copied_names(tmp_path) == []
    (tmp_path / "else").touch()
    os.setxattr(tmp_path / "else", "user.note", b"hers")
    (tmp_path / "old").symlink_to("else")
    assert copied_names(tmp_path) == []


def attributes_of(path: Path) -> FileAttributes:
    with path.open("rb") as file:
        return read_attributes(file.fileno())


def apply_to(extras: FileAttributes, path: Path) -> None:
    with path.open("wb") as file:
        apply_attributes(extras, file.fileno())


def test_what_was_read_is_given_again(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.touch()
    os.setxattr(old, "user.note", b"hers\xff\0")
    os.setxattr(old, "user.empty", b"")
    with contextlib.suppress(PermissionError):
        os.setxattr(old, "trusted.note", b"the system's")
    attributes = attributes_of(old)
    assert attributes.attributes == (("user.empty", b""), ("user.note", b"hers\xff\0"))
    assert attributes.owner == (old.stat().st_uid, old.stat().st_gid)
    apply_to(attributes, new)
    assert attributes_of(new) == attributes
    apply_to(FileAttributes((("trusted.note", b"x"), ("security.capability", b"x"))), new)
    assert os.listxattr(new) == ["user.note", "user.empty"] or os.listxattr(new) == ["user.empty", "user.note"]


def test_what_is_read_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "old"
    old.touch()
    os.setxattr(old, "user.large", b"x" * 100)
    os.setxattr(old, "user.small", b"x" * 20)
    monkeypatch.setattr(open_folders, "MAX_ATTRIBUTE_BYTES", 60)
    assert attributes_of(old).attributes == (("user.small", b"x" * 20),)
    for number in range(30):
        os.setxattr(old, f"user.{number:02}", b"")
    monkeypatch.setattr(open_folders, "MAX_ATTRIBUTE_BYTES", 10_000)
    monkeypatch.setattr(open_folders, "MAX_ATTRIBUTES", 7)
    assert len(attributes_of(old).attributes) == 7


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_the_owner_is_given_where_we_may(tmp_path: Path) -> None:
    new = tmp_path / "new"
    apply_to(FileAttributes(owner=(65534, 65533)), new)
    assert (new.stat().st_uid, new.stat().st_gid) == (65534, 65533)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root becomes another")
def test_the_group_alone_where_only_that_is_ours(tmp_path: Path) -> None:
    new = tmp_path / "new"
    new.touch()
    os.chown(new, 65534, 65534)
    descriptor = os.open(new, os.O_WRONLY)
    child = os.fork()
    if not child:
        os.setgroups([65533])
        os.setgid(65534)
        os.setuid(65534)
        apply_attributes(FileAttributes((("user.note", b"x"),), (0, 65533)), descriptor)
        apply_attributes(FileAttributes(owner=(0, 0)), descriptor)
        os._exit(0)
    os.waitpid(child, 0)
    os.close(descriptor)
    assert (new.stat().st_uid, new.stat().st_gid) == (65534, 65533)
