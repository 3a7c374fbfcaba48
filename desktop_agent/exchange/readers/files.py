"""Opens other programs' files only to read them: bounded, never through a link inside their folder, never blocking."""

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from pydantic_core import from_json

from desktop_agent.exchange.import_report import ImportReport, Omission
from desktop_agent.exchange.readers.reader import FoundConversation, Limits, NotReadable

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


def walk_files(
    root: Path, depth: int, wanted: Callable[[str], object], limits: Limits, report: ImportReport
) -> Iterator[Path]:
    """Yield the files with wanted names at most `depth` folders below the root. The root may be a link."""
    count = 0
    pending = [(root, depth)]
    while pending:
        folder, levels = pending.pop()
        for entry in sorted_entries(folder):
            count += 1
            if count > limits.files:
                report.omit(Omission.TOO_MANY)
                return
            if entry.is_symlink():
                report.omit(Omission.LINK)
            elif entry.is_dir(follow_symlinks=False):
                if levels:
                    pending.append((Path(entry.path), levels - 1))
            elif wanted(entry.name):
                limits.pause()
                yield Path(entry.path)


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
    if any(part in {"", ".", ".."} or os.sep in part or ":" in part or "\0" in part for part in parts):
        raise NotReadable("its id is not the name of a file")
    for root in roots:
        folders = [root.joinpath(*parts[:depth]) for depth in range(1, len(parts))]
        if any(folder.is_symlink() for folder in folders):
            continue
        for suffix in suffixes:
            path = root.joinpath(*parts[:-1], parts[-1] + suffix)
            if os.path.lexists(path):
                return path, root
    raise NotReadable("it is not there any more")


def file_id(root: Path, path: Path, suffix: str) -> str:
    """Return the place of a file below the root, with slashes and without its suffix."""
    return path.relative_to(root).as_posix().removesuffix(suffix)


def within_size(paths: Iterable[Path], size: int, report: ImportReport) -> Iterator[Path]:
    """Yield files until all together are larger than a size in bytes; then the rest is counted and left out."""
    for path in paths:
        with suppress(OSError):
            size -= path.lstat().st_size
        if size < 0:
            report.omit(Omission.TOO_LARGE)
            return
        yield path


def read_lines(file: BinaryIO, limits: Limits, report: ImportReport) -> Iterator[bytes]:
    """Yield the lines that are there now, stripped. Longer ones, and what is beyond the limit, are skipped."""
    size = os.fstat(file.fileno()).st_size
    if size > limits.file:
        report.omit(Omission.TOO_LARGE)
    remaining = min(size, limits.file)
    while remaining > 0:
        limits.pause()
        line = file.readline(min(limits.line, remaining) + 1)
        if not line:
            return
        remaining -= len(line)
        if len(line) <= limits.line or line.endswith(b"\n"):
            if stripped := line.strip():
                yield stripped
            continue
        report.omit(Omission.LONG_LINE)
        while remaining > 0 and line and not line.endswith(b"\n"):
            line = file.readline(min(1_000_000, remaining))
            remaining -= len(line)


def read_objects(file: BinaryIO, limits: Limits, report: ImportReport) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a file with one on each line."""
    for number, line in enumerate(read_lines(file, limits, report)):
        if number >= limits.entries:
            report.omit(Omission.TOO_MANY)
            return
        value = parse_json(line)
        if isinstance(value, dict):
            yield value
        else:
            report.omit(Omission.BAD_LINE)


def read_document(path: Path, limits: Limits) -> Any:
    """Return the JSON of a whole file. Raises NotReadable."""
    limits.pause()
    with open_file(path) as file:
        if os.fstat(file.fileno()).st_size > limits.document:
            raise NotReadable("it is too large")
        value = parse_json(file.read(limits.document))
    if value is None:
        raise NotReadable("it holds no JSON, or is nested too deep")
    return value


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


def describe_files(
    files: Iterable[tuple[str, Path]],
    describe: Callable[[str, BinaryIO, datetime], FoundConversation | None],
    report: ImportReport,
) -> Iterator[FoundConversation]:
    """Yield what is found in each file, given with its id. An id counts once; what cannot be read is counted.

    `describe` gets the id, the file, and when it was changed last.
    """
    seen: set[str] = set()
    for conversation_id, path in files:
        if conversation_id in seen:
            continue
        seen.add(conversation_id)
        try:
            with open_file(path) as file:
                # Before it is read: what is written meanwhile counts as a change.
                status = os.fstat(file.fileno())
                conversation = describe(conversation_id, file, modified_at(file))
        except (NotReadable, OSError):
            report.omit(Omission.UNREADABLE_FILE)
            continue
        if conversation is not None:
            yield replace(conversation, file_state=f"{status.st_ino}-{status.st_size}-{status.st_mtime_ns}")


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
