"""Keys that work while another program is in front: by X11 or by the desktop's portal."""

import os
import sys
from typing import Literal

from PySide6.QtCore import QObject
from PySide6.QtGui import QGuiApplication

from desktop_agent.types.errors import Sentence, join_remedy
from ui.bridge.desktop.portal_keys import BIND_YOURSELF, NO_PORTAL, PortalKeys, has_portal
from ui.bridge.desktop.x11_keys import X11Keys

GlobalKeys = X11Keys | PortalKeys
_NOT_YET = Sentence("Not available on this system yet. Use the tray's menu or the command palette to open the window.")


def keys_kind() -> Literal["x11", "portal"] | None:
    """Return what provides global keys here; None on systems without an implementation."""
    if not sys.platform.startswith("linux"):
        return None
    # With XWayland, X11 sees only the keys that are pressed in its own windows.
    is_wayland = os.environ.get("XDG_SESSION_TYPE") == "wayland" or bool(os.environ.get("WAYLAND_DISPLAY"))
    return "x11" if QGuiApplication.platformName() == "xcb" and not is_wayland else "portal"


def create_keys(parent: QObject) -> GlobalKeys | None:
    """Create the provider of global keys, with no keys grabbed yet; None if there is none."""
    kind = keys_kind()
    return None if kind is None else X11Keys(parent) if kind == "x11" else PortalKeys(parent)


async def why_impossible() -> Sentence | None:
    """Return why no global keys are possible here; None if they are."""
    kind = keys_kind()
    if kind is None:
        return _NOT_YET
    if kind == "portal" and not await has_portal():
        return join_remedy(NO_PORTAL, BIND_YOURSELF)
    return None
