"""The small window for a quick question: asked in a new conversation, answered in place."""

import asyncio
from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QObject, QSize, Signal
from PySide6.QtGui import QCursor, QGuiApplication, QKeySequence, QShortcut
from PySide6.QtWidgets import QWidget

from desktop_agent.types.errors import Sentence
from ui.bridge.desktop.screenshot import ScreenshotFailed, take_screenshot
from ui.bridge.event_loop import BackgroundTasks
from ui.composer.attachment_items import picture_from_mime
from ui.shell.side_windows.conversation_window import ConversationWindow
from ui.shell.side_windows.side_windows import SideWindows
from ui.style.controls import IconButton, set_keys_tooltip
from ui.style.theme import ThemeSource

CLIPBOARD_KEYS = "Ctrl+Shift+V"
SCREENSHOT_KEYS = "Ctrl+Shift+S"
_HIDE_SECONDS = 0.25
"""Seconds after which the desktop has painted what was behind the window."""
_SIZE = QSize(640, 520)


class QuickAsk(QObject):
    """One window for all quick questions. Between them it is hidden, and keeps text that was not sent."""

    hidden = Signal()
    """The person closed it."""

    def __init__(self, themes: ThemeSource, windows: SideWindows, tasks: BackgroundTasks) -> None:
        super().__init__(windows)
        self._themes = themes
        self._windows = windows
        self._tasks = tasks
        self._window: ConversationWindow | None = None
        self._is_capturing = False
        """Whether a screenshot is being taken, while the window is hidden."""

    def show(self) -> None:
        """Show the window in the middle of the pointer's screen, for a new question unless it is already shown."""
        if self._is_capturing:
            return
        window = self._window or self._create()
        if window.isHidden():
            conversation = window.conversation
            if conversation is None or not conversation.is_empty:
                window.source.new()
            _centre(window)
        window.raise_window()

    def _create(self) -> ConversationWindow:
        window = self._window = self._windows.create()
        window.setAccessibleName(self.tr("Quick question"))
        window.close_requested.connect(window.hide)
        window.close_requested.connect(self.hidden)
        window.main_requested.connect(self._go_to_main)
        window.destroyed.connect(self._forget)
        window.page.composer.escape_pressed.connect(window.close)
        attach = partial(_attach_clipboard, window)
        _add_button(window, self._themes, "copy", self.tr("Attach the clipboard"), CLIPBOARD_KEYS, attach)
        take = partial(self._take_screenshot, window)
        _add_button(window, self._themes, "screenshot", self.tr("Attach a screenshot"), SCREENSHOT_KEYS, take)
        return window

    def _forget(self) -> None:
        self._window = None

    def _take_screenshot(self, window: ConversationWindow) -> None:
        if not self._is_capturing:
            self._is_capturing = True
            self._tasks.start(self._attach_screenshot(window))

    async def _attach_screenshot(self, window: ConversationWindow) -> None:
        """Hide the window while the screenshot is taken, so that it shows what is behind the window."""
        composer = window.page.composer
        window.hide()
        try:
            await asyncio.sleep(_HIDE_SECONDS)
            # Get the screen only now: PySide deletes its object with the last dialog that asked for its own screen.
            picture = await take_screenshot(lambda: window.screen().grabWindow(0).toImage())
            composer.attachments.add_pasted(picture, self.tr("Screenshot"))
        except ScreenshotFailed as error:
            composer.show_problem(error.sentence, error.remedy)
        finally:
            self._is_capturing = False
        if self._window is window:
            window.raise_window()

    def _go_to_main(self) -> None:
        window = self._window
        if window is not None:
            window.hide()
            self._tasks.start(self._continue_in_main(window))

    async def _continue_in_main(self, window: ConversationWindow) -> None:
        """Show the conversation in the main window, with its draft."""
        conversation = window.conversation
        await window.save_draft()
        self._windows.show_in_main(conversation)
        # Unless the next question was begun meanwhile.
        if window.conversation is conversation:
            window.source.new()


def _add_button(
    window: ConversationWindow, themes: ThemeSource, icon: str, name: str, keys: str, command: Callable[[], object]
) -> None:
    button = IconButton(themes, icon, name)
    set_keys_tooltip(button, name, keys)

    def press() -> None:  # without the argument of `clicked`
        command()

    button.clicked.connect(press)
    QShortcut(QKeySequence(keys), window).activated.connect(command)
    window.frame.add_before_title(button)
    # The visible order, for the Tab key and assistive technology.
    button.stackUnder(window.frame.title)
    QWidget.setTabOrder(button, window.frame.title)


def _attach_clipboard(window: ConversationWindow) -> None:
    """Attach what is on the clipboard; the question is typed beside it."""
    composer, clipboard = window.page.composer, QGuiApplication.clipboard()
    image = clipboard.image()
    if text := clipboard.text().strip():
        composer.attachments.add_text(text)
    elif not image.isNull():
        composer.attachments.add_pasted(picture_from_mime(clipboard.mimeData()) or image)
    else:
        composer.show_problem(Sentence("There is no text and no picture on the clipboard."))
    composer.editor.setFocus()


def _centre(window: ConversationWindow) -> None:
    screen = QGuiApplication.screenAt(QCursor.pos()) or QGuiApplication.primaryScreen()
    room = screen.availableGeometry()
    window.resize(_SIZE.boundedTo(room.size() * 0.9))
    frame = window.frameGeometry()
    frame.moveCenter(room.center())
    window.move(frame.topLeft())
