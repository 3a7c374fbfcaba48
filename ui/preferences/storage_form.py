"""The page of storage: where conversations are saved, how much that is, a check, and backups."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFileDialog, QListWidget, QListWidgetItem, QWidget

from desktop_agent.types.errors import Sentence
from desktop_agent.types.messages import now
from ui.bridge.storage import Backup, StoredCounts
from ui.style.boxes import hbox, vbox
from ui.style.controls import button, label
from ui.style.layouts import FlowRows
from ui.style.list_rows import RowDelegate, RowRole
from ui.style.server_fields import Status, StatusLine
from ui.style.text import format_bytes
from ui.style.text_display import exact_date
from ui.style.theme import SPACE_L, SPACE_M, SPACE_S, ThemeSource

_FOLDER_ROLE = Qt.ItemDataRole.UserRole + 20
_MAX_LIST_HEIGHT = 200
"""Pixels."""


class StorageSettings(QWidget):
    """The data folder, its last check, and its backups."""

    check_requested = Signal()
    folder_requested = Signal()
    """Show the data folder in the file manager."""
    backup_requested = Signal()
    restore_requested = Signal(object, object)
    """The Path of a backup, and that of a new folder."""

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._folder = label(wrap=True)
        self._size = label(kind="muted", wrap=True)
        self._last_check = label(kind="muted", wrap=True)
        self._check_state = StatusLine(themes)
        self._check = button(self.tr("Check now"), self.check_requested.emit)
        self._open_folder = button(self.tr("Open folder"), self.folder_requested.emit)
        self._backup = button(self.tr("Back up now"), self.backup_requested.emit, "primary")
        self._restore = button(self.tr("Restore into a new folder…"), self._choose_folder)
        self._backup_state = StatusLine(themes)
        self._backups = QListWidget()
        self._no_backups = label(self.tr("There is no backup yet."), "muted")
        self._dialog: QFileDialog | None = None
        self._is_busy = False
        self._build(themes)
        self.show_last_check(None)
        self.show_backups(())

    def show_folder(self, folder: str) -> None:
        """Show the path of the data folder."""
        self._folder.setText(folder)

    def show_size(self, counts: StoredCounts, size: int) -> None:
        """Show how much is stored; `size` is in bytes."""
        words = self.tr("Conversations: {0}, in the trash: {1}, messages: {2}, on the disk: {3}")
        self._size.setText(words.format(counts.conversations, counts.in_trash, counts.messages, format_bytes(size)))

    def show_last_check(self, moment: datetime | None) -> None:
        """Show when the last check found nothing wrong; None: never."""
        if moment is None:
            self._last_check.setText(self.tr("Not checked yet."))
        else:
            self._last_check.setText(self.tr("Checked last: {0}").format(exact_date(moment, now())))

    def show_checking(self) -> None:
        """Show that a check is running."""
        self._check.setEnabled(False)
        self._check_state.show_state(Status.BUSY, self.tr("Checking…"))

    def show_result(self, sentence: Sentence, *, is_whole: bool) -> None:
        """Show the result of a check."""
        self._check.setEnabled(True)
        self._check_state.show_state(Status.OK if is_whole else Status.ERROR, sentence)

    def show_backups(self, backups: Sequence[Backup]) -> None:
        """Show the backups, the newest first; a new one is selected."""
        selected, count = self._selected_backup(), self._backups.count()
        self._backups.clear()
        for backup in backups:
            self._backups.addItem(self._backup_item(backup))
        folders = [backup.folder for backup in backups]
        is_known = selected in folders and len(folders) <= count
        self._backups.setCurrentRow(folders.index(selected) if is_known and selected is not None else 0)
        rows = self._backups.sizeHintForRow(0) * len(backups) + 2 * self._backups.frameWidth()
        self._backups.setFixedHeight(min(rows, _MAX_LIST_HEIGHT))
        self._backups.setVisible(bool(backups))
        self._no_backups.setVisible(not backups)
        self._refresh()

    def show_backing_up(self, sentence: Sentence) -> None:
        """Show that a backup is being written or restored."""
        self._is_busy = True
        self._backup_state.show_state(Status.BUSY, sentence)
        self._refresh()

    def show_backed_up(self, sentence: Sentence, *, went_well: bool) -> None:
        """Show how a backup or a restore ended."""
        self._is_busy = False
        self._backup_state.show_state(Status.OK if went_well else Status.ERROR, sentence)
        self._refresh()

    def _backup_item(self, backup: Backup) -> QListWidgetItem:
        when, counts = exact_date(backup.created_at, now()), backup.counts
        words = self.tr("Conversations: {0}, messages: {1}").format(
            counts.conversations + counts.in_trash, counts.messages
        )
        item = QListWidgetItem(when)
        item.setData(_FOLDER_ROLE, backup.folder)
        item.setData(RowRole.SUBTITLE, words)
        item.setData(RowRole.DETAIL, format_bytes(backup.size))
        item.setData(Qt.ItemDataRole.ToolTipRole, str(backup.folder))
        spoken = self.tr("Backup of {0}: {1}, {2}").format(when, words, format_bytes(backup.size))
        item.setData(Qt.ItemDataRole.AccessibleTextRole, spoken)
        return item

    def _selected_backup(self) -> Path | None:
        return next((item.data(_FOLDER_ROLE) for item in self._backups.selectedItems()), None)

    def _choose_folder(self) -> None:
        backup = self._selected_backup()
        if backup is None or self._dialog is not None:
            return
        dialog = self._dialog = QFileDialog(self, self.tr("Restore into an empty folder"), str(Path.home()))
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        dialog.fileSelected.connect(partial(self._request_restore, backup))
        dialog.finished.connect(self._on_dialog_closed)
        dialog.open()

    def _request_restore(self, backup: Path, folder: str) -> None:
        self.restore_requested.emit(backup, Path(folder))

    def _on_dialog_closed(self) -> None:
        self._dialog = None

    def _refresh(self) -> None:
        self._backup.setEnabled(not self._is_busy)
        self._restore.setEnabled(not self._is_busy and bool(self._backups.selectedItems()))
        self._restore.setVisible(self._backups.count() > 0)

    def _build(self, themes: ThemeSource) -> None:
        self._folder.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self._folder.setAccessibleName(self.tr("Data folder"))
        self._size.setAccessibleName(self.tr("What is stored"))
        self._check.setToolTip(self.tr("Reads all that was saved, and repairs what can be"))
        self._backups.setAccessibleName(self.tr("Backups"))
        self._backups.setItemDelegate(RowDelegate(themes, self._backups))
        self._backups.itemSelectionChanged.connect(self._refresh)
        about = self.tr(
            "Conversations, pictures and preferences are in one folder of this computer. The conversations are checked "
            "now and then while nobody waits."
        )
        about_backups = self.tr(
            "A backup holds conversations, pictures, saved files and preferences; keys stay in the keyring. It is "
            "restored into a new folder, so nothing that is here is overwritten."
        )
        vbox(
            label(about, "muted", wrap=True),
            vbox(self._folder, self._size, spacing=SPACE_S, margins=0),
            FlowRows((self._open_folder, self._check)),
            self._last_check,
            self._check_state,
            hbox(label(self.tr("Backups"), "heading"), margins=(0, SPACE_L, 0, 0)),
            label(about_backups, "muted", wrap=True),
            self._no_backups,
            self._backups,
            FlowRows((self._backup, self._restore)),
            self._backup_state,
            parent=self,
            spacing=SPACE_M,
            margins=0,
            end_stretch=True,
        )
