"""One page from its server, however the server misbehaves."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field
from typing import NoReturn
from urllib.parse import urljoin

from desktop_agent.network.failures import FetchFailed, PrivateHost, timeout_error
from desktop_agent.network.fetching import MAX_REDIRECTS, Connector, FetchResponse, FetchTimeouts, open_url
from desktop_agent.network.inflating import decompress
from desktop_agent.network.web_addresses import canonical_hosts
from desktop_agent.tools.web.addresses import WebPageAddress, host_refused, parse_page_address
from desktop_agent.vocabulary.errors import Sentence, ToolFailed, UnreadableAnswer

MAX_WIRE_BYTES = 5_000_000
"""Bytes, as they come."""

MAX_PAGE_BYTES = 20_000_000
"""Bytes, unpacked."""

_HEADERS = {
    "Accept": "text/html, application/xhtml+xml, text/*;q=0.9, application/json;q=0.9, */*;q=0.5",
    "Accept-Encoding": "gzip, deflate",
    "Accept-Language": "en, *;q=0.5",
}
_TRY_ANOTHER = "Look for another page."


@dataclass(frozen=True, slots=True)
class Page:
    """What lies there: bytes, and what the server calls them."""

    address: WebPageAddress
    content_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class OtherHostRedirect:
    """The page lies on another host, which has to be asked for by itself; `address` is where."""

    address: str


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Bytes on the wire and unpacked, and how long it may take."""

    wire: int = MAX_WIRE_BYTES
    plain: int = MAX_PAGE_BYTES
    patience: FetchTimeouts = field(default_factory=FetchTimeouts)


async def fetch(
    given: str, allowed: frozenset[str], bounds: FetchLimits, way: Connector | None = None
) -> Page | OtherHostRedirect:
    """Follows redirects on the same host. `allowed` are hosts that may be private. Raises ToolFailed."""
    forms, place = await asyncio.to_thread(lambda: (canonical_hosts(allowed), parse_page_address(given, allowed)))
    try:
        async with asyncio.timeout(bounds.patience.total):
            for _ in range(MAX_REDIRECTS + 1):
                async with open_url(place.url, _HEADERS, allowed=forms, patience=bounds.patience, way=way) as answer:
                    if answer.redirect_url is None:
                        return await _read_page(place, answer, bounds)
                    found = answer.redirect_url
                there = _redirect_target(place, found, forms)
                if isinstance(there, OtherHostRedirect):
                    return there
                place = there
    except TimeoutError:
        _fail(timeout_error(place.host, bounds.patience.total))
    except PrivateHost as error:
        raise host_refused(error.host, error.address) from None
    except FetchFailed as error:
        _fail(error)
    what = Sentence("“{host}” leads from one address to the next, without end.", {"host": place.host})
    raise ToolFailed(what, _TRY_ANOTHER)


def _fail(error: FetchFailed) -> NoReturn:
    raise ToolFailed(error.sentence, error.remedy, detail=error.detail) from None


def _redirect_target(place: WebPageAddress, found: str, allowed: frozenset[str]) -> WebPageAddress | OtherHostRedirect:
    """Raises ToolFailed for an address that could not be asked for anyway."""
    try:
        url = urljoin(place.text, found)
    except ValueError:
        url = found
    there = parse_page_address(url, allowed)
    is_weaker = place.url.scheme == "https" and there.url.scheme == "http"
    return there if there.host == place.host and not is_weaker else OtherHostRedirect(there.text)


async def _read_page(place: WebPageAddress, answer: FetchResponse, bounds: FetchLimits) -> Page:
    if answer.status != 200:
        values = {"host": place.host, "status": str(answer.status)}
        raise ToolFailed(Sentence("“{host}” has no page there (status {status}).", values), _TRY_ANOTHER)
    if (answer.length or 0) > bounds.wire:
        raise _too_large(bounds.wire)
    encoding = answer.headers.get("content-encoding", "").strip().lower()
    body = _limited(answer.body, bounds.wire)
    plain = body if encoding in ("", "identity") else decompress(body, encoding)
    came = bytearray()
    try:
        async for piece in plain:
            came += piece
            if len(came) > bounds.plain:
                raise _too_large(bounds.plain)
    except UnreadableAnswer as error:
        what = Sentence("The answer of “{host}” is packed in a way that cannot be read.", {"host": place.host})
        raise ToolFailed(what, _TRY_ANOTHER, detail=str(error)) from None
    finally:
        await plain.aclose()
        await body.aclose()
    return Page(place, answer.headers.get("content-type", ""), bytes(came))


async def _limited(body: AsyncIterator[bytes], limit: int) -> AsyncGenerator[bytes, None]:
    came = 0
    async for piece in body:
        came += len(piece)
        if came > limit:
            raise _too_large(limit)
        yield piece


def _too_large(limit: int) -> ToolFailed:
    values = {"limit": f"{limit / 1_000_000:g} MB"}
    return ToolFailed(Sentence("The page is larger than {limit}.", values), "Look for a smaller page.")
