"""Actions on a message: edit, regenerate, branch, show another version; and a banner about effects that remain."""

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QWidget

from desktop_agent.conversation.items import Change, Removed, Updated, UserItem
from desktop_agent.types.errors import AgentError, Sentence, WrongUse
from desktop_agent.types.providers import Reasoning
from ui.bridge.conversation import OpenConversation
from ui.bridge.event_loop import BackgroundTasks
from ui.bridge.side_conversation import ConversationSource
from ui.composer.attachment_chips import Attachment
from ui.composer.composer import Composer
from ui.composer.prompt_edit import PromptEdit
from ui.shell.banners import Banner, BannerArea, BannerButton
from ui.shell.branch_tree.message_deletion import DeletionPresenter
from ui.shell.branch_tree.tree_presenter import BranchTreePresenter
from ui.shell.composer_controls import ModelControls
from ui.shell.drafts import DraftSync, from_draft
from ui.shell.layout import PageFrame
from ui.shell.undo import UndoPresenter
from ui.style.controls import announce
from ui.style.text import join_names, translate_sentence
from ui.style.text_display import isolate_untrusted
from ui.style.theme import ThemeSource
from ui.style.tool_labels import tool_title
from ui.transcript.rows.message_actions import offer_at_end
from ui.transcript.rows.render_context import Alternative, AlternativeGroup, MessageActions
from ui.transcript.view import TranscriptView

_MAX_LISTED_MODELS = 12
_MAX_NAMED_TOOLS = 5
_REMARK_MS = 6_000
_EFFECTS_KEY = "effects of another version"


class BranchesPresenter(QObject):
    """Shows the actions below the messages, and runs them."""

    def __init__(
        self,
        themes: ThemeSource,
        transcript: TranscriptView,
        composer: Composer,
        banners: BannerArea,
        models: ModelControls,
        undo: UndoPresenter,
        tasks: BackgroundTasks,
        page: QWidget,
    ) -> None:
        super().__init__(page)
        self._transcript = transcript
        self._composer = composer
        self._banners = banners
        self._models = models
        self._undo = undo
        self._tasks = tasks
        self._conversation: OpenConversation | None = None
        self.deletion = DeletionPresenter(themes, banners, undo, tasks, page)
        self.tree = BranchTreePresenter(themes, self.deletion, tasks, page)
        transcript.delete_requested.connect(self.deletion.ask)
        transcript.regenerate_requested.connect(self.regenerate)
        transcript.branch_requested.connect(self._branch_from)
        transcript.version_requested.connect(self.show_version)

    def show(self, conversation: OpenConversation) -> None:
        """Offer the actions for this conversation, which is about to be shown."""
        self._banners.remove(_EFFECTS_KEY)
        self._conversation = conversation
        conversation.working_changed.connect(self._refresh)
        conversation.branches.changed.connect(self._on_changed)
        conversation.branches.changed_elsewhere.connect(self._refresh)
        conversation.branches.effects_left.connect(self._report_remaining_effects)
        conversation.changed.connect(self._on_items)
        self.deletion.show(conversation)
        self.tree.show(conversation)
        self._refresh()

    def regenerate(self, message_id: str) -> None:
        """Regenerate the answer that this message is part of."""
        conversation = self._conversation
        if conversation is not None and not conversation.history.has_turn(message_id):
            self._tasks.start(self._regenerate_long(conversation, message_id))
        elif conversation is not None and self._run(lambda: conversation.branches.regenerate(message_id)):
            self._transcript.scroller.scroll_to_end()

    async def _regenerate_long(self, conversation: OpenConversation, message_id: str) -> None:
        await conversation.history.load_turn(message_id)
        if conversation is self._conversation:
            self.regenerate(message_id)

    def regenerate_here(self) -> None:
        """Regenerate the focused answer, or the last one."""
        self._run_at_message("R", Sentence("There is no answer yet."))

    @property
    def can_continue(self) -> bool:
        """Whether the end of the conversation offers to continue."""
        return self._conversation is not None and offer_at_end(self._conversation.transcript) is not None

    def continue_at_end(self) -> None:
        """Continue after Stop or a limit, wherever the focus is."""
        offer = None if self._conversation is None else offer_at_end(self._conversation.transcript)
        if offer is not None:
            self._transcript.remedy_requested.emit(*offer)

    def delete_here(self) -> None:
        """Delete the focused message, or the last one, after asking."""
        self._run_at_message("Del", Sentence("There is no message yet."))

    def step_version(self, step: int) -> None:
        """Show the previous (-1) or next (1) version of the focused message, or of the last one that has any."""
        self._run_at_message("Alt+Left" if step < 0 else "Alt+Right", Sentence("There is no other version."))

    def _run_at_message(self, keys: str, otherwise: Sentence) -> None:
        if self._conversation is not None and not self._transcript.run_message_command(keys):
            self._banners.show_banner(Banner("branches", otherwise, level="remark", duration_ms=_REMARK_MS))

    def show_version(self, message_id: str) -> None:
        """Show the version that begins with this message, or continues with it."""
        if self._conversation is not None:
            self._tasks.start(self._show_version(self._conversation, message_id))

    async def _show_version(self, conversation: OpenConversation, message_id: str) -> None:
        versions = conversation.branches.versions
        previous_id = next((first for first, others in versions.items() if message_id in others.ids), None)
        self._transcript.expect_version(previous_id)
        try:
            await conversation.branches.show(message_id)
        except AgentError as error:
            self._transcript.forget_version()
            self._banners.show_error(error, conversation.id)
            return
        if conversation is not self._conversation:
            return
        shown = next((others for others in conversation.branches.versions.values() if message_id in others.ids), None)
        if shown is not None:
            announce(self._transcript, self.tr("Version {0} of {1}").format(shown.index + 1, len(shown.ids)))

    def _branch_from(self, message_id: str) -> None:
        conversation = self._conversation
        if conversation is not None and self._run(lambda: conversation.branches.branch_from(message_id)):
            self._composer.editor.setFocus(Qt.FocusReason.OtherFocusReason)

    def _run(self, command: Callable[[], None]) -> bool:
        """Return whether the command succeeded; if not, a banner says why."""
        try:
            command()
        except AgentError as error:
            self._banners.show_error(error, "" if self._conversation is None else self._conversation.id)
            return False
        return True

    def _on_changed(self) -> None:
        self._banners.remove(_EFFECTS_KEY)
        self._refresh()

    def _on_items(self, changes: Sequence[Change]) -> None:
        """Offer actions for the messages in view now: another window may have changed them."""
        is_idle = self._conversation is not None and not self._conversation.working
        if is_idle and not {*map(type, changes)} <= {Updated}:
            self._refresh()

    def _refresh(self) -> None:
        conversation = self._conversation
        if conversation is not None:
            held_by = conversation.held_by
            actions = MessageActions(
                conversation.branches.versions,
                conversation.branches.continuations,
                conversation.working,
                "" if held_by is None else translate_sentence(held_by),
                conversation.is_found,
                self._alternatives,
            )
            self._transcript.set_message_actions(actions)

    def _report_remaining_effects(self, checkpoint_ids: tuple[str, ...], tools: tuple[str, ...]) -> None:
        """Show a banner about what calls of the other version did, and offer to undo changes of files."""
        named = [isolate_untrusted(tool_title(name)) for name in tools[:_MAX_NAMED_TOOLS]]
        names = join_names([*named, *(["…"] if len(tools) > _MAX_NAMED_TOOLS else [])])
        if not tools:
            sentence = Sentence("Files that the other version changed stay as they are.")
        elif checkpoint_ids:
            words = (
                "Files that the other version changed stay as they are. What these tools did is not undone "
                "either: {tools}."
            )
            sentence = Sentence(words, {"tools": names})
        else:
            sentence = Sentence("What these tools did for the other version is not undone: {tools}.", {"tools": names})
        heading = self.tr("Undo what the other version changed")
        run = partial(self._undo.undo_checkpoints, checkpoint_ids, heading)
        buttons = (BannerButton(self.tr("Undo file changes too…"), run),) if checkpoint_ids else ()
        id_ = "" if self._conversation is None else self._conversation.id
        banner = Banner(_EFFECTS_KEY, sentence, level="remark", buttons=buttons, conversation_id=id_)
        self._banners.show_banner(banner)

    def _alternatives(self) -> Sequence[AlternativeGroup]:
        groups = [AlternativeGroup(self.tr("With another model"), self._model_alternatives())]
        if choices := self._models.reasoning.choices:
            current = None if self._conversation is None else self._conversation.reasoning
            levels = [
                Alternative(
                    choice.text, partial(self._regenerate_with_reasoning, choice.reasoning), choice.reasoning == current
                )
                for choice in choices
            ]
            groups.append(AlternativeGroup(self.tr("With another reasoning level"), levels))
        return groups

    def _model_alternatives(self) -> Sequence[Alternative]:
        """Return the first models of the picker, those of the server in use before others, and the picker itself."""
        conversation = self._conversation
        current = (None, None) if conversation is None else (conversation.endpoint_id, conversation.model)
        groups = sorted(self._models.picker.groups, key=lambda group: group.endpoint.id != current[0])
        models = [(group.endpoint.id, model) for group in groups for model in group.models]
        listed = [
            Alternative(
                model.title or model.id,
                partial(self._regenerate_with_model, endpoint_id, model.id),
                (endpoint_id, model.id) == current,
            )
            for endpoint_id, model in models[:_MAX_LISTED_MODELS]
        ]
        return [*listed, Alternative(self.tr("Another model…"), self._choose_model)]

    def _choose_model(self, message_id: str) -> None:
        self._models.picker.choose_once(
            lambda endpoint_id, model: self._regenerate_with_model(endpoint_id, model, message_id)
        )

    def _regenerate_with_model(self, endpoint_id: str, model: str, message_id: str) -> None:
        self._models.choose_model(endpoint_id, model)
        self.regenerate(message_id)

    def _regenerate_with_reasoning(self, reasoning: Reasoning | None, message_id: str) -> None:
        if self._conversation is not None:
            self._models.choose_reasoning(reasoning)
            self.regenerate(message_id)


class PromptEditing(QObject):
    """Edits prompts in place: moves the composer of the frame there, and back.

    The sender of a message calls `take` for the prompt that the message replaces.
    """

    def __init__(
        self,
        themes: ThemeSource,
        frame: PageFrame,
        transcript: TranscriptView,
        library: ConversationSource,
        drafts: DraftSync,
        tasks: BackgroundTasks,
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._frame = frame
        self._composer = composer = frame.composer
        self._transcript = transcript
        self._library = library
        self._drafts = drafts
        self._tasks = tasks
        self._conversation: OpenConversation | None = None
        self._requested_id = ""
        """The prompt that was chosen last, which may still be loading."""
        self._edit = PromptEdit(themes, composer)
        self.take = self._edit.take
        """Return the id of the prompt that is being edited and sent, or ""."""
        self._edit.ended.connect(self._on_ended)
        composer.editor.textChanged.connect(transcript.in_place_editor.scroll_to_editor)
        composer.editor.cursorPositionChanged.connect(transcript.in_place_editor.scroll_to_keyboard)
        composer.notice_shown.connect(transcript.in_place_editor.scroll_to_notice)
        composer.checks.append(self._may_send)
        composer.editor.edit_last_pressed.connect(self.edit_last)
        transcript.edit_requested.connect(self.edit)

    def leave(self) -> None:
        """Stop editing; changed text is added to the end of the draft."""
        self._edit.leave()

    def show(self, conversation: OpenConversation) -> None:
        """Edit prompts of this conversation."""
        self._conversation = conversation
        conversation.branches.changed.connect(self._on_branch_changed)
        conversation.changed.connect(self._on_items)

    def edit(self, message_id: str) -> None:
        """Bring a prompt into the composer, with its pictures."""
        conversation = self._conversation
        if conversation is None:
            return
        if conversation.held_by is not None and conversation.is_found:
            # A found conversation has no composer that could show the problem.
            self._transcript.show_refusal(translate_sentence(conversation.held_by))
        elif conversation.held_by is not None:
            # The reason is already shown below the editor.
            words = "Your prompts can be edited as soon as messages can be sent here again."
            self._composer.show_problem(Sentence(words))
        elif not self._drafts.is_loaded:
            self._composer.show_problem(
                Sentence("Your earlier draft is not loaded yet."), Sentence("Try again in a moment.")
            )
        elif conversation.working:
            self._refuse_while_working()
        else:
            self._requested_id = message_id
            self._tasks.start(self._load(conversation, message_id))

    def edit_last(self) -> None:
        """Bring the last prompt into the composer."""
        items = () if self._conversation is None else reversed(list(self._conversation.transcript))
        prompt = next((item for item in items if isinstance(item, UserItem)), None)
        if prompt is not None:
            self.edit(prompt.message_id)
        elif self._conversation is not None and self._conversation.history.unloaded_count:
            self._tasks.start(self._edit_unloaded(self._conversation))

    async def _edit_unloaded(self, conversation: OpenConversation) -> None:
        await conversation.history.load_turn("")
        if conversation is self._conversation:
            self.edit_last()

    def resume(self, message_id: str, text: str, attached: Sequence[Attachment]) -> None:
        """Show this text in the composer for editing the message, as when it could not be sent."""
        self._edit.begin(message_id, text, attached)
        self._transcript.in_place_editor.show_editor(message_id, self._composer)
        self._composer.editor.setFocus()

    async def _load(self, conversation: OpenConversation, message_id: str) -> None:
        content = await self._library.drafts.content_of(conversation.branches.prompt(message_id))
        if (
            conversation is not self._conversation
            or message_id != self._requested_id
            or not self._is_in_view(message_id)
        ):
            return
        if conversation.working:
            self._refuse_while_working()
        elif message_id == self._edit.message_id:
            # Requested twice: changes made since then stay.
            self._composer.editor.setFocus()
            self._transcript.in_place_editor.scroll_to_editor()
        else:
            self.resume(message_id, content.record.text, from_draft(content))
            for problem in content.problems:
                self._composer.show_problem(problem.sentence, problem.remedy)

    def _on_ended(self) -> None:
        # Not `QApplication.focusWidget()`: the window may not be the active one.
        has_focus = self._composer.isAncestorOf(self._composer.window().focusWidget())
        self._transcript.in_place_editor.hide_editor()
        self._frame.take_back_composer()
        if has_focus:
            self._composer.editor.setFocus()

    def _may_send(self, _text: str, _attached: Sequence[Attachment]) -> bool:
        if self._edit.message_id and self._conversation is not None and self._conversation.working:
            self._refuse_while_working()
            return False
        return True

    def _refuse_while_working(self) -> None:
        self._composer.show_problem(Sentence("The model is still working."), Sentence("Wait, or press Stop first."))

    def _on_items(self, changes: Sequence[Change]) -> None:
        if Removed in map(type, changes):
            # Another window may have gone to another branch.
            self._on_branch_changed()

    def _on_branch_changed(self) -> None:
        """Stop editing if the prompt is no longer in view."""
        if self._edit.message_id and not self._is_in_view(self._edit.message_id):
            self._edit.leave()

    def _is_in_view(self, message_id: str) -> bool:
        try:
            return self._conversation is not None and bool(self._conversation.branches.prompt(message_id))
        except WrongUse:
            return False
