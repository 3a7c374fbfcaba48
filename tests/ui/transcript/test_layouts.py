"""What is finished was laid out once, and looks like the same message opened later."""

from collections import Counter
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from desktop_agent.conversation.transcript import Transcript
from desktop_agent.types.engine_events import RunEnd, RunFinished, TurnStarted
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.transcript_feed import Feed, NoPictures, read_all
from tests.frame.examples import examples
from tests.ui.transcript.copied import plain_of
from tests.ui.transcript.random_markdown import cut_up, markdown
from ui.style.theme import ThemeSource
from ui.transcript.blocks.math.formulas import RenderQueue
from ui.transcript.blocks.table_block import TableBlock
from ui.transcript.blocks.text_block import MarkdownTextBlock
from ui.transcript.markdown import sections
from ui.transcript.markdown.elements import Leaf
from ui.transcript.rows import markdown_body
from ui.transcript.rows.block_stack import BlockStack
from ui.transcript.view import TranscriptView

cuts = st.lists(st.integers(1, 40), min_size=1, max_size=5)


@pytest.fixture
def drawing(qtbot):
    """A view in which formulas are drawn."""
    view = TranscriptView(ThemeSource(), NoPictures(Path()))
    qtbot.addWidget(view, before_close_func=lambda view: view.close_workers())
    view.resize(800, 4000)
    with qtbot.waitExposed(view):
        view.show()
    return view


@pytest.fixture
def view(drawing):
    """A view in which formulas stay their sources."""
    never = SimpleNamespace(get=lambda request, on_ready: None, cancel_all=lambda: None)
    drawing._render_context.formulas = never
    return drawing


class LayoutCounts:
    """Counts of how often each block was laid out with its present content and column widths."""

    def __init__(self, patch):
        self._counts = {}
        original = BlockStack.layout

        def counted_layout(stack, index):
            block = stack.blocks[index]
            content, (content_before, count) = content_of(block), self._counts.get(id(block), (None, 0))
            is_same = content_before is not None and all(map(is_equal, content, content_before))
            self._counts[id(block)] = content, count + 1 if is_same else 1
            return original(stack, index)

        patch.setattr(BlockStack, "layout", counted_layout)

    def of(self, row):
        return {self._counts[id(block)][1] if id(block) in self._counts else 0 for block in row.blocks}


def content_of(block):
    if isinstance(block, TableBlock):
        return block.cells._lines, block.leaf, block.columns._natural, block.columns.is_last(block.number)
    if isinstance(block, MarkdownTextBlock):
        return (block.line(),)
    return block.plain(), getattr(block, "is_open", False)


def is_equal(first, second):
    """Whether two contents are the same: one that was parsed again is not, even when it is equal."""
    return first == second if isinstance(first, str | bool | Leaf) else first is second


def streamed(view, pieces):
    """Return the row of an answer that came in these pieces, and check that closed blocks stayed the same."""
    transcript = Transcript()
    feed = Feed(transcript)
    view.set_transcript(transcript)
    view.apply(feed(TurnStarted("t", "m", "model")))
    closed = []
    with pytest.MonkeyPatch.context() as patch:
        layouts, redefined = Counter(), Counter()
        original = BlockStack.layout
        for kind in (MarkdownTextBlock, TableBlock):
            patch.setattr(kind, "refresh_references", counted(kind.refresh_references, redefined))
        patch.setattr(
            BlockStack, "layout", lambda row, index: layouts.update([id(row.blocks[index])]) or original(row, index)
        )
        for piece in pieces:
            view.apply(feed(ContentDelta(piece)))
            row = view.row_viewport.rows.row(0)
            closed += [(block, layouts[id(block)]) for block in row.blocks[len(closed) : row.closed]]
        view.apply(feed(RunFinished(RunEnd.COMPLETED)))
    row = view.row_viewport.rows.row(0)
    assert len(closed) <= len(row.blocks)
    assert all(closed_block is block for (closed_block, _), block in zip(closed, row.blocks, strict=False))
    # A definition that comes late is the only reason to lay out again what is finished.
    assert all(layouts[id(block)] - before <= redefined[id(block)] for block, before in closed)
    return row


def counted(redefine, redefined):
    """Wrap `refresh_references` to count for each block how often a new definition may change it."""

    def redefine_counted(block):
        is_read_again = redefine(block)
        redefined[id(block)] += is_read_again
        return is_read_again

    return redefine_counted


class NotificationCounts:
    """Counts of the layouts of each block, and of the notifications about drawn formulas."""

    def __init__(self, patch):
        self.layouts, self.notified = Counter(), 0
        original_layout, notify = BlockStack.layout, RenderQueue._notify
        patch.setattr(
            BlockStack,
            "layout",
            lambda row, index: self.layouts.update([id(row.blocks[index])]) or original_layout(row, index),
        )

        def counted_notify(orders):
            self.notified += bool(orders._ready_listeners)
            notify(orders)

        patch.setattr(RenderQueue, "_notify", counted_notify)


numbers = count()
formulas = st.integers(0, 9).map("x_{{{0}}}^2".format)
in_lines = st.lists(formulas.map("with ${0}$ in it".format), min_size=1, max_size=3).map(" and ".join)
sections_with_formulas = st.lists(
    st.one_of(in_lines, formulas.map("$$\n{0}\n$$".format), in_lines.map("- {0}".format), st.just("Words.")),
    min_size=1,
    max_size=5,
).map("\n\n".join)


@given(sections_with_formulas, st.lists(st.integers(10, 60), min_size=1, max_size=3))
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_finished_is_laid_out_again_only_when_pictures_of_formulas_were_told(drawing, qtbot, text, sizes):
    # What was drawn once is there at once.
    text = text.replace("x_", f"y_{{{next(numbers)}}} x_")
    transcript = Transcript()
    feed = Feed(transcript)
    drawing.set_transcript(transcript)
    drawing.apply(feed(TurnStarted("t", "m", "model")))
    rows, orders = drawing.row_viewport.rows, drawing._render_context.formulas._render_queue
    closed = []
    with pytest.MonkeyPatch.context() as patch:
        counts = NotificationCounts(patch)

        def style():
            row = rows.row(0)
            closed.extend(
                (block, counts.layouts[id(block)], counts.notified) for block in row.blocks[len(closed) : row.closed]
            )
            drawing.viewport().grab()

        for piece in cut_up(text, sizes):
            drawing.apply(feed(ContentDelta(piece)))
            style()
            qtbot.wait(20)
        drawing.apply(feed(RunFinished(RunEnd.COMPLETED)))
        style()
        qtbot.waitUntil(lambda: not orders._queued and not orders._ready_listeners)
        drawing.viewport().grab()
        assert rows.row(0).blocks[: len(closed)] == [block for block, _, _ in closed]
        for block, layouts_before, notified_before in closed:
            assert counts.layouts[id(block)] - layouts_before <= 1 + counts.notified - notified_before
    assert "$" not in text or counts.notified
    assert all(block.is_laid_out for block in rows.row(0).blocks)


def open_answer(view, text):
    view.set_transcript(Transcript([Message.assistant(text)]))
    row = view.row_viewport.rows.row(0)
    read_all(row)
    view.scroller.row_arrived(0)
    return row


def shape(row):
    """Return kind, text, height and position of each block."""
    for index in range(len(row.blocks)):
        row.stack.settle_block(index)
    return [(type(block), block.plain(), row.stack.block_box(index)) for index, block in enumerate(row.blocks)]


@given(markdown, cuts)
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_finished_was_laid_out_once_and_is_the_same_when_it_is_opened(view, text, sizes):
    with pytest.MonkeyPatch.context() as patch:
        layouts = LayoutCounts(patch)
        row = streamed(view, cut_up(text, sizes))
        assert layouts.of(row) <= {1}
        mine = shape(row)
        whole = open_answer(view, text)
        assert layouts.of(whole) <= {1}
        assert mine == shape(whole)


@given(st.lists(markdown, min_size=1, max_size=6).map("\n\nword\n\n".join))
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_message_read_section_by_section_is_the_same(view, text):
    whole_row = open_answer(view, text)
    expected, plain = shape(whole_row), plain_of(whole_row)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(markdown_body, "LONG_TEXT", 40)
        patch.setattr(sections, "SECTION", 30)
        view.set_transcript(Transcript([Message.assistant(text)]))
        row = view.row_viewport.rows.row(0)
        assert plain_of(row) == plain
        read_all(row)
        view.scroller.row_arrived(0)
        assert expected == shape(row)
        assert plain_of(row) == plain


@given(st.lists(markdown, min_size=1, max_size=4).map("\n\nword\n\n".join), st.floats(0.2, 1), cuts)
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_an_answer_that_is_opened_while_it_comes_goes_on_the_same(view, text, part, sizes):
    expected = shape(open_answer(view, text))
    known = int(len(text) * part)
    transcript = Transcript()
    feed = Feed(transcript)
    feed(TurnStarted("t", "m", "model"))
    feed(ContentDelta(text[:known]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(markdown_body, "LONG_TEXT", 40)
        patch.setattr(sections, "SECTION", 30)
        view.set_transcript(transcript)
        for number, piece in enumerate(cut_up(text[known:], sizes)):
            view.apply(feed(ContentDelta(piece)))
            row = view.row_viewport.rows.row(0)
            if number % 2 and (index := row.stack.last_lazy_section()) is not None:
                row.stack.read(index)
        view.apply(feed(RunFinished(RunEnd.COMPLETED)))
        row = view.row_viewport.rows.row(0)
        read_all(row)
        view.scroller.row_arrived(0)
        assert expected == shape(row)


def test_an_item_written_from_right_to_left_has_its_indent_at_the_right(view):
    row = open_answer(view, "- שלום\n- hello\n")
    right, left = row.stack.block_box(0), row.stack.block_box(1)
    assert right.left() == 0
    assert left.left() > 0
    assert right.width() == left.width()


def test_what_hides_something_in_a_prompt_is_written_out(view):
    prompt = "rm \u202exyz\r\nnext\u200b line\tend 👩\u200d🚀"
    view.set_transcript(Transcript([Message.user(prompt)]))
    row = view.row_viewport.rows.row(0)
    assert plain_of(row) == "rm ⟨U+202E⟩xyz\nnext⟨U+200B⟩ line\tend 👩\u200d🚀"
    assert row.source() == prompt
