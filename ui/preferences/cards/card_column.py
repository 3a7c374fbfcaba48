"""Cards one under the other, and what is being written among them."""

from collections.abc import Mapping

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QFrame, QPushButton, QVBoxLayout, QWidget

from ui.look.theme import SPACE_S
from ui.preferences.scrolling import scroll_into_view


class Card(QFrame):
    """One thing as it is. The buttons that begin to write something rest while something is being written."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "card")
        self._edit_buttons: tuple[QPushButton, ...] = ()

    def set_edit_buttons(self, *buttons: QPushButton) -> None:
        """These begin to write something."""
        self._edit_buttons = buttons

    def set_can_edit(self, *, can: bool) -> None:
        """Whether they can."""
        words = QCoreApplication.translate("Cards", "Save or cancel what you are writing first")
        for each in self._edit_buttons:
            each.setEnabled(can)
            each.setToolTip("" if can else words)


class CardList(QVBoxLayout):
    """What is being written stays, however the cards around it change, until it is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.setSpacing(SPACE_S)
        self._cards: Mapping[str, Card] = {}
        self._panel: QWidget | None = None
        self._replaced_key = ""

    def show_cards(self, cards: Mapping[str, Card]) -> None:
        """These and no others, by what they are known by. Needs a widget that has this layout."""
        for gone in self._cards.values():
            if gone not in cards.values():
                self._remove_card(gone)
        self._cards = dict(cards)
        self._update_layout()

    def open(self, panel: QWidget, instead_of: str = "") -> None:
        """Write here, in the place of this card or under all of them."""
        self._panel, self._replaced_key = panel, instead_of
        self._update_layout()
        scroll_into_view(panel)

    def set_replaced_card(self, card: str) -> None:
        """What is being written stands in the place of this card from the next change on."""
        self._replaced_key = card

    def close(self) -> None:
        """Nothing is being written any more."""
        panel, self._panel = self._panel, None
        if panel is not None:
            self._remove_card(panel)
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

    def _remove_card(self, widget: QWidget) -> None:
        self.removeWidget(widget)
        widget.hide()
        widget.deleteLater()
