"""The controls of a form: each edits one value."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeVar

from PySide6.QtCore import QEvent, QObject, QSignalBlocker, Qt, Signal, SignalInstance
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QButtonGroup,
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QLineEdit,
    QPlainTextEdit,
    QRadioButton,
    QSpinBox,
    QWidget,
)

from ui.style.boxes import hbox, vbox
from ui.style.controls import TextAlignment, button
from ui.style.file_dialogs import ask_folder
from ui.style.layouts import FlowRows
from ui.style.text import labelled
from ui.style.theme import BODY_SIZE, SPACE_M, SPACE_S, SPACE_XS
from ui.style.widgets import ComboBox, WrappedChoice

W_co = TypeVar("W_co", bound=QWidget, covariant=True)
Choices = Sequence[tuple[Any, str]]
"""The value of each choice, and its words."""


@dataclass(frozen=True, kw_only=True)
class Control(Generic[W_co]):
    """A widget, and how to read and to show its value. Showing a value emits nothing.

    `changed` is emitted when the person changes the value; without it the field is validated when the form is saved.
    `view` is what the form contains if the widget is only a part of that. `parts` are the widgets that a screen
    reader describes. `focus` returns what takes the focus. `fit`: as wide as the form, as the widest number, or as the
    control needs.
    """

    widget: W_co
    read: Callable[[], Any]
    show: Callable[[Any], object]
    changed: SignalInstance | None = None
    view: QWidget | None = None
    parts: Sequence[QWidget] = ()
    focus: Callable[[], QWidget] | None = None
    has_title: bool = False
    fit: Literal["form", "numbers", "itself"] = "form"


def text_line(*, max_length: int = 0, placeholder: str = "", is_exact: bool = False) -> Control[QLineEdit]:
    """Create a line of text. Blanks around it do not count, unless it `is_exact`."""
    line = QLineEdit()
    line.setPlaceholderText(placeholder)
    if max_length:
        line.setMaxLength(max_length)

    def show(text: str) -> None:
        with QSignalBlocker(line):
            line.setText(text)

    read = line.text if is_exact else lambda: line.text().strip()
    return Control(widget=line, read=read, show=show, changed=line.textChanged)


def folder_line(title: str, browse: str) -> Control[QLineEdit]:
    """Create a line for the path of a folder, and a button `browse` that opens a dialog with this title."""
    control = text_line()
    line, view = control.widget, QWidget()

    def choose() -> None:
        ask_folder(line.window(), title, line.text().strip(), lambda path: line.setText(str(path)))

    chooser = button(browse, choose, name=f"{browse} {title}")
    hbox(line, chooser, parent=view, spacing=SPACE_S, margins=0, grow=line)
    return replace(control, view=view)


def text_area(
    lines: int, *, margin: int = SPACE_M, placeholder: str = "", is_exact: bool = False
) -> Control[QPlainTextEdit]:
    """Create a field for several lines of text; Tab leaves it."""
    editor = QPlainTextEdit(tabChangesFocus=True)
    TextAlignment(editor)
    editor.setPlaceholderText(placeholder)
    editor.setFixedHeight(editor.fontMetrics().lineSpacing() * lines + margin)

    def show(text: str) -> None:
        with QSignalBlocker(editor):
            editor.setPlainText(text)

    read = editor.toPlainText if is_exact else lambda: editor.toPlainText().strip()
    return Control(widget=editor, read=read, show=show, changed=editor.textChanged)


def check_box(title: str, *, is_wrapped: bool = True) -> Control[QCheckBox]:
    """Create a check box with its title beside it."""
    box = QCheckBox("" if is_wrapped else title)

    def show(is_on: object) -> None:
        with QSignalBlocker(box):
            box.setChecked(is_on is True)

    view = WrappedChoice(box, title) if is_wrapped else None
    return Control(widget=box, read=box.isChecked, show=show, changed=box.toggled, view=view, has_title=True)


def menu(choices: Choices, *, characters: int = 0, missing: str = "") -> Control[QComboBox]:
    """Create a menu in which one entry is chosen. With a minimum of `characters` it is as wide as the form.

    A value that is none of the choices is added to them in the words of `missing`.
    """
    box = ComboBox()
    for value, words in choices:
        box.addItem(words, value)
    if characters:
        box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        box.setMinimumContentsLength(characters)

    def show(value: object) -> None:
        with QSignalBlocker(box):
            if missing and box.findData(value) < 0:
                box.addItem(missing.format(value), value)
            box.setCurrentIndex(box.findData(value))

    fit = "form" if characters else "itself"
    return Control(widget=box, read=box.currentData, show=show, changed=box.currentIndexChanged, fit=fit)


class _Toggles(QObject):
    """Check boxes of one value."""

    changed = Signal()


def check_boxes(choices: Choices, *, name: str = "", in_rows: bool = False) -> Control[QWidget]:
    """Create a check box for each choice; the value is a list. `name` goes before the accessible name of each."""
    boxes: list[QAbstractButton] = [QCheckBox(words if in_rows else "") for _, words in choices]
    view: QWidget = FlowRows(boxes) if in_rows else _column_of(boxes, choices, name)
    # Not in a button group, where Tab stops at one box only and no arrow key reaches the others.
    toggles = _Toggles(view)
    for box in boxes:
        box.toggled.connect(toggles.changed)

    def read() -> list[Any]:
        return [value for box, (value, _) in zip(boxes, choices, strict=True) if box.isChecked()]

    def show(chosen: Sequence[Any]) -> None:
        with QSignalBlocker(toggles):
            for box, (value, _) in zip(boxes, choices, strict=True):
                box.setChecked(value in chosen)

    return Control(widget=view, read=read, show=show, changed=toggles.changed, parts=boxes)


def radio_buttons(choices: Choices, chosen: object) -> Control[QWidget]:
    """Create a radio button for each choice, of which one is chosen."""
    buttons: list[QAbstractButton] = [QRadioButton() for _ in choices]
    view = _column_of(buttons, choices, "")
    group = QButtonGroup(view)
    for index, choice in enumerate(buttons):
        group.addButton(choice, index)
    values = [value for value, _ in choices]

    def show(value: object) -> None:
        with QSignalBlocker(group):
            group.button(values.index(value)).setChecked(True)

    show(chosen)
    return Control(widget=view, read=lambda: values[group.checkedId()], show=show, changed=group.idClicked)


def _column_of(buttons: Sequence[QAbstractButton], choices: Choices, name: str) -> QWidget:
    view = QWidget()
    column = vbox(parent=view, spacing=SPACE_XS, margins=0)
    for choice, (_, words) in zip(buttons, choices, strict=True):
        column.addWidget(WrappedChoice(choice, words))
        if name:
            choice.setAccessibleName(labelled(name, words))
    return view


def number_box(
    minimum: float,
    maximum: float,
    *,
    decimals: int = 0,
    scale: float = 1,
    prefix: str = "",
    suffix: str = "",
    zero_text: str = "",
    zero_is_none: bool = False,
) -> Control[QSpinBox | QDoubleSpinBox]:
    """Create a field for a number, which is shown times `scale`. `zero_text` is shown for 0, which can mean None.

    A value that is finer than what is shown stays as it is until it is edited.
    """
    box: QSpinBox | QDoubleSpinBox
    if decimals:
        box = _DecimalSpinBox(minimum=minimum, maximum=maximum, decimals=decimals)
    else:
        box = QSpinBox(minimum=int(minimum), maximum=int(maximum))
    box.setPrefix(prefix)
    box.setSuffix(suffix)
    box.setSpecialValueText(zero_text)
    box.setGroupSeparatorShown(True)
    # Emit the finished number, not each digit on the way to 300.
    box.setKeyboardTracking(False)
    SpinBoxFilter(box)
    shown: tuple[float, Any] = (-1, None)

    def read() -> Any:
        box.interpretText()
        if box.value() == shown[0]:
            return shown[1]
        if zero_is_none and not box.value():
            return None
        if scale == 1:
            return box.value()
        return box.value() / scale if scale > 1 else box.value() * (1 / scale)

    def show(value: Any) -> None:
        nonlocal shown
        number = (value or 0) * scale
        with QSignalBlocker(box):
            box.setValue(number if isinstance(box, QDoubleSpinBox) else round(number))  # pyright: ignore[reportArgumentType]
        shown = box.value(), value

    return Control(widget=box, read=read, show=show, changed=box.valueChanged, fit="numbers")


class _DecimalSpinBox(QDoubleSpinBox):
    # Whole numbers without decimals.

    def textFromValue(self, v: float) -> str:
        return super().textFromValue(v).removesuffix(f"{self.locale().decimalPoint()}0")


_MARGIN_EVENTS = {QEvent.Type.Show, QEvent.Type.FontChange, QEvent.Type.LayoutDirectionChange}


class SpinBoxFilter(QObject):
    """Keeps a number as far from the edge of its box as text is from that of a field, and leaves the wheel to the page.

    Qt's own box would change its value, unseen, when a page is scrolled and it comes under the mouse.
    """

    def __init__(self, box: QAbstractSpinBox) -> None:
        super().__init__(box)
        self._line = box.lineEdit()
        # The wheel gives it no focus.
        box.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        box.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.Wheel:
            event.ignore()
            return True
        if event.type() in _MARGIN_EVENTS and isinstance(watched, QAbstractSpinBox):
            # Less the border and the margin that every text line has.
            room = round(SPACE_S * watched.font().pointSizeF() / BODY_SIZE) - 1
            is_mirrored = watched.layoutDirection() is Qt.LayoutDirection.RightToLeft
            self._line.setTextMargins(0 if is_mirrored else room, 0, room if is_mirrored else 0, 0)
        return False
