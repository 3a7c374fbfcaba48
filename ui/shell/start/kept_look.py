"""How the window looked last: the first paint cannot wait for the preferences, and must not flash in other colours."""

from PySide6.QtCore import QSettings

from ui.look.scheme import Choice
from ui.look.theme import Reading

_CHOICES: dict[str, Choice] = {"light": "light", "dark": "dark"}


def keep_look(settings: QSettings, choice: Choice, zoom: int, reading: Reading) -> None:
    """For the next start; `zoom` in percent."""
    settings.setValue("look/theme", choice)
    settings.setValue("look/zoom", zoom)
    settings.setValue("look/font", reading.font)
    settings.setValue("look/size", reading.size)
    settings.setValue("look/line_width", reading.line_width)
    settings.setValue("look/compact", reading.is_compact)


def keep_enter_sends(settings: QSettings, enter_sends: bool) -> None:  # noqa: FBT001  a setter, like Qt's own
    """For the next start."""
    settings.setValue("write/enter_sends", enter_sends)


def kept_enter_sends(settings: QSettings) -> bool:
    """Whether Enter sent last; where nothing was kept, it does."""
    return str(settings.value("write/enter_sends", "")).lower() != "false"


def kept_look(settings: QSettings) -> tuple[Choice, int, Reading]:
    """As it was kept; where that is nothing, or no such thing, as the program looks by itself."""
    usual = Reading()

    def text(name: str) -> str:
        return str(settings.value(f"look/{name}", ""))

    def number(name: str, otherwise: float, least: float, most: float) -> float:
        try:
            return min(most, max(least, float(text(name))))
        except ValueError:
            return otherwise

    reading = Reading(
        font=text("font"),
        size=number("size", usual.size, 6, 36),
        line_width=round(number("line_width", usual.line_width, 100, 1 << 16)),
        is_compact=text("compact").lower() == "true",
    )
    return _CHOICES.get(text("theme"), "system"), round(number("zoom", 100, 50, 300)), reading
