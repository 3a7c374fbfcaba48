"""HTML as the tree that a browser makes of it, without what a browser would not show.

Lexbor reads it by the rules of browsers (WHATWG HTML, "Parsing HTML documents"); Beautiful Soup holds what came of it.
Where elements are nested deeper than DEEPEST, the inner ones are left out and what is in them stays, so that whoever
walks the tree may do so by recursion.
"""

from collections.abc import Iterator
from typing import Any

from bs4 import BeautifulSoup, Tag
from bs4.builder import HTMLTreeBuilder
from selectolax.lexbor import LexborHTMLParser, LexborNode

from desktop_agent.tools.web.reading.hiding import HiddenElements

MAX_DEPTH = 120
_MAX_ATTRIBUTE_LENGTH = 4_000


def name_set(text: str) -> frozenset[str]:
    """Names and classes, as a set."""
    return frozenset(text.split())


HEADINGS = name_set("h1 h2 h3 h4 h5 h6")
BLOCKS = HEADINGS | name_set(
    "address article aside blockquote body center dd details dialog dir div dl dt fieldset figcaption figure "
    "footer form header hgroup hr html legend li main menu nav ol p pre search section summary table "
    "tbody td tfoot th thead tr ul"
)

_SKIPPED_ELEMENTS = name_set(
    "script style template svg canvas iframe object audio video select button textarea datalist frameset noframes "
    "noembed applet map"
)


def parse_page(html: str) -> tuple[BeautifulSoup, int]:
    """Parse a page, leaving out what nobody would see or read; also, how many characters were transparent."""
    builder = _Builder(html)
    # Of a short text Beautiful Soup would ask whether it is an address; the builder has the page.
    return BeautifulSoup("\n", builder=builder, element_classes={Tag: _Element}), builder.transparent


def class_names(element: Tag) -> frozenset[str]:
    """Its classes and its id, in lower case."""
    attributes = element.attrs
    if "class" not in attributes and "id" not in attributes:
        return frozenset()
    return frozenset(f"{attribute(element, 'class')} {attribute(element, 'id')}".lower().split())


def attribute(element: Tag, name: str) -> str:
    """Its value; empty when the element has none."""
    return str(element.attrs.get(name, ""))


def child_elements(element: Tag) -> Iterator[Tag]:
    """Directly in it."""
    return (each for each in element.contents if isinstance(each, Tag))


def iter_elements(element: Tag) -> Iterator[Tag]:
    """It, and everything in it, in the order of the page."""
    yield element
    yield from (each for each in element.descendants if isinstance(each, Tag))


def remove_children(parent: Tag, gone: list[Tag]) -> None:
    """Some of what is directly in an element, in time that grows with how many there are and no faster."""
    if not gone:
        return
    without = {id(each) for each in gone}
    for each in gone:
        # The library looks for an element that has a parent among all that are beside it.
        each.parent = None
        each.extract()
    parent.contents[:] = [each for each in parent.contents if id(each) not in without]


class _Element(Tag):
    def find_parent(self, name: Any = None, attrs: Any = None, **more: Any) -> Tag | None:
        # The converter asks every element for a parent by its bare name: half of all time by the library's own way.
        if not isinstance(name, str) or attrs or more:
            return super().find_parent(name, attrs, **more)
        return next((each for each in self.parents if each.name == name), None)


class _Builder(HTMLTreeBuilder):
    """Fills the soup with the page that it was made with, whatever the soup hands to it."""

    def __init__(self, html: str) -> None:
        super().__init__(multi_valued_attributes={})
        self._html = html
        self.transparent = 0

    def prepare_markup(self, markup: Any, *_: Any, **__: Any) -> Iterator[tuple[Any, None, None, bool]]:
        yield markup, None, None, False

    def feed(self, markup: Any) -> None:
        del markup
        soup: Any = self.soup
        # Held to the end: the nodes are the parser's own.
        parser = LexborHTMLParser(self._html)
        hiding = HiddenElements(each.text() for each in parser.css("style"))
        opened: list[tuple[LexborNode | None, str]] = []
        node = parser.root
        while True:
            while node is None:
                if not opened:
                    return
                node, name = opened.pop()
                _end_element(soup, name)
            after = node.next if opened else None
            if node.is_text_node:
                soup.handle_data(node.text_content or "")
            elif (begun := self._begun(node, len(opened), hiding)) is not None:
                opened.append((after, begun))
                after = node.first_child
            node = after

    def _begun(self, node: LexborNode, depth: int, hiding: HiddenElements) -> str | None:
        """Begin an element: its name, empty where it lies too deep; None when nothing in it is read."""
        soup: Any = self.soup
        name = node.tag or ""
        if not node.is_element_node or name in _SKIPPED_ELEMENTS:
            return None
        attributes = {key: (value or "")[:_MAX_ATTRIBUTE_LENGTH] for key, value in node.attributes.items()}
        if hiding.hides(name, attributes):
            return None
        if hiding.makes_transparent(name, attributes):
            self.transparent += len(" ".join(node.text().split()))
            return None
        if depth < MAX_DEPTH:
            soup.handle_starttag(name, None, None, attributes)
            return name
        soup.handle_data(" ")
        return ""


def _end_element(soup: Any, name: str) -> None:
    if name:
        soup.handle_endtag(name)
    else:
        soup.handle_data(" ")
