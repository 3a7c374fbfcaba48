"""How the window looked last: the first paint cannot wait for the preferences, and must not flash in other colours."""

import os
from collections.abc import Mapping
from pathlib import Path

from PySide6.QtCore import QByteArray, QSettings

from ui.look.scheme import ThemeChoice
from ui.look.theme import ReadingStyle

_THEME_CHOICES: dict[str, ThemeChoice] = {"light": "light", "dark": "dark"}


class WindowStateFile:
    """`window.ini` in the data folder. It is written at once or not at all: QSettings by itself writes later, and makes
    a folder again that was moved away meanwhile, so that it could not be put back.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = str(folder / "window.ini")

    def values(self, *names: str) -> dict[str, object]:
        """What stands there under these names; those that are missing are left out."""
        settings = QSettings(self._path, QSettings.Format.IniFormat)
        return {name: settings.value(name) for name in names if settings.contains(name)}

    def text(self, name: str) -> str:
        """The same of one name, as text; empty where it is missing."""
        return str(self.values(name).get(name, ""))

    def save(self, values: Mapping[str, str | float | bool | QByteArray]) -> None:
        """Write what is new about these. Nothing happens where the folder is gone or cannot be written to."""
        old = self.values(*values)
        if all(str(old.get(name)).lower() == str(value).lower() for name, value in values.items()):
            return
        if not os.access(self._folder, os.W_OK):
            return
        settings = QSettings(self._path, QSettings.Format.IniFormat)
        for name, value in values.items():
            settings.setValue(name, value)
        settings.sync()


def save_appearance(
    file: WindowStateFile, choice: ThemeChoice, zoom: int, reading: ReadingStyle, *, enter_sends: bool
) -> None:
    """For the next start; `zoom` in percent."""
    file.save(
        {
            "look/theme": choice,
            "look/zoom": zoom,
            "look/font": reading.font,
            "look/size": reading.size,
            "look/line_width": reading.line_width,
            "look/compact": reading.is_compact,
            "write/enter_sends": enter_sends,
        }
    )


def load_enter_sends(file: WindowStateFile) -> bool:
    """Whether Enter sent last; where nothing was kept, it does."""
    return file.text("write/enter_sends").lower() != "false"


def load_appearance(file: WindowStateFile) -> tuple[ThemeChoice, int, ReadingStyle]:
    """As it was kept; where that is nothing, or no such thing, as the program looks by itself."""
    usual = ReadingStyle()

    def text(name: str) -> str:
        return file.text(f"look/{name}")

    def number(name: str, otherwise: float, least: float, most: float) -> float:
        try:
            return min(most, max(least, float(text(name))))
        except ValueError:
            return otherwise

    reading = ReadingStyle(
        font=text("font"),
        size=number("size", usual.size, 6, 36),
        line_width=round(number("line_width", usual.line_width, 100, 1 << 16)),
        is_compact=text("compact").lower() == "true",
    )
    return _THEME_CHOICES.get(text("theme"), "system"), round(number("zoom", 100, 50, 300)), reading
