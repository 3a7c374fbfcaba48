"""Opens other programs' files only to read them: bounded, never through a link inside their folder, never blocking."""

import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from pydantic_core import from_json

from desktop_agent.types.errors import Sentence

_READ_ONLY = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_SURROGATES = re.compile(
    rb"(\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
"""An escaped backslash or a whole character in two halves, which stay; or half a character."""


class NotReadable(Exception):
    """The file is not there, not an ordinary one, too large, or holds something else; `reason` says which."""

    def __init__(self, template: str, **values: str) -> None:
        self.reason = Sentence(template, values)
        super().__init__(str(self.reason))


def open_file(path: Path) -> BinaryIO:
    """Open an ordinary file. A link, a device, a pipe or a folder is refused. Raises NotReadable."""
    if not hasattr(os, "O_NOFOLLOW") and path.is_symlink():
        raise NotReadable("it is a link")
    try:
        descriptor = os.open(path, _READ_ONLY)
    except (OSError, ValueError) as error:
        why: str | None = getattr(error, "strerror", None)
        raise (NotReadable("{why}", why=why) if why else NotReadable("it cannot be opened")) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotReadable("it is not an ordinary file")
    return os.fdopen(descriptor, "rb")


def sorted_entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return what is in a folder, by name; nothing, if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def locate(roots: Iterable[Path], conversation_id: str, suffixes: tuple[str, ...]) -> tuple[Path, Path]:
    """Return the file that an id made by `file_id` names, and its root. No link is followed. Raises NotReadable."""
    parts = conversation_id.split("/")
    if not all(map(_is_plain_name, parts)):
        raise NotReadable("its id is not the name of a file")
    for root in roots:
        stem = root.joinpath(*parts)
        if any(folder.is_symlink() for folder in stem.parents[: len(parts) - 1]):
            continue
        for suffix in suffixes:
            path = stem.with_name(stem.name + suffix)
            if os.path.lexists(path):
                return path, root
    raise NotReadable("it is not there any more")


def _is_plain_name(part: str) -> bool:
    return part not in {"", ".", ".."} and not any(mark in part for mark in (os.sep, ":", "\0"))


def file_id(root: Path, path: Path, suffix: str) -> str:
    """Return the place of a file below the root, with slashes and without its suffix."""
    return path.relative_to(root).as_posix().removesuffix(suffix)


def parse_json(data: bytes | str) -> Any:
    """Return the value, or None for what is no JSON, or deeper than 200. Half characters become question marks."""
    with suppress(ValueError):
        return from_json(data, allow_inf_nan=False)
    raw = data if isinstance(data, bytes) else data.encode("utf-8", "replace")
    repaired = raw.decode("utf-8", "replace").encode()
    repaired = _SURROGATES.sub(lambda match: match[1] or b"?", repaired)
    with suppress(ValueError):
        return from_json(repaired, allow_inf_nan=False)
    return None


def read_tail(file: BinaryIO, size: int) -> list[bytes]:
    """Return the whole lines of the last `size` bytes; those that are in the head too, if the file is short."""
    end = os.fstat(file.fileno()).st_size
    start = max(0, end - size)
    file.seek(start)
    lines = file.read(end - start).split(b"\n")
    return lines[1:] if start else lines


def modified_at(file: BinaryIO) -> datetime:
    """Return when the file was changed last."""
    return datetime.fromtimestamp(os.fstat(file.fileno()).st_mtime, UTC)


def read_head_objects(file: BinaryIO, size: int) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of the lines that lie within the first bytes, passing over everything else."""
    file.seek(0)
    while size > 0:
        line = file.readline(size)
        if not line:
            return
        size -= len(line)
        value = parse_json(line)
        if isinstance(value, dict):
            yield value
