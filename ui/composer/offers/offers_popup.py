"""What MCP servers offer for a message, in a list to search in."""

from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication, QSize, Signal
from PySide6.QtWidgets import QWidget

from ui.bridge.mcp.offers import ServerCatalog
from ui.composer.offers.offer_rows import CompletionItem, CompletionKind, completion_items
from ui.look.parts.search_popup import SearchPopup
from ui.look.theme import ThemeSource

POPUP_SIZE = QSize(460, 420)


class CompletionPopup(SearchPopup):
    """`chosen` carries an CompletionItem. A sign in the message opens it, so Backspace in the empty field closes it."""

    settings_requested = Signal()

    def __init__(self, themes: ThemeSource, parent: QWidget) -> None:
        words = {
            "name": _tr("From MCP servers"),
            "refresh": _tr("Ask the servers again"),
            "link": _tr("MCP servers…"),
        }
        super().__init__(themes, self._search, POPUP_SIZE, parent, **words)
        self._groups: Sequence[ServerCatalog] = ()
        self._completion_kind: CompletionKind = "all"
        self.link_followed.connect(self.settings_requested)
        self.panel.backspace_pressed.connect(self.hide)

    def set_groups(self, groups: Sequence[ServerCatalog]) -> None:
        """Another set."""
        self._groups = groups
        self.fill()

    def open_above(self, widget: QWidget, wanted: CompletionKind) -> None:
        """Show these above this, or below where there is no room."""
        self._completion_kind = wanted
        names = {
            "all": _tr("Search prompts and resources"),
            "prompts": _tr("Search prompts"),
            "resources": _tr("Search resources"),
        }
        self.set_label(names[wanted])
        self.show_over(widget)

    def _search(self, typed: str) -> Sequence[CompletionItem]:
        return completion_items(self._groups, typed, self._completion_kind)


def _tr(text: str) -> str:
    return QCoreApplication.translate("OffersPopup", text)
