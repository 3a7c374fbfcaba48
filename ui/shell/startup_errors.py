"""Show why the program cannot start, in a window that the person may already have written in."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QObject

from desktop_agent.types.errors import AgentError
from ui.bridge.single_instance import start_program
from ui.shell.banners import BannerButton
from ui.shell.startup_window import StartupWindow
from ui.style.file_dialogs import ask_folder

translate = QCoreApplication.translate


async def show_startup_error(startup: StartupWindow, error: AgentError, *, can_retry: bool = False) -> bool:
    """Show an error; return True when the person wants to try again, which needs `can_retry`.

    Return False when the program is ended: the window is closed then. Until then, texts in the window can be copied.
    """
    choice: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def choose(retries: bool) -> None:  # noqa: FBT001  private
        if not choice.done():
            choice.set_result(retries)

    composer = startup.window.frame.composer
    retry = partial(choose, True) if can_retry else None
    connections = (
        startup.ended.connect(partial(choose, False)),
        # Show the banner again if it was closed.
        composer.send_requested.connect(lambda: _show(startup, error, retry)),
    )
    if startup.is_ended:
        choose(False)
    else:
        # The program may have been started in the background.
        startup.window.show()
        startup.window.frame.return_messages()
        _show(startup, error, retry)
    is_retry = await choice
    for connection in connections:
        QObject.disconnect(connection)
    if is_retry:
        startup.window.frame.hold_messages_again()
    else:
        startup.close_window()
    return is_retry


def _show(startup: StartupWindow, error: AgentError, retry: Callable[[], None] | None) -> None:
    choose = translate("StartupError", "Choose another data folder…")
    buttons = [BannerButton(choose, partial(_choose_folder, startup), keeps_banner=True)]
    if retry is not None:
        buttons.insert(0, BannerButton(translate("StartupError", "Try again"), retry))
    startup.window.banners.show_error(error, "", *buttons)


def _choose_folder(startup: StartupWindow) -> None:
    """Ask for another data folder, and start a new process with it: no state of this process is left in it."""
    words = translate("StartupError", "Choose another data folder")

    def start(folder: Path) -> None:
        start_program(folder)
        startup.end()

    ask_folder(startup.window, words, str(Path.home()), start)
