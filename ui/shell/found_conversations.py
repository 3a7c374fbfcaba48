"""Conversations of other programs: the offer to show them, their section in the sidebar, the bar below an open one."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QLocale, QObject, Qt
from PySide6.QtWidgets import QFrame

from desktop_agent.types.errors import Sentence
from ui.bridge.conversation import OpenConversation
from ui.bridge.library import ConversationLibrary
from ui.shell.banners import Banner, BannerButton
from ui.sidebar.found_section import FoundSection
from ui.style.boxes import hbox
from ui.style.controls import button, label
from ui.style.text import translate_sentence
from ui.style.theme import SPACE_M
from ui.style.widgets import TextWithButtons

if TYPE_CHECKING:
    from ui.bridge.exchange import FoundProgram
    from ui.shell.window import MainWindow


class FoundPresenter(QObject):
    """Shows the conversations of other programs below the person's own, once the person has accepted the offer."""

    def __init__(self, library: ConversationLibrary, window: "MainWindow") -> None:
        super().__init__(window)
        self._library = library
        self._found = library.found
        self._window = window
        self._section = FoundSection(window.themes)
        self._bar = _ReadOnlyBar(self._continue)
        window.sidebar.add_section(self._section)
        window.frame.add_in_place_of_composer(self._bar)
        self._section.folder_opened.connect(self._found.list)
        self._section.chosen.connect(window.sidebar.conversation_chosen)
        self._found.programs_found.connect(self._show_programs)
        self._found.listed.connect(self._section.show_entries)
        self._found.shown_changed.connect(self._found.find)
        library.opened.connect(self._show_bar)
        if self._found.shown or self._found.is_offer_wanted:
            self._found.find()

    def _show_programs(self, programs: "list[FoundProgram]") -> None:
        shown = self._found.shown
        self._section.show_folders([program for program in programs if program.program in shown])
        new = [program for program in programs if program.program not in {*shown, *self._found.offered}]
        if new and self._found.is_offer_wanted:
            self._offer(new)

    def _offer(self, programs: "list[FoundProgram]") -> None:
        names, answer = [program.program for program in programs], self._found.answer
        titles = QLocale().createSeparatedList([program.title for program in programs])
        self._window.banners.show_banner(
            Banner(
                "found",
                Sentence("Conversations of {programs} were found on this computer.", {"programs": titles}),
                Sentence("They can be shown below your own and continued with any model. They are only read."),
                level="remark",
                buttons=(
                    BannerButton(self.tr("Show"), lambda: answer(names, shows=True)),
                    BannerButton(self.tr("Not now"), lambda: answer(names)),
                    BannerButton(self.tr("Never"), lambda: answer(names, offers=False)),
                ),
            )
        )

    def _show_bar(self, conversation: OpenConversation) -> None:
        self._section.set_current(conversation.id)
        self._window.frame.composer.setVisible(not conversation.is_found)
        self._bar.setVisible(conversation.is_found)
        if conversation.is_found and conversation.held_by is not None:
            self._bar.show_words(translate_sentence(conversation.held_by))
            self._window.page.transcript.setFocus(Qt.FocusReason.OtherFocusReason)

    def _continue(self) -> None:
        conversation = self._library.current
        if conversation is not None and conversation.is_found:
            self._found.continue_here(conversation.id, partial(self._on_copied, self._library.begin_choice()))

    def _on_copied(self, is_wanted: Callable[[], bool], conversation_id: str) -> None:
        if is_wanted():
            self._library.open(conversation_id)
        self._library.refresh()


class _ReadOnlyBar(QFrame):
    """Says which program the conversation is from, and offers to continue it."""

    def __init__(self, continue_here: Callable[[], object]) -> None:
        super().__init__()
        self.setProperty("kind", "banner")
        self._words = label(kind="muted", wrap=True)
        self._button = button(self.tr("Continue here"), continue_here, "primary")
        self._button.setToolTip(self.tr("Copies this conversation, which can then be continued with any model"))
        hbox(TextWithButtons(self._words, (self._button,)), parent=self, margins=SPACE_M)

    def show_words(self, words: str) -> None:
        """Show which program it is from."""
        self._words.setText(words)
        self.setAccessibleName(words)
