"""Small controls that every pane uses: labels that never read HTML, buttons that follow the theme."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from math import ceil
from typing import TYPE_CHECKING, Literal

from PySide6.QtCore import QObject, QPoint, QPointF, QSize
from PySide6.QtGui import QGuiApplication, QKeyEvent, QPaintEvent, QResizeEvent, QTextBlock
from PySide6.QtWidgets import (
    QApplication,
    QFrame,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QWidget,
)
from shiboken6 import isValid

from ui.style.text import escape_mnemonics, native_shortcut, plain_tooltip, strip_bidi_marks, with_keys
from ui.style.theme import ICON_SIZE, ThemeSource, icon, themed_icon

if TYPE_CHECKING:
    from PySide6.QtCore import Qt
    from PySide6.QtGui import QTextLayout
    from PySide6.QtWidgets import QMenu

LabelKind = Literal["", "title", "heading", "strong", "muted", "small", "error", "warning", "ok"]
ButtonKind = Literal["", "primary", "danger", "quiet", "link", "edge-link"]
"""The text of an "edge-link" begins where other texts do, without a box around it."""


def set_by_name(target: QObject, **values: str) -> None:
    """Set properties to values of enumerations of `Qt` by name, for example `focusPolicy="NoFocus"`.

    For the window's first paint: naming `Qt` makes Python types of all its 95 enumerations, a tenth of the time until
    then (ADR 0012). Raises ValueError for a property or value that does not exist.
    """
    for name, value in values.items():
        if not target.setProperty(name, value):
            raise ValueError(f"{name}: {value}")


def label(text: str = "", kind: LabelKind = "", *, wrap: bool = False) -> QLabel:
    """Return a label of plain text: what comes from a server or a file must never be read as HTML."""
    widget = WrappedLabel() if wrap else QLabel()
    set_by_name(widget, textFormat="PlainText")
    widget.setText(text)
    widget.setWordWrap(wrap)
    if QGuiApplication.isRightToLeft():
        # Otherwise Qt puts a text of Latin letters at the left.
        set_by_name(widget, alignment="AlignRight|AlignVCenter|AlignAbsolute")
    if kind:
        widget.setProperty("kind", kind)
    return widget


_MOST_LETTERS = 16
"""Letters of one word for which a wrapped label claims room."""


class WrappedLabel(QLabel):
    """A label that breaks between words, as Qt does; a word that is wider than the label is broken anywhere.

    Marks of the written order are drawn; `text()`, which screen readers read too, lacks them.
    """

    def __init__(self) -> None:
        super().__init__()
        self._drawn_text, self._has_marks = "", False

    def setText(self, text: str, /) -> None:
        plain = strip_bidi_marks(text)
        self._drawn_text, self._has_marks = text, plain != text
        super().setText(plain)
        # Qt does not repaint if only the marks differ.
        self.update()

    def sizeHint(self) -> QSize:
        """Return the height of a line for no text too: nothing moves when there is one."""
        return super().sizeHint() if self._drawn_text else QSize(0, self.broken(0)[1])

    def minimumSizeHint(self) -> QSize:
        hint, most = super().minimumSizeHint(), _MOST_LETTERS * self.fontMetrics().averageCharWidth()
        return QSize(min(hint.width(), most), hint.height())

    def heightForWidth(self, width: int, /) -> int:
        if self._is_drawn_by_qt(width):
            return super().heightForWidth(width)
        around = self.contentsMargins()
        room = width - around.left() - around.right()
        return self.broken(room)[1] + around.top() + around.bottom()

    def paintEvent(self, event: QPaintEvent, /) -> None:
        if self._is_drawn_by_qt(self.width()):
            super().paintEvent(event)
            return
        from PySide6.QtCore import Qt
        from PySide6.QtGui import QPainter

        area = self.contentsRect()
        layout, height = self.broken(area.width())
        painter = QPainter(self)
        painter.setPen(self.palette().color(self.foregroundRole()))
        is_centred = bool(self.alignment() & Qt.AlignmentFlag.AlignVCenter)
        above = max(0, area.height() - height) / 2 if is_centred else 0
        layout.draw(painter, QPointF(area.left(), area.top() + above))

    def _is_drawn_by_qt(self, width: int) -> bool:
        return bool(self._drawn_text) and not self._has_marks and super().minimumSizeHint().width() <= width

    def broken(self, width: int) -> "tuple[QTextLayout, int]":
        """Return the lines at this width, and the height of all of them, in pixels."""
        # Late: no label of the first paint has such words.
        from PySide6.QtGui import QTextLayout, QTextOption

        self.ensurePolished()
        option = QTextOption(self.alignment())
        option.setTextDirection(self.layoutDirection())
        option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        text = self._drawn_text.replace("\n", "\u2028")
        # With a buddy an ampersand is written twice.
        layout = QTextLayout(text.replace("&&", "&") if self.buddy() else text, self.font())
        layout.setTextOption(option)
        layout.beginLayout()
        height = 0.0
        while (line := layout.createLine()).isValid():
            line.setLineWidth(max(width, 1))
            line.setPosition(QPointF(0, height))
            height += line.height()
        layout.endLayout()
        return layout, ceil(height)


def show_words(words_label: QLabel, words: str) -> None:
    """Show these words, or hide the label if there are none."""
    words_label.setText(words)
    words_label.setVisible(bool(words))


def show_in_front(window: QWidget) -> None:
    """Show a window before all others, with the keyboard; a dialog over the window that the person is in.

    Over its parent, a dialog that waits there would hide and block it, as a modal one that the person is in would.
    """
    if window.parentWidget() is not None:
        over = QApplication.activeWindow() or window
        while not over.isModal() and (parent := over.parentWidget()) is not None:
            over = parent.window()
        # Not `winId()`, which makes a native window of each sibling, too.
        window.create()
        window.windowHandle().setTransientParent(over.windowHandle())
    window.show()
    window.raise_()
    window.activateWindow()


def open_menu_at(widget: QWidget, menu: "QMenu", y: int) -> None:
    """Open a menu at this height of a widget. It begins where the window's lines begin: at the right in a mirrored one.

    The direction of the widget does not count: pickers reverse theirs to have the arrow after their words.
    """
    x = widget.width() - menu.sizeHint().width() if QGuiApplication.isRightToLeft() else 0
    menu.popup(widget.mapToGlobal(QPoint(x, y)))


def set_style_property(widget: QWidget, name: str, value: str) -> None:
    """Set a dynamic property of the style sheet, and apply the sheet again."""
    if widget.property(name) == value:
        return
    widget.setProperty(name, value)
    widget.style().unpolish(widget)
    widget.style().polish(widget)
    widget.updateGeometry()


def _with_enter(event: QKeyEvent) -> QKeyEvent:
    """Return the event, or one of Space instead of Enter's alone."""
    # Late: naming `Qt` is slow before the first paint.
    from PySide6.QtCore import Qt

    is_enter = event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}
    if not is_enter or event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier:
        return event
    return QKeyEvent(event.type(), Qt.Key.Key_Space, event.modifiers(), "", event.isAutoRepeat())


class PushButton(QPushButton):
    """A button that Enter presses as Space does, while it has the keyboard.

    Qt does so on GNOME alone. In a dialog Enter would press the default button, whatever has the keyboard.
    """

    def keyPressEvent(self, event: QKeyEvent) -> None:
        super().keyPressEvent(_with_enter(event))

    def keyReleaseEvent(self, event: QKeyEvent) -> None:
        super().keyReleaseEvent(_with_enter(event))


class ToolButton(QToolButton):
    """A tool button that Enter presses as Space does, while it has the keyboard."""

    def keyPressEvent(self, event: QKeyEvent) -> None:
        super().keyPressEvent(_with_enter(event))

    def keyReleaseEvent(self, event: QKeyEvent) -> None:
        super().keyReleaseEvent(_with_enter(event))


def button(text: str, on_click: Callable[[], object], kind: ButtonKind = "", name: str = "") -> QPushButton:
    """Return a push button. `name` is its accessible name if the text alone says too little.

    Enter presses it only while it has the keyboard.
    """
    widget = PushButton(escape_mnemonics(text))
    widget.setAutoDefault(False)
    widget.setAccessibleName(name or text)
    if kind:
        widget.setProperty("kind", kind)

    def press() -> None:  # without the argument of `clicked`: most commands take none
        on_click()

    widget.clicked.connect(press)
    return widget


def line() -> QFrame:
    """Return a hairline."""
    frame = QFrame()
    frame.setProperty("kind", "line")
    return frame


def announce(widget: QWidget, text: str) -> None:
    """Have a screen reader say this once."""
    from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent

    if QAccessible.isActive():
        QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(widget, text))


def set_keys_tooltip(widget: QWidget, name: str, keys: str) -> None:
    """Show the name of a control and its keys, if any, as a tooltip.

    Assistive technology says the name already; without a description it says all of the tooltip, too.
    """
    widget.setToolTip(plain_tooltip(with_keys(name, keys)))
    widget.setAccessibleDescription(native_shortcut(keys) if keys else "")


class IconButton(ToolButton):
    """A square button with an icon that follows the theme; its name is also its tooltip."""

    def __init__(
        self,
        themes: ThemeSource,
        icon_name: str,
        name: str,
        kind: Literal["quiet", "primary"] = "quiet",
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._themes = themes
        self._icon_name = icon_name
        self._kind = kind
        self.set_name(name)
        self.setProperty("kind", kind)
        self.setProperty("square", "true")
        set_by_name(self, focusPolicy="TabFocus")
        themes.follow(self._update_icon)

    def set_name(self, name: str) -> None:
        """Set the accessible name and the tooltip."""
        self.setAccessibleName(name)
        self.setToolTip(plain_tooltip(name))

    def _update_icon(self) -> None:
        theme = self._themes.theme
        side = self._themes.scaled(ICON_SIZE)
        colour = theme.on_accent if self._kind == "primary" else theme.text
        self.setIcon(icon(self._icon_name, colour, theme.muted, side))
        self.setIconSize(QSize(side, side))


class TextAlignment(QObject):
    """Aligns the text of an editor with the side on which it begins; without text, that of the window.

    Qt's own plain-text editor leaves all of it, and the caret, at the left.
    """

    def __init__(self, editor: QPlainTextEdit) -> None:
        super().__init__(editor)
        self._editor = editor
        self._is_right = False
        editor.document().contentsChanged.connect(self._align)
        self._align()

    def _align(self) -> None:
        document = self._editor.document()
        is_right = self._editor.isRightToLeft() if document.isEmpty() else _begins_at_right(document.firstBlock())
        if is_right == self._is_right:
            return
        from PySide6.QtCore import Qt

        self._is_right = is_right
        option = document.defaultTextOption()
        edge = Qt.AlignmentFlag.AlignRight if is_right else Qt.AlignmentFlag.AlignLeft
        option.setAlignment(edge | Qt.AlignmentFlag.AlignAbsolute)
        document.setDefaultTextOption(option)


def _begins_at_right(block: QTextBlock) -> bool:
    if block.text().isascii():
        return False
    from PySide6.QtCore import Qt

    return block.textDirection() is Qt.LayoutDirection.RightToLeft


class ElidedLabel(QLabel):
    """One line of plain text that ends in an ellipsis when there is no room; the tooltip has all of it."""

    def __init__(self, text: str = "", mode: "Qt.TextElideMode | None" = None) -> None:
        """Without a `mode` the end is left out."""
        super().__init__()
        self._whole = ""
        self._mode = mode
        # Where the window's lines begin, whichever way its own text runs: at the other end it would touch what follows.
        edge = "AlignRight" if QGuiApplication.isRightToLeft() else "AlignLeft"
        set_by_name(self, textFormat="PlainText", alignment=f"AlignAbsolute|{edge}|AlignVCenter")
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.show_text(text)

    def show_text(self, text: str) -> None:
        """Show another text."""
        self._whole = text
        self.setToolTip(plain_tooltip(text))
        self.setAccessibleName(text)
        # Otherwise the tooltip, which may have markup, would be the description.
        self.setAccessibleDescription(text)
        self._elide()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    def _elide(self) -> None:
        # Without line breaks; a few thousand characters are wider than any screen.
        flat = " ".join(self._whole[:4000].split())
        if not flat:
            self.setText("")
            return
        # Late: the window is painted before there are titles.
        from PySide6.QtCore import Qt

        mode = Qt.TextElideMode.ElideRight if self._mode is None else self._mode
        self.setText(self.fontMetrics().elidedText(flat, mode, max(self.width(), 1)))


class ClearableField(QLineEdit):
    """A field with a clear button while it has text. Qt's own button has a picture that no theme reaches."""

    def __init__(self, themes: ThemeSource, placeholder: str = "") -> None:
        super().__init__()
        self._themes = themes
        self.setPlaceholderText(placeholder)
        self._clear = self.addAction(
            themed_icon("close", themes.theme, ICON_SIZE), QLineEdit.ActionPosition.TrailingPosition
        )
        self._clear.setText(self.tr("Clear"))
        self._clear.setVisible(False)
        self._clear.triggered.connect(self.clear)
        self.textChanged.connect(self._show_button)
        themes.changed.connect(self._apply_theme)

    def _show_button(self, text: str) -> None:
        self._clear.setVisible(bool(text))

    def _apply_theme(self) -> None:
        self._clear.setIcon(themed_icon("close", self._themes.theme, ICON_SIZE))


class FocusReturn:
    """Gives the keyboard back to a control of `area` that was disabled while it worked, unless the person moved it.

    Qt gives it to another control, in which the person did not mean to type.
    """

    def __init__(self, area: QWidget) -> None:
        self._area = area
        self._disabled: QWidget | None = None
        self._stand_in: QWidget | None = None

    @contextmanager
    def kept(self, stand_in: QWidget | None = None) -> Generator[None]:
        """Return a context in which controls are disabled or enabled; meanwhile `stand_in` has the keyboard."""
        before = self._area.window().focusWidget()
        yield
        disabled = self._disabled
        if disabled is not None and (not isValid(disabled) or disabled.isEnabled()):
            self._disabled = None
            if before is self._stand_in and isValid(disabled) and not disabled.isHidden():
                disabled.setFocus()
        elif self._area.isAncestorOf(before) and not before.isEnabled():
            if disabled is None or before is not self._stand_in:
                self._disabled = before
            if stand_in is not None and stand_in.isVisible():
                stand_in.setFocus()
            self._stand_in = self._area.window().focusWidget()
