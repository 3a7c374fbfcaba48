"""One specialist being written: checked when it is saved."""

from collections.abc import Iterable, Sequence

from pydantic import ValidationError
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QDoubleSpinBox,
    QFormLayout,
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QPlainTextEdit,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from desktop_agent.vocabulary.conduct.specialists import Specialist
from ui.look.controls import announce, button, label, set_kind
from ui.look.theme import SPACE_M, SPACE_S

PROMPT_LINES = 5
MOST_TOKENS = 2_000_000_000
MOST_COST = 1_000_000.0


class SpecialistEditor(QFrame):
    """What is not shown here (its mode, its own specialists, how it reasons) stays as it is."""

    saved = Signal(object)
    """The Specialist as it shall be."""
    cancelled = Signal()

    def __init__(
        self, specialist: Specialist | None, taken: Iterable[str], tools: Sequence[str], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._before = specialist
        self._taken = frozenset(taken)
        self._name = QLineEdit()
        self._description = QLineEdit()
        self._prompt = QPlainTextEdit()
        self._model = QLineEdit()
        self._tools = QLineEdit()
        self._known = label(kind="small", wrap=True)
        self._share = QSpinBox()
        self._tokens = QSpinBox()
        self._cost = QDoubleSpinBox()
        self._problem = label(kind="error", wrap=True)
        self._set_up()
        self._arrange()
        self.show_tools(tools)
        if specialist is not None:
            self._fill(specialist)

    def begin(self) -> None:
        """The person wants to write."""
        self._name.setFocus()

    def show_tools(self, names: Sequence[str]) -> None:
        """The tools of the conversation that is open, to choose from."""
        self._known.setText(self.tr("Tools here: {0}").format(", ".join(names)))
        self._known.setVisible(bool(names))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape leaves everything as it was, and only that."""
        if event.key() == Qt.Key.Key_Escape:
            self.cancelled.emit()
        else:
            super().keyPressEvent(event)

    def save(self) -> None:
        """Hand it on, or say what is missing."""
        wrong = self._wrong()
        made = None if wrong is not None else self._made()
        if made is not None:
            self.saved.emit(made)
            return
        field, words = wrong or (self._name, self.tr("This cannot be saved. Look at each field again."))
        for each in (self._name, self._description, self._prompt):
            set_kind(each, "invalid", "true" if each is field else "false")
        self._problem.setText(words)
        self._problem.show()
        announce(self, words)
        field.setFocus()

    def _wrong(self) -> tuple[QWidget, str] | None:
        name = self._name.text().strip()
        if not name.isascii() or not name.replace("-", "_").isidentifier() or name.startswith("-") or len(name) > 64:
            words = self.tr("A name is made of letters, digits, “_” and “-”, and begins with a letter. Change it.")
            return self._name, words
        if name in self._taken:
            return self._name, self.tr("Another specialist or tool has this name. Choose another one.")
        if not self._description.text().strip():
            return self._description, self.tr("The agent reads the description to know whom to call. Write one.")
        if not self._prompt.toPlainText().strip():
            return self._prompt, self.tr("A specialist needs instructions. Write what it is and how it works.")
        return None

    def _made(self) -> Specialist | None:
        before = self._before
        limits = (before.limits if before is not None else Specialist.model_fields["limits"].default).model_dump()
        base = before.model_dump() if before is not None else {}
        try:
            return Specialist.model_validate(
                {
                    **base,
                    "name": self._name.text().strip(),
                    "description": self._description.text().strip(),
                    "system_prompt": self._prompt.toPlainText().strip(),
                    "model": self._model.text().strip() or None,
                    "tools": tuple(dict.fromkeys(self._tools.text().replace(",", " ").split())),
                    "share": self._share.value() / 100,
                    "limits": {
                        **limits,
                        "tokens": self._tokens.value() or None,
                        "cost": self._cost.value() or None,
                    },
                }
            )
        except ValidationError:
            return None

    def _fill(self, specialist: Specialist) -> None:
        self._name.setText(specialist.name)
        self._description.setText(specialist.description)
        self._prompt.setPlainText(specialist.system_prompt)
        self._model.setText(specialist.model or "")
        self._tools.setText(", ".join(specialist.tools))
        self._share.setValue(round(specialist.share * 100))
        self._tokens.setValue(specialist.limits.tokens or 0)
        self._cost.setValue(specialist.limits.cost or 0)

    def _set_up(self) -> None:
        self._name.setMaxLength(64)
        self._model.setPlaceholderText(self.tr("The model of whoever calls it"))
        self._tools.setPlaceholderText(self.tr("None"))
        self._prompt.setTabChangesFocus(True)
        self._prompt.setFixedHeight(self._prompt.fontMetrics().lineSpacing() * PROMPT_LINES + SPACE_M)
        self._share.setRange(1, 100)
        self._share.setValue(50)
        self._share.setSuffix(" %")
        self._tokens.setRange(0, MOST_TOKENS)
        self._tokens.setSingleStep(10_000)
        self._tokens.setGroupSeparatorShown(True)
        self._cost.setRange(0, MOST_COST)
        self._cost.setPrefix("$")
        for each in (self._tokens, self._cost):
            each.setSpecialValueText(self.tr("No limit"))
        self._problem.hide()

    def _arrange(self) -> None:
        form = QFormLayout()
        form.setSpacing(SPACE_S)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.ExpandingFieldsGrow)
        for title, field in (
            (self.tr("Name"), self._name),
            (self.tr("Description"), self._description),
            (self.tr("Instructions"), self._prompt),
            (self.tr("Model"), self._model),
            (self.tr("Tools"), self._tools),
            (self.tr("Share of the budget"), self._share),
            (self.tr("Most tokens"), self._tokens),
            (self.tr("Most cost"), self._cost),
        ):
            field.setAccessibleName(title)
            form.addRow(title, field)
        form.insertRow(5, "", self._known)
        foot = QHBoxLayout()
        foot.setSpacing(SPACE_S)
        foot.addStretch(1)
        foot.addWidget(button(self.tr("Cancel"), self.cancelled.emit))
        foot.addWidget(button(self.tr("Save"), self.save, "primary"))
        self.setProperty("kind", "card")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_M, SPACE_M, SPACE_M, SPACE_M)
        layout.setSpacing(SPACE_S)
        layout.addLayout(form)
        layout.addWidget(self._problem)
        layout.addLayout(foot)
