"""The editor of one MCP server."""

import re
from collections.abc import Collection
from typing import Literal

from PySide6.QtCore import Signal

from desktop_agent.types.errors import Sentence
from desktop_agent.types.mcp import HttpConnection, McpServer, StdioConnection
from ui.forms.controls import check_box, check_boxes, number_box, text_line
from ui.forms.form import TABLE, required
from ui.settings.card_list import CardEditor
from ui.settings.mcp_servers.connection_fields import HttpFields, StdioFields
from ui.style.controls import label
from ui.style.text import show_hidden, translate_sentence
from ui.style.theme import SPACE_S, ThemeSource
from ui.style.tool_labels import effect_names

ServerKind = Literal["program", "address"]
_MAX_ID_LENGTH = 20
_MAX_TIMEOUT = 3600


class ServerEditor(CardEditor):
    """The editor of a new or an existing server. Answer a failure with `show_error`."""

    saved = Signal(object, object)
    """The edited McpServer, and new values of its secrets by name."""

    def __init__(self, themes: ThemeSource, kind: ServerKind, server: McpServer | None, taken: Collection[str]) -> None:
        super().__init__("", TABLE)
        self._original = server
        self._taken = taken
        self.server_id = server.id if server is not None else ""
        """The server's id; a new server gets it when it is first saved."""
        words = self.tr("A program on this computer") if kind == "program" else self.tr("An address")
        self.setAccessibleName(words)
        has_title = required(self.tr("Give the server a title."))
        self.form.add_field("title", self.tr("Title"), text_line(max_length=100), has_title)
        connection = server.connection if server is not None else None
        if kind == "program":
            self._fields = StdioFields(
                themes, self.form, connection if isinstance(connection, StdioConnection) else None
            )
        else:
            self._fields = HttpFields(themes, self.form, connection if isinstance(connection, HttpConnection) else None)
        self._add_fields()
        defaults = {name: field.default for name, field in McpServer.model_fields.items()}
        self.form.show_values({**defaults, "title": "", **(dict(server) if server is not None else {})})
        self._build_layout(label(words, "strong"), spacing=SPACE_S)

    @property
    def is_saving(self) -> bool:
        """Whether it was saved and waits for the result."""
        return not self._save_button.isEnabled()

    @property
    def can_cancel(self) -> bool:
        return not self.is_saving

    def set_stored_secrets(self, names: Collection[str]) -> None:
        """Set which secrets the keyring has."""
        self._fields.set_stored_secrets(names)

    def show_error(self, sentence: Sentence) -> None:
        """Show why saving failed; the input stays."""
        self._set_busy(busy=False)
        self.show_problem(translate_sentence(sentence, show_hidden))
        self._save_button.setFocus()

    def _emit_saved(self, item: McpServer) -> None:
        self.server_id = item.id
        self._set_busy(busy=True)
        self.saved.emit(item, self._fields.secrets)

    def _set_busy(self, *, busy: bool) -> None:
        for widget in (self.form, self._save_button, self._cancel_button):
            widget.setEnabled(not busy)

    def _edited_item(self) -> McpServer:
        base = self._original.model_dump() if self._original is not None else {}
        values = self.form.values
        changes = {name: values[name] for name in ("title", "trusted", "effects", "timeout")}
        changes["id"] = self.server_id or unused_server_id(values["title"], self._taken)
        return McpServer.model_validate({**base, **changes, "connection": self._fields.connection})

    def _add_fields(self) -> None:
        add = self.form.add_field
        effects = check_boxes(list(effect_names().items()), in_rows=True)
        which = self.tr("You see this title when you are asked about a tool of the server. Rules use it too.")
        add("effects", self.tr("Its tools"), effects, help_text=which)
        add("timeout", self.tr("Time limit"), number_box(1, _MAX_TIMEOUT, suffix=self.tr(" s")))
        words = self.tr("Trust what it says about its tools")
        trust = self.tr(
            "Tools that the server calls harmless then run without asking you. Leave this off unless you "
            "trust the maker of the server: nobody checks what the server says."
        )
        add("trusted", words, check_box(words), help_text=trust)


def unused_server_id(title: str, taken: Collection[str]) -> str:
    """Make an unused id from the title; the names of the server's tools begin with it."""
    plain = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:_MAX_ID_LENGTH].strip("-") or "server"
    numbered = (f"{plain}-{number}" for number in range(2, 1_000))
    return plain if plain not in taken else next(name for name in numbered if name not in taken)
