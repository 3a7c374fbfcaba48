"""Lists of cards on a page of the settings, of which one can be open in an editor."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from pydantic import ValidationError
from PySide6.QtCore import QCoreApplication, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QApplication, QFrame, QLabel, QPushButton, QVBoxLayout, QWidget

from ui.bridge.settings import ToolGroup
from ui.forms.form import EDITOR, Form, FormStyle
from ui.style.boxes import hbox, vbox
from ui.style.controls import ButtonKind, announce, button, label, show_words
from ui.style.layouts import PartFocus, StickyFoot, scroll_area_of
from ui.style.removal import remove_widget
from ui.style.theme import SPACE_M, SPACE_S
from ui.style.widgets import ConfirmBar


def scroll_into_view(widget: QWidget) -> None:
    """Scroll the page so that the widget begins at its top, if possible, once it is laid out."""
    QTimer.singleShot(0, widget, lambda: _scroll_to(widget))


def _scroll_to(widget: QWidget) -> None:
    area = scroll_area_of(widget)
    if area is None or (page := area.widget()) is None:
        return
    layout = page.layout()
    if layout is not None:
        layout.activate()
    top = widget.mapTo(page, QPoint(0, 0)).y()
    bar = area.verticalScrollBar()
    below = top + widget.height() > bar.value() + area.viewport().height()
    if top < bar.value() or below:
        bar.setValue(max(0, top - SPACE_M))


class Card(QFrame):
    """A card whose edit buttons are disabled while something else is being edited."""

    edit_buttons: Sequence[QPushButton] = ()
    """The buttons that open an editor."""

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("kind", "card")

    def set_can_edit(self, *, can: bool) -> None:
        """Enable or disable the edit buttons."""
        words = QCoreApplication.translate("Cards", "Save or cancel your changes first")
        for control in self.edit_buttons:
            control.setEnabled(can)
            control.setToolTip("" if can else words)


class RemovalQuestion(ConfirmBar):
    """The question of a card before something is removed for good. The card places it and its `button`."""

    def __init__(
        self,
        question: str,
        name: tuple[str, str],
        keep: tuple[str, str],
        confirm: tuple[str, str],
        kind: ButtonKind = "danger",
    ) -> None:
        """The text and the accessible name of each button; `name` is that of the button that asks."""
        super().__init__(keep, confirm)
        self.button = button(name[0], self._ask, kind, name[1])
        self.question = question
        self.confirmed.connect(self._close)
        self.declined.connect(self._close)

    def _ask(self) -> None:
        self.button.setEnabled(False)
        self.ask(self.question)
        scroll_into_view(self)

    def _close(self) -> None:
        self.hide()
        self.button.setEnabled(True)
        self.button.setFocus()


@dataclass(frozen=True, slots=True)
class _ButtonPlace:
    """A button of a card that may be created again: found by its name, or else by its index."""

    key: str
    name: str
    index: int

    def find(self, card: Card) -> QWidget:
        """Return the button, or the next one if it is gone; the card if neither can be pressed now."""
        buttons = card.findChildren(QPushButton)
        same = next((control for control in buttons if control.accessibleName() == self.name), None)
        following = buttons[self.index :] if same is None else [same]
        return next((control for control in following if control.isVisible() and control.isEnabled()), card)


class CardList(QVBoxLayout):
    """Cards by key, with one editor among them that stays open however the cards change."""

    panel_changed = Signal()
    """An editor was opened or closed."""

    def __init__(self) -> None:
        super().__init__()
        self.setSpacing(SPACE_S)
        self.panel: EditorFrame | None = None
        self._cards: Mapping[str, Card] = {}
        self.replaced_key = ""
        """The key of the card that the open editor replaces."""
        self._focused_button: _ButtonPlace | None = None
        """The button that gets the focus back from its card."""

    def show_cards(self, cards: Mapping[str, Card]) -> None:
        """Replace the cards; the focus stays at its button. The layout must have a widget.

        While that button is disabled, its card has the focus, so that a key that is pressed again triggers nothing.
        """
        focused, place = QApplication.focusWidget(), None
        for key, card in self._cards.items():
            if card not in cards.values():
                if card is focused:
                    place = self._focused_button
                elif isinstance(focused, QPushButton) and card.isAncestorOf(focused):
                    place = _ButtonPlace(key, focused.accessibleName(), card.findChildren(QPushButton).index(focused))
                remove_widget(self, card)
        self._cards = dict(cards)
        self._update_layout()
        self._focused_button = place if place is not None and place.key in cards else None
        if self._focused_button is not None:
            self._focused_button.find(cards[self._focused_button.key]).setFocus()

    def card(self, key: str) -> Card:
        """Return the card of a key."""
        return self._cards[key]

    def focus_panel(self) -> bool:
        """Focus the open editor; return whether there is one."""
        if self.panel is not None:
            self.panel.setFocus()
        return self.panel is not None

    def open(self, panel: "EditorFrame", instead_of: str = "") -> None:
        """Open an editor in the place of a card, or under all of them."""
        self.panel, self.replaced_key = panel, instead_of
        self._update_layout()
        scroll_into_view(panel)
        self.panel_changed.emit()
        panel.start_editing()

    def close(self) -> None:
        """Close the editor."""
        panel, self.panel = self.panel, None
        if panel is not None:
            remove_widget(self, panel)
        self._update_layout()
        self.panel_changed.emit()

    def _update_layout(self) -> None:
        index = 0
        for key, card in self._cards.items():
            is_edited = self.panel is not None and key == self.replaced_key
            if self.panel is not None and is_edited:
                index = self._insert_at(index, self.panel)
            index = self._insert_at(index, card)
            card.setVisible(not is_edited)
            card.set_can_edit(can=self.panel is None)
        if self.panel is not None:
            if self.replaced_key not in self._cards:
                self._insert_at(index, self.panel)
            # The layout would show it later, and a hidden widget takes no focus.
            self.panel.show()

    def _insert_at(self, index: int, widget: QWidget) -> int:
        if self.indexOf(widget) != index:
            self.insertWidget(index, widget)
        # Screen readers read in the order of the children.
        widget.raise_()
        return index + 1


class EditorFrame(QFrame):
    """An editor inside of a page, which Escape cancels while `can_cancel` says so."""

    cancelled = Signal()

    @property
    def can_cancel(self) -> bool:
        """Whether the editor can be closed now."""
        return True

    def start_editing(self) -> None:
        """Focus the first field."""
        self.setFocus()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape cancels the editor, not the dialog."""
        if event.key() == Qt.Key.Key_Escape and self.can_cancel:
            self.cancelled.emit()
        else:
            super().keyPressEvent(event)


class CardEditor(EditorFrame):
    """A form with Cancel and Save. `saved` carries the edited object."""

    saved = Signal(object)

    def __init__(self, name: str = "", style: FormStyle = EDITOR, button_names: tuple[str, str] = ("", "")) -> None:
        """`name` is the accessible name; `button_names` are those of Cancel and Save."""
        super().__init__()
        self.setAccessibleName(name)
        self.form = Form(style)
        self._warning, self._problem = label(kind="warning", wrap=True), label(kind="error", wrap=True)
        self._warning.hide()
        self._problem.hide()
        cancel, save = QCoreApplication.translate("Cards", "Cancel"), QCoreApplication.translate("Cards", "Save")
        self._cancel_button = button(cancel, self.cancelled.emit, name=button_names[0])
        self._save_button = button(save, self.save, "primary", button_names[1])

    def save(self) -> None:
        """Emit `saved`, or show what is missing."""
        if self.form.show_errors():
            return
        try:
            item = self._edited_item()
        except ValidationError:
            self.show_problem(QCoreApplication.translate("Cards", "This cannot be saved yet. Check each field."))
            return
        self.show_problem("")
        self._emit_saved(item)

    def show_warning(self, words: str) -> None:
        """Show an effect that saving would have; an empty text hides it."""
        show_words(self._warning, words)

    def show_problem(self, words: str) -> None:
        """Show why it was not saved; an empty text hides it."""
        if words:
            announce(self, words)
        self._problem.setText(words)
        self._problem.setAccessibleName(words)
        self._problem.setVisible(bool(words))

    def _edited_item(self) -> Any:
        """Return the edited object. May raise ValidationError."""
        raise NotImplementedError

    def _emit_saved(self, item: Any) -> None:
        self.saved.emit(item)

    def _build_layout(self, *parts: QWidget, spacing: int = SPACE_M, is_card: bool = True) -> None:
        """Put the parts over the form, and Cancel and Save below."""
        if is_card:
            self.setProperty("kind", "card")
        PartFocus(self, next(iter(self.form.rows.values())).initial_focus)
        foot = StickyFoot(self, (self._cancel_button, self._save_button), (self._warning, self._problem))
        rows = (*parts, self.form, foot)
        edge = SPACE_M if is_card else 0
        vbox(*rows, parent=self, spacing=spacing, margins=(edge, edge, edge, max(0, edge - SPACE_S)))


class NamedItem(Protocol):
    """An item on a page of cards."""

    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=NamedItem)
E = TypeVar("E", bound=CardEditor)


class _UndoBar(QFrame):
    """Offers to undo the last removal, until the next change."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("kind", "card")
        self._words = label(wrap=True)
        self._undo: Callable[[], object] | None = None
        undo = button(QCoreApplication.translate("Cards", "Undo"), self._undo_last)
        margins = (SPACE_M, SPACE_S, SPACE_M, SPACE_S)
        hbox(self._words, undo, parent=self, spacing=SPACE_S, margins=margins, grow=self._words)
        self.hide()

    def show_undo(self, words: str, undo: Callable[[], object]) -> None:
        self._words.setText(words)
        self._undo = undo
        self.show()
        announce(self, words)

    def _undo_last(self) -> None:
        undo, self._undo = self._undo, None
        if undo is not None:
            undo()


class ItemsForm(QWidget, Generic[T, E]):
    """A page with a card for each item, of which one can be open in an editor."""

    changed = Signal(object)
    """A tuple of all items after the change."""
    editor_changed = Signal()
    """An editor was opened or closed."""

    _empty_note: QLabel

    def __init__(self, add_text: str) -> None:
        super().__init__()
        self._items: tuple[T, ...] = ()
        self._card_items: tuple[T, ...] = ()
        """The items that the cards show."""
        self._tools: tuple[ToolGroup, ...] = ()
        self.editor: E | None = None
        self._edited_name = ""
        self._undo = _UndoBar(self)
        self._cards = CardList()
        self._cards.panel_changed.connect(self._update_buttons)
        self._cards.panel_changed.connect(self.editor_changed)
        self._add = button(add_text, lambda: self._open_editor(None))

    def _create_editor(self, item: T | None) -> E:
        """Create the editor of an item, or of a new one that begins as `item` if `_edited_name` is empty."""
        raise NotImplementedError

    def _create_card(self, item: T) -> Card:
        raise NotImplementedError

    def _update_editor(self, editor: E) -> None:
        """Update the parts of the editor that depend on the items and the tools."""
        raise NotImplementedError

    def _update_buttons(self) -> None:
        """Show “Add…” and the note of an empty list, but not below an open editor: its Save is the last button."""
        self._add.setVisible(self.editor is None)
        self._empty_note.setVisible(not self._items and self.editor is None)

    def show_items(self, items: Sequence[T]) -> None:
        """Show the person's items; an open editor stays."""
        if tuple(items) != self._items:
            self._items = tuple(items)
            self._rebuild_cards()

    def show_tools(self, groups: Sequence[ToolGroup]) -> None:
        """Set the known tools."""
        self._tools = tuple(groups)
        if self.editor is not None:
            self._update_editor(self.editor)

    def edit(self, name: str) -> None:
        """Edit an item."""
        item = next((known for known in self._items if known.name == name), None)
        self._open_editor(item, name if item is not None else "")

    def _open_editor(self, item: T | None, edited_name: str = "") -> None:
        if self._cards.focus_panel():
            return
        self._edited_name = edited_name
        self.editor = self._create_editor(item)
        self._update_editor(self.editor)
        self.editor.saved.connect(self._save_item)
        self.editor.cancelled.connect(self._cancel_editing)
        self._cards.open(self.editor, edited_name)

    def _save_item(self, item: T) -> None:
        names = [known.name for known in self._items]
        index = names.index(self._edited_name) if self._edited_name in names else len(names)
        self._close_editor()
        self._change_items((*self._items[:index], item, *self._items[index + 1 :]))

    def _remove_item(self, item: T, words: str) -> None:
        """Remove an item, say so in these words, and offer to bring it back."""
        index = self._items.index(item)
        self._change_items((*self._items[:index], *self._items[index + 1 :]))
        self._undo.show_undo(words, partial(self._restore_item, index, item))

    def _restore_item(self, index: int, item: T) -> None:
        self._change_items((*self._items[:index], item, *self._items[index:]))

    def _change_items(self, items: tuple[T, ...]) -> None:
        self._undo.hide()
        self._items = items
        self._rebuild_cards()
        self.changed.emit(items)
        (self.editor or self._add).setFocus()

    def _cancel_editing(self) -> None:
        self._close_editor()
        self._add.setFocus()

    def _close_editor(self) -> None:
        self.editor = None
        self._cards.close()

    def _rebuild_cards(self) -> None:
        cards: dict[str, Card] = {}
        for item in self._items:
            # Keep unchanged cards, which may be asking a question.
            is_same = item in self._card_items
            cards[item.name] = self._cards.card(item.name) if is_same else self._create_card(item)
        self._card_items = self._items
        self._cards.show_cards(cards)
        self._update_buttons()
        if self.editor is not None:
            self._update_editor(self.editor)
