"""Pictures as files, named by the SHA-256 of their bytes."""

import asyncio
import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path

from desktop_agent.storage.files import file_error, write_atomically
from desktop_agent.storage.paths import make_private_folder
from desktop_agent.vocabulary.errors import ImageRefused, Sentence, StorageFailed
from desktop_agent.vocabulary.images import MediaType, StoredSource

_EXTENSIONS: dict[MediaType, str] = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
}
# Seconds for which a picture that nothing uses yet is kept after it was put.
YOUNG_SECONDS = 24 * 60 * 60


class PictureFiles:
    """The folder `pictures` inside the data folder: `pictures/ab/abcd….png`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "pictures"

    async def put(self, data: bytes, media_type: MediaType, width: int, height: int) -> StoredSource:
        """Keep a picture; twice the same is one file. Raises StorageFailed."""
        source = StoredSource(
            digest=hashlib.sha256(data).hexdigest(), media_type=media_type, size=len(data), width=width, height=height
        )
        await asyncio.to_thread(self.write, source.digest, media_type, data)
        return source

    async def get(self, source: StoredSource) -> bytes:
        """The bytes, checked against their digest.

        Raises ImageRefused when they are missing or damaged, StorageFailed when they cannot be read now.
        """
        return await asyncio.to_thread(self._read, source)

    def path_of(self, source: StoredSource) -> Path:
        """Where the picture lies."""
        return self.path_for(source.digest, source.media_type)

    def path_for(self, digest: str, media_type: MediaType) -> Path:
        """Where a picture of this digest and type lies."""
        return self._folder / digest[:2] / f"{digest}.{_EXTENSIONS[media_type]}"

    def write(self, digest: str, media_type: MediaType, data: bytes) -> None:
        """Write the file in this thread, unless it is there and whole. It is young then. Raises StorageFailed."""
        path = self.path_for(digest, media_type)
        try:
            with suppress(FileNotFoundError):
                # First: whoever clears away what nothing uses must not take what is about to be used.
                os.utime(path)
                if hashlib.sha256(path.read_bytes()).hexdigest() == digest:
                    return
            make_private_folder(path.parent, self._folder.parent)
            write_atomically(path, data)
        except OSError as error:
            raise file_error(error, path) from error

    def remove_old(self, digest: str, media_type: MediaType) -> bool:
        """Delete the file in this thread, unless it is young: it may be on its way into a message.

        Whether it is gone. Raises OSError.
        """
        path = self.path_for(digest, media_type)
        with suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime < YOUNG_SECONDS:
                return False
            path.unlink()
        return True

    def _read(self, source: StoredSource) -> bytes:
        path = self.path_of(source)
        try:
            data = path.read_bytes()
        except FileNotFoundError as error:
            raise ImageRefused(
                "A picture of this conversation is missing from the data folder.",
                "Attach it again.",
                detail=f"{error.strerror}: {path}",
            ) from error
        except OSError as error:
            reason = error.strerror or type(error).__name__
            sentence = Sentence("A picture of this conversation cannot be read now: {reason}.", {"reason": reason})
            raise StorageFailed(sentence, "Try again later.", detail=str(path)) from error
        if hashlib.sha256(data).hexdigest() != source.digest:
            raise ImageRefused(
                "A picture of this conversation was changed or damaged on the disk.",
                "Attach it again.",
                detail=str(path),
            )
        return data
