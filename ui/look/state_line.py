"""How something stands, in words and colour: a line under the thing it is about."""

from enum import StrEnum

from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from desktop_agent.vocabulary.errors import Sentence
from ui.look.controls import announce, label, set_style_property
from ui.look.icons import pixmap
from ui.look.sentences import translate_sentence
from ui.look.theme import SPACE_S, ThemeSource

STATUS_INDENT = 19
"""Pixels: where the words of a state line begin, behind its icon."""


class Status(StrEnum):
    """Nothing to say, under way, good, wrong, or good but there is no keyring to keep the key."""

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
    """An icon and a sentence; hidden while there is nothing to say."""

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._state = Status.IDLE
        self._icon = QLabel()
        self._text = label(kind="muted", wrap=True)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_S)
        layout.addWidget(self._icon)
        layout.addWidget(self._text, 1)
        themes.changed.connect(self._draw)
        self.hide()

    @property
    def state(self) -> Status:
        """The state in force."""
        return self._state

    @property
    def text(self) -> str:
        """The words on the screen."""
        return self._text.text()

    def show_state(self, state: Status, sentence: Sentence | str = "", remedy: Sentence | None = None) -> None:
        """Say how it stands; the remedy follows the sentence."""
        self._state = state
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

    def _draw(self) -> None:
        theme = self._themes.theme
        name = _ICONS.get(self._state)
        self._icon.setVisible(name is not None)
        if name is not None:
            colours = {Status.OK: theme.success, Status.ERROR: theme.danger, Status.NO_KEYRING: theme.warning}
            colour = colours.get(self._state, theme.muted)
            ratio = 2 if self.devicePixelRatioF() > 1 else 1
            self._icon.setPixmap(pixmap(name, colour, 16, ratio))
