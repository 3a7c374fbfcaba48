"""Pictures for the Messages API, and its limits on them, held before anything is sent."""

import base64
from dataclasses import dataclass
from typing import Any

from desktop_agent.vocabulary.blocks import Image
from desktop_agent.vocabulary.errors import CapabilityMissing, ImageRefused, ImagesNotSupported, Sentence, WrongUse
from desktop_agent.vocabulary.images import Base64Source, UrlSource, decode_base64, read_image_size
from desktop_agent.vocabulary.requests import Capabilities, ImageLimits

# The limit is one on the base64 text, so a file may have three quarters of it.
_LONGEST_BASE64 = 10 * 1024 * 1024
_SMALL_WINDOW = 200_000
# The size of a JPEG may stand behind a preview and a colour profile; in characters of base64, a multiple of four.
_HEADER = 4 * 48 * 1024


def picture_limits_for(known: Capabilities) -> ImageLimits:
    """What may be sent to a model of which this is known."""
    window = known.context_window
    # Models up to 4.6 scale down further; of those only the ones that think by budget are known by what they can.
    is_older = known.reasoning_modes is not None and "budget" in known.reasoning_modes
    return ImageLimits(
        max_bytes=_LONGEST_BASE64 // 4 * 3,
        max_edge=8000,
        max_count=100 if window is not None and window <= _SMALL_WINDOW else 600,
        many_images=20,
        many_images_max_edge=2000,
        downscale_edge=1568 if is_older else 2576,
    )


@dataclass(slots=True)
class _SeenPicture:
    edge: int | None
    name: str


class PictureEncoder:
    """Writes the pictures of one request and counts them. `known` is what is known about its model."""

    def __init__(self, model: str, known: Capabilities) -> None:
        self._model = model
        self._known = known
        self._limits = picture_limits_for(known)
        self._seen: list[_SeenPicture] = []

    def encode(self, image: Image) -> dict[str, Any]:
        """The block of a picture. Raises ImagesNotSupported, ImageRefused, and WrongUse for one that is not loaded."""
        if self._known.images is False:
            raise ImagesNotSupported(Sentence("{model} does not read pictures.", {"model": self._model}))
        source = image.source
        if isinstance(source, UrlSource):
            self._seen.append(_SeenPicture(None, image.name or ""))
            return {"type": "image", "source": {"type": "url", "url": source.url}}
        if not isinstance(source, Base64Source):
            raise WrongUse("A stored picture must be loaded before a request is made.")
        name = image.name or ""
        if len(source.data) > _LONGEST_BASE64:
            raise ImageRefused.too_large(name, "7.5 MB")
        edge = _longest_edge(source.data)
        if edge is not None and self._limits.max_edge is not None and edge > self._limits.max_edge:
            raise ImageRefused.too_large(name, f"{self._limits.max_edge} pixels on one side")
        self._seen.append(_SeenPicture(edge, name))
        return {
            "type": "image",
            "source": {"type": "base64", "media_type": source.media_type, "data": source.data},
        }

    def check_all(self) -> None:
        """The limits that hold for all pictures together. Raises CapabilityMissing and ImageRefused."""
        limits, count = self._limits, len(self._seen)
        if limits.max_count is not None and count > limits.max_count:
            values = {"count": str(limits.max_count)}
            raise CapabilityMissing(
                Sentence("A request can hold at most {count} pictures.", values),
                "Start a new conversation, or remove some of the pictures.",
            )
        if limits.many_images is None or limits.many_images_max_edge is None or count <= limits.many_images:
            return
        for each in self._seen:
            if each.edge is not None and each.edge > limits.many_images_max_edge:
                raise ImageRefused.too_large(
                    each.name, f"{limits.many_images_max_edge} pixels beside {limits.many_images} others"
                )


def _longest_edge(data: str) -> int | None:
    size = read_image_size(base64.b64decode(data[:_HEADER])) if len(data) % 4 == 0 else None
    if size is None and len(data) > _HEADER:
        size = read_image_size(decode_base64(data))
    return None if size is None else max(size)
