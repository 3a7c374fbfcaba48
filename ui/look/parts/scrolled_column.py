"""Parts one under the other that scroll up and down where there is no room for all of them."""

from collections.abc import Callable

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from ui.look.theme import SPACE_M

_MIN_HEIGHT = 60
"""Pixels in which two lines of text are read."""


class ScrollColumn(QScrollArea):
    """On the ground of what it stands in, and never wider than that: its parts wrap, and nothing goes sideways."""

    def __init__(
        self,
        spacing: int,
        parent: QWidget | None = None,
        *,
        trailing: int = 0,
        most: Callable[[], int] | None = None,
    ) -> None:
        """`spacing` pixels between the parts, and `trailing` ones between them and the bar, while there is one.

        With `most` it is as high as its parts, up to so many pixels, and lower where the room around it is less still;
        else it has the height that it is given.
        """
        super().__init__(parent)
        self._max_height = most
        self._trailing = trailing
        if most is not None:
            self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Maximum)
        inside = QWidget()
        self.column = QVBoxLayout(inside)
        self.column.setContentsMargins(0, 0, 0, 0)
        self.column.setSpacing(spacing)
        self.setWidget(inside)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.verticalScrollBar().rangeChanged.connect(self._keep_from_bar)
        # Once it is inside, for then it is told to fill its ground.
        inside.setAutoFillBackground(False)
        self.viewport().setAutoFillBackground(False)
        # Else a word that cannot be broken would push the ends of all lines out of sight.
        inside.setMinimumWidth(SPACE_M)

    def sizeHint(self) -> QSize:
        """As high as all parts are at the width that it has, as far as it may be so high."""
        hint = super().sizeHint()
        if self._max_height is None:
            return hint
        column, width = self.column, max(self.width(), 1)
        wanted = column.heightForWidth(width) if column.hasHeightForWidth() else column.sizeHint().height()
        return QSize(hint.width(), min(wanted, self._max_height()))

    def minimumSizeHint(self) -> QSize:
        """One line of text is lower than Qt would have such an area."""
        hint = super().minimumSizeHint()
        return hint if self._max_height is None else QSize(hint.width(), min(self.sizeHint().height(), _MIN_HEIGHT))

    def _keep_from_bar(self, _least: int, most: int) -> None:
        self.column.setContentsMargins(0, 0, self._trailing if most > 0 else 0, 0)

    def resizeEvent(self, e: QResizeEvent) -> None:
        """Another width, other lines. The height is asked for later: here it would be given in the midst of another."""
        super().resizeEvent(e)
        self.updateGeometry()

    def event(self, e: QEvent) -> bool:
        """Its parts want another height."""
        if e.type() == QEvent.Type.LayoutRequest:
            self.updateGeometry()
        return super().event(e)
