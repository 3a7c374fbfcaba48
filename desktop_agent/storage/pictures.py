"""Pictures as files, named by the SHA-256 of their bytes."""

import asyncio
import hashlib
from pathlib import Path

from desktop_agent.storage.files import failure_of, write_atomically
from desktop_agent.storage.paths import make_private
from desktop_agent.vocabulary.errors import ImageRefused
from desktop_agent.vocabulary.images import MediaType, StoredSource

_ENDINGS: dict[MediaType, str] = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
}


class PictureFiles:
    """The folder `pictures` inside the data folder: `pictures/ab/abcd….png`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "pictures"

    async def put(self, data: bytes, media_type: MediaType, width: int, height: int) -> StoredSource:
        """Keep a picture; twice the same is one file. Raises StorageFailed."""
        source = StoredSource(
            digest=hashlib.sha256(data).hexdigest(), media_type=media_type, size=len(data), width=width, height=height
        )
        await asyncio.to_thread(self.keep, source.digest, media_type, data)
        return source

    async def get(self, source: StoredSource) -> bytes:
        """The bytes, checked against their digest. Raises ImageRefused when they are missing or damaged."""
        return await asyncio.to_thread(self._read, source)

    def path_of(self, source: StoredSource) -> Path:
        """Where the picture lies."""
        return self.place(source.digest, source.media_type)

    def place(self, digest: str, media_type: MediaType) -> Path:
        """Where a picture of this digest and type lies."""
        return self._folder / digest[:2] / f"{digest}.{_ENDINGS[media_type]}"

    def keep(self, digest: str, media_type: MediaType, data: bytes) -> None:
        """Write the file in this thread, unless it is there and whole. Raises StorageFailed."""
        path = self.place(digest, media_type)
        try:
            if path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == digest:
                return
            make_private(path.parent)
            write_atomically(path, data)
        except OSError as error:
            raise failure_of(error, path) from error

    def remove(self, digest: str, media_type: MediaType) -> None:
        """Delete the file in this thread, if it is there. Raises OSError."""
        self.place(digest, media_type).unlink(missing_ok=True)

    def _read(self, source: StoredSource) -> bytes:
        path = self.path_of(source)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise ImageRefused(
                "A picture of this conversation is missing from the data folder.",
                "Attach it again.",
                detail=f"{error.strerror}: {path}",
            ) from error
        if hashlib.sha256(data).hexdigest() != source.digest:
            raise ImageRefused(
                "A picture of this conversation was changed or damaged on the disk.",
                "Attach it again.",
                detail=str(path),
            )
        return data
