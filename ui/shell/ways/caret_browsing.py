"""Caret browsing: switched on and off, and what is said about it."""

from PySide6.QtCore import QObject, Qt

from desktop_agent.vocabulary.errors import Sentence
from ui.look.controls import announce
from ui.shell.banners import Banner, BannerArea
from ui.transcript.view import TranscriptView

EXPLANATION_MS = 12_000


class CaretBrowsing(QObject):
    """Of one transcript."""

    def __init__(self, transcript: TranscriptView, banners: BannerArea, parent: QObject) -> None:
        super().__init__(parent)
        self._transcript = transcript
        self._banners = banners
        self._has_explained = False
        transcript.caret.toggled.connect(self._on_caret)

    def toggle(self) -> None:
        """A caret in the transcript, or none any more."""
        self._transcript.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._transcript.caret.toggle()

    def _on_caret(self, is_on: bool) -> None:  # noqa: FBT001 - a slot
        """The first time it is seen how one gets rid of it; a screen reader says it every time."""
        on = self.tr("Caret browsing is on. F7 or Esc turns it off.")
        off = self.tr("Caret browsing is off.")
        if is_on and not self._has_explained:
            self._has_explained = True
            sentence = Sentence("{text}", {"text": on})
            self._banners.show_banner(Banner("caret", sentence, level="remark", duration_ms=EXPLANATION_MS))
        else:
            announce(self._transcript, on if is_on else off)
