"""Settings of git, as far as they say which other files it takes settings from and runs programs out of.

The form is that of git-config(1), "CONFIGURATION FILE". A line that is not understood says something.
"""

import re
from collections.abc import Iterator
from pathlib import Path

_LONGEST = 1_000_000
_SECTION = re.compile(r'\s*\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]')
_VALUE = re.compile(r"\s*([A-Za-z][\w-]*)\s*(?:=\s*(.*))?$")
_HARMLESS_NAMES = """
    core.repositoryformatversion core.filemode core.bare core.worktree core.logallrefupdates core.ignorecase
    core.precomposeunicode core.symlinks remote.url remote.fetch branch.remote branch.merge user.name user.email
"""
_HARMLESS = frozenset(_HARMLESS_NAMES.split())

Setting = tuple[str, str]


def settings_in(file: Path) -> tuple[Setting, ...]:
    """Name and value of each, as `section.name` in lower case; nothing where the file cannot be read."""
    try:
        with file.open("rb") as opened:
            text = opened.read(_LONGEST).decode("utf-8", "replace")
    except OSError:
        return ()
    return tuple(_settings(text))


def is_plain(settings: tuple[Setting, ...]) -> bool:
    """Whether there is nothing but what every new repository has."""
    return all(name in _HARMLESS for name, _ in settings)


def included(settings: tuple[Setting, ...], file: Path) -> Iterator[Path]:
    """Files that this one takes more settings from."""
    for name, value in settings:
        if name in ("include.path", "includeif.path") and value:
            yield file.parent / _from_home(value)


def hook_folders(settings: tuple[Setting, ...], top: Path) -> Iterator[Path]:
    """Where hooks are, other than in the usual place. `top` is the folder that the repository is of."""
    for name, value in settings:
        if name == "core.hookspath" and value:
            yield top / _from_home(value)


def _from_home(value: str) -> Path:
    try:
        return Path(value).expanduser()
    except RuntimeError:
        return Path(value)  # of nobody who is here


def _settings(text: str) -> Iterator[Setting]:
    section = ""
    for line in text.replace("\\\n", "").splitlines():
        rest = line
        if head := _SECTION.match(line):
            section, rest = head[1].lower().partition(".")[0], line[head.end() :]
        rest = rest.strip()
        if not rest or rest.startswith(("#", ";")):
            continue
        said = _VALUE.match(rest)
        yield (f"{section}.{said[1].lower()}", _unquoted(said[2] or "")) if said else (f"{section}.?", rest)


def _unquoted(value: str) -> str:
    value = value.strip()
    if value.startswith('"'):
        return value[1:].partition('"')[0]
    return re.split(r"\s[#;]", value, maxsplit=1)[0].strip()
