"""The log of one server, live."""

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QKeySequence, QShortcut
from PySide6.QtWidgets import QAbstractItemView, QHBoxLayout, QListView, QVBoxLayout, QWidget

from desktop_agent.vocabulary.mcp.log import McpLogLine
from ui.look.controls import ComboBox, announce, button, label
from ui.look.theme import SPACE_S, ThemeSource
from ui.preferences.tool_servers.log.log_delegate import LogDelegate
from ui.preferences.tool_servers.log.log_rows import LogFilter, LogModel, format_line
from ui.preferences.tool_servers.whole_text import ReadOnlyText

LOG_HEIGHT = 220


class LogPane(QWidget):
    """Follows the end until the person scrolls up, and again from the end on."""

    def __init__(self, themes: ThemeSource, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.model = LogModel(self)
        self._is_following = True
        self._dropped = 0
        self._list = QListView()
        self._list.setAccessibleName(self.tr("Log of {0}").format(title))
        self._list.setModel(self.model)
        self._list.setItemDelegate(LogDelegate(themes, self._list))
        self._list.setUniformItemSizes(True)
        self._list.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self._list.setFixedHeight(LOG_HEIGHT)
        self._list.selectionModel().selectionChanged.connect(self._show_selected_line)
        bar = self._list.verticalScrollBar()
        bar.valueChanged.connect(self._on_scrolled)
        self._levels = ComboBox()
        self._levels.setAccessibleName(self.tr("Which lines are shown"))
        for shown, words in self._filter_names().items():
            self._levels.addItem(words, shown.value)
        self._levels.activated.connect(self._apply_filter)
        self._copy = button(self.tr("Copy"), self.copy, name=self.tr("Copy the log of {0}").format(title))
        copying = QShortcut(QKeySequence.StandardKey.Copy, self._list)
        copying.setContext(Qt.ShortcutContext.WidgetShortcut)
        copying.activated.connect(self.copy)
        self._empty_note = label(self.tr("It said nothing yet."), "muted")
        self._selected_line = ReadOnlyText("", self.tr("The whole line"))
        self._build_layout()
        self.show_lines(())

    def show_lines(self, lines: Sequence[McpLogLine]) -> None:
        """These and no others."""
        self.model.show_lines(lines)
        self._scroll_to_end()

    def add_lines(self, lines: Sequence[McpLogLine]) -> None:
        """These came."""
        bar = self._list.verticalScrollBar()
        before, follows = bar.value(), self._is_following
        self.model.add(lines)
        gone, self._dropped = self.model.dropped - self._dropped, self.model.dropped
        self._is_following = follows
        if not follows:
            # What is read stays where it is, though lines go above it.
            self._list.doItemsLayout()
            bar.setValue(max(0, before - gone))
            self._is_following = False
        self._scroll_to_end()

    def copy(self) -> None:
        """The chosen lines, or else all that are shown."""
        chosen = [each.row() for each in self._list.selectionModel().selectedIndexes()]
        lines = self.model.lines(chosen or None)
        if lines:
            QGuiApplication.clipboard().setText("\n".join(format_line(each) for each in lines))
            announce(self, self.tr("{0} lines copied").format(len(lines)))

    def take_focus(self) -> None:
        """The person wants to read."""
        self._list.setFocus(Qt.FocusReason.OtherFocusReason)

    def _filter_names(self) -> dict[LogFilter, str]:
        return {
            LogFilter.ALL: self.tr("All lines"),
            LogFilter.INFO: self.tr("Without debugging"),
            LogFilter.WARNINGS: self.tr("Warnings and errors"),
            LogFilter.ERRORS: self.tr("Errors"),
            LogFilter.WRITTEN: self.tr("What the program wrote itself"),
        }

    def _apply_filter(self) -> None:
        self.model.set_filter(LogFilter(self._levels.currentData()))
        self._scroll_to_end()

    def _on_scrolled(self, value: int) -> None:
        self._is_following = value >= self._list.verticalScrollBar().maximum()

    def _scroll_to_end(self) -> None:
        count = self.model.rowCount()
        self._empty_note.setVisible(count == 0)
        self._list.setVisible(count > 0)
        self._copy.setEnabled(count > 0)
        if self._is_following:
            self._list.scrollToBottom()

    def _show_selected_line(self) -> None:
        chosen = [each.row() for each in self._list.selectionModel().selectedIndexes()]
        line = self.model.lines(chosen[:1]) if len(chosen) == 1 else ()
        self._selected_line.setVisible(bool(line))
        if line:
            self._selected_line.show_text(format_line(line[0]))

    def _build_layout(self) -> None:
        head = QHBoxLayout()
        head.setSpacing(SPACE_S)
        head.addWidget(self._levels)
        head.addStretch(1)
        head.addWidget(self._copy)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_S)
        layout.addLayout(head)
        for each in (self._empty_note, self._list, self._selected_line):
            layout.addWidget(each)
        self._selected_line.hide()
