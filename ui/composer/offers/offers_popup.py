"""What MCP servers offer for a message, in a list to search in."""

from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication, QSize, Signal
from PySide6.QtWidgets import QWidget

from ui.bridge.mcp.offers import ServerOffers
from ui.composer.offers.offer_rows import OfferRow, Wanted, offer_rows
from ui.look.parts.search_popup import SearchPopup
from ui.look.theme import ThemeSource

POPUP_SIZE = QSize(460, 420)


class OffersPopup(SearchPopup):
    """`chosen` carries an OfferRow. A sign in the message opens it, so Backspace in the empty field closes it."""

    settings_requested = Signal()

    def __init__(self, themes: ThemeSource, parent: QWidget) -> None:
        words = {
            "name": _tr("From MCP servers"),
            "refresh": _tr("Ask the servers again"),
            "link": _tr("MCP servers…"),
        }
        super().__init__(themes, self._found, POPUP_SIZE, parent, **words)
        self._groups: Sequence[ServerOffers] = ()
        self._wanted: Wanted = "all"
        self.link_followed.connect(self.settings_requested)
        self.panel.backed_out.connect(self.hide)

    def show_offers(self, groups: Sequence[ServerOffers]) -> None:
        """Another set."""
        self._groups = groups
        self.fill()

    def open_over(self, widget: QWidget, wanted: Wanted) -> None:
        """Show these above this, or below where there is no room."""
        self._wanted = wanted
        names = {
            "all": _tr("Search prompts and resources"),
            "prompts": _tr("Search prompts"),
            "resources": _tr("Search resources"),
        }
        self.say_what_for(names[wanted])
        self.show_over(widget)

    def _found(self, typed: str) -> Sequence[OfferRow]:
        return offer_rows(self._groups, typed, self._wanted)


def _tr(text: str) -> str:
    return QCoreApplication.translate("OffersPopup", text)
