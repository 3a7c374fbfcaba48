"""The page of storage: where conversations are saved, and a button that checks them."""

from datetime import datetime

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QWidget

from desktop_agent.types.errors import Sentence
from desktop_agent.types.messages import now
from ui.style.boxes import hbox, vbox
from ui.style.controls import button, label
from ui.style.server_fields import Status, StatusLine
from ui.style.text_display import exact_date
from ui.style.theme import SPACE_M, SPACE_S, ThemeSource


class StorageSettings(QWidget):
    """The data folder, its last check, and a button that checks it."""

    check_requested = Signal()

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._folder = label(wrap=True)
        self._folder.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self._folder.setAccessibleName(self.tr("Data folder"))
        self._last_check = label(kind="muted", wrap=True)
        self._state = StatusLine(themes)
        self._check = button(self.tr("Check now"), self.check_requested.emit)
        self._check.setToolTip(self.tr("Reads all that was saved, and repairs what can be"))
        words = self.tr(
            "Conversations, pictures and preferences are in one folder of this computer. The conversations are checked "
            "now and then while nobody waits."
        )
        row = hbox(self._check, self._last_check, spacing=SPACE_S, grow=self._last_check)
        parts = (label(words, "muted", wrap=True), self._folder, row, self._state)
        vbox(*parts, parent=self, spacing=SPACE_M, margins=0, end_stretch=True)
        self.show_last_check(None)

    def show_folder(self, folder: str) -> None:
        """Show the path of the data folder."""
        self._folder.setText(folder)

    def show_last_check(self, moment: datetime | None) -> None:
        """Show when the last check found nothing wrong; None: never."""
        if moment is None:
            self._last_check.setText(self.tr("Not checked yet."))
        else:
            self._last_check.setText(self.tr("Checked last: {0}").format(exact_date(moment, now())))

    def show_checking(self) -> None:
        """Show that a check is running."""
        self._check.setEnabled(False)
        self._state.show_state(Status.BUSY, self.tr("Checking…"))

    def show_result(self, sentence: Sentence, *, is_whole: bool) -> None:
        """Show the result of a check."""
        self._check.setEnabled(True)
        self._state.show_state(Status.OK if is_whole else Status.ERROR, sentence)
