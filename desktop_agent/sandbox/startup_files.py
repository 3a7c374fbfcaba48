"""Startup files: what other programs run by themselves, such as editor tasks, hooks and workflows."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import translate
from functools import lru_cache
from posixpath import normpath

from desktop_agent.data_files import load_table
from desktop_agent.types.errors import Sentence

# Characters that some file systems drop, or that are invisible.
_INVISIBLE = re.compile(r"[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
# What separates paths in a line of a shell.
_SEPARATORS = re.compile(r"[\s\"'=;|&<>()`$,:{}]+")


class AskLevel(StrEnum):
    """When a person is asked about a startup file."""

    ALWAYS = "always"
    AFTER_OUTSIDE = "after_outside"
    HOME = "home"


@dataclass(frozen=True, slots=True)
class StartupFile:
    """What runs such files, and when; "" where that is not known. `patterns` are as in the table.

    `is_built`: builds make such files.
    """

    level: AskLevel
    program: str
    when: str
    patterns: tuple[str, ...]
    is_built: bool = False

    def sentence(self, file: str) -> Sentence:
        """Return the sentence about one file."""
        if not self.program:
            return Sentence(
                "“{file}” may be what another program runs: links in the workspace give it too many names to look at.",
                {"file": file},
            )
        values = {"file": file, "program": Sentence(self.program), "when": Sentence(self.when)}
        return Sentence("The content of “{file}” is run by {program} {when}, without any confinement.", values)


@lru_cache(maxsize=1)
def startup_file_table() -> tuple[StartupFile, ...]:
    """Return all entries, in the order of the table."""
    data = load_table(__name__, "startup_files.toml")
    return tuple(
        StartupFile(level, entry["program"], entry["when"], tuple(entry["files"].split()), entry.get("is_built", False))
        for level in AskLevel
        for entry in data[level]
    )


@lru_cache(maxsize=1)
def home_startup_files() -> Mapping[str, StartupFile]:
    """Return files and folders below a home folder, each with its entry."""
    return dict(_patterns_of(AskLevel.HOME))


def _patterns_of(level: AskLevel) -> Iterator[tuple[str, StartupFile]]:
    return ((pattern, entry) for entry in startup_file_table() if entry.level is level for pattern in entry.patterns)


def entry_for_pattern(pattern: str) -> StartupFile:
    """Return the entry with exactly this pattern. Raises StopIteration for none."""
    return next(entry for entry in startup_file_table() if pattern in entry.patterns)


def find_startup_file(path: str, *, workspace_parts: int = 0) -> StartupFile | None:
    """Return the entry for a path with forward slashes; None for an ordinary file.

    Its first `workspace_parts` parts are the workspace's: that its folder was chosen to work in is no reason to ask.
    """
    return next((entry for entry, _ in _matching_entries(comparable_parts(path), max(workspace_parts - 1, 0))), None)


def strictest_entry(entries: Iterable[StartupFile | None]) -> StartupFile | None:
    """Return the entry with the strictest level; None where none is given."""
    present = (entry for entry in entries if entry is not None)
    return min(present, key=lambda candidate: candidate.level is AskLevel.AFTER_OUTSIDE, default=None)


def comparable_parts(path: str) -> tuple[str, ...]:
    """Return the parts of a path with forward slashes, each in the one form in which it is compared."""
    return tuple(_comparable(part) for part in path.split("/") if part not in {"", "."})


def _comparable(part: str) -> str:
    """Fold a part as the least distinguishing file system would."""
    return _INVISIBLE.sub("", part).casefold().partition(":")[0].rstrip(" .")


def startup_files_in_line(line: str, folder: str = ".") -> Mapping[str, StartupFile]:
    """Return startup files of level ALWAYS named in a shell line, word for word, as paths from the workspace.

    Not those that builds make, such as `.venv/bin/pip`: a command writes them whether a line names them or not. Also
    folders that are named for them, such as `.vscode`: what is moved or copied there may be one. `folder` is where the
    line runs, relative to the workspace.
    """
    startup_files: dict[str, StartupFile] = {}
    for word in dict.fromkeys(filter(None, _SEPARATORS.split(line))):
        path = word if word.startswith("/") else normpath(f"{folder}/{word}")
        entry = find_startup_file(path) or _folders_of_files().get(_comparable(path.rpartition("/")[2]))
        if entry is not None and entry.level is AskLevel.ALWAYS and not entry.is_built:
            startup_files[path] = entry
    return startup_files


def may_contain_startup_files(names: AbstractSet[str]) -> bool:
    """Return quickly whether one of these names, all of one folder, may be a startup file.

    Only those of level ALWAYS count, spelled as their program spells them.
    """
    exact, signs = _last_parts()
    if not names.isdisjoint(exact):
        return True
    joined = "\0".join(("", *names, ""))
    return any(sign in joined for sign in signs)


def startup_files_below(name: str) -> Sequence[str]:
    """Return startup files of level ALWAYS in a folder of this name, as paths from there; none with a `*`."""
    return _below_folders().get(_comparable(name), ())


def startup_part_index(path: str) -> int | None:
    """Return the first part of a path that makes it a startup file of level ALWAYS; None for another file."""
    entries = _matching_entries(comparable_parts(path), 0)
    return next((start for entry, start in entries if entry.level is AskLevel.ALWAYS), None)


@lru_cache(maxsize=1)
def folder_suffixes() -> AbstractSet[tuple[str, ...]]:
    """Return what follows the first parts of a pattern that is a folder, such as `workflows` after `.github`."""
    return frozenset(folder[index:] for folder in _index().folders for index in range(1, len(folder)))


@lru_cache(maxsize=1)
def _folders_of_files() -> Mapping[str, StartupFile]:
    """Return hidden folders that contain startup files of level ALWAYS."""
    always = [(pattern.casefold(), entry) for pattern, entry in _patterns_of(AskLevel.ALWAYS)]
    within = ((folder.partition("/"), entry) for folder, entry in always)
    return {first: entry for (first, _, rest), entry in reversed([*within]) if rest and first.startswith(".")}


@lru_cache(maxsize=1)
def _below_folders() -> Mapping[str, Sequence[str]]:
    always = (pattern.rstrip("/").partition("/") for pattern, _ in _patterns_of(AskLevel.ALWAYS))
    names = dict[str, list[str]]()
    for first, _, rest in always:
        if rest and "*" not in rest:
            names.setdefault(first.casefold(), []).append(rest)
    return names


@dataclass(frozen=True, slots=True)
class _Index:
    """Patterns by their last part; of those with a `*` the form of it, the parts before it, and the entry."""

    files: dict[tuple[str, ...], StartupFile]
    folders: dict[tuple[str, ...], StartupFile]
    forms: tuple[tuple[re.Pattern[str], tuple[str, ...], StartupFile], ...]
    any_form: re.Pattern[str]
    """Matches every name that one of the forms matches: few names do, so that the forms are seldom tried one by one."""


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
    return _Index(exact, folders, tuple(forms), re.compile("|".join(form.pattern for form, _, _ in forms)))


@lru_cache(maxsize=1)
def _last_parts() -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the last parts of patterns of level ALWAYS; of those with a `*` what stands before or after it."""
    last = {pattern.rstrip("/").rpartition("/")[2] for pattern, _ in _patterns_of(AskLevel.ALWAYS)}
    halves = [part.partition("*") for part in sorted(last) if "*" in part]
    return frozenset(last), tuple(f"\0{before}" if before else f"{after}\0" for before, _, after in halves)


def _matching_entries(parts: Sequence[str], first: int) -> Iterator[tuple[StartupFile, int]]:
    """Return matching entries, each with where its pattern begins; it must end at the part `first` or later."""
    index = _index()
    matches = list[tuple[StartupFile, int]]()
    for end in range(first, len(parts)):
        for start in range(max(end - 2, 0), end + 1):
            key = tuple(parts[start : end + 1])
            matches += [(index.folders[key], start)] if key in index.folders else []
            matches += [(index.files[key], start)] if end == len(parts) - 1 and key in index.files else []
    if len(parts) > first and index.any_form.fullmatch(parts[-1]):
        last = len(parts) - 1
        matches += [
            (entry, last - len(parents)) for form, parents, entry in index.forms if _matches_form(parts, form, parents)
        ]
    yield from sorted(matches, key=lambda match: match[0].level is not AskLevel.ALWAYS)


def _matches_form(parts: Sequence[str], form: re.Pattern[str], before: tuple[str, ...]) -> bool:
    parents = tuple(parts[:-1])
    return form.fullmatch(parts[-1]) is not None and (not before or parents[-len(before) :] == before)
