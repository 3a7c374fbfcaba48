"""The list of scheduled prompts: a card for each, of which one can be open in an editor."""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from PySide6.QtCore import Signal

from desktop_agent.types.permissions import Mode
from desktop_agent.types.schedules import MAX_PROMPT, MAX_TITLE, ScheduledPrompt
from ui.bridge.model_servers import ModelGroup
from ui.bridge.schedule.schedules import ListedSchedule, ScheduledPrompts
from ui.forms.controls import Control, folder_line, menu, radio_buttons, text_area, text_line
from ui.forms.form import required
from ui.settings.card_list import Card, CardEditor, ItemsForm
from ui.settings.schedule_timing import TimingEditor
from ui.settings.schedule_words import moment_words, result_words, timing_words
from ui.settings.tool_picker import GroupedMenu
from ui.style.boxes import vbox
from ui.style.controls import button, label
from ui.style.layouts import FlowRows
from ui.style.pickers import mode_title
from ui.style.text import format_number, show_hidden, translate_sentence, trim_prompt
from ui.style.text_display import exact_date
from ui.style.theme import SPACE_M, SPACE_S, SPACE_XS
from ui.style.widgets import ConfirmBar

_PROMPT_LINES = 5
_MENU_CHARACTERS = 22
_SEPARATOR = "\n"
"""Between a server's id and the name of a model; in neither is a line break."""


class ScheduleEditor(CardEditor):
    """`saved` carries the ScheduledPrompt."""

    def __init__(self, prompt: ScheduledPrompt | None, modes: Sequence[Mode]) -> None:
        super().__init__(self.tr("Scheduled prompt editor"))
        self._original = prompt
        self._timing = TimingEditor()
        self._model = GroupedMenu(_MENU_CHARACTERS, self.tr("{0} (not listed)"))
        self._groups: tuple[ModelGroup, ...] = ()
        self._add_fields(modes)
        self._build_layout()
        self._show_model_choices(())
        if prompt is not None:
            self.form.show_values({**dict(prompt), "workspace": prompt.workspace or ""})
            self._model.select(_model_key(prompt.endpoint_id, prompt.model), prompt.model or "")

    def show_models(self, groups: Sequence[ModelGroup]) -> None:
        """Set the models to choose from; the selected one stays, and so does an open menu if nothing is new."""
        if tuple(groups) == self._groups:
            return
        self._groups = tuple(groups)
        chosen = str(self._model.currentData() or "")
        self._show_model_choices(groups)
        self._model.select(chosen, chosen.partition(_SEPARATOR)[2])

    def _edited_item(self) -> ScheduledPrompt:
        values = self.form.values
        endpoint_id, _, model = str(values.pop("model_key") or "").partition(_SEPARATOR)
        base = {} if self._original is None else dict(self._original)
        values["prompt"] = trim_prompt(str(values["prompt"]))
        values |= {"endpoint_id": endpoint_id or None, "model": model or None}
        values["workspace"] = values["workspace"] or None
        return ScheduledPrompt.model_validate({**base, **values})

    def _prompt_error(self, text: str) -> str:
        prompt = trim_prompt(text)
        if len(prompt) > MAX_PROMPT:
            words = self.tr("The prompt has more than {0} characters. Shorten it.")
            return words.format(format_number(MAX_PROMPT))
        return "" if prompt else self.tr("There is nothing to send yet. Write the prompt.")

    def _show_model_choices(self, groups: Sequence[ModelGroup]) -> None:
        self._model.clear_choices()
        self._model.add_choice(self.tr("As in new conversations"), "")
        for group in groups:
            if group.models:
                self._model.add_heading(group.endpoint.title)
            for model in group.models:
                self._model.add_choice(model.id, _model_key(group.endpoint.id, model.id))

    def _add_fields(self, modes: Sequence[Mode]) -> None:
        add, timing, model = self.form.add_field, self._timing, self._model
        nameless = self.tr("A scheduled prompt needs a name. Write one.")
        add("title", self.tr("Name"), text_line(max_length=MAX_TITLE), required(nameless))
        add("prompt", self.tr("Prompt"), text_area(_PROMPT_LINES), self._prompt_error)
        when = Control(
            widget=timing,
            read=lambda: timing.timing,
            show=timing.set_timing,
            changed=timing.changed,
            focus=timing.first_wrong,
        )
        add("timing", self.tr("When"), when, lambda _: timing.problem)
        folder = folder_line(self.tr("Workspace folder"), self.tr("Browse…"))
        add("workspace", self.tr("Workspace folder"), folder, is_optional=True)
        add("model_key", self.tr("Model"), Control(widget=model, read=model.currentData, show=lambda _: None))
        choices = [(mode.name, show_hidden(mode_title(mode))) for mode in modes]
        mode_menu = menu(choices, characters=_MENU_CHARACTERS, missing=self.tr("{0} (removed)"))
        wait = self.tr("Calls that need your approval wait for you in “Waiting approvals”.")
        add("mode", self.tr("Mode"), mode_menu, help_text=wait)
        mode_menu.show("default")
        targets = [
            ("new", self.tr("Each run begins a new conversation")),
            ("same", self.tr("All runs go on in one conversation")),
        ]
        add("target", self.tr("Conversation"), radio_buttons(targets, "new"))
        missed = [
            ("run_once", self.tr("Run once at the next start of the program")),
            ("skip", self.tr("Skip what was missed")),
        ]
        add("missed", self.tr("If the program is not running at that time"), radio_buttons(missed, "run_once"))


def _model_key(endpoint_id: str | None, model: str | None) -> str:
    return f"{endpoint_id or ''}{_SEPARATOR}{model}" if model else ""


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
        self._confirm.confirmed.connect(partial(page.schedules.delete, item.prompt.id))
        self._confirm.declined.connect(self._keep)
        parts = [label(title, "strong", wrap=True), label(self._when(item), wrap=True)]
        if last := self._last(item):
            parts.append(label(last, "warning" if item.waits else "muted", wrap=True))
        if item.budget is not None:
            parts.append(label(self._budget_words(item, translate_sentence(item.budget)), "warning", wrap=True))
        vbox(*parts, self._buttons, self._confirm, parent=self, spacing=SPACE_XS, margins=SPACE_M)

    def _create_buttons(self, item: ListedSchedule, title: str, page: "ScheduleForm") -> FlowRows:
        prompt, last = item.prompt, item.last_run
        start = partial(page.schedules.run_now, prompt.id)
        run = button(self.tr("Run now"), start, name=self.tr("Run {0} now").format(title))
        run.setEnabled(last is None or last.state == "ended")
        words, name = self.tr("Resume"), self.tr("Resume {0}")
        if prompt.is_on:
            words, name = self.tr("Pause"), self.tr("Pause {0}")
        pause = button(words, partial(page.schedules.switch, prompt.id, not prompt.is_on), name=name.format(title))
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
    """All prompts."""

    open_requested = Signal(str)
    """The id of a conversation."""
    budgets_requested = Signal()

    def __init__(self, schedules: ScheduledPrompts) -> None:
        super().__init__(self.tr("Add scheduled prompt…"))
        self.schedules = schedules
        self._modes: tuple[Mode, ...] = ()
        self._models: tuple[ModelGroup, ...] = ()
        empty = self.tr("Nothing is scheduled. A scheduled prompt is sent automatically, once or repeatedly.")
        self._empty_note = label(empty, "muted", wrap=True)
        self._foot = FlowRows((self._add,))
        parts = (self._empty_note, self._cards, self._foot)
        vbox(*parts, parent=self, spacing=SPACE_S, margins=0, end_stretch=True)
        self._update_buttons()
        schedules.listed.connect(self.show_items)

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

    def _save_item(self, item: Any) -> None:
        self._close_editor()
        self.schedules.save(item)
        self._add.setFocus()

    def _create_card(self, item: ListedSchedule) -> ScheduleCard:
        return ScheduleCard(item, self)
