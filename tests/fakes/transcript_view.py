"""A view with a transcript, and what a person does in it with mouse and keyboard."""

from pathlib import Path

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMenu

from desktop_agent.conversation.transcript import Transcript
from tests.fakes.transcript_feed import Feed, NoPictures
from tests.ui.transcript.copied import selected_text
from ui.style.theme import ThemeSource
from ui.transcript.markdown.text_units import utf16_length
from ui.transcript.view import TranscriptView
from ui.transcript.viewport.selection import TextPosition

LEFT = Qt.MouseButton.LeftButton


class Standing:
    """A shown view of 800 by 600."""

    def __init__(self, qtbot, messages=(), folder=None):
        self.themes = ThemeSource()
        self.transcript = Transcript(messages)
        self.feed = Feed(self.transcript)
        self.view = TranscriptView(self.themes, NoPictures(folder or Path()))
        qtbot.addWidget(self.view, before_close_func=lambda view: view.close_workers())
        self.view.resize(800, 600)
        self.view.set_transcript(self.transcript)
        with qtbot.waitExposed(self.view):
            self.view.show()

    def send(self, *events):
        self.view.apply([change for event in events for change in self.feed(event)])

    @property
    def rows(self):
        return self.view.row_viewport.rows

    def block(self, row, words):
        """The index of the block that begins with these words."""
        return next(index for index, block in enumerate(self.rows.row(row).blocks) if block.plain().startswith(words))

    def point(self, row, words, offset=0):
        """The middle of the left edge of a character in a block, in coordinates of the viewport."""
        index = self.block(row, words)
        line = self.rows.row(row)
        line.stack.settle_block(index)
        box = line.blocks[index].caret_rect_at(offset)
        corner = line.stack.block_box(index).topLeft() + self.view.row_viewport.row_box(row).topLeft()
        return QPoint(round(box.left() + corner.x()), round(box.center().y() + corner.y()))

    def picture(self):
        return self.view.viewport().grab().toImage()

    def top_of(self, row):
        return self.view.row_viewport.row_box(row).top()

    def box_of(self, row, block):
        """The rectangle of a block in the viewport."""
        return self.rows.row(row).stack.block_box(block).translated(self.view.row_viewport.row_box(row).topLeft())

    def position(self, row, block, x=3):
        """A point at the beginning of a block."""
        return self.box_of(row, block).topLeft() + QPoint(x, 8)

    def point_of(self, row, name):
        """The middle of a control."""
        self.rows.settle()
        for block, control in self.rows.row(row).controls():
            if control.name == name:
                return control.box.translated(self.box_of(row, block).topLeft()).center()
        raise LookupError(name)

    def click(self, row, name):
        QTest.mouseClick(self.view.viewport(), LEFT, pos=self.point_of(row, name))

    def drag(self, start, end):
        viewport = self.view.viewport()
        QTest.mousePress(viewport, LEFT, pos=start)
        QTest.mouseMove(viewport, end)
        QTest.mouseRelease(viewport, LEFT, pos=end)

    def select(self, row, words, start=0, end=None):
        index = self.block(row, words)
        end = utf16_length(self.rows.row(row).blocks[index].plain()) if end is None else end
        self.view.row_viewport.select(TextPosition(row, index, start), TextPosition(row, index, end))

    def selected(self):
        """The selected text, as it would be copied."""
        return selected_text(self.view.row_viewport.selection, self.rows)

    def menu(self, point, reason=QContextMenuEvent.Reason.Mouse):
        """Open the context menu at a point; return it, and its actions by their texts."""
        self.view.contextMenuEvent(QContextMenuEvent(reason, point, self.view.viewport().mapToGlobal(point)))
        menu = self.view.findChildren(QMenu)[-1]
        return menu, {action.text().replace("&", ""): action for action in menu.actions() if action.text()}
