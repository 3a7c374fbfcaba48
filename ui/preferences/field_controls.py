"""One control for one declared preference: chosen by its type, bounded by its bounds."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic.fields import FieldInfo
from PySide6.QtCore import QCoreApplication, QTimer
from PySide6.QtGui import QFontDatabase
from PySide6.QtWidgets import QCheckBox, QDoubleSpinBox, QPlainTextEdit, QSpinBox, QWidget

from desktop_agent.vocabulary.preferences import FontFamilyField, NumberFormat
from ui.look.controls import ComboBox
from ui.preferences.cards.number_inset import SpinBoxMargin

TEXT_DELAY_MS = 400
TEXT_HEIGHT = 110
CHOICE_WIDTH = 190


@dataclass(frozen=True)
class FieldControl:
    """A control, how to show a value in it, and whether it carries its own label."""

    widget: QWidget
    show: Callable[[Any], None]
    has_label: bool = False
    is_wide: bool = False


def translate_preference(text: str) -> str:
    """A title or description of the declaration in the person's language."""
    return QCoreApplication.translate("Preferences", text)


def control_for(field: FieldInfo, changed: Callable[[Any], None]) -> FieldControl:
    """The control for a field; `changed` hears each value the person chooses. Raises TypeError for other types."""
    made = _control_for_type(field, changed)
    made.widget.setAccessibleName(translate_preference(field.title or ""))
    made.widget.setAccessibleDescription(translate_preference(field.description or ""))
    return made


def _control_for_type(field: FieldInfo, changed: Callable[[Any], None]) -> FieldControl:
    kind = field.annotation
    if get_origin(kind) is Literal:
        return _menu(tuple(str(each) for each in get_args(kind)), changed)
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
    for each in choices:
        box.addItem(translate_preference(each.capitalize()), each)

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
    for each in QFontDatabase.families():
        if QFontDatabase.isSmoothlyScalable(each) and not QFontDatabase.isPrivateFamily(each):
            box.addItem(each, each)

    def chosen(row: int) -> None:
        changed(box.itemData(row))

    def show(value: Any) -> None:
        if box.findData(value) < 0:
            # From another computer: it stays what it is, and the system's is seen.
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
    # Not each digit on the way to 300, only the number when it is there.
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
    # Whole numbers stand without decimals.

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
    pause = QTimer(editor, singleShot=True, interval=TEXT_DELAY_MS)
    pause.timeout.connect(lambda: changed(editor.toPlainText()))
    editor.textChanged.connect(pause.start)

    def show(value: Any) -> None:
        # Not while it is being typed in: what comes back is what was typed a moment ago.
        if editor.toPlainText() != value and not pause.isActive():
            editor.setPlainText(value)
            pause.stop()

    return FieldControl(editor, show, is_wide=True)
