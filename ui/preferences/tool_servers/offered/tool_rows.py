"""The tools of one server as rows: a switch, a name, what it is for, and what counts about it."""

from collections.abc import Sequence
from enum import IntEnum

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt, Signal

from desktop_agent.vocabulary.mcp.states import McpToolInfo
from ui.look.visible_text import show_hidden
from ui.preferences.tool_servers.words import describe_tool_class

Index = QModelIndex | QPersistentModelIndex
_ROOT = QModelIndex()
_MAX_SUMMARY_LENGTH = 200


class ToolRole(IntEnum):
    """What a row says beyond its name."""

    DESCRIPTION = Qt.ItemDataRole.UserRole + 1
    """The beginning of the description."""
    TAG = Qt.ItemDataRole.UserRole + 2
    """Words and colour of what counts about it: a pair of str and Tag."""


class ToolListModel(QAbstractListModel):
    """Checked: the agent may call it."""

    tool_toggled = Signal(str, bool)
    """The server's name of a tool, and whether the agent may call it from now on."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._tools: tuple[McpToolInfo, ...] = ()

    def show_tools(self, tools: Sequence[McpToolInfo]) -> None:
        """These; rows of the same names stay where they are."""
        new = tuple(tools)
        if [each.name for each in new] == [each.name for each in self._tools]:
            self._tools = new
            if new:
                self.dataChanged.emit(self.index(0), self.index(len(new) - 1))
            return
        self.beginResetModel()
        self._tools = new
        self.endResetModel()

    def tool(self, row: int) -> McpToolInfo | None:
        """The tool of a row; None outside."""
        return self._tools[row] if 0 <= row < len(self._tools) else None

    def rowCount(self, parent: Index = _ROOT) -> int:
        """One for each tool."""
        return 0 if parent.isValid() else len(self._tools)

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Each can be switched."""
        return super().flags(index) | Qt.ItemFlag.ItemIsUserCheckable

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """What the row shows, and what a screen reader says of it."""
        tool = self.tool(index.row())
        if tool is None:
            return None
        name = show_hidden(tool.name)
        under = show_hidden(" ".join(tool.description[:_MAX_SUMMARY_LENGTH].split()))
        if tool.has_changed:
            under = " · ".join(each for each in (self.tr("Changed: choose again"), under) if each)
        tag = describe_tool_class(tool.tool_class)
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return name
            case Qt.ItemDataRole.CheckStateRole:
                return Qt.CheckState.Checked if tool.is_enabled else Qt.CheckState.Unchecked
            case Qt.ItemDataRole.AccessibleTextRole:
                return f"{name}. {tag[0]}. {under}"
            case ToolRole.DESCRIPTION:
                return under
            case ToolRole.TAG:
                return tag
            case _:
                return None

    def setData(self, index: Index, value: object, role: int = Qt.ItemDataRole.EditRole) -> bool:
        """The person turns it on or off; the row follows when that is kept."""
        tool = self.tool(index.row())
        if tool is None or role != Qt.ItemDataRole.CheckStateRole:
            return False
        self.tool_toggled.emit(tool.name, value == Qt.CheckState.Checked)
        return True
