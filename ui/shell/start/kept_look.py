"""How the window looked last: the first paint cannot wait for the preferences, and must not flash in other colours."""

from ui.look.scheme import Choice
from ui.look.theme import Reading
from ui.shell.window_file import WindowFile

_CHOICES: dict[str, Choice] = {"light": "light", "dark": "dark"}


def keep_look(file: WindowFile, choice: Choice, zoom: int, reading: Reading, *, enter_sends: bool) -> None:
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


def kept_enter_sends(file: WindowFile) -> bool:
    """Whether Enter sent last; where nothing was kept, it does."""
    return file.text("write/enter_sends").lower() != "false"


def kept_look(file: WindowFile) -> tuple[Choice, int, Reading]:
    """As it was kept; where that is nothing, or no such thing, as the program looks by itself."""
    usual = Reading()

    def text(name: str) -> str:
        return file.text(f"look/{name}")

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
