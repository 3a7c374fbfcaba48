"""Startup files in a workspace: which of them a command shall not write, and which it did write."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from desktop_agent.tools.commands.aftermath.places import fingerprint, is_folder, is_link, printable_path, resolve_path
from desktop_agent.tools.commands.aftermath.survey import Survey
from desktop_agent.tools.startup_files import find_startup_file, startup_files_in_line, startup_part_index

MAX_STARTUP_FILES = 1_000
"""Files that are looked at; each that is kept is a mount, too."""


@dataclass(frozen=True, slots=True)
class ProtectedStartupFiles:
    """What a command shall not write, and the folders on the way there, each before those in it."""

    read_only: tuple[Path, ...] = ()
    pinned: tuple[Path, ...] = ()


def protected_startup_files(line: str, runs_in: str, folder: Path, seen: Survey) -> ProtectedStartupFiles:
    """Of the startup files in a workspace, those that this line shall leave as they are.

    Only where a program looks for them when somebody works in the workspace: at its top, and at that of a repository in
    it. Elsewhere they are copies, which installing and cleaning up take away.
    """
    named = [f"{each}/" for each in startup_files_in_line(line, runs_in)]
    tops = {"", *(each.rstrip("/").rpartition("/")[0] + "/" for each in seen.repositories if _is_below_top(each))}
    places: dict[Path, None] = {}
    pinned: dict[Path, None] = {}
    for path in _outermost_startup_paths(seen):
        is_named = any(f"{path.rstrip('/')}/".startswith(each) or each.startswith(path) for each in named)
        entry = find_startup_file(path)
        if is_named or _top_folder(path) not in tops or entry is None or entry.is_built:
            continue
        place = resolve_path(folder / path)
        if folder in place.parents and len(places) < MAX_STARTUP_FILES:
            places[place] = None
            pinned |= dict.fromkeys(each for each in reversed(place.parents) if folder in each.parents)
    return ProtectedStartupFiles(tuple(places), tuple(pinned))


def startup_file_state(folder: Path, seen: Survey) -> dict[str, str]:
    """What is in each of them, by their paths relative to the workspace."""
    files = islice(
        (each for path in _outermost_startup_paths(seen) for each in _files_in(folder, path)), MAX_STARTUP_FILES
    )
    return {path: said for path in files if (said := fingerprint(folder / path))}


def describe_startup_changes(before: dict[str, str], now: dict[str, str], most: int) -> str:
    """Say which of them a command made or changed; nothing for none."""
    changed = sorted(path for path, said in now.items() if before.get(path) != said)
    said = [f"{printable_path(path)} ({_run_by(path)})" for path in changed[:most]]
    more = f" and {len(changed) - most:,} more" if len(changed) > most else ""
    if not said:
        return ""
    return f"It wrote what other programs run by themselves, outside of the confinement: {'; '.join(said)}{more}."


def _run_by(path: str) -> str:
    entry = find_startup_file(path)
    return f"{entry.program}, {entry.when}" if entry is not None else ""


def _outermost_startup_paths(seen: Survey) -> Iterator[str]:
    folders = tuple(each for each in seen.startup if each.endswith("/"))
    return (each for each in seen.startup if not any(each != other and each.startswith(other) for other in folders))


def _top_folder(path: str) -> str:
    """The folder in which the program looks: empty for the workspace, else with a slash at its end."""
    return "".join(f"{part}/" for part in path.split("/")[: startup_part_index(path)])


def _is_below_top(repository: str) -> bool:
    return "/" in repository.rstrip("/")


def _files_in(folder: Path, path: str) -> Iterator[str]:
    top = folder / path.rstrip("/")
    if not is_folder(top) or is_link(top):
        yield path.rstrip("/")
    if not is_folder(top) or folder not in resolve_path(top).parents:
        return
    for above, _, names in os.walk(top):
        for name in sorted(names):
            yield (Path(above) / name).relative_to(folder).as_posix()
