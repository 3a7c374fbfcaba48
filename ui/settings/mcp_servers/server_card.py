"""The card of one MCP server: its state, tools, log and OAuth sign-in."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QCheckBox, QWidget

from desktop_agent.types.errors import Sentence
from desktop_agent.types.mcp import HttpConnection, McpLogLine, McpServer, McpServerState, StdioConnection
from ui.bridge.mcp.servers import McpServerSettings
from ui.settings.card_list import Card, RemovalQuestion, scroll_into_view
from ui.settings.mcp_servers.server_log import LogPane
from ui.settings.mcp_servers.server_text import describe_connection, describe_state
from ui.settings.mcp_servers.tool_catalog import ToolsPane
from ui.style.boxes import hbox, vbox
from ui.style.controls import ElidedLabel, FocusReturn, announce, button, label, set_style_property, show_words
from ui.style.layouts import FlowRows
from ui.style.removal import remove_widget
from ui.style.server_fields import Status, StatusLine
from ui.style.text import join_names, show_hidden, translate_sentence
from ui.style.theme import SPACE_M, SPACE_S, ThemeSource


class SignInBar(QWidget):
    """Sign-in with OAuth. Answer `sign_in_pressed` with `show_page` and `show_result`."""

    sign_in_pressed = Signal()

    def __init__(self, themes: ThemeSource, server: McpServer, servers: McpServerSettings) -> None:
        super().__init__()
        title = show_hidden(server.title)
        self._page = ""
        self._is_waiting = False
        self._state: McpServerState | None = None
        self._state_line = StatusLine(themes)
        self._sign_in_button = button(
            self.tr("Sign in…"), self._start_sign_in, name=self.tr("Sign in to {0}").format(title)
        )
        self._sign_in_button.setToolTip(self.tr("Opens a page of the server in your browser"))
        sign_out = partial(servers.sign_out, server.id)
        cancel = partial(servers.cancel_sign_in, server.id)
        self._sign_out_button = button(self.tr("Sign out"), sign_out, name=self.tr("Sign out of {0}").format(title))
        self._cancel = button(self.tr("Cancel"), cancel, name=self.tr("Cancel signing in"))
        self._copy = button(self.tr("Copy address"), self._copy_page, "link")
        row = hbox(
            self._sign_in_button, self._sign_out_button, self._cancel, self._copy, spacing=SPACE_S, end_stretch=True
        )
        vbox(row, self._state_line, parent=self, spacing=SPACE_S, margins=0)
        self._update_buttons()

    def show_state(self, state: McpServerState) -> None:
        """Offer to sign in or out, as the state allows."""
        self._state = state
        self._update_buttons()

    def show_page(self, address: str, *, is_open: bool) -> None:
        """Show that this page has to be visited; `is_open`: it is open in the browser."""
        self._page = address
        words = self.tr(
            "Your browser opened a page of the server. Sign in there; Desktop Agent then continues by itself."
        )
        if not is_open:
            words = self.tr("The browser could not be opened. Copy the address, and open it in a browser yourself.")
        self._state_line.show_state(Status.BUSY, words)
        self._update_buttons()

    def show_result(self, problem: str) -> None:
        """Show that signing in is done, or why it failed."""
        self._is_waiting = False
        self._page = ""
        had_focus = self._cancel.hasFocus()
        self._state_line.show_state(Status.ERROR if problem else Status.IDLE, problem)
        self._update_buttons()
        if had_focus:
            (self._sign_in_button if self._sign_in_button.isVisible() else self._sign_out_button).setFocus()

    def _start_sign_in(self) -> None:
        self._is_waiting = True
        self._state_line.show_state(
            Status.BUSY, self.tr("Asking the server where to sign in. Your browser opens then…")
        )
        self._update_buttons()
        self._cancel.setFocus()
        self.sign_in_pressed.emit()

    def _copy_page(self) -> None:
        QGuiApplication.clipboard().setText(self._page)
        announce(self, self.tr("Address copied"))

    def _update_buttons(self) -> None:
        state = self._state.state if self._state is not None else "idle"
        is_in = self._state is not None and bool(self._state.is_signed_in) and state != "signed_out"
        had_focus = self._sign_in_button.hasFocus() or self._sign_out_button.hasFocus()
        self._sign_in_button.setVisible(not self._is_waiting and not is_in and state not in {"off", "starting"})
        set_style_property(self._sign_in_button, "kind", "primary" if state == "signed_out" else "")
        self._sign_out_button.setVisible(not self._is_waiting and is_in and state != "starting")
        self._cancel.setVisible(self._is_waiting)
        self._copy.setVisible(self._is_waiting and bool(self._page))
        if had_focus:
            (self._sign_out_button if is_in else self._sign_in_button).setFocus()


class McpServerCard(Card):
    """The card of a server."""

    edit_pressed = Signal(str)
    log_toggled = Signal(str)
    """The server whose log was opened; "" when it was closed."""

    def __init__(self, themes: ThemeSource, server: McpServer, servers: McpServerSettings) -> None:
        super().__init__()
        self._themes = themes
        self._server = server
        self._servers = servers
        self._title = show_hidden(server.title)
        self._shown_state: McpServerState | None = None
        self._focus = FocusReturn(self)
        self.tools: ToolsPane | None = None
        self.log: LogPane | None = None
        self._on = QCheckBox(self.tr("On"))
        self._state = StatusLine(themes)
        self._connection = ElidedLabel(mode=Qt.TextElideMode.ElideMiddle)
        self._details = label(kind="muted", wrap=True)
        self._problem = label(kind="error", wrap=True)
        self._test = button(self.tr("Test"), self.test, name=self.tr("Test {0}").format(self._title))
        self._tools_button = button(
            self.tr("Show tools"), self._toggle_tools, name=self.tr("Show the tools of {0}").format(self._title)
        )
        self._log_button = button(
            self.tr("Show log"), self._toggle_log, name=self.tr("Show the log of {0}").format(self._title)
        )
        edit = partial(self.edit_pressed.emit, server.id)
        self.edit_button = button(self.tr("Edit"), edit, name=self.tr("Edit {0}").format(self._title))
        self._removal = RemovalQuestion(
            self.tr("Remove “{0}”? Its secrets are deleted from the keyring too.").format(self._title),
            (self.tr("Remove"), self.tr("Remove {0}").format(self._title)),
            (self.tr("Keep"), self.tr("Keep {0}").format(self._title)),
            (self.tr("Remove"), self.tr("Really remove {0}").format(self._title)),
        )
        self.sign_in = SignInBar(themes, server, servers)
        self._layout = vbox(parent=self, spacing=SPACE_S, margins=SPACE_M)
        self._build_layout()
        self.show_server(server)

    @property
    def title(self) -> str:
        """The title when the card was created."""
        return self._server.title

    def show_server(self, server: McpServer) -> None:
        """Show the configuration of the server."""
        self._server = server
        self._on.setChecked(server.on)
        self._connection.show_text(describe_connection(server))
        facts = self._details_of(server)
        show_words(self._details, facts)
        self._problem.hide()
        self.sign_in.setVisible(isinstance(server.connection, HttpConnection) and server.connection.sign_in)
        if self.tools is not None:
            self.tools.show_server(server)

    def show_state(self, state: McpServerState) -> None:
        """Show the state of the server."""
        if state == self._shown_state:
            return
        self._shown_state = state
        self._state.show_state(*describe_state(state))
        self._set_can_test(can=state.state != "starting")
        self.sign_in.show_state(state)
        if self.tools is not None:
            self.tools.show_state(state)

    def test(self) -> None:
        """Start the server for a test."""
        self._problem.hide()
        self._set_can_test(can=False)
        words = self.tr(
            "Starting the server and asking for its tools. If it is downloaded first, this takes up to a minute…"
        )
        self._state.show_state(Status.BUSY, words)
        self._shown_state = None
        self._servers.test(self._server.id)

    def show_tested(self, state: McpServerState) -> None:
        """Show the result of a test: the tools, or what is wrong."""
        self.show_state(state)
        if self.tools is None and state.reason is None and (state.tools or state.state == "running"):
            self._toggle_tools()

    def show_problem(self, sentence: Sentence) -> None:
        """Show why a request failed."""
        self.show_server(self._server)
        self._problem.setText(translate_sentence(sentence, show_hidden))
        self._problem.show()

    def show_lines(self, lines: Sequence[McpLogLine], *, is_all: bool) -> None:
        """Add lines to the open log, or replace it."""
        if self.log is not None:
            (self.log.show_lines if is_all else self.log.add_lines)(lines)

    def close_log(self) -> None:
        """Close the log."""
        if self.log is not None:
            remove_widget(self._layout, self.log)
            self.log = None
            self._log_button.setText(self.tr("Show log"))

    def _set_can_test(self, *, can: bool) -> None:
        with self._focus.kept():
            self._test.setEnabled(can)

    def _toggle_tools(self) -> None:
        if self.tools is not None:
            remove_widget(self._layout, self.tools)
            self.tools = None
            self._tools_button.setText(self.tr("Show tools"))
            return
        self.tools = ToolsPane(self._themes, self._server)
        self.tools.changed.connect(partial(self._servers.change, self._server.id))
        if self._shown_state is not None:
            self.tools.show_state(self._shown_state)
        self._tools_button.setText(self.tr("Hide tools"))
        self._layout.insertWidget(self._layout.indexOf(self._removal), self.tools)
        self.tools.show()
        scroll_into_view(self.tools)

    def _toggle_log(self) -> None:
        if self.log is not None:
            self.close_log()
            self.log_toggled.emit("")
            return
        self.log = LogPane(self._themes, self._title)
        self._log_button.setText(self.tr("Hide log"))
        self._layout.insertWidget(self._layout.indexOf(self._removal), self.log)
        self.log.show()
        scroll_into_view(self.log)
        self.log_toggled.emit(self._server.id)

    def _set_enabled(self) -> None:
        is_on = self._on.isChecked()

        def change(server: McpServer) -> McpServer:
            return server.model_copy(update={"on": is_on})

        self._servers.change(self._server.id, change)

    def _details_of(self, server: McpServer) -> str:
        facts: list[str] = []
        if server.trusted:
            facts.append(self.tr("What it says about its tools is trusted"))
        names = join_names(map(show_hidden, server.secret_names))
        if names:
            is_program = isinstance(server.connection, StdioConnection)
            words = self.tr("Secret variables: {0}") if is_program else self.tr("Headers: {0}")
            facts.append(words.format(names))
        return " · ".join(facts)

    def _build_layout(self) -> None:
        self.setAccessibleName(self.tr("MCP server {0}").format(self._title))
        self._on.setAccessibleName(self.tr("Use {0}").format(self._title))
        self._on.clicked.connect(self._set_enabled)
        self._connection.setProperty("kind", "muted")
        self._removal.confirmed.connect(partial(self._servers.remove, self._server.id))
        head = hbox(spacing=SPACE_S)
        head.addWidget(label(self._title, "strong", wrap=True), 1)
        head.addWidget(self._on)
        self.edit_buttons = (self.edit_button,)
        remove = self._removal.button
        buttons = (self._test, self._tools_button, self._log_button, self.edit_button, remove)
        self._layout.addLayout(head)
        for widget in (self._state, self._connection, self._details, self._problem, self.sign_in):
            self._layout.addWidget(widget)
        self._layout.addWidget(FlowRows(buttons, last_apart=remove))
        self._layout.addWidget(self._removal)
