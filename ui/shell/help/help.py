"""Opens the help: made when it is first wanted, shown beside the window, in the way of nothing."""

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from ui.bridge.pictures import PictureStore
from ui.look.theme import ThemeSource

if TYPE_CHECKING:
    from ui.shell.help.help_dialog import HelpDialog


class HelpPresenter(QObject):
    """Of one window, whose actions it lists."""

    def __init__(self, themes: ThemeSource, pictures: PictureStore, data_folder: Path, window: QWidget) -> None:
        super().__init__(window)
        self._themes = themes
        self._pictures = pictures
        self._data_folder = data_folder
        self._window = window
        self._dialog: HelpDialog | None = None

    def show_guide(self) -> None:
        """How the program is used."""
        self._open_dialog().turn_to("guide")

    def show_shortcuts(self) -> None:
        """All actions that have keys."""
        self._open_dialog().turn_to("shortcuts")

    def show_about(self) -> None:
        """Version, licence, and where the data is."""
        self._open_dialog().turn_to("about")

    def close(self) -> None:
        """End what the guide is drawn with: the program ends."""
        if self._dialog is not None:
            self._dialog.guide.close_workers()
            self._dialog.close()

    def _open_dialog(self) -> "HelpDialog":
        if self._dialog is None:
            from ui.shell.help.help_dialog import HelpDialog

            self._dialog = HelpDialog(self._themes, self._pictures, self._data_folder, self._window)
        self._dialog.show()
        self._dialog.raise_()
        self._dialog.activateWindow()
        return self._dialog
