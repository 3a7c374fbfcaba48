"""Find the git repositories of a workspace and what git would run of them: hooks, settings and programs.

Where they lie is said in gitrepository-layout(5) and git-worktree(1).
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
    read_settings,
    read_text,
    resolve_path,
    subfolders,
)

MAX_REPOSITORIES = 200
"""Repositories, those inside of others among them, that are looked at."""
# What is kept from a command is a mount each, and all of them are words of one program.
_MAX_FILES = 1_000
_MAX_DEPTH = 8
_MAX_HOOKS = 200
_SAMPLE = ".sample"
_GIT_ENTRY = ".git"
_PARTS = frozenset(("HEAD", "objects", "refs", "config", "config.worktree", "commondir", "hooks"))
# What git goes on with when the person tells it to; lines that begin so are run (git-rebase(1)).
_PENDING_LISTS = ("rebase-merge/git-rebase-todo", "sequencer/todo")
_EXEC_LINE = re.compile(r"^[ \t]*(?:x|exec)[ \t].*", re.MULTILINE)


@dataclass(slots=True)
class ProtectedRepositories:
    """`files` and `folders` are what a command should not write; a folder of hooks may be missing.

    `pinned` are the folders on the way to them, which it should not move aside, each before those inside of it.
    `watched` may come to be there, and would be as bad; or hooks lead to it, or settings name it as a program, and a
    checkout has to write it, since such files are tracked. `waiting` is what git goes on with, and may run lines of.
    Each comes with the repository that it belongs to. `seen` are the repositories, each with the folder that it is of.
    `is_cut`: there was too much.
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
        """The repository of a file or hook."""
        direct = self.files.get(place) or self.watched.get(place) or self.folders.get(place) or self.pending.get(place)
        return direct or self.folders.get(place.parent)


@dataclass(slots=True)
class RepositoryMemory:
    """What was guarded in a workspace before: a repository stays one, whatever of it a command took away meanwhile.

    `is_cut`: not everything could be guarded when last looked at. May be asked from any thread: what is kept is never
    changed, only replaced.
    """

    repositories: Mapping[Path, Path] = field(default_factory=dict[Path, Path])
    entries: Mapping[Path, None] = field(default_factory=dict[Path, None])
    is_cut: bool = False
    _keeping: Lock = field(default_factory=Lock, repr=False)

    def remember(self, found: ProtectedRepositories) -> None:
        """Remember what was found."""
        with self._keeping:
            self.repositories = {**self.repositories, **found.repositories}
            self.entries = {**self.entries, **found.entries}


_MEMORY_LOCK = Lock()


def repository_memory(workspace: Path) -> RepositoryMemory:
    """That of the program, as long as it runs. May be called from any thread."""
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
    """Of the repositories that these entries lead to (`.git`, or a bare repository), as far as they can be written.

    What is in `memory` comes first, and what git looks for by name before what may be a repository; the repositories
    that the folder lies in are among them. `check` is called for each; what it raises is raised.
    """
    known = memory or RepositoryMemory()
    search = _RepositorySearch(writable, check)
    # All that is known, before what those have in them: that may be there to leave no room for the rest.
    for folder, top in known.repositories.items():
        search.add_repository(folder, top, _MAX_DEPTH, is_known=True)
    above = (each / _GIT_ENTRY for each in writable.parents)
    every = {**known.entries, **dict.fromkeys((*above, *sorted(entries)))}
    for is_named in (True, False):
        for entry in every:
            if (entry.name == _GIT_ENTRY) is is_named:
                search.add_entry(entry)
        search.search_inside()
    return search.result


def becomes_repository(folder: Path, name: str) -> bool:
    """Whether a folder is a repository to git, or will be one when `name` is in it too (gitrepository-layout(5))."""
    names = {name, *(each for each in _PARTS if os.path.lexists(folder / each))}
    return "HEAD" in names and not names.isdisjoint({"objects", "commondir"})


def repository_state(found: ProtectedRepositories) -> dict[Path, str]:
    """What is in each place now; two equal ones mean that nothing was changed."""
    places = [*found.files, *found.watched]
    state = {place: fingerprint(place) for place in places}
    state |= {place: _pending_state(place) for place in found.pending}
    for folder in found.folders:
        state[folder] = fingerprint(folder) if is_link(folder) else ""
        state |= {hook: fingerprint(hook) for hook in _hooks_in(folder)}
    return {place: said for place, said in state.items() if said}


def is_state_changed(place: Path, then: str, now: str) -> bool:
    """Whether git would run or read something else by now; what it goes on with may have lost lines that are done."""
    if f"{place.parent.name}/{place.name}" in _PENDING_LISTS:
        return not set(now.splitlines()) <= set(then.splitlines())
    return then != now


def is_suspicious(found: ProtectedRepositories, place: Path, known: set[Path]) -> bool:
    """Whether a place of a repository that came to be holds more than it does in every new one.

    `known` are the repositories that were there before.
    """
    if place.parent in found.folders or place in found.folders or place in found.pending or is_too_long(place):
        return True
    if place.name == "commondir":
        return resolve_path(place.parent / first_line(place)) not in known
    return place.name != _GIT_ENTRY and not is_default(read_settings(place))


class _RepositorySearch:
    """For what is guarded below a folder."""

    def __init__(self, writable: Path, check: Callable[[], None]) -> None:
        self.result = ProtectedRepositories()
        self._inside_of = os.path.join(writable, "")  # noqa: PTH118 -- with a slash at its end
        self._check = check
        self._waiting = deque[tuple[Path, Path, int]]()
        person = _user_config_files()
        said = read_config(person)
        self._everywhere = said.settings
        for file in (*person, *said.included):
            self._add_settings(file, file)
        for hooks in hook_folders(said.settings, Path(os.sep)):
            self._add_hook_folder(hooks, hooks)
        for program in program_files(said.settings, Path(os.sep)):
            self._watch(program, program)

    def add_entry(self, entry: Path) -> None:
        """What git finds by its name, or what looks like a repository."""
        found, folder = self.result, resolve_path(entry)
        if is_link(entry):
            found.watched[entry] = entry
        if is_file(folder):
            self._add_file(folder, entry)
            folder = resolve_path(folder.parent / read_text(folder).removeprefix("gitdir:").strip())
        self.add_repository(
            folder, entry.parent, _MAX_DEPTH, is_known=entry.name == _GIT_ENTRY and self._is_writable(folder)
        )
        if folder in found.repositories and len(found.entries) < _MAX_FILES:
            found.entries[entry] = None

    def add_repository(self, folder: Path, top: Path, depth: int, *, is_known: bool = False) -> None:
        """`folder` has what git keeps, `top` the files that it keeps it about."""
        found = self.result
        if folder in found.repositories or not _is_repository(folder, is_known=is_known):
            return
        if len(found.repositories) >= MAX_REPOSITORIES or depth <= 0:
            found.is_cut = True
            return
        self._check()
        found.repositories[folder] = top
        self._pin(folder)
        is_whole = not os.path.lexists(folder / "commondir")
        common = folder if is_whole else resolve_path(folder / first_line(folder / "commondir"))
        # A further working tree has hooks of its own where the settings that all of them have name a folder in it.
        said = read_config((common / "config", folder / "config", folder / "config.worktree"))
        for name in ("config", "config.worktree", "commondir"):
            self._add_settings(folder / name, folder)
        for file in said.included:
            self._add_settings(file, folder)
        found.pending |= {folder / each: folder for each in _PENDING_LISTS if self._is_writable(folder)}
        self._add_hooks(folder, top, said.settings, is_whole=is_whole)
        if not is_whole:
            self.add_repository(common, common.parent if common.name == _GIT_ENTRY else top, depth - 1)
        self._waiting.append((folder, top, depth))

    def search_inside(self) -> None:
        """Into the repositories that were added since."""
        while self._waiting:
            folder, top, depth = self._waiting.popleft()
            for inside, its_top in self._inside(folder, top):
                self.add_repository(inside, its_top, depth - 1)

    def _inside(self, folder: Path, top: Path) -> Iterator[tuple[Path, Path]]:
        """Repositories that a repository keeps for submodules, and what it keeps for further working trees."""
        for each in self._folders_in(folder / "worktrees"):
            yield each, Path(first_line(each / "gitdir") or each).parent
        waiting = [folder / "modules"]
        for _ in range(MAX_REPOSITORIES):
            if not waiting:
                return
            for each in self._folders_in(waiting.pop()):
                if _is_repository(each):
                    yield each, top
                else:
                    waiting.append(each)
        self.result.is_cut |= bool(waiting)

    def _folders_in(self, folder: Path) -> list[Path]:
        inside, is_cut = subfolders(folder, MAX_REPOSITORIES)
        self.result.is_cut |= is_cut
        return inside

    def _add_settings(self, file: Path, owner: Path) -> None:
        """A file, or the place where one would be read."""
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

    def _add_hooks(self, folder: Path, top: Path, own: tuple[GitSetting, ...], *, is_whole: bool) -> None:
        settings = (*self._everywhere, *own)
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
            above = [each for each in folder.parents if self._is_writable(each)]
            self.result.pinned |= dict.fromkeys((*reversed(above), folder))

    def _is_writable(self, place: Path) -> bool:
        """Whether a command could write it."""
        return f"{place}".startswith(self._inside_of)


def _user_config_files() -> tuple[Path, ...]:
    moved = os.environ.get("XDG_CONFIG_HOME")
    own = Path(moved) if moved else Path.home() / ".config"
    return (Path.home() / ".gitconfig", own / "git/config", Path("/etc/gitconfig"))


def _is_repository(folder: Path, *, is_known: bool = False) -> bool:
    """Also one of which something is missing, which may be put back later, when it has been written to."""
    names = {each for each in _PARTS if os.path.lexists(folder / each)}
    if is_known:
        return bool(names)
    is_one = "HEAD" in names and (is_folder(folder / "objects") or is_file(folder / "commondir"))
    return is_one or (names >= {"objects", "refs"} and not names.isdisjoint({"config", "hooks"}))


def _hooks_in(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return sorted(Path(each.path) for each in entries if not each.name.endswith(_SAMPLE))[:_MAX_HOOKS]
    except OSError:
        return []


def _pending_state(place: Path) -> str:
    """The lines that git would run; of a link, where it leads. Of more than is looked at any change counts."""
    lines = [] if is_link(place) else _EXEC_LINE.findall(read_text(place))
    return "\n".join([*lines, *([fingerprint(place)] if is_link(place) or is_too_long(place) else [])])
