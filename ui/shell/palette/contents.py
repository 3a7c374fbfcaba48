"""The palette of the window: what it lists, made when it is first opened."""

from collections.abc import Sequence
from functools import partial
from typing import Protocol

from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QAction

from ui.bridge.library import ConversationLibrary
from ui.bridge.servers import ModelGroup, ModelServers
from ui.look.theme import ThemeSource
from ui.shell.commands import listed_actions, shortcut_text, synonyms
from ui.shell.palette.palette import CommandPalette
from ui.shell.palette.rows import CommandGroup, CommandRow
from ui.shell.window import MainWindow


class _ListedConversation(Protocol):
    @property
    def id(self) -> str: ...

    @property
    def title(self) -> str: ...


class PalettePresenter(QObject):
    """Knows the actions, conversations and models that there are now."""

    def __init__(
        self, themes: ThemeSource, window: MainWindow, library: ConversationLibrary, servers: ModelServers
    ) -> None:
        super().__init__(window)
        self._themes = themes
        self._window = window
        self._library = library
        self._conversations: Sequence[_ListedConversation] = ()
        self._models: Sequence[ModelGroup] = ()
        self._widget: CommandPalette | None = None
        self.opening_action: QAction | None = None
        """The action that opens it, which it need not list."""
        self.fallback_actions: Sequence[QAction] = ()
        """What it offers to who looked for something that is not there."""
        library.listed.connect(self._on_listed)
        servers.models_changed.connect(self._on_models)

    def open(self) -> None:
        """Show it over the window, or close it again."""
        if self._widget is None:
            self._widget = CommandPalette(self._themes, self._groups, self._window, self._fallback_rows)
        self._widget.open()

    @Slot(list)
    def _on_listed(self, conversations: Sequence[_ListedConversation]) -> None:
        self._conversations = conversations

    @Slot(list)
    def _on_models(self, groups: Sequence[ModelGroup]) -> None:
        self._models = groups

    def _groups(self) -> Sequence[CommandGroup]:
        return (
            CommandGroup(self.tr("Commands"), self._command_rows()),
            CommandGroup(self.tr("Conversations"), self._conversation_rows()),
            CommandGroup(self.tr("Models"), self._model_rows()),
        )

    def _command_rows(self) -> list[CommandRow]:
        listed = (each for each in listed_actions(self._window) if each.isEnabled() and each is not self.opening_action)
        return [_command_row(each) for each in listed]

    def _fallback_rows(self) -> list[CommandRow]:
        return [_command_row(each) for each in self.fallback_actions]

    def _conversation_rows(self) -> list[CommandRow]:
        return [
            CommandRow(
                text=each.title or self.tr("New conversation"),
                is_choosable=True,
                command=partial(self._library.open, each.id),
            )
            for each in self._conversations
        ]

    def _model_rows(self) -> list[CommandRow]:
        return [
            CommandRow(
                text=model.title or model.id,
                detail=group.endpoint.title,
                synonyms=f"{model.id} {group.endpoint.title}",
                spoken=f"{model.title or model.id}, {group.endpoint.title}",
                is_choosable=True,
                command=partial(self._choose_model, group.endpoint.id, model.id),
            )
            for group in self._models
            for model in group.models
        ]

    def _choose_model(self, endpoint_id: str, model: str) -> None:
        if self._library.current is None:
            self._library.new(endpoint_id=endpoint_id, model=model)
        else:
            self._window.page.models.choose_model(endpoint_id, model)


def _command_row(action: QAction) -> CommandRow:
    text, keys = action.text(), shortcut_text(action)
    said = f"{text}, {keys}" if keys else text
    return CommandRow(
        text=text, detail=keys, synonyms=synonyms(action), spoken=said, is_choosable=True, command=action.trigger
    )
