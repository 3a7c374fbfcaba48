"""Lists of cards on a page of the settings, of which one can be open in an editor."""

from collections.abc import Mapping

from PySide6.QtCore import QCoreApplication, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QScrollArea, QVBoxLayout, QWidget

from ui.style.boxes import vbox
from ui.style.controls import button
from ui.style.removal import remove_widget
from ui.style.theme import SPACE_M, SPACE_S


def scroll_into_view(widget: QWidget) -> None:
    """Scroll the page so that the widget begins at its top, if possible, once it is laid out."""
    QTimer.singleShot(0, widget, lambda: _scroll_to(widget))


def _scroll_to(widget: QWidget) -> None:
    area: QWidget | None = widget.parentWidget()
    while area is not None and not isinstance(area, QScrollArea):
        area = area.parentWidget()
    page = area.widget() if isinstance(area, QScrollArea) else None
    if page is None or not isinstance(area, QScrollArea):
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

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "card")
        self._edit_buttons: tuple[QPushButton, ...] = ()

    def set_edit_buttons(self, *buttons: QPushButton) -> None:
        """Set the buttons that open an editor."""
        self._edit_buttons = buttons

    def set_can_edit(self, *, can: bool) -> None:
        """Enable or disable the edit buttons."""
        words = QCoreApplication.translate("Cards", "Save or cancel what you are writing first")
        for control in self._edit_buttons:
            control.setEnabled(can)
            control.setToolTip("" if can else words)


class CardList(QVBoxLayout):
    """Cards by key, with one editor among them that stays open however the cards change."""

    def __init__(self) -> None:
        super().__init__()
        self.setSpacing(SPACE_S)
        self._cards: Mapping[str, Card] = {}
        self._panel: QWidget | None = None
        self._replaced_key = ""

    def show_cards(self, cards: Mapping[str, Card]) -> None:
        """Replace the cards. The layout must have a widget."""
        for gone in self._cards.values():
            if gone not in cards.values():
                remove_widget(self, gone)
        self._cards = dict(cards)
        self._update_layout()

    def open(self, panel: QWidget, instead_of: str = "") -> None:
        """Open an editor in the place of a card, or under all of them."""
        self._panel, self._replaced_key = panel, instead_of
        self._update_layout()
        scroll_into_view(panel)

    def set_replaced_card(self, card: str) -> None:
        """Set the card that the open editor replaces."""
        self._replaced_key = card

    def close(self) -> None:
        """Close the editor."""
        panel, self._panel = self._panel, None
        if panel is not None:
            remove_widget(self, panel)
        self._update_layout()

    def _update_layout(self) -> None:
        place = 0
        for key, card in self._cards.items():
            is_written = self._panel is not None and key == self._replaced_key
            if self._panel is not None and is_written:
                place = self._insert_at(place, self._panel)
            place = self._insert_at(place, card)
            card.setVisible(not is_written)
            card.set_can_edit(can=self._panel is None)
        if self._panel is not None:
            if self._replaced_key not in self._cards:
                self._insert_at(place, self._panel)
            # What a layout shows later takes no focus now.
            self._panel.show()

    def _insert_at(self, place: int, widget: QWidget) -> int:
        if self.indexOf(widget) != place:
            self.insertWidget(place, widget)
        return place + 1


class CardEditor(QFrame):
    """An editor with Cancel and Save. `saved` carries the edited object."""

    saved = Signal(object)
    cancelled = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape cancels the editor, not the dialog."""
        if event.key() == Qt.Key.Key_Escape:
            self.cancelled.emit()
        else:
            super().keyPressEvent(event)

    def save(self) -> None:
        """Emit `saved`, or show what is missing."""
        raise NotImplementedError

    def build_layout(self, name: str, first: QWidget, *parts: QWidget) -> None:
        """Put the parts above Cancel and Save. `first` gets the focus; `name` is the accessible name."""
        self.setProperty("kind", "card")
        self.setAccessibleName(name)
        self.setFocusProxy(first)
        foot = QHBoxLayout()
        foot.setSpacing(SPACE_S)
        foot.addStretch(1)
        foot.addWidget(button(QCoreApplication.translate("Cards", "Cancel"), self.cancelled.emit))
        foot.addWidget(button(QCoreApplication.translate("Cards", "Save"), self.save, "primary"))
        vbox(*parts, foot, parent=self, spacing=SPACE_M, margins=SPACE_M)
