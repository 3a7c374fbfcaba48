"""Removing or moving elements leaves a consistent tree, and does not search the siblings."""

from itertools import pairwise

import pytest
from bs4 import Tag

from desktop_agent.tools.web.html_parser import (
    child_elements,
    find_main_part,
    iter_elements,
    parse_page,
    remove_children,
)
from desktop_agent.tools.web.html_to_markdown import to_markdown

BASE = "https://docs.example.org/"


def body(html: str) -> Tag:
    return next(element for element in iter_elements(parse_page(html)[0]) if element.name == "body")


def assert_links_agree(root: Tag) -> None:
    """Assert that the links between elements agree with their parents."""
    for element in iter_elements(root):
        for before, after in pairwise(element.contents):
            assert before.next_sibling is after
            assert after.previous_sibling is before
        for inner in element.contents:
            assert inner.parent is element
    elements = [root, *root.descendants]
    for before, after in pairwise(elements):
        assert before.next_element is after
        assert after.previous_element is before


@pytest.mark.parametrize("removed", ["a", "b", "c", "ab", "bc", "ac", "abc", ""])
def test_the_tree_stays_whole(removed):
    page = body("".join(f"<div id={name}><p>{name}</p>,</div>" for name in "abc"))
    out = [element for element in child_elements(page) if element.attrs["id"] in removed]
    remove_children(page, out)
    assert page.get_text() == "".join(f"{name}," for name in "abc" if name not in removed)
    assert all(element.parent is None and element.get_text() for element in out)
    assert_links_agree(page)


def test_a_list_beside_an_item_comes_to_be_in_it():
    page = body(
        "<ul><ol><li>0</ol><li>a</li><ul><li>b</li></ul><ol start=3><li>c</ol><li>d</li><p>e</p><ul><li>f</ul></ul>"
        "<dir><li>g</li><ul><li>h</ul></dir>"
    )
    assert " ".join(to_markdown(page, BASE).split()) == "1. 0 - a - b 3. c - d e - f - g - h"
    outer = next(child_elements(page))
    assert [child.name for child in child_elements(outer)] == ["ol", "li", "li", "p", "ul"]
    assert_links_agree(page)


@pytest.mark.parametrize(
    "html",
    [
        "<nav>x</nav><p>y" * 50,
        "<aside class=share><a href=x>x</a></aside><p>y" * 50,
        "<ul>" + "<li>x</li>" * 50 + "<ul><li>y</li></ul>" * 50 + "</ul>",
        "<menu>" + "<li>x</li><ul><li>y</li></ul>" * 50 + "</menu>",
    ],
)
def test_nothing_is_looked_for_among_its_neighbours(html: str, monkeypatch: pytest.MonkeyPatch):
    page = parse_page(html)[0]
    looked: list[Tag] = []
    true = Tag.index
    monkeypatch.setattr(Tag, "index", lambda self, element: looked.append(self) or true(self, element))
    assert "y" in to_markdown(find_main_part(page), BASE)
    assert looked == []
