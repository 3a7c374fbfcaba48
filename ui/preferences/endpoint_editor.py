"""Another title, address, dialect or further addresses for a server in use."""

from urllib.parse import urlsplit

from PySide6.QtCore import Signal
from PySide6.QtGui import QKeyEvent, Qt
from PySide6.QtWidgets import QFormLayout, QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from desktop_agent.vocabulary.endpoints import Endpoint
from ui.look.controls import announce, button, label
from ui.look.parts.server_fields import DialectBox, MirrorsField, ModelsField, complete_web_address
from ui.look.state_line import Status, StatusLine
from ui.look.theme import SPACE_S, ThemeSource


class EndpointEditor(QWidget):
    """Says before saving when the key will not go along: it is only for the addresses that it was given for."""

    saved = Signal(object)
    """The Endpoint as it shall be."""
    cancelled = Signal()

    def __init__(self, themes: ThemeSource, endpoint: Endpoint, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._endpoint = endpoint
        self._holds_key = False
        self._title = QLineEdit(endpoint.title)
        self._address = QLineEdit(endpoint.base_url)
        self._dialect = DialectBox()
        self._models = ModelsField()
        self._mirrors = MirrorsField()
        self._warning = label(kind="warning", wrap=True)
        self._state = StatusLine(themes)
        self._dialect.show_dialect(endpoint.dialect)
        self._models.show_models(endpoint.models)
        self._mirrors.show_addresses(endpoint.mirrors)
        self._set_accessible_names()
        self._build_layout()
        self._address.textChanged.connect(self._update_warning)
        self._mirrors.editor.textChanged.connect(self._update_warning)
        for field in (self._title, self._address, self._models):
            field.returnPressed.connect(self._save)
        self._update_warning()

    def set_holds_key(self, *, held: bool) -> None:
        """Whether there is a key that could be lost."""
        self._holds_key = held
        self._update_warning()

    def start_editing(self) -> None:
        """The person wants to edit."""
        self._title.setFocus()
        self._title.selectAll()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape leaves everything as it was, and only that."""
        if event.key() == Qt.Key.Key_Escape:
            self.cancelled.emit()
        else:
            super().keyPressEvent(event)

    def _edited_endpoint(self) -> Endpoint | str:
        """The endpoint as typed, or the text that is no address."""
        address = complete_web_address(self._address.text())
        mirrors, wrong = self._mirrors.addresses()
        if address is None or wrong:
            return wrong or self._address.text().strip()
        # Each only where it was really changed: a slash at the end is no other address.
        base_url = self._endpoint.base_url if address == self._endpoint.base_url.rstrip("/") else address
        update = {
            "title": self._title.text().strip() or self._endpoint.title,
            "base_url": base_url,
            "dialect": self._dialect.dialect,
            "models": self._models.models,
            "mirrors": tuple(each for each in mirrors if each != address),
        }
        return self._endpoint.model_copy(update=update)

    def _update_warning(self) -> None:
        changed = self._edited_endpoint()
        old = self._endpoint
        loses = self._holds_key and isinstance(changed, Endpoint) and not changed.origins <= old.origins
        words = self.tr(
            "The key was given for {0} and goes to no other address. Saving removes it; then enter the key again."
        ).format(", ".join(dict.fromkeys(urlsplit(each).netloc for each in (old.base_url, *old.mirrors))))
        self._warning.setText(words)
        if loses and self._warning.isHidden():
            announce(self, words)
        self._warning.setVisible(loses)

    def _save(self) -> None:
        changed = self._edited_endpoint()
        if isinstance(changed, str):
            words = self.tr("“{0}” is not a web address. It begins with https:// or http://.")
            self._state.show_state(Status.ERROR, words.format(changed))
        elif changed == self._endpoint:
            self.cancelled.emit()
        else:
            self.saved.emit(changed)

    def _set_accessible_names(self) -> None:
        title = self._endpoint.title
        self._title.setAccessibleName(self.tr("Title of {0}").format(title))
        self._address.setAccessibleName(self.tr("Address of {0}").format(title))
        self._dialect.setAccessibleName(self.tr("What {0} speaks").format(title))
        self._models.setAccessibleName(self.tr("Models of {0}, if it lists none").format(title))
        self._mirrors.editor.setAccessibleName(self.tr("Further addresses of {0}").format(title))

    def _build_layout(self) -> None:
        form = QFormLayout()
        form.setSpacing(SPACE_S)
        form.addRow(label(self.tr("Title")), self._title)
        form.addRow(label(self.tr("Address")), self._address)
        form.addRow(label(self.tr("Speaks")), self._dialect)
        form.addRow(label(self.tr("Models")), self._models)
        title = self._endpoint.title
        row = QHBoxLayout()
        row.setSpacing(SPACE_S)
        row.addStretch(1)
        row.addWidget(button(self.tr("Cancel"), self.cancelled.emit, name=self.tr("Cancel editing {0}").format(title)))
        row.addWidget(button(self.tr("Save"), self._save, "primary", self.tr("Save {0}").format(title)))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_S)
        layout.addLayout(form)
        for each in (self._mirrors, self._warning, self._state):
            layout.addWidget(each)
        layout.addLayout(row)
