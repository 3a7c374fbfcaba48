"""What is in a folder: names before a command, names and times after it. Reads no file."""

import os
import stat
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

MOST = 200_000
"""Entries that are looked at, those nearest to the top first."""
_HEAVY = frozenset(
    (".git", ".hg", ".svn", ".jj", "node_modules", ".venv", "venv", "__pycache__", ".tox", ".mypy_cache", ".ruff_cache")
)
# A folder with one of these is made anew by a program (https://bford.info/cachedir/, PEP 405).
_MADE = frozenset(("CACHEDIR.TAG", "pyvenv.cfg"))
_BARE = frozenset(("HEAD", "objects", "refs"))
_REPOSITORY = ".git"


@dataclass(slots=True)
class Survey:
    """Paths are relative, those of folders end in a slash. `touched`: files changed since the moment asked about.

    `heavy` are folders that are not looked into, and `repositories` what git would take for one; for those it is
    looked in heavy folders too. `is_cut`: there was too much.
    """

    entries: set[str] = field(default_factory=set[str])
    touched: set[str] = field(default_factory=set[str])
    heavy: set[str] = field(default_factory=set[str])
    repositories: list[str] = field(default_factory=list[str])
    is_cut: bool = False


def survey(
    folder: Path, since: int | None = None, check: Callable[[], None] = lambda: None, most: int | None = None
) -> Survey:
    """Look around. `since` is in nanoseconds, as files have it; without, no time is looked at. Links are not followed.

    `check` is called for each folder; what it raises is raised.
    """
    found = Survey()
    left = MOST if most is None else most
    waiting = deque([("", False)])
    while waiting:
        check()
        here, is_heavy = waiting.popleft()
        inside = _listed(folder, here)
        left -= len(inside)
        if left < 0:
            found.is_cut = True
            return found
        names = {each.name for each in inside}
        if here and names >= _BARE:
            found.repositories.append(here)
        if here and not is_heavy and names & _MADE:
            found.heavy.add(here)
            is_heavy = True
        for each in inside:
            inner = _take(found, here, each, since, is_heavy=is_heavy)
            if inner is not None:
                waiting.append(inner)
    return found


def _listed(folder: Path, here: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder / here) as entries:
            return list(entries)
    except OSError:
        return []  # gone, or not ours to look at


def _take(
    found: Survey, here: str, entry: os.DirEntry[str], since: int | None, *, is_heavy: bool
) -> tuple[str, bool] | None:
    """Note one entry; the folder to look into and whether it is heavy."""
    path = f"{here}{entry.name}"
    is_folder = entry.is_dir(follow_symlinks=False)
    if is_folder:
        path += "/"
    if not is_heavy:
        found.entries.add(path)
        if since is not None and not is_folder and _is_touched(entry, since):
            found.touched.add(path)
    if entry.name == _REPOSITORY:
        found.repositories.append(path)
    if not is_folder:
        return None
    if not is_heavy and entry.name in _HEAVY:
        found.heavy.add(path)
        is_heavy = True
    return None if entry.name == _REPOSITORY else (path, is_heavy)


def _is_touched(entry: os.DirEntry[str], since: int) -> bool:
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_ctime_ns >= since
