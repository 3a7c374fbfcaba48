"""How a program is started by bubblewrap (bwrap(1)): in namespaces of its own, in which what is closed is not there."""

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from desktop_agent.tools.commands.bounds import Bounds
from desktop_agent.tools.commands.landlock import without_services
from desktop_agent.tools.processes.own_part import own_places

# Not by the person's path, in which a workspace may stand.
_WHERE = "/usr/bin:/bin:/usr/local/bin"
# Sockets of services are in there, and names of servers behind links.
_EMPTY = ("/tmp", "/var/tmp", "/run")  # noqa: S108 - closed, not used
_NAMES = ("/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager", "/run/nscd")


def installed() -> str | None:
    """Where it is."""
    return shutil.which("bwrap", path=_WHERE)


def command(program: str, argv: Sequence[str], folder: Path, bounds: Bounds) -> list[str]:
    """The words that start a program in `folder`, within the bounds."""
    options = ["--die-with-parent", "--unshare-all", "--cap-drop", "ALL", "--ro-bind", "/", "/"]
    options += ["--dev", "/dev", "--proc", "/proc"]
    for place in _EMPTY:
        options += ["--tmpfs", place] if Path(place).is_dir() and not Path(place).is_symlink() else []
    if bounds.network:
        options += ["--share-net", *_seen(map(Path, _NAMES))]
    options += _closed(tuple(each for each in bounds.hidden if not _is_empty(each)))
    # The program itself sets up the filter in there, and may lie where nothing else is seen.
    options += _seen(each for each in own_places() if _is_empty(each))
    for each in bounds.writable:
        options += [*_opened(bounds, each), *_closed(bounds.hidden_below(each))]
    # A namespace keeps no socket away that has a path, and with the network come those without one. Without the network
    # the internet is the command alone: what it listens on at 127.0.0.1 can be reached by nobody else.
    started = without_services(argv)
    return [program, *options, "--chdir", str(folder), "--", *started]


def _seen(places: Iterable[Path]) -> list[str]:
    return [word for each in places for word in ("--ro-bind-try", str(each), str(each))]


def _opened(bounds: Bounds, writable: Path) -> list[str]:
    # Where nothing in it may be written it is seen all the same: it may lie where all else is closed.
    inside = bounds.open_in(writable)
    if inside == (writable,):
        return ["--bind", str(writable), str(writable), *_kept(bounds, writable)]
    options = ["--ro-bind", str(writable), str(writable)]
    for each in inside:
        options += ["--bind-try", str(each), str(each), *_kept(bounds, each)]
    return options


def _kept(bounds: Bounds, writable: Path) -> list[str]:
    """A place of its own among the mounts cannot be renamed, nor be replaced by something else (rename(2), EBUSY)."""
    options: list[str] = []
    for each in bounds.pinned:
        options += ["--bind", str(each), str(each)] if writable in each.parents else []
    for each in bounds.read_only:
        if writable not in each.parents:
            continue
        there = ["--ro-bind", str(each), str(each)]
        options += there if each.exists() else ["--tmpfs", str(each), "--remount-ro", str(each)]
    return options


def _closed(places: tuple[Path, ...]) -> list[str]:
    options: list[str] = []
    for each in places:
        options += ["--tmpfs", str(each)] if each.is_dir() else ["--ro-bind", "/dev/null", str(each)]
    return options


def _is_empty(place: Path | str) -> bool:
    """Whether it is gone anyway."""
    place = Path(place)
    return any(Path(each) in (place, *place.parents) for each in (*_EMPTY, "/dev"))
