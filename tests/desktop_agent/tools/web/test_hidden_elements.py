import pytest

from desktop_agent.tools.web.html_parser import is_hidden, parse_style
from desktop_agent.tools.web.page_process import read_page
from tests.desktop_agent.tools.web.page_set import PAGES


@pytest.mark.parametrize(
    "style",
    [
        "display:none",
        "DISPLAY : None ;color:red",
        "display\n:\nnone",
        "display:/**/none",
        "d\\69splay:none",
        "display:block;display:none",
        "display:none!important;display:block",
        "visibility:hidden",
        "visibility:collapse",
        "content-visibility:hidden",
        "color:transparent",
        "color:rgba(0, 0, 0, 0)",
        "color:rgb(0 0 0 / 0%)",
        "color:#fff0",
        "color:#fff;background:#fff",
        "color:white;background-color:white",
        "font-size:0",
        "font-size:0!important",
        "font-size:0.01px",
        "font-size:.04em",
        "font-size:2%",
        "font:0/0 a",
        "transform:scale(0)",
        "transform:rotate(3deg) scale(0.0)",
        "scale:0",
        "position:absolute;left:-9999px",
        "position:fixed;top:-500px",
        "text-indent:-9999px;overflow:hidden",
        "margin-left:-5000px",
        "height:0;overflow:hidden",
        "max-height:0;overflow-y:clip",
        "width:1px;overflow:hidden",
        "clip-path:inset(100%)",
        "clip-path:circle(0)",
        "position:absolute;clip:rect(0, 0, 0, 0)",
        "clip:rect(1px 1px 1px 1px)",
    ],
)
def test_what_is_not_seen(style: str) -> None:
    assert is_hidden(parse_style(style))
    assert read_page(f'<p>a<p style="{style}">H<p>b', "http://x/")["text"].split() == ["a", "b"]


@pytest.mark.parametrize(
    "style",
    [
        "",
        ";;:",
        "display:none;display:block",
        "display:block!important;display:none",
        "visibility:visible",
        "color:#fff",
        "color:#fff;background:#000",
        "color:rgba(0,0,0,.4)",
        "color:#ffff00",
        "color:#fff8",
        "font-size:12px",
        "font-size:.9em",
        "font-size:80%",
        "font:12px/1.5 serif",
        "transform:scale(0.5)",
        "transform:translateY(-900px)",
        "left:-9999px",
        "position:absolute;left:-20px",
        "height:0",
        "max-height:20em;overflow:hidden",
        "overflow:hidden",
        "clip-path:inset(10%)",
        "content:'display:none'",
    ],
)
def test_what_is_seen_or_may_be(style: str) -> None:
    assert not is_hidden(parse_style(style))


@pytest.mark.parametrize(
    ("sheet", "expected"),
    [
        (".x{display:none}", "b"),
        ("p.x , .other { color: red; DISPLAY:none }", "b"),
        ("#y{visibility:hidden}", "a"),
        ("/* .z{} */ @import url(a.css); .x{display:none}", "b"),
        (".x{display:none} .x{display:block}", "ab"),
        ("@media print{.x{display:none}} .z{}", "ab"),
        ("@media print{.z{} .x{display:none}}", "ab"),
        (".x:hover{display:none} .w .x{display:none} .x.v{display:none} *{}", "ab"),
        ("} .x{display:none}", "b"),
        (".x{display:none", "ab"),
        (".x{color:red}", "ab"),
        ("@font-face{src:url(x)} .x{position:absolute;left:-999em}", "b"),
    ],
)
def test_sheets_of_the_page(sheet: str, expected: str) -> None:
    page = f"<style>{sheet}</style><p class='w X'>a<p id=y>b"
    assert "".join(read_page(page, "http://x/")["text"].split()) == expected


@pytest.mark.parametrize("html", ["<p popover>H", "<p hidden>H", "<p aria-hidden=TRUE>H", "<dialog>H</dialog>"])
def test_attributes_that_hide(html: str) -> None:
    assert read_page(f"a{html}", "http://x/")["text"].split() == ["a"]


def visible_text(html: str) -> tuple[str, int]:
    page = read_page(html, "http://x/")
    return "".join(page["text"].split()), page["transparent"]


@pytest.mark.parametrize(
    "style",
    [
        *("opacity:0", "OPACITY : 0.0", "opacity:0%", "opacity:.01", "opacity:-1", "opacity:0!important;opacity:1"),
        *("o\\70 acity:0", "filter:opacity(0)", "filter:blur(2px) opacity(0%)", "opacity:0;transition:opacity 1s"),
        *("opacity:0;animation:nowhere 1s",),
    ],
)
def test_transparent_words_are_left_out_and_counted(style: str) -> None:
    assert visible_text(f'<p>a<p style="{style}">Hidden  <b>words</b><p>b') == ("ab", 12)


@pytest.mark.parametrize(
    "style", ["opacity:1", "opacity:.1", "opacity:50%", "opacity:inherit", "filter:opacity(1)", "filter:opacity()"]
)
def test_what_shows_through_is_read(style: str) -> None:
    assert visible_text(f'<p style="{style}">a') == ("a", 0)


@pytest.mark.parametrize(
    ("sheet", "expected"),
    [
        (".x{opacity:0}", "b"),
        ("p.x, .other{color:red; opacity : 0 }", "b"),
        ("#y{opacity:0.00}", "a"),
        (".x{opacity:0} .x{opacity:1}", "ab"),
        (".x{opacity:1} .x{opacity:0}", "b"),
        (".x{opacity:0} .x.seen{opacity:1}", "ab"),
        (".x{opacity:0} .page .x, .z{opacity:1}", "ab"),
        (".x{opacity:0} .x.gone{opacity:0}", "b"),
        (".x{opacity:0;animation:.5s come} @keyframes come{to{opacity:1}}", "ab"),
        (".x{opacity:0;animation-name:come} @-webkit-keyframes come{to{opacity:1}}", "ab"),
        (".x{opacity:0;animation:come 1s}", "b"),
        ("@media print{.x{opacity:0}}", "ab"),
        ("body, html{opacity:0} .w{opacity:.9}", "ab"),
    ],
)
def test_transparent_by_sheets_of_the_page(sheet: str, expected: str) -> None:
    page = f"<style>{sheet}</style><p class='w X'>a<p id=y>b"
    assert visible_text(page) == (expected, 2 - len(expected))


def test_a_style_of_an_element_goes_before_its_class() -> None:
    sheet = "<style>.x{opacity:0} .y{color:red} .y.seen{opacity:1}</style>"
    assert visible_text(f'{sheet}<p class=x style="opacity:1">a<p class=y style="opacity:0">b<p class=x>H') == ("ab", 1)


def test_a_whole_page_is_never_transparent() -> None:
    assert visible_text('<html style="opacity:0"><body style="opacity:0" class=x><style>.x{opacity:0}</style>a') == (
        "a",
        0,
    )


def test_pages_as_people_make_them_lose_nothing() -> None:
    for page in PAGES.values():
        assert read_page(page.html, "http://x/")["transparent"] == 0


def test_large_sheets_are_read_in_bounds() -> None:
    sheet = "{" * 200_000 + ".a{b:c}" * 30_000
    assert read_page(f"<style>{sheet}</style>a", "http://x/")["text"] == "a\n"
