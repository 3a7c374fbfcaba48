"""Pages of several makers keep their code, tables, lists and links; and nothing of what stands around them."""

import random

import pytest

from desktop_agent.tools.web.page_process import read_page
from tests.desktop_agent.tools.web.page_set import PAGES, missing
from tests.desktop_agent.tools.web.pages import STYLES

SITE = "https://docs.example.org"
BASE = f"{SITE}/lib/page.html"


def text(html: str, base: str = BASE) -> str:
    return read_page(html, base)["text"].rstrip("\n")


@pytest.mark.parametrize("style", STYLES)
def test_pages_of_many_makers(style):
    html, expected = STYLES[style]
    assert read_page(html, BASE)["text"] == expected


@pytest.mark.parametrize("name", PAGES)
def test_what_a_reader_needs_of_a_page_is_kept_and_nothing_that_nobody_came_for(name):
    page = PAGES[name]
    assert missing(page, read_page(page.html, "https://example.org/lib/page.html")["text"]) == []


def test_the_title_is_told_and_is_no_part_of_the_text():
    page = read_page("<title>\n A &lt;b&gt;\n title </title><p>text", BASE)
    assert (page["title"], page["text"]) == ("A <b> title", "text\n")


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<pre>a\n\n\n  b</pre>", "```\na\n\n\n  b\n```"),
        ("<pre><code class='language-rust'>x</code></pre>", "```rust\nx\n```"),
        ("<pre>a<br>b</pre>", "```\na\nb\n```"),
        ("<pre>```\nx</pre>", "````\n```\nx\n````"),
        ("<pre>  \n </pre>", ""),
        ("<pre><span class=boring>fn main() {\n</span>a();\n<span class=boring>}</span></pre>", "```\na();\n```"),
        ("<h2>Name&nbsp;<button>copy</button></h2>", "## Name"),
        ("<code>a`b</code>", "`` a`b ``"),
        ("a<code> b </code>c", "a `b` c"),
        ("<b>bold </b>and<i> slanted</i>", "**bold** and *slanted*"),
        ("<b></b><b> </b>x", "x"),
        (
            "<del>no</del> H<sub>2</sub>O x<sup>2</sup><sup><a href='#n'>[1]</a></sup>",
            "~~no~~ H<sub>2</sub>O x<sup>2</sup>[1]",
        ),
        ("<p>a<p>b<div>c</div>d", "a\n\nb\n\nc\n\nd"),
        ("one<br>two<br/>three", "one\ntwo\nthree"),
        ("<a href='x (1).html'>x</a>", "[x](https://docs.example.org/lib/x%20%281%29.html)"),
        ("<a href='https://e.org/'>https://e.org/</a>", "<https://e.org/>"),
        ("<a href='javascript:alert(1)'>x</a> <a href='data:text/html,x'>y</a> <a>z</a>", "x y z"),
        ("<a href='http://[bad'>x</a>", "x"),
        ("<a href='/p'><h3>Card</h3><p>Words</p></a>", "[Card Words](https://docs.example.org/p)"),
        ("<base href='/other/'><a href='x'>y</a>", "[y](https://docs.example.org/other/x)"),
        ("<base href='javascript:x'><a href='x'>y</a>", "[y](https://docs.example.org/lib/x)"),
        ("<ol start=3><li>a<li>b</ol>", "3. a\n4. b"),
        ("<ul><li>a<p>b</p><pre>c</pre></ul>", "- a\n\n  b\n\n  ```\n  c\n  ```"),
        ("<ul><li>a</li><ul><li>b</li></ul></ul>", "- a\n  - b"),
        ("<ul><li></li></ul>", ""),
        ("<dl><div><dt>a</dt><dd>b</dd></div></dl>", "a\n:   b"),
        ("<ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp></ruby>", "漢 (kan)"),
        ("<q>said</q>", "“said”"),
        ("<math><mi>x</mi><annotation encoding='application/x-tex'>x^2</annotation></math>", "$x^2$"),
        ("<math alttext='y'><mi>y</mi></math>", "$y$"),
        ("&lt;b&gt; &amp;amp; &nbsp;x &#x41; &#0; &unknown;", "<b> &amp; \xa0x A � &unknown;"),
        ("5 < 6 and <3", "5 < 6 and <3"),
        ("<table><tr><td>a<td>b<tr><td colspan=2>c</table>", "| a | b |\n| --- | --- |\n| c |  |"),
        ("<table><caption>Title</caption><tr><th>a</table>", "Title\n\n| a |\n| --- |"),
        ("<table><tr><td><h2>Head</h2><p>text<td><p>side</table>", "## Head\n\ntext\n\nside"),
        ("<table><tr><td>a<td>b<tr><td><h3>c</h3><td>d</table>", "a\n\nb\n\n### c\n\nd"),
        ("<table><tr><td><table><tr><th>x</table></table>after", "| x |\n| --- |\n\nafter"),
        ("<table><tr><th>a<th>b<tr><td><ul><li>x<li>y</ul><td>z</table>", "| a | b |\n| --- | --- |\n| - x - y | z |"),
        (
            "<table><tr><th rowspan=3>a<th>b<tr><td>c<tr><td>d<tr><td>e<td>f</table>",
            "| a | b |\n| --- | --- |\n|  | c |\n|  | d |\n| e | f |",
        ),
        ("<a href=/o><div>One</div></a><a href=/t><div>Two</div></a>", f"[One]({SITE}/o)\n\n[Two]({SITE}/t)"),
        ("<b><strong>x</strong></b> <i><i>y</i></i>", "**x** *y*"),
        ("<b>x<br>y</b>", "x\ny"),
        ("<ol><li>a<li><li>b</ol>", "1. a\n2. b"),
        ("<hr>", "---"),
        ("<noscript>shown</noscript>", "shown"),
        ("", ""),
    ],
)
def test_pieces(html, expected):
    assert text(html) == expected


@pytest.mark.parametrize(
    "html",
    [
        "<script>secret</script>",
        "<style>secret</style>",
        "<!-- secret -->",
        "<p hidden>secret</p>",
        "<p aria-hidden=true>secret</p>",
        "<p style='color: red; Display : NONE'>secret</p>",
        "<div style='visibility:hidden'><div>secret</div>secret</div>",
        "<span style='font-size:0px'>secret</span>",
        "<template><p>secret</p></template>",
        "<svg><text>secret</text></svg>",
        "<textarea>secret</textarea>",
        "<select><option>secret</select>",
        "<iframe>secret</iframe>",
        "<script><script>secret</script>",
        "<img alt='' src=x>",
        "<input type=text value=secret>",
    ],
)
def test_what_nobody_would_see_is_not_read(html):
    assert text(f"<p>before</p>{html}<p>after</p>") == "before\n\nafter"


def test_small_and_faint_words_are_read():
    assert text("<p style='font-size:0.9em'>small</p><p style='opacity:.2'>faint</p>") == "small\n\nfaint"


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        (
            '<a href="https://e.example/">x](https://g.example/) [y</a>',
            "[x\\](https://g.example/) \\[y](https://e.example/)",
        ),
        ("<a href=https://e.example>a]b</a>", "[a\\]b](https://e.example)"),
        ("<a href=https://e.example>[1]</a>", "[[1]](https://e.example)"),
        ("<a href=https://e.example><img src=/i alt=i></a>", "[![i](https://docs.example/i)](https://e.example)"),
        ('<a href="https://e.example/\n\n# x">t</a>', "[t](https://e.example/#%20x)"),
        ('<a href="https:\\\\e.example\\a?b\\c">t</a>', "[t](https://e.example/a?b%5Cc)"),
        ("<p>[click](https://e.example)", "[click\\](https://e.example)"),
        ("<p>[click]<b></b>(https://e.example)", "[click\\](https://e.example)"),
        ("<p>[click]<b>(x)</b>", "[click\\]**(x)**"),
        ("<p>see [1] and (2)", "see [1] and (2)"),
        ("<code>a[0](b)</code>", "`a[0](b)`"),
        ("<img alt='x](http://e)' src=/a>", "![x\\](http://e)](https://docs.example/a)"),
    ],
)
def test_nothing_looks_like_a_link_that_the_page_does_not_have(html, expected):
    assert read_page(html, "https://docs.example/page")["text"].strip() == expected


def test_hidden_characters_are_counted_whether_they_are_written_or_referred_to():
    page = read_page("<p>a\u200b&#8203;&#x202e;b", BASE)
    assert (page["text"], page["hidden"]) == ("ab\n", 3)


TAGS = ["p", "div", "span", "b", "a", "ul", "li", "dl", "dt", "dd", "table", "tr", "td", "th", "caption", "pre", "code"]
TAGS += ["h1", "main", "nav", "br", "img", "input", "svg", "math", "script", "title"]
MARKS = ["", " class='sig linenos'", " class='highlight-c'", " href='/x'", " href='http://[x'", " hidden", " colspan=9"]
WORDS = ["x", " ", "\n", "&lt;", "&#0;", "&#x202e;", "<!--", "-->", "<![", "`", "|", "\x01", "<?", "<", "&", "</"]


@pytest.mark.parametrize("seed", range(10))
def test_any_soup_of_tags_is_read(seed):
    chance = random.Random(seed)
    for _ in range(50):
        pieces = (
            chance.choice((f"<{tag}{chance.choice(MARKS)}>", f"</{tag}>", f"<{tag}/>", chance.choice(WORDS)))
            for tag in chance.choices(TAGS, k=40)
        )
        markdown = text("".join(pieces))
        assert "\x01" not in markdown
        assert "\u202e" not in markdown
