"""Global keys by the desktop's portal for global shortcuts: on Wayland no program may grab keys itself."""

import os
from typing import Any

from PySide6.QtCore import QCoreApplication, QObject, Signal

from desktop_agent.types.errors import Sentence
from ui.bridge.desktop.key_names import KeyCombination, KeysUnavailable
from ui.bridge.desktop.portal import DesktopPortal, PortalMissing, PortalRefused

_INTERFACE = "org.freedesktop.portal.GlobalShortcuts"
_ID = "quick-question"
NO_PORTAL = Sentence("Your desktop has no portal for global shortcuts, so no keys can be set here.")
BIND_YOURSELF = Sentence("Bind the command “desktop-agent --quick-ask” to a key in the settings of your desktop.")


class PortalKeys(QObject):
    """One shortcut of the desktop. The person may choose other keys than the requested ones."""

    pressed = Signal()
    renamed = Signal(str)
    """The person chose other keys in the settings of the desktop: the desktop's name for them."""
    lost = Signal()
    """The portal has ended."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._portal: DesktopPortal | None = None
        self._session = ""

    async def grab(self, keys: KeyCombination) -> str:
        """Request these keys in place of earlier ones; return the desktop's name for the keys that the person chose.

        Raises KeysUnavailable.
        """
        await self.release()
        portal = self._portal = DesktopPortal(_INTERFACE, self._on_signal, self.lost.emit)
        try:
            return await self._bind(portal, keys)
        except BaseException as error:
            await self._leave(portal)
            if isinstance(error, PortalMissing):
                raise KeysUnavailable(NO_PORTAL, BIND_YOURSELF) from error
            if isinstance(error, PortalRefused):
                what = "Your desktop gave no key for the quick question."
                raise KeysUnavailable(what, "Choose the keys again, and agree when your desktop asks.") from error
            raise

    async def release(self) -> None:
        """Release the keys, also while the person is asked about them."""
        portal = self._portal
        if portal is not None:
            await self._leave(portal)

    async def _leave(self, portal: DesktopPortal) -> None:
        if self._portal is portal:
            self._portal, self._session = None, ""
        await portal.close()

    async def _bind(self, portal: DesktopPortal, keys: KeyCombination) -> str:
        await portal.open()
        # A session can be bound only once, so each request creates its own.
        created = await portal.request(
            "CreateSession", "a{sv}", lambda options: (options,), session_handle_token=("s", "desktop_agent")
        )
        if self._portal is not portal:
            # Other keys were chosen meanwhile.
            raise PortalRefused(is_cancelled=True)
        self._session = str(created.get("session_handle", ""))
        bound = await portal.request("BindShortcuts", "oa(sa{sv})sa{sv}", lambda options: self._values(keys, options))
        description = _description(bound.get("shortcuts", []))
        if description is None:
            raise PortalRefused(is_cancelled=True)
        return description

    def _values(self, keys: KeyCombination, options: dict[str, Any]) -> tuple[Any, ...]:
        about = {"description": ("s", QCoreApplication.translate("PortalKeys", "Ask a quick question"))}
        if keys.trigger:
            about["preferred_trigger"] = ("s", keys.trigger)
        return self._session, [(_ID, about)], "", options

    def _on_signal(self, name: str, values: tuple[Any, ...]) -> None:
        if not self._session or values[:1] != (self._session,):
            return
        if name == "Activated" and values[1] == _ID:
            _, token = values[3].get("activation_token", ("s", ""))
            if token and "\0" not in token:
                # Qt raises the next window with it: without a token, a compositor lets no window come to the front.
                os.environ["XDG_ACTIVATION_TOKEN"] = token
            self.pressed.emit()
        elif name == "ShortcutsChanged" and (description := _description(values[1])) is not None:
            self.renamed.emit(description)


async def has_portal() -> bool:
    """Return whether the desktop has the portal for global shortcuts."""
    portal = DesktopPortal(_INTERFACE)
    try:
        await portal.open()
    except PortalMissing:
        return False
    await portal.close()
    return True


def _description(shortcuts: list[tuple[str, dict[str, tuple[str, Any]]]]) -> str | None:
    """Return the desktop's name for the keys of our shortcut; None if that is not bound."""
    about = dict(shortcuts).get(_ID)
    return None if about is None else str(about.get("trigger_description", ("s", ""))[1])
