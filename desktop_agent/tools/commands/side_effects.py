"""Report the side effects of a command: changed files, and what git and other programs would run."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from desktop_agent.sandbox.git_config import fingerprint, is_folder, is_link, printable_path, resolve_path
from desktop_agent.sandbox.startup_files import find_startup_file, startup_files_in_line, startup_part_index
from desktop_agent.tools.commands.git_repositories import (
    ProtectedRepositories,
    find_repositories,
    is_state_changed,
    is_suspicious,
    repository_memory,
    repository_state,
)
from desktop_agent.tools.commands.workspace_survey import Survey, survey_workspace
from desktop_agent.types.errors import Sentence
from desktop_agent.types.tool_calls import FileChanges

MAX_STARTUP_FILES = 1_000
"""Files that are looked at; each that is kept is a mount, too."""


@dataclass(frozen=True, slots=True)
class ProtectedStartupFiles:
    """What a command shall not write, and the folders on the way there, each before those in it."""

    read_only: tuple[Path, ...] = ()
    pinned: tuple[Path, ...] = ()


def protected_startup_files(line: str, runs_in: str, folder: Path, seen: Survey) -> ProtectedStartupFiles:
    """Return the startup files of a workspace that this line shall leave as they are.

    Only where a program looks for them when somebody works in the workspace: at its top, and at that of a repository in
    it. Elsewhere they are copies, which installing and cleaning up removes.
    """
    named_folders = [f"{file}/" for file in startup_files_in_line(line, runs_in)]
    repositories = (repository.rstrip("/") for repository in seen.repositories)
    tops = {"", *(repository.rpartition("/")[0] + "/" for repository in repositories if "/" in repository)}
    places: dict[Path, None] = {}
    pinned: dict[Path, None] = {}
    for path in _outermost_startup_paths(seen):
        path_as_folder = f"{path.rstrip('/')}/"
        is_named = any(path_as_folder.startswith(name) or name.startswith(path_as_folder) for name in named_folders)
        entry = find_startup_file(path)
        if is_named or _top_folder(path) not in tops or entry is None or entry.is_built:
            continue
        place = resolve_path(folder / path)
        if folder in place.parents and len(places) < MAX_STARTUP_FILES:
            places[place] = None
            pinned |= dict.fromkeys(parent for parent in reversed(place.parents) if folder in parent.parents)
    return ProtectedStartupFiles(tuple(places), tuple(pinned))


def startup_file_state(folder: Path, seen: Survey) -> dict[str, str]:
    """Return the fingerprint of each startup file, by paths relative to the workspace."""
    files = islice(
        (file for path in _outermost_startup_paths(seen) for file in _files_in(folder, path)), MAX_STARTUP_FILES
    )
    return {path: content for path in files if (content := fingerprint(folder / path))}


def describe_startup_changes(before: dict[str, str], now: dict[str, str], most: int) -> str:
    """Report which of them a command made or changed; empty for none."""
    changed = sorted(path for path, content in now.items() if before.get(path) != content)
    descriptions = [f"{printable_path(path)} ({_run_by(path)})" for path in changed[:most]]
    more = f" and {len(changed) - most:,} more" if len(changed) > most else ""
    if not descriptions:
        return ""
    return (
        f"It wrote what other programs run by themselves, outside of the confinement: {'; '.join(descriptions)}{more}."
    )


def _run_by(path: str) -> str:
    entry = find_startup_file(path)
    return f"{entry.program}, {entry.when}" if entry is not None else ""


def _outermost_startup_paths(seen: Survey) -> Iterator[str]:
    folders = tuple(path for path in seen.startup if path.endswith("/"))
    return (path for path in seen.startup if not any(path != folder and path.startswith(folder) for folder in folders))


def _top_folder(path: str) -> str:
    """Return the folder in which the program looks: empty for the workspace, else with a slash at its end."""
    return "".join(f"{part}/" for part in path.split("/")[: startup_part_index(path)])


def _files_in(folder: Path, path: str) -> Iterator[str]:
    top = folder / path.rstrip("/")
    if not is_folder(top) or is_link(top):
        yield path.rstrip("/")
    if not is_folder(top) or folder not in resolve_path(top).parents:
        return
    for folder_path, _, names in os.walk(top):
        for name in sorted(names):
            yield (Path(folder_path) / name).relative_to(folder).as_posix()


MAX_NAMED = 20
MAX_SAVED = 100
_MAX_HEAVY_NAMED = 5


@dataclass(frozen=True, slots=True)
class WorkspaceChanges:
    """Paths relative to the workspace; a created or deleted folder stands for all in it. `heavy` was not searched."""

    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    heavy: tuple[str, ...] = ()
    is_cut: bool = False

    @property
    def file_changes(self) -> FileChanges:
        """The changes as they are stored with the call, at most MAX_SAVED paths of a kind."""
        lists = [tuple(map(printable_path, paths[:MAX_SAVED])) for paths in (self.created, self.changed, self.deleted)]
        count = len(self.created) + len(self.changed) + len(self.deleted)
        return FileChanges(*lists, count=count, is_cut=self.is_cut)

    def __str__(self) -> str:
        """Describe them in sentences, with at most MAX_NAMED names."""
        remaining, parts = MAX_NAMED, list[str]()
        for word, paths in (("created", self.created), ("changed", self.changed), ("deleted", self.deleted)):
            shown = paths[:remaining]
            remaining -= len(shown)
            if shown:
                parts.append(f"{word} {_list_paths(paths, len(shown))}")
            elif paths:
                parts.append(f"{word} {len(paths):,} more")
        notes = [f"Since it began, files of the workspace: {'; '.join(parts)}." if parts else _NO_CHANGES]
        if self.heavy:
            notes.append(f"Not looked into: {_list_paths(self.heavy, _MAX_HEAVY_NAMED)}.")
        if self.is_cut:
            notes.append("There are too many files; not all were looked at.")
        return " ".join(notes)


_NO_CHANGES = "No file of the workspace was created, changed or deleted."


@dataclass(frozen=True, slots=True)
class WorkspaceBefore:
    """The workspace as it was; `protected` is None where it is not checked what programs run of it.

    `state` is what git runs and `startup` what other programs do. Everything reads the disk: call it in a thread.
    """

    folder: Path
    since: int
    survey: Survey
    protected: ProtectedRepositories | None
    state: dict[Path, str]
    startup: dict[str, str]

    @property
    def is_small(self) -> bool:
        """Whether another survey is cheap enough for a command that nobody stopped."""
        return len(self.survey.entries) <= MAX_CHEAP_ENTRIES and not self.survey.is_cut

    def compare(self, check: Callable[[], None] = lambda: None, *, files: bool = True) -> "SideEffects":
        """Survey again, for changed `files` or only for what programs run. Raises what `check` raises."""
        now = survey_workspace(self.folder, self.since if files else None, check, before=self.survey)
        changes = _compare_surveys(self.folder, self.survey, now) if files else None
        if self.protected is None:
            return SideEffects(changes, "")
        repositories = _find_protected(self.folder, now)
        state = startup_file_state(self.folder, now)
        other_state = {path: text for path, text in state.items() if repositories.owner_of(self.folder / path) is None}
        sentences = (
            self._describe_git_changes(now, repositories, self.protected),
            describe_startup_changes(self.startup, other_state, MAX_NAMED),
        )
        return SideEffects(changes, " ".join(filter(None, sentences)))

    def _describe_git_changes(
        self, now: Survey, repositories: ProtectedRepositories, before: ProtectedRepositories
    ) -> str:
        known = before.owners
        state = repository_state(before) | repository_state(repositories)
        changed, created = set[Path](), set[Path]()
        for place in self.state.keys() | state.keys():
            owner = repositories.owner_of(place)
            if owner is not None and owner not in known:
                created |= {owner} if is_suspicious(repositories, place, known) else set()
            elif is_state_changed(place, self.state.get(place, ""), state.get(place, "")):
                changed.add(place)
        sentences = [f"It changed what git runs or reads: {self._format_paths(changed)}."] if changed else []
        if created:
            sentences.append(f"It made repositories of git with settings of their own: {self._format_paths(created)}.")
        is_cut = self.survey.is_cut or before.is_cut or now.is_cut or repositories.is_cut
        return " ".join(
            [*sentences, *([_REVIEW_FIRST] if sentences else []), *([str(INCOMPLETE_PROTECTION)] if is_cut else [])]
        )

    def _format_paths(self, places: set[Path]) -> str:
        paths = (
            str(place.relative_to(self.folder)) if self.folder in place.parents else str(place)
            for place in sorted(places)
        )
        return _list_paths(tuple(paths), MAX_NAMED)


_REVIEW_FIRST = "git runs such things outside of the confinement: look at them before you use git there."
INCOMPLETE_PROTECTION = Sentence(
    "The workspace has too many files or repositories to find every Git repository. Commands may change the hooks "
    "and settings of some, and you are not told."
)
MAX_CHEAP_ENTRIES = 20_000
"""Entries of a workspace that is surveyed again after each command."""


@dataclass(frozen=True, slots=True)
class SideEffects:
    """What a command did; `changes` None: not compared. `warning` is about what programs will run, or empty."""

    changes: WorkspaceChanges | None
    warning: str


def survey_before(folder: Path, since: int, *, with_programs: bool) -> WorkspaceBefore:
    """Survey the workspace. `since`: when the command began, in nanoseconds; `with_programs`: what programs run too."""
    seen = survey_workspace(folder)
    if not with_programs:
        return WorkspaceBefore(folder, since, seen, None, {}, {})
    repositories, memory = _find_protected(folder, seen), repository_memory(folder)
    memory.remember(repositories)
    memory.is_cut = seen.is_cut or repositories.is_cut
    return WorkspaceBefore(
        folder, since, seen, repositories, repository_state(repositories), startup_file_state(folder, seen)
    )


def _find_protected(folder: Path, seen: Survey) -> ProtectedRepositories:
    places = (folder / repository for repository in seen.repositories)
    return find_repositories(places, folder, repository_memory(folder))


def _list_paths(paths: Sequence[str], most: int) -> str:
    names = ", ".join(map(printable_path, paths[:most]))
    return f"{names} and {len(paths) - most:,} more" if len(paths) > most else names


def _compare_surveys(folder: Path, before: Survey, now: Survey) -> WorkspaceChanges:
    is_cut = before.is_cut or now.is_cut
    created = set[str]() if before.is_cut else now.entries.keys() - before.entries.keys()
    removed = before.entries.keys() - now.entries.keys()
    unseen = now.heavy - before.heavy
    if now.is_cut or unseen:
        removed = {removed_entry for removed_entry in removed if not _may_exist(folder, removed_entry, unseen)}
    in_both = now.entries.keys() & before.entries.keys()
    replaced = {path for path in in_both if now.entries[path] is not before.entries[path]}
    return WorkspaceChanges(
        _topmost(created),
        tuple(sorted((now.touched | replaced) - created)),
        _topmost(removed),
        tuple(sorted(now.heavy)),
        is_cut,
    )


def _may_exist(folder: Path, path: str, unseen: set[str]) -> bool:
    """Return whether it exists, or may, where that cannot be checked."""
    return any(parent in unseen for parent in _folders_above(path)) or os.path.lexists(folder / path)


def _topmost(paths: set[str]) -> tuple[str, ...]:
    """Leave out what is in a folder that is named itself."""
    return tuple(sorted(path for path in paths if not any(parent in paths for parent in _folders_above(path))))


def _folders_above(path: str) -> Iterable[str]:
    offset = path.find("/")
    while 0 <= offset < len(path) - 1:
        yield path[: offset + 1]
        offset = path.find("/", offset + 1)
