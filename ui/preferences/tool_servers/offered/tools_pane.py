"""The tools of one server: all of them in a list, the chosen one in full below."""

from collections.abc import Sequence
from inspect import cleandoc

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QListView, QVBoxLayout, QWidget

from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.mcp.servers import McpServer
from desktop_agent.vocabulary.mcp.states import OfferedTool, ServerState
from desktop_agent.vocabulary.tool_calls import ToolClass
from ui.look.controls import ChoiceBox, label
from ui.look.sentences import spoken
from ui.look.theme import SPACE_S, SPACE_XS, ThemeSource
from ui.look.visible_text import with_hidden_shown
from ui.preferences.tool_servers.offered.arguments_pane import ArgumentsPane
from ui.preferences.tool_servers.offered.tool_delegate import ToolDelegate
from ui.preferences.tool_servers.offered.tool_rows import ToolRows
from ui.preferences.tool_servers.whole_text import WholeText
from ui.preferences.tool_servers.words import class_in_words, said_in_words

_MOST_ROWS = 6


class ToolsPane(QWidget):
    """Says what shall become of the server; what is shown follows when that is kept."""

    changed = Signal(object)
    """A Change."""

    def __init__(self, themes: ThemeSource, server: McpServer, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._server = server
        self._rows = ToolRows(self)
        self._rows.switched.connect(self._switch)
        self._list = QListView()
        self._none = label(kind="muted", wrap=True)
        self._left_out = label(kind="warning", wrap=True)
        self._details = QWidget()
        self._name = label(kind="strong", wrap=True)
        self._description = WholeText("", self.tr("Description of the tool"))
        self._arguments = ArgumentsPane()
        self._said = label(kind="muted", wrap=True)
        self._other = label(kind="warning", wrap=True)
        self._class = ChoiceBox()
        self._on = QCheckBox(self.tr("The agent may call it"))
        self._build()

    def show_server(self, server: McpServer) -> None:
        """As it is now."""
        self._server = server
        self._show_details()

    def show_state(self, state: ServerState) -> None:
        """What it offers; the chosen tool stays chosen."""
        chosen = self._tool()
        self._rows.show_tools(state.tools)
        names = [each.name for each in state.tools]
        row = names.index(chosen.name) if chosen is not None and chosen.name in names else 0
        if state.tools:
            self._list.setCurrentIndex(self._rows.index(row))
        self._show_left_out(state.left_out)
        self._none.setText(self._no_tools(state))
        self._none.setVisible(not state.tools)
        self._list.setVisible(bool(state.tools))
        self._fit(state.tools)
        self._show_details()

    def take_focus(self) -> None:
        """The person wants to see the tools."""
        self._list.setFocus(Qt.FocusReason.OtherFocusReason)

    def _no_tools(self, state: ServerState) -> str:
        if state.state == "running":
            return self.tr("It offers no tools.")
        return self.tr("What it offers is not known yet. Press Test to see its tools.")

    def _fit(self, tools: Sequence[OfferedTool]) -> None:
        if tools:
            height = self._list.sizeHintForRow(0) * min(len(tools), _MOST_ROWS)
            self._list.setFixedHeight(height + 2 * self._list.frameWidth() + SPACE_XS)

    def _show_left_out(self, left_out: Sequence[Sentence]) -> None:
        self._left_out.setText("\n".join(with_hidden_shown(spoken(each)) for each in left_out))
        self._left_out.setVisible(bool(left_out))

    def _tool(self) -> OfferedTool | None:
        return self._rows.tool(self._list.currentIndex().row())

    def _show_details(self) -> None:
        tool = self._tool()
        self._details.setVisible(tool is not None)
        if tool is None:
            return
        name = with_hidden_shown(tool.name)
        self._name.setText(name)
        self._description.show_text(cleandoc(tool.description) or self.tr("It has no description."))
        self._arguments.show_schema(tool.schema)
        self._said.setText(self._said_words(tool))
        self._on.setChecked(tool.on)
        self._class.setAccessibleName(self.tr("What counts about {0}").format(name))
        self._on.setAccessibleName(self.tr("The agent may call {0}").format(name))
        self._class.setItemText(0, self._as_the_server_says(tool))
        self._other.setVisible(tool.is_other)
        chosen = self._server.word_about(tool.name, tool.digest)
        self._class.setCurrentIndex(self._class.findData(chosen.value if chosen is not None else ""))

    def _as_the_server_says(self, tool: OfferedTool) -> str:
        believed = tool.said if self._server.trusted and tool.said is not None else ToolClass.MUTATING
        words = class_in_words(believed)[0]
        title = self.tr("As the server says ({0})") if self._server.trusted else self.tr("To be safe ({0})")
        return title.format(words)

    def _said_words(self, tool: OfferedTool) -> str:
        words = said_in_words(tool.said)
        if tool.said is None or self._server.trusted:
            return words
        return f"{words} {self.tr('That is not believed.')}"

    def _switch(self, name: str, on: bool) -> None:  # noqa: FBT001  # a slot
        def change(server: McpServer) -> McpServer:
            off = server.off_tools - {name} if on else server.off_tools | {name}
            return server.model_copy(update={"off_tools": frozenset(off)})

        self.changed.emit(change)

    def _switch_chosen(self) -> None:
        tool = self._tool()
        if tool is not None:
            self._switch(tool.name, self._on.isChecked())

    def _choose_class(self) -> None:
        tool = self._tool()
        if tool is None:
            return
        chosen = ToolClass(self._class.currentData()) if self._class.currentData() else None

        def change(server: McpServer) -> McpServer:
            return server.with_word(tool.name, tool.digest, chosen)

        self.changed.emit(change)

    def _build(self) -> None:
        self._list.setModel(self._rows)
        self._list.setItemDelegate(ToolDelegate(self._themes, self._list))
        self._list.setUniformItemSizes(True)
        self._list.setMouseTracking(True)
        self._list.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self._list.setAccessibleName(self.tr("Tools of {0}").format(with_hidden_shown(self._server.title)))
        self._list.selectionModel().currentRowChanged.connect(self._show_details)
        self._class.addItem("", "")
        for each in (ToolClass.READ_ONLY, ToolClass.MUTATING):
            self._class.addItem(class_in_words(each)[0], each.value)
        self._class.activated.connect(self._choose_class)
        self._on.clicked.connect(self._switch_chosen)
        choice = QHBoxLayout()
        choice.setSpacing(SPACE_S)
        choice.addWidget(self._class)
        choice.addStretch(1)
        inner = QVBoxLayout(self._details)
        inner.setContentsMargins(0, 0, 0, 0)
        inner.setSpacing(SPACE_S)
        self._other.setText(
            self.tr("You said that it only reads, but of what it was before. Look at it, and choose again.")
        )
        for each in (self._name, self._description, self._arguments, self._said, self._other):
            inner.addWidget(each)
        inner.addLayout(choice)
        inner.addWidget(self._on)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_S)
        for each in (self._none, self._list, self._left_out, self._details):
            layout.addWidget(each)
        self._none.setText(self._no_tools(ServerState(self._server.id, "idle")))
        self._left_out.hide()
        self._details.hide()
        self._list.hide()
