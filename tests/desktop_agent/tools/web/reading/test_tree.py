"""HTML becomes the tree that its makers meant, as far as one can know; and no deeper than can be walked."""

import pytest

from desktop_agent.tools.web.reading.tree import DEEPEST, Element, tree_of


def shape(element: Element) -> str:
    inner = "".join(each if isinstance(each, str) else shape(each) for each in element.children)
    return f"{element.name}({inner})"


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p>a<p>b", "p(a)p(b)"),
        ("<p>a<div>b</div>", "p(a)div(b)"),
        ("<ul><li>a<li>b<ul><li>c</ul>d</ul>", "ul(li(a)li(bul(li(c))d))"),
        ("<dl><dt>a<dd>b<dt>c</dl>", "dl(dt(a)dd(b)dt(c))"),
        ("<table><tr><td>a<td>b<tr><th>c</table>d", "table(tr(td(a)td(b))tr(th(c)))d"),
        ("<table><thead><tr><td>a<tbody><tr><td>b</table>", "table(thead(tr(td(a)))tbody(tr(td(b))))"),
        ("<table><tr><td><table><tr><td>a</table>b</table>", "table(tr(td(table(tr(td(a)))b)))"),
        ("<td>a</div>b", "td(ab)"),
        ("<div><td>a</div>b</td>c", "div(td(ab)c)"),
        ("<h1>a<h2>b</h2>", "h1(a)h2(b)"),
        ("a</p>b</x>c</br>d", "abcbr()d"),
        ("<b>a<i>b</b>c", "b(ai(b))c"),
        ("<br/>a<div/>b", "br()adiv(b)"),
        ("<svg><g/><path/><svg/></svg>a", "a"),
        ("<svg/>a", "a"),
        ("<p><button>x</button>y", "p(y)"),
        ("<![CDATA[x]]>a<![bad[b]]>c<!doctype x>d<?pi e?>f", "acdf"),
        ("<html><body class=x>a</body></html>b", "ab"),
    ],
)
def test_shapes(html, expected):
    assert shape(tree_of(html)) == f"html({expected})"


def test_too_deep_elements_are_left_out_and_what_is_in_them_stays():
    page = tree_of("<div>" * 5000 + "<p>deep</p>" + "</div>" * 5000 + "<p>after")
    assert page.text() == "deepafter"
    depth, at = 0, page
    while at := next(at.elements, None):
        depth += 1
    assert depth == DEEPEST
    assert [each.name for each in page.elements] == ["div", "p"]


def test_who_has_lines_of_its_own_in_it_is_known():
    page = tree_of("<span><b>x</b></span><a><i><div>y</div></i></a>")
    first, second = page.elements
    assert (page.has_blocks, first.has_blocks, second.has_blocks) == (True, False, True)
    assert next(second.elements).has_blocks
