"""The rows of the welcome page: a server, its state, and its actions."""

from dataclasses import dataclass
from functools import partial

from pydantic import SecretStr
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QBoxLayout, QFrame, QLineEdit, QWidget

from desktop_agent.types.errors import Sentence
from desktop_agent.types.providers import Dialect, Endpoint
from ui.bridge.desktop.opening import AddressOpener
from ui.style.boxes import hbox, vbox
from ui.style.controls import button, label
from ui.style.layouts import FlowRows
from ui.style.server_fields import (
    ApiKeyField,
    DialectBox,
    MirrorsField,
    ModelsField,
    SessionKeyLink,
    Status,
    StatusLine,
    complete_web_address,
)
from ui.style.theme import SPACE_S, SPACE_XS, ThemeSource


class ServerRow(QWidget):
    """The base of every row: a title, controls, and a status line."""

    def __init__(self, themes: ThemeSource, title: str) -> None:
        super().__init__()
        self._controls = hbox(spacing=SPACE_S)
        self.state_line = StatusLine(themes)
        self.title_label = label(title, "strong")
        self._line = hbox(self.title_label, self._controls, spacing=SPACE_S, grow=self._controls)
        margins = (0, SPACE_XS, 0, SPACE_XS)
        self._rows = vbox(self._line, self.state_line, parent=self, spacing=SPACE_XS, margins=margins)

    def set_narrow(self, *, narrow: bool) -> None:
        """Place the controls under the title, or beside it."""
        self._line.setDirection(_direction(narrow=narrow))

    def show_state(self, state: Status, sentence: Sentence | str) -> None:
        """Show how connecting goes."""
        self.state_line.show_state(state, sentence)


class LocalRow(ServerRow):
    """A server on this computer. `model_count` is None if it did not answer."""

    use_pressed = Signal()

    def __init__(
        self, themes: ThemeSource, endpoint: Endpoint, model_count: int | None, *, is_suggested: bool = False
    ) -> None:
        super().__init__(themes, endpoint.title)
        if model_count is None:
            words = self.tr("not running")
        elif model_count == 1:
            words = self.tr("running, 1 model")
        else:
            words = self.tr("running, {0} models").format(model_count)
        self._controls.addWidget(label(words, "ok" if model_count else "muted"), 1)
        if model_count is not None:
            name = self.tr("Use {0}").format(endpoint.title)
            kind = "primary" if is_suggested else ""
            self._controls.addWidget(button(self.tr("Use"), self.use_pressed.emit, kind, name))


class CloudRow(ServerRow):
    """A provider that needs a key."""

    submitted = Signal(object, bool)
    """A SecretStr, and whether it is to be kept in memory only."""

    def __init__(self, themes: ThemeSource, endpoint: Endpoint) -> None:
        super().__init__(themes, endpoint.title)
        self._field = ApiKeyField(self.tr("API key for {0}").format(endpoint.title), self.tr("Paste your API key"))
        self._connect = button(
            self.tr("Connect"), self._field.submit, name=self.tr("Connect {0}").format(endpoint.title)
        )
        self._for_session = SessionKeyLink(self._field, self._keep)
        self._field.key_entered.connect(self._submit)
        controls: list[QWidget] = [self._field, self._connect]
        if endpoint.key_page:
            page, opener = endpoint.key_page, AddressOpener(self)
            opener.failed.connect(partial(self.show_state, Status.ERROR))
            name = self.tr("Get a key for {0}").format(endpoint.title)
            get_key = button(self.tr("Get a key"), lambda: opener.open_page(page), "link", name)
            get_key.setToolTip(endpoint.key_page)
            controls.append(get_key)
        self._controls.addWidget(FlowRows(controls, wide=self._field), 1)
        self._rows.addWidget(self._for_session)

    def show_state(self, state: Status, sentence: Sentence | str) -> None:
        """Show the state; remove an accepted key from the screen."""
        super().show_state(state, sentence)
        self._connect.setEnabled(state is not Status.BUSY)
        self._field.show_state(state)
        self._for_session.show_state(state)

    def _submit(self, key: SecretStr) -> None:
        self.submitted.emit(key, False)

    def _keep(self) -> None:
        key = self._field.text().strip()
        if key:
            self.submitted.emit(SecretStr(key), True)


@dataclass(frozen=True, slots=True)
class TypedServer:
    """The address and dialect of a typed server."""

    address: str
    dialect: Dialect
    mirrors: tuple[str, ...] = ()
    models: tuple[str, ...] = ()


class CustomRow(QFrame):
    """Any server by its address and dialect."""

    submitted = Signal(object, object, bool)
    """A TypedServer, a SecretStr or None, and whether the key is to be kept in memory only."""

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__()
        self._address = QLineEdit(placeholderText="https://server.example/v1")
        self._address.setAccessibleName(self.tr("Address of the server"))
        self._key = ApiKeyField(self.tr("API key, if the server needs one"), self.tr("API key, if needed"))
        self._connect = button(self.tr("Connect"), self._submit, name=self.tr("Connect this address"))
        self._dialect = DialectBox()
        self._models = ModelsField()
        self._mirrors = MirrorsField()
        self._more = button(self.tr("Further addresses…"), self._open_mirrors, "edge-link")
        self.state_line = StatusLine(themes, reserved_lines=2)
        self._for_session = SessionKeyLink(self._key, lambda: self._submit(for_session=True))
        self._address.returnPressed.connect(self._submit)
        # Not `key_entered`: pasting the key must not send anything before the address is there.
        self._key.returnPressed.connect(self._submit)
        self._models.returnPressed.connect(self._submit)
        self._line = hbox(spacing=SPACE_S)
        self._line.addWidget(self._address, 3)
        self._line.addWidget(self._key, 2)
        # Last: what the server speaks is part of what is sent.
        foot = hbox(self._connect, start_stretch=True)
        parts = (self._line, self._second_line(), self._mirrors, foot, self.state_line, self._for_session)
        vbox(*parts, parent=self, spacing=SPACE_S, margins=0)
        self._mirrors.hide()

    def start(self) -> None:
        """Give the keyboard to the address, also where it has to be scrolled to."""
        self._address.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def set_narrow(self, *, narrow: bool) -> None:
        """Place the fields below one another, or side by side."""
        self._line.setDirection(_direction(narrow=narrow))

    def show_state(self, state: Status, sentence: Sentence | str) -> None:
        """Show how connecting goes."""
        self.state_line.show_state(state, sentence)
        self._connect.setEnabled(state is not Status.BUSY)
        self._key.show_state(state)
        self._for_session.show_state(state)
        if state is Status.OK:
            self._address.clear()
            self._models.clear()
            self._mirrors.show_addresses(())

    def _second_line(self) -> QWidget:
        words = label(self.tr("API"), "muted")
        words.setBuddy(self._dialect)
        return FlowRows((words, self._dialect, self._models, self._more), wide=self._models)

    def _open_mirrors(self) -> None:
        self._mirrors.setVisible(self._mirrors.isHidden())
        if not self._mirrors.isHidden():
            self._mirrors.editor.setFocus()

    def _submit(self, *, for_session: bool = False) -> None:
        typed, key = self._address.text().strip(), self._key.text().strip()
        if not typed:
            self._address.setFocus()
            return
        address = complete_web_address(typed)
        mirrors, wrong = self._mirrors.addresses()
        if address is None or wrong:
            words = self.tr("“{0}” is not a web address. It begins with https:// or http://.")
            self.show_state(Status.ERROR, words.format(wrong or typed))
            return
        # The button is disabled now; what is corrected after a refusal is mostly the key.
        (self._key if key else self._address).setFocus()
        server = TypedServer(address, self._dialect.dialect, mirrors, self._models.models)
        self.submitted.emit(server, SecretStr(key) if key else None, for_session)


def _direction(*, narrow: bool) -> QBoxLayout.Direction:
    return QBoxLayout.Direction.TopToBottom if narrow else QBoxLayout.Direction.LeftToRight
