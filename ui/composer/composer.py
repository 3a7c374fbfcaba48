"""The composer: the message being written, its attachments, and Send or Stop."""

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QKeyEvent, QShortcut
from PySide6.QtWidgets import QFrame, QWidget

from ui.composer.control_bar import ControlBar, SendStopButton
from ui.composer.message_editor import MessageEditor, accept_drop, is_too_long
from ui.style.boxes import vbox
from ui.style.controls import IconButton, announce, label, set_by_name, set_style_property, show_words
from ui.style.text import translate_sentence, trim_prompt
from ui.style.theme import SPACE_S, SPACE_XS, ThemeSource

if TYPE_CHECKING:
    from PySide6.QtGui import QImage

    from desktop_agent.types.errors import Sentence
    from desktop_agent.types.providers import ImageLimits
    from ui.composer.attachment_chips import Attachment
    from ui.composer.attachment_items import PictureIntake
    from ui.composer.attachments import Attachments

DRAFT_DELAY_MS = 400


class _ComposerFrame(QFrame):
    """The frame around the editor and its controls; its margins follow the density setting."""

    def __init__(self, themes: ThemeSource, *, is_focused: bool) -> None:
        super().__init__()
        self._themes = themes
        self.setProperty("kind", "composer")
        if is_focused:
            # Set later, the frame would be polished again, which loads all enumerations of styles.
            self.setProperty("focused", "true")
        self.column = vbox(parent=self, spacing=SPACE_XS)
        themes.follow(self._apply_theme)

    def mark_focus(self, *, focused: bool) -> None:
        set_style_property(self, "focused", "true" if focused else "false")

    def _apply_theme(self) -> None:
        room = self._themes.space(SPACE_S)
        self.column.setContentsMargins(SPACE_S, room, SPACE_S, room)


class EditedMessage(NamedTuple):
    """An earlier message as it was before editing, and the draft that is set aside meanwhile."""

    original: "tuple[str, list[Attachment]]"
    draft: "tuple[str, list[Attachment]]"

    def draft_with(self, written: "tuple[str, list[Attachment]]") -> "tuple[str, list[Attachment]]":
        """Return the draft, followed by what is written if that was changed."""
        if written == self.original:
            return self.draft
        text, attached = self.draft
        return "\n\n".join(filter(str.strip, (text, written[0]))), [*attached, *written[1]]


class Composer(QWidget):
    """The message being written, with its attachments and controls. The shell connects its signals."""

    send_requested = Signal(str, list)
    """The text and its Attachments. The composer is empty by then."""
    queue_requested = Signal(str, list)
    """The same, to be sent when the agent is done."""
    stop_requested = Signal()
    escape_pressed = Signal()
    notice_shown = Signal(QWidget)
    """The widget of a new notice, to be scrolled into view."""
    draft_replaced = Signal()
    """Emitted by `set_draft`, not by typing."""

    def __init__(self, themes: ThemeSource, intake: "PictureIntake", *, opens_focused: bool = False) -> None:
        """`opens_focused`: it will have the focus when it is shown, and is painted so from the start."""
        super().__init__()
        self._themes = themes
        self._intake = intake
        self._supports_images: bool | None = None
        self._limits: ImageLimits | None = None
        self._blocked_reason = ""
        self._pending_send: Literal["now", "later"] | None = None
        """How the message is sent once its attachments are ready; None while it need not be."""
        self.checks: list[Callable[[str, Sequence[Attachment]], bool]] = []
        """Called with each message; if one returns False, the message is not sent and stays."""
        self.edited: EditedMessage | None = None
        self.frame = _ComposerFrame(themes, is_focused=opens_focused)
        self.editor = MessageEditor(themes)
        self._notice = label(kind="warning", wrap=True)
        self._problems = label(kind="error", wrap=True)
        self.attach_button = IconButton(themes, "attach", self.tr("Attach files"))
        self._send_or_stop = SendStopButton(themes)
        self.controls = ControlBar(self._send_or_stop, self.attach_button)
        """Under the editor. Where room gets scarce, the first ones keep their text longest."""
        self.draft_timer = QTimer(self, singleShot=True, interval=DRAFT_DELAY_MS)
        """Ends a moment after the last change: then read `draft()`."""
        self._build_layout()
        self._connect_signals()
        self._send_or_stop.set_can_send(can_send=False)

    @cached_property
    def attachments(self) -> "Attachments":
        """The row of attachments, made when it is first asked for: after the window's first paint."""
        from PySide6.QtCore import Qt

        from ui.composer.attachments import Attachments

        attachments = Attachments(self._themes, self._intake, self.editor)
        self.frame.column.insertWidget(0, attachments)
        # Among the children too: assistive technology reads them in their order.
        attachments.lower()
        attachments.changed.connect(self._on_changed)
        attachments.lost.connect(self._cancel_pending_send)
        attachments.focus_left.connect(self.editor.setFocus)
        attachments.folder_found.connect(self.editor.insert_path)
        # Queued: an item is attached a moment after it was fetched.
        attachments.changed.connect(self._send_when_ready, Qt.ConnectionType.QueuedConnection)
        attachments.problem.connect(self.show_problem)
        return attachments

    def draft(self) -> "tuple[str, list[Attachment]]":
        """Return the text and the attachments to be saved: of the draft, and of an earlier message that was changed."""
        return self.written() if self.edited is None else self.edited.draft_with(self.written())

    def written(self) -> "tuple[str, list[Attachment]]":
        """Return the text and the attachments that are in the composer."""
        text = self.editor.toPlainText()
        return text, self.attachments.items_beside(text)

    def set_draft(self, text: str, attached: "Sequence[Attachment]" = (), *, is_saved: bool = True) -> None:
        """Replace what is being written. A text too long for the editor becomes an attachment."""
        self.attachments.clear()
        self.clear_problems()
        if is_too_long(text):
            self.editor.clear()
            self.attachments.add_text(text)
        else:
            self.editor.setPlainText(text)
            self.editor.moveCursor(self.editor.textCursor().MoveOperation.End)
        self.attachments.add_items(attached)
        if is_saved:
            self.draft_timer.stop()
        self.draft_replaced.emit()
        if not self._notice.isHidden():
            self.notice_shown.emit(self._notice)

    def restore_message(self, text: str, attached: "Sequence[Attachment]" = ()) -> None:
        """Put back a message that was not delivered, after an empty line if something is written."""
        written = self.editor.toPlainText()
        gap = "\n\n" if text and written.strip() else ""
        if is_too_long(f"{written}{gap}{text}"):
            self.attachments.add_text(text)
        else:
            # Keep the cursor of a person who is typing.
            cursor = self.editor.textCursor()
            position = cursor.position()
            end = self.editor.textCursor()
            end.movePosition(end.MoveOperation.End)
            end.insertText(gap + text)
            cursor.setPosition(position if gap else end.position())
            self.editor.setTextCursor(cursor)
        if attached:
            self.attachments.add_items(attached)

    def show_problem(self, sentence: "Sentence", remedy: "Sentence | None" = None) -> None:
        """Add a problem below the earlier ones, until the person types or sends, or chooses a model or a folder."""
        from desktop_agent.types.errors import join_remedy

        words = translate_sentence(sentence if remedy is None else join_remedy(sentence, remedy))
        earlier = [] if self._problems.isHidden() else self._problems.text().split("\n")
        self._problems.setText("\n".join(dict.fromkeys([*earlier, words])))
        self._problems.show()
        announce(self, words)
        self.notice_shown.emit(self._problems)

    def add_notice(self, notice: QWidget) -> None:
        """Put a notice above the editor."""
        self.frame.column.insertWidget(self.frame.column.indexOf(self.editor), notice)

    def attach_files(self, paths: Sequence[Path | str]) -> None:
        """Attach files of pictures and texts."""
        self.clear_problems()
        self.attachments.add_files([Path(path) for path in paths])

    def set_working(self, working: bool) -> None:  # noqa: FBT001  # a slot
        """Set whether the agent works: Stop replaces Send. Enter still sends, into the queue."""
        had_focus = self._send_or_stop.has_focus
        self._send_or_stop.show_working(working=working)
        if had_focus:
            self.editor.setFocus()

    def set_blocked(self, why: "Sentence | None") -> None:
        """Set why nothing can be sent, because another process works in the conversation; None unblocks.

        The person can still write, and send when the other process is gone.
        """
        self._blocked_reason = "" if why is None else translate_sentence(why)
        self.controls.enable(why is None, self.attach_button)
        self._send_or_stop.set_blocked(self._blocked_reason)
        self.editor.setAccessibleDescription(self._blocked_reason)
        self._refresh()

    def set_enter_sends(self, enter_sends: bool) -> None:  # noqa: FBT001  # a slot
        """Set whether Enter sends."""
        self.editor.enter_sends = enter_sends
        self._send_or_stop.enter_sends = enter_sends

    def set_supports_images(self, can_see: bool | None, limits: "ImageLimits | None" = None) -> None:  # noqa: FBT001
        """Set whether the model reads images (None: unknown), and the limits of its server."""
        self._supports_images, self._limits = can_see, limits
        self._refresh()

    def send(self, *, later: bool = False) -> None:
        """Send the message and begin a new one; do nothing while it is empty. `later`: when the agent is done.

        While attachments are being prepared the send is pending. While sending is blocked the reason is announced.
        """
        if self._blocked_reason:
            announce(self, self._blocked_reason)
            return
        if self.attachments.is_preparing:
            self._pending_send = "later" if later else "now"
            self._refresh()
            return
        text, attached = self.written()
        if not (text.strip() or self.attachments.chips) or not all(check(text, attached) for check in self.checks):
            return
        self.editor.clear()
        self.attachments.clear()
        self.clear_problems()
        (self.queue_requested if later else self.send_requested).emit(trim_prompt(text), attached)

    def _send_when_ready(self) -> None:
        if self._pending_send is None or self.attachments.is_preparing:
            return
        when, self._pending_send = self._pending_send, None
        self._refresh()
        self.send(later=when == "later")

    def _cancel_pending_send(self) -> None:
        if self._pending_send is not None:
            self._pending_send = None
            self._refresh()

    def stop(self) -> None:
        """Stop the agent, if it works."""
        self._send_or_stop.stop()

    def choose_files(self) -> None:
        """Open a file dialog, without waiting for it."""
        self.attachments.choose_files(self.tr("Attach files"), self.attach_files)

    def leave_conversation(self) -> None:
        """Cancel a pending send and an open file dialog: what is written next belongs to another conversation."""
        self._cancel_pending_send()
        self.attachments.close_file_dialog()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape cancels a pending send, or stops the agent."""
        if not _is_escape(event):
            super().keyPressEvent(event)
        elif self._pending_send is not None:
            self._cancel_pending_send()
        elif self._send_or_stop.is_working:
            self.stop()
        else:
            self.escape_pressed.emit()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if self.editor.canInsertFromMimeData(event.mimeData()):
            accept_drop(event)

    def dropEvent(self, event: QDropEvent) -> None:
        self.editor.insert_dropped(event.mimeData())
        accept_drop(event)

    def _attach_pasted(self, picture: "bytes | QImage") -> None:
        self.attachments.add_pasted(picture)

    def _attach_text(self, text: str) -> None:
        self.attachments.add_text(text)

    def clear_problems(self) -> None:
        """Hide the problems: the person did something about them."""
        self._problems.hide()

    def _on_changed(self) -> None:
        self._refresh()
        self.draft_timer.start()

    def _has_words(self) -> bool:
        """Return whether there is more than blanks, which alone are not sent; a long text is not copied at each key."""
        block = self.editor.document().begin()
        while block.isValid() and not block.text().strip():
            block = block.next()
        return block.isValid()

    def _refresh(self) -> None:
        has_text = self._has_words()
        notices = self.attachments.notices(self._limits, can_see=self._supports_images, has_text=has_text)
        pending = self.tr("Your message is sent when the attachments are ready. Press Esc to cancel.")
        words = "\n".join(filter(None, (self._blocked_reason, pending if self._pending_send else "", *notices)))
        is_new = bool(words) and words != self._notice.text()
        show_words(self._notice, words)
        if is_new:
            announce(self, words)
            self.notice_shown.emit(self._notice)
        empty = not (has_text or self.attachments.chips)
        self._send_or_stop.set_can_send(can_send=not (empty or self.attachments.is_preparing or self._blocked_reason))

    def _connect_signals(self) -> None:
        editor = self.editor

        def send_with_control() -> None:
            # Where Enter sends, Ctrl+Enter queues.
            self.send(later=self._send_or_stop.is_working and editor.enter_sends)

        editor.send_pressed.connect(self.send)
        editor.control_send_pressed.connect(send_with_control)
        editor.files_inserted.connect(self.attach_files)
        editor.picture_inserted.connect(self._attach_pasted)
        editor.long_text_inserted.connect(self._attach_text)
        for slot in (self._on_changed, self.clear_problems, self._cancel_pending_send):
            editor.textChanged.connect(slot)
        editor.focus_changed.connect(lambda: self.frame.mark_focus(focused=editor.hasFocus()))
        self.attach_button.clicked.connect(self.choose_files)
        self._send_or_stop.send_pressed.connect(self.send)
        self._send_or_stop.queue_pressed.connect(lambda: self.send(later=True))
        self._send_or_stop.stop_requested.connect(self.stop_requested)
        for keys in ("Ctrl+Return", "Ctrl+Enter"):
            # Inside the composer only: elsewhere Ctrl+Enter may mean something else.
            shortcut = QShortcut(self)
            set_by_name(shortcut, key=keys, context="WidgetWithChildrenShortcut")
            shortcut.activated.connect(send_with_control)

    def _build_layout(self) -> None:
        self.setAcceptDrops(True)
        set_by_name(self._problems, textInteractionFlags="TextSelectableByMouse")
        for words in (self._problems, self._notice):
            # Where the text of the message begins.
            words.setContentsMargins(SPACE_S, 0, SPACE_S, 0)
            words.hide()
        for widget in (self._problems, self._notice, self.editor, self.controls):
            self.frame.column.addWidget(widget)
        vbox(self.frame, parent=self, margins=0)
        self.setFocusProxy(self.editor)


def _is_escape(event: QKeyEvent) -> bool:
    # Late: the enumerations of this type take half a millisecond of the time until the first paint.
    from PySide6.QtGui import QKeySequence

    return event.matches(QKeySequence.StandardKey.Cancel)
