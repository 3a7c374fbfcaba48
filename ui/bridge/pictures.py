"""Pictures between the screens and the picture files."""

from pathlib import Path

from desktop_agent.conversation.picture_intake import ImportedPicture, import_picture_async
from desktop_agent.storage.pictures import PictureFiles
from desktop_agent.vocabulary.blocks import Image
from desktop_agent.vocabulary.errors import ImageRefused
from desktop_agent.vocabulary.images import StoredSource


class PictureStore:
    """Takes pictures in, keeps them, and says where they lie."""

    def __init__(self, files: PictureFiles) -> None:
        self._files = files

    async def take(self, data: bytes, name: str) -> ImportedPicture:
        """Checked, freed of metadata and scaled. Raises ImageRefused."""
        return await import_picture_async(data, name)

    async def keep(self, picture: ImportedPicture, name: str) -> Image:
        """As a block for a message. Raises StorageFailed."""
        source = await self._files.put(picture.data, picture.media_type, picture.width, picture.height)
        return Image(source=source, name=name)

    async def reload(self, image: Image) -> ImportedPicture:
        """A kept picture as it was taken in.

        Raises ImageRefused when its file is gone or damaged, StorageFailed when it cannot be read now.
        """
        source = image.source
        if not isinstance(source, StoredSource):
            raise ImageRefused.unreadable(image.name or "")
        return ImportedPicture(await self._files.get(source), source.media_type, source.width, source.height, ())

    def path_of(self, source: StoredSource) -> Path:
        """The file of a kept picture."""
        return self._files.path_of(source)
