"""A screenshot: by the desktop's portal, which asks the person, or without one the whole screen as X11 shows it."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QUrl
from PySide6.QtGui import QImage

from desktop_agent.types.errors import AgentError
from ui.bridge.desktop.global_keys import keys_kind
from ui.bridge.desktop.portal import DesktopPortal, PortalMissing, PortalRefused

_INTERFACE = "org.freedesktop.portal.Screenshot"
_MAX_BYTES = 100_000_000
_TAKE_YOURSELF = "Take one with the keys of your desktop, and attach the clipboard."


class ScreenshotFailed(AgentError):
    """No screenshot was taken."""

    kind = "screenshot"
    default_remedy = _TAKE_YOURSELF


async def take_screenshot(grab: Callable[[], QImage]) -> bytes | QImage:
    """Return a screenshot: bytes of a file, or what `grab` returns. Raises ScreenshotFailed."""
    if sys.platform == "darwin":
        # Without a permission of the system it would show only an empty desktop.
        raise ScreenshotFailed("There are no screenshots on this system yet.")
    if sys.platform.startswith("linux"):
        try:
            return await _ask_portal()
        except PortalMissing as error:
            if keys_kind() != "x11":
                raise ScreenshotFailed("Your desktop has no portal for screenshots.") from error
    image = grab()
    if image.isNull():
        raise ScreenshotFailed("No picture of the screen could be taken.")
    return image


async def _ask_portal() -> bytes:
    """Let the person take a screenshot in the desktop's own dialog; return the bytes of its file."""
    portal = DesktopPortal(_INTERFACE)
    await portal.open()
    try:
        results = await portal.request(
            "Screenshot", "sa{sv}", lambda options: ("", options), modal=("b", True), interactive=("b", True)
        )
    except PortalRefused as error:
        if error.is_cancelled:
            raise ScreenshotFailed("No screenshot was taken.", "Press the button again for another try.") from error
        raise ScreenshotFailed("Your desktop refused the screenshot.") from error
    finally:
        await portal.close()
    path = Path(QUrl(str(results.get("uri", ""))).toLocalFile())
    try:
        return await asyncio.to_thread(_read, path)
    except OSError as error:
        raise ScreenshotFailed("The screenshot of your desktop cannot be read.") from error


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise OSError("too large")
    return data
