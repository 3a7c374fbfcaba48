"""The icon in the tray: it shows what is in progress, and brings the window back."""

import asyncio
from collections.abc import Callable

from PySide6.QtCore import QObject, QRectF, Qt
from PySide6.QtGui import QAction, QColor, QIcon, QPainter, QPixmap
from PySide6.QtWidgets import QMenu, QSystemTrayIcon

from ui.bridge.library import ConversationLibrary
from ui.bridge.settings import Settings
from ui.shell.startup_window import StartupWindow
from ui.style.text import labelled
from ui.style.theme import DARK, app_icon

_EXPLAINED = "window/tray_explained"
_TRAY_SECONDS, _POLL_SECONDS = 5.0, 0.25
_ICON_SIZES = (16, 22, 24, 32, 48, 64)


def has_tray() -> bool:
    """Return whether the desktop has a tray now."""
    return QSystemTrayIcon.isSystemTrayAvailable()


class TrayPresenter(QObject):
    """The icon. If the preferences say so, the program runs on in the tray when its windows are closed."""

    def __init__(
        self,
        startup: StartupWindow,
        library: ConversationLibrary,
        settings: Settings,
        show_inbox: Callable[[], object],
        ask_quickly: Callable[[], object],
    ) -> None:
        super().__init__(startup)
        self._startup = startup
        self._library = library
        self._settings = settings
        self._show_inbox = show_inbox
        self._ask_quickly = ask_quickly
        self._state: tuple[bool, int, int] | None = None
        self._icon = QSystemTrayIcon(self)
        self._menu = QMenu(self.tr("Desktop Agent"))
        self._menu.setAccessibleName(self._menu.title())
        self._waiting = self._build_menu()
        self._icon.setContextMenu(self._menu)
        self._icon.activated.connect(self._on_activated)
        library.activity.changed.connect(self._refresh)
        library.waiting.changed.connect(self._refresh)
        library.requests.changed.connect(self._refresh)
        startup.window.stays_in_tray = self.stays_in_tray
        startup.window.left_in_tray.connect(self._explain)
        self._refresh()
        self.show_icon()

    async def wait_until_shown(self) -> bool:
        """Return whether there is a tray. At the start of a desktop it may come a little later than the program."""
        for _ in range(round(_TRAY_SECONDS / _POLL_SECONDS)):
            if self.show_icon():
                return True
            await asyncio.sleep(_POLL_SECONDS)
        return self.show_icon()

    def close(self) -> None:
        """Remove the icon: the program ends. The end of runs is not shown any more."""
        self._library.activity.changed.disconnect(self._refresh)
        self._library.waiting.changed.disconnect(self._refresh)
        self._library.requests.changed.disconnect(self._refresh)
        self._icon.hide()
        self._menu.deleteLater()

    def _build_menu(self) -> QAction:
        """Build the menu; return the action whose text shows how many calls wait."""

        def add(text: str, command: Callable[[], object]) -> QAction:
            action = self._menu.addAction(text)
            action.triggered.connect(lambda _checked=False: command())
            return action

        self._menu.setDefaultAction(add(self.tr("Show"), self._startup.raise_window))
        add(self.tr("New conversation"), self._begin)
        add(self.tr("Quick question"), self._ask_quickly)
        waiting = add(self.tr("Waiting approvals"), self._open_inbox)
        self._menu.addSeparator()
        add(self.tr("Quit"), self._startup.window.quit)
        return waiting

    def _begin(self) -> None:
        self._startup.raise_window()
        self._startup.window.sidebar.new_requested.emit()

    def _open_inbox(self) -> None:
        self._startup.raise_window()
        self._show_inbox()

    def _on_activated(self, reason: QSystemTrayIcon.ActivationReason) -> None:
        if reason in {QSystemTrayIcon.ActivationReason.Trigger, QSystemTrayIcon.ActivationReason.DoubleClick}:
            self._startup.raise_window()

    def stays_in_tray(self) -> bool:
        """Return whether the program runs on when its windows are closed."""
        return self._settings.preferences.chat.close_to_tray and self.show_icon()

    def show_icon(self) -> bool:
        """Show the icon if there is a tray; return whether there is one."""
        is_possible = has_tray()
        if is_possible and not self._icon.isVisible():
            self._icon.show()
        return is_possible

    def _explain(self) -> None:
        """Say, the first time only, that the window is in the tray."""
        if self._startup.state_file.text(_EXPLAINED).lower() == "true":
            return
        self._startup.state_file.save({_EXPLAINED: True})
        words = self.tr("The window is closed, and Desktop Agent goes on. Its icon in the tray brings the window back.")
        self._icon.showMessage(self.tr("Desktop Agent"), words, app_icon())

    def _refresh(self) -> None:
        is_working, waiting = bool(self._library.working_sessions), self._library.waiting.count
        questions = len(self._library.requests.waiting)
        if (is_working, waiting, questions) == self._state:
            return
        self._state = is_working, waiting, questions
        self._icon.setIcon(tray_icon(is_working=is_working, is_waiting=waiting + questions > 0))
        words = [self.tr("Desktop Agent")]
        if is_working:
            words.append(self.tr("The model is working."))
        if waiting:
            words.append(self.tr("Calls that wait for you: {0}").format(waiting))
        if questions:
            words.append(self.tr("Questions of MCP servers that wait for you: {0}").format(questions))
        self._icon.setToolTip("\n".join(words))
        name = self.tr("Waiting approvals")
        self._waiting.setText(labelled(name, str(waiting)) if waiting else name)


def tray_icon(*, is_working: bool, is_waiting: bool) -> QIcon:
    """Return the program's icon, with a square if something waits for the person, or a dot while a model works."""
    plain = app_icon()
    if not (is_working or is_waiting):
        return plain
    result = QIcon()
    for size in _ICON_SIZES:
        drawing = QPixmap(size, size)
        drawing.fill(QColor(0, 0, 0, 0))
        painter = QPainter(drawing)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.drawPixmap(0, 0, plain.pixmap(size, size))
        side = size * 0.44
        corner = QRectF(size - side, size - side, side, side)
        painter.setPen(Qt.PenStyle.NoPen)
        # A dark edge, so that the mark stands out on the icon.
        painter.setBrush(QColor(DARK.window))
        painter.drawEllipse(corner)
        painter.setBrush(QColor(DARK.warning if is_waiting else DARK.accent))
        inner = corner.adjusted(size / 16, size / 16, -size / 16, -size / 16)
        # Shapes differ, not only colours.
        if is_waiting:
            painter.drawRoundedRect(inner, size / 32, size / 32)
        else:
            painter.drawEllipse(inner)
        painter.end()
        result.addPixmap(drawing)
    return result
