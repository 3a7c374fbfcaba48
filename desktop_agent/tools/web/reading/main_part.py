"""Which part of a page is what it is about, and what stands around it on every page of its site."""

from bs4 import Tag
from bs4.element import NavigableString

from desktop_agent.tools.web.reading.parsing import (
    attribute,
    child_elements,
    class_names,
    iter_elements,
    name_set,
    remove_children,
)

_NAVIGATION_ELEMENTS = frozenset({"nav", "search"})
_NAVIGATION_ROLES = frozenset(
    {"navigation", "banner", "contentinfo", "search", "menu", "menubar", "dialog", "alertdialog"}
)
# Words of classes and ids for what makers of pages put beside their text. Only whole words, and only mostly links.
_NAVIGATION_CLASSES = name_set(
    "nav navbar navigation navbox menu sidebar sphinxsidebar breadcrumb breadcrumbs related footer page-footer "
    "site-footer header site-header page-header skip-link skip-links toc-sidebar pagination pager share social"
)
# As those, and put within the text as well.
_SHARING_CLASSES = name_set("share social share-buttons social-share sharing")
# As those, whatever is in them: people are asked there, or told about other pages.
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
    """The element that holds what the page is about, with what stands around it taken out; in doubt all of it."""
    inside = _candidates(page)
    # Outside of it even a heading may belong to the site.
    _remove_navigation(page, keeps=inside)
    if not inside:
        return page
    best = max(inside, key=_text_length)
    return best if _text_length(best) >= min(_SHORT, _ENOUGH * _text_length(page)) else page


def _candidates(page: Tag) -> list[Tag]:
    """Those by which the page itself says so, the surest kind first."""
    every = list(iter_elements(page))
    if found := [each for each in every if each.name == "main" or attribute(each, "role") == "main"]:
        return found
    articles = [each for each in every if each.name == "article"]
    if len(articles) == 1:
        return articles
    total = _text_length(page)
    return [each for each in every if class_names(each) & _MAIN_CLASSES and _text_length(each) >= _ENOUGH * total][:1]


def _remove_navigation(page: Tag, keeps: list[Tag]) -> None:
    kept = {id(each) for each in keeps}
    holding = kept | {id(above) for each in keeps for above in each.parents}
    waiting = [(page, False)]
    while waiting:
        parent, is_inside = waiting.pop()
        is_inside = is_inside or id(parent) in kept
        gone: list[Tag] = []
        for each in child_elements(parent):
            if id(each) not in holding and _is_navigation(each, is_inside=is_inside):
                gone.append(each)
            elif each.name != "pre":
                # The numbers of lines in code, which are many, are passed over where code is written.
                waiting.append((each, is_inside))
        remove_children(parent, gone)


def _is_navigation(element: Tag, *, is_inside: bool) -> bool:
    named = class_names(element)
    if (
        named & _BANNER_CLASSES
        or element.name in _NAVIGATION_ELEMENTS
        or attribute(element, "role").lower() in _NAVIGATION_ROLES
    ):
        return True
    if is_inside:
        return (element.name == "aside" or bool(named & _SHARING_CLASSES)) and _is_mostly_links(element)
    if element.name in {"aside", "footer"} and _text_length(element) < _SHORT:
        return True
    is_beside = element.name in {"header", "footer", "aside"} or bool(named & _NAVIGATION_CLASSES)
    return is_beside and _is_mostly_links(element)


def _is_mostly_links(element: Tag) -> bool:
    linked = sum(_text_length(each) for each in iter_elements(element) if each.name == "a")
    return linked >= _MOSTLY * _text_length(element)


def _text_length(element: Tag) -> int:
    return sum(len("".join(each.split())) for each in element.descendants if isinstance(each, NavigableString))
