"""As whom this program is known to a server, where that was agreed on beforehand: a client id, and its secret."""

from collections.abc import Collection

from pydantic import SecretStr
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLineEdit, QVBoxLayout, QWidget

from desktop_agent.vocabulary.mcp.servers import CLIENT_SECRET, HttpConnection
from ui.look.controls import label
from ui.look.theme import SPACE_XS

_MAX_CLIENT_ID_LENGTH = 500


class OAuthClientFields(QWidget):
    """The secret is hidden as it is typed, and never shown again. It belongs to one client id at one address."""

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
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(SPACE_XS)
        for each in (self._id, self._secret, label(words, "muted", wrap=True)):
            column.addWidget(each)
        self._id.textChanged.connect(self._on_change)
        self._secret.textChanged.connect(self._on_change)
        self._on_change()

    @property
    def client_id(self) -> str:
        """As typed."""
        return self._id.text().strip()

    @property
    def secrets(self) -> dict[str, SecretStr]:
        """The secret, if a new one was typed for an id."""
        typed = self._secret.text()
        return {CLIENT_SECRET: SecretStr(typed)} if typed and self.client_id else {}

    def set_stored_secrets(self, names: Collection[str]) -> None:
        """These secrets have a value."""
        self._is_stored = CLIENT_SECRET in names
        self._on_change()

    def invalidate_stored(self, *, forgotten: bool) -> None:
        """The secret in the keyring was given for another address."""
        self._is_invalidated = forgotten
        self._on_change()

    def _on_change(self) -> None:
        is_kept = self._is_stored and not self._is_invalidated and self.client_id == self._before
        words = self.tr("Kept in the keyring") if is_kept else self.tr("Client secret, if it has one")
        self._secret.setPlaceholderText(words)
        self._secret.setAccessibleDescription(self.tr("What is typed here replaces it.") if is_kept else "")
        self._secret.setEnabled(bool(self.client_id))
        self.changed.emit()
