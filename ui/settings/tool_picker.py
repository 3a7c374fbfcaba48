"""Pick tools: one from a menu, or several from a checklist; and menus of choices in groups."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QCheckBox, QComboBox, QFrame, QLabel, QLineEdit, QScrollArea, QVBoxLayout, QWidget

from ui.bridge.settings import AvailableTool, ToolGroup
from ui.style.boxes import vbox
from ui.style.controls import label
from ui.style.text import plain_tooltip
from ui.style.theme import SPACE_S, SPACE_XS
from ui.style.tool_labels import tool_title
from ui.style.widgets import ComboBox, WrappedChoice

ANY_TOOL = "*"
MIN_TOOL_CHARS = 24


def group_title(group: ToolGroup) -> str:
    """Return the server's title, or a word for built-in tools."""
    return group.title or QCoreApplication.translate("Tools", "Built in")


class GroupedMenu(ComboBox):
    """A menu of choices in groups. An unknown value can be selected too; `missing` is the template of its text."""

    def __init__(self, characters: int, missing: str) -> None:
        """`characters` is the least width."""
        super().__init__()
        self._missing = missing
        self._rows = QStandardItemModel(self)
        self.setModel(self._rows)
        self.setMinimumContentsLength(characters)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)

    def clear_choices(self) -> None:
        """Remove all choices and headings."""
        self._rows.clear()

    def add_heading(self, words: str) -> None:
        """Add the title of a group."""
        heading = QStandardItem(words)
        heading.setFlags(Qt.ItemFlag.NoItemFlags)
        self._rows.appendRow(heading)

    def add_choice(self, words: str, value: str, tip: str = "") -> None:
        """Add a choice."""
        choice = QStandardItem(words)
        choice.setData(value, Qt.ItemDataRole.UserRole)
        choice.setToolTip(plain_tooltip(tip))
        self._rows.appendRow(choice)

    def select(self, value: str, title: str = "") -> None:
        """Select a choice; one that is missing is added, with its title if that is not the value."""
        if self.findData(value) < 0:
            self.add_choice(self._missing.format(title or value), value)
        self.setCurrentIndex(self.findData(value))


class ToolMenu(GroupedMenu):
    """A menu of the tools, and of “Every tool”; a selected tool that is not known now stays, with a note."""

    def __init__(self) -> None:
        super().__init__(MIN_TOOL_CHARS, QCoreApplication.translate("Tools", "{0} (not here now)"))
        self._groups: tuple[ToolGroup, ...] = ()
        self.show_tools(())

    @property
    def tool(self) -> str:
        """A name, or `*`."""
        return str(self.currentData())

    @property
    def known_tool(self) -> AvailableTool | None:
        """The selected tool, if it is known."""
        matches = (tool for group in self._groups for tool in group.tools if tool.name == self.tool)
        return next(matches, None)

    def show_tools(self, groups: Sequence[ToolGroup]) -> None:
        """Set the known tools; the selected one stays."""
        chosen = self.tool if self.count() else ANY_TOOL
        self._groups = tuple(groups)
        self.clear_choices()
        self.add_choice(QCoreApplication.translate("Tools", "Every tool"), ANY_TOOL)
        for group in self._groups:
            self.add_heading(group_title(group))
            for tool in group.tools:
                self.add_choice(tool_title(tool.name), tool.name, tool.description)
        self.select(chosen)

    def select(self, value: str, title: str = "") -> None:
        """Select a tool; one that is missing is added with its title."""
        super().select(value, title or tool_title(value))


VISIBLE_LINES = 11
SEARCH_THRESHOLD = 20
"""With more tools than this, there is a field to search for one."""


class ToolChecklist(QWidget):
    """`tools` are the checked names. Names that are not known now stay in the list, with a note."""

    def __init__(self) -> None:
        super().__init__()
        self._groups: tuple[ToolGroup, ...] = ()
        self._chosen: dict[str, None] = {}
        self._initial: tuple[str, ...] = ()
        self._rows: list[tuple[QLabel, list[WrappedChoice]]] = []
        self._search = QLineEdit()
        self._search.setAccessibleName(self.tr("Find a tool"))
        self._search.setPlaceholderText(self.tr("Find a tool"))
        self._search.setClearButtonEnabled(True)
        self._scroll = QScrollArea(widgetResizable=True)
        self._scroll.setProperty("kind", "card")
        # Tab stops at its content.
        self._scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._scroll.setFixedHeight(self.fontMetrics().lineSpacing() * VISIBLE_LINES)
        self._count = label(kind="small", wrap=True)
        vbox(self._search, self._scroll, self._count, parent=self, spacing=SPACE_XS, margins=0)
        self._search.textChanged.connect(self._filter_rows)
        self._rebuild_rows()

    @property
    def tools(self) -> tuple[str, ...]:
        """In the order in which they were checked."""
        return tuple(self._chosen)

    def set_tools(self, names: Sequence[str]) -> None:
        """Check these names and no others."""
        self._chosen = dict.fromkeys(names)
        self._initial = tuple(self._chosen)
        self._rebuild_rows()

    def show_tools(self, groups: Sequence[ToolGroup]) -> None:
        """Set the known tools; checked ones stay."""
        if tuple(groups) != self._groups:
            self._groups = tuple(groups)
            self._rebuild_rows()

    def _rebuild_rows(self) -> None:
        inside = QFrame()
        rows = vbox(parent=inside, spacing=SPACE_XS, margins=SPACE_S)
        self._rows = []
        known = {tool.name for group in self._groups for tool in group.tools}
        for group in self._groups:
            self._add_group(rows, group_title(group), [self._tool_box(tool) for tool in group.tools])
        # Also one that was just unchecked: a slip can be undone in place.
        missing = [name for name in self._initial if name not in known]
        if missing:
            self._add_group(
                rows, self.tr("Not available now; the caller must have them"), list(map(self._checkbox, missing))
            )
        rows.addStretch(1)
        self._scroll.setWidget(inside)
        inside.setAutoFillBackground(False)
        self._scroll.viewport().setAutoFillBackground(False)
        self._search.setVisible(len(known) > SEARCH_THRESHOLD)
        self._filter_rows()
        self._update_count()

    def _add_group(self, rows: QVBoxLayout, title: str, choices: list[WrappedChoice]) -> None:
        heading = label(title, "small", wrap=True)
        for widget in (heading, *choices):
            rows.addWidget(widget)
        self._rows.append((heading, choices))

    def _tool_box(self, tool: AvailableTool) -> WrappedChoice:
        title = tool_title(tool.name)
        words = self.tr("{0} – may change something").format(title) if tool.changes else title
        choice = self._checkbox(tool.name, words)
        choice.describe(tool.description)
        return choice

    def _checkbox(self, name: str, words: str = "") -> WrappedChoice:
        box = QCheckBox()
        box.setChecked(name in self._chosen)
        box.toggled.connect(partial(self._toggle_tool, name))
        return WrappedChoice(box, words or tool_title(name))

    def _toggle_tool(self, name: str, is_chosen: bool) -> None:  # noqa: FBT001  # a slot
        if is_chosen:
            self._chosen[name] = None
        else:
            self._chosen.pop(name, None)
        self._update_count()

    def _filter_rows(self) -> None:
        """Hide tools that do not match, and groups without a match."""
        query = self._search.text().strip().lower()
        for heading, choices in self._rows:
            for choice in choices:
                choice.setHidden(query not in choice.words.lower())
            heading.setHidden(all(choice.isHidden() for choice in choices))

    def _update_count(self) -> None:
        count = len(self._chosen)
        if not count:
            self._count.setText(self.tr("None: it only thinks and answers."))
        else:
            self._count.setText(self.tr("{0} chosen. It never has more tools than its caller.").format(count))
