"""Conversations that are never stored: their rows above the list, and the bar that marks the page of one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QSizePolicy, QWidget

from ui.style.boxes import hbox, vbox
from ui.style.controls import IconButton, ToolButton, button, label
from ui.style.layouts import FlowRows
from ui.style.removal import clear_layout
from ui.style.text import escape_mnemonics, plain_tooltip, title_or_new, truncate
from ui.style.theme import ICON_SIZE, SPACE_L, SPACE_M, SPACE_S, SPACE_XS, ThemeSource, themed_icon

if TYPE_CHECKING:
    from ui.bridge.unstored import UnstoredRow

_MAX_TITLE = 200


class UnstoredList(QWidget):
    """One row for each conversation, under a heading. Hidden while there is none."""

    chosen = Signal(str)
    close_pressed = Signal(str)

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__()
        self._themes = themes
        self._shown: Sequence[UnstoredRow] = ()
        self._current = ""
        self._rows = vbox(spacing=SPACE_XS // 2, margins=0)
        self.setAccessibleName(self.tr("Conversations that are not stored"))
        heading = label(self.tr("Not stored"), "small")
        # Aligned with the titles below it, and with the headings of the list.
        heading.setIndent(SPACE_M)
        vbox(heading, self._rows, parent=self, spacing=SPACE_XS, margins=(0, 0, 0, SPACE_XS))
        themes.changed.connect(self._fill)
        self.hide()

    def show_rows(self, rows: "Sequence[UnstoredRow]") -> None:
        """Show these conversations in this order."""
        if rows != self._shown:
            self._shown = rows
            self._fill()
        self.setVisible(bool(rows))

    def mark_open(self, conversation_id: str) -> None:
        """Mark the open conversation."""
        self._current = conversation_id
        for row in self.findChildren(_RowButton):
            row.setChecked(row.conversation_id == conversation_id)

    def _fill(self) -> None:
        clear_layout(self._rows)
        for row in self._shown:
            title = title_or_new(truncate(" ".join(row.title.split()), _MAX_TITLE))
            open_button = _RowButton(self._themes, row.id, title, self.tr("{0}, not stored").format(title))
            open_button.setChecked(row.id == self._current)
            open_button.clicked.connect(lambda _checked=False, id_=row.id: self._choose(id_))
            close_button = IconButton(self._themes, "close", self.tr("Close “{0}”").format(title))
            close_button.clicked.connect(lambda _checked=False, id_=row.id: self.close_pressed.emit(id_))
            line = QWidget()
            hbox(open_button, close_button, parent=line, spacing=SPACE_XS // 2, margins=0, grow=open_button)
            self._rows.addWidget(line)

    def _choose(self, conversation_id: str) -> None:
        self.mark_open(self._current)
        self.chosen.emit(conversation_id)


class _RowButton(ToolButton):
    """A title that is cut to the width."""

    def __init__(self, themes: ThemeSource, conversation_id: str, title: str, name: str) -> None:
        super().__init__()
        self.conversation_id = conversation_id
        self._title = title
        side = themes.scaled(ICON_SIZE)
        self.setProperty("kind", "quiet")
        self.setCheckable(True)
        self.setIcon(themed_icon("unstored", themes.theme, side))
        self.setIconSize(QSize(side, side))
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAccessibleName(name)
        self.setToolTip(plain_tooltip(title))
        self.setText(" ")

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        room = self.width() - self.iconSize().width() - 2 * SPACE_L
        elided = self.fontMetrics().elidedText(self._title, Qt.TextElideMode.ElideRight, max(room, 1))
        self.setText(" " + escape_mnemonics(elided))


class UnstoredBar(QFrame):
    """Says over its page that a conversation is not stored, and what that means."""

    keep_pressed = Signal()
    close_pressed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("kind", "banner")
        self.setProperty("level", "remark")
        self.setAccessibleName(self.tr("Not stored"))
        words = self.tr(
            "This conversation is lost when it is closed, and when the program ends or crashes. Changes that tools "
            "make to files stay, and cannot be undone from here. Rules that you make are stored."
        )
        keep = button(self.tr("Keep it"), self.keep_pressed.emit, name=self.tr("Keep this conversation: store it"))
        close = button(self.tr("Close"), self.close_pressed.emit, name=self.tr("Close this conversation"))
        parts = (label(self.tr("Not stored"), "strong"), label(words, wrap=True), FlowRows((keep, close)))
        vbox(*parts, parent=self, spacing=SPACE_XS, margins=(SPACE_M, SPACE_S, SPACE_M, SPACE_S))
        self.hide()
