"""Decide what a sandboxed command may read, write and reach: the workspace, and listed paths (policy.toml)."""

import errno
import os
import stat
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from desktop_agent.sandbox.environment import AllowedKeys, GitSettingsCopies, clean_settings, program_paths
from desktop_agent.sandbox.startup_files import home_startup_files

# XDG Base Directory Specification.
_XDG_VARIABLES = {
    ".config/": "XDG_CONFIG_HOME",
    ".local/share/": "XDG_DATA_HOME",
    ".local/state/": "XDG_STATE_HOME",
    ".cache/": "XDG_CACHE_HOME",
}
# As many links are followed by the kernel (path_resolution(7)).
_MAX_LINKS = 40


@dataclass(frozen=True, slots=True)
class ReadablePaths:
    """Real paths that may be read, and links outside of them that lead there.

    `copies` stand for files with settings that may not be read themselves, and `variables` lead tools to such copies.
    """

    places: dict[Path, None] = field(default_factory=dict[Path, None])
    links: dict[Path, None] = field(default_factory=dict[Path, None])
    copies: dict[Path, Path] = field(default_factory=dict[Path, Path])
    variables: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, place: Path | None, links: Iterable[Path]) -> None:
        """Open a real path, with the links on the way; None opens nothing."""
        if place is not None:
            self.places[place] = None
        self.links.update(dict.fromkeys(links))


@lru_cache(maxsize=1)
def path_lists() -> dict[str, Any]:
    """Read policy.toml."""
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def private_paths() -> Iterator[Path]:
    """What is the person's own secret, there or not."""
    return iter(_listed_paths("private", home_folders(), _moved_folders()))


def startup_file_paths() -> Iterator[Path]:
    """What says which programs the person's own programs start, there or not."""
    return iter(_listed_paths("start files", home_folders(), _moved_folders()))


def paths_of(name: str) -> Iterator[Path]:
    """Where such a thing lies: below each home folder, and where the person moved such things to."""
    yield from _below(name, home_folders(), _moved_folders())


@lru_cache(maxsize=16)
def _listed_paths(kind: str, own: tuple[Path, ...], moved: tuple[tuple[str, str], ...]) -> tuple[Path, ...]:
    """All of one list: it is asked for before every command."""
    names = home_startup_files() if kind == "start files" else path_lists()[kind]
    return tuple(place for name in names for place in _below(name, own, moved))


def _below(name: str, own: tuple[Path, ...], moved: tuple[tuple[str, str], ...]) -> Iterator[Path]:
    for home in own:
        yield home / name
    for usual, folder in moved:
        if name.startswith(usual):
            yield Path(folder) / name.removeprefix(usual)


def _moved_folders() -> tuple[tuple[str, str], ...]:
    return tuple((usual, os.environ[name]) for usual, name in _XDG_VARIABLES.items() if os.environ.get(name))


def home_folders() -> tuple[Path, ...]:
    """The person's home folder, as the environment says and as the system knows it."""
    if sys.platform == "win32":
        return (Path.home(),)
    import pwd

    try:
        known = (Path(pwd.getpwuid(os.getuid()).pw_dir),)
    except KeyError:
        known = ()
    return tuple(dict.fromkeys((Path.home(), *known)))


def contains_home(folder: Path) -> bool:
    """Whether it is a home folder of the person, or has one in it."""
    real = folder.resolve()
    return any(real in (home.resolve(), *home.resolve().parents) for home in home_folders())


def system_paths() -> Iterator[Path]:
    """Places of the system that are readable, and this program's own, which closes the command in."""
    yield from map(Path, path_lists()["system"])
    yield from program_paths()


def readable_paths(writable: tuple[Path, ...], copies: Path | None = None) -> ReadablePaths:
    """Return what is there of the listed places. A path that leads into a `writable` folder opens nothing.

    A command could else put a link there, and the next one would read whatever it leads to. `copies` is a folder for
    copies of settings; without one there are none.
    """
    found = ReadablePaths()
    for place in system_paths():
        found.add(*resolve_links(place, writable))
    forbidden = _Forbidden.current()

    # Most folders of the path are many times beside each other.
    for place in dict.fromkeys(_candidate_paths(writable)):
        real, links = resolve_links(place, writable)
        if real is not None and not forbidden.touches(real):
            found.add(real, links)

    def real_of(place: Path) -> Path | None:
        real, _ = resolve_links(place, writable)
        return None if real is None or forbidden.touches(real) else real

    if copies is not None:
        found.places[copies] = None
        _copy_settings(found, copies, real_of)
    return found


def _copy_settings(found: ReadablePaths, folder: Path, real_of: Callable[[Path], Path | None]) -> None:
    for number, known in enumerate(path_lists()["settings"]):
        # Tools look in one place: where it was moved to, or below the home folder that the environment names.
        places = [list(_below(name, home_folders()[:1], _moved_folders()))[-1] for name in known["files"]]
        files = [place for place in places if real_of(place) is not None]
        listed, variable = AllowedKeys(known["keys"]), known.get("variable")
        if files and known["form"] == "git":
            found.variables[variable] = str(GitSettingsCopies(folder, listed, real_of).copy(files))
            continue
        for file in files:
            real, links = resolve_links(file, ())
            if real is None or (copy := clean_settings(real, known["form"], listed)) is None:
                continue
            # For who cannot be given the copy in its place.
            found.add(real if copy.is_whole else None, links)
            place = found.copies[real] = folder / f"{number}-{file.name}"
            place.write_text(copy.text, encoding="utf-8", errors="surrogateescape")
            if variable:
                found.variables[variable] = str(place)


def resolve_links(place: Path, writable: tuple[Path, ...]) -> tuple[Path | None, list[Path]]:
    """The real path and the links on the way; None where nothing is, or where it leads through a writable folder."""
    if not os.path.lexists(place):
        return None, []
    if os.path.realpath(place) == str(place):
        return (None if is_inside(place, writable) else place), []
    links: list[Path] = []
    here, parts = Path(place.anchor), list(reversed(place.parts[1:]))
    while parts:
        name = parts.pop()
        here = here.parent if name == ".." else here / name
        if is_inside(here, writable):
            return None, []
        try:
            target = here.readlink()
        except OSError as error:
            if error.errno == errno.EINVAL:
                continue
            return None, []
        links.append(here)
        if len(links) > _MAX_LINKS:
            return None, []
        parts += reversed(target.parts[1:] if target.is_absolute() else target.parts)
        here = Path(target.anchor) if target.is_absolute() else here.parent
    return here, links


@dataclass(frozen=True, slots=True)
class _Forbidden:
    """What no list opens: what is in `closed`, and the folders `around` private places and home folders."""

    closed: frozenset[Path]
    ancestors: frozenset[Path]

    @classmethod
    def current(cls) -> "_Forbidden":
        listed = _listed_paths("private", home_folders(), _moved_folders())
        closed = {*listed, *(_real_path(place) for place in listed if os.path.lexists(place))}
        # Of what is not there yet, the folder may be a link.
        tops = {place.parent for place in listed}
        own = (
            {real for home in home_folders() for real in (home, _real_path(home))}
            | tops
            | {_real_path(top) for top in tops}
        )
        nearest = own | {place.parent for place in closed | own}
        return cls(frozenset(closed), frozenset(nearest | {above for each in nearest for above in each.parents}))

    def touches(self, place: Path) -> bool:
        return place in self.ancestors or not self.closed.isdisjoint((place, *place.parents))


def is_inside(place: Path, folders: Iterable[Path]) -> bool:
    """Whether a path is one of the folders, or in one of them."""
    return not set(folders).isdisjoint((place, *place.parents))


def _candidate_paths(writable: tuple[Path, ...]) -> Iterator[Path]:
    """Places that may be opened, there or not."""
    known = path_lists()
    for kind in ("home", "plain_settings"):
        yield from _listed_paths(kind, home_folders(), _moved_folders())
    for variable, names in known["variables"].items():
        for value in os.environ.get(variable, "").split(os.pathsep):
            yield from (Path(value, name) for name in names if Path(value).is_absolute())
    for value in dict.fromkeys(os.environ.get("PATH", "").split(os.pathsep)):
        if Path(value).is_absolute():
            yield from _program_paths(Path(value), writable)


def _program_paths(folder: Path, writable: tuple[Path, ...]) -> Iterator[Path]:
    """A folder of programs, with what belongs to them; of one in a home folder also what its links lead to."""
    yield from _paths_beside_programs(folder)
    real, _ = resolve_links(folder, writable)
    if real is None or not any(home in folder.parents for home in home_folders()):
        return
    try:
        with os.scandir(real) as entries:
            links = [Path(each.path) for each in entries if each.is_symlink()]
        targets = [Path(os.path.normpath(real / link.readlink())) for link in links]
    except OSError:
        return
    for target in targets:
        yield target
        # A link to a script among documents opens that script alone.
        if target.parent.name in ("bin", "sbin"):
            yield from _paths_beside_programs(target.parent)


def _paths_beside_programs(folder: Path) -> Iterator[Path]:
    yield folder
    # At the top, right below a home folder, and in .local, these names mean something else.
    top = folder.parent
    if folder.name in ("bin", "sbin") and top.name not in ("", ".local") and top not in home_folders():
        yield from (top / name for name in path_lists()["beside_programs"])


def _real_path(place: Path) -> Path:
    return Path(os.path.realpath(place))


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
