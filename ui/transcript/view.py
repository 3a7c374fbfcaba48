"""The transcript on the screen."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import (
    QAccessible,
    QContextMenuEvent,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QRegion,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QWidget

from desktop_agent.conversation.items import Change
from desktop_agent.conversation.transcript import Transcript
from ui.look.theme import ThemeSource
from ui.transcript.accessibility.announcer import Announcer
from ui.transcript.accessibility.reach import Doing
from ui.transcript.accessibility.tree import Tree
from ui.transcript.accessibility.voice import Voice
from ui.transcript.blocks.colouring.highlighter import Highlighter
from ui.transcript.blocks.diagram.diagrams import Diagrams
from ui.transcript.blocks.math.formulas import Formulas
from ui.transcript.input.caret import Caret
from ui.transcript.input.copy_note import CopyNote
from ui.transcript.input.copying import Copier
from ui.transcript.input.keyboard import Keyboard
from ui.transcript.input.links import Links
from ui.transcript.input.offers import Offers
from ui.transcript.input.pointer import Pointer
from ui.transcript.input.wheel import Wheel
from ui.transcript.jump_button import JumpButton
from ui.transcript.look import Look
from ui.transcript.pictures import PictureSource, Thumbnails
from ui.transcript.remote_pictures import RemotePictures
from ui.transcript.rows.stage import Choices, LargeBlocks, RowFacts, Seconds, Stage
from ui.transcript.surface.finding.finding import Finding
from ui.transcript.surface.hint import paint_hint
from ui.transcript.surface.places import paint_link_focus, show_place
from ui.transcript.surface.reading_place import KeptRows, ReadingPlace
from ui.transcript.surface.screen import Screen
from ui.transcript.surface.scroller import Scroller
from ui.transcript.surface.selection import Place
from ui.transcript.workshop import Workshop

_MARGIN = 24


class TranscriptView(QAbstractScrollArea):
    """Shows a transcript of any length, and stays where the person reads.

    `apply` takes what changed since the last frame. Buttons in rows become signals: `remedy_requested` carries the
    item's id and a RemedyAction, `image_opened` an Image block or a HeldPicture, `save_requested` a name and a text,
    `details_copied` the text that was copied, `undo_requested`, `undo_since_requested` and `redo_requested` the id of
    an item. `remote` asks for pictures of the web.
    """

    remedy_requested = Signal(str, object)
    approval_requested = Signal(str)
    details_copied = Signal(str)
    link_activated = Signal(str)
    image_opened = Signal(object)
    save_requested = Signal(str, str)
    find_requested = Signal()
    zoom_requested = Signal(int)
    undo_requested = Signal(str)
    undo_since_requested = Signal(str)
    redo_requested = Signal(str)

    # The viewport has events before the constructor has come to what handles them.
    _pointer: Pointer | None = None

    def __init__(self, themes: ThemeSource, pictures: PictureSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._workshop = Workshop()
        self._facts = RowFacts(self)
        look = Look(themes.theme, themes.zoom, themes.reading)
        thumbnails, highlighter = Thumbnails(pictures, self._workshop), Highlighter(self._workshop, self)
        self.remote = RemotePictures(self)
        self._stage = Stage(look, self._facts, thumbnails, highlighter, remote=self.remote)
        self._stage.formulas, self._stage.diagrams = Formulas(self._workshop), Diagrams()
        self._stage.seconds = Seconds(self)
        self.surface = Screen(self.viewport(), KeptRows(Transcript(), self._stage, 100, 100))
        self.scroller = Scroller(self.surface, self.verticalScrollBar(), self)
        self._reading_place = ReadingPlace(self.surface)
        self._links = Links(self.surface, self.scroller, self)
        self._pointer = Pointer(self.surface, self.scroller.scroll_by, self._links, self)
        self._wheel = Wheel(self.surface, self.scroller.scroll_by, self.zoom_requested.emit)
        self._keyboard = Keyboard(self.surface, self.scroller, self.copy, self._links.follow)
        self.walk = self._keyboard.walk
        """To the message before (-1) or after (1) the one with the keyboard."""
        self._copier = Copier(self)
        select_all, find = self._keyboard.select_all, self.find_requested.emit
        self.offers = Offers(self.surface, self._links, self._copier, select_all, find)
        self._note = CopyNote(look, self.viewport(), self)
        self.finding = Finding(self.surface, self.scroller, self)
        self.caret = Caret(self.surface, self.scroller, self._links.follow, self)
        self.jump = JumpButton(look, self.viewport(), self)
        self.accessible_tree = self._make_tree()
        self._voice = Voice(self.accessible_tree)
        self.caret.moved.connect(lambda: self._voice.caret(self.caret.place))
        self._announcer = Announcer(self._voice.say, QAccessible.isActive)
        self._set_up()
        self._connect()

    def _make_tree(self) -> Tree:
        show = partial(show_place, self.surface, self.scroller)
        doing = Doing(lambda: self.caret.place, self.caret.put, show, self._links.follow)
        return Tree(self, self.surface, [self.jump, self.verticalScrollBar()], doing, self._keyboard.walk_to)

    def _set_up(self) -> None:
        self.setAccessibleName(self.tr("Transcript"))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        # Its room is kept, so that nothing moves aside when the first answer outgrows the window.
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        # Without this Qt would paint the background under every blit, and then the whole viewport again.
        self.viewport().setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.viewport().setMouseTracking(True)
        self.offers.hear_key(self)

    def _connect(self) -> None:
        facts = self._facts
        facts.remedy_requested.connect(self.remedy_requested)
        facts.approval_requested.connect(self.approval_requested)
        facts.image_opened.connect(self.image_opened)
        facts.save_requested.connect(self.save_requested)
        facts.link_activated.connect(self.link_activated)
        facts.undo_requested.connect(self.undo_requested)
        facts.undo_since_requested.connect(self.undo_since_requested)
        facts.redo_requested.connect(self.redo_requested)
        self._links.opened.connect(self.link_activated)
        self._copier.progress.connect(self._note.say)
        facts.code_copied.connect(self._copier.copy)
        facts.details_copied.connect(self._copier.copy)
        facts.details_copied.connect(self.details_copied)
        facts.changed.connect(self._on_row_changed)
        facts.arrived.connect(self._on_row_arrived)
        self.scroller.follows.connect(self.jump.setHidden)
        self.scroller.news.connect(self.jump.set_count)
        self.jump.clicked.connect(self.scroller.to_end)
        self._themes.changed.connect(self._on_theme)
        # A bound method of this view could not be called any more when its end is announced.
        self.destroyed.connect(self._workshop.close)

    def set_transcript(self, transcript: Transcript) -> None:
        """Show another conversation, at its end."""
        self._stage.choices, self._stage.large, self._stage.items = Choices(), LargeBlocks(), transcript
        self.surface.selection.clear()
        self.caret.leave()
        self.surface.hovered = self.surface.focused = (-1, "")
        self.surface.rows = KeptRows(transcript, self._stage, self._column_width(), self.viewport().height())
        self.accessible_tree.clear()
        self.jump.set_count(0)
        self.scroller.show_rows()
        self.finding.rows_shown()

    def apply(self, changes: Sequence[Change]) -> None:
        """Show what changed; at most once a frame."""
        if changes:
            self.scroller.apply(changes)
            self.finding.apply(changes)
            self.caret.apply(changes)
            self.accessible_tree.apply(changes)
            self._announcer.changed(changes, self.surface.rows)

    def copy(self) -> None:
        """The selected text."""
        self.offers.copy()

    def close_workers(self) -> None:
        """Stop what still runs for this view; waits for the job at hand."""
        self._copier.stop()
        self._note.stop()
        self.finding.stop()
        self.caret.leave()
        self.scroller.stop()
        if self._pointer:
            self._pointer.stop()
        self._stage.highlighter.stop()
        if self._stage.diagrams and self._stage.seconds:
            self._stage.diagrams.close()
            self._stage.seconds.stop()
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

    def _on_theme(self) -> None:
        look = Look(self._themes.theme, self._themes.zoom, self._themes.reading)
        self.jump.use(look)
        self._note.use(look)
        rows = self.surface.rows
        caret = self.caret.place
        self._reading_place.take()
        self._stage.look = look
        self._reading_place.use(self._stage, self._column_width(), [caret.row] if caret else ())
        self.accessible_tree.clear()
        rows.resize(self._column_width(), self.viewport().height())
        self._reading_place.put_back()
        self.scroller.show_rows()

    def scrollContentsBy(self, dx: int, dy: int) -> None:
        """The scroll bar moved."""
        del dx, dy
        self.scroller.bar_moved()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Another width lays out what is seen, and only that."""
        super().resizeEvent(event)
        self._reading_place.take()
        self.surface.rows.resize(self._column_width(), self.viewport().height())
        self._reading_place.put_back()
        self.scroller.show_rows()
        self.jump.place()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Only what must be painted."""
        self.surface.paint(event.region())
        self._paint_over(event.region())
        if not len(self.surface.rows):
            paint_hint(self.viewport(), self._stage.look)

    def _paint_over(self, region: QRegion) -> None:
        if self.finding.is_on or self.caret.is_on or self.surface.focused[1]:
            painter = QPainter(self.viewport())
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            self.finding.paint(painter, region)
            self.caret.paint(painter)
            paint_link_focus(painter, self.surface)
            painter.end()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """See Keyboard."""
        before = self.surface.focused
        if not self.caret.press(event) and not self._keyboard.press(event):
            event.ignore()
        elif self.surface.focused != before:
            self.caret.follow(Place(self.surface.focused[0]))
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
        handled = self._pointer.handle(event)
        if handled and self.caret.is_on and event.type() == QEvent.Type.MouseButtonRelease:
            self.caret.follow(self.surface.selection.end)
        return handled or super().viewportEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """See Offers."""
        self.offers.pop_up(event, self)
