"""What is copied as Markdown is read as the same leaves again."""

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from desktop_agent.conversation.transcript import Transcript
from desktop_agent.types.messages import Message
from tests.frame.examples import examples
from tests.ui.transcript import copied
from tests.ui.transcript.clipboard.any_leaf import html_of, markdown_of
from tests.ui.transcript.random_markdown import markdown, orderly
from ui.transcript.clipboard import CopiedBlock, HtmlWriter, MarkdownWriter
from ui.transcript.markdown.inline import parse_inline
from ui.transcript.markdown.stream import parse_leaves
from ui.transcript.rows.row_factory import make_row

texts = st.one_of(markdown, orderly)
LIMIT = 9
"""Containers inside each other: from twenty blocks on, what is inside is one paragraph of its words."""


def copied_text(text, form=markdown_of, joined=MarkdownWriter):
    leaves, references = parse_leaves(text)
    out = joined()
    for leaf in leaves:
        out.add(CopiedBlock(form(leaf, references), leaf.containers, leaf.tight, leaf.starts, leaf.separator))
    return out.text()


def shapes(text):
    """Return all properties of the leaves, with their texts parsed."""
    leaves, references = parse_leaves(text)
    leaf_texts = []
    for leaf in leaves:
        if leaf.kind in {"paragraph", "heading"}:
            # Nothing but spaces that are no spaces to Markdown: a paragraph without words.
            if leaf.text or any(container.marker for container in leaf.containers):
                leaf_texts.append((leaf, parse_inline(leaf.text, references)))
        elif leaf.kind == "table":
            rows = [[*row, *[""] * len(leaf.aligns)][: len(leaf.aligns)] for row in leaf.cells]
            leaf_texts.append((leaf, [[parse_inline(cell, references) for cell in row] for row in rows]))
        else:
            leaf_texts.append((leaf, leaf.text))
    return [
        (
            leaf.kind,
            content,
            leaf.level,
            leaf.info,
            leaf.containers,
            leaf.tight,
            leaf.aligns,
            leaf.starts,
            leaf.separator,
        )
        for leaf, content in leaf_texts
    ]


def can_be_said(text):
    """Whether Markdown can express the text, and nothing in it is ambiguous.

    A formula in display style that has a line of a paragraph to itself stands alone when it is read again; a space
    that is no space may make an item that has no words but goes on; and nothing is nested deeper than the limit.
    """
    leaves, _ = parse_leaves(text)
    words = [leaf.text for leaf in leaves if leaf.kind == "paragraph"]
    return (
        not any(sign in text for text in words for sign in ("$$", "\\["))
        and "\u00a0" not in text
        and all(len(leaf.containers) <= LIMIT for leaf in leaves)
    )


@settings(max_examples=examples(300), derandomize=True, deadline=None)
@given(texts)
def test_copied_random_markdown_is_read_as_the_same_leaves(text):
    if can_be_said(text):
        assert shapes(copied_text(text)) == shapes(text)


@pytest.mark.parametrize(
    "text",
    [
        "- a\n  - b\n    1. c\n\n       d\n- e",
        "- a\n\n* b\n\n+ c",
        "1. a\n\n[foo]: /u\n\n1. b",
        "3. a\n4. b\n\n\n5) c",
        "- [ ] a\n- [x] b\n\n1. c\n2. [ ] d",
        "- - - a\n    - b\n-\n-",
        "> a\n\n> - b\n>   > c\n>\n> ```\n> code\n> ```",
        "[^n]: ```py\n      x\n    ```\n\n    - more\n\nx[^n]",
        "`````md\n```\ninner\n```\n`````",
        "~~~a`b\nc\n~~~",
        "```\n\n```\n\n```\n```",
        "| a \\| b | c |\n|:-:|--:|\n| `x` | [y](https://y.org) |\n| | \\\\ |",
        "a \\| b\n:-:|:-:",
        "$$\nx\n$$\n\n\\begin{align}\na &= b\n\\end{align}\n\n\\[ y \\]",
        "Title\nof two lines\n===\n\n## a \\#\n\n##",
        "[foo] and ![foo]\n\n[foo]: https://x.org",
        "\\# a\n\\- b\n1\\. c",
        "- ***\n  ***\n\n***",
        "word\\\n\\\nword",
        "a  \nb",
        "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 400,
    ],
)
def test_copied_constructs_are_read_as_the_same_leaves(text):
    assert shapes(copied_text(text)) == shapes(text)


@settings(max_examples=examples(150), derandomize=True, deadline=None)
@given(texts)
def test_html_is_closed_in_order(text):
    from tests.ui.transcript.clipboard.safe_html import SafeReader

    reader = SafeReader()
    reader.feed(copied_text(text, html_of, HtmlWriter))
    reader.close()
    assert reader.open == []


@settings(
    max_examples=examples(60),
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@example("- a\n- b\n\n| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 400 + "\n```py extra\nx\n```\n\n[^1]: note\n\nx[^1]")
@example("word " * 3000 + "\n\n" + "# h\n\n- a\n- b\n\n" * 900)
@given(texts)
def test_a_whole_answer_in_its_row(render_context, text):
    # Of a linked picture that stands alone, the picture is kept; of code without a word, nothing.
    has_words = all(leaf.text for leaf in parse_leaves(text)[0] if leaf.kind == "code")
    if can_be_said(text) and has_words and "[![" not in text:
        transcript = Transcript([Message.assistant(text)])
        if len(transcript):
            assert shapes(copied.markdown_of(make_row(transcript[0], render_context, 0))) == shapes(text)


def test_paragraphs_are_copied_as_they_were_written():
    text = "snake_case 2 * 3, *em* and `x`\n\n[a](https://x.org) $5 and \\*"
    assert copied_text(text) == text
