"""Controls of the composer: model, reasoning, parameters, mode, message queue and questions."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVarTuple

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QWidget

from desktop_agent.types.errors import AgentError, Sentence
from desktop_agent.types.providers import ConversationParameters, Reasoning
from ui.bridge.conversation import OpenConversation
from ui.bridge.event_loop import BackgroundTasks
from ui.bridge.model_servers import ModelGroup, ModelServers
from ui.bridge.session_controls import SessionControls
from ui.bridge.side_conversation import ConversationSource
from ui.composer.composer import Composer
from ui.composer.message_queue import MessageQueueView
from ui.composer.notices import ModeRequestBar
from ui.composer.parameter_buttons import ParametersButton, ReasoningPicker, is_unsupported, reasoning_name
from ui.composer.pickers import ModelPicker
from ui.composer.question_card import QuestionCard
from ui.shell.banners import BannerArea
from ui.style.boxes import vbox
from ui.style.pickers import ModePicker
from ui.style.theme import SPACE_S, ThemeSource

_Args = TypeVarTuple("_Args")


class ModelControls(QObject):
    """Applies the chosen model and reasoning to the conversation, and the model's capabilities to the composer.

    `parameters` is a button of the composer too, behind the more important ones.
    """

    noticed = Signal(object)
    """A Sentence about a choice that no longer holds."""
    _folders_read = Signal(str, list)
    """The id of a conversation, and the names of the folders whose instructions are added to its own."""

    def __init__(
        self,
        themes: ThemeSource,
        composer: Composer,
        library: ConversationSource,
        servers: ModelServers,
        tasks: BackgroundTasks,
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._tasks = tasks
        self._library = library
        self._composer = composer
        self._servers = servers
        self._conversation: OpenConversation | None = None
        self._shown_model: tuple[str | None, str | None] | None = None
        self.picker = ModelPicker(themes)
        self.reasoning = ReasoningPicker(themes)
        self.parameters = ParametersButton(themes)
        composer.controls.add(self.picker)
        composer.controls.add(self.reasoning)
        self.picker.model_chosen.connect(self.choose_model)
        self.picker.refresh_requested.connect(lambda: servers.refresh_models(again=True))
        self.reasoning.reasoning_chosen.connect(self.choose_reasoning)
        self.parameters.clicked.connect(self.edit_parameters)
        servers.models_changed.connect(self._on_models)
        servers.connected.connect(self._on_connected)

    def show(self, conversation: OpenConversation) -> None:
        """Show the model of this conversation."""
        self._conversation = conversation
        self.refresh()

    def refresh(self) -> None:
        """Show the model and its capabilities. Reasoning that it lacks is reset to the default."""
        conversation = self._conversation
        if conversation is None:
            return
        model = conversation.endpoint_id, conversation.model
        capabilities = self._servers.capabilities(*model)
        reasoning = conversation.reasoning
        if is_unsupported(capabilities, reasoning):
            # A conversation of another process is read-only.
            if conversation.held_by is None:
                self._library.change(conversation.id, reasoning=None)
                template = "This model has no reasoning level “{choice}”. Reasoning is back to Default."
                self.noticed.emit(Sentence(template, {"choice": reasoning_name(reasoning)}))
            reasoning = None
        if model != self._shown_model:
            self._shown_model = model
            self._composer.clear_problems()
        self.picker.set_current(*model)
        self.reasoning.show_choices(capabilities, reasoning)
        self.parameters.show_parameters(conversation.parameters)
        self._composer.set_supports_images(capabilities.images, self._servers.picture_limits(*model))

    def edit_parameters(self) -> None:
        """Open the parameters of the conversation."""
        conversation = self._conversation
        if conversation is None:
            return
        # Late: seldom opened.
        from ui.settings.conversation_settings import ConversationSettingsDialog

        if ConversationSettingsDialog.raise_open(conversation.id):
            return
        instructions, window = self._servers.default_system_prompt, self._composer.window()
        dialog = ConversationSettingsDialog(conversation.id, conversation.parameters, instructions, window)
        # Another conversation may be open by the time it is saved.
        dialog.saved.connect(partial(self._set_parameters, conversation.id))
        self._folders_read.connect(dialog.show_folders)
        dialog.open()
        self._tasks.start(self._read_folders(conversation))

    async def _read_folders(self, conversation: OpenConversation) -> None:
        folders = await conversation.folders_with_instructions()
        self._folders_read.emit(conversation.id, [folder.name for folder in folders])

    def _set_parameters(self, conversation_id: str, parameters: ConversationParameters) -> None:
        self._library.change(conversation_id, parameters=parameters)

    def choose_model(self, endpoint_id: str, model: str) -> None:
        """Use this model from now on, here and in new conversations."""
        if self._conversation is not None:
            self._library.change(self._conversation.id, endpoint_id=endpoint_id, model=model)
            self._servers.choose(endpoint_id, model)

    def choose_reasoning(self, reasoning: Reasoning | None) -> None:
        """Use this reasoning from now on, in this conversation."""
        if self._conversation is not None:
            self._library.change(self._conversation.id, reasoning=reasoning)

    def _on_connected(self, endpoint_id: str, model: str) -> None:
        """Use the new server if this conversation has none: it was imported, or its server was removed."""
        conversation = self._conversation
        if conversation is None or conversation.held_by is not None or conversation.is_demo:
            return
        if all(endpoint.id != conversation.endpoint_id for endpoint in self._servers.endpoints):
            self._library.change(conversation.id, endpoint_id=endpoint_id, model=model)

    def _on_models(self, groups: Sequence[ModelGroup]) -> None:
        self.picker.set_models(groups)
        conversation = self._conversation
        if conversation is not None and not conversation.model and conversation.held_by is None:
            # No model is chosen yet: choose the first one of the server, so that messages can be sent.
            models = (
                group.models[0].id for group in groups if group.models and group.endpoint.id == conversation.endpoint_id
            )
            model = next(models, None)
            if model is not None:
                self._library.change(conversation.id, model=model)
        self.refresh()


class SessionControlsPresenter(QObject):
    """Puts the mode picker into the composer; `above` is the widget over the composer with all other controls."""

    def __init__(self, themes: ThemeSource, composer: Composer, banners: BannerArea, parent: QObject) -> None:
        super().__init__(parent)
        self._composer = composer
        self._banners = banners
        self._conversation: OpenConversation | None = None
        self.picker = ModePicker(themes)
        self.request = ModeRequestBar()
        self.queue = MessageQueueView(themes)
        self.questions = QuestionCard(themes)
        self.above = QWidget()
        composer.controls.add(self.picker)
        parts = (self.request, self.questions, self.queue)
        vbox(*parts, parent=self.above, spacing=SPACE_S, margins=(0, 0, 0, SPACE_S))
        self._connect()

    def show(self, conversation: OpenConversation) -> None:
        """Show the controls of this conversation."""
        self._conversation = conversation
        self.queue.show_messages((), working=False)
        session_controls = conversation.session_controls
        session_controls.modes_changed.connect(self.refresh_modes)
        session_controls.queue_changed.connect(self._show_queue)
        session_controls.questions_changed.connect(self._show_questions)
        conversation.working_changed.connect(self._show_queue)
        self.refresh_modes()
        self._show_queue()
        self._show_questions()

    @property
    def edited_texts(self) -> tuple[str, ...]:
        """The text that is being edited here, which is saved with the draft."""
        return tuple(filter(None, (*self.queue.changed_texts, self.questions.custom_answer)))

    def return_texts(self) -> None:
        """Move the text that is being edited here into the composer, which saves it."""
        self.queue.return_drafts()
        self.questions.return_draft()

    def refresh_modes(self) -> None:
        """Show the modes, the current one and the requested one."""
        if self._conversation is not None:
            session_controls = self._conversation.session_controls
            self.picker.show_modes(session_controls.modes, session_controls.mode, session_controls.requested_mode)
            self.request.show_request(session_controls.requested_mode, session_controls.mode)
            self._update_visible()

    def _show_queue(self) -> None:
        if self._conversation is not None:
            self.queue.show_messages(self._conversation.session_controls.queue, working=self._conversation.working)
            self._update_visible()

    def _show_questions(self) -> None:
        if self._conversation is not None:
            self.questions.show_questions(self._conversation.session_controls.questions)
            self._update_visible()

    def _update_visible(self) -> None:
        parts = (self.request, self.questions, self.queue)
        self.above.setVisible(not all(part.isHidden() for part in parts))

    def _edit_queued_message(self, message_id: str, text: str) -> None:
        # It may have been delivered while it was being edited: keep the text.
        if not self._run(SessionControls.edit_queued_message, message_id, text):
            self._composer.restore_message(text)

    def _remove(self, message_id: str) -> None:
        def remove(session_controls: SessionControls) -> None:
            removed = session_controls.remove_message(message_id)
            # The banner is shown only over its conversation, which may have been reopened since.
            self._banners.show_undo(
                self.tr("The waiting message was removed."),
                lambda: self._run(SessionControls.restore_message, removed),
                self._conversation_id,
            )

        self._run(remove)

    def _send_now(self) -> None:
        conversation = self._conversation
        if conversation is not None:
            self._run(lambda _: conversation.continue_run())

    def _answer(self, question_id: str, answer: list[str]) -> None:
        if self._run(SessionControls.answer, question_id, answer) and self.questions.question is None:
            self._composer.editor.setFocus(Qt.FocusReason.OtherFocusReason)

    def _run(self, command: Callable[[SessionControls, *_Args], object], *args: *_Args) -> bool:
        """Return whether the action succeeded; if not, a banner says why."""
        if self._conversation is None:
            return False
        try:
            command(self._conversation.session_controls, *args)
        except AgentError as error:
            self._banners.show_error(error, self._conversation_id)
            return False
        return True

    @property
    def _conversation_id(self) -> str:
        return "" if self._conversation is None else self._conversation.id

    def _connect(self) -> None:
        self.picker.mode_chosen.connect(partial(self._run, SessionControls.set_mode))
        self.picker.request_refused.connect(partial(self._run, SessionControls.reject_mode))
        self.request.accepted.connect(self.picker.mode_chosen)
        self.request.refused.connect(self.picker.request_refused)
        self.queue.edited.connect(self._composer.draft_timer.start)
        self.queue.text_edited.connect(self._edit_queued_message)
        self.queue.moved.connect(partial(self._run, SessionControls.move))
        self.queue.when_chosen.connect(partial(self._run, SessionControls.set_when))
        self.queue.removed.connect(self._remove)
        self.queue.send_requested.connect(self._send_now)
        self.queue.draft_returned.connect(self._composer.restore_message)
        self.queue.navigated_out.connect(self._composer.editor.setFocus)
        self.questions.edited.connect(self._composer.draft_timer.start)
        self.questions.answered.connect(self._answer)
        self.questions.skipped.connect(partial(self._run, SessionControls.skip_question))
        self.questions.draft_returned.connect(self._composer.restore_message)
