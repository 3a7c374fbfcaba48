"""Places in a workspace that are the person's own affair: in a home folder there are keys and start files."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from desktop_agent.tools.commands.aftermath.git_settings import hook_folders, taken_from
from desktop_agent.tools.commands.known_places import places_of, private_places, steering_places

_SURROUNDINGS = ("HOME", "USERPROFILE", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")


@dataclass(frozen=True, slots=True)
class PrivatePlaces:
    """Files and folders below a workspace, as absolute paths with forward slashes.

    `hidden` are secrets. `steering` says which programs the person's own programs start.
    """

    hidden: tuple[str, ...] = ()
    steering: tuple[str, ...] = ()


NO_PRIVATE_PLACES = PrivatePlaces()


def private_places_in(workspace: str | None) -> PrivatePlaces:
    """Those of this folder, now. Looks at a few files of settings, and reads them when they changed."""
    if workspace is None:
        return NO_PRIVATE_PLACES
    top = _top_of(Path(workspace))
    files = (*places_of(".gitconfig"), *places_of(".config/git/config"), *([top / ".git" / "config"] if top else ()))
    surroundings = tuple(os.environ.get(each) for each in _SURROUNDINGS)
    return _places(workspace, top or Path(workspace), tuple((each, _stamp(each)) for each in files), surroundings)


@lru_cache(maxsize=16)
def _places(
    workspace: str, top: Path, files: tuple[tuple[Path, object], ...], _: tuple[str | None, ...]
) -> PrivatePlaces:
    hooks = hook_folders(taken_from(each for each, _stamped in files).settings, top)
    return PrivatePlaces(_below(workspace, private_places()), _below(workspace, (*steering_places(), *hooks)))


def _below(workspace: str, places: Iterable[Path]) -> tuple[str, ...]:
    """Links followed, as tools follow them."""
    folder = Path(os.path.realpath(workspace))
    real = (Path(os.path.realpath(each)) for each in places)
    return tuple(dict.fromkeys(each.as_posix() for each in real if folder in each.parents))


def _top_of(folder: Path) -> Path | None:
    """The folder of the repository that this one belongs to."""
    return next((each for each in (folder, *folder.parents) if _stamp(each / ".git" / "config") is not None), None)


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
