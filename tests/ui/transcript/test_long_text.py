"""Text made to stall a screen: what is read and laid out for it is counted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, QRect
from PySide6.QtGui import QPainter, QPixmap

from desktop_agent.conversation.items import AnswerItem, CallState, StreamedText, ToolCallItem, UserItem
from desktop_agent.markdown.long_text import PIECE, split_long_text
from desktop_agent.types.blocks import Image, UrlSource
from tests.fakes.transcript_feed import read_all
from tests.frame.selection import few
from tests.ui.transcript.copied import plain_of
from ui.transcript.blocks.text_layout import TextLayout
from ui.transcript.markdown import stream as stream_module
from ui.transcript.markdown.inline import LINE_BREAK, Line, parse_inline
from ui.transcript.markdown.stream import MarkdownStream, parse_leaves
from ui.transcript.rows.row_factory import make_row

SCREEN = 600
HOSTILE = (
    "x",
    "[",
    "![",
    "[a](",
    "*a _b ",
    "`",
    "&amp;&#x202e;",
    "<div>",
    "\U0001f468\u200d",
    "a\u0301",
    "word ",
    "w\n",
)


@pytest.fixture
def laid_out(monkeypatch):
    """Record the length of each text that is laid out."""
    lengths: list[int] = []
    make = TextLayout.__init__

    def counted(self, line: Line, *rest, **named):
        lengths.append(len(line.text))
        make(self, line, *rest, **named)

    monkeypatch.setattr(TextLayout, "__init__", counted)
    return lengths


@pytest.mark.parametrize("unit", few(HOSTILE, 4, "the same layout"))
def test_a_paragraph_that_grows_is_laid_out_at_its_end_only(render_context, laid_out, unit):
    item = AnswerItem("i", "m")
    row = make_row(item, render_context, 700)
    chunk = (unit * PIECE)[:3000]
    for _ in range(40):
        item.text.append(chunk)
        row.refresh("text")
        row.stack.settle(row.stack.height - SCREEN, row.stack.height)
        # What is seen, the piece that grew, and what came near because a guess was too high.
        assert sum(laid_out) <= 6 * (PIECE + 8)
        laid_out.clear()
    item.finished = True
    row.refresh("text")
    row.stack.settle(row.stack.height - SCREEN, row.stack.height)
    assert sum(laid_out) <= 6 * (PIECE + 8)


def test_a_piece_that_is_full_is_not_laid_out_again(render_context, laid_out):
    item = AnswerItem("i", "m", StreamedText("x" * (3 * PIECE + 10)))
    row = make_row(item, render_context, 700)
    row.stack.settle(0, row.stack.height)
    row.stack.settle(0, row.stack.height)
    laid_out.clear()
    item.text.append("xxx")
    row.refresh("text")
    row.stack.settle(0, row.stack.height)
    assert laid_out == [13]


@given(
    st.lists(
        st.sampled_from(
            ["x" * 700, "\n", " ", "é", "e\u0301" * 50, "\U0001f469\u200d\U0001f680" * 40, "ab c", "*a* [b]" * 70]
        )
    )
)
def test_pieces_joined_are_the_text_and_growing_keeps_them(parts):
    text = "".join(parts) * 3
    pieces = list(split_long_text(text))
    assert "".join((separator or "") + piece for separator, piece in pieces) == text
    assert max(len(piece) for _, piece in pieces) <= PIECE
    longer = list(split_long_text(text + "more of it" * 30))
    assert longer[: len(pieces) - 1] == pieces[:-1]


@pytest.mark.parametrize("text", ["*a **b " * 3000, "[a](b) ~~c~~\n" * 2000, "*" * 5000, "a_" * 700])
def test_a_piece_has_only_so_many_signs_and_no_word_of_it_is_torn(text):
    pieces = list(split_long_text(text))
    assert len(pieces) > 1
    assert max(sum(piece.count(sign) for sign in "*_~[") for _, piece in pieces) <= 600
    if " " in text:
        assert all(separator in {None, " ", "\n"} for separator, _ in pieces)


@pytest.mark.parametrize("cluster", ["e\u0301\u0302", "\U0001f469\u200d\U0001f680", "\U0001f44d\U0001f3fd"])
@pytest.mark.parametrize("length", range(5))
def test_a_character_of_several_parts_is_not_torn(cluster, length):
    for separator, piece in list(split_long_text("x" * length + cluster * PIECE))[1:]:
        assert separator == ""
        assert piece.startswith(cluster)


def test_a_cluster_without_end_is_cut_anyway():
    assert [len(piece) for _, piece in split_long_text("\u0301" * (PIECE * 2))] == [PIECE, PIECE]


@pytest.mark.parametrize(
    "text", ["word " * 3000, "x" * 9001, "line of words\n" * 900, "> " + "quoted " * 2000, "# " + "h" * 9000]
)
def test_a_long_paragraph_is_the_same_streamed_and_whole(text):
    text = f"first\n\n{text}\n\nlast"
    stream = MarkdownStream()
    closed = []
    for start in range(0, len(text), 997):
        closed += stream.append(text[start : start + 997]).closed
    closed += stream.finish().closed
    assert tuple(closed) == parse_leaves(text)[0]
    assert len(closed) > 4


def test_a_paragraph_in_pieces_is_copied_and_selected_as_one(render_context):
    text = "word\n" * 2000 + "x" * 9000 + " 😀 end"
    answer = make_row(AnswerItem("i", "m", StreamedText(f"a\n\n{text}\n\nb"), finished=True), render_context, 700)
    assert len(answer.blocks) > 5
    assert plain_of(answer) == f"a\n\n{text}\n\nb"
    assert answer.whole(2) == (1, len(answer.blocks) - 2)
    assert answer.whole(0) == (0, 0)
    first, second = answer.blocks[1].plain(), answer.blocks[2].plain()
    assert plain_of(answer, (1, len(first) - 3), (2, 3)) == f"{first[-3:]}\n{second[:3]}"
    user = make_row(UserItem("u", "m", text), render_context, 700)
    assert plain_of(user) == text


def test_pieces_stand_below_each_other_without_a_gap(render_context):
    row = make_row(AnswerItem("i", "m", StreamedText("a\n\n" + "w " * PIECE), finished=True), render_context, 700)
    row.stack.settle(0, row.stack.height)
    row.stack.settle(0, row.stack.height)
    assert row.stack.block_box(2).top() == row.stack.block_box(1).top() + row.stack.block_box(1).height()
    assert row.stack.block_box(1).top() > row.stack.block_box(0).bottom() + 1


def test_pictures_without_words_have_no_empty_block(render_context):
    image = Image(source=UrlSource(url="https://x.org/a.png"))
    assert len(make_row(UserItem("u", "m", "", (image,)), render_context, 700).blocks) == 1


@pytest.mark.parametrize("text", ["[" * 1000, "![" * 501, "*a* " * PIECE])
def test_what_is_too_much_to_read_stays_plain(text):
    assert parse_inline(text + "\n**b**") == Line(text + LINE_BREAK + "**b**")


def test_a_very_long_open_block_is_not_read_again_for_each_piece(monkeypatch):
    read = []
    outline = stream_module.parse_blocks
    monkeypatch.setattr(
        stream_module,
        "parse_blocks",
        lambda text, *rest, **named: read.append(len(text)) or outline(text, *rest, **named),
    )
    stream = MarkdownStream()
    stream.append("- a\n" + "  - item\n" * 8000)
    for _ in range(40):
        assert stream.append("  - item\n").tail
    assert len(read) <= 6
    assert len(stream.finish().closed) == 8041
    read.clear()
    for _ in range(20):
        stream.append("word\n")
    assert len(read) == 20


def test_of_a_long_table_only_what_is_seen_is_laid_out(render_context, laid_out):
    text = "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 3000 + "| é | [x](https://x.org) |\n"
    row = make_row(AnswerItem("i", "m", StreamedText(text), finished=True), render_context, 700)
    row.stack.settle(0, SCREEN)
    assert laid_out == []
    assert len(row.blocks) < 20
    read_all(row)
    assert len(row.blocks) > 40
    row.stack.settle(20_000, 20_000 + SCREEN)
    picture = QPixmap(700, SCREEN)
    painter = QPainter(picture)
    row.paint(painter, QRect(0, 20_000, 700, SCREEN), None)
    painter.end()
    assert 4 < len(laid_out) < 3 * SCREEN // render_context.style.line
    block = row.blocks[3]
    row.stack.settle_block(3)
    assert block.offset_at(QPoint(0, block.tops[10] + 8)) == 10 * len("1\t2\n")
    for index in range(len(row.blocks)):
        row.stack.settle_block(index)
        block = row.blocks[index]
        lazy = block.tops[:]
        for row_number, cells in enumerate(block.cells.lines()):
            height = max(
                block.text_layout(row_number, column, render_context.style).height for column in range(len(cells))
            )
            assert height + render_context.style.px(12) == lazy[row_number + 1] - lazy[row_number]


def test_of_an_endless_cell_the_beginning_is_laid_out_and_all_is_copied(render_context, laid_out):
    text = "| a | b |\n|---|---|\n| " + "[x" * 50_000 + " | 2 |\n"
    row = make_row(AnswerItem("i", "m", StreamedText(text), finished=True), render_context, 700)
    row.stack.settle(0, SCREEN)
    assert max(laid_out) == PIECE + 1
    assert plain_of(row) == "a\tb\n" + "[x" * 50_000 + "\t2"


@pytest.mark.parametrize("text", [">" * 10_000 + " deep", "\n".join("  " * depth + "- deep" for depth in range(200))])
def test_what_is_nested_too_deep_is_still_there(text):
    leaves, _ = parse_leaves(text + "\n\nend")
    assert leaves[-1].text == "end"
    assert sum(leaf.text.count("deep") for leaf in leaves) == text.count("deep")
    assert max(len(leaf.containers) for leaf in leaves) <= 20


def test_hidden_characters_of_a_call_are_seen(render_context):
    arguments = {"path": "safe\u202etxt.exe", "\u2066key": "a\u200bb"}
    item = ToolCallItem("i", "m", "t", "wr\u202eite\n_file", arguments, state=CallState.PENDING)
    row = make_row(item, render_context, 600)
    assert row.blocks[0].header.title == "wr⟨U+202E⟩ite _file"
    assert row.label == "Tool call: wr⟨U+202E⟩ite _file"
    assert "safe⟨U+202E⟩txt.exe" in row.blocks[1].plain()
    item.state = CallState.WAITING
    row.refresh("state")
    assert "safe\\u202etxt.exe" in row.blocks[1].plain()
    item.state = CallState.WRITING
    item.arguments = StreamedText('{"path": "\u202ex')
    row.refresh("state")
    item.state = CallState.RUNNING
    item.output = StreamedText("out\u202e")
    everything = "".join(block.plain() for block in row.blocks) + row.spoken_text()
    assert "\u202e" not in everything
