"""The accessible tree of the transcript, its events for screen readers, and announcements of what is new."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cache
from weakref import ref

from PySide6.QtCore import QObject, QPoint, QRect
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QAccessibleEvent,
    QAccessibleInterface,
    QAccessibleTextCursorEvent,
    QAccessibleTextSelectionEvent,
)
from PySide6.QtWidgets import QAccessibleWidget, QWidget

from desktop_agent.conversation.items import (
    Added,
    AnswerItem,
    CallState,
    Change,
    Item,
    NoticeItem,
    PictureItem,
    Removed,
    ServerStepItem,
    ThinkingItem,
    ToolCallItem,
    UnknownItem,
    Updated,
)
from desktop_agent.conversation.transcript import Transcript
from ui.style.text import labelled
from ui.transcript.accessibility.block_nodes import BlockNode
from ui.transcript.accessibility.nodes import AccessibleNode, AccessibleNodeInterface, child_at
from ui.transcript.accessibility.text import AccessibilityContext, AccessibleText
from ui.transcript.blocks.block import BlockReplacement
from ui.transcript.rows.block_factory import MAX_SPOKEN
from ui.transcript.rows.row import Row
from ui.transcript.viewport.row_list import RowList, index_after
from ui.transcript.viewport.selection import TextPosition
from ui.transcript.words import tr

_KEPT_NODES = 600
"""Row nodes kept at once; the least recently used ones are deleted."""


class RowNode(AccessibleNode):
    """A row, by its item. Its children are its blocks."""

    def __init__(self, tree: "AccessibleTree", item_id: str, index: int) -> None:
        super().__init__(tree.view, tree.context, QAccessible.Role.ListItem)
        self.item_id = item_id
        self._index = index
        self._text = AccessibleText(tree.context, self.index)
        self._blocks: dict[int, BlockNode] = {}

    def index(self) -> int:
        """Return the current index, or -1."""
        rows = self.context.viewport.rows
        if not (0 <= self._index < rows.count and rows.transcript[self._index].id == self.item_id):
            indices = (number for number in range(rows.count) if rows.transcript[number].id == self.item_id)
            self._index = next(indices, -1)
        return self._index

    def name(self) -> str:
        row = self.context.row(self.index())
        return row.label if row else ""

    def text(self) -> AccessibleText:
        return self._text

    def child_nodes(self) -> Sequence[AccessibleNode]:
        """Return all blocks; `child_node` makes only one."""
        return [self.child_node(number) for number in range(self.child_count())]

    def child_count(self) -> int:
        row = self.context.row(self.index())
        return len(row.blocks) if row else 0

    def child_node(self, index: int) -> BlockNode:
        node = self._blocks.get(index)
        if node is None:
            node = self._blocks[index] = BlockNode(self, self.context, self.index, index)
        return node

    def drop_block_nodes(self) -> None:
        """Delete the nodes of the blocks, whose numbers changed."""
        for node in self._blocks.values():
            node.deleteLater()
        self._blocks = {}

    def box(self) -> QRect:
        return self.context.row_box(self.index())

    def has_keyboard_focus(self) -> bool:
        return self.context.viewport.focused == (self.index(), "")

    def focus(self) -> Callable[[], None]:
        return lambda: self.context.focus(self.index(), "")


class AccessibleTree(QObject):
    """The accessible children of one view: all rows, then its visible child widgets."""

    def __init__(self, view: QWidget, widgets: list[QWidget], context: AccessibilityContext) -> None:
        super().__init__(view)
        self.view = view
        self.viewport = context.viewport
        self.context = context
        self.interface: QAccessibleInterface | None = None
        self._widgets = widgets
        self._rows: OrderedDict[str, RowNode] = OrderedDict()
        self.viewport.on_replaced.append(self._on_replaced)
        _install_factory()

    def visible_widgets(self) -> list[QWidget]:
        """Return the visible widgets over the rows and beside them."""
        return [widget for widget in self._widgets if widget.isVisible()]

    def row_node(self, index: int) -> RowNode | None:
        """Return the node of a row, on the screen or not."""
        if not 0 <= index < self.viewport.rows.count:
            return None
        item_id = self.viewport.rows.transcript[index].id
        node = self._rows.get(item_id)
        if node is None:
            node = self._rows[item_id] = RowNode(self, item_id, index)
            if len(self._rows) > _KEPT_NODES:
                self._rows.popitem(last=False)[1].deleteLater()
        self._rows.move_to_end(item_id)
        return node

    def apply(self, changes: Sequence[Change]) -> None:
        """Drop what was made for reading items that changed."""
        transcript = self.viewport.rows.transcript
        for position, change in enumerate(changes, start=1):
            index = index_after(change.index, changes[position:]) if isinstance(change, Updated) else None
            if index is not None:
                self.context.forget_item(transcript[index].id)

    def clear(self) -> None:
        """Delete all nodes: other rows are shown, or the same ones in another style."""
        self.context.forget()
        for node in self._rows.values():
            node.deleteLater()
        self._rows.clear()

    def _on_replaced(self, row: int, replacement: BlockReplacement) -> None:
        del replacement
        # Until the rows have applied a change of the transcript, a row number may belong to another item.
        known = self.viewport.rows.existing_row(row)
        if known and (node := self._rows.get(known.item.id)):
            node.drop_block_nodes()


class _AccessibleTreeInterface(QAccessibleWidget):
    """The interface of the view itself."""

    def __init__(self, tree: AccessibleTree) -> None:
        super().__init__(tree.view, QAccessible.Role.List, tree.view.accessibleName())
        self._tree = tree

    def childCount(self) -> int:
        return self._tree.viewport.rows.count + len(self._tree.visible_widgets())

    def child(self, index: int, /) -> QAccessibleInterface | None:  # pyright: ignore[reportIncompatibleMethodOverride]  # Qt allows none
        count, widgets = self._tree.viewport.rows.count, self._tree.visible_widgets()
        if 0 <= index < count:
            node = self._tree.row_node(index)
            return QAccessible.queryAccessibleInterface(node) if node else None
        widget = widgets[index - count] if count <= index < count + len(widgets) else None
        return QAccessible.queryAccessibleInterface(widget) if widget else None

    def indexOfChild(self, child: QAccessibleInterface, /) -> int:
        node = child.object()
        if isinstance(node, RowNode):
            return node.index()
        widgets = enumerate(self._tree.visible_widgets(), self._tree.viewport.rows.count)
        return next((number for number, widget in widgets if widget is node), -1)

    def childAt(self, x: int, y: int, /) -> QAccessibleInterface | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        if interface := child_at(self._tree.visible_widgets(), x, y):
            return interface
        viewport = self._tree.viewport
        point = viewport.widget.mapFromGlobal(QPoint(x, y))
        if not viewport.widget.rect().contains(point) or not self._tree.viewport.rows.count:
            return None
        node = self._tree.row_node(viewport.rows.row_at(viewport.rows.top + point.y()))
        return QAccessible.queryAccessibleInterface(node) if node and node.box().contains(point) else None

    def focusChild(self) -> QAccessibleInterface | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        position = self._tree.context.caret.position
        node = self._tree.row_node(position.row if position else self._tree.viewport.focused[0])
        focused = node.child_node(position.block) if node and position else node
        return QAccessible.queryAccessibleInterface(focused) if focused else None


def _make_interface(key: str, thing: QObject | None) -> QAccessibleInterface | None:
    """Return our interfaces; Qt asks for every class name of every object."""
    del key
    if isinstance(thing, AccessibleNode):
        thing.interface = AccessibleNodeInterface(thing)
        return thing.interface
    tree = getattr(thing, "accessible_tree", None) if isinstance(thing, QWidget) else None
    if isinstance(tree, AccessibleTree):
        tree.interface = _AccessibleTreeInterface(tree)
        return tree.interface
    return None


@cache
def _install_factory() -> None:
    """Install the factory once in the process: Qt cannot remove a Python factory."""
    QAccessible.installFactory(_make_interface)


class AccessibilityNotifier:
    """Sends accessibility events of one view, while assistive technology is active."""

    def __init__(self, tree: AccessibleTree) -> None:
        self._tree = tree
        self._caret: TextPosition | None = None

    def announce(self, words: str, urgent: bool) -> None:  # noqa: FBT001  what the announcer's callback carries
        """Announce; urgent words interrupt."""
        event = QAccessibleAnnouncementEvent(self._tree.view, words)
        if urgent:
            event.setPoliteness(QAccessible.AnnouncementPoliteness.Assertive)
        QAccessible.updateAccessibility(event)

    def notify_focus(self) -> None:
        """Report that another message, link or button has the focus."""
        index, key = self._tree.viewport.focused
        node = self._tree.row_node(index) if QAccessible.isActive() else None
        if node is not None:
            block, _, name = key.partition("/")
            target = node.child_node(int(block)).find_child(name) if name else None
            QAccessible.updateAccessibility(QAccessibleEvent(target or node, QAccessible.Event.Focus))

    def notify_caret(self, position: TextPosition | None) -> None:
        """Report that the caret moved, with the selection; in another block, the focus moved too."""
        before, self._caret = self._caret, position
        if position is None or not QAccessible.isActive():
            return
        row = self._tree.row_node(position.row)
        if row is None:
            return
        block_node = row.child_node(position.block)
        if before is None or (before.row, before.block) != (position.row, position.block):
            QAccessible.updateAccessibility(QAccessibleEvent(block_node, QAccessible.Event.Focus))
        QAccessible.updateAccessibility(QAccessibleTextCursorEvent(block_node, position.offset))
        start, end = self._tree.viewport.selection.ordered
        if start != end and (start.row, start.block) == (end.row, end.block) == (position.row, position.block):
            QAccessible.updateAccessibility(QAccessibleTextSelectionEvent(block_node, start.offset, end.offset))


class Announcer:
    """Announces what is new: `say` takes the words and whether they are urgent."""

    def __init__(self, say: Callable[[str, bool], None], listening: Callable[[], bool]) -> None:
        self._announce = say
        self._is_listening = listening
        self._announced: set[tuple[str, str]] = set()
        self._transcript: Callable[[], Transcript | None] = lambda: None

    def announce_changes(self, changes: Sequence[Change], rows: RowList, *, silently: bool = False) -> None:
        """Announce these changes, after the rows applied them; `silently` only records them as announced."""
        self._forget_removed(changes, rows.transcript)
        if not self._is_listening():
            return
        known = rows.count
        indices = dict.fromkeys(change.index for change in changes if isinstance(change, Added | Updated))
        for index in indices:
            if index < known:
                self._announce_row(index, rows, silently=silently)

    def _forget_removed(self, changes: Sequence[Change], transcript: Transcript) -> None:
        if self._transcript() is not transcript:
            self._transcript = ref(transcript)
            self._announced.clear()
        elif self._announced and any(isinstance(change, Removed) for change in changes):
            item_ids = {item.id for item in transcript}
            self._announced = {announced for announced in self._announced if announced[0] in item_ids}

    def _announce_row(self, index: int, rows: RowList, *, silently: bool) -> None:
        item = rows.transcript[index]
        occasion = _occasion_of(item)
        if not occasion or (item.id, occasion) in self._announced:
            return
        self._announced.add((item.id, occasion))
        if not silently:
            is_urgent = isinstance(item, NoticeItem) and item.level == "error"
            self._announce(_announcement_for(rows.row(index), item)[:MAX_SPOKEN], is_urgent)


def _occasion_of(item: Item) -> str:
    """Return which event of an item is announced, once; growing items and the person's own have none."""
    match item:
        case AnswerItem() | ThinkingItem():
            return "finished" if item.finished else ""
        case ToolCallItem():
            return str(item.state) if item.state in {CallState.WAITING, CallState.ENDED} else ""
        case NoticeItem():
            return "there" if item.times == 1 else f"there {item.times} times"
        case ServerStepItem() | PictureItem() | UnknownItem():
            return "there"
        case _:
            return ""


def _announcement_for(row: Row, item: Item) -> str:
    if isinstance(item, AnswerItem):
        return row.spoken_text()
    if isinstance(item, NoticeItem):
        return labelled(row.label, row.spoken_text())
    # For thinking and calls, only how they ended is announced: the rest is folded.
    first = row.blocks[0].spoken_text() if row.blocks else ""
    if first and isinstance(item, ToolCallItem):
        # The label and the first block both contain the title.
        return tr("Tool call: {0}").format(first)
    return labelled(row.label, first) if first else row.label
