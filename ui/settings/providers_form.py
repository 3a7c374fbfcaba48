"""The page of model providers: a card and an editor for each endpoint, and its API key."""

from collections.abc import Iterable, Sequence
from functools import partial
from urllib.parse import urlsplit

from pydantic import SecretStr
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from desktop_agent.types.errors import SecretsUnavailable, Sentence
from desktop_agent.types.providers import Endpoint
from ui.bridge.event_loop import BackgroundTasks
from ui.bridge.model_servers import ModelServers
from ui.forms.controls import Control, text_line
from ui.forms.form import TABLE
from ui.settings.card_list import CardEditor, RemovalQuestion
from ui.style.boxes import hbox, vbox
from ui.style.controls import ElidedLabel, FocusReturn, button, label
from ui.style.layouts import FlowRows
from ui.style.removal import remove_widget
from ui.style.server_fields import (
    ApiKeyField,
    DialectBox,
    MirrorsField,
    ModelsField,
    SessionKeyLink,
    Status,
    StatusLine,
    complete_web_address,
    dialect_names,
)
from ui.style.text import join_names, join_sentences, translate_sentence
from ui.style.theme import SPACE_M, SPACE_S, SPACE_XS, ThemeSource


class EndpointEditor(CardEditor):
    """`saved` carries the edited Endpoint. Warns if saving removes the key, which belongs to its addresses only."""

    def __init__(self, endpoint: Endpoint) -> None:
        title = endpoint.title
        names = (self.tr("Cancel editing {0}").format(title), self.tr("Save {0}").format(title))
        super().__init__(style=TABLE, button_names=names)
        self._endpoint = endpoint
        self._holds_key = False
        self._title = text_line()
        self._address = text_line()
        self._add_fields()
        self.form.show_values(dict(endpoint))
        self._build_layout(spacing=SPACE_S, is_card=False)
        self.form.changed.connect(self._update_warning)

    def set_holds_key(self, *, stored: bool) -> None:
        """Set whether there is a key that can be lost."""
        self._holds_key = stored
        self._update_warning()

    def show_address(self, endpoint: Endpoint) -> None:
        """Show the address that was completed meanwhile, unless the person has changed it here."""
        if self._edited_item().base_url == self._endpoint.base_url:
            self.form.show_values({"base_url": endpoint.base_url})
        self._endpoint = endpoint
        self._update_warning()
        if self._edited_item() == endpoint:
            self.cancelled.emit()

    def start_editing(self) -> None:
        """Focus the title."""
        super().start_editing()
        self._title.widget.selectAll()

    def _edited_item(self) -> Endpoint:
        values, old = self.form.values, self._endpoint
        address = complete_web_address(values["base_url"]) or ""
        # A trailing slash is no change.
        values["base_url"] = old.base_url if address == old.base_url.rstrip("/") else address
        values["title"] = values["title"] or old.title
        values["mirrors"] = tuple(mirror for mirror in values["mirrors"][0] if mirror != address)
        return old.model_copy(update=values)

    def _emit_saved(self, item: Endpoint) -> None:
        if item == self._endpoint:
            self.cancelled.emit()
        else:
            self.saved.emit(item)

    def _update_warning(self) -> None:
        old = self._endpoint
        is_wrong = any(row.problem for row in self.form.rows.values())
        loses = self._holds_key and not is_wrong and not self._edited_item().origins <= old.origins
        words = self.tr(
            "The key belongs to {0} and is not sent to other addresses. Saving removes the key; then enter it again."
        ).format(join_names(dict.fromkeys(urlsplit(url).netloc for url in (old.base_url, *old.mirrors))))
        self.show_warning(words if loses else "")

    def _address_error(self, typed: str) -> str:
        words = self.tr("“{0}” is not a web address. It begins with https:// or http://.")
        return "" if complete_web_address(typed) is not None else words.format(typed)

    def _mirrors_error(self, mirrors: tuple[tuple[str, ...], str]) -> str:
        return self._address_error(mirrors[1]) if mirrors[1] else ""

    def _add_fields(self) -> None:
        add, title = self.form.add_field, self._endpoint.title
        add("title", self.tr("Title"), self._title, accessible_name=self.tr("Title of {0}").format(title))
        address = self.tr("Address of {0}").format(title)
        add("base_url", self.tr("Address"), self._address, self._address_error, accessible_name=address)
        dialect, models, mirrors = DialectBox(), ModelsField(), MirrorsField()
        speaks = Control(widget=dialect, read=dialect.currentData, show=dialect.show_dialect)
        add("dialect", self.tr("API"), speaks, accessible_name=self.tr("API of {0}").format(title))
        named = Control(widget=models, read=lambda: models.models, show=models.show_models)
        names = self.tr("Models of {0}, if it lists none").format(title)
        add("models", self.tr("Models"), named, accessible_name=names)
        further = Control(
            widget=mirrors.editor,
            view=mirrors,
            read=mirrors.addresses,
            show=mirrors.show_addresses,
            changed=mirrors.editor.textChanged,
            has_title=True,
        )
        add("mirrors", self.tr("Further addresses of {0}").format(title), further, self._mirrors_error)
        for line in (self._title.widget, self._address.widget, models):
            line.returnPressed.connect(self.save)


class EndpointCard(QFrame):
    """The card of one endpoint."""

    def __init__(self, themes: ThemeSource, endpoint: Endpoint, page: "ProviderSettings") -> None:
        super().__init__()
        title = endpoint.title
        self._endpoint = endpoint
        self._page = page
        self._themes = themes
        self._editor: EndpointEditor | None = None
        self._holds_key = False
        self._state = StatusLine(themes)
        self._focus = FocusReturn(self)
        self._address = ElidedLabel(endpoint.base_url, Qt.TextElideMode.ElideMiddle)
        self._key = label(kind="muted")
        self._field = ApiKeyField(self.tr("API key for {0}").format(title), self.tr("Paste a new API key"))
        self._change = button(self.tr("Change key"), self._open_field, name=self.tr("Change key of {0}").format(title))
        self._edit = button(self.tr("Edit"), self._open_editor, name=self.tr("Edit {0}").format(title))
        servers = page.servers
        test = partial(servers.test, endpoint.id)
        self._test = button(self.tr("Test"), test, name=self.tr("Test {0}").format(title))
        self._key_removal, self._removal = self._key_question(), self._server_question()
        self._key_removal.confirmed.connect(partial(servers.remove_key, endpoint.id))
        self._removal.confirmed.connect(partial(servers.remove, endpoint.id))
        self._field.key_entered.connect(partial(servers.replace_key, endpoint.id))
        self._field.hide()
        self._for_session = SessionKeyLink(self._field, self._submit_session_key)
        self.setProperty("kind", "card")
        remove_key, remove = self._key_removal.button, self._removal.button
        row = FlowRows((self._test, self._edit, self._change, remove_key, remove), last_apart=remove)
        details = label(self._details(), "muted", wrap=True)
        head, questions = self._header_layout(), (self._key_removal, self._removal)
        # The state is below the buttons, so that it does not move them from under the pointer.
        parts = (head, details, self._field, row, self._state, self._for_session, *questions)
        self._layout = vbox(*parts, parent=self, spacing=SPACE_S, margins=SPACE_M)

    def show_address(self, endpoint: Endpoint) -> None:
        """Show the address that was completed; the focus and typed texts stay."""
        self._endpoint = endpoint
        self._address.show_text(endpoint.base_url)
        if self._editor is not None:
            self._editor.show_address(endpoint)

    def show_key(self, *, stored: bool) -> None:
        """Show whether a key is stored."""
        self._holds_key = stored
        if self._editor is not None:
            self._editor.set_holds_key(stored=stored)
        self._key.setText(self.tr("Key set") if stored else self.tr("No key"))
        self._change.setText(self.tr("Change key") if stored else self.tr("Add key"))
        self._key_removal.button.setVisible(stored)
        words = (
            self.tr("Remove “{0}” and its key? Conversations stay.")
            if stored
            else self.tr("Remove “{0}”? Conversations stay.")
        )
        self._removal.question = words.format(self._endpoint.title)

    def show_state(self, state: Status, sentence: Sentence | str) -> None:
        """Show how a test or a change of key goes."""
        self._state.show_state(state, sentence)
        with self._focus.kept():
            self._test.setEnabled(state is not Status.BUSY)
        self._field.show_state(state)
        self._for_session.show_state(state)
        if state is Status.OK:
            self._field.hide()

    def ask_for_key(self) -> None:
        """Show that the key was removed with its address, and ask for one."""
        words = self.tr("The key was for another address and is removed. Enter the key for this one.")
        self._state.show_state(Status.NO_KEYRING, words)
        self._field.show()
        self._field.setFocus()

    def _key_question(self) -> RemovalQuestion:
        title = self._endpoint.title
        return RemovalQuestion(
            self.tr("Remove the key of “{0}”? To use it again, enter the key anew.").format(title),
            (self.tr("Remove key"), self.tr("Remove key of {0}").format(title)),
            (self.tr("Keep"), self.tr("Keep the key of {0}").format(title)),
            (self.tr("Remove key"), self.tr("Really remove the key of {0}").format(title)),
            kind="",
        )

    def _server_question(self) -> RemovalQuestion:
        title = self._endpoint.title
        return RemovalQuestion(
            "",
            (self.tr("Remove server"), self.tr("Remove server {0}").format(title)),
            (self.tr("Keep"), self.tr("Keep server {0}").format(title)),
            (self.tr("Remove server"), self.tr("Really remove server {0}").format(title)),
        )

    def _submit_session_key(self) -> None:
        key = self._field.text().strip()
        if key:
            self._page.servers.replace_key(self._endpoint.id, SecretStr(key), session_only=True)

    def _header_layout(self) -> QVBoxLayout:
        title = label(self._endpoint.title, "strong", wrap=True)
        self._address.setProperty("kind", "muted")
        head = hbox(title, self._key, spacing=SPACE_S, grow=title)
        head.setAlignment(self._key, Qt.AlignmentFlag.AlignTop)
        return vbox(head, self._address, spacing=SPACE_XS)

    def _details(self) -> str:
        words = dialect_names()[self._endpoint.dialect]
        mirrors = len(self._endpoint.mirrors)
        if mirrors == 1:
            return words + " · " + self.tr("1 further address")
        return words + (" · " + self.tr("{0} further addresses").format(mirrors) if mirrors else "")

    def _open_editor(self) -> None:
        if self._editor is None:
            self._editor = EndpointEditor(self._endpoint)
            self._editor.saved.connect(self._page.on_edited)
            self._editor.cancelled.connect(self._close_editor)
            self._layout.addWidget(self._editor)
            self._editor.set_holds_key(stored=self._holds_key)
        self._edit.setEnabled(False)
        self._editor.start_editing()

    def _close_editor(self) -> None:
        if self._editor is not None:
            remove_widget(self._layout, self._editor)
            self._editor = None
        self._edit.setEnabled(True)
        self._edit.setFocus()

    def _open_field(self) -> None:
        self._field.setVisible(self._field.isHidden())
        if not self._field.isHidden():
            self._field.setFocus()


class ProviderSettings(QWidget):
    """The page of providers."""

    connect_requested = Signal()
    local_requested = Signal()

    def __init__(self, themes: ThemeSource, servers: ModelServers, tasks: BackgroundTasks) -> None:
        super().__init__()
        self._themes = themes
        self.servers = servers
        self._tasks = tasks
        self._cards: dict[str, EndpointCard] = {}
        self._endpoints: Sequence[Endpoint] = ()
        self._stored_keys: frozenset[str] = frozenset()
        self._invalidated_keys: set[str] = set()
        self._keyring_label = label(kind="muted", wrap=True)
        self._none = label(self.tr("No server is connected yet."), "muted")
        self._list = vbox(spacing=SPACE_S)
        connect = button(self.tr("Connect a model…"), self.connect_requested.emit)
        foot = FlowRows((connect, button(self.tr("Run a model file…"), self.local_requested.emit)))
        vbox(
            self._keyring_label, self._none, self._list, foot, parent=self, spacing=SPACE_M, margins=0, end_stretch=True
        )
        servers.state_changed.connect(self._on_state)
        servers.endpoints_changed.connect(self.refresh)

    def refresh(self) -> None:
        """Show which servers have a key, and the keyring."""
        self._tasks.start(self._find_keys())

    async def _find_keys(self) -> None:
        self.show_keys(await self.servers.saved.servers_with_keys())
        try:
            self.show_keyring(await self.servers.saved.keyring_name())
        except SecretsUnavailable as error:
            self.show_no_keyring(translate_sentence(error.sentence))

    def _on_state(self, endpoint_id: str, state: str, sentence: Sentence | str) -> None:
        self.show_state(endpoint_id, Status(state), sentence)
        self.refresh()

    def show_keyring(self, name: str) -> None:
        """Show which keyring stores the keys."""
        words = self.tr("Keys are kept in your system's keyring ({0}).")
        self._keyring_label.setText(words.format(_KEYRINGS.get(name, name)))

    def show_no_keyring(self, why: str) -> None:
        """Show why no keyring can store keys."""
        until = self.tr("A key can be held in memory until the program is closed.")
        self._keyring_label.setText(join_sentences((why, until)))

    def show_endpoints(self, endpoints: Sequence[Endpoint]) -> None:
        """Show the endpoints in use. An open editor stays while other endpoints change."""
        if list(endpoints) == list(self._endpoints):
            return
        previous = {endpoint.id: _without_key(endpoint) for endpoint in self._endpoints}
        kept = {
            endpoint.id: self._cards[endpoint.id]
            for endpoint in endpoints
            if _is_same(previous.get(endpoint.id), endpoint)
        }
        for card in self._cards.values():
            if card not in kept.values():
                remove_widget(self._list, card)
        self._endpoints, self._cards = endpoints, {}
        for index, endpoint in enumerate(endpoints):
            card = self._cards[endpoint.id] = kept.get(endpoint.id) or EndpointCard(self._themes, endpoint, self)
            if endpoint.id in kept and previous[endpoint.id].base_url != endpoint.base_url:
                card.show_address(endpoint)
            if self._list.indexOf(card) != index:
                self._list.insertWidget(index, card)
            # Screen readers read in the order of the children.
            card.raise_()
        self._none.setVisible(not endpoints)
        self.show_keys(self._stored_keys - self._invalidated_keys)
        for endpoint_id in self._invalidated_keys & set(self._cards):
            self._cards[endpoint_id].ask_for_key()
        self._invalidated_keys.clear()

    def show_keys(self, stored: Iterable[str]) -> None:
        """Set the ids of endpoints with a stored key."""
        self._stored_keys = frozenset(stored)
        for endpoint_id, card in self._cards.items():
            card.show_key(stored=endpoint_id in self._stored_keys)

    def show_state(self, endpoint_id: str, state: Status, sentence: Sentence | str) -> None:
        """Show how a test or a change of key goes."""
        card = self._cards.get(endpoint_id)
        if card is not None:
            card.show_state(state, sentence)

    def on_edited(self, changed: Endpoint) -> None:
        """Save the change, and note if it removes the key, which is then asked for."""
        old = next(endpoint for endpoint in self._endpoints if endpoint.id == changed.id)
        if changed.id in self._stored_keys and not changed.origins <= old.origins:
            self._invalidated_keys.add(changed.id)
        self.servers.edit(changed)


_KEYRINGS = {
    "SecretService Keyring": "Secret Service",
    "libsecret Keyring": "Secret Service",
    "kwallet DBusKeyring": "KWallet",
    "macOS Keyring": "Keychain",
    "Windows WinVaultKeyring": "Credential Manager",
}
"""The common names of keyrings, by their names in the library `keyring`."""


def _is_same(previous: Endpoint | None, endpoint: Endpoint) -> bool:
    """Return whether its card can stay: a test may have completed the address."""
    if previous is None:
        return False
    addresses = {previous.base_url, f"{previous.base_url}/v1"}
    return _without_key(endpoint) in [previous.model_copy(update={"base_url": address}) for address in addresses]


def _without_key(endpoint: Endpoint) -> Endpoint:
    """Return the endpoint as its card shows it; `show_keys` shows whether it has a key."""
    return endpoint.model_copy(update={"has_key": None})
