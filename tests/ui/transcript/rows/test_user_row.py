"""The bubble of what the person said."""

import base64

import pytest
from PySide6.QtGui import QColor, QImage, QPainter

from desktop_agent.conversation.items import UserItem
from desktop_agent.types.blocks import Base64Source, Image
from desktop_agent.types.messages import AttachedText, label_attached
from tests.ui.transcript.test_pictures import png
from ui.transcript.rows.row import UNFOLDED_KEY
from ui.transcript.rows.row_factory import make_row

CHART = Image(source=Base64Source(media_type="image/png", data=base64.b64encode(png(400, 200)).decode()), name="a.png")


def painted(row):
    """Return the edges of the bubble that is painted."""
    picture = QImage(row.stack.width, row.stack.height, QImage.Format.Format_RGB32)
    picture.fill(QColor("#000000"))
    painter = QPainter(picture)
    row.paint_frame(painter, row.render_context.style)
    painter.end()
    middle = picture.height() // 2
    xs = [x for x in range(picture.width()) if picture.pixelColor(x, middle).name() != "#000000"]
    ys = [y for y in range(picture.height()) if picture.pixelColor((xs[0] + xs[-1]) // 2, y).name() != "#000000"]
    return xs[0], xs[-1], ys[0], ys[-1]


@pytest.mark.parametrize("text", ["", "Look"])
def test_there_is_as_much_room_beside_a_picture_as_above_it(render_context, text):
    row = make_row(UserItem("i", "m", text, (CHART,)), render_context, 700)
    row.stack.settle(0, 800)
    left, right, top, _ = painted(row)
    box = row.stack.block_box(0)
    assert box.left() - left == box.top() - top == 10
    assert right - box.right() == 10


def test_text_alone_has_more_room_beside_it(render_context):
    row = make_row(UserItem("i", "m", "Look", ()), render_context, 700)
    row.stack.settle(0, 800)
    left, _, top, _ = painted(row)
    box = row.stack.block_box(0)
    assert (box.left() - left, box.top() - top) == (14, 9)


def with_files(*files: AttachedText) -> UserItem:
    return UserItem("i", "m", "Read these" + "".join(map(label_attached, files)), ())


def shown(row) -> list[str]:
    return [block.spoken_text() for block in row.blocks]


def press(row, name: str) -> None:
    row.stack.settle(0, 800)
    next(control for _, control in row.controls() if control.name == name).press()


def test_an_attached_text_is_a_line_with_its_name_that_opens(render_context):
    row = make_row(with_files(AttachedText("a.txt", "ä"), AttachedText("b.txt", "line\n" * 500)), render_context, 700)
    assert shown(row) == ["Read these", "a.txt · 2 bytes", "b.txt · 2.5 KB"]
    press(row, "Show “a.txt”")
    assert shown(row) == ["Read these", "a.txt · 2 bytes", "ä", "b.txt · 2.5 KB"]
    press(row, "Show “a.txt”")
    assert shown(row) == ["Read these", "a.txt · 2 bytes", "b.txt · 2.5 KB"]


def test_one_of_several_that_a_search_opened_is_closed_alone(render_context):
    row = make_row(with_files(AttachedText("a.txt", "one"), AttachedText("b.txt", "two")), render_context, 700)
    render_context.choices.set("i", UNFOLDED_KEY, True)
    row.refresh("state")
    assert shown(row) == ["Read these", "a.txt · 3 bytes", "one", "b.txt · 3 bytes", "two"]
    press(row, "Show “a.txt”")
    assert shown(row) == ["Read these", "a.txt · 3 bytes", "b.txt · 3 bytes", "two"]


def test_a_bubble_with_a_file_is_no_wider_than_its_lines(render_context):
    row = make_row(with_files(AttachedText("a.txt", "one")), render_context, 700)
    row.stack.settle(0, 800)
    left, right, _, _ = painted(row)
    assert right - left < 300


def test_a_copied_message_has_no_marks_around_a_file(render_context):
    row = make_row(with_files(AttachedText("a.txt", "one")), render_context, 700)
    assert row.source() == "Read these\n\na.txt\n\n```\none\n```"


def test_while_it_is_edited_it_is_copied_without_the_marks_too(render_context):
    render_context.edited_message = "m"
    row = make_row(with_files(AttachedText("a.txt", "one")), render_context, 700)
    assert row.blocks[0].plain() == "Read these\n\na.txt\n\n```\none\n```"
