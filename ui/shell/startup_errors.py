"""Show why the program cannot start, in a window that the person may already have written in."""

import asyncio
from functools import partial
from pathlib import Path

from PySide6.QtCore import QCoreApplication

from desktop_agent.types.errors import AgentError
from ui.bridge.single_instance import start_program
from ui.shell.banners import BannerButton
from ui.shell.startup_window import StartupWindow
from ui.style.file_dialogs import ask_folder

translate = QCoreApplication.translate


async def show_startup_error(startup: StartupWindow, error: AgentError) -> None:
    """Show an error, and return when the program is ended. Until then, texts in the window can be copied."""
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_end() -> None:
        if not ended.done():
            ended.set_result(None)

    startup.ended.connect(on_end)
    if not startup.is_ended:
        # The program may have been started in the background.
        startup.window.show()
        startup.window.frame.return_messages()
        # Show the banner again if it was closed.
        startup.window.frame.composer.send_requested.connect(lambda: _show(startup, error))
        _show(startup, error)
        await ended
    startup.close_window()


def _show(startup: StartupWindow, error: AgentError) -> None:
    choose = translate("StartupError", "Choose another data folder…")
    button = BannerButton(choose, partial(_choose_folder, startup), keeps_banner=True)
    startup.window.banners.show_error(error, "", button)


def _choose_folder(startup: StartupWindow) -> None:
    """Ask for another data folder, and start a new process with it: no state of this process is left in it."""
    words = translate("StartupError", "Choose another data folder")

    def start(folder: Path) -> None:
        start_program(folder)
        startup.end()

    ask_folder(startup.window, words, str(Path.home()), start)
