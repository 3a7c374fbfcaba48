"""The page of one conversation: heading, banners, transcript, composer, and first messages for the demo."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QCoreApplication, QObject, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QApplication, QLineEdit, QWidget

from desktop_agent.conversation.items import Change, Updated
from desktop_agent.types.errors import AgentError, RemedyAction, Sentence, StorageFailed, WrongUse
from desktop_agent.types.messages import Message
from desktop_agent.types.policies import When
from desktop_agent.types.providers import NoModelChosen
from ui.bridge.conversation import OpenConversation
from ui.bridge.desktop.links import conversation_link
from ui.bridge.desktop.opening import AddressOpener
from ui.bridge.drafts import ComposerDraft, merge_drafts
from ui.bridge.event_loop import BackgroundTasks
from ui.bridge.library import resolve_workspace
from ui.bridge.model_servers import ModelServers
from ui.bridge.side_conversation import ConversationSource
from ui.bridge.storage import PictureStore
from ui.composer.attachment_chips import Attachment
from ui.composer.composer import Composer
from ui.composer.pickers import ModelPicker, WorkspacePicker
from ui.shell.approvals import ApprovalPresenter
from ui.shell.attachments import AttachmentsPresenter
from ui.shell.banners import Banner, BannerArea
from ui.shell.branches import BranchesPresenter, PromptEditing
from ui.shell.composer_controls import ModelControls, SessionControlsPresenter
from ui.shell.context_usage import ContextOverflowCheck, UsageMeter
from ui.shell.drafts import DraftSync, to_blocks, to_draft, untrusted_sources
from ui.shell.earlier_messages import EarlierMessagesLoader, MessageOpener
from ui.shell.find_and_caret import TranscriptNavigation
from ui.shell.layout import PageFrame
from ui.shell.undo import UndoPresenter
from ui.style.boxes import vbox
from ui.style.controls import button, label
from ui.style.layouts import FlowRows, break_words
from ui.style.text import title_or_new
from ui.style.theme import SPACE_S, SPACE_XS, ThemeSource
from ui.transcript.view import TranscriptView

DEMO_STARTERS = ("What can you do?", "Tell me a long story", "Calculate 6 * 7", "Write a file")
"""They show every part of the demo: thinking and Markdown, streaming and Stop, a tool, an approval.

Not translated: they are sent as they are, and the demo knows only these words.
"""


class StarterMessages(QWidget):
    """The offers of an empty conversation: messages to try in the demo, and otherwise not to store it."""

    chosen = Signal(str)
    unstored_chosen = Signal()

    def __init__(self, messages: tuple[str, ...] = DEMO_STARTERS) -> None:
        super().__init__()
        self.setAccessibleName(self.tr("Suggestions"))
        self._demo = QWidget()
        heading = label(self.tr("Try one of these:"), "small")
        buttons = FlowRows([button(message, partial(self.chosen.emit, message)) for message in messages])
        vbox(heading, buttons, parent=self._demo, spacing=SPACE_XS, margins=0)
        self._unstored = button(self.tr("Do not store this conversation"), self.unstored_chosen.emit, "link")
        vbox(self._demo, self._unstored, parent=self, margins=(SPACE_S, 0, SPACE_S, SPACE_S))
        self.hide()

    def show_for(self, conversation: OpenConversation | None) -> None:
        """Show the offers of this conversation."""
        is_empty = conversation is not None and conversation.is_empty and not conversation.is_in_memory
        is_demo = conversation is not None and conversation.is_demo
        self._demo.setVisible(is_demo)
        self._unstored.setVisible(not is_demo)
        self.setVisible(is_empty)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        break_words(self._unstored, self.width() - 2 * SPACE_S)


NOTICE_MS = 12_000


_ASKS_AGAIN = frozenset({RemedyAction.RETRY, RemedyAction.GO_ON})


class ConversationPage(QObject):
    """Fills the page frame and shows one OpenConversation at a time in it."""

    providers_requested = Signal()
    """Show the settings of providers and keys; the remedy of an error asks for it."""

    def __init__(
        self,
        frame: PageFrame,
        banners: BannerArea,
        themes: ThemeSource,
        library: ConversationSource,
        servers: ModelServers,
        pictures: PictureStore,
        tasks: BackgroundTasks,
    ) -> None:
        super().__init__(frame)
        self._library = library
        self._servers = servers
        self._pictures = pictures
        self._tasks = tasks
        self._conversation: OpenConversation | None = None
        self._opener = AddressOpener(self)
        self._show_heading = frame.show_heading
        self.usage_meter = UsageMeter()
        self.banners = banners
        self.composer = frame.composer
        self.transcript = TranscriptView(themes, pictures)
        self.attachments = AttachmentsPresenter(themes, self.transcript, pictures, tasks, self)
        self.undo = UndoPresenter(themes, self.transcript, self.banners, tasks, frame)
        self.navigation = TranscriptNavigation(themes, self.transcript, self.banners, self)
        self.earlier_messages = EarlierMessagesLoader(self.transcript, tasks, self)
        self.messages = MessageOpener(library, tasks, self)
        self.models = ModelControls(themes, self.composer, library, servers, tasks, self)
        self.branches = BranchesPresenter(
            themes, self.transcript, self.composer, banners, self.models, self.undo, tasks, frame
        )
        self.branches.tree.message_wanted.connect(self.messages.open)
        self.session_controls = SessionControlsPresenter(themes, self.composer, self.banners, self)
        self.approvals = ApprovalPresenter(themes, self.session_controls.picker, tasks, frame)
        self.workspace_picker = WorkspacePicker(themes)
        self.composer.controls.add(self.workspace_picker)
        self.composer.controls.add(self.models.parameters)
        self.context_check = ContextOverflowCheck(self.composer, servers, self)
        self.starters = StarterMessages()
        self._drafts = DraftSync(self.composer, lambda: self.session_controls.edited_texts, library, tasks, self)
        self.editing = PromptEditing(themes, frame, self.transcript, library, self._drafts, tasks, self)
        frame.set_content(
            self.usage_meter, self.navigation.find_bar, self.transcript, self.starters, self.session_controls.above
        )
        self._sending = asyncio.Lock()
        self._saved_early: list[tuple[str, list[Attachment]]] = []
        self._early: list[tuple[str, list[Attachment], When]] = [
            (*message, "soon") for message in frame.take_early_messages()
        ]
        self._connect()

    async def save_draft(self, conversation_for_draft: Callable[[], Awaitable[OpenConversation]]) -> None:
        """Save the draft when the program ends. Raises StorageFailed, and AgentError if an attachment never arrived.

        `conversation_for_draft` is called if something was written or sent before any conversation was shown.
        """
        # Messages whose attachments are still loading are not sent any more.
        self.composer.leave_conversation()
        self.editing.leave()
        self.session_controls.return_texts()
        async with self._sending:
            # Now each message is in its conversation, or in the composer again.
            is_complete = await self._drafts.finish_fetches()
        drafts = self._early_drafts + ([self.composer.draft()] if self._conversation is None else [])
        drafts = [draft for draft in drafts if draft != ("", [])]
        if not drafts:
            await self._drafts.save()
        elif drafts != self._saved_early:
            conversation = await conversation_for_draft()
            with suppress(StorageFailed):  # stays in memory, and `retry_refused` raises it again
                await self._library.drafts.add(conversation, merge_drafts([to_draft(*draft) for draft in drafts]))
            self._saved_early = drafts
        await self._library.drafts.retry_refused()
        if not is_complete:
            raise AgentError(Sentence("An attachment is not loaded yet."))

    def save_draft_immediately(self) -> Coroutine[Any, Any, None]:
        """Save the draft on another loop while the window's loop is stopped; the text is read at once.

        Raises as `save_draft`.
        """
        is_loaded = self._drafts.is_loaded
        return self._library.drafts.save_immediately(
            self._conversation, self._current_draft(), is_addition=not is_loaded
        )

    @property
    def unsaved_draft(self) -> ComposerDraft:
        """The draft, early messages, and drafts that the disk refused."""
        is_in_memory = self._conversation is not None and self._conversation.is_in_memory
        current = ComposerDraft() if is_in_memory else self._current_draft()
        return merge_drafts([current, *(draft for draft in self._library.drafts.refused if draft != current)])

    def show_conversation(self, conversation: OpenConversation) -> None:
        """Show this conversation; the previous one continues in the background."""
        self.editing.leave()
        is_first = self._conversation is None
        if self._conversation is not None and self._conversation.id != conversation.id:
            self.composer.leave_conversation()
            _close_popups(self.composer.window())
        try:
            # The text of a queued message that is being edited goes to the draft of the previous conversation.
            self.session_controls.show(conversation)
        finally:
            # Even after a failure: the composer must send to the conversation that is shown.
            self._conversation = conversation
            self._drafts.show(conversation)
        conversation.changed.connect(self._on_changed)
        conversation.working_changed.connect(self._on_working)
        conversation.record_changed.connect(self._show_record)
        conversation.usage_changed.connect(self._show_usage)
        conversation.returned.connect(self._on_returned)
        self.banners.show_conversation(conversation.id)
        self.branches.show(conversation)
        self.editing.show(conversation)
        self.earlier_messages.show(conversation)
        self.transcript.set_transcript(conversation.transcript)
        self.composer.set_working(conversation.working)
        self.composer.set_blocked(conversation.held_by)
        self.models.show(conversation)
        self.undo.show(conversation)
        self._show_record()
        # The demo's server starts with its first conversation, so its model can be listed only now.
        if conversation.is_demo or (conversation.endpoint_id and not conversation.model):
            self._servers.refresh_models()
        self.context_check.show(conversation)
        early, self._early = self._early, []
        for text, attached, when in early:
            if self.context_check.may_send(text, attached):
                self._send(text, attached, when)
            else:
                self.composer.restore_message(text, attached)
        _focus_composer(self.composer, is_first=is_first)
        self.approvals.watch(conversation)

    def compact(self) -> None:
        """Have older messages summarised."""
        if self._conversation is not None:
            self._run(self._conversation.compact)

    @property
    def _early_drafts(self) -> list[tuple[str, list[Attachment]]]:
        return [(text, attached) for text, attached, _ in self._early]

    def _current_draft(self) -> ComposerDraft:
        drafts = [*self._early_drafts, self._drafts.current()]
        drafts = [draft for draft in drafts if draft not in self._saved_early]
        text = "\n\n".join(filter(None, (text for text, _ in drafts)))
        return to_draft(text, [attachment for _, attached in drafts for attachment in attached])

    def _connect(self) -> None:
        self.composer.send_requested.connect(self._send)
        self.starters.chosen.connect(partial(self._send, attached=[]))
        self.starters.unstored_chosen.connect(partial(self._library.new, in_memory=True))
        self.composer.queue_requested.connect(partial(self._send, when="idle"))
        self.composer.stop_requested.connect(self._stop)
        self.composer.editor.navigate_pressed.connect(partial(_move_in_transcript, self.transcript))
        self.transcript.remedy_requested.connect(self._on_remedy)
        self.transcript.approval_requested.connect(self.approvals.show)
        self.transcript.context_menu.message_link = lambda id_: _link_to(self._conversation, id_)
        self.transcript.link_activated.connect(self._opener.open_link)
        self._opener.failed.connect(self._show_notice)
        self.models.noticed.connect(self._show_notice)
        self.context_check.notice.summary_requested.connect(self.compact)
        self.context_check.notice.model_requested.connect(self.models.picker.open_list)
        self.attachments.saver.saved.connect(self._show_notice)
        self.workspace_picker.folder_chosen.connect(self._choose_folder)
        _add_remedy_buttons(self)
        self._servers.models_changed.connect(self._show_usage)

    def _on_changed(self, changes: Sequence[Change]) -> None:
        if self.sender() is self._conversation:
            self.transcript.apply(changes)
            if not {*map(type, changes)} <= {Updated}:
                self.starters.show_for(self._conversation)

    def _on_working(self, working: bool) -> None:  # noqa: FBT001 - a slot
        conversation = self._conversation
        if conversation is not None and self.sender() is conversation:
            self.composer.set_working(working)
            if working:
                self.banners.remove_errors(conversation.id)

    def _send(self, text: str, attached: list[Attachment], when: When = "soon") -> None:
        if self._conversation is None:
            # The window opens before its first conversation is loaded.
            self._early.append((text, attached, when))
        else:
            self._tasks.start(self._send_to(self._conversation, text, attached, when, self.editing.take()))

    async def _send_to(
        self, conversation: OpenConversation, text: str, attached: list[Attachment], when: When, edited_id: str
    ) -> None:
        async with self._sending:
            try:
                _check_server(conversation, self.models.picker)
                blocks = await to_blocks(text, attached, self._pictures, in_memory=conversation.is_in_memory)
                message = Message.user_with_blocks(blocks)
                is_queued = conversation.working
                if edited_id:
                    conversation.branches.edit_prompt(edited_id, message, untrusted_sources(attached))
                else:
                    conversation.send(message, when, untrusted_sources(attached))
            except AgentError as error:
                # The text is not lost: it returns to the composer, which says why.
                if self._drafts.belongs_to(conversation):
                    restore = partial(self.editing.resume, edited_id) if edited_id else self.composer.restore_message
                    restore(text, attached)
                    self.composer.show_problem(error.sentence, error.remedy)
                    self._drafts.save_soon()
                else:
                    self.banners.show_error(error, conversation.id)
                    await self._library.drafts.add(conversation, to_draft(text, attached))
            else:
                # Scroll to the sent message; a queued one is over the composer.
                if self._drafts.belongs_to(conversation) and not is_queued:
                    self.transcript.scroller.scroll_to_end()

    def _on_returned(self, message: Message) -> None:
        conversation = self.sender()
        if isinstance(conversation, OpenConversation):
            self._tasks.start(self._drafts.return_message(conversation, message))

    def _stop(self) -> None:
        if self._conversation is not None:
            self._conversation.stop()

    def _show_notice(self, sentence: Sentence) -> None:
        id_ = "" if self._conversation is None else self._conversation.id
        banner = Banner("notice", sentence, level="notice", duration_ms=NOTICE_MS, conversation_id=id_)
        self.banners.show_banner(banner)

    def _on_remedy(self, _item_id: str, action: RemedyAction) -> None:
        if self._conversation is None:
            return
        if action is RemedyAction.OPEN_SETTINGS:
            self.providers_requested.emit()
        elif action is RemedyAction.CHOOSE_MODEL:
            self.models.picker.open_list()
        elif action in _ASKS_AGAIN or (action is RemedyAction.CONTINUE and self._conversation.can_resume):
            self._run(partial(self._conversation.continue_run, over_budget=action is RemedyAction.GO_ON))
        elif action is RemedyAction.CONTINUE:
            self._run(partial(self._conversation.send, Message.user(self.tr("Continue."))))

    def _run(self, command: Callable[[], None]) -> None:
        try:
            command()
        except AgentError as error:
            self.banners.show_error(error, "" if self._conversation is None else self._conversation.id)

    def _choose_folder(self, folder: Path | None, conversation_id: str) -> None:
        self._tasks.start(self._set_workspace(conversation_id, folder))

    async def _set_workspace(self, conversation_id: str, folder: Path | None) -> None:
        # A link is resolved only now: if it points elsewhere later, the person did not choose that folder.
        real = None if folder is None else await resolve_workspace(folder)
        if folder is not None and real is None:
            self.banners.show_error(_no_folder_error(folder), conversation_id)
            return
        self._library.change(conversation_id, workspace=str(real) if real else None)
        if self._conversation is not None and self._conversation.id == conversation_id:
            self.composer.clear_problems()

    def _show_record(self) -> None:
        conversation = self._conversation
        if conversation is None:
            return
        title = title_or_new("" if conversation.is_empty else conversation.title)
        self._show_heading(title, conversation.program)
        self.models.refresh()
        self.starters.show_for(self._conversation)
        folder = Path(conversation.workspace) if conversation.workspace else None
        self.workspace_picker.set_folder(folder, conversation.id)
        self._show_usage()

    def _show_usage(self) -> None:
        conversation = self._conversation
        if conversation is not None:
            capabilities = self._servers.capabilities(conversation.endpoint_id, conversation.model)
            self.usage_meter.show_usage(conversation.usage, conversation.history.spending, capabilities.context_window)


def _no_folder_error(folder: Path) -> WrongUse:
    # Qt replaces bytes of a name that are not UTF-8.
    sentence = Sentence("There is no folder “{path}” to work in.", {"path": str(folder)})
    return WrongUse(sentence, "Its name may hold bytes that are not text. Rename it, or choose another folder.")


def _add_remedy_buttons(page: ConversationPage) -> None:
    translate, add = QCoreApplication.translate, page.banners.add_remedy_button
    add(RemedyAction.OPEN_SETTINGS, translate("ConversationPage", "Open settings"), page.providers_requested.emit)
    add(RemedyAction.CHOOSE_MODEL, translate("ConversationPage", "Choose model"), page.models.picker.open_list)


def _check_server(conversation: OpenConversation, models: ModelPicker) -> None:
    """Show the models and raise NoModelChosen if the conversation has no server, for example after an import."""
    if conversation.endpoint_id is None:
        models.open_list()
        raise NoModelChosen("No model is chosen for this conversation.")


def _link_to(conversation: OpenConversation | None, message_id: str) -> str:
    is_kept = conversation is not None and conversation.is_stored and not conversation.is_in_memory
    return conversation_link(conversation.id, message_id) if conversation is not None and is_kept else ""


def _move_in_transcript(transcript: TranscriptView, step: int) -> None:
    transcript.setFocus(Qt.FocusReason.ShortcutFocusReason)
    transcript.move_row_focus(step)


def _close_popups(window: QWidget) -> None:
    """Close popups over the window: they belong to the previous conversation and would change the new one."""
    for popup in QApplication.topLevelWidgets():
        owner = popup.parentWidget()
        if popup.windowType() is Qt.WindowType.Popup and owner is not None and owner.window() is window:
            popup.close()


def _focus_composer(composer: Composer, *, is_first: bool) -> None:
    """Give the focus to the editor, except at the start to a person who is typing in the search or the palette."""
    is_typing_beside = composer.isVisible() and isinstance(QApplication.focusWidget(), QLineEdit)
    if not (is_first and is_typing_beside):
        composer.editor.setFocus(Qt.FocusReason.OtherFocusReason)
