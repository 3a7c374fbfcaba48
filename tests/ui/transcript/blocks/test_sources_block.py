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


def block_of(stand):
    return next(each for each in stand.rows.row(0).blocks if isinstance(each, SourcesBlock))


def test_each_source_counts_once_and_leads_to_the_web_or_nowhere():
    found = [(each.number, each.title, each.host, each.url) for each in cited_sources(CITED)]
    assert found == [
        (1, "First", "one.example", "https://one.example/a"),
        (2, "http://bücher.example/b", "bücher.example", "http://bücher.example/b"),
        (3, "evil", "", ""),
        (4, "a book in two lines⟨U+202E⟩", "", ""),
    ]


def test_sources_are_told_and_pressed_by_keyboard(qtbot):
    stand = Standing(qtbot, [answer(CITED)])
    row = stand.rows.row(0)
    stand.rows.settle()
    assert row.spoken_text().splitlines()[1:] == [
        "Sources",
        "Source 1: First, one.example",
        "Source 2: http://bücher.example/b, bücher.example",
        "Source 3: evil",
        "Source 4: a book in two lines⟨U+202E⟩",
    ]
    names = [control.name for _, control in row.controls()]
    assert names == ["Source 1: First, one.example", "Source 2: http://bücher.example/b, bücher.example"]
    stand.view.row_viewport.focus((0, ""))
    QTest.keyClick(stand.view, Qt.Key.Key_Tab)
    with qtbot.waitSignal(stand.view.link_activated) as activated:
        QTest.keyClick(stand.view, Qt.Key.Key_Return)
    assert activated.args == ["https://one.example/a"]
    assert not stand.picture().isNull()


def test_a_click_opens_and_the_tip_says_where(qtbot):
    stand = Standing(qtbot, [answer(CITED)])
    point = stand.point_of(0, "Source 1: First, one.example")
    assert stand.view.row_viewport.hit(point).link == "https://one.example/a"
    with qtbot.waitSignal(stand.view.link_activated) as activated:
        QTest.mouseClick(stand.view.viewport(), Qt.MouseButton.LeftButton, pos=point)
    assert activated.args == ["https://one.example/a"]


def test_many_sources_are_shown_when_asked_for(qtbot):
    many = tuple(Citation(title=f"T{n}", url=f"https://h{n}.example") for n in range(12))
    stand = Standing(qtbot, [answer(many)])
    stand.rows.settle()
    before = stand.rows.row(0).stack.height
    assert len(list(stand.rows.row(0).controls())) == 6
    QTest.mouseClick(stand.view.viewport(), Qt.MouseButton.LeftButton, pos=stand.point_of(0, "Show all 12 sources"))
    stand.rows.settle()
    assert len(list(stand.rows.row(0).controls())) == 12
    assert stand.rows.row(0).stack.height > before
    assert stand.rows.row(0).spoken_text().count("Source ") == 12


def test_sources_come_when_the_answer_is_finished(qtbot):
    stand = Standing(qtbot)
    stand.send(ContentDelta("Known."), TextClosed("p", {}, CITED[:1]), ContentDelta(" More."))
    assert not any(isinstance(each, SourcesBlock) for each in stand.rows.row(0).blocks)
    stand.send(MessageDelta(StopReason.END_TURN))
    assert block_of(stand).spoken_text() == "Sources\nSource 1: First, one.example"


def test_a_copy_as_markdown_has_the_sources(qtbot):
    stand = Standing(qtbot, [answer(CITED[:1])])
    assert stand.rows.row(0).source() == "Known.\n\nSources\n\n1. [First](<https://one.example/a>)"
    assert plain_of(stand.rows.row(0)) == "Known.\n\nSources\n1. First (https://one.example/a)"


@pytest.mark.parametrize("width", [120, 300, 900])
def test_it_is_drawn_in_any_width(qtbot, width):
    stand = Standing(qtbot, [answer(CITED)])
    stand.view.resize(width, 400)
    assert not stand.picture().isNull()


def test_numbers_end_below_each_other(qtbot):
    many = tuple(Citation(title=f"T{n}", url=f"https://h{n}.example") for n in range(12))
    stand = Standing(qtbot, [answer(many)])
    stand.click(0, "Show all 12 sources")
    stand.rows.settle()
    stand.view.scroller.scroll_to_start()
    picture, block = stand.picture(), block_of(stand)
    corner = stand.box_of(0, 1).topLeft()
    paper = picture.pixelColor(0, 0)

    def ends(number):
        line = block.item_rects()[number].translated(corner)
        numbers = range(line.left(), line.left() + block._indent(stand.view._render_context.style) - 4)
        ys = range(line.top(), line.bottom())
        return max(x for x in numbers if any(picture.pixelColor(x, y) != paper for y in ys))

    assert ends(1) == ends(12)


def test_beside_a_link_there_is_none(qtbot, qt_messages):
    qt_messages.expect("grabbing the keyboard")
    stand = Standing(qtbot, [answer(CITED)])
    point = stand.point_of(0, "Source 1: First, one.example")
    beside = QPoint(block_of(stand).item_rects()[1].right() + 200, point.y())
    assert "Open link" in stand.menu(point)[1]
    assert "Open link" not in stand.menu(beside)[1]
    assert stand.view.row_viewport.hit(beside).link == ""
