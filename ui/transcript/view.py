"""The transcript view: the scroll area that shows a conversation of any length."""

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QEvent, QPoint, Qt, Signal
from PySide6.QtGui import (
    QAccessible,
    QContextMenuEvent,
    QCursor,
    QFocusEvent,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QRegion,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QToolTip, QWidget

from desktop_agent.conversation.items import Change, Updated
from desktop_agent.conversation.transcript import Transcript
from ui.style.controls import announce
from ui.style.text import plain_tooltip
from ui.style.theme import ThemeSource
from ui.transcript.accessibility.text import AccessibilityContext
from ui.transcript.accessibility.tree import AccessibilityNotifier, AccessibleTree, Announcer
from ui.transcript.blocks.code.highlighter import Highlighter
from ui.transcript.blocks.diagram_renderer import DiagramCache
from ui.transcript.blocks.image_store import ImageFiles, RemoteImages, ThumbnailCache
from ui.transcript.blocks.math.formulas import FormulaCache
from ui.transcript.clipboard import ClipboardWriter
from ui.transcript.find.finder import Finder
from ui.transcript.input.caret import Caret
from ui.transcript.input.context_menu import ContextMenu
from ui.transcript.input.keyboard import KeyboardHandler
from ui.transcript.input.links import LinkNavigator
from ui.transcript.input.mouse import MouseHandler, WheelHandler
from ui.transcript.overlays import CopyProgressNote, JumpButton, paint_empty_hint
from ui.transcript.rows.render_context import (
    LargeBlockCache,
    MessageActions,
    RenderContext,
    RowSignals,
    SecondTimer,
    ViewChoices,
)
from ui.transcript.style import RenderStyle
from ui.transcript.viewport.in_place_editor import InPlaceEditor
from ui.transcript.viewport.positions import MessagePlace, ReadingPosition, current_row, paint_link_focus
from ui.transcript.viewport.row_list import RowList
from ui.transcript.viewport.scroll_controller import ScrollController
from ui.transcript.viewport.selection import TextPosition
from ui.transcript.viewport.viewport import RowViewport
from ui.transcript.workers import JobQueue

_MARGIN = 24


class TranscriptView(QAbstractScrollArea):
    """The scroll area that shows a conversation and keeps the reading position when rows above it change.

    `apply` takes the changes of one frame. Buttons in rows become signals: `remedy_requested` carries the item's id and
    a RemedyAction, `image_opened` an Image block or an InMemoryImage, `save_requested` a name and a text,
    `details_copied` the copied text, `undo_requested`, `undo_since_requested` and `redo_requested` the id of an item.
    `edit_requested`, `regenerate_requested`, `branch_requested`, `version_requested` and `delete_requested` carry the
    id of a message.
    """

    find_requested = Signal()
    zoom_requested = Signal(int)

    # The viewport receives events before the constructor has made their handlers.
    _pointer: MouseHandler | None = None
    _version_place: MessagePlace | None = None
    _expects_version = False

    def __init__(self, themes: ThemeSource, pictures: ImageFiles) -> None:
        super().__init__()
        self._themes = themes
        self._job_queue = JobQueue()
        self._signals = signals = RowSignals(self)
        self.remedy_requested, self.approval_requested = signals.remedy_requested, signals.approval_requested
        self.details_copied, self.link_activated = signals.details_copied, signals.link_activated
        self.image_opened, self.save_requested = signals.image_opened, signals.save_requested
        self.undo_requested, self.redo_requested = signals.undo_requested, signals.redo_requested
        self.undo_since_requested = signals.undo_since_requested
        self.edit_requested, self.regenerate_requested = signals.edit_requested, signals.regenerate_requested
        self.branch_requested, self.version_requested = signals.branch_requested, signals.version_requested
        self.delete_requested = signals.delete_requested
        style = RenderStyle(themes.theme, themes.zoom, themes.reading)
        thumbnails, highlighter = ThumbnailCache(pictures, self._job_queue), Highlighter(self._job_queue, self)
        self.remote_images = RemoteImages(self)
        formulas, diagrams, seconds = FormulaCache(self._job_queue), DiagramCache(), SecondTimer(self)
        self._render_context = RenderContext(
            style, signals, thumbnails, highlighter, formulas, self.remote_images, diagrams, seconds
        )
        # Rows are laid out from the left, also where the window is mirrored; a text keeps the direction of its words.
        self.viewport().setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        self.row_viewport = RowViewport(self.viewport(), RowList(Transcript(), self._render_context, 100, 100))
        self.jump_button = JumpButton(style, self.viewport(), self)
        self.scroller = ScrollController(self.row_viewport, self.verticalScrollBar(), self.jump_button, self)
        self._reading_position = ReadingPosition(self.row_viewport)
        self._links = LinkNavigator(self.row_viewport, self.scroller, self.link_activated.emit)
        self._pointer = MouseHandler(self.row_viewport, self.scroller.scroll_by, self._links, self)
        self._wheel = WheelHandler(self.row_viewport, self.scroller.scroll_by, self.zoom_requested.emit)
        self._keyboard = KeyboardHandler(self.row_viewport, self.scroller, self.copy, self._links.follow)
        self.move_row_focus = self._keyboard.move_focus
        """Move the keyboard focus to the previous (-1) or next (1) message."""
        self.run_message_command = self._keyboard.run_command
        """Run the command with these keys of the focused message, or of the last one that has it; False for none."""
        self._copier = ClipboardWriter(self)
        self.caret = Caret(self.row_viewport, self.scroller, self._links.follow, self)
        select_all, find, caret_box = self._keyboard.select_all, self.find_requested.emit, self.caret.box
        self.context_menu = ContextMenu(self.row_viewport, self._links, self._copier, select_all, find, caret_box)
        self._copy_note = CopyProgressNote(style, self.viewport(), self)
        self.finder = Finder(self.row_viewport, self.scroller, self)
        self.in_place_editor = InPlaceEditor(
            self.row_viewport, self.scroller, self._wheel.handle, self._rebuild_row, self
        )
        self.in_place_editor.stackUnder(self.jump_button)
        self.accessible_tree = _make_tree(self, self._links)
        self._notifier = AccessibilityNotifier(self.accessible_tree)
        self._announcer = Announcer(self._notifier.announce, QAccessible.isActive)
        self._set_up()
        self._connect()

    def focus_part(self, index: int, key: str) -> None:
        """Give the keyboard to a message, or to the link or control in it that has this key."""
        self.setFocus()
        self._keyboard.focus_part(index, key)
        self._on_focus_moved()

    def _set_up(self) -> None:
        self.setAccessibleName(self.tr("Transcript"))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        # The scroll bar always has its room, so that nothing moves aside when the first answer outgrows the window.
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        # Without this Qt would paint the background under every blit, and then the whole viewport again.
        self.viewport().setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.viewport().setMouseTracking(True)
        self.context_menu.install_shortcut(self)

    def _connect(self) -> None:
        signals = self._signals
        self._copier.progress.connect(self._copy_note.show_message)
        self.caret.moved.connect(self._on_caret_moved)
        self.caret.toggled.connect(self._on_caret_moved)
        signals.code_copied.connect(self._copier.copy)
        signals.details_copied.connect(self._copier.copy)
        signals.changed.connect(self._on_row_changed)
        signals.content_arrived.connect(self._on_row_arrived)
        signals.copy_requested.connect(self.context_menu.copy_message)
        signals.alternatives_requested.connect(partial(self.context_menu.popup_alternatives, self))
        signals.action_refused.connect(self.show_refusal)
        self._themes.changed.connect(self._on_theme)
        # Not a bound method of this view: it could no longer be called when `destroyed` is emitted.
        self.destroyed.connect(self._job_queue.close)

    def set_transcript(self, transcript: Transcript) -> None:
        """Show another conversation, at its end."""
        context = self._render_context
        context.choices, context.large, context.items = ViewChoices(), LargeBlockCache(), transcript
        self.row_viewport.selection.clear()
        self.caret.turn_off()
        self.row_viewport.hovered = self.row_viewport.focused = (-1, "")
        self.row_viewport.rows = RowList(transcript, context, self._column_width(), self.viewport().height())
        self.accessible_tree.clear()
        self.scroller.show_rows()
        self.finder.rows_shown()

    def set_message_actions(self, actions: MessageActions | None) -> None:
        """Show below the messages what can be done with them now; with None there is nothing below them.

        Rows that are shown already do not change between None and anything else: call it before `set_transcript`.
        """
        self._render_context.message_actions = actions
        self.scroller.show_message_actions()

    def set_whole_loader(
        self, when_whole: Callable[[Callable[[], None]], None], is_whole: Callable[[], bool] = lambda: True
    ) -> None:
        """Call `when_whole` with what needs the whole conversation: it is done when all of it is loaded.

        `is_whole` says whether it is.
        """
        self._render_context.when_whole, self._render_context.is_whole = when_whole, is_whole

    def expect_version(self, message_id: str | None) -> None:
        """Treat the next change as another version of this message, which keeps its place and its focus.

        Without an id it is added below. It is not announced: the person knows what they asked for.
        """
        items = self.row_viewport.rows.transcript
        indices = (index for index, item in enumerate(items) if item.message_id == message_id)
        index = next(indices, None) if message_id else None
        self._version_place = None if index is None else MessagePlace(self.row_viewport, index)
        self._expects_version = True

    def forget_version(self) -> None:
        """Treat the next change as any other: there is no such version."""
        self._version_place, self._expects_version = None, False

    def _restore_place(self) -> None:
        if (place := self._version_place) is not None:
            place.restore(self.scroller)
            if self.caret.position and self.caret.position.row >= place.index - 1:
                self.caret.follow(TextPosition(place.index))

    def apply(self, changes: Sequence[Change]) -> None:
        """Show these changes; called at most once a frame."""
        if changes:
            self._update_parts(changes)
            self._restore_place()
            self._announcer.announce_changes(changes, self.row_viewport.rows, silently=self._expects_version)
            self.forget_version()

    def _update_parts(self, changes: Sequence[Change]) -> None:
        for part in (self.scroller, self.finder, self.caret, self.accessible_tree):
            part.apply(changes)

    def _rebuild_row(self, index: int) -> None:
        self._update_parts([Updated(index, "text")])

    def copy(self) -> None:
        """Copy the selected text."""
        self.context_menu.copy()

    def close_workers(self) -> None:
        """Stop everything that still runs for this view; waits for the current job."""
        self._copier.stop()
        self._copy_note.show_message("")
        self.finder.stop()
        self.caret.turn_off()
        self.scroller.stop()
        if self._pointer:
            self._pointer.stop()
        self._render_context.highlighter.stop()
        self._render_context.diagrams.close()
        self._render_context.seconds.stop()
        self._job_queue.close()

    def _column_width(self) -> int:
        room = self.viewport().width() - 2 * self._render_context.style.px(_MARGIN)
        return max(120, min(self._render_context.style.reading_width, room))

    def _on_row_changed(self, item_id: str) -> None:
        if (index := self.row_viewport.rows.index_of(item_id)) is not None:
            self.scroller.row_changed(index)

    def _on_caret_moved(self) -> None:
        position = self.caret.position
        self.row_viewport.move_caret(position.row if position else -1)
        self._notifier.notify_caret(position)

    def show_refusal(self, why: str) -> None:
        """Show why something cannot be done with a message: at the pointer, or below the message if it is elsewhere."""
        announce(self, why)
        point, row = QCursor.pos(), current_row(self.row_viewport)
        if row >= 0 and not self.rect().contains(self.mapFromGlobal(point)):
            widget = self.row_viewport.widget
            box = self.row_viewport.row_box(row).intersected(widget.rect())
            point = widget.mapToGlobal(QPoint(box.center().x(), box.bottom()))
        QToolTip.showText(point, plain_tooltip(why), self)

    def _on_row_arrived(self, item_id: str) -> None:
        if (index := self.row_viewport.rows.index_of(item_id)) is not None:
            self.scroller.row_arrived(index)

    def _on_theme(self) -> None:
        style = RenderStyle(self._themes.theme, self._themes.zoom, self._themes.reading)
        self.jump_button.set_style(style)
        self._copy_note.set_style(style)
        rows = self.row_viewport.rows
        caret = self.caret.position
        self._reading_position.save()
        self._render_context.style = style
        self._reading_position.restyle(self._render_context, self._column_width(), [caret.row] if caret else ())
        self.accessible_tree.clear()
        rows.resize(self._column_width(), self.viewport().height())
        self._reading_position.restore()
        self.scroller.show_rows()

    def scrollContentsBy(self, dx: int, dy: int) -> None:
        del dx, dy
        self.scroller.on_scroll_bar_moved()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._reading_position.save()
        self.row_viewport.rows.resize(self._column_width(), self.viewport().height())
        self._reading_position.restore()
        self.scroller.show_rows()
        self.jump_button.reposition()

    def paintEvent(self, event: QPaintEvent) -> None:
        self.row_viewport.paint(event.region())
        self._paint_over(event.region())
        if not len(self.row_viewport.rows):
            paint_empty_hint(self.viewport(), self._render_context.style, by_tab=self._keyboard.is_focused_by_tab)

    def _paint_over(self, region: QRegion) -> None:
        if self.finder.is_on or self.caret.is_on or self.row_viewport.focused[1]:
            painter = QPainter(self.viewport())
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            self.finder.paint(painter, region)
            self.caret.paint(painter)
            paint_link_focus(painter, self.row_viewport)
            painter.end()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        if not self.caret.is_on and self._keyboard.take_focus(event.reason()):
            self._on_focus_moved()
        self.row_viewport.repaint_focus()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.row_viewport.repaint_focus()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        before = self.row_viewport.focused
        if not self.caret.handle_key(event) and not self._keyboard.handle_key(event):
            event.ignore()
        elif self.row_viewport.focused != before:
            self._on_focus_moved()

    def _on_focus_moved(self) -> None:
        self.caret.follow(TextPosition(self.row_viewport.focused[0]))
        self._notifier.notify_focus()

    def focusNextPrevChild(self, next: bool) -> bool:  # noqa: A002, FBT001  Qt's name
        """Tab goes through the links and buttons of the focused message before it leaves the view."""
        if not self.in_place_editor.has_keyboard and self._keyboard.move_control_focus(1 if next else -1):
            return True
        return super().focusNextPrevChild(next)

    def viewportEvent(self, event: QEvent) -> bool:
        if self._pointer is None:
            return super().viewportEvent(event)
        if isinstance(event, QWheelEvent):
            self._wheel.handle(event)
            return True
        handled = self._pointer.handle(event)
        if handled and self.caret.is_on and event.type() == QEvent.Type.MouseButtonRelease:
            self.caret.follow(self.row_viewport.selection.end)
        return handled or super().viewportEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self.context_menu.popup(event, self)


def _make_tree(view: TranscriptView, links: LinkNavigator) -> AccessibleTree:
    context = AccessibilityContext(view.row_viewport, view.scroller, view.caret, links.follow, view.focus_part)
    bar = view.verticalScrollBar()
    # The bar lies in a frame, which is its parent.
    widgets: list[QWidget] = [view.in_place_editor, view.jump_button, bar.parentWidget() or bar]
    return AccessibleTree(view, widgets, context)
