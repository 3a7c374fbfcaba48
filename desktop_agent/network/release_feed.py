"""The newest release of the program, from the small JSON document that its builder publishes.

The format is in docs/releasing.md. What is sent is a GET request without anything about the person or the system.
"""

import asyncio
import re
from datetime import date
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urljoin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from desktop_agent.network.hosts import FetchFailed, parse_web_url, timeout_error, url_host
from desktop_agent.types.errors import Sentence
from desktop_agent.types.providers import is_loopback

if TYPE_CHECKING:
    import httpx

    from desktop_agent.network.fetch import FetchResponse, FetchTimeouts

MAX_FEED_BYTES = 65_536
MAX_REDIRECTS = 3
_TOTAL_SECONDS = 30.0
_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity"}
_VERSION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})*)(.*)", re.DOTALL)
# Semantic Versioning writes `1.2.0-rc.1`, the packages of Python `1.2.0rc1` or `1.2.0.dev1`.
_PRERELEASE = re.compile(r"-|[._]?(?:a|b|rc|dev|alpha|beta|pre|preview|c)", re.IGNORECASE)


class Release(BaseModel):
    """One release. Strict: any other form is refused, so that its values can be shown as they are."""

    model_config = ConfigDict(frozen=True, strict=True)

    version: Annotated[str, Field(pattern=r"^[0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9}$")]
    date: date
    page: Annotated[str, Field(max_length=500)]
    """The https address of a page about it."""

    @field_validator("page")
    @classmethod
    def _check_page(cls, page: str) -> str:
        is_plain = page.isascii() and page.isprintable() and not set(' "<>\\^`{|}').intersection(page)
        url = parse_web_url(page) if is_plain else None
        if url is None or url.scheme != "https" or url.userinfo:
            raise ValueError("not an https address")
        return page


def parse_release(data: bytes | str) -> Release | None:
    """Return the release that a document describes; None for everything else."""
    try:
        return Release.model_validate_json(data)
    except ValidationError:
        return None


def is_newer(version: str, than: str) -> bool:
    """Compare by numbers, as Semantic Versioning orders them; a pre-release comes before its release."""
    one, other = _version_key(version), _version_key(than)
    return one is not None and other is not None and one > other


def _version_key(version: str) -> tuple[tuple[int, ...], bool] | None:
    match = _VERSION.fullmatch(version)
    if match is None:
        return None
    numbers = [int(part) for part in match[1].split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers), _PRERELEASE.match(match[2]) is None


async def fetch_release(feed: str, *, timeouts: "FetchTimeouts | None" = None) -> Release:
    """Return what the feed says. Raises FetchFailed. Only https is used, or http on this machine.

    A redirect is followed within the same server alone, so that no other one learns about the request.
    """
    from desktop_agent.network.fetch import FetchTimeouts

    limits = timeouts or FetchTimeouts(total=_TOTAL_SECONDS)
    url = parse_web_url(feed)
    if url is None or (url.scheme != "https" and not is_loopback(url_host(url))):
        raise FetchFailed(Sentence("This build has an unusable address for new versions."))
    host = url_host(url)
    try:
        async with asyncio.timeout(limits.total):
            data = await _fetch(url, limits)
    except TimeoutError:
        raise timeout_error(host, limits.total) from None
    release = parse_release(data)
    if release is None:
        raise FetchFailed(Sentence("The answer of “{host}” does not describe a version.", {"host": host}))
    return release


async def _fetch(url: "httpx.URL", limits: "FetchTimeouts") -> bytes:
    from desktop_agent.network.fetch import open_url

    host = url_host(url)
    for _ in range(MAX_REDIRECTS + 1):
        # The program's builder chose the host: it may be one of a private network.
        async with open_url(url, _HEADERS, allowed=frozenset({host}), timeouts=limits) as response:
            target = response.redirect_url
            if target is None:
                return await _read(response, host)
        url = _follow(url, target)
    raise FetchFailed(Sentence("“{host}” redirects without end.", {"host": host}))


def _follow(url: "httpx.URL", target: str) -> "httpx.URL":
    try:
        next_url = parse_web_url(urljoin(str(url), target))
    except ValueError:
        next_url = None
    if next_url is None or _origin(next_url) != _origin(url):
        raise FetchFailed(
            Sentence("“{host}” redirects to another server, which is not allowed.", {"host": url_host(url)})
        )
    return next_url


def _origin(url: "httpx.URL") -> tuple[str, str, int]:
    return url.scheme, url_host(url), url.port or {"http": 80, "https": 443}[url.scheme]


async def _read(response: "FetchResponse", host: str) -> bytes:
    if response.status != 200:
        values = {"host": host, "status": str(response.status)}
        raise FetchFailed(Sentence("“{host}” names no version (status {status}).", values))
    data = bytearray()
    if (response.length or 0) <= MAX_FEED_BYTES:
        async for chunk in response.body:
            data += chunk
            if len(data) > MAX_FEED_BYTES:
                break
        else:
            return bytes(data)
    raise FetchFailed(Sentence("The answer of “{host}” is too large to describe a version.", {"host": host}))
