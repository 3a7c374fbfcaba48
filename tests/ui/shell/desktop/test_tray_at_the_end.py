"""The icon in the tray: what waits, and after the window is closed, runs that end then."""

import asyncio

from PySide6.QtCore import QCoreApplication, QEvent

from desktop_agent.types.mcp import ElicitationRequest
from tests.fakes.qt_loop import until
from ui.shell.desktop.tray import TrayPresenter


def test_what_ends_after_it_is_not_shown(on_screen):
    async def work(screen):
        nothing = lambda: None  # noqa: E731 - two commands of the menu that nobody chooses
        tray = TrayPresenter(screen.front, screen.desk.library, screen.desk._settings, nothing, nothing)
        tray.close()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        # Another state than the one that is there, so that it would have to be drawn.
        tray._state = (True, 9, 0)
        screen.desk.library.waiting.changed.emit()
        screen.desk.library.requests.changed.emit()
        screen.desk.library.activity.changed.emit("", "", "done")
        assert tray._state == (True, 9, 0)

    on_screen(work)


def test_a_question_of_a_server_is_something_that_waits(on_screen):
    async def work(screen):
        nothing = lambda: None  # noqa: E731 - two commands of the menu that nobody chooses
        tray = TrayPresenter(screen.front, screen.desk.library, screen.desk._settings, nothing, nothing)
        asking = asyncio.create_task(screen.engine.consent_handlers.elicit(ElicitationRequest("S", "Well?")))
        await until(lambda: "Questions of MCP servers that wait for you: 1" in tray._icon.toolTip())
        screen.desk.library.requests.close()
        await asking
        assert tray._icon.toolTip() == "Desktop Agent"
        tray.close()

    on_screen(work)
