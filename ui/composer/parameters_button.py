"""The way to the settings of the conversation: a button that says which of them are not the default."""

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QWidget

from desktop_agent.vocabulary.requests import ConversationParameters
from ui.look.parts.folding_button import CollapsingButton
from ui.look.sentences import escape_mnemonics, native_shortcut, plain_tooltip
from ui.look.theme import ThemeSource

PARAMETERS_KEYS = "Ctrl+Shift+P"


class ParametersButton(CollapsingButton):
    """An icon alone while every parameter is the default; in the accent's colour when one is not."""

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(themes, parent, has_arrow=False)
        self._is_set = False
        self.setAccessibleName(self.tr("Conversation settings"))
        themes.changed.connect(self._apply_theme)
        self.show_parameters(ConversationParameters())

    def show_parameters(self, parameters: ConversationParameters) -> None:
        """Say what was set, one by name and several by their number."""
        words = describe_parameters(parameters)
        short = words[0] if len(words) == 1 else self.tr("{0} own settings").format(len(words)) if words else ""
        self.setText(" " + escape_mnemonics(short) if short else "")
        self.setAccessibleDescription(", ".join(words) or self.tr("Default"))
        self._is_set = bool(words)
        self._apply_theme()
        title = self.tr("Conversation settings") + f" ({native_shortcut(PARAMETERS_KEYS)})"
        self.setToolTip(plain_tooltip("\n".join([title, *words])))

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
        words.append(translate("Parameters", "Temperature {0}").format(f"{parameters.temperature:g}"))
    if parameters.top_p is not None:
        words.append(translate("Parameters", "Top-p {0}").format(f"{parameters.top_p:g}"))
    if parameters.max_tokens is not None:
        words.append(translate("Parameters", "At most {0} tokens").format(f"{parameters.max_tokens:,}"))
    return words
