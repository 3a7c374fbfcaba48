"""Long messages are read when somebody comes near, and nobody sees it."""

from pathlib import Path

import pytest

from desktop_agent.conversation.items import AnswerItem, StreamedText
from desktop_agent.conversation.transcript import Transcript
from desktop_agent.types.engine_events import RunEnd, RunFinished, TurnStarted
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.transcript_feed import Feed, NoPictures, read_all
from tests.ui.transcript.copied import plain_of
from ui.style.theme import ThemeSource
from ui.transcript.blocks.table_block import TableBlock
from ui.transcript.blocks.table_cells import CellRuler
from ui.transcript.markdown import stream as stream_module
from ui.transcript.markdown.stream import MarkdownStream
from ui.transcript.rows.block_factory import LazySection
from ui.transcript.rows.row_factory import make_row
from ui.transcript.view import TranscriptView
from ui.transcript.viewport.prefetch import layout_in_view, read_in_view
from ui.transcript.viewport.selection import TextPosition

SECTION = """## Part {0}

Words of part {0}, **bold** and [linked](https://x.org/{0}), so many that they go on to a second line of the column.

- first
- second

| a | b |
|---|---|
| {0} | cell |

> quoted {0}

"""
LONG = "".join(SECTION.format(number) for number in range(600))
LIST = "".join(f"- item number {number} of a long list\n" for number in range(3000))


@pytest.fixture
def view(qtbot):
    view = TranscriptView(ThemeSource(), NoPictures(Path()))
    qtbot.addWidget(view, before_close_func=lambda view: view.close_workers())
    view.resize(800, 600)
    with qtbot.waitExposed(view):
        view.show()
    # What is read ahead is read when a test says so.
    view.scroller._prefetcher.start = lambda: None
    return view


def show(view, text):
    view.set_transcript(Transcript([Message.user("Hello"), Message.assistant(text)]))
    return view.row_viewport.rows.row(1)


def unread(row):
    return [block for block in row.blocks if isinstance(block, LazySection)]


def read_ahead(view):
    for _ in range(10_000):
        if not view.row_viewport.rows.has_lazy_sections():
            return
        view.scroller._prefetcher._continue()
    raise AssertionError


def picture(view):
    return view.viewport().grab().toImage()


def test_of_a_long_message_only_what_is_seen_is_read(view):
    row = show(view, LONG)
    count = len(unread(row))
    assert count > 20
    assert len(row.blocks) < count + 200
    assert not view.row_viewport.rows.has_lazy_sections_in_view()
    count_before = len(row.blocks)
    view.scroller.scroll_to_start()
    assert count - 3 <= len(unread(row)) <= count
    assert count_before < len(row.blocks) < count_before + 200
    assert not view.row_viewport.rows.has_lazy_sections_in_view()


@pytest.mark.parametrize("position", [0.0, 0.4, 1.0])
def test_nothing_on_the_screen_moves_while_the_rest_is_read(view, position):
    row = show(view, LONG)
    rows = view.row_viewport.rows
    if position < 1:
        rows.scroll_to(int(rows.bottom * position))
        view.scroller.scroll_by(-7)
    picture_before, top, following = picture(view), rows.top, rows.following
    read_ahead(view)
    assert not unread(row)
    assert picture(view) == picture_before
    assert rows.following is following
    assert view.verticalScrollBar().value() == rows.top
    assert (rows.top == top) is (position == 0)
    expected = make_row(AnswerItem("i", "m", StreamedText(LONG), finished=True), view._render_context, rows.width)
    assert plain_of(row) == plain_of(expected)


@pytest.mark.parametrize("pixels", [-40, -350, -900, 500])
def test_scrolling_into_what_was_not_read_moves_by_what_was_asked(view, pixels):
    show(view, LONG)
    rows = view.row_viewport.rows
    rows.scroll_to(rows.bottom // 2)
    for _ in range(25):
        index = rows.row(1).stack.block_at(rows.top - rows.row_top(1) + rows.view // 2)
        block = rows.row(1).blocks[index]
        y = rows.row_top(1) + rows.row(1).stack.block_top(index) - rows.top
        view.scroller.scroll_by(pixels)
        new_index = rows.row(1).blocks.index(block)
        assert rows.row_top(1) + rows.row(1).stack.block_top(new_index) - rows.top == y - pixels
        assert not rows.has_lazy_sections_in_view()


def test_selection_and_focus_stay_with_their_text(view):
    row = show(view, LONG)
    viewport = view.row_viewport
    index = next(
        number for number in range(len(row.blocks) - 1, 0, -1) if "Words of part" in row.blocks[number].plain()
    )
    viewport.select(TextPosition(1, index, 3), TextPosition(1, index + 1, 2))
    viewport.hovered = viewport.focused = (1, f"{index}/Copy code")
    replacements = []
    viewport.on_replaced.append(lambda row_number, replacement: replacements.append((row_number, replacement.at)))
    block, selected_text = row.blocks[index], plain_of(row, (index, 3), (index + 1, 2))
    read_ahead(view)
    new_index = row.blocks.index(block)
    assert new_index > index
    assert (viewport.selection.start, viewport.selection.end) == (
        TextPosition(1, new_index, 3),
        TextPosition(1, new_index + 1, 2),
    )
    assert plain_of(row, (new_index, 3), (new_index + 1, 2)) == selected_text
    assert viewport.hovered == viewport.focused == (1, f"{new_index}/Copy code")
    assert replacements
    assert {row_number for row_number, _ in replacements} == {1}


def test_a_place_inside_what_was_not_read_is_found_again(view):
    row = show(view, LONG)
    index, block = next(
        (index, block) for index, block in enumerate(row.blocks) if isinstance(block, LazySection) and index > 3
    )
    text = block.plain()
    offset = text.index("second line", text.index("second line") + 1) + 3
    view.row_viewport.select(TextPosition(1, index, offset), TextPosition(1, index, offset + 5))
    words = text[offset : offset + 5]
    row.stack.read(index)
    start, end = view.row_viewport.selection.ordered
    assert plain_of(row, (start.block, start.offset), (end.block, end.offset)) == words
    assert start.block == end.block > index


def test_every_place_inside_what_was_not_read_stays_where_it_was(view):
    row = show(view, LONG)
    index, block = next(
        (index, block) for index, block in enumerate(row.blocks) if isinstance(block, LazySection) and index > 3
    )
    text, replacements = block.plain(), []
    row.stack.replaced = replacements.append
    row.stack.read(index)
    (replacement,) = replacements
    for offset in range(0, len(text), 3):
        text_before = plain_of(row, (index, 0), replacement.map_position(index, offset))
        assert text.startswith(text_before)
        # Between two blocks it is the end of the first, or the beginning of the second.
        assert text[len(text_before) : offset].strip("\n•1. ") == ""


@pytest.mark.parametrize("text", ["word " * 12_000, "x" * 50_000, "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 4000])
def test_half_read_is_copied_the_same(view, text):
    row = show(view, text)
    expected, counts = plain_of(row), set()
    while (index := row.stack.last_lazy_section()) is not None:
        row.stack.read(index, 0)
        assert plain_of(row) == expected
        assert all(block.separator is not None for block in row.blocks[1:])
        counts.add(len(row.blocks))
    assert len(counts) > 1
    assert len(expected) >= len(text) / 3


def test_one_step_of_reading_is_small(view, monkeypatch):
    row = show(view, LIST)
    steps = []
    append = MarkdownStream.append
    monkeypatch.setattr(MarkdownStream, "append", lambda stream, text: steps.append(len(text)) or append(stream, text))
    while (index := row.stack.last_lazy_section()) is not None:
        count = len(steps)
        row.stack.read(index, 0)
        assert len(steps) <= count + 1
    assert max(steps) <= 1000


def test_everything_is_copied_without_being_read_to_the_screen(view):
    row = show(view, LONG)
    count = len(row.blocks)
    view.row_viewport.select(TextPosition(), TextPosition(1, 1 << 30, 1 << 30))
    copied = plain_of(row)
    assert len(row.blocks) == count
    read_all(row)
    assert plain_of(row) == copied
    assert copied.count("Words of part") == 600


def test_a_list_without_a_place_to_cut_is_read_in_steps(view):
    row = show(view, LIST)
    assert len(row.blocks) < 1500
    assert unread(row)
    view.row_viewport.rows.scroll_to(0)
    assert not view.row_viewport.rows.has_lazy_sections_in_view()
    picture_before = picture(view)
    read_ahead(view)
    assert picture(view) == picture_before
    assert len(row.blocks) == 3000
    assert plain_of(row) == "\n".join(f"• item number {number} of a long list" for number in range(3000))


def test_what_was_read_on_the_screen_is_laid_out_in_slices(view, monkeypatch):
    # Letters under so many marks that all of it is seen at once, each piece of it many times as high as it is.
    row = show(view, ("e" + "\u0301" * 60) * 1000)
    rows = view.row_viewport.rows
    indexes, original = [], type(row.stack).layout
    monkeypatch.setattr(type(row.stack), "layout", lambda row, index: indexes.append(index) or original(row, index))
    slices = 0
    while rows.has_lazy_sections_in_view():
        indexes.clear()
        read_in_view(rows, 0.0)
        layout_in_view(rows, 0.0)
        slices += 1
        assert len(indexes) <= 1
    assert 10 < slices < 200
    top = rows.top
    assert all(
        block.is_laid_out for at, block in enumerate(row.blocks) if rows.row_top(1) + row.stack.block_top(at) > top
    )


def test_what_is_read_at_once_is_not_read_from_its_beginning_at_every_step(view, monkeypatch):
    lengths = []
    original = stream_module.parse_blocks

    def counted(text, *rest, **options):
        lengths.append(len(text))
        return original(text, *rest, **options)

    monkeypatch.setattr(stream_module, "parse_blocks", counted)
    nested = "".join("  " * depth + f"- level {depth}\n" for depth in range(250))
    row = show(view, nested)
    lengths.clear()
    read_all(row)
    assert not unread(row)
    assert len(lengths) <= len(nested) / 14_000 + 3


def test_the_end_of_a_very_long_list_is_seen_once_it_is_read(view):
    show(view, LIST)
    read_ahead(view)
    picture_before = picture(view)
    view.viewport().update()
    view.row_viewport.rows.settle()
    assert picture(view) == picture_before
    row = view.row_viewport.rows.row(1)
    assert row.blocks[-1].is_laid_out
    assert view.row_viewport.rows.following


def test_an_answer_that_is_still_coming_is_opened_at_the_cost_of_its_end(view):
    transcript = Transcript()
    feed = Feed(transcript)
    feed(TurnStarted("t", "m", "model"))
    feed(ContentDelta(LONG))
    view.set_transcript(transcript)
    row = view.row_viewport.rows.row(0)
    assert len(unread(row)) > 20
    view.apply(feed(ContentDelta("The **end**")))
    assert row.blocks[-1].plain() == "The end"
    read_ahead(view)
    view.apply(feed(ContentDelta(" of it.\n\n[1]: https://late.org\n")))
    view.apply(feed(RunFinished(RunEnd.COMPLETED)))
    assert not unread(row)
    assert row.closed == len(row.blocks)
    whole = make_row(AnswerItem("i", "m", StreamedText(str(row.source())), finished=True), view._render_context, 700)
    assert plain_of(row) == plain_of(whole)


def test_a_growing_table_is_measured_at_the_cost_of_what_is_new(view, monkeypatch):
    guessed = []
    guess = CellRuler.estimate
    monkeypatch.setattr(CellRuler, "estimate", lambda ruler, cell: guessed.append(cell) or guess(ruler, cell))
    transcript = Transcript()
    feed = Feed(transcript)
    feed(TurnStarted("t", "m", "model"))
    view.set_transcript(transcript)
    view.apply(feed(ContentDelta("| name | value |\n|---|--:|\n")))
    for number in range(300):
        guessed.clear()
        view.apply(feed(ContentDelta(f"| row {number:04} | {number % 10} |\n")))
        # The row before may have been shown while it was open.
        assert len(guessed) <= 6
    blocks = view.row_viewport.rows.row(0).blocks
    assert len(blocks) == 5
    assert all(isinstance(block, TableBlock) and block.columns is blocks[0].columns for block in blocks)
    tall = sum(view.row_viewport.rows.row(0).stack.block_box(index).height() for index in range(5))
    assert tall == 301 * (view._render_context.style.line + 12) + 2


def test_a_wider_cell_far_below_widens_the_whole_table(view):
    transcript = Transcript()
    feed = Feed(transcript)
    feed(TurnStarted("t", "m", "model"))
    view.set_transcript(transcript)
    view.apply(feed(ContentDelta("| name | value |\n|---|--:|\n" + "| a | 1 |\n" * 200)))
    columns = view.row_viewport.rows.row(0).blocks[0].columns
    before = columns.lefts[1]
    view.apply(feed(ContentDelta("| a much wider name | 1 |\n")))
    assert columns.lefts[1] > before + 50
    last = view.row_viewport.rows.row(0).blocks[-1]
    assert last.widths == [right - left for left, right in zip(columns.lefts, columns.lefts[1:], strict=False)]
    blocks = view.row_viewport.rows.row(0).blocks
    assert not blocks[1].is_laid_out
    assert blocks[-2].is_laid_out
    assert blocks[-2].widths == last.widths
    painted = picture(view)
    view.viewport().update()
    assert picture(view) == painted


def test_columns_that_do_not_fit_are_wide_enough_to_be_read(view):
    text = f"|{'|'.join(f' column {n} ' for n in range(40))}|\n|{'---|' * 40}\n|{'|'.join(['words ' * 9] * 40)}|\n"
    show(view, text)
    block = view.row_viewport.rows.row(1).blocks[0]
    assert {right - left for left, right in zip(block.columns.lefts, block.columns.lefts[1:], strict=False)} == {240}
    picture_before = picture(view)
    assert block.scroll_horizontally(300)
    assert block.columns.scrolled == 300
    left, right = view.row_viewport.column + 12, view.row_viewport.column + view.row_viewport.rows.width - 12
    picture_after, y = picture(view), view.row_viewport.row_box(1).top() + 30
    assert picture_before.pixel(left, y) != picture_after.pixel(left, y)
    assert block.scroll_horizontally(1 << 20)
    assert not block.scroll_horizontally(1)
    assert picture(view).pixel(right, y) != picture_after.pixel(right, y)
