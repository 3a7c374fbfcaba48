"""A page that a server asks to have opened: where it leads stands first and largest."""

from dataclasses import replace

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QColor, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QFrame, QScrollArea, QTextEdit, QVBoxLayout, QWidget

from desktop_agent.vocabulary.mcp.asking import ElicitationRequest
from ui.approval.asking.addresses import address_of
from ui.approval.asking.words_box import WordsBox
from ui.look.controls import button, label
from ui.look.theme import SPACE_M, ThemeSource
from ui.look.visible_text import with_hidden_shown


class PageView(QScrollArea):
    """Opens nothing by itself, and fetches nothing."""

    open_requested = Signal(str)
    """The address, which may be opened."""

    def __init__(self, themes: ThemeSource, request: ElicitationRequest, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        address = address_of(request.url or "")
        self._address = replace(address, is_safe=address.is_safe and request.may_open)
        self.words = WordsBox(self.tr("What the server says"))
        self.words.show_words(request.message)
        self._host = label(self._host_words(), "heading", wrap=True)
        self._shown = WordsBox(self.tr("Address"))
        self._shown.show_words(request.url or "")
        self._remark = label(self._remark_words(), "muted" if self._address.is_safe else "error", wrap=True)
        self.open_button = button(self.tr("Open the page"), self._open)
        self.open_button.setEnabled(self._address.is_safe)
        self._opened = label(kind="ok", wrap=True)
        self._opened.hide()
        inside = QWidget()
        layout = QVBoxLayout(inside)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_M)
        for each in (self.words, self._host, self._shown, self._remark):
            layout.addWidget(each)
        layout.addWidget(self.open_button, 0, Qt.AlignmentFlag.AlignLeft)
        layout.addWidget(self._opened)
        layout.addStretch(1)
        self.setWidget(inside)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        inside.setAutoFillBackground(False)
        self.viewport().setAutoFillBackground(False)
        themes.changed.connect(self._mark_host)
        self._mark_host()

    @property
    def can_open(self) -> bool:
        """Whether the address may be opened at all."""
        return self._address.is_safe

    def _host_words(self) -> str:
        host, written = self._address.host, self._address.ascii_host
        if not host:
            return self.tr("It cannot be told where this leads")
        words = self.tr("Leads to {0}").format(with_hidden_shown(host))
        return words if written in {host, ""} else self.tr("{0}, which is written {1}").format(words, written)

    def _remark_words(self) -> str:
        if not self._address.is_safe:
            return self.tr(
                "This address is not opened: only https addresses are, and http on this computer, without anything in "
                "them that could be read in two ways, and none of a private network in which the server is not. "
                "Decline, and report it to whoever made the server."
            )
        if self._address.user:
            return self.tr("Before the host stands “{0}@”, which can look like another host.").format(
                with_hidden_shown(self._address.user)
            )
        return self.tr(
            "It opens in your browser. What you enter there goes to that page, not to this program. Come back when you "
            "are done."
        )

    def _open(self) -> None:
        self.open_requested.emit(self._address.text)
        self._opened.setText(self.tr("Opened in your browser."))
        self._opened.show()

    def _mark_host(self) -> None:
        """The host stands out of the address."""
        shown, host = self._shown.toPlainText(), with_hidden_shown(self._address.host)
        at = shown.lower().find(host.lower(), max(0, self._address.at)) if host else -1
        if at < 0:
            return
        mark = QTextCharFormat()
        mark.setBackground(QColor(self._themes.theme.selection))
        cursor = QTextCursor(self._shown.document())
        cursor.setPosition(at)
        cursor.setPosition(at + len(host), QTextCursor.MoveMode.KeepAnchor)
        extra = QTextEdit.ExtraSelection()
        extra.cursor, extra.format = cursor, mark
        self._shown.setExtraSelections([extra])
