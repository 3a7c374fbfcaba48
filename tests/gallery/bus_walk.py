"""Reads screens over the accessibility bus, as Orca does: `python -m tests.gallery.bus_walk [NAME…] [--write FOLDER]`.

Without names, the main screens. They are shown on a private display with an accessibility bus of its own. It prints
where the bus says something else than Qt's own tree (tests/gallery/spoken.py), and what does not lead back to what it
is in, and writes the lines that are read to FOLDER/NAME.txt.
"""

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QWidget

from tests.frame import displays
from tests.gallery import spoken
from tests.gallery.__main__ import load_screens, shown
from tests.gallery.bus import BusNode, read_windows
from tests.gallery.screens import SCREENS
from tests.gallery.spoken import Node, Role
from tests.gallery.walk import SETTLE, be_the_same_everywhere, run_in_window, settled
from ui.style.theme import ThemeSource

MAIN = (
    "welcome-no-server",
    "conversation-finished",
    "tool-calls",
    "approval-changed-file",
    "search-results",
    "folders",
    "settings-providers",
    "palette",
    "usage",
    "inbox",
    "scheduled",
    "menu-bar",
)
"""The twelve that a person meets first."""
ROLES = {
    Role.Border: "panel",
    Role.Button: "push button",
    Role.ButtonMenu: "push button",
    Role.Cell: "cell",
    Role.CheckBox: "check box",
    Role.Client: "filler",
    Role.EditableText: "text",
    Role.Grouping: "panel",
    Role.PageTabList: "page tab list",
    Role.StaticText: "label",
    Role.Window: "frame",
}
"""What Qt's bridge makes of roles that AT-SPI calls otherwise; the others have their own name in small letters."""


def bus_role(role: QAccessible.Role) -> str:
    """Return the name that a role has on the bus."""
    words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in role.name)
    return ROLES.get(role, words.strip())


async def read(name: str, expected: Path | None) -> tuple[list[str], list[str]]:
    """Return the lines, and where the bus differs, once the lines are the expected ones and nothing does.

    After SETTLE seconds, as they are then.
    """
    windows, deadline = spoken.windows_in_front(), time.monotonic() + SETTLE
    recorded = None if expected is None else (expected / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    while True:
        nodes_before = [list(_on_screen(window)) for window in windows]
        numbers = spoken.numbers_of(windows)
        trees = await asyncio.to_thread(read_windows, numbers, spoken.MOST_CHILDREN, spoken.MOST_IN_TABLE)
        nodes_after = [list(_on_screen(window)) for window in windows]
        lines = list(bus_lines(trees, with_conversations=name.startswith(spoken.CONVERSATION_LIST_SCREENS)))
        differences = [
            fault for nodes, tree in zip(nodes_after, trees, strict=True) for fault in bus_faults(nodes, tree)
        ]
        is_same = nodes_before == nodes_after and not differences and recorded in (None, lines)
        if is_same or time.monotonic() > deadline:
            return lines, differences
        await asyncio.sleep(0.1)


def _on_screen(window: QWidget) -> Iterator[Node]:
    """Yield what is not scrolled away: Qt's bridge calls that invisible, like what is hidden."""
    hidden_depth = None
    for node in spoken.nodes_of(window):
        if hidden_depth is not None and node.depth > hidden_depth:
            continue
        hidden_depth = node.depth if node.is_offscreen else None
        if hidden_depth is None:
            yield node


def bus_line(node: BusNode) -> str:
    """Return name, role, states, value and description in one line, masked and without repetitions."""
    states = [state for state in ("focusable", *spoken.SAID_STATES) if state in node.states]
    states += [] if "enabled" in node.states else ["disabled"]
    return spoken.line_of(node.name, node.role, states, node.value, node.description)


def bus_lines(trees: list[list[BusNode]], *, with_conversations: bool) -> Iterator[str]:
    """Yield what is read of the windows, with some rows of each; the conversations on a screen that shows them."""
    for nodes in trees:
        rows, inside = 0, None
        for node in nodes:
            if inside is not None and node.depth > inside and not with_conversations:
                continue
            inside = node.depth if node.name == "Conversations" else None
            rows = rows + 1 if node.role in {"list item", "tree item", "cell", "row", "menu item"} else 0
            if rows <= spoken.MOST_ROWS and (node.name or node.role not in {"filler", "panel", "scroll bar"}):
                yield "  " * node.depth + bus_line(node)


def bus_faults(nodes: list[Node], bus_nodes: list[BusNode]) -> Iterator[str]:
    """Yield where the bus says something else than Qt's tree, and where a part is lost on the way back."""
    for node, bus_node in zip(nodes, bus_nodes, strict=False):
        expected = (node.depth, node.name, node.description, bus_role(node.role))
        actual = (bus_node.depth, bus_node.name, bus_node.description, bus_node.role)
        if actual != expected:
            yield f"the bus says {actual}, Qt {expected}"
        if actual[:2] != expected[:2]:
            return
        yield from _state_and_value_faults(node, bus_node)
        if not bus_node.is_found_again:
            yield f"does not lead back: {bus_node.role} {bus_node.name!r} in {node.parents[-2:]}"
    if len(nodes) != len(bus_nodes):
        yield f"the bus has {len(bus_nodes)} parts, Qt {len(nodes)}"


def _state_and_value_faults(node: Node, bus_node: BusNode) -> Iterator[str]:
    states = {*node.states, "visible", "enabled"}
    states -= {"disabled", "enabled"} if "disabled" in states else set()
    states |= {"focusable"} if node.is_focusable else set()
    if states != bus_node.states:
        yield f"the bus says {sorted(bus_node.states)} of {bus_node.role} {bus_node.name!r}, Qt {sorted(states)}"
    # AT-SPI has a value only where there is text or a number: others have it in their description.
    # A field for a number has its text there, with the unit.
    texts = (bus_node.name, bus_node.description)
    if node.value and not bus_node.value and not any(node.value in words for words in texts):
        yield f"the bus does not say {node.value!r} of {bus_node.role} {bus_node.name!r}"


async def walk(names: list[str], source: ThemeSource, folder: Path | None, expected: Path | None) -> int:
    """Print the faults of each screen; returns how many have some."""
    failed = 0
    for name in names:
        start = time.monotonic()
        async with shown(SCREENS[name], source):
            await settled(name, None)
            lines, faults = await read(name, expected)
        if folder is not None:
            (folder / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        failed += bool(faults)
        sys.stderr.writelines(f"{name}: {line}\n" for line in faults)
        sys.stdout.write(f"{name} {time.monotonic() - start:.1f} s\n")
        sys.stdout.flush()
    return failed


def main() -> int:
    """Start a display and its buses, and a process that shows the screens and reads them."""
    load_screens()
    parser = argparse.ArgumentParser(prog="python -m tests.gallery.bus_walk", description="Reads the screens like Orca")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--write", type=Path, metavar="FOLDER")
    parser.add_argument("--expect", type=Path, metavar="FOLDER", help="wait until a screen is read as recorded there")
    parser.add_argument("--all", action="store_true", help="every screen, not the main ones")
    parser.add_argument("--render", action="store_true", help="on the display and the buses of the environment")
    arguments = parser.parse_args()
    names = arguments.names or list(SCREENS if arguments.all else MAIN)
    if arguments.render:
        be_the_same_everywhere()
        return run_in_window(lambda source: walk(names, source, arguments.write, arguments.expect))
    command = [sys.executable, "-m", "tests.gallery.bus_walk", "--render", *sys.argv[1:]]
    with (
        tempfile.TemporaryDirectory(prefix="desktop-agent-bus-") as home,
        displays.readable_display(Path(home)) as environment,
    ):
        return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
