"""A window with one conversation, beside the main one."""

from functools import partial

from PySide6.QtCore import QSize, Signal
from PySide6.QtGui import QCloseEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import QWidget

from ui.bridge.conversation import OpenConversation
from ui.bridge.event_loop import BackgroundTasks
from ui.bridge.model_servers import ModelServers
from ui.bridge.side_conversation import SideConversation
from ui.bridge.storage import PictureStore
from ui.shell.banners import BannerArea
from ui.shell.conversation_page import ConversationPage
from ui.shell.layout import PageFrame
from ui.sidebar.title_dialog import ask_title, refuse_rename
from ui.style.boxes import vbox
from ui.style.controls import IconButton, set_keys_tooltip, show_in_front
from ui.style.text import title_or_new
from ui.style.theme import ThemeSource

MAIN_KEYS = "Ctrl+Shift+O"
_SIZE = QSize(780, 760)
_MIN_SIZE = QSize(360, 360)


class ConversationWindow(QWidget):
    """Shows the conversation of its source, with the same page as the main window."""

    close_requested = Signal()
    main_requested = Signal()
    """The person wants to go on in the main window."""

    def __init__(
        self,
        themes: ThemeSource,
        source: SideConversation,
        servers: ModelServers,
        pictures: PictureStore,
        tasks: BackgroundTasks,
    ) -> None:
        super().__init__()
        self.setProperty("isWindowFrame", True)  # for assistive technology, in ui.style.accessibility
        self.source = source
        # It goes with the window: what it is connected to would keep the whole page in memory.
        source.setParent(self)
        self._themes = themes
        tasks = self._tasks = tasks.create_group()
        self._may_close = False
        self.banners = BannerArea(themes)
        self.frame = PageFrame(themes)
        self._main_button = IconButton(themes, "sidebar", self.tr("Open in the main window"))
        set_keys_tooltip(self._main_button, self.tr("Open in the main window"), MAIN_KEYS)
        self.frame.add_before_title(self._main_button)
        self.page = ConversationPage(self.frame, self.banners, themes, source, servers, pictures, tasks)
        vbox(self.banners, self.frame, parent=self, spacing=0, margins=0, grow=self.frame)
        self.setMinimumSize(_MIN_SIZE)
        self.resize(_SIZE.boundedTo(self.screen().availableSize() * 0.9))
        self._connect()

    @property
    def conversation(self) -> OpenConversation | None:
        return self.source.current

    def raise_window(self) -> None:
        """Bring the window to the front, and focus its editor."""
        show_in_front(self)
        self.page.composer.editor.setFocus()

    async def save_draft(self) -> None:
        """Save the draft of this window. Raises StorageFailed."""
        conversation = self.conversation
        if conversation is not None:
            await self.page.save_draft(lambda: _return(conversation))
        await self.source.store_drafts()

    def finish(self) -> None:
        """Close the window for good; tasks that it started, such as saving a picture, run to their end."""
        self._may_close = True
        self.source.close()
        self.page.transcript.close_workers()
        self.close()
        self._tasks.when_idle(self.deleteLater)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Emit `close_requested` instead: the draft is saved first."""
        if self._may_close:
            event.accept()
        else:
            event.ignore()
            self.close_requested.emit()

    def _connect(self) -> None:
        page = self.page
        self.source.opened.connect(self._show)
        self._main_button.clicked.connect(self.main_requested)
        self.frame.title.double_clicked.connect(self._rename)
        page.messages.arrived.connect(self._show_message)
        for keys, command in (
            ("Ctrl+W", self.close),
            (MAIN_KEYS, self.main_requested.emit),
            ("F2", self._rename),
        ):
            QShortcut(QKeySequence(keys), self).activated.connect(command)

    def _show(self, conversation: OpenConversation) -> None:
        self.page.show_conversation(conversation)
        conversation.record_changed.connect(partial(self._on_record, conversation))
        self._show_title(conversation)

    def _show_message(self, _conversation: OpenConversation, row: int) -> None:
        self.page.navigation.show_message(row, "")

    def _rename(self) -> None:
        conversation = self.conversation
        if conversation is None:
            return
        if (refusal := refuse_rename(conversation)) is not None:
            self.banners.show_notice(refusal, conversation.id)
        else:
            ask_title(self._themes, conversation, self.source, self)

    def _on_record(self, conversation: OpenConversation) -> None:
        if conversation.is_closed:
            # It was deleted.
            self.close_requested.emit()
        else:
            self._show_title(conversation)

    def _show_title(self, conversation: OpenConversation) -> None:
        title = title_or_new("" if conversation.is_empty else conversation.title)
        self.setWindowTitle(f"{title} — Desktop Agent")


async def _return(conversation: OpenConversation) -> OpenConversation:
    return conversation
