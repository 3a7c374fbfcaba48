"""Bytes as files, named by their SHA-256: what files of a workspace held before calls changed them."""

import asyncio
import hashlib
import re
import time
from collections.abc import Container
from contextlib import suppress
from pathlib import Path

from desktop_agent.storage.files import file_error, sync_folder, write_atomically
from desktop_agent.storage.paths import make_private_folder
from desktop_agent.vocabulary.errors import Sentence, StorageFailed

_DIGEST = re.compile(r"[0-9a-f]{64}")
# What a process that died left half-written. Younger ones may belong to one that lives.
_UNFINISHED_SECONDS = 24 * 60 * 60


class BlobFiles:
    """The folder `saved-files` inside the data folder: `saved-files/ab/abcd…`. All methods raise StorageFailed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "saved-files"

    async def put(self, data: bytes) -> str:
        """Keep bytes; durable when it returns. Twice the same is one file. The digest, in hexadecimal."""
        return await asyncio.to_thread(self._write_blob, data)

    async def get(self, digest: str) -> bytes:
        """The bytes, checked against their digest."""
        return await asyncio.to_thread(self._read, digest)

    def has(self, digest: str) -> bool:
        """Whether there is such a file; not whether it is whole."""
        return self._path_of(digest).is_file()

    def remove_all_but(self, needed: Container[str]) -> None:
        """Delete every other file. One that cannot be deleted now stays until the next time."""
        with suppress(OSError):
            for path in list(self._folder.glob("??/*")):
                if _DIGEST.fullmatch(path.name):
                    is_rubbish = path.name not in needed
                else:
                    is_rubbish = time.time() - path.stat().st_mtime > _UNFINISHED_SECONDS
                if is_rubbish:
                    with suppress(OSError):
                        path.unlink()

    def _path_of(self, digest: str) -> Path:
        return self._folder / digest[:2] / digest

    def _write_blob(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        path = self._path_of(digest)
        try:
            if not _has_digest(path, digest):
                self._make_folder(path.parent)
                write_atomically(path, data)
        except OSError as error:
            raise file_error(error, path) from error
        return digest

    def _make_folder(self, folder: Path) -> None:
        if not folder.is_dir():
            make_private_folder(folder, self._folder.parent)
            # A file whose folder does not last does not last either.
            for above in (self._folder, self._folder.parent):
                sync_folder(above)

    def _read(self, digest: str) -> bytes:
        path = self._path_of(digest)
        try:
            data = path.read_bytes()
        except FileNotFoundError as error:
            raise _lost_file_error("A saved file is missing from the data folder.", path) from error
        except OSError as error:
            raise file_error(error, path) from error
        if hashlib.sha256(data).hexdigest() != digest:
            raise _lost_file_error("A saved file was changed or damaged on the disk.", path)
        return data


def _has_digest(path: Path, digest: str) -> bool:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == digest
    except FileNotFoundError:
        return False


def _lost_file_error(what: str, path: Path) -> StorageFailed:
    return StorageFailed(Sentence(what), "Put the file back by hand from a copy of your own.", detail=str(path))
