"""The part of the page About that looks for a new version."""

from datetime import UTC, datetime

from PySide6.QtCore import Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QWidget

from desktop_agent.types.errors import Sentence
from ui.bridge.desktop.opening import AddressOpener
from ui.bridge.desktop.updates import UpdateChecks
from ui.shell.desktop.update_notice import release_sentence
from ui.style.boxes import vbox
from ui.style.controls import announce, button, label
from ui.style.layouts import FlowRows
from ui.style.text import join_sentences, translate_sentence
from ui.style.text_display import exact_date
from ui.style.theme import SPACE_S


class UpdateSection(QWidget):
    """A line about the newest version, and a button to ask; without an address, only why there is none."""

    def __init__(self, updates: UpdateChecks, opener: AddressOpener) -> None:
        super().__init__()
        self._updates = updates
        self._opener = opener
        self._was_checking = False
        self._state = label(wrap=True)
        self._state.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._about = label(kind="muted", wrap=True)
        self._check = button(self.tr("Check for a new version"), updates.check)
        self._open = button(self.tr("Open its page"), self._open_page)
        buttons = FlowRows((self._check, self._open))
        vbox(
            label(self.tr("New versions"), "strong"),
            self._state,
            self._about,
            buttons,
            parent=self,
            spacing=SPACE_S,
            margins=0,
        )
        why_not = updates.source.why_not
        if why_not is None:
            updates.changed.connect(self._refresh)
            self._refresh()
        else:
            self._state.setText(translate_sentence(why_not))
            self._about.hide()
            buttons.hide()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._updates.load()

    def _refresh(self) -> None:
        words = self._words()
        self._state.setText(words)
        self._open.setVisible(self._updates.newer is not None)
        self._open.setToolTip("" if self._updates.newer is None else self._updates.newer.page)
        when = (
            self.tr("“{0}” is asked once a day: Settings → Network.")
            if self._updates.is_daily
            else self.tr("The button asks “{0}”. To ask once a day, turn it on in Settings → Network.")
        )
        nothing_more = self.tr("Nothing is downloaded or installed.")
        self._about.setText(join_sentences((when.format(self._updates.source.host), nothing_more)))
        if self._was_checking and not self._updates.is_checking:
            announce(self, words)
        self._was_checking = self._updates.is_checking

    def _words(self) -> str:
        updates = self._updates
        if updates.is_checking:
            return translate_sentence(Sentence("“{host}” is being asked …", {"host": updates.source.host}))
        sentences = [release_sentence(updates.newer)] if updates.newer is not None else []
        if updates.problem is not None:
            sentences.append(updates.problem)
        elif not sentences and updates.answered is not None:
            moment = exact_date(updates.answered, datetime.now(UTC))
            sentences.append(Sentence("This is the newest version, as of {moment}.", {"moment": moment}))
        if not sentences:
            return self.tr("Not checked for a newer version yet.")
        return join_sentences(map(translate_sentence, sentences))

    def _open_page(self) -> None:
        if self._updates.newer is not None:
            self._opener.open_page(self._updates.newer.page)
