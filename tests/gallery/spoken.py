"""What a screen reader finds in the windows that are open: the lines it reads, and what it could not tell."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from PySide6.QtCore import QObject
from PySide6.QtGui import QAccessible, QAccessibleInterface
from PySide6.QtWidgets import QApplication, QComboBox, QMainWindow, QWidget

Role, Text = QAccessible.Role, QAccessible.Text
_SAID_STATES = ("checked", "checkStateMixed", "selected", "expanded", "collapsed", "disabled")
_SILENT = {Role.Client, Role.Border, Role.Splitter, Role.LayeredPane, Role.Grouping, Role.ScrollBar}
_DAY = re.compile(
    r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\b|\bToday\b|\bYesterday\b"
)
MOST_ROWS = 3
"""Of a list; the others are read in the same way."""
MOST_LETTERS = 160
_ROWS = {Role.ListItem, Role.TreeItem, Role.Cell, Role.Row, Role.MenuItem}
MOST_CHILDREN = 200
"""Of one part of the tree; a list has more."""
_COUNT = re.compile(r"(: |\()\d[\d.,]*\)?$")


@dataclass(frozen=True)
class Node:
    """A part of the tree; `parents` are the names of what it is in."""

    role: Role
    name: str
    description: str
    value: str
    states: tuple[str, ...]
    is_focusable: bool
    parents: tuple[str, ...]
    depth: int
    widget: QObject | None

    @property
    def line(self) -> str:
        """Name, role, state, value and description, each said once; numbers and dates change, and are left out."""
        words = [self.name, self.role.name, *self.states]
        words += [f"= {self.value}"] if self.value not in {"", self.name} else []
        words += [f"({self.description})"] if self.description not in {"", self.name, self.value} else []
        return _mask("  ".join(" ".join(word.split()) for word in words if word))[:MOST_LETTERS].rstrip()


def read_lines() -> list[str]:
    """Return what is read of the window in front: dialogs and popups, or else the main window."""
    windows = open_windows()
    in_front = [window for window in windows if not isinstance(window, QMainWindow)]
    lines: list[str] = []
    for window in in_front or windows:
        rows = 0
        for node in nodes_of(window):
            rows = rows + 1 if node.role in _ROWS else 0
            if rows <= MOST_ROWS and (node.name or node.role not in _SILENT):
                lines.append("  " * node.depth + node.line)
    return lines


def _mask(words: str) -> str:
    return re.sub(r"\d[\d.,:]*", "#", _DAY.sub("DAY", words))


def open_windows() -> list[QWidget]:
    """Return the windows of the program, open menus and popups too, as they were made."""
    root = QAccessible.queryAccessibleInterface(QApplication.instance())
    windows = [root.child(index).object() for index in range(root.childCount())]
    return [window for window in windows if isinstance(window, QWidget)]


def nodes_of(window: QWidget) -> list[Node]:
    """Return what is shown of a window, depth first; windows over it are not in it."""
    return list(_walk(QAccessible.queryAccessibleInterface(window), (), 0))


def _walk(interface: QAccessibleInterface, parents: tuple[str, ...], depth: int) -> Iterator[Node]:
    state, widget = interface.state(), interface.object()
    name = interface.text(Text.Name)
    yield Node(
        interface.role(),
        name,
        interface.text(Text.Description),
        interface.text(Text.Value),
        tuple(each for each in _SAID_STATES if getattr(state, each)),
        bool(state.focusable),
        parents,
        depth,
        widget,
    )
    if isinstance(widget, QComboBox):
        return
    inside = (*parents, name) if name else parents
    for index in range(min(interface.childCount(), MOST_CHILDREN)):
        child = interface.child(index)
        if child is None or not child.isValid() or child.state().invisible:
            continue
        if isinstance(child.object(), QWidget) and child.object().isWindow():
            continue
        yield from _walk(child, inside, depth + 1)


def faults() -> list[str]:
    """Return a line for each thing in the open windows that cannot be told by its name."""
    return [fault for window in open_windows() for fault in _faults_of(window)]


def _faults_of(window: QWidget) -> Iterator[str]:
    seen: set[tuple[Role, str, str, tuple[str, ...]]] = set()
    for node in nodes_of(window):
        if not node.is_focusable or node.role in _ROWS or "disabled" in node.states or node.depth == 0:
            continue
        what = f"{type(node.widget).__name__} {node.role.name} {node.name!r}"
        if not node.name:
            yield f"no name: {what} in {node.parents[-2:]}"
        if node.role in {Role.NoRole, Role.Client, Role.Border} and not _is_passed_on(node.widget):
            yield f"no role: {what}"
        if _COUNT.search(node.name) or (len(node.value) > 1 and node.value in node.name and node.role != Role.Document):
            yield f"value in the name: {what} {node.value!r}"
        key = (node.role, node.name, node.description, node.parents)
        if node.name and key in seen:
            yield f"twice: {what} in {node.parents[-2:]}"
        seen.add(key)


def _is_passed_on(widget: QObject | None) -> bool:
    return isinstance(widget, QWidget) and widget.focusProxy() is not None
