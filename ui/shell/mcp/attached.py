"""What goes with a text, as a draft keeps it and as a message sends it."""

from collections.abc import Iterable, Sequence
from secrets import token_hex

from desktop_agent.vocabulary.blocks import Block, Text
from desktop_agent.vocabulary.tool_calls import UntrustedSource
from ui.bridge.drafts import ComposerDraft, DraftResource
from ui.bridge.pictures import PictureStore
from ui.composer.offers.attached import PendingResource, PromptSource
from ui.composer.offers.chip_row import Attachment, PastedText
from ui.composer.pictures import PendingPicture, UnreadablePicture


def untrusted_sources(attached: Iterable[Attachment]) -> tuple[UntrustedSource, ...]:
    """The servers of tools from which something of it came, each once."""
    sources = [each for each in attached if not isinstance(each, PastedText | UnreadablePicture) and each.server]
    return tuple(dict.fromkeys(UntrustedSource("mcp", each.server, each.server_id) for each in sources))


def to_draft(text: str, attached: Sequence[Attachment]) -> ComposerDraft:
    """As a draft."""
    pictures = [(each.taken, each.name) for each in attached if isinstance(each, PendingPicture)]
    resources = tuple(
        DraftResource(each.server, each.title, each.uri, each.text, each.server_id)
        for each in attached
        if isinstance(each, PendingResource)
    )
    pasted = tuple(each.text for each in attached if isinstance(each, PastedText))
    unreadable = tuple(each.image for each in attached if isinstance(each, UnreadablePicture))
    return ComposerDraft(text, pictures, resources, untrusted_sources(attached), pasted, unreadable)


def from_draft(draft: ComposerDraft) -> list[Attachment]:
    """Of a draft. Which picture is whose is not kept; that something is, is."""
    pictures = [PendingPicture(name, taken) for taken, name in draft.pictures]
    resources = [
        PendingResource(each.server, each.title, each.uri, each.text, each.server_id) for each in draft.resources
    ]
    pasted = [PastedText(text) for text in draft.pasted]
    unreadable = [UnreadablePicture(image) for image in draft.unreadable]
    return [*pasted, *pictures, *unreadable, *resources, *(PromptSource(each.name, each.id) for each in draft.outside)]


async def to_blocks(text: str, attached: Sequence[Attachment], pictures: PictureStore) -> list[Block]:
    """As a message: what came from a server stands in blocks of its own that say so.

    Raises StorageFailed, and ImageRefused for a picture that could not be read and is known to be gone by now.
    """
    whole = "\n\n".join(
        [part for part in (text, *(each.text for each in attached if isinstance(each, PastedText))) if part]
    )
    blocks: list[Block] = [Text(text=whole)] if whole.strip() else []
    for each in attached:
        if isinstance(each, PendingResource):
            blocks.append(Text(text=_labelled_resource(each)))
        elif isinstance(each, PendingPicture):
            if each.server:
                blocks.append(
                    Text(text=f"\n\n[The next picture, “{each.name}”, is from the server “{each.server}”.]\n")
                )
            blocks.append(await pictures.keep(each.taken, each.name))
        elif isinstance(each, UnreadablePicture):
            blocks.append(await pictures.keep(await pictures.reload(each.image), each.image.name or ""))
    return blocks


def _labelled_resource(resource: PendingResource) -> str:
    """For the model, which reads no frames. What a server wrote cannot hold the sign that ends it."""
    sign, title = token_hex(4), " ".join(resource.title.split())
    head = f"[“{title}”, {resource.uri}, from the server “{resource.server}”, up to {sign}:]"
    return f"\n\n{head}\n{resource.text}\n[{sign}: end of “{title}”.]\n"
