"""The tools of one server: all of them in a list, the chosen one in full below."""

from collections.abc import Sequence
from inspect import cleandoc

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QListView, QVBoxLayout, QWidget

from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.mcp.servers import McpServer
from desktop_agent.vocabulary.mcp.states import McpServerState, McpToolInfo
from desktop_agent.vocabulary.tool_calls import ToolClass
from ui.look.controls import ComboBox, label
from ui.look.sentences import translate_sentence
from ui.look.theme import SPACE_S, SPACE_XS, ThemeSource
from ui.look.visible_text import show_hidden
from ui.preferences.tool_servers.offered.arguments_pane import ArgumentsPane
from ui.preferences.tool_servers.offered.tool_delegate import ToolDelegate
from ui.preferences.tool_servers.offered.tool_rows import ToolListModel
from ui.preferences.tool_servers.whole_text import ReadOnlyText
from ui.preferences.tool_servers.words import describe_declared_class, describe_tool_class

_MAX_VISIBLE_ROWS = 6


class ToolsPane(QWidget):
    """Says what shall become of the server; what is shown follows when that is kept."""

    changed = Signal(object)
    """A Change."""

    def __init__(self, themes: ThemeSource, server: McpServer, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._server = server
        self._model = ToolListModel(self)
        self._model.tool_toggled.connect(self._set_tool_enabled)
        self._list = QListView()
        self._empty_note = label(kind="muted", wrap=True)
        self._omitted = label(kind="warning", wrap=True)
        self._details = QWidget()
        self._name = label(kind="strong", wrap=True)
        self._description = ReadOnlyText("", self.tr("Description of the tool"))
        self._arguments = ArgumentsPane()
        self._declared = label(kind="muted", wrap=True)
        self._changed_warning = label(kind="warning", wrap=True)
        self._class = ComboBox()
        self._on = QCheckBox(self.tr("The agent may call it"))
        self._build_layout()

    def show_server(self, server: McpServer) -> None:
        """As it is now."""
        self._server = server
        self._show_details()

    def show_state(self, state: McpServerState) -> None:
        """What it offers; the chosen tool stays chosen."""
        chosen = self._selected_tool()
        self._model.show_tools(state.tools)
        names = [each.name for each in state.tools]
        row = names.index(chosen.name) if chosen is not None and chosen.name in names else 0
        if state.tools:
            self._list.setCurrentIndex(self._model.index(row))
        self._show_omitted(state.unusable_tools)
        self._empty_note.setText(self._empty_text(state))
        self._empty_note.setVisible(not state.tools)
        self._list.setVisible(bool(state.tools))
        self._set_list_height(state.tools)
        self._show_details()

    def take_focus(self) -> None:
        """The person wants to see the tools."""
        self._list.setFocus(Qt.FocusReason.OtherFocusReason)

    def _empty_text(self, state: McpServerState) -> str:
        if state.state == "running":
            return self.tr("It offers no tools.")
        return self.tr("What it offers is not known yet. Press Test to see its tools.")

    def _set_list_height(self, tools: Sequence[McpToolInfo]) -> None:
        if tools:
            height = self._list.sizeHintForRow(0) * min(len(tools), _MAX_VISIBLE_ROWS)
            self._list.setFixedHeight(height + 2 * self._list.frameWidth() + SPACE_XS)

    def _show_omitted(self, left_out: Sequence[Sentence]) -> None:
        self._omitted.setText("\n".join(show_hidden(translate_sentence(each)) for each in left_out))
        self._omitted.setVisible(bool(left_out))

    def _selected_tool(self) -> McpToolInfo | None:
        return self._model.tool(self._list.currentIndex().row())

    def _show_details(self) -> None:
        tool = self._selected_tool()
        self._details.setVisible(tool is not None)
        if tool is None:
            return
        name = show_hidden(tool.name)
        self._name.setText(name)
        self._description.show_text(cleandoc(tool.description) or self.tr("It has no description."))
        self._arguments.show_schema(tool.schema)
        self._declared.setText(self._declared_text(tool))
        self._on.setChecked(tool.is_enabled)
        self._class.setAccessibleName(self.tr("What counts about {0}").format(name))
        self._on.setAccessibleName(self.tr("The agent may call {0}").format(name))
        self._class.setItemText(0, self._default_class_text(tool))
        self._changed_warning.setVisible(tool.has_changed)
        chosen = self._server.tool_class_override(tool.name, tool.digest)
        self._class.setCurrentIndex(self._class.findData(chosen.value if chosen is not None else ""))

    def _default_class_text(self, tool: McpToolInfo) -> str:
        believed = (
            tool.declared_class if self._server.trusted and tool.declared_class is not None else ToolClass.MUTATING
        )
        words = describe_tool_class(believed)[0]
        title = self.tr("As the server says ({0})") if self._server.trusted else self.tr("To be safe ({0})")
        return title.format(words)

    def _declared_text(self, tool: McpToolInfo) -> str:
        words = describe_declared_class(tool.declared_class)
        if tool.declared_class is None or self._server.trusted:
            return words
        return f"{words} {self.tr('That is not believed.')}"

    def _set_tool_enabled(self, name: str, on: bool) -> None:  # noqa: FBT001  # a slot
        def change(server: McpServer) -> McpServer:
            off = server.off_tools - {name} if on else server.off_tools | {name}
            return server.model_copy(update={"off_tools": frozenset(off)})

        self.changed.emit(change)

    def _toggle_selected(self) -> None:
        tool = self._selected_tool()
        if tool is not None:
            self._set_tool_enabled(tool.name, self._on.isChecked())

    def _set_tool_class(self) -> None:
        tool = self._selected_tool()
        if tool is None:
            return
        chosen = ToolClass(self._class.currentData()) if self._class.currentData() else None

        def change(server: McpServer) -> McpServer:
            return server.with_tool_class_override(tool.name, tool.digest, chosen)

        self.changed.emit(change)

    def _build_layout(self) -> None:
        self._list.setModel(self._model)
        self._list.setItemDelegate(ToolDelegate(self._themes, self._list))
        self._list.setUniformItemSizes(True)
        self._list.setMouseTracking(True)
        self._list.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self._list.setAccessibleName(self.tr("Tools of {0}").format(show_hidden(self._server.title)))
        self._list.selectionModel().currentRowChanged.connect(self._show_details)
        self._class.addItem("", "")
        for each in (ToolClass.READ_ONLY, ToolClass.MUTATING):
            self._class.addItem(describe_tool_class(each)[0], each.value)
        self._class.activated.connect(self._set_tool_class)
        self._on.clicked.connect(self._toggle_selected)
        choice = QHBoxLayout()
        choice.setSpacing(SPACE_S)
        choice.addWidget(self._class)
        choice.addStretch(1)
        inner = QVBoxLayout(self._details)
        inner.setContentsMargins(0, 0, 0, 0)
        inner.setSpacing(SPACE_S)
        self._changed_warning.setText(
            self.tr("You said that it only reads, but of what it was before. Look at it, and choose again.")
        )
        for each in (self._name, self._description, self._arguments, self._declared, self._changed_warning):
            inner.addWidget(each)
        inner.addLayout(choice)
        inner.addWidget(self._on)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_S)
        for each in (self._empty_note, self._list, self._omitted, self._details):
            layout.addWidget(each)
        self._empty_note.setText(self._empty_text(McpServerState(self._server.id, "idle")))
        self._omitted.hide()
        self._details.hide()
        self._list.hide()
