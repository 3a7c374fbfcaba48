"""Light or dark, strong contrast or not: what the system prefers and what the person chose."""

from dataclasses import replace
from typing import Literal

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QStyleHints

from ui.look.theme import DARK, LIGHT, Theme, ThemeSource

ThemeChoice = Literal["system", "light", "dark"]

STRONG_LIGHT = replace(LIGHT, name="light, strong contrast", border="#6b6b68", text="#000000", muted="#3d3d3a")
STRONG_DARK = replace(DARK, name="dark, strong contrast", border="#8f9399", text="#ffffff", muted="#d2d3d6")


def theme_for(choice: ThemeChoice, *, system_dark: bool, strong_contrast: bool = False) -> Theme:
    """The theme that fits the person's choice and the system's state."""
    dark = system_dark if choice == "system" else choice == "dark"
    if strong_contrast:
        return STRONG_DARK if dark else STRONG_LIGHT
    return DARK if dark else LIGHT


class ColourSchemeFollower(QObject):
    """Keeps a theme source on the person's choice, and on the system's scheme while the choice is "system"."""

    def __init__(self, source: ThemeSource, hints: QStyleHints, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._source = source
        self._hints = hints
        self._choice: ThemeChoice = "system"
        self._zoom = source.zoom
        hints.colorSchemeChanged.connect(self._apply)
        hints.accessibility().contrastPreferenceChanged.connect(self._apply)

    def choose(self, choice: ThemeChoice, zoom: int) -> None:
        """Use this theme and zoom (percent) from now on."""
        self._choice, self._zoom = choice, zoom
        self._apply()

    def _apply(self) -> None:
        theme = theme_for(
            self._choice,
            system_dark=self._hints.colorScheme() == Qt.ColorScheme.Dark,
            strong_contrast=self._hints.accessibility().contrastPreference() == Qt.ContrastPreference.HighContrast,
        )
        self._source.use(theme, self._zoom)
