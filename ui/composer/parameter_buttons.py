"""The buttons for what goes with each request: the reasoning picker and the conversation's parameters."""

from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication, Signal
from PySide6.QtGui import QActionGroup
from PySide6.QtWidgets import QMenu

from desktop_agent.types.providers import (
    Capabilities,
    ConversationParameters,
    Effort,
    Reasoning,
    ReasoningAdaptive,
    ReasoningBetweenTools,
    ReasoningBudget,
    ReasoningDisabled,
    ReasoningEffort,
    ReasoningMode,
)
from ui.style.controls import open_menu_at
from ui.style.text import (
    escape_mnemonics,
    format_number,
    in_brackets,
    join_names,
    localize_point,
    plain_tooltip,
    with_keys,
)
from ui.style.theme import SPACE_XS, ThemeSource
from ui.style.widgets import CollapsingButton

# For models of unknown capabilities: what most servers accept.
_DEFAULT_EFFORTS: tuple[Effort, ...] = ("low", "medium", "high")
_BUDGETS = (2_048, 8_192, 16_384, 32_768)


@dataclass(frozen=True, slots=True)
class ReasoningChoice:
    """One choice; `reasoning` None is the model's default, and `hint` says what that is, where known."""

    reasoning: Reasoning | None
    hint: str = ""

    @property
    def text(self) -> str:
        return reasoning_name(self.reasoning)


def reasoning_choices(capabilities: Capabilities, current: Reasoning | None) -> list[ReasoningChoice]:
    """Return the choices, the default first; empty where there is nothing to choose.

    For an unknown model the current choice stays among them: the model may support it.
    """
    if capabilities.reasoning is False:
        return []
    if not _is_known(capabilities):
        usual: list[Reasoning | None] = [None, ReasoningDisabled(), *map(_effort, _DEFAULT_EFFORTS)]
        return [ReasoningChoice(reasoning) for reasoning in (usual if current in usual else [*usual, current])]
    offered = _supported(capabilities)
    return [ReasoningChoice(None, _default_hint(capabilities)), *map(ReasoningChoice, offered)] if offered else []


def is_unsupported(capabilities: Capabilities, reasoning: Reasoning | None) -> bool:
    """Return whether the model is known not to support this choice."""
    if reasoning is None:
        return False
    if capabilities.reasoning is False:
        return True
    if isinstance(reasoning, ReasoningBudget) and "budget" in (capabilities.reasoning_modes or ()):
        return (
            capabilities.budget is not None and not capabilities.budget[0] <= reasoning.tokens <= capabilities.budget[1]
        )
    return _is_known(capabilities) and reasoning not in _supported(capabilities)


def reasoning_name(reasoning: Reasoning | None) -> str:
    """Return a choice in a word or two."""
    translate = QCoreApplication.translate
    match reasoning:
        case None:
            return translate("Reasoning", "Default")
        case ReasoningDisabled():
            return translate("Reasoning", "Off")
        case ReasoningBetweenTools():
            return translate("Reasoning", "Between tools")
        case ReasoningAdaptive():
            return translate("Reasoning", "Adaptive")
        case ReasoningBudget():
            return translate("Reasoning", "Up to {0} tokens").format(format_number(reasoning.tokens))
        case ReasoningEffort():
            return _effort_name(reasoning.level)


def _is_known(capabilities: Capabilities) -> bool:
    return capabilities.reasoning_modes is not None or capabilities.efforts is not None


def _supported(capabilities: Capabilities) -> list[Reasoning]:
    """Return the choices without the default. Where only efforts are known, they are the choices."""
    modes: frozenset[ReasoningMode] = capabilities.reasoning_modes or frozenset()
    choices: list[Reasoning] = []
    if "disabled" in modes:
        choices.append(ReasoningDisabled())
    if "between_tools" in modes:
        choices.append(ReasoningBetweenTools())
    if "effort" in modes or capabilities.reasoning_modes is None:
        choices += map(_effort, capabilities.efforts or _DEFAULT_EFFORTS)
    elif "budget" in modes:
        minimum, maximum = capabilities.budget or (_BUDGETS[0], _BUDGETS[-1])
        choices += [ReasoningBudget(tokens=budget) for budget in _BUDGETS if minimum <= budget <= maximum]
    if "adaptive" in modes:
        choices.append(ReasoningAdaptive())
    return choices


def _effort(level: Effort) -> Reasoning:
    return ReasoningEffort(level=level)


def _default_hint(capabilities: Capabilities) -> str:
    if capabilities.reasons_by_default is False:
        return reasoning_name(ReasoningDisabled())
    return _effort_name(capabilities.default_effort) if capabilities.default_effort else ""


def _effort_name(level: Effort) -> str:
    translate = QCoreApplication.translate
    words: dict[Effort, str] = {
        "minimal": translate("Reasoning", "Minimal"),
        "low": translate("Reasoning", "Low"),
        "medium": translate("Reasoning", "Medium"),
        "high": translate("Reasoning", "High"),
        "xhigh": translate("Reasoning", "Very high"),
        "max": translate("Reasoning", "Maximum"),
    }
    return words[level]


REASONING_KEYS = "Ctrl+Shift+R"


class ReasoningPicker(CollapsingButton):
    """Shows and changes the reasoning. Hidden for a model without choices."""

    reasoning_chosen = Signal(object)
    """A Reasoning, or None for the model's default."""

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__(themes)
        self._menu = QMenu(self)
        self._menu.setAccessibleName(self.tr("Reasoning"))
        self._group: QActionGroup | None = None
        self._keys = REASONING_KEYS
        self._description = ""
        self._shown: tuple[list[ReasoningChoice], Reasoning | None] = ([], None)
        self.setAccessibleName(self.tr("Reasoning"))
        self.clicked.connect(self.open_menu)
        themes.follow(self._apply_theme)
        self.hide()

    @property
    def choices(self) -> list[ReasoningChoice]:
        return self._shown[0]

    def show_choices(self, capabilities: Capabilities, current: Reasoning | None) -> None:
        """Show the choices of a model, and the current one."""
        choices = reasoning_choices(capabilities, current)
        if (choices, current) != self._shown:
            self._shown = (choices, current)
            self._rebuild_menu()
        words = reasoning_name(current)
        hint = next((choice.hint for choice in choices if choice.reasoning == current), "")
        description = in_brackets(words, hint) if hint else words
        # “Default” alone would not say of what.
        self.setText(" " + escape_mnemonics(self.tr("Reasoning") if current is None else words))
        self.setAccessibleDescription(description)
        self._description = description
        self.show_keys(self._keys)
        self.setVisible(bool(choices))

    def show_keys(self, keys: str) -> None:
        """Show the keys that open the menu."""
        self._keys = keys
        self.setToolTip(plain_tooltip(with_keys(self.tr("Reasoning: {0}").format(self._description), keys)))

    def open_menu(self) -> None:
        """Open the menu above the button."""
        if not self._shown[0]:
            return
        open_menu_at(self, self._menu, -self._menu.sizeHint().height() - SPACE_XS)
        checked = self._group.checkedAction() if self._group is not None else None
        if checked is not None:
            self._menu.setActiveAction(checked)

    def _rebuild_menu(self) -> None:
        choices, current = self._shown
        self._menu.clear()
        self._group = QActionGroup(self._menu)
        for choice in choices:
            words = in_brackets(choice.text, choice.hint) if choice.hint else choice.text
            action = self._menu.addAction(escape_mnemonics(words))
            action.setCheckable(True)
            action.setChecked(choice.reasoning == current)
            action.triggered.connect(
                lambda _checked=False, reasoning=choice.reasoning: self.reasoning_chosen.emit(reasoning)
            )
            self._group.addAction(action)

    def _apply_theme(self) -> None:
        self.draw("thought", self._themes.theme.text)


PARAMETERS_KEYS = "Ctrl+Shift+P"


class ParametersButton(CollapsingButton):
    """An icon while every parameter is the default; with text and in the accent colour when one is not."""

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__(themes, has_arrow=False)
        self._is_set = False
        self._keys = PARAMETERS_KEYS
        self._words: list[str] = []
        self.setAccessibleName(self.tr("Conversation settings"))
        themes.changed.connect(self._apply_theme)
        self.show_parameters(ConversationParameters())

    def show_parameters(self, parameters: ConversationParameters) -> None:
        """Show a single changed parameter by name, several by their number."""
        words = describe_parameters(parameters)
        short = words[0] if len(words) == 1 else self.tr("{0} settings").format(len(words)) if words else ""
        self.setText(" " + escape_mnemonics(short) if short else "")
        self.setAccessibleDescription(join_names(words) or self.tr("Default"))
        self._is_set = bool(words)
        self._apply_theme()
        self._words = words
        self.show_keys(self._keys)

    def show_keys(self, keys: str) -> None:
        """Show the keys that open the dialog."""
        self._keys = keys
        title = with_keys(self.tr("Conversation settings"), keys)
        self.setToolTip(plain_tooltip("\n".join([title, *self._words])))

    def _apply_theme(self) -> None:
        theme = self._themes.theme
        self.draw("sliders", theme.accent if self._is_set else theme.text)


def describe_parameters(parameters: ConversationParameters) -> list[str]:
    """Return each parameter that is not the default, in a few words."""
    translate = QCoreApplication.translate
    words: list[str] = []
    if parameters.system_prompt is not None:
        words.append(translate("Parameters", "Own system prompt"))
    if parameters.temperature is not None:
        words.append(translate("Parameters", "Temperature {0}").format(localize_point(f"{parameters.temperature:g}")))
    if parameters.top_p is not None:
        words.append(translate("Parameters", "Top-p {0}").format(localize_point(f"{parameters.top_p:g}")))
    if parameters.max_tokens is not None:
        words.append(translate("Parameters", "At most {0} tokens").format(format_number(parameters.max_tokens)))
    return words
