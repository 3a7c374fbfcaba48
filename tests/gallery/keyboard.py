"""What the keyboard does not reach in the open windows: by Tab, and by the arrows inside of a list or a menu."""

import asyncio
from collections.abc import Iterator

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QAbstractItemView, QLabel, QMenu, QMenuBar, QSplitterHandle, QWidget

from tests.gallery.spoken import Node, nodes_of, windows_in_front
from ui.shell.commands.command_palette import CommandPalette
from ui.transcript.accessibility.nodes import AccessibleNode
from ui.transcript.view import TranscriptView

Role = QAccessible.Role
_CONTROLS = {
    Role.Button,
    Role.ButtonMenu,
    Role.ButtonDropDown,
    Role.CheckBox,
    Role.RadioButton,
    Role.ComboBox,
    Role.EditableText,
    Role.SpinBox,
    Role.Slider,
    Role.Dial,
    Role.Link,
}
_LISTS = {Role.List, Role.Table, Role.Tree, Role.PageTabList, Role.PopupMenu, Role.MenuBar}
"""The arrows go through the items inside, but not through widgets laid over a row."""
_FIELDS = {Role.ComboBox, Role.SpinBox, Role.EditableText}
"""Keys do what the buttons inside do."""
_BY_OTHER_KEYS = {"Menu: Conversation", "Menu: Folder"}
"""Shown under the mouse; the Menu key does the same for the row that is current."""
MOST_STOPS = 400
MOST_IN_GROUP = 8
MOST_MESSAGES = 6
"""Of a transcript, from its end."""


async def activate() -> None:
    """Give the keyboard to the window in front: without it Qt ignores the arrows in a group of buttons."""
    window = windows_in_front()[-1]
    window.activateWindow()
    for _ in range(20):
        if window.isActiveWindow() or window.windowType() == Qt.WindowType.Popup:
            break
        await asyncio.sleep(0.02)


def keyboard_faults() -> list[str]:
    """Return a line for each control of the windows in front that no key reaches, and for each that keeps Tab."""
    windows = windows_in_front()
    faults = [fault for window in windows for fault in _faults_of(window)]
    later_windows = [
        window
        for window in windows_in_front()
        if window not in windows and window.windowType() != Qt.WindowType.ToolTip
    ]
    return [*faults, *(f"Tab leads to another window: {_label(window)}" for window in later_windows)]


def _faults_of(window: QWidget) -> Iterator[str]:
    if isinstance(window, QMenu):
        yield from _unreached_actions(window)
        return
    if isinstance(window, QAbstractItemView):
        yield from _unreached_rows(window)
        return
    order, trap = _tab_stops(window, Qt.Key.Key_Tab)
    if trap is None:
        yield from _faults_backwards(window, order)
    stops = {*order, *_by_arrows(window, order)}
    yield from _unreached_by_tab(window, stops, trap)
    for part in window.findChildren(QWidget):
        if part.isVisible() and part.window() is window and _takes_clicks_alone(part):
            yield f"takes the mouse alone: {type(part).__name__} {part.accessibleName()!r}"
    for view in window.findChildren(TranscriptView):
        if view in stops:
            yield from _unreached_in(view)


def _unreached_by_tab(window: QWidget, stops: set[QWidget], trap: QWidget | None) -> Iterator[str]:
    unreached = [node for node in _nodes_in_front(window) if not _is_reached(node, stops)]
    if unreached and trap is not None:
        yield f"keeps Tab: {_label(trap)}"
    elif unreached:
        # The way back ends higher up in a text, and there is now what leads to its end: it was hidden there.
        backward, _ = _tab_stops(window, Qt.Key.Key_Backtab)
        unreached = [node for node in unreached if not _is_reached(node, {*stops, *backward})]
    for node in unreached:
        yield f"no key reaches: {type(node.widget).__name__} {node.role.name} {node.name!r} in {node.parents[-2:]}"


def _nodes_in_front(window: QWidget) -> list[Node]:
    """Return the parts of the window, or only those of the command palette while it is open: it keeps the keyboard."""
    palettes = [palette for palette in window.findChildren(CommandPalette) if palette.isVisible()]
    return [node for node in nodes_of(window) if not palettes or any(widget is palettes[0] for _, widget in node.above)]


def _tab_stops(window: QWidget, key: Qt.Key) -> tuple[list[QWidget], QWidget | None]:
    """Press Tab or Backtab until it comes around. Return where it stopped, and the widget it could not leave."""
    stops: list[QWidget] = []
    repeats = 0
    for _ in range(MOST_STOPS):
        previous = window.focusWidget()
        QTest.keyClick(previous or window, key)
        focused = window.focusWidget()
        if focused is None or (len(stops) > 1 and focused is stops[0] and focused is not previous):
            break
        repeats = repeats + 1 if focused is previous else 0
        if repeats > MOST_STOPS // 4:
            return stops, focused
        if focused not in stops:
            stops.append(focused)
    return stops, None


def _faults_backwards(window: QWidget, order: list[QWidget]) -> Iterator[str]:
    """Press Shift+Tab until it comes around: it stops where Tab did, the other way round.

    What is hidden once the keyboard has gone on, as the filters of a search are, is left out.
    """
    backward, trap = _tab_stops(window, Qt.Key.Key_Backtab)
    if trap is not None:
        yield f"keeps Shift+Tab: {_label(trap)}"
    forward, backward = ([stop for stop in stops if stop.isVisible()] for stops in (reversed(order), backward))
    if trap is None and forward and forward != _rotated(backward, forward[0]):
        names = (", ".join(map(_label, stops)) for stops in (backward, forward))
        yield "Shift+Tab goes another way than Tab: {}; and not: {}".format(*names)


def _label(part: QWidget) -> str:
    return f"{type(part).__name__} {nodes_of(part)[0].name!r}"


def _rotated(stops: list[QWidget], first: QWidget) -> list[QWidget]:
    """Return the stops, rotated to begin at `first`."""
    start = stops.index(first) if first in stops else 0
    return stops[start:] + stops[:start]


def _by_arrows(window: QWidget, stops: list[QWidget]) -> Iterator[QWidget]:
    """Yield the buttons of the same groups: Tab stops at one of them, the arrows go to the others."""
    for stop in stops:
        if not isinstance(stop, QAbstractButton) or (stop.group() is None and not stop.autoExclusive()):
            continue
        stop.setFocus()
        for key in (Qt.Key.Key_Down, Qt.Key.Key_Right, Qt.Key.Key_Up, Qt.Key.Key_Left):
            for _ in range(MOST_IN_GROUP):
                QTest.keyClick(window.focusWidget(), key)
                yield window.focusWidget()


def _is_reached(node: Node, stops: set[QObject]) -> bool:
    """Whether Tab stops at it or at the widget that passes keys on to it, or it is no control."""
    is_off = "disabled" in node.states or any(
        isinstance(widget, QWidget) and not widget.isEnabled() for _, widget in node.above
    )
    if is_off or node.depth == 0 or node.widget in stops or node.name in _BY_OTHER_KEYS:
        return True
    # A text that takes the focus by the mouse, to select from it, is read without the focus.
    if node.role == Role.StaticText or (node.role not in _CONTROLS and not node.is_focusable):
        return True
    widget = node.widget
    inside = _FIELDS if isinstance(widget, QWidget) else _FIELDS | _LISTS
    if any(role in inside and (role == Role.MenuBar or above in stops) for role, above in node.above):
        return True
    if not isinstance(widget, QWidget):
        return False
    proxy = widget.focusProxy()
    return isinstance(widget, QMenuBar) or (proxy is not None and proxy in stops)


def _takes_clicks_alone(part: QWidget) -> bool:
    """Whether it is a handle to drag, or a text with links, that keys never get to."""
    keys = Qt.TextInteractionFlag.LinksAccessibleByKeyboard
    if isinstance(part, QLabel):
        return "<a href" in part.text() and not part.textInteractionFlags() & keys
    return isinstance(part, QSplitterHandle) and part.focusPolicy() == Qt.FocusPolicy.NoFocus


def _unreached_actions(menu: QMenu) -> Iterator[str]:
    """Press Down until it comes around."""
    actions = [
        action for action in menu.actions() if action.isVisible() and action.isEnabled() and not action.isSeparator()
    ]
    reached = []
    for _ in range(2 * len(actions) + 2):
        QTest.keyClick(menu, Qt.Key.Key_Down)
        reached.append(menu.activeAction())
    for action in actions:
        if action not in reached:
            yield f"no key reaches: QAction {action.text()!r} in {menu.accessibleName()!r}"


def _unreached_rows(view: QAbstractItemView) -> Iterator[str]:
    """Press Down in a list that is a popup of its own until it comes around."""
    unreached = set(range(view.model().rowCount()))
    for _ in range(view.model().rowCount() + 1):
        QTest.keyClick(view, Qt.Key.Key_Down)
        unreached.discard(view.currentIndex().row())
    for row in sorted(unreached):
        yield f"no key reaches: row {view.model().index(row, 0).data()!r} in {view.accessibleName()!r}"


def _unreached_in(view: TranscriptView) -> Iterator[str]:
    """Go through the messages from the last, and by Tab through the controls of each."""
    view.setFocus()
    rows = [node for node in nodes_of(view) if node.depth == 1 and node.role == Role.ListItem]
    for row in rows[-MOST_MESSAGES:]:
        interface = QAccessible.queryAccessibleInterface(row.widget)
        interface.actionInterface().doAction("SetFocus")
        controls = [
            node
            for node in nodes_of(row.widget)
            if node.role in {Role.Button, Role.Link} and "disabled" not in node.states
        ]
        unreached = list(controls)
        forward, backward = [view.row_viewport.focused], []
        for _ in range(MOST_STOPS):
            QTest.keyClick(view, Qt.Key.Key_Tab)
            unreached = [
                node
                for node in unreached
                if not (isinstance(node.widget, AccessibleNode) and node.widget.has_keyboard_focus())
            ]
            if view.window().focusWidget() is not view:
                break
            forward.append(view.row_viewport.focused)
        for _ in forward:
            QTest.keyClick(view.window().focusWidget(), Qt.Key.Key_Backtab)
            backward.append(view.row_viewport.focused)
        # A caret is not taken from its place.
        if forward != backward[::-1] and not view.caret.is_on:
            yield f"Shift+Tab goes another way than Tab: {backward}, not {forward[::-1]} in {row.name!r}"
        view.setFocus()
        for node in unreached:
            yield f"no key reaches: {node.role.name} {node.name!r} in {row.name!r}"
