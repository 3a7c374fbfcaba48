"""A server that is a program of this machine: what is started, with which arguments and variables."""

from collections.abc import Collection

from pydantic import SecretStr
from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QPlainTextEdit, QVBoxLayout, QWidget

from desktop_agent.vocabulary.mcp.servers import StdioConnection
from ui.look.controls import announce, button, label
from ui.look.theme import SPACE_S, SPACE_XS, ThemeSource
from ui.look.visible_text import show_hidden
from ui.preferences.tool_servers.editing.argument_words import (
    find_secret,
    format_arguments,
    parse_arguments,
    split_command_line,
)
from ui.preferences.tool_servers.editing.value_row import variable_labels
from ui.preferences.tool_servers.editing.value_rows import KeyValueEditor

_ARGUMENT_LINES = 4


class StdioFields(QObject):
    """Fields for a form. A whole line of a shell is taken apart when the person wants it so."""

    changed = Signal()

    def __init__(self, themes: ThemeSource, connection: StdioConnection | None, parent: QObject) -> None:
        super().__init__(parent)
        self._program = QLineEdit()
        self._program.setPlaceholderText(self.tr("For example npx or uvx"))
        self._arguments = QPlainTextEdit(tabChangesFocus=True)
        self._arguments.setPlaceholderText(self.tr("For example -y"))
        self._arguments.setFixedHeight(self._arguments.fontMetrics().lineSpacing() * _ARGUMENT_LINES + 3 * SPACE_S)
        self._split_note = label(kind="muted", wrap=True)
        self._split_button = button(self.tr("Split it"), self._split_line)
        self._warning = label(kind="warning", wrap=True)
        self._changed_warning = label(kind="warning", wrap=True)
        self._before = connection
        self._variables = KeyValueEditor(themes, variable_labels())
        if connection is not None:
            self._program.setText(connection.command)
            self._arguments.setPlainText(format_arguments(connection.args))
            self._variables.show_values(connection.env, connection.secret_env)
        self._program.textChanged.connect(self._update_warnings)
        self._arguments.textChanged.connect(self._update_warnings)
        self._variables.changed.connect(self.changed)
        self._update_warnings()

    def rows(self) -> tuple[tuple[str, QWidget], ...]:
        """Each with its title."""
        return (
            (self.tr("Program"), self._program_widget()),
            (self.tr("Arguments"), self._arguments_widget()),
            (self.tr("Variables"), self._variables),
        )

    @property
    def connection(self) -> StdioConnection:
        """As it is written; valid where `first_error` finds nothing."""
        return StdioConnection(
            command=self._program.text().strip(),
            args=parse_arguments(self._arguments.toPlainText()),
            env=self._variables.plain,
            secret_env=self._variables.secret_names,
        )

    @property
    def secrets(self) -> dict[str, SecretStr]:
        """Values that are new."""
        return self._variables.secrets

    def set_stored_secrets(self, names: Collection[str]) -> None:
        """These secrets have a value."""
        self._variables.set_stored_secrets(names)

    def first_error(self) -> tuple[QWidget, str] | None:
        """The first field that cannot be saved, and why."""
        if not self._program.text().strip():
            return self._program, self.tr("Enter the program that is started, for example npx or uvx.")
        if "\0" in self._program.text() or "\0" in self._arguments.toPlainText():
            return self._program, self.tr("A program and its arguments have no NUL characters. Remove them.")
        return self._variables.first_error()

    def _update_warnings(self) -> None:
        words = split_command_line(self._program.text())
        is_line = len(words) > 1
        shown = "  ·  ".join(show_hidden(each) for each in words)
        self._split_note.setText(self.tr("This is a whole command line: {0}").format(shown))
        for each in (self._split_note, self._split_button):
            each.setVisible(is_line)
        secret = find_secret((*words[1:], *parse_arguments(self._arguments.toPlainText())))
        warning = self.tr(
            "“{0}” seems to hold a secret. Arguments are kept in a file, and every program of this machine can read "
            "them: give it as a secret variable, if the server takes one."
        )
        self._warning.setText(warning.format(show_hidden(secret or "")))
        self._warning.setVisible(secret is not None)
        self._update_changed_warning()
        self.changed.emit()

    def _update_changed_warning(self) -> None:
        is_other = self._before is not None and (
            self._program.text().strip() != self._before.command
            or parse_arguments(self._arguments.toPlainText()) != self._before.args
        )
        self._variables.invalidate_stored(forgotten=is_other)
        words = ""
        if is_other and self._variables.uses_stored:
            words = self.tr(
                "What the secret variables hold was given for what was started before, and goes to nothing else. "
                "Enter it again."
            )
        if words and words != self._changed_warning.text():
            announce(self._program, words)
        self._changed_warning.setText(words)
        self._changed_warning.setVisible(bool(words))

    def _split_line(self) -> None:
        program, *arguments = split_command_line(self._program.text())
        rest = parse_arguments(self._arguments.toPlainText())
        self._arguments.setPlainText(format_arguments((*arguments, *rest)))
        self._program.setText(program)
        self._arguments.setFocus()
        announce(self._program, self.tr("Split into program and arguments"))

    def _program_widget(self) -> QWidget:
        self._program.setAccessibleName(self.tr("Program"))
        apart = QHBoxLayout()
        apart.setSpacing(SPACE_S)
        apart.addWidget(self._split_note, 1)
        apart.addWidget(self._split_button)
        part = QWidget()
        column = QVBoxLayout(part)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(SPACE_XS)
        column.addWidget(self._program)
        column.addLayout(apart)
        return part

    def _arguments_widget(self) -> QWidget:
        words = self.tr("One per line. No shell reads them: ~, * and $HOME stay as they are.")
        self._arguments.setAccessibleName(self.tr("Arguments"))
        self._arguments.setAccessibleDescription(words)
        part = QWidget()
        column = QVBoxLayout(part)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(SPACE_XS)
        for each in (self._arguments, label(words, "muted", wrap=True), self._warning, self._changed_warning):
            column.addWidget(each)
        return part
