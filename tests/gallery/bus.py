"""The accessibility bus, read as Orca reads it: the windows of this process, asked for over D-Bus by AT-SPI's protocol.

https://docs.gtk.org/atspi2/ names the interfaces, and the folder xml of at-spi2-core has their signatures.
"""

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from jeepney import DBusAddress, Properties, new_method_call
from jeepney.io.blocking import DBusConnection, open_dbus_connection
from jeepney.wrappers import unwrap_msg

Reference = tuple[str, str]
"""A part of the tree: the name of its program on the bus, and its path there."""
ACCESSIBLE, COMPONENT, TEXT, VALUE = (f"org.a11y.atspi.{name}" for name in ("Accessible", "Component", "Text", "Value"))
ROOT = "/org/a11y/atspi/accessible/root"
PATIENCE = 30.0
"""Seconds for one answer of the program."""
STATES = {
    4: "checked",
    5: "collapsed",
    8: "enabled",
    10: "expanded",
    11: "focusable",
    23: "selected",
    30: "visible",
    32: "checkStateMixed",
}
"""The bits of AtspiStateType that are looked at, by Qt's names."""


@dataclass(frozen=True)
class BusNode:
    """A part of the tree; `value` is its text, or its number where it has no text."""

    role: str
    name: str
    description: str
    value: str
    states: frozenset[str]
    depth: int
    is_found_again: bool
    """Its parent is what it was found in, and has it at the place where it was found."""


class _Bus:
    """One connection to the accessibility bus, for one reading of this process."""

    def __init__(self, connection: DBusConnection, max_children: int, most_in_table: int) -> None:
        self._connection = connection
        self._max_children, self._most_in_table = max_children, most_in_table

    def windows(self) -> list[Reference]:
        """Return the windows of this process, in the order in which they are read."""
        for program in self._children(("org.a11y.atspi.Registry", ROOT)):
            if self._process_of(program) == os.getpid():
                return self._children(program)
        raise LookupError("this process is not on the accessibility bus")

    def nodes(self, part: Reference, depth: int = 0, place: tuple[Reference, int] | None = None) -> Iterator[BusNode]:
        """Yield what is visible and has a height, depth first. `place` is the parent, and the index there."""
        states = self._states(part)
        if depth and ("visible" not in states or self._ask(part, COMPONENT, "GetSize")[1] == 0):
            return
        role = self._ask(part, ACCESSIBLE, "GetRoleName")[0]
        name, description = (self._property(part, ACCESSIBLE, key) for key in ("Name", "Description"))
        is_found_again = place is None or place == self._place_of(part)
        yield BusNode(role, name, description, self._value(part), states, depth, is_found_again)
        if role == "combo box" and "expanded" not in states:
            return
        children = self._children(part)[: self._most_in_table if role == "table" else self._max_children]
        for index, child in enumerate(children):
            yield from self.nodes(child, depth + 1, (part, index))

    def _states(self, part: Reference) -> frozenset[str]:
        low, high = self._ask(part, ACCESSIBLE, "GetState")[0]
        bits = low | high << 32
        return frozenset(name for bit, name in STATES.items() if bits >> bit & 1)

    def _value(self, part: Reference) -> str:
        interfaces = self._ask(part, ACCESSIBLE, "GetInterfaces")[0]
        if TEXT in interfaces:
            return self._ask(part, TEXT, "GetText", "ii", (0, -1))[0]
        return f"{self._property(part, VALUE, 'CurrentValue'):g}" if VALUE in interfaces else ""

    def _place_of(self, part: Reference) -> tuple[Reference, int]:
        return self._property(part, ACCESSIBLE, "Parent"), self._ask(part, ACCESSIBLE, "GetIndexInParent")[0]

    def _children(self, part: Reference) -> list[Reference]:
        return self._ask(part, ACCESSIBLE, "GetChildren")[0]

    def _process_of(self, program: Reference) -> int:
        name = "org.freedesktop.DBus"
        return self._ask((name, "/org/freedesktop/DBus"), name, "GetConnectionUnixProcessID", "s", (program[0],))[0]

    def _property(self, part: Reference, interface: str, name: str) -> Any:
        return self._send(Properties(DBusAddress(part[1], part[0], interface)).get(name))[0][1]

    def _ask(
        self, part: Reference, interface: str, method: str, signature: str | None = None, body: tuple[Any, ...] = ()
    ) -> tuple[Any, ...]:
        return self._send(new_method_call(DBusAddress(part[1], part[0], interface), method, signature, body))

    def _send(self, message: Any) -> tuple[Any, ...]:
        return unwrap_msg(self._connection.send_and_get_reply(message, timeout=PATIENCE))


def read_windows(numbers: list[int], max_children: int, most_in_table: int) -> list[list[BusNode]]:
    """Return what is visible of the windows with these numbers, and no more than `max_children` children of each part.

    Blocks until the program has answered, which it does in another thread.
    """
    with closing(open_dbus_connection("SESSION")) as session:
        question = new_method_call(DBusAddress("/org/a11y/bus", "org.a11y.Bus", "org.a11y.Bus"), "GetAddress")
        address = unwrap_msg(session.send_and_get_reply(question, timeout=PATIENCE))[0]
    with closing(open_dbus_connection(address)) as connection:
        bus = _Bus(connection, max_children, most_in_table)
        windows = bus.windows()
        return [list(bus.nodes(windows[number])) for number in numbers]
