"""The theme: every colour, size, font and icon that a screen may use; light, dark, and strong contrast."""

from collections.abc import Callable
from functools import lru_cache
from typing import Literal, NamedTuple

from PySide6.QtCore import QByteArray, QLocale, QObject, QRectF, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontDatabase,
    QFontInfo,
    QGuiApplication,
    QIcon,
    QPainter,
    QPixmap,
    QStyleHints,
)
from PySide6.QtSvg import QSvgRenderer

from resources import resource_path

# One spacing scale for the whole window, in device-independent pixels.
SPACE_XS, SPACE_S, SPACE_M, SPACE_L, SPACE_XL = 4, 8, 12, 16, 24
RADIUS_S, RADIUS_M, RADIUS_L = 4, 8, 12
READING_WIDTH = 760
BODY_SIZE = 10.5
"""Body text in points at 100 % zoom."""


class Theme(NamedTuple):
    """Colours as #rrggbb. Text reaches 4.5:1 on its background, what shows a control 3:1 (WCAG 2.2, 1.4.3 and 1.4.11).

    `tests/ui/style/test_contrast.py` says which colour is written on which.

    A named tuple, as all records of the first paint: a dataclass compiles its functions at each start (ADR 0012).
    """

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
    outline: str = ""
    """With strong contrast, the edge of what else stands out by its fill alone: a chosen row, a tag, a message."""


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
    current_match="#453a00",
)

# By the words of FolderColour, light and dark: at least 3:1 on the sidebar, and on a hovered or a chosen row of it.
_FOLDER_TINTS = {
    "red": ("#bf2338", "#ff8a80"),
    "orange": ("#cc5500", "#f5a85c"),
    "yellow": ("#8c7800", "#e6cc5a"),
    "green": ("#2c7a3f", "#86d199"),
    "teal": ("#0f7681", "#6fcfd6"),
    "blue": ("#2f62c9", "#86b2ff"),
    "purple": ("#8143b8", "#c79cf2"),
}


def folder_tint(theme: Theme, colour: str) -> str:
    """Return what a FolderColour looks like in this theme; muted for grey and for a word that it does not know."""
    tints = _FOLDER_TINTS.get(colour)
    return theme.muted if tints is None else tints[theme.is_dark]


class ReadingStyle(NamedTuple):
    """The typography of conversations. Sizes are for 100 % zoom: `size` in points, `line_width` in pixels.

    `font` is a family; empty for the system's.
    """

    font: str = ""
    size: float = BODY_SIZE
    line_width: int = READING_WIDTH
    is_compact: bool = False


class ThemeSource(QObject):
    """Holds the current theme, zoom (in percent) and reading style, and emits their changes."""

    changed = Signal()

    def __init__(self, theme: Theme = LIGHT, zoom: int = 100) -> None:
        super().__init__()
        self.theme = theme
        self.zoom = zoom
        """In percent."""
        self.reading = ReadingStyle()

    def follow(self, apply: Callable[[], object]) -> None:
        """Call this now, and after each change. It is a method of a QObject, which ends with the object."""
        self.changed.connect(apply)
        apply()

    def scaled(self, pixels: int) -> int:
        """Return the pixels at the current zoom for these at 100 %."""
        return round(pixels * self.zoom / 100)

    def space(self, pixels: int) -> int:
        """Return a space of the window's scale around a group: half of it if the person wants it compact."""
        return pixels // 2 if self.reading.is_compact else pixels

    @property
    def reading_width(self) -> int:
        """Return the largest width of a line of a conversation, in pixels."""
        return round(self.reading.line_width * self.zoom / 100 * self.reading.size / BODY_SIZE)

    def set_reading_style(self, reading: ReadingStyle) -> None:
        """Set the reading style; emit a change if it is another."""
        if reading != self.reading:
            self.reading = reading
            self.changed.emit()

    def use(self, theme: Theme, zoom: int) -> None:
        """Set theme and zoom; emit a change if something is different."""
        if (theme, zoom) == (self.theme, self.zoom):
            return
        self.theme, self.zoom = theme, zoom
        self.changed.emit()


ThemeChoice = Literal["system", "light", "dark"]

# Text on its background reaches 7:1 (WCAG 2.2, 1.4.6), and every edge 3:1.
STRONG_LIGHT = LIGHT._replace(
    name="light, strong contrast",
    border="#6b6b68",
    text="#000000",
    muted="#3d3d3a",
    accent="#343cae",
    selection="#8f9aff",
    link="#2a34a4",
    danger="#97190f",
    warning="#5f3f00",
    success="#0d5420",
    outline="#6b6b68",
)
STRONG_DARK = DARK._replace(
    name="dark, strong contrast",
    border="#8f9399",
    text="#ffffff",
    muted="#d2d3d6",
    accent="#b0b7ff",
    link="#bcc3ff",
    danger="#ffb3ac",
    outline="#8f9399",
)


def theme_for(choice: ThemeChoice, *, system_dark: bool, strong_contrast: bool = False) -> Theme:
    """Return the theme for the person's choice and the system's state."""
    dark = system_dark if choice == "system" else choice == "dark"
    if strong_contrast:
        return STRONG_DARK if dark else STRONG_LIGHT
    return DARK if dark else LIGHT


class ColourSchemeFollower(QObject):
    """Sets a theme source to the person's choice, and to the system's scheme while the choice is "system".

    Nothing is applied before `choose` or `guess`.
    """

    def __init__(self, source: ThemeSource, hints: QStyleHints, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._source = source
        self._hints = hints
        self._choice: ThemeChoice = "system"
        self._zoom = source.zoom
        hints.colorSchemeChanged.connect(self.apply)
        hints.accessibility().contrastPreferenceChanged.connect(self.apply)

    def choose(self, choice: ThemeChoice, zoom: int) -> None:
        """Use this theme and zoom (percent) from now on."""
        self._choice, self._zoom = choice, zoom
        self.apply()

    def guess(self, choice: ThemeChoice, zoom: int) -> None:
        """Use this theme and zoom for the first paint; `apply` corrects it.

        Whether the system is dark is taken from its palette, before ours replaces it: the hints would answer in values
        of `Qt` (see `set_by_name`).
        """
        self._choice, self._zoom = choice, zoom
        palette = QGuiApplication.palette()
        is_dark = palette.windowText().color().lightness() > palette.window().color().lightness()
        self._source.use(theme_for(choice, system_dark=is_dark), zoom)

    def apply(self) -> None:
        """Use what the system says now."""
        from PySide6.QtCore import Qt

        theme = theme_for(
            self._choice,
            system_dark=self._hints.colorScheme() == Qt.ColorScheme.Dark,
            strong_contrast=self._hints.accessibility().contrastPreference() == Qt.ContrastPreference.HighContrast,
        )
        self._source.use(theme, self._zoom)


MONO_FAMILIES = (
    "JetBrains Mono",
    "Cascadia Code",
    "SF Mono",
    "Menlo",
    "Consolas",
    "DejaVu Sans Mono",
    "Noto Sans Mono",
    "Liberation Mono",
)


def point_size(zoom: float, factor: float = 1.0) -> float:
    """Return a text size in points: the body size, zoomed (percent), times `factor`."""
    return round(BODY_SIZE * zoom / 100 * factor, 2)


def body_font(zoom: float = 100, factor: float = 1.0, family: str = "") -> QFont:
    """Return a font for text: of this family, or the system's, which is also the fallback for missing letters."""
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont)
    _set_families(font, [*filter(None, [family]), *(font.families() or [font.family()])])
    font.setPointSizeF(point_size(zoom, factor))
    return font


_SIMPLIFIED_HAN = ("Noto Sans CJK SC", "Source Han Sans SC", "Noto Sans SC", "WenQuanYi Micro Hei")


def _set_families(font: QFont, families: list[str]) -> None:
    """Set the families; in Chinese, also those for letters that the families lack.

    Fontconfig chooses these by the language of the system alone: in an English one it takes Japanese shapes.
    """
    font.setFamilies(families)
    if QLocale().name().startswith("zh"):
        # By its real name: an alias such as “Sans Serif” would leave all letters to the others.
        font.setFamilies([QFontInfo(font).family(), *_SIMPLIFIED_HAN])


def mono_font(zoom: float = 100, factor: float = 0.95) -> QFont:
    """Return a fixed-pitch font; a little smaller, because such fonts look larger than text of the same size."""
    installed = set(QFontDatabase.families())
    family = next((name for name in MONO_FAMILIES if name in installed), None)
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    if family is not None:
        _set_families(font, [family])
    font.setStyleHint(QFont.StyleHint.Monospace)
    font.setFixedPitch(True)
    font.setPointSizeF(point_size(zoom, factor))
    return font


ICON_SIZE = 18


def icon(name: str, colour: str, disabled: str | None = None, size: int = ICON_SIZE) -> QIcon:
    """Return the icon resources/icons/NAME.svg in `colour` (#rrggbb), and in `disabled` for disabled controls."""
    result = QIcon()
    for mode, shade in ((QIcon.Mode.Normal, colour), (QIcon.Mode.Disabled, disabled or colour)):
        for ratio in _device_pixel_ratios():
            result.addPixmap(pixmap(name, shade, size, ratio), mode)
    return result


def themed_icon(name: str, theme: Theme, size: int = ICON_SIZE) -> QIcon:
    """Return the icon in the colour of text, muted when disabled."""
    return icon(name, theme.text, theme.muted, size)


def chevron_towards(edge: Literal["start", "end"]) -> str:
    """Return the name of the icon that points to where the window's lines start, or end."""
    return "chevron-left" if (edge == "start") is not QGuiApplication.isRightToLeft() else "chevron-right"


def app_icon() -> QIcon:
    """Return the program's own icon."""
    result = QIcon()
    for size in (16, 24, 32, 48, 64, 128, 256):
        result.addPixmap(pixmap("desktop-agent", "#000000", size, 1))
    return result


@lru_cache(maxsize=512)
def pixmap(name: str, colour: str, size: int, ratio: int = 1) -> QPixmap:
    """Render one icon of `size` device-independent pixels, `ratio` device pixels each. Raises FileNotFoundError."""
    drawing = QPixmap(size * ratio, size * ratio)
    drawing.fill(QColor(0, 0, 0, 0))
    painter = QPainter(drawing)
    _renderer(name, colour).render(painter, QRectF(0, 0, size * ratio, size * ratio))
    painter.end()
    drawing.setDevicePixelRatio(ratio)
    return drawing


@lru_cache(maxsize=1)
def _renderer(name: str, colour: str) -> QSvgRenderer:
    # Only the last one is cached: an icon is rendered for several pixel ratios in a row.
    return QSvgRenderer(QByteArray(_source(name).replace("currentColor", colour).encode("utf-8")))


@lru_cache(maxsize=128)
def _source(name: str) -> str:
    return resource_path("icons", f"{name}.svg").read_text(encoding="utf-8")


def _device_pixel_ratios() -> tuple[int, ...]:
    """Return the ratios to render icons for. Each costs time at the start, so 3 only if a screen has it."""
    finest = max((screen.devicePixelRatio() for screen in QGuiApplication.screens()), default=1.0)
    return (1, 2) if finest <= 2 else (1, 2, 3)
