"""Form fields of a pydantic model: type, bounds, title and description of each are declared there."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeVar, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from PySide6.QtCore import QCoreApplication, QEvent, QObject, QTimer, Signal
from PySide6.QtGui import QFontDatabase
from PySide6.QtWidgets import QComboBox, QWidget

from desktop_agent.types.frozen_model import (
    ChoiceNames,
    FolderField,
    FontFamilyField,
    KeysField,
    NumberFormat,
    OneLine,
    OptionalNumber,
)
from ui.forms.controls import Control, check_box, folder_line, menu, number_box, text_area, text_line
from ui.forms.form import Form
from ui.forms.key_field import is_bare, key_field
from ui.style.text import localize_point, native_shortcut

_T = TypeVar("_T")

TEXT_DELAY_MS = 400
TEXT_HEIGHT = 110
CHOICE_WIDTH = 190
PROMPT_LINES = 6
# Rows of the list, which is long: more than the toolkit's ten.
_VISIBLE_FONTS = 14


def add_model_fields(form: Form, model: type[BaseModel], names: Iterable[str] = ()) -> None:
    """Add the fields of a model with these names, or all."""
    for name in names or model.model_fields:
        field = model.model_fields[name]
        form.add_field(
            name,
            translate_preference(field.title or name),
            control_for(field),
            help_text=translate_preference(field.description or ""),
            check=partial(_field_error, model, name),
        )


def typed_value(model: type[BaseModel], name: str, value: Any) -> Any:
    """Return the number that was typed into a field for an optional number; other values as they are."""
    if _hint(model.model_fields[name], OptionalNumber) is None:
        return value
    return getattr(model.model_validate({name: value}), name)


def translate_preference(text: str) -> str:
    """Translate a title or description of the declaration."""
    return QCoreApplication.translate("Preferences", text)


def words_in_control(field: FieldInfo) -> list[str]:
    """Return what a control says before anything is entered: the choices, or what no value means."""
    optional_number = _hint(field, OptionalNumber)
    if optional_number is not None:
        return [translate_preference(optional_number.empty_text)]
    return [words for _, words in _choices(field)]


def _choices(field: FieldInfo) -> list[tuple[str, str]]:
    names = getattr(_hint(field, ChoiceNames), "names", {})
    choices = map(str, get_args(field.annotation)) if get_origin(field.annotation) is Literal else ()
    return [(choice, names.get(choice) or translate_preference(choice.capitalize())) for choice in choices]


def control_for(field: FieldInfo) -> Control[QWidget]:
    """Create the control for a field. Raises TypeError for unknown types."""
    kind = field.annotation
    optional_number = _hint(field, OptionalNumber)
    if get_origin(kind) is Literal:
        return _narrow(menu(_choices(field)))
    if kind is bool:
        return check_box(translate_preference(field.title or ""), is_wrapped=False)
    if kind is int or kind is float:
        return _number_box(field)
    if optional_number is not None:
        return _delayed(_optional_number_line(optional_number))
    if _hint(field, FontFamilyField) is not None:
        return _font_menu()
    if kind is str:
        return _text_control(field)
    if kind == str | None:
        return _optional_text_area()
    raise TypeError(f"no control for a field of type {kind}")


def _text_control(field: FieldInfo) -> Control[QWidget]:
    if _hint(field, KeysField) is not None:
        return key_field(translate_preference("Press keys"))
    if _hint(field, FolderField) is not None:
        return _delayed(folder_line(translate_preference(field.title or ""), translate_preference("Browse…")))
    is_line = _hint(field, OneLine) is not None
    return _delayed(text_line() if is_line else text_area(0, margin=TEXT_HEIGHT, is_exact=True))


def _hint(field: FieldInfo, kind: type[_T]) -> _T | None:
    return next((hint for hint in field.metadata if isinstance(hint, kind)), None)


def _narrow(control: Control[QWidget]) -> Control[QWidget]:
    control.widget.setMinimumWidth(CHOICE_WIDTH)
    return control


def _number_box(field: FieldInfo) -> Control[QWidget]:
    low, high = _bounds(field)
    number = _hint(field, NumberFormat) or NumberFormat()
    unit, zero_text = (translate_preference(text) if text else "" for text in (number.unit, number.zero_text))
    decimals = 0 if field.annotation is int else 1
    control = number_box(low, high, decimals=decimals, suffix=f" {unit}" if unit else "", zero_text=zero_text)
    control.widget.setMaximumWidth(CHOICE_WIDTH)
    return replace(control, fit="itself")


def _font_menu() -> Control[QWidget]:
    families = [
        family
        for family in QFontDatabase.families()
        if QFontDatabase.isSmoothlyScalable(family) and not QFontDatabase.isPrivateFamily(family)
    ]
    system = translate_preference("System font")
    # A font that was set on another computer is kept, though the system font is displayed.
    missing = translate_preference("{0} (not installed)")
    control = menu([("", system), *((name, name) for name in families)], missing=missing)
    control.widget.setMaxVisibleItems(_VISIBLE_FONTS)
    # The longest name would leave no room beside it.
    control.widget.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
    return _narrow(control)


def _delayed(control: Control[QWidget]) -> Control[QWidget]:
    """Return the control of a text, which changes when nobody has typed for a moment, and before it is hidden."""
    delay = _TypingDelay(control.widget)

    def show(text: str) -> None:
        # Not while the person types: the value that comes back is a moment old.
        if control.read() != text and not delay.timer.isActive():
            control.show(text)

    if control.changed is not None:
        control.changed.connect(delay.restart)
    return replace(control, show=show, changed=delay.ended)


class _TypingDelay(QObject):
    """Waits until nobody types in a control any more."""

    ended = Signal()

    def __init__(self, control: QWidget) -> None:
        super().__init__(control)
        self.timer = QTimer(self, singleShot=True, interval=TEXT_DELAY_MS)
        self.timer.timeout.connect(self.ended)
        control.installEventFilter(self)

    def restart(self, *_: object) -> None:  # the timer's own `start` would take a text for its interval
        self.timer.start()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """End the wait when the control is hidden: its dialog may be closed for good."""
        if event.type() is QEvent.Type.Hide and self.timer.isActive():
            self.timer.stop()
            self.ended.emit()
        return super().eventFilter(watched, event)


def _optional_text_area() -> Control[QWidget]:
    control = text_area(PROMPT_LINES, margin=0, is_exact=True)

    def read() -> str | None:
        text = control.read()
        return text if text.strip() else None

    def show(text: str | None) -> None:
        control.show(text or "")

    return replace(control, read=read, show=show)


def _optional_number_line(hint: OptionalNumber) -> Control[QWidget]:
    control = text_line(placeholder=translate_preference(hint.empty_text))

    def show(number: float | None) -> None:
        # A whole number of dollars as people write it: not 5.0.
        whole = number is not None and number == int(number)
        control.show("" if number is None else localize_point(str(int(number) if whole else number)))

    return replace(control, read=lambda: control.read().replace(",", ".") or None, show=show)


def _field_error(model: type[BaseModel], name: str, value: Any) -> str:
    """Return what is wrong with keys, or with an optional number; other values cannot be wrong."""
    field = model.model_fields[name]
    if _hint(field, KeysField) is not None:
        words = translate_preference("{0} alone is needed for typing. Combine it with Ctrl or Alt.")
        return words.format(native_shortcut(value)) if value and is_bare(value) else ""
    hint = _hint(field, OptionalNumber)
    if hint is None or _is_valid(model, name, value):
        return ""
    low, high = _bounds(field)
    if field.annotation == int | None:
        words = translate_preference("This is not a whole number above {0}. Write one such as {1}, or leave it empty.")
        return words.format(f"{low - 1:g}", hint.example)
    words = translate_preference("This is not a number from {0} to {1}. Write one such as {2}, or leave it empty.")
    return words.format(*map(localize_point, (f"{low:g}", f"{high:g}", hint.example)))


def _is_valid(model: type[BaseModel], name: str, value: Any) -> bool:
    try:
        model.model_validate({name: value})
    except ValidationError as error:
        return all(detail["loc"][:1] != (name,) for detail in error.errors())
    return True


def _bounds(field: FieldInfo) -> tuple[float, float]:
    low, high = 0.0, 1_000_000.0
    step = 1 if field.annotation is int else 0.1
    for rule in field.metadata:
        match rule:
            case Ge(ge=bound):
                low = float(str(bound))
            case Gt(gt=bound):
                low = float(str(bound)) + step
            case Le(le=bound):
                high = float(str(bound))
            case Lt(lt=bound):
                high = float(str(bound)) - step
            case _:
                pass
    return low, high
