"""When a dialog about what waits for the person opens: for tool calls, and for requests of MCP servers."""

from collections.abc import Callable
from collections.abc import Set as AbstractSet

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QDialog

from ui.bridge.desktop.notifications import is_active, on_application_state


class DialogOpening(QObject):
    """Opens the dialog by itself for what is new, as soon as the program is in front.

    A modal window takes the keyboard from whoever has it. What the person chose elsewhere is shown in any case.
    """

    def __init__(self, refresh: Callable[[], object], parent: QObject) -> None:
        """`refresh` is called when the program may have come to the front."""
        super().__init__(parent)
        self._seen: set[str] = set()
        self.wanted = ""
        """The id of what the person chose; it is shown as soon as it waits."""
        on_application_state(refresh)

    def update(self, dialog: QDialog, waiting: AbstractSet[str], show: Callable[[str], object]) -> None:
        """Open the dialog if it is time to; `show` shows what the person chose in it."""
        is_wanted = self.wanted in waiting
        if is_wanted:
            show(self.wanted)
            self.wanted = ""
        elif not is_active():
            return
        if (is_wanted or waiting - self._seen) and not dialog.isVisible():
            dialog.open()
        self._seen |= waiting
