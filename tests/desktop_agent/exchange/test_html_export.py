"""Exported pages: what they show, and that no text makes them do anything."""

import base64
import hashlib
import re
import time
from importlib.resources import files

import pytest
from selectolax.lexbor import LexborHTMLParser, LexborNode

from desktop_agent.exchange import html_export
from desktop_agent.exchange.html_export import write_html
from desktop_agent.markdown.latex import TypesetFormula
from desktop_agent.processes.worker import WorkerFailed, WorkerFailure
from desktop_agent.types.blocks import (
    Base64Source,
    Citation,
    Image,
    Json,
    ServerStep,
    Summary,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Unknown,
    UrlSource,
)
from desktop_agent.types.conversation_tree import ConversationTree, TreeMessage
from desktop_agent.types.errors import ExtraMissing
from desktop_agent.types.hidden_characters import find_deceptive
from desktop_agent.types.messages import AttachedText, Message, Role, label_attached
from tests.desktop_agent.exchange.sample_trees import GREEN, START, full_tree, message, read_picture, stored
from ui.style.theme import DARK, LIGHT
from ui.transcript.rows.message_rows import duration_text
from ui.transcript.style import SYNTAX_COLORS

CSS = files("desktop_agent.exchange").joinpath("page.css").read_text(encoding="utf-8")
WORD = re.compile(r"[\w-]+")
TAGS = """
html head meta title style body header main section h1 h2 h3 h4 h5 h6 p time div span strong em s a sup sub i br hr
ul ol li blockquote pre code figure figcaption table thead tbody tr th td details summary img svg g path rect
"""
ATTRIBUTES = """
lang charset http-equiv content name dir datetime class href rel id start tabindex src alt width height
role aria-label xmlns viewBox viewbox d fill x y
"""


def tree_of(*messages: Message, title: str = "Title") -> ConversationTree:
    nodes = [
        TreeMessage(message=message, parent=messages[number - 1].id if number else None)
        for number, message in enumerate(messages)
    ]
    head = messages[-1].id if messages else None
    return ConversationTree(id="i", title=title, created_at=START, updated_at=START, messages=nodes, head=head)


def page_of(tree: ConversationTree) -> str:
    pieces: list[bytes] = []
    write_html(tree, pieces.append, read_picture, lambda *_: (), lambda *_: None)
    return b"".join(pieces).decode()


def answer(text: str) -> str:
    return page_of(tree_of(message("a", Role.ASSISTANT, Text(text=text))))


def body_of(text: str) -> str:
    """The HTML of an answer alone."""
    page = answer(text)
    return page.partition("<h2>Assistant said</h2>\n")[2].partition("\n</section>")[0].strip()


def words(node: LexborNode | None) -> str:
    return " ".join((node.text() if node is not None else "").split())


def check_harmless(page: str) -> LexborHTMLParser:
    """No tag, attribute, style or address but those of the page's own making."""
    parsed = LexborHTMLParser(page)
    nodes = [node for node in parsed.root.traverse() if node.tag and not node.tag.startswith("-")]
    assert {node.tag for node in nodes} - {"!doctype"} <= set(WORD.findall(TAGS))
    for node in nodes:
        assert set(node.attributes) <= set(WORD.findall(ATTRIBUTES))
        address = node.attributes.get("href")
        assert address is None or re.match(r"https?://|mailto:|#note-\d+-\d+\Z", address)
        assert (node.attributes.get("src") or "data:image/").startswith("data:image/")
    (style,) = parsed.css("style")
    assert style.text().startswith(CSS)
    assert re.fullmatch(r"(\.d\d+\{vertical-align:-[\d.]+em\})+", style.text().removeprefix(CSS))
    digest = base64.b64encode(hashlib.sha256(style.text().encode()).digest()).decode()
    policies = [node.attributes["content"] for node in parsed.css("meta[http-equiv]")]
    assert policies == [
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    ]
    assert list(find_deceptive(page)) == []
    return parsed


@pytest.mark.parametrize(("seconds", "said"), [(0.2, "1 s"), (59.7, "1 min 0 s"), (119.8, "2 min 0 s")])
def test_reasoning_took_as_long_as_the_window_says(seconds: float, said: str) -> None:
    thinking = Thinking(text="I look.", provider="p", seconds=seconds)
    page = page_of(tree_of(message("m1", Role.USER, Text(text="?")), message("m2", Role.ASSISTANT, thinking)))
    assert [words(node) for node in check_harmless(page).css("summary")] == [f"Thought for {said}"]
    assert duration_text(seconds) == said


def test_a_page_shows_what_was_said() -> None:
    call = ToolUse(id="secret-id", name="read_file", input={"path": "a.txt"})
    page = page_of(
        tree_of(
            message("m1", Role.USER, Text(text="What is <b>in</b> it?\nSay."), Image(source=stored(GREEN), name="tea")),
            message("m2", Role.ASSISTANT, Thinking(text="I *look*.", provider="p", seconds=2), call, model="claude-x"),
            message("m3", Role.TOOL, ToolResult(tool_use_id="secret-id", content=[Text(text="\x1b[1mone\x1b[0m")])),
            message(
                "m4",
                Role.ASSISTANT,
                Text(text="It is "),
                Text(text="*tea*.", citations=[Citation(title="T", url="https://t.example")]),
            ),
        )
    )
    parsed = check_harmless(page)
    assert [words(node) for node in parsed.css("h1, h2, h3")] == ["Title", "You said", "Assistant said", "Sources"]
    assert words(parsed.css_first("header p")) == "2026-11-26 · claude-x"
    assert parsed.css_first(".typed").text() == "What is <b>in</b> it?\nSay."
    picture = parsed.css_first(".bubble > :first-child").attributes
    assert picture["src"] == f"data:image/png;base64,{base64.b64encode(GREEN).decode()}"
    assert (picture["alt"], picture["width"], picture["height"]) == ("tea", "3", "2")
    assert [words(node) for node in parsed.css("summary")] == ["Thought for 2 s", "Read a file✓ Donepath: a.txt"]
    assert words(parsed.css_first(".thought em")) == "look"
    assert [node.text() for node in parsed.css(".card pre")] == ['{\n  "path": "a.txt"\n}', "one"]
    assert '<p dir="auto">It is <em>tea</em>.</p>' in page
    assert parsed.css_first(".sources a").attributes["href"] == "https://t.example"
    assert parsed.css_first("html").attributes["lang"] == "en"
    assert "secret-id" not in page


def test_everything_of_a_branch_is_there() -> None:
    parsed = check_harmless(page_of(full_tree()))
    text = words(parsed.body)
    for part in ("✕ Failed", "web_search", "Server step", "hologram", "Summary of what came before", "Not finished"):
        assert part in text
    assert "Again" not in text


def test_the_colours_are_those_of_the_window() -> None:
    light, _, rest = CSS.partition("@media screen and (prefers-color-scheme: dark)")
    for css, theme in ((light, LIGHT), (rest.partition("\n* {")[0], DARK)):
        colors = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", css))
        syntax = SYNTAX_COLORS[theme.is_dark]
        named = {name.replace("_", "-"): value for name, value in theme._asdict().items()}
        assert len(colors) >= 19
        assert colors == {name: (syntax | named)[name] for name in colors}
        assert set(syntax) <= set(colors)
    assert "http" not in CSS
    assert "url(" not in CSS


def test_code_has_the_colours_of_its_language() -> None:
    code = check_harmless(answer("```python\ndef f():\n    return '<b>'  # &\n```")).css_first("figure")
    assert words(code.css_first("figcaption")) == "python"
    assert [(node.attributes["class"], node.text()) for node in code.css("pre span")] == [
        ("keyword", "def"),
        ("function", "f"),
        ("keyword", "return"),
        ("string", "'<b>'"),
        ("comment", "# &"),
    ]
    assert code.css_first("pre").text() == "def f():\n    return '<b>'  # &"


@pytest.mark.parametrize("info", ["nolanguage", 'python" onclick="x', "<b>", ""])
def test_code_of_no_language_is_plain(info: str) -> None:
    code = check_harmless(answer(f"```{info}\nx = '<b>'\n```")).css_first("pre")
    assert code.text() == "x = '<b>'"


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("# A\n\n###### B", '<h3 dir="auto">A</h3><h6 dir="auto">B</h6>'),
        ("- [x] a\n- b", '<ul dir="auto"><li><span class="box">☑</span> a\n</li><li>b\n</li></ul>'),
        ("3. a\n\n   b", '<ol dir="auto" start="3"><li><p dir="auto">a</p><p dir="auto">b</p></li></ol>'),
        ("> a\n\n---", '<blockquote><p dir="auto">a</p></blockquote><hr>'),
        (
            "a | b\n--|-:\n*1* | 2",
            '<div class="table" tabindex="0"><table><thead><tr><th class="left" dir="auto">a</th>'
            '<th class="right" dir="auto">b</th></tr></thead><tbody><tr><td class="left" dir="auto"><em>1</em></td>'
            '<td class="right" dir="auto">2</td></tr></tbody></table></div>',
        ),
        ("$x^2$", '<p dir="auto"><span class="formula" dir="ltr"><i>x</i><sup>2</sup></span></p>'),
        ("$$\\unknown{a}$$", '<div class="math"><code class="latex" dir="ltr">\\unknown{a}</code></div>'),
        (
            "a[^x]\n\n[^x]: b",
            '<p dir="auto">a<sup><a href="#note-1-1">[x]</a></sup></p>'
            '<div class="footnote" id="note-1-1"><sup>x</sup><p dir="auto">b</p></div>',
        ),
        (
            "![a](https://p.example/x.png)",
            '<p dir="auto"><a href="https://p.example/x.png" rel="noopener noreferrer nofollow">[a]</a></p>',
        ),
    ],
)
def test_markdown_is_what_the_window_shows(markdown: str, html: str) -> None:
    assert body_of(markdown) == html


@pytest.mark.parametrize(
    ("markdown", "note"),
    [
        ("[https://bank.example](https://evil.example/x)", "evil.example"),
        ("[bank.example](https://evil.example)", "evil.example"),
        ("[evil.example/x](https://www.evil.example)", ""),
        ("[the bank](https://evil.example)", ""),
    ],
)
def test_a_link_that_names_another_host_says_where_it_leads(markdown: str, note: str) -> None:
    shown = check_harmless(answer(markdown)).css_first("a + .muted")
    assert (shown.text() if shown else "") == (f"(→ {note})" if note else "")


HOSTILE = [
    "<script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "</title></head><body onload=alert(1)>",
    "<!-- </p> --> ]]> <![CDATA[ <?php",
    "[a](javascript:alert(1)) [b](JaVaScRiPt:alert(1)) [c](data:text/html,x) [d](file:///etc/passwd) [e](vbscript:x)",
    '![x](javascript:alert(1)) ![y](data:text/html;base64,PHNjcmlwdD4=) ![z](https://track.example/"onerror="x)',
    '<a href="javascript:alert(1)" onclick="x">a</a> <img src=x onerror=alert(1)> <svg/onload=alert(1)>',
    '[a](https://e.example/" onmouseover="alert(1) "title\' onclick=x")',
    "<https://e.example/\"><script>> https://e.example/<script> https://e.example/'onclick='x",
    "`</code><script>x</script>` **</strong>** ~~</s>~~",
    "```html\n</code></pre><script>alert(1)</script>\n```",
    "```</figcaption><script>x\ncode\n```",
    "| </td><script> |\n|---|\n| <b onclick=x> |",
    '[^<script>]: a\n\nb[^<script>] [^" onclick="x]\n\n[^" onclick="x]: c',
    "$</code><script>x</script>$ $$</div><script>$$ \\(<b>\\)",
    "\u202egnp.exe\u202c \u2066a\u2069 \u200b\u200b \ufeff \x00 \x07 \U000e0041 \ud800",
    "&lt;script&gt; &#x202e; &#0; &#xd800; &javascript;",
    '[x]: javascript:alert(1) "</title>"\n\n[x]',
    "[a](mailto:a@b.example?attach=/etc/passwd&subject=%0d%0aBcc:x)",
    "# </h3><script>\n\n> </blockquote>\n\n1. </li></ol>",
]


def everywhere(text: str) -> ConversationTree:
    """The text at every place that a stranger can fill."""
    picture = Image(source=stored(GREEN), name=text)
    call = ToolUse(id="t", name=text, input={text: [text, {text: text}]})
    parts = (Text(text=text, citations=[Citation(title=text, url=text)]), Json(value={text: text}), picture)
    return tree_of(
        message("1", Role.USER, Text(text=text), picture),
        message(
            "2",
            Role.ASSISTANT,
            Thinking(text=text, provider=text),
            Text(text=text, citations=[Citation(title=text, url="https://e.example/" + text), Citation(title=text)]),
            ServerStep(provider=text, name=text, text=text, raw=text),
            Unknown(raw={text: text}),
            Image(source=UrlSource(url="https://e.example/" + text), name=text),
            call,
            model=text,
        ),
        message("3", Role.TOOL, ToolResult(tool_use_id="t", content=parts)),
        message("4", Role.SYSTEM, Summary(text=text, first_kept_id="1")),
        message("5", Role.USER, Text(text=text), injected_by=text),
        message("6", Role.ASSISTANT, ToolUse(id="u", name=text, malformed=text)),
        title=text,
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_conversation_is_a_harmless_page(text: str) -> None:
    page = page_of(everywhere(text))
    check_harmless(page)
    page.encode()


LARGE = {
    "quotes": ">" * 100_000 + " a",
    "lists": "- " * 50_000 + "a",
    "brackets": "[" * 100_000,
    "links": "[a](" * 30_000,
    "pictures": "![" * 50_000,
    "stars": "*a **b " * 20_000,
    "backticks": " ".join("`" * (number % 300 + 1) for number in range(2_000)),
    "table": "|a" * 1_000 + "|\n" + "|-" * 1_000 + "|\n" + ("|b" * 1_000 + "|\n") * 50,
    "empty cells": "|a" * 1_000 + "|\n" + "|-" * 1_000 + "|\n" + "|\n" * 3_000,
    "formulas": "$$a\n" * 10_000,
    "references": "".join(f"[a{number}]: /u\n" for number in range(10_000)) + "[a1] " * 10_000,
    "footnotes": "".join(f"[^{number}]: a\n\n" for number in range(3_000)),
    "addresses": "https://e.example/a " * 5_000,
    "entities": "&amp;" * 50_000,
    "bidi": "\u202e" * 50_000,
    "one line": "x" * 1_000_000,
}


@pytest.mark.parametrize("name", LARGE)
def test_a_large_or_deep_text_takes_bounded_time_and_room(name: str) -> None:
    begun = time.process_time()
    page = answer(LARGE[name])
    # Slack for slow machines: what is not bounded takes minutes.
    assert time.process_time() - begun < 5
    assert len(page) < 60 * len(LARGE[name]) + 5_000_000


def test_pictures_of_the_web_are_links_and_lost_ones_are_named() -> None:
    lost = stored(GREEN).model_copy(update={"digest": "0" * 64})
    held = Base64Source(media_type="image/png", data=base64.b64encode(GREEN).decode())
    images = [Image(source=source, name="p") for source in (lost, held, UrlSource(url="https://e.example/a.png"))]
    parsed = check_harmless(page_of(tree_of(message("a", Role.USER, *images))))
    assert len(parsed.css("img")) == 1
    assert words(parsed.css_first(".bubble .muted")) == "[p]"
    assert parsed.css_first(".bubble a").attributes["href"] == "https://e.example/a.png"


@pytest.mark.parametrize(("markdown", "depth"), [("$$\\frac{a}{b}$$", "d11"), ("so $\\sqrt{2}$ is", "d5")])
def test_a_formula_is_drawn_in_the_colour_of_the_text_and_read_as_its_source(markdown: str, depth: str) -> None:
    drawn = check_harmless(answer(markdown)).css_first("svg")
    assert drawn.attributes["aria-label"] == markdown.strip("so $i")
    assert drawn.attributes["class"] == f"typeset {depth}"
    assert {path.attributes["fill"] for path in drawn.css("path, rect")} == {"currentColor"}


@pytest.mark.parametrize(
    "inside",
    ["<script>alert(1)</script>", '<path onload="alert(1)" d="M" />', '<path d="&quot;" />', "</svg><b>words</b>"],
)
def test_a_formula_of_a_process_that_was_taken_over_stays_its_source(
    monkeypatch: pytest.MonkeyPatch, inside: str
) -> None:
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1">{inside}</svg>'
    monkeypatch.setattr(html_export.Worker, "ask", lambda *_: TypesetFormula(svg, 1, 1, 1))
    assert body_of("$$\\frac{a}{b}$$") == '<div class="math"><code class="latex" dir="ltr">\\frac{a}{b}</code></div>'


def test_a_lexer_that_never_ends_costs_the_colours_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    class Slow:
        def __init__(self, *arguments: object, **options: object) -> None:
            pass

        def ask(self, code: str, language: str) -> list[tuple[str, str]]:
            calls.append(code)
            raise WorkerFailed(WorkerFailure.SLOW)

        def close(self) -> None:
            pass

    monkeypatch.setattr(html_export, "Worker", Slow)
    parsed = check_harmless(answer("```python\nx = 1\n```\n" * 10))
    assert [node.text() for node in parsed.css("pre")] == ["x = 1"] * 10
    assert len(calls) == 3


def test_without_its_parser_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html_export, "find_spec", lambda name: None)
    with pytest.raises(ExtraMissing, match="Exporting as HTML"):
        page_of(tree_of())


def test_an_attached_text_is_folded_under_its_name() -> None:
    attached = label_attached(AttachedText("a<b.txt", "one <two>"))
    page = check_harmless(page_of(tree_of(message("m1", Role.USER, Text(text="Read."), Text(text=attached)))))
    assert [words(node) for node in page.css(".typed")] == ["Read."]
    assert [words(node) for node in page.css("summary")] == ["a<b.txt"]
    assert words(page.css_first("details pre")) == "one <two>"
