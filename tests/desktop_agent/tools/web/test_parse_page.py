"""HTML becomes the tree that a browser makes of it, without what it would not show, and not too deep to be walked."""

import pytest
from bs4 import Tag
from bs4.element import NavigableString

from desktop_agent.tools.web.html_parser import MAX_DEPTH, child_elements, class_names, iter_elements, parse_page


def shape(element: Tag) -> str:
    inner = "".join(str(child) if isinstance(child, NavigableString) else shape(child) for child in element.contents)
    return f"{element.name}({inner})"


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p>a<p>b", "p(a)p(b)"),
        ("<p>a<div>b</div>", "p(a)div(b)"),
        ("<ul><li>a<li>b<ul><li>c</ul>d</ul>", "ul(li(a)li(bul(li(c))d))"),
        ("<table><tr><td>a<td>b<tr><th>c</table>d", "table(tbody(tr(td(a)td(b))tr(th(c))))d"),
        ("<table><p>a<tr><td>b</table>", "p(a)table(tbody(tr(td(b))))"),
        ("a</p>b</x>c</br>d", "ap()bcbr()d"),
        ("<b>a<i>b</b>c", "b(ai(b))i(c)"),
        ("<a>b<a>c", "a(b)a(c)"),
        ("<br/>a<div/>b", "br()adiv(b)"),
        ("<svg><g/><path/><svg/></svg>a", "a"),
        ("<p><button>x</button>y", "p(y)"),
        ("<![CDATA[x]]>a<![bad[b]]>c<!doctype x>d<?pi e?>f", "acdf"),
        ("<html><body class=x>a</body></html>b", "ab"),
        ("<noscript><p>a</p></noscript>b", "noscript(p(a))b"),
        (
            "<p hidden>a<p>b<p aria-hidden=true>c<p style='x:y; Display: none'>d<dialog>e</dialog><dialog open>f",
            "p(b)dialog(f)",
        ),
        ("<b hidden>a<p>b</p></b>c", "c"),
        ("https://example.org/", "https://example.org/"),
        ("", ""),
    ],
)
def test_shapes(html, expected):
    body = next(element for element in iter_elements(parse_page(f"<body>{html}")[0]) if element.name == "body")
    assert shape(body) == f"body({expected})"


def test_too_deep_elements_are_left_out_and_what_is_in_them_stays():
    page = parse_page("<div>" * 5000 + "<p>deep</p>" + "</div>" * 5000 + "<p>after")[0]
    assert page.get_text().split() == ["deep", "after"]
    depth, element = 0, page
    while element := next(
        reversed(list(child_elements(element))) if element.name in {"[document]", "html"} else child_elements(element),
        None,
    ):
        depth += 1
    assert depth == MAX_DEPTH


def test_words_that_too_deep_elements_kept_apart_stay_apart():
    page = parse_page("<div>" * 200 + "<p>one</p><p>two</p>")[0]
    assert page.get_text().split() == ["one", "two"]


def test_classes_and_ids_are_words():
    classes = {
        element.name: class_names(element) for element in iter_elements(parse_page("<p class='A b' id=C>x<b>y")[0])
    }
    assert (classes["p"], classes["b"]) == ({"a", "b", "c"}, set())
