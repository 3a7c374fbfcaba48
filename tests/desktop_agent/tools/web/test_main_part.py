"""The main part of a page is read, what its site repeats on every page is not; in doubt all is read."""

import pytest

from desktop_agent.tools.web.html_parser import find_main_part, parse_page

LONG = "What this is about. " * 30


def main_text(html: str) -> str:
    return " ".join(" ".join(find_main_part(parse_page(html)[0]).strings).split())


@pytest.mark.parametrize(
    "frame",
    [
        "<main>{}</main>",
        "<div role=main>{}</div>",
        "<article>{}</article>",
        "<div id=content>{}</div>",
        "<td class='x mw-content-text'>{}</td>",
        "<div class=sidebar><a href=x>out</a></div><div>{}</div>",
    ],
)
def test_what_stands_around_is_left_out(frame):
    around = "<nav>out</nav><header><a href=x>out</a></header>{}<aside>out</aside><footer>out</footer>"
    assert main_text(around.format(frame.format(f"<p>{LONG}</p>"))) == LONG.strip()


def test_a_short_main_part_is_believed_on_a_short_page():
    assert main_text("<p>out</p><main>All is well.</main>") == "All is well."


def test_a_main_part_with_nothing_in_it_is_not_believed():
    assert main_text(f"<main>x</main><div>{LONG}</div>") == f"x {LONG.strip()}"


def test_the_largest_of_several():
    assert main_text(f"<main>small</main><main>{LONG}</main>") == LONG.strip()


def test_several_articles_are_all_read():
    assert main_text(f"<article>{LONG}</article><article>{LONG}</article>") == f"{LONG}{LONG}".strip()


def test_a_main_part_within_what_looks_like_the_frame_is_found():
    html = f"<div role=dialog><div class=header><a href=x>out</a><main><nav>out</nav>{LONG}</main></div></div>"
    assert main_text(html) == LONG.strip()


def test_a_page_of_links_is_read():
    links = "".join(f"<li><a href=/{n}>Chapter {n}</a>" for n in range(20))
    assert main_text(f"<h1>Contents</h1><ul>{links}</ul>").startswith("Contents Chapter 0 Chapter 1")
    assert "Chapter 19" in main_text(f"<main><h1>Contents</h1><ul class=menu>{links}</ul></main>")


def test_a_heading_in_a_header_of_the_text_stays():
    assert main_text(f"<main><header><h1>Title</h1></header>{LONG}</main>").startswith("Title What")
    assert main_text(f"<header><h1>Title of it all</h1></header><div>{LONG}</div>").startswith("Title of it all What")
