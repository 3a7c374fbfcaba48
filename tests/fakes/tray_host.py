"""A system tray that speaks StatusNotifierItem, in a process of its own on the session bus.

`python -m tests.fakes.tray_host` takes orders as lines of JSON and answers each with a line of JSON.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jeepney import (
    DBusAddress,
    HeaderFields,
    MatchRule,
    MessageType,
    message_bus,
    new_error,
    new_method_call,
    new_method_return,
)
from jeepney.io.asyncio import DBusRouter, Proxy, open_dbus_connection

WATCHER = "org.kde.StatusNotifierWatcher"
ITEM, ITEM_PATH = "org.kde.StatusNotifierItem", "/StatusNotifierItem"
MENU = "com.canonical.dbusmenu"
PROPERTIES = "org.freedesktop.DBus.Properties"
# Qt introspects the watcher before it reads its properties.
DESCRIPTION = f"""<!DOCTYPE node PUBLIC "-//freedesktop//DTD D-BUS Object Introspection 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/introspect.dtd">
<node><interface name="{WATCHER}">
<method name="RegisterStatusNotifierItem"><arg name="service" type="s" direction="in"/></method>
<property name="IsStatusNotifierHostRegistered" type="b" access="read"/>
<property name="ProtocolVersion" type="i" access="read"/>
</interface></node>"""


class _Host:
    def __init__(self, router: DBusRouter) -> None:
        self.router = router
        self.items: list[str] = []

    async def serve(self) -> None:
        queue: asyncio.Queue[Any] = asyncio.Queue()
        with self.router.filter(MatchRule(type="method_call"), queue=queue):
            await Proxy(message_bus, self.router).RequestName(WATCHER)
            sys.stdout.write('"ready"\n')
            sys.stdout.flush()
            while True:
                await self.router.send(self._answer(await queue.get()))

    def _answer(self, message: Any) -> Any:
        match message.header.fields.get(HeaderFields.member), message.body:
            case "Introspect", _:
                return new_method_return(message, "s", (DESCRIPTION,))
            case "Get", (_, "IsStatusNotifierHostRegistered"):
                return new_method_return(message, "v", (("b", True),))
            case "Get", (_, "ProtocolVersion"):
                return new_method_return(message, "v", (("i", 0),))
            case "RegisterStatusNotifierItem", (service,):
                self.items.append(service)
                return new_method_return(message)
            case method, _:
                return new_error(message, "org.freedesktop.DBus.Error.Failed", "s", (f"no {method}",))

    async def obey(self, order: list[Any]) -> Any:
        match order:
            case ["items"]:
                bus = Proxy(message_bus, self.router)
                return len([name for name in self.items if (await bus.NameHasOwner(name))[0]])
            case ["activate"]:
                await self._call(ITEM_PATH, ITEM, "Activate", "ii", (0, 0))
            case ["tooltip"]:
                (_, (_, _, title, text)) = (await self._call(ITEM_PATH, PROPERTIES, "Get", "ss", (ITEM, "ToolTip")))[0]
                return title or text
            case ["menu"]:
                return [label for _, label in await self._menu()]
            case ["choose", chosen]:
                number = next(number for number, label in await self._menu() if label == chosen)
                words = (number, "clicked", ("s", ""), 0)
                await self._call(await self._menu_path(), MENU, "Event", "isvu", words)
        return None

    async def _menu_path(self) -> str:
        ((_, path),) = await self._call(ITEM_PATH, PROPERTIES, "Get", "ss", (ITEM, "Menu"))
        return path

    async def _menu(self) -> list[tuple[int, str]]:
        path = await self._menu_path()
        _, (_, _, rows) = await self._call(path, MENU, "GetLayout", "iias", (0, -1, []))
        entries = [(number, properties["label"][1]) for _, (number, properties, _) in rows if "label" in properties]
        return [(number, label.replace("_", "")) for number, label in entries]

    async def _call(self, path: str, interface: str, method: str, signature: str, body: tuple[Any, ...]) -> Any:
        address = DBusAddress(path, bus_name=self.items[-1], interface=interface)
        reply = await self.router.send_and_get_reply(new_method_call(address, method, signature, body))
        if reply.header.message_type is MessageType.error:
            raise ValueError(reply.body)
        return reply.body


async def _main() -> None:
    async with DBusRouter(await open_dbus_connection("SESSION")) as router:
        host = _Host(router)
        serving = asyncio.create_task(host.serve())
        orders = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
        while line := await orders.readline():
            sys.stdout.write(json.dumps(await host.obey(json.loads(line))) + "\n")
            sys.stdout.flush()
        serving.cancel()


class TrayHost:
    """The process of the tray, for a test."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        assert self._read() == "ready"

    @property
    def icons(self) -> int:
        """How many programs have an icon in the tray."""
        return self._order("items")

    @property
    def tooltip(self) -> str:
        return self._order("tooltip")

    @property
    def menu(self) -> list[str]:
        return self._order("menu")

    def click(self) -> None:
        """Click on the icon."""
        self._order("activate")

    def choose(self, label: str) -> None:
        """Choose an action in the menu of the icon."""
        self._order("choose", label)

    def _order(self, *order: Any) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return self._read()

    def _read(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())


@contextmanager
def tray_host(environment: Mapping[str, str]) -> Iterator[TrayHost]:
    """Run the tray on the session bus of this environment."""
    # Imported here, as the tray's own process starts in half the time without pytest.
    from tests.frame import displays

    process = subprocess.Popen(
        [sys.executable, "-m", "tests.fakes.tray_host"],
        env=dict(environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        start_new_session=True,
    )
    try:
        yield TrayHost(process)
    finally:
        displays.end_group(process)
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()


if __name__ == "__main__":
    asyncio.run(_main())
