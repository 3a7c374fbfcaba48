"""An action of the window: what it is called, its keys, its place in the menus, and whether it applies now."""

from collections.abc import Callable, Mapping, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from ui.style.text import native_shortcut


def always() -> bool:
    """Return True: an action that applies at any time."""
    return True


class WindowAction(QAction):
    """An action that palette, menu bar and settings list. It adds itself to the window.

    `name` stays the same in every language: changed keys are stored under it. `place` is the menu and the section in
    it, such as "file/new". `synonyms` are other words, separated by spaces, under which people look for it.
    `is_numbered`: one of a series such as Ctrl+1 to Ctrl+9, which is no use in a list of commands. `applies` returns
    whether it does anything now; menus show it disabled otherwise.
    """

    def __init__(
        self,
        window: QWidget,
        place: str,
        name: str,
        text: str,
        keys: str | QKeySequence.StandardKey | None = None,
        command: Callable[[], object] = lambda: None,
        synonyms: str = "",
        applies: Callable[[], bool] = always,
    ) -> None:
        super().__init__(text, window)
        self.menu_name, self.section = place.split("/")
        self.name = name
        self.synonyms = synonyms
        self.is_numbered = False
        self.applies = applies
        self.undo: WindowAction | None = None
        """The action that reverses this one, such as Unpin for Pin."""
        self.undone: WindowAction | None = None
        """The action that this one reverses."""
        self.default_keys = "" if keys is None else QKeySequence(keys).toString()
        self.setShortcut(self.default_keys)
        # Otherwise Qt guesses the role from the text, and takes several actions for the settings of the program.
        self.setMenuRole(QAction.MenuRole.NoRole)
        self.triggered.connect(lambda _checked=False: command())
        window.addAction(self)

    @property
    def is_listed(self) -> bool:
        """Whether menus and the palette show it. Of an action and its undo they show the one that applies."""
        if self.undone is not None:
            return self.applies() and not self.undone.applies()
        return self.undo is None or not self.undo.is_listed

    @property
    def keys(self) -> str:
        """Its keys in Qt's portable form, or ""."""
        return self.shortcut().toString()

    @property
    def is_handled_elsewhere(self) -> bool:
        """Whether one part of the window handles its keys, see `show_keys`."""
        return self.shortcutContext() is Qt.ShortcutContext.WidgetShortcut

    @property
    def shown_keys(self) -> str:
        """Its keys as text in the person's language, or ""."""
        return native_shortcut(self.keys)

    def show_keys(self, keys: str) -> None:
        """Show keys that one part of the window handles itself: they are in lists and menus, and trigger nothing."""
        # This context triggers only while the window itself has the focus, which it never has.
        self.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        self.setShortcut(keys)


def apply_shortcuts(actions: Sequence[WindowAction], changed: Mapping[str, str]) -> None:
    """Give actions the keys that the person chose, by the action's name, and the others their default unless taken."""
    changeable = [action for action in actions if not action.is_handled_elsewhere]
    chosen: dict[str, str] = {}
    for action in changeable:
        keys = changed.get(action.name)
        if keys is not None and (not keys or keys not in chosen.values()):
            chosen[action.name] = keys
    taken = set(chosen.values())
    for action in changeable:
        default = "" if action.default_keys in taken else action.default_keys
        action.setShortcut(chosen.get(action.name, default))


def window_actions(window: QWidget) -> list[WindowAction]:
    """Return all actions of a window, in the order in which they were added."""
    return [action for action in window.actions() if isinstance(action, WindowAction)]


def listed_actions(window: QWidget) -> list[WindowAction]:
    """Return the actions of a window without those of a series."""
    return [action for action in window_actions(window) if not action.is_numbered]


def numbered_actions(window: QWidget) -> list[WindowAction]:
    """Return the actions of the series."""
    return [action for action in window_actions(window) if action.is_numbered]
