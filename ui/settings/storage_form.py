"""The page of storage: where conversations are saved, their size, a check, and backups."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QFileDialog, QWidget

from desktop_agent.types.errors import Sentence
from desktop_agent.types.messages import now
from ui.bridge.backups import Backup, MigrationCopy, StoredCounts
from ui.bridge.desktop.opening import AddressOpener
from ui.bridge.event_loop import BackgroundTasks
from ui.bridge.single_instance import start_program
from ui.bridge.storage import DiskMonitor
from ui.style.boxes import hbox, vbox
from ui.style.controls import FocusReturn, button, label, set_style_property
from ui.style.entry_list import Entry, EntryList
from ui.style.file_dialogs import ask_folder
from ui.style.layouts import FlowRows
from ui.style.removal import clear_layout
from ui.style.server_fields import Status, StatusLine
from ui.style.text import format_bytes
from ui.style.text_display import exact_date
from ui.style.theme import SPACE_L, SPACE_M, SPACE_S, ThemeSource
from ui.style.widgets import QuestionBox

_MAX_LIST_HEIGHT = 200
"""Pixels."""


class StorageSettings(QWidget):
    """The data folder, its last check, and its backups."""

    def __init__(self, themes: ThemeSource, form: QWidget, disk: DiskMonitor, tasks: BackgroundTasks) -> None:
        super().__init__()
        self._themes = themes
        self._disk = disk
        self._tasks = tasks
        self._opener = AddressOpener(self)
        self._folder = label(disk.folder, wrap=True)
        self._size = label(kind="muted", wrap=True)
        self._last_check = label(kind="muted", wrap=True)
        self._check_state = StatusLine(themes)
        self._check = button(self.tr("Check now"), disk.check)
        self._open_folder = button(self.tr("Open folder"), lambda: self._opener.open_folder(Path(disk.folder)))
        self._backup = button(self.tr("Back up now"), disk.backups.back_up, "primary")
        self._restore = button(self.tr("Restore into a new folder…"), self._choose_folder)
        self._delete = button(self.tr("Delete backup…"), self._delete_backup)
        self._compact = button(self.tr("Compact"), self._request_compacting)
        self._cancel_compacting = button(self.tr("Cancel compacting"), disk.backups.cancel)
        self._cancel = button(self.tr("Cancel"), disk.backups.cancel)
        self._open_program = button(self.tr("Open the restored folder"), self._request_program, "primary")
        self._backup_state = StatusLine(themes)
        self._backups = EntryList(themes, self.tr("Backups"))
        self._copies = _MigrationCopies(disk.backups.open_copy, self._delete_copy)
        self._new_folder: Path | None = None
        self._no_backups = label(self.tr("There is no backup yet."), "muted", wrap=True)
        self._dialog: QFileDialog | None = None
        self._is_busy = self._is_compacting = self._is_checking = False
        self._focus = FocusReturn(self)
        self._build(form)
        # Otherwise the longest button would set the width of all, instead of breaking its words.
        self.setMinimumWidth(SPACE_L)
        self.show_last_check(None)
        self.show_backups(())
        self._connect(disk)

    def refresh(self) -> None:
        """Show what is stored now."""
        self._tasks.start(self._count())
        self._disk.backups.refresh()

    async def _count(self) -> None:
        self.show_last_check(await self._disk.last_check())
        self.show_size(*await self._disk.count())

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
        self._is_checking = True
        self._check_state.show_state(Status.BUSY, self.tr("Checking…"))
        self._refresh()

    def show_result(self, sentence: Sentence, is_whole: bool) -> None:  # noqa: FBT001  a slot
        """Show the result of a check."""
        self._is_checking = False
        self._check_state.show_state(Status.OK if is_whole else Status.ERROR, sentence)
        self._refresh()
        self._tasks.start(self._count())

    def show_backups(self, backups: Sequence[Backup]) -> None:
        """Show the backups, the newest first; a new one is selected, unless the program wrote it by itself."""
        selected, count = self._backups.selected_id, self._backups.count()
        self._backups.show_entries([self._entry(backup) for backup in backups])
        is_new = len(backups) > count and not backups[0].is_automatic
        self._backups.select(None if is_new else selected)
        rows = self._backups.sizeHintForRow(0) * len(backups) + 2 * self._backups.frameWidth()
        self._backups.setFixedHeight(min(rows, _MAX_LIST_HEIGHT))
        self._backups.setVisible(bool(backups))
        self._no_backups.setVisible(not backups)
        self._refresh()

    def show_begun(self, sentence: Sentence) -> None:
        """Show what has begun."""
        self._is_busy = True
        # Compacting has its own status line; that of the backups still shows what was restored.
        if not self._is_compacting:
            self._new_folder = None
        self._work_state.show_state(Status.BUSY, sentence)
        self._refresh()

    def offer_program(self, folder: Path) -> None:
        """Offer to start the program with a restored folder."""
        self._new_folder = folder

    def show_done(self, sentence: Sentence, went_well: bool) -> None:  # noqa: FBT001  a slot
        """Show how the work ended."""
        self._work_state.show_state(Status.OK if went_well else Status.ERROR, sentence)
        self._is_busy = self._is_compacting = False
        self._refresh()
        self._tasks.start(self._count())

    @property
    def _work_state(self) -> StatusLine:
        """The line beside the button with which the work was begun."""
        return self._check_state if self._is_compacting else self._backup_state

    def _request_compacting(self) -> None:
        self._is_compacting = True
        self._disk.backups.compact()

    def _entry(self, backup: Backup) -> Entry:
        when, counts = exact_date(backup.created_at, now()), backup.counts
        words = _counts_text(counts)
        if backup.is_automatic:
            words = self.tr("Automatic. {0}").format(words)
        size, folder = format_bytes(backup.size), str(backup.folder)
        spoken = self.tr("Backup of {0}: {1}, {2}").format(when, words, size)
        return Entry(id=folder, title=when, subtitle=words, detail=size, spoken=spoken, tip=folder)

    def _choose_folder(self) -> None:
        backup = self._backups.selected_id
        if backup is None or self._dialog is not None:
            return
        self._dialog = _ask_new_folder(self, partial(self._disk.backups.restore, Path(backup)))
        self._dialog.finished.connect(self._on_dialog_closed)

    def _delete_backup(self) -> None:
        backup = self._backups.selected_id
        if backup is not None:
            words = self.tr("It cannot be brought back. Conversations and other backups stay.")
            self._ask(self.tr("Delete this backup?"), words, partial(self._disk.backups.delete, Path(backup)))

    def _delete_copy(self, path: Path) -> None:
        words = self.tr("It cannot be brought back. Your current conversations stay.")
        question = self.tr("Delete the copy that was made before an upgrade?")
        self._ask(question, words, partial(self._disk.backups.delete, path))

    def _ask(self, question: str, words: str, delete: Callable[[], object]) -> None:
        box = QuestionBox(self._themes, self.tr("Delete backup"), question, words, self)
        box.add_answer(self.tr("Keep"), "")
        box.add_answer(self.tr("Delete for good"), "delete", "danger")
        box.accepted.connect(delete)
        box.open()

    def _request_program(self) -> None:
        if self._new_folder is not None:
            start_program(self._new_folder)

    def _on_dialog_closed(self) -> None:
        self._dialog = None

    def _refresh(self) -> None:
        with self._focus.kept(self._cancel_compacting if self._is_compacting else self._cancel):
            self._update_buttons()

    def _update_buttons(self) -> None:
        self._backup.setEnabled(not self._is_busy)
        self._restore.setEnabled(not self._is_busy and bool(self._backups.selectedItems()))
        self._restore.setVisible(self._backups.count() > 0)
        self._delete.setEnabled(self._restore.isEnabled())
        self._delete.setVisible(self._backups.count() > 0)
        self._compact.setEnabled(not self._is_busy)
        self._check.setEnabled(not self._is_checking and not self._is_compacting)
        self._cancel.setVisible(self._is_busy and not self._is_compacting)
        self._cancel_compacting.setVisible(self._is_compacting)
        self._copies.setEnabled(not self._is_busy)
        offers_program = self._new_folder is not None and not self._is_busy
        self._open_program.setVisible(offers_program)
        # One primary action at a time.
        set_style_property(self._backup, "kind", "" if offers_program else "primary")

    def _connect(self, disk: DiskMonitor) -> None:
        disk.checking.connect(self.show_checking)
        disk.checked.connect(self.show_result)
        disk.backups.changed.connect(self.show_backups)
        disk.backups.copies_changed.connect(self._copies.show_copies)
        disk.backups.begun.connect(self.show_begun)
        disk.backups.done.connect(self.show_done)
        disk.backups.restored.connect(self.offer_program)

    def _build(self, form: QWidget) -> None:
        self._folder.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self._folder.setAccessibleDescription(self.tr("Data folder"))
        self._compact.setToolTip(self.tr("Frees the space of deleted conversations"))
        self._check.setToolTip(self.tr("Reads everything saved, and repairs damage if possible"))
        self._backups.itemSelectionChanged.connect(self._refresh)
        about = self.tr(
            "Conversations, pictures and settings are in one folder on this computer. The program checks the "
            "conversations now and then, when it is idle."
        )
        about_backups = self.tr(
            "A backup holds conversations, pictures, saved files and settings; keys stay in the keyring. It is "
            "restored into a new folder, so nothing that is here is overwritten."
        )
        vbox(
            label(about, "muted", wrap=True),
            vbox(self._folder, self._size, spacing=SPACE_S, margins=0),
            FlowRows((self._open_folder, self._check, self._compact)),
            self._last_check,
            self._check_state,
            FlowRows((self._cancel_compacting,)),
            hbox(label(self.tr("Backups"), "heading"), margins=(0, SPACE_L, 0, 0)),
            label(about_backups, "muted", wrap=True),
            self._no_backups,
            self._backups,
            FlowRows((self._backup, self._restore, self._delete)),
            self._backup_state,
            FlowRows((self._cancel, self._open_program)),
            form,
            self._copies,
            parent=self,
            spacing=SPACE_M,
            margins=0,
            end_stretch=True,
        )


class _MigrationCopies(QWidget):
    """The copies that were made before an upgrade, each with its buttons. Hidden while there is none."""

    def __init__(self, open_copy: Callable[[Path, Path], object], delete: Callable[[Path], object]) -> None:
        """`open_copy` gets the Path of a copy, and that of a new folder."""
        super().__init__()
        self._open_copy, self._delete = open_copy, delete
        about = self.tr(
            "Before a new version changes how conversations are saved, it makes a copy. You can open the copy in a "
            "new folder, with your current pictures and settings."
        )
        heading = label(self.tr("Copies made before an upgrade"), "heading", wrap=True)
        self._rows = vbox(spacing=SPACE_M, margins=0)
        parts = (heading, label(about, "muted", wrap=True), self._rows)
        vbox(*parts, parent=self, spacing=SPACE_M, margins=(0, SPACE_L, 0, 0))
        self.hide()

    def show_copies(self, copies: Sequence[MigrationCopy]) -> None:
        clear_layout(self._rows)
        for copy in copies:
            self._rows.addWidget(self._row(copy))
        self.setVisible(bool(copies))

    def _row(self, copy: MigrationCopy) -> QWidget:
        row = QWidget()
        written = self.tr("Written by version {0}").format(copy.program)
        if not copy.program:
            written = self.tr("Written by an earlier version, in its format {0}").format(copy.schema)
        facts = (written, exact_date(copy.created_at, now()), _counts_text(copy.counts), format_bytes(copy.size))
        words = " · ".join(facts)
        open_ = button(self.tr("Open in a new folder…"), lambda: self._choose(copy), name=written)
        delete = button(self.tr("Delete…"), lambda: self._delete(copy.path), name=self.tr("Delete this copy"))
        vbox(label(words, wrap=True), FlowRows((open_, delete)), parent=row, spacing=SPACE_S, margins=0)
        return row

    def _choose(self, copy: MigrationCopy) -> None:
        _ask_new_folder(self, partial(self._open_copy, copy.path))


def _counts_text(counts: StoredCounts) -> str:
    words = QCoreApplication.translate("StorageSettings", "Conversations: {0}, messages: {1}")
    return words.format(counts.conversations + counts.in_trash, counts.messages)


def _ask_new_folder(parent: QWidget, use: Callable[[Path], object]) -> QFileDialog:
    title = QCoreApplication.translate("StorageSettings", "Restore into an empty folder")
    return ask_folder(parent, title, str(Path.home()), use)
