"""Pictures of the web, fetched because the person said so: the one way in which a text can reach the network."""

import asyncio
from collections.abc import AsyncIterable
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from desktop_agent.network.failures import NotFetched, PrivateHost, too_slow
from desktop_agent.network.fetching import REDIRECTS, Answer, Patience, asked
from desktop_agent.network.web_addresses import host_in, web_address
from desktop_agent.vocabulary.errors import ImageRefused, Sentence
from desktop_agent.vocabulary.images import media_type_of

if TYPE_CHECKING:
    import httpx

LIMIT = 20_000_000
"""Bytes."""

_MAGIC = 16
_HEADERS = {"Accept": "image/png, image/jpeg, image/gif, image/webp", "Accept-Encoding": "identity"}


class PrivateAddress(ImageRefused):
    """The picture lies on this machine or in a private network. `host` is whom the person would have to allow."""

    kind = "private_address"

    def __init__(self, refused: PrivateHost) -> None:
        remedy = "Load it only if you know this machine: whoever wrote the text chose the address."
        super().__init__(refused.sentence, remedy)
        self.host = refused.host


async def fetch_picture(url: str, *, allowed: frozenset[str] = frozenset(), patience: Patience | None = None) -> bytes:
    """The bytes of a PNG, JPEG, GIF or WebP picture. `allowed` names hosts that may have a private address.

    Raises PrivateAddress, and ImageRefused for everything else that goes wrong. Cancelling closes the connection.
    """
    try:
        return await _fetched(url, allowed, patience or Patience())
    except PrivateHost as error:
        raise PrivateAddress(error) from None
    except NotFetched as error:
        raise ImageRefused(error.sentence, error.remedy, detail=error.detail) from None


async def _fetched(url: str, allowed: frozenset[str], patience: Patience) -> bytes:
    place = url
    try:
        async with asyncio.timeout(patience.total):
            for _ in range(REDIRECTS + 1):
                async with asked(_parsed(place), _HEADERS, allowed=allowed, patience=patience) as answer:
                    found = await _answered(answer, host_in(_parsed(place)))
                if isinstance(found, bytes):
                    return found
                place = _joined(place, found)
    except TimeoutError:
        raise too_slow(host_in(_parsed(place)), patience.total) from None
    raise ImageRefused(Sentence("The address leads from one to the next, without end."), "Open it in a browser.")


def _joined(place: str, found: str) -> str:
    try:
        return urljoin(place, found)
    except ValueError:
        raise ImageRefused.not_a_web_address(found) from None


def _parsed(url: str) -> "httpx.URL":
    parsed = web_address(url)
    if parsed is None:
        raise ImageRefused.not_a_web_address(url)
    return parsed


async def _answered(answer: Answer, host: str) -> bytes | str:
    """The picture, or where it lies instead."""
    if answer.leads_to is not None:
        return answer.leads_to
    if answer.status != 200:
        values = {"host": host, "status": str(answer.status)}
        what = Sentence("“{host}” has no picture there (status {status}).", values)
        raise ImageRefused(what, "Open it in a browser.")
    if (answer.length or 0) > LIMIT:
        raise _too_large()
    return await _body(answer.body)


async def _body(chunks: AsyncIterable[bytes]) -> bytes:
    came = bytearray()
    looked = False
    async for chunk in chunks:
        came += chunk
        if len(came) > LIMIT:
            raise _too_large()
        if not looked and len(came) >= _MAGIC:
            looked = True
            _require_picture(bytes(came[:_MAGIC]))
    _require_picture(bytes(came[:_MAGIC]))
    return bytes(came)


def _require_picture(start: bytes) -> None:
    """What a picture is is told by its first bytes; what a server calls it does not count."""
    if media_type_of(start) is None:
        raise ImageRefused(
            Sentence("What lies there is not a PNG, JPEG, GIF or WebP image."), "Open the address in a browser."
        )


def _too_large() -> ImageRefused:
    limit = f"{LIMIT // 1_000_000} MB"
    return ImageRefused(Sentence("The picture is larger than {limit}.", {"limit": limit}), "Open it in a browser.")
