"""The tools of a specialist: a list to tick in, in groups."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QFrame, QLabel, QLineEdit, QScrollArea, QVBoxLayout, QWidget

from ui.bridge.conduct.known_tools import AvailableTool, ToolGroup
from ui.look.controls import label
from ui.look.parts.wrapped_choice import WrappedChoice
from ui.look.sentences import plain_tooltip
from ui.look.theme import SPACE_S, SPACE_XS
from ui.preferences.tool_menu import group_title

VISIBLE_LINES = 11
SEARCH_THRESHOLD = 20
"""So many tools, and there is a field to look for one."""


class ToolChecklist(QWidget):
    """`tools` are the names that are ticked. Those that are not known now stay in the list, and say so."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
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
        # Tab stops at what is in it.
        self._scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._scroll.setFixedHeight(self.fontMetrics().lineSpacing() * VISIBLE_LINES)
        self._count = label(kind="small", wrap=True)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_XS)
        for each in (self._search, self._scroll, self._count):
            layout.addWidget(each)
        self._search.textChanged.connect(self._filter_rows)
        self._rebuild_rows()

    @property
    def tools(self) -> tuple[str, ...]:
        """In the order in which they were chosen."""
        return tuple(self._chosen)

    def set_tools(self, names: Sequence[str]) -> None:
        """These, and no others."""
        self._chosen = dict.fromkeys(names)
        self._initial = tuple(self._chosen)
        self._rebuild_rows()

    def show_tools(self, groups: Sequence[ToolGroup]) -> None:
        """These are known; what is ticked stays."""
        if tuple(groups) != self._groups:
            self._groups = tuple(groups)
            self._rebuild_rows()

    def _rebuild_rows(self) -> None:
        inside = QFrame()
        rows = QVBoxLayout(inside)
        rows.setContentsMargins(SPACE_S, SPACE_S, SPACE_S, SPACE_S)
        rows.setSpacing(SPACE_XS)
        self._rows = []
        known = {each.name for group in self._groups for each in group.tools}
        for group in self._groups:
            self._add_group(rows, group_title(group), [self._tool_box(each) for each in group.tools])
        # Also one that was just unticked: a slip of the hand is undone where it happened.
        missing = [name for name in self._initial if name not in known]
        if missing:
            self._add_group(
                rows, self.tr("Not here now; whoever calls it must have them"), list(map(self._checkbox, missing))
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
        for each in (heading, *choices):
            rows.addWidget(each)
        self._rows.append((heading, choices))

    def _tool_box(self, tool: AvailableTool) -> WrappedChoice:
        words = self.tr("{0} – may change something").format(tool.name) if tool.changes else tool.name
        choice = self._checkbox(tool.name, words)
        choice.setToolTip(plain_tooltip(tool.description))
        return choice

    def _checkbox(self, name: str, words: str = "") -> WrappedChoice:
        box = QCheckBox()
        box.setChecked(name in self._chosen)
        box.toggled.connect(partial(self._toggle_tool, name))
        return WrappedChoice(box, words or name)

    def _toggle_tool(self, name: str, is_chosen: bool) -> None:  # noqa: FBT001  # a slot
        if is_chosen:
            self._chosen[name] = None
        else:
            self._chosen.pop(name, None)
        self._update_count()
        self.changed.emit()

    def _filter_rows(self) -> None:
        """Hide what is not looked for; a group with nothing left goes too."""
        sought = self._search.text().strip().lower()
        for heading, choices in self._rows:
            for each in choices:
                each.setHidden(sought not in each.words.lower())
            heading.setHidden(all(each.isHidden() for each in choices))

    def _update_count(self) -> None:
        count = len(self._chosen)
        if not count:
            self._count.setText(self.tr("None: it only thinks and answers."))
        else:
            self._count.setText(self.tr("{0} chosen. It never has more than whoever calls it.").format(count))
