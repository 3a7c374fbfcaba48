"""The transcript on the screen."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QEvent, QPoint, Qt, Signal
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QAccessibleEvent,
    QContextMenuEvent,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QWidget

from desktop_agent.conversation.items import Change
from desktop_agent.conversation.transcript import Transcript
from ui.look.theme import ThemeSource
from ui.transcript.accessible import Tree
from ui.transcript.announcer import Announcer
from ui.transcript.copying import Copier
from ui.transcript.jump_button import JumpButton
from ui.transcript.keyboard import Keyboard
from ui.transcript.look import Look
from ui.transcript.menu import transcript_menu
from ui.transcript.pictures import PictureSource, Thumbnails
from ui.transcript.pointer import Pointer
from ui.transcript.row_list import RowList
from ui.transcript.rows.stage import Choices, Highlighter, RowFacts, Stage
from ui.transcript.screen import Screen
from ui.transcript.scroller import Scroller
from ui.transcript.selection import pieces_of
from ui.transcript.workshop import Workshop

_MARGIN = 24


class TranscriptView(QAbstractScrollArea):
    """Shows a transcript of any length, and stays where the person reads.

    `apply` takes what changed since the last frame. Buttons in rows become signals: `remedy_requested` carries the
    item's id and a RemedyAction, `image_opened` the Image block, `details_copied` the text that was copied.
    """

    remedy_requested = Signal(str, object)
    approval_requested = Signal(str)
    details_copied = Signal(str)
    link_activated = Signal(str)
    image_opened = Signal(object)

    def __init__(self, themes: ThemeSource, pictures: PictureSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._workshop = Workshop()
        self._facts = RowFacts(self)
        look = Look(themes.theme, themes.zoom)
        thumbnails, highlighter = Thumbnails(pictures, self._workshop), Highlighter(self._workshop, self)
        self._stage = Stage(look, self._facts, thumbnails, highlighter)
        self.screen = Screen(self.viewport(), RowList(Transcript(), self._stage, 100, 100))
        self.scroller = Scroller(self.screen, self.verticalScrollBar(), self)
        self._pointer = Pointer(self.screen, self.scroller.scroll_by, self)
        self._keyboard = Keyboard(self.screen, self.scroller, self.copy)
        self._copier = Copier(self)
        self.jump = JumpButton(look, self)
        self._announcer = Announcer(self._announce, QAccessible.isActive)
        self._set_up()
        self._connect()
        self.accessible_tree = Tree(self, self.screen, [self.jump, self.verticalScrollBar()])

    def _set_up(self) -> None:
        self.setAccessibleName(self.tr("Transcript"))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        # Without this Qt would paint the background under every blit, and then the whole viewport again.
        self.viewport().setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.viewport().setMouseTracking(True)

    def _connect(self) -> None:
        facts = self._facts
        facts.remedy_requested.connect(self.remedy_requested)
        facts.approval_requested.connect(self.approval_requested)
        facts.image_opened.connect(self.image_opened)
        facts.code_copied.connect(self._copier.copy)
        facts.details_copied.connect(self._copier.copy)
        facts.details_copied.connect(self.details_copied)
        facts.changed.connect(self._on_row_changed)
        self._pointer.link_activated.connect(self.link_activated)
        self.scroller.follows.connect(self._on_follows)
        self.scroller.news.connect(self.jump.set_count)
        self.jump.clicked.connect(self.scroller.to_end)
        self._themes.changed.connect(self._on_theme)
        # A bound method of this view could not be called any more when its end is announced.
        self.destroyed.connect(self._workshop.close)

    def set_transcript(self, transcript: Transcript) -> None:
        """Show another conversation, at its end."""
        self._stage.choices = Choices()
        self.screen.selection.clear()
        self.screen.hovered = self.screen.focused = (-1, "")
        self.screen.rows = RowList(transcript, self._stage, self._column_width(), self.viewport().height())
        self.accessible_tree.clear()
        self.jump.set_count(0)
        self.scroller.show_rows()

    def apply(self, changes: Sequence[Change]) -> None:
        """Show what changed; at most once a frame."""
        if changes:
            self.scroller.apply(changes)
            self._announcer.changed(changes, self.screen.rows)

    def copy(self) -> None:
        """The selected text, plain."""
        if not self.screen.selection.is_empty:
            self._copier.copy_pieces(pieces_of(self.screen.selection, self.screen.rows))

    def close_workers(self) -> None:
        """Stop what still runs for this view; waits for the job at hand."""
        self._copier.stop()
        self._pointer.stop()
        self._stage.highlighter.stop()
        self._workshop.close()

    def _announce(self, words: str, urgent: bool) -> None:  # noqa: FBT001  one caller
        event = QAccessibleAnnouncementEvent(self, words)
        if urgent:
            event.setPoliteness(QAccessible.AnnouncementPoliteness.Assertive)
        QAccessible.updateAccessibility(event)

    def _announce_focus(self) -> None:
        """The message with the keyboard is what a screen reader should read now."""
        index = self.screen.focused[0]
        node = self.accessible_tree.row_node(index) if QAccessible.isActive() and index >= 0 else None
        if node is not None:
            QAccessible.updateAccessibility(QAccessibleEvent(node, QAccessible.Event.Focus))

    def _column_width(self) -> int:
        room = self.viewport().width() - 2 * self._stage.look.px(_MARGIN)
        return max(120, min(self._stage.look.reading_width, room))

    def _on_row_changed(self, item_id: str) -> None:
        index = self.screen.rows.index_of(item_id)
        if index is not None:
            self.scroller.row_changed(index)

    def _on_follows(self, follows: bool) -> None:  # noqa: FBT001  what the signal carries
        self.jump.setVisible(not follows)

    def _on_theme(self) -> None:
        look = Look(self._themes.theme, self._themes.zoom)
        self._stage = Stage(look, self._facts, self._stage.thumbnails, self._stage.highlighter, self._stage.choices)
        self.jump.use(look)
        rows = self.screen.rows
        rows.restyle(self._stage)
        rows.resize(self._column_width(), self.viewport().height())
        self.scroller.show_rows()

    def scrollContentsBy(self, dx: int, dy: int) -> None:
        """The scroll bar moved."""
        del dx, dy
        self.scroller.bar_moved()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Another width lays out what is seen, and only that."""
        super().resizeEvent(event)
        self.screen.rows.resize(self._column_width(), self.viewport().height())
        self.scroller.show_rows()
        self.jump.place()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Only what must be painted."""
        self.screen.paint(event.region())
        if not len(self.screen.rows):
            self._paint_hint()

    def _paint_hint(self) -> None:
        look = self._stage.look
        painter = QPainter(self.viewport())
        box = self.viewport().rect().adjusted(24, 0, -24, 0)
        painter.setFont(look.heading(2))
        painter.setPen(look.color("text"))
        center = Qt.AlignmentFlag.AlignHCenter
        middle = box.center().y()
        painter.drawText(box.adjusted(0, middle - look.px(40), 0, 0), center, self.tr("What can I do for you?"))
        painter.setFont(look.body)
        painter.setPen(look.color("muted"))
        hint = self.tr("Write a message below. You can paste or drop pictures too.")
        painter.drawText(box.adjusted(0, middle, 0, 0), center | Qt.TextFlag.TextWordWrap, hint)
        painter.end()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Up and down the transcript; sideways inside code and tables that are too wide."""
        delta = event.pixelDelta() if not event.pixelDelta().isNull() else self._lines(event.angleDelta())
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            event.ignore()  # zooming is the window's
            return
        sideways = delta.y() if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else delta.x()
        if sideways and abs(sideways) >= abs(delta.y()):
            self._scroll_sideways(event.position().toPoint(), -sideways)
        else:
            self.scroller.scroll_by(-delta.y())
        event.accept()

    def _lines(self, angle: QPoint) -> QPoint:
        # One notch is 120 (eighths of a degree times fifteen) and moves three lines, as everywhere.
        return angle * (3 * self._stage.look.line) / 120

    def _scroll_sideways(self, point: QPoint, pixels: int) -> None:
        place = self.screen.place_at(point)
        blocks = self.screen.rows.row(place.row).blocks if len(self.screen.rows) else []
        if place.block < len(blocks) and blocks[place.block].scroll_sideways(pixels):
            self.screen.repaint_row(place.row)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """See Keyboard."""
        before = self.screen.focused
        if not self._keyboard.press(event):
            event.ignore()
        elif self.screen.focused != before:
            self._announce_focus()

    def focusNextPrevChild(self, next: bool) -> bool:  # noqa: A002, FBT001  Qt's name
        """Tab walks what the message with the keyboard offers, then leaves."""
        if self._keyboard.walk_controls(1 if next else -1):
            return True
        return super().focusNextPrevChild(next)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """See Pointer."""
        if event.button() == Qt.MouseButton.LeftButton:
            self._pointer.press(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """See Pointer."""
        if event.button() == Qt.MouseButton.LeftButton:
            self._pointer.double(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """See Pointer."""
        self._pointer.move(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """See Pointer."""
        if event.button() == Qt.MouseButton.LeftButton:
            self._pointer.release(event)

    def viewportEvent(self, event: QEvent) -> bool:
        """Tooltips of links; the pointer leaving."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            self._pointer.tip(event.pos(), event.globalPos())
            return True
        if event.type() == QEvent.Type.Leave:
            self._pointer.leave()
        return super().viewportEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Copy in several ways."""
        hit = self.screen.hit(event.pos())
        row = self.screen.rows.row(hit.row) if hit.row >= 0 else None
        transcript_menu(
            self,
            copy=None if self.screen.selection.is_empty else self.copy,
            copy_message=(lambda: self._copier.copy(row.plain())) if row else None,
            copy_markdown=(lambda: self._copier.copy(row.source())) if row else None,
            copy_link=partial(self._copier.copy, hit.link) if hit.link else None,
            select_all=self._keyboard.select_all,
        ).popup(event.globalPos())
