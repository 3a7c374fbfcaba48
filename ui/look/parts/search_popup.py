"""A list over the window, and a field above it that narrows the list as it is typed in."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtGui import QGuiApplication, QHideEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from ui.look.controls import IconButton, button, line
from ui.look.parts.found_rows import ResultRow
from ui.look.parts.search_panel import SearchPanel
from ui.look.theme import SPACE_S, SPACE_XS, ThemeSource


class SearchPopup(QFrame):
    """A search panel that is gone once something is chosen. `find` says what is found."""

    chosen = Signal(object)
    """The ResultRow."""
    left = Signal(str)
    """It was closed without anything being chosen; what had been typed in it."""
    refresh_requested = Signal()
    link_followed = Signal()

    def __init__(
        self,
        themes: ThemeSource,
        find: Callable[[str], Sequence[ResultRow]],
        size: QSize,
        parent: QWidget,
        *,
        name: str,
        refresh: str,
        link: str,
    ) -> None:
        """`size` is for 100 % zoom. `refresh` names the button that asks anew, `link` the way to a page of its own."""
        super().__init__(parent, Qt.WindowType.Popup)
        self._themes, self._size = themes, size
        self._was_chosen = False
        self.panel = SearchPanel(themes, find, name)
        self._refresh = IconButton(themes, "refresh", refresh)
        self._link = button(link, self._follow, "link")
        self._build(name)
        self.panel.chosen.connect(self._choose)
        self._refresh.clicked.connect(self.refresh_requested)

    @property
    def typed(self) -> str:
        """What stands in the field."""
        return self.panel.field.text()

    def set_label(self, name: str, hint: str = "") -> None:
        """What is searched here, and what the empty field shows where that is more."""
        self.panel.set_label(name, hint)

    def fill(self) -> None:
        """Something else may be found now. What is marked stays marked; out of sight nothing is."""
        self.panel.fill()

    def show_over(self, widget: QWidget) -> None:
        """Show with an empty field above this, or below where there is no room; where neither has, in the larger."""
        self._was_chosen = False
        self.setLayoutDirection(QGuiApplication.layoutDirection())
        self.panel.reset()
        screen = widget.screen().availableGeometry()
        top, bottom = (widget.mapToGlobal(QPoint(0, y)) for y in (-SPACE_XS, widget.height() + SPACE_XS))
        above, below = top.y() - screen.top(), screen.bottom() - bottom.y()
        wanted = self._size * (self._themes.zoom / 100)
        is_above = above >= min(wanted.height(), below)
        self.resize(wanted.boundedTo(QSize(screen.width(), above if is_above else below)))
        at = top - QPoint(0, self.height()) if is_above else bottom
        at.setX(max(screen.left(), min(at.x(), screen.right() - self.width())))
        self.move(at)
        self.show()
        self.panel.setFocus()

    def hideEvent(self, event: QHideEvent) -> None:
        """However it was closed."""
        super().hideEvent(event)
        if not self._was_chosen:
            self.left.emit(self.typed)

    def _choose(self, row: ResultRow) -> None:
        self._was_chosen = True
        self.hide()
        self.chosen.emit(row)

    def _follow(self) -> None:
        self.hide()
        self.link_followed.emit()

    def _build(self, name: str) -> None:
        self.setProperty("kind", "popup")
        self.setAccessibleName(name)
        foot = QHBoxLayout()
        foot.addWidget(self._link)
        foot.addStretch(1)
        foot.addWidget(self._refresh)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_S, SPACE_S, SPACE_S, SPACE_S)
        layout.setSpacing(SPACE_XS)
        layout.addWidget(self.panel, 1)
        layout.addWidget(line())
        layout.addLayout(foot)
