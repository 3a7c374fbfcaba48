"""Pictures of the web, fetched because the person said so: the one way in which a text can reach the network."""

import asyncio
from collections.abc import AsyncIterable
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from desktop_agent.network.failures import FetchFailed, PrivateHost, timeout_error
from desktop_agent.network.fetching import MAX_REDIRECTS, FetchResponse, FetchTimeouts, open_url
from desktop_agent.network.web_addresses import parse_web_url, url_host
from desktop_agent.vocabulary.errors import ImageRefused, Sentence
from desktop_agent.vocabulary.images import detect_media_type

if TYPE_CHECKING:
    import httpx

MAX_IMAGE_BYTES = 20_000_000
"""Bytes."""

_MAGIC_SIZE = 16
_IMAGE_HEADERS = {"Accept": "image/png, image/jpeg, image/gif, image/webp", "Accept-Encoding": "identity"}


class PrivateImageHost(ImageRefused):
    """The picture lies on this machine or in a private network. `host` is whom the person would have to allow."""

    kind = "private_address"

    def __init__(self, refused: PrivateHost) -> None:
        remedy = "Load it only if you know this machine: whoever wrote the text chose the address."
        super().__init__(refused.sentence, remedy)
        self.host = refused.host


async def fetch_image(
    url: str, *, allowed: frozenset[str] = frozenset(), patience: FetchTimeouts | None = None
) -> bytes:
    """The bytes of a PNG, JPEG, GIF or WebP picture. `allowed` names hosts that may have a private address.

    Raises PrivateImageHost, and ImageRefused for everything else that goes wrong. Cancelling closes the connection.
    """
    try:
        return await _fetch_image(url, allowed, patience or FetchTimeouts())
    except PrivateHost as error:
        raise PrivateImageHost(error) from None
    except FetchFailed as error:
        raise ImageRefused(error.sentence, error.remedy, detail=error.detail) from None


async def _fetch_image(url: str, allowed: frozenset[str], patience: FetchTimeouts) -> bytes:
    place = url
    try:
        async with asyncio.timeout(patience.total):
            for _ in range(MAX_REDIRECTS + 1):
                async with open_url(_parse_url(place), _IMAGE_HEADERS, allowed=allowed, patience=patience) as answer:
                    found = await _read_response(answer, url_host(_parse_url(place)))
                if isinstance(found, bytes):
                    return found
                place = _join_redirect(place, found)
    except TimeoutError:
        raise timeout_error(url_host(_parse_url(place)), patience.total) from None
    raise ImageRefused(Sentence("The address leads from one to the next, without end."), "Open it in a browser.")


def _join_redirect(place: str, found: str) -> str:
    try:
        return urljoin(place, found)
    except ValueError:
        raise ImageRefused.not_a_web_address(found) from None


def _parse_url(url: str) -> "httpx.URL":
    parsed = parse_web_url(url)
    if parsed is None:
        raise ImageRefused.not_a_web_address(url)
    return parsed


async def _read_response(answer: FetchResponse, host: str) -> bytes | str:
    """The picture, or where it lies instead."""
    if answer.redirect_url is not None:
        return answer.redirect_url
    if answer.status != 200:
        values = {"host": host, "status": str(answer.status)}
        what = Sentence("“{host}” has no picture there (status {status}).", values)
        raise ImageRefused(what, "Open it in a browser.")
    if (answer.length or 0) > MAX_IMAGE_BYTES:
        raise _too_large()
    return await _read_image(answer.body)


async def _read_image(chunks: AsyncIterable[bytes]) -> bytes:
    came = bytearray()
    looked = False
    async for chunk in chunks:
        came += chunk
        if len(came) > MAX_IMAGE_BYTES:
            raise _too_large()
        if not looked and len(came) >= _MAGIC_SIZE:
            looked = True
            _require_image(bytes(came[:_MAGIC_SIZE]))
    _require_image(bytes(came[:_MAGIC_SIZE]))
    return bytes(came)


def _require_image(start: bytes) -> None:
    """What a picture is is told by its first bytes; what a server calls it does not count."""
    if detect_media_type(start) is None:
        raise ImageRefused(
            Sentence("What lies there is not a PNG, JPEG, GIF or WebP image."), "Open the address in a browser."
        )


def _too_large() -> ImageRefused:
    limit = f"{MAX_IMAGE_BYTES // 1_000_000} MB"
    return ImageRefused(Sentence("The picture is larger than {limit}.", {"limit": limit}), "Open it in a browser.")
