"""Places in a workspace that are the person's own affair: in a home folder there are keys and passwords."""

import os
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from desktop_agent.tools.commands.known_places import private_paths

_HOME_VARIABLES = ("HOME", "USERPROFILE", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")


def private_paths_in(workspace: str | None) -> tuple[str, ...]:
    """Files and folders below this one that hold secrets, as absolute paths with forward slashes."""
    return () if workspace is None else _private_paths(workspace, home_variables())


def home_variables() -> tuple[str | None, ...]:
    """What says where a home folder is, and what was moved out of it."""
    return tuple(os.environ.get(each) for each in _HOME_VARIABLES)


@lru_cache(maxsize=16)
def _private_paths(workspace: str, _: tuple[str | None, ...]) -> tuple[str, ...]:
    return paths_below(workspace, private_paths())


def paths_below(workspace: str, places: Iterable[Path]) -> tuple[str, ...]:
    """Those in a workspace, links followed, as tools follow them."""
    folder = Path(os.path.realpath(workspace))
    real = (Path(os.path.realpath(each)) for each in places)
    return tuple(dict.fromkeys(each.as_posix() for each in real if folder in each.parents))
