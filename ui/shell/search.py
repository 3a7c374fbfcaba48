"""The search of the sidebar: what is typed goes to the library, and what is chosen to the page."""

from collections.abc import Callable

from PySide6.QtCore import QObject, Qt

from desktop_agent.types.errors import Sentence
from desktop_agent.types.search import SearchHit
from ui.bridge.conversation import OpenConversation
from ui.bridge.library import ConversationLibrary
from ui.shell.banners import Banner
from ui.shell.conversation_page import ConversationPage
from ui.shell.find_and_caret import EXPLANATION_MS
from ui.sidebar.conversation_list import ConversationList


class SearchPresenter(QObject):
    """Connects the sidebar with the search; `show_page` shows the conversation if something else hides it."""

    def __init__(
        self,
        sidebar: ConversationList,
        library: ConversationLibrary,
        page: ConversationPage,
        show_page: Callable[[], object],
    ) -> None:
        super().__init__(sidebar)
        self._library = library
        self._page = page
        self._show_page = show_page
        sidebar.search_requested.connect(library.search.search)
        sidebar.search_ended.connect(library.search.stop)
        sidebar.conversation_chosen.connect(self._on_conversation_chosen)
        sidebar.hit_chosen.connect(self.open)
        sidebar.filter_choices_wanted.connect(library.search.read_choices)
        library.search.choices_read.connect(sidebar.set_filter_choices)
        library.search.found.connect(library.found.note_results)
        library.found.shown_changed.connect(sidebar.repeat_search)
        library.search.found.connect(sidebar.show_results)
        page.messages.arrived.connect(self._on_arrived)
        page.messages.refused.connect(self._on_refused)
        sidebar.repeat_search()

    def open(self, conversation_id: str, hit: SearchHit, words: str) -> None:
        """Open a conversation at a hit, with these words marked."""
        self._page.messages.open(conversation_id, hit.message_id, words)

    def _on_conversation_chosen(self, conversation_id: str) -> None:
        """Show the open conversation if another page or the sidebar hides it, and give it the focus."""
        if self._library.current is not None and self._library.current.id == conversation_id:
            self._show_page()
            if self._page.composer.isHidden():
                self._page.transcript.setFocus(Qt.FocusReason.OtherFocusReason)
            else:
                self._page.composer.editor.setFocus(Qt.FocusReason.OtherFocusReason)

    def _on_arrived(self, _conversation: OpenConversation, row: int) -> None:
        self._show_page()
        self._page.navigation.show_message(row, self._page.messages.words)

    def _on_refused(self, conversation: OpenConversation, sentence: Sentence) -> None:
        self._show_page()
        banner = Banner("search", sentence, level="notice", duration_ms=EXPLANATION_MS, conversation_id=conversation.id)
        self._page.banners.show_banner(banner)
