"""Undo at the cards of calls and at messages: says what would happen, does it, and says what came of it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from desktop_agent.conversation.items import ToolCallItem
from desktop_agent.vocabulary.conduct.checkpoints import FileForecast, Forecast
from desktop_agent.vocabulary.errors import Sentence
from ui.bridge.calls.checkpoints import UndoResult
from ui.bridge.conversation import OpenConversation
from ui.bridge.tasks import Tasks
from ui.look.theme import ThemeSource
from ui.look.visible_text import with_hidden_shown
from ui.shell.banners import Banner, BannerArea, BannerButton
from ui.transcript.surface.places import row_in_hand
from ui.transcript.view import TranscriptView

if TYPE_CHECKING:
    from ui.shell.calls.undo_dialog import UndoDialog

_KEY = "undone"
_LASTS = 12_000
_NAMED = 3
_LONGEST = 60


class UndoPresenter(QObject):
    """One call that can be undone without a question is; what needs a look opens the dialog."""

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
        self._item = ""
        self._forecast = Forecast()
        self._wanted = 0
        self._made: UndoDialog | None = None
        transcript.undo_requested.connect(self.undo_call)
        transcript.undo_since_requested.connect(self.undo_since)

    def show(self, conversation: OpenConversation) -> None:
        """The conversation on the screen."""
        if self._conversation is not None:
            self._conversation.working_changed.disconnect(self._on_working)
        if self._made is not None:
            self._made.reject()
        self._conversation = conversation
        conversation.working_changed.connect(self._on_working)
        self._tasks.start(conversation.undoing.show())

    def undo_call(self, item_id: str) -> None:
        """What one call did."""
        if self._conversation is not None:
            self._tasks.start(self._begin(self._conversation, item_id, asks=False))

    def undo_since(self, item_id: str) -> None:
        """All that calls did since a prompt."""
        if self._conversation is not None:
            self._tasks.start(self._begin(self._conversation, item_id, asks=True))

    def undo_here(self) -> None:
        """The same, since the prompt at hand: the one that has the keyboard, or the last one before what is seen."""
        if self._conversation is None:
            return
        prompt = self._conversation.undoing.prompt_at(row_in_hand(self._transcript.surface))
        if prompt is None:
            self._banners.show_notice(Sentence("There is no message of yours yet, so nothing to undo."))
        else:
            self.undo_since(prompt.id)

    async def _begin(self, conversation: OpenConversation, item_id: str, *, asks: bool) -> None:
        self._banners.remove(_KEY)
        forecast = await conversation.undoing.forecast(item_id)
        if conversation is not self._conversation:
            return
        is_plain = not forecast.not_undone and all(each.why is None for each in forecast.files)
        if asks or conversation.working or not is_plain or not forecast.changes_something:
            self._open(item_id, forecast)
        else:
            self._tell(item_id, await conversation.undoing.undo(forecast, (), _silent))

    def _open(self, item_id: str, forecast: Forecast) -> None:
        conversation = self._conversation
        if conversation is None:
            return
        self._item, self._forecast = item_id, forecast
        self._dialog.show_forecast(self._heading(item_id), forecast)
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
        item_id, dialog = self._item, self._made

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
            self._tell(item_id, result)

    def _stop(self) -> None:
        if self._conversation is not None:
            self._conversation.stop()

    def _on_working(self, working: bool) -> None:  # noqa: FBT001  # a slot
        if self._made is None or self._conversation is None:
            return
        self._made.set_working(working)
        if not working:
            self._tasks.start(self._look_again(self._conversation, self._item))

    async def _look_again(self, conversation: OpenConversation, item_id: str) -> None:
        forecast = await conversation.undoing.forecast(item_id)
        if self._made is not None and (conversation, item_id) == (self._conversation, self._item):
            self._forecast = forecast
            self._made.show_forecast(self._heading(item_id), forecast)

    def _show_difference(self, file: FileForecast, replaced: bool) -> None:  # noqa: FBT001  # a slot
        if self._conversation is not None:
            self._wanted += 1
            self._tasks.start(self._fetch(self._conversation, file, self._wanted, replaced=replaced))

    async def _fetch(self, conversation: OpenConversation, file: FileForecast, wanted: int, *, replaced: bool) -> None:
        preview = await conversation.undoing.difference(file, replaced=replaced)
        # Of several that were looked at one after the other, the last one is shown.
        if self._made is not None and wanted == self._wanted:
            self._made.show_difference(file, preview)

    def _heading(self, item_id: str) -> str:
        item = self._conversation.undoing.item(item_id) if self._conversation is not None else None
        if isinstance(item, ToolCallItem):
            return self.tr("Undo what “{0}” changed").format(_short(item.name))
        text = _short(item.text) if item is not None else ""
        return self.tr("Undo all changes since “{0}”").format(text) if text else self.tr("Undo all changes")

    def _tell(self, item_id: str, result: UndoResult) -> None:
        """Above the transcript; in it stands what the model hears."""
        level = "notice" if result.left else "remark"
        buttons: tuple[BannerButton, ...] = ()
        if result.left:
            buttons = (BannerButton(self.tr("Look…"), lambda: self.undo_since(item_id)),)
        lasts = None if result.left else _LASTS
        self._banners.show_banner(Banner(_KEY, _done(result), _left(result), level, buttons, lasts))


def _silent(_done: int, _every: int) -> None:
    """One call is done in a moment."""


def _done(result: UndoResult) -> Sentence:
    said = with_hidden_shown(" ".join(result.said))
    files = result.files
    if not files and not said:
        if result.left:
            return Sentence("Nothing was undone.")
        return Sentence("It was undone already: everything is as it was before.")
    if not files:
        return Sentence("Undone. {words}", {"words": said})
    values = {"files": _named(files), "words": said}
    return Sentence("Undone: {files}. {words}", values) if said else Sentence("Undone: {files}.", values)


def _left(result: UndoResult) -> Sentence | None:
    if not result.left:
        return None
    if len(result.left) == 1:
        return result.left[0].why
    return Sentence("Not undone: {files}.", {"files": _named([each.path for each in result.left])})


def _named(paths: Sequence[str]) -> str:
    shown = with_hidden_shown(", ".join(paths[:_NAMED]))
    return shown if len(paths) <= _NAMED else f"{shown}, … ({len(paths)})"


def _short(text: str) -> str:
    line = with_hidden_shown(" ".join(text[: 4 * _LONGEST].split()))
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
