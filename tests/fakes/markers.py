"""Looks for text in files, byte by byte: as UTF-8, as UTF-16, and in whatever zlib packed."""

import re
import zlib
from collections.abc import Iterable
from pathlib import Path

# The first two bytes of what zlib writes with a window of 32 KB, at each of its levels.
_PACKED = re.compile(rb"\x78[\x01\x5e\x9c\xda]")
_MOST = 1 << 20


def files_with(marker: str, folders: Iterable[Path], leave_out: Iterable[Path] = ()) -> list[Path]:
    """The files below the folders that have the marker somewhere, or in whose names it is."""
    skipped = tuple(leave_out)
    found: list[Path] = []
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if any(path.is_relative_to(other) for other in skipped):
                continue
            if marker in path.name or (path.is_file() and _has(path.read_bytes(), marker)):
                found.append(path)
    return found


def _has(data: bytes, marker: str) -> bool:
    forms = [marker.encode(code) for code in ("utf-8", "utf-16-le", "utf-16-be")]
    return any(form in text for text in (data, *_unpacked(data)) for form in forms)


def _unpacked(data: bytes) -> Iterable[bytes]:
    for start in _PACKED.finditer(data):
        stream = zlib.decompressobj()
        try:
            yield stream.decompress(data[start.start() :], _MOST)
        except zlib.error:
            continue
