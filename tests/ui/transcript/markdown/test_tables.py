"""Heads of tables are those of the library, and an open table's head is read once."""

from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_block.table import table as library_table

from desktop_agent.markdown import parser
from desktop_agent.markdown.parser import table
from ui.transcript.markdown.stream import MarkdownStream, parse_leaves

_PARSER = MarkdownIt("commonmark").enable("table")
_INDENTS = st.sampled_from(["", "", " ", "   ", "    "])
_HEADS = st.text("||ab \\\t`", max_size=8).map("|".__add__)
_DELIMITERS = st.text("||--:- \tx", max_size=8)


@given(_INDENTS, _HEADS, _INDENTS, _DELIMITERS)
@example("", "|a|b|", "", "|-|-|")
@example("", "|a\\|b|", "", "|:-:|")
@example("", "|a|b|", "", "|-||-|")
@example("", "|a", "", "- ")
def test_a_head_is_one_when_it_is_one_for_the_library(before, head, between, delimiter):
    state = StateBlock(f"{before}{head}\n{between}{delimiter}", _PARSER, {}, [])
    assert table(state, 0, state.lineMax, True) == library_table(state, 0, state.lineMax, True)


def test_a_bar_alone_is_a_row():
    (leaf,) = parse_leaves("| a | b |\n|:-:|---|\n|\n| c | d |\n")[0]
    assert leaf.cells == (("a", "b"), ("", ""), ("c", "d"))
    assert leaf.aligns == ("center", "left")


def test_the_head_of_an_open_table_is_taken_apart_once(monkeypatch):
    texts = []
    original = parser._split_cells
    parser._parse_head.cache_clear()
    monkeypatch.setattr(parser, "_split_cells", lambda text: texts.append(text) or original(text))
    stream = MarkdownStream()
    stream.append("| first | second |\n|---|---|\n")
    for number in range(50):
        stream.append(f"| {number} | x |\n")
    assert sum("first" in text for text in texts) == 1
