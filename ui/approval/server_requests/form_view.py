"""The form of an elicitation request: a row for each field, with its error."""

from collections import Counter
from functools import partial

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from desktop_agent.types.mcp import ElicitationRequest
from ui.approval.server_requests.form_fields import (
    FieldValue,
    FormField,
    parse_fields,
    parse_value,
    plain_letters,
    validate_value,
)
from ui.approval.server_requests.request_views import RequestView
from ui.approval.untrusted_text import ServerText, ServerTextFrame, quote_name
from ui.forms.controls import Control, check_box, check_boxes, menu, text_line
from ui.forms.form import REQUEST, FieldRow, Form
from ui.style.controls import label
from ui.style.text import join_names, show_hidden
from ui.style.theme import SPACE_L, SPACE_S

MAX_TITLE_LENGTH = 200
MAX_SMALL_FORM_FIELDS = 2
_MIN_MENU_CHARS = 12


class ElicitationForm(RequestView):
    """The message of the server, and its fields below."""

    def __init__(self, request: ElicitationRequest) -> None:
        super().__init__(SPACE_L, trailing=SPACE_S)
        self.message_box = ServerText(self.tr("Message from the server"))
        self.message_box.show_text(request.message)
        whose = self.tr("The form, as “{0}” wrote it (not verified):").format(quote_name(request.server))
        frame = ServerTextFrame(whose, SPACE_L)
        fields = parse_fields(request.form)
        self._is_whole = fields is not None
        self._fields = {field.name: field for field in fields or ()}
        self._form = Form(REQUEST)
        self._form.changed.connect(self._refresh)
        for field in self._fields.values():
            self._add_field(field, request.server)
        for text in self._form.findChildren(QLabel):
            text.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        frame.column.addWidget(self.message_box)
        frame.column.addWidget(self._form)
        self._form.setVisible(bool(self._fields))
        self.column.addWidget(frame)
        if not self._is_whole:
            words = self.tr("The form is broken or has too many fields to be shown. It can only be declined.")
            self.column.addWidget(label(words, "error", wrap=True))
        self.column.addStretch(1)

        self.is_small = len(self._fields) <= MAX_SMALL_FORM_FIELDS
        self._refresh()

    def _refresh(self) -> None:
        wrong = [row for row in self.rows if row.problem]
        self.can_accept = self._is_whole and not wrong
        # Nobody is told to correct what they have not come to yet.
        if touched := [row for row in wrong if row.is_touched]:
            self.hint = self.tr("Please correct: {0}").format(_quoted_titles(touched))
        else:
            self.hint = self.tr("Please fill in: {0}").format(_quoted_titles(wrong)) if wrong else ""
        self.changed.emit()

    @property
    def rows(self) -> list[FieldRow]:
        return list(self._form.rows.values())

    @property
    def initial_focus(self) -> QWidget | None:
        """The first field that can be filled in, else the message."""
        known = (name for name, field in self._fields.items() if field.kind != "unknown")
        first = next(known, None)
        return self.message_box if first is None else self._form.rows[first].initial_focus

    @property
    def content(self) -> dict[str, FieldValue]:
        """The values to send, without optional fields that are empty."""
        values = {
            name: parse_value(self._fields[name], row.value)
            for name, row in self._form.rows.items()
            if self._fields[name].kind != "unknown"
        }
        return {name: value for name, value in values.items() if value is not None}

    def _add_field(self, field: FormField, server: str) -> None:
        title = " ".join(show_hidden(field.title).split())[:MAX_TITLE_LENGTH]
        row = self._form.add_field(
            field.name,
            title,
            _create_control(field, title),
            partial(validate_value, field),
            help_text=show_hidden(field.description),
            is_optional=not field.required and field.kind != "yes_no",
        )
        if field.looks_secret:
            words = self.tr(
                "This looks like a password or a key. Servers may not ask for one in a form: “{0}” gets it just as "
                "you typed it."
            )
            row.show_warning(words.format(quote_name(server)))


def _quoted_titles(rows: list[FieldRow]) -> str:
    return join_names(_tr("“{0}”").format(quote_name(row.title)) for row in rows)


_EXAMPLES = {
    "date": "2026-03-31",
    "date-time": "2026-03-31T14:30:00Z",
    "email": "ada@example.org",
    "uri": "https://",
}


def _create_control(field: FormField, title: str) -> Control[QWidget]:
    choices = [(choice.value, words) for choice, words in zip(field.choices, _choice_titles(field), strict=True)]
    control: Control[QWidget]
    match field.kind:
        case "yes_no":
            control = check_box(title)
        case "one":
            control = _create_menu(field, choices)
        case "several":
            control = check_boxes(choices, name=title)
        case "unknown":
            words = _tr("The server asks for something here that this form cannot show.")
            return Control(widget=label(words, "muted", wrap=True), read=lambda: "", show=lambda _: None)
        case "text" | "number" | "integer":
            control = text_line(placeholder=_EXAMPLES.get(field.format, ""), is_exact=True)
    default = field.usable_default
    if default is not None:
        control.show(default)
    return control


def _choice_titles(field: FormField) -> list[str]:
    """Return the titles, with their values if several read the same."""
    readings = [" ".join(plain_letters(choice.title).split()).casefold() for choice in field.choices]
    counts = Counter(readings)
    return [
        show_hidden(choice.title if counts[reading] == 1 else f"{choice.title} ({choice.value})")
        for choice, reading in zip(field.choices, readings, strict=True)
    ]


def _create_menu(field: FormField, choices: list[tuple[str, str]]) -> Control[QWidget]:
    if field.usable_default is None or not field.required:
        choices = [("", _tr("Choose…") if field.required else _tr("Nothing chosen")), *choices]
    return menu(choices, characters=_MIN_MENU_CHARS)


def _tr(text: str) -> str:
    return QCoreApplication.translate("FieldRow", text)
