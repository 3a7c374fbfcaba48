"""What the window has around it on the desktop: the keys of the quick question in the settings."""

import asyncio

from tests.gallery.desk import Desk
from tests.gallery.screens import scene

TAKEN = "Another program has Ctrl+Alt+Space already. Choose other keys, or take these from that program."


async def keys(desk: Desk, *, problem: str = "", note: str = "") -> None:
    """Settings → Chat at the field of the keys."""
    desk.begin()
    dialog = desk.settings.show("chat", "quick_ask_keys")
    dialog._forms["chat"].rows["quick_ask_keys"].control.show("Ctrl+Alt+Space")
    dialog.show_quick_ask_keys(is_possible=True, problem=problem, note=note)
    await asyncio.sleep(0.3)


@scene("settings-quick-keys")
async def quick_keys(desk: Desk) -> None:
    await keys(desk, note="Your desktop calls it Super+Space.")


@scene("settings-quick-keys-taken", 360, 640)
async def quick_keys_taken(desk: Desk) -> None:
    await keys(desk, problem=TAKEN)
    desk.settings._dialog.resize(360, 640)
    await asyncio.sleep(0.3)
