"""The page of modes: a card for each mode, built in or the person's own."""

from functools import partial

from desktop_agent.types.permissions import BUILT_IN_MODES, Mode
from desktop_agent.types.preferences import MAX_MODES
from ui.settings.card_list import Card, ItemsForm
from ui.settings.mode_editor import MAX_MODE_TITLE_LENGTH, ModeEditor, rule_row
from ui.style.boxes import hbox, vbox
from ui.style.controls import announce, button, label
from ui.style.pickers import mode_description, mode_title
from ui.style.text import show_hidden
from ui.style.theme import SPACE_M, SPACE_S, SPACE_XS
from ui.style.widgets import TextWithButtons

MAX_RULES = 8


class ModeCard(Card):
    """A mode: what happens unasked, its instructions and rules. Built-in ones cannot be edited."""

    def __init__(self, mode: Mode, page: "ModeSettings") -> None:
        super().__init__()
        title = mode_title(mode)
        self.setAccessibleName(self.tr("Mode {0}").format(title))
        buttons = [button(self.tr("Copy"), partial(page.copy, mode), name=self.tr("Copy {0}").format(title))]
        if mode not in BUILT_IN_MODES:
            edit = self.tr("Edit {0}").format(title)
            buttons.insert(0, button(self.tr("Edit"), partial(page.edit, mode.name), name=edit))
        self.edit_buttons = tuple(buttons)
        if mode not in BUILT_IN_MODES:
            remove = self.tr("Remove {0}").format(title)
            buttons.append(button(self.tr("Remove"), partial(page.remove, mode), "danger", remove))
        head = TextWithButtons(label(show_hidden(title), "strong", wrap=True), buttons)
        layout = vbox(head, parent=self, spacing=SPACE_XS, margins=(SPACE_M, SPACE_S, SPACE_M, SPACE_S))
        layout.addWidget(label(mode_description(mode), "muted", wrap=True))
        if mode.addendum and mode not in BUILT_IN_MODES:
            layout.addWidget(label(show_hidden(" ".join(mode.addendum.split())[:300]), wrap=True))
        for rule in mode.rules[:MAX_RULES]:
            layout.addLayout(rule_row(rule))
        hidden = len(mode.rules) - MAX_RULES
        if hidden > 0:
            layout.addWidget(label(self.tr("And {0} more rules").format(hidden), "muted"))


class ModeSettings(ItemsForm[Mode, ModeEditor]):
    """The page of modes. Answer `changed` with `show_items`."""

    def __init__(self) -> None:
        super().__init__(self.tr("Add mode…"))
        self._empty_note = label(
            self.tr("You have no mode of your own yet. Copy one of those above, or add one."), "muted", wrap=True
        )
        self._built_in_cards = [ModeCard(mode, self) for mode in BUILT_IN_MODES]
        self._limit_note = label(
            self.tr("There can be {0} modes. Remove one first.").format(MAX_MODES), "muted", wrap=True
        )
        self._build_layout()
        self._rebuild_cards()

    def copy(self, mode: Mode) -> None:
        """Open an editor for a copy of a mode, if there can be one more."""
        if len(self._items) >= MAX_MODES:
            announce(self, self._limit_note.text())
            return
        self._open_editor(mode.model_copy(update={"title": self._copy_title(mode)}))

    def _copy_title(self, mode: Mode) -> str:
        title = self.tr("{0} (copy)").format(mode_title(mode))[:MAX_MODE_TITLE_LENGTH]
        taken = {known.title.casefold() for known in self._items}
        numbered = (f"{title[: MAX_MODE_TITLE_LENGTH - 4]} {number}" for number in range(2, MAX_MODES + 2))
        return next(candidate for candidate in (title, *numbered) if candidate.casefold() not in taken)

    def _create_editor(self, item: Mode | None) -> ModeEditor:
        return ModeEditor(item, self._other_modes)

    def _update_editor(self, editor: ModeEditor) -> None:
        editor.show_tools(self._tools, self._other_modes)

    @property
    def _other_modes(self) -> tuple[Mode, ...]:
        return tuple(mode for mode in (*BUILT_IN_MODES, *self._items) if mode.name != self._edited_name)

    def _save_item(self, item: Mode) -> None:
        if all(mode.name != item.name for mode in self._items) and len(self._items) >= MAX_MODES:
            # Other modes were added while this one was edited.
            announce(self, self._limit_note.text())
            return
        super()._save_item(item)

    def remove(self, mode: Mode) -> None:
        """Remove a mode, and offer to bring it back."""
        words = self.tr("The mode “{0}” is removed. Conversations that used it now ask you more often.")
        self._remove_item(mode, words.format(mode.title))

    def _create_card(self, item: Mode) -> ModeCard:
        return ModeCard(item, self)

    def _update_buttons(self) -> None:
        is_full, is_writing = len(self._items) >= MAX_MODES, self.editor is not None
        self._add.setEnabled(not is_full)
        self._add.setVisible(not is_writing)
        self._limit_note.setVisible(is_full)
        self._empty_note.setVisible(not self._items and not is_writing)
        for card in self._built_in_cards:
            card.set_can_edit(can=not is_writing)

    def _build_layout(self) -> None:
        words = self.tr(
            "A mode says what the agent may do without asking you. Choose it below the message editor. Changes to a "
            "mode apply at once in every open conversation, to each call that has not started."
        )
        foot = hbox(self._add, self._limit_note, spacing=SPACE_S, grow=self._limit_note)
        foot.addStretch(0)
        vbox(
            label(words, "muted", wrap=True),
            label(self.tr("Always there"), "strong"),
            vbox(*self._built_in_cards, spacing=SPACE_S),
            label(self.tr("Your own"), "strong"),
            self._empty_note,
            self._cards,
            self._undo,
            foot,
            parent=self,
            spacing=SPACE_M,
            margins=0,
            end_stretch=True,
        )
