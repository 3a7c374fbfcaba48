"""What is closed never changes again, and a stream says the same as the whole text."""

from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from desktop_agent.markdown.long_text import PIECE
from desktop_agent.markdown.parser import FOOTNOTES_KEY
from tests.frame.examples import examples
from tests.frame.selection import few
from tests.ui.transcript.random_markdown import Reader, cut_up, markdown
from ui.transcript.markdown import stream as stream_module
from ui.transcript.markdown.elements import Container, Leaf
from ui.transcript.markdown.open_blocks import displayed_tail
from ui.transcript.markdown.parser import parse_blocks
from ui.transcript.markdown.stream import normalize_newlines, parse_leaves

EXAMPLES = 350
SHORT = 160
"""Characters of a text at which is looked all the time."""


def definitions(references):
    return {
        label: set(reference) if label == FOOTNOTES_KEY else (reference["href"], reference["title"])
        for label, reference in references.items()
    }


def shown_of(text):
    """Return the leaves of the text so far, as if it were read from its beginning."""
    text = normalize_newlines(text.removesuffix("\r"))
    return [leaf for piece in parse_blocks(displayed_tail(text), is_open=True)[0] for leaf in piece.leaves]


def check(text, sizes, looks):
    """Stream the text in pieces; check that closed leaves stay, and at `looks` that all is as if parsed at once."""
    reader, so_far = Reader(), ""
    for index, part in enumerate(cut_up(text, sizes)):
        closed_before = tuple(reader.closed)
        reader.append(part)
        so_far += part
        assert tuple(reader.closed[: len(closed_before)]) == closed_before
        if index in looks or len(text) < SHORT:
            check_shown([*reader.closed, *reader.tail], shown_of(so_far))
    reader.finish()
    expected, references = parse_leaves(text)
    assert tuple(reader.closed) == expected
    assert reader.tail == ()
    assert definitions(reader.stream.references) == definitions(references)


def check_shown(shown, expected):
    if shown and expected and shown[-1].kind in {"code", "math"}:
        # The last line of bare text is held back until it is sure not to be the end.
        shown[-1], expected[-1] = replace(shown[-1], text=""), replace(expected[-1], text="")
    assert shown == expected


sizes = st.lists(st.one_of(st.integers(1, 3), st.integers(1, 60), st.integers(1, 60)), min_size=1, max_size=20)
looks = st.sets(st.integers(0, 60), max_size=5)


@settings(max_examples=examples(EXAMPLES), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(markdown, sizes, looks)
def test_a_stream_shows_the_same_as_the_whole_text_block_by_block(text, sizes, looks):
    check(text, sizes, looks)


@contextmanager
def small_pieces():
    """Let a paragraph count as long from 30 characters on."""
    with pytest.MonkeyPatch.context() as patch:
        parser, stream, long_text = (
            "desktop_agent.markdown.parser",
            "ui.transcript.markdown.stream",
            "desktop_agent.markdown.long_text",
        )
        for module in (long_text, stream, parser):
            patch.setattr(f"{module}.PIECE", 30)
        for module in (stream, parser):
            patch.setattr(f"{module}.FIRST_BAR", 12)
        patch.setattr(f"{long_text}._LONGEST_CLUSTER", 8)
        patch.setattr(f"{long_text}._MAX_MARKS", 6)
        yield


@settings(max_examples=examples(EXAMPLES), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(markdown, sizes, looks)
def test_a_stream_of_paragraphs_in_many_pieces_shows_the_same_as_the_whole_text(text, sizes, looks):
    with small_pieces():
        check(text, sizes, looks)


@pytest.mark.parametrize(
    "text",
    [
        "[foo b c d e f g h i j k\nl m n o p q r s t u v w x\ny]: /url\n\n[foo]",
        "[foo]: /url\n'a b c d e f g h i j k\nl m n o p q r s t u v\nw x y z'\n\n[foo]",
        "a b c d e f g h i j k l m n o p | q\n---|---\n",
        "a b c d e f g h i j k\nl m n o p q r s t u v w x y\n| z |\n|---|\n",
        "a b c d e f g h i j k\nl m n o p q r s t u v w x y z\n=====\n",
        "a\n$$\nb\n\nc\n$$\n",
        "a\n$$\nb\n$$ c\n\nd",
        "- a\n$$\n- b\n$$\n",
        "   - a\n   - b\n\n   - c\n - d\n",
        "|---|---|\n|---|---|\na\n|---|---|\n|---|---|",
        "# \n|---|---|\n# \n|---|---|\n# ",
        "> > \n> ```\n\n",
        "> a\n>\n> [^1]:\n>     > \n>     b\n>\n>     c\n>\n>     d\n",
        "[^1]: a\n\n    b | c\n    --|--\n\n    d\n",
        "> - a\n> - b\n>\n> 3. c\n> 3. d\n> 3. e\n",
        "> a\n>\n> [foo]: /u\n> 'b\n> c'\n> d\n",
        "- 1. word\n  $$\n# \n",
        "[^1]: word\n  $$\na\n",
        "[^1]: word\n  $$\n  a\n  b $$\n\nc",
        "[^1]: word\n\n  $$\na\n$$\n",
        "- 1. word\n  $$\n# \n  $$\n",
    ],
)
def test_what_depends_on_lines_far_apart_is_the_same_letter_by_letter(text):
    with small_pieces():
        check(text, [1], ())
    check(text, [1], ())


@pytest.mark.parametrize(
    ("text", "closed"),
    [
        ("a\n\n", 0),
        ("a\n\nb", 0),
        ("a\n\nb\n", 1),
        ("a\n-", 0),
        ("a\n---\nb\n", 1),
        ("- a\n\n- b", 0),
        ("- a\n\n- b\n", 1),
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
    texts = []
    for char in "x\n\n```py\na = 1\n\nb``\n```\n":
        reader.append(char)
        texts += [leaf.text for leaf in (*reader.closed, *reader.tail) if leaf.kind == "code"][-1:]
    assert reader.closed[-1] == Leaf("code", "a = 1\n\nb``", info="py", starts=True)
    stages = [text for index, text in enumerate(texts) if index == 0 or text != texts[index - 1]]
    assert all(later.startswith(earlier) for earlier, later in pairwise(stages))
    assert not any(text.endswith("\n`") for text in stages)


def test_text_inside_an_open_fence_is_not_parsed_again(monkeypatch):
    reader = Reader()
    reader.append("```\nfirst\n")
    monkeypatch.setattr("ui.transcript.markdown.stream.parse_blocks", None)
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
    leaves, _ = parse_leaves("> 1. a\n>\n>    b\n> 2. [x] c\n")
    quote = Container("quote")
    assert [(leaf.text, leaf.containers) for leaf in leaves] == [
        ("a", (quote, Container("item", "1."))),
        ("b", (quote, Container("item", ""))),
        ("c", (quote, Container("item", "☑"))),
    ]


def test_html_is_text():
    leaves, _ = parse_leaves("<script>alert(1)</script>\n\n<div>\n*a*\n</div>")
    assert [leaf.kind for leaf in leaves] == ["paragraph", "paragraph"]
    assert leaves[0].text == "<script>alert(1)</script>"


def fed(*parts):
    reader = Reader()
    for part in parts:
        reader.append(part)
    return reader


def parsed(monkeypatch):
    """Record the lengths of the texts that are parsed."""
    lengths = []
    monkeypatch.setattr(
        stream_module,
        "parse_blocks",
        lambda text, *rest, **named: lengths.append(len(text)) or parse_blocks(text, *rest, **named),
    )
    return lengths


def test_items_of_an_open_list_are_final_when_the_next_one_begins(monkeypatch):
    reader = fed("8) a\n\n   b\n1) c", "\n")
    assert [(leaf.text, leaf.containers[0].marker) for leaf in reader.closed] == [("a", "8)"), ("b", "")]
    assert [(leaf.text, leaf.containers[0].marker) for leaf in reader.tail] == [("c", "9)")]
    reader.append("    - x\n\n".join(f"{number}) item\n" for number in range(100)))
    lengths = parsed(monkeypatch)
    for _ in range(50):
        reader.append("1) one more\n")
    assert max(lengths) < 100
    assert reader.tail[-1].containers[0].marker == "159)"
    reader.append("\n10. another list\nend")
    assert [leaf.containers[0].marker for leaf in reader.tail[:1]] == ["10."]


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_of_an_open_list_only_the_last_complete_item_may_still_change(count):
    reader = fed("".join(f"- {number}\n" for number in range(count)) + "- nex")
    assert [leaf.text for leaf in reader.closed] == [str(number) for number in range(count - 1)]


def test_a_list_that_becomes_loose_moves_nothing_above():
    reader = fed("- a\n- b\n- c\n")
    above = tuple(reader.closed)
    reader.append("\n- d\n- e\n\n  f\n")
    reader.finish()
    assert tuple(reader.closed[: len(above)]) == above
    assert [(leaf.text, leaf.tight) for leaf in reader.closed] == [
        ("a", False), ("b", True), ("c", True), ("d", False), ("e", True), ("f", False),
    ]  # fmt: skip


def test_numbers_count_on_from_the_first():
    leaves, _ = parse_leaves("3. a\n3. b\n\n   0. c\n   7. d\n1. e\n\ntext\n\n999999999) x\n1) y")
    assert [leaf.containers[-1].marker for leaf in leaves if leaf.containers] == [
        "3.",
        "4.",
        "0.",
        "1.",
        "5.",
        "999999999)",
        "1000000000)",
    ]


def test_rows_of_an_open_table_come_alone_and_are_not_read_again(monkeypatch):
    reader = fed("a\n\n| x | y |\n|---|--:|\n| 1 | 2 |\n| 3 ")
    assert reader.tail[-1].cells == (("x", "y"), ("1", "2"), ("3", ""))
    reader.append("| 4 |\n" + "| 5 | 6 |\n" * 1000)
    lengths = parsed(monkeypatch)
    steps = [reader.stream.append(part) for part in ("| *sev", "en* |", " 8 |\n", "|")]
    assert [(step.rows, step.replaced) for step in steps] == [
        ((("5", "6"), ("*sev", "")), 1),
        ((("*seven*", ""),), 1),
        ((("*seven*", "8"),), 1),
        ((), 0),
    ]
    assert max(lengths) < 60
    closed = reader.stream.append(" 9 |\n\nend\n").closed
    assert closed[0].cells[-2:] == (("*seven*", "8"), ("9", ""))
    assert len(closed[0].cells) == 3 + 1000 + 2
    assert closed[0].aligns == ("left", "right")


def test_a_table_ends_where_too_many_cells_are_missing_streamed_as_whole():
    text = "|" + " a |" * 2000 + "\n|" + "---|" * 2000 + "\n" + "| b |\n" * 50
    reader = fed(*cut_up(text, [997]))
    reader.finish()
    assert tuple(reader.closed) == parse_leaves(text)[0]
    assert [leaf.kind for leaf in reader.closed] == ["table", "paragraph"]


def test_an_open_formula_is_one_at_once_and_only_grows(monkeypatch):
    reader = fed("so\n\\[\n", "x^2 ")
    assert [(leaf.kind, leaf.text) for leaf in reader.tail] == [("paragraph", "so"), ("math", "x^2")]
    monkeypatch.setattr(stream_module, "parse_blocks", None)
    for _ in range(100):
        reader.append("\\\\\n + y\\")
    assert reader.tail[-1].text.endswith("+ y")
    assert reader.tail[-1].text.count("\n") == 100
    monkeypatch.undo()
    reader.append("]\n")
    reader.finish()
    assert [leaf.kind for leaf in reader.closed] == ["paragraph", "math"]


def test_a_paragraph_that_begins_with_a_link_is_read_at_its_end_only(monkeypatch):
    line = "[one](https://a.example/1) [two]\n"
    reader = fed(line * 400)
    assert len(reader.closed) >= 2
    lengths = parsed(monkeypatch)
    for _ in range(50):
        reader.append(line * 10)
    assert max(lengths) < 3 * PIECE


OPEN = {
    "footnotes in a quote": "> [^1]: a\n",
    "paragraphs of a quote": "> a\n>\n",
    "a quote in a quote": "> > a\n> >\n",
    "a list in a quote": "> - a\n",
    "numbers in a quote": "> 1. a\n",
    "definitions in a quote": "> [a]: /x\n",
    "paragraphs of a footnote": "    a\n\n",
    "a list in a footnote": "    - a\n",
    "a footnote in a quote": ">     a\n>\n",
    "a title without end": "y\n",
}
BEGINNINGS = {
    "paragraphs of a footnote": "[^1]: a\n\n",
    "a list in a footnote": "[^1]: a\n\n",
    "a footnote in a quote": "> [^1]: a\n>\n",
    "a title without end": "[a]: x '",
}


@pytest.mark.parametrize("name", few(OPEN, 12, "the same reader"))
def test_an_open_block_is_read_at_its_end_only(name, monkeypatch):
    text = BEGINNINGS.get(name, "") + OPEN[name] * (60_000 // len(OPEN[name]))
    lengths = parsed(monkeypatch)
    reader = fed(*cut_up(text, [1000]))
    assert max(lengths) < 3 * PIECE
    reader.finish()
    monkeypatch.undo()
    assert tuple(reader.closed) == parse_leaves(text)[0]


def test_a_title_as_long_as_half_a_piece_is_words():
    title = "'" + "word\n" * 500 + "'"
    leaves, references = parse_leaves(f"[a]: /x\n{title}\n\n[b]: /{'y' * 3 * PIECE}\n\n[c]: /z\n'its\ntitle'\n")
    assert [leaf.text for leaf in leaves] == [title]
    assert [(label, reference["title"]) for label, reference in references.items()] == [
        ("A", ""),
        ("B", ""),
        ("C", "its\ntitle"),
    ]


@pytest.mark.parametrize("label", ["[" + "word\n" * 1500, "[" + "\\]\\[\n" * 1500, "[^" + "[b" * 3000])
def test_what_may_be_a_definition_waits_for_its_end(label):
    text = label + "]: /target\n\nmore words\n"
    reader = fed(*cut_up(text, [487]))
    reader.finish()
    assert tuple(reader.closed) == parse_leaves(text)[0]


@pytest.mark.parametrize("end", ["\n\n", "\n$$ and more\n\n", ""])
def test_a_formula_without_its_end_is_text(end):
    reader = fed("a\n", "$$\n", "- x\n", "- y")
    assert reader.closed == []
    assert [leaf.kind for leaf in reader.tail] == ["paragraph", "math"]
    reader.append(end)
    reader.finish()
    assert reader.closed[0].kind == "paragraph"
    assert "$$" in reader.closed[0].text


def test_a_paragraph_without_end_is_read_at_its_end_only(monkeypatch):
    reader = fed("words of it\n" * 1000)
    assert len(reader.closed) >= 2
    lengths = parsed(monkeypatch)
    for _ in range(50):
        reader.append("more words\n" * 20)
    assert max(lengths) < 3 * PIECE
    reader.append("===\n\n")
    reader.finish()
    assert {leaf.kind for leaf in reader.closed} == {"paragraph"}
    assert reader.closed[-1].text.endswith("\n===")


def test_footnotes_stand_where_they_are_defined_under_their_own_label():
    leaves, references = parse_leaves("a[^b] [^1]\n\n[^B]: x\n\n    y\n- z\n\n[^1]:\n\n[b]: /url")
    assert [(leaf.text, leaf.containers[:1]) for leaf in leaves] == [
        ("a[^b] [^1]", ()),
        ("x", (Container("footnote", "B"),)),
        ("y", (Container("footnote", ""),)),
        ("z", (Container("item", "•"),)),
        ("", (Container("footnote", "1"),)),
    ]
    assert [leaf.back for leaf in leaves] == ["", "", "B", "", "1"]
    assert set(references) == {"B", FOOTNOTES_KEY}
    assert set(references[FOOTNOTES_KEY]) == {"B", "1"}


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("[^n]: a\n\n    - b\n    - c\n\nd", "c"),
        ("[^n]: a\n\n    # b\n\n        code", "b"),
        ("> [^n]: a\n>\n>     b\n\nc", "b"),
        ("[^n]:\n    [^o]: b\n", ""),
    ],
)
def test_the_way_back_from_a_footnote_is_behind_its_last_words(text, last):
    leaves, _ = parse_leaves(text)
    assert [leaf.text for leaf in leaves if leaf.back == "n"] == [last] * bool(last)


def test_definitions_that_are_over_are_not_read_again(monkeypatch):
    lengths = parsed(monkeypatch)
    text = "Words.\n\n" + "".join(f"[{number}]: /url{number} 'title'\n" for number in range(2000))
    reader = Reader()
    for start in range(0, len(text), 100):
        reader.append(text[start : start + 100])
    assert [leaf.text for leaf in reader.closed] == ["Words."]
    assert max(lengths) < 500
    reader.finish()
    assert len(reader.stream.references) == 2000


@pytest.mark.parametrize("above", ["# h\n", "a\n===\n", "```\nx\n```\n", "---\n", "a\n\n", "> a\n\n", "- a\n\n"])
def test_what_stands_above_two_definitions_is_over_and_so_is_the_first_of_them(above):
    reader = fed(above + "[a]: /x\n[b]: /y")
    assert (len(reader.closed), reader.tail) == (1, ())
    assert set(reader.stream.references) == {"A"}


def test_a_title_that_looks_like_definitions_stays_a_title():
    text = "[a]: /x 'one\n[b]: /y\n[c]: /z\nend'\n[d]: /w\n[e]: /v\n"
    reader = Reader()
    for char in text:
        reader.append(char)
    reader.finish()
    assert set(reader.stream.references) == {"A", "D", "E"}


def test_a_definition_that_comes_last_is_known_to_who_holds_the_references():
    reader = Reader()
    references = reader.stream.references
    reader.append("[a] [^1]\n\n[a]: https://x.org\n\n[^1]: note")
    assert reader.stream.finish().definitions
    assert references is reader.stream.references
    assert set(references) == {"A", FOOTNOTES_KEY}
