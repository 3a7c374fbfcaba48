"""Correct what Qt (6.11) tells assistive technology about windows, menus, lists, combo boxes and other widgets.

- Qt's root leaves out every window of the type Popup (`topLevelObjects` in qaccessibleobject.cpp), and a widget leaves
  out the windows that belong to it: an open menu is announced when its rows get the focus, but is nowhere in the tree.
  The root here lists them too.
- A combo box is named after its value where Qt runs on Unix (`QAccessibleComboBox::text` in complexwidgets.cpp), so
  that its purpose is not announced. Here it has its own name.
- The only action of a row is `toggle`, which selects it (`QAccessibleTableCell` in itemviews.cpp). It neither opens the
  row nor makes it current, does nothing in a list without selection, and cannot toggle a selected row in a list with
  single selection. See `choose_toggled_row` and `ChoiceList`.
- The children of a list are its rows alone (`QAccessibleTable::child` there): a button or an editor that lies on a row
  has a parent, but is nobody's child. Here it is a child of the list's frame, if that has the property `rowWidgets`.
- A scroll area that is asked for a child that is gone, such as a scroll bar, reads beyond the end of a list, which ends
  the program (`QAccessibleAbstractScrollArea::child` in complexwidgets.cpp). Here there is no such child.
- A menu stays open when assistive technology has chosen from it. Here it closes.
- The children of a widget are read in the order in which they were added. Here they are read in that of its layout.
- Some widgets have no role. Here a widget with the property `isGraphic` is a graphic, and one with `isWindowFrame` a
  window; the handle between two panes is a splitter, and a frame that takes the focus a list item, one of several.
"""

from collections.abc import Callable, Iterator
from functools import partial

from PySide6.QtCore import (
    QCoreApplication,
    QEvent,
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QRect,
    Qt,
    QTimer,
)
from PySide6.QtGui import (
    QAccessible,
    QAccessibleActionInterface,
    QAccessibleInterface,
    QAccessibleObject,
    QGuiApplication,
    QKeySequence,
    QWindow,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QAbstractScrollArea,
    QAccessibleWidget,
    QApplication,
    QComboBox,
    QFrame,
    QKeySequenceEdit,
    QLayout,
    QListView,
    QMainWindow,
    QMenu,
    QScrollArea,
    QWidget,
)

from ui.style.boxes import parts_of

_SHOW = QAccessibleActionInterface.showMenuAction()
_PRESS = QAccessibleActionInterface.pressAction()


def install_accessibility(app: QApplication) -> None:
    """Expose open menus and lists, and the names of combo boxes, even if assistive technology runs already."""
    root = QAccessible.queryAccessibleInterface(app)
    if isinstance(root, _AccessibleApplication):
        return
    _delete_interface(root)
    # Qt owns the C++ object; the Python object must live as long, or virtual calls reach nothing.
    _root[:] = [_AccessibleApplication(app)]
    QAccessible.registerAccessibleInterface(_root[0])
    _order[:] = [_LayoutOrder()]
    QAccessible.installFactory(_create_interface)
    if QAccessible.isActive():
        _correct_read_widgets(app.allWidgets())


def _correct_read_widgets(widgets: list[QWidget]) -> None:
    """Correct widgets that assistive technology may have read before: they keep the interface that Qt made then.

    Only that of a scroll area is deleted, because it can end the program. A reader whose widget gets a new interface
    loses its place.
    """
    for widget in widgets:
        _order[0].watch(widget)
        if isinstance(widget, QScrollArea):
            _delete_interface(QAccessible.queryAccessibleInterface(widget))


def _delete_interface(interface: QAccessibleInterface) -> None:
    QAccessible.deleteAccessibleInterface(QAccessible.uniqueId(interface))


class ChoiceList(QListView):
    """A list in which one row is selected, and assistive technology can toggle that one too.

    Qt deselects a row only where several may be selected, so this is allowed, and keys and clicks select one.
    """

    def __init__(self) -> None:
        super().__init__()
        self.setSelectionMode(QListView.SelectionMode.ExtendedSelection)

    def selectionCommand(
        self, index: QModelIndex | QPersistentModelIndex, event: QEvent | None = None
    ) -> QItemSelectionModel.SelectionFlag:
        # A click beside the rows changes nothing. Without an event the program sets the current row, which may be none.
        is_beside = event is not None and not index.isValid()
        flags = QItemSelectionModel.SelectionFlag
        return flags.NoUpdate if is_beside else flags.ClearAndSelect

    def setSelection(self, rect: QRect, command: QItemSelectionModel.SelectionFlag) -> None:
        """Select the row under the mouse: a drag from one to another would select all between them."""
        super().setSelection(QRect(rect.bottomRight(), rect.bottomRight()), command)

    def selectAll(self) -> None:
        """Select nothing more."""


def choose_toggled_row(view: QAbstractItemView, choose: Callable[[QModelIndex], object]) -> None:
    """Make a row that assistive technology toggles the current one, and call `choose` with it.

    Keys and clicks must select what they make current. In a ChoiceList the selected row is chosen like any other.
    """
    model = view.selectionModel()

    def make_current(index: QModelIndex) -> None:
        view.setCurrentIndex(index)
        choose(index)

    def check(before: QPersistentModelIndex) -> None:
        current, selected = view.currentIndex(), model.selectedIndexes()
        others = [index for index in selected if index != current]
        if others:
            make_current(others[0])
        elif not selected and before.isValid() and before == current:
            make_current(current)

    def check_later(selected: QItemSelection, deselected: QItemSelection) -> None:
        # Keys and clicks select a row and then make it current.
        if not selected.isEmpty():
            QTimer.singleShot(0, view, partial(check, QPersistentModelIndex()))
        elif not deselected.isEmpty():
            QTimer.singleShot(0, view, partial(check, QPersistentModelIndex(deselected.indexes()[0])))

    model.selectionChanged.connect(check_later)


_root: list["_AccessibleApplication"] = []


class _AccessibleApplication(QAccessibleObject):
    """The application. Its children are all of its windows in the order in which they were made."""

    def role(self) -> QAccessible.Role:
        return QAccessible.Role.Application

    def text(self, t: QAccessible.Text, /) -> str:
        if t == QAccessible.Text.Name:
            return QGuiApplication.applicationName()
        return QGuiApplication.applicationFilePath() if t == QAccessible.Text.Description else ""

    def setText(self, t: QAccessible.Text, text: str, /) -> None:
        pass

    def state(self) -> QAccessible.State:
        state = QAccessible.State()
        state.active = QApplication.activeWindow() is not None  # pyright: ignore[reportAttributeAccessIssue]  # bit fields are missing in the stub
        return state

    def rect(self) -> QRect:
        return QRect()

    def window(self) -> QWindow | None:  # pyright: ignore[reportIncompatibleMethodOverride]  # Qt allows none
        return None

    def parent(self) -> QAccessibleInterface | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        return None

    def childCount(self) -> int:
        return len(_windows())

    def child(self, index: int, /) -> QAccessibleInterface | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        windows = _windows()
        if not 0 <= index < len(windows):
            return None
        window = windows[index]
        if isinstance(window, QMenu):
            _close_after_choice(window)
        return QAccessible.queryAccessibleInterface(window)

    def indexOfChild(self, child: QAccessibleInterface, /) -> int:
        window = child.object()
        return next((index for index, candidate in enumerate(_windows()) if candidate is window), -1)

    def childAt(self, x: int, y: int, /) -> QAccessibleInterface | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        window = next(
            (
                candidate
                for candidate in reversed(_windows())
                if candidate.isVisible() and candidate.geometry().contains(x, y)
            ),
            None,
        )
        return None if window is None else QAccessible.queryAccessibleInterface(window)

    def focusChild(self) -> QAccessibleInterface | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        focused: QObject | None = QApplication.focusWidget()
        return None if focused is None else QAccessible.queryAccessibleInterface(focused)


def _windows() -> list[QWidget]:
    """Return the open windows. The list of a combo box is its child already."""
    windows = [window for window in QApplication.topLevelWidgets() if window.isVisible()]
    return [window for window in windows if not isinstance(window.parentWidget(), QComboBox)]


def _close_after_choice(menu: QMenu) -> None:
    """Close a menu after a choice: Qt leaves it open when assistive technology chooses."""
    if not menu.property("closesAfterChoice"):
        menu.setProperty("closesAfterChoice", True)
        menu.triggered.connect(menu.hide)


class _AccessibleComboBox(QAccessibleWidget):
    """A combo box; its only child is its list."""

    def __init__(self, box: QComboBox) -> None:
        super().__init__(box, QAccessible.Role.ComboBox)
        self._box = box

    def text(self, t: QAccessible.Text, /) -> str:
        value = self._box.currentText()
        if t == QAccessible.Text.Value:
            return value
        # AT-SPI has no value in words: Orca would not say what is chosen.
        words = super().text(t)
        return ". ".join(filter(None, (value, words))) if t == QAccessible.Text.Description else words

    def state(self) -> QAccessible.State:
        state = super().state()
        is_open = self._box.view().isVisible()
        state.expandable = True  # pyright: ignore[reportAttributeAccessIssue]  # bit fields are missing in the stub
        state.expanded = is_open  # pyright: ignore[reportAttributeAccessIssue]
        state.collapsed = not is_open  # pyright: ignore[reportAttributeAccessIssue]
        state.hasPopup = True  # pyright: ignore[reportAttributeAccessIssue]
        return state

    def childCount(self) -> int:
        return 1

    def child(self, index: int, /) -> QAccessibleInterface | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        view = self._box.view()
        if not view.accessibleName():
            view.setAccessibleName(self.text(QAccessible.Text.Name))
        return QAccessible.queryAccessibleInterface(view) if index == 0 else None

    def indexOfChild(self, child: QAccessibleInterface, /) -> int:
        return 0 if child.object() is self._box.view() else -1

    def actionNames(self) -> list[str]:
        return [_SHOW, _PRESS]

    def doAction(self, name: str, /) -> None:
        if name not in (_SHOW, _PRESS):
            return
        if self._box.view().isVisible():
            self._box.hidePopup()
        else:
            self._box.showPopup()


class _AccessibleKeyField(QAccessibleWidget):
    """A field for keys, which has no role in Qt. Its keys are reported as the value of a combo box is."""

    def __init__(self, field: QKeySequenceEdit) -> None:
        super().__init__(field, QAccessible.Role.EditableText)
        self._field = field

    def text(self, t: QAccessible.Text, /) -> str:
        keys = self._field.keySequence().toString(QKeySequence.SequenceFormat.NativeText)
        if t == QAccessible.Text.Value:
            return keys
        words = super().text(t)
        return ". ".join(filter(None, (keys, words))) if t == QAccessible.Text.Description else words

    def childCount(self) -> int:
        return 0


class _AccessibleScrollArea(QAccessibleWidget):
    """A scroll area. Its children are its viewport and the scroll bars that are shown."""

    def __init__(self, area: QAbstractScrollArea) -> None:
        super().__init__(area, QAccessible.Role.Client)
        self._area = area

    def childCount(self) -> int:
        return len(self._parts())

    def child(self, index: int, /) -> QAccessibleInterface | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        parts = self._parts()
        return QAccessible.queryAccessibleInterface(parts[index]) if 0 <= index < len(parts) else None

    def indexOfChild(self, child: QAccessibleInterface, /) -> int:
        parts, widget = self._parts(), child.object()
        return parts.index(widget) if isinstance(widget, QWidget) and widget in parts else -1

    def _parts(self) -> list[QWidget]:
        viewport = self._area.viewport()
        widgets = [child for child in self._area.children() if isinstance(child, QWidget) and child is not viewport]
        return [viewport, *(widget for widget in widgets if widget.isVisible() and not widget.isWindow())]


class _AccessibleRowsFrame(QAccessibleWidget):
    """A frame with lists in it. After its own children come what is shown on rows of these lists."""

    def __init__(self, frame: QFrame) -> None:
        super().__init__(frame, QAccessible.Role.Border)
        self._frame = frame

    def childCount(self) -> int:
        return super().childCount() + len(self._on_rows())

    def child(self, index: int, /) -> QAccessibleInterface | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        own_count = super().childCount()
        if index < own_count:
            return super().child(index)
        on_rows = self._on_rows()[index - own_count :]
        return QAccessible.queryAccessibleInterface(on_rows[0]) if on_rows else None

    def indexOfChild(self, child: QAccessibleInterface, /) -> int:
        on_rows = self._on_rows()
        widget = child.object()
        if isinstance(widget, QWidget) and widget in on_rows:
            return super().childCount() + on_rows.index(widget)
        return super().indexOfChild(child)

    def _on_rows(self) -> list[QWidget]:
        views = self._frame.findChildren(QAbstractItemView, options=Qt.FindChildOption.FindDirectChildrenOnly)
        return [
            child
            for view in views
            for child in view.viewport().children()
            if isinstance(child, QWidget) and child.isVisible()
        ]


class _LayoutOrder(QObject):
    """Keeps the children of widgets in the order of their layouts: Qt reads them as they are stacked."""

    def watch(self, widget: QWidget) -> None:
        """Order the children of a widget, now and whenever its layout changes."""
        layout = widget.layout()
        if layout is None or isinstance(widget, QMainWindow) or widget.property(_IS_ORDERED):
            return
        widget.setProperty(_IS_ORDERED, True)
        widget.installEventFilter(self)
        _stack_as_laid_out(widget, layout)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Order the children again."""
        if event.type() == QEvent.Type.LayoutRequest and isinstance(watched, QWidget):
            layout = watched.layout()
            if layout is not None:
                _stack_as_laid_out(watched, layout)
        return False


def _stack_as_laid_out(widget: QWidget, layout: QLayout) -> None:
    """Stack the children as they are laid out, with those outside of the layout on top, as they were."""
    laid_out = list(_widgets_in(layout))
    children = [child for child in widget.children() if isinstance(child, QWidget) and not child.isWindow()]
    ordered = laid_out + [child for child in children if child not in laid_out]
    if children != ordered:
        for child in ordered:
            child.raise_()


def _widgets_in(layout: QLayout) -> Iterator[QWidget]:
    for part in parts_of(layout):
        if isinstance(part, QLayout):
            yield from _widgets_in(part)
        else:
            yield part


_IS_ORDERED = "isOrdered"
_order: list[_LayoutOrder] = []


def _create_interface(key: str, target: QObject | None) -> QAccessibleInterface | None:
    """Return the interface of a widget that this module corrects. Qt asks for every class name of every object."""
    if _order and isinstance(target, QWidget):
        _order[0].watch(target)
    if key == "QMenu" and isinstance(target, QMenu) and not (target.accessibleName() or target.title()):
        _name_text_menu(target)
    if key == "QComboBox" and isinstance(target, QComboBox):
        interface: QAccessibleWidget = _AccessibleComboBox(target)
    elif key == "QKeySequenceEdit" and isinstance(target, QKeySequenceEdit):
        interface = _AccessibleKeyField(target)
    elif key == "QWidget" and isinstance(target, QWidget) and (role := _role_of(target)) is not None:
        interface = QAccessibleWidget(target, role)
    elif key == "QSplitterHandle" and isinstance(target, QWidget):
        interface = QAccessibleWidget(target, QAccessible.Role.Splitter)
    elif key == "QFrame" and isinstance(target, QFrame) and target.property("rowWidgets"):
        interface = _AccessibleRowsFrame(target)
    elif key == "QFrame" and isinstance(target, QFrame) and target.focusPolicy() != Qt.FocusPolicy.NoFocus:
        interface = QAccessibleWidget(target, QAccessible.Role.ListItem)
    elif key in {"QScrollArea", "QAbstractScrollArea"} and isinstance(target, QAbstractScrollArea):
        interface = _AccessibleScrollArea(target)
    else:
        return None
    _interfaces.add(interface)
    target.destroyed.connect(partial(_forget, interface))
    return interface


def _role_of(widget: QWidget) -> QAccessible.Role | None:
    roles = {"isGraphic": QAccessible.Role.Graphic, "isWindowFrame": QAccessible.Role.Window}
    return next((role for name, role in roles.items() if widget.property(name)), None)


def _name_text_menu(menu: QMenu) -> None:
    """Name a menu that Qt makes for a text, and its rows without their keys. All others have names."""
    menu.setAccessibleName(
        QCoreApplication.translate("TextMenu", "Menu: {0}").format(QCoreApplication.translate("TextMenu", "Text"))
    )
    for action in menu.actions():
        words, _, keys = action.text().partition("\t")
        if keys:
            action.setText(words)
            action.setShortcut(QKeySequence(keys, QKeySequence.SequenceFormat.NativeText))


def _forget(interface: QAccessibleWidget, _: QObject | None = None) -> None:
    _interfaces.discard(interface)


# As with the root: the Python object must live as long as Qt's.
_interfaces: set[QAccessibleWidget] = set()
