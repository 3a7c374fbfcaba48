"""What is taken out of a page, or moved in it, leaves a whole tree, and nothing is looked for among its neighbours."""

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
    return next(each for each in iter_elements(parse_page(html)[0]) if each.name == "body")


def linked(part: Tag) -> None:
    """Fails where the links between elements disagree with what they are in."""
    for each in iter_elements(part):
        for before, after in pairwise(each.contents):
            assert before.next_sibling is after
            assert after.previous_sibling is before
        for inner in each.contents:
            assert inner.parent is each
    every = [part, *part.descendants]
    for before, after in pairwise(every):
        assert before.next_element is after
        assert after.previous_element is before


@pytest.mark.parametrize("gone", ["a", "b", "c", "ab", "bc", "ac", "abc", ""])
def test_the_tree_stays_whole(gone):
    page = body("".join(f"<div id={name}><p>{name}</p>,</div>" for name in "abc"))
    out = [each for each in child_elements(page) if each.attrs["id"] in gone]
    remove_children(page, out)
    assert page.get_text() == "".join(f"{name}," for name in "abc" if name not in gone)
    assert all(each.parent is None and each.get_text() for each in out)
    linked(page)


def test_a_list_beside_an_item_comes_to_be_in_it():
    part = body(
        "<ul><ol><li>0</ol><li>a</li><ul><li>b</li></ul><ol start=3><li>c</ol><li>d</li><p>e</p><ul><li>f</ul></ul>"
        "<dir><li>g</li><ul><li>h</ul></dir>"
    )
    assert " ".join(to_markdown(part, BASE).split()) == "1. 0 - a - b 3. c - d e - f - g - h"
    outer = next(child_elements(part))
    assert [each.name for each in child_elements(outer)] == ["ol", "li", "li", "p", "ul"]
    linked(part)


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
