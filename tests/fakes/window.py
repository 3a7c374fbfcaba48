"""The whole window with a real engine, offscreen."""

import asyncio

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QPlainTextEdit, QPushButton, QWidget

from desktop_agent.api.command_line import LaunchOptions
from desktop_agent.conversation.items import AnswerItem
from desktop_agent.engine.engine import Engine, RunDefaults
from desktop_agent.types.preferences import Preferences, ProviderPreferences
from tests.fakes.qt_loop import SCRIPTED, Heard, until
from tests.fakes.scripted_provider import ScriptedProvider
from ui.app import AppController
from ui.shell.startup_window import StartupWindow
from ui.style.theme import ThemeSource
from ui.style.widgets import QuestionBox

NOWHERE = LaunchOptions(None, None, None)


class Screen:
    """The window as a person uses it: by the names of its controls."""

    def __init__(self, app, engine, provider, folder):
        self.engine = engine
        self.provider = provider
        # As in a new process: with the style sheet of the last window each new widget would be styled again and again.
        app.setStyleSheet("")
        self.front = StartupWindow(app, ThemeSource(), folder)
        self.front.show()
        self.before()
        self.desk = AppController(self.front, engine)
        self.window = self.desk.window

    def before(self):
        """A hook for tests: called when the startup window is shown, before the AppController exists."""

    @classmethod
    async def open(cls, app, folder, *turns, connected=True, saved=False, defaults=None, place=NOWHERE):
        """Open the window. `saved`: the folder has preferences already. Then do not wait: it may never become idle."""
        engine = await Engine.open(folder, defaults or RunDefaults())
        provider = ScriptedProvider(*turns)
        if connected:
            engine.connections._providers["scripted"] = provider
        if connected and not saved:
            providers = ProviderPreferences(endpoints=(SCRIPTED,), endpoint_id="scripted", model="m")
            await engine.change_preferences(Preferences(providers=providers))
        screen = cls(app, engine, provider, folder)
        screen.desk.begin(place)
        if not saved:
            await screen.idle()
        return screen

    async def close(self):
        await self.desk.close()
        await self.engine.close()
        for qt_object in (self.desk.library, self.desk.servers, self.desk._clock, self.front):
            qt_object.deleteLater()

    async def idle(self):
        """Wait until no background task runs."""
        await until(lambda: not self.desk._tasks._running)

    def find(self, kind, name):
        shown = [widget for widget in self.window.findChildren(kind) if widget.isVisible()]
        return next((widget for widget in shown if widget.accessibleName() == name), None)

    async def wait_for(self, kind, name):
        return await until(lambda: self.find(kind, name))

    @property
    def editor(self):
        return self.find(QPlainTextEdit, "Message")

    @property
    def conversation(self):
        return self.desk.library.current

    @property
    def banners(self):
        return self.window.banners

    def words(self, inside: QWidget | None = None):
        return [label.text() for label in (inside or self.window).findChildren(QLabel) if label.isVisible()]

    def answers(self):
        return [str(item.text) for item in self.conversation.transcript if isinstance(item, AnswerItem)]

    def kept_draft(self):
        """The text of the draft on the disk; None while one is being written."""
        saved = self.window.page._drafts._saved
        return saved[0] if saved is not None else None

    def write(self, text):
        self.editor.setFocus()
        QTest.keyClicks(self.editor, text)

    def press(self, name):
        button = self.find(QWidget, name)
        assert button is not None, name
        assert button.isEnabled(), name
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)

    async def say(self, text):
        self.write(text)
        ended = Heard(self.conversation.finished)
        self.press("Send")
        await until(lambda: ended)
        ended.leave()
        await self.engine._sessions[self.conversation.id].wait_idle()
        await self.idle()

    def action(self, text):
        return next(action for action in self.window.actions() if action.text() == text)

    def question(self):
        boxes = [box for box in self.window.findChildren(QuestionBox) if box.isVisible()]
        assert len(boxes) <= 1
        return boxes[0] if boxes else None

    def answer_question(self, text):
        buttons = self.question().findChildren(QPushButton)
        button = next(button for button in buttons if button.text() == text)
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)


@pytest.fixture
def on_screen(qapp, in_loop, tmp_path):
    """Return a function that runs `work(screen)` with the window open; it may be called again with the same folder."""

    def run(work, *turns, folder=None, **options):
        async def whole():
            screen = await Screen.open(qapp, folder or tmp_path / "data", *turns, **options)
            try:
                await work(screen)
                await asyncio.sleep(0)
            finally:
                await screen.close()

        in_loop(whole())

    return run
