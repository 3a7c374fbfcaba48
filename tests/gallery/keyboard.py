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
"""The arrows go through what is inside, but for widgets that lie on a row."""
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
    found = [fault for window in windows for fault in _faults_of(window)]
    others = [each for each in windows_in_front() if each not in windows and each.windowType() != Qt.WindowType.ToolTip]
    return [*found, *(f"Tab leads to another window: {_told(other)}" for other in others)]


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
        yield f"keeps Tab: {_told(trap)}"
    elif unreached:
        # The way back ends higher up in a text, and there is now what leads to its end: it was hidden there.
        again, _ = _tab_stops(window, Qt.Key.Key_Backtab)
        unreached = [node for node in unreached if not _is_reached(node, {*stops, *again})]
    for node in unreached:
        yield f"no key reaches: {type(node.widget).__name__} {node.role.name} {node.name!r} in {node.parents[-2:]}"


def _nodes_in_front(window: QWidget) -> list[Node]:
    """The commands lie over the window, and keep the keyboard until they are closed."""
    over = [each for each in window.findChildren(CommandPalette) if each.isVisible()]
    return [node for node in nodes_of(window) if not over or any(each is over[0] for _, each in node.above)]


def _tab_stops(window: QWidget, key: Qt.Key) -> tuple[list[QWidget], QWidget | None]:
    """Press Tab or Backtab until it comes around. Returns where it stopped, and what it could not leave."""
    stops: list[QWidget] = []
    stays = 0
    for _ in range(MOST_STOPS):
        before = window.focusWidget()
        QTest.keyClick(before or window, key)
        at = window.focusWidget()
        if at is None or (len(stops) > 1 and at is stops[0] and at is not before):
            break
        stays = stays + 1 if at is before else 0
        if stays > MOST_STOPS // 4:
            return stops, at
        if at not in stops:
            stops.append(at)
    return stops, None


def _faults_backwards(window: QWidget, order: list[QWidget]) -> Iterator[str]:
    """Press Shift+Tab until it comes around: it stops where Tab did, the other way round.

    What is hidden once the keyboard has gone on, as the filters of a search are, is left out.
    """
    back, trap = _tab_stops(window, Qt.Key.Key_Backtab)
    if trap is not None:
        yield f"keeps Shift+Tab: {_told(trap)}"
    forth, back = ([stop for stop in stops if stop.isVisible()] for stops in (reversed(order), back))
    if trap is None and forth and forth != _turned(back, forth[0]):
        names = (", ".join(map(_told, stops)) for stops in (back, forth))
        yield "Shift+Tab goes another way than Tab: {}; and not: {}".format(*names)


def _told(part: QWidget) -> str:
    return f"{type(part).__name__} {nodes_of(part)[0].name!r}"


def _turned(stops: list[QWidget], first: QWidget) -> list[QWidget]:
    """Return the round with another beginning."""
    begin = stops.index(first) if first in stops else 0
    return stops[begin:] + stops[:begin]


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
    """Whether Tab stops at it, or at what passes its keys on to it, or it is no control."""
    is_off = "disabled" in node.states or any(
        isinstance(each, QWidget) and not each.isEnabled() for _, each in node.above
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
    wanted = [
        action for action in menu.actions() if action.isVisible() and action.isEnabled() and not action.isSeparator()
    ]
    seen = []
    for _ in range(2 * len(wanted) + 2):
        QTest.keyClick(menu, Qt.Key.Key_Down)
        seen.append(menu.activeAction())
    for action in wanted:
        if action not in seen:
            yield f"no key reaches: QAction {action.text()!r} in {menu.accessibleName()!r}"


def _unreached_rows(view: QAbstractItemView) -> Iterator[str]:
    """Press Down in a list that is a popup of its own until it comes around."""
    left = set(range(view.model().rowCount()))
    for _ in range(view.model().rowCount() + 1):
        QTest.keyClick(view, Qt.Key.Key_Down)
        left.discard(view.currentIndex().row())
    for row in sorted(left):
        yield f"no key reaches: row {view.model().index(row, 0).data()!r} in {view.accessibleName()!r}"


def _unreached_in(view: TranscriptView) -> Iterator[str]:
    """Go through the messages from the last, and by Tab through the controls of each."""
    view.setFocus()
    rows = [node for node in nodes_of(view) if node.depth == 1 and node.role == Role.ListItem]
    for row in rows[-MOST_MESSAGES:]:
        interface = QAccessible.queryAccessibleInterface(row.widget)
        interface.actionInterface().doAction("SetFocus")
        inside = [
            node
            for node in nodes_of(row.widget)
            if node.role in {Role.Button, Role.Link} and "disabled" not in node.states
        ]
        left = list(inside)
        forth, back = [view.row_viewport.focused], []
        for _ in range(MOST_STOPS):
            QTest.keyClick(view, Qt.Key.Key_Tab)
            left = [
                node
                for node in left
                if not (isinstance(node.widget, AccessibleNode) and node.widget.has_keyboard_focus())
            ]
            if view.window().focusWidget() is not view:
                break
            forth.append(view.row_viewport.focused)
        for _ in forth:
            QTest.keyClick(view.window().focusWidget(), Qt.Key.Key_Backtab)
            back.append(view.row_viewport.focused)
        # A caret is not taken from its place.
        if forth != back[::-1] and not view.caret.is_on:
            yield f"Shift+Tab goes another way than Tab: {back}, not {forth[::-1]} in {row.name!r}"
        view.setFocus()
        for node in left:
            yield f"no key reaches: {node.role.name} {node.name!r} in {row.name!r}"
