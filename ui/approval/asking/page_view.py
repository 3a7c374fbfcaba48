"""A page that a server asks to have opened: where it leads stands first and largest."""

from dataclasses import replace

from PySide6.QtCore import Signal
from PySide6.QtGui import QColor, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QHBoxLayout, QTextEdit, QWidget

from desktop_agent.vocabulary.mcp.asking import ElicitationRequest
from ui.approval.asking.addresses import address_of, unusual_letters
from ui.approval.asking.server_part import ServerPart, named
from ui.approval.asking.words_box import WordsBox
from ui.look.controls import announce, button, label, set_kind
from ui.look.parts.scrolled_column import ScrolledColumn
from ui.look.theme import SPACE_M, SPACE_S, ThemeSource
from ui.look.visible_text import with_hidden_shown


class PageView(ScrolledColumn):
    """Opens nothing by itself, and fetches nothing."""

    open_requested = Signal(str)
    """The address, which may be opened."""
    step: QWidget
    """What is to be done; below it, where it is always in sight."""

    def __init__(self, themes: ThemeSource, request: ElicitationRequest, parent: QWidget | None = None) -> None:
        super().__init__(SPACE_M, parent, trailing=SPACE_S)
        self._themes = themes
        address = address_of(request.url or "")
        self._address = replace(address, is_safe=address.is_safe and request.may_open)
        self.words = WordsBox(self.tr("What the server says"))
        self.words.show_words(request.message)
        said = ServerPart(self.tr("“{0}” says (nobody checked this):").format(named(request.server)))
        said.column.addWidget(self.words)
        self._host = label(self._host_words(), "heading", wrap=True)
        self._shown = WordsBox(self.tr("Address"))
        self._shown.show_words(request.url or "")
        self._remark = label(self._remark_words(), "muted" if self._address.is_safe else "error", wrap=True)
        self._letters = label(self._letter_words(), "warning", wrap=True)
        self._letters.setVisible(bool(self._letters.text()))
        self.open_button = button(self.tr("Open the page"), self._open, "primary" if self._address.is_safe else "")
        self.open_button.setEnabled(self._address.is_safe)
        self._opened = label(kind="ok", wrap=True)
        self._opened.hide()
        self.step = self._stepped()
        for each in (said, self._host, self._letters, self._shown, self._remark):
            self.column.addWidget(each)
        self.column.addStretch(1)
        themes.changed.connect(self._mark_host)
        self._mark_host()

    @property
    def is_unusual(self) -> bool:
        """Whether there is something to be read about its name."""
        return self._address.is_unusual

    @property
    def can_open(self) -> bool:
        """Whether the address may be opened at all."""
        return self._address.is_safe

    def _stepped(self) -> QWidget:
        step = QWidget()
        row = QHBoxLayout(step)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(SPACE_M)
        row.addWidget(self.open_button)
        row.addWidget(self._opened, 1)
        row.addStretch()
        return step

    def _host_words(self) -> str:
        host, written = self._address.host, self._address.ascii_host
        if not host:
            return self.tr("It cannot be told where this leads")
        return self.tr("Leads to {0}").format(with_hidden_shown(written or host))

    def _letter_words(self) -> str:
        """What is unusual in the name, which looks like another to whoever reads it fast."""
        if not self._address.is_unusual:
            return ""
        advice = self.tr(
            "Such letters can look like others. Compare the name with the one that you know, or type that one into "
            "your browser yourself."
        )
        if not self._address.letters:
            return " ".join((self.tr("This name has unusual letters that cannot be shown."), advice))
        words = self.tr("This name has unusual letters: it reads “{0}”, with {1}.")
        letters = ", ".join(f"{each} ({name})" for each, name in unusual_letters(self._address.letters))
        return " ".join((words.format(with_hidden_shown(self._address.letters), letters), advice))

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

    def show_opened(self) -> None:
        """The page is open: what is to be done next is done there."""
        set_kind(self.open_button, "kind", "")
        set_kind(self._opened, "kind", "ok")
        self._opened.setText(self.tr("Opened in your browser."))
        self._opened.show()

    def show_unopened(self, words: str) -> None:
        """Nothing here can open it."""
        set_kind(self._opened, "kind", "error")
        self._opened.setText(words)
        self._opened.show()
        announce(self, words)

    def _open(self) -> None:
        self.open_requested.emit(self._address.text)

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
