"""Fetch a page, decode it, have it read in a worker process, and cache it for reading on in parts."""

import asyncio
import codecs
import re
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass, field
from email.message import Message
from importlib.util import find_spec
from typing import Literal, NoReturn
from urllib.parse import urljoin

from pydantic import BaseModel

from desktop_agent.network.decompression import decompress
from desktop_agent.network.fetch import MAX_REDIRECTS, Connector, FetchResponse, FetchTimeouts, open_url
from desktop_agent.network.hosts import FetchFailed, PrivateHost, canonical_hosts, timeout_error
from desktop_agent.processes.worker import Worker, WorkerFailed, WorkerFailure, worker_command
from desktop_agent.processes.worker_process import WorkerLimits
from desktop_agent.processes.worker_threads import run_in_thread
from desktop_agent.tools.web.addresses import WebPageAddress, host_refused, parse_page_address
from desktop_agent.tools.web.page_process import strip_invisible
from desktop_agent.types.blocks import Text
from desktop_agent.types.errors import ExtraMissing, Sentence, ToolFailed, UnreadableAnswer

MAX_WIRE_BYTES = 5_000_000
"""Bytes, as received."""

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
    """What is at an address: bytes, and the content type that the server names."""

    address: WebPageAddress
    content_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class OtherHostRedirect:
    """The page lies on another host, which has to be asked about by itself; `address` is where."""

    address: str


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Limits in bytes, received and unpacked, and in seconds."""

    wire: int = MAX_WIRE_BYTES
    plain: int = MAX_PAGE_BYTES
    timeouts: FetchTimeouts = field(default_factory=FetchTimeouts)


async def fetch(
    url: str, allowed: frozenset[str], bounds: FetchLimits, way: Connector | None = None
) -> Page | OtherHostRedirect:
    """Fetch a page; follows redirects on the same host. `allowed` are hosts that may be private. Raises ToolFailed."""
    forms, place = await asyncio.to_thread(lambda: (canonical_hosts(allowed), parse_page_address(url, allowed)))
    try:
        async with asyncio.timeout(bounds.timeouts.total):
            for _ in range(MAX_REDIRECTS + 1):
                async with open_url(place.url, _HEADERS, allowed=forms, timeouts=bounds.timeouts, way=way) as answer:
                    if answer.redirect_url is None:
                        return await _read_page(place, answer, bounds)
                    target = answer.redirect_url
                next_address = _redirect_target(place, target, forms)
                if isinstance(next_address, OtherHostRedirect):
                    return next_address
                place = next_address
    except TimeoutError:
        _fail(timeout_error(place.host, bounds.timeouts.total))
    except PrivateHost as error:
        raise host_refused(error.host, error.address) from None
    except FetchFailed as error:
        _fail(error)
    what = Sentence("“{host}” redirects without end.", {"host": place.host})
    raise ToolFailed(what, _TRY_ANOTHER)


def _fail(error: FetchFailed) -> NoReturn:
    raise ToolFailed(error.sentence, error.remedy, detail=error.detail) from None


def _redirect_target(place: WebPageAddress, target: str, allowed: frozenset[str]) -> WebPageAddress | OtherHostRedirect:
    """Parse a redirect. Raises ToolFailed for an address that could not be fetched anyway."""
    try:
        url = urljoin(place.text, target)
    except ValueError:
        url = target
    next_address = parse_page_address(url, allowed)
    is_weaker = place.url.scheme == "https" and next_address.url.scheme == "http"
    return next_address if next_address.host == place.host and not is_weaker else OtherHostRedirect(next_address.text)


async def _read_page(place: WebPageAddress, answer: FetchResponse, bounds: FetchLimits) -> Page:
    if answer.status != 200:
        values = {"host": place.host, "status": str(answer.status)}
        raise ToolFailed(Sentence("“{host}” has no page there (status {status}).", values), _TRY_ANOTHER)
    if (answer.length or 0) > bounds.wire:
        raise _too_large(bounds.wire)
    encoding = answer.headers.get("content-encoding", "").strip().lower()
    body = _limited(answer.body, bounds.wire)
    plain = body if encoding in ("", "identity") else decompress(body, encoding)
    received = bytearray()
    try:
        async for piece in plain:
            received += piece
            if len(received) > bounds.plain:
                raise _too_large(bounds.plain)
    except UnreadableAnswer as error:
        what = Sentence("The answer of “{host}” is packed in a way that cannot be read.", {"host": place.host})
        raise ToolFailed(what, _TRY_ANOTHER, detail=str(error)) from None
    finally:
        await plain.aclose()
        await body.aclose()
    return Page(place, answer.headers.get("content-type", ""), bytes(received))


async def _limited(body: AsyncIterator[bytes], limit: int) -> AsyncGenerator[bytes, None]:
    received = 0
    async for piece in body:
        received += len(piece)
        if received > limit:
            raise _too_large(limit)
        yield piece


def _too_large(limit: int) -> ToolFailed:
    values = {"limit": f"{limit / 1_000_000:g} MB"}
    return ToolFailed(Sentence("The page is larger than {limit}.", values), "Look for a smaller page.")


ContentKind = Literal["html", "text"]

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_TEXT = frozenset(
    {
        *(
            "application/json",
            "application/xml",
            "application/javascript",
            "application/ecmascript",
            "application/toml",
        ),
        *("application/yaml", "application/x-yaml", "application/x-ndjson", "application/x-sh", "application/sql"),
        *("application/x-javascript", "application/graphql", "application/jsonlines", "application/x-tex"),
    }
)
# Servers send these types for what they do not know: the content decides.
_UNKNOWN = frozenset({"", "application/octet-stream", "binary/octet-stream", "application/unknown", "unknown/unknown"})
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Names of Python's codecs that are encodings of the web (WHATWG Encoding). Others, such as UTF-7, hide things.
_ENCODINGS = frozenset(
    {
        *("utf-8", "utf-16", "utf-16-le", "utf-16-be", "gbk", "gb18030", "big5", "big5hkscs", "euc_jp", "shift_jis"),
        *("cp932", "euc_kr", "cp949", "iso2022_jp", "koi8-r", "koi8-u", "mac-roman", "mac-cyrillic", "cp866", "cp874"),
        *(f"cp125{number}" for number in range(9)),
        *(f"iso8859-{number}" for number in (*range(2, 9), 10, 11, 13, 14, 15, 16)),
    }
)
_TO_WINDOWS = {"ascii": "cp1252", "iso8859-1": "cp1252", "gb2312": "gbk", "iso8859-9": "cp1254", "tis-620": "cp874"}
_META_LENGTH = 4096
_META = re.compile(rb"<meta[^>]{0,400}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.+-]{1,40})", re.IGNORECASE)
_XML = re.compile(rb"^\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9_:.+-]{1,40})")
# Atomic: a comment ends where it ends, however many follow.
_BEGINS_HTML = re.compile(
    r"\s*+(?:<\?xml[^>]*+>\s*+)?(?>(?><!--.*?-->)\s*+)*+<(?:!doctype\s+html|html|head|body)\b",
    re.IGNORECASE | re.DOTALL,
)


def decode_page(page: Page) -> tuple[ContentKind, str]:
    """Return what kind of text it is, and its characters. Raises ToolFailed for what is no text."""
    media_type, charset = _parse_content_type(page.content_type)
    is_html = media_type in _HTML
    is_text = media_type.startswith("text/") or media_type in _TEXT or media_type.endswith(("+json", "+xml"))
    if not (is_html or is_text or media_type in _UNKNOWN):
        raise _not_text(page, media_type)
    text = _decode(page.data, charset)
    if media_type in _UNKNOWN:
        is_html = _BEGINS_HTML.match(text[:5000]) is not None
        is_text = is_html or _is_whole(page.data, text)
    if "\0" in text or not (is_html or is_text):
        raise _not_text(page, media_type)
    return ("html" if is_html else "text"), text


def _parse_content_type(content_type: str) -> tuple[str, str]:
    message = Message()
    message["content-type"] = " ".join(content_type[:500].split())
    charset = message.get_param("charset", "")
    # A header without a slash is read as text/plain by the library.
    media_type = message.get_content_type() if "/" in content_type else ""
    return media_type, charset if isinstance(charset, str) else ""


def _decode(data: bytes, charset: str) -> str:
    """Decode by byte order mark, header, or the page's declaration; else as UTF-8, else as Western browsers guess."""
    for mark, name in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(name, "replace")
    match = _META.search(data[:_META_LENGTH]) or _XML.match(data[:_META_LENGTH])
    # A page that can say it in ASCII is not in UTF-16 (WHATWG HTML, "prescan").
    encoding = _known_encoding(match[1].decode("ascii")) if match else None
    name = _known_encoding(charset) or ("utf-8" if encoding and encoding.startswith("utf-16") else encoding)
    if name is not None:
        return data.decode(name, "replace")
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def _is_whole(data: bytes, text: str) -> bool:
    """Return whether it surely is text: its encoding is marked or UTF-8, and nothing in it had to be replaced."""
    return "\ufffd" not in text and (
        data.startswith(tuple(mark for mark, _ in _BYTE_ORDER_MARKS)) or data == text.encode()
    )


def _known_encoding(label: str) -> str | None:
    try:
        name = codecs.lookup(label.strip("\"' ")).name
    except (LookupError, ValueError):
        return None
    name = _TO_WINDOWS.get(name, name)
    return name if name in _ENCODINGS else None


def _not_text(page: Page, media_type: str) -> ToolFailed:
    values = {"host": page.address.host, "what": media_type or "not named", "size": f"{len(page.data):,}"}
    what = "What “{host}” has there is not text: its type is {what}, its size {size} bytes."
    return ToolFailed(Sentence(what, values), "Look for a page with text.")


READ_SECONDS = 20.0
"""Seconds; pages that people read take less than one."""

_LIMITS = WorkerLimits(memory=2_000_000_000, seconds=15.0, reads_files=False)


class ReadPage(BaseModel):
    """A page as Markdown, with counts of removed `hidden` and `transparent` characters; `cut`: its end is missing."""

    title: str = ""
    text: str
    hidden: int
    cut: bool = False
    transparent: int = 0


@dataclass(frozen=True, slots=True)
class WebPageReader:
    """Starts a process for each page; `command` starts it, with the interpreter of this program unless given."""

    command: tuple[str, ...] = field(default_factory=lambda: tuple(worker_command()))
    timeout: float = READ_SECONDS

    async def read(self, html: str, address: str) -> ReadPage:
        """Read a page. Raises ToolFailed for one that takes too long or too much memory, and ExtraMissing."""
        if not all(find_spec(name) for name in ("selectolax", "bs4", "markdownify")):
            raise ExtraMissing.of("Reading pages of the web", "web")
        task = "desktop_agent.tools.web.page_process:read_page"
        worker = Worker(task, list[ReadPage], _LIMITS, timeout=self.timeout, command=self.command)
        try:
            return await worker.run(lambda: worker.ask(html, address))
        except WorkerFailed as error:
            if error.failure is WorkerFailure.SLOW:
                values = {"address": address, "seconds": f"{error.seconds:g}"}
                what = Sentence("Reading the page at “{address}” took longer than {seconds} seconds.", values)
                remedy = "Its HTML is built to be slow or very large; look for another page."
                raise ToolFailed(what, remedy) from None
            what = Sentence("The page at “{address}” could not be read.", {"address": address})
            remedy = "Its HTML is broken, very large, or built to do harm; look for another page."
            raise ToolFailed(what, remedy, detail=f"exit code {error.code}") from None


PART_LENGTH = 40_000
"""Characters of one answer."""

_MAX_CACHED = 4


@dataclass(slots=True)
class PageCache:
    """Fetches pages, and keeps the last few for a model that goes on reading one."""

    private_hosts: Callable[[], frozenset[str]]
    way: Connector | None = None
    bounds: FetchLimits | None = None
    reader: WebPageReader = field(default_factory=WebPageReader)
    _cache: OrderedDict[str, tuple[str, ReadPage]] = field(default_factory=OrderedDict[str, tuple[str, ReadPage]])
    """The last ones by the addresses that were asked for, with those where they are."""

    async def read_part(self, url: str, start: int) -> tuple[Text, ...]:
        """Return the text from this character on, as far as it fits. Raises ToolFailed."""
        page = await self._read(url, start)
        if isinstance(page, OtherHostRedirect):
            notice = f"[The page has moved to another host: {page.address}\nFetch that address if you need the page.]"
            return (Text(text=notice),)
        return _page_part(*page, start)

    async def _read(self, url: str, start: int) -> tuple[str, ReadPage] | OtherHostRedirect:
        """Fetch anew if it is read from the beginning, else use the cache."""
        if start and (cached := self._cache.get(url)):
            await run_in_thread(lambda _token: parse_page_address(url, self.private_hosts()))
            self._cache.move_to_end(url)
            return cached
        allowed = self.private_hosts()
        fetched = await fetch(url, allowed, self.bounds or FetchLimits(), self.way)
        if isinstance(fetched, OtherHostRedirect):
            return fetched
        self._cache[url] = page = fetched.address.text, await self._text(fetched)
        self._cache.move_to_end(url)
        while len(self._cache) > _MAX_CACHED:
            self._cache.popitem(last=False)
        return page

    async def _text(self, page: Page) -> ReadPage:
        kind, text = await run_in_thread(lambda _token: decode_page(page))
        if kind == "html":
            return await self.reader.read(text, page.address.text)
        visible, hidden = await run_in_thread(lambda _token: strip_invisible(text))
        return ReadPage(text=visible, hidden=hidden)


def _page_part(address: str, page: ReadPage, start: int) -> tuple[Text, ...]:
    """Return what was asked for, as far as it fits, and a note about the rest."""
    if start and start >= len(page.text):
        values = {"count": f"{len(page.text):,}", "start": f"{start:,}"}
        raise ToolFailed(Sentence("The page has {count} characters; there is no character {start}.", values))
    end = _end_of_part(page.text, start)
    head = "\n".join(filter(None, (page.title, address)))
    note = _note(page, end)
    body = Text(text=f"[{head}]\n\n{page.text[start:end]}")
    return (body, Text(text=note)) if note else (body,)


def _end_of_part(text: str, start: int) -> int:
    """End at a paragraph or a line, if there is one in the last quarter."""
    end = start + PART_LENGTH
    if end >= len(text):
        return len(text)
    for mark in ("\n\n", "\n", " "):
        end_of_paragraph = text.rfind(mark, end - PART_LENGTH // 4, end)
        if end_of_paragraph >= 0:
            return end_of_paragraph + len(mark)
    return end


def _note(page: ReadPage, end: int) -> str:
    remaining = len(page.text) - end
    characters = "character" if remaining == 1 else "characters"
    notes = {
        "There is no text to read on the page; scripts may make it in a browser.": not page.text.strip(),
        f"{remaining:,} more {characters}; go on with start {end}.": remaining,
        "The page is longer than can be read; its end is missing.": page.cut and not remaining,
        f"{page.hidden:,} characters that nobody can see were taken out.": page.hidden,
        f"{page.transparent:,} characters that are transparent were left out; scripts may show them.": page.transparent,
    }
    words = " ".join(note for note, applies in notes.items() if applies)
    return f"[{words}]" if words else ""
