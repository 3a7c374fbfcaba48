"""The menu bar: every action of the window. Unless it is always shown, Alt and F10 show it for a moment."""

from functools import partial

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtGui import QAction, QFocusEvent, QKeySequence, QResizeEvent, QShortcutEvent
from PySide6.QtWidgets import QApplication, QMainWindow, QMenu, QMenuBar, QToolButton, QWidget
from shiboken6 import isValid

from desktop_agent.types.preferences import Preferences
from ui.bridge.settings import Settings
from ui.shell.commands.action import WindowAction, window_actions

_MAX_HEIGHT = (1 << 24) - 1
"""QWIDGETSIZE_MAX."""
_DELAY_MS = 500
"""Delay before the hidden bar is built: the first conversation comes first."""


class _MoreButtonFilter(QObject):
    """Hides the button for menus that have no room as well, while the bar has no height.

    The bar cannot do this itself: Qt sends it every event of the window, also those of each frame.
    """

    def __init__(self, bar: QMenuBar) -> None:
        super().__init__(bar)
        self._bar = bar

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Show and isinstance(watched, QToolButton) and self._bar.height() == 0:
            watched.hide()
        return False


class MenuBar(QMenuBar):
    """The actions of a window in menus. Hidden means a height of 0, so that Qt still handles Alt and the mnemonics.

    The bar has the focus only while a menu is open, and then returns it to the widget that had it. Qt forgets this
    widget if the window manager takes the focus for a moment when Alt is pressed.
    """

    def __init__(self, window: QMainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._is_permanent = False
        self._menus: list[QMenu] = []
        self._is_closing = False
        """Whether a menu has just closed, for which Qt gives the focus to the bar."""
        self._previous_focus: QWidget | None = None
        """The widget that had the focus before the bar."""
        self.setAccessibleName(self.tr("Menu bar"))
        actions = window_actions(window)
        for name, title in (
            ("file", self.tr("&File")),
            ("edit", self.tr("&Edit")),
            ("view", self.tr("&View")),
            ("conversation", self.tr("&Conversation")),
            ("message", self.tr("&Message")),
            ("help", self.tr("&Help")),
        ):
            self._fill(self.addMenu(title), [action for action in actions if action.menu_name == name])
        for more in self.findChildren(QToolButton):
            more.setAccessibleName(self.tr("More menus"))
            more.installEventFilter(_MoreButtonFilter(self))
        self._fit()
        window.setMenuBar(self)
        # The layout would show it in a later event, and Alt would be lost until then.
        self.show()
        # The first child of the window, for assistive technology.
        self.lower()
        app = QApplication.instance()
        if isinstance(app, QApplication):
            app.focusChanged.connect(self._on_focus)

    def set_permanent(self, *, permanent: bool) -> None:
        """Set whether it is always shown."""
        self._is_permanent = permanent
        self._fit()

    def open_first(self) -> None:
        """Open the first menu, also in place of one that is open."""
        self._open(self.actions()[0])

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        for more in self.findChildren(QToolButton):
            more.setHidden(more.isHidden() or self.height() == 0)

    def event(self, event: QEvent) -> bool:
        """Show the bar before a letter opens one of its menus: growing afterwards would close the menu."""
        if self.height() == 0 and isinstance(event, QShortcutEvent):
            for action in self.actions():
                if QKeySequence.mnemonic(action.text()) == event.key():
                    self._open(action)
                    return True
        return super().event(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        is_alt = event.reason() is Qt.FocusReason.MenuBarFocusReason and not self._is_closing
        QTimer.singleShot(0, self, self.open_first if is_alt else self._leave)

    def _fill(self, menu: QMenu, actions: list[WindowAction]) -> None:
        menu.setAccessibleName(menu.title().replace("&", ""))
        self._menus.append(menu)
        section, series = "", None
        for action in actions:
            if section and section != action.section:
                menu.addSeparator()
            section = action.section
            if not action.is_numbered:
                menu.addAction(action)
                continue
            if series is None:
                series = menu.addMenu(self.tr("Go to conversation"))
                series.setAccessibleName(series.title())
            series.addAction(action)
        # Assistive technology triggers an action and leaves the menu open.
        menu.triggered.connect(menu.hide)
        menu.aboutToShow.connect(partial(self._on_opened, menu))
        menu.aboutToHide.connect(partial(self._on_closed, menu))

    def _open(self, menu: QAction) -> None:
        self._set_shown(shown=True)
        self.setActiveAction(menu)

    def _on_opened(self, menu: QMenu) -> None:
        for action in menu.actions():
            if isinstance(action, WindowAction):
                action.setEnabled(action.applies())
                action.setVisible(action.is_listed)

    def _on_closed(self, menu: QMenu) -> None:
        self._is_closing = True
        # At once: the keys of a disabled or hidden action do nothing, although it may apply in the next moment.
        for action in menu.actions():
            action.setEnabled(True)
            action.setVisible(True)
        QTimer.singleShot(0, self, self._leave)

    def _on_focus(self, previous: QWidget | None, current: QWidget | None) -> None:
        if current is self and previous is not None:
            self._previous_focus = previous

    def _leave(self) -> None:
        """Return the focus and hide the bar, unless a menu is open."""
        self._is_closing = False
        if self._is_open:
            return
        if self._window.focusWidget() is self and self._previous_focus is not None and isValid(self._previous_focus):
            self._previous_focus.setFocus(Qt.FocusReason.MenuBarFocusReason)
        self._fit()

    @property
    def _is_open(self) -> bool:
        return any(menu.isVisible() for menu in self._menus)

    def _fit(self) -> None:
        self._set_shown(shown=self._is_permanent or self._is_open)

    def _set_shown(self, *, shown: bool) -> None:
        max_height = _MAX_HEIGHT if shown or self.isNativeMenuBar() else 0
        layout = self._window.layout()
        if max_height != self.maximumHeight() and layout is not None:
            self.setMaximumHeight(max_height)
            layout.activate()


class MenuBarPresenter(QObject):
    """Builds the menu bar once the window has its actions, and shows it as the preferences say."""

    def __init__(self, window: QMainWindow, settings: Settings) -> None:
        super().__init__(window)
        self._window = window
        self._settings = settings
        self._bar: MenuBar | None = None
        settings.changed.connect(self._on_preferences)
        # Never immediately: the window is still getting its actions.
        QTimer.singleShot(0 if settings.preferences.appearance.menu_bar else _DELAY_MS, self, self.build)

    def open(self) -> None:
        """Open the first menu."""
        self.build().open_first()

    def build(self) -> MenuBar:
        """Return the menu bar; build it if there is none yet."""
        if self._bar is None:
            self._bar = MenuBar(self._window)
            self._on_preferences(self._settings.preferences)
        return self._bar

    def _on_preferences(self, preferences: Preferences) -> None:
        if preferences.appearance.menu_bar:
            self.build()
        if self._bar is not None:
            self._bar.set_permanent(permanent=preferences.appearance.menu_bar)
