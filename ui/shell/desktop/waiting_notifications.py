"""Notifications of what waits for a decision: tool calls, and requests of MCP servers."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal

from ui.bridge.desktop.notifications import DesktopNotifications, is_active
from ui.bridge.settings import Settings

_MAX_OF_GROUP = 3
"""Notifications shown of one group; further ones are shown as these are decided."""


@dataclass(frozen=True, slots=True)
class _Shown:
    group: str
    since: float


class WaitingNotifications(QObject):
    """One notification for each thing that begins to wait while the program is not in front, until it is decided.

    Each item that waits has an id and belongs to a group, such as a conversation: no group fills the screen.
    """

    activated = Signal(str, str)
    """The id of an item that still waits, and the action that the person chose."""

    def __init__(
        self,
        notifications: DesktopNotifications,
        settings: Settings,
        notify: Callable[[str], object],
        parent: QObject,
    ) -> None:
        """`notify` is called with the id of each item to notify of now; it calls `show`."""
        super().__init__(parent)
        self._notifications = notifications
        self._settings = settings
        self._notify = notify
        self._waiting: dict[str, str] = {}
        self._queued: list[str] = []
        self._shown: dict[str, _Shown] = {}
        notifications.activated.connect(self._on_activated)

    def update(self, waiting: Mapping[str, str]) -> None:
        """Set the items that wait now, in order: the group of each by its id."""
        for decided_id in self._shown.keys() - waiting.keys():
            self._withdraw(decided_id)
        new = [id_ for id_ in waiting if id_ not in self._waiting]
        self._waiting = dict(waiting)
        if new and not is_active() and self._settings.preferences.chat.notifications:
            self._queued += new
        self._queued = [id_ for id_ in self._queued if id_ in waiting]
        for id_ in tuple(self._queued):
            group = waiting[id_]
            if [shown.group for shown in self._shown.values()].count(group) < _MAX_OF_GROUP:
                self._queued.remove(id_)
                self._shown[id_] = _Shown(group, time.monotonic())
                self._notify(id_)

    def show(self, id_: str, title: str, text: str, actions: Sequence[tuple[str, str]]) -> None:
        """Show the notification, unless the item was decided or seen meanwhile."""
        if id_ in self._shown:
            self._shown[id_] = _Shown(self._shown[id_].group, time.monotonic())
            self._notifications.show(id_, title, text, actions)

    def shown_since(self, id_: str) -> float | None:
        """Return when its notification was shown, as `time.monotonic()`; None if it has none."""
        shown = self._shown.get(id_)
        return shown.since if shown is not None else None

    def forget(self, id_: str) -> None:
        """Treat an activated item as seen."""
        del self._shown[id_]

    def withdraw_group(self, group: str) -> None:
        """Remove the notifications of this group: the person sees what waits in it."""
        for id_ in [id_ for id_, shown in self._shown.items() if shown.group == group]:
            self._withdraw(id_)
        self._queued = [id_ for id_ in self._queued if self._waiting[id_] != group]

    def _on_activated(self, id_: str, action: str) -> None:
        if id_ in self._shown:
            self.activated.emit(id_, action)

    def _withdraw(self, id_: str) -> None:
        del self._shown[id_]
        self._notifications.withdraw(id_)
