"""Conversations that other assistants left on this disk: the dialog that copies them, and the page of settings."""

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QCheckBox, QDialog, QWidget

from ui.bridge.exchange import FoundProgram
from ui.bridge.found_histories import FoundConversations
from ui.style.boxes import vbox
from ui.style.controls import button, label
from ui.style.layouts import FlowRows
from ui.style.theme import SPACE_M
from ui.style.widgets import lay_out_dialog

_WIDTH = 460
"""Pixels."""


class FoundHistoriesDialog(QDialog):
    """Not modal. A box for each program, all of them checked."""

    def __init__(
        self, programs: Sequence[FoundProgram], import_found: Callable[[list[str]], object], parent: QWidget
    ) -> None:
        """`import_found` gets the programs that were chosen."""
        super().__init__(parent)
        self._import_found = import_found
        self._boxes = {program.program: self._create_box(program) for program in programs}
        self._import = button(self.tr("Import"), self._request_import, "primary")
        width = min(_WIDTH, self.screen().availableSize().width())
        self.setMinimumWidth(width)
        words = self.tr(
            "These programs have conversations on this computer. They are copied, with their tool calls, and can be "
            "searched and continued here with any model. The programs' own files are only read."
        )
        none = self.tr("No conversations of other assistants were found on this computer.")
        close = button(self.tr("Cancel") if programs else self.tr("Close"), self.reject)
        self._import.setVisible(bool(programs))
        foot = FlowRows((close, self._import), trailing=True)
        parts = (label(words if programs else none, wrap=True), *self._boxes.values(), foot)
        layout = lay_out_dialog(self, self.tr("Import from other assistants"), *parts)
        self.resize(width, layout.totalHeightForWidth(width))

    def _create_box(self, program: FoundProgram) -> QCheckBox:
        box = _create_box(program)
        box.setChecked(True)
        box.toggled.connect(self._refresh)
        return box

    def _refresh(self) -> None:
        self._import.setEnabled(any(box.isChecked() for box in self._boxes.values()))

    def _request_import(self) -> None:
        self._import_found([program for program, box in self._boxes.items() if box.isChecked()])
        self.accept()


class FoundHistorySettings(QWidget):
    """A switch for each program that has conversations on this computer."""

    def __init__(self, found: FoundConversations) -> None:
        super().__init__()
        self._found = found
        self._programs: Sequence[FoundProgram] = ()
        self._shown: Sequence[str] = ()
        self._boxes: dict[str, QCheckBox] = {}
        words = self.tr(
            "Conversations of these programs are shown below your own, are found by the search, and can be continued "
            "here with any model. The programs' own files are only read. The search keeps an index of their text in "
            "the data folder; it is deleted when you turn a program off."
        )
        self._none = label(
            self.tr("No conversations of other assistants were found on this computer."), "muted", wrap=True
        )
        self._column = vbox(spacing=SPACE_M)
        layout = vbox(label(words, "muted", wrap=True), self._none, parent=self, spacing=SPACE_M, margins=0)
        layout.addLayout(self._column)
        layout.addStretch(1)
        found.programs_found.connect(self.show_programs)

    def show_shown(self, programs: Sequence[str]) -> None:
        """Check the programs that are shown."""
        self._shown = programs
        for program, box in self._boxes.items():
            box.blockSignals(True)
            box.setChecked(program in programs)
            box.blockSignals(False)

    def show_programs(self, programs: Sequence[FoundProgram]) -> None:
        """Show a switch for each of these."""
        self._none.setVisible(not programs)
        if programs == self._programs:
            return
        self._programs = programs
        for box in self._boxes.values():
            self._column.removeWidget(box)
            box.deleteLater()
        self._boxes = {program.program: self._create_box(program) for program in programs}
        for box in self._boxes.values():
            self._column.addWidget(box)
        self.show_shown(self._shown)

    def _create_box(self, program: FoundProgram) -> QCheckBox:
        box = _create_box(program)
        box.toggled.connect(partial(self._found.show_program, program.program))
        return box


def _create_box(program: FoundProgram) -> QCheckBox:
    words = QCoreApplication.translate("FoundHistories", "{0}, conversations: {1}")
    box = QCheckBox(words.format(program.title, program.count))
    # The name does not change with the count.
    box.setAccessibleName(program.title)
    box.setAccessibleDescription(
        QCoreApplication.translate("FoundHistories", "Conversations: {0}").format(program.count)
    )
    return box
