"""The fields of a connection to an MCP server: a program (stdio), or a URL (HTTP) with headers and OAuth client."""

import json
import re
import shlex
from collections.abc import Collection
from urllib.parse import urlsplit

from pydantic import SecretStr
from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QCheckBox, QLineEdit, QPlainTextEdit, QVBoxLayout, QWidget

from desktop_agent.types.mcp import (
    CLIENT_SECRET,
    KNOWN_KEY_PREFIXES,
    HttpConnection,
    StdioConnection,
    find_option_with_secret,
)
from desktop_agent.types.providers import is_loopback
from ui.preferences.mcp_servers.key_value_editor import KeyValueEditor, header_labels, variable_labels
from ui.style.boxes import hbox, vbox
from ui.style.controls import announce, button, label
from ui.style.server_fields import complete_web_address
from ui.style.text import show_hidden
from ui.style.theme import SPACE_S, SPACE_XS, ThemeSource
from ui.style.widgets import WrappedChoice

# Long runs of letters and digits, and the prefixes of well-known keys.
_SECRET_KEY = re.compile(rf"(?:{KNOWN_KEY_PREFIXES})[\w.-]{{8,}}|[A-Za-z0-9+_-]{{28,}}={{0,2}}")


def format_arguments(arguments: tuple[str, ...]) -> str:
    """Write one argument a line; as JSON where a line would be read differently."""
    return "\n".join(
        json.dumps(argument, ensure_ascii=False) if _needs_quotes(argument) else argument for argument in arguments
    )


def parse_arguments(text: str) -> tuple[str, ...]:
    """Parse lines of arguments; a line in quotation marks is unquoted."""
    lines = (line.strip() for line in text.split("\n"))
    return tuple(_unquote(line) for line in lines if line)


def split_command_line(line: str) -> tuple[str, ...]:
    """Split a shell line into words; empty for an open quotation mark."""
    try:
        return tuple(shlex.split(line))
    except ValueError:
        return ()


def find_secret(arguments: tuple[str, ...]) -> str | None:
    """Return the first argument that is probably a secret, shortened."""
    option = find_option_with_secret(arguments)
    if option is not None:
        return option
    for argument in arguments:
        value = argument.partition("=")[2] or argument
        if _SECRET_KEY.fullmatch(value) and re.search(r"\d", value) and re.search(r"[A-Za-z]", value):
            return value[:6] + "…"
    return None


def _needs_quotes(argument: str) -> bool:
    return argument != argument.strip() or not argument or argument.startswith('"') or not argument.isprintable()


def _unquote(line: str) -> str:
    if len(line) < 2 or not line.startswith('"') or not line.endswith('"'):
        return line
    try:
        return str(json.loads(line))
    except ValueError:
        return line[1:-1]


_MAX_CLIENT_ID_LENGTH = 500


class OAuthClientFields(QWidget):
    """Client id and secret. The secret is never shown, and belongs to one client id at one URL."""

    changed = Signal()

    def __init__(self, connection: HttpConnection | None, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._before = connection.client_id if connection is not None else ""
        self._is_stored = bool(self._before)
        self._is_invalidated = False
        self._id = QLineEdit(self._before)
        self._id.setMaxLength(_MAX_CLIENT_ID_LENGTH)
        self._id.setPlaceholderText(self.tr("Client id, if you were given one"))
        self._id.setAccessibleName(self.tr("Client id"))
        self._secret = QLineEdit(echoMode=QLineEdit.EchoMode.Password)
        self._secret.setAccessibleName(self.tr("Client secret"))
        words = self.tr(
            "Most servers need neither. Some know only programs that they were told of before: whoever runs such a "
            "server gives you both. The secret goes to the keyring."
        )
        self._id.setAccessibleDescription(words)
        vbox(self._id, self._secret, label(words, "muted", wrap=True), parent=self, spacing=SPACE_XS, margins=0)
        self._id.textChanged.connect(self._on_change)
        self._secret.textChanged.connect(self._on_change)
        self._on_change()

    @property
    def client_id(self) -> str:
        return self._id.text().strip()

    @property
    def secrets(self) -> dict[str, SecretStr]:
        """Return the secret, if a new one was typed."""
        typed = self._secret.text()
        return {CLIENT_SECRET: SecretStr(typed)} if typed and self.client_id else {}

    def set_stored_secrets(self, names: Collection[str]) -> None:
        """Set which secrets the keyring has."""
        self._is_stored = CLIENT_SECRET in names
        self._on_change()

    def invalidate_stored(self, *, forgotten: bool) -> None:
        """Set whether the secret in the keyring was given for another URL."""
        self._is_invalidated = forgotten
        self._on_change()

    def _on_change(self) -> None:
        is_kept = self._is_stored and not self._is_invalidated and self.client_id == self._before
        words = self.tr("Kept in the keyring") if is_kept else self.tr("Client secret, if it has one")
        self._secret.setPlaceholderText(words)
        self._secret.setAccessibleDescription(self.tr("What is typed here replaces it.") if is_kept else "")
        self._secret.setEnabled(bool(self.client_id))
        self.changed.emit()


class HttpFields(QObject):
    """The fields of a URL. Secrets in the keyring go only to the host that they were given for."""

    changed = Signal()

    def __init__(self, themes: ThemeSource, connection: HttpConnection | None, parent: QObject) -> None:
        super().__init__(parent)
        self._before = connection
        self._address = QLineEdit()
        self._address.setPlaceholderText("https://mcp.example.com/mcp")
        self._warning = label(kind="warning", wrap=True)
        self._headers = KeyValueEditor(themes, header_labels())
        self._sign_in_box = QCheckBox()
        self._identity = OAuthClientFields(connection)
        if connection is not None:
            self._address.setText(connection.url)
            self._headers.show_values({}, connection.headers)
            self._sign_in_box.setChecked(connection.sign_in)
        self._address.textChanged.connect(self._update_warning)
        self._headers.changed.connect(self.changed)
        self._identity.setVisible(self._sign_in_box.isChecked())
        self._identity.changed.connect(self.changed)
        self._sign_in_box.toggled.connect(self._identity.setVisible)
        self._sign_in_box.toggled.connect(self.changed)
        self._update_warning()

    def rows(self) -> tuple[tuple[str, QWidget], ...]:
        """Return the fields with their titles."""
        return (
            (self.tr("Address"), self._address_widget()),
            (self.tr("Headers"), self._headers),
            (self.tr("Sign-in"), self._sign_in_widget()),
        )

    @property
    def connection(self) -> HttpConnection:
        """Return the connection as typed; valid where `first_error` finds nothing."""
        written = {
            "url": self._url or "",
            "headers": self._headers.secret_names,
            "sign_in": self._sign_in_box.isChecked(),
            "client_id": self._identity.client_id if self._sign_in_box.isChecked() else "",
        }
        base = self._before.model_dump() if self._before is not None else {}
        return HttpConnection.model_validate({**base, **written})

    @property
    def secrets(self) -> dict[str, SecretStr]:
        """New values for the keyring."""
        return {**self._headers.secrets, **(self._identity.secrets if self._sign_in_box.isChecked() else {})}

    def set_stored_secrets(self, names: Collection[str]) -> None:
        """Set which secrets the keyring has."""
        self._headers.set_stored_secrets(names)
        self._identity.set_stored_secrets(names)

    def first_error(self) -> tuple[QWidget, str] | None:
        """Return the first field that is wrong, and why."""
        if not self._address.text().strip():
            return self._address, self.tr("Enter the address of the server. It begins with https://.")
        if self._url is None:
            return self._address, self.tr("This is not a web address. It begins with https:// or http://.")
        return self._headers.first_error()

    @property
    def _url(self) -> str | None:
        typed = self._address.text().strip()
        address = complete_web_address(typed) if typed else None
        # A slash at the end may matter to an MCP server.
        return f"{address}/" if address is not None and typed.endswith("/") else address

    def _update_warning(self) -> None:
        url = self._url
        parts = urlsplit(url or "")
        is_elsewhere = self._before is not None and url is not None and _origin(url) != _origin(self._before.url)
        self._headers.invalidate_stored(forgotten=is_elsewhere)
        self._identity.invalidate_stored(forgotten=self._before is not None and url != self._before.url)
        words = ""
        if is_elsewhere and self._before is not None and self._headers.uses_stored:
            words = self.tr("What the headers hold was given for {0} and goes to no other address. Enter it again.")
            words = words.format(urlsplit(self._before.url).netloc)
        elif parts.scheme == "http" and not is_loopback(parts.hostname or ""):
            words = self.tr("What is sent to an http:// address can be read on the way. Take https:// if it has one.")
        if words and words != self._warning.text():
            announce(self._address, words)
        self._warning.setText(words)
        self._warning.setVisible(bool(words))
        self.changed.emit()

    def _address_widget(self) -> QWidget:
        self._address.setAccessibleName(self.tr("Address"))
        return _column(self._address, self._warning)

    def _sign_in_widget(self) -> QWidget:
        words = self.tr(
            "Save it, then press “Sign in” on its card: the browser opens with a page of the server. "
            "What comes of it is kept in the keyring."
        )
        self._sign_in_box.setAccessibleDescription(words)
        choice = WrappedChoice(self._sign_in_box, self.tr("I sign in there with the browser (OAuth)"))
        return _column(choice, label(words, "muted", wrap=True), self._identity)


def _column(*widgets: QWidget) -> QWidget:
    part = QWidget()
    vbox(*widgets, parent=part, spacing=SPACE_XS, margins=0)
    return part


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme.lower(), parts.netloc.lower()


_ARGUMENT_LINES = 4


class StdioFields(QObject):
    """The fields of a program. A whole shell line can be split on demand."""

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
        """Return the fields with their titles."""
        return (
            (self.tr("Program"), self._program_widget()),
            (self.tr("Arguments"), self._arguments_widget()),
            (self.tr("Variables"), self._variables),
        )

    @property
    def connection(self) -> StdioConnection:
        """The connection as typed; valid where `first_error` finds nothing."""
        return StdioConnection(
            command=self._program.text().strip(),
            args=parse_arguments(self._arguments.toPlainText()),
            env=self._variables.plain,
            secret_env=self._variables.secret_names,
        )

    @property
    def secrets(self) -> dict[str, SecretStr]:
        """New values for the keyring."""
        return self._variables.secrets

    def set_stored_secrets(self, names: Collection[str]) -> None:
        """Set which secrets the keyring has."""
        self._variables.set_stored_secrets(names)

    def first_error(self) -> tuple[QWidget, str] | None:
        """Return the first field that is wrong, and why."""
        if not self._program.text().strip():
            return self._program, self.tr("Enter the program that is started, for example npx or uvx.")
        if "\0" in self._program.text() or "\0" in self._arguments.toPlainText():
            return self._program, self.tr("A program and its arguments have no NUL characters. Remove them.")
        return self._variables.first_error()

    def _update_warnings(self) -> None:
        words = split_command_line(self._program.text())
        is_line = len(words) > 1
        shown = "  ·  ".join(show_hidden(word) for word in words)
        self._split_note.setText(self.tr("This is a whole command line: {0}").format(shown))
        for widget in (self._split_note, self._split_button):
            widget.setVisible(is_line)
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
        split_row = hbox(self._split_note, self._split_button, spacing=SPACE_S, grow=self._split_note)
        part = QWidget()
        vbox(self._program, split_row, parent=part, spacing=SPACE_XS, margins=0)
        return part

    def _arguments_widget(self) -> QWidget:
        words = self.tr("One per line. No shell reads them: ~, * and $HOME stay as they are.")
        self._arguments.setAccessibleName(self.tr("Arguments"))
        self._arguments.setAccessibleDescription(words)
        part = QWidget()
        column = QVBoxLayout(part)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(SPACE_XS)
        for widget in (self._arguments, label(words, "muted", wrap=True), self._warning, self._changed_warning):
            column.addWidget(widget)
        return part
