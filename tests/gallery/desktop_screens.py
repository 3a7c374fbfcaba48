"""What the window has around it on the desktop: the window for a quick question, and its keys in the settings."""

import asyncio

from PySide6.QtCore import QCoreApplication, QObject
from PySide6.QtWidgets import QApplication

from desktop_agent.types.errors import AgentError, Sentence
from tests.gallery.desk import Desk, until
from tests.gallery.screens import placed, scene
from ui.bridge.side_conversation import SideConversation
from ui.shell.side_windows.quick_ask import QuickAsk
from ui.shell.side_windows.side_windows import SideWindows
from ui.style.text import translate_sentence

TAKEN = AgentError(
    Sentence("Another program already uses {keys}.", {"keys": "Ctrl+Alt+Space"}),
    "Choose other keys, or take these from that program.",
)


async def keys(desk: Desk, *, problem: str = "", note: str = "") -> None:
    """Settings → Chat at the field of the keys."""
    desk.begin()
    dialog = desk.settings.show("chat", "quick_ask_keys")
    dialog._forms["chat"].rows["quick_ask_keys"].control.show("Ctrl+Alt+Space")
    dialog.show_quick_ask_keys(is_possible=True, problem=problem, note=note)
    await asyncio.sleep(0.3)


@scene("settings-quick-keys")
async def quick_keys(desk: Desk) -> None:
    await keys(
        desk,
        note=QCoreApplication.translate("QuickAskKeys", "Your desktop calls these keys {0}.").format("Super+Space"),
    )


@scene("settings-quick-keys-taken", 360, 640)
async def quick_keys_taken(desk: Desk) -> None:
    await keys(desk, problem=translate_sentence(TAKEN.whole))
    desk.settings._dialog.resize(360, 640)
    await asyncio.sleep(0.3)


class Startup(QObject):
    """What the windows beside the main one need of a start."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk.window)
        self.app = QApplication.instance()
        self.themes = desk.window.themes
        self.window = desk.window

    def raise_window(self) -> None:
        self.window.raise_()


@scene("quick-question")
async def quick_question(desk: Desk) -> None:
    desk.begin()

    def create_source() -> SideConversation:
        return SideConversation(desk.library, desk.engine, desk.clock, desk.tasks)

    windows = SideWindows(Startup(desk), desk.library, desk.servers, desk.pictures, desk.tasks, create_source)
    QuickAsk(windows._startup.themes, windows, desk.tasks).show()
    window = windows._all[0]
    await placed(window)
    await until(lambda: window.page._drafts.is_loaded)
    desk.side_windows.append(window)
