"""One name and its value."""

import re
from collections.abc import Collection
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication, Signal
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QWidget

from ui.look.controls import ChoiceBox, IconButton
from ui.look.theme import SPACE_XS, ThemeSource

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# RFC 9110, 5.6.2.
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


@dataclass(frozen=True, slots=True)
class ValueWords:
    """How variables are spoken of, or headers."""

    name: str
    value: str
    add: str
    remove: str
    explanation: str
    wrong_name: str
    missing: str
    twice: str
    names: re.Pattern[str]
    case_matters: bool
    only_secret: bool


def variable_words() -> ValueWords:
    """Of the environment of a program."""
    return ValueWords(
        name=_tr("Name of the variable"),
        value=_tr("Value of the variable"),
        add=_tr("Add variable"),
        remove=_tr("Remove the variable {0}"),
        explanation=_tr("Secret values go to the keyring and are never shown again. Plain ones are kept in a file."),
        wrong_name=_tr("The name of a variable has letters, digits and “_”, and begins with no digit. Change it."),
        missing=_tr("The secret variable “{0}” has no value. Enter it, or remove the variable."),
        twice=_tr("There are two variables “{0}”. Remove one of them."),
        names=_VARIABLE,
        case_matters=True,
        only_secret=False,
    )


def header_words() -> ValueWords:
    """Of what goes along with each question to an address."""
    return ValueWords(
        name=_tr("Name of the header"),
        value=_tr("Value of the header"),
        add=_tr("Add header"),
        remove=_tr("Remove the header {0}"),
        explanation=_tr("The values of headers go to the keyring and are never shown again."),
        wrong_name=_tr("The name of a header has letters, digits and “-”. Change it."),
        missing=_tr("The header “{0}” has no value. Enter it, or remove the header."),
        twice=_tr("There are two headers “{0}”. Remove one of them."),
        names=_HEADER,
        case_matters=False,
        only_secret=True,
    )


class ValueRow(QWidget):
    """A secret is hidden as it is typed."""

    changed = Signal()
    removed = Signal()

    def __init__(self, themes: ThemeSource, words: ValueWords, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._words = words
        self._kept = ""
        self._is_forgotten = False
        self.name_field = QLineEdit()
        self.name_field.setPlaceholderText(_tr("Name"))
        self.name_field.setAccessibleName(words.name)
        self.value_field = QLineEdit()
        self.value_field.setAccessibleName(words.value)
        self._kind = ChoiceBox()
        self._kind.setAccessibleName(_tr("Where the value is kept"))
        self._kind.addItem(_tr("Secret"), True)
        self._kind.addItem(_tr("Plain"), False)
        self._kind.setVisible(not words.only_secret)
        self._remove = IconButton(themes, "close", words.remove.format(""))
        self._remove.clicked.connect(self._say_removed)
        for field in (self.name_field, self.value_field):
            field.textChanged.connect(self._on_change)
        self._kind.currentIndexChanged.connect(self._on_change)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(SPACE_XS)
        row.addWidget(self.name_field, 2)
        row.addWidget(self.value_field, 3)
        row.addWidget(self._kind)
        row.addWidget(self._remove)
        self._on_change()

    def show_plain(self, name: str, value: str) -> None:
        """One that lies in a file."""
        self._kind.setCurrentIndex(1)
        self.name_field.setText(name)
        self.value_field.setText(value)

    def show_kept(self, name: str) -> None:
        """One whose value lies in the keyring."""
        self._kept = name
        self.name_field.setText(name)

    def show_held(self, names: Collection[str]) -> None:
        """These have a value in the keyring: one that is not among them has to be given."""
        if self._kept not in names:
            self._kept = ""
            self._on_change()

    def forget_kept(self, *, forgotten: bool) -> None:
        """What lies in the keyring was given for something else."""
        self._is_forgotten = forgotten
        self._on_change()

    @property
    def name(self) -> str:
        """As typed."""
        return self.name_field.text().strip()

    @property
    def value(self) -> str:
        """As typed; nothing where the keyring has it."""
        return self.value_field.text()

    @property
    def is_secret(self) -> bool:
        """Whether it belongs into the keyring."""
        return bool(self._kind.currentData())

    @property
    def keeps(self) -> bool:
        """Whether the value in the keyring is meant: it was given under this very name."""
        return self.is_secret and bool(self._kept) and self.name == self._kept and not self.value

    @property
    def is_empty(self) -> bool:
        """Nothing stands in it."""
        return not self.name and not self.value

    def wrong(self) -> tuple[QWidget, str] | None:
        """What cannot be saved, and why."""
        if not self._words.names.fullmatch(self.name):
            return self.name_field, self._words.wrong_name
        if self.is_secret and not self.value and (not self.keeps or self._is_forgotten):
            return self.value_field, self._words.missing.format(self.name)
        return None

    def _say_removed(self) -> None:
        self.removed.emit()

    def _on_change(self) -> None:
        is_kept = self.keeps and not self._is_forgotten
        words = _tr("Kept in the keyring") if is_kept else _tr("Value")
        self.value_field.setPlaceholderText(words)
        hidden = QLineEdit.EchoMode.Password if self.is_secret else QLineEdit.EchoMode.Normal
        self.value_field.setEchoMode(hidden)
        self.value_field.setAccessibleDescription(_tr("What is typed here replaces it.") if is_kept else "")
        self._remove.setAccessibleName(self._words.remove.format(self.name))
        self.changed.emit()


def _tr(text: str) -> str:
    return QCoreApplication.translate("ValueRow", text)
