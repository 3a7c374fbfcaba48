"""The mode picker: a button with the mode in force, in the colour of what may happen unasked, and a menu of all."""

from collections.abc import Sequence

from PySide6.QtCore import QPoint, Signal
from PySide6.QtGui import QActionGroup, QColor, QPalette
from PySide6.QtWidgets import QMenu, QWidget

from desktop_agent.vocabulary.conduct.modes import BREADTHS, DEFAULT_MODE, Mode
from ui.look.controls import announce
from ui.look.parts.folding_button import CollapsingButton
from ui.look.parts.mode_words import allows_more, mode_appearance, mode_description, mode_title
from ui.look.sentences import escape_mnemonics, plain_tooltip
from ui.look.theme import SPACE_XS, ThemeSource

MODE_SHORTCUT = "Ctrl+Shift+M"


class ModePicker(CollapsingButton):
    """Shows the mode, and the one that the agent asks for until that is decided."""

    mode_chosen = Signal(str)
    """A mode's name."""
    request_refused = Signal()

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(themes, parent)
        self._modes: tuple[Mode, ...] = (DEFAULT_MODE,)
        self._current = DEFAULT_MODE
        self._requested: Mode | None = None
        self._menu = QMenu(self)
        self._menu.setAccessibleName(self.tr("Mode"))
        self._group = QActionGroup(self._menu)
        self.setAccessibleName(self.tr("Mode"))
        self.clicked.connect(self.open_menu)
        themes.changed.connect(self._apply_theme)
        self._show()

    def show_modes(self, modes: Sequence[Mode], current: Mode, requested: Mode | None = None) -> None:
        """What can be chosen, what holds, and what the agent asks for."""
        now = (tuple(modes), current, requested)
        if now == (self._modes, self._current, self._requested):
            return
        is_other = current != self._current
        self._modes, self._current, self._requested = now
        self._show()
        if is_other:
            announce(self, self.tr("Mode: {0}").format(mode_title(current)))

    def open_menu(self) -> None:
        """Offer all of them: above the button, or below where the window has no room above."""
        self._fill_menu()
        above = -self._menu.sizeHint().height() - SPACE_XS
        has_room = self.mapTo(self.window(), QPoint(0, above)).y() >= 0
        self._menu.popup(self.mapToGlobal(QPoint(0, above if has_room else self.height() + SPACE_XS)))
        self._menu.setActiveAction(self._group.checkedAction())

    def _show(self) -> None:
        title, meaning = mode_title(self._current), mode_description(self._current)
        # A bare “Default” stands beside the reasoning's, which is another one.
        words = self.tr("Default mode") if self._current == DEFAULT_MODE else title
        if self._requested is not None:
            wish = mode_title(self._requested)
            words = self.tr("{0} → {1}?").format(title, wish)
            meaning += ". " + self.tr("The agent asks for the mode “{0}”.").format(wish)
        self.setText(" " + escape_mnemonics(words))
        self.setAccessibleDescription(self.tr("{0}: {1}").format(words, meaning))
        self.setToolTip(plain_tooltip(self.tr("Mode: {0}").format(words) + f" ({MODE_SHORTCUT})\n{meaning}"))
        self._fill_menu()
        self._apply_theme()

    def _fill_menu(self) -> None:
        # Under the pointer nothing moves: a click meant for one mode must not meet another.
        if self._menu.isVisible():
            return
        self._menu.clear()
        if self._requested is not None:
            wish, kept = escape_mnemonics(mode_title(self._requested)), escape_mnemonics(mode_title(self._current))
            name = self._requested.name
            now = self._menu.addAction(self.tr("Change to “{0}” now").format(wish))
            now.triggered.connect(lambda _checked=False: self.mode_chosen.emit(name))
            keep = self._menu.addAction(self.tr("Keep “{0}”").format(kept))
            keep.triggered.connect(lambda _checked=False: self.request_refused.emit())
            self._menu.addSeparator()
        for mode in sorted(self._modes, key=_mode_breadth):
            words = self.tr("{0}: {1}").format(mode_title(mode), mode_description(mode))
            action = self._menu.addAction(escape_mnemonics(words))
            action.setCheckable(True)
            action.setChecked(mode == self._current)
            action.triggered.connect(lambda _checked=False, name=mode.name: self.mode_chosen.emit(name))
            self._group.addAction(action)

    def _apply_theme(self) -> None:
        look = mode_appearance(self._current, self._themes.theme)
        self.draw(look.icon, look.colour)
        palette = self.palette()
        palette.setColor(QPalette.ColorRole.ButtonText, QColor(look.colour))
        self.setPalette(palette)


def _mode_breadth(mode: Mode) -> tuple[bool, int]:
    return allows_more(mode), BREADTHS.index(mode.mutating)
