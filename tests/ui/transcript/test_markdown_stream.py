"""What is closed never changes again, and a stream says the same as the whole text."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ui.transcript.markdown.leaves import Inside, Leaf
from ui.transcript.markdown.stream import MarkdownStream, leaves_of

LINES = (
    "", "a", "foo *b*", "# h", "- x", "  - y", "    code", "> q", "> > r", "---", "===", "```", "```py", "~~~", "  ```",
    "| a | b |", "|---|---|", "| c |", "1. one", "3) t", "[foo]: /url", "'title", "more'", "[foo]", "<div>", "***",
    "\tx",
    "- ", "-", "#", "+", "10.", "[x]:", '/u "t', '"', "-|-", "a|b", ":-", "- [ ] t", " ```", "````", "\r", "> ```",
    "- ```", "  b", "   c", "> " * 25 + "q", "- " * 24 + "d", "  " * 30 + "- z", "  " * 12 + "- y",
)  # fmt: skip
line = st.one_of(st.sampled_from(LINES), st.text("ab-*`#>|[]: \n\r1.=~_", max_size=6))


class Reader:
    """Does with the steps what a row does with them."""

    def __init__(self):
        self.stream = MarkdownStream()
        self.closed: list[Leaf] = []
        self.tail: tuple[Leaf, ...] = ()

    def take(self, step):
        if step.grown is not None:
            last = self.tail[-1]
            self.tail = (*self.tail[:-1], Leaf("code", last.text + step.grown, info=last.info, starts=last.starts))
        else:
            self.closed += step.closed
            self.tail = step.tail

    def append(self, text):
        self.take(self.stream.append(text))

    def finish(self):
        self.take(self.stream.finish())


def pieces(text, sizes):
    at, index = 0, 0
    while at < len(text):
        size = sizes[index % len(sizes)] if sizes else 1
        yield text[at : at + size]
        at, index = at + size, index + 1


def links(references):
    return {label: (each["href"], each["title"]) for label, each in references.items()}


@settings(max_examples=1500, deadline=None)
@given(st.lists(line, max_size=12), st.lists(st.integers(1, 9), max_size=40))
def test_a_stream_says_the_same_as_the_whole_text_block_by_block(lines, sizes):
    text = "\n".join(lines)
    reader = Reader()
    for piece in pieces(text, sizes):
        reader.append(piece)
    reader.finish()
    whole, references = leaves_of(text)
    assert tuple(reader.closed) == whole
    assert links(reader.stream.references) == links(references)


@pytest.mark.parametrize(
    ("text", "closed"),
    [
        ("a\n\n", 0),
        ("a\n\nb", 0),
        ("a\n\nb\n", 1),
        ("a\n-", 0),
        ("a\n---\nb\n", 1),
        ("- a\n\n- b\n", 0),
        ("- a\n\nb\n", 1),
        ("a\n\n| x | y |\n", 0),
        ("a\n| x | y |\n|---|---|", 0),
        ("a\n| x | y |\n|---|---|\n", 1),
        ("```\na\n```\n\nb", 1),
    ],
)
def test_a_block_is_closed_by_the_complete_first_line_of_the_next(text, closed):
    reader = Reader()
    for char in text:
        reader.append(char)
    assert len(reader.closed) == closed


def test_an_open_fence_is_a_code_block_at_once_and_its_end_does_not_flicker():
    reader = Reader()
    seen = []
    for char in "x\n\n```py\na = 1\n\nb``\n```\n":
        reader.append(char)
        seen += [leaf.text for leaf in (*reader.closed, *reader.tail) if leaf.kind == "code"][-1:]
    assert reader.closed[-1] == Leaf("code", "a = 1\n\nb``", info="py", starts=True)
    grown = [text for at, text in enumerate(seen) if at == 0 or text != seen[at - 1]]
    assert all(later.startswith(earlier) for earlier, later in pairwise(grown))
    assert not any(text.endswith("\n`") for text in grown)


def test_text_inside_an_open_fence_is_not_parsed_again(monkeypatch):
    reader = Reader()
    reader.append("```\nfirst\n")
    monkeypatch.setattr("ui.transcript.markdown.stream.outline", None)
    for _ in range(100):
        reader.append("line # *not* markup\n")
    assert reader.tail[-1].text.count("\n") == 100


def test_the_head_of_a_table_is_a_table_before_its_second_line():
    reader = Reader()
    for char in "| a | b |\n|--":
        reader.append(char)
        if reader.tail and reader.tail[-1].text.count("|") >= 3:
            pytest.fail("seen as text")
    assert reader.tail[-1].cells == (("a", "b"),)


def test_containers_are_flattened_and_markers_stand_once():
    leaves, _ = leaves_of("> 1. a\n>\n>    b\n> 2. [x] c\n")
    quote = Inside("quote")
    assert [(leaf.text, leaf.inside) for leaf in leaves] == [
        ("a", (quote, Inside("item", "1."))),
        ("b", (quote, Inside("item", ""))),
        ("c", (quote, Inside("item", "☑"))),
    ]


def test_html_is_text():
    leaves, _ = leaves_of("<script>alert(1)</script>\n\n<div>\n*a*\n</div>")
    assert [leaf.kind for leaf in leaves] == ["paragraph", "paragraph"]
    assert leaves[0].text == "<script>alert(1)</script>"
