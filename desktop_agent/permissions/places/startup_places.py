"""Startup files that a path alone does not tell: a look at the disk does.

In a home folder they have ordinary names. Settings of git name folders of hooks, a link leads from where a program
looks to what it runs, and any folder becomes a repository when it has all the parts of one.
"""

import os
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from desktop_agent.permissions.places.private_places import below, surroundings
from desktop_agent.tools.commands.aftermath.git_settings import hook_folders, taken_from
from desktop_agent.tools.commands.aftermath.repositories import becomes_repository
from desktop_agent.tools.commands.known_places import places_of
from desktop_agent.tools.startup_files import Level, StartupFile, entry_of, home_files, table

Places = tuple[tuple[str, StartupFile], ...]

# What git takes from a repository without a working tree, by names in its top folder (gitrepository-layout(5)).
_PARTS = {
    each.casefold(): each
    for each in (
        *("HEAD", "objects", "refs", "config", "config.worktree", "commondir", "hooks", "info", "packed-refs"),
        *("modules", "worktrees"),
    )
}
# Links in there lead to what git runs.
_HOOKS = (".git/hooks", ".husky", ".githooks", ".git-hooks")
_HOOKS_BEGIN = frozenset(each.partition("/")[0] for each in _HOOKS)


def startup_places(paths: Iterable[str], workspace: str | None) -> Places:
    """Files and folders that are startup files now, or of these paths would be: absolute, with forward slashes."""
    if workspace is None:
        return ()
    top = Path(os.path.realpath(workspace))
    git = entry_of(".git/")
    parts = ((each, git) for each in paths if _is_of_repository(Path(each), top))
    return (*_known_places(workspace), *_behind_links(top), *parts)


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


def _behind_links(top: Path) -> Iterator[tuple[str, StartupFile]]:
    """What links lead to that stand where a program looks."""
    here = _links_in(top)
    for first, rest, entry in _looked_for():
        # Most are not there, and most of those that are have no link on the way.
        if first in here and (rest or here[first]):
            yield from _led_to(top / first / rest, top, entry)
    for folder in _HOOKS if not here.keys().isdisjoint(_HOOKS_BEGIN) else ():
        links = (name for name, is_link in _links_in(top / folder).items() if is_link)
        for name in links:
            yield from _led_to(top / folder / name, top, entry_of(".githooks/"))


@lru_cache(maxsize=1)
def _looked_for() -> tuple[tuple[str, str, StartupFile], ...]:
    """Where programs look, by the first part and the rest of it."""
    found = ((each.rstrip("/").partition("/"), entry) for entry in table() for each in entry.patterns)
    return tuple((first, rest, entry) for (first, _, rest), entry in found if entry.level is Level.ALWAYS)


def _led_to(place: Path, top: Path, entry: StartupFile) -> Iterator[tuple[str, StartupFile]]:
    real = Path(os.path.realpath(place))
    if real != place and top in real.parents:
        yield real.as_posix(), entry


def _links_in(folder: Path) -> dict[str, bool]:
    """The names in a folder, and which of them are links; none where it cannot be looked at."""
    try:
        with os.scandir(folder) as entries:
            return {each.name: each.is_symlink() for each in entries}
    except OSError:
        return {}


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
