"""All pictures of a conversation that can be looked at, in order."""

from collections.abc import Iterable, Iterator, Sequence

from PySide6.QtCore import QCoreApplication

from desktop_agent.conversation.items import AnswerItem, Item, ToolCallItem, UserItem
from desktop_agent.vocabulary.blocks import Image
from desktop_agent.vocabulary.images import UrlSource
from ui.shell.contents.decoding import Viewed
from ui.transcript.pictures import HeldPicture, Viewable
from ui.transcript.remote_pictures import RemotePictures


def pictures_of(items: Iterable[Item], remote: RemotePictures) -> Iterator[Viewed]:
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
            yield from (_held(picture) for at, each in places if at >= 0 and (picture := remote.of(each).picture))


def viewed(picture: Image | HeldPicture) -> Viewed | None:
    """One picture; None for one that is not here."""
    if isinstance(picture, HeldPicture):
        return _held(picture)
    if isinstance(picture.source, UrlSource):
        return None
    return Viewed(picture.source, picture.name or _unnamed())


def place_in(pictures: Sequence[Viewed], source: Viewable) -> int | None:
    """Where a picture stands; the same one may stand there twice."""
    exact = next((index for index, each in enumerate(pictures) if each.source is source), None)
    if exact is not None:
        return exact
    return next((index for index, each in enumerate(pictures) if each.source == source), None)


def _of_images(images: Iterable[Image], remote: RemotePictures) -> Iterator[Viewed]:
    for image in images:
        held = remote.of(image.source.url).picture if isinstance(image.source, UrlSource) else None
        if found := (_held(held) if held else viewed(image)):
            yield found


def _held(picture: HeldPicture) -> Viewed:
    return Viewed(picture, picture.name or _unnamed())


def _unnamed() -> str:
    return QCoreApplication.translate("Pictures", "Picture")
