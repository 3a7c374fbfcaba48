"""Deleting a message, after a question that names what is deleted with it."""

from PySide6.QtCore import QCoreApplication, QObject, Signal
from PySide6.QtWidgets import QWidget

from desktop_agent.conversation.message_tree import Deletion
from desktop_agent.types.errors import AgentError
from ui.bridge.conversation import OpenConversation
from ui.bridge.event_loop import BackgroundTasks
from ui.shell.banners import BannerArea
from ui.shell.undo import UndoPresenter
from ui.style.controls import announce
from ui.style.text import join_sentences
from ui.style.theme import ThemeSource
from ui.style.widgets import QuestionBox


def deletion_question(deletion: Deletion) -> str:
    """Return the question."""
    translate = QCoreApplication.translate
    if deletion.is_prompt:
        return translate("MessageDeletion", "Delete your message?")
    return translate("MessageDeletion", "Delete this answer?")


def deletion_words(deletion: Deletion) -> str:
    """Return the text of the question: what is deleted, and which effects of tools remain."""
    translate = QCoreApplication.translate
    sentences = [_deleted_messages_text(deletion), translate("MessageDeletion", "This cannot be undone.")]
    if deletion.checkpoints:
        sentences.append(
            translate(
                "MessageDeletion",
                "Files that tools changed stay as they are; these changes cannot be undone from here any more.",
            )
        )
    elif deletion.tool_calls:
        sentences.append(translate("MessageDeletion", "Changes made by tools are not undone."))
    return join_sentences(sentences)


def _deleted_messages_text(deletion: Deletion) -> str:
    translate = QCoreApplication.translate
    count, elsewhere = deletion.following, deletion.elsewhere
    if not count:
        return translate("MessageDeletion", "It is deleted for good.")
    if count == 1:
        if elsewhere:
            return translate("MessageDeletion", "It is deleted for good, with the message after it on another branch.")
        return translate("MessageDeletion", "It is deleted for good, with the message after it.")
    if elsewhere == count:
        words = translate("MessageDeletion", "It is deleted for good, with {0} messages after it on other branches.")
    elif elsewhere == 1:
        words = translate(
            "MessageDeletion", "It is deleted for good, with {0} messages after it, 1 of them on another branch."
        )
    elif elsewhere:
        words = translate(
            "MessageDeletion", "It is deleted for good, with {0} messages after it, {1} of them on other branches."
        )
    else:
        words = translate("MessageDeletion", "It is deleted for good, with {0} messages after it.")
    return words.format(count, elsewhere)


class DeletionPresenter(QObject):
    """Asks before a message of the shown conversation is deleted, and deletes it."""

    deleted = Signal(str, str)
    """The id of a stored conversation, and of the message that was deleted with all that followed it."""

    def __init__(
        self, themes: ThemeSource, banners: BannerArea, undo: UndoPresenter, tasks: BackgroundTasks, page: QWidget
    ) -> None:
        super().__init__(page)
        self._themes = themes
        self._banners = banners
        self._undo = undo
        self._tasks = tasks
        self._page = page
        self._conversation: OpenConversation | None = None
        self._question: QuestionBox | None = None
        self._asked_after_undo = ""
        """The message to ask about again when the undo of files is closed, or ""."""
        undo.closed.connect(self._ask_again)

    def show(self, conversation: OpenConversation) -> None:
        """Delete messages of this conversation."""
        self._conversation, self._asked_after_undo = conversation, ""
        if self._question is not None:
            self._question.reject()

    def ask(self, message_id: str, over: QWidget | None = None) -> None:
        """Ask whether to delete this message and all that follows it, and delete them on a yes.

        `over` is the parent of the question.
        """
        if self._question is not None:
            self._question.activateWindow()
        elif self._conversation is not None:
            self._tasks.start(self._ask(self._conversation, message_id, over or self._page))

    async def _ask(self, conversation: OpenConversation, message_id: str, over: QWidget) -> None:
        try:
            deletion = await conversation.branches.plan_deletion(message_id)
        except AgentError as error:
            self._banners.show_error(error, conversation.id)
            return
        if conversation is not self._conversation or self._question is not None:
            return
        question, words = deletion_question(deletion), deletion_words(deletion)
        box = self._question = QuestionBox(self._themes, self.tr("Delete message"), question, words, over)
        box.add_answer(self.tr("Keep"), "")
        if deletion.checkpoints:
            box.add_answer(self.tr("Undo file changes first…"), "undo")
        box.add_answer(self.tr("Delete for good"), "delete", "danger")

        def on_answered(answer: str) -> None:
            self._question = None
            if conversation is not self._conversation:
                return
            if answer == "undo":
                self._asked_after_undo = message_id
                self._undo.undo_checkpoints(deletion.checkpoints, self.tr("Undo what these messages changed"))
            elif answer:
                self._tasks.start(self._delete(conversation, message_id, deletion.root))

        box.answered.connect(on_answered)
        box.open()

    def _ask_again(self) -> None:
        message_id, self._asked_after_undo = self._asked_after_undo, ""
        if message_id:
            self.ask(message_id)

    async def _delete(self, conversation: OpenConversation, message_id: str, root_id: str) -> None:
        try:
            await conversation.branches.delete(message_id)
        except AgentError as error:
            self._banners.show_error(error, conversation.id)
        else:
            announce(self._page, self.tr("Deleted."))
            if not conversation.is_in_memory:
                self.deleted.emit(conversation.id, root_id)
