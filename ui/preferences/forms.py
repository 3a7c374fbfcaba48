"""Forms: a control for each declared preference, and a form that validates its fields while they are edited."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QFontDatabase
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QCheckBox,
    QDoubleSpinBox,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QSpinBox,
    QWidget,
)

from desktop_agent.types.preferences import FontFamilyField, NumberFormat
from ui.style.boxes import hbox, vbox
from ui.style.controls import ComboBox, announce, label, set_style_property
from ui.style.theme import BODY_SIZE, SPACE_L, SPACE_M, SPACE_S, SPACE_XS

TEXT_MARGIN = SPACE_S
"""Pixels at 100 % zoom: as in a field of text."""
_MARGIN_EVENTS = {QEvent.Type.Show, QEvent.Type.FontChange, QEvent.Type.LayoutDirectionChange}


class SpinBoxMargin(QObject):
    """Keeps a number as far from the edge of its box as text is from that of a field."""

    def __init__(self, box: QAbstractSpinBox) -> None:
        super().__init__(box)
        self._line = box.lineEdit()
        box.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in _MARGIN_EVENTS and isinstance(watched, QAbstractSpinBox):
            # Less the border and the margin that every text line has.
            room = round(TEXT_MARGIN * watched.font().pointSizeF() / BODY_SIZE) - 1
            is_mirrored = watched.layoutDirection() is Qt.LayoutDirection.RightToLeft
            self._line.setTextMargins(0 if is_mirrored else room, 0, room if is_mirrored else 0, 0)
        return False


FieldValidator = Callable[[], str]
"""What is wrong now, in the person's language; empty when nothing is."""


@dataclass
class _ValidatedField:
    field: QWidget
    check: FieldValidator
    problem: QLabel
    is_touched: bool = False


class ValidatedForm(QWidget):
    """A form that shows an error of a field once it was edited, or after `show_errors`."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._validated: list[_ValidatedField] = []
        self._numbers: list[QAbstractSpinBox] = []
        self._rows = vbox(parent=self, spacing=SPACE_M, margins=0)

    def add(self, title: str, field: QWidget, check: FieldValidator | None = None, *, note: str = "") -> None:
        """Add a field below the others, with a note under it."""
        field.setAccessibleName(title)
        heading = label(title, "strong")
        heading.setBuddy(field)
        column = vbox(heading, spacing=SPACE_XS)
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
        """Make all number fields as wide as the widest."""
        if event.type() in {QEvent.Type.LayoutRequest, QEvent.Type.Show}:
            widest = max((box.sizeHint().width() for box in self._numbers), default=0)
            for box in self._numbers:
                box.setMaximumWidth(widest)
        return super().event(event)

    def show_errors(self) -> bool:
        """Validate all fields and focus the first wrong one; return whether there is one."""
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
        row = hbox(field, grow=field)
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


TEXT_DELAY_MS = 400
TEXT_HEIGHT = 110
CHOICE_WIDTH = 190


@dataclass(frozen=True)
class FieldControl:
    """A control, how to show a value in it, and whether it has its own label."""

    widget: QWidget
    show: Callable[[Any], None]
    has_label: bool = False
    is_wide: bool = False


def translate_preference(text: str) -> str:
    """Translate a title or description of the declaration."""
    return QCoreApplication.translate("Preferences", text)


def control_for(field: FieldInfo, changed: Callable[[Any], None]) -> FieldControl:
    """Create the control for a field; `changed` gets each new value. Raises TypeError for unknown types."""
    control = _control_for_type(field, changed)
    control.widget.setAccessibleName(translate_preference(field.title or ""))
    control.widget.setAccessibleDescription(translate_preference(field.description or ""))
    return control


def _control_for_type(field: FieldInfo, changed: Callable[[Any], None]) -> FieldControl:
    kind = field.annotation
    if get_origin(kind) is Literal:
        return _menu(tuple(str(arg) for arg in get_args(kind)), changed)
    if kind is bool:
        return _checkbox(field, changed)
    if kind is int or kind is float:
        return _spin_box(field, changed)
    if any(isinstance(rule, FontFamilyField) for rule in field.metadata):
        return _font_menu(changed)
    if kind is str:
        return _text_editor(changed)
    raise TypeError(f"no control for a preference of type {kind}")


def _menu(choices: tuple[str, ...], changed: Callable[[Any], None]) -> FieldControl:
    box = ComboBox()
    box.setMinimumWidth(CHOICE_WIDTH)
    for choice in choices:
        box.addItem(translate_preference(choice.capitalize()), choice)

    def chosen(row: int) -> None:
        changed(choices[row])

    def show(value: Any) -> None:
        box.setCurrentIndex(choices.index(value))

    box.activated.connect(chosen)
    return FieldControl(box, show)


def _font_menu(changed: Callable[[Any], None]) -> FieldControl:
    box = ComboBox()
    box.setMinimumWidth(CHOICE_WIDTH)
    box.setMaxVisibleItems(14)
    box.addItem(QCoreApplication.translate("Preferences", "System font"), "")
    for family in QFontDatabase.families():
        if QFontDatabase.isSmoothlyScalable(family) and not QFontDatabase.isPrivateFamily(family):
            box.addItem(family, family)

    def chosen(row: int) -> None:
        changed(box.itemData(row))

    def show(value: Any) -> None:
        if box.findData(value) < 0:
            # Set on another computer: keep it, though the system font is shown.
            box.addItem(QCoreApplication.translate("Preferences", "{0} (not installed)").format(value), value)
        box.setCurrentIndex(box.findData(value))

    box.activated.connect(chosen)
    return FieldControl(box, show)


def _checkbox(field: FieldInfo, changed: Callable[[Any], None]) -> FieldControl:
    box = QCheckBox(translate_preference(field.title or ""))
    box.clicked.connect(lambda: changed(box.isChecked()))
    return FieldControl(box, box.setChecked, has_label=True)


def _spin_box(field: FieldInfo, changed: Callable[[Any], None]) -> FieldControl:
    low, high = _bounds(field)
    box: QSpinBox | QDoubleSpinBox
    if field.annotation is int:
        box = QSpinBox(minimum=int(low), maximum=int(high))
    else:
        box = _DecimalSpinBox(minimum=low, maximum=high, decimals=1)
    for rule in field.metadata:
        if isinstance(rule, NumberFormat):
            box.setSuffix(f" {translate_preference(rule.unit)}")
            box.setSpecialValueText(translate_preference(rule.zero_text) if rule.zero_text else "")
    # Emit the finished number, not each digit on the way to 300.
    box.setKeyboardTracking(False)
    SpinBoxMargin(box)

    def show(value: Any) -> None:
        if box.value() != value:
            box.blockSignals(True)
            box.setValue(value)
            box.blockSignals(False)

    box.valueChanged.connect(changed)
    return FieldControl(box, show)


class _DecimalSpinBox(QDoubleSpinBox):
    # Whole numbers without decimals.

    def textFromValue(self, v: float) -> str:
        return super().textFromValue(v).removesuffix(f"{self.locale().decimalPoint()}0")


def _bounds(field: FieldInfo) -> tuple[float, float]:
    low, high = 0.0, 1_000_000.0
    for rule in field.metadata:
        match rule:
            case Ge(ge=bound):
                low = float(str(bound))
            case Gt(gt=bound):
                low = float(str(bound)) + (1 if field.annotation is int else 0.1)
            case Le(le=bound):
                high = float(str(bound))
            case Lt(lt=bound):
                high = float(str(bound)) - (1 if field.annotation is int else 0.1)
            case _:
                pass
    return low, high


def _text_editor(changed: Callable[[Any], None]) -> FieldControl:
    editor = QPlainTextEdit(tabChangesFocus=True)
    editor.setFixedHeight(TEXT_HEIGHT)
    delay_timer = QTimer(editor, singleShot=True, interval=TEXT_DELAY_MS)
    delay_timer.timeout.connect(lambda: changed(editor.toPlainText()))
    editor.textChanged.connect(delay_timer.start)

    def show(value: Any) -> None:
        # Not while the person types: the value that comes back is a moment old.
        if editor.toPlainText() != value and not delay_timer.isActive():
            editor.setPlainText(value)
            delay_timer.stop()

    return FieldControl(editor, show, is_wide=True)


class SectionForm(QWidget):
    """A title, a control and a description for each field of a section."""

    value_changed = Signal(str, object)
    """The field's name and its new value."""

    def __init__(self, section: BaseModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._controls: dict[str, FieldControl] = {}
        layout = vbox(parent=self, spacing=SPACE_XS, margins=0)
        for name, field in type(section).model_fields.items():
            control = control_for(field, partial(self._emit_change, name))
            self._controls[name] = control
            if not control.has_label:
                title = label(translate_preference(field.title or name), "strong")
                title.setBuddy(control.widget)
                layout.addWidget(title)
            # Numbers and choices as wide as they need; texts as wide as the page.
            layout.addWidget(control.widget, 0, Qt.AlignmentFlag(0) if control.is_wide else Qt.AlignmentFlag.AlignLeft)
            layout.addWidget(label(translate_preference(field.description or ""), "muted", wrap=True))
            layout.addSpacing(SPACE_L)
        layout.addStretch(1)
        self.show_values(section)

    def show_values(self, section: BaseModel) -> None:
        """Show the values without a signal."""
        for name, control in self._controls.items():
            control.show(getattr(section, name))

    def _emit_change(self, name: str, value: Any) -> None:
        self.value_changed.emit(name, value)
