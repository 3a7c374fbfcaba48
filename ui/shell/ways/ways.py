"""The ways of one page: finding words, and a caret."""

from PySide6.QtCore import QObject

from ui.look.theme import ThemeSource
from ui.shell.banners import BannerArea
from ui.shell.ways.caret_browsing import CaretBrowsing
from ui.shell.ways.find_bar import FindBar
from ui.transcript.surface.finding.texts import selected_query
from ui.transcript.view import TranscriptView


class TranscriptNavigation(QObject):
    """What the actions of the window begin."""

    def __init__(self, themes: ThemeSource, transcript: TranscriptView, banners: BannerArea, parent: QObject) -> None:
        super().__init__(parent)
        self._transcript = transcript
        self._caret_browsing = CaretBrowsing(transcript, banners, self)
        self.find_bar = FindBar(themes, transcript.finder, transcript)
        transcript.find_requested.connect(self.find)

    def find(self) -> None:
        """Find in the conversation: what is selected in it, or what the person types."""
        self.find_bar.open(selected_query(self._transcript.row_viewport))

    def toggle_caret(self) -> None:
        """A caret in the transcript, or none any more."""
        self._caret_browsing.toggle()
