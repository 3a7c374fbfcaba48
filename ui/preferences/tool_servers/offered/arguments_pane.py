"""What the chosen tool takes, when the person wants to know: a list to read, and the schema as a model reads it."""

from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from desktop_agent.vocabulary.blocks import JsonObject
from ui.look.controls import button, label
from ui.look.parts.flow_rows import FlowRows
from ui.look.parts.json_text import arguments_as_json
from ui.look.sentences import literal
from ui.look.theme import SPACE_M, SPACE_S, SPACE_XS
from ui.look.visible_text import with_hidden_shown
from ui.preferences.tool_servers.offered.arguments import MOST_ARGUMENTS, Argument, arguments_of, count_of
from ui.preferences.tool_servers.whole_text import WholeText
from ui.preferences.tool_servers.words import kinds_in_words

MOST_CHARACTERS = 20_000


class ArgumentsPane(QWidget):
    """Closed at first; what is open stays open when another tool is chosen."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._schema: JsonObject = {}
        self._shown: JsonObject | None = None
        self._is_open = self._is_raw = False
        self._turn = button("", self._toggle, "link")
        self._turn_raw = button("", self._toggle_raw, "link")
        self._list = QFrame()
        self._list.setProperty("kind", "card")
        self._rows = QVBoxLayout(self._list)
        self._rows.setContentsMargins(SPACE_M, SPACE_S, SPACE_M, SPACE_S)
        self._rows.setSpacing(SPACE_M)
        self._raw = WholeText("", self.tr("Schema of the arguments as JSON"), 12)
        self._cut = label(kind="small", wrap=True)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_S)
        layout.addWidget(FlowRows((self._turn, self._turn_raw)))
        for each in (self._list, self._raw, self._cut):
            layout.addWidget(each)
        self._show()

    def show_schema(self, schema: JsonObject) -> None:
        """Of another tool, or of the same."""
        self._schema = schema
        self._show()

    def _toggle(self) -> None:
        self._is_open = not self._is_open
        self._show()

    def _toggle_raw(self) -> None:
        self._is_raw = not self._is_raw
        self._show()

    def _show(self) -> None:
        if self._is_open and self._shown is not self._schema:
            self._fill()
        if self._is_open and self._is_raw:
            text = arguments_as_json(self._schema)
            self._raw.show_text(text[:MOST_CHARACTERS])
            self._cut.setText(self._cut_words(len(text)))
        self._list.setVisible(self._is_open)
        self._turn.setText(literal(self._words()))
        self._turn.setAccessibleName(self._words())
        self._turn_raw.setVisible(self._is_open)
        self._turn_raw.setText(literal(self.tr("Hide JSON") if self._is_raw else self.tr("Show as JSON")))
        self._turn_raw.setAccessibleName(self.tr("Hide JSON") if self._is_raw else self.tr("Show as JSON"))
        self._raw.setVisible(self._is_open and self._is_raw)
        self._cut.setVisible(self._is_open and self._is_raw and bool(self._cut.text()))

    def _words(self) -> str:
        if self._is_open:
            return self.tr("Hide arguments")
        match count_of(self._schema):
            case 0:
                return self.tr("No arguments are named")
            case 1:
                return self.tr("Show 1 argument")
            case count:
                return self.tr("Show {0} arguments").format(count)

    def _cut_words(self, length: int) -> str:
        if length <= MOST_CHARACTERS:
            return ""
        words = self.tr("The first {0} of {1} characters.")
        return words.format(f"{MOST_CHARACTERS:,}", f"{length:,}")

    def _fill(self) -> None:
        self._shown = self._schema
        while (item := self._rows.takeAt(0)) is not None:
            old = item.widget()
            if old is not None:
                old.hide()
                old.deleteLater()
        arguments, are_all = arguments_of(self._schema)
        rows = [self._row(each) for each in arguments]
        if not arguments:
            rows.append(label(self.tr("The server names no arguments of this tool."), "muted", wrap=True))
        if not are_all:
            words = self.tr("These are the first {0}. The others are in the JSON.")
            rows.append(label(words.format(MOST_ARGUMENTS), "muted", wrap=True))
        for row in rows:
            self._rows.addWidget(row)
            row.show()

    def _row(self, argument: Argument) -> QWidget:
        row = QWidget()
        layout = QVBoxLayout(row)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_XS)
        kind = kinds_in_words(argument.kinds, argument.of)
        need = self.tr("required") if argument.is_required else self.tr("optional")
        facts = label(f"{kind} · {need}", "small")
        layout.addWidget(FlowRows((label(with_hidden_shown(argument.name), "strong"), facts)))
        said = (with_hidden_shown(argument.description), self._choices(argument), self._default(argument))
        for text, look in zip(said, ("", "small", "small"), strict=True):
            if text:
                layout.addWidget(label(text, look, wrap=True))
        return row

    def _choices(self, argument: Argument) -> str:
        if not argument.choices:
            return ""
        words = with_hidden_shown(", ".join(argument.choices))
        if argument.left_out:
            return self.tr("One of: {0} and {1} more").format(words, argument.left_out)
        return self.tr("One of: {0}").format(words)

    def _default(self, argument: Argument) -> str:
        return self.tr("If left out: {0}").format(with_hidden_shown(argument.default)) if argument.default else ""
