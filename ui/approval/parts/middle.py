"""The part of the dialog between its edge and its buttons: parts one under the other, which scroll together."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from PySide6.QtCore import QEvent, Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from ui.look.theme import SPACE_M


class Shrinkable(Protocol):
    """Something that scrolls inside, or is drawn smaller, where there is less room."""

    @property
    def spare_height(self) -> int:
        """Pixels of its height that it can do without."""
        ...

    @property
    def shrunk_height(self) -> int:
        """Pixels that it does without now."""
        ...

    def shrink_by(self, pixels: int) -> None:
        """Do without so many."""
        ...

    def isVisible(self) -> bool:
        """Qt's own."""
        ...


class ShrinkingScrollArea(QScrollArea):
    """What `givers` can do without is taken from them, the first first; what then still does not fit scrolls."""

    needs_changed = Signal()
    """A part wants another height."""

    def __init__(self, parts: Iterable[QWidget], givers: Sequence[Shrinkable], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._shrinkables = givers
        self._pending_reveal: list[QWidget] = []
        self._content = _Content()
        # Not at once: the area is in the middle of making its own size.
        self._shrink_timer = QTimer(self, singleShot=True, interval=0)
        self._shrink_timer.timeout.connect(self._shrink_to_fit)
        self._content.layout_requested.connect(self._shrink_timer.start)
        self._layout = QVBoxLayout(self._content)
        # Room for the ring of what has the focus, and for the bar.
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(SPACE_M)
        for each in parts:
            self._layout.addWidget(each)
        self._layout.addStretch(1)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setWidget(self._content)
        self._content.setAutoFillBackground(False)
        self.viewport().setAutoFillBackground(False)

    def preferred_height(self, width: int) -> int:
        """Pixels that all parts want at this width, with nothing given."""
        self._layout.activate()
        return self._layout.totalHeightForWidth(width) + sum(each.shrunk_height for each in self._visible_shrinkables())

    def resizeEvent(self, e: QResizeEvent) -> None:
        """Another height, another share."""
        super().resizeEvent(e)
        self._shrink_timer.start()

    def scroll_to_top(self) -> None:
        """Show the beginning."""
        self.verticalScrollBar().setValue(0)

    def reveal(self, parts: list[QWidget]) -> None:
        """Scroll these into sight, the last one above all, once they have their places."""
        self._pending_reveal = parts
        self.needs_changed.emit()

    def reveal_pending(self) -> None:
        """The places are known."""
        for each in self._pending_reveal:
            self.ensureWidgetVisible(each, 0, 0)
        self._pending_reveal = []

    def _visible_shrinkables(self) -> list[Shrinkable]:
        return [each for each in self._shrinkables if each.isVisible()]

    def _shrink_to_fit(self) -> None:
        missing = self.preferred_height(self.viewport().width()) - self.viewport().height()
        for each in self._visible_shrinkables():
            given = max(0, min(missing, each.spare_height))
            missing -= given
            if given != each.shrunk_height:
                each.shrink_by(given)
        self.needs_changed.emit()


class _Content(QWidget):
    layout_requested = Signal()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self.layout_requested.emit()
        return super().event(event)
