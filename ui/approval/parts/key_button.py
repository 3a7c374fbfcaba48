"""A button with a key of its own beside its words, and rows of such buttons."""

from collections.abc import Callable

from PySide6.QtCore import QEvent, QRect, QSize, Qt
from PySide6.QtGui import QColor, QKeySequence, QPainter, QPaintEvent, QResizeEvent, QShortcut
from PySide6.QtWidgets import QPushButton, QStyle, QWidget

from ui.look.controls import ButtonKind
from ui.look.parts.flow_rows import FlowRows
from ui.look.sentences import escape_mnemonics, native_shortcut, plain_tooltip
from ui.look.theme import SPACE_S, ThemeSource

MIN_ROWS_WIDTH = 160
"""Of rows of buttons, in pixels."""


class ShortcutButton(QPushButton):
    """A push button that shows its key beside its text. Enter never presses it."""

    def __init__(self, themes: ThemeSource, text: str, key: str, kind: ButtonKind) -> None:
        super().__init__(escape_mnemonics(text))
        self._themes = themes
        self._key = native_shortcut(key)
        self._kind = kind
        self._label_text = text
        self._shows_key = True
        self._disabled_reason = self._command_text = ""
        self._shortcut: QShortcut | None = None
        self.setAutoDefault(False)
        self.setAccessibleName(text)
        self.setAccessibleDescription(self._key)
        self.setProperty("kind", kind)
        self.setProperty("keyed", "true")

    def set_shortcut(self, scope: QWidget, key: str, command: Callable[[], None]) -> None:
        """Run the command for the key, within the window of `scope`, and for a click."""
        # A shortcut of the button itself would press it 100 ms later, when another call may be on the screen.
        self._shortcut = QShortcut(QKeySequence(), scope, autoRepeat=False)
        self._shortcut.setKeys(_key_sequences(key))
        self._shortcut.activated.connect(command)
        self.clicked.connect(command)

    def set_command(self, text: str, key: str) -> None:
        """Other words and another key, for the same command; a screen reader hears them behind the name."""
        self._key = native_shortcut(key)
        self._command_text = text if text != self.accessibleName() else ""
        if self._shortcut is not None:
            self._shortcut.setKeys(_key_sequences(key))
        self.setText(text)
        self._update_tooltip()

    def show_key(self, shown: bool) -> None:  # noqa: FBT001  # a setter, like Qt's own
        """Whether there is room for the key; without it, the tooltip says it."""
        if shown != self._shows_key:
            self._shows_key = shown
            self._update_tooltip()
            self.updateGeometry()
            self.update()

    def set_disabled_reason(self, why: str) -> None:
        """Say why it cannot be used; empty when it can."""
        self._disabled_reason = why
        self._update_tooltip()

    def _update_tooltip(self) -> None:
        self.setToolTip(plain_tooltip(self._disabled_reason) or ("" if self._shows_key else self._key))
        self.setAccessibleDescription(". ".join(filter(None, (self._key, self._command_text, self._disabled_reason))))

    def setText(self, text: str) -> None:
        """Other words."""
        self._label_text = text
        super().setText(escape_mnemonics(text))

    def wrap_text(self, width: int) -> None:
        """Stand in as many lines as this width wants: words of a button may not be cut."""
        super().setText(escape_mnemonics(self._label_text))
        around = QPushButton.sizeHint(self).width() - self.fontMetrics().horizontalAdvance(self._label_text)
        lines = [""]
        for word in self._label_text.split(" "):
            longer = f"{lines[-1]} {word}".strip()
            if lines[-1] and self.fontMetrics().horizontalAdvance(longer) + around > width:
                lines.append(word)
            else:
                lines[-1] = longer
        if len(lines) > 1:
            super().setText(escape_mnemonics("\n".join(lines)))

    def sizeHint(self) -> QSize:
        """Room for the text and the key."""
        if not self._shows_key:
            return super().sizeHint()
        return super().sizeHint() + QSize(self._key_width() + SPACE_S, 0)

    def minimumSizeHint(self) -> QSize:
        """The same: neither may be cut."""
        return self.sizeHint()

    def changeEvent(self, event: QEvent) -> None:
        """Its look depends on the direction, and would stay that of the first."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.LayoutDirectionChange:
            self.style().unpolish(self)
            self.style().polish(self)

    def paintEvent(self, event: QPaintEvent) -> None:
        """The button, and the key at its end."""
        super().paintEvent(event)
        if not self._shows_key:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        width, height = self._key_width(), self.fontMetrics().height()
        end = QRect(self.width() - width - SPACE_S, (self.height() - height) // 2, width, height)
        cap = QStyle.visualRect(self.layoutDirection(), self.rect(), end)
        theme = self._themes.theme
        colour = QColor(theme.on_accent if self._kind == "primary" and self.isEnabled() else theme.muted)
        painter.setPen(colour)
        font = painter.font()
        font.setPointSizeF(font.pointSizeF() * 0.82)
        painter.setFont(font)
        painter.drawText(cap, Qt.AlignmentFlag.AlignCenter, self._key)
        colour.setAlphaF(0.45)
        painter.setPen(colour)
        painter.drawRoundedRect(cap, 4, 4)

    def _key_width(self) -> int:
        return self.fontMetrics().horizontalAdvance(self._key) + 8


class ShortcutButtonRows(FlowRows):
    """Its buttons show their keys as long as that does not take too many rows; else these stand in the tooltips."""

    max_rows_with_keys = 3

    def minimumSizeHint(self) -> QSize:
        """Of hardly any width: words of buttons stand in several lines where they must."""
        return QSize(MIN_ROWS_WIDTH, super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Look again."""
        super().resizeEvent(event)
        self.update_keys()

    def update_keys(self) -> None:
        """Look again, also where a button has other words at the same width."""
        buttons = self.findChildren(ShortcutButton)
        for each in buttons:
            each.show_key(True)
        fits = self.rows_for(self.width()) <= self.max_rows_with_keys
        for each in buttons:
            each.show_key(fits)
            each.wrap_text(self.width())


def _key_sequences(key: str) -> list[QKeySequence]:
    """Two keys are called Enter."""
    return [QKeySequence(each) for each in dict.fromkeys((key, key.replace("Enter", "Return")))]
