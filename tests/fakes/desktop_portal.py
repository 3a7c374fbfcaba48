"""A desktop portal that speaks the documented protocol, in a process of its own.

`python -m tests.fakes.desktop_portal INTERFACES ANSWERS` answers on the session bus of its environment, as
xdg-desktop-portal 1.21 does: only a registered application gets a session, a session is bound once, and an answer comes
as a signal. ANSWERS is JSON: what the person chooses in "BindShortcuts" (the name of the keys) and in "Screenshot" (an
address); null to cancel, false to refuse, true never to answer. It takes orders as lines of JSON on its standard input,
and writes the calls that it gets.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jeepney import DBusAddress, HeaderFields, MessageType, message_bus, new_error, new_method_return, new_signal
from jeepney.io.asyncio import DBusConnection, DBusRouter, Proxy, open_dbus_connection

from tests.fakes.notification_server import NotificationServer

NAME, PATH = "org.freedesktop.portal.Desktop", "/org/freedesktop/portal/desktop"
SHORTCUTS, SCREENSHOT = "org.freedesktop.portal.GlobalShortcuts", "org.freedesktop.portal.Screenshot"
REQUEST = "org.freedesktop.portal.Request"
FAILED, NOT_ALLOWED = "org.freedesktop.DBus.Error.Failed", "org.freedesktop.portal.Error.NotAllowed"


class _Portal:
    """The registered applications, and their sessions."""

    def __init__(self, connection: DBusConnection, interfaces: list[str], answers: dict[str, Any]) -> None:
        self.connection = connection
        self.interfaces = interfaces
        self.answers = answers
        self.applications: dict[str, str] = {}
        self.sessions: dict[str, str] = {}
        self.bound: set[str] = set()

    async def take_name(self) -> None:
        async with DBusRouter(self.connection) as router:
            await Proxy(message_bus, router).RequestName(NAME)

    async def serve(self) -> None:
        _write("ready", True)
        while True:
            message = await self.connection.receive()
            if message.header.message_type is MessageType.method_call:
                await self._answer(message)

    async def _answer(self, message: Any) -> None:
        fields, body = message.header.fields, message.body
        sender, interface = fields[HeaderFields.sender], fields.get(HeaderFields.interface)
        match fields[HeaderFields.member]:
            case "Register" if sender not in self.applications:
                self.applications[sender] = body[0]
                _write("registered", body[0])
                await self.connection.send(new_method_return(message))
            case "Get" if body[0] in self.interfaces:
                self.applications.setdefault(sender, "")
                await self.connection.send(new_method_return(message, "v", (("u", 2),)))
            case "CreateSession" if interface in self.interfaces and self.applications.get(sender):
                handle = f"{PATH}/session/{_element(sender)}/{body[0]['session_handle_token'][1]}"
                self.sessions[sender] = handle
                self.bound.discard(handle)
                await self._respond(message, body[0], 0, {"session_handle": ("s", handle)})
            case "BindShortcuts" if interface in self.interfaces and body[0] not in self.bound:
                self.bound.add(body[0])
                [(shortcut_id, properties)] = body[1]
                _write("bound", {name: value for name, (_, value) in properties.items()})
                answer = self.answers.get("BindShortcuts", "Ctrl+Alt+Q")
                described = {**properties, "trigger_description": ("s", answer)}
                described.pop("preferred_trigger", None)
                await self._decide(message, body[3], answer, {"shortcuts": ("a(sa{sv})", [(shortcut_id, described)])})
            case "Screenshot" if interface in self.interfaces:
                _write("asked", {name: value for name, (_, value) in body[1].items() if name != "handle_token"})
                answer = self.answers.get("Screenshot")
                await self._decide(message, body[1], answer, {"uri": ("s", answer)})
            case "CreateSession" if interface in self.interfaces:
                await self.connection.send(new_error(message, NOT_ALLOWED, "s", ("An app id is required",)))
            case method:
                await self.connection.send(new_error(message, FAILED, "s", (f"no {method}",)))

    async def _decide(self, message: Any, options: dict[str, Any], answer: Any, results: dict[str, Any]) -> None:
        if answer is True:
            await self._respond(message, options, None, {})
        elif answer in (None, False):
            await self._respond(message, options, 1 if answer is None else 2, {})
        else:
            await self._respond(message, options, 0, results)

    async def _respond(
        self, message: Any, options: dict[str, Any], response: int | None, results: dict[str, Any]
    ) -> None:
        sender = message.header.fields[HeaderFields.sender]
        handle = f"{PATH}/request/{_element(sender)}/{options['handle_token'][1]}"
        await self.connection.send(new_method_return(message, "o", (handle,)))
        if response is not None:
            await self.connection.send(_signal(handle, REQUEST, "Response", "ua{sv}", (response, results)))

    async def obey(self, order: list[Any]) -> None:
        match order:
            case ["press", token]:
                options = {"activation_token": ("s", token)} if token else {}
                for handle in self.sessions.values():
                    pressed = (handle, "quick-question", 1, options)
                    await self.connection.send(_signal(PATH, SHORTCUTS, "Activated", "osta{sv}", pressed))
            case ["forge"]:
                other = await open_dbus_connection("SESSION")
                for handle in self.sessions.values():
                    pressed = (handle, "quick-question", 1, {})
                    await other.send(_signal(PATH, SHORTCUTS, "Activated", "osta{sv}", pressed))
                await other.close()
            case ["rename", words]:
                for handle in self.sessions.values():
                    shortcuts = [("quick-question", {"trigger_description": ("s", words)})]
                    signal = _signal(PATH, SHORTCUTS, "ShortcutsChanged", "oa(sa{sv})", (handle, shortcuts))
                    await self.connection.send(signal)
            case ["answer", method, answer]:
                self.answers[method] = answer
            case _:
                raise ValueError(order)
        _write("obeyed", order)


def _element(sender: str) -> str:
    return sender.removeprefix(":").replace(".", "_")


def _signal(path: str, interface: str, name: str, signature: str, body: tuple[Any, ...]) -> Any:
    return new_signal(DBusAddress(path, interface=interface), name, signature, body)


def _write(what: str, value: Any) -> None:
    sys.stdout.write(json.dumps([what, value]) + "\n")
    sys.stdout.flush()


async def _main(interfaces: str, answers: str) -> None:
    portal = _Portal(await open_dbus_connection("SESSION"), interfaces.split(), json.loads(answers))
    await portal.take_name()
    orders = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    serving = asyncio.create_task(portal.serve())
    while line := await orders.readline():
        await portal.obey(json.loads(line))
    serving.cancel()


class DesktopPortalServer(NotificationServer):
    """The process of the portal, for a test."""

    def of(self, what: str) -> list[Any]:
        """The values of all lines of this kind that it wrote."""
        return [value for kind, value in tuple(self.told) if kind == what]

    def press(self, token: str = "") -> None:
        """Press the keys, as the compositor reports it."""
        self._order("press", token)

    def forge(self) -> None:
        """Report pressed keys from another connection, as a program that forges the signal would."""
        self._order("forge")

    def rename(self, words: str) -> None:
        """Call the keys otherwise, as the person does in the settings of the desktop."""
        self._order("rename", words)

    def answer(self, method: str, answer: Any) -> None:
        self._order("answer", method, answer)


@contextmanager
def desktop_portal(environment: Mapping[str, str], *interfaces: str, **answers: Any) -> Iterator[DesktopPortalServer]:
    """Run the portal with these interfaces on the session bus of this environment."""
    # Imported here, as the portal's own process starts in half the time without pytest.
    from tests.fakes.window_process import wait_until
    from tests.frame import displays

    words = [sys.executable, "-m", "tests.fakes.desktop_portal", " ".join(interfaces), json.dumps(answers)]
    process = subprocess.Popen(
        words,
        env=dict(environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        start_new_session=True,
    )
    server = DesktopPortalServer(process, dict(environment))
    try:
        wait_until("the portal answers", lambda: ["ready", True] in server.told)
        yield server
    finally:
        displays.end_group(process)
        server.close_pipes()


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
