"""Removing a folder with all in it, however deep, and whatever a command did to the rights of what it made."""

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path


def remove_tree(folder: Path) -> None:
    """Remove it, as far as that can be done. Never fails, and follows no link.

    Folders inside of others are moved to the top one first: then no path is too long, and none waits for another.
    """
    with suppress(OSError):
        top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            _empty_folder(top)
        finally:
            os.close(top)
        folder.rmdir()


def _empty_folder(top: int) -> None:
    waiting = _clear_one_level(top, top)
    while waiting:
        name = waiting.pop()
        with suppress(OSError):
            here = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=top)
            try:
                waiting += _clear_one_level(here, top)
            finally:
                os.close(here)
            os.rmdir(name, dir_fd=top)


def _clear_one_level(here: int, top: int) -> list[str]:
    """Remove the files in a folder, and move its folders to the top; their names there."""
    moved: list[str] = []
    with os.scandir(here) as entries:
        inside = [(each.name, each.is_dir(follow_symlinks=False)) for each in entries]
    for name, is_folder in inside:
        with suppress(OSError):
            if not is_folder:
                os.unlink(name, dir_fd=here)
                continue
            new = secrets.token_hex(16)
            # A folder without all rights cannot be moved into another one, nor looked into.
            os.chmod(name, stat.S_IRWXU, dir_fd=here)
            os.rename(name, new, src_dir_fd=here, dst_dir_fd=top)
            moved.append(new)
    return moved
