"""The form: a row for each field with its title, control, help and error."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QMouseEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractButton, QBoxLayout, QFormLayout, QFrame, QLabel, QLineEdit, QWidget

from ui.forms.controls import Control
from ui.style.boxes import hbox, vbox
from ui.style.controls import LabelKind, announce, label, line, set_style_property, show_words
from ui.style.theme import SPACE_L, SPACE_M, SPACE_S, SPACE_XS

Check = Callable[[Any], str]
"""Returns what is wrong with a value, in the person's language; empty when nothing is."""


def required(words: str) -> Check:
    """Return a check that there is a value; `words` say what to do if there is none."""
    return lambda value: "" if value else words


@dataclass(frozen=True, slots=True)
class FormStyle:
    """Where the parts of a field are: its help below the control or above it, its title above the control or beside it.

    In a card every field is a line of its own: title and help before, a control that needs little room at the end.
    """

    spacing: int
    help_kind: LabelKind
    is_help_first: bool = False
    is_title_beside: bool = False
    is_card: bool = False


EDITOR = FormStyle(SPACE_M, "small")
SETTINGS = FormStyle(0, "muted", is_card=True)
TABLE = FormStyle(SPACE_S, "muted", is_title_beside=True)
_CARD_MARGINS = (SPACE_L, SPACE_M, SPACE_L, SPACE_M)
_MIN_LETTERS = 40
"""The least width of a title and its help beside a control."""
REQUEST = FormStyle(SPACE_L, "muted", is_help_first=True)
ARGUMENTS = FormStyle(SPACE_M, "muted", is_help_first=True)


class FieldRow(QWidget):
    """A field with its help, warning and error. The error shows once the field was touched."""

    def __init__(
        self,
        title: str,
        control: Control[QWidget],
        style: FormStyle,
        help_text: str = "",
        check: Check | None = None,
        *,
        is_optional: bool = False,
        accessible_name: str = "",
    ) -> None:
        super().__init__()
        self.title, self.control = title, control
        self._check = check
        self._is_touched = False
        # The parts of the accessible description, in this order.
        self._texts = {
            "error": "",
            "optional": self.tr("Optional.") if is_optional else "",
            "help": help_text or control.widget.accessibleDescription(),
            "warning": "",
            "note": "",
        }
        self._warning = label(kind="warning", wrap=True)
        self._note = label(kind="muted", wrap=True)
        self._error = label(kind="error", wrap=True)
        if title:
            control.widget.setAccessibleName(accessible_name or title)
        self._line: QBoxLayout | None = None
        above, below = list[QLabel](), [self._note, self._warning, self._error]
        if style.is_card or not (control.has_title or style.is_title_beside):
            above.append(label(self.tr("{0} (optional)").format(title) if is_optional else title, "strong", wrap=True))
            above[0].setBuddy(control.widget)
        if help_text and style.is_help_first:
            above.append(label(help_text, style.help_kind, wrap=True))
        elif help_text:
            below.insert(0, label(help_text, style.help_kind, wrap=True))
        if style.is_card and (control.fit != "form" or control.has_title):
            self.column = vbox(*above, *below, spacing=SPACE_XS, margins=0)
            self._line = hbox(self.column, parent=self, spacing=SPACE_L, margins=_CARD_MARGINS, grow=self.column)
            self._add_at_end(control)
        else:
            margins = _CARD_MARGINS if style.is_card else 0
            self.column = vbox(*above, parent=self, spacing=SPACE_XS, margins=margins)
            self._add_control()
            for text in below:
                self.column.addWidget(text)
        for text in (self._note, self._warning, self._error):
            text.hide()
        self._update_description()

    @property
    def value(self) -> Any:
        return self.control.read()

    @property
    def is_touched(self) -> bool:
        """Whether what is wrong is shown."""
        return self._is_touched

    @property
    def problem(self) -> str:
        """Return what is wrong with the value, shown or not."""
        return self._check(self.value) if self._check is not None else ""

    @property
    def initial_focus(self) -> QWidget:
        """Return what takes the focus: the wrong part of the control, or its first."""
        if self.control.focus is not None:
            return self.control.focus()
        return self.control.parts[0] if self.control.parts else self.control.widget

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._line is not None:
            needed = self.control.widget.sizeHint().width() + _MIN_LETTERS * self.fontMetrics().averageCharWidth()
            across, down = QBoxLayout.Direction.LeftToRight, QBoxLayout.Direction.TopToBottom
            is_narrow = event.size().width() < needed and not self.control.has_title
            self._line.setDirection(down if is_narrow else across)
            self._line.setSpacing(SPACE_XS if is_narrow else SPACE_L)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """A click on the line of a check box is one on the box."""
        box = self.control.widget
        is_inside = self.rect().contains(event.position().toPoint())
        if self._line is not None and isinstance(box, QAbstractButton) and is_inside:
            box.setFocus(Qt.FocusReason.MouseFocusReason)
            box.click()

    def touch(self) -> None:
        """Show what is wrong from now on."""
        self._is_touched = True
        self.refresh()

    def refresh(self) -> None:
        """Show what is wrong now, once the field was touched."""
        if not self._is_touched:
            return
        problem = self.problem
        parts = (self.control.widget, *self.control.widget.findChildren(QLineEdit))
        wrong = None
        if problem:
            # For a group of boxes, the group is marked.
            wrong = self.initial_focus if self.initial_focus in parts else self.control.widget
        for part in parts:
            set_style_property(part, "invalid", "true" if part is wrong else "false")
        self._show_text("error", self._error, problem)

    def show_warning(self, words: str) -> None:
        """Show a warning; an empty one hides it."""
        self._show_text("warning", self._warning, words)

    def show_note(self, words: str) -> None:
        """Show what became of the value; an empty one hides it."""
        self._show_text("note", self._note, words)

    def _show_text(self, name: str, text: QLabel, words: str) -> None:
        if words == text.text():
            return
        if words:
            announce(self.control.widget, words)
        show_words(text, words)
        self._texts[name] = words
        self._update_description()

    def _update_description(self) -> None:
        description = " ".join(filter(None, self._texts.values()))
        for part in self.control.parts or (self.control.widget,):
            part.setAccessibleDescription(description)

    def _add_at_end(self, control: Control[QWidget]) -> None:
        if isinstance(control.widget, QAbstractButton):
            # The title is before it.
            control.widget.setText("")
        if self._line is not None:
            edge = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
            self._line.addWidget(control.widget, 0, edge)

    def add_below(self, widget: QWidget) -> None:
        """Put a widget below the control, and after it in Tab's order."""
        if self._line is None:
            self.column.addWidget(widget)
        else:
            self._line.removeWidget(self.control.widget)
            self._line.addLayout(vbox(self.control.widget, widget, spacing=SPACE_XS, margins=0))

    def _add_control(self) -> None:
        widget = self.control.view or self.control.widget
        if self.control.fit == "numbers":
            row = hbox(widget, grow=widget)
            row.addStretch(0)
            self.column.addLayout(row)
        else:
            edge = Qt.AlignmentFlag.AlignLeft if self.control.fit == "itself" else Qt.AlignmentFlag(0)
            self.column.addWidget(widget, 0, edge)


class Form(QWidget):
    """Fields by name, in the order in which they are added."""

    changed = Signal(str)
    """The person changed the value of this field."""

    def __init__(self, style: FormStyle = EDITOR) -> None:
        super().__init__()
        self._style = style
        self.rows: dict[str, FieldRow] = {}
        self._hairlines: dict[str, QWidget] = {}
        """The lines above the fields, in a card."""
        self._table = QFormLayout(self) if style.is_title_beside else None
        container: QWidget = self
        if style.is_card:
            container = QFrame()
            container.setProperty("kind", "card")
            vbox(container, parent=self, margins=0)
        self._column = vbox(parent=container, spacing=style.spacing, margins=0) if self._table is None else None
        if self._table is not None:
            self._table.setContentsMargins(0, 0, 0, 0)
            self._table.setSpacing(style.spacing)
            self._table.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapLongRows)
            self._table.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)

    def add_field(
        self,
        name: str,
        title: str,
        control: Control[QWidget],
        check: Check | None = None,
        *,
        help_text: str = "",
        is_optional: bool = False,
        accessible_name: str = "",
    ) -> FieldRow:
        """Add a field. `accessible_name` is the control's where the title alone says too little."""
        row = FieldRow(
            title, control, self._style, help_text, check, is_optional=is_optional, accessible_name=accessible_name
        )
        self.rows[name] = row
        if control.changed is not None:
            control.changed.connect(partial(self._on_changed, name))
        if self._column is not None:
            if self._style.is_card and self._column.count():
                self._hairlines[name] = line()
                self._column.addWidget(self._hairlines[name])
            self._column.addWidget(row)
        elif self._table is not None and control.has_title:
            self._table.addRow(row)
        elif self._table is not None:
            heading = label(title)
            heading.setBuddy(control.widget)
            self._table.addRow(heading, row)
        return row

    def show_field(self, name: str, *, is_shown: bool) -> None:
        """Show or hide a field, with the line above it in a card."""
        row = self.rows[name]
        if name in self._hairlines:
            self._hairlines[name].setVisible(is_shown)
        row.setVisible(is_shown)

    @property
    def values(self) -> dict[str, Any]:
        return {name: row.value for name, row in self.rows.items()}

    def show_values(self, values: Mapping[str, Any]) -> None:
        """Show the values of the fields that are named, without a signal."""
        for name, row in self.rows.items():
            if name in values:
                row.control.show(values[name])
                row.refresh()

    def show_errors(self) -> bool:
        """Validate all fields and focus the first wrong one; return whether there is one."""
        for row in self.rows.values():
            row.touch()
        wrong = next((row for row in self.rows.values() if row.problem), None)
        if wrong is not None:
            wrong.initial_focus.setFocus()
        return wrong is not None

    def event(self, event: QEvent) -> bool:
        """Make all number fields as wide as the widest."""
        if event.type() in {QEvent.Type.LayoutRequest, QEvent.Type.Show}:
            numbers = [row.control.widget for row in self.rows.values() if row.control.fit == "numbers"]
            widest = max((box.sizeHint().width() for box in numbers), default=0)
            for box in numbers:
                box.setMaximumWidth(widest)
        return super().event(event)

    def _on_changed(self, name: str, *_value: object) -> None:
        self.rows[name].touch()
        for row in self.rows.values():
            row.refresh()
        self.changed.emit(name)
