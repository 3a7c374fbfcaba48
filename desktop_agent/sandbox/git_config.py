"""Read settings of git (git-config(1)) without raising: includes, hooks and programs that git would run."""

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

MAX_READ_BYTES = 1_000_000
"""Bytes of a file that are read."""
_MAX_NAME_LENGTH = 200
# Windows has neither, and no pipes among its files.
_NO_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


def printable_path(path: str) -> str:
    """Return the path for a sentence, in which a line end would look like another sentence."""
    printable = "".join(char if char.isprintable() else "\ufffd" for char in path[: _MAX_NAME_LENGTH + 1])
    return printable if len(printable) <= _MAX_NAME_LENGTH else f"{printable[:_MAX_NAME_LENGTH]}…"


def is_link(place: Path) -> bool:
    """Return whether it is a link, wherever it leads."""
    return stat.S_ISLNK(_mode(place.lstat))


def is_file(place: Path) -> bool:
    """Return whether it is a file, or leads to one."""
    return stat.S_ISREG(_mode(place.stat))


def is_folder(place: Path) -> bool:
    """Return whether it is a folder, or leads to one."""
    return stat.S_ISDIR(_mode(place.stat))


def _mode(stat: Callable[[], os.stat_result]) -> int:
    """Return the mode, 0 for what does not exist, cannot be examined, or has an impossible name."""
    try:
        return stat().st_mode
    except (OSError, ValueError):
        return 0


def resolve_path(place: Path) -> Path:
    """Return where links lead to, in circles too; the root for a name that no file can have."""
    try:
        return Path(os.path.realpath(place))
    except (OSError, ValueError):
        return Path(os.sep)


def read_text(file: Path) -> str:
    """Read the beginning of a file, empty where it cannot be read. Bytes that are no text come as in file names."""
    try:
        return os.fsdecode(_read_beginning(file))
    except (OSError, ValueError):
        return ""


def _read_beginning(file: Path) -> bytes:
    """Return the first bytes of a file. Raises ValueError, and OSError, also for a pipe or device that could block."""
    with open(file, "rb", opener=lambda path, flags: os.open(path, flags | _NO_WAIT)) as opened:
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            raise OSError(f"{file} is no file")
        return opened.read(MAX_READ_BYTES)


def is_too_long(file: Path) -> bool:
    """Return whether the file, or what it leads to, is longer than the part that is read."""
    try:
        return file.stat().st_size > MAX_READ_BYTES
    except (OSError, ValueError):
        return False


def first_line(file: Path) -> str:
    """Return the first line of a file, stripped."""
    return read_text(file).partition("\n")[0].strip()


def subfolders(folder: Path, most: int) -> tuple[list[Path], bool]:
    """Return the folders that are no links, by name, and whether there are more than `most`."""
    try:
        with os.scandir(folder) as entries:
            folders = [Path(entry.path) for entry in islice(entries, most + 1) if entry.is_dir(follow_symlinks=False)]
    except (OSError, ValueError):
        return [], False
    return sorted(folders)[:most], len(folders) > most


def fingerprint(place: Path) -> str:
    """Return the content of a file or the target of a link; empty for nothing."""
    try:
        status = place.lstat()
        if stat.S_ISLNK(status.st_mode):
            return f"link {place.readlink()}"
        if not stat.S_ISREG(status.st_mode):
            return f"kind {stat.S_IFMT(status.st_mode)}"
        digest = hashlib.sha256(_read_beginning(place)).hexdigest()
        rest = f" {status.st_size} {status.st_ctime_ns}" if status.st_size > MAX_READ_BYTES else ""
        return f"{status.st_mode & 0o111} {digest}{rest}"
    except (OSError, ValueError):
        return ""


# Files that include each other; git itself follows ten, nested.
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
# Settings that name files or folders which nothing runs, or which are found in another way.
_FILE_NAMES = """
    include.path includeif.path core.hookspath core.excludesfile core.attributesfile commit.template
    blame.ignorerevsfile diff.orderfile mailmap.file gpg.allowedsignersfile gpg.revocationfile user.signingkey
    submodule.url submodule.branch remote.pushurl remote.push url.insteadof url.pushinsteadof safe.directory
    sendemail.aliasesfile
"""
_NO_PROGRAMS = _DEFAULTS | frozenset(_FILE_NAMES.split())
# What separates words in a value that a shell runs.
_SEPARATORS = re.compile(r"[\s\"'=;|&<>()`$,{}!]+")

GitSetting = tuple[str, str]
GitConfigEntry = tuple[str, str, str, str | None]
"""Section in lower case, subsection, name in lower case, and value, if there is one."""


@dataclass(frozen=True, slots=True)
class GitConfig:
    """The settings of some files and of those that they include; `included` holds the latter, existing or not."""

    settings: tuple[GitSetting, ...]
    included: tuple[Path, ...]


def read_config_file(file: Path) -> tuple[GitSetting, ...]:
    """Return name and value of each setting, as `section.name` in lower case; none where the file cannot be read."""
    return tuple((f"{section}.{name}", value or "") for section, _, name, value in read_entries(file))


def read_entries(file: Path) -> Iterator[GitConfigEntry]:
    """Return each setting with all parts of its name; none where the file cannot be read."""
    return _parse_entries(read_text(file).removeprefix("\ufeff"))


def read_config(files: Iterable[Path]) -> GitConfig:
    """Read all that git would read from these files and those that they include, whatever the condition."""
    settings: list[GitSetting] = []
    queue, visited = list(files), dict[Path, None]()
    given_files = set(queue)
    while queue and len(visited) < _MAX_FILES:
        file = queue.pop(0)
        if file not in visited:
            visited[file] = None
            own_settings = read_config_file(file)
            settings += own_settings
            queue += included_files(own_settings, file)
    return GitConfig(tuple(settings), tuple(path for path in visited if path not in given_files))


def is_default(settings: tuple[GitSetting, ...]) -> bool:
    """Return whether there is nothing but what every new repository has."""
    return all(name in _DEFAULTS for name, _ in settings)


def included_files(settings: tuple[GitSetting, ...], file: Path) -> Iterator[Path]:
    """Return the files that this one includes."""
    for name, value in settings:
        if name in ("include.path", "includeif.path") and value:
            place = file.parent / expand_home(value)
            # So that a file is named in one way, unless it is a link.
            yield resolve_path(place.parent) / place.name


def hook_folders(settings: tuple[GitSetting, ...], top: Path) -> Iterator[Path]:
    """Return the folders of hooks, other than the usual one. `top` is the working tree of the repository."""
    for name, value in settings:
        if name == "core.hookspath" and value:
            yield top / expand_home(value)


def program_files(settings: tuple[GitSetting, ...], top: Path) -> Iterator[Path]:
    """Return files that git would run because a setting names them, existing or not, and scripts that interpreters get.

    The settings that git runs are many, and those that name other files are few. A word without a slash is a file only
    if one exists, and after another word: the first is looked up among the programs of the system.
    """
    for name, value in settings:
        words = filter(None, _SEPARATORS.split(value)) if name not in _NO_PROGRAMS else ()
        for position, word in enumerate(words):
            place = top / expand_home(word)
            if "/" in word or (position > 0 and is_file(place)):
                yield place


def expand_home(value: str) -> Path:
    """Return the path with a leading `~` replaced."""
    try:
        return Path(value).expanduser()
    except RuntimeError:
        return Path(value)  # no such user


def _parse_entries(text: str) -> Iterator[GitConfigEntry]:
    section, subsection, offset = "", "", 0
    while offset < len(text):
        if text[offset] in " \t\r\n":
            offset += 1
        elif head := _SECTION.match(text, offset):
            section, _, dotted_subsection = head[1].lower().partition(".")
            subsection, offset = dotted_subsection if head[2] is None else _ANY_ESCAPED.sub(r"\1", head[2]), head.end()
        elif text[offset] in "#;":
            offset = _line_end(text, offset)
        elif name := _NAME.match(text, offset):
            value, offset = _parse_value(text, name.end())
            yield section, subsection, name[0].lower(), value
        else:
            end = _line_end(text, offset)
            yield section, subsection, "?", text[offset:end].strip()
            offset = end


def _line_end(text: str, offset: int) -> int:
    end = text.find("\n", offset)
    return len(text) if end < 0 else end


def _parse_value(text: str, offset: int) -> tuple[str | None, int]:
    """Parse a value up to the end of its line, which may go on in the next; return it and where it ends."""
    while offset < len(text) and text[offset] in " \t\r":
        offset += 1
    if text[offset : offset + 1] != "=":
        return None, _line_end(text, offset)
    pieces, kept_length, is_quoted, offset = list[str](), 0, False, offset + 1
    while offset < len(text) and text[offset] != "\n":
        char = text[offset]
        if char == "\\":
            offset += 1
            more = text[offset : offset + 1]
            pieces += [] if more == "\n" else [_ESCAPED.get(more, more)]
            kept_length = len(pieces) if more != "\n" else kept_length
        elif char == '"':
            is_quoted, kept_length = not is_quoted, len(pieces)
        elif char in "#;" and not is_quoted:
            offset = _line_end(text, offset)
            break
        elif pieces or is_quoted or char not in " \t\r":
            pieces.append(char)
            kept_length = len(pieces) if is_quoted or char not in " \t\r" else kept_length
        offset += 1
    return "".join(pieces[:kept_length]), offset
