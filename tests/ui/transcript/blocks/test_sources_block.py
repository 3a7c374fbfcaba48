"""The sources of an answer: numbered, named, opened by mouse and keyboard."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from desktop_agent.types.blocks import Citation, Text
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.provider_events import ContentDelta, MessageDelta, StopReason, TextClosed
from tests.fakes.transcript_view import Standing
from tests.ui.transcript.copied import plain_of
from ui.transcript.blocks.sources_block import SourcesBlock, cited_sources

CITED = (
    Citation(title="First", url="https://one.example/a", start=0, end=3),
    Citation(title="First", url="https://one.example/a", start=4, end=8),
    Citation(url="http://bücher.example/b"),
    Citation(title="evil", url="ftp://evil.example/a"),
    Citation(quoted="a book\nin two lines\u202e"),
    Citation(),
)


def answer(citations):
    return Message(role=Role.ASSISTANT, blocks=(Text(text="Known.", citations=citations),))


def block_of(harness):
    return next(block for block in harness.rows.row(0).blocks if isinstance(block, SourcesBlock))


def test_each_source_counts_once_and_leads_to_the_web_or_nowhere():
    sources = [(source.number, source.title, source.host, source.url) for source in cited_sources(CITED)]
    assert sources == [
        (1, "First", "one.example", "https://one.example/a"),
        (2, "http://bücher.example/b", "bücher.example", "http://bücher.example/b"),
        (3, "evil", "", ""),
        (4, "a book in two lines⟨U+202E⟩", "", ""),
    ]


def test_sources_are_told_and_pressed_by_keyboard(qtbot):
    harness = Standing(qtbot, [answer(CITED)])
    row = harness.rows.row(0)
    harness.rows.settle()
    assert row.spoken_text().splitlines()[1:] == [
        "Sources",
        "Source 1: First, one.example",
        "Source 2: http://bücher.example/b, bücher.example",
        "Source 3: evil",
        "Source 4: a book in two lines⟨U+202E⟩",
    ]
    names = [control.name for _, control in row.controls()]
    assert names == ["Source 1: First, one.example", "Source 2: http://bücher.example/b, bücher.example"]
    harness.view.row_viewport.focus((0, ""))
    QTest.keyClick(harness.view, Qt.Key.Key_Tab)
    with qtbot.waitSignal(harness.view.link_activated) as activated:
        QTest.keyClick(harness.view, Qt.Key.Key_Return)
    assert activated.args == ["https://one.example/a"]
    assert not harness.picture().isNull()


def test_a_click_opens_and_the_tip_says_where(qtbot):
    harness = Standing(qtbot, [answer(CITED)])
    point = harness.point_of(0, "Source 1: First, one.example")
    assert harness.view.row_viewport.hit(point).link == "https://one.example/a"
    with qtbot.waitSignal(harness.view.link_activated) as activated:
        QTest.mouseClick(harness.view.viewport(), Qt.MouseButton.LeftButton, pos=point)
    assert activated.args == ["https://one.example/a"]


def test_many_sources_are_shown_when_asked_for(qtbot):
    many = tuple(Citation(title=f"T{n}", url=f"https://h{n}.example") for n in range(12))
    harness = Standing(qtbot, [answer(many)])
    harness.rows.settle()
    height = harness.rows.row(0).stack.height
    assert len(list(harness.rows.row(0).controls())) == 6
    QTest.mouseClick(harness.view.viewport(), Qt.MouseButton.LeftButton, pos=harness.point_of(0, "Show all 12 sources"))
    harness.rows.settle()
    assert len(list(harness.rows.row(0).controls())) == 12
    assert harness.rows.row(0).stack.height > height
    assert harness.rows.row(0).spoken_text().count("Source ") == 12


def test_sources_come_when_the_answer_is_finished(qtbot):
    harness = Standing(qtbot)
    harness.send(ContentDelta("Known."), TextClosed("p", {}, CITED[:1]), ContentDelta(" More."))
    assert not any(isinstance(block, SourcesBlock) for block in harness.rows.row(0).blocks)
    harness.send(MessageDelta(StopReason.END_TURN))
    assert block_of(harness).spoken_text() == "Sources\nSource 1: First, one.example"


def test_a_copy_as_markdown_has_the_sources(qtbot):
    harness = Standing(qtbot, [answer(CITED[:1])])
    assert harness.rows.row(0).source() == "Known.\n\nSources\n\n1. [First](<https://one.example/a>)"
    assert plain_of(harness.rows.row(0)) == "Known.\n\nSources\n1. First (https://one.example/a)"


@pytest.mark.parametrize("width", [120, 300, 900])
def test_it_is_drawn_in_any_width(qtbot, width):
    harness = Standing(qtbot, [answer(CITED)])
    harness.view.resize(width, 400)
    assert not harness.picture().isNull()


def test_numbers_end_below_each_other(qtbot):
    many = tuple(Citation(title=f"T{n}", url=f"https://h{n}.example") for n in range(12))
    harness = Standing(qtbot, [answer(many)])
    harness.click(0, "Show all 12 sources")
    harness.rows.settle()
    harness.view.scroller.scroll_to_start()
    picture, block = harness.picture(), block_of(harness)
    corner = harness.box_of(0, 1).topLeft()
    paper = picture.pixelColor(0, 0)

    def ends(number):
        line = block.item_rects()[number].translated(corner)
        numbers = range(line.left(), line.left() + block._indent(harness.view._render_context.style) - 4)
        ys = range(line.top(), line.bottom())
        return max(x for x in numbers if any(picture.pixelColor(x, y) != paper for y in ys))

    assert ends(1) == ends(12)


def test_beside_a_link_there_is_none(qtbot, qt_messages):
    qt_messages.expect("grabbing the keyboard")
    harness = Standing(qtbot, [answer(CITED)])
    point = harness.point_of(0, "Source 1: First, one.example")
    beside = QPoint(block_of(harness).item_rects()[1].right() + 200, point.y())
    assert "Open link" in harness.menu(point)[1]
    assert "Open link" not in harness.menu(beside)[1]
    assert harness.view.row_viewport.hit(beside).link == ""
