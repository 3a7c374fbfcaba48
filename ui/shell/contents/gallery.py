"""All pictures of a conversation that can be looked at, in order."""

from collections.abc import Iterable, Iterator, Sequence

from PySide6.QtCore import QCoreApplication

from desktop_agent.conversation.items import AnswerItem, Item, ToolCallItem, UserItem
from desktop_agent.vocabulary.blocks import Image
from desktop_agent.vocabulary.images import UrlSource
from ui.shell.contents.decoding import ViewerPicture
from ui.transcript.pictures import InMemoryImage, ViewableImage
from ui.transcript.remote_pictures import RemoteImages


def conversation_pictures(items: Iterable[Item], remote: RemoteImages) -> Iterator[ViewerPicture]:
    """Those that people sent, those that tools gave, and those of the web that were loaded."""
    loaded = remote.loaded()
    for item in items:
        if isinstance(item, UserItem):
            yield from _of_images(item.images, remote)
        elif isinstance(item, ToolCallItem) and item.result:
            yield from _of_images([part for part in item.result.content if isinstance(part, Image)], remote)
        elif isinstance(item, AnswerItem) and loaded:
            text = str(item.text)
            places = sorted((text.find(address), address) for address in loaded)
            yield from (
                _loaded_picture(picture)
                for at, each in places
                if at >= 0 and (picture := remote.state_of(each).picture)
            )


def to_viewer_picture(picture: Image | InMemoryImage) -> ViewerPicture | None:
    """One picture; None for one that is not here."""
    if isinstance(picture, InMemoryImage):
        return _loaded_picture(picture)
    if isinstance(picture.source, UrlSource):
        return None
    return ViewerPicture(picture.source, picture.name or _default_name())


def index_of(pictures: Sequence[ViewerPicture], source: ViewableImage) -> int | None:
    """Where a picture stands; the same one may stand there twice."""
    exact = next((index for index, each in enumerate(pictures) if each.source is source), None)
    if exact is not None:
        return exact
    return next((index for index, each in enumerate(pictures) if each.source == source), None)


def _of_images(images: Iterable[Image], remote: RemoteImages) -> Iterator[ViewerPicture]:
    for image in images:
        held = remote.state_of(image.source.url).picture if isinstance(image.source, UrlSource) else None
        if found := (_loaded_picture(held) if held else to_viewer_picture(image)):
            yield found


def _loaded_picture(picture: InMemoryImage) -> ViewerPicture:
    return ViewerPicture(picture, picture.name or _default_name())


def _default_name() -> str:
    return QCoreApplication.translate("Pictures", "Picture")
