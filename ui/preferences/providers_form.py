"""Providers and keys: every server in use, whether its key is held and where, and what can be done about it."""

from collections.abc import Iterable, Sequence
from functools import partial

from pydantic import SecretStr
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from desktop_agent.vocabulary.endpoints import Endpoint
from desktop_agent.vocabulary.errors import Sentence
from ui.look.controls import button, label
from ui.look.state_line import Status
from ui.look.theme import SPACE_M, SPACE_S, ThemeSource
from ui.preferences.endpoint_card import EndpointCard


class ProvidersForm(QWidget):
    """Asks for changes; the shell makes them and answers with `show_state`, `show_endpoints` and `show_keys`."""

    key_submitted = Signal(str, object)
    """Endpoint id and SecretStr."""
    session_key_submitted = Signal(str, object)
    """The same, to be kept in memory only."""
    key_removed = Signal(str)
    test_requested = Signal(str)
    endpoint_removed = Signal(str)
    endpoint_edited = Signal(object)
    """The Endpoint as it shall be."""
    connect_requested = Signal()

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._cards: dict[str, EndpointCard] = {}
        self._endpoints: Sequence[Endpoint] = ()
        self._stored_keys: frozenset[str] = frozenset()
        self._invalidated_keys: set[str] = set()
        self._keyring_label = label(kind="muted", wrap=True)
        self._none = label(self.tr("No server is connected yet."), "muted")
        self._list = QVBoxLayout()
        self._list.setSpacing(SPACE_S)
        foot = QHBoxLayout()
        foot.addWidget(button(self.tr("Connect a model…"), self.connect_requested.emit))
        foot.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_M)
        layout.addWidget(self._keyring_label)
        layout.addWidget(self._none)
        layout.addLayout(self._list)
        layout.addLayout(foot)
        layout.addStretch(1)

    def show_keyring(self, name: str) -> None:
        """Where keys are held, as the keyring calls itself."""
        self._keyring_label.setText(self.tr("Keys are held by: {0}").format(name))

    def show_no_keyring(self, why: str) -> None:
        """Why no keyring can hold keys."""
        until = self.tr("A key can be held in memory until the program is closed.")
        self._keyring_label.setText(f"{why} {until}")

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
            card.session_key_entered.connect(partial(self._submit_for_session, endpoint.id))
            card.remove_key_pressed.connect(partial(self.key_removed.emit, endpoint.id))
            card.test_pressed.connect(partial(self.test_requested.emit, endpoint.id))
            card.remove_pressed.connect(partial(self.endpoint_removed.emit, endpoint.id))
            card.edited.connect(self._on_edited)
            self._list.addWidget(card)
        self._none.setVisible(not endpoints)
        self.show_keys(self._stored_keys - self._invalidated_keys)
        for endpoint_id in self._invalidated_keys & set(self._cards):
            self._cards[endpoint_id].ask_for_key()
        self._invalidated_keys.clear()

    def show_keys(self, held: Iterable[str]) -> None:
        """The endpoint ids whose key is held."""
        self._stored_keys = frozenset(held)
        for endpoint_id, card in self._cards.items():
            card.show_key(held=endpoint_id in self._stored_keys)

    def show_state(self, endpoint_id: str, state: Status, sentence: Sentence | str) -> None:
        """How a test or a change of key goes."""
        card = self._cards.get(endpoint_id)
        if card is not None:
            card.show_state(state, sentence)

    def _submit(self, endpoint_id: str, key: SecretStr) -> None:
        self.key_submitted.emit(endpoint_id, key)

    def _submit_for_session(self, endpoint_id: str, key: SecretStr) -> None:
        self.session_key_submitted.emit(endpoint_id, key)

    def _on_edited(self, changed: Endpoint) -> None:
        """A key that is lost by it is asked for as soon as the change is made."""
        old = next(each for each in self._endpoints if each.id == changed.id)
        if changed.id in self._stored_keys and not changed.origins <= old.origins:
            self._invalidated_keys.add(changed.id)
        self.endpoint_edited.emit(changed)
