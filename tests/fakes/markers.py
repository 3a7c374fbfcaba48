"""Searches the bytes of files for a text: in UTF-8, in UTF-16, and in data that zlib compressed."""

import re
import zlib
from collections.abc import Iterable
from pathlib import Path

# The first two bytes that zlib writes with a window of 32 KB, at each of its levels.
_PACKED = re.compile(rb"\x78[\x01\x5e\x9c\xda]")
_MOST = 1 << 20


def files_with(marker: str, folders: Iterable[Path], leave_out: Iterable[Path] = ()) -> list[Path]:
    """The files and folders below these folders that have the marker in their bytes or in their names."""
    skipped = tuple(leave_out)
    paths: list[Path] = []
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if any(path.is_relative_to(other) for other in skipped):
                continue
            if marker in path.name or (path.is_file() and _has(path.read_bytes(), marker)):
                paths.append(path)
    return paths


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
