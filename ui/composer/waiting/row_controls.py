"""What stands beside the words of a message that waits: when it is sent, and what can be done with it."""

from PySide6.QtCore import QPoint, Signal
from PySide6.QtWidgets import QHBoxLayout, QMenu, QWidget

from ui.bridge.conduct.conduct import WaitingMessage
from ui.look.controls import IconButton, button, label
from ui.look.sentences import native_shortcut
from ui.look.theme import SPACE_XS, ThemeSource


class QueuedMessageControls(QWidget):
    """Folded, it says in a word when the message is sent, and the other buttons are in a menu."""

    when_pressed = Signal()
    moved = Signal(int)
    """By so many places."""
    edit_pressed = Signal()
    remove_pressed = Signal()

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._is_soon = True
        self._is_folded = False
        self._pictures = label(kind="small")
        self._when = button("", self.when_pressed.emit, "quiet")
        self._up = IconButton(themes, "chevron-up", self.tr("Send earlier"))
        self._down = IconButton(themes, "chevron-down", self.tr("Send later"))
        self._edit = IconButton(themes, "pencil", self.tr("Edit"))
        self._remove = IconButton(themes, "trash", self.tr("Remove"))
        self._buttons = (self._up, self._down, self._edit, self._remove)
        self._more = IconButton(themes, "more", self.tr("Change this message"))
        self._menu = QMenu(self)
        self._menu.setAccessibleName(self._more.accessibleName())
        for each, keys in zip(self._buttons, ("Alt+Up", "Alt+Down", "Enter", "Del"), strict=True):
            self._menu.addAction(f"{each.accessibleName()} ({keys})", each.click)
        self._build_layout()

    @property
    def is_folded(self) -> bool:
        """Whether the buttons are in the menu."""
        return self._is_folded

    def show_message(self, message: WaitingMessage, *, is_first: bool, is_last: bool) -> None:
        """Of this message, and whether it can go up or down."""
        self._is_soon = message.when == "soon"
        when, other = self.when_text, self._when_name(soon=not self._is_soon)
        self._when.setAccessibleName(self.tr("Sent: {0}. Press to change it to: {1}").format(when, other))
        self._when.setToolTip(self.tr("Change to: {0}").format(other) + f" ({native_shortcut('Ctrl+Enter')})")
        # Also where none are said, for the width of the row.
        self._pictures.setText(self.tr("Pictures: {0}").format(message.pictures))
        self._pictures.setVisible(bool(message.pictures))
        self._up.setEnabled(not is_first)
        self._down.setEnabled(not is_last)
        for action, each in zip(self._menu.actions(), self._buttons, strict=True):
            action.setEnabled(each.isEnabled())
        self.fold(folded=self._is_folded)

    @property
    def when_text(self) -> str:
        """When the message is sent."""
        return self._when_name(soon=self._is_soon)

    @property
    def pictures_text(self) -> str:
        """How many pictures it has; nothing without any."""
        return "" if self._pictures.isHidden() else self._pictures.text()

    def fold(self, *, folded: bool) -> None:
        """Fold, or unfold."""
        self._is_folded = folded
        self._when.setText(self._when_name(soon=self._is_soon, short=folded))
        for each in self._buttons:
            each.setVisible(not folded)
        self._more.setVisible(folded)

    def preferred_width(self, *, folded: bool) -> int:
        """Pixels that it wants, folded or not: as many in each row, so that the rows of a list look alike."""
        words = [self._when_name(soon=soon, short=folded) for soon in (True, False)]
        self._when.ensurePolished()
        measured = self._when.fontMetrics()
        longest = max(measured.horizontalAdvance(each) for each in words)
        when = self._when.sizeHint().width() - measured.horizontalAdvance(self._when.text()) + longest
        widths = [self._pictures.sizeHint().width(), when]
        widths += [each.sizeHint().width() for each in ((self._more,) if folded else self._buttons)]
        return sum(widths) + SPACE_XS * (len(widths) - 1)

    def _when_name(self, *, soon: bool, short: bool = False) -> str:
        if short:
            return self.tr("Soon") if soon else self.tr("When done")
        return self.tr("As soon as possible") if soon else self.tr("When the agent is done")

    def _open_menu(self) -> None:
        self._menu.popup(self._more.mapToGlobal(QPoint(0, -self._menu.sizeHint().height())))

    def _build_layout(self) -> None:
        self._up.clicked.connect(lambda: self.moved.emit(-1))
        self._down.clicked.connect(lambda: self.moved.emit(1))
        self._edit.clicked.connect(self.edit_pressed)
        self._remove.clicked.connect(self.remove_pressed)
        self._more.clicked.connect(self._open_menu)
        self._more.hide()
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_XS)
        layout.addStretch(1)
        for each in (self._pictures, self._when, *self._buttons, self._more):
            layout.addWidget(each)
