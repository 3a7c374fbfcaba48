"""The page of keyboard shortcuts: find an action by words or by keys, and change its keys."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from PySide6.QtCore import QModelIndex, Qt, Signal
from PySide6.QtWidgets import QFrame, QListView, QWidget

from ui.forms.key_field import KeyField, is_bare
from ui.settings.pages import SettingEntry, page_title
from ui.style.accessibility import ChoiceList
from ui.style.boxes import hbox, vbox
from ui.style.controls import ClearableField, announce, button, label, show_words
from ui.style.layouts import FlowRows
from ui.style.list_rows import ResultModel, ResultRow, RowDelegate
from ui.style.text import native_shortcut
from ui.style.theme import SPACE_M, SPACE_S, ThemeSource
from ui.style.widgets import ComboBox, ConfirmBar

_ROWS_HEIGHT = 240
"""The least height of the list, in pixels."""


@dataclass(frozen=True, slots=True)
class Shortcut:
    """An action and its keys, in Qt's portable form; `default` are its default keys.

    `words` are synonyms for the search. `fixed` says why the keys cannot be changed. The keys are one of the `choices`,
    if there are any.
    """

    name: str
    title: str
    keys: str
    default: str
    words: str = ""
    fixed: str = ""
    choices: tuple[str, ...] = ()


def changed_keys(shortcuts: Sequence[Shortcut]) -> dict[str, str]:
    """Return the keys that are not the default, by the action's name."""
    return {shortcut.name: shortcut.keys for shortcut in shortcuts if shortcut.keys != shortcut.default}


class ShortcutSettings(QWidget):
    """A list of all actions, and below it the keys of the chosen one. Changes take effect at once."""

    keys_changed = Signal(dict)
    """All keys that are not the default, by the action's name."""
    choice_changed = Signal(str, int)
    """The name of an action with a choice of keys, and the index of the chosen ones."""

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__()
        self._shortcuts: dict[str, Shortcut] = {}
        self._chosen = ""
        self._requested = ("", "")
        """The action and the keys that the person is asked to take over."""
        self._search = ClearableField(themes, self.tr("Search shortcuts"))
        self._pressed = KeyField(self.tr("Find by pressing keys"), self.tr("Find by keys"), clears=True)
        self._rows = ResultModel(self)
        self._list = ChoiceList()
        self._title = label(kind="strong", wrap=True)
        self._field = KeyField(self.tr("Keys"), self.tr("Press keys"))
        self._choice = ComboBox()
        self._problem = label(kind="error", wrap=True)
        self._reset = button(self.tr("Reset"), partial(self._replace_keys, is_reset=True))
        self._remove = button(self.tr("No keys"), partial(self._replace_keys, is_reset=False))
        self._take_over = ConfirmBar(
            (self.tr("Cancel"), self.tr("Cancel")), (self.tr("Take over"), self.tr("Take the keys over"))
        )
        self._reset_all = button(self.tr("Reset all shortcuts"), self._ask_to_reset_all)
        self._confirm = ConfirmBar(
            (self.tr("Cancel"), self.tr("Cancel")), (self.tr("Reset all"), self.tr("Reset all shortcuts now"))
        )
        self._build(themes)
        self._connect()
        self._show_chosen()

    def show_shortcuts(self, shortcuts: Sequence[Shortcut]) -> None:
        """Show these shortcuts; the chosen one stays chosen."""
        by_name = {shortcut.name: shortcut for shortcut in shortcuts}
        if by_name != self._shortcuts:
            self._shortcuts = by_name
            self._fill()

    def entries(self) -> list[SettingEntry]:
        """Return the actions for the search of the settings."""
        title = page_title("shortcuts")
        return [
            SettingEntry("shortcuts", known.name, known.title, title, f"{known.words} {native_shortcut(known.keys)}")
            for known in self._shortcuts.values()
        ]

    def choose(self, name: str) -> None:
        """Choose an action in the unfiltered list, and focus the list."""
        self._search.clear()
        self._pressed.show_keys("")
        self._chosen = name
        self._fill()
        self._list.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def key_problem(self, keys: str) -> str:
        """Return why no action can have these keys; "" if one can."""
        shown = native_shortcut(keys)
        if keys in _TEXT_KEYS:
            return self.tr("{0} is used for editing text.").format(shown)
        if keys in {"Ctrl+Return", "Ctrl+Enter"}:
            return self.tr("{0} is used in the message editor.").format(shown)
        if is_bare(keys):
            return self.tr("{0} alone is needed for typing. Combine it with Ctrl or Alt.").format(shown)
        return ""

    def _fill(self) -> None:
        words, pressed = self._search.text().casefold().split(), self._pressed.keys
        matching = [
            shortcut
            for shortcut in self._shortcuts.values()
            if _matches(shortcut, words) and (not pressed or shortcut.keys == pressed)
        ]
        self._rows.show_rows([_row(shortcut, self._keys_text(shortcut)) for shortcut in matching])
        names = [shortcut.name for shortcut in matching]
        if self._chosen not in names:
            self._chosen = names[0] if names else ""
        if self._chosen:
            self._list.setCurrentIndex(self._rows.index(names.index(self._chosen)))
        self._show_chosen()

    def _keys_text(self, shortcut: Shortcut) -> str:
        shown = native_shortcut(shortcut.keys)
        return self.tr("{0} (changed)").format(shown or self.tr("none")) if shortcut.keys != shortcut.default else shown

    def _on_current(self, index: QModelIndex) -> None:
        row = self._rows.row(index.row()) if index.isValid() else None
        if isinstance(row, _ShortcutRow) and row.name != self._chosen:
            self._chosen = row.name
            self._show_chosen()

    def _show_chosen(self) -> None:
        shortcut = self._shortcuts.get(self._chosen)
        self._take_over.hide()
        self._show_problem("")
        self._detail.setVisible(shortcut is not None)
        if shortcut is None:
            self._problem.setText(self.tr("No action found with these words or keys.") if self._shortcuts else "")
            self._problem.setVisible(bool(self._shortcuts))
            return
        self._title.setText(shortcut.title)
        self._field.setAccessibleName(self.tr("Keys of “{0}”").format(shortcut.title))
        self._choice.setAccessibleName(self._field.accessibleName())
        self._field.show_keys(shortcut.keys)
        self._choice.clear()
        self._choice.addItems([native_shortcut(keys) for keys in shortcut.choices])
        if shortcut.choices:
            self._choice.setCurrentIndex(shortcut.choices.index(shortcut.keys))
        is_free = not shortcut.fixed and not shortcut.choices
        self._field.setVisible(is_free)
        self._choice.setVisible(bool(shortcut.choices))
        for control in (self._reset, self._remove):
            control.setVisible(is_free)
        self._reset.setEnabled(shortcut.keys != shortcut.default)
        self._remove.setEnabled(bool(shortcut.keys))
        self._reason.setText(shortcut.fixed)
        self._reason.setVisible(bool(shortcut.fixed))

    def _edit(self) -> None:
        """Focus the control that changes the keys of the chosen action."""
        control = next((control for control in (self._field, self._choice) if not control.isHidden()), None)
        if control is not None and not self._detail.isHidden():
            control.setFocus()

    def _set_keys(self, keys: str) -> None:
        shortcut = self._shortcuts.get(self._chosen)
        if shortcut is None or keys == shortcut.keys:
            self._show_chosen()
            return
        problem = self.key_problem(keys) if keys else ""
        other = next((known for known in self._shortcuts.values() if keys and known.keys == keys), None)
        if not problem and other is not None and (other.fixed or other.choices):
            problem = self.tr("{0} is used by “{1}”.").format(native_shortcut(keys), other.title)
        if problem:
            self._field.show_keys(shortcut.keys)
            self._show_problem(problem)
        elif other is not None:
            self._requested = (shortcut.name, keys)
            words = self.tr("{0} is used by “{1}”. Take it over? “{1}” then has no keys.")
            self._take_over.ask(words.format(native_shortcut(keys), other.title))
        else:
            self._change({shortcut.name: keys})

    def _change(self, keys: dict[str, str]) -> None:
        free = [shortcut for shortcut in self._shortcuts.values() if not shortcut.fixed and not shortcut.choices]
        changed = [replace(shortcut, keys=keys.get(shortcut.name, shortcut.keys)) for shortcut in free]
        self.keys_changed.emit(changed_keys(changed))

    def _on_taken_over(self) -> None:
        name, keys = self._requested
        others = {known.name: "" for known in self._shortcuts.values() if known.keys == keys}
        self._take_over.hide()
        self._field.setFocus()
        self._change({**others, name: keys})

    def _on_declined(self) -> None:
        self._show_chosen()
        self._field.setFocus()

    def _replace_keys(self, *, is_reset: bool) -> None:
        self._field.setFocus()
        self._set_keys(self._shortcuts[self._chosen].default if is_reset else "")

    def _ask_to_reset_all(self) -> None:
        self._confirm.ask(self.tr("All actions get their original keys."))

    def _on_reset_all(self) -> None:
        self._confirm.hide()
        self._list.setFocus()
        self.keys_changed.emit({})

    def _on_reset_declined(self) -> None:
        self._confirm.hide()
        self._reset_all.setFocus()

    def _on_chosen_from_menu(self, index: int) -> None:
        self.choice_changed.emit(self._chosen, index)

    def _show_problem(self, words: str) -> None:
        show_words(self._problem, words)
        if words:
            announce(self._field, words)

    def _build(self, themes: ThemeSource) -> None:
        self._search.setAccessibleName(self.tr("Search shortcuts"))
        self._list.setModel(self._rows)
        self._list.setItemDelegate(RowDelegate(themes, self._list))
        self._list.setAccessibleName(self.tr("Shortcuts"))
        self._list.setMouseTracking(True)
        self._list.setEditTriggers(QListView.EditTrigger.NoEditTriggers)
        self._list.setUniformItemSizes(True)
        self._list.setMinimumHeight(_ROWS_HEIGHT)
        self._reason = label(kind="muted", wrap=True)
        self._detail = QFrame()
        self._detail.setProperty("kind", "card")
        keys = FlowRows((self._field, self._choice, self._reset, self._remove))
        vbox(self._title, self._reason, keys, self._take_over, parent=self._detail, spacing=SPACE_S, margins=SPACE_M)
        note = self.tr(
            "Choose an action and press its new keys below the list. The keys of the approval dialog are fixed, so "
            "that nothing is allowed by mistake."
        )
        vbox(
            label(note, "muted", wrap=True),
            FlowRows((self._search, self._pressed), wide=self._search),
            self._list,
            self._detail,
            self._problem,
            self._confirm,
            hbox(self._reset_all, end_stretch=True),
            parent=self,
            spacing=SPACE_S,
            margins=0,
            grow=self._list,
        )

    def _connect(self) -> None:
        self._search.textChanged.connect(self._fill)
        self._pressed.keySequenceChanged.connect(self._fill)
        self._list.selectionModel().currentChanged.connect(self._on_current)
        self._list.activated.connect(self._edit)
        self._field.pressed.connect(self._set_keys)
        self._choice.activated.connect(self._on_chosen_from_menu)
        self._take_over.confirmed.connect(self._on_taken_over)
        self._take_over.declined.connect(self._on_declined)
        self._confirm.confirmed.connect(self._on_reset_all)
        self._confirm.declined.connect(self._on_reset_declined)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ShortcutRow(ResultRow):
    name: str = ""


def _row(shortcut: Shortcut, keys: str) -> _ShortcutRow:
    spoken = f"{shortcut.title}, {keys}" if keys else shortcut.title
    return _ShortcutRow(text=shortcut.title, detail=keys, spoken=spoken, is_choosable=True, name=shortcut.name)


def _matches(shortcut: Shortcut, words: Sequence[str]) -> bool:
    text = f"{shortcut.title} {shortcut.words} {native_shortcut(shortcut.keys)} {shortcut.keys}".casefold()
    return all(word in text for word in words)


_TEXT_KEYS = frozenset({"Ctrl+A", "Ctrl+C", "Ctrl+V", "Ctrl+X"})
