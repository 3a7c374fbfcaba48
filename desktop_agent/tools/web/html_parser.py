"""Parse HTML as a browser does, leave out what a browser would not show, and find the main part of a page."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from bs4 import BeautifulSoup, Tag
from bs4.builder import HTMLTreeBuilder
from bs4.element import NavigableString
from selectolax.lexbor import LexborHTMLParser, LexborNode

_MAX_STYLES = 400_000
_OFF_SCREEN = 500.0
"""In pixels. A text that is moved so far out of the page is not meant to be seen."""
_HIDING_ATTRIBUTES = {"hidden", "popover"}
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_ESCAPE = re.compile(r"\\([0-9a-f]{1,6})\s?")
_PLAIN_RULE = re.compile(r"([^{}]*)\{([^{}]*)\}")
_ONE_NAME = re.compile(r"(?:[a-z][a-z0-9]*)?([.#][\w-]+)")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)")
_CLEAR = re.compile(r"transparent|#(?:[0-9a-f]{3}0|[0-9a-f]{6}00)|(?:rgba?|hsla?)\(.*[,/]\s*0(?:\.0*)?%?\s*\)")
_NO_SCALE = re.compile(r"scale(?:3d|x|y)?\(\s*0(?:\.0*)?\s*[,)]")
_CLEARED = re.compile(r"opacity\(\s*(?:0+(?:\.0\d*)?|\.0\d*)%?\s*\)")
_ANIMATION = re.compile(r"@(?:-\w+-)?keyframes\s+([\w-]+)")
_ANY_NAME = re.compile(r"[.#][\w-]+")
_MIN_OPACITY = 0.05
"""The opacity up to which a text cannot be read."""
_CLIPPED = re.compile(r"(?:inset\(\s*(?:100|[5-9]\d)(?:\.\d*)?%|circle\(\s*0|polygon\(\s*0)")

Style = Mapping[str, str]


class HiddenElements:
    """Decides which elements of one page are hidden; `sheets` are the texts of its style sheets."""

    def __init__(self, sheets: Iterable[str] = ()) -> None:
        text = _COMMENT.sub("", "\n".join(sheets)[:_MAX_STYLES].lower())
        rules = tuple(_rules(text))
        self._names = _names_of_rules(rules, is_hidden, {"display", "visibility"})
        self._animations = frozenset(_ANIMATION.findall(text))
        self._appearing = frozenset(_appearing_names(rules))
        self._transparent = _names_of_rules(rules, self._is_transparent, {"opacity"}) - self._appearing

    def hides(self, name: str, attributes: Mapping[str, str]) -> bool:
        """Return whether an element of this name, with these attributes, and all that is in it are not shown."""
        return (
            not _HIDING_ATTRIBUTES.isdisjoint(attributes)
            or (name == "dialog" and "open" not in attributes)
            or attributes.get("aria-hidden", "").lower() == "true"
            or ("style" in attributes and is_hidden(parse_style(attributes["style"])))
            or (bool(self._names) and not self._names.isdisjoint(_names_of(attributes)))
        )

    def makes_transparent(self, name: str, attributes: Mapping[str, str]) -> bool:
        """Return whether it and all in it exist unseen, unless a script changes that. A whole page never is."""
        if name in {"html", "body"}:
            return False
        has_own_opacity = "opacity" in attributes.get("style", "").lower() or "\\" in attributes.get("style", "")
        if not (has_own_opacity or self._transparent):
            return False
        style, names = parse_style(attributes.get("style", "")), _names_of(attributes)
        if self._is_transparent(style):
            return self._appearing.isdisjoint(names)
        return not _becomes_visible(style) and not self._transparent.isdisjoint(names)

    def _is_transparent(self, style: Style) -> bool:
        if _opacity(style) > _MIN_OPACITY and _CLEARED.search(style.get("filter", "")) is None:
            return False
        animation = f"{style.get('animation', '')} {style.get('animation-name', '')}"
        return self._animations.isdisjoint(re.split(r"[\s,]+", animation))


@lru_cache(maxsize=256)
def parse_style(text: str) -> Style:
    """Return the properties of a style, in lower case; of a repeated property the one that applies."""
    properties: dict[str, str] = {}
    important: set[str] = set()
    plain = _ESCAPE.sub(_character, _COMMENT.sub("", text.lower()))
    for part in plain.split(";"):
        name, _, value = part.partition(":")
        value, mark, _ = value.partition("!")
        name = name.strip()
        if mark or name not in important:
            properties[name] = value.strip()
        if mark:
            important.add(name)
    return properties


def is_hidden(style: Style) -> bool:
    """Return whether nothing is seen of what has this style."""
    return any(test(style) for test in _TESTS)


def _is_not_displayed(style: Style) -> bool:
    return (
        style.get("display") == "none"
        or style.get("visibility") in {"hidden", "collapse"}
        or style.get("content-visibility") == "hidden"
    )


def _has_clear_text(style: Style) -> bool:
    background = style.get("background-color") or style.get("background")
    color = style.get("color", "")
    return _CLEAR.fullmatch(color) is not None or bool(color and color == background)


def _is_tiny(style: Style) -> bool:
    size = style.get("font-size") or next(
        iter(re.findall(r"(?:^|\s)([\d.]+[a-z%]*)(?:/|\s)", style.get("font", ""))), ""
    )
    limit = 1.0 if size.endswith(("px", "pt")) else 5.0 if size.endswith("%") else 0.05
    return (
        _number(size) <= limit
        or _NO_SCALE.search(f"{style.get('transform', '')} scale({style.get('scale', 1)})") is not None
    )


def _is_off_screen(style: Style) -> bool:
    offsets = ["text-indent", "margin-left", "margin-top"]
    if style.get("position") in {"absolute", "fixed"}:
        offsets += ["left", "right", "top", "bottom"]
    return any(_number(style.get(property_name), 0.0) <= -_OFF_SCREEN for property_name in offsets)


def _is_clipped(style: Style) -> bool:
    sizes = ("width", "height", "max-width", "max-height")
    is_cut = any(style.get(name) in {"hidden", "clip"} for name in ("overflow", "overflow-x", "overflow-y"))
    is_empty = is_cut and any(_number(style.get(size)) <= 1 for size in sizes if not style.get(size, "").endswith("em"))
    is_clipped = _CLIPPED.search(style.get("clip-path", "")) is not None
    return is_empty or is_clipped or re.sub(r"[\s,]|px", "", style.get("clip", "")) in {"rect(0000)", "rect(1111)"}


_TESTS: tuple[Callable[[Style], bool], ...] = (
    _is_not_displayed,
    _has_clear_text,
    _is_tiny,
    _is_off_screen,
    _is_clipped,
)


def _opacity(style: Style) -> float:
    value = style.get("opacity", "1")
    return _number(value) / (100 if value.endswith("%") else 1)


def _becomes_visible(style: Style) -> bool:
    return "opacity" in style and _opacity(style) > _MIN_OPACITY


def _number(value: str | None, default: float = float("inf")) -> float:
    match = _NUMBER.match(value or "")
    return float(match[0]) if match else default


def _character(escape: re.Match[str]) -> str:
    code = int(escape[1], 16)
    return chr(code).lower() if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"


def _names_of(attributes: Mapping[str, str]) -> set[str]:
    names = {f".{part}" for part in attributes.get("class", "").lower().split()}
    return names | {f"#{attributes['id'].lower()}"} if attributes.get("id") else names


def _rules(sheets: str) -> Iterator[tuple[str, Style]]:
    """Yield selectors and styles. Rules within rules, as those for paper or for small screens, are left out."""
    for selectors, body in _PLAIN_RULE.findall(_outermost(sheets)):
        yield selectors.rpartition(";")[2], parse_style(body)


def _names_of_rules(
    rules: Iterable[tuple[str, Style]], test: Callable[[Style], bool], related_properties: set[str]
) -> frozenset[str]:
    """Return classes and ids with their marks, for which the test holds in the last rule about them."""
    names: dict[str, bool] = {}
    for selectors, style in rules:
        holds = test(style)
        if holds or not related_properties.isdisjoint(style):
            for part in selectors.split(","):
                if name := _ONE_NAME.fullmatch(part.strip()):
                    names[name[1]] = holds
    return frozenset(name for name, holds in names.items() if holds)


def _appearing_names(rules: Iterable[tuple[str, Style]]) -> Iterator[str]:
    """Yield all names in selectors for more than one name, which outrank those for one, that let something be seen."""
    for selectors, style in rules:
        if _becomes_visible(style):
            for part in selectors.split(","):
                if not _ONE_NAME.fullmatch(part.strip()):
                    yield from _ANY_NAME.findall(part)


def _outermost(sheets: str) -> str:
    """Remove rules that hold rules."""
    pieces: list[str] = []
    start, depth = 0, 0
    for brace in re.finditer(r"[{}]", sheets):
        if brace[0] == "{":
            depth += 1
            continue
        depth = max(depth - 1, 0)
        if depth == 0:
            rule = sheets[start : brace.end()]
            pieces.append(rule if rule.count("{") == 1 else "")
            start = brace.end()
    return "".join(pieces)


MAX_DEPTH = 120
_MAX_ATTRIBUTE_LENGTH = 4_000


def name_set(text: str) -> frozenset[str]:
    """Return names and classes, as a set."""
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
    """Parse a page without what nobody would see or read; return also how many characters were transparent."""
    builder = _Builder(html)
    # Beautiful Soup gets no text, which it might take for an address: the builder has the page.
    return BeautifulSoup("\n", builder=builder, element_classes={Tag: _Element}), builder.transparent


def class_names(element: Tag) -> frozenset[str]:
    """Return its classes and its id, in lower case."""
    attributes = element.attrs
    if "class" not in attributes and "id" not in attributes:
        return frozenset()
    return frozenset(f"{attribute(element, 'class')} {attribute(element, 'id')}".lower().split())


def attribute(element: Tag, name: str) -> str:
    """Return an attribute; empty when the element has none."""
    return str(element.attrs.get(name, ""))


def child_elements(element: Tag) -> Iterator[Tag]:
    """Return the elements directly in it."""
    return (content for content in element.contents if isinstance(content, Tag))


def iter_elements(element: Tag) -> Iterator[Tag]:
    """Yield it, and everything in it, in the order of the page."""
    yield element
    yield from (descendant for descendant in element.descendants if isinstance(descendant, Tag))


def remove_children(parent: Tag, removed: list[Tag]) -> None:
    """Remove some of what is directly in an element, in linear time."""
    if not removed:
        return
    removed_ids = {id(child) for child in removed}
    for child in removed:
        # The library would search all siblings for an element that has a parent.
        child.parent = None
        child.extract()
    parent.contents[:] = [content for content in parent.contents if id(content) not in removed_ids]


class _Element(Tag):
    def find_parent(self, name: Any = None, attrs: Any = None, **more: Any) -> Tag | None:
        # The converter asks every element for a parent by its bare name: half of all time by the library's own way.
        if not isinstance(name, str) or attrs or more:
            return super().find_parent(name, attrs, **more)
        return next((parent for parent in self.parents if parent.name == name), None)


class _Builder(HTMLTreeBuilder):
    """Fills the soup with the page that it was made with, whatever the soup passes to it."""

    def __init__(self, html: str) -> None:
        super().__init__(multi_valued_attributes={})
        self._html = html
        self.transparent = 0

    def prepare_markup(self, markup: Any, *_: Any, **__: Any) -> Iterator[tuple[Any, None, None, bool]]:
        yield markup, None, None, False

    def feed(self, markup: Any) -> None:
        del markup
        soup: Any = self.soup
        # Kept to the end: the parser owns the nodes.
        parser = LexborHTMLParser(self._html)
        hiding = HiddenElements(sheet.text() for sheet in parser.css("style"))
        opened: list[tuple[LexborNode | None, str]] = []
        node = parser.root
        while True:
            while node is None:
                if not opened:
                    return
                node, name = opened.pop()
                _end_element(soup, name)
            next_node = node.next if opened else None
            if node.is_text_node:
                soup.handle_data(node.text_content or "")
            elif (started := self._begin_element(node, len(opened), hiding)) is not None:
                opened.append((next_node, started))
                next_node = node.first_child
            node = next_node

    def _begin_element(self, node: LexborNode, depth: int, hiding: HiddenElements) -> str | None:
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


_NAVIGATION_ELEMENTS = frozenset({"nav", "search"})
_NAVIGATION_ROLES = frozenset(
    {"navigation", "banner", "contentinfo", "search", "menu", "menubar", "dialog", "alertdialog"}
)
# Words of classes and ids for what makers of pages put beside their text. Only whole words, and only mostly links.
_NAVIGATION_CLASSES = name_set(
    "nav navbar navigation navbox menu sidebar sphinxsidebar breadcrumb breadcrumbs related footer page-footer "
    "site-footer header site-header page-header skip-link skip-links toc-sidebar pagination pager share social"
)
# Like those, and put within the text as well.
_SHARING_CLASSES = name_set("share social share-buttons social-share sharing")
# Left out too, whatever is in them: questions to people, and links to other pages.
_BANNER_CLASSES = name_set(
    "cookie-banner cookie-consent cookie-notice cookiebanner onetrust-consent-sdk headerlink anchor-link "
    "mw-editsection mw-jump-link catlinks printfooter linenos lineno linenodiv gutter copybtn"
)
_MAIN_CLASSES = name_set(
    "content main main-content maincontent mw-content-text bodycontent page-content post-content entry-content "
    "article-body post-body markdown-body documentation docs-content"
)
_ENOUGH = 0.4
_MOSTLY = 0.5
_SHORT = 250


def find_main_part(page: Tag) -> Tag:
    """Return the main part of the page, without navigation around it; in doubt the whole page."""
    candidates = _candidates(page)
    # Outside of it even a heading may belong to the site.
    _remove_navigation(page, keeps=candidates)
    if not candidates:
        return page
    best = max(candidates, key=_text_length)
    return best if _text_length(best) >= min(_SHORT, _ENOUGH * _text_length(page)) else page


def _candidates(page: Tag) -> list[Tag]:
    """Return the elements that the page marks as its main part, of the surest kind only."""
    elements = list(iter_elements(page))
    if mains := [element for element in elements if element.name == "main" or attribute(element, "role") == "main"]:
        return mains
    articles = [element for element in elements if element.name == "article"]
    if len(articles) == 1:
        return articles
    total = _text_length(page)
    return [
        element
        for element in elements
        if class_names(element) & _MAIN_CLASSES and _text_length(element) >= _ENOUGH * total
    ][:1]


def _remove_navigation(page: Tag, keeps: list[Tag]) -> None:
    kept_ids = {id(element) for element in keeps}
    protected_ids = kept_ids | {id(ancestor) for element in keeps for ancestor in element.parents}
    stack = [(page, False)]
    while stack:
        parent, is_inside = stack.pop()
        is_inside = is_inside or id(parent) in kept_ids
        removed: list[Tag] = []
        for element in child_elements(parent):
            if id(element) not in protected_ids and _is_navigation(element, is_inside=is_inside):
                removed.append(element)
            elif element.name != "pre":
                # The numbers of lines in code, which are many, are passed over where code is written.
                stack.append((element, is_inside))
        remove_children(parent, removed)


def _is_navigation(element: Tag, *, is_inside: bool) -> bool:
    names = class_names(element)
    if (
        names & _BANNER_CLASSES
        or element.name in _NAVIGATION_ELEMENTS
        or attribute(element, "role").lower() in _NAVIGATION_ROLES
    ):
        return True
    if is_inside:
        return (element.name == "aside" or bool(names & _SHARING_CLASSES)) and _is_mostly_links(element)
    if element.name in {"aside", "footer"} and _text_length(element) < _SHORT:
        return True
    is_beside = element.name in {"header", "footer", "aside"} or bool(names & _NAVIGATION_CLASSES)
    return is_beside and _is_mostly_links(element)


def _is_mostly_links(element: Tag) -> bool:
    linked = sum(_text_length(link) for link in iter_elements(element) if link.name == "a")
    return linked >= _MOSTLY * _text_length(element)


def _text_length(element: Tag) -> int:
    return sum(
        len("".join(descendant.split()))
        for descendant in element.descendants
        if isinstance(descendant, NavigableString)
    )
