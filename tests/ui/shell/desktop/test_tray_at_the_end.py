"""The icon in the tray after the window is closed: runs that end then are still told of."""

from PySide6.QtCore import QCoreApplication, QEvent

from ui.shell.desktop.tray import TrayPresenter


def test_what_ends_after_it_is_not_shown(on_screen):
    async def work(screen):
        nothing = lambda: None  # noqa: E731 - two commands of the menu that nobody chooses
        tray = TrayPresenter(screen.front, screen.desk.library, screen.desk._settings, nothing, nothing)
        tray.close()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        # Another state than the one that is there, so that it would have to be drawn.
        tray._state = (True, 9)
        screen.desk.library.waiting.changed.emit()
        screen.desk.library.activity.emit("", "", "done")
        assert tray._state == (True, 9)

    on_screen(work)
