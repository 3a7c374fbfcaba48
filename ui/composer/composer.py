"""The composer: the message being written, what is attached, and Send or Stop in one place."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QKeyEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from ui.composer.attachments import Attachments
from ui.composer.controls.control_rows import ControlRows
from ui.composer.message_editor import MessageEditor, is_too_long
from ui.composer.offers.attached import WordsOf
from ui.composer.offers.chip_row import Attached
from ui.composer.picture_remarks import picture_remarks
from ui.composer.pictures import SUFFIXES, Intake
from ui.composer.send_or_stop import SendOrStop
from ui.look.controls import IconButton, announce, label, set_kind
from ui.look.sentences import shown_keys, spoken
from ui.look.theme import SPACE_S, SPACE_XS, ThemeSource

if TYPE_CHECKING:
    from PySide6.QtWidgets import QFileDialog

    from desktop_agent.vocabulary.errors import Sentence
    from desktop_agent.vocabulary.requests import PictureLimits

DRAFT_PAUSE_MS = 400


class _Frame(QFrame):
    """Around the message and its controls; nearer to them where the person wants it compact."""

    def __init__(self, themes: ThemeSource, *, is_focused: bool) -> None:
        super().__init__()
        self._themes = themes
        self.setProperty("kind", "composer")
        if is_focused:
            # Marked later it would be polished again, for which Python makes all enumerations of styles.
            self.setProperty("focused", "true")
        self.column = QVBoxLayout(self)
        self.column.setSpacing(SPACE_XS)
        themes.changed.connect(self._dress)
        self._dress()

    def mark_focus(self, *, focused: bool) -> None:
        """Show whether the editor has the keyboard."""
        set_kind(self, "focused", "true" if focused else "false")

    def _dress(self) -> None:
        room = self._themes.space(SPACE_S)
        self.column.setContentsMargins(SPACE_S, room, SPACE_S, room)


class Composer(QWidget):
    """Emits what the person wants; the shell connects it to the conversation."""

    send_requested = Signal(str, list)
    """The text and what is Attached. The composer is empty by then."""
    later_requested = Signal(str, list)
    """The same, for when the agent is done."""
    stop_requested = Signal()
    edit_last_requested = Signal()
    draft_changed = Signal()
    """A moment after the last change: read `draft()`."""
    said = Signal(QWidget)
    """What says something that was not said before: it is to be seen."""
    draft_replaced = Signal()
    """Not by the person: another conversation's stands there."""

    def __init__(
        self, themes: ThemeSource, intake: Intake, parent: QWidget | None = None, *, opens_focused: bool = False
    ) -> None:
        """`opens_focused`: it will have the keyboard when it is shown, and looks so from its first paint on."""
        super().__init__(parent)
        self._can_see: bool | None = None
        self._limits: PictureLimits | None = None
        self._held = ""
        self._choosing: QFileDialog | None = None
        self._wish: Literal["now", "later"] | None = None
        """It is to be sent when it is ready, and when."""
        self._may_send: Callable[[str, Sequence[Attached]], bool] = lambda _text, _attached: True
        self.frame = _Frame(themes, is_focused=opens_focused)
        self.attachments = Attachments(themes, intake)
        self._editor = MessageEditor(themes)
        self._notice = label(kind="warning", wrap=True)
        self._problems = label(kind="error", wrap=True)
        self._attach = IconButton(themes, "attach", self.tr("Attach image"))
        self._send_or_stop = SendOrStop(themes)
        self._controls = ControlRows(self._send_or_stop, self._send_or_stop.most_width)
        self._draft_pause = QTimer(self, singleShot=True, interval=DRAFT_PAUSE_MS)
        self._build()
        self._connect()
        self._refresh()

    @property
    def editor(self) -> MessageEditor:
        """Where the focus belongs."""
        return self._editor

    def draft(self) -> tuple[str, list[Attached]]:
        """What is being written: what is typed, and what goes with it."""
        text = self._editor.toPlainText()
        # Whose words stand in the text is known on while there is none: what was taken out can be put back.
        has_words = bool(text or self.attachments.texts)
        return text, [each for each in self.attachments.attached if has_words or not isinstance(each, WordsOf)]

    def set_draft(self, text: str, attached: Sequence[Attached] = ()) -> None:
        """Replace what is being written. A text too long for the editor becomes an attachment."""
        self.attachments.clear()
        self._forget_problems()
        if is_too_long(text):
            self._editor.clear()
            self.attachments.add_text(text)
        else:
            self._editor.setPlainText(text)
            self._editor.moveCursor(self._editor.textCursor().MoveOperation.End)
        self.attachments.add_ready(attached)
        self._draft_pause.stop()
        self.draft_replaced.emit()
        if not self._notice.isHidden():
            self.said.emit(self._notice)

    def give_back(self, text: str, attached: Sequence[Attached] = ()) -> None:
        """A message that was not delivered stands here again, after an empty line where something is written."""
        written = self._editor.toPlainText()
        gap = "\n\n" if text and written.strip() else ""
        if is_too_long(f"{written}{gap}{text}"):
            self.attachments.add_text(text)
        else:
            # Who is writing goes on writing where they are.
            place = self._editor.textCursor()
            at = place.position()
            end = self._editor.textCursor()
            end.movePosition(end.MoveOperation.End)
            end.insertText(gap + text)
            place.setPosition(at if gap else end.position())
            self._editor.setTextCursor(place)
        if attached:
            self.attachments.add_ready(attached)

    def add_control(self, control: QWidget) -> None:
        """Put a picker under the editor. Where room gets scarce, those that were put there first keep their words."""
        self._controls.add(control)

    def show_problem(self, sentence: "Sentence", remedy: "Sentence | None" = None) -> None:
        """Say what did not work, under what was said before, until the person goes on writing or sends."""
        from desktop_agent.vocabulary.errors import with_remedy

        words = spoken(sentence if remedy is None else with_remedy(sentence, remedy))
        before = self._problems.text().split("\n") if self._problems.text() else []
        self._problems.setText("\n".join(dict.fromkeys([*before, words])))
        self._problems.show()
        announce(self, words)
        self.said.emit(self._problems)

    def add_notice(self, notice: QWidget) -> None:
        """Put something to be known about the message over the editor."""
        self.frame.column.insertWidget(self.frame.column.indexOf(self._editor), notice)

    def attach_files(self, paths: Sequence[Path | str]) -> None:
        """Attach picture files."""
        self._forget_problems()
        self.attachments.add_files([Path(path) for path in paths])

    def set_working(self, working: bool) -> None:  # noqa: FBT001  # a slot
        """Whether the agent works: Stop stands where Send was. Enter still sends, into the queue."""
        had_focus = self._send_or_stop.has_focus
        self._send_or_stop.show_working(working=working)
        if had_focus:
            self._editor.setFocus()

    def set_held(self, why: "Sentence | None") -> None:
        """Whether another process works in the conversation, and what to say about it: then nothing can be sent.

        One can go on writing: it is kept, and can be sent when the other process is gone.
        """
        self._held = "" if why is None else spoken(why)
        self._controls.enable(why is None, self._attach)
        self._send_or_stop.set_held(self._held)
        self._editor.setAccessibleDescription(self._held)
        self._refresh()

    def set_enter_sends(self, enter_sends: bool) -> None:  # noqa: FBT001  # a slot
        """Whether Enter sends."""
        self._editor.set_enter_sends(enter_sends)
        self._send_or_stop.set_enter_sends(enter_sends=enter_sends)

    def set_can_see(
        self,
        can_see: bool | None,  # noqa: FBT001  # a slot
        limits: "PictureLimits | None" = None,
    ) -> None:
        """Whether the model reads images, None being not known; and what its server takes of them."""
        self._can_see, self._limits = can_see, limits
        self._refresh()

    def ask_before_sending(self, may_send: Callable[[str, Sequence[Attached]], bool]) -> None:
        """Have this asked about each message; where it says no, the message stays as it stands."""
        self._may_send = may_send

    def send(self, *, later: bool = False) -> None:
        """Hand the message on and begin a new one. Nothing happens while it is empty.

        While something is on its way in, it is sent when that has come. Why nothing can be sent is said once more.

        `later`: for when the agent is done.
        """
        if self._held:
            announce(self, self._held)
            return
        if self.attachments.is_preparing:
            self._wish = "later" if later else "now"
            self._refresh()
            return
        text, attached = self.draft()
        if not (text.strip() or self.attachments.chips) or not self._may_send(text, attached):
            return
        self._editor.clear()
        self.attachments.clear()
        self._forget_problems()
        (self.later_requested if later else self.send_requested).emit(text, attached)

    def _send_when_ready(self) -> None:
        if self._wish is None or self.attachments.is_preparing:
            return
        wish, self._wish = self._wish, None
        self._refresh()
        self.send(later=wish == "later")

    def _forget_wish(self) -> None:
        if self._wish is not None:
            self._wish = None
            self._refresh()

    def stop(self) -> None:
        """Stop what is under way; nothing happens where nothing is."""
        self._send_or_stop.stop()

    def choose_files(self) -> None:
        """Ask for picture files, without waiting."""
        from PySide6.QtWidgets import QFileDialog

        dialog = self._choosing = QFileDialog(self, self.tr("Attach image"))
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
        dialog.setNameFilters([self.tr("Pictures") + f" (*{' *'.join(SUFFIXES)})", self.tr("All files") + " (*)"])
        dialog.filesSelected.connect(self.attach_files)
        dialog.open()

    def leave(self) -> None:
        """What is written from now on belongs elsewhere: pictures that are being chosen would come to that."""
        from shiboken6 import isValid

        self._forget_wish()
        choosing, self._choosing = self._choosing, None
        if choosing is not None and isValid(choosing):
            choosing.close()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape takes back what is to be sent when it is ready, or stops."""
        if event.key() == Qt.Key.Key_Escape and self._wish is not None:
            self._forget_wish()
        elif event.key() == Qt.Key.Key_Escape and self._send_or_stop.is_working:
            self.stop()
        else:
            super().keyPressEvent(event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Whatever the editor takes can be dropped anywhere on the composer."""
        if self._editor.canInsertFromMimeData(event.mimeData()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """The same."""
        self._editor.insertFromMimeData(event.mimeData())
        event.acceptProposedAction()

    def _forget_problems(self) -> None:
        self._problems.clear()
        self._problems.hide()

    def _changed(self) -> None:
        self._refresh()
        self._draft_pause.start()

    def _refresh(self) -> None:
        pictures = self.attachments.pictures
        has_any = self.attachments.has_pictures
        remarks = picture_remarks(pictures, self._limits, can_see=self._can_see) if has_any else []
        first = [self.tr("It is sent when what you attached is ready. Escape takes that back.")] if self._wish else []
        words = "\n".join([*([self._held] if self._held else []), *first, *remarks])
        is_new = bool(words) and words != self._notice.text()
        self._notice.setText(words)
        self._notice.setVisible(bool(words))
        if is_new:
            announce(self, words)
            self.said.emit(self._notice)
        empty = self._editor.document().isEmpty() and not self.attachments.chips
        self._send_or_stop.set_can_send(can_send=not (empty or self.attachments.is_preparing or self._held))

    def _connect(self) -> None:
        editor, attachments = self._editor, self.attachments

        def send_with_control() -> None:
            # Where Enter sends already, Ctrl says when: at the end of what is under way.
            self.send(later=self._send_or_stop.is_working and editor.enter_sends)

        editor.send_pressed.connect(self.send)
        editor.control_send_pressed.connect(send_with_control)
        editor.edit_last_pressed.connect(self.edit_last_requested)
        editor.files_given.connect(self.attach_files)
        editor.picture_given.connect(attachments.add_pasted)
        editor.long_text_given.connect(attachments.add_text)
        editor.textChanged.connect(self._changed)
        editor.focus_changed.connect(lambda: self.frame.mark_focus(focused=editor.hasFocus()))
        attachments.changed.connect(self._changed)
        editor.textChanged.connect(self._forget_problems)
        editor.textChanged.connect(self._forget_wish)
        attachments.lost.connect(self._forget_wish)
        # Later: what came is attached a moment after it has come.
        attachments.changed.connect(self._send_when_ready, Qt.ConnectionType.QueuedConnection)
        attachments.problem.connect(self.show_problem)
        self._attach.clicked.connect(self.choose_files)
        self._send_or_stop.send_pressed.connect(self.send)
        self._send_or_stop.later_pressed.connect(lambda: self.send(later=True))
        self._send_or_stop.stop_requested.connect(self.stop_requested)
        self._draft_pause.timeout.connect(self.draft_changed)
        for keys in ("Ctrl+Return", "Ctrl+Enter"):
            # Inside the composer only: elsewhere Ctrl+Enter may mean something else.
            QShortcut(
                QKeySequence(keys), self, context=Qt.ShortcutContext.WidgetWithChildrenShortcut
            ).activated.connect(send_with_control)

    def _build(self) -> None:
        self.setAcceptDrops(True)
        self._attach.setToolTip(self.tr("Attach image") + f" ({shown_keys('Ctrl+Shift+A')})")
        # Where the text of the message begins.
        self._notice.setContentsMargins(SPACE_S, 0, SPACE_S, 0)
        self._controls.add(self._attach)
        inside = self.frame.column
        self._problems.setContentsMargins(SPACE_S, 0, SPACE_S, 0)
        self._problems.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._problems.hide()
        for each in (self.attachments, self._problems, self._notice, self._editor, self._controls):
            inside.addWidget(each)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.frame)
        self.setFocusProxy(self._editor)
