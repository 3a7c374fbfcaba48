"""How hard the model reasons: a button with the choice in force, and a menu of what this model offers."""

from PySide6.QtCore import QPoint, Signal
from PySide6.QtGui import QActionGroup
from PySide6.QtWidgets import QMenu, QWidget

from desktop_agent.vocabulary.requests import Capabilities, Reasoning
from ui.composer.reasoning_choices import ReasoningChoice, reasoning_choices, reasoning_name
from ui.look.parts.folding_button import CollapsingButton
from ui.look.sentences import escape_mnemonics, native_shortcut, plain_tooltip
from ui.look.theme import SPACE_XS, ThemeSource

REASONING_KEYS = "Ctrl+Shift+R"


class ReasoningPicker(CollapsingButton):
    """Hidden where a model has nothing to choose."""

    reasoning_chosen = Signal(object)
    """A Reasoning, or None for the model's default."""

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(themes, parent)
        self._menu = QMenu(self)
        self._menu.setAccessibleName(self.tr("Reasoning"))
        self._group: QActionGroup | None = None
        self._shown: tuple[list[ReasoningChoice], Reasoning | None] = ([], None)
        self.setAccessibleName(self.tr("Reasoning"))
        self.clicked.connect(self.open_menu)
        themes.changed.connect(self._apply_theme)
        self._apply_theme()
        self.hide()

    @property
    def choices(self) -> list[ReasoningChoice]:
        """What the menu offers."""
        return self._shown[0]

    def show_choices(self, capabilities: Capabilities, current: Reasoning | None) -> None:
        """What this model offers, and what holds."""
        choices = reasoning_choices(capabilities, current)
        if (choices, current) != self._shown:
            self._shown = (choices, current)
            self._rebuild_menu()
        words = reasoning_name(current)
        hint = next((each.hint for each in choices if each.reasoning == current), "")
        whole = f"{words} ({hint})" if hint else words
        # A bare “Default” would not say of what.
        self.setText(" " + escape_mnemonics(self.tr("Reasoning") if current is None else words))
        self.setAccessibleDescription(whole)
        self.setToolTip(
            plain_tooltip(self.tr("Reasoning: {0}").format(whole) + f" ({native_shortcut(REASONING_KEYS)})")
        )
        self.setVisible(bool(choices))

    def open_menu(self) -> None:
        """Offer what there is, above the button."""
        if not self._shown[0]:
            return
        self._menu.popup(self.mapToGlobal(QPoint(0, -self._menu.sizeHint().height() - SPACE_XS)))
        checked = self._group.checkedAction() if self._group is not None else None
        if checked is not None:
            self._menu.setActiveAction(checked)

    def _rebuild_menu(self) -> None:
        choices, current = self._shown
        self._menu.clear()
        self._group = QActionGroup(self._menu)
        for each in choices:
            words = f"{each.text} ({each.hint})" if each.hint else each.text
            action = self._menu.addAction(escape_mnemonics(words))
            action.setCheckable(True)
            action.setChecked(each.reasoning == current)
            action.triggered.connect(lambda _checked=False, each=each: self.reasoning_chosen.emit(each.reasoning))
            self._group.addAction(action)

    def _apply_theme(self) -> None:
        self.draw("thought", self._themes.theme.text)
