"""Lists to pick from: a search panel, a popup around it, and the mode picker."""

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import (
    QCoreApplication,
    QEvent,
    QModelIndex,
    QObject,
    QPoint,
    QRect,
    QSize,
    Qt,
    Signal,
    SignalInstance,
)
from PySide6.QtGui import QActionGroup, QColor, QGuiApplication, QHideEvent, QKeyEvent, QPalette
from PySide6.QtWidgets import QFrame, QListView, QMenu, QWidget

from desktop_agent.types.permissions import BREADTHS, BUILT_IN_MODES, DEFAULT_MODE, Mode, RuleEffect
from ui.style.accessibility import ChoiceList, choose_toggled_row
from ui.style.boxes import hbox, vbox
from ui.style.controls import ClearableField, IconButton, announce, button, line, open_menu_at
from ui.style.list_rows import ResultModel, ResultRow, RowDelegate
from ui.style.text import escape_mnemonics, labelled, plain_tooltip, with_keys
from ui.style.theme import SPACE_S, SPACE_XS, Theme, ThemeSource
from ui.style.widgets import CollapsingButton


class SearchPanel(QWidget):
    """A search field over a list. The focus stays in the field: arrows walk the list, Enter chooses.

    `find` returns the rows for a query.
    """

    chosen = Signal(object)
    """The ResultRow."""
    results_changed = Signal()
    """The rows have changed."""
    backspace_pressed = Signal()
    """Backspace in the empty field."""
    confirmed = Signal()
    """Enter while no row is marked."""

    def __init__(self, themes: ThemeSource, find: Callable[[str], Sequence[ResultRow]], name: str) -> None:
        super().__init__()
        self._find = find
        self._was_stepped = False
        """Whether the person chose the marked row by the arrows."""
        self.field = ClearableField(themes)
        self.rows = ResultModel(self)
        self._list = ChoiceList()
        self._list.setModel(self.rows)
        self._list.setItemDelegate(RowDelegate(themes, self._list))
        self._list.setAccessibleName(name)
        self._list.setMouseTracking(True)
        self._list.setEditTriggers(QListView.EditTrigger.NoEditTriggers)
        self.column = vbox(self.field, self._list, parent=self, spacing=SPACE_XS, margins=0, grow=self._list)
        self.setFocusProxy(self.field)
        self.field.textChanged.connect(self.filter_rows)
        self.field.installEventFilter(self)
        self._list.clicked.connect(self.choose)
        self._list.activated.connect(self.choose)
        choose_toggled_row(self._list, self.choose)

    def set_label(self, name: str, hint: str = "") -> None:
        """Set the accessible label, and the placeholder of the empty field if it says more."""
        self.field.setAccessibleName(name)
        self.field.setPlaceholderText(hint or name)

    def reset(self) -> None:
        """Empty the field and show the rows for an empty query."""
        self.field.clear()
        self._was_stepped = False
        self.filter_rows("")

    def clear_mark(self) -> None:
        """Mark no row until the person types or steps."""
        self._list.setCurrentIndex(QModelIndex())

    def fill(self) -> None:
        """Search again, unless it is hidden.

        The marked row stays marked. If the person did not mark it, the row in use replaces it, once that is there.
        """
        if not self.isVisible():
            return
        index, typed = self._list.currentIndex(), self.field.text()
        marked = self.rows.row(index.row()) if index.isValid() else None
        had_current = self.rows.current >= 0
        self.filter_rows(typed)
        is_by_person = typed or self._was_stepped or had_current
        row = self.rows.place_of(marked)
        if row >= 0 and (is_by_person or self.rows.current < 0):
            self._go_to(row)

    def _take_key(self, key: int) -> bool:
        """Return whether the list handles this key of the field."""
        match key:
            case Qt.Key.Key_Down:
                self._step(1)
            case Qt.Key.Key_Up:
                self._step(-1)
            case Qt.Key.Key_Return | Qt.Key.Key_Enter:
                index = self._list.currentIndex()
                if index.isValid():
                    self.choose(index)
                else:
                    self.confirmed.emit()
            case Qt.Key.Key_Backspace if not self.field.text():
                self.backspace_pressed.emit()
            case _:
                return False
        return True

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.field and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            return self._take_key(event.key()) or super().eventFilter(watched, event)
        return super().eventFilter(watched, event)

    def filter_rows(self, typed: str) -> None:
        """Show the rows for this query."""
        self.rows.show_rows(self._find(typed))
        row = -1 if typed else self.rows.current
        self._go_to(row if row >= 0 else self.rows.next_choosable(-1, 1))
        self.results_changed.emit()

    def whole_height(self, most: int) -> int:
        """Return the pixels in which every row is visible without scrolling, at most `most`."""
        height = self.field.sizeHint().height() + self.column.spacing() + 2 * self._list.frameWidth()
        for row in range(self.rows.rowCount()):
            if height >= most:
                break
            height += self._list.sizeHintForIndex(self.rows.index(row)).height()
        return min(height, most)

    def choose(self, index: QModelIndex) -> None:
        """Choose this row, if it can be chosen."""
        row = self.rows.row(index.row()) if index.isValid() else None
        if row is not None and row.is_choosable:
            self.chosen.emit(row)

    def _step(self, step: int) -> None:
        row = self.rows.next_choosable(self._list.currentIndex().row(), step)
        if row >= 0:
            self._was_stepped = True
            self._go_to(row)

    def _go_to(self, row: int) -> None:
        index = self.rows.index(row)
        self._list.setCurrentIndex(index)
        if index.isValid() and self.isVisible():
            # The focus is in the field, so a screen reader does not announce the marked row by itself.
            announce(self.field, str(index.data(Qt.ItemDataRole.AccessibleTextRole)))


class SearchPopup(QFrame):
    """A search panel that closes once something is chosen. `find` returns the rows for a query."""

    chosen = Signal(object)
    """The ResultRow."""
    left = Signal(str)
    """It was closed without a choice; the query in it."""
    refresh_requested = Signal()
    link_followed = Signal()
    second_link_followed = Signal()

    def __init__(
        self,
        themes: ThemeSource,
        find: Callable[[str], Sequence[ResultRow]],
        size: QSize,
        parent: QWidget,
        *,
        name: str,
        refresh: str,
        link: str,
        second_link: str = "",
    ) -> None:
        """`size` is the largest, for 100 % zoom. `refresh` and `link` name buttons: search again, open a page."""
        super().__init__(parent, Qt.WindowType.Popup)
        self._themes, self._size = themes, size
        self._was_chosen = False
        self._room, self._is_above = QRect(), False
        """The part of the screen that it may take, and whether that is above the widget that it was opened for."""
        self.panel = SearchPanel(themes, find, name)
        self._refresh = IconButton(themes, "refresh", refresh)
        self._link = button(link, partial(self._follow, self.link_followed), "link")
        self._second_link = button(second_link, partial(self._follow, self.second_link_followed), "link")
        self._build(name)
        # Only now that it has a parent: shown without one it would be a window of its own.
        self._second_link.setVisible(bool(second_link))
        self.panel.chosen.connect(self._choose)
        self._refresh.clicked.connect(self.refresh_requested)

    def fill(self) -> None:
        """Search again, unless it is hidden. The marked row stays marked."""
        self.panel.fill()
        if self.isVisible():
            self._fit()

    def show_over(self, widget: QWidget) -> None:
        """Show with an empty field above the widget, or below, or on the larger side if neither has room."""
        self._was_chosen = False
        self.setLayoutDirection(QGuiApplication.layoutDirection())
        self.panel.reset()
        screen = widget.screen().availableGeometry()
        top, bottom = (widget.mapToGlobal(QPoint(0, y)) for y in (-SPACE_XS, widget.height() + SPACE_XS))
        above, below = top.y() - screen.top(), screen.bottom() - bottom.y()
        size = self._size * (self._themes.zoom / 100)
        self._is_above = above >= min(size.height(), below)
        room = size.boundedTo(QSize(screen.width(), above if self._is_above else below))
        corner = top - QPoint(0, room.height()) if self._is_above else bottom
        if QGuiApplication.isRightToLeft():
            corner += QPoint(widget.width() - room.width(), 0)
        corner.setX(max(screen.left(), min(corner.x(), screen.right() - room.width())))
        self._room = QRect(corner, room)
        self._fit()
        self.show()
        self.panel.setFocus()

    def _fit(self) -> None:
        """Take as much of the room as the rows need. While it is open it only grows: the field must not move."""
        other_height = self.sizeHint().height() - self.panel.sizeHint().height()
        height = other_height + self.panel.whole_height(self._room.height() - other_height)
        if self.isVisible():
            height = max(height, self.height())
        box = QRect(self._room.topLeft(), QSize(self._room.width(), height))
        if self._is_above:
            box.moveBottom(self._room.bottom())
        if box != self.geometry():
            self.setGeometry(box)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        if not self._was_chosen:
            self.left.emit(self.panel.field.text())

    def _choose(self, row: ResultRow) -> None:
        self._was_chosen = True
        self.hide()
        self.chosen.emit(row)

    def _follow(self, followed: SignalInstance) -> None:
        self.hide()
        followed.emit()

    def _build(self, name: str) -> None:
        self.setProperty("kind", "popup")
        self.setAccessibleName(name)
        links = vbox(self._link, self._second_link, spacing=0)
        for link in (self._link, self._second_link):
            links.setAlignment(link, Qt.AlignmentFlag.AlignLeft)
        foot = hbox(links, self._refresh)
        foot.insertStretch(1, 1)
        vbox(self.panel, line(), foot, parent=self, spacing=SPACE_XS, margins=SPACE_S, grow=self.panel)


def mode_title(mode: Mode) -> str:
    """Return the name for people; custom modes have their maker's name."""
    if mode not in BUILT_IN_MODES:
        return mode.title
    words = {
        "default": QCoreApplication.translate("Modes", "Default"),
        "plan": QCoreApplication.translate("Modes", "Plan"),
        "accept-edits": QCoreApplication.translate("Modes", "Accept edits"),
    }
    return words[mode.name]


def mode_description(mode: Mode) -> str:
    """Return what happens without asking in this mode."""
    words = {
        "deny": QCoreApplication.translate("Modes", "Nothing is changed"),
        "ask": QCoreApplication.translate("Modes", "Asks before it changes something"),
        "accept_edits": QCoreApplication.translate("Modes", "Changes files without asking"),
    }
    more = {
        (True, False): QCoreApplication.translate("Modes", "{0}; its rules allow more"),
        (False, True): QCoreApplication.translate("Modes", "{0}; its rules deny more or ask more often"),
        (True, True): QCoreApplication.translate(
            "Modes", "{0}; its rules allow some calls, and deny or ask about others"
        ),
    }
    return more.get((_allows_more(mode), _restricts(mode)), "{0}").format(words[mode.mutating])


def _allows_more(mode: Mode) -> bool:
    """Return whether rules of its own allow calls that would be asked about."""
    return any(rule.effect == RuleEffect.ALLOW for rule in mode.rules)


def _restricts(mode: Mode) -> bool:
    """Return whether rules of its own deny calls, or have the person asked about them."""
    return any(rule.effect != RuleEffect.ALLOW for rule in mode.rules)


def _mode_appearance(mode: Mode, theme: Theme) -> tuple[str, str]:
    """Return an icon, and the colour of icon and text.

    Green if nothing changes, plain if the person is asked, amber if files change, red if rules allow more.
    """
    if _allows_more(mode):
        return "warning", theme.danger
    appearances = {
        "deny": ("eye", theme.success),
        "ask": ("check", theme.text),
        "accept_edits": ("pencil", theme.warning),
    }
    return appearances[mode.mutating]


MODE_SHORTCUT = "Ctrl+Shift+M"


class ModePicker(CollapsingButton):
    """Shows the mode, and the one that the agent asks for until that is decided."""

    mode_chosen = Signal(str)
    """A mode's name."""
    request_refused = Signal()

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__(themes)
        self._modes: tuple[Mode, ...] = (DEFAULT_MODE,)
        self._current = DEFAULT_MODE
        self._requested: Mode | None = None
        self._keys = MODE_SHORTCUT
        self._menu = QMenu(self)
        self._menu.setAccessibleName(self.tr("Mode"))
        self._group = QActionGroup(self._menu)
        self.setAccessibleName(self.tr("Mode"))
        self.clicked.connect(self.open_menu)
        themes.changed.connect(self._apply_theme)
        self._show()

    def show_modes(self, modes: Sequence[Mode], current: Mode, requested: Mode | None = None) -> None:
        """Show the modes to choose from, the current one, and the requested one."""
        state = (tuple(modes), current, requested)
        if state == (self._modes, self._current, self._requested):
            return
        is_other = current != self._current
        self._modes, self._current, self._requested = state
        self._show()
        if is_other:
            announce(self, self.tr("Mode: {0}").format(mode_title(current)))

    def show_keys(self, keys: str) -> None:
        """Show the keys that open the menu."""
        self._keys = keys
        self._show()

    def open_menu(self) -> None:
        """Open the menu of all modes above the button, or below if the window has no room above."""
        self._fill_menu()
        above = -self._menu.sizeHint().height() - SPACE_XS
        has_room = self.mapTo(self.window(), QPoint(0, above)).y() >= 0
        open_menu_at(self, self._menu, above if has_room else self.height() + SPACE_XS)
        self._menu.setActiveAction(self._group.checkedAction())

    def _show(self) -> None:
        title, meaning = mode_title(self._current), mode_description(self._current)
        # A bare “Default” would be mistaken for the one of the reasoning beside it.
        words = self.tr("Default mode") if self._current == DEFAULT_MODE else title
        if self._requested is not None:
            requested = mode_title(self._requested)
            words = self.tr("{0} → {1}?").format(title, requested)
            meaning += ". " + self.tr("The agent asks for the mode “{0}”.").format(requested)
        self.setText(" " + escape_mnemonics(words))
        self.setAccessibleDescription(labelled(words, meaning))
        self.setToolTip(plain_tooltip(with_keys(self.tr("Mode: {0}").format(words), self._keys) + f"\n{meaning}"))
        self._fill_menu()
        self._apply_theme()

    def _fill_menu(self) -> None:
        # An open menu does not change: a click meant for one mode must not hit another.
        if self._menu.isVisible():
            return
        self._menu.clear()
        if self._requested is not None:
            requested, current = (
                escape_mnemonics(mode_title(self._requested)),
                escape_mnemonics(mode_title(self._current)),
            )
            name = self._requested.name
            change = self._menu.addAction(self.tr("Change to “{0}” now").format(requested))
            change.triggered.connect(lambda _checked=False: self.mode_chosen.emit(name))
            keep = self._menu.addAction(self.tr("Keep “{0}”").format(current))
            keep.triggered.connect(lambda _checked=False: self.request_refused.emit())
            self._menu.addSeparator()
        for mode in sorted(self._modes, key=_mode_breadth):
            words = labelled(mode_title(mode), mode_description(mode))
            action = self._menu.addAction(escape_mnemonics(words))
            action.setCheckable(True)
            action.setChecked(mode == self._current)
            action.triggered.connect(lambda _checked=False, name=mode.name: self.mode_chosen.emit(name))
            self._group.addAction(action)

    def _apply_theme(self) -> None:
        icon, colour = _mode_appearance(self._current, self._themes.theme)
        self.draw(icon, colour)
        palette = self.palette()
        palette.setColor(QPalette.ColorRole.ButtonText, QColor(colour))
        self.setPalette(palette)


def _mode_breadth(mode: Mode) -> tuple[bool, int]:
    return _allows_more(mode), BREADTHS.index(mode.mutating)
