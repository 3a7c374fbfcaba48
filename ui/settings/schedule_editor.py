"""The editor of one scheduled prompt."""

from collections.abc import Sequence

from desktop_agent.types.permissions import Mode
from desktop_agent.types.schedules import MAX_TITLE, ScheduledPrompt
from ui.bridge.model_servers import ModelGroup
from ui.forms.controls import Control, folder_line, menu, radio_buttons, text_area, text_line
from ui.settings.card_list import CardEditor
from ui.settings.schedule_timing import TimingEditor
from ui.settings.tool_picker import GroupedMenu
from ui.style.pickers import mode_title
from ui.style.text import show_hidden, trim_prompt

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
            self._select_model(_model_key(prompt.endpoint_id, prompt.model))

    def show_models(self, groups: Sequence[ModelGroup]) -> None:
        """Set the models to choose from; the selected one stays, and so does an open menu if nothing is new."""
        if tuple(groups) == self._groups:
            return
        self._groups = tuple(groups)
        chosen = str(self._model.currentData() or "")
        self._show_model_choices(groups)
        self._select_model(chosen)

    def _edited_item(self) -> ScheduledPrompt:
        values = self.form.values
        endpoint_id, _, model = str(values.pop("model_key") or "").partition(_SEPARATOR)
        base = {} if self._original is None else dict(self._original)
        values["prompt"] = trim_prompt(str(values["prompt"]))
        values |= {"endpoint_id": endpoint_id or None, "model": model or None}
        values["workspace"] = values["workspace"] or None
        return ScheduledPrompt.model_validate({**base, **values})

    def _show_model_choices(self, groups: Sequence[ModelGroup]) -> None:
        self._model.clear_choices()
        self._model.add_choice(self.tr("As in new conversations"), "")
        for group in groups:
            if group.models:
                self._model.add_heading(group.endpoint.title)
            for model in group.models:
                self._model.add_choice(model.id, _model_key(group.endpoint.id, model.id))

    def _select_model(self, key: str) -> None:
        if self._model.findData(key) < 0:
            self._model.add_choice(self.tr("{0} (not listed)").format(key.partition(_SEPARATOR)[2]), key)
        self._model.setCurrentIndex(self._model.findData(key))

    def _title_error(self, title: str) -> str:
        return "" if title else self.tr("A scheduled prompt needs a name. Write one.")

    def _prompt_error(self, prompt: str) -> str:
        return "" if prompt.strip() else self.tr("There is nothing to send yet. Write the prompt.")

    def _timing_error(self, _timing: object) -> str:
        return self._timing.problem

    def _add_fields(self, modes: Sequence[Mode]) -> None:
        add, timing, model = self.form.add_field, self._timing, self._model
        add("title", self.tr("Name"), text_line(max_length=MAX_TITLE), self._title_error)
        add("prompt", self.tr("Prompt"), text_area(_PROMPT_LINES), self._prompt_error)
        when = Control(
            widget=timing,
            read=lambda: timing.timing,
            show=timing.set_timing,
            changed=timing.changed,
            focus=timing.first_wrong,
        )
        add("timing", self.tr("When"), when, self._timing_error)
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
