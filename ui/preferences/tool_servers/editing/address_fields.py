"""A server at an address: where, with which headers, and whether the person signs in there."""

from collections.abc import Collection
from urllib.parse import urlsplit

from pydantic import SecretStr
from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QCheckBox, QLineEdit, QVBoxLayout, QWidget

from desktop_agent.vocabulary.endpoints import is_loopback
from desktop_agent.vocabulary.mcp.servers import HttpConnection
from ui.look.controls import announce, label
from ui.look.parts.server_fields import web_address
from ui.look.parts.wrapped_choice import WrappedChoice
from ui.look.theme import SPACE_XS, ThemeSource
from ui.preferences.tool_servers.editing.identity_fields import IdentityFields
from ui.preferences.tool_servers.editing.value_row import header_words
from ui.preferences.tool_servers.editing.value_rows import ValueRows


class AddressFields(QObject):
    """Fields for a form. What lies in the keyring goes to the host that it was given for, and to no other."""

    changed = Signal()

    def __init__(self, themes: ThemeSource, connection: HttpConnection | None, parent: QObject) -> None:
        super().__init__(parent)
        self._before = connection
        self._address = QLineEdit()
        self._address.setPlaceholderText("https://mcp.example.com/mcp")
        self._warning = label(kind="warning", wrap=True)
        self._headers = ValueRows(themes, header_words())
        self._signs_in = QCheckBox()
        self._identity = IdentityFields(connection)
        if connection is not None:
            self._address.setText(connection.url)
            self._headers.show_values({}, connection.headers)
            self._signs_in.setChecked(connection.sign_in)
        self._address.textChanged.connect(self._look)
        self._headers.changed.connect(self.changed)
        self._identity.setVisible(self._signs_in.isChecked())
        self._identity.changed.connect(self.changed)
        self._signs_in.toggled.connect(self._identity.setVisible)
        self._signs_in.toggled.connect(self.changed)
        self._look()

    def rows(self) -> tuple[tuple[str, QWidget], ...]:
        """Each with its title."""
        return (
            (self.tr("Address"), self._address_part()),
            (self.tr("Headers"), self._headers),
            (self.tr("Sign-in"), self._sign_in_part()),
        )

    @property
    def connection(self) -> HttpConnection:
        """As it is written; valid where `wrong` finds nothing."""
        written = {
            "url": self._url or "",
            "headers": self._headers.secret_names,
            "sign_in": self._signs_in.isChecked(),
            "client_id": self._identity.client_id if self._signs_in.isChecked() else "",
        }
        base = self._before.model_dump() if self._before is not None else {}
        return HttpConnection.model_validate({**base, **written})

    @property
    def secrets(self) -> dict[str, SecretStr]:
        """Values that are new."""
        return {**self._headers.secrets, **(self._identity.secrets if self._signs_in.isChecked() else {})}

    def show_held(self, names: Collection[str]) -> None:
        """These secrets have a value."""
        self._headers.show_held(names)
        self._identity.show_held(names)

    def wrong(self) -> tuple[QWidget, str] | None:
        """The first field that cannot be saved, and why."""
        if not self._address.text().strip():
            return self._address, self.tr("Enter the address of the server. It begins with https://.")
        if self._url is None:
            return self._address, self.tr("This is not a web address. It begins with https:// or http://.")
        return self._headers.wrong()

    @property
    def _url(self) -> str | None:
        typed = self._address.text().strip()
        address = web_address(typed) if typed else None
        # A slash at the end may matter to an MCP server.
        return f"{address}/" if address is not None and typed.endswith("/") else address

    def _look(self) -> None:
        url = self._url
        parts = urlsplit(url or "")
        is_elsewhere = self._before is not None and url is not None and _origin(url) != _origin(self._before.url)
        self._headers.forget_kept(forgotten=is_elsewhere)
        self._identity.forget_kept(forgotten=self._before is not None and url != self._before.url)
        words = ""
        if is_elsewhere and self._before is not None and self._headers.has_kept:
            words = self.tr("What the headers hold was given for {0} and goes to no other address. Enter it again.")
            words = words.format(urlsplit(self._before.url).netloc)
        elif parts.scheme == "http" and not is_loopback(parts.hostname or ""):
            words = self.tr("What is sent to an http:// address can be read on the way. Take https:// if it has one.")
        if words and words != self._warning.text():
            announce(self._address, words)
        self._warning.setText(words)
        self._warning.setVisible(bool(words))
        self.changed.emit()

    def _address_part(self) -> QWidget:
        self._address.setAccessibleName(self.tr("Address"))
        return _column(self._address, self._warning)

    def _sign_in_part(self) -> QWidget:
        words = self.tr(
            "Save it, then press “Sign in” on its card: the browser opens with a page of the server. "
            "What comes of it is kept in the keyring."
        )
        self._signs_in.setAccessibleDescription(words)
        choice = WrappedChoice(self._signs_in, self.tr("I sign in there with the browser (OAuth)"))
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
