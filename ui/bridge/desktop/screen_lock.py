"""Whether the screen is locked, as the desktop's screen saver says on the session bus, and logind on the system's."""

import asyncio
import logging
from typing import Any, cast

_log = logging.getLogger(__name__)
_SECONDS = 2.0
"""For all answers of a bus: somebody waits for a notification, or for what they chose in it."""
_SAVERS = (
    ("org.freedesktop.ScreenSaver", "/org/freedesktop/ScreenSaver"),
    ("org.gnome.ScreenSaver", "/org/gnome/ScreenSaver"),
    ("org.cinnamon.ScreenSaver", "/org/cinnamon/ScreenSaver"),
    ("org.mate.ScreenSaver", "/"),
)
_LOGIND = "org.freedesktop.login1"
_OWN_SESSION = "/org/freedesktop/login1/session/auto"


async def is_screen_unlocked() -> bool:
    """Return whether it is sure that the screen is not locked: somebody says so, and nobody the contrary."""
    answers = await asyncio.gather(_ask("SESSION", _saver_calls), _ask("SYSTEM", _logind_calls))
    said = [is_locked for answer in answers for is_locked in answer]
    return bool(said) and not any(said)


def _saver_calls() -> list[Any]:
    return [_call(name, path, name, "GetActive", None, ()) for name, path in _SAVERS]


def _logind_calls() -> list[Any]:
    words = (f"{_LOGIND}.Session", "LockedHint")
    return [_call(_LOGIND, _OWN_SESSION, "org.freedesktop.DBus.Properties", "Get", "ss", words)]


def _call(name: str, path: str, interface: str, method: str, signature: str | None, words: tuple[str, ...]) -> Any:
    from jeepney import DBusAddress, MessageFlag  # pyright: ignore[reportMissingTypeStubs]
    from jeepney import new_method_call as call  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

    message: Any = call(DBusAddress(path, bus_name=name, interface=interface), method, signature, words)
    # A screen saver that is started by the question would know nothing.
    message.header.flags |= MessageFlag.no_auto_start
    return message


async def _ask(bus: str, make_calls: Any) -> list[bool]:
    """Return what those say who answer on this bus; nothing where there is no bus."""
    # Late: most starts ask nobody.
    from jeepney.io.asyncio import open_dbus_router  # pyright: ignore[reportMissingTypeStubs]
    from jeepney.io.common import RouterClosed  # pyright: ignore[reportMissingTypeStubs]
    from jeepney.low_level import SizeLimitError  # pyright: ignore[reportMissingTypeStubs]

    answers: list[bool] = []
    try:
        async with asyncio.timeout(_SECONDS), open_dbus_router(bus=bus) as opened:
            router: Any = opened
            for call in make_calls():
                answer = _is_locked(await router.send_and_get_reply(call))
                if answer is not None:
                    answers.append(answer)
    except (OSError, EOFError, KeyError, ValueError, TimeoutError, RouterClosed, SizeLimitError) as error:
        # Half an answer is none: the one that is missing may be the one that says it is locked.
        _log.info("nobody says on the bus %s whether the screen is locked: %r", bus, error)
        return []
    return answers


def _is_locked(reply: Any) -> bool | None:
    from jeepney import MessageType  # pyright: ignore[reportMissingTypeStubs]

    if reply.header.message_type is MessageType.error or not reply.body:
        return None
    value: Any = reply.body[0]
    if isinstance(value, tuple):
        # A variant: its signature and its value.
        _, value = cast("tuple[str, object]", value)
    return value if isinstance(value, bool) else None
