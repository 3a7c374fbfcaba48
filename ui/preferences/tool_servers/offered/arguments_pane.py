"""What the chosen tool takes, when the person wants to know: a list to read, and the schema as a model reads it."""

from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from desktop_agent.vocabulary.blocks import JsonObject
from ui.look.controls import button, label
from ui.look.parts.flow_rows import FlowRows
from ui.look.parts.json_text import arguments_as_json
from ui.look.sentences import escape_mnemonics
from ui.look.theme import SPACE_M, SPACE_S, SPACE_XS
from ui.look.visible_text import show_hidden
from ui.preferences.tool_servers.offered.arguments import (
    MAX_ARGUMENTS,
    ToolArgument,
    count_arguments,
    parse_tool_arguments,
)
from ui.preferences.tool_servers.whole_text import ReadOnlyText
from ui.preferences.tool_servers.words import describe_kinds

MAX_JSON_LENGTH = 20_000


class ArgumentsPane(QWidget):
    """Closed at first; what is open stays open when another tool is chosen."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._schema: JsonObject = {}
        self._shown: JsonObject | None = None
        self._is_open = self._is_raw = False
        self._toggle_button = button("", self._toggle, "link")
        self._json_button = button("", self._toggle_raw, "link")
        self._list = QFrame()
        self._list.setProperty("kind", "card")
        self._rows = QVBoxLayout(self._list)
        self._rows.setContentsMargins(SPACE_M, SPACE_S, SPACE_M, SPACE_S)
        self._rows.setSpacing(SPACE_M)
        self._raw = ReadOnlyText("", self.tr("Schema of the arguments as JSON"), 12)
        self._truncation_note = label(kind="small", wrap=True)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_S)
        layout.addWidget(FlowRows((self._toggle_button, self._json_button)))
        for each in (self._list, self._raw, self._truncation_note):
            layout.addWidget(each)
        self._update_view()

    def show_schema(self, schema: JsonObject) -> None:
        """Of another tool, or of the same."""
        self._schema = schema
        self._update_view()

    def _toggle(self) -> None:
        self._is_open = not self._is_open
        self._update_view()

    def _toggle_raw(self) -> None:
        self._is_raw = not self._is_raw
        self._update_view()

    def _update_view(self) -> None:
        if self._is_open and self._shown is not self._schema:
            self._rebuild_rows()
        if self._is_open and self._is_raw:
            text = arguments_as_json(self._schema)
            self._raw.show_text(text[:MAX_JSON_LENGTH])
            self._truncation_note.setText(self._truncation_text(len(text)))
        self._list.setVisible(self._is_open)
        self._toggle_button.setText(escape_mnemonics(self._toggle_text()))
        self._toggle_button.setAccessibleName(self._toggle_text())
        self._json_button.setVisible(self._is_open)
        self._json_button.setText(escape_mnemonics(self.tr("Hide JSON") if self._is_raw else self.tr("Show as JSON")))
        self._json_button.setAccessibleName(self.tr("Hide JSON") if self._is_raw else self.tr("Show as JSON"))
        self._raw.setVisible(self._is_open and self._is_raw)
        self._truncation_note.setVisible(self._is_open and self._is_raw and bool(self._truncation_note.text()))

    def _toggle_text(self) -> str:
        if self._is_open:
            return self.tr("Hide arguments")
        match count_arguments(self._schema):
            case 0:
                return self.tr("No arguments are named")
            case 1:
                return self.tr("Show 1 argument")
            case count:
                return self.tr("Show {0} arguments").format(count)

    def _truncation_text(self, length: int) -> str:
        if length <= MAX_JSON_LENGTH:
            return ""
        words = self.tr("The first {0} of {1} characters.")
        return words.format(f"{MAX_JSON_LENGTH:,}", f"{length:,}")

    def _rebuild_rows(self) -> None:
        self._shown = self._schema
        while (item := self._rows.takeAt(0)) is not None:
            old = item.widget()
            if old is not None:
                old.hide()
                old.deleteLater()
        arguments, are_all = parse_tool_arguments(self._schema)
        rows = [self._create_row(each) for each in arguments]
        if not arguments:
            rows.append(label(self.tr("The server names no arguments of this tool."), "muted", wrap=True))
        if not are_all:
            words = self.tr("These are the first {0}. The others are in the JSON.")
            rows.append(label(words.format(MAX_ARGUMENTS), "muted", wrap=True))
        for row in rows:
            self._rows.addWidget(row)
            row.show()

    def _create_row(self, argument: ToolArgument) -> QWidget:
        row = QWidget()
        layout = QVBoxLayout(row)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_XS)
        kind = describe_kinds(argument.kinds, argument.item_kinds)
        need = self.tr("required") if argument.is_required else self.tr("optional")
        facts = label(f"{kind} · {need}", "small")
        layout.addWidget(FlowRows((label(show_hidden(argument.name), "strong"), facts)))
        said = (show_hidden(argument.description), self._choices_text(argument), self._default_text(argument))
        for text, look in zip(said, ("", "small", "small"), strict=True):
            if text:
                layout.addWidget(label(text, look, wrap=True))
        return row

    def _choices_text(self, argument: ToolArgument) -> str:
        if not argument.choices:
            return ""
        words = show_hidden(", ".join(argument.choices))
        if argument.omitted_choices:
            return self.tr("One of: {0} and {1} more").format(words, argument.omitted_choices)
        return self.tr("One of: {0}").format(words)

    def _default_text(self, argument: ToolArgument) -> str:
        return self.tr("If left out: {0}").format(show_hidden(argument.default)) if argument.default else ""
