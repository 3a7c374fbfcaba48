"""A notification server, a screen saver and a logind that speak the real protocol, in a process of their own.

`python -m tests.fakes.notification_server CAPABILITIES LOCK LOGIND` answers on the session bus of its environment. It
takes orders as lines of JSON on its standard input, and writes the calls that it gets as lines of JSON.
"""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jeepney import DBusAddress, HeaderFields, MessageType, message_bus, new_error, new_method_return, new_signal
from jeepney.io.asyncio import DBusConnection, DBusRouter, Proxy, open_dbus_connection

NAME, PATH = "org.freedesktop.Notifications", "/org/freedesktop/Notifications"
SAVER, LOGIND = "org.freedesktop.ScreenSaver", "org.freedesktop.login1"


class _Server:
    """The notifications that are shown, and whether the screen is locked."""

    def __init__(self, connection: DBusConnection, capabilities: list[str], lock: str, logind: str) -> None:
        self.connection = connection
        self.capabilities = capabilities
        self.is_locked = lock == "locked"
        self.hint = logind == "locked"
        self.last = 0
        self.shown: set[int] = set()
        self.is_holding = False
        self.held: list[Any] = []

    async def take_names(self, *names: str) -> None:
        async with DBusRouter(self.connection) as router:
            for name in names:
                await Proxy(message_bus, router).RequestName(name)

    async def serve(self) -> None:
        _write("ready", True)
        while True:
            message = await self.connection.receive()
            if message.header.message_type is MessageType.method_call:
                await self._answer(message)

    async def _answer(self, message: Any) -> None:
        method, body = message.header.fields.get(HeaderFields.member), message.body
        lines: list[tuple[str, Any]] = []
        match method:
            case "GetCapabilities":
                reply = new_method_return(message, "as", (self.capabilities,))
            case "Notify":
                number = body[1] or self.last + 1
                self.last = max(self.last, number)
                self.shown.add(number)
                lines.append(("shown", [number, body[3], body[4], body[5]]))
                lines.append(("expiry", body[7]))
                reply = new_method_return(message, "u", (number,))
            case "CloseNotification" if body[0] in self.shown:
                await self.close(body[0], 3)
                reply = new_method_return(message)
            case "Get" if body == (f"{LOGIND}.Session", "LockedHint"):
                reply = new_method_return(message, "v", (("b", self.hint),))
            case "GetActive":
                lines.append(("asked", self.is_locked))
                reply = new_method_return(message, "b", (self.is_locked,))
            case _:
                reply = new_error(message, "org.freedesktop.DBus.Error.Failed", "s", (f"no {method}",))
        if self.is_holding and method == "Notify":
            self.held.append(reply)
        else:
            # Before the lines: the test that reads them may end this process at once.
            await self.connection.send(reply)
        for what, value in lines:
            _write(what, value)

    async def close(self, number: int, reason: int) -> None:
        self.shown.discard(number)
        _write("closed", number)
        await self.connection.send(_signal("NotificationClosed", "uu", (number, reason)))

    async def obey(self, order: list[Any]) -> None:
        match order:
            case ["click", number, action]:
                await self.connection.send(_signal("ActionInvoked", "us", (number, action)))
            case ["close", number]:
                await self.close(number, 2)
            case ["forge", number, action]:
                other = await open_dbus_connection("SESSION")
                await other.send(_signal("ActionInvoked", "us", (number, action)))
                await other.close()
            case ["hold"]:
                self.is_holding = True
            case ["release"]:
                self.is_holding = False
                for reply in self.held:
                    await self.connection.send(reply)
            case ["lock", is_locked]:
                self.is_locked = is_locked
            case _:
                raise ValueError(order)
        _write("obeyed", order)


def _signal(name: str, signature: str, body: tuple[Any, ...]) -> Any:
    return new_signal(DBusAddress(PATH, interface=NAME), name, signature, body)


def _write(what: str, value: Any) -> None:
    sys.stdout.write(json.dumps([what, value]) + "\n")
    sys.stdout.flush()


async def _main(capabilities: str, lock: str, logind: str) -> None:
    server = _Server(await open_dbus_connection("SESSION"), capabilities.split(), lock, logind)
    await server.take_names(NAME, *((SAVER,) if lock else ()), *((LOGIND,) if logind else ()))
    orders = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    serving = asyncio.create_task(server.serve())
    while line := await orders.readline():
        await server.obey(json.loads(line))
    serving.cancel()


class NotificationServer:
    """The process of the server, for a test. `told` are all lines that it wrote."""

    def __init__(self, process: "subprocess.Popen[str]", environment: dict[str, str]) -> None:
        self.process = process
        self.environment = environment
        self.told: list[list[Any]] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    @property
    def shown(self) -> list[tuple[int, str, str, list[str]]]:
        """Number, title, text and actions of each notification so far; an action is its name, then its label."""
        return [tuple(value) for what, value in tuple(self.told) if what == "shown"]

    @property
    def closed(self) -> list[int]:
        return [value for what, value in tuple(self.told) if what == "closed"]

    @property
    def expiries(self) -> list[int]:
        """The milliseconds that each is to be shown; 0 until it is closed, -1 as long as the server likes."""
        return [value for what, value in tuple(self.told) if what == "expiry"]

    @property
    def calls(self) -> list[tuple[int, str, str, list[str]]]:
        """Those of `shown` in which the person can decide about a call."""
        return [shown for shown in self.shown if "deny" in shown[3]]

    @property
    def offered(self) -> list[str]:
        """The labels of the buttons on the last of `calls`, without the first."""
        return self.calls[-1][3][3::2]

    def click(self, number: int, action: str) -> None:
        self._order("click", number, action)

    def close(self, number: int) -> None:
        """Close a notification as the person does, without choosing an action."""
        self._order("close", number)

    def forge(self, number: int, action: str) -> None:
        """Report a click from another connection, as a program that forges the signal would."""
        self._order("forge", number, action)

    def hold(self) -> None:
        """Show later notifications, but do not answer the calls."""
        self._order("hold")

    def release(self) -> None:
        """Send the answers that were held back, and answer at once again."""
        self._order("release")

    def lock(self, *, is_locked: bool) -> None:
        self._order("lock", is_locked)

    def close_pipes(self) -> None:
        """Close the pipes to the process when it has ended."""
        self._reader.join()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()

    def _order(self, *order: Any) -> None:
        from tests.fakes.window_process import wait_until

        assert self.process.stdin is not None
        before = sum(what == "obeyed" for what, _ in tuple(self.told))
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        wait_until(f"{order} is obeyed", lambda: sum(what == "obeyed" for what, _ in tuple(self.told)) > before)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.told.append(json.loads(line))


@contextmanager
def notification_server(
    environment: Mapping[str, str], *capabilities: str, lock: str | None = "unlocked", logind: str | None = None
) -> Iterator[NotificationServer]:
    """Run the server on the session bus of this environment.

    `lock` and `logind` are "locked" or "unlocked": the answers of the screen saver and of logind, both on this bus.
    None: there is no such service.
    """
    # Imported here, as the server's own process starts in half the time without pytest.
    from tests.fakes.window_process import wait_until
    from tests.frame import displays

    words = [sys.executable, "-m", "tests.fakes.notification_server", " ".join(capabilities), lock or "", logind or ""]
    process = subprocess.Popen(
        words,
        env=dict(environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        start_new_session=True,
    )
    server = NotificationServer(process, dict(environment))
    try:
        wait_until("the notification server answers", lambda: ["ready", True] in server.told)
        yield server
    finally:
        displays.end_group(process)
        server.close_pipes()


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
