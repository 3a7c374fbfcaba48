"""Which part of a page is what it is about, and what stands around it on every page of its site."""

from desktop_agent.tools.web.reading.tree import Element, words

_AROUND = frozenset({"nav", "search"})
_AROUND_ROLES = frozenset({"navigation", "banner", "contentinfo", "search", "menu", "menubar", "dialog", "alertdialog"})
# Words of classes and ids for what makers of pages put beside their text. Only whole words, and only mostly links.
_AROUND_WORDS = words(
    "nav navbar navigation navbox menu sidebar sphinxsidebar breadcrumb breadcrumbs related footer page-footer "
    "site-footer header site-header page-header skip-link skip-links toc-sidebar pagination pager share social"
)
# As those, whatever is in them: people are asked there, or told about other pages.
_NEVER = words(
    "cookie-banner cookie-consent cookie-notice cookiebanner onetrust-consent-sdk headerlink anchor-link "
    "mw-editsection mw-jump-link catlinks printfooter linenos lineno linenodiv gutter copybtn"
)
_MAIN_WORDS = words(
    "content main main-content maincontent mw-content-text bodycontent page-content post-content entry-content "
    "article-body post-body markdown-body documentation docs-content"
)
_ENOUGH = 0.4
_MOSTLY = 0.5
_SHORT = 250


def main_part(page: Element) -> Element:
    """The element that holds what the page is about, with what stands around it taken out; in doubt all of it."""
    inside = _candidates(page)
    # Outside of it even a heading may belong to the site.
    _take_out(page, keeps=inside)
    if not inside:
        return page
    best = max(inside, key=_size)
    return best if _size(best) >= min(_SHORT, _ENOUGH * _size(page)) else page


def _candidates(page: Element) -> list[Element]:
    """Those by which the page itself says so, the surest kind first."""
    every = list(page.all())
    if found := [each for each in every if each.name == "main" or each.attributes.get("role") == "main"]:
        return found
    articles = [each for each in every if each.name == "article"]
    if len(articles) == 1:
        return articles
    total = _size(page)
    return [each for each in every if each.words & _MAIN_WORDS and _size(each) >= _ENOUGH * total][:1]


def _take_out(page: Element, keeps: list[Element]) -> None:
    kept = {id(each) for each in keeps}
    waiting = [(page, False)]
    while waiting:
        parent, is_inside = waiting.pop()
        is_inside = is_inside or id(parent) in kept
        parent.children = [
            each
            for each in parent.children
            if isinstance(each, str) or id(each) in kept or not _stands_around(each, is_inside=is_inside, kept=kept)
        ]
        waiting.extend((each, is_inside) for each in parent.elements)


def _stands_around(element: Element, *, is_inside: bool, kept: set[int]) -> bool:
    named = element.words
    if named & _NEVER or element.name in _AROUND or element.attributes.get("role", "").lower() in _AROUND_ROLES:
        return not _holds(element, kept)
    if is_inside:
        return element.name == "aside" and _is_mostly_links(element)
    if element.name in {"aside", "footer"} and _size(element) < _SHORT:
        return not _holds(element, kept)
    is_beside = element.name in {"header", "footer", "aside"} or bool(named & _AROUND_WORDS)
    return is_beside and _is_mostly_links(element) and not _holds(element, kept)


def _holds(element: Element, kept: set[int]) -> bool:
    return bool(kept) and any(id(each) in kept for each in element.all())


def _is_mostly_links(element: Element) -> bool:
    linked = sum(_size(each) for each in element.all() if each.name == "a")
    return linked >= _MOSTLY * _size(element)


def _size(element: Element) -> int:
    return len("".join(element.text().split()))
