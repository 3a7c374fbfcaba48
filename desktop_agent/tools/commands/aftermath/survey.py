"""What is in a folder: names before a command, names and times after it. Reads no file."""

import os
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import islice
from pathlib import Path

from desktop_agent.tools.commands.aftermath.listings import ListingCache
from desktop_agent.tools.startup_files import may_contain_startup_files, startup_files_below, startup_part_index

MAX_ENTRIES = 200_000
"""Entries that are looked at, those nearest to the top first."""
HEAVY_FOLDERS = frozenset(
    (".git", ".hg", ".svn", ".jj", "node_modules", ".venv", "venv", "__pycache__", ".tox", ".mypy_cache", ".ruff_cache")
)
"""Folders that programs fill, and nobody writes in by hand."""
# A folder with one of these is made anew by a program (https://bford.info/cachedir/, PEP 405).
_GENERATED_MARKERS = frozenset(("CACHEDIR.TAG", "pyvenv.cfg"))
_BARE_REPOSITORY = frozenset(("objects", "refs"))
_BARE_REPOSITORY_EXTRAS = frozenset(("HEAD", "config", "hooks"))
# Of the folders that are not looked into when there is too much, so many are asked for a repository.
_MAX_CHECKED = 10_000
_GIT = ".git"
HEAVY_LISTINGS = ListingCache()
"""Of heavy folders, whose files nobody asks for."""


class EntryKind(Enum):
    """What a name stands for."""

    FILE = auto()
    FOLDER = auto()
    LINK = auto()
    OTHER = auto()


@dataclass(slots=True)
class Survey:
    """Paths are relative, those of folders end in a slash, with their kinds. `touched`: changed since the moment asked.

    `heavy` are folders that are not looked into, and `repositories` what git would take for one, or may later; for
    those it is looked in heavy folders too. `startup` are files and folders of startup files, not in heavy ones.
    `is_cut`: there was too much.
    """

    entries: dict[str, EntryKind] = field(default_factory=dict[str, EntryKind])
    touched: set[str] = field(default_factory=set[str])
    heavy: set[str] = field(default_factory=set[str])
    repositories: list[str] = field(default_factory=list[str])
    startup: list[str] = field(default_factory=list[str])
    is_cut: bool = False


def survey_workspace(
    folder: Path,
    since: int | None = None,
    check: Callable[[], None] = lambda: None,
    most: int | None = None,
    before: Survey | None = None,
) -> Survey:
    """Look around. `since` is in nanoseconds, as files have it; without, no time is looked at. Links are not followed.

    `check` is called for each folder; what it raises is raised. What was there `before` is as heavy as it was.
    """
    found = Survey()
    left = MAX_ENTRIES if most is None else most
    waiting = deque([("", False)])
    while waiting:
        check()
        here, is_heavy = waiting.popleft()
        if is_heavy:
            left -= _scan_heavy_folder(found, folder, here, waiting)
            if left < 0:
                _check_for_repositories(found, folder, (each for each, _ in waiting))
                return found
            continue
        inside, is_closed = _scan_folder(folder, here)
        if is_closed and not is_heavy:
            found.heavy.add(here or "./")
        left -= len(inside)
        names = {each.name for each in inside}
        if here and _may_be_bare_repository(names):
            found.repositories.append(here)
        if left < 0:
            waiting.extendleft((f"{here}{each.name}/", True) for each in inside if each.is_dir(follow_symlinks=False))
            _check_for_repositories(found, folder, (here, *(each for each, _ in waiting)))
            return found
        # Before a mark of a cache is looked for, which a command may set to hide them.
        found.startup += _startup_files_in(here, inside, names)
        if here and not is_heavy and _is_generated(here, names, before):
            found.heavy.add(here)
            is_heavy = True
        for each in inside:
            inner = _record_entry(found, folder, here, each, since, is_heavy=is_heavy)
            if inner is not None:
                waiting.append(inner)
    return found


def _startup_files_in(here: str, inside: Iterable[os.DirEntry[str]], names: set[str]) -> Iterator[str]:
    for each in inside if may_contain_startup_files(names) else ():
        path = f"{here}{each.name}"
        # What git keeps is looked at in another way, and what programs make anew not at all.
        if (
            each.name not in HEAVY_FOLDERS
            and each.name not in _GENERATED_MARKERS
            and startup_part_index(path) is not None
        ):
            yield f"{path}/" if each.is_dir(follow_symlinks=False) else path


def _scan_heavy_folder(found: Survey, folder: Path, here: str, waiting: deque[tuple[str, bool]]) -> int:
    """Only for repositories, and not at all where nothing came or went since the last time. How much is in there."""
    try:
        inside = HEAVY_LISTINGS.entries(folder / here)
    except OSError:
        return 0
    if _may_be_bare_repository({each.name for each in inside}):
        found.repositories.append(here)
    for each in inside:
        path = f"{here}{each.name}"
        is_folder = each.is_dir(follow_symlinks=False)
        if each.name == _GIT:
            found.repositories.append(f"{path}/" if is_folder else path)
        elif is_folder:
            waiting.append((f"{path}/", True))
    return len(inside)


def _may_be_bare_repository(names: set[str]) -> bool:
    """Also where something is missing, which may be put back when the rest has been written to."""
    return names >= _BARE_REPOSITORY and not names.isdisjoint(_BARE_REPOSITORY_EXTRAS)


def _is_generated(here: str, names: set[str], before: Survey | None) -> bool:
    if before is not None and here in before.entries:
        # Else a mark that is made meanwhile would hide what happens in there.
        return here in before.heavy
    return not names.isdisjoint(_GENERATED_MARKERS)


def _check_for_repositories(found: Survey, folder: Path, waiting: Iterable[str]) -> None:
    """Too much to look at: only the name is asked for that git asks for."""
    found.is_cut = True
    for here in islice(waiting, _MAX_CHECKED):
        if os.path.lexists(folder / here / _GIT):
            found.repositories.append(f"{here}{_GIT}/")


def _scan_folder(folder: Path, here: str) -> tuple[list[os.DirEntry[str]], bool]:
    """What is in there, and whether it could not be looked at."""
    try:
        with os.scandir(folder / here) as entries:
            return list(entries), False
    except FileNotFoundError:
        return [], False
    except OSError:
        return [], True  # not ours to look at, or too deep


def _record_entry(
    found: Survey, folder: Path, here: str, entry: os.DirEntry[str], since: int | None, *, is_heavy: bool
) -> tuple[str, bool] | None:
    """Note one entry; the folder to look into and whether it is heavy."""
    path = f"{here}{entry.name}"
    kind = _entry_kind(entry)
    is_folder = kind is EntryKind.FOLDER
    if is_folder:
        path += "/"
    if not is_heavy:
        found.entries[path] = kind
        if since is not None and not is_folder and _is_changed_since(entry, since):
            found.touched.add(path)
    if entry.name == _GIT:
        found.repositories.append(path)
    if kind is EntryKind.LINK and not is_heavy:
        # What it leads to is elsewhere under a name of its own.
        inside = (f"{path}/{each}" for each in startup_files_below(entry.name))
        found.startup += [each for each in inside if os.path.lexists(folder / each)]
    if not is_folder:
        return None
    if not is_heavy and entry.name in HEAVY_FOLDERS:
        found.heavy.add(path)
        is_heavy = True
    return None if entry.name == _GIT else (path, is_heavy)


def _entry_kind(entry: os.DirEntry[str]) -> EntryKind:
    if entry.is_symlink():
        return EntryKind.LINK
    if entry.is_dir(follow_symlinks=False):
        return EntryKind.FOLDER
    return EntryKind.FILE if entry.is_file(follow_symlinks=False) else EntryKind.OTHER


def _is_changed_since(entry: os.DirEntry[str], since: int) -> bool:
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    return stat.S_IFMT(found.st_mode) in (stat.S_IFREG, stat.S_IFLNK) and found.st_ctime_ns >= since
