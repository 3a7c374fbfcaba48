"""A few things, each of which is selected and copied as a whole: sources, and pictures of a message."""

import base64
from itertools import product

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from desktop_agent.types.blocks import Base64Source, Citation, Image, Text
from desktop_agent.types.messages import Message, Role
from tests.fakes.transcript_view import Standing
from tests.ui.transcript.clipboard.safe_html import SafeReader
from tests.ui.transcript.copied import plain_of
from tests.ui.transcript.test_pictures import png
from ui.transcript.clipboard import CopyExtract, CopyFormats
from ui.transcript.markdown.stream import parse_leaves
from ui.transcript.viewport.selection import LAST_OFFSET, TextPosition, selection_extracts

CITED = (
    Citation(title="First [draft]", url="https://one.example/a"),
    Citation(url="https://two.example/b c>"),
    Citation(quoted="a book"),
)
TITLES = [
    "Sources",
    "1. First [draft] (https://one.example/a)",
    "2. https://two.example/b c> (https://two.example/b%20c%3E)",
    "3. a book",
]


def answer(citations=CITED, text="Known."):
    return Message(role=Role.ASSISTANT, blocks=(Text(text=text, citations=citations),))


def picture(name, width=40):
    data = base64.b64encode(png(width, 20)).decode()
    return Image(source=Base64Source(media_type="image/png", data=data), name=name)


def copied(harness):
    forms = CopyFormats()
    for step in selection_extracts(harness.view.row_viewport.selection, harness.rows):
        if isinstance(step, CopyExtract):
            forms.add(step)
        else:
            forms.finish_message()
    for _ in forms.join_in_steps():
        pass
    reader = SafeReader()
    reader.feed(forms.html)
    assert not reader.open
    return forms


def copy_selection(harness, first, last):
    harness.view.row_viewport.select(first, last)
    return copied(harness)


def test_a_selection_over_sources_has_titles_and_addresses(qtbot):
    harness = Standing(qtbot, [answer()])
    forms = copy_selection(harness, TextPosition(), TextPosition(0, 1, LAST_OFFSET))
    assert forms.plain == "\n".join(["Known.", "", *TITLES])
    assert (
        forms.markdown
        == harness.rows.row(0).source()
        == (
            "Known.\n\nSources\n\n1. [First &#91;draft&#93;](<https://one.example/a>)\n"
            "2. [https\\://two.example/b c>](<https://two.example/b%20c%3E>)\n3. a book"
        )
    )
    assert forms.html.endswith(
        "<p>Known.</p><p>Sources</p><ol>"
        '<li><a href="https://one.example/a">First [draft]</a></li>'
        '<li><a href="https://two.example/b%20c%3E">https://two.example/b c&gt;</a></li>'
        "<li>a book</li></ol>"
    )


def test_they_do_not_go_on_with_a_list_above(qtbot):
    harness = Standing(qtbot, [answer(text="1. one\n2. two")])
    forms = copy_selection(harness, TextPosition(), TextPosition(0, 2, LAST_OFFSET))
    kinds = [leaf.containers[-1].marker if leaf.containers else leaf.text for leaf in parse_leaves(forms.markdown)[0]]
    assert kinds == ["1.", "2.", "Sources", "1.", "2.", "3."]


def test_some_of_the_sources_keep_their_numbers(qtbot):
    harness = Standing(qtbot, [answer()])
    source_list = harness.rows.row(0).blocks[1]
    harness.rows.settle()
    y = [box.center().y() for box in source_list.item_rects()]
    start, end = (source_list.offset_at(QPoint(x, y)) for x, y in ((0, y[2]), (500, y[3])))
    forms = copy_selection(harness, TextPosition(0, 1, start), TextPosition(0, 1, end))
    assert forms.plain == "\n".join(TITLES[2:])
    assert forms.markdown.startswith("2. [")
    assert '<ol start="2"><li><a' in forms.html


def test_a_word_of_a_source_is_a_word(qtbot):
    harness = Standing(qtbot, [answer()])
    start = harness.rows.row(0).blocks[1].plain().index("book")
    forms = copy_selection(harness, TextPosition(0, 1, start), TextPosition(0, 1, start + 4))
    assert (forms.plain, forms.markdown) == ("book", "book")


def test_sources_that_stay_away_are_copied_too(qtbot):
    many = tuple(Citation(title=f"T{n}", url=f"https://h{n}.example") for n in range(12))
    harness = Standing(qtbot, [answer(many)])
    harness.rows.settle()
    block = harness.rows.row(0).blocks[1]
    assert len(block.item_rects()) == 13
    below = block.offset_at(QPoint(700, 2000))
    assert copy_selection(harness, TextPosition(), TextPosition(0, 1, below)).plain.endswith(
        "12. T11 (https://h11.example)"
    )


def test_a_selection_over_pictures_names_them(qtbot):
    message = Message.user_with_blocks(
        [picture("a_b_*.png"), picture("x\u202egnp.exe"), picture(""), Text(text="Look")]
    )
    harness = Standing(qtbot, [message])
    forms = copy_selection(harness, TextPosition(), TextPosition(0, 1, LAST_OFFSET))
    names = ["[Picture: a_b_*.png]", "[Picture: x⟨U+202E⟩gnp.exe]", "[Picture]"]
    assert forms.plain == "\n".join([*names, "", "Look"])
    assert forms.markdown == harness.rows.row(0).source() == "\n".join([*names, "", "Look"])
    assert forms.html.endswith(f"<p>{'<br>'.join(names)}</p><p>Look</p>")


def test_a_name_that_would_be_markup_is_written_as_text(qtbot):
    harness = Standing(qtbot, [Message.user_with_blocks([picture("*a* `b`.png")])])
    forms = copy_selection(harness, TextPosition(), TextPosition(0, 0, LAST_OFFSET))
    (leaf,) = parse_leaves(forms.markdown)[0]
    assert leaf.kind == "paragraph"
    assert plain_of(harness.rows.row(0)) == "[Picture: *a* `b`.png]"
    again = Standing(qtbot, [Message.assistant(forms.markdown)])
    assert plain_of(again.rows.row(0)) == "[Picture: *a* `b`.png]"


def test_pictures_are_selected_one_by_one(qtbot):
    harness = Standing(qtbot, [Message.user_with_blocks([picture("a.png", 200), picture("b.png", 200)])])
    harness.rows.settle()
    block = harness.rows.row(0).blocks[0]
    left, right = block.item_rects()
    edges = [block.offset_at(QPoint(x, 10)) for x in (left.left(), left.right(), right.left(), right.right())]
    assert edges == [0, 16, 17, 33]
    assert (
        copy_selection(harness, TextPosition(0, 0, edges[2]), TextPosition(0, 0, edges[3])).plain == "[Picture: b.png]"
    )
    assert block.boxes(17, 33)[0].left() == right.left()


def test_selected_sources_are_seen_to_be_selected(qtbot):
    harness = Standing(qtbot, [answer()])
    harness.rows.settle()
    row = harness.rows.row(0)
    line = row.blocks[1].item_rects()[1].translated(row.stack.block_box(1).topLeft())
    corner = line.translated(harness.view.row_viewport.row_box(0).topLeft()).topLeft()
    colour = harness.themes.theme.selection
    are_selected = []
    for end in (TextPosition(0, 1, 0), TextPosition(0, 1, LAST_OFFSET)):
        harness.view.row_viewport.select(TextPosition(), end)
        are_selected.append(harness.view.viewport().grab().toImage().pixelColor(corner).name() == colour)
    assert are_selected == [False, True]


def test_words_on_the_colour_of_a_selection_can_be_read(qtbot):
    harness = Standing(qtbot, [answer()])
    harness.rows.settle()
    harness.view.row_viewport.select(TextPosition(0, 1, 0), TextPosition(0, 1, LAST_OFFSET))
    row = harness.rows.row(0)
    picture = harness.view.viewport().grab().toImage()
    corner = row.stack.block_box(1).topLeft() + harness.view.row_viewport.row_box(0).topLeft()
    colors = set()
    for position in row.blocks[1].item_rects()[:2]:
        box = position.translated(corner)
        points = product(range(box.left(), box.right()), range(box.top(), box.bottom()))
        colors |= {picture.pixelColor(*point).name() for point in points}
    theme = harness.themes.theme
    assert theme.text in colors
    assert not colors & {theme.muted, theme.link}


@pytest.mark.parametrize("offset", [0, 7, 8, 12])
def test_a_caret_stands_only_at_edges(qtbot, offset):
    harness = Standing(qtbot, [answer()])
    harness.rows.settle()
    block = harness.rows.row(0).blocks[1]
    heading, first = block.item_rects()[:2]
    stop = block.caret_stop_at(offset)
    assert stop == {0: 0, 7: 7, 8: 8, 12: 8 + len(TITLES[1])}[offset]
    box = block.caret_rect_at(stop)
    expected = {0: heading.left(), 7: heading.right() + 1, 8: first.left()}.get(stop, first.right() + 1)
    assert (box.left(), box.height()) == (expected, heading.height())


def test_caret_browsing_walks_through_sources(qtbot):
    harness = Standing(qtbot, [answer()])
    view = harness.view
    view.caret.toggle()
    view.caret.move_to(TextPosition(0, 1, 0))
    places = []
    for _ in range(4):
        QTest.keyClick(view, Qt.Key.Key_Right)
        places.append(view.caret.position.offset)
    size = len(TITLES[1])
    assert places == [7, 8, 8 + size, 9 + size]
    with qtbot.waitSignal(view.link_activated) as opened:
        QTest.keyClick(view, Qt.Key.Key_Left)
        QTest.keyClick(view, Qt.Key.Key_Left)
        QTest.keyClick(view, Qt.Key.Key_Return)
    assert opened.args == ["https://one.example/a"]
