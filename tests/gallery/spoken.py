"""What a screen reader finds in the windows that are open: the lines it reads, and what it could not tell apart."""

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QObject
from PySide6.QtGui import QAccessible, QAccessibleInterface
from PySide6.QtWidgets import QApplication, QComboBox, QMainWindow, QWidget

Role, Text = QAccessible.Role, QAccessible.Text
CONVERSATION_LIST_SCREENS = ("list", "folders")
"""The screens that show the list of conversations."""
SAID_STATES = ("checked", "checkStateMixed", "selected", "expanded", "collapsed", "disabled")
_SILENT = {Role.Client, Role.Border, Role.Splitter, Role.LayeredPane, Role.Grouping, Role.ScrollBar}
_DAY = re.compile(
    r"\b((Mon|Tues|Wednes|Thurs|Fri|Satur|Sun|Yester|To)day|Mon|Tue|Wed|Thu|Fri|Sat|Sun|January|February|March|April|May|June"
    r"|July|August|September|October|November|December|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b"
)
_ROOT = Path(__file__).resolve().parents[2]
MOST_ROWS = 3
"""Of a list; the others are read in the same way."""
MOST_LETTERS = 160
_READ = {Role.StaticText, Role.ListItem, Role.TreeItem, Role.Cell, Role.Row, Role.MenuItem}
"""Their names are texts or values of their own."""
_ROWS = {Role.ListItem, Role.TreeItem, Role.Cell, Role.Row, Role.MenuItem}
MOST_CHILDREN = 60
"""Of one part of the tree; a list has more."""
MOST_IN_TABLE = 24
_COUNT = re.compile(r"(?<!^Open picture)(: |\()\d[\d.,]*\)?$")
"""Pictures without a name are told apart by their number."""


@dataclass(frozen=True)
class Node:
    """A part of the tree; `parents` are the names of what it is in, `above` the roles and objects."""

    role: Role
    name: str
    keys: str
    """That are shown in a row of a menu."""
    description: str
    value: str
    states: tuple[str, ...]
    is_focusable: bool
    is_offscreen: bool
    parents: tuple[str, ...]
    above: tuple[tuple[Role, QObject | None], ...]
    widget: QObject | None

    @property
    def depth(self) -> int:
        """Return how many levels it is below the window."""
        return len(self.above)

    @property
    def line(self) -> str:
        """Return the line that is read for it."""
        name = f"{self.name} [{self.keys}]" if self.keys else self.name
        return line_of(name, self.role.name, self.states, self.value, self.description)


def line_of(name: str, role: str, states: Iterable[str], value: str, description: str) -> str:
    """Return all of it in one line, without repetitions; numbers and dates change, and are masked."""
    words = [name, role, *states]
    words += [f"= {value}"] if value not in {"", name} else []
    words += [f"({description})"] if description not in {"", name, value} else []
    return _mask("  ".join(" ".join(word.split()) for word in words if word))[:MOST_LETTERS].rstrip()


def read_lines(*, with_conversations: bool = False) -> list[str]:
    """Return what is read of the window in front: dialogs and popups, or else the main window.

    The rows of its list of conversations are the same on most screens, and come when they come.
    """
    lines: list[str] = []
    for window in windows_in_front():
        rows = 0
        for node in nodes_of(window):
            rows = rows + 1 if node.role in _ROWS else 0
            if "Conversations" in node.parents and not with_conversations:
                continue
            if rows <= MOST_ROWS and (node.name or node.role not in _SILENT):
                lines.append("  " * node.depth + node.line)
    return lines


def _mask(words: str) -> str:
    """Leave out what differs from machine to machine and from run to run."""
    without_paths = words.replace(sys.executable, "PYTHON").replace(str(_ROOT), "PROGRAM")
    without_folders = re.sub(r"[^\s“(]*desktop-agent-gallery-\w+", "FOLDER", without_paths)
    # In December the next month has its year.
    without_days = re.sub(r"DAY 20\d\d,? (?=\d+:)", "DAY, ", _DAY.sub("DAY", without_folders))
    without_numbers = re.sub(r"\d[\d.,:]*", "#", without_days)
    without_units = re.sub(r"# ?([kKMGT]?B|bytes?|ms|s|min|h)\b", "# UNIT", without_numbers)
    # Two backups of one second have a number.
    without_units = without_units.replace("#-#-# #-#-# #", "#-#-# #-#-#")
    # How long a call runs is said after a while; a model has its title when the list of models came.
    return without_units.replace(", Running · # UNIT", ", Running").replace("Aurora Large", "aurora-large")


def open_windows() -> list[QWidget]:
    """Return the windows of the program, open menus and popups too: main windows first, the others by their names."""
    children = [(child.object(), child.text(QAccessible.Text.Name)) for child in _children_of_program()]
    windows = [(window, name) for window, name in children if isinstance(window, QWidget)]
    return [
        window for window, _ in sorted(windows, key=lambda entry: (not isinstance(entry[0], QMainWindow), entry[1]))
    ]


def numbers_of(windows: list[QWidget]) -> list[int]:
    """Return where Qt has these windows now, which is where the bus has them; any other window may change it."""
    open_windows = [child.object() for child in _children_of_program()]
    return [open_windows.index(window) for window in windows]


def _children_of_program() -> list[QAccessibleInterface]:
    """Return the windows in no order, as Qt has them."""
    program = QAccessible.queryAccessibleInterface(QApplication.instance())
    return [program.child(index) for index in range(program.childCount())]


def windows_in_front() -> list[QWidget]:
    """Return the dialogs and popups that are open, or else the main window."""
    windows = open_windows()
    return [window for window in windows if not isinstance(window, QMainWindow)] or windows


def nodes_of(part: QObject) -> list[Node]:
    """Return what is shown of a window or a part of it, depth first; windows over it are not in it."""
    return list(_walk(QAccessible.queryAccessibleInterface(part), (), ()))


def is_read(part: QObject, words: str) -> bool:
    """Return whether these words are in what is read of a window or a part of it."""
    return any(words in node.name for node in nodes_of(part))


def _walk(
    interface: QAccessibleInterface, parents: tuple[str, ...], above: tuple[tuple[Role, QObject | None], ...]
) -> Iterator[Node]:
    state, widget = interface.state(), interface.object()
    name = interface.text(Text.Name)
    yield Node(
        interface.role(),
        name,
        interface.text(Text.Accelerator) if interface.role() == Role.MenuItem else "",
        interface.text(Text.Description),
        interface.text(Text.Value),
        tuple(state_name for state_name in SAID_STATES if getattr(state, state_name)),
        bool(state.focusable),
        bool(state.offscreen),
        parents,
        above,
        widget,
    )
    if isinstance(widget, QComboBox) and not state.expanded:
        return
    inner_parents = (*parents, name) if name else parents
    inner_above = (*above, (interface.role(), widget))
    most = MOST_IN_TABLE if interface.role() == Role.Table else MOST_CHILDREN
    for index in range(min(interface.childCount(), most)):
        child = interface.child(index)
        if child is None or not child.isValid() or child.state().invisible:
            continue
        if isinstance(child.object(), QWidget) and (child.object().isWindow() or child.object().height() == 0):
            continue
        if child.role() == Role.Pane and child.rect().isEmpty():
            continue  # Qt lists the corner of a table that has none
        yield from _walk(child, inner_parents, inner_above)


def faults() -> list[str]:
    """Return a line for each thing in the open windows that cannot be told by its name."""
    return [fault for window in open_windows() for fault in _faults_of(window)]


def _faults_of(window: QWidget) -> Iterator[str]:
    keys_seen: set[tuple[Role, str, str, tuple[str, ...], QObject | None]] = set()
    for node in nodes_of(window):
        if not node.name and (node.role == Role.PopupMenu or node.depth == 0):
            yield f"no name: a window or a menu, {type(node.widget).__name__} {node.parents[-2:]}"
        if not node.is_focusable or node.role in _READ or "disabled" in node.states or node.depth == 0:
            continue
        description = f"{type(node.widget).__name__} {node.role.name} {node.name!r}"
        if not node.name:
            yield f"no name: {description} in {node.parents[-2:]}"
        if node.role in {Role.NoRole, Role.Client, Role.Border} and not _is_passed_on(node.widget):
            yield f"no role: {description}"
        if _COUNT.search(node.name) or _has_value(node):
            yield f"value in the name: {description} {node.value!r}"
        # Two messages with the same words are told apart by their place.
        row = next((part for role, part in reversed(node.above) if role == Role.ListItem), None)
        key = (node.role, node.name, node.description, node.parents, row)
        if node.name and key in keys_seen:
            yield f"twice: {description} in {node.parents[-2:]}"
        keys_seen.add(key)


def _has_value(node: Node) -> bool:
    """“Title of Ada” names a field of what is called Ada, and an address in a text is a link to itself."""
    is_repeated = len(node.value) > 1 and node.value in node.name and node.role not in {Role.Document, Role.Link}
    return is_repeated and not node.name.endswith(f" of {node.value}")


def _is_passed_on(widget: QObject | None) -> bool:
    return isinstance(widget, QWidget) and widget.focusProxy() is not None
