"""Import MCP servers from the configuration of other programs: preview, then choose."""

from collections.abc import Sequence
from functools import partial
from typing import Literal

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QCheckBox, QFrame, QPlainTextEdit

from desktop_agent.types.errors import Sentence
from desktop_agent.types.mcp import StdioConnection
from ui.bridge.mcp.imports import ConfigFile, ImportCandidate, ImportPreview, McpImports
from ui.settings.card_list import EditorFrame
from ui.settings.mcp_servers.server_text import describe_connection
from ui.style.auto_height_text import ReadOnlyText
from ui.style.boxes import hbox, vbox
from ui.style.controls import FocusReturn, announce, button, label, show_words
from ui.style.file_dialogs import ask_file
from ui.style.layouts import PartFocus
from ui.style.removal import clear_layout, remove_widget
from ui.style.text import escape_mnemonics, join_names, plain_tooltip, show_hidden, translate_sentence
from ui.style.theme import SPACE_M, SPACE_S, SPACE_XS

_MAX_LINES = 12


class ImportCard(QFrame):
    """A server that can be imported, with its whole command line or address."""

    changed = Signal()

    def __init__(self, candidate: ImportCandidate) -> None:
        super().__init__()
        server, title = candidate.server, show_hidden(candidate.server.title)
        self.server_id = server.id
        self._checkbox = QCheckBox(escape_mnemonics(title))
        self._checkbox.setAccessibleName(self.tr("Import {0}").format(title))
        self._checkbox.setChecked(True)
        self._checkbox.toggled.connect(self.changed)
        self.setProperty("kind", "card")
        self.setAccessibleName(title)
        layout = vbox(self._checkbox, parent=self, spacing=SPACE_XS, margins=SPACE_S)
        is_program = isinstance(server.connection, StdioConnection)
        name = self.tr("Command line of {0}") if is_program else self.tr("Address of {0}")
        layout.addWidget(ReadOnlyText(describe_connection(server), name.format(title), _MAX_LINES))
        for words, kind in self._notes(candidate):
            layout.addWidget(label(words, kind, wrap=True))

    @property
    def is_selected(self) -> bool:
        return self._checkbox.isChecked()

    def _notes(self, candidate: ImportCandidate) -> list[tuple[str, Literal["muted", "warning"]]]:
        server = candidate.server
        notes: list[tuple[str, Literal["muted", "warning"]]] = []
        if isinstance(server.connection, StdioConnection):
            plain = [f"{show_hidden(n)}={show_hidden(v)}" for n, v in server.connection.env.items()]
            if plain:
                notes.append((self.tr("Plain variables: {0}").format(join_names(plain)), "muted"))
        secret = [show_hidden(name) for name in server.secret_names if name not in candidate.placeholders]
        if secret:
            notes.append((self.tr("Goes to the keyring: {0}").format(join_names(secret)), "muted"))
        if not server.on:
            notes.append((self.tr("It is turned off in the other program, and stays off here."), "muted"))
        if candidate.placeholders:
            words = self.tr("The other program asks for these values itself: {0}. Enter them with Edit afterwards.")
            notes.append((words.format(join_names(map(show_hidden, candidate.placeholders))), "warning"))
        if candidate.unresolved:
            words = self.tr("Desktop Agent does not fill in values in ${…}. Enter them with Edit afterwards.")
            notes.append((words, "warning"))
        return notes


PREVIEW_DELAY_MS = 250
_TEXT_LINES = 6


class ImportPanel(EditorFrame):
    """The import of servers."""

    def __init__(self, imports: McpImports) -> None:
        super().__init__()
        self._imports = imports
        self._preview: ImportPreview | None = None
        self._cards: list[ImportCard] = []
        self._files = vbox(spacing=SPACE_XS)
        self._text = QPlainTextEdit(tabChangesFocus=True)
        self._text.setPlaceholderText(self.tr('{"mcpServers": {"files": {"command": "npx", "args": ["-y", "…"]}}}'))
        self._text.setAccessibleName(self.tr("Servers as JSON"))
        self._text.setFixedHeight(self._text.fontMetrics().lineSpacing() * _TEXT_LINES + SPACE_M)
        self._delay_timer = QTimer(self, singleShot=True, interval=PREVIEW_DELAY_MS)
        self._delay_timer.timeout.connect(self._request_preview)
        self._text.textChanged.connect(self._delay_timer.start)
        self._problem = label(kind="error", wrap=True)
        self._rejected = label(kind="warning", wrap=True)
        self._warning = label(
            self.tr(
                "Programs run on this computer, with your rights. Read each command line, and import only what "
                "you know."
            ),
            wrap=True,
        )
        self._card_layout = vbox(spacing=SPACE_S)
        self._import_button = button(self.tr("Import"), self._request_import, "primary")
        self._cancel = button(self.tr("Cancel"), self.cancelled.emit)
        self._build_layout()
        self._update_view(None, "")
        imports.files_found.connect(self.show_files)
        imports.file_read.connect(self.show_text)
        imports.previewed.connect(self.show_preview)
        imports.refused.connect(self.show_problem)
        imports.find_files()

    def show_files(self, files: Sequence[ConfigFile]) -> None:
        """Show the configuration files of other programs."""
        clear_layout(self._files)
        for file in files:
            choose = button(self.tr("From {0}").format(file.program), partial(self._imports.read, file.path))
            choose.setToolTip(plain_tooltip(str(file.path)))
            choose.setAccessibleDescription(str(file.path))
            self._files.addWidget(choose, 0, Qt.AlignmentFlag.AlignLeft)
            choose.show()

    def show_text(self, text: str) -> None:
        """Show the text of a file and request its preview at once."""
        self._text.setPlainText(text)
        self._delay_timer.stop()
        self._request_preview()

    def show_preview(self, preview: ImportPreview) -> None:
        """Show the servers that can be imported."""
        self._update_view(preview, "")
        words = self.tr("{0} can be imported, {1} cannot.").format(len(preview.found), len(preview.refused))
        announce(self, words)

    def show_problem(self, sentence: Sentence) -> None:
        """Show why nothing is imported; the text stays."""
        with self._focus.kept():
            self._cancel.setEnabled(True)
            self._update_view(self._preview if self._is_importing else None, translate_sentence(sentence, show_hidden))
        self._is_importing = False
        announce(self, self._problem.text())

    @property
    def can_cancel(self) -> bool:
        return self._cancel.isEnabled()

    def _request_preview(self) -> None:
        text = self._text.toPlainText()
        if text.strip():
            self._imports.preview(text)
        else:
            self._update_view(None, "")

    def _update_view(self, preview: ImportPreview | None, problem: str) -> None:
        if preview is not self._preview or preview is None:
            self._rebuild_cards(preview)
        show_words(self._problem, problem)
        self._update_button()

    def _rebuild_cards(self, preview: ImportPreview | None) -> None:
        self._preview = preview
        found, refused = ((), ()) if preview is None else (preview.found, preview.refused)
        for card in self._cards:
            remove_widget(self._card_layout, card)
        self._cards = [ImportCard(candidate) for candidate in found]
        for card in self._cards:
            card.changed.connect(self._update_button)
            self._card_layout.addWidget(card)
            card.show()
        connections = [candidate.server.connection for candidate in found]
        self._warning.setVisible(any(isinstance(connection, StdioConnection) for connection in connections))
        show_words(self._rejected, "\n".join(translate_sentence(sentence, show_hidden) for sentence in refused))

    def _update_button(self) -> None:
        count = sum(card.is_selected for card in self._cards)
        words = self.tr("Import 1 server") if count == 1 else self.tr("Import {0} servers").format(count)
        self._import_button.setText(words if count else self.tr("Import"))
        self._import_button.setAccessibleName(self._import_button.text())
        self._import_button.setEnabled(count > 0)

    def _request_import(self) -> None:
        if self._preview is not None:
            self._is_importing = True
            with self._focus.kept():
                self._import_button.setEnabled(False)
                self._cancel.setEnabled(False)
            ids = frozenset(card.server_id for card in self._cards if card.is_selected)
            self._imports.import_servers(self._preview, ids)

    def _choose_file(self) -> None:
        kinds = [self.tr("JSON (*.json *.jsonc)"), self.tr("All files (*)")]
        ask_file(self, self.tr("Choose a file of servers"), kinds, self._imports.read)

    def _build_layout(self) -> None:
        self._is_importing = False
        self._focus = FocusReturn(self)
        self.setProperty("kind", "card")
        self.setAccessibleName(self.tr("Import servers"))
        PartFocus(self, self._text)
        words = self.tr(
            "Paste the JSON that a server's page gives for other programs, or choose a file. Nothing is started yet."
        )
        foot = hbox(button(self.tr("Choose file…"), self._choose_file), spacing=SPACE_S, end_stretch=True)
        foot.addWidget(self._cancel)
        foot.addWidget(self._import_button)
        heads = (label(self.tr("Import servers"), "strong"), label(words, "muted", wrap=True))
        notes = (self._problem, self._rejected, self._warning)
        parts = (*heads, self._files, self._text, *notes, self._card_layout, foot)
        vbox(*parts, parent=self, spacing=SPACE_S, margins=SPACE_M)
