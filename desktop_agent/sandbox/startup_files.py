"""Startup files: what other programs run by themselves once it is written, such as editor tasks, hooks and
workflows.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import translate
from functools import lru_cache
from importlib.resources import files
from posixpath import normpath

from desktop_agent.types.errors import Sentence

# Characters that some disks drop, or nobody sees.
_INVISIBLE = re.compile(r"[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
_SENTENCE = "What “{file}” says is run by {program} {when}, outside of all confinement."
# What paths are written between in a line of a shell.
_SEPARATORS = re.compile(r"[\s\"'=;|&<>()`$,:{}]+")


class AskLevel(StrEnum):
    """When a person is asked about a startup file."""

    ALWAYS = "always"
    AFTER_OUTSIDE = "after_outside"
    HOME = "home"


@dataclass(frozen=True, slots=True)
class StartupFile:
    """What runs such files, and when, which `template` says. `patterns` are as in the table.

    Builds make those that are `is_built`.
    """

    level: AskLevel
    program: str
    when: str
    patterns: tuple[str, ...]
    is_built: bool = False
    template: str = _SENTENCE

    def sentence(self, file: str) -> Sentence:
        """Say it of one file."""
        return Sentence(self.template, {"file": file, "program": self.program, "when": self.when})


@lru_cache(maxsize=1)
def startup_file_table() -> tuple[StartupFile, ...]:
    """All entries, in the order of the table."""
    told = tomllib.loads(files(__package__ or __name__).joinpath("startup_files.toml").read_text("utf-8"))
    return tuple(
        StartupFile(level, entry["program"], entry["when"], tuple(entry["files"].split()), entry.get("is_built", False))
        for level in AskLevel
        for entry in told[level]
    )


@lru_cache(maxsize=1)
def home_startup_files() -> Mapping[str, StartupFile]:
    """Files and folders below a home folder, each with its entry."""
    return {each: entry for entry in startup_file_table() if entry.level is AskLevel.HOME for each in entry.patterns}


def entry_for_pattern(pattern: str) -> StartupFile:
    """The entry that has this very pattern, for what is found in another way. Raises StopIteration for none."""
    return next(entry for entry in startup_file_table() if pattern in entry.patterns)


def find_startup_file(path: str, *, inside: int = 0) -> StartupFile | None:
    """Return the entry for a path with forward slashes; None for an ordinary file.

    Its first `inside` parts are those of the workspace: a folder in which somebody chose to work is not asked about for
    being there.
    """
    return next((entry for entry, _ in _matching_entries(comparable_parts(path), max(inside - 1, 0))), None)


def strictest_entry(entries: Iterable[StartupFile | None]) -> StartupFile | None:
    """The one that is asked about most; None where none is given."""
    found = (each for each in entries if each is not None)
    return min(found, key=lambda each: each.level is AskLevel.AFTER_OUTSIDE, default=None)


def comparable_parts(path: str) -> tuple[str, ...]:
    """The parts of a path with forward slashes, each in the one form in which it is compared."""
    return tuple(_comparable(each) for each in path.split("/") if each not in {"", "."})


def _comparable(part: str) -> str:
    """The part of a path as the disk that takes the most for the same would have it."""
    return _INVISIBLE.sub("", part).casefold().partition(":")[0].rstrip(" .")


def startup_files_in_line(line: str, folder: str = ".") -> Mapping[str, StartupFile]:
    """Startup files of level ALWAYS that stand in a line of a shell, word for word, as paths from the workspace.

    Not those that builds make, such as `.venv/bin/pip`: a command writes them whether a line names them or not. Also
    folders that are named for them, such as `.vscode`: what is moved or copied there may be one. `folder` is where the
    line runs, relative to the workspace.
    """
    words = dict.fromkeys(each for each in _SEPARATORS.split(line) if each)
    paths = (each if each.startswith("/") else normpath(f"{folder}/{each}") for each in words)
    found = (
        (each, find_startup_file(each) or _folders_of_files().get(_comparable(each.rpartition("/")[2])))
        for each in paths
    )
    always = ((path, entry) for path, entry in found if entry is not None and entry.level is AskLevel.ALWAYS)
    return {path: entry for path, entry in always if not entry.is_built}


def may_contain_startup_files(names: AbstractSet[str]) -> bool:
    """Whether one of the files and folders of these names, as they stand in one folder, may be a startup file; quick.

    It is one of level ALWAYS, spelled as its program spells it, or is none.
    """
    exact, signs = _last_parts()
    if not names.isdisjoint(exact):
        return True
    joined = "\0".join(("", *names, ""))
    return any(each in joined for each in signs)


def startup_files_below(name: str) -> Sequence[str]:
    """Startup files of level ALWAYS that lie in a folder of this name, as paths from there; not those with a `*`."""
    return _below_folders().get(_comparable(name), ())


def startup_part_index(path: str) -> int | None:
    """Which part of a path is the first that makes it a startup file of level ALWAYS; None for another file."""
    return next(
        (start for entry, start in _matching_entries(comparable_parts(path), 0) if entry.level is AskLevel.ALWAYS), None
    )


@lru_cache(maxsize=1)
def folder_suffixes() -> AbstractSet[tuple[str, ...]]:
    """What comes after the first parts of a pattern that is a folder, such as `workflows` after `.github`."""
    return frozenset(each[at:] for each in _index().folders for at in range(1, len(each)))


@lru_cache(maxsize=1)
def _folders_of_files() -> Mapping[str, StartupFile]:
    """Hidden folders in which startup files of level ALWAYS lie."""
    always = [
        (each.casefold(), entry)
        for entry in startup_file_table()
        if entry.level is AskLevel.ALWAYS
        for each in entry.patterns
    ]
    within = ((each.partition("/"), entry) for each, entry in always)
    return {first: entry for (first, _, rest), entry in reversed([*within]) if rest and first.startswith(".")}


@lru_cache(maxsize=1)
def _below_folders() -> Mapping[str, Sequence[str]]:
    always = (
        each.rstrip("/").partition("/")
        for entry in startup_file_table()
        if entry.level is AskLevel.ALWAYS
        for each in entry.patterns
    )
    found = dict[str, list[str]]()
    for first, _, rest in always:
        if rest and "*" not in rest:
            found.setdefault(first.casefold(), []).append(rest)
    return found


@dataclass(frozen=True, slots=True)
class _Index:
    """Patterns by their last part; of those with a `*` the form of it, the parts before it, and the entry."""

    files: dict[tuple[str, ...], StartupFile]
    folders: dict[tuple[str, ...], StartupFile]
    forms: tuple[tuple[re.Pattern[str], tuple[str, ...], StartupFile], ...]


@lru_cache(maxsize=1)
def _index() -> _Index:
    exact: dict[tuple[str, ...], StartupFile] = {}
    folders: dict[tuple[str, ...], StartupFile] = {}
    forms: list[tuple[re.Pattern[str], tuple[str, ...], StartupFile]] = []
    for entry in startup_file_table():
        for pattern in entry.patterns if entry.level is not AskLevel.HOME else ():
            parts = tuple(pattern.casefold().rstrip("/").split("/"))
            if "*" in parts[-1]:
                forms.append((re.compile(translate(parts[-1])), parts[:-1], entry))
            else:
                (folders if pattern.endswith("/") else exact).setdefault(parts, entry)
    return _Index(exact, folders, tuple(forms))


@lru_cache(maxsize=1)
def _last_parts() -> tuple[frozenset[str], tuple[str, ...]]:
    """Those of patterns of level ALWAYS; and of those with a `*` the longer half, with what stands beside a name."""
    always = (
        each.rstrip("/") for entry in startup_file_table() if entry.level is AskLevel.ALWAYS for each in entry.patterns
    )
    last = {each.rpartition("/")[2] for each in always}
    halves = [each.partition("*") for each in sorted(last) if "*" in each]
    return frozenset(last), tuple(f"\0{before}" if before else f"{after}\0" for before, _, after in halves)


def _matching_entries(parts: Sequence[str], first: int) -> Iterator[tuple[StartupFile, int]]:
    """Those that it is one of, each with where its pattern begins; it must end at the part `first` or later."""
    index = _index()
    found = list[tuple[StartupFile, int]]()
    for end in range(first, len(parts)):
        for start in range(max(end - 2, 0), end + 1):
            key = tuple(parts[start : end + 1])
            found += [(index.folders[key], start)] if key in index.folders else []
            found += [(index.files[key], start)] if end == len(parts) - 1 and key in index.files else []
    if parts and len(parts) > first:
        last = len(parts) - 1
        found += [(entry, last - len(above)) for form, above, entry in index.forms if _matches_form(parts, form, above)]
    yield from sorted(found, key=lambda each: each[0].level is not AskLevel.ALWAYS)


def _matches_form(parts: Sequence[str], form: re.Pattern[str], before: tuple[str, ...]) -> bool:
    above = tuple(parts[:-1])
    return form.fullmatch(parts[-1]) is not None and (not before or above[-len(before) :] == before)
