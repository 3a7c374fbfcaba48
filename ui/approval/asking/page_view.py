"""A page that a server asks to have opened: where it leads stands first and largest."""

from dataclasses import replace

from PySide6.QtCore import Signal
from PySide6.QtGui import QColor, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QHBoxLayout, QTextEdit, QWidget

from desktop_agent.vocabulary.mcp.asking import ElicitationRequest
from ui.approval.asking.addresses import parse_address, unusual_letters
from ui.approval.asking.server_part import ServerTextFrame, quote_name
from ui.approval.asking.words_box import ServerText
from ui.look.controls import announce, button, label, set_style_property
from ui.look.parts.scrolled_column import ScrollColumn
from ui.look.theme import SPACE_M, SPACE_S, ThemeSource
from ui.look.visible_text import show_hidden


class UrlElicitationView(ScrollColumn):
    """Opens nothing by itself, and fetches nothing."""

    open_requested = Signal(str)
    """The address, which may be opened."""
    action_row: QWidget
    """What is to be done; below it, where it is always in sight."""

    def __init__(self, themes: ThemeSource, request: ElicitationRequest, parent: QWidget | None = None) -> None:
        super().__init__(SPACE_M, parent, trailing=SPACE_S)
        self._themes = themes
        address = parse_address(request.url or "")
        self._address = replace(address, is_safe=address.is_safe and request.may_open_url)
        self.message_box = ServerText(self.tr("What the server says"))
        self.message_box.show_text(request.message)
        said = ServerTextFrame(self.tr("“{0}” says (nobody checked this):").format(quote_name(request.server)))
        said.column.addWidget(self.message_box)
        self._host = label(self._host_text(), "heading", wrap=True)
        self._address_box = ServerText(self.tr("Address"))
        self._address_box.show_text(request.url or "")
        self._note = label(self._note_text(), "muted" if self._address.is_safe else "error", wrap=True)
        self._lookalike_label = label(self._lookalike_warning(), "warning", wrap=True)
        self._lookalike_label.setVisible(bool(self._lookalike_label.text()))
        self.open_button = button(
            self.tr("Open the page"), self._request_open, "primary" if self._address.is_safe else ""
        )
        self.open_button.setEnabled(self._address.is_safe)
        self._open_result = label(kind="ok", wrap=True)
        self._open_result.hide()
        self.action_row = self._create_action_row()
        for each in (said, self._host, self._lookalike_label, self._address_box, self._note):
            self.column.addWidget(each)
        self.column.addStretch(1)
        themes.changed.connect(self._highlight_host)
        self._highlight_host()

    @property
    def is_idn(self) -> bool:
        """Whether there is something to be read about its name."""
        return self._address.is_idn

    @property
    def can_open(self) -> bool:
        """Whether the address may be opened at all."""
        return self._address.is_safe

    def _create_action_row(self) -> QWidget:
        step = QWidget()
        row = QHBoxLayout(step)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(SPACE_M)
        row.addWidget(self.open_button)
        row.addWidget(self._open_result, 1)
        row.addStretch()
        return step

    def _host_text(self) -> str:
        host, written = self._address.host, self._address.ascii_host
        if not host:
            return self.tr("It cannot be told where this leads")
        return self.tr("Leads to {0}").format(show_hidden(written or host))

    def _lookalike_warning(self) -> str:
        """What is unusual in the name, which looks like another to whoever reads it fast."""
        if not self._address.is_idn:
            return ""
        advice = self.tr(
            "Such letters can look like others. Compare the name with the one that you know, or type that one into "
            "your browser yourself."
        )
        if not self._address.unicode_host:
            return " ".join((self.tr("This name has unusual letters that cannot be shown."), advice))
        words = self.tr("This name has unusual letters: it reads “{0}”, with {1}.")
        letters = ", ".join(f"{each} ({name})" for each, name in unusual_letters(self._address.unicode_host))
        return " ".join((words.format(show_hidden(self._address.unicode_host), letters), advice))

    def _note_text(self) -> str:
        if not self._address.is_safe:
            return self.tr(
                "This address is not opened: only https addresses are, and http on this computer, without anything in "
                "them that could be read in two ways, and none of a private network in which the server is not. "
                "Decline, and report it to whoever made the server."
            )
        if self._address.user:
            return self.tr("Before the host stands “{0}@”, which can look like another host.").format(
                show_hidden(self._address.user)
            )
        return self.tr(
            "It opens in your browser. What you enter there goes to that page, not to this program. Come back when you "
            "are done."
        )

    def show_opened(self) -> None:
        """The page is open: what is to be done next is done there."""
        set_style_property(self.open_button, "kind", "")
        set_style_property(self._open_result, "kind", "ok")
        self._open_result.setText(self.tr("Opened in your browser."))
        self._open_result.show()

    def show_open_error(self, words: str) -> None:
        """Nothing here can open it."""
        set_style_property(self._open_result, "kind", "error")
        self._open_result.setText(words)
        self._open_result.show()
        announce(self, words)

    def _request_open(self) -> None:
        self.open_requested.emit(self._address.text)

    def _highlight_host(self) -> None:
        """The host stands out of the address."""
        shown, host = self._address_box.toPlainText(), show_hidden(self._address.host)
        at = shown.lower().find(host.lower(), max(0, self._address.host_start)) if host else -1
        if at < 0:
            return
        mark = QTextCharFormat()
        mark.setBackground(QColor(self._themes.theme.selection))
        cursor = QTextCursor(self._address_box.document())
        cursor.setPosition(at)
        cursor.setPosition(at + len(host), QTextCursor.MoveMode.KeepAnchor)
        extra = QTextEdit.ExtraSelection()
        extra.cursor, extra.format = cursor, mark
        self._address_box.setExtraSelections([extra])
