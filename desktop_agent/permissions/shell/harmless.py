"""What is known to be harmless behind the words that a rule names. Whatever is not, is asked about."""

import re
from dataclasses import dataclass

from desktop_agent.permissions.shell.nodes import word_set

_FOLDER = re.compile(r"\w[\w-]*")
_FILE_STEM = re.compile(r"[a-z_][a-z0-9_-]*")
_BUILD_SUFFIXES = word_set("o obj a so dylib dll exe out elf bin wasm d gch pch test")
_BUILD_FOLDERS = word_set("build _build out output bin target dist obj")
# Scripts that are written by hand have no ending either.
_SCRIPTS = re.compile(
    r"\w*file|sconstruct|sconscript|wscript|waf|configure|bootstrap|autogen|gradlew|mvnw|artisan|manage|test"
    r"|(?:build|check|ci|clean|console|deploy|dev|format|install|lint|publish|release|run|setup|start|stop|update)"
    r"(?:[-_]\w+)*"
)


@dataclass(frozen=True, slots=True)
class SafeOptions:
    """`flags` are short options, also joined; behind one that is `valued` the rest of its word is a value.

    `long` are those with two dashes, with a value or without, never shortened: what they are short for changes from
    version to version. `words` are other words that begin with a dash. No word may hold `never`, and no operand begin
    with one of `signs`. There are as many `operands` as are wanted, unless it says otherwise; where they are `named`, a
    rule is about those that stand in it, and about no others. It `stays_in_workspace` if a path that leads out of the
    folder
    lets it do what it does not do otherwise. `passes_on`: behind `--` stand options of another program. Behind options
    that match `writes` stands a file that it writes: no more than what compilers make.
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
        """Whether this word, as the program gets it, is harmless here."""
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
        """Whether this option writes to a file that may be more than something built; `value` is the next word."""
        option, glued, behind = word.partition("=")
        if self.writes is None or not self.writes.fullmatch(option):
            return False
        path = (behind if glued else value) or ""
        # A list of what a file depends on is text, of which options say a part.
        return not _is_build_output(path) or (option == "-MF" and not path.endswith(".d"))

    def _has_letters(self, letters: str) -> bool:
        for letter in letters:
            if letter in self.valued:
                return True
            if letter not in self.flags:
                return False
        return True


def _is_build_output(path: str) -> bool:
    """Whether it is by its name nothing that a person writes: no source, no capital, no dot first, and no script."""
    *folders, name = path.removeprefix("./").split("/")
    if not all(_FOLDER.fullmatch(each) for each in folders):
        return False
    stem, dot, ending = name.partition(".")
    is_for_builds = not _BUILD_FOLDERS.isdisjoint(folders)
    if not name:
        return is_for_builds
    if not _FILE_STEM.fullmatch(stem):
        return False
    return ending in _BUILD_SUFFIXES if dot else (is_for_builds or not folders) and not _SCRIPTS.fullmatch(name)


def safe_options(flags: str = "", valued: str = "", long: str = "") -> SafeOptions:
    """Options of which nothing more has to be said."""
    return SafeOptions(flags, valued, word_set(long))


def safe_named_options(flags: str = "", valued: str = "", long: str = "") -> SafeOptions:
    """Options of which nothing more has to be said, where the operands are what a rule is about."""
    return SafeOptions(flags, valued, word_set(long), named=True)


NO_WORDS = SafeOptions(unsafe_prefixes=("",))
NO_OPTIONS = SafeOptions()
NO_OPERANDS = SafeOptions(operands=0)
