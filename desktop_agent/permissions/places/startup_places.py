"""Startup files that a path alone does not tell: a look at the disk does.

In a home folder they have ordinary names. Settings of git name folders of hooks, a link leads from where a program
looks to what it runs, and any folder becomes a repository when it has all the parts of one.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from desktop_agent.permissions.places.private_places import below, surroundings
from desktop_agent.tools.commands.aftermath.git_settings import hook_folders, taken_from
from desktop_agent.tools.commands.aftermath.listings import Listings
from desktop_agent.tools.commands.aftermath.repositories import becomes_repository
from desktop_agent.tools.commands.aftermath.survey import HEAVY
from desktop_agent.tools.commands.known_places import places_of
from desktop_agent.tools.startup_files import (
    Level,
    StartupFile,
    entry_of,
    folder_ends,
    home_files,
    parts_of,
    startup_file,
    strictest,
)

Places = tuple[tuple[str, StartupFile], ...]
_Parts = tuple[str, ...]

# What git takes from a repository without a working tree, by names in its top folder (gitrepository-layout(5)).
_PARTS = {
    each.casefold(): each
    for each in (
        *("HEAD", "objects", "refs", "config", "config.worktree", "commondir", "hooks", "info", "packed-refs"),
        *("modules", "worktrees"),
    )
}
_MOST_FOLDERS = 2_000
_LISTINGS = Listings(without_files=True)
# Of all names that links give the paths of one call.
_MOST_STEPS = 20_000
_TOO_MANY = StartupFile(
    Level.ALWAYS,
    program="",
    when="",
    patterns=(),
    template="“{file}” may be what another program runs: links in the workspace give it too many names to look at.",
)
# Of a pattern in the table; and what stands for all parts that come after them, which no pattern has.
_MOST_PARTS = 3
_MORE = "-"


def startup_places(paths: Iterable[str], workspace: str | None, check: Callable[[], None] = lambda: None) -> Places:
    """Files and folders that are startup files now, or of these paths would be: absolute, with forward slashes.

    Reads the disk, in large workspaces for long: call it in a thread. `check` is called before each look at a folder or
    a link, and ends all by what it raises.
    """
    if workspace is None:
        return ()
    top, every = Path(os.path.realpath(workspace)), tuple(paths)
    git = entry_of(".git/")
    parts = ((each, git) for each in every if _is_of_repository(Path(each), top))
    return (*_known_places(workspace), *parts, *_behind_links(every, top, check))


def _known_places(workspace: str) -> Places:
    top = _top_of(Path(workspace))
    settings = (*places_of(".gitconfig"), *places_of(".config/git/config"), *([top / ".git" / "config"] if top else ()))
    return _places(workspace, top or Path(workspace), tuple((each, _stamp(each)) for each in settings), surroundings())


@lru_cache(maxsize=16)
def _places(workspace: str, top: Path, settings: tuple[tuple[Path, object], ...], _: tuple[str | None, ...]) -> Places:
    hooks = hook_folders(taken_from(each for each, _stamped in settings).settings, top)
    of_hooks = ((each, entry_of(".githooks/")) for each in below(workspace, hooks))
    at_home = ((each, entry) for name, entry in home_files().items() for each in below(workspace, places_of(name)))
    return (*at_home, *of_hooks)


def _behind_links(paths: Sequence[str], top: Path, check: Callable[[], None]) -> Iterator[tuple[str, StartupFile]]:
    """Those of the paths that are startup files under a name that a link gives them, or may be."""
    links = dict[_Parts, list[_Parts]]()
    for link, to in _links_in(top, check):
        links.setdefault(to, []).append(link)
    inside, steps = len(parts_of(top.as_posix())), iter(range(_MOST_STEPS))
    for path in paths if links else ():
        if (entry := strictest(_by_every_name(parts_of(path), links, inside, steps))) is not None:
            yield path, entry


def _by_every_name(
    path: _Parts, links: Mapping[_Parts, Sequence[_Parts]], inside: int, steps: Iterator[int]
) -> Iterator[StartupFile | None]:
    """What each name of a path may be: where links lead around, it has names without end, but no new parts in a row."""
    waiting: list[tuple[_Parts, _Parts]] = [(path, ())]
    known, looked_at = set(waiting), set[tuple[_Parts, int]]()
    for place, after in waiting:
        for name in filter(None, (place, *links.get(place, ()))):
            if next(steps, None) is None:
                yield _TOO_MANY
                return
            row = (name[-1], *after)
            looked = (row, max(inside - len(name) + 1, 0))
            if looked not in looked_at:
                looked_at.add(looked)
                yield startup_file("/".join(row), inside=looked[1])
            above = (name[:-1], _as_patterns_go_on(row))
            if above not in known:
                known.add(above)
                waiting.append(above)


def _as_patterns_go_on(row: _Parts) -> _Parts:
    """Of the parts at the end of a name those that a pattern may have after another part: none has more than three."""
    if len(row) < _MOST_PARTS and row[-1] != _MORE:
        return row
    many = next((many for many in range(_MOST_PARTS - 1, 0, -1) if row[:many] in folder_ends()), 0)
    return (*row[:many], _MORE)


def _links_in(top: Path, check: Callable[[], None]) -> Iterator[tuple[_Parts, _Parts]]:
    """Links and where they lead in the workspace, those nearest to its top first. Not those that installing makes."""
    waiting = deque([(f"{top}", True), (f"{top / '.git'}", False), (f"{top / '.git' / 'hooks'}", False)])
    for _ in range(_MOST_FOLDERS):
        if not waiting:
            return
        check()
        folder, is_deep = waiting.popleft()
        try:
            listed = _LISTINGS.of(folder)
        except OSError:
            continue
        for each in listed:
            place = f"{folder}{os.sep}{each.name}"
            if each.is_symlink():
                check()
                real = Path(os.path.realpath(place))
                if real == top or top in real.parents:
                    yield parts_of(Path(place).as_posix()), parts_of(real.as_posix())
            elif is_deep and each.name not in HEAVY and each.is_dir(follow_symlinks=False):
                waiting.append((place, True))


def _is_of_repository(path: Path, top: Path) -> bool:
    if top not in path.parents:
        return False
    inside = path.relative_to(top).parts
    names = ((at, _PARTS.get(part.casefold())) for at, part in enumerate(inside))
    return any(name is not None and becomes_repository(top.joinpath(*inside[:at]), name) for at, name in names)


def _top_of(folder: Path) -> Path | None:
    """The folder of the repository that this one belongs to."""
    return next((each for each in (folder, *folder.parents) if _stamp(each / ".git" / "config") is not None), None)


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
