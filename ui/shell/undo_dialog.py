"""The dialog before an undo: the files it would change, and what becomes of each."""

from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication, QModelIndex, QPersistentModelIndex, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPen
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QFrame,
    QHeaderView,
    QLabel,
    QProgressBar,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from desktop_agent.types.checkpoints import FileRestorePlan, IrreversibleCalls, RestoreEffect, RestorePlan
from desktop_agent.types.errors import Sentence
from desktop_agent.types.tool_calls import DiffPreview, TextPreview
from ui.approval.dialog_layout import ShrinkingScrollArea
from ui.approval.preview_view import TextView
from ui.style.boxes import hbox, vbox
from ui.style.controls import announce, button, label, show_words
from ui.style.list_rows import paint_row_background
from ui.style.style_sheet import selected_background
from ui.style.text import (
    in_brackets,
    join_names,
    join_sentences,
    labelled,
    plain_tooltip,
    show_hidden,
    translate_sentence,
)
from ui.style.theme import RADIUS_M, SPACE_L, SPACE_M, SPACE_S, SPACE_XS, ThemeSource, icon
from ui.style.tool_labels import tool_title

_FILE, _EFFECT, _REPLACE = range(3)
_MAX_VISIBLE_ROWS = 7
_Index = QModelIndex | QPersistentModelIndex


class UndoFileList(QTreeWidget):
    """A row for each file. A tick lets one be restored although it was changed since."""

    chosen = Signal(object, bool)
    """The current file, and whether it is replaced even if it was changed."""

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__()
        self._themes = themes
        self._files: tuple[FileRestorePlan, ...] = ()
        self._items: list[QTreeWidgetItem] = []
        self.setAccessibleName(self.tr("Files that would be changed"))
        self.setRootIsDecorated(False)
        self.setUniformRowHeights(True)
        self.setItemDelegate(_CellDelegate(self))
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHeaderLabels([self.tr("File"), self.tr("Result"), self.tr("Even if changed")])
        header = self.header()
        header.setStretchLastSection(False)
        header.setSectionsMovable(False)
        header.setSectionResizeMode(_FILE, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(_EFFECT, QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(_REPLACE, QHeaderView.ResizeMode.ResizeToContents)
        self.currentItemChanged.connect(self._choose)
        self.itemChanged.connect(self._on_tick)
        themes.changed.connect(self._draw)

    @property
    def replaced(self) -> list[FileRestorePlan]:
        return [file for index, file in enumerate(self._files) if self._is_ticked(index)]

    def show_files(self, files: Sequence[FileRestorePlan]) -> None:
        """Show these files, none of them ticked."""
        self._files = tuple(files)
        self.blockSignals(True)  # Qt's way
        self.clear()
        self._items = []
        folders = {plan.folder for plan in files}
        for file in files:
            name = file.path if len(folders) == 1 else f"{file.folder}/{file.path}"
            item = QTreeWidgetItem([show_hidden(name), "", ""])
            if file.is_conflict:
                item.setCheckState(_REPLACE, Qt.CheckState.Unchecked)
            self._items.append(item)
        self.addTopLevelItems(self._items)
        self.blockSignals(False)  # Qt's way
        self.setColumnHidden(_REPLACE, not any(plan.is_conflict for plan in files))
        self._draw()
        self._fit()
        if files:
            self.setCurrentItem(self._items[0])

    def drawRow(self, painter: QPainter, options: QStyleOptionViewItem, index: _Index) -> None:
        """Paint one background under all cells of the current row, as in lists of one column."""
        theme = self._themes.theme
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = options.rect.adjusted(0, 1, 0, -1)
        if self.selectionModel().isSelected(index):
            paint_row_background(painter, area, theme, selected_background(theme))
        if self.hasFocus() and self.currentIndex().row() == index.row():
            painter.setPen(QPen(QColor(theme.accent), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(area.adjusted(1, 1, -1, -1), RADIUS_M, RADIUS_M)
        painter.restore()
        super().drawRow(painter, options, index)

    def _is_ticked(self, index: int) -> bool:
        file = self._files[index]
        return file.is_conflict and self._items[index].checkState(_REPLACE) == Qt.CheckState.Checked

    def _draw(self) -> None:
        side = self._themes.scaled(15)
        self.setIconSize(QSize(side, side))
        self.blockSignals(True)  # Qt's way
        for index, file in enumerate(self._files):
            self._draw_one(self._items[index], file, replaced=self._is_ticked(index))
        self.blockSignals(False)  # Qt's way

    def _draw_one(self, item: QTreeWidgetItem, file: FileRestorePlan, *, replaced: bool) -> None:
        effect = file.effect(replaced=replaced)
        words = fate_labels()[effect]
        why = "" if file.reason is None or replaced else translate_sentence(file.reason, show_hidden)
        if why and effect != "left":
            words = self.tr("{0}, in part").format(words)
        theme = self._themes.theme
        name, colour = {
            "put_back": ("undo", theme.text),
            "brought_back": ("plus", theme.text),
            "removed": ("trash", theme.text),
            "left": ("warning", theme.warning),
        }[effect]
        item.setText(_EFFECT, words)
        item.setIcon(_EFFECT, icon(name, colour, size=self.iconSize().width()))
        item.setToolTip(_FILE, plain_tooltip(item.text(_FILE)))
        item.setToolTip(_EFFECT, plain_tooltip(why or words))
        item.setData(_EFFECT, Qt.ItemDataRole.AccessibleTextRole, f"{words}. {why}" if why else words)
        item.setData(_REPLACE, Qt.ItemDataRole.AccessibleTextRole, self.tr("Even if changed"))

    def _fit(self) -> None:
        rows = min(max(len(self._files), 1), _MAX_VISIBLE_ROWS)
        height = self.sizeHintForRow(0) if self._files else self.fontMetrics().height() * 2
        self.setFixedHeight(self.header().sizeHint().height() + rows * height + 4)

    def _choose(self, *_items: object) -> None:
        current = self.currentItem()
        index = -1 if current is None else self.indexOfTopLevelItem(current)
        if index >= 0:
            self.chosen.emit(self._files[index], self._is_ticked(index))

    def _on_tick(self, item: QTreeWidgetItem) -> None:
        self._draw()
        self.setCurrentItem(item)
        self._choose()


class _CellDelegate(QStyledItemDelegate):
    """Paints no row state: the list draws it under all cells."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: _Index) -> None:
        super().initStyleOption(option, index)
        drawn_below = (
            QStyle.StateFlag.State_Selected | QStyle.StateFlag.State_HasFocus | QStyle.StateFlag.State_MouseOver
        )
        option.state &= ~drawn_below


def fate_labels() -> dict[RestoreEffect, str]:
    """Return what may become of a file, in the current language."""
    translate = QCoreApplication.translate
    return {
        "put_back": translate("UndoFileList", "Put back"),
        "brought_back": translate("UndoFileList", "Brought back"),
        "removed": translate("UndoFileList", "Removed again"),
        "left": translate("UndoFileList", "Stays as it is"),
    }


class UndoDialog(QDialog):
    """Not modal: the person's choice comes as signals."""

    undo_pressed = Signal(object)
    """The files that are replaced even if they were changed."""
    stop_pressed = Signal()
    difference_requested = Signal(object, bool)
    """A file, and whether it is replaced even if it was changed."""

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._forecast = RestorePlan()
        self._is_working = self._is_busy = self._diff_needs_tick = self._is_redo = False
        self._heading = label(kind="heading", wrap=True)
        self._note = label(wrap=True)
        self._working = self._working_note()
        self.files = UndoFileList(themes)
        self._reason = label(kind="muted", wrap=True)
        self._diff_heading = label(kind="strong", wrap=True)
        self._diff = TextView(themes)
        self._other_effects = label(kind="muted", wrap=True)
        self._irreversible = label(wrap=True)
        self._irreversible_note = _notice_frame(self._irreversible)
        self._progress = QProgressBar()
        self._undo = button(self.tr("Undo"), self._press, "primary")
        self._cancel = button(self.tr("Cancel"), self.reject)
        self._build()
        self.files.chosen.connect(self._choose)

    @property
    def words(self) -> list[str]:
        """The text besides the files."""
        labels = (self._heading, self._note, self._reason, self._other_effects)
        words = [widget.text() for widget in labels if not widget.isHidden() and widget.text()]
        return words if self._irreversible_note.isHidden() else [*words, self._irreversible.text()]

    def show_forecast(self, heading: str, forecast: RestorePlan, *, is_redo: bool) -> None:
        """Show what an undo would do now."""
        self._forecast, self._is_redo = forecast, is_redo
        self._undo.setText(self.tr("Redo") if is_redo else self.tr("Undo"))
        self._heading.setText(heading)
        self._note.setText(self._summary(forecast))
        self.files.setVisible(bool(forecast.files))
        if not forecast.files:
            for widget in (self._reason, self._diff_heading, self._diff):
                widget.hide()
        self.files.show_files(forecast.files)
        (self.files if forecast.files else self._cancel).setFocus()
        self._show_other_effects(forecast)
        self.setAccessibleDescription(join_sentences(self.words))
        # By itself Qt limits it to two thirds of the screen's height.
        self.resize(self.sizeHint())
        self._refresh()

    def show_difference(self, file: FileRestorePlan, preview: DiffPreview | Sentence) -> None:
        """Show the lines of a file that would change, or why there are none."""
        if isinstance(preview, DiffPreview):
            heading = self._diff.show_diff(preview)
        else:
            self._diff.show_text(TextPreview(preview))
            heading = show_hidden(file.path)
        self._diff_heading.setText(self.tr("If ticked: {0}").format(heading) if self._diff_needs_tick else heading)

    def set_working(self, working: bool) -> None:  # noqa: FBT001  # a slot
        """Disable undo while the agent works."""
        self._is_working = working
        self._working.setVisible(working)
        self._refresh()

    def show_progress(self, done: int, total: int) -> None:
        """Show how many calls are undone."""
        self._progress.setRange(0, total)
        self._progress.setValue(done)

    def _press(self) -> None:
        self._is_busy = True
        self._progress.setRange(0, 0)
        self._refresh()
        announce(self, self.tr("Redoing…") if self._is_redo else self.tr("Undoing…"))
        self.undo_pressed.emit(self.files.replaced)

    def _choose(self, file: FileRestorePlan, replaced: bool) -> None:  # noqa: FBT001  # a slot
        why = "" if file.reason is None else translate_sentence(file.reason, show_hidden)
        if file.is_conflict:
            why = self._conflict_text(replaced=replaced)
        show_words(self._reason, why)
        self._refresh()
        # For a file that stays, show what a tick would do, so that the person can decide.
        is_undecided = file.is_conflict and file.effect() == "left"
        self._diff_needs_tick = is_undecided and not replaced
        has_lines = file.effect(replaced=replaced or is_undecided) != "left"
        self._diff_heading.setVisible(has_lines)
        self._diff.setVisible(has_lines)
        if has_lines:
            self.difference_requested.emit(file, replaced or is_undecided)

    def _conflict_text(self, *, replaced: bool) -> str:
        """Say what becomes of files that were changed since."""
        if not replaced and self._is_redo:
            return self.tr("The file was changed after the undo. Tick it to redo the change anyway.")
        if not replaced:
            return self.tr(
                "The file was changed after the call. Tick it to put it back anyway; Redo then restores "
                "the later change."
            )
        if self._is_redo:
            return self.tr("Later changes are saved first: Undo restores them.")
        return self.tr("Later changes are saved first: Redo restores them.")

    def _refresh(self) -> None:
        self._undo.setEnabled(self._changes_anything() and not self._is_working and not self._is_busy)
        self._progress.setVisible(self._is_busy)
        self.files.setEnabled(not self._is_busy)
        self._cancel.setText(self.tr("Close") if self._is_busy or not self._undo.isEnabled() else self.tr("Cancel"))

    def _changes_anything(self) -> bool:
        changes = any(file.effect() != "left" for file in self._forecast.files)
        return changes or bool(self._forecast.undo_tools) or bool(self.files.replaced)

    def _summary(self, forecast: RestorePlan) -> str:
        if not forecast.changes_something and self._is_redo:
            return self.tr("There is nothing that could be redone.")
        if forecast.checkpoint_ids and not (forecast.files or forecast.undo_tools or forecast.undo_refusals):
            return self.tr("There is nothing left to undo: the files are already as they were before.")
        if not forecast.changes_something:
            return self.tr("There is nothing that could be undone.")
        if any(file.is_conflict for file in forecast.files):
            return self.tr("Files that were changed since stay as they are, unless you tick them.")
        if self._is_redo:
            return self.tr("These files return to their state before the undo. Messages stay.")
        return self.tr("These files return to their earlier state. Messages stay.")

    def _show_other_effects(self, forecast: RestorePlan) -> None:
        words = self.tr("“{0}” also undoes its other effects.")
        lines = [words.format(show_hidden(tool_title(name))) for name in forecast.undo_tools]
        lines += [translate_sentence(refusal, show_hidden) for refusal in forecast.undo_refusals]
        show_words(self._other_effects, "\n".join(lines))
        self._irreversible.setText(self._irreversible_text(forecast.irreversible))
        self._irreversible_note.setVisible(bool(forecast.irreversible))

    def _irreversible_text(self, irreversible: Sequence[IrreversibleCalls]) -> str:
        lines = [self.tr("These calls cannot be undone:")]
        for calls in irreversible:
            count = self.tr("{0} times").format(calls.count) if calls.count > 1 else self.tr("once")
            line = "•  " + in_brackets(show_hidden(tool_title(calls.tool)), count)
            lines.append(labelled(line, join_names(map(show_hidden, calls.examples))) if calls.examples else line)
            if calls.files:
                lines.append("    " + self.tr("It changed {0}").format(join_names(map(show_hidden, calls.files))))
        return "\n".join(lines)

    def _working_note(self) -> QFrame:
        words = self.tr("The agent is still working. Stop it first; then this list is updated.")
        return _notice_frame(label(words, wrap=True), button(self.tr("Stop"), self.stop_pressed.emit, "danger"))

    def _build(self) -> None:
        self.setAccessibleName(self.tr("Undo changes"))
        self.setWindowTitle(self.tr("Undo changes"))
        self.setWindowModality(Qt.WindowModality.WindowModal)
        self._progress.setAccessibleName(self.tr("Progress of the undoing"))
        self._progress.setTextVisible(False)
        self._working.hide()
        foot = hbox(self._progress, self._cancel, self._undo, spacing=SPACE_S, grow=self._progress)
        foot.insertStretch(1, 1)
        middle = self._create_middle()
        parts = (self._heading, self._note, self._working, middle, foot)
        vbox(*parts, parent=self, spacing=SPACE_M, margins=SPACE_L, grow=middle)
        self._undo.setDefault(True)

    def _create_middle(self) -> ShrinkingScrollArea:
        """Create the parts that shrink in a low window: the difference first, down to some lines."""
        parts = (self.files, self._reason, self._diff_heading, self._diff, self._other_effects, self._irreversible_note)
        return ShrinkingScrollArea(parts, [self._diff.shrinkable])

    def sizeHint(self) -> QSize:
        """Return a size with room for the lines of a file, within the screen."""
        size = QSize(720, 640) if self._forecast.files else super().sizeHint().expandedTo(QSize(520, 160))
        return size.boundedTo(self.screen().availableSize() * 0.9)


def _notice_frame(words: QLabel, *buttons: QWidget) -> QFrame:
    frame = QFrame()
    frame.setProperty("kind", "banner")
    frame.setProperty("level", "notice")
    margins = (SPACE_M, SPACE_S, SPACE_M, SPACE_S)
    row = hbox(words, *buttons, parent=frame, spacing=SPACE_S, margins=margins, grow=words)
    for widget in buttons:
        row.setAlignment(widget, Qt.AlignmentFlag.AlignTop)
    words.setContentsMargins(0, SPACE_XS, 0, SPACE_XS)
    return frame
