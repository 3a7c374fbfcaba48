"""What a command has left behind in the workspace: the files it changed, and what programs would run because of it."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from desktop_agent.tools.commands.aftermath.places import printable
from desktop_agent.tools.commands.aftermath.repositories import (
    Guarded,
    guarded,
    is_changed,
    is_suspicious,
    memory_of,
    state_of,
)
from desktop_agent.tools.commands.aftermath.startup import startup_words, state_of_startup
from desktop_agent.tools.commands.aftermath.survey import Survey, survey
from desktop_agent.vocabulary.tool_calls import FileChanges

MOST_NAMED = 20
MOST_KEPT = 100
_MOST_HEAVY = 5


@dataclass(frozen=True, slots=True)
class Changes:
    """Paths relative to the workspace; a folder that came or went stands for all in it. `heavy` was not looked into."""

    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    heavy: tuple[str, ...] = ()
    is_cut: bool = False

    @property
    def kept(self) -> FileChanges:
        """As much of it as is kept with the call."""
        lists = [tuple(map(printable, paths[:MOST_KEPT])) for paths in (self.created, self.changed, self.deleted)]
        count = len(self.created) + len(self.changed) + len(self.deleted)
        return FileChanges(*lists, count=count, is_cut=self.is_cut)

    def __str__(self) -> str:
        """In sentences, with at most MOST_NAMED names."""
        left, parts = MOST_NAMED, list[str]()
        for word, paths in (("created", self.created), ("changed", self.changed), ("deleted", self.deleted)):
            named = paths[:left]
            left -= len(named)
            if named:
                more = f" and {len(paths) - len(named):,} more" if len(paths) > len(named) else ""
                parts.append(f"{word} {', '.join(map(printable, named))}{more}")
            elif paths:
                parts.append(f"{word} {len(paths):,} more")
        notes = [f"Since it began, files of the workspace: {'; '.join(parts)}." if parts else _NOTHING]
        if self.heavy:
            more = f" and {len(self.heavy) - _MOST_HEAVY:,} more" if len(self.heavy) > _MOST_HEAVY else ""
            notes.append(f"Not looked into: {', '.join(map(printable, self.heavy[:_MOST_HEAVY]))}{more}.")
        if self.is_cut:
            notes.append("There are too many files; not all were looked at.")
        return " ".join(notes)


_NOTHING = "No file of the workspace was created, changed or deleted."


@dataclass(frozen=True, slots=True)
class Before:
    """The workspace as it was; `guarded` is None where nobody asks what programs run of it.

    `state` is what git runs and `startup` what others do. All reads the disk: call it in a thread.
    """

    folder: Path
    since: int
    seen: Survey
    guarded: Guarded | None
    state: dict[Path, str]
    startup: dict[str, str]

    @property
    def is_small(self) -> bool:
        """Whether looking again is cheap enough for a command that nobody stopped."""
        return len(self.seen.entries) <= CHEAP and not self.seen.is_cut

    def again(self, check: Callable[[], None] = lambda: None, *, files: bool = True) -> "After":
        """Look again, for changed `files` or only at what programs run. Raises what `check` raises."""
        now = survey(self.folder, self.since if files else None, check, before=self.seen)
        changes = _changes(self.folder, self.seen, now) if files else None
        if self.guarded is None:
            return After(changes, "")
        found = _found(self.folder, now)
        state = state_of_startup(self.folder, now)
        others = {path: said for path, said in state.items() if found.owner_of(self.folder / path) is None}
        words = (self._of_git(now, found, self.guarded), startup_words(self.startup, others, MOST_NAMED))
        return After(changes, " ".join(filter(None, words)))

    def _of_git(self, now: Survey, found: Guarded, before: Guarded) -> str:
        known = before.owners
        state = state_of(before) | state_of(found)
        changed, made = set[Path](), set[Path]()
        for place in self.state.keys() | state.keys():
            owner = found.owner_of(place)
            if owner is None or owner in known:
                changed |= {place} if is_changed(place, self.state.get(place, ""), state.get(place, "")) else set()
            elif is_suspicious(found, place, known):
                made.add(owner)
        words = [f"It changed what git runs or reads: {self._listed(changed)}."] if changed else []
        words += [f"It made repositories of git with settings of their own: {self._listed(made)}."] if made else []
        is_cut = self.seen.is_cut or before.is_cut or now.is_cut or found.is_cut
        return " ".join([*words, *([_LOOK_FIRST] if words else []), *([NOT_ALL] if is_cut else [])])

    def _listed(self, places: set[Path]) -> str:
        return _listed(self._short(each) for each in sorted(places))

    def _short(self, place: Path) -> str:
        return str(place.relative_to(self.folder)) if self.folder in place.parents else str(place)


_LOOK_FIRST = "git runs such things outside of the confinement: look at them before you use git there."
NOT_ALL = (
    "There are too many files or repositories in the workspace to find every repository of git: the hooks and settings "
    "of some may not be kept from commands, and nobody tells when they are changed."
)
CHEAP = 20_000
"""Entries."""


@dataclass(frozen=True, slots=True)
class After:
    """What came of it; None where nobody looked. `warning` is about what programs will run, in words, or empty."""

    changes: Changes | None
    warning: str


def before_command(folder: Path, since: int, *, with_programs: bool) -> Before:
    """`since`: when the command began, in nanoseconds, as files have it. `with_programs`: also at what they run."""
    seen = survey(folder)
    if not with_programs:
        return Before(folder, since, seen, None, {}, {})
    found, memory = _found(folder, seen), memory_of(folder)
    memory.keep(found)
    memory.is_cut = seen.is_cut or found.is_cut
    return Before(folder, since, seen, found, state_of(found), state_of_startup(folder, seen))


def _found(folder: Path, seen: Survey) -> Guarded:
    return guarded((folder / each for each in seen.repositories), folder, memory_of(folder))


def _changes(folder: Path, before: Survey, now: Survey) -> Changes:
    is_cut = before.is_cut or now.is_cut
    created = set[str]() if before.is_cut else now.entries.keys() - before.entries.keys()
    gone = before.entries.keys() - now.entries.keys()
    unseen = now.heavy - before.heavy
    if now.is_cut or unseen:
        gone = {each for each in gone if not _is_there(folder, each, unseen)}
    other = {
        each for each in now.entries.keys() & before.entries.keys() if now.entries[each] is not before.entries[each]
    }
    return Changes(
        _topmost(created),
        tuple(sorted((now.touched | other) - created)),
        _topmost(gone),
        tuple(sorted(now.heavy)),
        is_cut,
    )


def _is_there(folder: Path, path: str, unseen: set[str]) -> bool:
    """Or may be, where it cannot be looked at."""
    return any(each in unseen for each in _folders_above(path)) or os.path.lexists(folder / path)


def _topmost(paths: set[str]) -> tuple[str, ...]:
    """Without what is in a folder that is named itself."""
    return tuple(sorted(path for path in paths if not any(each in paths for each in _folders_above(path))))


def _folders_above(path: str) -> Iterable[str]:
    place = path.find("/")
    while 0 <= place < len(path) - 1:
        yield path[: place + 1]
        place = path.find("/", place + 1)


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    more = f" and {len(every) - MOST_NAMED:,} more" if len(every) > MOST_NAMED else ""
    return f"{', '.join(map(printable, every[:MOST_NAMED]))}{more}"
