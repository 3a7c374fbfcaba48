"""MCP servers in the window: what they ask, what they offer for a message, and what must be known of them."""

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from desktop_agent.vocabulary.errors import Sentence
from ui.bridge.library import ConversationLibrary
from ui.bridge.mcp.asking import McpRequests
from ui.bridge.mcp.notices import McpNotices
from ui.bridge.mcp.offers import McpCatalog
from ui.bridge.tasks import BackgroundTasks
from ui.composer.composer import Composer
from ui.look.theme import ThemeSource
from ui.shell.banners import Banner, BannerArea, BannerButton
from ui.shell.mcp.asking import ElicitationPresenter
from ui.shell.mcp.offers import INSERT_SHORTCUT, McpCatalogControls


class McpPresenter(QObject):
    """Put into a window whose composer and banners these are."""

    settings_requested = Signal()
    """The person wants to see how the servers are set up."""

    def __init__(
        self,
        themes: ThemeSource,
        bridge: tuple[McpRequests, McpCatalog, McpNotices],
        composer: Composer,
        banners: BannerArea,
        tasks: BackgroundTasks,
        library: ConversationLibrary,
        window: QWidget,
    ) -> None:
        super().__init__(window)
        asking, offers, notices = bridge
        self._requests = asking
        self._banners = banners
        self.questions = ElicitationPresenter(themes, asking, lambda: library.current, window)
        self.offers = McpCatalogControls(themes, composer, offers, tasks, library, window)
        self.offers.settings_requested.connect(self.settings_requested)
        notices.noticed.connect(self._show_notice)
        notices.notify_all()
        insert = QAction(self.tr("Insert from a server"), window)
        insert.setShortcut(QKeySequence(INSERT_SHORTCUT))
        insert.triggered.connect(self.offers.open)
        window.addAction(insert)

    def close(self) -> None:
        """The window goes: who asks hears that nobody answers."""
        self._requests.close()

    def _show_notice(self, sentence: Sentence) -> None:
        buttons = (BannerButton(self.tr("MCP servers…"), self.settings_requested.emit),)
        self._banners.show_banner(Banner(str(sentence), sentence, level="notice", buttons=buttons))
