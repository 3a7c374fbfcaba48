"""Startup files that a path alone does not tell: a look at the disk does.

In a home folder they have ordinary names. Settings of git name files and folders that git takes settings from and runs,
a link leads from where a program looks to what it runs, and any folder becomes a repository when it has all the parts
of one.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from desktop_agent.permissions.places.private_places import home_variables, paths_below
from desktop_agent.tools.commands.aftermath.listings import ListingCache
from desktop_agent.tools.commands.aftermath.repositories import becomes_repository, find_repositories, repository_memory
from desktop_agent.tools.commands.aftermath.survey import HEAVY_FOLDERS
from desktop_agent.tools.commands.known_places import paths_of
from desktop_agent.tools.startup_files import (
    AskLevel,
    StartupFile,
    comparable_parts,
    entry_for_pattern,
    find_startup_file,
    folder_suffixes,
    home_startup_files,
    strictest_entry,
)

StartupPaths = tuple[tuple[str, StartupFile], ...]
_Parts = tuple[str, ...]

# What git takes from a repository without a working tree, by names in its top folder (gitrepository-layout(5)).
_REPOSITORY_PARTS = {
    each.casefold(): each
    for each in (
        *("HEAD", "objects", "refs", "config", "config.worktree", "commondir", "hooks", "info", "packed-refs"),
        *("modules", "worktrees"),
    )
}
_GIT_ENTRY = ".git"
# Of a repository without a working tree, its folders.
_BARE_REPOSITORY = frozenset(("objects", "refs"))
_MAX_FOLDERS = 2_000
_FOLDER_LISTINGS = ListingCache(without_files=True)
# Of all names that links give the paths of one call.
_MAX_STEPS = 20_000
_TOO_MANY_LINKS = StartupFile(
    AskLevel.ALWAYS,
    program="",
    when="",
    patterns=(),
    template="“{file}” may be what another program runs: links in the workspace give it too many names to look at.",
)
# Of a pattern in the table; and what stands for all parts that come after them, which no pattern has.
_MAX_PATTERN_PARTS = 3
_OTHER_PART = "-"


def startup_paths(
    paths: Iterable[str], workspace: str | None, check: Callable[[], None] = lambda: None
) -> StartupPaths:
    """Files and folders that are startup files now, or of these paths would be: absolute, with forward slashes.

    Reads the disk, in large workspaces for long: call it in a thread. `check` is called before each look at a folder or
    a link, and ends all by what it raises.
    """
    if workspace is None:
        return ()
    top, every = Path(os.path.realpath(workspace)), tuple(paths)
    git = entry_for_pattern(".git/")
    parts = ((each, git) for each in every if _is_repository_part(Path(each), top))
    links, entries = _find_links(top, check)
    above = (folder for each in every for folder in Path(each).parents if folder == top or top in folder.parents)
    entries |= dict.fromkeys(each / _GIT_ENTRY for each in above)
    of_home = _startup_paths_in_home(workspace, home_variables())
    return (*of_home, *_startup_paths_of_git(entries, top, check), *parts, *_behind_links(every, links, top))


@lru_cache(maxsize=16)
def _startup_paths_in_home(workspace: str, _: tuple[str | None, ...]) -> StartupPaths:
    return tuple(
        (each, entry) for name, entry in home_startup_files().items() for each in paths_below(workspace, paths_of(name))
    )


def _startup_paths_of_git(
    entries: Iterable[Path], top: Path, check: Callable[[], None]
) -> Iterator[tuple[str, StartupFile]]:
    """What repositories around the workspace and in it lead to; of what is in `.git` its name tells."""
    found = find_repositories(entries, top, repository_memory(top), check)
    hooks, others = entry_for_pattern(".githooks/"), entry_for_pattern(".git/")
    for place in {**found.folders, **found.files, **found.watched}:
        inside = f"{place}{os.sep}"[len(f"{top}") :]
        if place.is_relative_to(top) and f"{os.sep}{_GIT_ENTRY}{os.sep}" not in inside:
            yield place.as_posix(), hooks if place in found.folders else others


def _behind_links(
    paths: Sequence[str], links: Mapping[_Parts, Sequence[_Parts]], top: Path
) -> Iterator[tuple[str, StartupFile]]:
    """Those of the paths that are startup files under a name that a link gives them, or may be."""
    inside, steps = len(comparable_parts(top.as_posix())), iter(range(_MAX_STEPS))
    for path in paths if links else ():
        if (entry := strictest_entry(_entries_for_all_names(comparable_parts(path), links, inside, steps))) is not None:
            yield path, entry


def _entries_for_all_names(
    path: _Parts, links: Mapping[_Parts, Sequence[_Parts]], inside: int, steps: Iterator[int]
) -> Iterator[StartupFile | None]:
    """What each name of a path may be: where links lead around, it has names without end, but no new parts in a row."""
    waiting: list[tuple[_Parts, _Parts]] = [(path, ())]
    known, looked_at = set(waiting), set[tuple[_Parts, int]]()
    for place, after in waiting:
        for name in filter(None, (place, *links.get(place, ()))):
            if next(steps, None) is None:
                yield _TOO_MANY_LINKS
                return
            row = (name[-1], *after)
            looked = (row, max(inside - len(name) + 1, 0))
            if looked not in looked_at:
                looked_at.add(looked)
                yield find_startup_file("/".join(row), inside=looked[1])
            above = (name[:-1], _last_relevant_parts(row))
            if above not in known:
                known.add(above)
                waiting.append(above)


def _last_relevant_parts(row: _Parts) -> _Parts:
    """Of the parts at the end of a name those that a pattern may have after another part: none has more than three."""
    if len(row) < _MAX_PATTERN_PARTS and row[-1] != _OTHER_PART:
        return row
    many = next((many for many in range(_MAX_PATTERN_PARTS - 1, 0, -1) if row[:many] in folder_suffixes()), 0)
    return (*row[:many], _OTHER_PART)


def _find_links(top: Path, check: Callable[[], None]) -> tuple[dict[_Parts, list[_Parts]], dict[Path, None]]:
    """Where links lead in the workspace, from where, and what leads to repositories: in folders nearest to its top.

    Not the links that installing makes.
    """
    links, entries = dict[_Parts, list[_Parts]](), dict[Path, None]()
    waiting = deque([f"{top}"])
    for _ in range(_MAX_FOLDERS):
        if not waiting:
            break
        check()
        folder = waiting.popleft()
        try:
            listed = _FOLDER_LISTINGS.entries(folder)
        except OSError:
            continue
        if folder != f"{top}" and {each.name for each in listed} >= _BARE_REPOSITORY:
            entries[Path(folder)] = None
        for each in listed:
            place = f"{folder}{os.sep}{each.name}"
            if each.name == _GIT_ENTRY:
                entries[Path(place)] = None
            if each.is_symlink():
                check()
                real = Path(os.path.realpath(place))
                if real == top or top in real.parents:
                    links.setdefault(comparable_parts(real.as_posix()), []).append(
                        comparable_parts(Path(place).as_posix())
                    )
            elif each.name not in HEAVY_FOLDERS and each.is_dir(follow_symlinks=False):
                waiting.append(place)
    return links, entries


def _is_repository_part(path: Path, top: Path) -> bool:
    if top not in path.parents:
        return False
    inside = path.relative_to(top).parts
    names = ((at, _REPOSITORY_PARTS.get(part.casefold())) for at, part in enumerate(inside))
    return any(name is not None and becomes_repository(top.joinpath(*inside[:at]), name) for at, name in names)
