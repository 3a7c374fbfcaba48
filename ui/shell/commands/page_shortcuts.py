"""What actions do in the page of a conversation, and their keys in windows beside the main one."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, QObject
from PySide6.QtGui import QKeySequence, QShortcut

from ui.shell.commands.action import WindowAction
from ui.style.controls import set_keys_tooltip
from ui.transcript.input.last_answer import LastAnswer

if TYPE_CHECKING:
    from ui.shell.conversation_page import ConversationPage

_ANYWHERE = frozenset({"settings", "help", "waiting-approvals", "zoom-in", "zoom-out", "zoom-reset", "quit"})
"""Actions that do the same in every window."""


def page_commands(page: "ConversationPage") -> dict[str, Callable[[], object]]:
    """Return what the actions of these names do in this page."""
    navigation, branches, composer, controls = page.navigation, page.branches, page.composer, page.session_controls
    answer = LastAnswer(page.transcript.row_viewport, page.transcript.context_menu)
    return {
        "undo": page.banners.undo_last,
        "undo-files": page.undo.undo_here,
        "find": navigation.find,
        "find-next": partial(navigation.find_bar.step, 1),
        "find-previous": partial(navigation.find_bar.step, -1),
        "copy-answer": answer.copy,
        "copy-code": answer.copy_code,
        "copy-conversation": page.transcript.context_menu.copy_all,
        "caret-browsing": navigation.toggle_caret,
        "branches": branches.tree.open,
        "summarise": page.compact,
        "choose-model": page.models.picker.open_list,
        "choose-reasoning": page.models.reasoning.open_menu,
        "conversation-settings": page.models.edit_parameters,
        "choose-mode": controls.picker.open_menu,
        "write": composer.editor.setFocus,
        "attach": composer.choose_files,
        "queue": controls.queue.take_focus,
        "answer": controls.questions.take_focus,
        "edit-last": page.editing.edit_last,
        "regenerate": branches.regenerate_here,
        "continue": branches.continue_at_end,
        "previous-version": partial(branches.step_version, -1),
        "next-version": partial(branches.step_version, 1),
        "delete-message": branches.delete_here,
    }


def show_page_keys(page: "ConversationPage", keys: Mapping[str, str]) -> None:
    """Name the keys of these actions at the controls of a page."""
    attach = QCoreApplication.translate("WindowActions", "Attach files")
    set_keys_tooltip(page.composer.attach_button, attach, keys["attach"])
    page.models.picker.show_keys(keys["choose-model"])
    page.models.reasoning.show_keys(keys["choose-reasoning"])
    page.models.parameters.show_keys(keys["conversation-settings"])
    page.session_controls.picker.show_keys(keys["choose-mode"])
    page.session_controls.questions.show_keys(keys["answer"])


class PageShortcuts(QObject):
    """Gives a window beside the main one the keys of the main window's actions, for its own page."""

    def __init__(self, page: "ConversationPage", actions: Sequence[WindowAction]) -> None:
        window = page.composer.window()
        super().__init__(window)
        self._page = page
        self._actions = {action.name: action for action in actions if not action.is_handled_elsewhere}
        # Kept: a signal does not keep the object whose method it calls.
        self._commands = page_commands(page)
        self._shortcuts: dict[str, QShortcut] = {}
        for name, action in self._actions.items():
            if name in self._commands or name in _ANYWHERE:
                shortcut = self._shortcuts[name] = QShortcut(window)
                shortcut.activated.connect(self._commands.get(name, action.trigger))
                action.changed.connect(self._refresh)
        self._refresh()
        page.approvals.settings_action = self._actions["settings"]

    def _refresh(self) -> None:
        """Take the keys that the person chose."""
        for name, shortcut in self._shortcuts.items():
            shortcut.setKey(QKeySequence(self._actions[name].keys))
        show_page_keys(self._page, {name: action.keys for name, action in self._actions.items()})
