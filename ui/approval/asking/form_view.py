"""The form that a server asks to have filled in."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from desktop_agent.vocabulary.mcp.asking import ElicitationRequest
from ui.approval.asking.checking import FieldValue
from ui.approval.asking.field_row import FieldRow
from ui.approval.asking.fields import parse_fields
from ui.approval.asking.server_part import ServerTextFrame, quote_name
from ui.approval.asking.words_box import ServerText
from ui.look.controls import label
from ui.look.parts.scrolled_column import ScrollColumn
from ui.look.theme import SPACE_L, SPACE_S


class ElicitationForm(ScrollColumn):
    """The server's words, and its fields under them."""

    changed = Signal()

    def __init__(self, request: ElicitationRequest, parent: QWidget | None = None) -> None:
        super().__init__(SPACE_L, parent, trailing=SPACE_S)
        self.message_box = ServerText(self.tr("What the server says"))
        self.message_box.show_text(request.message)
        whose = self.tr("The form, in the words of “{0}” (nobody checked them):").format(quote_name(request.server))
        form = ServerTextFrame(whose, SPACE_L)
        fields = parse_fields(request.form)
        self._is_whole = fields is not None
        self.rows = [FieldRow(each, request.server) for each in fields or ()]
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
        """Where the keyboard begins."""
        return next((row.initial_focus for row in self.rows if row.field.kind != "unknown"), self.message_box)

    @property
    def problems(self) -> list[str]:
        """The names of the fields that keep it from being sent."""
        return [row.title for row in self.rows if row.problem]

    @property
    def can_send(self) -> bool:
        """Whether every field can be sent as it stands."""
        return self._is_whole and not self.problems

    @property
    def content(self) -> dict[str, FieldValue]:
        """What is sent: of what is optional only what was filled in."""
        values = {row.field.name: row.value for row in self.rows}
        return {name: value for name, value in values.items() if value is not None}
