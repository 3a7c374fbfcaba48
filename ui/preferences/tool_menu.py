"""One tool chosen from all that are known, in groups."""

from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QComboBox, QWidget

from ui.bridge.conduct.known_tools import AvailableTool, ToolGroup
from ui.look.controls import ComboBox
from ui.look.sentences import plain_tooltip

ANY_TOOL = "*"
MIN_TOOL_CHARS = 24


def group_title(group: ToolGroup) -> str:
    """The server's, or a word for what is built in."""
    return group.title or QCoreApplication.translate("Tools", "Built in")


class ToolMenu(ComboBox):
    """Every tool, or one; one that is not known now stays, and says so."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._groups: tuple[ToolGroup, ...] = ()
        self._items = QStandardItemModel(self)
        self.setModel(self._items)
        self.setMinimumContentsLength(MIN_TOOL_CHARS)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.show_tools(())

    @property
    def tool(self) -> str:
        """Its name, or `*`."""
        return str(self.currentData())

    @property
    def known_tool(self) -> AvailableTool | None:
        """The tool, where it is known."""
        found = (each for group in self._groups for each in group.tools if each.name == self.tool)
        return next(found, None)

    def set_tool(self, name: str) -> None:
        """This one."""
        if self.findData(name) < 0:
            words = QCoreApplication.translate("Tools", "{0} (not here now)").format(name)
            self._add_item(words, name)
        self.setCurrentIndex(self.findData(name))

    def show_tools(self, groups: Sequence[ToolGroup]) -> None:
        """These are known; what is chosen stays."""
        chosen = self.tool if self.count() else ANY_TOOL
        self._groups = tuple(groups)
        self._items.clear()
        self._add_item(QCoreApplication.translate("Tools", "Every tool"), ANY_TOOL)
        for group in self._groups:
            heading = QStandardItem(group_title(group))
            heading.setFlags(Qt.ItemFlag.NoItemFlags)
            self._items.appendRow(heading)
            for each in group.tools:
                self._add_item(each.name, each.name, each.description)
        self.set_tool(chosen)

    def _add_item(self, words: str, name: str, tip: str = "") -> None:
        item = QStandardItem(words)
        item.setData(name, Qt.ItemDataRole.UserRole)
        item.setToolTip(plain_tooltip(tip))
        self._items.appendRow(item)
