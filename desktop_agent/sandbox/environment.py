"""What a command is given: its environment, and cleaned copies of the person's settings."""

import json
import os
import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time
from functools import cache
from pathlib import Path
from typing import Any, cast

from desktop_agent.sandbox.git_config import expand_home, is_too_long, read_entries, read_text

_PROXY_VARIABLES = "http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY all_proxy ALL_PROXY"
_LOCALE = re.compile(r"LC_[A-Z]+")
PROXY_PORT = 3128
"""Where a command that is alone in its network has its proxy, on 127.0.0.1."""
_OWN_HOSTS = ("localhost", "127.0.0.1", "::1")


@cache
def _tables() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def command_environment(
    parent: Mapping[str, str], temporary: Path, *, network: bool, is_read_only: bool = False
) -> dict[str, str]:
    """Return the variables of a command; temporary files and caches go to `temporary`.

    If the command `is_read_only`, also the caches that programs otherwise keep in the workspace.
    """
    tables = _tables()
    passed = tables["passed"].split()
    inherited = {name: value for name, value in parent.items() if name in passed or _LOCALE.fullmatch(name)}
    if network:
        # An address with a name and a password in it is a secret.
        proxies = _PROXY_VARIABLES.split()
        inherited |= {name: value for name, value in parent.items() if name in proxies and "@" not in value}
    else:
        inherited |= tables["without_network"]
    inherited.setdefault("PATH", os.defpath)
    caches = temporary / "cache"
    variables = inherited | tables["fixed"] | _shared_caches(parent)
    variables |= {"TMPDIR": str(temporary), "XDG_CACHE_HOME": str(caches), "npm_config_cache": str(caches / "npm")}
    if is_read_only:
        variables |= {"RUFF_CACHE_DIR": str(caches / "ruff"), "MYPY_CACHE_DIR": str(caches / "mypy")}
        # `python -c` imports no module of the workspace, whatever its name.
        variables |= {"GIT_OPTIONAL_LOCKS": "0", "PYTHONSAFEPATH": "1"}
    return variables


def windows_environment(parent: Mapping[str, str], temporary: Path) -> dict[str, str]:
    """Return the variables of a command on Windows, where nothing closes the network to it."""
    passed = _tables()["passed_on_windows"].split()
    windows_variables = {name: value for name, value in parent.items() if name.upper() in passed}
    folders = {"TEMP": str(temporary), "TMP": str(temporary)}
    return command_environment(parent, temporary, network=True) | windows_variables | folders


def proxy_environment(hosts: Collection[str]) -> dict[str, str]:
    """Return the variables by which programs find the proxy to these hosts; local servers need no proxy."""
    proxy, direct = f"http://127.0.0.1:{PROXY_PORT}", ",".join(host for host in _OWN_HOSTS if host not in hosts)
    names = {name: direct if "no" in name.lower() else proxy for name in _PROXY_VARIABLES.split()}
    # From version 22.21 on Node.js heeds the others if this is set.
    return {**names, "NODE_USE_ENV_PROXY": "1"}


def _shared_caches(parent: Mapping[str, str]) -> dict[str, str]:
    home = parent.get("XDG_CACHE_HOME") or (f"{parent['HOME']}/.cache" if parent.get("HOME") else "")
    caches = {name: Path(home, folder) for name, folder in _tables()["read_caches"].items() if home}
    return {name: str(place) for name, place in caches.items() if place.is_dir()}


# Files that git reads through includes; git itself follows ten, nested.
_MAX_FILES = 100
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\b": "\\b"})
# What may be a token, in an address.
_TOKEN = re.compile(r"(?<![A-Za-z\d])(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z\d]{16,}")
# What may be a setting that was commented out, or a token; a line of dashes is neither.
_SECRET_IN_COMMENT = re.compile(r"#[^\n]*(?:[=:]|\w[\w-]{14,}\w)")
_RELATIVE = re.compile(r"^(gitdir(?:/i)?:)\./")

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CleanedConfig:
    """What is passed on of a settings file; `is_whole` if there is nothing else in it."""

    text: str
    is_whole: bool


class AllowedKeys:
    """Keys of texts, numbers and lists of them, one a word; `*` is any one part. A table in a list has keys too."""

    def __init__(self, keys: str) -> None:
        self._patterns = [tuple(key.split(".")) for key in keys.split()]

    def allows(self, key: Key, value: object) -> bool:
        """Return whether the value of this key is passed on."""
        return not any(map(_may_hold_secret, (*key, str(value)))) and any(
            len(pattern) == len(key) and all(part in ("*", actual) for part, actual in zip(pattern, key, strict=True))
            for pattern in self._patterns
        )


def _may_hold_secret(value: str) -> bool:
    """Return whether there is an address with a name, a query, or what looks like a token."""
    # `git@` is no secret. A password may have anything in it, also a slash.
    address = value.replace("://git@", "://").partition("://")[2]
    return bool("?" in address or "@" in address or _TOKEN.search(address))


def clean_config(file: Path, form: str, allowed_keys: AllowedKeys) -> CleanedConfig | None:
    """Clean the text of a settings file. None where it cannot be read."""
    text = read_text(file)
    if is_too_long(file):
        return None
    if form == "lines":
        lines = [
            line
            for line in text.splitlines()
            if "=" in line and allowed_keys.allows((line.partition("=")[0].strip(),), line)
        ]
        return CleanedConfig("".join(f"{line}\n" for line in lines), lines == text.splitlines())
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
    part: dict[str, Any] = _allowed_part(tables, allowed_keys, ()) or {}
    is_whole = part == tables and not _SECRET_IN_COMMENT.search(text)
    return CleanedConfig("".join(f"{_toml(key)} = {_toml(value)}\n" for key, value in part.items()), is_whole)


def _allowed_part(value: Any, allowed_keys: AllowedKeys, key: Key) -> Any:
    """Return what is passed on of a value; None where that is nothing."""
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        parts = {name: _allowed_part(item, allowed_keys, (*key, name)) for name, item in table.items()}
        return {name: part for name, part in parts.items() if part is not None} or None
    if isinstance(value, list):
        if _may_hold_secret(str(cast("list[Any]", value))):
            # The whole list is dropped: part of a table, or of words that belong together, could be an error.
            return None
        parts = [_allowed_part(item, allowed_keys, key) for item in cast("list[Any]", value)]
        value = [part for part in parts if part is not None]
        if value:
            return value
    return value if allowed_keys.allows(key, value) else None


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        return "{" + ", ".join(f"{_toml(key)} = {_toml(item)}" for key, item in table.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, cast("list[Any]", value))) + "]"
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float):
        return repr(value)
    # TOML wants this one escaped, JSON does not.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


class GitConfigCopies:
    """Copies of git's settings, each with copies of what it includes.

    `real_of` returns the real path of a file, or None where it must not be read.
    """

    def __init__(self, folder: Path, allowed_keys: AllowedKeys, real_of: Callable[[Path], Path | None]) -> None:
        self._folder, self._allowed_keys, self._real_of = folder, allowed_keys, real_of
        self._copies = dict[Path, Path]()

    def copy(self, files: Sequence[Path]) -> Path:
        """Make one copy of several files, later ones counting more."""
        place = self._folder / "gitconfig"
        copies = (copy for file in files if (copy := self._copy_of(file)) is not None)
        place.write_text("".join(f"[include]\n\tpath = {_quoted(str(path))}\n" for path in copies))
        return place

    def _copy_of(self, file: Path) -> Path | None:
        real = self._real_of(file)
        if real is not None and real not in self._copies and len(self._copies) < _MAX_FILES:
            # Recorded before it is written: it may include itself.
            self._copies[real] = self._folder / f"gitconfig-{len(self._copies)}"
            self._copies[real].write_text("".join(self._allowed_lines(file, real)), errors="surrogateescape")
        return None if real is None else self._copies.get(real)

    def _allowed_lines(self, file: Path, real: Path) -> Iterator[str]:
        for section, subsection, name, value in read_entries(real):
            if name == "path" and section in ("include", "includeif"):
                is_safe = not _may_hold_secret(subsection)
                copy = self._copy_of(file.parent / expand_home(value)) if value and is_safe else None
                if copy is not None:
                    condition = _RELATIVE.sub(lambda start: f"{start[1]}{real.parent}/", subsection)
                    yield f"{_section_header(section, condition)}\tpath = {_quoted(str(copy))}\n"
            elif self._allowed_keys.allows((section, *([subsection] if subsection else []), name), value):
                yield _section_header(section, subsection) + (
                    f"\t{name}\n" if value is None else f"\t{name} = {_quoted(value)}\n"
                )


def _section_header(section: str, subsection: str) -> str:
    return f"[{section} {_quoted(subsection)}]\n" if subsection else f"[{section}]\n"


def _quoted(value: str) -> str:
    return f'"{value.translate(_ESCAPES)}"'
