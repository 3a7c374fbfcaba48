"""Settings of git, as far as they say which other files it takes settings from and runs programs out of.

The form is that of git-config(1), "CONFIGURATION FILE". A line that is not understood says something.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from desktop_agent.tools.commands.aftermath.places import is_file, real, text_of

# Files that take from each other; git itself follows ten, one in the other.
_MOST_FILES = 100
_SECTION = re.compile(r'[ \t\r]*\[[ \t]*([\w.-]+)(?:[ \t]+"((?:[^"\\\n]|\\.)*)")?[ \t]*\]')
_NAME = re.compile(r"[A-Za-z][\w-]*(?=[ \t\r]*(?:=|\n|$|[#;]))")
_ANY_ESCAPED = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", "t": "\t", "b": "\b"}
_HARMLESS_NAMES = """
    core.repositoryformatversion core.filemode core.bare core.worktree core.logallrefupdates core.ignorecase
    core.precomposeunicode core.symlinks remote.url remote.fetch branch.remote branch.merge user.name user.email
"""
_HARMLESS = frozenset(_HARMLESS_NAMES.split())
# What names files or folders that nothing runs, or that are found in another way.
_FILE_NAMES = """
    include.path includeif.path core.hookspath core.excludesfile core.attributesfile commit.template
    blame.ignorerevsfile diff.orderfile mailmap.file gpg.allowedsignersfile gpg.revocationfile user.signingkey
    submodule.url submodule.branch remote.pushurl remote.push url.insteadof url.pushinsteadof safe.directory
    sendemail.aliasesfile
"""
_NO_PROGRAMS = _HARMLESS | frozenset(_FILE_NAMES.split())
# What words are written between in a value that a shell runs.
_BETWEEN = re.compile(r"[\s\"'=;|&<>()`$,{}!]+")

Setting = tuple[str, str]
Entry = tuple[str, str, str, str | None]
"""Section in lower case, what stands below it, name in lower case, and value, if there is one."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What files say, with those that they take more from: `included`, each whether it is there or not."""

    settings: tuple[Setting, ...]
    included: tuple[Path, ...]


def settings_in(file: Path) -> tuple[Setting, ...]:
    """Name and value of each, as `section.name` in lower case; nothing where the file cannot be read."""
    return tuple((f"{section}.{name}", value or "") for section, _, name, value in entries_in(file))


def entries_in(file: Path) -> Iterator[Entry]:
    """Each setting with all parts of its name; none where the file cannot be read."""
    return _entries(text_of(file).removeprefix("\ufeff"))


def taken_from(files: Iterable[Path]) -> Taken:
    """All that git would know from these files, and from those that they include, whatever the condition."""
    settings: list[Setting] = []
    waiting, seen = list(files), dict[Path, None]()
    own = set(waiting)
    while waiting and len(seen) < _MOST_FILES:
        file = waiting.pop(0)
        if file not in seen:
            seen[file] = None
            said = settings_in(file)
            settings += said
            waiting += included(said, file)
    return Taken(tuple(settings), tuple(each for each in seen if each not in own))


def is_plain(settings: tuple[Setting, ...]) -> bool:
    """Whether there is nothing but what every new repository has."""
    return all(name in _HARMLESS for name, _ in settings)


def included(settings: tuple[Setting, ...], file: Path) -> Iterator[Path]:
    """Files that this one takes more settings from."""
    for name, value in settings:
        if name in ("include.path", "includeif.path") and value:
            place = file.parent / from_home(value)
            # One file has one name, unless it is a link.
            yield real(place.parent) / place.name


def hook_folders(settings: tuple[Setting, ...], top: Path) -> Iterator[Path]:
    """Where hooks are, other than in the usual place. `top` is the folder that the repository is of."""
    for name, value in settings:
        if name == "core.hookspath" and value:
            yield top / from_home(value)


def programs(settings: tuple[Setting, ...], top: Path) -> Iterator[Path]:
    """Files that git would run because a setting names them, there or not; also what interpreters are given to run.

    The settings that git runs are many, and those that name other files are few. A word without a slash is a file only
    where there is one, and behind another word: the first is looked up among the programs of the system.
    """
    for name, value in settings:
        words = filter(None, _BETWEEN.split(value)) if name not in _NO_PROGRAMS else ()
        for position, word in enumerate(words):
            place = top / from_home(word)
            if "/" in word or (position > 0 and is_file(place)):
                yield place


def from_home(value: str) -> Path:
    """The path that a value means."""
    try:
        return Path(value).expanduser()
    except RuntimeError:
        return Path(value)  # of nobody who is here


def _entries(text: str) -> Iterator[Entry]:
    section, below, at = "", "", 0
    while at < len(text):
        if text[at] in " \t\r\n":
            at += 1
        elif head := _SECTION.match(text, at):
            section, _, old = head[1].lower().partition(".")
            below, at = old if head[2] is None else _ANY_ESCAPED.sub(r"\1", head[2]), head.end()
        elif text[at] in "#;":
            at = _line_end(text, at)
        elif name := _NAME.match(text, at):
            value, at = _value(text, name.end())
            yield section, below, name[0].lower(), value
        else:
            end = _line_end(text, at)
            yield section, below, "?", text[at:end].strip()
            at = end


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _value(text: str, at: int) -> tuple[str | None, int]:
    """From after a name to the end of its line, which may go on in the next; and where that is."""
    while at < len(text) and text[at] in " \t\r":
        at += 1
    if text[at : at + 1] != "=":
        return None, _line_end(text, at)
    said, kept, is_quoted, at = list[str](), 0, False, at + 1
    while at < len(text) and text[at] != "\n":
        each = text[at]
        if each == "\\":
            at += 1
            more = text[at : at + 1]
            said += [] if more == "\n" else [_ESCAPED.get(more, more)]
            kept = len(said) if more != "\n" else kept
        elif each == '"':
            is_quoted, kept = not is_quoted, len(said)
        elif each in "#;" and not is_quoted:
            at = _line_end(text, at)
            break
        elif said or is_quoted or each not in " \t\r":
            said.append(each)
            kept = len(said) if is_quoted or each not in " \t\r" else kept
        at += 1
    return "".join(said[:kept]), at
