"""A server at an address: where, with which headers, and whether the person signs in there."""

from collections.abc import Collection
from urllib.parse import urlsplit

from pydantic import SecretStr
from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QCheckBox, QLineEdit, QVBoxLayout, QWidget

from desktop_agent.vocabulary.endpoints import is_loopback
from desktop_agent.vocabulary.mcp.servers import HttpConnection
from ui.look.controls import announce, label
from ui.look.parts.server_fields import complete_web_address
from ui.look.parts.wrapped_choice import WrappedChoice
from ui.look.theme import SPACE_XS, ThemeSource
from ui.preferences.tool_servers.editing.identity_fields import OAuthClientFields
from ui.preferences.tool_servers.editing.value_row import header_labels
from ui.preferences.tool_servers.editing.value_rows import KeyValueEditor


class HttpFields(QObject):
    """Fields for a form. What lies in the keyring goes to the host that it was given for, and to no other."""

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
        """Each with its title."""
        return (
            (self.tr("Address"), self._address_widget()),
            (self.tr("Headers"), self._headers),
            (self.tr("Sign-in"), self._sign_in_widget()),
        )

    @property
    def connection(self) -> HttpConnection:
        """As it is written; valid where `first_error` finds nothing."""
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
        """Values that are new."""
        return {**self._headers.secrets, **(self._identity.secrets if self._sign_in_box.isChecked() else {})}

    def set_stored_secrets(self, names: Collection[str]) -> None:
        """These secrets have a value."""
        self._headers.set_stored_secrets(names)
        self._identity.set_stored_secrets(names)

    def first_error(self) -> tuple[QWidget, str] | None:
        """The first field that cannot be saved, and why."""
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
    column = QVBoxLayout(part)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(SPACE_XS)
    for each in widgets:
        column.addWidget(each)
    return part


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme.lower(), parts.netloc.lower()
