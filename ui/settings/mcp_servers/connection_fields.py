"""The fields of a connection to an MCP server: a program (stdio), or a URL (HTTP) with headers and OAuth client."""

import json
import re
import shlex
from collections.abc import Collection
from dataclasses import replace
from urllib.parse import urlsplit

from pydantic import SecretStr
from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QLineEdit, QWidget

from desktop_agent.types.mcp import (
    CLIENT_SECRET,
    KNOWN_KEY_PREFIXES,
    HttpConnection,
    StdioConnection,
    find_option_with_secret,
)
from desktop_agent.types.providers import is_loopback
from ui.forms.controls import check_box, text_area, text_line
from ui.forms.form import Form
from ui.settings.mcp_servers.key_value_editor import KeyValueEditor, header_labels, variable_labels
from ui.style.boxes import hbox, vbox
from ui.style.controls import announce, button, label
from ui.style.server_fields import complete_web_address
from ui.style.text import show_hidden
from ui.style.theme import SPACE_S, SPACE_XS, ThemeSource

# Long runs of letters and digits, and the prefixes of well-known keys.
_SECRET_KEY = re.compile(rf"(?:{KNOWN_KEY_PREFIXES})[\w.-]{{8,}}|[A-Za-z0-9+_-]{{28,}}={{0,2}}")


def format_arguments(arguments: tuple[str, ...]) -> str:
    """Write one argument per line, as JSON if the plain line would be parsed differently."""
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

    def __init__(self, connection: HttpConnection | None) -> None:
        super().__init__()
        self._original = connection.client_id if connection is not None else ""
        self._is_stored = bool(self._original)
        self._is_invalidated = False
        self._id = QLineEdit(self._original)
        self._id.setMaxLength(_MAX_CLIENT_ID_LENGTH)
        self._id.setPlaceholderText(self.tr("Client id, if you were given one"))
        self._id.setAccessibleName(self.tr("Client id"))
        self._secret = QLineEdit(echoMode=QLineEdit.EchoMode.Password)
        self._secret.setAccessibleName(self.tr("Client secret"))
        words = self.tr(
            "Most servers need neither. Some accept only registered programs: the operator of such a "
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
        """The secret, if a new one was typed."""
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
        is_kept = self._is_stored and not self._is_invalidated and self.client_id == self._original
        words = self.tr("Kept in the keyring") if is_kept else self.tr("Client secret, if it has one")
        self._secret.setPlaceholderText(words)
        self._secret.setAccessibleDescription(self.tr("Type here to replace it.") if is_kept else "")
        self._secret.setEnabled(bool(self.client_id))
        self.changed.emit()


class HttpFields(QObject):
    """The fields of a URL. Secrets in the keyring go only to the host that they were given for."""

    def __init__(self, themes: ThemeSource, form: Form, connection: HttpConnection | None) -> None:
        super().__init__(form)
        self._original = connection
        self._headers = KeyValueEditor(themes, header_labels())
        self._client = OAuthClientFields(connection)
        url = text_line(placeholder="https://mcp.example.com/mcp")
        words = self.tr("Sign in with the browser (OAuth)")
        sign_in = replace(check_box(words), has_title=False)
        if connection is not None:
            url.show(connection.url)
            self._headers.show_values(({}, connection.headers))
            sign_in.show(connection.sign_in)
        self._client.setVisible(sign_in.widget.isChecked())
        sign_in.widget.toggled.connect(self._client.setVisible)
        how = self.tr(
            "Save, then press “Sign in…” on the server's card. Your browser opens a page of the server. "
            "The sign-in is kept in the keyring."
        )
        self._url_row = form.add_field("url", self.tr("Address"), url, self._url_error)
        form.add_field("headers", self.tr("Headers"), self._headers.control, self._headers.problem)
        self._sign_in = form.add_field("sign_in", self.tr("Sign-in"), sign_in, help_text=how, accessible_name=words)
        self._sign_in.column.addWidget(self._client)
        url.widget.textChanged.connect(self._on_url_changed)
        self._on_url_changed()

    @property
    def connection(self) -> HttpConnection:
        """The connection as typed; valid if no field is wrong."""
        typed = {
            "url": self._url or "",
            "headers": self._headers.secret_names,
            "sign_in": self._sign_in.value,
            "client_id": self._client.client_id if self._sign_in.value else "",
        }
        base = self._original.model_dump() if self._original is not None else {}
        return HttpConnection.model_validate({**base, **typed})

    @property
    def secrets(self) -> dict[str, SecretStr]:
        """New values for the keyring."""
        return {**self._headers.secrets, **(self._client.secrets if self._sign_in.value else {})}

    def set_stored_secrets(self, names: Collection[str]) -> None:
        """Set which secrets the keyring has."""
        self._headers.set_stored_secrets(names)
        self._client.set_stored_secrets(names)

    @property
    def _url(self) -> str | None:
        typed = self._url_row.value
        address = complete_web_address(typed) if typed else None
        # A slash at the end may matter to an MCP server.
        return f"{address}/" if address is not None and typed.endswith("/") else address

    def _url_error(self, typed: str) -> str:
        if not typed:
            return self.tr("Enter the address of the server. It begins with https://.")
        if self._url is None:
            return self.tr("This is not a web address. It begins with https:// or http://.")
        return ""

    def _on_url_changed(self) -> None:
        url, original = self._url, self._original
        parts = urlsplit(url or "")
        is_elsewhere = original is not None and url is not None and _origin(url) != _origin(original.url)
        self._headers.invalidate_stored(forgotten=is_elsewhere)
        self._client.invalidate_stored(forgotten=original is not None and url != original.url)
        words = ""
        if is_elsewhere and original is not None and self._headers.uses_stored:
            words = self.tr(
                "The values of the headers belong to {0} and are not sent to other addresses. Enter them again."
            )
            words = words.format(urlsplit(original.url).netloc)
        elif parts.scheme == "http" and not is_loopback(parts.hostname or ""):
            words = self.tr(
                "Others on the network can read what is sent to an http:// address. Use https:// if the "
                "server offers it."
            )
        self._url_row.show_warning(words)


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme.lower(), parts.netloc.lower()


_ARGUMENT_LINES = 4


class StdioFields(QObject):
    """The fields of a program. A whole shell line can be split on demand."""

    def __init__(self, themes: ThemeSource, form: Form, connection: StdioConnection | None) -> None:
        super().__init__(form)
        self._original = connection
        self._program = text_line(placeholder=self.tr("For example npx or uvx"))
        self._arguments = text_area(_ARGUMENT_LINES, margin=3 * SPACE_S, placeholder=self.tr("For example -y"))
        self._variables = KeyValueEditor(themes, variable_labels())
        self._split_note = label(kind="muted", wrap=True)
        self._split_button = button(self.tr("Split it"), self._split_line)
        if connection is not None:
            self._program.show(connection.command)
            self._arguments.show(format_arguments(connection.args))
            self._variables.show_values((connection.env, connection.secret_env))
        program = form.add_field("command", self.tr("Program"), self._program, self._program_error)
        program.column.addLayout(hbox(self._split_note, self._split_button, spacing=SPACE_S, grow=self._split_note))
        words = self.tr("One per line. No shell reads them: ~, * and $HOME stay as they are.")
        self._arguments_row = form.add_field("args", self.tr("Arguments"), self._arguments, help_text=words)
        form.add_field("env", self.tr("Variables"), self._variables.control, self._variables.problem)
        self._program.widget.textChanged.connect(self._update_warnings)
        self._arguments.widget.textChanged.connect(self._update_warnings)
        self._update_warnings()

    @property
    def connection(self) -> StdioConnection:
        """The connection as typed; valid if no field is wrong."""
        return StdioConnection(
            command=self._program.read(),
            args=self._typed_arguments,
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

    @property
    def _typed_arguments(self) -> tuple[str, ...]:
        return parse_arguments(self._arguments.read())

    def _program_error(self, program: str) -> str:
        if not program:
            return self.tr("Enter the program that is started, for example npx or uvx.")
        if "\0" in program or "\0" in self._arguments.read():
            return self.tr("A program and its arguments cannot have NUL characters. Remove them.")
        return ""

    def _update_warnings(self) -> None:
        words = split_command_line(self._program.read())
        shown = "  ·  ".join(show_hidden(word) for word in words)
        self._split_note.setText(self.tr("This is a whole command line: {0}").format(shown))
        for widget in (self._split_note, self._split_button):
            widget.setVisible(len(words) > 1)
        warnings = (self._secret_warning(words[1:]), self._changed_warning())
        self._arguments_row.show_warning("\n".join(filter(None, warnings)))

    def _secret_warning(self, more: tuple[str, ...]) -> str:
        secret = find_secret((*more, *self._typed_arguments))
        words = self.tr(
            "“{0}” seems to contain a secret. Arguments are kept in a file, and every program on this "
            "computer can read them: use a secret variable, if the server accepts one."
        )
        return words.format(show_hidden(secret)) if secret is not None else ""

    def _changed_warning(self) -> str:
        original = self._original
        is_other = original is not None and (
            self._program.read() != original.command or self._typed_arguments != original.args
        )
        self._variables.invalidate_stored(forgotten=is_other)
        if not is_other or not self._variables.uses_stored:
            return ""
        return self.tr(
            "The secret variables were entered for the previous program and are not given to another "
            "one. Enter them again."
        )

    def _split_line(self) -> None:
        program, *arguments = split_command_line(self._program.read())
        self._arguments.widget.setPlainText(format_arguments((*arguments, *self._typed_arguments)))
        self._program.widget.setText(program)
        self._arguments.widget.setFocus()
        announce(self._program.widget, self.tr("Split into program and arguments"))
