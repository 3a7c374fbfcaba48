"""A tool button that keeps its icon when there is no room for its words, and has an arrow if it opens a menu."""

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QIcon, QPaintEvent, QPalette, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QStyle, QStyleOptionToolButton, QStylePainter, QToolButton, QWidget

from ui.look.icons import icon, pixmap
from ui.look.theme import SPACE_S, ThemeSource

_ICON_GAP = 4
_BUTTON_ICON = 16
_ARROW = 14
"""Pixels at 100 % zoom."""
_WITH_TEXT = Qt.ToolButtonStyle.ToolButtonTextBesideIcon
_ICON_ONLY = Qt.ToolButtonStyle.ToolButtonIconOnly


class CollapsingButton(QToolButton):
    """Quiet. Without words and arrow it is still named, described and explained by its tooltip."""

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None, *, has_arrow: bool = True) -> None:
        super().__init__(parent)
        self._themes = themes
        self._has_arrow = has_arrow
        self.setProperty("kind", "quiet")
        self.setToolButtonStyle(_WITH_TEXT)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def draw(self, name: str, colour: str) -> None:
        """Show this icon, as large as the text."""
        side = self._scaled(_BUTTON_ICON)
        self.setIcon(icon(name, colour, self._themes.theme.muted, side))
        self.setIconSize(QSize(side, side))

    def sizeHint(self) -> QSize:
        """With words, whether they are shown or not: else it would never unfold."""
        more = self._arrow if self.toolButtonStyle() == _WITH_TEXT else self._words_width()
        return super().sizeHint() + QSize(more, 0)

    def minimumSizeHint(self) -> QSize:
        """Without words."""
        return self.sizeHint() - QSize(self._words_width(), 0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fold or unfold."""
        super().resizeEvent(event)
        self.setToolButtonStyle(_WITH_TEXT if self.width() >= self.sizeHint().width() else _ICON_ONLY)

    def paintEvent(self, event: QPaintEvent) -> None:
        """The arrow stands at the end, in the colour of text, whatever colour the words have."""
        side = self._arrow
        if self.toolButtonStyle() != _WITH_TEXT or not side:
            super().paintEvent(event)
            return
        whole, ground = QStyleOptionToolButton(), QStyleOptionToolButton()
        self.initStyleOption(whole)
        self.initStyleOption(ground)
        ground.text, ground.icon = "", QIcon()
        whole.rect = self._mirrored(self.rect().adjusted(0, 0, -side - SPACE_S, 0))
        painter = QStylePainter(self)
        painter.drawComplexControl(QStyle.ComplexControl.CC_ToolButton, ground)
        painter.drawControl(QStyle.ControlElement.CE_ToolButtonLabel, whole)
        place = QRect(self.width() - side - SPACE_S, (self.height() - side) // 2, side, side)
        colour = self.palette().color(QPalette.ColorRole.WindowText).name()
        ratio = 2 if self.devicePixelRatioF() > 1 else 1
        painter.drawPixmap(self._mirrored(place).topLeft(), pixmap("chevron-down", colour, side, ratio))

    def _mirrored(self, area: QRect) -> QRect:
        return QStyle.visualRect(self.layoutDirection(), self.rect(), area)

    def _words_width(self) -> int:
        if not self.text():
            return 0
        # Qt has a space on each side of the words (QToolButton::sizeHint).
        letters = self.fontMetrics()
        words = letters.size(Qt.TextFlag.TextShowMnemonic, self.text()).width() + 2 * letters.horizontalAdvance(" ")
        return words + _ICON_GAP + self._arrow

    @property
    def _arrow(self) -> int:
        return self._scaled(_ARROW) if self._has_arrow else 0

    def _scaled(self, pixels: int) -> int:
        return round(pixels * self._themes.zoom / 100)
