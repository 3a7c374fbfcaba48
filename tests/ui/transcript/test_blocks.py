"""Blocks by themselves: code lines, tables, colours, cards."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPoint
from PySide6.QtGui import QFontMetricsF

from desktop_agent.conversation.items import CallState, ToolCallItem
from desktop_agent.tools.builtin_tools import builtin_tools
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.blocks import Outcome, Text, ToolResult
from tests.ui.transcript.blocks.code.lexed_words import words_by_line
from ui.style.theme import DARK, LIGHT
from ui.style.tool_labels import tool_icon, tool_title
from ui.transcript.blocks.code.code_block import CodeBlock, CodeCallbacks
from ui.transcript.blocks.code.code_lines import CodeLines
from ui.transcript.blocks.table_block import TableBlock
from ui.transcript.blocks.text_layout import TextLayout
from ui.transcript.markdown.inline import Line, SpanStyle, parse_inline
from ui.transcript.markdown.stream import parse_leaves
from ui.transcript.markdown.text_units import utf16_length
from ui.transcript.rows.render_context import ViewChoices
from ui.transcript.rows.row_factory import make_row
from ui.transcript.style import SYNTAX_COLORS, RenderStyle
from ui.transcript.viewport.selection import word_at


@pytest.fixture
def style(qapp):
    return RenderStyle(LIGHT, 100)


@given(st.text("ab\n😀", max_size=30), st.lists(st.text("ab\n😀", max_size=8), max_size=8))
def test_growing_code_is_the_same_as_code_made_at_once(first, pieces):
    lines = CodeLines(first, wraps=False)
    for piece in pieces:
        lines.append(piece)
    expected = CodeLines(first + "".join(pieces), wraps=False)
    assert lines.text == expected.text
    assert lines._starts == expected._starts
    assert lines.size == utf16_length(expected.text)
    assert lines._longest == expected._longest


def test_wrapping_makes_code_higher_and_the_choice_is_told(style):
    chosen, changed = [], []
    host = CodeCallbacks(lambda text: None, lambda: changed.append(1), on_wrap=chosen.append)
    block = CodeBlock("x" * 500 + "\ny", "py", host)
    flat = block.layout(300, style)
    assert block.scroll_horizontally(50)
    next(control for control in block.controls() if control.name == "Wrap lines").press()
    assert chosen == [True]
    assert changed
    assert block.layout(300, style) > flat + 100
    assert not block.scroll_horizontally(50)


def test_copy_copies_the_code(style):
    copied = []
    block = CodeBlock("a = 1\n", "py", CodeCallbacks(copied.append, lambda: None))
    block.layout(300, style)
    block.controls()[0].press()
    assert copied == ["a = 1\n"]


def test_colours_by_line_in_utf16_units():
    lines = words_by_line('x = "😀"\ndef f(): # c\n', "python")
    assert (4, 1, "string") in lines[0] or (4, 4, "string") in lines[0]
    assert (0, 3, "keyword") in lines[1]
    assert lines[1][-1] == (9, 3, "comment")
    assert words_by_line("x", "no-such-language") == []


def luminance(color: str) -> float:
    parts = [int(color[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_colours_of_code_can_be_read(theme):
    background = luminance(theme.code_background)
    for color in SYNTAX_COLORS[theme.is_dark].values():
        low, high = sorted((background, luminance(color)))
        assert (high + 0.05) / (low + 0.05) >= 4.5


def test_a_wide_table_fits_by_wrapping_and_is_copied_with_tabs(style):
    text = "| a | b |\n|---|---:|\n| short | " + "many words " * 40 + "|\n"
    (leaf,), references = parse_leaves(text)
    block = TableBlock(leaf, references)
    height = block.layout(500, style)
    assert block.columns.lefts[-1] <= 500
    assert height > 4 * style.line
    assert block.plain().startswith("a\tb\nshort\tmany words")


def test_a_growing_table_lays_out_only_its_new_rows(style):
    head = "| a | b |\n|---|---|\n| wide enough cell | x |\n"
    (leaf,), references = parse_leaves(head + "| 1 | 2 |\n")
    block = TableBlock(leaf, references)
    block.layout(500, style)
    layouts = [block.text_layout(0, 0, style), block.text_layout(1, 1, style)]
    (longer,), _ = parse_leaves(head + "| 1 | 2 |\n| 3 | 4 |\n")
    block.set_leaf(longer)
    block.layout(500, style)
    assert [block.text_layout(0, 0, style), block.text_layout(1, 1, style)] == layouts
    assert 0 < block.tops[3] - block.dirty_from < 12


def test_a_longer_paragraph_is_painted_from_where_it_differs(style):
    words = "some words that fill a line " * 12
    old = TextLayout(parse_inline(words + "and **bold**"), style.body, style, 400, style.line)
    new = TextLayout(parse_inline(words + "and **bold** end"), style.body, style, 400, style.line)
    assert new.dirty_from(old) >= style.line * (len(old.starts) - 2)
    other = TextLayout(parse_inline("other " + words), style.body, style, 400, style.line)
    assert other.dirty_from(old) == 0


def test_right_to_left_text_stands_at_the_right(style):
    text_layout = TextLayout(Line("שלום עולם"), style.body, style, 400, style.line)
    assert text_layout.boxes(0, 4)[0].left() > 200
    assert TextLayout(Line("hello"), style.body, style, 400, style.line).boxes(0, 4)[0].left() < 5


def test_places_of_links(style):
    text_layout = TextLayout(parse_inline("a [link](https://x.org) b"), style.body, style, 400, style.line)
    box = text_layout.boxes(2, 4)[0]
    assert text_layout.link_at(box.center().x(), box.center().y()) == "https://x.org"
    assert text_layout.link_at(box.right() + 8, box.center().y()) == ""
    assert text_layout.offset_at(box.left() + 1, 5) == 2


@pytest.mark.parametrize(
    ("state", "outcome", "words"),
    [
        (CallState.WRITING, None, "Writing"),
        (CallState.WAITING, None, "Waiting for you"),
        (CallState.RUNNING, None, "Running"),
        (CallState.ENDED, Outcome.SUCCEEDED, "Done"),
        (CallState.ENDED, Outcome.FAILED, "Failed"),
        (CallState.ENDED, Outcome.DENIED, "Denied"),
        (CallState.ENDED, Outcome.CANCELLED, "Cancelled"),
        (CallState.ENDED, Outcome.TIMED_OUT, "Timed out"),
        (CallState.ENDED, Outcome.LIMIT, "Limit reached"),
        (CallState.ENDED, Outcome.UNKNOWN, "Unknown"),
    ],
)
def test_a_call_tells_its_state_by_word_icon_and_colour(render_context, state, outcome, words):
    item = ToolCallItem("i", "m", "t", "run", {"path": "x"}, state=state, approval_id="a")
    if outcome:
        item.result = ToolResult(tool_use_id="t", content=(Text(text="out"),), outcome=outcome)
    row = make_row(item, render_context, 600)
    head = row.blocks[0].header
    assert head.state == words
    assert head.state_icon
    assert head.state_color
    assert words in row.spoken_text()
    row.stack.settle(0, 10_000)
    names = [control.name for _, control in row.controls()]
    assert ("Review" in names) == (state is CallState.WAITING)


def test_a_tool_of_our_own_is_called_by_what_it_does_and_one_of_a_server_by_its_words(render_context):
    ours = make_row(ToolCallItem("i", "m", "t", "read_file", {"path": "x"}, state=CallState.ENDED), render_context, 600)
    other = make_row(ToolCallItem("j", "m", "t", "git__log", {}, state=CallState.ENDED), render_context, 600)
    heads = [row.blocks[0].header for row in (ours, other)]
    assert [(head.title, head.icon) for head in heads] == [("Read a file", "document"), ("Log (git)", "tool")]
    assert ours.label == "Tool call: Read a file"


def test_every_built_in_tool_has_words_and_an_icon(qapp, tmp_path):
    for tool in builtin_tools(Workspace(tmp_path), "all"):
        assert tool_title(tool.name) != tool.name
        assert tool_icon(tool.name) != "tool"


def test_an_edited_call_tells_the_arguments_that_ran(render_context):
    item = ToolCallItem("i", "m", "t", "run", {"command": "rm -r /"}, state=CallState.ENDED)
    item.effective_input = {"command": "ls"}
    item.result = ToolResult(tool_use_id="t", content=(Text(text="out"),))
    row = make_row(item, render_context, 600)
    assert "arguments, edited: command: ls" in row.spoken_text()
    assert "rm -r" not in row.spoken_text()
    assert row.blocks[1].spoken_text() == "edited · command: ls"


def test_a_screen_reader_reads_what_really_changed(render_context):
    written = {"path": "a.py", "content": "x\ny\nz\n"}
    item = ToolCallItem("i", "m", "t", "write_file", written, state=CallState.ENDED, lines=(1, 2))
    item.result = ToolResult(tool_use_id="t", content=(Text(text="out"),))
    row = make_row(item, render_context, 600)
    assert row.spoken_text().split("\n")[1] == "a.py +1 \N{MINUS SIGN}2"


def test_a_question_to_the_person_waits_for_them_and_counts_no_seconds(render_context):
    item = ToolCallItem("i", "m", "t", "ask_user", {"question": "Which?"}, state=CallState.RUNNING)
    row = make_row(item, render_context, 600)
    head = row.blocks[0].header
    assert (head.state, head.state_color) == ("Waiting for you", "warning")
    assert "Waiting for you" in row.spoken_text()
    # No second is counted that is the person's.
    assert row._since is None
    row.stack.settle(0, 10_000)
    assert "Review" not in [control.name for _, control in row.controls()]
    item.state, item.result = CallState.ENDED, ToolResult(tool_use_id="t", content=(Text(text="Red"),))
    row.refresh("state")
    assert row.blocks[0].header.state == "Done"


def test_what_was_undone_has_not_the_sign_of_the_button_beside_it(render_context):
    item = ToolCallItem("i", "m", "t", "run", {}, state=CallState.ENDED, checkpoints={"c": True}, redos={"r": False})
    item.result = ToolResult(tool_use_id="t")
    head = make_row(item, render_context, 600).blocks[0].header
    assert (head.state, head.action) == ("Undone", "Redo")
    assert head.state_icon not in {"undo", "redo"}


def test_icons_differ_between_outcomes():
    from ui.transcript.rows import tool_row

    icons = [(icon, word) for word, icon, _ in tool_row._outcomes().values()]
    assert len({icon for icon, _ in icons}) >= 6


def test_choices_are_apart_from_items():
    choices = ViewChoices()
    assert choices.get("a", "unfolded", default=True)
    choices.set("a", "unfolded", value=False)
    assert not choices.get("a", "unfolded", default=True)
    assert choices.get("b", "unfolded", default=True)


@pytest.mark.parametrize(
    ("text", "offset", "word"),
    [
        ("one two", 5, "two"),
        ("one two", 3, " "),
        ("it's so", 1, "it's"),
        ("a+b", 1, "+"),
        ("", 0, ""),
        ("x 漢字 y", 2, "漢字"),
    ],
)
def test_words(text, offset, word):
    start, end = word_at(text, offset)
    assert text[start:end] == word


def test_offsets_in_code_follow_the_lines(style):
    block = CodeBlock("ab\ncd", "", CodeCallbacks(lambda text: None, lambda: None))
    block.layout(300, style)
    assert block.offset_at(QPoint(0, 0)) == 0
    assert block.offset_at(QPoint(0, 5000)) == 5
    assert block.paragraph_at(4) == (3, 5)


@pytest.mark.parametrize("text", ["an `x` b", "an **`x`** b", "🙂 `x` b"])
def test_code_in_a_line_stands_as_far_from_its_neighbours_as_words_do(style, text):
    space = QFontMetricsF(style.body).horizontalAdvance(" ")
    text_layout = TextLayout(parse_inline(text), style.body, style, 400, style.line)
    (chip,) = text_layout._make_chips()
    left, code, following = (text_layout.caret_rect_at(offset).left() for offset in (2, 3, 5))
    assert chip.left() - left >= space - 0.5
    assert following - chip.right() >= space - 0.5
    # With its padding.
    assert chip.left() < code
    assert (
        chip.right() - code > QFontMetricsF(style.format(SpanStyle.CODE, style.body).font()).horizontalAdvance("x") + 1
    )
