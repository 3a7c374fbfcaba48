"""A server that is a program of this machine: what is started, with which arguments and variables."""

from collections.abc import Collection

from pydantic import SecretStr
from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QPlainTextEdit, QVBoxLayout, QWidget

from desktop_agent.vocabulary.mcp.servers import StdioConnection
from ui.look.controls import announce, button, label
from ui.look.theme import SPACE_S, SPACE_XS, ThemeSource
from ui.look.visible_text import with_hidden_shown
from ui.preferences.tool_servers.editing.argument_words import as_lines, from_lines, secret_looking, taken_apart
from ui.preferences.tool_servers.editing.value_row import variable_words
from ui.preferences.tool_servers.editing.value_rows import ValueRows

_LINES = 4


class ProgramFields(QObject):
    """Fields for a form. A whole line of a shell is taken apart when the person wants it so."""

    changed = Signal()

    def __init__(self, themes: ThemeSource, connection: StdioConnection | None, parent: QObject) -> None:
        super().__init__(parent)
        self._program = QLineEdit()
        self._program.setPlaceholderText(self.tr("For example npx or uvx"))
        self._arguments = QPlainTextEdit(tabChangesFocus=True)
        self._arguments.setPlaceholderText(self.tr("For example -y"))
        self._arguments.setFixedHeight(self._arguments.fontMetrics().lineSpacing() * _LINES + 3 * SPACE_S)
        self._apart = label(kind="muted", wrap=True)
        self._take_apart = button(self.tr("Split it"), self._split)
        self._warning = label(kind="warning", wrap=True)
        self._other = label(kind="warning", wrap=True)
        self._before = connection
        self._variables = ValueRows(themes, variable_words())
        if connection is not None:
            self._program.setText(connection.command)
            self._arguments.setPlainText(as_lines(connection.args))
            self._variables.show_values(connection.env, connection.secret_env)
        self._program.textChanged.connect(self._look)
        self._arguments.textChanged.connect(self._look)
        self._variables.changed.connect(self.changed)
        self._look()

    def rows(self) -> tuple[tuple[str, QWidget], ...]:
        """Each with its title."""
        return (
            (self.tr("Program"), self._program_part()),
            (self.tr("Arguments"), self._arguments_part()),
            (self.tr("Variables"), self._variables),
        )

    @property
    def connection(self) -> StdioConnection:
        """As it is written; valid where `wrong` finds nothing."""
        return StdioConnection(
            command=self._program.text().strip(),
            args=from_lines(self._arguments.toPlainText()),
            env=self._variables.plain,
            secret_env=self._variables.secret_names,
        )

    @property
    def secrets(self) -> dict[str, SecretStr]:
        """Values that are new."""
        return self._variables.secrets

    def show_held(self, names: Collection[str]) -> None:
        """These secrets have a value."""
        self._variables.show_held(names)

    def wrong(self) -> tuple[QWidget, str] | None:
        """The first field that cannot be saved, and why."""
        if not self._program.text().strip():
            return self._program, self.tr("Enter the program that is started, for example npx or uvx.")
        if "\0" in self._program.text() or "\0" in self._arguments.toPlainText():
            return self._program, self.tr("A program and its arguments have no NUL characters. Remove them.")
        return self._variables.wrong()

    def _look(self) -> None:
        words = taken_apart(self._program.text())
        is_line = len(words) > 1
        shown = "  ·  ".join(with_hidden_shown(each) for each in words)
        self._apart.setText(self.tr("This is a whole command line: {0}").format(shown))
        for each in (self._apart, self._take_apart):
            each.setVisible(is_line)
        secret = secret_looking((*words[1:], *from_lines(self._arguments.toPlainText())))
        warning = self.tr(
            "“{0}” seems to hold a secret. Arguments are kept in a file, and every program of this machine can read "
            "them: give it as a secret variable, if the server takes one."
        )
        self._warning.setText(warning.format(with_hidden_shown(secret or "")))
        self._warning.setVisible(secret is not None)
        self._look_whether_other()
        self.changed.emit()

    def _look_whether_other(self) -> None:
        is_other = self._before is not None and (
            self._program.text().strip() != self._before.command
            or from_lines(self._arguments.toPlainText()) != self._before.args
        )
        self._variables.forget_kept(forgotten=is_other)
        words = ""
        if is_other and self._variables.has_kept:
            words = self.tr(
                "What the secret variables hold was given for what was started before, and goes to nothing else. "
                "Enter it again."
            )
        if words and words != self._other.text():
            announce(self._program, words)
        self._other.setText(words)
        self._other.setVisible(bool(words))

    def _split(self) -> None:
        program, *arguments = taken_apart(self._program.text())
        rest = from_lines(self._arguments.toPlainText())
        self._arguments.setPlainText(as_lines((*arguments, *rest)))
        self._program.setText(program)
        self._arguments.setFocus()
        announce(self._program, self.tr("Split into program and arguments"))

    def _program_part(self) -> QWidget:
        self._program.setAccessibleName(self.tr("Program"))
        apart = QHBoxLayout()
        apart.setSpacing(SPACE_S)
        apart.addWidget(self._apart, 1)
        apart.addWidget(self._take_apart)
        part = QWidget()
        column = QVBoxLayout(part)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(SPACE_XS)
        column.addWidget(self._program)
        column.addLayout(apart)
        return part

    def _arguments_part(self) -> QWidget:
        words = self.tr("One per line. No shell reads them: ~, * and $HOME stay as they are.")
        self._arguments.setAccessibleName(self.tr("Arguments"))
        self._arguments.setAccessibleDescription(words)
        part = QWidget()
        column = QVBoxLayout(part)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(SPACE_XS)
        for each in (self._arguments, label(words, "muted", wrap=True), self._warning, self._other):
            column.addWidget(each)
        return part
