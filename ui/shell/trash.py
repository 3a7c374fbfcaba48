"""Deleted conversations: the offer to take a deletion back, and the trash."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from desktop_agent.vocabulary.errors import AgentError
from ui.bridge.library import ConversationLibrary
from ui.look.theme import ThemeSource
from ui.shell.banners import Banner, BannerArea

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ui.preferences.trash_dialog import DeletedConversation, TrashDialog


class TrashPresenter(QObject):
    """Offers an undo of each deletion for as long as there is something to bring back; shows what was deleted."""

    def __init__(self, themes: ThemeSource, library: ConversationLibrary, banners: BannerArea, window: QWidget) -> None:
        super().__init__(window)
        self._themes = themes
        self._library = library
        self._banners = banners
        self._window = window
        self._dialog: TrashDialog | None = None
        self._offer: tuple[str, Banner] | None = None
        """The id of the conversation that was deleted last, and what offers to bring it back."""
        library.deleted.connect(self._offer_undo)
        library.restored.connect(self._withdraw)
        library.trash_listed.connect(self._on_listed)

    def show(self) -> None:
        """Show the conversations that were deleted."""
        if self._dialog is None:
            # Late: seldom wanted.
            from ui.preferences.trash_dialog import TrashDialog

            self._dialog = trash = TrashDialog(self._themes, self._library.trash_days, self._window)
            self._library.trash_listed.connect(trash.show_conversations)
            trash.restore_requested.connect(self._library.restore)
            trash.purge_requested.connect(self._library.purge)
            trash.empty_requested.connect(self._library.empty_trash)
        self._library.list_trash()
        self._dialog.show()
        self._dialog.raise_()
        self._dialog.activateWindow()

    def show_problem(self, error: AgentError) -> None:
        """Say it in the dialog while that is open: it may hide what the window says."""
        if self._dialog is not None and self._dialog.isVisible():
            self._dialog.show_problem(error.whole)

    @Slot(str, str)
    def _offer_undo(self, conversation_id: str, title: str) -> None:
        text = self.tr("“{0}” was put into the trash.").format(title)
        self._offer = conversation_id, self._banners.show_undo(text, lambda: self._library.restore(conversation_id))

    @Slot(str)
    def _withdraw(self, conversation_id: str) -> None:
        if self._offer is not None and self._offer[0] == conversation_id:
            self._banners.withdraw(self._offer[1])
            self._offer = None

    @Slot(list)
    def _on_listed(self, deleted: "Sequence[DeletedConversation]") -> None:
        """What went for good cannot be brought back."""
        if self._offer is not None and all(each.id != self._offer[0] for each in deleted):
            self._withdraw(self._offer[0])
