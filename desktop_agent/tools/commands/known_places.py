"""What confined commands may read: places of the system and of home folders by list, and what the environment names."""

import errno
import os
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from desktop_agent.tools.commands.aftermath.git_settings import included, settings_in
from desktop_agent.tools.processes.own_part import own_places
from desktop_agent.tools.startup_files import home_files

# XDG Base Directory Specification.
_MOVED = {
    ".config/": "XDG_CONFIG_HOME",
    ".local/share/": "XDG_DATA_HOME",
    ".local/state/": "XDG_STATE_HOME",
    ".cache/": "XDG_CACHE_HOME",
}
# As many links are followed by the kernel (path_resolution(7)).
_MOST_LINKS = 40
# In bytes: of longer files with settings only so much is read, and they count as secret.
_MOST_SETTINGS = 1_000_000
# A password or token in an address (git's insteadOf), or a value by a name that says so. `git@` is no secret.
_SECRET = re.compile(
    rb"://(?!git@)[^/\s@\"']+@|(?:token|passw(?:or)?d|secret|extraheader|authorization|api[_-]?key|private[_-]?key)"
    rb"[\w.\"'-]*\s*[=:]",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Readable:
    """Real paths that may be read, and links outside of them that lead there."""

    places: dict[Path, None] = field(default_factory=dict[Path, None])
    links: dict[Path, None] = field(default_factory=dict[Path, None])

    def add(self, place: Path | None, links: Iterable[Path]) -> None:
        """Open a real path, with the links on the way; None opens nothing."""
        if place is not None:
            self.places[place] = None
        self.links.update(dict.fromkeys(links))


@lru_cache(maxsize=1)
def known_places() -> dict[str, Any]:
    """Read known_places.toml."""
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def private_places() -> Iterator[Path]:
    """What is the person's own secret, there or not."""
    return iter(_listed("private", homes(), _moved()))


def start_files() -> Iterator[Path]:
    """What says which programs the person's own programs start, there or not."""
    return iter(_listed("start files", homes(), _moved()))


def places_of(name: str) -> Iterator[Path]:
    """Where such a thing lies: below each home folder, and where the person moved such things to."""
    yield from _below(name, homes(), _moved())


@lru_cache(maxsize=16)
def _listed(kind: str, own: tuple[Path, ...], moved: tuple[tuple[str, str], ...]) -> tuple[Path, ...]:
    """All of one list: it is asked for before every command."""
    names = home_files() if kind == "start files" else known_places()[kind]
    return tuple(place for name in names for place in _below(name, own, moved))


def _below(name: str, own: tuple[Path, ...], moved: tuple[tuple[str, str], ...]) -> Iterator[Path]:
    for home in own:
        yield home / name
    for usual, folder in moved:
        if name.startswith(usual):
            yield Path(folder) / name.removeprefix(usual)


def _moved() -> tuple[tuple[str, str], ...]:
    return tuple((usual, os.environ[name]) for usual, name in _MOVED.items() if os.environ.get(name))


def homes() -> tuple[Path, ...]:
    """The person's home folder, as the environment says and as the system knows it."""
    if sys.platform == "win32":
        return (Path.home(),)
    import pwd

    try:
        known = (Path(pwd.getpwuid(os.getuid()).pw_dir),)
    except KeyError:
        known = ()
    return tuple(dict.fromkeys((Path.home(), *known)))


def is_around_home(folder: Path) -> bool:
    """Whether it is a home folder of the person, or has one in it."""
    real = folder.resolve()
    return any(real in (home.resolve(), *home.resolve().parents) for home in homes())


def system_places() -> Iterator[Path]:
    """Places of the system that are readable, and this program's own, which closes the command in."""
    yield from map(Path, known_places()["system"])
    yield from own_places()


def readable_places(writable: tuple[Path, ...]) -> Readable:
    """Return what is there of the listed places. A path that leads into a `writable` folder opens nothing.

    A command could else put a link there, and the next one would read whatever it leads to.
    """
    found = Readable()
    for place in system_places():
        found.add(*followed(place, writable))
    forbidden = _Forbidden.now()
    for place, has_settings in _wanted(writable):
        real, links = followed(place, writable)
        if real is not None and not forbidden.touches(real) and not (has_settings and _has_secret(real)):
            found.add(real, links)
    for file in map(_real, _listed("git_settings", homes(), _moved())):
        for place in included(settings_in(file), file) if file in found.places else ():
            real, links = followed(place, writable)
            if real is not None and not forbidden.touches(real) and not _has_secret(real):
                found.add(real, links)
    return found


def followed(place: Path, writable: tuple[Path, ...]) -> tuple[Path | None, list[Path]]:
    """The real path and the links on the way; None where nothing is, or where it leads through a writable folder."""
    if not os.path.lexists(place):
        return None, []
    if os.path.realpath(place) == str(place):
        return (None if _is_in(place, writable) else place), []
    links: list[Path] = []
    here, parts = Path(place.anchor), list(reversed(place.parts[1:]))
    while parts:
        name = parts.pop()
        here = here.parent if name == ".." else here / name
        if _is_in(here, writable):
            return None, []
        try:
            target = here.readlink()
        except OSError as error:
            if error.errno == errno.EINVAL:
                continue
            return None, []
        links.append(here)
        if len(links) > _MOST_LINKS:
            return None, []
        parts += reversed(target.parts[1:] if target.is_absolute() else target.parts)
        here = Path(target.anchor) if target.is_absolute() else here.parent
    return here, links


@dataclass(frozen=True, slots=True)
class _Forbidden:
    """What no list opens: what is in `closed`, and the folders `around` private places and home folders."""

    closed: frozenset[Path]
    around: frozenset[Path]

    @classmethod
    def now(cls) -> "_Forbidden":
        listed = _listed("private", homes(), _moved())
        closed = {*listed, *(_real(place) for place in listed if os.path.lexists(place))}
        # Of what is not there yet, the folder may be a link.
        tops = {place.parent for place in listed}
        own = {real for home in homes() for real in (home, _real(home))} | tops | {_real(top) for top in tops}
        return cls(frozenset(closed), frozenset(own | {parent for place in closed | own for parent in place.parents}))

    def touches(self, place: Path) -> bool:
        return place in self.around or not self.closed.isdisjoint((place, *place.parents))


def _is_in(place: Path, folders: tuple[Path, ...]) -> bool:
    return any(place.is_relative_to(folder) for folder in folders)


def _wanted(writable: tuple[Path, ...]) -> Iterator[tuple[Path, bool]]:
    """Places that may be opened, there or not, and whether each is a file with settings."""
    known = known_places()
    for kind, has_settings in (("home", False), ("settings", True), ("git_settings", True)):
        yield from ((place, has_settings) for place in _listed(kind, homes(), _moved()))
    for variable, names in known["variables"].items():
        for value in os.environ.get(variable, "").split(os.pathsep):
            yield from ((Path(value, name), False) for name in names if Path(value).is_absolute())
    for value in os.environ.get("PATH", "").split(os.pathsep):
        if Path(value).is_absolute():
            yield from ((place, False) for place in _of_programs(Path(value), writable))


def _of_programs(folder: Path, writable: tuple[Path, ...]) -> Iterator[Path]:
    """A folder of programs, with what belongs to them; of one in a home folder also what its links lead to."""
    yield from _beside(folder)
    real, _ = followed(folder, writable)
    if real is None or not any(home in folder.parents for home in homes()):
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
            yield from _beside(target.parent)


def _beside(folder: Path) -> Iterator[Path]:
    yield folder
    # At the top, right below a home folder, and in .local, these names mean something else.
    top = folder.parent
    if folder.name in ("bin", "sbin") and top.name not in ("", ".local") and top not in homes():
        yield from (top / name for name in known_places()["beside_programs"])


def _has_secret(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            said = opened.read(_MOST_SETTINGS + 1)
    except OSError:
        return True
    return len(said) > _MOST_SETTINGS or _SECRET.search(said) is not None


def _real(place: Path) -> Path:
    return Path(os.path.realpath(place))
