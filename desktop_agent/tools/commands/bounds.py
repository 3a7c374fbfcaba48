"""What a confined command may touch: the workspace, a folder of its own, and by list what it may read besides."""

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from desktop_agent.tools.commands.known_places import (
    home_folders,
    is_inside,
    path_lists,
    private_paths,
    readable_paths,
    startup_file_paths,
)


@dataclass(frozen=True, slots=True)
class SandboxPolicy:
    """Absolute paths without links. What is neither `writable` nor `readable` is closed, as is what is `hidden` in it.

    Of places in each other the inner one counts. `links` lie outside of them and lead into what is readable.
    `read_only` is not to be written though it lies in what is writable, nor are the folders moved aside that are
    `pinned`, each of which comes before those in it. Not every confinement can hold these two. `closed` are places,
    there or not, that nobody writes: nothing is made, replaced or removed in a folder on the way to one. `network`:
    hosts were granted; over `channel` goes a command's proxy to them, where it is alone in its network.
    Where it `is_read_only`, of the writable folders only the last, the command's own, may be written. In place of some
    closed files with settings there are `copies` to be read, and `variables` of the environment that lead to copies.
    """

    writable: tuple[Path, ...]
    hidden: tuple[Path, ...]
    network: bool = False
    read_only: tuple[Path, ...] = ()
    pinned: tuple[Path, ...] = ()
    closed: tuple[Path, ...] = ()
    is_read_only: bool = False
    readable: tuple[Path, ...] = ()
    links: tuple[Path, ...] = ()
    channel: int | None = None
    copies: tuple[tuple[Path, Path], ...] = ()
    variables: tuple[tuple[str, str], ...] = ()

    def writable_in(self, folder: Path) -> tuple[Path, ...]:
        """What of a writable folder may be written: itself, or what is in it now but for what is closed."""
        if self.is_read_only and folder != self.writable[-1]:
            return ()
        below = tuple(each for each in self.closed if folder in each.parents)
        return tuple(paths_except(folder, (*below, *self.hidden_below(folder)))) if below else (folder,)

    def hidden_below(self, folder: Path) -> tuple[Path, ...]:
        """What of a folder stays closed."""
        return tuple(each for each in self.hidden if folder in each.parents)


def build_policy(
    workspace: Path, temporary: Path, own_folders: tuple[Path, ...], *, network: bool, copies: Path | None = None
) -> SandboxPolicy:
    """The bounds of one command. `own_folders`: where this program keeps its data; `copies`: for those of settings."""
    writable = (workspace.resolve(), temporary.resolve())
    found = readable_paths(writable, copies)
    secrets = (*private_paths(), *own_folders, *_homes_in(found.places), *_root_only_paths())
    real = dict.fromkeys(place.resolve() for place in secrets if os.path.lexists(place))
    seen = {*writable, *found.places}
    hidden = tuple(place for place in real if place not in writable and is_inside(place, seen))
    readable = tuple(_outermost_paths(found.places, writable, hidden))
    links = tuple(link for link in found.links if not is_inside(link, (*writable, *hidden, *readable)))
    closed = tuple(_closed_paths_below(writable[0]))
    handed_over, variables = tuple(found.copies.items()), tuple(found.variables.items())
    return SandboxPolicy(
        *(writable, hidden, network),
        closed=closed,
        readable=readable,
        links=links,
        copies=handed_over,
        variables=variables,
    )


def _outermost_paths(places: Iterable[Path], writable: tuple[Path, ...], hidden: tuple[Path, ...]) -> Iterator[Path]:
    """Those whose nearest folder above is not open already."""
    seen = {**dict.fromkeys(places, True), **dict.fromkeys(writable, True), **dict.fromkeys(hidden, False)}
    for place in places:
        above = next((each for each in place.parents if each in seen), None)
        if seen[place] and place not in writable and not (above is not None and seen[above]):
            yield place


def _homes_in(places: Iterable[Path]) -> Iterator[Path]:
    """Home folders that lie in a place of the system, such as /opt: there too reading goes by list."""
    own = set(places)
    return (home for home in home_folders() if not own.isdisjoint(home.resolve().parents))


def _root_only_paths() -> Iterator[Path]:
    """What of the system only root may read, if this is root: for everybody else the system closes it."""
    if sys.platform == "win32" or os.geteuid() != 0:
        return
    yield from map(Path, path_lists()["system_secrets"])
    waiting = ["/etc"]
    while waiting:
        # What goes while it is looked at is no secret any more.
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                mode = entry.stat(follow_symlinks=False).st_mode
                if not mode & stat.S_IROTH:
                    yield Path(entry.path)
                elif stat.S_ISDIR(mode):
                    waiting.append(entry.path)


def _closed_paths_below(workspace: Path) -> Iterator[Path]:
    """Of a workspace that is a home folder, or has one in it: what is the person's own affair, there or not."""
    inside = f"{workspace}{os.sep}"
    folders: dict[Path, str] = {}
    for place in (*private_paths(), *startup_file_paths()):
        if place.parent not in folders:
            folders[place.parent] = os.path.realpath(place.parent)
        found = {os.path.join(folders[place.parent], place.name)}  # noqa: PTH118 - of several hundred, before each command
        if os.path.islink(place):  # noqa: PTH114 - as above
            found.add(os.path.realpath(place))
        yield from (Path(each) for each in found if each.startswith(inside))


def paths_except(folder: Path, closed: tuple[Path, ...]) -> Iterator[Path]:
    """The fewest files and folders that together are everything below a folder, but for what is closed."""
    below = tuple(each for each in closed if folder in each.parents)
    if folder in closed:
        return
    if not below:
        yield folder
        return
    try:
        with os.scandir(folder) as entries:
            inside = [Path(entry.path) for entry in entries if not entry.is_symlink()]
    except OSError:
        return  # not ours to read
    for each in inside:
        yield from paths_except(each, below)
