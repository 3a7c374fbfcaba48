"""Undo and redo of tool calls by checkpoints: show what would happen, do it, and report the result."""

from collections.abc import Sequence
from time import monotonic
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from desktop_agent.conversation.items import NoticeItem, ToolCallItem, UserItem
from desktop_agent.types.checkpoints import FileRestorePlan, RestorePlan
from desktop_agent.types.errors import Sentence
from desktop_agent.types.messages import prompt_words
from ui.bridge.conversation import OpenConversation
from ui.bridge.event_loop import BackgroundTasks
from ui.bridge.session_controls import UndoRequest, UndoResult
from ui.shell.banners import UNDO_MS, Banner, BannerArea, BannerButton
from ui.style.text import join_names, show_hidden, truncate
from ui.style.theme import ThemeSource
from ui.style.tool_labels import tool_title
from ui.transcript.view import TranscriptView
from ui.transcript.viewport.positions import current_row

if TYPE_CHECKING:
    from ui.shell.undo_dialog import UndoDialog


_MAX_NAMED_FILES = 3
_MAX_TEXT_LENGTH = 60


def result_sentence(result: UndoResult, *, is_redo: bool) -> Sentence:
    """Return the result as a sentence."""
    if is_redo:
        if result.files:
            return Sentence("Redone: {files}.", {"files": _file_names(result.files)})
        if result.is_partial:
            return Sentence("Nothing was redone.")
        return Sentence("Nothing was left to redo: the files are already as they were before it was undone.")
    reports = show_hidden(" ".join(result.messages))
    if result.files:
        values = {"files": _file_names(result.files), "words": reports}
        return Sentence("Undone: {files}. {words}" if reports else "Undone: {files}.", values)
    if reports:
        return Sentence("Undone. {words}", {"words": reports})
    if result.is_partial:
        return Sentence("Nothing was undone.")
    return Sentence("Nothing was left to undo: the files are already as they were before.")


def not_undone_sentence(result: UndoResult, *, is_redo: bool) -> Sentence | None:
    """Return a sentence if not all was undone; the transcript and the dialog say what and why."""
    if not result.is_partial:
        return None
    return Sentence("Not all of it was redone.") if is_redo else Sentence("Not all of it was undone.")


def _file_names(paths: Sequence[str]) -> str:
    more = [f"… ({len(paths)})"] if len(paths) > _MAX_NAMED_FILES else []
    return join_names([*map(show_hidden, paths[:_MAX_NAMED_FILES]), *more])


def shorten(text: str) -> str:
    """Return the beginning of a text, in one line."""
    return truncate(show_hidden(" ".join(text[: 4 * _MAX_TEXT_LENGTH].split())), _MAX_TEXT_LENGTH)


_BANNER_KEY = "undone"


class UndoPresenter(QObject):
    """Undoes and redoes at once where no question is needed; otherwise opens the dialog."""

    closed = Signal()
    """The dialog was closed, with or without an undo."""

    def __init__(
        self,
        themes: ThemeSource,
        transcript: TranscriptView,
        banners: BannerArea,
        tasks: BackgroundTasks,
        page: QWidget,
    ) -> None:
        super().__init__(page)
        self._themes = themes
        self._transcript = transcript
        self._banners = banners
        self._tasks = tasks
        self._page = page
        self._conversation: OpenConversation | None = None
        self._current_request = UndoRequest("")
        self._last_request = (UndoRequest(""), 0.0)
        self._forecast = RestorePlan()
        self._checkpoints_heading = ""
        self._diff_number = 0
        self._created_dialog: UndoDialog | None = None
        self._is_opening = False
        transcript.undo_requested.connect(self.undo_call)
        transcript.undo_since_requested.connect(self.undo_since)
        transcript.redo_requested.connect(self.redo)

    def show(self, conversation: OpenConversation) -> None:
        """Show the checkpoints of this conversation."""
        if self._created_dialog is not None:
            self._created_dialog.reject()
        # Its notes and their redo are in the transcript of the other conversation.
        self._banners.remove(_BANNER_KEY)
        self._conversation = conversation
        conversation.working_changed.connect(self._on_working)
        self._tasks.start(conversation.checkpoints.show())

    def undo_call(self, item_id: str) -> None:
        """Undo one call."""
        self._request(UndoRequest(item_id))

    def undo_since(self, item_id: str) -> None:
        """Undo all calls since a prompt."""
        self._request(UndoRequest(item_id), asks=True)

    def undo_checkpoints(self, ids: tuple[str, ...], heading: str) -> None:
        """Undo calls that are not in view, or soon will not be, by their checkpoints."""
        self._checkpoints_heading = heading
        self._request(UndoRequest("", ids=ids), asks=True)

    def redo(self, item_id: str) -> None:
        """Redo one call, or a whole undo by its note in the transcript."""
        request = UndoRequest(item_id, is_redo=True)
        self._request(request, asks=isinstance(_item(self._conversation, request), NoticeItem))

    def _request(self, request: UndoRequest, *, asks: bool = False) -> None:
        if self._created_dialog is not None:
            # Focus the open dialog, for people who cannot see it; do nothing else.
            self._created_dialog.activateWindow()
            return
        if self._is_opening:
            return
        # The second press of a double click would revert the first: the button has changed by then.
        last_request, pressed_at = self._last_request
        is_opposite = last_request.item_id == request.item_id and last_request.is_redo != request.is_redo
        if is_opposite and (monotonic() - pressed_at) * 1000 < QGuiApplication.styleHints().mouseDoubleClickInterval():
            return
        self._last_request = (request, monotonic())
        if self._conversation is not None:
            self._is_opening = asks
            self._tasks.start(self._forecast_and_undo(self._conversation, request, asks=asks))

    def undo_here(self) -> None:
        """Undo all since the focused prompt, or the last one before the visible items."""
        if self._conversation is None:
            return
        prompt = self._conversation.checkpoints.prompt_at(current_row(self._transcript.row_viewport))
        if prompt is None:
            sentence = Sentence("There is no message of yours yet, so nothing to undo.")
            self._banners.show_notice(sentence, self._conversation.id)
        else:
            self.undo_since(prompt.id)

    async def _forecast_and_undo(self, conversation: OpenConversation, request: UndoRequest, *, asks: bool) -> None:
        self._banners.remove(_BANNER_KEY)
        try:
            forecast = await conversation.checkpoints.forecast(request)
        finally:
            self._is_opening = self._is_opening and not asks
        if conversation is not self._conversation or self._created_dialog is not None:
            return
        is_plain = not forecast.undo_refusals and all(file.reason is None for file in forecast.files)
        # Without checkpoints there is nothing to do: the files were put back by hand.
        has_nothing = not forecast.checkpoint_ids
        if asks or conversation.working or not is_plain or has_nothing:
            self._open(request, forecast)
        else:
            result = await conversation.checkpoints.undo(forecast)
            if conversation is self._conversation:
                self._show_result(request, result)

    def _open(self, request: UndoRequest, forecast: RestorePlan) -> None:
        conversation = self._conversation
        if conversation is None:
            return
        self._current_request, self._forecast = request, forecast
        self._dialog.show_forecast(self._heading(request), forecast, is_redo=request.is_redo)
        self._dialog.set_working(conversation.working)
        self._dialog.open()

    @property
    def _dialog(self) -> "UndoDialog":
        if self._created_dialog is None:
            from ui.shell.undo_dialog import UndoDialog

            dialog = self._created_dialog = UndoDialog(self._themes, self._page)
            dialog.undo_pressed.connect(self._undo)
            dialog.stop_pressed.connect(self._stop)
            dialog.difference_requested.connect(self._show_difference)
            dialog.finished.connect(self._discard_dialog)
        return self._created_dialog

    def _discard_dialog(self) -> None:
        if self._created_dialog is not None:
            self._created_dialog.deleteLater()
            self._created_dialog = None
            self.closed.emit()

    def _undo(self, replacing: Sequence[FileRestorePlan]) -> None:
        if self._conversation is not None:
            self._tasks.start(self._run_undo(self._conversation, replacing))

    async def _run_undo(self, conversation: OpenConversation, replacing: Sequence[FileRestorePlan]) -> None:
        request, dialog = self._current_request, self._created_dialog

        def on_progress(done: int, total: int) -> None:
            if dialog is not None and dialog is self._created_dialog:
                dialog.show_progress(done, total)

        try:
            result = await conversation.checkpoints.undo(self._forecast, replacing, on_progress)
        finally:
            # Also after a failure: the banner says why.
            if dialog is not None and dialog is self._created_dialog:
                dialog.accept()
        if conversation is self._conversation:
            self._show_result(request, result)

    def _stop(self) -> None:
        if self._conversation is not None:
            self._conversation.stop()

    def _on_working(self, working: bool) -> None:  # noqa: FBT001  # a slot
        if self._created_dialog is None or self._conversation is None:
            return
        self._created_dialog.set_working(working)
        if not working:
            self._tasks.start(self._refresh_forecast(self._conversation, self._current_request))

    async def _refresh_forecast(self, conversation: OpenConversation, request: UndoRequest) -> None:
        forecast = await conversation.checkpoints.forecast(request)
        if self._created_dialog is not None and (conversation, request) == (self._conversation, self._current_request):
            self._forecast = forecast
            self._created_dialog.show_forecast(self._heading(request), forecast, is_redo=request.is_redo)

    def _show_difference(self, file: FileRestorePlan, replaced: bool) -> None:  # noqa: FBT001  # a slot
        if self._conversation is not None:
            self._diff_number += 1
            self._tasks.start(self._fetch_difference(self._conversation, file, self._diff_number, replaced=replaced))

    async def _fetch_difference(
        self, conversation: OpenConversation, file: FileRestorePlan, number: int, *, replaced: bool
    ) -> None:
        preview = await conversation.checkpoints.difference(file, replaced=replaced)
        # Show only the file that was chosen last.
        if self._created_dialog is not None and number == self._diff_number:
            self._created_dialog.show_difference(file, preview)

    def _heading(self, request: UndoRequest) -> str:
        item = _item(self._conversation, request)
        if item is None and request.ids and not request.is_redo:
            return self._checkpoints_heading
        if request.is_redo:
            name = shorten(tool_title(item.name)) if isinstance(item, ToolCallItem) else ""
            return self.tr("Redo what “{0}” changed").format(name) if name else self.tr("Redo what was undone")
        if isinstance(item, ToolCallItem):
            return self.tr("Undo what “{0}” changed").format(shorten(tool_title(item.name)))
        text = shorten(prompt_words(item.text)) if isinstance(item, UserItem) else ""
        return self.tr("Undo all changes since “{0}”").format(text) if text else self.tr("Undo all changes")

    def _show_result(self, request: UndoRequest, result: UndoResult) -> None:
        """Show a banner, unless the transcript shows the result: its note tells the model, and mostly offers a redo."""
        item = _item(self._conversation, request)
        is_following = self._transcript.row_viewport.rows.following
        level = "notice" if result.is_partial else "remark"
        buttons: list[BannerButton] = []
        is_of_several = isinstance(item, NoticeItem | UserItem)
        can_reverse = is_of_several and bool(result.checkpoint_ids)
        reverse_request = UndoRequest(request.item_id, is_redo=not request.is_redo, ids=result.checkpoint_ids)
        if can_reverse and request.is_redo:
            # Its calls can be undone one by one at their cards, but not together.
            buttons.append(BannerButton(self.tr("Undo"), lambda: self._request(reverse_request)))
        elif can_reverse and not is_following:
            # The note with the redo is the last item, and not visible.
            buttons.append(BannerButton(self.tr("Redo"), lambda: self._request(reverse_request, asks=True)))
        if result.is_partial:
            buttons.append(BannerButton(self.tr("Review…"), lambda: self._request(request, asks=True)))
        # The card of the call shows the result, or the note that is the last item.
        is_in_view = bool(result.files or result.messages) and (isinstance(item, ToolCallItem) or is_following)
        if is_in_view and not buttons:
            return
        banner = Banner(
            _BANNER_KEY,
            result_sentence(result, is_redo=request.is_redo),
            not_undone_sentence(result, is_redo=request.is_redo),
            level,
            tuple(buttons),
            UNDO_MS,
        )
        self._banners.show_banner(banner)


def _item(conversation: OpenConversation | None, request: UndoRequest) -> ToolCallItem | UserItem | NoticeItem | None:
    return None if conversation is None else conversation.checkpoints.item(request.item_id)
