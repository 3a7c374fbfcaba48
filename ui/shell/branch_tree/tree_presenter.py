"""Opens the tree of all branches for the shown conversation, and runs the commands of its dialog."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from desktop_agent.types.errors import AgentError
from ui.bridge.conversation import OpenConversation
from ui.bridge.event_loop import BackgroundTasks
from ui.shell.branch_tree.message_deletion import DeletionPresenter
from ui.style.controls import show_in_front
from ui.style.theme import ThemeSource

if TYPE_CHECKING:
    from desktop_agent.conversation.message_tree import TreeEntry
    from ui.shell.branch_tree.branch_dialog import BranchDialog


class BranchTreePresenter(QObject):
    """The dialog of one window. While it is open it follows the conversation that is shown."""

    message_wanted = Signal(str, str)
    """The ids of the conversation and of a message to scroll to."""

    def __init__(self, themes: ThemeSource, deletion: DeletionPresenter, tasks: BackgroundTasks, page: QWidget) -> None:
        super().__init__(page)
        self._themes = themes
        self._deletion = deletion
        self._tasks = tasks
        self._page = page
        self._conversation: OpenConversation | None = None
        self._dialog: BranchDialog | None = None
        self._is_loading = self._is_outdated = False
        self._requested_id = ""
        """The id of the conversation whose branches are shown once it is open, or ""."""

    def show(self, conversation: OpenConversation) -> None:
        """Show the branches of this conversation from now on."""
        self._conversation = conversation
        conversation.branches.changed.connect(self._reload)
        conversation.branches.changed_elsewhere.connect(self._reload)
        conversation.working_changed.connect(self._reload)
        requested_id, self._requested_id = self._requested_id, ""
        if requested_id == conversation.id:
            self.open()
        else:
            self._reload()

    def open_for(self, conversation_id: str) -> None:
        """Open the dialog for this conversation as soon as it is the one that is shown."""
        if self._conversation is not None and self._conversation.id == conversation_id:
            self.open()
        else:
            self._requested_id = conversation_id

    def open(self) -> None:
        """Open the dialog, or bring it to the front."""
        if self._dialog is None:
            # Late: seldom opened.
            from ui.shell.branch_tree.branch_dialog import BranchDialog

            self._dialog = dialog = BranchDialog(self._themes, self._page)
            dialog.show_requested.connect(self._show_branch)
            dialog.branch_requested.connect(self._branch_from)
            dialog.delete_requested.connect(self._delete)
            dialog.tree.setFocus()
        show_in_front(self._dialog)
        self._reload()

    def _reload(self) -> None:
        if self._dialog is None or not self._dialog.isVisible():
            return
        self._is_outdated = True
        if not self._is_loading:
            self._is_loading = True
            self._tasks.start(self._load())

    async def _load(self) -> None:
        dialog = self._dialog
        try:
            while self._is_outdated and self._conversation is not None and dialog is not None:
                self._is_outdated, conversation = False, self._conversation
                tree = await conversation.branches.load_tree()
                if conversation is self._conversation:
                    dialog.show_tree(tree)
        except AgentError as error:
            self._show_problem(error)
        finally:
            self._is_loading = False

    def _show_branch(self, entry: "TreeEntry") -> None:
        async def show(conversation: OpenConversation) -> None:
            if not entry.is_in_view:
                await conversation.branches.show(entry.last_id)
            if conversation is self._conversation:
                self.message_wanted.emit(conversation.id, entry.first_id)

        self._run(show)

    def _branch_from(self, entry: "TreeEntry") -> None:
        async def branch(conversation: OpenConversation) -> None:
            if entry.is_in_view:
                await conversation.history.load_until(entry.last_id)
            else:
                await conversation.branches.show(entry.last_id)
            conversation.branches.branch_from(entry.last_id)

        self._run(branch)

    def _delete(self, entry: "TreeEntry") -> None:
        self._deletion.ask(entry.first_id, self._dialog)

    def _run(self, change: Callable[[OpenConversation], Awaitable[None]]) -> None:
        if self._conversation is not None:
            self._tasks.start(self._change(self._conversation, partial(change, self._conversation)))

    async def _change(self, conversation: OpenConversation, change: Callable[[], Awaitable[None]]) -> None:
        try:
            await change()
        except AgentError as error:
            if conversation is self._conversation:
                self._show_problem(error)

    def _show_problem(self, error: AgentError) -> None:
        if self._dialog is not None:
            self._dialog.show_problem(error.whole)
