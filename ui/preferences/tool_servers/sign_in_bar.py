"""Signing in to a server with the browser: what will happen, waiting for it, and what became of it."""

from PySide6.QtCore import Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from desktop_agent.vocabulary.mcp.states import McpServerState
from ui.look.controls import announce, button, set_style_property
from ui.look.state_line import Status, StatusLine
from ui.look.theme import SPACE_S, ThemeSource


class SignInBar(QWidget):
    """Asks for it; whoever does it answers with `show_page` and `show_result`."""

    sign_in_requested = Signal()
    cancelled = Signal()
    sign_out_requested = Signal()

    def __init__(self, themes: ThemeSource, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._page = ""
        self._is_waiting = False
        self._state: McpServerState | None = None
        self._state_line = StatusLine(themes)
        self._sign_in_button = button(
            self.tr("Sign in…"), self._start_sign_in, name=self.tr("Sign in to {0}").format(title)
        )
        self._sign_in_button.setToolTip(self.tr("Opens a page of the server in your browser"))
        self._sign_out_button = button(
            self.tr("Sign out"), self.sign_out_requested.emit, name=self.tr("Sign out of {0}").format(title)
        )
        self._cancel = button(self.tr("Cancel"), self.cancelled.emit, name=self.tr("Cancel signing in"))
        self._copy = button(self.tr("Copy address"), self._copy_page, "link")
        row = QHBoxLayout()
        row.setSpacing(SPACE_S)
        for each in (self._sign_in_button, self._sign_out_button, self._cancel, self._copy):
            row.addWidget(each)
        row.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_S)
        layout.addWidget(self._state_line)
        layout.addLayout(row)
        self._update_buttons()

    def show_state(self, state: McpServerState) -> None:
        """Whether there is something to sign in to, or out of."""
        self._state = state
        self._update_buttons()

    def show_page(self, address: str, *, is_open: bool) -> None:
        """This page has to be visited; `is_open`: the browser shows it."""
        self._page = address
        words = self.tr("Your browser opened a page of the server. Sign in there; this goes on by itself then.")
        if not is_open:
            words = self.tr("The browser could not be opened. Copy the address, and open it in a browser yourself.")
        self._state_line.show_state(Status.BUSY, words)
        self._update_buttons()

    def show_result(self, problem: str) -> None:
        """It is done, or why not."""
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
        self.sign_in_requested.emit()

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
