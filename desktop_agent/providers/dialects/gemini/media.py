"""Pictures as parts, within Google's limits."""

from pathlib import PurePosixPath
from urllib.parse import urlsplit

from desktop_agent.vocabulary.blocks import Image, JsonObject
from desktop_agent.vocabulary.errors import ImageRefused, WrongUse
from desktop_agent.vocabulary.images import MEDIA_TYPES_WITHOUT_GIF, Base64Source, UrlSource
from desktop_agent.vocabulary.requests import ImageLimits

# ai.google.dev/gemini-api/docs/image-understanding; one request carries 100 MB of them at most, in base64.
MAX_INLINE_BYTES = 100 * 1000 * 1000
PICTURE_LIMITS = ImageLimits(
    media_types=MEDIA_TYPES_WITHOUT_GIF,
    max_bytes=MAX_INLINE_BYTES // 4 * 3,
    max_count=3600,
    downscale_edge=3072,
    accepts_animated=False,
)
_BY_SUFFIX = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp"}


def is_inline(image: Image) -> bool:
    """Whether a response can carry it itself: only bytes, not an address."""
    return isinstance(image.source, Base64Source)


def image_part(image: Image) -> JsonObject:
    """inlineData, or fileData for an address that the server fetches itself. Raises ImageRefused and WrongUse."""
    source = image.source
    if isinstance(source, UrlSource):
        suffix = PurePosixPath(urlsplit(source.url).path).suffix.lower()
        if suffix == ".gif":
            raise _gif_refused()
        known = _BY_SUFFIX.get(suffix)
        return {"fileData": {**({"mimeType": known} if known else {}), "fileUri": source.url}}
    if not isinstance(source, Base64Source):
        raise WrongUse("A stored picture must be loaded before a request is made.")
    if source.media_type == "image/gif":
        raise _gif_refused()
    return {"inlineData": {"mimeType": source.media_type, "data": source.data}}


def _gif_refused() -> ImageRefused:
    return ImageRefused("Gemini does not read GIF pictures.", "Attach it as PNG, JPEG or WebP.")
