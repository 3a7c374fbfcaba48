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

from desktop_agent.sandbox.child_command import program_paths
from desktop_agent.sandbox.environment import AllowedKeys, GitConfigCopies, clean_config
from desktop_agent.sandbox.kernel_limits import paths_except
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

    `copies` replace settings files that may not be read themselves, and `variables` lead tools to such copies.
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
    """Return the paths of the person's secrets, existing or not."""
    return iter(_listed_paths("private", home_folders(), _moved_folders()))


def paths_of(name: str) -> Iterator[Path]:
    """Return where such a path lies: below each home folder, and where the person moved it to."""
    yield from _below(name, home_folders(), _moved_folders())


@lru_cache(maxsize=16)
def _listed_paths(kind: str, homes: tuple[Path, ...], moved_folders: tuple[tuple[str, str], ...]) -> tuple[Path, ...]:
    """Return all paths of one list; cached, since it is asked for before every command."""
    names = home_startup_files() if kind == "start files" else path_lists()[kind]
    return tuple(place for name in names for place in _below(name, homes, moved_folders))


def _below(name: str, homes: tuple[Path, ...], moved_folders: tuple[tuple[str, str], ...]) -> Iterator[Path]:
    for home in homes:
        yield home / name
    for usual, folder in moved_folders:
        if name.startswith(usual):
            yield Path(folder) / name.removeprefix(usual)


def _moved_folders() -> tuple[tuple[str, str], ...]:
    return tuple((usual, os.environ[name]) for usual, name in _XDG_VARIABLES.items() if os.environ.get(name))


def home_folders() -> tuple[Path, ...]:
    """Return the person's home folders, as the environment says and as the system knows it."""
    if sys.platform == "win32":
        return (Path.home(),)
    import pwd

    try:
        registered = (Path(pwd.getpwuid(os.getuid()).pw_dir),)
    except KeyError:
        registered = ()
    return tuple(dict.fromkeys((Path.home(), *registered)))


def contains_home(folder: Path) -> bool:
    """Return whether the path is a home folder of the person, or contains one."""
    real = folder.resolve()
    return any(real in (home.resolve(), *home.resolve().parents) for home in home_folders())


def readable_paths(writable: tuple[Path, ...], copies: Path | None = None) -> ReadablePaths:
    """Return the listed paths that exist. A path that leads into a `writable` folder opens nothing.

    Otherwise a command could put a link there, and the next one would read whatever it leads to. `copies` is a folder
    for copies of settings; None makes none.
    """
    readable = ReadablePaths()
    # This program's own contain the launcher.
    for place in (*map(Path, path_lists()["system"]), *program_paths()):
        readable.add(*resolve_links(place, writable))
    forbidden = _Forbidden.current()

    # Folders in PATH yield many duplicates.
    for place in dict.fromkeys(_candidate_paths(writable)):
        real, links = resolve_links(place, writable)
        if real is not None and not forbidden.touches(real):
            readable.add(real, links)

    def real_of(place: Path) -> Path | None:
        real, _ = resolve_links(place, writable)
        return None if real is None or forbidden.touches(real) else real

    if copies is not None:
        readable.places[copies] = None
        _copy_config(readable, copies, real_of)
    return readable


def _copy_config(readable: ReadablePaths, folder: Path, real_of: Callable[[Path], Path | None]) -> None:
    for number, setting in enumerate(path_lists()["settings"]):
        # Tools look in one place: where it was moved to, or below the home folder that the environment names.
        places = [list(_below(name, home_folders()[:1], _moved_folders()))[-1] for name in setting["files"]]
        files = [place for place in places if real_of(place) is not None]
        allowed, variable = AllowedKeys(setting["keys"]), setting.get("variable")
        if files and setting["form"] == "git":
            readable.variables[variable] = str(GitConfigCopies(folder, allowed, real_of).copy(files))
            continue
        for file in files:
            real, links = resolve_links(file, ())
            if real is None or (copy := clean_config(real, setting["form"], allowed)) is None:
                continue
            # For sandboxes that cannot mount the copy over the file.
            readable.add(real if copy.is_whole else None, links)
            place = readable.copies[real] = folder / f"{number}-{file.name}"
            place.write_text(copy.text, encoding="utf-8", errors="surrogateescape")
            if variable:
                readable.variables[variable] = str(place)


def resolve_links(place: Path, writable: tuple[Path, ...]) -> tuple[Path | None, list[Path]]:
    """Return the real path and the links on the way; None if it does not exist, or leads through a writable folder."""
    if not os.path.lexists(place):
        return None, []
    if os.path.realpath(place) == str(place):
        return (None if is_inside(place, writable) else place), []
    links: list[Path] = []
    current, parts = Path(place.anchor), list(reversed(place.parts[1:]))
    while parts:
        name = parts.pop()
        current = current.parent if name == ".." else current / name
        if is_inside(current, writable):
            return None, []
        try:
            target = current.readlink()
        except OSError as error:
            if error.errno == errno.EINVAL:
                continue
            return None, []
        links.append(current)
        if len(links) > _MAX_LINKS:
            return None, []
        parts += reversed(target.parts[1:] if target.is_absolute() else target.parts)
        current = Path(target.anchor) if target.is_absolute() else current.parent
    return current, links


@dataclass(frozen=True, slots=True)
class _Forbidden:
    """What no list opens: what is in `closed`, and the `ancestors` of private paths and home folders."""

    closed: frozenset[Path]
    ancestors: frozenset[Path]

    @classmethod
    def current(cls) -> "_Forbidden":
        private = _listed_paths("private", home_folders(), _moved_folders())
        closed = {*private, *(_real_path(place) for place in private if os.path.lexists(place))}
        # If a path does not exist yet, its folder may still be a link.
        tops = {place.parent for place in private}
        homes = {real for home in (*home_folders(), *tops) for real in (home, _real_path(home))}
        return cls(frozenset(closed), frozenset(homes.union(*(place.parents for place in closed | homes))))

    def touches(self, place: Path) -> bool:
        return place in self.ancestors or not self.closed.isdisjoint((place, *place.parents))


def is_inside(place: Path, folders: Iterable[Path]) -> bool:
    """Return whether a path is one of the folders, or in one of them."""
    return not set(folders).isdisjoint((place, *place.parents))


def _candidate_paths(writable: tuple[Path, ...]) -> Iterator[Path]:
    """Return paths that may be opened, existing or not."""
    lists = path_lists()
    for kind in ("home", "plain_settings"):
        yield from _listed_paths(kind, home_folders(), _moved_folders())
    for variable, names in lists["variables"].items():
        for value in os.environ.get(variable, "").split(os.pathsep):
            yield from (Path(value, name) for name in names if Path(value).is_absolute())
    for value in dict.fromkeys(os.environ.get("PATH", "").split(os.pathsep)):
        if Path(value).is_absolute():
            yield from _program_paths(Path(value), writable)


def _program_paths(folder: Path, writable: tuple[Path, ...]) -> Iterator[Path]:
    """Return a folder of programs, with what belongs to them; of one in a home folder also what its links lead to."""
    yield from _paths_beside_programs(folder)
    real, _ = resolve_links(folder, writable)
    if real is None or not any(home in folder.parents for home in home_folders()):
        return
    try:
        with os.scandir(real) as entries:
            links = [Path(entry.path) for entry in entries if entry.is_symlink()]
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
    """What one command may read and write, as absolute paths without links.

    What is neither `writable` nor `readable` is closed, as is what is `hidden` in it. Of nested paths the inner one
    counts. `links` lie outside of them and lead into what is readable.
    `read_only` is not to be written though it lies in what is writable, nor are the folders moved aside that are
    `pinned`, each of which comes before those in it. Not every sandbox can enforce these two. `closed` are paths,
    existing or not, that nobody writes: nothing is made, replaced or removed in a folder on the way to one. `network`:
    hosts were granted; a command's proxy to them comes over `channel`, where the command is alone in its network.
    If the command `is_read_only`, of the writable folders only the last, its own, may be written. In place of some
    closed settings files there are `copies` to read, and `variables` of the environment that lead to copies.
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
        """Return what of a writable folder may be written: itself, or its content without what is closed."""
        if self.is_read_only and folder != self.writable[-1]:
            return ()
        closed_below = tuple(path for path in self.closed if folder in path.parents)
        return tuple(paths_except(folder, (*closed_below, *self.hidden_below(folder)))) if closed_below else (folder,)

    def hidden_below(self, folder: Path) -> tuple[Path, ...]:
        """Return what of a folder stays closed."""
        return tuple(path for path in self.hidden if folder in path.parents)


def build_policy(
    workspace: Path, temporary: Path, own_folders: tuple[Path, ...], *, network: bool, copies: Path | None = None
) -> SandboxPolicy:
    """Build the policy of one command. `workspace` is a real path, and is not followed to another place here.

    `own_folders`: where this program keeps its data; `copies`: a folder for copies of settings.
    """
    writable = (workspace, temporary.resolve())
    allowed = readable_paths(writable, copies)
    secrets = (*private_paths(), *own_folders, *_homes_in(allowed.places), *_root_only_paths())
    real = dict.fromkeys(Path(os.path.realpath(place)) for place in secrets if os.path.lexists(place))
    open_paths = {*writable, *allowed.places}
    hidden = tuple(place for place in real if place not in writable and is_inside(place, open_paths))
    readable = tuple(_outermost_paths(allowed.places, writable, hidden))
    links = tuple(link for link in allowed.links if not is_inside(link, (*writable, *hidden, *readable)))
    closed = tuple(_closed_paths_below(writable[0]))
    copied, variables = tuple(allowed.copies.items()), tuple(allowed.variables.items())
    return SandboxPolicy(
        *(writable, hidden, network),
        pinned=tuple(_folders_on_the_way(hidden, writable[0])),
        closed=closed,
        readable=readable,
        links=links,
        copies=copied,
        variables=variables,
    )


def _folders_on_the_way(places: Iterable[Path], workspace: Path) -> Iterator[Path]:
    """Return the folders in the workspace that contain these places: moving them would move what is hidden too."""
    parents = (folder for place in places for folder in reversed(place.parents) if workspace in folder.parents)
    yield from dict.fromkeys(parents)


def _outermost_paths(places: Iterable[Path], writable: tuple[Path, ...], hidden: tuple[Path, ...]) -> Iterator[Path]:
    """Return the paths whose nearest folder above is not open already."""
    is_open = {**dict.fromkeys(places, True), **dict.fromkeys(writable, True), **dict.fromkeys(hidden, False)}
    for place in places:
        nearest = next((parent for parent in place.parents if parent in is_open), None)
        if is_open[place] and place not in writable and not (nearest is not None and is_open[nearest]):
            yield place


def _homes_in(places: Iterable[Path]) -> Iterator[Path]:
    """Return home folders that are in a path of the system, such as /opt: of them too only listed paths are read."""
    path_set = set(places)
    return (home for home in home_folders() if not path_set.isdisjoint(home.resolve().parents))


def _root_only_paths() -> Iterator[Path]:
    """Return what of the system only root may read, if this is root: to everybody else it is closed anyway."""
    if sys.platform == "win32" or os.geteuid() != 0:
        return
    yield from map(Path, path_lists()["system_secrets"])
    stack = ["/etc"]
    while stack:
        # What disappears meanwhile is no secret any more.
        with suppress(OSError), os.scandir(stack.pop()) as entries:
            for entry in entries:
                mode = entry.stat(follow_symlinks=False).st_mode
                if not mode & stat.S_IROTH:
                    yield Path(entry.path)
                elif stat.S_ISDIR(mode):
                    stack.append(entry.path)


def _closed_paths_below(workspace: Path) -> Iterator[Path]:
    """Return what is private in a workspace that is a home folder, or contains one, existing or not."""
    prefix = f"{workspace}{os.sep}"
    folders: dict[Path, str] = {}
    for place in (*private_paths(), *_listed_paths("start files", home_folders(), _moved_folders())):
        if place.parent not in folders:
            folders[place.parent] = os.path.realpath(place.parent)
        closed_paths = {os.path.join(folders[place.parent], place.name)}  # noqa: PTH118 - of several hundred, before each command
        if os.path.islink(place):  # noqa: PTH114 - as above
            closed_paths.add(os.path.realpath(place))
        yield from (Path(closed_path) for closed_path in closed_paths if closed_path.startswith(prefix))
