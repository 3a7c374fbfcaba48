"""Read settings of git (git-config(1)) and other files without raising: includes, hooks and programs that git would
run.
"""

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

MAX_READ_BYTES = 1_000_000
"""Bytes of a file that are looked at."""
_MAX_NAME_LENGTH = 200


def printable_path(path: str) -> str:
    """The path as it is told of: a line end in a name would look like another sentence."""
    seen = "".join(each if each.isprintable() else "\ufffd" for each in path[: _MAX_NAME_LENGTH + 1])
    return seen if len(seen) <= _MAX_NAME_LENGTH else f"{seen[:_MAX_NAME_LENGTH]}…"


def is_link(place: Path) -> bool:
    """Whether it is one, wherever it leads."""
    return stat.S_ISLNK(_mode(place.lstat))


def is_file(place: Path) -> bool:
    """Whether it is one, or leads to one."""
    return stat.S_ISREG(_mode(place.stat))


def is_folder(place: Path) -> bool:
    """Whether it is one, or leads to one."""
    return stat.S_ISDIR(_mode(place.stat))


def _mode(look: Callable[[], os.stat_result]) -> int:
    """0 for what is not there, not ours to look at, or has no name that a file can have."""
    try:
        return look().st_mode
    except (OSError, ValueError):
        return 0


def resolve_path(place: Path) -> Path:
    """Where links lead to, in circles too; a name that no file can have leads nowhere."""
    try:
        return Path(os.path.realpath(place))
    except (OSError, ValueError):
        return Path(os.sep)


def read_text(file: Path) -> str:
    """As much of it as is looked at, or nothing. Bytes that are no text come out as the system names files."""
    try:
        with file.open("rb") as opened:
            return os.fsdecode(opened.read(MAX_READ_BYTES))
    except (OSError, ValueError):
        return ""


def is_too_long(file: Path) -> bool:
    """Whether there is more in it than is looked at, or in what it leads to."""
    try:
        return file.stat().st_size > MAX_READ_BYTES
    except (OSError, ValueError):
        return False


def first_line(file: Path) -> str:
    """Without spaces around it."""
    return read_text(file).partition("\n")[0].strip()


def subfolders(folder: Path, most: int) -> tuple[list[Path], bool]:
    """Those that are no links, by name; and whether there are more than `most`."""
    try:
        with os.scandir(folder) as entries:
            found = [Path(each.path) for each in islice(entries, most + 1) if each.is_dir(follow_symlinks=False)]
    except (OSError, ValueError):
        return [], False
    return sorted(found)[:most], len(found) > most


def fingerprint(place: Path) -> str:
    """Of a file what is in it, of a link where it leads; empty for nothing."""
    try:
        found = place.lstat()
        if stat.S_ISLNK(found.st_mode):
            return f"link {place.readlink()}"
        if not stat.S_ISREG(found.st_mode):
            return f"kind {stat.S_IFMT(found.st_mode)}"
        with place.open("rb") as file:
            known = hashlib.sha256(file.read(MAX_READ_BYTES)).hexdigest()
        rest = f" {found.st_size} {found.st_ctime_ns}" if found.st_size > MAX_READ_BYTES else ""
        return f"{found.st_mode & 0o111} {known}{rest}"
    except (OSError, ValueError):
        return ""


# Files that take from each other; git itself follows ten, one in the other.
_MAX_FILES = 100
_SECTION = re.compile(r'[ \t\r]*\[[ \t]*([\w.-]+)(?:[ \t]+"((?:[^"\\\n]|\\.)*)")?[ \t]*\]')
_NAME = re.compile(r"[A-Za-z][\w-]*(?=[ \t\r]*(?:=|\n|$|[#;]))")
_ANY_ESCAPED = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", "t": "\t", "b": "\b"}
_DEFAULT_NAMES = """
    core.repositoryformatversion core.filemode core.bare core.worktree core.logallrefupdates core.ignorecase
    core.precomposeunicode core.symlinks remote.url remote.fetch branch.remote branch.merge user.name user.email
"""
_DEFAULTS = frozenset(_DEFAULT_NAMES.split())
# What names files or folders that nothing runs, or that are found in another way.
_FILE_NAMES = """
    include.path includeif.path core.hookspath core.excludesfile core.attributesfile commit.template
    blame.ignorerevsfile diff.orderfile mailmap.file gpg.allowedsignersfile gpg.revocationfile user.signingkey
    submodule.url submodule.branch remote.pushurl remote.push url.insteadof url.pushinsteadof safe.directory
    sendemail.aliasesfile
"""
_NO_PROGRAMS = _DEFAULTS | frozenset(_FILE_NAMES.split())
# What words are written between in a value that a shell runs.
_SEPARATORS = re.compile(r"[\s\"'=;|&<>()`$,{}!]+")

GitSetting = tuple[str, str]
GitConfigEntry = tuple[str, str, str, str | None]
"""Section in lower case, what stands below it, name in lower case, and value, if there is one."""


@dataclass(frozen=True, slots=True)
class GitConfig:
    """What files say, with those that they take more from: `included`, each whether it is there or not."""

    settings: tuple[GitSetting, ...]
    included: tuple[Path, ...]


def read_settings(file: Path) -> tuple[GitSetting, ...]:
    """Name and value of each, as `section.name` in lower case; nothing where the file cannot be read."""
    return tuple((f"{section}.{name}", value or "") for section, _, name, value in read_entries(file))


def read_entries(file: Path) -> Iterator[GitConfigEntry]:
    """Each setting with all parts of its name; none where the file cannot be read."""
    return _parse_entries(read_text(file).removeprefix("\ufeff"))


def read_config(files: Iterable[Path]) -> GitConfig:
    """All that git would know from these files, and from those that they include, whatever the condition."""
    settings: list[GitSetting] = []
    waiting, seen = list(files), dict[Path, None]()
    own = set(waiting)
    while waiting and len(seen) < _MAX_FILES:
        file = waiting.pop(0)
        if file not in seen:
            seen[file] = None
            said = read_settings(file)
            settings += said
            waiting += included_files(said, file)
    return GitConfig(tuple(settings), tuple(each for each in seen if each not in own))


def is_default(settings: tuple[GitSetting, ...]) -> bool:
    """Whether there is nothing but what every new repository has."""
    return all(name in _DEFAULTS for name, _ in settings)


def included_files(settings: tuple[GitSetting, ...], file: Path) -> Iterator[Path]:
    """Files that this one takes more settings from."""
    for name, value in settings:
        if name in ("include.path", "includeif.path") and value:
            place = file.parent / expand_home(value)
            # One file has one name, unless it is a link.
            yield resolve_path(place.parent) / place.name


def hook_folders(settings: tuple[GitSetting, ...], top: Path) -> Iterator[Path]:
    """Where hooks are, other than in the usual place. `top` is the folder that the repository is of."""
    for name, value in settings:
        if name == "core.hookspath" and value:
            yield top / expand_home(value)


def program_files(settings: tuple[GitSetting, ...], top: Path) -> Iterator[Path]:
    """Files that git would run because a setting names them, there or not; also what interpreters are given to run.

    The settings that git runs are many, and those that name other files are few. A word without a slash is a file only
    where there is one, and behind another word: the first is looked up among the programs of the system.
    """
    for name, value in settings:
        words = filter(None, _SEPARATORS.split(value)) if name not in _NO_PROGRAMS else ()
        for position, word in enumerate(words):
            place = top / expand_home(word)
            if "/" in word or (position > 0 and is_file(place)):
                yield place


def expand_home(value: str) -> Path:
    """The path that a value means."""
    try:
        return Path(value).expanduser()
    except RuntimeError:
        return Path(value)  # of nobody who is here


def _parse_entries(text: str) -> Iterator[GitConfigEntry]:
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
            value, at = _parse_value(text, name.end())
            yield section, below, name[0].lower(), value
        else:
            end = _line_end(text, at)
            yield section, below, "?", text[at:end].strip()
            at = end


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _parse_value(text: str, at: int) -> tuple[str | None, int]:
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
