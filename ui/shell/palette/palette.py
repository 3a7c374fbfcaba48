"""The command palette: a field over the window that finds what can be done, where one can go, and what can answer."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QApplication, QFrame, QHBoxLayout, QVBoxLayout, QWidget

from ui.look.parts.search_panel import SearchPanel
from ui.look.theme import SPACE_L, SPACE_S, SPACE_XL, ThemeSource
from ui.shell.palette.rows import CommandGroup, CommandRow, matching_rows

PALETTE_SIZE = QSize(600, 440)
_BORDER = 1


class CommandPalette(QWidget):
    """Lies over the whole window, so that a click beside it closes it; part of the window, not a popup of its own."""

    def __init__(
        self,
        themes: ThemeSource,
        groups: Callable[[], Sequence[CommandGroup]],
        window: QWidget,
        fallback_rows: Callable[[], Sequence[CommandRow]] = list,
    ) -> None:
        super().__init__(window)
        self._themes = themes
        self._find_groups = groups
        self._fallback_rows = fallback_rows
        self._groups: Sequence[CommandGroup] = ()
        self._window = window
        self._previous_focus: QWidget | None = None
        self._panel = SearchPanel(themes, self._find_rows, self.tr("Commands"))
        self._frame = QFrame(self)
        self._build()
        self._panel.chosen.connect(self._choose)
        self._panel.results_changed.connect(self._fit)
        window.installEventFilter(self)
        self.hide()

    def open(self) -> None:
        """Show it with an empty field; the same keys again close it."""
        if self.isVisible():
            self.dismiss()
            return
        self._groups = self._find_groups()
        self._previous_focus = QApplication.focusWidget()
        self._panel.reset()
        self._fit()
        self.show()
        self.raise_()
        self._panel.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._panel.fill()

    def dismiss(self) -> None:
        """Close it and give the keyboard back to where it was."""
        before, self._previous_focus = self._previous_focus, None
        self.hide()
        if before is not None and before.window() is self._window and before.isVisible():
            before.setFocus(Qt.FocusReason.PopupFocusReason)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Esc closes; other keys that the field does not want are nobody's."""
        if event.key() == Qt.Key.Key_Escape:
            self.dismiss()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Beside the list."""
        super().mousePressEvent(event)
        self.dismiss()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Stay as large as the window."""
        if watched is self._window and event.type() == QEvent.Type.Resize and self.isVisible():
            self._fit()
        return super().eventFilter(watched, event)

    def _find_rows(self, typed: str) -> Sequence[CommandRow]:
        return matching_rows(typed, self._groups, self._fallback_rows())

    def _choose(self, row: CommandRow) -> None:
        # First the keyboard goes back: what is done may put it elsewhere.
        self.dismiss()
        if row.command is not None:
            row.command()

    def _fit(self) -> None:
        self.setGeometry(self._window.rect())
        wanted = PALETTE_SIZE * (self._themes.zoom / 100)
        around = 2 * SPACE_S + 2 * _BORDER
        # No higher than what is found.
        wanted.setHeight(self._panel.whole_height(wanted.height() - around) + around)
        self._frame.setFixedSize(wanted.boundedTo(self._window.size() - QSize(2 * SPACE_L, 2 * SPACE_XL)))

    def _build(self) -> None:
        self.setAccessibleName(self.tr("Commands"))
        self._frame.setProperty("kind", "popup")
        self._panel.set_label(self.tr("Commands"), self.tr("Find a command, a conversation or a model"))
        inside = QVBoxLayout(self._frame)
        inside.setContentsMargins(SPACE_S, SPACE_S, SPACE_S, SPACE_S)
        inside.addWidget(self._panel)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, SPACE_S, 0, 0)
        row.addWidget(self._frame, 0, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop)
