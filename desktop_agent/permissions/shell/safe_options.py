"""Options that are safe behind the words that a rule names (safe_options.toml). All others are asked about."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from desktop_agent.data_files import load_table
from desktop_agent.permissions.shell.syntax import word_set

_FOLDER = re.compile(r"\w[\w-]*")
_FILE_STEM = re.compile(r"[a-z_][a-z0-9_-]*")
_BUILD_SUFFIXES = word_set("o obj a so dylib dll exe out elf bin wasm d gch pch test")
_BUILD_FOLDERS = word_set("build _build out output bin target dist obj")
# Scripts that are written by hand have no suffix either.
_SCRIPTS = re.compile(
    r"\w*file|sconstruct|sconscript|wscript|waf|configure|bootstrap|autogen|gradlew|mvnw|artisan|manage|test"
    r"|(?:build|check|ci|clean|console|deploy|dev|format|install|lint|publish|release|run|setup|start|stop|update)"
    r"(?:[-_]\w+)*"
)


@dataclass(frozen=True, slots=True)
class SafeOptions:
    """The options of a program, or of one of its subcommands, that are safe.

    `flags` are short options, also joined; behind one that is `valued` the rest of its word is a value.
    `long` are those with two dashes, with a value or without, never shortened: what they are short for changes from
    version to version. `words` matches other words that begin with a dash. No word may match `never`, and no operand
    begin with one of `unsafe_prefixes`. At most so many `operands` are safe; None: any number. Where they are `named`,
    a rule is about the operands that stand in it, and about no others. `stays_inside`: a path that leads out of the
    folder lets it do what it does not do otherwise. `passes_on`: behind `--` stand options of another program. Options
    that match `writes` name a file that is written: only files such as compilers make are safe.
    """

    flags: str = ""
    valued: str = ""
    long: frozenset[str] = frozenset()
    words: re.Pattern[str] | None = None
    never: re.Pattern[str] | None = None
    unsafe_prefixes: tuple[str, ...] = ()
    operands: int | None = None
    named: bool = False
    stays_inside: bool = False
    passes_on: bool = False
    writes: re.Pattern[str] | None = None

    def is_safe(self, word: str) -> bool:
        """Return whether this word, as the program gets it, is safe here."""
        if self.never is not None and self.never.search(word):
            return False
        if not word.startswith("-") or word == "-":
            return not (self.unsafe_prefixes and word.startswith(self.unsafe_prefixes))
        if self.words is not None and self.words.fullmatch(word):
            return True
        if word.startswith("--"):
            return word[2:].partition("=")[0] in self.long
        return self._has_letters(word[1:])

    def overwrites(self, word: str, value: str | None) -> bool:
        """Return whether this option writes a file that may be no build's output; `value` is the next word."""
        option, equals, joined_value = word.partition("=")
        if self.writes is None or not self.writes.fullmatch(option):
            return False
        path = (joined_value if equals else value) or ""
        # A list of what a file depends on is text, and options determine a part of it.
        return not _is_build_output(path) or (option == "-MF" and not path.endswith(".d"))

    def _has_letters(self, letters: str) -> bool:
        for letter in letters:
            if letter in self.valued:
                return True
            if letter not in self.flags:
                return False
        return True


NO_WORDS = SafeOptions(unsafe_prefixes=("",))


def _is_build_output(path: str) -> bool:
    """Return whether the name is that of a build's output: no source, no capital, no leading dot, and no script."""
    *folders, name = path.removeprefix("./").split("/")
    if not all(_FOLDER.fullmatch(folder) for folder in folders):
        return False
    stem, dot, suffix = name.partition(".")
    is_for_builds = not _BUILD_FOLDERS.isdisjoint(folders)
    if not name:
        return is_for_builds
    if not _FILE_STEM.fullmatch(stem):
        return False
    return suffix in _BUILD_SUFFIXES if dot else (is_for_builds or not folders) and not _SCRIPTS.fullmatch(name)


@dataclass(frozen=True, slots=True)
class _Tables:
    programs: Mapping[str, SafeOptions]
    subcommands: Mapping[str, Mapping[str, SafeOptions | None]]


def program_options() -> Mapping[str, SafeOptions]:
    """Return the safe options of programs without subcommands, by the name of the program."""
    return _tables().programs


def subcommand_options() -> Mapping[str, Mapping[str, SafeOptions | None]]:
    """Return the safe options by program and subcommand; None where a command of its own follows."""
    return _tables().subcommands


@cache
def _tables() -> _Tables:
    data = load_table(__name__, "safe_options.toml")
    lists: dict[str, str] = data["lists"]
    bases: dict[str, SafeOptions] = {}

    def options(entry: dict[str, Any]) -> SafeOptions:
        fields = dict(entry)
        base = bases.get(fields.pop("like", ""), SafeOptions())
        if "long" in fields:
            # A list may name another list.
            fields["long"] = word_set(fields["long"].format_map(lists).format_map(lists))
        if "words" in fields:
            fields["words"] = re.compile("".join(fields["words"].split()))
        fields |= {name: re.compile(fields[name]) for name in ("never", "writes") if name in fields}
        if "unsafe_prefixes" in fields:
            fields["unsafe_prefixes"] = tuple(fields["unsafe_prefixes"])
        return replace(base, **fields)

    for name, entry in data["bases"].items():
        bases[name] = options(entry)
    return _Tables(
        {name: options(entry) for name, entry in _by_name(data["programs"])},
        {
            program: {name: None if "starts_command" in entry else options(entry) for name, entry in _by_name(entries)}
            for program, entries in _by_name(data["subcommands"])
        },
    )


def _by_name(table: dict[str, dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each name of a table whose keys may be several names, parted by commas."""
    for names, entry in table.items():
        for name in names.split(", "):
            yield name, entry
