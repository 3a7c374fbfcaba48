"""The bubble of what the person said."""

import base64

import pytest
from PySide6.QtGui import QColor, QImage, QPainter

from desktop_agent.conversation.items import UserItem
from desktop_agent.types.blocks import Base64Source, Image
from tests.ui.transcript.test_pictures import png
from ui.transcript.rows.row_factory import make_row

CHART = Image(source=Base64Source(media_type="image/png", data=base64.b64encode(png(400, 200)).decode()), name="a.png")


def painted(row):
    """The edges of the bubble: what it paints on."""
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
