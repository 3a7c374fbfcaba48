"""Open the links and files that this start of the program and later ones name, in the running window."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject

from desktop_agent.types.errors import Sentence, WrongUse
from desktop_agent.types.tool_calls import UntrustedSource
from ui.bridge.desktop.links import SCHEME, ConversationLink, FileTarget, NewConversationLink, check_file, parse_target
from ui.bridge.event_loop import BackgroundTasks
from ui.bridge.library import ConversationLibrary
from ui.shell.side_windows.quick_ask import QuickAsk
from ui.shell.startup_window import StartupWindow

MAX_TARGETS = 20
"""Targets of one start. Nobody means to open a whole folder of files."""
_LINK_SOURCE = UntrustedSource("web", f"{SCHEME}://new")


class TargetPresenter(QObject):
    """Puts prompts of links, and files, into the composer of a new conversation, after the text that is there.

    Nothing is sent: a text from a link is marked, and the person reads it first.
    """

    def __init__(
        self, startup: StartupWindow, library: ConversationLibrary, quick_ask: QuickAsk, tasks: BackgroundTasks
    ) -> None:
        super().__init__(startup)
        self._startup = startup
        self._window = startup.window
        self._library = library
        self._quick_ask = quick_ask
        self._tasks = tasks
        startup.started_again.connect(self.open_requested)

    def open_requested(self) -> None:
        """Open the targets of all requests so far."""
        requests, self._startup.start_requests[:] = tuple(self._startup.start_requests), ()
        for request in requests:
            self._open(request.targets)
            if request.quick_ask:
                self._quick_ask.show()

    def _open(self, targets: Sequence[str]) -> None:
        files: list[Path] = []
        for target in targets[:MAX_TARGETS]:
            try:
                match parse_target(target):
                    case NewConversationLink(prompt):
                        self._begin(prompt)
                    case ConversationLink(conversation_id, message_id):
                        self._show(conversation_id, message_id)
                    case FileTarget(path):
                        files.append(path)
            except WrongUse as error:
                self._window.banners.show_error(error)
        if len(targets) > MAX_TARGETS:
            words = Sentence("Only the first {count} of these files and links are opened.", {"count": str(MAX_TARGETS)})
            self._window.banners.show_notice(words)
        if files:
            self._tasks.start(self._attach(files))

    def _begin(self, prompt: str) -> None:
        self._library.new()
        if prompt:
            self._window.page.composer.restore_message(prompt, [_LINK_SOURCE])

    def _show(self, conversation_id: str, message_id: str) -> None:
        self._window.show_conversation_page()
        if message_id:
            self._window.page.messages.open(conversation_id, message_id)
        else:
            self._library.open(conversation_id)

    async def _attach(self, paths: Sequence[Path]) -> None:
        usable: list[Path] = []
        for path in paths:
            try:
                await asyncio.to_thread(check_file, path)
                usable.append(path)
            except WrongUse as error:
                self._window.banners.show_error(error)
        if not usable:
            return
        self._library.new()
        self._window.page.composer.attach_files(usable)
