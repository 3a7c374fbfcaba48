"""Larger widgets that more than one pane uses: collapsing buttons, wrapped choices, questions, a small editor."""

import math
from collections.abc import Iterable
from typing import Literal

from PySide6.QtCore import QEvent, QRect, QSize, Qt, Signal
from PySide6.QtGui import QIcon, QKeyEvent, QMouseEvent, QPaintEvent, QPalette, QResizeEvent, QShowEvent, QWheelEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QBoxLayout,
    QComboBox,
    QDialog,
    QFrame,
    QLabel,
    QLayout,
    QPlainTextEdit,
    QPushButton,
    QSizePolicy,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionToolButton,
    QStylePainter,
    QVBoxLayout,
    QWidget,
)

from ui.style.boxes import hbox, vbox
from ui.style.controls import TextAlignment, ToolButton, announce, button, label, set_by_name
from ui.style.layouts import FlowRows, ScrollColumn
from ui.style.text import escape_mnemonics, plain_tooltip
from ui.style.theme import SPACE_L, SPACE_M, SPACE_S, SPACE_XS, ThemeSource, icon, pixmap


class ComboBox(QComboBox):
    """A combo box whose list has rows of the style sheet's height, and which leaves the mouse wheel to the page.

    Qt's own would change its value, unseen, when a page is scrolled and it comes under the mouse.
    """

    def __init__(self) -> None:
        super().__init__()
        self.setItemDelegate(QStyledItemDelegate(self))
        # Not by the wheel.
        set_by_name(self, focusPolicy="StrongFocus")

    def wheelEvent(self, e: QWheelEvent) -> None:
        e.ignore()


class SmallTextEdit(QPlainTextEdit):
    """Enter emits `given`, Shift+Enter makes a new line. Tab and Escape go to the parent."""

    given = Signal()

    def __init__(self, name: str, lines: int) -> None:
        """`name` is the accessible name; `lines` is the height."""
        super().__init__()
        self.setAccessibleName(name)
        self.setTabChangesFocus(True)
        TextAlignment(self)
        self._lines = lines
        self.setFixedHeight(self.fontMetrics().lineSpacing() * lines + 2 * SPACE_S)

    def changeEvent(self, e: QEvent) -> None:
        super().changeEvent(e)
        if e.type() in {QEvent.Type.FontChange, QEvent.Type.StyleChange} and self.isVisible():
            self._fit()

    def showEvent(self, e: QShowEvent) -> None:
        """The style knows the frame only now."""
        super().showEvent(e)
        self._fit()

    def _fit(self) -> None:
        frame = self.height() - self.viewport().height()
        margins = 2 * math.ceil(self.document().documentMargin())
        self.setFixedHeight(self.fontMetrics().lineSpacing() * self._lines + margins + frame + SPACE_XS)

    def keyPressEvent(self, e: QKeyEvent) -> None:
        if e.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            if e.modifiers() & Qt.KeyboardModifier.ShiftModifier:
                self.insertPlainText("\n")
            else:
                self.given.emit()
        elif e.key() == Qt.Key.Key_Escape:
            e.ignore()
        else:
            super().keyPressEvent(e)


_ICON_GAP = 4
_BUTTON_ICON = 16
_ARROW = 14
"""Pixels at 100 % zoom."""
_WITH_TEXT = Qt.ToolButtonStyle.ToolButtonTextBesideIcon
_ICON_ONLY = Qt.ToolButtonStyle.ToolButtonIconOnly


class CollapsingButton(ToolButton):
    """A quiet button that drops its text and arrow if there is no room; name, description and tooltip stay."""

    def __init__(self, themes: ThemeSource, *, has_arrow: bool = True) -> None:
        super().__init__()
        self._themes = themes
        self._has_arrow = has_arrow
        self._widths: dict[str, int] = {}
        """The widths of texts in the current font, and for "" that of two spaces. Cached: layouts need them often."""
        self.setProperty("kind", "quiet")
        self.setToolButtonStyle(_WITH_TEXT)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def draw(self, name: str, colour: str) -> None:
        """Show this icon at the height of the text."""
        side = self._themes.scaled(_BUTTON_ICON)
        self.setIcon(icon(name, colour, self._themes.theme.muted, side))
        self.setIconSize(QSize(side, side))

    def sizeHint(self) -> QSize:
        """Return the width with text, shown or not: otherwise it would never expand again."""
        # The arrow takes the room of the spaces.
        arrow = self._arrow - self._spaces if self._has_arrow else 0
        more = arrow if self.toolButtonStyle() == _WITH_TEXT else self._words_width()
        return super().sizeHint() + QSize(more, 0)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint() - QSize(self._words_width(), 0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.setToolButtonStyle(_WITH_TEXT if self.width() >= self.sizeHint().width() else _ICON_ONLY)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the arrow at the end, in the colour of text, whatever colour the text has."""
        side = self._arrow
        if self.toolButtonStyle() != _WITH_TEXT or not side:
            super().paintEvent(event)
            return
        words, background = QStyleOptionToolButton(), QStyleOptionToolButton()
        self.initStyleOption(words)
        self.initStyleOption(background)
        background.text, background.icon = "", QIcon()
        words.rect = self._mirrored(self.rect().adjusted(0, 0, -side - SPACE_S, 0))
        painter = QStylePainter(self)
        painter.drawComplexControl(QStyle.ComplexControl.CC_ToolButton, background)
        painter.drawControl(QStyle.ControlElement.CE_ToolButtonLabel, words)
        arrow_box = QRect(self.width() - side - SPACE_S, (self.height() - side) // 2, side, side)
        colour = self.palette().color(QPalette.ColorRole.WindowText).name()
        ratio = 2 if self.devicePixelRatioF() > 1 else 1
        painter.drawPixmap(self._mirrored(arrow_box).topLeft(), pixmap("chevron-down", colour, side, ratio))

    def _mirrored(self, area: QRect) -> QRect:
        return QStyle.visualRect(self.layoutDirection(), self.rect(), area)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        self._widths.clear()

    def _words_width(self) -> int:
        text = self.text()
        if not text:
            return 0
        if text not in self._widths:
            self._widths[text] = self.fontMetrics().size(Qt.TextFlag.TextShowMnemonic, text).width()
        return self._widths[text] + _ICON_GAP + (self._arrow if self._has_arrow else self._spaces)

    @property
    def _spaces(self) -> int:
        """The room that QToolButton::sizeHint adds to its words, half of it on each side."""
        if "" not in self._widths:
            self._widths[""] = 2 * self.fontMetrics().horizontalAdvance(" ")
        return self._widths[""]

    @property
    def _arrow(self) -> int:
        return self._themes.scaled(_ARROW) if self._has_arrow else 0


class WrappedChoice(QWidget):
    """A check box or radio button whose label wraps. A click on the label is a click on the button."""

    def __init__(self, choice: QAbstractButton, words: str) -> None:
        super().__init__()
        self._choice = choice
        choice.setAccessibleName(words)
        choice.setProperty("beside", "true")
        self.words = words
        self._label = label(escape_mnemonics(words), wrap=True)
        # Otherwise it would be read as a text of its own, after the button that has its words already.
        self._label.setBuddy(choice)
        row = hbox(choice, self._label, parent=self, spacing=0, margins=0, grow=self._label)
        for widget in (choice, self._label):
            row.setAlignment(widget, Qt.AlignmentFlag.AlignTop)

    def describe(self, description: str) -> None:
        """Say more in a tooltip, and to assistive technology."""
        self.setToolTip(plain_tooltip(description))
        for part in (self, self._choice):
            part.setAccessibleDescription(description)

    def event(self, event: QEvent) -> bool:
        """Align again after a change of style."""
        if event.type() in {QEvent.Type.LayoutRequest, QEvent.Type.Show}:
            self._align_first_line()
        return super().event(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Take clicks around the button, which handles its own."""
        if event.button() == Qt.MouseButton.LeftButton and self.rect().contains(event.position().toPoint()):
            self._choice.setFocus(Qt.FocusReason.MouseFocusReason)
            self._choice.click()

    def _align_first_line(self) -> None:
        """Align the first line with the middle of the button."""
        above = max(self._choice.sizeHint().height() - self._label.fontMetrics().height(), 0) // 2
        self._label.setContentsMargins(0, above, 0, above)


class TextWithButtons(QWidget):
    """Buttons beside a text, if they leave it half of the width and room for its longest word; else below it."""

    def __init__(self, words: QWidget, buttons: Iterable[QWidget]) -> None:
        super().__init__()
        self._buttons = FlowRows(buttons, trailing=True)
        _BesideOrBelow(self, words, self._buttons)

    def minimumSizeHint(self) -> QSize:
        """Return the width of the widest button: text wraps."""
        return QSize(self._buttons.minimumSizeHint().width(), super().minimumSizeHint().height())


class _BesideOrBelow(QBoxLayout):
    """Buttons beside words or below them. Its height depends on its width alone.

    Otherwise a scroll bar could appear with one height and disappear with the other, without end.
    """

    def __init__(self, parent: QWidget, words: QWidget, buttons: QWidget) -> None:
        super().__init__(QBoxLayout.Direction.LeftToRight, parent)
        self._words, self._buttons = words, buttons
        self.setSpacing(SPACE_S)
        self.setContentsMargins(0, 0, 0, 0)
        self.addWidget(words, 1)
        self.addWidget(buttons)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int, /) -> int:
        parts = [part for part in (self._words, self._buttons) if not part.isHidden()]
        if len(parts) < 2 or self._is_tight(width):
            return sum(_height_for(part, width) for part in parts) + SPACE_S * max(len(parts) - 1, 0)
        buttons_width = self._buttons.sizeHint().width()
        return max(_height_for(self._words, width - buttons_width - SPACE_S), _height_for(self._buttons, buttons_width))

    def minimumHeightForWidth(self, width: int, /) -> int:
        return self.heightForWidth(width)

    def setGeometry(self, rect: QRect, /) -> None:
        across, down = QBoxLayout.Direction.LeftToRight, QBoxLayout.Direction.TopToBottom
        direction = down if self._is_tight(rect.width()) else across
        if self.direction() is not direction:
            self.setDirection(direction)
        super().setGeometry(rect)

    def _is_tight(self, width: int) -> bool:
        buttons_width = self._buttons.sizeHint().width()
        return max(buttons_width, self._words.minimumSizeHint().width() + SPACE_S) + buttons_width > width


def _height_for(part: QWidget, width: int) -> int:
    return part.heightForWidth(width) if part.hasHeightForWidth() else part.sizeHint().height()


_QUESTION_WIDTH = 580
_QUESTION_ICON = 32
"""Pixels at 100 % zoom."""


def lay_out_dialog(dialog: QDialog, title: str, *parts: QWidget | QLayout, grow: QWidget | None = None) -> QVBoxLayout:
    """Name a dialog, and put the parts under its title; `grow` takes the height that is left over."""
    dialog.setWindowTitle(title)
    dialog.setAccessibleName(title)
    heading = label(title, "heading", wrap=True)
    return vbox(heading, *parts, parent=dialog, spacing=SPACE_M, margins=SPACE_L, grow=grow)


class QuestionBox(QDialog):
    """A question that is not modal: show it with `open()`. Text that does not fit scrolls, and buttons wrap.

    Qt's own message box goes beyond a small screen with large text, and cuts the text of its buttons.
    """

    answered = Signal(str)
    """The answer; "" if the question was closed without one."""

    def __init__(self, themes: ThemeSource, title: str, question: str, words: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._themes = themes
        self._answer = ""
        self._buttons: list[QPushButton] = []
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(title)
        self.setAccessibleName(question)
        self.setAccessibleDescription(words)
        self._scroll = ScrollColumn(SPACE_M, trailing=SPACE_M)
        self._icon = QLabel()
        self._draw_icon()
        themes.changed.connect(self._draw_icon)
        heading = label(question, "heading", wrap=True)
        head = hbox(self._icon, heading, spacing=SPACE_M, grow=heading)
        head.setAlignment(self._icon, Qt.AlignmentFlag.AlignTop)
        self._scroll.column.addLayout(head)
        self._scroll.column.addWidget(label(words, wrap=True))
        self._scroll.column.addStretch(1)
        self._scroll.setAccessibleName(question)
        self._scroll.verticalScrollBar().rangeChanged.connect(self._update_focus_policy)
        self.finished.connect(lambda: self.answered.emit(self._answer))

    def add_answer(self, text: str, answer: str, kind: Literal["", "primary", "danger"] = "") -> QPushButton:
        """Add a button. The first one has the focus: it must lose nothing, like Escape."""
        answer_button = button(text, lambda: self.answer_with(answer), kind)
        answer_button.setAutoDefault(True)
        answer_button.setDefault(not self._buttons)
        self._buttons.append(answer_button)
        return answer_button

    def answer_with(self, answer: str) -> None:
        """Answer as the button would. The question is rejected with the answer ""."""
        self._answer = answer
        self.done(self.DialogCode.Accepted if answer else self.DialogCode.Rejected)

    def open(self) -> None:
        """Show it over its window, as large as its text, or as the screen has room."""
        self._foot = FlowRows(self._buttons, trailing=True)
        vbox(self._scroll, self._foot, parent=self, spacing=SPACE_L, margins=SPACE_L, grow=self._scroll)
        self._fit()
        # Queued: after the new sizes of all texts.
        self._themes.changed.connect(self._fit, Qt.ConnectionType.QueuedConnection)
        super().open()
        self._buttons[0].setFocus()

    def _fit(self) -> None:
        room = self.screen().availableSize()
        width = min(self._themes.scaled(_QUESTION_WIDTH), room.width())
        content_width = width - 2 * SPACE_L
        content_height = self._scroll.column.heightForWidth(content_width) + self._foot.heightForWidth(content_width)
        self.resize(width, min(content_height + 3 * SPACE_L, room.height() - 2 * SPACE_L))

    def _draw_icon(self) -> None:
        side = self._themes.scaled(_QUESTION_ICON)
        self._icon.setPixmap(pixmap("warning", self._themes.theme.warning, side, 2))

    def _update_focus_policy(self, _least: int, most: int) -> None:
        # Keys must be able to scroll the text.
        self._scroll.setFocusPolicy(Qt.FocusPolicy.TabFocus if most > 0 else Qt.FocusPolicy.NoFocus)


class ConfirmBar(QFrame):
    """A question with a button that keeps everything and one that does not. Escape keeps it. Hidden until it asks."""

    confirmed = Signal()
    declined = Signal()

    def __init__(self, keep: tuple[str, str], confirm: tuple[str, str]) -> None:
        """`keep` and `confirm` are the text and the accessible name of the two buttons."""
        super().__init__()
        self.setProperty("kind", "banner")
        self.setProperty("level", "notice")
        self._words = label(wrap=True)
        self._keep = button(keep[0], self.declined.emit, name=keep[1])
        confirm_button = button(confirm[0], self.confirmed.emit, "danger", confirm[1])
        hbox(TextWithButtons(self._words, (self._keep, confirm_button)), parent=self, margins=SPACE_S)
        self.hide()

    def ask(self, words: str) -> None:
        """Show this question."""
        self._words.setText(words)
        self.show()
        announce(self, words)
        self._keep.setFocus()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.declined.emit()
        else:
            super().keyPressEvent(event)
