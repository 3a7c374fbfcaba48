"""What goes over from a file to the one that replaces it."""

import contextlib
import os
from pathlib import Path

import pytest

from desktop_agent.tools.disk.attributes import keep_attributes
from desktop_agent.tools.disk.folders import open_folder

pytestmark = pytest.mark.skipif(not hasattr(os, "setxattr"), reason="no extended attributes")


def kept(folder: Path) -> list[str]:
    """The names of those that a new file gets from the one that is there."""
    new, opened = folder / "new", open_folder(folder)
    with new.open("wb") as file:
        keep_attributes(opened, "old", file.fileno())
    opened.close()
    return os.listxattr(new)


def test_the_persons_own_and_not_those_of_the_systems_security(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.touch()
    os.setxattr(old, "user.note", b"hers")
    with contextlib.suppress(PermissionError):
        os.setxattr(old, "trusted.note", b"the system's")
    assert kept(tmp_path) == ["user.note"]
    assert os.getxattr(tmp_path / "new", "user.note") == b"hers"


def test_where_none_was_or_a_link_is_there_are_none(tmp_path: Path) -> None:
    assert kept(tmp_path) == []
    (tmp_path / "else").touch()
    os.setxattr(tmp_path / "else", "user.note", b"hers")
    (tmp_path / "old").symlink_to("else")
    assert kept(tmp_path) == []
