"""Names and values, of variables or of headers: each plain, or a secret that goes to the keyring."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from pydantic import SecretStr
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from ui.look.controls import button, label
from ui.look.theme import SPACE_XS, ThemeSource
from ui.preferences.tool_servers.editing.value_row import KeyValueLabels, KeyValueRow


class KeyValueEditor(QWidget):
    """`kept` are names whose values lie in the keyring: they are never shown, and can be replaced."""

    changed = Signal()

    def __init__(self, themes: ThemeSource, words: KeyValueLabels, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._labels = words
        self._rows: list[KeyValueRow] = []
        self._column = QVBoxLayout()
        self._column.setSpacing(SPACE_XS)
        self._add = button(words.add, self._add_row)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_XS)
        layout.addLayout(self._column)
        layout.addWidget(self._add, 0, Qt.AlignmentFlag.AlignLeft)
        layout.addWidget(label(words.explanation, "muted", wrap=True))

    def show_values(self, plain: Mapping[str, str], kept: Sequence[str]) -> None:
        """Those that are there."""
        for name, value in plain.items():
            self._create_row().show_plain(name, value)
        for name in kept:
            self._create_row().show_stored(name)

    def invalidate_stored(self, *, forgotten: bool) -> None:
        """The values in the keyring were given for something else: each must be given again, or not any more."""
        for row in self._rows:
            row.invalidate_stored(forgotten=forgotten)

    def set_stored_secrets(self, names: Collection[str]) -> None:
        """Of those whose values should lie in the keyring these do."""
        for row in self._rows:
            row.set_stored_secrets(names)

    @property
    def uses_stored(self) -> bool:
        """Whether a value in the keyring would be used."""
        return any(row.uses_stored for row in self._rows)

    @property
    def plain(self) -> dict[str, str]:
        """Values that lie in a file."""
        return {row.name: row.value for row in self._filled_rows if not row.is_secret}

    @property
    def secret_names(self) -> tuple[str, ...]:
        """Names whose values lie in the keyring, or will."""
        return tuple(row.name for row in self._filled_rows if row.is_secret)

    @property
    def secrets(self) -> dict[str, SecretStr]:
        """Values that are new."""
        return {row.name: SecretStr(row.value) for row in self._filled_rows if row.is_secret and row.value}

    def first_error(self) -> tuple[QWidget, str] | None:
        """The first field that cannot be saved, and why."""
        seen: set[str] = set()
        for row in self._filled_rows:
            found = row.first_error()
            if found is not None:
                return found
            name = row.name if self._labels.case_matters else row.name.lower()
            if name in seen:
                return row.name_field, self._labels.duplicate.format(row.name)
            seen.add(name)
        return None

    @property
    def _filled_rows(self) -> list[KeyValueRow]:
        """A row in which nothing stands is none."""
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
        self._column.removeWidget(row)
        row.hide()
        row.deleteLater()
        self._add.setFocus()
        self.changed.emit()
