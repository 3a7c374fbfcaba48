"""The form of an elicitation request: a row for each field, with its error."""

from typing import cast

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QComboBox, QLabel, QLineEdit, QSizePolicy, QWidget

from desktop_agent.types.mcp import ElicitationRequest
from ui.approval.elicitation.form_fields import FieldValue, FormField, parse_fields, parse_value, validate_value
from ui.approval.untrusted_text import ServerText, ServerTextFrame, quote_name
from ui.style.boxes import vbox
from ui.style.controls import ComboBox, label, set_style_property
from ui.style.layouts import ScrollColumn
from ui.style.text import show_hidden
from ui.style.theme import SPACE_L, SPACE_S, SPACE_XS
from ui.style.widgets import WrappedChoice

MAX_TITLE_LENGTH = 200


class FieldRow(QWidget):
    """A field with its title, description and error. The error shows from the first change on."""

    changed = Signal()

    def __init__(self, field: FormField, server: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.field = field
        self._server = server
        self._boxes: list[QCheckBox] = []
        self.title = " ".join(show_hidden(field.title).split())[:MAX_TITLE_LENGTH]
        self._problem = label(kind="error", wrap=True)
        self._is_touched = False
        self._layout = vbox(parent=self, spacing=SPACE_XS, margins=0)
        self._control = self._build_layout()
        self._problem.hide()
        self._layout.addWidget(self._problem)
        self._set_descriptions("")

    @property
    def problem(self) -> str:
        """Return why the value cannot be sent, or an empty string."""
        if self.field.kind == "unknown":
            return self.tr("This cannot be filled in here.") if self.field.required else ""
        return validate_value(self.field, self._input)

    @property
    def value(self) -> FieldValue:
        """The value to send, or None for none."""
        return None if self.field.kind == "unknown" else parse_value(self.field, self._input)

    @property
    def initial_focus(self) -> QWidget:
        return self._boxes[0] if self._boxes else self._control

    @property
    def _input(self) -> str | bool | list[str]:
        control = self._control
        if isinstance(control, QComboBox):
            return cast("str", control.currentData() or "")
        if isinstance(control, QLineEdit):
            return control.text()
        if isinstance(control, QCheckBox):
            return control.isChecked()
        chosen = zip(self.field.choices, self._boxes, strict=False)
        return [choice.value for choice, box in chosen if box.isChecked()]

    def _on_edited(self) -> None:
        self._is_touched = True
        self._show_problem(self.problem)
        self.changed.emit()

    def _show_problem(self, problem: str) -> None:
        self._problem.setText(problem)
        self._problem.setVisible(bool(problem))
        set_style_property(self._control, "invalid", "true" if problem else "false")
        self._set_descriptions(problem)

    def _set_descriptions(self, problem: str) -> None:
        warning = self._warning if self.field.looks_secret else ""
        optional = "" if self.field.required or self.field.kind == "yes_no" else self.tr("Optional.")
        parts = (problem, optional, show_hidden(self.field.description), warning)
        for box in self._boxes or [self._control]:
            box.setAccessibleDescription(" ".join(part for part in parts if part))

    @property
    def _warning(self) -> str:
        words = self.tr(
            "This looks like a password or a key. A server may not ask for one in a form: what stands here goes to "
            "“{0}” as it is."
        )
        return words.format(quote_name(self._server))

    def _build_layout(self) -> QWidget:
        field, control = self.field, self._create_control()
        if not isinstance(control, QCheckBox):
            heading = label(self._heading(), "strong", wrap=True)
            heading.setBuddy(control)
            self._layout.addWidget(heading)
        if field.description:
            self._layout.addWidget(label(show_hidden(field.description), "muted", wrap=True))
        self._layout.addWidget(WrappedChoice(control, self.title) if isinstance(control, QCheckBox) else control)
        if field.looks_secret:
            self._layout.addWidget(label(self._warning, "warning", wrap=True))
        for text in self.findChildren(QLabel):
            text.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        return control

    def _heading(self) -> str:
        return self.title if self.field.required else self.tr("{0} (optional)").format(self.title)

    def _create_control(self) -> QWidget:
        match self.field.kind:
            case "yes_no":
                return self._create_checkbox()
            case "one":
                return self._create_menu()
            case "several":
                return self._create_checkboxes()
            case "unknown":
                return label(self.tr("The server wants something here that this form cannot hold."), "muted", wrap=True)
            case _:
                return self._create_line_edit()

    def _create_line_edit(self) -> QLineEdit:
        field, line = self.field, QLineEdit()
        examples = {"date": "2026-03-31", "date-time": "2026-03-31T14:30:00Z", "email": "ada@example.org"}
        line.setPlaceholderText(examples.get(field.format, "https://" if field.format == "uri" else ""))
        if isinstance(field.default, str | int | float) and not isinstance(field.default, bool):
            line.setText(str(field.default))
        line.setAccessibleName(self.title)
        line.textEdited.connect(self._on_edited)
        return line

    def _create_checkbox(self) -> QCheckBox:
        box = QCheckBox()
        box.setChecked(self.field.default is True)
        box.toggled.connect(self._on_edited)
        return box

    def _create_menu(self) -> QComboBox:
        box, values = ComboBox(), [choice.value for choice in self.field.choices]
        has_default = self.field.default in values
        if not has_default or not self.field.required:
            box.addItem(self.tr("Choose…") if self.field.required else self.tr("Nothing chosen"), "")
        for choice in self.field.choices:
            box.addItem(show_hidden(choice.title), choice.value)
        if has_default:
            box.setCurrentIndex(box.findData(self.field.default))
        box.setAccessibleName(self.title)
        # As wide as the form, even with long choices.
        box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        box.setMinimumContentsLength(12)
        box.currentIndexChanged.connect(self._on_edited)
        return box

    def _create_checkboxes(self) -> QWidget:
        group = QWidget()
        group.setAccessibleName(self.title)
        layout = vbox(parent=group, spacing=SPACE_XS, margins=0)
        default_value: object = self.field.default
        default = cast("list[object]", default_value) if isinstance(default_value, list) else []
        for choice in self.field.choices:
            title = show_hidden(choice.title)
            box = QCheckBox()
            box.setChecked(choice.value in default)
            box.toggled.connect(self._on_edited)
            self._boxes.append(box)
            layout.addWidget(WrappedChoice(box, title))
            box.setAccessibleName(f"{self.title}: {title}")
        return group


class ElicitationForm(ScrollColumn):
    """The message of the server, and its fields below."""

    changed = Signal()

    def __init__(self, request: ElicitationRequest, parent: QWidget | None = None) -> None:
        super().__init__(SPACE_L, parent, trailing=SPACE_S)
        self.message_box = ServerText(self.tr("What the server says"))
        self.message_box.show_text(request.message)
        whose = self.tr("The form, in the words of “{0}” (nobody checked them):").format(quote_name(request.server))
        form = ServerTextFrame(whose, SPACE_L)
        fields = parse_fields(request.form)
        self._is_whole = fields is not None
        self.rows = [FieldRow(field, request.server) for field in fields or ()]
        form.column.addWidget(self.message_box)
        self.column.addWidget(form)
        for row in self.rows:
            form.column.addWidget(row)
            row.changed.connect(self.changed)
        if not self._is_whole:
            words = self.tr("The form is broken or has too many fields to be shown. It can only be declined.")
            self.column.addWidget(label(words, "error", wrap=True))
        self.column.addStretch(1)

    @property
    def initial_focus(self) -> QWidget:
        return next((row.initial_focus for row in self.rows if row.field.kind != "unknown"), self.message_box)

    @property
    def problems(self) -> list[str]:
        """The titles of the fields with errors."""
        return [row.title for row in self.rows if row.problem]

    @property
    def can_send(self) -> bool:
        return self._is_whole and not self.problems

    @property
    def content(self) -> dict[str, FieldValue]:
        """Return the values to send, without optional fields that are empty."""
        values = {row.field.name: row.value for row in self.rows}
        return {name: value for name, value in values.items() if value is not None}
