"""All windows beside the main one: opening them, their geometry, their drafts, and closing them."""

import json
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QByteArray, QObject, Signal

from ui.bridge.event_loop import BackgroundTasks
from ui.bridge.library import ConversationLibrary
from ui.bridge.model_servers import ModelServers
from ui.bridge.side_conversation import SideConversation
from ui.bridge.storage import PictureStore
from ui.shell.side_windows.conversation_window import ConversationWindow
from ui.shell.startup_window import StartupWindow

if TYPE_CHECKING:
    from ui.bridge.conversation import OpenConversation
    from ui.shell.conversation_page import ConversationPage

_GEOMETRIES, _OPEN = "side_windows/places", "side_windows/open"
_MAX_GEOMETRIES = 50
_MAX_OPEN = 10


class SideWindows(QObject):
    """Opens a window for a conversation, and restores the geometry of each."""

    last_closed = Signal()
    """The person closed the last one."""
    page_created = Signal(object)
    """The ConversationPage of a new window."""

    def __init__(
        self,
        startup: StartupWindow,
        library: ConversationLibrary,
        servers: ModelServers,
        pictures: PictureStore,
        tasks: BackgroundTasks,
        create_source: Callable[[], SideConversation],
    ) -> None:
        super().__init__(startup)
        self._startup = startup
        self._library = library
        self._servers = servers
        self._pictures = pictures
        self._tasks = tasks
        self._create_source = create_source
        self._windows: dict[str, ConversationWindow] = {}
        self._all: list[ConversationWindow] = []

    @property
    def are_open(self) -> bool:
        """Whether one is on the screen."""
        return any(not window.isHidden() for window in self._all)

    @property
    def all(self) -> "list[tuple[ConversationWindow, OpenConversation | None]]":
        """All windows, with what each shows; hidden ones too."""
        return [(window, window.conversation) for window in self._all]

    @property
    def pages(self) -> "list[ConversationPage]":
        return [window.page for window in self._all]

    def open(self, conversation_id: str) -> None:
        """Show a conversation in a separate window, or raise the window that it has."""
        window = self._windows.get(conversation_id)
        if window is None:
            window = self._windows[conversation_id] = self.create()
            if geometry := self._geometries().get(conversation_id):
                window.restoreGeometry(QByteArray.fromBase64(geometry.encode("ascii", "replace")))
            window.source.failed.connect(partial(self._discard, window))
            window.close_requested.connect(partial(self.close_window, window))
            window.main_requested.connect(partial(self._go_to_main, window))
            window.source.open(conversation_id)
        window.raise_window()

    def raise_showing(self, conversation_id: str | None) -> ConversationWindow | None:
        """Raise a window that shows this conversation; return it, if there is one."""
        for window, conversation in self.all:
            if not window.isHidden() and conversation is not None and conversation.id == conversation_id:
                window.raise_window()
                return window
        return None

    def create(self) -> ConversationWindow:
        """Return a new window, which shows nothing yet."""
        window = ConversationWindow(
            self._startup.themes, self._create_source(), self._servers, self._pictures, self._tasks
        )
        window.setWindowIcon(self._startup.app.windowIcon())
        page, main = window.page, self._startup.window
        page.composer.set_enter_sends(main.page.composer.editor.enter_sends)
        page.models.picker.connect_requested.connect(self._startup.raise_window)
        page.models.picker.connect_requested.connect(main.show_welcome)
        page.providers_requested.connect(self._startup.raise_window)
        page.providers_requested.connect(main.page.providers_requested)
        page.models.picker.model_file_requested.connect(self._startup.raise_window)
        page.models.picker.model_file_requested.connect(main.model_file_requested)
        page.usage_meter.usage_requested.connect(self._startup.raise_window)
        page.usage_meter.usage_requested.connect(main.page.usage_meter.usage_requested)
        self._all.append(window)
        self.page_created.emit(page)
        return window

    def show_in_main(self, conversation: "OpenConversation | None") -> None:
        """Show the conversation in the main window, if it is stored."""
        self._startup.raise_window()
        if conversation is not None and conversation.is_stored:
            self._startup.window.show_conversation_page()
            self._library.open(conversation.id)

    def reopen(self) -> None:
        """Open the windows that were open when the program last ended."""
        for conversation_id in self._startup.state_file.text(_OPEN).split()[:_MAX_OPEN]:
            self.open(conversation_id)

    async def close(self) -> None:
        """Save the geometry and the drafts of all windows, and close them: the program ends."""
        shown = [id_ for id_, window in self._windows.items() if not window.isHidden()]
        self._startup.state_file.save({_OPEN: " ".join(shown)})
        for window in tuple(self._all):
            window.hide()
            await self._close(window)

    def close_window(self, window: ConversationWindow) -> None:
        """Close one window."""
        window.hide()
        self._tasks.start(self._close(window))
        if not self.are_open:
            self.last_closed.emit()

    def _go_to_main(self, window: ConversationWindow) -> None:
        self.show_in_main(window.conversation)
        self.close_window(window)

    async def _close(self, window: ConversationWindow) -> None:
        self._save_geometry(window)
        try:
            await window.save_draft()
        finally:
            # The person may have opened it again meanwhile, or closed it twice.
            if window in self._all and window.isHidden():
                self._discard(window)

    def _discard(self, window: ConversationWindow) -> None:
        self._all = [other for other in self._all if other is not window]
        self._windows = {id_: other for id_, other in self._windows.items() if other is not window}
        window.finish()

    def _geometries(self) -> dict[str, str]:
        try:
            geometries: Any = json.loads(self._startup.state_file.text(_GEOMETRIES) or "{}")
            return {str(id_): str(geometry) for id_, geometry in geometries.items()}
        except (ValueError, AttributeError, RecursionError):
            return {}

    def _save_geometry(self, window: ConversationWindow) -> None:
        conversation_id = next((id_ for id_, other in self._windows.items() if other is window), "")
        if not conversation_id:
            return
        geometries = self._geometries()
        geometries.pop(conversation_id, None)
        geometries[conversation_id] = bytes(window.saveGeometry().toBase64().data()).decode("ascii")
        kept = dict(list(geometries.items())[-_MAX_GEOMETRIES:])
        self._startup.state_file.save({_GEOMETRIES: json.dumps(kept)})
