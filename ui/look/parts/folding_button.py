"""A tool button that keeps its icon when there is no room for its words."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QToolButton, QWidget

_BETWEEN = 4
_BESIDE = Qt.ToolButtonStyle.ToolButtonTextBesideIcon
_ALONE = Qt.ToolButtonStyle.ToolButtonIconOnly


class FoldingButton(QToolButton):
    """Quiet. Without words it is still named, described and explained by its tooltip."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "quiet")
        self.setToolButtonStyle(_BESIDE)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        """With words, whether they are shown or not: else it would never unfold."""
        hint = super().sizeHint()
        return hint if self.toolButtonStyle() == _BESIDE else hint + QSize(self._words_width(), 0)

    def minimumSizeHint(self) -> QSize:
        """Without words."""
        return self.sizeHint() - QSize(self._words_width(), 0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fold or unfold."""
        super().resizeEvent(event)
        self.setToolButtonStyle(_BESIDE if self.width() >= self.sizeHint().width() else _ALONE)

    def _words_width(self) -> int:
        return self.fontMetrics().horizontalAdvance(self.text()) + _BETWEEN
