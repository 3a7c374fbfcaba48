"""Undo and redo at cards and messages: says what would happen, does it, and says what came of it."""

from collections.abc import Sequence
from time import monotonic
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from desktop_agent.conversation.items import NoticeItem, ToolCallItem, UserItem
from desktop_agent.vocabulary.conduct.checkpoints import FileForecast, Forecast
from desktop_agent.vocabulary.errors import Sentence
from ui.bridge.calls.checkpoints import UndoResult, Wish
from ui.bridge.conversation import OpenConversation
from ui.bridge.tasks import Tasks
from ui.look.theme import ThemeSource
from ui.shell.banners import Banner, BannerArea, BannerButton
from ui.shell.calls.undo_words import done, left, short
from ui.transcript.surface.places import row_in_hand
from ui.transcript.view import TranscriptView

if TYPE_CHECKING:
    from ui.shell.calls.undo_dialog import UndoDialog

_KEY = "undone"
_LASTS = 12_000


class UndoPresenter(QObject):
    """What can be undone or redone without a question is; what needs a look opens the dialog."""

    def __init__(
        self, themes: ThemeSource, transcript: TranscriptView, banners: BannerArea, tasks: Tasks, page: QWidget
    ) -> None:
        super().__init__(page)
        self._themes = themes
        self._transcript = transcript
        self._banners = banners
        self._tasks = tasks
        self._page = page
        self._conversation: OpenConversation | None = None
        self._wish = Wish("")
        self._pressed = (Wish(""), 0.0)
        self._forecast = Forecast()
        self._wanted = 0
        self._made: UndoDialog | None = None
        self._is_opening = False
        transcript.undo_requested.connect(self.undo_call)
        transcript.undo_since_requested.connect(self.undo_since)
        transcript.redo_requested.connect(self.redo)

    def show(self, conversation: OpenConversation) -> None:
        """The conversation on the screen."""
        if self._conversation is not None:
            self._conversation.working_changed.disconnect(self._on_working)
        if self._made is not None:
            self._made.reject()
        # What it tells of is in the other one's transcript, with the ways back.
        self._banners.remove(_KEY)
        self._conversation = conversation
        conversation.working_changed.connect(self._on_working)
        self._tasks.start(conversation.undoing.show())

    def undo_call(self, item_id: str) -> None:
        """What one call did."""
        self._want(Wish(item_id))

    def undo_since(self, item_id: str) -> None:
        """All that calls did since a prompt."""
        self._want(Wish(item_id), asks=True)

    def redo(self, item_id: str) -> None:
        """What was undone of one call, or all of one undoing, by the line that tells of it."""
        wish = Wish(item_id, is_redo=True)
        self._want(wish, asks=isinstance(_item(self._conversation, wish), NoticeItem))

    def _want(self, wish: Wish, *, asks: bool = False) -> None:
        if self._made is not None:
            # Whoever cannot see that it lies over everything comes to it, and nothing happens behind it.
            self._made.activateWindow()
            return
        if self._is_opening:
            return
        # The second press of a double one would take back what the first did: the button is another one by then.
        before, at = self._pressed
        is_opposite = before.item_id == wish.item_id and before.is_redo != wish.is_redo
        if is_opposite and (monotonic() - at) * 1000 < QGuiApplication.styleHints().mouseDoubleClickInterval():
            return
        self._pressed = (wish, monotonic())
        if self._conversation is not None:
            self._is_opening = asks
            self._tasks.start(self._begin(self._conversation, wish, asks=asks))

    def undo_here(self) -> None:
        """The same, since the prompt at hand: the one that has the keyboard, or the last one before what is seen."""
        if self._conversation is None:
            return
        prompt = self._conversation.undoing.prompt_at(row_in_hand(self._transcript.surface))
        if prompt is None:
            sentence = Sentence("There is no message of yours yet, so nothing to undo.")
            self._banners.show_notice(sentence, self._conversation.id)
        else:
            self.undo_since(prompt.id)

    async def _begin(self, conversation: OpenConversation, wish: Wish, *, asks: bool) -> None:
        self._banners.remove(_KEY)
        try:
            forecast = await conversation.undoing.forecast(wish)
        finally:
            self._is_opening = self._is_opening and not asks
        if conversation is not self._conversation or self._made is not None:
            return
        is_plain = not forecast.not_undone and all(each.why is None for each in forecast.files)
        # What needs nothing any more was put back by hand: then it is undone.
        has_nothing = not forecast.calls
        if asks or conversation.working or not is_plain or has_nothing:
            self._open(wish, forecast)
        else:
            result = await conversation.undoing.undo(forecast, (), _silent)
            if conversation is self._conversation:
                self._tell(wish, result)

    def _open(self, wish: Wish, forecast: Forecast) -> None:
        conversation = self._conversation
        if conversation is None:
            return
        self._wish, self._forecast = wish, forecast
        self._dialog.show_forecast(self._heading(wish), forecast, redo=wish.is_redo)
        self._dialog.set_working(conversation.working)
        self._dialog.open()

    @property
    def _dialog(self) -> "UndoDialog":
        """Made when it is first wanted, and for each undoing anew."""
        if self._made is None:
            from ui.shell.calls.undo_dialog import UndoDialog

            dialog = self._made = UndoDialog(self._themes, self._page)
            dialog.undo_pressed.connect(self._undo)
            dialog.stop_pressed.connect(self._stop)
            dialog.difference_wanted.connect(self._show_difference)
            dialog.finished.connect(self._forget)
        return self._made

    def _forget(self) -> None:
        if self._made is not None:
            self._made.deleteLater()
            self._made = None

    def _undo(self, replacing: Sequence[FileForecast]) -> None:
        if self._conversation is not None:
            self._tasks.start(self._do(self._conversation, replacing))

    async def _do(self, conversation: OpenConversation, replacing: Sequence[FileForecast]) -> None:
        wish, dialog = self._wish, self._made

        def on_progress(done: int, every: int) -> None:
            if dialog is not None and dialog is self._made:
                dialog.show_progress(done, every)

        try:
            result = await conversation.undoing.undo(self._forecast, replacing, on_progress)
        finally:
            # Also when it could not be done: the banner says why.
            if dialog is not None and dialog is self._made:
                dialog.accept()
        if conversation is self._conversation:
            self._tell(wish, result)

    def _stop(self) -> None:
        if self._conversation is not None:
            self._conversation.stop()

    def _on_working(self, working: bool) -> None:  # noqa: FBT001  # a slot
        if self._made is None or self._conversation is None:
            return
        self._made.set_working(working)
        if not working:
            self._tasks.start(self._look_again(self._conversation, self._wish))

    async def _look_again(self, conversation: OpenConversation, wish: Wish) -> None:
        forecast = await conversation.undoing.forecast(wish)
        if self._made is not None and (conversation, wish) == (self._conversation, self._wish):
            self._forecast = forecast
            self._made.show_forecast(self._heading(wish), forecast, redo=wish.is_redo)

    def _show_difference(self, file: FileForecast, replaced: bool) -> None:  # noqa: FBT001  # a slot
        if self._conversation is not None:
            self._wanted += 1
            self._tasks.start(self._fetch(self._conversation, file, self._wanted, replaced=replaced))

    async def _fetch(self, conversation: OpenConversation, file: FileForecast, wanted: int, *, replaced: bool) -> None:
        preview = await conversation.undoing.difference(file, replaced=replaced)
        # Of several that were looked at one after the other, the last one is shown.
        if self._made is not None and wanted == self._wanted:
            self._made.show_difference(file, preview)

    def _heading(self, wish: Wish) -> str:
        item = _item(self._conversation, wish)
        if wish.is_redo:
            name = short(item.name) if isinstance(item, ToolCallItem) else ""
            return self.tr("Redo what “{0}” changed").format(name) if name else self.tr("Redo what was undone")
        if isinstance(item, ToolCallItem):
            return self.tr("Undo what “{0}” changed").format(short(item.name))
        text = short(item.text) if isinstance(item, UserItem) else ""
        return self.tr("Undo all changes since “{0}”").format(text) if text else self.tr("Undo all changes")

    def _tell(self, wish: Wish, result: UndoResult) -> None:
        """Above the transcript; in it stands what was left, what the model hears, and mostly the way back."""
        redo = wish.is_redo
        level = "notice" if result.left else "remark"
        buttons: list[BannerButton] = []
        is_of_several = isinstance(_item(self._conversation, wish), NoticeItem | UserItem)
        back = Wish(wish.item_id, is_redo=not redo, ids=result.saved)
        if result.saved and is_of_several and redo:
            # Its calls can be undone at their cards, but nothing there takes back all of it.
            buttons.append(BannerButton(self.tr("Undo"), lambda: self._want(back)))
        elif result.saved and is_of_several and not self._transcript.surface.rows.following:
            # The line that offers it is the last one, and not in sight.
            buttons.append(BannerButton(self.tr("Redo"), lambda: self._want(back, asks=True)))
        if result.left:
            buttons.append(BannerButton(self.tr("Review…"), lambda: self._want(wish, asks=True)))
        banner = Banner(_KEY, done(result, redo=redo), left(result, redo=redo), level, tuple(buttons), _LASTS)
        self._banners.show_banner(banner)


def _item(conversation: OpenConversation | None, wish: Wish) -> ToolCallItem | UserItem | NoticeItem | None:
    return None if conversation is None else conversation.undoing.item(wish.item_id)


def _silent(_done: int, _every: int) -> None:
    """One call is done in a moment."""
