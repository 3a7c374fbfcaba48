"""Fields of an editor, each with its title and, under it, what is wrong with it as one types."""

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QAbstractSpinBox, QHBoxLayout, QLabel, QLineEdit, QPlainTextEdit, QVBoxLayout, QWidget

from ui.look.controls import announce, label, set_style_property
from ui.look.theme import SPACE_M, SPACE_XS
from ui.preferences.cards.number_inset import SpinBoxMargin

FieldValidator = Callable[[], str]
"""What is wrong now, in the person's language; empty when nothing is."""


@dataclass
class _ValidatedField:
    field: QWidget
    check: FieldValidator
    problem: QLabel
    is_touched: bool = False


class ValidatedForm(QWidget):
    """A field says nothing before it was touched, or before `show_errors` looks at all of them."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._validated: list[_ValidatedField] = []
        self._numbers: list[QAbstractSpinBox] = []
        self._rows = QVBoxLayout(self)
        self._rows.setContentsMargins(0, 0, 0, 0)
        self._rows.setSpacing(SPACE_M)

    def add(self, title: str, field: QWidget, check: FieldValidator | None = None, *, note: str = "") -> None:
        """One more field, under the others. `note` stands under it."""
        field.setAccessibleName(title)
        heading = label(title, "strong")
        heading.setBuddy(field)
        column = QVBoxLayout()
        column.setSpacing(SPACE_XS)
        column.addWidget(heading)
        if isinstance(field, QAbstractSpinBox):
            column.addLayout(self._number_row(field))
        else:
            column.addWidget(field)
        if note:
            field.setAccessibleDescription(note)
            column.addWidget(label(note, "small", wrap=True))
        if check is not None:
            problem = label(kind="error", wrap=True)
            problem.hide()
            column.addWidget(problem)
            row = _ValidatedField(field, check, problem)
            self._validated.append(row)
            self._connect_field(row)
        self._rows.addLayout(column)

    def event(self, event: QEvent) -> bool:
        """Numbers are as wide as the widest of them needs; texts as wide as the page."""
        if event.type() in {QEvent.Type.LayoutRequest, QEvent.Type.Show}:
            widest = max((each.sizeHint().width() for each in self._numbers), default=0)
            for each in self._numbers:
                each.setMaximumWidth(widest)
        return super().event(event)

    def show_errors(self) -> bool:
        """Look at all fields, say what is wrong, and take the person to the first that is."""
        for row in self._validated:
            row.is_touched = True
        self._update_errors()
        wrong = next((row for row in self._validated if row.check()), None)
        if wrong is not None:
            wrong.field.setFocus()
        return wrong is not None

    def _number_row(self, field: QAbstractSpinBox) -> QHBoxLayout:
        SpinBoxMargin(field)
        self._numbers.append(field)
        row = QHBoxLayout()
        row.addWidget(field, 1)
        row.addStretch(0)
        return row

    def _connect_field(self, row: _ValidatedField) -> None:
        def touched() -> None:
            row.is_touched = True
            self._update_errors()

        if isinstance(row.field, QLineEdit):
            row.field.textEdited.connect(touched)
            row.field.textChanged.connect(self._update_errors)
        elif isinstance(row.field, QPlainTextEdit):
            row.field.textChanged.connect(touched)

    def _update_errors(self) -> None:
        for row in self._validated:
            words = row.check() if row.is_touched else ""
            if words and words != row.problem.text():
                announce(row.field, words)
            row.problem.setText(words)
            row.problem.setVisible(bool(words))
            set_style_property(row.field, "invalid", "true" if words else "false")
