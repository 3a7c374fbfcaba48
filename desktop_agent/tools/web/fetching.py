"""One page from its server, however the server misbehaves."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field
from typing import NoReturn
from urllib.parse import urljoin

from desktop_agent.network.failures import NotFetched, PrivateHost, too_slow
from desktop_agent.network.fetching import REDIRECTS, Answer, Patience, Way, asked
from desktop_agent.network.inflating import inflated
from desktop_agent.network.web_addresses import allowed_forms
from desktop_agent.tools.web.addresses import PageAddress, page_address, refused
from desktop_agent.vocabulary.errors import Sentence, ToolFailed, UnreadableAnswer

WIRE_LIMIT = 5_000_000
"""Bytes, as they come."""

PLAIN_LIMIT = 20_000_000
"""Bytes, unpacked."""

_HEADERS = {
    "Accept": "text/html, application/xhtml+xml, text/*;q=0.9, application/json;q=0.9, */*;q=0.5",
    "Accept-Encoding": "gzip, deflate",
    "Accept-Language": "en, *;q=0.5",
}
_ELSEWHERE = "Look for another page."


@dataclass(frozen=True, slots=True)
class Page:
    """What lies there: bytes, and what the server calls them."""

    address: PageAddress
    content_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The page lies on another host, which has to be asked for by itself; `address` is where."""

    address: str


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bytes on the wire and unpacked, and how long it may take."""

    wire: int = WIRE_LIMIT
    plain: int = PLAIN_LIMIT
    patience: Patience = field(default_factory=Patience)


async def fetched(given: str, allowed: frozenset[str], bounds: Bounds, way: Way | None = None) -> Page | Elsewhere:
    """Follows redirects on the same host. `allowed` are hosts that may be private. Raises ToolFailed."""
    forms, place = await asyncio.to_thread(lambda: (allowed_forms(allowed), page_address(given, allowed)))
    try:
        async with asyncio.timeout(bounds.patience.total):
            for _ in range(REDIRECTS + 1):
                async with asked(place.url, _HEADERS, allowed=forms, patience=bounds.patience, way=way) as answer:
                    if answer.leads_to is None:
                        return await _page(place, answer, bounds)
                    found = answer.leads_to
                there = _there(place, found, forms)
                if isinstance(there, Elsewhere):
                    return there
                place = there
    except TimeoutError:
        _fail(too_slow(place.host, bounds.patience.total))
    except PrivateHost as error:
        raise refused(error.host, error.address) from None
    except NotFetched as error:
        _fail(error)
    what = Sentence("“{host}” leads from one address to the next, without end.", {"host": place.host})
    raise ToolFailed(what, _ELSEWHERE)


def _fail(error: NotFetched) -> NoReturn:
    raise ToolFailed(error.sentence, error.remedy, detail=error.detail) from None


def _there(place: PageAddress, found: str, allowed: frozenset[str]) -> PageAddress | Elsewhere:
    """Raises ToolFailed for an address that could not be asked for anyway."""
    try:
        url = urljoin(place.text, found)
    except ValueError:
        url = found
    there = page_address(url, allowed)
    is_weaker = place.url.scheme == "https" and there.url.scheme == "http"
    return there if there.host == place.host and not is_weaker else Elsewhere(there.text)


async def _page(place: PageAddress, answer: Answer, bounds: Bounds) -> Page:
    if answer.status != 200:
        values = {"host": place.host, "status": str(answer.status)}
        raise ToolFailed(Sentence("“{host}” has no page there (status {status}).", values), _ELSEWHERE)
    if (answer.length or 0) > bounds.wire:
        raise _too_large(bounds.wire)
    encoding = answer.headers.get("content-encoding", "").strip().lower()
    body = _bounded(answer.body, bounds.wire)
    plain = body if encoding in ("", "identity") else inflated(body, encoding)
    came = bytearray()
    try:
        async for piece in plain:
            came += piece
            if len(came) > bounds.plain:
                raise _too_large(bounds.plain)
    except UnreadableAnswer as error:
        what = Sentence("The answer of “{host}” is packed in a way that cannot be read.", {"host": place.host})
        raise ToolFailed(what, _ELSEWHERE, detail=str(error)) from None
    finally:
        await plain.aclose()
        await body.aclose()
    return Page(place, answer.headers.get("content-type", ""), bytes(came))


async def _bounded(body: AsyncIterator[bytes], limit: int) -> AsyncGenerator[bytes, None]:
    came = 0
    async for piece in body:
        came += len(piece)
        if came > limit:
            raise _too_large(limit)
        yield piece


def _too_large(limit: int) -> ToolFailed:
    values = {"limit": f"{limit / 1_000_000:g} MB"}
    return ToolFailed(Sentence("The page is larger than {limit}.", values), "Look for a smaller page.")
