"""Only formulas near the screen are drawn, and what leaves it waits no more."""

from pathlib import Path

import pytest
from PySide6.QtGui import QFontMetricsF, QImage, QPainter

from desktop_agent.conversation.transcript import Transcript
from desktop_agent.markdown.latex import MAX_LATEX_LENGTH, FormulaError
from desktop_agent.types.engine_events import RunEnd, RunFinished, TurnStarted
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.transcript_feed import Feed, NoPictures
from ui.style.theme import DARK, LIGHT, ThemeSource
from ui.transcript.blocks.block import PaintContext
from ui.transcript.blocks.math import formulas as formulas_module
from ui.transcript.blocks.math import math_block
from ui.transcript.blocks.math.formulas import FormulaCache, MathCallbacks, RenderedFormula
from ui.transcript.blocks.math.math_block import MathBlock, formula_em
from ui.transcript.blocks.text_block import MarkdownTextBlock
from ui.transcript.markdown.elements import Leaf
from ui.transcript.rows.block_stack import BlockStack
from ui.transcript.style import RenderStyle
from ui.transcript.view import TranscriptView
from ui.transcript.workers import JobQueue


@pytest.fixture
def formulas(qapp):
    job_queue = JobQueue()
    yield FormulaCache(job_queue)
    job_queue.close()


@pytest.fixture
def style(qapp):
    return RenderStyle(LIGHT, 100)


def waiting(formulas):
    """Return the sources of the queued formulas."""
    return [key[0].latex for key in formulas._render_queue._queued]


def column_of(formulas, style, count):
    """Return a stack of paragraphs and formulas in turn."""
    host, column = MathCallbacks(formulas.get, lambda: None), BlockStack(style)
    column.set_width(400)
    for number in range(count):
        text = MarkdownTextBlock(Leaf("paragraph", f"with $x_{{{number}}}$"), {}, math=host)
        column.set_block(2 * number, text)
        column.set_block(2 * number + 1, MathBlock(f"y_{{{number}}}", host))
    for index in range(2 * count):
        column.layout(index)
    return column


def test_what_leaves_the_neighbourhood_waits_no_more(formulas, style):
    column = column_of(formulas, style, 10)
    assert len(waiting(formulas)) == 20
    column.forget_outside(column.block_top(4), column.block_top(8))
    assert waiting(formulas) == ["x_{2}", "y_{2}", "x_{3}", "y_{3}"]
    column.forget_outside(0, 0)
    assert waiting(formulas) == []


def test_what_is_taken_out_or_replaced_waits_no_more(formulas, style):
    column = column_of(formulas, style, 3)
    column.truncate(2)
    assert waiting(formulas) == ["x_{0}", "y_{0}"]
    column.set_block(1, MathBlock("z"))
    assert waiting(formulas) == ["x_{0}"]


def test_another_width_asks_for_nothing_anew(formulas, style):
    host = MathCallbacks(formulas.get, lambda: None)
    block = MathBlock("y", host)
    for width in (300, 400):
        block.layout(width, style)
    assert len(next(iter(formulas._render_queue._queued.values())).tickets) == 1


def test_a_paragraph_that_grows_goes_on_waiting_for_what_it_has(formulas, style):
    block = MarkdownTextBlock(Leaf("paragraph", "with $x$"), {}, math=MathCallbacks(formulas.get, lambda: None))
    block.layout(400, style)
    (job,) = formulas._render_queue._queued.values()
    block.set_leaf(Leaf("paragraph", "with $x$ and more"))
    block.layout(400, style)
    assert list(formulas._render_queue._queued.values()) == [job]
    assert len(job.tickets) == 1
    # What stands there is not painted again because of it.
    assert block.dirty_from == 0
    block.set_leaf(Leaf("paragraph", "with $x$ and more" + " words" * 50))
    block.layout(400, style)
    block.set_leaf(Leaf("paragraph", "with $x$ and more" + " words" * 80))
    block.layout(400, style)
    assert block.dirty_from > 0


def test_what_is_painted_is_seen(formulas, style):
    host = MathCallbacks(formulas.get, lambda: None)
    for block in (MarkdownTextBlock(Leaf("paragraph", "with $x$"), {}, math=host), MathBlock("y", host)):
        block.layout(400, style)
    assert [job.last_visible for job in formulas._render_queue._queued.values()] == [0, 0]
    image = QImage(400, 100, QImage.Format.Format_RGB32)
    for text, block in (
        ("x", MarkdownTextBlock(Leaf("paragraph", "with $x$"), {}, math=host)),
        ("y", MathBlock("y", host)),
    ):
        block.layout(400, style)
        painter = QPainter(image)
        block.paint(PaintContext(painter, style, image.rect()))
        painter.end()
        assert [key[0].latex for key, job in formulas._render_queue._queued.items() if job.last_visible][-1] == text


def test_a_formula_of_another_colour_is_seen_too(formulas, style, qtbot):
    drawn_block(formulas, style, "x", qtbot)
    dark = RenderStyle(DARK, 100)
    block = MathBlock("x", MathCallbacks(formulas.get, lambda: None))
    block.layout(400, dark)
    assert block._formula.picture is None
    text = MarkdownTextBlock(Leaf("paragraph", "with $$x$$"), {}, math=MathCallbacks(formulas.get, lambda: None))
    text.layout(400, dark)
    image = QImage(400, 100, QImage.Format.Format_RGB32)
    painter = QPainter(image)
    text.paint(PaintContext(painter, dark, image.rect()))
    painter.end()
    assert all(job.last_visible for job in formulas._render_queue._queued.values())


def test_fonts_are_measured_once_for_a_look(style, monkeypatch):
    fonts = []
    monkeypatch.setattr(math_block, "QFontMetricsF", lambda font: fonts.append(1) or QFontMetricsF(font))
    assert len({formula_em(style.body, style) for _ in range(5)}) == 1
    assert formula_em(style.heading(1), style) > formula_em(style.body, style)
    assert len(fonts) == 2
    larger = RenderStyle(LIGHT, 200)
    assert formula_em(larger.body, larger) > 1.8 * formula_em(style.body, style)


PAIRS = [f"With $a_{{{n}}}$ it follows that\n\n$$\\sum_{{k=1}}^{{{n}}} k = {n}$$\n\n" for n in range(300)]


@pytest.fixture
def typeset_here(monkeypatch):
    """Record the sources that are typeset; each results in an error."""
    done = []
    monkeypatch.setattr(
        formulas_module, "typeset", lambda worker, latex, display: done.append(latex) or FormulaError("other")
    )
    return done


@pytest.fixture
def view(qtbot):
    view = TranscriptView(ThemeSource(), NoPictures(Path()))
    qtbot.addWidget(view, before_close_func=lambda view: view.close_workers())
    view.resize(700, 500)
    with qtbot.waitExposed(view):
        view.show()
    return view


def until_quiet(view, bot):
    orders = view._render_context.formulas._render_queue
    bot.waitUntil(lambda: not (orders._queued or orders._ready_listeners or view._job_queue.is_busy))


def numbers(done):
    """Return which of PAIRS were typeset."""
    return {int(latex.split("{")[-1].split("}")[0]) if "_{k" in latex else int(latex[3:-1]) for latex in done}


def test_of_a_long_message_only_what_is_near_the_screen_is_typeset(view, qtbot, typeset_here):
    view.set_transcript(Transcript([Message.user("Hello"), Message.assistant("".join(PAIRS))]))
    until_quiet(view, qtbot)
    done = numbers(typeset_here)
    assert 299 in done
    assert min(done) > 299 - 5 * 500 // 60


def test_what_flies_by_is_not_typeset(view, qtbot, typeset_here):
    transcript = Transcript()
    feed = Feed(transcript)
    view.set_transcript(transcript)
    view.apply([*transcript.add_message(Message.user("Go on.")), *feed(TurnStarted("t", "m", "model"))])
    for start in range(0, 300, 50):
        view.apply(feed(ContentDelta("".join(PAIRS[start : start + 50]))))
        view.viewport().repaint()
    view.apply(feed(RunFinished(RunEnd.COMPLETED)))
    until_quiet(view, qtbot)
    typeset_numbers = numbers(typeset_here)
    assert 299 in typeset_numbers
    assert min(typeset_numbers) > 250


def test_nothing_is_typeset_for_a_conversation_that_is_shown_no_more(view, qtbot, typeset_here):
    view.set_transcript(Transcript([Message.user("Hello"), Message.assistant("".join(PAIRS[:100]))]))
    assert waiting(view._render_context.formulas)
    view.set_transcript(Transcript([Message.user("Hello"), Message.assistant("So $z$.")]))
    until_quiet(view, qtbot)
    assert typeset_here == ["z"]


def test_the_screen_is_painted_seldom_for_many_formulas(view, qtbot, monkeypatch):
    arrivals = []
    view._signals.content_arrived.connect(arrivals.append)
    view.set_transcript(Transcript([Message.user("Hello"), Message.assistant("".join(PAIRS[:20]))]))
    until_quiet(view, qtbot)
    drawn = len(view._render_context.formulas._pixmaps)
    assert drawn > 10
    assert 0 < len(arrivals) < drawn / 2


def drawn_block(formulas, style, latex, qtbot, width=400):
    changed = []
    block = MathBlock(latex, MathCallbacks(formulas.get, lambda: changed.append(1)))
    block.layout(width, style)
    block._ticket.mark_visible()
    qtbot.waitUntil(lambda: bool(changed))
    block.layout(width, style)
    return block


def test_a_part_of_a_drawn_formula_is_all_of_it(formulas, style, qtbot):
    block = drawn_block(formulas, style, "x+x", qtbot)
    assert isinstance(block._formula, RenderedFormula)
    (box,) = block.boxes(3, 4)
    assert (box.width(), box.top()) == (block._formula.width, block._pad)
    assert box.center().x() == pytest.approx(200, abs=1)
    assert block.boxes(5, 6) == [box]


def test_a_part_of_a_source_is_where_it_stands(style):
    block = MathBlock("x+y\nlonger")
    height = block.layout(400, style)
    first, second = (block.boxes(3 + offset, 4 + offset)[0] for offset in (0, 2))
    assert first.right() < second.left() < 100
    assert block._top <= first.top() == second.top() < 2 * block._top
    (second_line,) = block.boxes(3 + 4, 3 + 10)
    assert second_line.top() > first.bottom() - 1
    assert second_line.bottom() <= height
    assert block.offset_at(second.center().toPoint()) in {5, 6}
    assert block.boxes(0, 2) == [first]


def test_what_is_not_shown_of_a_long_source_is_marked_at_its_end(style):
    block = MathBlock("x" * (MAX_LATEX_LENGTH + 500))
    height = block.layout(400, style)
    (box,) = block.boxes(MAX_LATEX_LENGTH + 100, MAX_LATEX_LENGTH + 101)
    assert box.bottom() > height - 3 * style.mono_line
    assert box.width() < 30
