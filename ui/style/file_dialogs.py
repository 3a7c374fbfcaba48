"""Dialogs that ask for a file or a folder, without waiting for it."""

from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QWidget


def ask_folder(parent: QWidget, title: str, start: str, on_chosen: Callable[[Path], object]) -> QFileDialog:
    """Ask for a folder, beginning at the path `start`; `on_chosen` gets its path."""
    dialog = _prepare(QFileDialog(parent, title, start), QFileDialog.FileMode.Directory, on_chosen)
    dialog.setOption(QFileDialog.Option.ShowDirsOnly)
    dialog.open()
    return dialog


def ask_file(parent: QWidget, title: str, filters: Sequence[str], on_chosen: Callable[[Path], object]) -> None:
    """Ask for a file of one of these kinds; `on_chosen` gets its path."""
    dialog = _prepare(QFileDialog(parent, title), QFileDialog.FileMode.ExistingFile, on_chosen)
    dialog.setNameFilters(filters)
    dialog.open()


def _prepare(dialog: QFileDialog, mode: QFileDialog.FileMode, on_chosen: Callable[[Path], object]) -> QFileDialog:
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.setFileMode(mode)

    def on_selected(path: str) -> None:
        on_chosen(Path(path))

    dialog.fileSelected.connect(on_selected)
    return dialog
