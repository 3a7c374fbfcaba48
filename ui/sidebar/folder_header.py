"""The line above the list that says in which folder it is, and leads up from there."""

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDropEvent, QResizeEvent
from PySide6.QtWidgets import QMenu, QSizePolicy, QWidget

from desktop_agent.types.folders import Folder, FolderLevel
from ui.sidebar.conversation_model import dragged_rows
from ui.sidebar.row_menus import FolderAction, fill_folder_menu
from ui.style.boxes import hbox
from ui.style.controls import IconButton, ToolButton, open_menu_at
from ui.style.text import escape_mnemonics, plain_tooltip
from ui.style.theme import ICON_SIZE, ThemeSource, chevron_towards, folder_tint, icon


class FolderHeader(QWidget):
    """A button with the name of the folder, which goes up, and one with its menu. What is dropped here moves up."""

    up_requested = Signal(object)
    """The id of the folder above; None for the top."""
    folder_action_requested = Signal(str, object)
    """A FolderAction, and the Folder."""
    dropped = Signal(list, list, object)
    """The ids of conversations and of folders, and that of the folder above, or None."""

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__()
        self._themes = themes
        self._folder: Folder | None = None
        self._title = ""
        self._is_in_use = True
        self._menu = QMenu(self)
        self._menu.setAccessibleName(self.tr("Menu: {0}").format(self.tr("Folder")))
        fill_folder_menu(self._menu, self._act)
        self._up = ToolButton()
        self._up.setProperty("kind", "quiet")
        self._up.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._up.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._up.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self._up.clicked.connect(self._go_up)
        self._more = IconButton(themes, "more", self._menu.accessibleName())
        self._more.clicked.connect(self._open_menu)
        hbox(self._up, self._more, parent=self, spacing=0, margins=0, grow=self._up)
        self.setAcceptDrops(True)
        themes.changed.connect(self._refresh)

    @property
    def tab_stops(self) -> tuple[QWidget, ...]:
        return (self._up, self._more)

    def show_level(self, level: FolderLevel) -> None:
        """Name this folder; hidden at the top."""
        self._folder = level.path[-1] if level.path else None
        self._title = self.tr("Archive") if level.is_archive else "" if self._folder is None else self._folder.name
        above = level.path[-2].name if len(level.path) > 1 else self.tr("All conversations")
        self._up.setAccessibleName(self.tr("{0}. Go up to: {1}").format(self._title, above))
        self._up.setToolTip(plain_tooltip(self.tr("{0}\nGo up to: {1}").format(self._title, above)))
        self._more.setVisible(self._folder is not None)
        self.set_in_use(is_in_use=self._is_in_use)
        self._refresh()

    def set_in_use(self, *, is_in_use: bool) -> None:
        """Hide it while something else takes the place of the list."""
        self._is_in_use = is_in_use
        self.setVisible(is_in_use and bool(self._title))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._refresh()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if self._folder is not None and any(dragged_rows(event.mimeData())):
            self._up.setDown(True)
            event.acceptProposedAction()

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        super().dragLeaveEvent(event)
        self._up.setDown(False)

    def dropEvent(self, event: QDropEvent) -> None:
        self._up.setDown(False)
        if self._folder is not None:
            self.dropped.emit(*dragged_rows(event.mimeData()), self._folder.parent)
            event.acceptProposedAction()

    def _go_up(self) -> None:
        self.up_requested.emit(None if self._folder is None else self._folder.parent)

    def _open_menu(self) -> None:
        open_menu_at(self._more, self._menu, self._more.height())

    def _act(self, action: FolderAction) -> None:
        if self._folder is not None:
            self.folder_action_requested.emit(action, self._folder)

    def _refresh(self) -> None:
        theme = self._themes.theme
        side = self._themes.scaled(ICON_SIZE)
        colour = theme.text if self._folder is None else folder_tint(theme, self._folder.colour.value)
        self._up.setIcon(icon(chevron_towards("start"), colour, size=side))
        self._up.setIconSize(QSize(side, side))
        room = max(0, self._up.width() - side - 2 * ICON_SIZE)
        words = self._up.fontMetrics().elidedText(self._title, Qt.TextElideMode.ElideRight, room)
        self._up.setText(" " + escape_mnemonics(words))
