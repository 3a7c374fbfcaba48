"""Pages on their way from a server to a model: fetched, read, and handed on in parts."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from desktop_agent.network.fetching import Connector
from desktop_agent.tools.in_thread import run_in_thread
from desktop_agent.tools.web.addresses import parse_page_address
from desktop_agent.tools.web.contents import decode_page
from desktop_agent.tools.web.fetching import FetchLimits, OtherHostRedirect, Page, fetch
from desktop_agent.tools.web.plain import strip_invisible
from desktop_agent.tools.web.reading.reader import WebPageReader, default_reader
from desktop_agent.vocabulary.blocks import Text
from desktop_agent.vocabulary.errors import Sentence, ToolFailed

PART_LENGTH = 40_000
"""Characters of one answer."""

_MAX_CACHED = 4


@dataclass(frozen=True, slots=True)
class _PageText:
    """A page that was read."""

    title: str
    address: str
    text: str
    hidden: int = 0
    cut: bool = False
    transparent: int = 0


@dataclass(slots=True)
class PageCache:
    """Fetches pages, and keeps the last few for whoever goes on reading one."""

    private_hosts: Callable[[], frozenset[str]]
    way: Connector | None = None
    bounds: FetchLimits | None = None
    reader: WebPageReader = field(default_factory=default_reader)
    _kept: "OrderedDict[str, _PageText]" = field(default_factory=OrderedDict["str", _PageText])

    async def read_part(self, url: str, start: int) -> tuple[Text, ...]:
        """From this character on, as far as it fits. Raises ToolFailed."""
        found = await self._read(url, start)
        if isinstance(found, OtherHostRedirect):
            said = f"[The page has moved to another host: {found.address}\nFetch that address if you need the page.]"
            return (Text(text=said),)
        return _page_part(found, start)

    async def _read(self, url: str, start: int) -> _PageText | OtherHostRedirect:
        """From the beginning it is always fetched."""
        if start and (kept := self._kept.get(url)):
            await run_in_thread(lambda _token: parse_page_address(url, self.private_hosts()))
            self._kept.move_to_end(url)
            return kept
        allowed = self.private_hosts()
        found = await fetch(url, allowed, self.bounds or FetchLimits(), self.way)
        if isinstance(found, OtherHostRedirect):
            return found
        self._kept[url] = text = await self._text(found)
        self._kept.move_to_end(url)
        while len(self._kept) > _MAX_CACHED:
            self._kept.popitem(last=False)
        return text

    async def _text(self, page: Page) -> _PageText:
        address = page.address.text
        kind, text = await run_in_thread(lambda _token: decode_page(page))
        if kind == "html":
            made = await self.reader.read(text, address)
            return _PageText(made.title, address, made.text, made.hidden, made.cut, made.transparent)
        shown, hidden = await run_in_thread(lambda _token: strip_invisible(text))
        return _PageText("", address, shown, hidden)


def _page_part(page: _PageText, start: int) -> tuple[Text, ...]:
    """What was asked for of it, as far as it fits, and what the reader must know besides."""
    if start and start >= len(page.text):
        values = {"count": f"{len(page.text):,}", "start": f"{start:,}"}
        raise ToolFailed(Sentence("The page has {count} characters; there is no character {start}.", values))
    end = _end_of_part(page.text, start)
    head = "\n".join(filter(None, (page.title, page.address)))
    note = _note(page, end)
    body = Text(text=f"[{head}]\n\n{page.text[start:end]}")
    return (body, Text(text=note)) if note else (body,)


def _end_of_part(text: str, start: int) -> int:
    """At the end of a paragraph or a line, if there is one in the last quarter."""
    end = start + PART_LENGTH
    if end >= len(text):
        return len(text)
    for mark in ("\n\n", "\n", " "):
        found = text.rfind(mark, end - PART_LENGTH // 4, end)
        if found >= 0:
            return found + len(mark)
    return end


def _note(page: _PageText, end: int) -> str:
    notes: list[str] = []
    left = len(page.text) - end
    if not page.text.strip():
        notes.append("There is no text to read on the page; scripts may make it in a browser.")
    if left:
        notes.append(f"{left:,} more {'character' if left == 1 else 'characters'}; go on with start {end}.")
    if page.cut and not left:
        notes.append("The page is longer than can be read; its end is missing.")
    if page.hidden:
        notes.append(f"{page.hidden:,} characters that nobody can see were taken out.")
    if page.transparent:
        notes.append(f"{page.transparent:,} characters that are transparent were left out; scripts may show them.")
    return f"[{' '.join(notes)}]" if notes else ""
