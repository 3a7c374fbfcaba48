"""Find the git repositories of a workspace and what git would run of them: hooks, settings and programs.

Where they are is documented in gitrepository-layout(5) and git-worktree(1).
"""

import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from threading import Lock

from desktop_agent.sandbox.git_config import (
    GitSetting,
    fingerprint,
    first_line,
    hook_folders,
    is_default,
    is_file,
    is_folder,
    is_link,
    is_too_long,
    program_files,
    read_config,
    read_config_file,
    read_text,
    resolve_path,
    subfolders,
)

MAX_REPOSITORIES = 200
"""Repositories that are searched, including those inside of others."""
# Each protected path is a mount, and all mounts are arguments of one program.
_MAX_FILES = 1_000
_MAX_DEPTH = 8
_MAX_HOOKS = 200
_SAMPLE = ".sample"
_GIT_ENTRY = ".git"
_PARTS = frozenset(("HEAD", "objects", "refs", "config", "config.worktree", "commondir", "hooks"))
# Lists with which git continues on request; lines that begin like this are run (git-rebase(1)).
_PENDING_LISTS = ("rebase-merge/git-rebase-todo", "sequencer/todo")
_EXEC_LINE = re.compile(r"^[ \t]*(?:x|exec)[ \t].*", re.MULTILINE)


@dataclass(slots=True)
class ProtectedRepositories:
    """What a command should not change of the git repositories of a workspace.

    `files` and `folders` should not be written; a folder of hooks may be missing. `pinned` are the folders on the way
    to them, which should not be moved aside, each before those inside of it. `watched` are paths that do not exist yet
    and would be as dangerous, and programs that hooks lead to or settings name: a checkout has to write these, since
    they are tracked. `pending` are lists with which git continues, and of which it may run lines. Each path comes with
    its repository, and each of `repositories` with its working tree. `is_cut`: there were too many.
    """

    files: dict[Path, Path] = field(default_factory=dict[Path, Path])
    folders: dict[Path, Path] = field(default_factory=dict[Path, Path])
    watched: dict[Path, Path] = field(default_factory=dict[Path, Path])
    pending: dict[Path, Path] = field(default_factory=dict[Path, Path])
    pinned: dict[Path, None] = field(default_factory=dict[Path, None])
    repositories: dict[Path, Path] = field(default_factory=dict[Path, Path])
    entries: dict[Path, None] = field(default_factory=dict[Path, None])
    is_cut: bool = False

    @property
    def owners(self) -> set[Path]:
        """All repositories, and files that lead to one."""
        return {*self.repositories, *self.files.values(), *self.watched.values(), *self.folders.values()}

    def owner_of(self, place: Path) -> Path | None:
        """Return the repository of a file or hook."""
        direct = self.files.get(place) or self.watched.get(place) or self.folders.get(place) or self.pending.get(place)
        return direct or self.folders.get(place.parent)


@dataclass(slots=True)
class RepositoryMemory:
    """What was protected in a workspace before: a repository stays one, whatever of it a command removed meanwhile.

    `is_cut`: not everything could be protected the last time. May be used from any thread: what is kept is never
    changed, only replaced.
    """

    repositories: Mapping[Path, Path] = field(default_factory=dict[Path, Path])
    entries: Mapping[Path, None] = field(default_factory=dict[Path, None])
    is_cut: bool = False
    _lock: Lock = field(default_factory=Lock, repr=False)

    def remember(self, repositories: ProtectedRepositories) -> None:
        """Remember what was found."""
        with self._lock:
            self.repositories = {**self.repositories, **repositories.repositories}
            self.entries = {**self.entries, **repositories.entries}


_MEMORY_LOCK = Lock()


def repository_memory(workspace: Path) -> RepositoryMemory:
    """Return the memory of a folder, as long as the program runs. May be called from any thread."""
    with _MEMORY_LOCK:
        return _cached_memory(workspace)


@lru_cache(maxsize=100)
def _cached_memory(workspace: Path) -> RepositoryMemory:
    del workspace
    return RepositoryMemory()


def find_repositories(
    entries: Iterable[Path],
    writable: Path,
    memory: RepositoryMemory | None = None,
    check: Callable[[], None] = lambda: None,
) -> ProtectedRepositories:
    """Find the repositories that these entries lead to (`.git`, or a bare repository), as far as they are writable.

    What is in `memory` comes first, and what git looks for by name before what may be a repository; the repositories
    that contain the folder are among them. `check` is called for each; what it raises is raised.
    """
    known = memory or RepositoryMemory()
    search = _RepositorySearch(writable, check)
    # Known repositories come before those inside of them: a command may have made many, to leave no room for the rest.
    for folder, top in known.repositories.items():
        search.add_repository(folder, top, _MAX_DEPTH, is_known=True)
    parents = (parent / _GIT_ENTRY for parent in writable.parents)
    candidates = {**known.entries, **dict.fromkeys((*parents, *sorted(entries)))}
    for is_named in (True, False):
        for entry in candidates:
            if (entry.name == _GIT_ENTRY) is is_named:
                search.add_entry(entry)
        search.search_inside()
    return search.result


def becomes_repository(folder: Path, name: str) -> bool:
    """Return whether a folder is a repository to git, or is one once `name` is in it too (gitrepository-layout(5))."""
    names = {name, *(part for part in _PARTS if os.path.lexists(folder / part))}
    return "HEAD" in names and not names.isdisjoint({"objects", "commondir"})


def repository_state(repositories: ProtectedRepositories) -> dict[Path, str]:
    """Return what is in each protected path now; equal states mean that nothing was changed."""
    places = [*repositories.files, *repositories.watched]
    state = {place: fingerprint(place) for place in places}
    state |= {place: _pending_state(place) for place in repositories.pending}
    for folder in repositories.folders:
        state[folder] = fingerprint(folder) if is_link(folder) else ""
        state |= {hook: fingerprint(hook) for hook in _hooks_in(folder)}
    return {place: content for place, content in state.items() if content}


def is_state_changed(place: Path, then: str, now: str) -> bool:
    """Return whether git would run or read something else by now; a pending list may have lost lines that are done."""
    if f"{place.parent.name}/{place.name}" in _PENDING_LISTS:
        return not set(now.splitlines()) <= set(then.splitlines())
    return then != now


def is_suspicious(repositories: ProtectedRepositories, place: Path, known: set[Path]) -> bool:
    """Return whether a path of a new repository holds more than it does in every new one.

    `known` are the repositories that were there before.
    """
    if (
        place.parent in repositories.folders
        or place in repositories.folders
        or place in repositories.pending
        or is_too_long(place)
    ):
        return True
    if place.name == "commondir":
        return resolve_path(place.parent / first_line(place)) not in known
    return place.name != _GIT_ENTRY and not is_default(read_config_file(place))


class _RepositorySearch:
    def __init__(self, writable: Path, check: Callable[[], None]) -> None:
        self.result = ProtectedRepositories()
        self._inside_of = os.path.join(writable, "")  # noqa: PTH118 -- with a slash at its end
        self._check = check
        self._queue = deque[tuple[Path, Path, int]]()
        person = _user_config_files()
        config = read_config(person)
        self._everywhere = config.settings
        for file in (*person, *config.included):
            self._add_config(file, file)
        for hooks in hook_folders(config.settings, Path(os.sep)):
            self._add_hook_folder(hooks, hooks)
        for program in program_files(config.settings, Path(os.sep)):
            self._watch(program, program)

    def add_entry(self, entry: Path) -> None:
        """Add what git finds by its name, or what looks like a repository."""
        result, folder = self.result, resolve_path(entry)
        if is_link(entry):
            result.watched[entry] = entry
        if is_file(folder):
            self._add_file(folder, entry)
            folder = resolve_path(folder.parent / read_text(folder).removeprefix("gitdir:").strip())
        self.add_repository(
            folder, entry.parent, _MAX_DEPTH, is_known=entry.name == _GIT_ENTRY and self._is_writable(folder)
        )
        if folder in result.repositories and len(result.entries) < _MAX_FILES:
            result.entries[entry] = None

    def add_repository(self, folder: Path, top: Path, depth: int, *, is_known: bool = False) -> None:
        """Add a repository; `folder` has git's own files, `top` is the working tree."""
        # Mounted by a path with a link on the way, whatever that leads to would be opened.
        result, folder = self.result, resolve_path(folder)
        if folder in result.repositories or not _is_repository(folder, is_known=is_known):
            return
        if len(result.repositories) >= MAX_REPOSITORIES or depth <= 0:
            result.is_cut = True
            return
        self._check()
        result.repositories[folder] = top
        self._pin(folder)
        is_whole = not os.path.lexists(folder / "commondir")
        common = folder if is_whole else resolve_path(folder / first_line(folder / "commondir"))
        # A further working tree has hooks of its own where the settings that all of them have name a folder in it.
        config = read_config((common / "config", folder / "config", folder / "config.worktree"))
        for name in ("config", "config.worktree", "commondir"):
            self._add_config(folder / name, folder)
        for file in config.included:
            self._add_config(file, folder)
        result.pending |= {folder / list_name: folder for list_name in _PENDING_LISTS if self._is_writable(folder)}
        self._add_hooks(folder, top, config.settings, is_whole=is_whole)
        if not is_whole:
            self.add_repository(common, common.parent if common.name == _GIT_ENTRY else top, depth - 1)
        self._queue.append((folder, top, depth))

    def search_inside(self) -> None:
        while self._queue:
            folder, top, depth = self._queue.popleft()
            for nested, nested_top in self._nested_repositories(folder, top):
                self.add_repository(nested, nested_top, depth - 1)

    def _nested_repositories(self, folder: Path, top: Path) -> Iterator[tuple[Path, Path]]:
        """Yield repositories that a repository keeps for submodules, and its further working trees."""
        for worktree in self._folders_in(folder / "worktrees"):
            yield worktree, Path(first_line(worktree / "gitdir") or worktree).parent
        stack = [folder / "modules"]
        for _ in range(MAX_REPOSITORIES):
            if not stack:
                return
            for worktree in self._folders_in(stack.pop()):
                if _is_repository(worktree):
                    yield worktree, top
                else:
                    stack.append(worktree)
        self.result.is_cut |= bool(stack)

    def _folders_in(self, folder: Path) -> list[Path]:
        folders, is_cut = subfolders(folder, MAX_REPOSITORIES)
        self.result.is_cut |= is_cut
        return folders

    def _add_config(self, file: Path, owner: Path) -> None:
        """Add a settings file, or the path where one would be read."""
        if is_file(file):
            self._add_file(file, owner)
            return
        self._watch(file, owner)

    def _watch(self, file: Path, owner: Path) -> None:
        for place in (Path(os.path.normpath(file)), resolve_path(file)):
            if self._is_writable(place) and not is_folder(place):
                if len(self.result.watched) >= _MAX_FILES:
                    self.result.is_cut = True
                    return
                self.result.watched.setdefault(place, owner)

    def _add_file(self, file: Path, owner: Path) -> None:
        if is_link(file):
            self.result.watched.setdefault(file, owner)
        place = resolve_path(file)
        if not self._is_writable(place):
            return
        if len(self.result.files) >= _MAX_FILES:
            self.result.is_cut = True
            return
        self.result.files.setdefault(place, owner)
        self._pin(place.parent)

    def _add_hooks(self, folder: Path, top: Path, own_settings: tuple[GitSetting, ...], *, is_whole: bool) -> None:
        settings = (*self._everywhere, *own_settings)
        for hooks in (*((folder / "hooks",) if is_whole else ()), *hook_folders(settings, top)):
            self._add_hook_folder(hooks, folder)
        for program in program_files(settings, top):
            self._watch(program, folder)

    def _add_hook_folder(self, hooks: Path, owner: Path) -> None:
        if is_link(hooks):
            self.result.watched.setdefault(hooks, owner)
        place = resolve_path(hooks)
        for hook in filter(is_link, _hooks_in(place)):
            self._watch(resolve_path(hook), owner)
        if not self._is_writable(place):
            return
        if hooks == owner / "hooks" or is_folder(place):
            self.result.folders.setdefault(place, owner)
            self._pin(place.parent)
        else:
            self.result.watched.setdefault(place, owner)

    def _pin(self, folder: Path) -> None:
        if folder not in self.result.pinned and self._is_writable(folder):
            parents = [parent for parent in folder.parents if self._is_writable(parent)]
            self.result.pinned |= dict.fromkeys((*reversed(parents), folder))

    def _is_writable(self, place: Path) -> bool:
        return f"{place}".startswith(self._inside_of)


def _user_config_files() -> tuple[Path, ...]:
    config_home = os.environ.get("XDG_CONFIG_HOME")
    config_folder = Path(config_home) if config_home else Path.home() / ".config"
    return (Path.home() / ".gitconfig", config_folder / "git/config", Path("/etc/gitconfig"))


def _is_repository(folder: Path, *, is_known: bool = False) -> bool:
    """Return whether it is a repository, perhaps incomplete: what is missing may be put back later."""
    names = {part for part in _PARTS if os.path.lexists(folder / part)}
    if is_known:
        return bool(names)
    is_one = "HEAD" in names and (is_folder(folder / "objects") or is_file(folder / "commondir"))
    return is_one or (names >= {"objects", "refs"} and not names.isdisjoint({"config", "hooks"}))


def _hooks_in(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return sorted(Path(entry.path) for entry in entries if not entry.name.endswith(_SAMPLE))[:_MAX_HOOKS]
    except OSError:
        return []


def _pending_state(place: Path) -> str:
    """Return the lines that git would run; of a link, its target. A file too long to read counts with any change."""
    lines = [] if is_link(place) else _EXEC_LINE.findall(read_text(place))
    return "\n".join([*lines, *([fingerprint(place)] if is_link(place) or is_too_long(place) else [])])
