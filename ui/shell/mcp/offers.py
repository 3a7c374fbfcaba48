"""What MCP servers offer, in the composer: found by a button or a sign, put into the message."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

from desktop_agent.vocabulary.mcp.contents import OfferedPrompt, OfferedResource, OfferedTemplate, PromptArgument
from ui.bridge.conversation import OpenConversation
from ui.bridge.library import Library
from ui.bridge.mcp.offers import Offers
from ui.bridge.tasks import Tasks
from ui.composer.composer import Composer
from ui.composer.offers.attached import Fetching, PendingResource, PictureOf, WordsOf
from ui.composer.offers.offer_rows import OfferRow, Wanted
from ui.composer.offers.typed_signs import TypedSigns
from ui.composer.offers.uri_template import filled, gaps_of
from ui.look.controls import IconButton
from ui.look.sentences import plain_tip
from ui.look.theme import ThemeSource
from ui.shell.mcp.attached import draft_of

if TYPE_CHECKING:
    from ui.composer.offers.arguments_dialog import ArgumentsDialog
    from ui.composer.offers.offers_popup import OffersPopup

KEYS = "Ctrl+Shift+I"


class OffersControls(QObject):
    """A button in the composer, and the signs that open the same list. Out of sight while no server is on."""

    settings_requested = Signal()

    def __init__(
        self,
        themes: ThemeSource,
        composer: Composer,
        offers: Offers,
        tasks: Tasks,
        library: Library,
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self._themes = themes
        self._composer = composer
        self._offers = offers
        self._tasks = tasks
        self._library = library
        self._window = window
        self._made: OffersPopup | None = None
        self.button = IconButton(themes, "server", self.tr("Insert from a server"))
        self.button.setToolTip(plain_tip(self.tr("Insert from an MCP server") + f" ({KEYS})"))
        self._signs = TypedSigns(composer.editor)
        composer.add_control(self.button)
        self.button.clicked.connect(self.open)
        self._signs.typed.connect(self._on_sign)
        offers.changed.connect(self._refresh)
        offers.outdated.connect(self._ask_again)
        self._refresh()

    def open(self) -> None:
        """Show all that is offered."""
        self._open("all")

    def _on_sign(self, sign: str) -> None:
        if self._offers.any_on:
            self._open("prompts" if sign == "/" else "resources")

    def _open(self, wanted: Wanted) -> None:
        if not self._offers.any_on:
            return
        self._ask()
        self._popup.open_over(self._composer, wanted)

    def _ask(self) -> None:
        conversation = self._library.current
        self._offers.ask(conversation.workspace if conversation is not None else None)

    def _ask_again(self, server_id: str) -> None:
        if self._made is not None and self._made.isVisible():
            self._offers.ask_again(server_id)

    def _refresh(self) -> None:
        self.button.setVisible(self._offers.any_on)
        if self._made is not None:
            self._made.show_offers(self._offers.groups)

    @property
    def _popup(self) -> "OffersPopup":
        """Made when it is first opened."""
        if self._made is None:
            from ui.composer.offers.offers_popup import OffersPopup

            self._made = OffersPopup(self._themes, self._window)
            self._made.chosen.connect(self._take)
            self._made.left.connect(self._leave)
            self._made.refresh_requested.connect(self._ask)
            self._made.settings_requested.connect(self.settings_requested)
            self._made.show_offers(self._offers.groups)
        return self._made

    def _leave(self, typed: str) -> None:
        self._signs.go_on(typed)
        self._composer.editor.setFocus(Qt.FocusReason.OtherFocusReason)

    def _take(self, row: OfferRow) -> None:
        self._signs.take_back()
        self._composer.editor.setFocus(Qt.FocusReason.OtherFocusReason)
        # Another one may be shown by the time all is written that it needs.
        conversation = self._library.current
        if conversation is None:
            return
        match row.offered:
            case OfferedPrompt(name=name, arguments=arguments) if arguments:
                self._ask_for(row, name, arguments, lambda values: self._insert(conversation, row, name, values))
            case OfferedPrompt(name=name):
                self._insert(conversation, row, name, {})
            case OfferedResource(uri=uri):
                self._attach(conversation, row, uri)
            case OfferedTemplate(uri_template=template):
                gaps = tuple(PromptArgument(gap, "", required=True) for gap in gaps_of(template))
                self._ask_for(
                    row, template, gaps, lambda values: self._attach(conversation, row, filled(template, values))
                )
            case None:
                pass

    def _ask_for(
        self,
        row: OfferRow,
        of: str,
        arguments: tuple[PromptArgument, ...],
        then: Callable[[dict[str, str]], None],
    ) -> None:
        from ui.composer.offers.arguments_dialog import ArgumentsDialog

        described = row.offered.description if row.offered is not None else ""
        dialog = ArgumentsDialog(row.text, described, arguments, self._window)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)

        def complete(name: str, written: str) -> None:
            self._complete(dialog, row, of, name, written)

        dialog.completion_wanted.connect(complete)
        dialog.filled_in.connect(then)
        dialog.open()

    def _complete(self, dialog: "ArgumentsDialog", row: OfferRow, of: str, name: str, written: str) -> None:
        async def complete() -> None:
            found = await self._offers.complete(row.server_id, of, name, {**dialog.values, name: written})
            # It may have been closed, and with that deleted, meanwhile.
            if isValid(dialog) and dialog.isVisible():
                dialog.show_completions(name, found)

        self._tasks.start(complete())

    def _insert(self, conversation: OpenConversation, row: OfferRow, name: str, values: dict[str, str]) -> None:
        self._tasks.start(self._inserted(conversation, row, name, values))

    async def _inserted(self, conversation: OpenConversation, row: OfferRow, name: str, values: dict[str, str]) -> None:
        text, pictures = await self._offers.prompt(row.server_id, name, values)
        fetching = [
            self._composer.attachments.fetching_of_picture(PictureOf(row.server, row.text, data, row.server_id))
            for data in pictures
        ]
        await self._add(conversation, text, [WordsOf(row.server, row.server_id)] if text else [], fetching)

    def _attach(self, conversation: OpenConversation, row: OfferRow, uri: str) -> None:
        async def read() -> list[PendingResource | PictureOf]:
            found = await self._offers.read(row.server_id, row.text, uri)
            return [
                PendingResource(row.server, row.text, uri, piece, row.server_id)
                if isinstance(piece, str)
                else PictureOf(row.server, row.text, piece, row.server_id)
                for piece in found
            ]

        fetching = self._composer.attachments.fetching_of(row.text, read)
        self._tasks.start(self._add(conversation, "", [], [fetching]))

    async def _add(
        self, conversation: OpenConversation, text: str, words: Sequence[WordsOf], fetching: Sequence[Fetching]
    ) -> None:
        """To what is being written in this conversation, which need not be the one that is shown."""
        fetched = [] if self._shows(conversation) else [await each.result() for each in fetching]
        if self._shows(conversation):
            if text:
                self._composer.give_back(text, words)
            self._composer.attachments.add_fetching(fetching)
            return
        items = [item for each in fetched for item in each.items]
        await self._library.drafts.add(conversation, draft_of(text, [*words, *items]))
        for problem in (problem for each in fetched for problem in each.problems):
            raise problem

    def _shows(self, conversation: OpenConversation) -> bool:
        current = self._library.current
        return current is not None and current.id == conversation.id
