"""Rows of names and values: environment variables or HTTP headers, plain or in the keyring."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from pydantic import SecretStr
from PySide6.QtCore import QCoreApplication, Qt, Signal
from PySide6.QtWidgets import QLineEdit, QWidget

from ui.forms.controls import Control
from ui.style.boxes import hbox, vbox
from ui.style.controls import IconButton, button, label
from ui.style.removal import remove_widget
from ui.style.theme import SPACE_XS, ThemeSource
from ui.style.widgets import ComboBox

_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# RFC 9110, 5.6.2.
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


@dataclass(frozen=True, slots=True)
class KeyValueLabels:
    """The words and rules for variables or for headers."""

    name: str
    value: str
    add: str
    remove: str
    explanation: str
    invalid_name: str
    missing: str
    duplicate: str
    names: re.Pattern[str]
    case_matters: bool
    only_secret: bool


def variable_labels() -> KeyValueLabels:
    """Return the words for environment variables."""
    return KeyValueLabels(
        name=_tr("Name of the variable"),
        value=_tr("Value of the variable"),
        add=_tr("Add variable"),
        remove=_tr("Remove the variable {0}"),
        explanation=_tr("Secret values go to the keyring and are never shown again. Plain ones are kept in a file."),
        invalid_name=_tr(
            "The name of a variable has only letters, digits and “_”, and does not begin with a digit. Change it."
        ),
        missing=_tr("The secret variable “{0}” has no value. Enter it, or remove the variable."),
        duplicate=_tr("There are two variables “{0}”. Remove one of them."),
        names=_VARIABLE_NAME,
        case_matters=True,
        only_secret=False,
    )


def header_labels() -> KeyValueLabels:
    """Return the words for HTTP headers."""
    return KeyValueLabels(
        name=_tr("Name of the header"),
        value=_tr("Value of the header"),
        add=_tr("Add header"),
        remove=_tr("Remove the header {0}"),
        explanation=_tr("The values of headers go to the keyring and are never shown again."),
        invalid_name=_tr("The name of a header has only letters, digits and “-”. Change it."),
        missing=_tr("The header “{0}” has no value. Enter it, or remove the header."),
        duplicate=_tr("There are two headers “{0}”. Remove one of them."),
        names=_HEADER_NAME,
        case_matters=False,
        only_secret=True,
    )


class KeyValueRow(QWidget):
    """A name and its value. A secret is hidden as it is typed."""

    changed = Signal()
    removed = Signal()

    def __init__(self, themes: ThemeSource, words: KeyValueLabels) -> None:
        super().__init__()
        self._labels = words
        self._stored_name = ""
        self._is_invalidated = False
        self.name_field = QLineEdit()
        self.name_field.setPlaceholderText(_tr("Name"))
        self.name_field.setAccessibleName(words.name)
        self.value_field = QLineEdit()
        self.value_field.setAccessibleName(words.value)
        self._kind = ComboBox()
        self._kind.setAccessibleName(_tr("Where the value is kept"))
        self._kind.addItem(_tr("Secret"), True)
        self._kind.addItem(_tr("Plain"), False)
        self._kind.setVisible(not words.only_secret)
        self._remove = IconButton(themes, "close", words.remove.format(""))
        self._remove.clicked.connect(self.removed)
        for field in (self.name_field, self.value_field):
            field.textChanged.connect(self._on_change)
        self._kind.currentIndexChanged.connect(self._on_change)
        row = hbox(parent=self, spacing=SPACE_XS, margins=0)
        row.addWidget(self.name_field, 2)
        row.addWidget(self.value_field, 3)
        row.addWidget(self._kind)
        row.addWidget(self._remove)
        self._on_change()

    def show_plain(self, name: str, value: str) -> None:
        """Show a value that is stored in a file."""
        self._kind.setCurrentIndex(1)
        self.name_field.setText(name)
        self.value_field.setText(value)

    def show_stored(self, name: str) -> None:
        """Show a name whose value is in the keyring."""
        self._stored_name = name
        self.name_field.setText(name)

    def set_stored_secrets(self, names: Collection[str]) -> None:
        """Set which names have a value in the keyring; another one must be entered."""
        if self._stored_name not in names:
            self._stored_name = ""
            self._on_change()

    def invalidate_stored(self, *, forgotten: bool) -> None:
        """Set whether the value in the keyring was given for something else."""
        self._is_invalidated = forgotten
        self._on_change()

    @property
    def name(self) -> str:
        return self.name_field.text().strip()

    @property
    def value(self) -> str:
        """The value as typed; empty if the keyring has it."""
        return self.value_field.text()

    @property
    def is_secret(self) -> bool:
        return bool(self._kind.currentData())

    @property
    def uses_stored(self) -> bool:
        """Whether the value in the keyring is used: it was stored under this name."""
        return self.is_secret and bool(self._stored_name) and self.name == self._stored_name and not self.value

    @property
    def is_empty(self) -> bool:
        return not self.name and not self.value

    def first_error(self) -> tuple[QWidget, str] | None:
        """Return the field that is wrong, and why."""
        if not self._labels.names.fullmatch(self.name):
            return self.name_field, self._labels.invalid_name
        if self.is_secret and not self.value and (not self.uses_stored or self._is_invalidated):
            return self.value_field, self._labels.missing.format(self.name)
        return None

    def _on_change(self) -> None:
        is_kept = self.uses_stored and not self._is_invalidated
        words = _tr("Kept in the keyring") if is_kept else _tr("Value")
        self.value_field.setPlaceholderText(words)
        hidden = QLineEdit.EchoMode.Password if self.is_secret else QLineEdit.EchoMode.Normal
        self.value_field.setEchoMode(hidden)
        self.value_field.setAccessibleDescription(_tr("Type here to replace it.") if is_kept else "")
        self._remove.set_name(self._labels.remove.format(self.name))
        # The fields of every row have the same names.
        self.setAccessibleName(self.name)
        self.changed.emit()


def _tr(text: str) -> str:
    return QCoreApplication.translate("ValueRow", text)


class KeyValueEditor(QWidget):
    """Rows of names and values. Values in the keyring are never shown, and can be replaced."""

    changed = Signal()

    def __init__(self, themes: ThemeSource, words: KeyValueLabels) -> None:
        super().__init__()
        self._themes = themes
        self._labels = words
        self._rows: list[KeyValueRow] = []
        self._column = vbox(spacing=SPACE_XS)
        self._add = button(words.add, self._add_row)
        layout = vbox(self._column, parent=self, spacing=SPACE_XS, margins=0)
        layout.addWidget(self._add, 0, Qt.AlignmentFlag.AlignLeft)
        layout.addWidget(label(words.explanation, "muted", wrap=True))

    @property
    def control(self) -> Control[QWidget]:
        """Return it as the control of a form; its value is plain values, and names of those in the keyring."""
        return Control(
            widget=self,
            read=lambda: (self.plain, self.secret_names),
            show=self.show_values,
            changed=self.changed,
            focus=lambda: (self._first_error() or (self, ""))[0],
        )

    def problem(self, _value: object) -> str:
        """Return what is wrong with the first row that is wrong."""
        return (self._first_error() or (self, ""))[1]

    def show_values(self, values: tuple[Mapping[str, str], Sequence[str]]) -> None:
        """Show plain values, and names whose values the keyring has."""
        plain, kept = values
        for name, value in plain.items():
            self._create_row().show_plain(name, value)
        for name in kept:
            self._create_row().show_stored(name)

    def invalidate_stored(self, *, forgotten: bool) -> None:
        """Set whether values in the keyring were given for something else: each must be entered again."""
        for row in self._rows:
            row.invalidate_stored(forgotten=forgotten)

    def set_stored_secrets(self, names: Collection[str]) -> None:
        """Set which names have a value in the keyring."""
        for row in self._rows:
            row.set_stored_secrets(names)

    @property
    def uses_stored(self) -> bool:
        return any(row.uses_stored for row in self._rows)

    @property
    def plain(self) -> dict[str, str]:
        """Values that are stored in a file."""
        return {row.name: row.value for row in self._filled_rows if not row.is_secret}

    @property
    def secret_names(self) -> tuple[str, ...]:
        """Names whose values are or will be in the keyring."""
        return tuple(row.name for row in self._filled_rows if row.is_secret)

    @property
    def secrets(self) -> dict[str, SecretStr]:
        """New values for the keyring."""
        return {row.name: SecretStr(row.value) for row in self._filled_rows if row.is_secret and row.value}

    def _first_error(self) -> tuple[QWidget, str] | None:
        names: set[str] = set()
        for row in self._filled_rows:
            error = row.first_error()
            if error is not None:
                return error
            name = row.name if self._labels.case_matters else row.name.lower()
            if name in names:
                return row.name_field, self._labels.duplicate.format(row.name)
            names.add(name)
        return None

    @property
    def _filled_rows(self) -> list[KeyValueRow]:
        return [row for row in self._rows if not row.is_empty]

    def _add_row(self) -> None:
        self._create_row().name_field.setFocus()
        self.changed.emit()

    def _create_row(self) -> KeyValueRow:
        row = KeyValueRow(self._themes, self._labels)
        row.changed.connect(self.changed)
        row.removed.connect(partial(self._remove_row, row))
        self._rows.append(row)
        self._column.addWidget(row)
        row.show()
        return row

    def _remove_row(self, row: KeyValueRow) -> None:
        self._rows.remove(row)
        remove_widget(self._column, row)
        self._add.setFocus()
        self.changed.emit()
