"""Which part of a page is what it is about, and what stands around it on every page of its site."""

from bs4 import Tag
from bs4.element import NavigableString

from desktop_agent.tools.web.reading.parsing import all_elements, attribute, elements, names, take_out, words

_AROUND = frozenset({"nav", "search"})
_AROUND_ROLES = frozenset({"navigation", "banner", "contentinfo", "search", "menu", "menubar", "dialog", "alertdialog"})
# Words of classes and ids for what makers of pages put beside their text. Only whole words, and only mostly links.
_AROUND_WORDS = names(
    "nav navbar navigation navbox menu sidebar sphinxsidebar breadcrumb breadcrumbs related footer page-footer "
    "site-footer header site-header page-header skip-link skip-links toc-sidebar pagination pager share social"
)
# As those, and put within the text as well.
_SHARING = names("share social share-buttons social-share sharing")
# As those, whatever is in them: people are asked there, or told about other pages.
_NEVER = names(
    "cookie-banner cookie-consent cookie-notice cookiebanner onetrust-consent-sdk headerlink anchor-link "
    "mw-editsection mw-jump-link catlinks printfooter linenos lineno linenodiv gutter copybtn"
)
_MAIN_WORDS = names(
    "content main main-content maincontent mw-content-text bodycontent page-content post-content entry-content "
    "article-body post-body markdown-body documentation docs-content"
)
_ENOUGH = 0.4
_MOSTLY = 0.5
_SHORT = 250


def main_part(page: Tag) -> Tag:
    """The element that holds what the page is about, with what stands around it taken out; in doubt all of it."""
    inside = _candidates(page)
    # Outside of it even a heading may belong to the site.
    _take_out(page, keeps=inside)
    if not inside:
        return page
    best = max(inside, key=_size)
    return best if _size(best) >= min(_SHORT, _ENOUGH * _size(page)) else page


def _candidates(page: Tag) -> list[Tag]:
    """Those by which the page itself says so, the surest kind first."""
    every = list(all_elements(page))
    if found := [each for each in every if each.name == "main" or attribute(each, "role") == "main"]:
        return found
    articles = [each for each in every if each.name == "article"]
    if len(articles) == 1:
        return articles
    total = _size(page)
    return [each for each in every if words(each) & _MAIN_WORDS and _size(each) >= _ENOUGH * total][:1]


def _take_out(page: Tag, keeps: list[Tag]) -> None:
    kept = {id(each) for each in keeps}
    holding = kept | {id(above) for each in keeps for above in each.parents}
    waiting = [(page, False)]
    while waiting:
        parent, is_inside = waiting.pop()
        is_inside = is_inside or id(parent) in kept
        gone: list[Tag] = []
        for each in elements(parent):
            if id(each) not in holding and _stands_around(each, is_inside=is_inside):
                gone.append(each)
            elif each.name != "pre":
                # The numbers of lines in code, which are many, are passed over where code is written.
                waiting.append((each, is_inside))
        take_out(parent, gone)


def _stands_around(element: Tag, *, is_inside: bool) -> bool:
    named = words(element)
    if named & _NEVER or element.name in _AROUND or attribute(element, "role").lower() in _AROUND_ROLES:
        return True
    if is_inside:
        return (element.name == "aside" or bool(named & _SHARING)) and _is_mostly_links(element)
    if element.name in {"aside", "footer"} and _size(element) < _SHORT:
        return True
    is_beside = element.name in {"header", "footer", "aside"} or bool(named & _AROUND_WORDS)
    return is_beside and _is_mostly_links(element)


def _is_mostly_links(element: Tag) -> bool:
    linked = sum(_size(each) for each in all_elements(element) if each.name == "a")
    return linked >= _MOSTLY * _size(element)


def _size(element: Tag) -> int:
    return sum(len("".join(each.split())) for each in element.descendants if isinstance(each, NavigableString))
