"""HTML as a tree: what a browser would make of it, near enough to read it.

Ends that HTML leaves out are put in (WHATWG HTML, "Tree construction"). Where elements are nested deeper than DEEPEST,
the inner ones are left out and what is in them stays, so that whoever walks the tree may do so by recursion.
"""

import re
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser

DEEPEST = 120
_LONGEST_ATTRIBUTE = 4_000


def words(text: str) -> frozenset[str]:
    """Names and classes, as a set."""
    return frozenset(text.split())


BLOCKS = words(
    "address article aside blockquote body center dd details dialog dir div dl dt fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav ol p pre search section summary table "
    "tbody td tfoot th thead tr ul"
)
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")

_VOID = words("area base br col embed hr img input link meta param source track wbr")
_UNREAD = words(
    "script style template svg canvas iframe object audio video select button textarea datalist frameset noframes "
    "noembed applet map"
)
_CLOSES_P = BLOCKS - {"body", "html", "td", "th", "tr", "tbody", "thead", "tfoot", "legend"}
_CELLS = frozenset({"td", "th", "caption"})
_SCOPE = _CELLS | {"table", "html", "button"}
_ROWS = frozenset({"tr", "td", "th"})
_PARTS = frozenset({"tbody", "thead", "tfoot"})
_OF_TABLES = _CELLS | _PARTS | _ROWS | {"table"}
# What a start tag ends, up to which element.
_ENDS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "li": (frozenset({"li"}), frozenset({"ul", "ol", "menu", "dir"}) | _SCOPE),
    "dt": (frozenset({"dt", "dd"}), frozenset({"dl"}) | _SCOPE),
    "dd": (frozenset({"dt", "dd"}), frozenset({"dl"}) | _SCOPE),
    "tr": (_ROWS, _PARTS | {"table"}),
    "td": (frozenset({"td", "th"}), frozenset({"tr", "table"})),
    "th": (frozenset({"td", "th"}), frozenset({"tr", "table"})),
    **dict.fromkeys(_PARTS, (_PARTS | _ROWS, frozenset({"table"}))),
}
# Numbers that Python refuses to read; no character has one so long.
_NO_CHARACTER = re.compile(r"&#(?:[xX][0-9a-fA-F]{9,}|[0-9]{10,});?")
_NONE: frozenset[str] = frozenset()
_HIDING = re.compile(
    r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?:px|em|rem|pt|%)?\s*(?:;|$))"
)


class Element:
    """One element. `has_blocks`: something in it begins a line of its own."""

    __slots__ = ("attributes", "children", "has_blocks", "name")

    def __init__(self, name: str, attributes: dict[str, str]) -> None:
        self.name = name
        self.attributes = attributes
        self.children: list[Element | str] = []
        self.has_blocks = False

    @property
    def words(self) -> frozenset[str]:
        """Its classes and its id, in lower case."""
        if "class" not in self.attributes and "id" not in self.attributes:
            return _NONE
        named = f"{self.attributes.get('class', '')} {self.attributes.get('id', '')}"
        return frozenset(named.lower().split())

    @property
    def elements(self) -> "Iterator[Element]":
        """Directly in it."""
        return (each for each in self.children if isinstance(each, Element))

    def all(self) -> "Iterator[Element]":
        """It, and everything in it, in the order of the page."""
        waiting: list[Element] = [self]
        while waiting:
            each = waiting.pop()
            yield each
            waiting.extend(reversed(list(each.elements)))

    def text(self) -> str:
        """All characters in it, as they stand in the source."""
        found: list[str] = []
        waiting: list[Element | str] = [self]
        while waiting:
            each = waiting.pop()
            if isinstance(each, str):
                found.append(each)
            else:
                waiting.extend(reversed(each.children))
        return "".join(found)


def is_hidden(attributes: dict[str, str]) -> bool:
    """Whether nobody would see it."""
    return (
        "hidden" in attributes
        or attributes.get("aria-hidden", "").lower() == "true"
        or bool(_HIDING.search(attributes.get("style", "").lower()))
    )


def tree_of(html: str) -> Element:
    """The page. What nobody would see or read is not in it."""
    builder = _Builder()
    builder.feed(_NO_CHARACTER.sub("\ufffd", html))
    builder.close()
    return builder.root


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("html", {})
        self._open = [self.root]
        self._too_deep: Counter[str] = Counter()
        self._unread = ""  # the element that is passed over, and how many of its name are open
        self._unread_depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._unread:
            self._unread_depth += tag == self._unread
            return
        attributes = {name: (value or "")[:_LONGEST_ATTRIBUTE] for name, value in reversed(attrs)}
        if tag in {"html", "body"}:
            return
        self._end_what_it_ends(tag)
        if tag in _VOID:
            if not is_hidden(attributes):
                self._add(Element(tag, attributes))
        elif tag in _UNREAD or is_hidden(attributes):
            self._unread, self._unread_depth = tag, 1
        elif len(self._open) > DEEPEST:
            self._too_deep[tag] += 1
        else:
            element = Element(tag, attributes)
            self._add(element)
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # Outside of drawings and formulas the slash means nothing (WHATWG HTML, "Start tags").
        if self._unread and tag == self._unread:
            return
        self.handle_starttag(tag, attrs)
        if tag == "svg" or any(each.name == "math" for each in self._open[1:]):
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._unread:
            self._unread_depth -= tag == self._unread
            if not self._unread_depth:
                self._unread = ""
        elif self._too_deep[tag]:
            self._too_deep[tag] -= 1
        elif tag == "br":
            self._add(Element("br", {}))
        else:
            self._end(frozenset({tag}), frozenset({"table"}) if tag in _OF_TABLES else _SCOPE)

    def handle_data(self, data: str) -> None:
        if not self._unread and data:
            self._open[-1].children.append(data)

    def parse_marked_section(self, i: int, report: int = 1) -> int:  # noqa: ARG002 - the library's own interface
        # The library's own raises for kinds that it does not know; to a browser all of them are comments.
        return self.parse_bogus_comment(i)

    def _add(self, element: Element) -> None:
        self._open[-1].children.append(element)
        if element.name in BLOCKS:
            for each in reversed(self._open):
                if each.has_blocks:
                    break
                each.has_blocks = True

    def _end_what_it_ends(self, tag: str) -> None:
        if tag in _CLOSES_P:
            self._end(frozenset({"p"}), _SCOPE)
        if tag in HEADINGS and self._open[-1].name in HEADINGS:
            self._open.pop()
        if found := _ENDS.get(tag):
            names, scope = found
            # Several may be open at once: a row and a cell in it.
            self._end(names, scope, every=True)

    def _end(self, names: frozenset[str], scope: frozenset[str], *, every: bool = False) -> None:
        """End the innermost that is so named, or every one, and what is open in it; nothing beyond the scope."""
        ends = 0
        for at in range(len(self._open) - 1, 0, -1):
            name = self._open[at].name
            if name in names:
                ends = at
                if not every:
                    break
            elif name in scope:
                break
        if ends:
            del self._open[ends:]
