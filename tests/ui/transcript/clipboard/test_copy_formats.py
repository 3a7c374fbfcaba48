"""What of a row is copied: parts of blocks, several blocks, all of it; plain, as Markdown and as HTML."""

import pytest

from desktop_agent.conversation.transcript import Transcript
from desktop_agent.types.messages import Message
from tests.ui.transcript.clipboard.safe_html import SafeReader
from tests.ui.transcript.copied import copy_formats_of, html_of, markdown_of
from ui.transcript.clipboard import table_to_csv
from ui.transcript.rows.markdown_body import LONG_TEXT
from ui.transcript.rows.row import table_pieces_at
from ui.transcript.rows.row_factory import make_row

ANSWER = """\
# Title

Some **bold** and $x^2$.

- one
  - two
  - [x] three
- four

  more

> said

```py
print(1)
```

| a | b |
|---|--:|
| 1 | *two* |
| 3 |  |

Last[^1].

[^1]: note
"""


def answer(render_context, text=ANSWER):
    return make_row(Transcript([Message.assistant(text)])[0], render_context, 0)


def place(row, words, offset=0):
    index = next(index for index, block in enumerate(row.blocks) if block.plain().startswith(words))
    return index, offset


def forms(row, start, end):
    formats = copy_formats_of(row.extracts(start, end))
    assert (formats.markdown, formats.html) == (markdown_of(row, start, end), html_of(row, start, end))
    return formats.plain, formats.markdown, formats.html.removeprefix('<meta charset="utf-8">')


@pytest.mark.parametrize(
    ("words", "start", "end", "markdown", "html"),
    [
        ("Some", 5, 9, "**bold**", "<strong>bold</strong>"),
        ("Some", 0, 4, "Some", "Some"),
        ("Some", 14, 19, "$x^2$", "$x^2$"),
        ("Title", 0, 5, "# Title", "<h1>Title</h1>"),
        ("Title", 0, 3, "Tit", "Tit"),
        ("four", 0, 4, "- four", "<ul><li>four</li></ul>"),
        ("four", 0, 2, "fo", "fo"),
        ("three", 0, 5, "- [x] three", "<ul><li>☑ three</li></ul>"),
        ("more", 0, 4, "more", "more"),
        ("said", 0, 4, "> said", "<blockquote><p>said</p></blockquote>"),
        ("print", 0, 8, "print(1)", '<pre><code class="language-py">print(1)\n</code></pre>'),
        ("print", 0, 5, "print", '<pre><code class="language-py">print\n</code></pre>'),
        ("a\tb", 6, 9, "*two*", "<em>two</em>"),
        ("a\tb", 0, 1, "a", "a"),
        ("note", 0, 4, "[^1]: note", "<div><sup>1</sup> note</div>"),
    ],
)
def test_inside_of_one_block(render_context, words, start, end, markdown, html):
    row = answer(render_context)
    index, _ = place(row, words)
    _, copied_markdown, as_html = forms(row, (index, start), (index, end))
    assert (copied_markdown, as_html.replace("<p>more</p>", "more")) == (markdown, html)


@pytest.mark.parametrize(
    ("first", "last", "markdown"),
    [
        (("Title", 2), ("Some", 4), "tle\n\nSome"),
        (("two", 0), ("more", 4), "- two\n- [x] three\n- four\n\n  more"),
        (("one", 1), ("two", 3), "- ne\n  - two"),
        (("more", 0), ("said", 4), "more\n\n> said"),
        (("said", 2), ("print", 8), "> id\n\n```py\nprint(1)\n```"),
        (("print", 6), ("a\tb", 5), "```py\n1)\n```\n\n| a | b |\n| --- | --: |\n| 1 |  |"),
        (("a\tb", 4), ("Last", 4), "| a | b |\n| --- | --: |\n| 1 | *two* |\n| 3 |  |\n\nLast"),
        (("Last", 0), ("note", 4), "Last[^1].\n\n[^1]: note"),
    ],
)
def test_over_several_blocks_what_stands_around_them_comes_along(render_context, first, last, markdown):
    row = answer(render_context)
    assert markdown_of(row, place(row, *first), place(row, *last)) == markdown


def test_a_place_at_the_edge_of_a_block_takes_nothing_of_it(render_context):
    row = answer(render_context)
    plain, markdown, html = forms(row, place(row, "Title", 5), place(row, "one"))
    assert plain == markdown.replace("**", "").strip() == "Some bold and $x^2$."
    assert html.startswith("<p>Some ")


def test_the_whole_answer(render_context):
    row = answer(render_context)
    assert markdown_of(row) == ANSWER.replace("|---|--:|", "| --- | --: |").strip()
    reader = SafeReader()
    reader.feed(html_of(row))
    assert "<th>a</th>" in html_of(row)
    assert "☑ three" in reader.words


def test_html_runs_nothing_and_leads_only_to_the_web(render_context):
    row = answer(
        render_context,
        '<script>alert(1)</script> [x](javascript:alert) [y](https://y.org/?a="b"&c)\n\n'
        '![p](https://x.org/p.png)\n\n```"><img src=x onerror=y>\n</code><b>\n```\n\n'
        "[^<b>]: <i>\n\n| <u> |\n|---|\n| `<s>` |",
    )
    reader = SafeReader()
    reader.feed(html_of(row))
    assert not reader.open
    assert "<script>" in reader.words
    assert "<img" not in html_of(row)


def test_a_long_table_keeps_its_head_wherever_it_is_copied_from(render_context):
    row = answer(render_context, "| a | b |\n|---|---|\n" + "".join(f"| {n} | x |\n" for n in range(600)))
    assert len(row.blocks) > 2
    assert markdown_of(row, (2, 0), (2, 8)).splitlines()[:2] == ["| a | b |", "| --- | --- |"]
    assert markdown_of(row).count("| a | b |") == 1
    assert html_of(row).count("<table>") == 1
    rows = [text for block in table_pieces_at(row.blocks, 1) for text in block.cell_texts()]
    assert len(rows) == 601
    assert rows[-1] == ["599", "x"]


def test_what_was_not_read_yet_is_copied_too(render_context):
    text = "".join(f"Paragraph {n} with **some** words.\n\n- item\n\n" for n in range(LONG_TEXT // 20)).strip()
    row = answer(render_context, text)
    assert len(row.blocks) < 200
    assert markdown_of(row) == text
    extracts = row.extracts()
    first = next(extracts)
    row.stack.read(len(row.blocks) - 1)
    texts = [piece.text for piece in extracts]
    assert [first.text, *texts] == [extract.text for extract in row.extracts()]


def test_a_prompt_is_markdown_as_it_was_typed_unless_it_would_swallow_what_follows(render_context):
    def typed(text):
        return markdown_of(make_row(Transcript([Message.user(text)])[0], render_context, 0))

    assert typed("Fix *this*:\n```py\nx\n```") == "Fix *this*:\n```py\nx\n```"
    assert typed("Look:\n```\nx") == "Look:\n\\`\\`\\`\nx"


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("plain", "plain"),
        ("=1+1", "'=1+1"),
        ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
        ("-2+3", "'-2+3"),
        ("@SUM(A1)", "'@SUM(A1)"),
        (" =1", "' =1"),
        ("\t=1", "'\t=1"),
        ("＝1", "'＝1"),
        ("\u200b=1", "'\u200b=1"),
        ("\ufeff=1", "'\ufeff=1"),
        ("\u00a0=1", "'\u00a0=1"),
        ("\u3000+1+cmd", "'\u3000+1+cmd"),
        ("\0@x", "'\0@x"),
        ("\u00ad\u2800 \u202e\ufe0f\x0b-x", "'\u00ad\u2800 \u202e\ufe0f\x0b-x"),
        ("\u200b-2+3", "'\u200b-2+3"),
        ("\u200ba=1", "\u200ba=1"),
        ("\u00a0", "\u00a0"),
        ("\tx", "'\tx"),
        ("-5", "-5"),
        ("+3.5 %", "+3.5 %"),
        ("-1e-9", "-1e-9"),
        ('a "b", c', '"a ""b"", c"'),
        ("a\nb", '"a\nb"'),
    ],
)
def test_cells_for_spreadsheets(cell, written):
    assert table_to_csv([[cell]]) == f"{written}\r\n"
