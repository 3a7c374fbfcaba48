"""The theme: every colour, size and font that a screen may use, by what it is for."""

from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal

# One spacing scale for the whole window, in device-independent pixels.
SPACE_XS, SPACE_S, SPACE_M, SPACE_L, SPACE_XL = 4, 8, 12, 16, 24
RADIUS_S, RADIUS_M, RADIUS_L = 4, 8, 12
READING_WIDTH = 760
BODY_SIZE = 10.5


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours as #rrggbb. Text on its background reaches at least 4.5:1 (WCAG 2.2, 1.4.3)."""

    name: str
    is_dark: bool
    window: str
    sidebar: str
    surface: str
    hover: str
    border: str
    text: str
    muted: str
    accent: str
    on_accent: str
    user_bubble: str
    code_background: str
    selection: str
    link: str
    danger: str
    danger_background: str
    warning: str
    warning_background: str
    success: str
    success_background: str
    added_background: str
    removed_background: str
    match: str
    current_match: str
    base_size: float = BODY_SIZE
    """Body text in points at 100 % zoom."""


LIGHT = Theme(
    name="light",
    is_dark=False,
    window="#ffffff",
    sidebar="#f6f6f4",
    surface="#fbfbfa",
    hover="#ecebe7",
    border="#dedcd6",
    text="#1d1d1b",
    muted="#65645f",
    accent="#4650c8",
    on_accent="#ffffff",
    user_bubble="#eef0fb",
    code_background="#f5f5f3",
    selection="#c9d0ff",
    link="#3440c0",
    danger="#b3261e",
    danger_background="#fdecea",
    warning="#7a5200",
    warning_background="#fff4d6",
    success="#19692f",
    success_background="#e5f5e9",
    added_background="#dcf5e1",
    removed_background="#fde3e1",
    match="#fff2bd",
    current_match="#ffe14d",
)

DARK = Theme(
    name="dark",
    is_dark=True,
    window="#1c1d20",
    sidebar="#161719",
    surface="#232529",
    hover="#2c2f34",
    border="#383b41",
    text="#e9e8e5",
    muted="#a3a5aa",
    accent="#9aa3ff",
    on_accent="#14151c",
    user_bubble="#2a2e45",
    code_background="#141517",
    selection="#3d4684",
    link="#aab2ff",
    danger="#ff9a92",
    danger_background="#3d2220",
    warning="#f2c86a",
    warning_background="#372d16",
    success="#8fd8a2",
    success_background="#1d3324",
    added_background="#1c3b27",
    removed_background="#45231f",
    match="#3f3600",
    current_match="#4c4000",
)


@dataclass(frozen=True, slots=True)
class ReadingStyle:
    """How the text of conversations is set. Sizes are for 100 % zoom: `size` in points, `line_width` in pixels.

    `font` is a family, or nothing for the system's.
    """

    font: str = ""
    size: float = BODY_SIZE
    line_width: int = READING_WIDTH
    is_compact: bool = False


class ThemeSource(QObject):
    """Holds the theme in use, and how text is set for reading; says when one of them changes. Zoom is in percent."""

    changed = Signal()

    def __init__(self, theme: Theme = LIGHT, zoom: int = 100, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._zoom = zoom
        self._reading = ReadingStyle()

    @property
    def theme(self) -> Theme:
        """The theme in use."""
        return self._theme

    @property
    def zoom(self) -> int:
        """Percent."""
        return self._zoom

    @property
    def reading(self) -> ReadingStyle:
        """How the text of conversations is set."""
        return self._reading

    def space(self, pixels: int) -> int:
        """Room of the window's scale around what belongs together: half of it where the person wants it compact."""
        return pixels // 2 if self._reading.is_compact else pixels

    @property
    def reading_width(self) -> int:
        """The widest a line of a conversation gets now, in pixels."""
        return round(self._reading.line_width * self._zoom / 100 * self._reading.size / self._theme.base_size)

    def set_reading_style(self, reading: ReadingStyle) -> None:
        """Set it so from now on; says so when that is another way."""
        if reading != self._reading:
            self._reading = reading
            self.changed.emit()

    def use(self, theme: Theme, zoom: int) -> None:
        """Switch; says so when something really changed."""
        if (theme, zoom) == (self._theme, self._zoom):
            return
        self._theme, self._zoom = theme, zoom
        self.changed.emit()
