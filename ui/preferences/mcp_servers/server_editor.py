"""The editor of one MCP server."""

import re
from collections.abc import Collection
from typing import Literal

from pydantic import ValidationError
from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QFormLayout,
    QLineEdit,
    QSizePolicy,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from desktop_agent.types.errors import Sentence
from desktop_agent.types.mcp import HttpConnection, McpServer, StdioConnection
from ui.preferences.card_list import EditorFrame
from ui.preferences.mcp_servers.connection_fields import HttpFields, StdioFields
from ui.style.boxes import hbox, vbox
from ui.style.controls import announce, button, label, set_style_property
from ui.style.layouts import FlowRows
from ui.style.text import show_hidden, translate_sentence
from ui.style.theme import SPACE_M, SPACE_S, SPACE_XS, ThemeSource
from ui.style.tool_labels import effect_names
from ui.style.widgets import WrappedChoice

ServerKind = Literal["program", "address"]
_MAX_ID_LENGTH = 20
_MAX_TIMEOUT = 3600


class ServerEditor(EditorFrame):
    """The editor of a new or an existing server. Answer a failure with `show_error`."""

    saved = Signal(object, object)
    """The edited McpServer, and new values of its secrets by name."""

    def __init__(
        self,
        themes: ThemeSource,
        kind: ServerKind,
        server: McpServer | None,
        taken: Collection[str],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._before = server
        self._taken = taken
        self._id = server.id if server is not None else ""
        self._was_touched = False
        self._heading = label(kind="strong")
        self._title = QLineEdit()
        self._fields = _create_fields(themes, kind, server, self)
        self._rows = self._fields.rows()
        self._trust = QCheckBox()
        self._effects = {effect: QCheckBox(words) for effect, words in effect_names().items()}
        self._timeout = QSpinBox()
        self._problem = label(kind="error", wrap=True)
        self._save = button(self.tr("Save"), self.save, "primary")
        self._cancel = button(self.tr("Cancel"), self.cancelled.emit)
        self._configure_fields(kind)
        self._show_server(server)
        self._build_layout()
        self._title.textChanged.connect(self._on_change)
        self._fields.changed.connect(self._on_change)

    @property
    def server_id(self) -> str:
        """The server's id; a new one gets it when it is saved first."""
        return self._id

    @property
    def is_saving(self) -> bool:
        """Whether it was saved and waits for the result."""
        return not self._save.isEnabled()

    def start_editing(self) -> None:
        """Focus the title."""
        self._title.setFocus()

    @property
    def can_cancel(self) -> bool:
        return self._cancel.isEnabled()

    def save(self) -> None:
        """Emit `saved`, or show what is missing."""
        self._was_touched = True
        first_error = self._find_error()
        server = None if first_error is not None else self._build_server()
        if server is None:
            field, words = first_error or (self._title, self.tr("This cannot be saved. Look at each field again."))
            self._set_error(words, field)
            announce(self, words)
            field.setFocus()
            return
        self._id = server.id
        self._set_error("", None)
        self._set_busy(busy=True)
        self.saved.emit(server, self._fields.secrets)

    def set_stored_secrets(self, names: Collection[str]) -> None:
        """Set which secrets the keyring has."""
        self._fields.set_stored_secrets(names)

    def show_error(self, sentence: Sentence) -> None:
        """Say why saving failed; the input stays."""
        self._set_busy(busy=False)
        words = show_hidden(translate_sentence(sentence))
        self._set_error(words, None)
        announce(self, words)
        self._save.setFocus()

    def _on_change(self) -> None:
        self._was_touched = self._was_touched or self.isVisible()
        if self._was_touched:
            field, words = self._find_error() or (None, "")
            self._set_error(words, field)

    def _set_error(self, words: str, first_error: QWidget | None) -> None:
        for field in self.findChildren(QLineEdit):
            set_style_property(field, "invalid", "true" if field is first_error else "false")
        self._problem.setText(words)
        self._problem.setAccessibleName(words)
        self._problem.setVisible(bool(words))

    def _set_busy(self, *, busy: bool) -> None:
        for widget in (self._save, self._cancel, self._title, *(field for _, field in self._rows)):
            widget.setEnabled(not busy)

    def _find_error(self) -> tuple[QWidget, str] | None:
        if not self._title.text().strip():
            return self._title, self.tr("Give the server a title.")
        return self._fields.first_error()

    def _build_server(self) -> McpServer | None:
        title = self._title.text().strip()
        base = self._before.model_dump() if self._before is not None else {}
        try:
            return McpServer.model_validate(
                {
                    **base,
                    "id": self._id or unused_server_id(title, self._taken),
                    "title": title,
                    "trusted": self._trust.isChecked(),
                    "effects": frozenset(effect for effect, box in self._effects.items() if box.isChecked()),
                    "timeout": float(self._timeout.value()),
                    "connection": self._fields.connection,
                }
            )
        except ValidationError:
            return None

    def _configure_fields(self, kind: ServerKind) -> None:
        self.setProperty("kind", "card")
        self._heading.setText(self.tr("A program of this machine") if kind == "program" else self.tr("An address"))
        self.setAccessibleName(self._heading.text())
        self.setFocusProxy(self._title)
        self._title.setMaxLength(100)
        self._title.setAccessibleName(self.tr("Title"))
        self._timeout.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._timeout.setRange(1, _MAX_TIMEOUT)
        self._timeout.setSuffix(self.tr(" s"))
        # A style sheet cannot set the space before the number.
        self._timeout.lineEdit().setTextMargins(SPACE_XS, 0, 0, 0)
        self._timeout.setAccessibleName(self.tr("Longest call"))
        self._problem.hide()

    def _show_server(self, server: McpServer | None) -> None:
        effects = server.effects if server is not None else McpServer.model_fields["effects"].default
        timeout = server.timeout if server is not None else McpServer.model_fields["timeout"].default
        self._title.setText(server.title if server is not None else "")
        self._trust.setChecked(server is not None and server.trusted)
        self._timeout.setValue(max(1, round(timeout)))
        for effect, box in self._effects.items():
            box.setChecked(effect in effects)

    def _build_layout(self) -> None:
        form = QFormLayout()
        form.setSpacing(SPACE_S)
        form.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapLongRows)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        form.addRow(self.tr("Title"), self._title)
        for title, field in self._rows:
            form.addRow(title, field)
        form.addRow(self.tr("Its tools"), self._effects_widget())
        form.addRow(self.tr("Longest call"), self._timeout)
        foot = hbox(self._cancel, self._save, spacing=SPACE_S, start_stretch=True)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_M, SPACE_M, SPACE_M, SPACE_M)
        layout.setSpacing(SPACE_S)
        layout.addWidget(self._heading)
        layout.addLayout(form)
        layout.addWidget(WrappedChoice(self._trust, self.tr("Believe what it says about its tools")))
        words = self.tr(
            "A tool that it calls harmless then runs without you being asked. Leave this off unless you trust whoever "
            "made the server: what it says about its tools, nobody checks."
        )
        self._trust.setAccessibleDescription(words)
        layout.addWidget(label(words, "muted", wrap=True))
        layout.addWidget(self._problem)
        layout.addLayout(foot)

    def _effects_widget(self) -> QWidget:
        part = QWidget()
        rows = vbox(FlowRows(self._effects.values()), parent=part, spacing=SPACE_XS, margins=0)
        words = self.tr("This stands in the question when a tool wants to run, and decides which rules hold for it.")
        rows.addWidget(label(words, "muted", wrap=True))
        return part


def unused_server_id(title: str, taken: Collection[str]) -> str:
    """Make an unused id of the title; names of tools begin with it."""
    plain = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:_MAX_ID_LENGTH].strip("-") or "server"
    numbered = (f"{plain}-{number}" for number in range(2, 1_000))
    return plain if plain not in taken else next(name for name in numbered if name not in taken)


def _create_fields(
    themes: ThemeSource, kind: ServerKind, server: McpServer | None, parent: QWidget
) -> StdioFields | HttpFields:
    connection = server.connection if server is not None else None
    if kind == "program":
        return StdioFields(themes, connection if isinstance(connection, StdioConnection) else None, parent)
    return HttpFields(themes, connection if isinstance(connection, HttpConnection) else None, parent)
