"""Pages on their way from a server to a model: fetched, read, and handed on in parts."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from desktop_agent.network.fetching import Way
from desktop_agent.tools.in_thread import in_thread
from desktop_agent.tools.web.addresses import page_address
from desktop_agent.tools.web.contents import text_of
from desktop_agent.tools.web.fetching import Bounds, Elsewhere, Page, fetched
from desktop_agent.tools.web.plain import plain
from desktop_agent.tools.web.reading.reader import Reader, own_reader
from desktop_agent.vocabulary.blocks import Text
from desktop_agent.vocabulary.errors import Sentence, ToolFailed

PART = 40_000
"""Characters of one answer."""

_KEPT = 4


@dataclass(frozen=True, slots=True)
class _Text:
    """A page that was read."""

    title: str
    address: str
    text: str
    hidden: int = 0
    cut: bool = False
    transparent: int = 0


@dataclass(slots=True)
class Pages:
    """Fetches pages, and keeps the last few for whoever goes on reading one."""

    private_hosts: Callable[[], frozenset[str]]
    way: Way | None = None
    bounds: Bounds | None = None
    reader: Reader = field(default_factory=own_reader)
    _kept: "OrderedDict[str, _Text]" = field(default_factory=OrderedDict["str", _Text])

    async def part(self, url: str, start: int) -> tuple[Text, ...]:
        """From this character on, as far as it fits. Raises ToolFailed."""
        found = await self._read(url, start)
        if isinstance(found, Elsewhere):
            said = f"[The page has moved to another host: {found.address}\nFetch that address if you need the page.]"
            return (Text(text=said),)
        return _part(found, start)

    async def _read(self, url: str, start: int) -> _Text | Elsewhere:
        """From the beginning it is always fetched."""
        if start and (kept := self._kept.get(url)):
            await in_thread(lambda _sign: page_address(url, self.private_hosts()))
            self._kept.move_to_end(url)
            return kept
        allowed = self.private_hosts()
        found = await fetched(url, allowed, self.bounds or Bounds(), self.way)
        if isinstance(found, Elsewhere):
            return found
        self._kept[url] = text = await self._text(found)
        self._kept.move_to_end(url)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return text

    async def _text(self, page: Page) -> _Text:
        address = page.address.text
        kind, text = await in_thread(lambda _sign: text_of(page))
        if kind == "html":
            made = await self.reader.read(text, address)
            return _Text(made.title, address, made.text, made.hidden, made.cut, made.transparent)
        shown, hidden = await in_thread(lambda _sign: plain(text))
        return _Text("", address, shown, hidden)


def _part(page: _Text, start: int) -> tuple[Text, ...]:
    """What was asked for of it, as far as it fits, and what the reader must know besides."""
    if start and start >= len(page.text):
        values = {"count": f"{len(page.text):,}", "start": f"{start:,}"}
        raise ToolFailed(Sentence("The page has {count} characters; there is no character {start}.", values))
    end = _end(page.text, start)
    head = "\n".join(filter(None, (page.title, page.address)))
    note = _note(page, end)
    body = Text(text=f"[{head}]\n\n{page.text[start:end]}")
    return (body, Text(text=note)) if note else (body,)


def _end(text: str, start: int) -> int:
    """At the end of a paragraph or a line, if there is one in the last quarter."""
    end = start + PART
    if end >= len(text):
        return len(text)
    for mark in ("\n\n", "\n", " "):
        found = text.rfind(mark, end - PART // 4, end)
        if found >= 0:
            return found + len(mark)
    return end


def _note(page: _Text, end: int) -> str:
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
