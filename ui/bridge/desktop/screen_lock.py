"""Whether the screen is locked, as the desktop's screen saver says on the session bus, and logind on the system's."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, cast

from ui.bridge.desktop.message_bus import MessageBus

_log = logging.getLogger(__name__)
_SECONDS = 2.0
"""Limit for all answers of a bus: the person waits for a notification, or for the action chosen in it."""
_SAVERS = (
    ("org.freedesktop.ScreenSaver", "/org/freedesktop/ScreenSaver"),
    ("org.gnome.ScreenSaver", "/org/gnome/ScreenSaver"),
    ("org.cinnamon.ScreenSaver", "/org/cinnamon/ScreenSaver"),
    ("org.mate.ScreenSaver", "/"),
)
_LOGIND = "org.freedesktop.login1"
_OWN_SESSION = "/org/freedesktop/login1/session/auto"
_Call = tuple[str, str, tuple[str, str], str | None, tuple[str, ...]]
"""What `MessageBus.call` takes."""


async def is_screen_unlocked() -> bool:
    """Return whether the screen is certainly not locked: at least one service says so, and none contradicts."""
    savers = [(name, path, (name, "GetActive"), None, ()) for name, path in _SAVERS]
    hint = (f"{_LOGIND}.Session", "LockedHint")
    logind = (_LOGIND, _OWN_SESSION, ("org.freedesktop.DBus.Properties", "Get"), "ss", hint)
    answers = await asyncio.gather(_ask(MessageBus("SESSION"), savers), _ask(MessageBus("SYSTEM"), [logind]))
    states = [is_locked for answer in answers for is_locked in answer]
    return bool(states) and not any(states)


async def _ask(bus: MessageBus, calls: Sequence[_Call]) -> list[bool]:
    """Return whether the screen is locked, once for each service that answers; [] without the bus."""
    try:
        async with asyncio.timeout(_SECONDS):
            await bus.open()
            # A screen saver that the call starts would not know the state.
            replies = [await bus.call(*call, starts=False) for call in calls]
    except OSError as error:
        # Ignore the other answers: the missing one may be the one that says it is locked.
        _log.info("it is not known whether the screen is locked: %r", error)
        return []
    finally:
        await bus.close()
    return [is_locked for reply in replies if (is_locked := _is_locked(reply)) is not None]


def _is_locked(reply: Any) -> bool | None:
    if reply is None or not reply.body:
        return None
    value: Any = reply.body[0]
    if isinstance(value, tuple):
        # A variant: its signature and its value.
        _, value = cast("tuple[str, object]", value)
    return value if isinstance(value, bool) else None
