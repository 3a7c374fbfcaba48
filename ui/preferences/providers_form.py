"""Providers and keys: every server in use, whether its key is held and where, and what can be done about it."""

from collections.abc import Iterable, Sequence
from functools import partial

from pydantic import SecretStr
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from desktop_agent.vocabulary.endpoints import Endpoint
from desktop_agent.vocabulary.errors import Sentence
from ui.look.controls import button, label
from ui.look.key_field import KeyField
from ui.look.state_line import State, StateLine
from ui.look.theme import SPACE_M, SPACE_S, ThemeSource


class ProvidersForm(QWidget):
    """Asks for changes; the shell makes them and answers with `show_state`, `show_endpoints` and `show_keys`."""

    key_submitted = Signal(str, object)
    """Endpoint id and SecretStr."""
    key_removed = Signal(str)
    test_requested = Signal(str)
    endpoint_removed = Signal(str)
    connect_requested = Signal()

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._cards: dict[str, EndpointCard] = {}
        self._endpoints: Sequence[Endpoint] = ()
        self._held: frozenset[str] = frozenset()
        self._where = label(kind="muted", wrap=True)
        self._none = label(self.tr("No server is connected yet."), "muted")
        self._list = QVBoxLayout()
        self._list.setSpacing(SPACE_S)
        foot = QHBoxLayout()
        foot.addWidget(button(self.tr("Connect a model…"), self.connect_requested.emit))
        foot.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_M)
        layout.addWidget(self._where)
        layout.addWidget(self._none)
        layout.addLayout(self._list)
        layout.addLayout(foot)
        layout.addStretch(1)

    def show_backend(self, name: str) -> None:
        """Where keys are held, as the keyring calls itself."""
        self._where.setText(self.tr("Keys are held by: {0}").format(name))

    def show_no_backend(self, why: str) -> None:
        """Why no keyring can hold keys; those that are given last until the program is closed."""
        self._where.setText(why)

    def show_endpoints(self, endpoints: Sequence[Endpoint]) -> None:
        """The servers in use."""
        if list(endpoints) == list(self._endpoints):
            return
        self._endpoints = endpoints
        for card in self._cards.values():
            self._list.removeWidget(card)
            card.hide()
            card.deleteLater()
        self._cards = {}
        for endpoint in endpoints:
            card = self._cards[endpoint.id] = EndpointCard(self._themes, endpoint)
            card.key_entered.connect(partial(self._submit, endpoint.id))
            card.remove_key_pressed.connect(partial(self.key_removed.emit, endpoint.id))
            card.test_pressed.connect(partial(self.test_requested.emit, endpoint.id))
            card.remove_pressed.connect(partial(self.endpoint_removed.emit, endpoint.id))
            self._list.addWidget(card)
        self._none.setVisible(not endpoints)
        self.show_keys(self._held)

    def show_keys(self, held: Iterable[str]) -> None:
        """The endpoint ids whose key is held."""
        self._held = frozenset(held)
        for endpoint_id, card in self._cards.items():
            card.show_key(held=endpoint_id in self._held)

    def show_state(self, endpoint_id: str, state: State, sentence: Sentence | str) -> None:
        """How a test or a change of key goes."""
        card = self._cards.get(endpoint_id)
        if card is not None:
            card.show_state(state, sentence)

    def _submit(self, endpoint_id: str, key: SecretStr) -> None:
        self.key_submitted.emit(endpoint_id, key)


class EndpointCard(QFrame):
    """One server."""

    key_entered = Signal(object)
    remove_key_pressed = Signal()
    test_pressed = Signal()
    remove_pressed = Signal()

    def __init__(self, themes: ThemeSource, endpoint: Endpoint, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        title = endpoint.title
        self._state = StateLine(themes)
        self._key = label(kind="muted")
        self._field = KeyField(self.tr("API key for {0}").format(title), self.tr("Paste a new API key"))
        self._change = button(self.tr("Change key"), self._open_field, name=self.tr("Change key of {0}").format(title))
        self._remove_key = button(
            self.tr("Remove key"), self.remove_key_pressed.emit, name=self.tr("Remove key of {0}").format(title)
        )
        self._test = button(self.tr("Test"), self.test_pressed.emit, name=self.tr("Test {0}").format(title))
        remove = button(
            self.tr("Remove server"), self.remove_pressed.emit, "danger", self.tr("Remove server {0}").format(title)
        )
        self._field.key_entered.connect(self.key_entered)
        self._field.hide()
        self.setProperty("kind", "card")
        head = QHBoxLayout()
        head.setSpacing(SPACE_S)
        head.addWidget(label(title, "strong"))
        head.addWidget(label(endpoint.base_url, "muted"), 1)
        head.addWidget(self._key)
        row = QHBoxLayout()
        row.setSpacing(SPACE_S)
        for each in (self._test, self._change, self._remove_key):
            row.addWidget(each)
        row.addStretch(1)
        row.addWidget(remove)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_M, SPACE_M, SPACE_M, SPACE_M)
        layout.setSpacing(SPACE_S)
        layout.addLayout(head)
        layout.addWidget(self._state)
        layout.addWidget(self._field)
        layout.addLayout(row)

    def show_key(self, *, held: bool) -> None:
        """Whether a key is held."""
        self._key.setText(self.tr("Key held") if held else self.tr("No key"))
        self._change.setText(self.tr("Change key") if held else self.tr("Add key"))
        self._remove_key.setVisible(held)

    def show_state(self, state: State, sentence: Sentence | str) -> None:
        """How a test or a change of key goes."""
        self._state.show_state(state, sentence)
        self._test.setEnabled(state is not State.BUSY)
        self._field.setEnabled(state is not State.BUSY)
        if state is State.OK:
            self._field.clear()
            self._field.hide()

    def _open_field(self) -> None:
        self._field.setVisible(self._field.isHidden())
        if not self._field.isHidden():
            self._field.setFocus()
