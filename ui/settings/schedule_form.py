"""The list of scheduled prompts: a card for each, of which one can be open in an editor."""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial

from PySide6.QtCore import Signal

from desktop_agent.types.permissions import Mode
from ui.bridge.model_servers import ModelGroup
from ui.bridge.schedule.schedules import ListedSchedule
from ui.settings.card_list import Card, ItemsForm
from ui.settings.schedule_editor import ScheduleEditor
from ui.settings.schedule_words import moment_words, result_words, timing_words
from ui.style.boxes import vbox
from ui.style.controls import button, label
from ui.style.layouts import FlowRows
from ui.style.text import show_hidden, translate_sentence
from ui.style.text_display import exact_date
from ui.style.theme import SPACE_M, SPACE_S, SPACE_XS
from ui.style.widgets import ConfirmBar


class ScheduleCard(Card):
    """A scheduled prompt: when it runs, how its last run ended, and what can be done with it."""

    def __init__(self, item: ListedSchedule, page: "ScheduleForm") -> None:
        super().__init__()
        title = show_hidden(item.prompt.title)
        self.setAccessibleName(self.tr("Scheduled prompt {0}").format(title))
        self._buttons = self._create_buttons(item, title, page)
        self._confirm = ConfirmBar(
            (self.tr("Keep"), self.tr("Keep {0}").format(title)),
            (self.tr("Delete"), self.tr("Really delete {0}").format(title)),
        )
        self._question = self.tr("Delete “{0}”? Its conversations stay.").format(title)
        self._confirm.confirmed.connect(partial(page.delete_requested.emit, item.prompt.id))
        self._confirm.declined.connect(self._keep)
        parts = [label(title, "strong", wrap=True), label(self._when(item), wrap=True)]
        if last := self._last(item):
            parts.append(label(last, "warning" if item.waits else "muted", wrap=True))
        if item.budget is not None:
            parts.append(label(self._budget_words(item, translate_sentence(item.budget)), "warning", wrap=True))
        vbox(*parts, self._buttons, self._confirm, parent=self, spacing=SPACE_XS, margins=SPACE_M)

    def _create_buttons(self, item: ListedSchedule, title: str, page: "ScheduleForm") -> FlowRows:
        prompt, last = item.prompt, item.last_run
        start = partial(page.run_requested.emit, prompt.id)
        run = button(self.tr("Run now"), start, name=self.tr("Run {0} now").format(title))
        run.setEnabled(last is None or last.state == "ended")
        words, name = self.tr("Resume"), self.tr("Resume {0}")
        if prompt.is_on:
            words, name = self.tr("Pause"), self.tr("Pause {0}")
        pause = button(words, partial(page.switched.emit, prompt.id, not prompt.is_on), name=name.format(title))
        edit = button(self.tr("Edit"), partial(page.edit, prompt.id), name=self.tr("Edit {0}").format(title))
        self.edit_buttons = (edit,)
        buttons = [run, pause, edit]
        if last is not None and last.conversation_id and last.result != "refused":
            open_last = partial(page.open_requested.emit, last.conversation_id)
            name = self.tr("Open the conversation of {0}").format(title)
            buttons.append(button(self.tr("Open conversation"), open_last, name=name))
        if item.budget is not None:
            buttons.append(button(self.tr("Usage and budgets"), page.budgets_requested.emit))
        self._delete = button(self.tr("Delete…"), self._ask, "danger", self.tr("Delete {0}").format(title))
        return FlowRows((*buttons, self._delete))

    def _ask(self) -> None:
        self._buttons.hide()
        self._confirm.ask(self._question)

    def _keep(self) -> None:
        self._confirm.hide()
        self._buttons.show()
        self._delete.setFocus()

    def _when(self, item: ListedSchedule) -> str:
        when = timing_words(item.prompt.timing)
        if not item.prompt.is_on:
            return self.tr("{0}. Paused.").format(when)
        if item.next_run is None:
            return self.tr("{0}. No more runs.").format(when)
        return self.tr("{0}. Next: {1}").format(when, moment_words(item.next_run))

    def _last(self, item: ListedSchedule) -> str:
        run = item.last_run
        if run is None:
            return self.tr("It has not run yet.")
        began = exact_date(run.claimed_at, datetime.now(UTC))
        if item.waits:
            return self.tr("Waiting for your approval since {0}. The next run begins after this one has ended.").format(
                began
            )
        if run.state != "ended":
            return self.tr("Running since {0}.").format(began)
        return self.tr("Last run: {0}, {1}").format(began, result_words(run.result))

    def _budget_words(self, item: ListedSchedule, used_up: str) -> str:
        if item.prompt.missed == "skip":
            words = self.tr("{0} Runs that are due until then are skipped. Raise the budget to continue sooner.")
        else:
            words = self.tr("{0} One run waits until there is budget again. Raise the budget to continue sooner.")
        return words.format(used_up)


class ScheduleForm(ItemsForm[ListedSchedule, ScheduleEditor]):
    """All prompts. Answer its requests with `show_items`."""

    saved = Signal(object)
    """A ScheduledPrompt, new or changed."""
    switched = Signal(str, bool)
    """The id of a prompt, and whether to switch it on."""
    run_requested = Signal(str)
    delete_requested = Signal(str)
    open_requested = Signal(str)
    """The id of a conversation."""
    budgets_requested = Signal()

    def __init__(self) -> None:
        super().__init__(self.tr("Add scheduled prompt…"))
        self._modes: tuple[Mode, ...] = ()
        self._models: tuple[ModelGroup, ...] = ()
        empty = self.tr("Nothing is scheduled. A scheduled prompt is sent automatically, once or repeatedly.")
        self._empty_note = label(empty, "muted", wrap=True)
        self._foot = FlowRows((self._add,))
        parts = (self._empty_note, self._cards, self._foot)
        vbox(*parts, parent=self, spacing=SPACE_S, margins=0, end_stretch=True)
        self._update_buttons()

    def show_choices(self, modes: Sequence[Mode]) -> None:
        """Set the modes to choose from."""
        self._modes = tuple(modes)

    def show_models(self, groups: Sequence[ModelGroup]) -> None:
        """Set the models to choose from."""
        self._models = tuple(groups)
        if self.editor is not None:
            self.editor.show_models(self._models)

    def _create_editor(self, item: ListedSchedule | None) -> ScheduleEditor:
        editor = ScheduleEditor(None if item is None else item.prompt, self._modes)
        editor.show_models(self._models)
        return editor

    def _update_editor(self, editor: ScheduleEditor) -> None:
        """Do nothing: the editor does not depend on the other prompts."""

    def _update_buttons(self) -> None:
        super()._update_buttons()
        self._foot.setVisible(self.editor is None)

    def _save_item(self, item: object) -> None:
        self._close_editor()
        self.saved.emit(item)
        self._add.setFocus()

    def _create_card(self, item: ListedSchedule) -> ScheduleCard:
        return ScheduleCard(item, self)
