"""The workspace picker: the folder in which the agent may work, or none."""

from pathlib import Path

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtWidgets import QFileDialog, QMenu, QWidget

from ui.look.parts.folding_button import CollapsingButton
from ui.look.sentences import escape_mnemonics, plain_tooltip
from ui.look.theme import ThemeSource
from ui.look.visible_text import show_hidden


class WorkspacePicker(CollapsingButton):
    """Shows and changes the folder. Without one the agent has no file tools."""

    folder_chosen = Signal(object, str)
    """A Path, or None for no folder; and for which conversation: another one may be shown since the choice began."""

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(themes, parent)
        self._folder: Path | None = None
        self._conversation_id = self._requested_conversation_id = ""
        self._menu = QMenu(self)
        self._menu.setAccessibleName(self.tr("Workspace folder"))
        self._menu.addAction(self.tr("Choose folder…"), self.choose_folder)
        self._none = self._menu.addAction(self.tr("No folder"), self._choose_none)
        self.setAccessibleName(self.tr("Workspace folder"))
        self.clicked.connect(self.open_menu)
        themes.changed.connect(self._apply_theme)
        self._apply_theme()
        self.set_folder(None)

    def set_folder(self, folder: Path | None, conversation_id: str = "") -> None:
        """The folder in use, and whose it is."""
        self._folder, self._conversation_id = folder, conversation_id
        # Of a name that is no UTF-8, Qt would drop all from there on.
        path = "" if folder is None else show_hidden(str(folder))
        words = self.tr("No folder") if folder is None else show_hidden(folder.name) or path
        self.setText(" " + escape_mnemonics(words))
        self.setAccessibleDescription(path or words)
        tip = path or f"{words}\n" + self.tr("The agent works without files.")
        self.setToolTip(plain_tooltip(tip))
        self._none.setEnabled(folder is not None)

    def open_menu(self) -> None:
        """Offer a folder or none."""
        self._menu.popup(self.mapToGlobal(QPoint(0, -self._menu.sizeHint().height())))

    def choose_folder(self) -> None:
        """Ask for a folder, without waiting."""
        dialog = QFileDialog(self, self.tr("Choose the workspace folder"), str(self._folder or Path.home()))
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        dialog.fileSelected.connect(self._on_folder_chosen)
        self._requested_conversation_id = self._conversation_id
        dialog.open()

    def _on_folder_chosen(self, folder: str) -> None:
        self.folder_chosen.emit(Path(folder), self._requested_conversation_id)

    def _choose_none(self) -> None:
        self.folder_chosen.emit(None, self._conversation_id)

    def _apply_theme(self) -> None:
        self.draw("folder", self._themes.theme.text)
