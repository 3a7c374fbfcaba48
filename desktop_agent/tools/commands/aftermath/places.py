"""What is in a place, also where nothing is, or a link that leads nowhere, or a name that no file can have."""

import hashlib
import os
import stat
from collections.abc import Callable
from itertools import islice
from pathlib import Path

MAX_READ_BYTES = 1_000_000
"""Bytes of a file that are looked at."""
_MAX_NAME_LENGTH = 200


def printable_path(path: str) -> str:
    """The path as it is told of: a line end in a name would look like another sentence."""
    seen = "".join(each if each.isprintable() else "\ufffd" for each in path[: _MAX_NAME_LENGTH + 1])
    return seen if len(seen) <= _MAX_NAME_LENGTH else f"{seen[:_MAX_NAME_LENGTH]}…"


def is_link(place: Path) -> bool:
    """Whether it is one, wherever it leads."""
    return stat.S_ISLNK(_mode(place.lstat))


def is_file(place: Path) -> bool:
    """Whether it is one, or leads to one."""
    return stat.S_ISREG(_mode(place.stat))


def is_folder(place: Path) -> bool:
    """Whether it is one, or leads to one."""
    return stat.S_ISDIR(_mode(place.stat))


def _mode(look: Callable[[], os.stat_result]) -> int:
    """0 for what is not there, not ours to look at, or has no name that a file can have."""
    try:
        return look().st_mode
    except (OSError, ValueError):
        return 0


def resolve_path(place: Path) -> Path:
    """Where links lead to, in circles too; a name that no file can have leads nowhere."""
    try:
        return Path(os.path.realpath(place))
    except (OSError, ValueError):
        return Path(os.sep)


def read_text(file: Path) -> str:
    """As much of it as is looked at, or nothing. Bytes that are no text come out as the system names files."""
    try:
        with file.open("rb") as opened:
            return os.fsdecode(opened.read(MAX_READ_BYTES))
    except (OSError, ValueError):
        return ""


def is_too_long(file: Path) -> bool:
    """Whether there is more in it than is looked at, or in what it leads to."""
    try:
        return file.stat().st_size > MAX_READ_BYTES
    except (OSError, ValueError):
        return False


def first_line(file: Path) -> str:
    """Without spaces around it."""
    return read_text(file).partition("\n")[0].strip()


def subfolders(folder: Path, most: int) -> tuple[list[Path], bool]:
    """Those that are no links, by name; and whether there are more than `most`."""
    try:
        with os.scandir(folder) as entries:
            found = [Path(each.path) for each in islice(entries, most + 1) if each.is_dir(follow_symlinks=False)]
    except (OSError, ValueError):
        return [], False
    return sorted(found)[:most], len(found) > most


def fingerprint(place: Path) -> str:
    """Of a file what is in it, of a link where it leads; empty for nothing."""
    try:
        found = place.lstat()
        if stat.S_ISLNK(found.st_mode):
            return f"link {place.readlink()}"
        if not stat.S_ISREG(found.st_mode):
            return f"kind {stat.S_IFMT(found.st_mode)}"
        with place.open("rb") as file:
            known = hashlib.sha256(file.read(MAX_READ_BYTES)).hexdigest()
        rest = f" {found.st_size} {found.st_ctime_ns}" if found.st_size > MAX_READ_BYTES else ""
        return f"{found.st_mode & 0o111} {known}{rest}"
    except (OSError, ValueError):
        return ""
