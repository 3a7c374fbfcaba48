"""Copies of the person's settings for confined commands: of each file only what known_places.toml lists."""

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, time
from pathlib import Path
from typing import Any, cast

from desktop_agent.tools.commands.aftermath.git_settings import expand_home, read_entries
from desktop_agent.tools.commands.aftermath.places import is_too_long, read_text

# Files that git takes from each other; it itself follows ten, one in the other.
_MAX_FILES = 100
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\b": "\\b"})
# What may be a token, in an address.
_TOKEN = re.compile(r"(?<![A-Za-z\d])(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z\d]{16,}")
# What was a setting once, or may be a token; a line drawn with dashes is none.
_SECRET_IN_COMMENT = re.compile(r"#[^\n]*(?:[=:]|\w[\w-]{14,}\w)")
_RELATIVE = re.compile(r"^(gitdir(?:/i)?:)\./")

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CleanedSettings:
    """What is handed over of a file, and whether the file itself could be, as nothing else is in it."""

    text: str
    is_whole: bool


class AllowedKeys:
    """Keys of texts, numbers and lists of them, one a word; `*` is any one part. Of a table in a list: its keys too."""

    def __init__(self, keys: str) -> None:
        self._patterns = [tuple(key.split(".")) for key in keys.split()]

    def allows(self, key: Key, value: object) -> bool:
        """Whether this is handed over."""
        return not any(map(_may_hold_secret, (*key, str(value)))) and any(
            len(pattern) == len(key) and all(part in ("*", own) for part, own in zip(pattern, key, strict=True))
            for pattern in self._patterns
        )


def _may_hold_secret(value: str) -> bool:
    """Whether there is an address with a name, a query, or what looks like a token."""
    # `git@` is no secret. A password may have anything in it, also a slash.
    address = value.replace("://git@", "://").partition("://")[2]
    return bool("?" in address or "@" in address or _TOKEN.search(address))


def clean_settings(file: Path, form: str, listed: AllowedKeys) -> CleanedSettings | None:
    """Clean what a file says. None where it cannot be read."""
    text = read_text(file)
    if is_too_long(file):
        return None
    if form == "lines":
        kept = [
            line for line in text.splitlines() if "=" in line and listed.allows((line.partition("=")[0].strip(),), line)
        ]
        return CleanedSettings("".join(f"{line}\n" for line in kept), kept == text.splitlines())
    try:
        said = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
    part: dict[str, Any] = _allowed_part(said, listed, ()) or {}
    is_whole = part == said and not _SECRET_IN_COMMENT.search(text)
    return CleanedSettings("".join(f"{_toml(key)} = {_toml(value)}\n" for key, value in part.items()), is_whole)


def _allowed_part(value: Any, listed: AllowedKeys, key: Key) -> Any:
    """What is handed over of a value; None where that is nothing."""
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        parts = {name: _allowed_part(below, listed, (*key, name)) for name, below in table.items()}
        return {name: part for name, part in parts.items() if part is not None} or None
    if isinstance(value, list):
        if _may_hold_secret(str(cast("list[Any]", value))):
            # All of it: what is left of a table or of words that belong together could be an error.
            return None
        each = [_allowed_part(below, listed, key) for below in cast("list[Any]", value)]
        value = [part for part in each if part is not None]
        if value:
            return value
    return value if listed.allows(key, value) else None


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        return "{" + ", ".join(f"{_toml(key)} = {_toml(each)}" for key, each in table.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, cast("list[Any]", value))) + "]"
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float):
        return repr(value)
    # TOML wants this one escaped, JSON does not.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


class GitSettingsCopies:
    """Copies of git's settings, each with copies of what it includes.

    `real_of` leads to the file itself, or to none where it must not be read.
    """

    def __init__(self, folder: Path, listed: AllowedKeys, real_of: Callable[[Path], Path | None]) -> None:
        self._folder, self._listed, self._real_of = folder, listed, real_of
        self._copies = dict[Path, Path]()

    def copy(self, files: Sequence[Path]) -> Path:
        """One copy of several files, later ones counting more."""
        place = self._folder / "gitconfig"
        place.write_text("".join(f"[include]\n\tpath = {_quoted(str(each))}\n" for each in self._of_each(files)))
        return place

    def _of_each(self, files: Sequence[Path]) -> Iterator[Path]:
        return (copy for file in files if (copy := self._copy_of(file)) is not None)

    def _copy_of(self, file: Path) -> Path | None:
        real = self._real_of(file)
        if real is not None and real not in self._copies and len(self._copies) < _MAX_FILES:
            # Known before it is made: it may include itself.
            self._copies[real] = self._folder / f"gitconfig-{len(self._copies)}"
            self._copies[real].write_text("".join(self._kept(file, real)), errors="surrogateescape")
        return None if real is None else self._copies.get(real)

    def _kept(self, file: Path, real: Path) -> Iterator[str]:
        for section, below, name, value in read_entries(real):
            if name == "path" and section in ("include", "includeif"):
                copy = (
                    self._copy_of(file.parent / expand_home(value)) if value and not _may_hold_secret(below) else None
                )
                if copy is not None:
                    condition = _RELATIVE.sub(lambda start: f"{start[1]}{real.parent}/", below)
                    yield f"{_section_header(section, condition)}\tpath = {_quoted(str(copy))}\n"
            elif self._listed.allows((section, *([below] if below else []), name), value):
                yield _section_header(section, below) + (
                    f"\t{name}\n" if value is None else f"\t{name} = {_quoted(value)}\n"
                )


def _section_header(section: str, below: str) -> str:
    return f"[{section} {_quoted(below)}]\n" if below else f"[{section}]\n"


def _quoted(value: str) -> str:
    return f'"{value.translate(_ESCAPES)}"'
