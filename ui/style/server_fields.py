"""Fields of a form about a server: address, dialect, models, API key; and the status line below."""

from collections.abc import Callable
from enum import StrEnum
from urllib.parse import urlsplit

from pydantic import SecretStr
from PySide6.QtCore import QCoreApplication, Qt, QTimer, Signal
from PySide6.QtGui import QHideEvent
from PySide6.QtWidgets import QApplication, QComboBox, QLabel, QLineEdit, QPlainTextEdit, QSizePolicy, QWidget

from desktop_agent.types.errors import Sentence
from desktop_agent.types.providers import Dialect, is_loopback
from ui.style.boxes import hbox, vbox
from ui.style.controls import announce, button, label, set_style_property
from ui.style.layouts import scroll_area_of
from ui.style.text import translate_sentence
from ui.style.theme import SPACE_S, SPACE_XS, ThemeSource, pixmap
from ui.style.widgets import ComboBox

STATUS_INDENT = 19
"""Pixels before the text of a status line, behind its icon."""


class Status(StrEnum):
    """The state of connecting a server; NO_KEYRING is a success without a keyring for the key."""

    IDLE = "idle"
    BUSY = "busy"
    OK = "ok"
    ERROR = "error"
    NO_KEYRING = "no_keyring"


_ICONS = {Status.BUSY: "refresh", Status.OK: "check", Status.ERROR: "error", Status.NO_KEYRING: "key"}
_KINDS = {
    Status.IDLE: "muted",
    Status.BUSY: "muted",
    Status.OK: "ok",
    Status.ERROR: "error",
    Status.NO_KEYRING: "warning",
}


class StatusLine(QWidget):
    """An icon and a sentence; hidden while there is none. Even then `reserved_lines` keep their room."""

    def __init__(self, themes: ThemeSource, *, reserved_lines: int = 0) -> None:
        super().__init__()
        self._themes = themes
        self.state = Status.IDLE
        self._reserved_lines = reserved_lines
        policy = self.sizePolicy()
        policy.setRetainSizeWhenHidden(reserved_lines > 0)
        self.setSizePolicy(policy)
        self._icon = QLabel()
        self._text = label(kind="muted", wrap=True)
        # The icon is beside the first line.
        across = self._text.alignment() & ~Qt.AlignmentFlag.AlignVertical_Mask
        self._text.setAlignment(across | Qt.AlignmentFlag.AlignTop)
        row = hbox(self._icon, self._text, parent=self, spacing=SPACE_S, margins=0, grow=self._text)
        row.setAlignment(self._icon, Qt.AlignmentFlag.AlignTop)
        themes.follow(self._draw)
        self.hide()

    @property
    def text(self) -> str:
        return self._text.text()

    def show_state(self, state: Status, sentence: Sentence | str = "", remedy: Sentence | None = None) -> None:
        """Show a state; the remedy follows the sentence."""
        self.state = state
        # The pressed button must not move from under the pointer because a longer sentence goes.
        self.setMinimumHeight(self.height() if state is Status.BUSY and self.isVisible() else 0)
        words = sentence if isinstance(sentence, str) else translate_sentence(sentence)
        if remedy is not None:
            words = f"{words} {translate_sentence(remedy)}"
        self._text.setText(words)
        self._text.setAccessibleName(words)
        set_style_property(self._text, "kind", _KINDS[state])
        self._draw()
        self.setVisible(bool(words))
        if words:
            announce(self, words)
            # The layout gives it its place after this.
            QTimer.singleShot(0, self, self._scroll_into_sight)

    def _scroll_into_sight(self) -> None:
        """Scroll to this line if it is below the fold and the focus is beside it: the person waits for what it says."""
        parent, focused, area = self.parentWidget(), QApplication.focusWidget(), scroll_area_of(self)
        is_beside = parent is not None and focused is not None and parent.isAncestorOf(focused)
        if is_beside and area is not None and self.isVisible():
            area.ensureWidgetVisible(self, 0, SPACE_S)

    def _draw(self) -> None:
        theme = self._themes.theme
        name = _ICONS.get(self.state)
        self._text.setMinimumHeight(self._reserved_lines * self._text.fontMetrics().lineSpacing())
        self._icon.setVisible(name is not None)
        if name is not None:
            # Beside the first line, however many there are.
            self._text.ensurePolished()
            self._icon.setFixedHeight(self._text.fontMetrics().height())
            colours = {Status.OK: theme.success, Status.ERROR: theme.danger, Status.NO_KEYRING: theme.warning}
            colour = colours.get(self.state, theme.muted)
            ratio = 2 if self.devicePixelRatioF() > 1 else 1
            self._icon.setPixmap(pixmap(name, colour, self._themes.scaled(16), ratio))


# Nobody types so many characters at once: that was a paste, a drop or an assistive tool.
MIN_PASTED_LENGTH = 8


class ApiKeyField(QLineEdit):
    """Enter submits the key; so does pasting one, which is how keys arrive.

    A key that was not accepted is cleared when the field is hidden: nobody saved it, and anybody could submit it.
    """

    key_entered = Signal(object)
    """The key, a SecretStr."""

    def __init__(self, name: str, placeholder: str) -> None:
        super().__init__()
        self.setEchoMode(QLineEdit.EchoMode.Password)
        self.setAccessibleName(name)
        self.setPlaceholderText(placeholder)
        self._length = 0
        self._paste_timer = QTimer(self, singleShot=True, interval=0)
        self._paste_timer.timeout.connect(self.submit)
        self.textChanged.connect(self._measure)
        self.returnPressed.connect(self.submit)

    def submit(self) -> None:
        """Emit the key, if there is one, and take the keyboard: the button that was pressed may be disabled now."""
        key = self.text().strip()
        if key and not self.isReadOnly():
            self.setFocus()
            self.key_entered.emit(SecretStr(key))

    def show_state(self, state: Status) -> None:
        """Be read-only while a key is tried; clear an accepted one, and select a refused one to be replaced."""
        self.setReadOnly(state is Status.BUSY)
        if state is Status.OK or (state is not Status.BUSY and not self.isVisible()):
            self.clear()
        elif state is Status.ERROR:
            self.selectAll()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        # A minimised window comes back as it was, and the result for a key that is tried is still to come.
        if not event.spontaneous() and not self.isReadOnly():
            self.clear()

    def _measure(self, text: str) -> None:
        if len(text) - self._length >= MIN_PASTED_LENGTH:
            self._paste_timer.start()
        self._length = len(text)


class SessionKeyLink(QWidget):
    """The link under a status line: keep the key in memory, because the keyring does not take it."""

    def __init__(self, field: ApiKeyField, keep: Callable[[], None]) -> None:
        super().__init__()
        self._field = field
        field.textChanged.connect(self._on_text)
        # Short: with large text in a narrow window there is little room.
        words, name = self.tr("Keep it in memory"), self.tr("Keep it in memory until the program is closed")
        link = button(words, keep, "link", name)
        link.setToolTip(name)
        beside_icon = hbox(link, parent=self, margins=(STATUS_INDENT, 0, 0, 0), end_stretch=True)
        beside_icon.setAlignment(link, Qt.AlignmentFlag.AlignLeading)
        self.hide()

    def show_state(self, state: Status) -> None:
        """Offer it for a key that the keyring does not take."""
        self.setVisible(state is Status.NO_KEYRING and bool(self._field.text()))

    def _on_text(self, text: str) -> None:
        if not text:
            self.hide()


_MIRROR_LINES = 3
_MIN_DIALECT_WIDTH, _MAX_DIALECT_WIDTH = 12, 24


def complete_web_address(typed: str) -> str | None:
    """Return the completed address of a server; None if it is not one.

    A bare host on this machine is nearly always plain HTTP; everything else speaks TLS.
    """
    address = typed.strip()
    try:
        if "://" not in address:
            scheme = "http" if is_loopback(urlsplit(f"//{address}").hostname or "") else "https"
            address = f"{scheme}://{address}"
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        return None
    is_plain = parts.username is None and parts.password is None and not set(address) & set(" \t\n")
    return address.rstrip("/") if parts.scheme.lower() in {"http", "https"} and parts.hostname and is_plain else None


def dialect_names() -> dict[Dialect, str]:
    """Return the names of the dialects, in the order in which they are offered."""
    translate = QCoreApplication.translate
    return {
        "openai-chat": translate("Dialects", "OpenAI Chat Completions"),
        "openai-responses": translate("Dialects", "OpenAI Responses"),
        "anthropic": translate("Dialects", "Anthropic Messages"),
        "gemini": translate("Dialects", "Google Gemini"),
    }


class DialectBox(ComboBox):
    """A combo box of dialects."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName(self.tr("API of the server"))
        self.setToolTip(self.tr("API of the server"))
        # A long name is cut before it makes the page wider than the window.
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.setMinimumContentsLength(_MIN_DIALECT_WIDTH)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMaximumWidth(self.fontMetrics().horizontalAdvance("M") * _MAX_DIALECT_WIDTH)
        for dialect, name in dialect_names().items():
            self.addItem(name, dialect)

    @property
    def dialect(self) -> Dialect:
        return self.currentData()

    def show_dialect(self, dialect: Dialect) -> None:
        """Choose a dialect."""
        self.setCurrentIndex(self.findData(dialect))


class ModelsField(QLineEdit):
    """Names of models, for a server that does not list any; commas separate them."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName(self.tr("Model, if the server lists none"))
        self.setPlaceholderText(self.tr("Model, if the server lists none"))

    @property
    def models(self) -> tuple[str, ...]:
        """Return the names, each once."""
        return tuple(dict.fromkeys(name for part in self.text().split(",") if (name := part.strip())))

    def show_models(self, models: tuple[str, ...]) -> None:
        """Show these names."""
        self.setText(", ".join(models))


class MirrorsField(QWidget):
    """Further addresses, one on each line, and a sentence about the key."""

    def __init__(self) -> None:
        super().__init__()
        self.editor = QPlainTextEdit(tabChangesFocus=True)
        self.editor.setAccessibleName(self.tr("Further addresses"))
        self.editor.setPlaceholderText("https://mirror.example/v1")
        self.editor.setFixedHeight(self.editor.fontMetrics().lineSpacing() * _MIRROR_LINES + 5 * SPACE_XS)
        words = self.tr(
            "Other addresses of the same service, one per line. They are tried when the first does not answer, with "
            "the same key."
        )
        self.editor.setAccessibleDescription(words)
        vbox(self.editor, label(words, "muted", wrap=True), parent=self, spacing=SPACE_XS, margins=0)

    def show_addresses(self, addresses: tuple[str, ...]) -> None:
        """Show these addresses, one a line."""
        self.editor.setPlainText("\n".join(addresses))

    def addresses(self) -> tuple[tuple[str, ...], str]:
        """Return the addresses, each once; and the first line that is not one, or ""."""
        addresses: dict[str, None] = {}
        for line in self.editor.toPlainText().splitlines():
            if line.strip():
                address = complete_web_address(line)
                if address is None:
                    return (), line.strip()
                addresses[address] = None
        return tuple(addresses), ""
