"""The form of one section of the preferences, made from its declaration."""

from functools import partial
from typing import Any

from pydantic import BaseModel
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from ui.look.controls import label
from ui.look.theme import SPACE_L, SPACE_XS
from ui.preferences.field_controls import FieldControl, control_for, translate_preference


class SectionForm(QWidget):
    """A title, a control and a description for each field."""

    value_changed = Signal(str, object)
    """The field's name and its new value."""

    def __init__(self, section: BaseModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._controls: dict[str, FieldControl] = {}
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_XS)
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
        """Show the values as they are; nothing is reported."""
        for name, control in self._controls.items():
            control.show(getattr(section, name))

    def _emit_change(self, name: str, value: Any) -> None:
        self.value_changed.emit(name, value)
