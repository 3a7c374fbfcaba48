"""The transcript on the screen."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import (
    QAccessible,
    QContextMenuEvent,
    QKeyEvent,
    QPaintEvent,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QWidget

from desktop_agent.conversation.items import Change
from desktop_agent.conversation.transcript import Transcript
from ui.look.theme import ThemeSource
from ui.transcript.accessibility.announcer import Announcer
from ui.transcript.accessibility.tree import Tree
from ui.transcript.accessibility.voice import Voice
from ui.transcript.blocks.math.formulas import Formulas
from ui.transcript.input.copying import Copier
from ui.transcript.input.keyboard import Keyboard
from ui.transcript.input.menu import transcript_menu
from ui.transcript.input.pointer import Pointer
from ui.transcript.input.wheel import Wheel
from ui.transcript.jump_button import JumpButton
from ui.transcript.look import Look
from ui.transcript.pictures import PictureSource, Thumbnails
from ui.transcript.rows.stage import Choices, Highlighter, RowFacts, Stage
from ui.transcript.surface.hint import paint_hint
from ui.transcript.surface.row_list import RowList
from ui.transcript.surface.screen import Screen
from ui.transcript.surface.scroller import Scroller
from ui.transcript.surface.selection import pieces_of
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

    # The viewport has events before the constructor has come to what handles them.
    _pointer: Pointer | None = None

    def __init__(self, themes: ThemeSource, pictures: PictureSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._workshop = Workshop()
        self._facts = RowFacts(self)
        look = Look(themes.theme, themes.zoom)
        thumbnails, highlighter = Thumbnails(pictures, self._workshop), Highlighter(self._workshop, self)
        self._stage = Stage(look, self._facts, thumbnails, highlighter, formulas=Formulas(self._workshop))
        self.surface = Screen(self.viewport(), RowList(Transcript(), self._stage, 100, 100))
        self.scroller = Scroller(self.surface, self.verticalScrollBar(), self)
        pointer = self._pointer = Pointer(self.surface, self.scroller.scroll_by, self)
        pointer.link_activated.connect(self.link_activated)
        self._wheel = Wheel(self.surface, self.scroller.scroll_by)
        self._keyboard = Keyboard(self.surface, self.scroller, self.copy)
        self._copier = Copier(self)
        self.jump = JumpButton(look, self.viewport(), self)
        self.accessible_tree = Tree(self, self.surface, [self.jump, self.verticalScrollBar()])
        self._voice = Voice(self.accessible_tree)
        self._announcer = Announcer(self._voice.say, QAccessible.isActive)
        self._set_up()
        self._connect()

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
        facts.link_activated.connect(self.link_activated)
        facts.code_copied.connect(self._copier.copy)
        facts.details_copied.connect(self._copier.copy)
        facts.details_copied.connect(self.details_copied)
        facts.changed.connect(self._on_row_changed)
        facts.arrived.connect(self._on_row_arrived)
        self.scroller.follows.connect(self._on_follows)
        self.scroller.news.connect(self.jump.set_count)
        self.jump.clicked.connect(self.scroller.to_end)
        self._themes.changed.connect(self._on_theme)
        # A bound method of this view could not be called any more when its end is announced.
        self.destroyed.connect(self._workshop.close)

    def set_transcript(self, transcript: Transcript) -> None:
        """Show another conversation, at its end."""
        self._stage.choices = Choices()
        self.surface.selection.clear()
        self.surface.hovered = self.surface.focused = (-1, "")
        self.surface.rows = RowList(transcript, self._stage, self._column_width(), self.viewport().height())
        self.accessible_tree.clear()
        self.jump.set_count(0)
        self.scroller.show_rows()

    def apply(self, changes: Sequence[Change]) -> None:
        """Show what changed; at most once a frame."""
        if changes:
            self.scroller.apply(changes)
            self._announcer.changed(changes, self.surface.rows)

    def copy(self) -> None:
        """The selected text, plain."""
        if not self.surface.selection.is_empty:
            self._copier.copy_pieces(pieces_of(self.surface.selection, self.surface.rows))

    def close_workers(self) -> None:
        """Stop what still runs for this view; waits for the job at hand."""
        self._copier.stop()
        if self._pointer:
            self._pointer.stop()
        self._stage.highlighter.stop()
        self._workshop.close()

    def _column_width(self) -> int:
        room = self.viewport().width() - 2 * self._stage.look.px(_MARGIN)
        return max(120, min(self._stage.look.reading_width, room))

    def _on_row_changed(self, item_id: str) -> None:
        index = self.surface.rows.index_of(item_id)
        if index is not None:
            self.scroller.row_changed(index)

    def _on_row_arrived(self, item_id: str) -> None:
        index = self.surface.rows.index_of(item_id)
        if index is not None:
            self.scroller.row_arrived(index)

    def _on_follows(self, follows: bool) -> None:  # noqa: FBT001  what the signal carries
        self.jump.setVisible(not follows)

    def _on_theme(self) -> None:
        look = Look(self._themes.theme, self._themes.zoom)
        self._stage = replace(self._stage, look=look)
        self.jump.use(look)
        rows = self.surface.rows
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
        self.surface.rows.resize(self._column_width(), self.viewport().height())
        self.scroller.show_rows()
        self.jump.place()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Only what must be painted."""
        self.surface.paint(event.region())
        if not len(self.surface.rows):
            paint_hint(self.viewport(), self._stage.look)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """See Keyboard."""
        before = self.surface.focused
        if not self._keyboard.press(event):
            event.ignore()
        elif self.surface.focused != before:
            self._voice.focus()

    def focusNextPrevChild(self, next: bool) -> bool:  # noqa: A002, FBT001  Qt's name
        """Tab walks what the message with the keyboard offers, then leaves."""
        if self._keyboard.walk_controls(1 if next else -1):
            return True
        return super().focusNextPrevChild(next)

    def viewportEvent(self, event: QEvent) -> bool:
        """See Pointer and Wheel."""
        if self._pointer is None:
            return super().viewportEvent(event)
        if isinstance(event, QWheelEvent):
            self._wheel.turn(event)
            return True
        return self._pointer.handle(event) or super().viewportEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Copy in several ways."""
        hit = self.surface.hit(event.pos())
        row = self.surface.rows.row(hit.row) if hit.row >= 0 else None
        transcript_menu(
            self,
            copy=None if self.surface.selection.is_empty else self.copy,
            copy_message=(lambda: self._copier.copy(row.plain())) if row else None,
            copy_markdown=(lambda: self._copier.copy(row.source())) if row else None,
            copy_link=partial(self._copier.copy, hit.link) if hit.link else None,
            select_all=self._keyboard.select_all,
        ).popup(event.globalPos())
