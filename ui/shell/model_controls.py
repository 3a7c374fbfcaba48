"""The model, how hard it reasons and its parameters: controls kept in step with the conversation."""

from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal, Slot

from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.requests import ConversationParameters, Reasoning
from ui.bridge.conversation import OpenConversation
from ui.bridge.library import ConversationLibrary
from ui.bridge.servers import ModelGroup, ModelServers
from ui.bridge.tasks import BackgroundTasks
from ui.composer.composer import Composer
from ui.composer.model_picker import ModelPicker
from ui.composer.parameters_button import ParametersButton
from ui.composer.reasoning_choices import is_unsupported, reasoning_name
from ui.composer.reasoning_switch import ReasoningPicker
from ui.look.theme import ThemeSource


class ModelControls(QObject):
    """Changes the conversation by what the person picks, and tells the composer what the model can take.

    `parameters` belongs into the composer too, behind what matters more.
    """

    connect_requested = Signal()
    remark = Signal(object)
    """A Sentence about a choice that no longer holds."""

    def __init__(
        self,
        themes: ThemeSource,
        composer: Composer,
        library: ConversationLibrary,
        servers: ModelServers,
        tasks: BackgroundTasks,
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._library = library
        self._composer = composer
        self._servers = servers
        self._tasks = tasks
        self._conversation: OpenConversation | None = None
        self._edited_id = ""
        self.picker = ModelPicker(themes)
        self.reasoning = ReasoningPicker(themes)
        self.parameters = ParametersButton(themes)
        composer.add_control(self.picker)
        composer.add_control(self.reasoning)
        self.picker.model_chosen.connect(self.choose_model)
        self.picker.refresh_requested.connect(lambda: servers.refresh_models(again=True))
        self.picker.connect_requested.connect(self.connect_requested)
        self.reasoning.reasoning_chosen.connect(self._choose_reasoning)
        self.parameters.clicked.connect(self.edit_parameters)
        servers.models_changed.connect(self._on_models)

    def show(self, conversation: OpenConversation) -> None:
        """The conversation on the screen, as it is now."""
        self._conversation = conversation
        self.refresh()

    def refresh(self) -> None:
        """Show the model in use and what it can do. A choice that it lacks goes back to the default."""
        conversation = self._conversation
        if conversation is None:
            return
        place = conversation.endpoint_id, conversation.model
        able = self._servers.capabilities(*place)
        reasoning = conversation.reasoning
        if is_unsupported(able, reasoning):
            # What another process works in is only shown: its choice is left to that one.
            if conversation.held_by is None:
                conversation.change(reasoning=None)
                template = "This model does not offer the reasoning “{choice}”: it is on Default again."
                self.remark.emit(Sentence(template, {"choice": reasoning_name(reasoning)}))
            reasoning = None
        self.picker.set_current(*place)
        self.reasoning.show_choices(able, reasoning)
        self.parameters.show_parameters(conversation.parameters)
        self._composer.set_supports_images(able.images, self._servers.picture_limits(*place))

    def edit_parameters(self) -> None:
        """Show the settings of the conversation."""
        conversation = self._conversation
        if conversation is None:
            return
        # Late: most conversations are had without.
        from ui.preferences.conversation_settings import ConversationSettingsDialog

        window = self._composer.window()
        dialog = ConversationSettingsDialog(conversation.parameters, self._servers.default_system_prompt, window)
        # Another one may be shown by the time it is saved.
        self._edited_id = conversation.id
        dialog.saved.connect(self._set_parameters)
        dialog.open()

    @Slot(object)
    def _set_parameters(self, parameters: ConversationParameters) -> None:
        self._library.change(self._edited_id, parameters=parameters)

    @Slot(str, str)
    def choose_model(self, endpoint_id: str, model: str) -> None:
        """Have this one answer from now on, here and in new conversations."""
        if self._conversation is not None:
            self._library.change(self._conversation.id, endpoint_id=endpoint_id, model=model)
            self._tasks.start(self._servers.kept.choose(endpoint_id, model))

    @Slot(object)
    def _choose_reasoning(self, reasoning: Reasoning | None) -> None:
        if self._conversation is not None:
            self._library.change(self._conversation.id, reasoning=reasoning)

    @Slot(list)
    def _on_models(self, groups: Sequence[ModelGroup]) -> None:
        self.picker.set_models(groups)
        conversation = self._conversation
        if conversation is not None and not conversation.model and conversation.held_by is None:
            # A server named without a model: its first one, shown in the picker, so that one can begin.
            first = (
                each.models[0].id for each in groups if each.models and each.endpoint.id == conversation.endpoint_id
            )
            model = next(first, None)
            if model is not None:
                conversation.change(model=model)
        self.refresh()
