"""One server in use: where it is, what it speaks, whether its key is held, and what can be done with it."""

from pydantic import SecretStr
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from desktop_agent.vocabulary.endpoints import Endpoint
from desktop_agent.vocabulary.errors import Sentence
from ui.look.controls import ElidedLabel, button, label
from ui.look.key_field import ApiKeyField, SessionKeyLink
from ui.look.parts.server_fields import dialect_names
from ui.look.state_line import Status, StatusLine
from ui.look.theme import SPACE_M, SPACE_S, ThemeSource
from ui.preferences.endpoint_editor import EndpointEditor


class EndpointCard(QFrame):
    """One server."""

    key_entered = Signal(object)
    """A SecretStr."""
    session_key_entered = Signal(object)
    """The same, to be kept in memory only: the keyring does not take it."""
    remove_key_pressed = Signal()
    test_pressed = Signal()
    remove_pressed = Signal()
    edited = Signal(object)
    """The Endpoint as it shall be."""

    def __init__(self, themes: ThemeSource, endpoint: Endpoint, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        title = endpoint.title
        self._endpoint = endpoint
        self._themes = themes
        self._editor: EndpointEditor | None = None
        self._holds_key = False
        self._state = StatusLine(themes)
        self._key = label(kind="muted")
        self._field = ApiKeyField(self.tr("API key for {0}").format(title), self.tr("Paste a new API key"))
        self._change = button(self.tr("Change key"), self._open_field, name=self.tr("Change key of {0}").format(title))
        self._remove_key = button(
            self.tr("Remove key"), self.remove_key_pressed.emit, name=self.tr("Remove key of {0}").format(title)
        )
        self._edit = button(self.tr("Edit"), self._open_editor, name=self.tr("Edit {0}").format(title))
        self._test = button(self.tr("Test"), self.test_pressed.emit, name=self.tr("Test {0}").format(title))
        remove = button(
            self.tr("Remove server"), self.remove_pressed.emit, "danger", self.tr("Remove server {0}").format(title)
        )
        self._field.key_entered.connect(self.key_entered)
        self._field.hide()
        self._for_session = SessionKeyLink(self._submit_session_key)
        self.setProperty("kind", "card")
        row = QHBoxLayout()
        row.setSpacing(SPACE_S)
        for each in (self._test, self._edit, self._change, self._remove_key):
            row.addWidget(each)
        row.addStretch(1)
        row.addWidget(remove)
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(SPACE_M, SPACE_M, SPACE_M, SPACE_M)
        self._layout.setSpacing(SPACE_S)
        self._layout.addLayout(self._header_layout())
        self._layout.addWidget(label(self._details(), "muted", wrap=True))
        self._layout.addWidget(self._state)
        self._layout.addWidget(self._for_session)
        self._layout.addWidget(self._field)
        self._layout.addLayout(row)

    def show_key(self, *, held: bool) -> None:
        """Whether a key is held."""
        self._holds_key = held
        if self._editor is not None:
            self._editor.set_holds_key(held=held)
        self._key.setText(self.tr("Key held") if held else self.tr("No key"))
        self._change.setText(self.tr("Change key") if held else self.tr("Add key"))
        self._remove_key.setVisible(held)

    def show_state(self, state: Status, sentence: Sentence | str) -> None:
        """How a test or a change of key goes."""
        self._state.show_state(state, sentence)
        self._test.setEnabled(state is not Status.BUSY)
        self._field.setEnabled(state is not Status.BUSY)
        self._for_session.setVisible(state is Status.NO_KEYRING)
        if state is Status.OK:
            self._field.clear()
            self._field.hide()

    def ask_for_key(self) -> None:
        """The key is gone with the address it was for: enter it again."""
        words = self.tr("The key was for another address and is removed. Enter the key for this one.")
        self._state.show_state(Status.NO_KEYRING, words)
        self._field.show()
        self._field.setFocus()

    def _submit_session_key(self) -> None:
        key = self._field.text().strip()
        if key:
            self.session_key_entered.emit(SecretStr(key))

    def _header_layout(self) -> QHBoxLayout:
        head = QHBoxLayout()
        head.setSpacing(SPACE_S)
        head.addWidget(label(self._endpoint.title, "strong"))
        address = ElidedLabel(self._endpoint.base_url)
        address.setProperty("kind", "muted")
        head.addWidget(address, 1)
        head.addWidget(self._key)
        return head

    def _details(self) -> str:
        words = dialect_names()[self._endpoint.dialect]
        mirrors = len(self._endpoint.mirrors)
        if mirrors == 1:
            return words + " · " + self.tr("1 further address")
        return words + (" · " + self.tr("{0} further addresses").format(mirrors) if mirrors else "")

    def _open_editor(self) -> None:
        if self._editor is None:
            self._editor = EndpointEditor(self._themes, self._endpoint)
            self._editor.saved.connect(self.edited)
            self._editor.cancelled.connect(self._close_editor)
            self._layout.addWidget(self._editor)
            self._editor.set_holds_key(held=self._holds_key)
        self._edit.setEnabled(False)
        self._editor.start_editing()

    def _close_editor(self) -> None:
        if self._editor is not None:
            self._layout.removeWidget(self._editor)
            self._editor.hide()
            self._editor.deleteLater()
            self._editor = None
        self._edit.setEnabled(True)
        self._edit.setFocus()

    def _open_field(self) -> None:
        self._field.setVisible(self._field.isHidden())
        if not self._field.isHidden():
            self._field.setFocus()
