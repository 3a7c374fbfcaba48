"""Survey a workspace for changed files, repositories, startup files and private paths."""

import os
import stat
import sys
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import lru_cache
from itertools import islice
from pathlib import Path
from threading import Lock

from desktop_agent.sandbox.policy import paths_of, private_paths
from desktop_agent.sandbox.startup_files import (
    AskLevel,
    StartupFile,
    comparable_parts,
    entry_for_pattern,
    find_startup_file,
    folder_suffixes,
    home_startup_files,
    may_contain_startup_files,
    startup_files_below,
    startup_part_index,
    strictest_entry,
)
from desktop_agent.tools.commands.git_repositories import becomes_repository, find_repositories, repository_memory

MAX_FOLDERS = 100_000
# Nanoseconds. A folder that changed less than this before it was read may change again with the same time stamp.
_SETTLED_NS = 2_000_000_000
_HAS_CHANGE_TIMES = sys.platform != "win32"

_Stamp = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class ListedName:
    """A name in a folder, and its kind. A link is no folder, wherever it leads."""

    name: str
    is_folder: bool
    is_link: bool


class ListingCache:
    """Names in folders, by path, or only those of folders, links and `.git`: `without_files`. Used from any thread.

    `read` counts the folders that were read.
    """

    def __init__(self, most: int = MAX_FOLDERS, *, without_files: bool = False) -> None:
        self.read = 0
        self._most = most
        self._without_files = without_files
        self._cache: OrderedDict[str, tuple[_Stamp, tuple[ListedName, ...]]] = OrderedDict()
        self._lock = Lock()

    def entries(self, folder: Path | str) -> Sequence[ListedName]:
        """Return the names in a folder, with their kinds. Raises OSError."""
        path = str(folder)
        before = _folder_stamp(path)
        with self._lock:
            stamp, cached = self._cache.get(path, (None, ()))
            if stamp == before:
                self._cache.move_to_end(path)
                return cached
        with os.scandir(path) as entries:
            scanned = (
                ListedName(entry.name, entry.is_dir(follow_symlinks=False), entry.is_symlink()) for entry in entries
            )
            names = tuple([name for name in scanned if self._is_included(name)])
        with self._lock:
            self.read += 1
            self._cache.pop(path, None)
            if _HAS_CHANGE_TIMES and before[-1] < time.time_ns() - _SETTLED_NS and before == _folder_stamp(path):
                self._cache[path] = (before, names)
                if len(self._cache) > self._most:
                    self._cache.popitem(last=False)
        return names

    def _is_included(self, entry: ListedName) -> bool:
        return not self._without_files or entry.is_folder or entry.is_link or entry.name == ".git"


def _folder_stamp(path: str) -> _Stamp:
    status = os.lstat(path)
    return status.st_dev, status.st_ino, status.st_ctime_ns


MAX_ENTRIES = 200_000
"""Entries that are surveyed, those nearest to the top first."""
HEAVY_FOLDERS = frozenset(
    (".git", ".hg", ".svn", ".jj", "node_modules", ".venv", "venv", "__pycache__", ".tox", ".mypy_cache", ".ruff_cache")
)
"""Folders that programs fill, and nobody writes in by hand."""
# A folder with one of these is made anew by a program (https://bford.info/cachedir/, PEP 405).
_GENERATED_MARKERS = frozenset(("CACHEDIR.TAG", "pyvenv.cfg"))
_BARE_REPOSITORY = frozenset(("objects", "refs"))
_BARE_REPOSITORY_EXTRAS = frozenset(("HEAD", "config", "hooks"))
# When there is too much, at most so many of the folders that are not searched are checked for a repository.
_MAX_CHECKED = 10_000
_GIT = ".git"
HEAVY_LISTINGS = ListingCache()
"""Listings of heavy folders, whose files are not reported."""


class EntryKind(Enum):
    """The kind of a name."""

    FILE = auto()
    FOLDER = auto()
    LINK = auto()
    OTHER = auto()


@dataclass(slots=True)
class Survey:
    """What a workspace holds. Paths are relative, those of folders end in a slash, with their kinds.

    `touched`: changed since the moment asked for. `heavy` are folders that are not searched, and `repositories` what
    git would take for one, or may later; heavy folders too are searched for those. `startup` are startup files and
    folders of them, not in heavy folders. `is_cut`: there was too much.
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
    """Survey a folder. `since` is in nanoseconds; without it no time is compared. Links are not followed.

    `check` is called for each folder; what it raises is raised. What was there `before` is as heavy as it was.
    """
    survey = Survey()
    remaining = MAX_ENTRIES if most is None else most
    queue = deque([("", False)])
    while queue:
        check()
        folder_path, is_heavy = queue.popleft()
        if is_heavy:
            remaining -= _scan_heavy_folder(survey, folder, folder_path, queue)
            if remaining < 0:
                _check_for_repositories(survey, folder, (entry for entry, _ in queue))
                return survey
            continue
        entries, is_closed = _scan_folder(folder, folder_path)
        if is_closed and not is_heavy:
            survey.heavy.add(folder_path or "./")
        remaining -= len(entries)
        names = {entry.name for entry in entries}
        if folder_path and _may_be_bare_repository(names):
            survey.repositories.append(folder_path)
        if remaining < 0:
            queue.extendleft(
                (f"{folder_path}{entry.name}/", True) for entry in entries if entry.is_dir(follow_symlinks=False)
            )
            _check_for_repositories(survey, folder, (folder_path, *(entry for entry, _ in queue)))
            return survey
        # Before a mark of a cache is looked for, which a command may set to hide them.
        survey.startup += _startup_files_in(folder_path, entries, names)
        if folder_path and not is_heavy and _is_generated(folder_path, names, before):
            survey.heavy.add(folder_path)
            is_heavy = True
        for entry in entries:
            inner = _record_entry(survey, folder, folder_path, entry, since, is_heavy=is_heavy)
            if inner is not None:
                queue.append(inner)
    return survey


def _startup_files_in(folder_path: str, entries: Iterable[os.DirEntry[str]], names: set[str]) -> Iterator[str]:
    for entry in entries if may_contain_startup_files(names) else ():
        path = f"{folder_path}{entry.name}"
        # git's own files are checked in another way, and generated files not at all.
        if (
            entry.name not in HEAVY_FOLDERS
            and entry.name not in _GENERATED_MARKERS
            and startup_part_index(path) is not None
        ):
            yield f"{path}/" if entry.is_dir(follow_symlinks=False) else path


def _scan_heavy_folder(survey: Survey, folder: Path, folder_path: str, queue: deque[tuple[str, bool]]) -> int:
    """Search for repositories only, and not where nothing changed since the last time; return how much is in there."""
    try:
        entries = HEAVY_LISTINGS.entries(folder / folder_path)
    except OSError:
        return 0
    if _may_be_bare_repository({entry.name for entry in entries}):
        survey.repositories.append(folder_path)
    for entry in entries:
        path = f"{folder_path}{entry.name}"
        if entry.name == _GIT:
            survey.repositories.append(f"{path}/" if entry.is_folder else path)
        elif entry.is_folder:
            queue.append((f"{path}/", True))
    return len(entries)


def _may_be_bare_repository(names: set[str]) -> bool:
    """Return whether it may be a bare repository, perhaps incomplete: what is missing may be put back later."""
    return names >= _BARE_REPOSITORY and not names.isdisjoint(_BARE_REPOSITORY_EXTRAS)


def _is_generated(folder_path: str, names: set[str], before: Survey | None) -> bool:
    if before is not None and folder_path in before.entries:
        # Otherwise a mark that is made meanwhile would hide what happens in there.
        return folder_path in before.heavy
    return not names.isdisjoint(_GENERATED_MARKERS)


def _check_for_repositories(survey: Survey, folder: Path, folder_paths: Iterable[str]) -> None:
    """Check many folders only for the name that git asks for."""
    survey.is_cut = True
    for folder_path in islice(folder_paths, _MAX_CHECKED):
        if os.path.lexists(folder / folder_path / _GIT):
            survey.repositories.append(f"{folder_path}{_GIT}/")


def _scan_folder(folder: Path, folder_path: str) -> tuple[list[os.DirEntry[str]], bool]:
    """Return the entries, and whether they could not be read."""
    try:
        with os.scandir(folder / folder_path) as entries:
            return list(entries), False
    except FileNotFoundError:
        return [], False
    except OSError:
        return [], True  # not ours to look at, or too deep


def _record_entry(
    survey: Survey, folder: Path, folder_path: str, entry: os.DirEntry[str], since: int | None, *, is_heavy: bool
) -> tuple[str, bool] | None:
    """Note one entry; return the folder to search and whether it is heavy."""
    path = f"{folder_path}{entry.name}"
    kind = _entry_kind(entry)
    is_folder = kind is EntryKind.FOLDER
    if is_folder:
        path += "/"
    if not is_heavy:
        survey.entries[path] = kind
        if since is not None and not is_folder and _is_changed_since(entry, since):
            survey.touched.add(path)
    if entry.name == _GIT:
        survey.repositories.append(path)
    if kind is EntryKind.LINK and not is_heavy:
        # What it leads to is elsewhere under a name of its own.
        startup = (f"{path}/{startup_path}" for startup_path in startup_files_below(entry.name))
        survey.startup += [startup_path for startup_path in startup if os.path.lexists(folder / startup_path)]
    if not is_folder:
        return None
    if not is_heavy and entry.name in HEAVY_FOLDERS:
        survey.heavy.add(path)
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
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    return stat.S_IFMT(status.st_mode) in (stat.S_IFREG, stat.S_IFLNK) and status.st_ctime_ns >= since


_HOME_VARIABLES = ("HOME", "USERPROFILE", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")


def private_paths_in(workspace: str | None) -> tuple[str, ...]:
    """Return files and folders below this one that hold secrets, as absolute paths with forward slashes."""
    return () if workspace is None else _private_paths(workspace, home_variables())


def home_variables() -> tuple[str | None, ...]:
    """Return the variables that say where a home folder is, and what was moved out of it."""
    return tuple(os.environ.get(variable) for variable in _HOME_VARIABLES)


@lru_cache(maxsize=16)
def _private_paths(workspace: str, _: tuple[str | None, ...]) -> tuple[str, ...]:
    return paths_below(workspace, private_paths())


def paths_below(workspace: str, places: Iterable[Path]) -> tuple[str, ...]:
    """Return the paths inside a workspace, links followed, as tools follow them."""
    folder = Path(os.path.realpath(workspace))
    real = (Path(os.path.realpath(place)) for place in places)
    return tuple(dict.fromkeys(path.as_posix() for path in real if folder in path.parents))


StartupPaths = tuple[tuple[str, StartupFile], ...]
_Parts = tuple[str, ...]

# What git takes from a repository without a working tree, by names in its top folder (gitrepository-layout(5)).
_REPOSITORY_PARTS = {
    name.casefold(): name
    for name in (
        *("HEAD", "objects", "refs", "config", "config.worktree", "commondir", "hooks", "info", "packed-refs"),
        *("modules", "worktrees"),
    )
}
_MAX_FOLDERS = 2_000
_FOLDER_LISTINGS = ListingCache(without_files=True)
# A limit for all names that links give to the paths of one call.
_MAX_STEPS = 20_000
_TOO_MANY_LINKS = StartupFile(AskLevel.ALWAYS, program="", when="", patterns=())
# The longest pattern in the table; and a stand-in for all parts after those, which is in no pattern.
_MAX_PATTERN_PARTS = 3
_OTHER_PART = "-"


def startup_paths(
    paths: Iterable[str], workspace: str | None, check: Callable[[], None] = lambda: None
) -> StartupPaths:
    """Return existing startup files, and those of these paths that would be: absolute, with forward slashes.

    Reads the disk, in large workspaces for long: call it in a thread. `check` is called before each read of a folder or
    a link; what it raises is raised.
    """
    if workspace is None:
        return ()
    top, all_paths = Path(os.path.realpath(workspace)), tuple(paths)
    git = entry_for_pattern(".git/")
    repository_parts = ((known_path, git) for known_path in all_paths if _is_repository_part(Path(known_path), top))
    links, entries = _find_links(top, check)
    parents = (folder for path in all_paths for folder in Path(path).parents if folder.is_relative_to(top))
    entries |= dict.fromkeys(folder / _GIT for folder in parents)
    home_paths = _startup_paths_in_home(workspace, home_variables())
    return (
        *home_paths,
        *_startup_paths_of_git(entries, top, check),
        *repository_parts,
        *_behind_links(all_paths, links, top),
    )


@lru_cache(maxsize=16)
def _startup_paths_in_home(workspace: str, _: tuple[str | None, ...]) -> StartupPaths:
    return tuple(
        (path, entry) for name, entry in home_startup_files().items() for path in paths_below(workspace, paths_of(name))
    )


def _startup_paths_of_git(
    entries: Iterable[Path], top: Path, check: Callable[[], None]
) -> Iterator[tuple[str, StartupFile]]:
    """Return what repositories around the workspace and in it lead to; paths in `.git` are known by name."""
    repositories = find_repositories(entries, top, repository_memory(top), check)
    hooks, other_entries = entry_for_pattern(".githooks/"), entry_for_pattern(".git/")
    for place in {**repositories.folders, **repositories.files, **repositories.watched}:
        relative = f"{place}{os.sep}"[len(f"{top}") :]
        if place.is_relative_to(top) and f"{os.sep}{_GIT}{os.sep}" not in relative:
            yield place.as_posix(), hooks if place in repositories.folders else other_entries


def _behind_links(
    paths: Sequence[str], links: Mapping[_Parts, Sequence[_Parts]], top: Path
) -> Iterator[tuple[str, StartupFile]]:
    """Yield those paths that are startup files under a name that a link gives them, or may be."""
    workspace_parts, steps = len(comparable_parts(top.as_posix())), iter(range(_MAX_STEPS))
    for path in paths if links else ():
        if (
            entry := strictest_entry(_entries_for_all_names(comparable_parts(path), links, workspace_parts, steps))
        ) is not None:
            yield path, entry


def _entries_for_all_names(
    path: _Parts, links: Mapping[_Parts, Sequence[_Parts]], workspace_parts: int, steps: Iterator[int]
) -> Iterator[StartupFile | None]:
    """Yield the entry for each name of a path: links may give it endless names, but only so many endings."""
    queue: list[tuple[_Parts, _Parts]] = [(path, ())]
    known, seen = set(queue), set[tuple[_Parts, int]]()
    for place, after in queue:
        for name in filter(None, (place, *links.get(place, ()))):
            if next(steps, None) is None:
                yield _TOO_MANY_LINKS
                return
            tail = (name[-1], *after)
            key = (tail, max(workspace_parts - len(name) + 1, 0))
            if key not in seen:
                seen.add(key)
                yield find_startup_file("/".join(tail), workspace_parts=key[1])
            parents = (name[:-1], _last_relevant_parts(tail))
            if parents not in known:
                known.add(parents)
                queue.append(parents)


def _last_relevant_parts(tail: _Parts) -> _Parts:
    """Return the last parts of a name that a pattern may have after another part: at most three."""
    if len(tail) < _MAX_PATTERN_PARTS and tail[-1] != _OTHER_PART:
        return tail
    count = next((count for count in range(_MAX_PATTERN_PARTS - 1, 0, -1) if tail[:count] in folder_suffixes()), 0)
    return (*tail[:count], _OTHER_PART)


def _find_links(top: Path, check: Callable[[], None]) -> tuple[dict[_Parts, list[_Parts]], dict[Path, None]]:
    """Return where links of the workspace lead, from where, and what leads to repositories: in folders near its top.

    Links in heavy folders, such as installing makes, are left out.
    """
    links, entries = dict[_Parts, list[_Parts]](), dict[Path, None]()
    queue = deque([f"{top}"])
    for _ in range(_MAX_FOLDERS):
        if not queue:
            break
        check()
        folder = queue.popleft()
        try:
            listing = _FOLDER_LISTINGS.entries(folder)
        except OSError:
            continue
        if folder != f"{top}" and {entry.name for entry in listing} >= _BARE_REPOSITORY:
            entries[Path(folder)] = None
        for entry in listing:
            place = f"{folder}{os.sep}{entry.name}"
            if entry.name == _GIT:
                entries[Path(place)] = None
            if entry.is_link:
                check()
                real = Path(os.path.realpath(place))
                if real.is_relative_to(top):
                    link = comparable_parts(Path(place).as_posix())
                    links.setdefault(comparable_parts(real.as_posix()), []).append(link)
            elif entry.name not in HEAVY_FOLDERS and entry.is_folder:
                queue.append(place)
    return links, entries


def _is_repository_part(path: Path, top: Path) -> bool:
    if top not in path.parents:
        return False
    parts = path.relative_to(top).parts
    names = ((index, _REPOSITORY_PARTS.get(part.casefold())) for index, part in enumerate(parts))
    return any(name is not None and becomes_repository(top.joinpath(*parts[:index]), name) for index, name in names)
