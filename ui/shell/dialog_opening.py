"""Decides when the dialog of waiting tool calls, or of requests of MCP servers, opens by itself."""

from collections.abc import Callable
from collections.abc import Set as AbstractSet

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QDialog

from ui.bridge.desktop.notifications import is_active, on_application_state


class DialogOpening(QObject):
    """Opens the dialog by itself for new items, as soon as the program is in front.

    Before that, a modal window would take the focus from another program. An item that the person chose is shown at
    once.
    """

    def __init__(self, refresh: Callable[[], object], parent: QObject) -> None:
        """`refresh` is called when the program may have come to the front."""
        super().__init__(parent)
        self._seen: set[str] = set()
        self.wanted = ""
        """The id of the item that the person chose; it is shown as soon as it waits."""
        on_application_state(refresh)

    def update(self, dialog: QDialog, waiting: AbstractSet[str], show: Callable[[str], object]) -> None:
        """Open the dialog if it may open now; `show` turns it to the item that the person chose."""
        is_chosen = self.wanted in waiting
        if is_chosen:
            show(self.wanted)
            self.wanted = ""
        elif not is_active():
            return
        if (is_chosen or waiting - self._seen) and not dialog.isVisible():
            dialog.open()
        self._seen |= waiting
