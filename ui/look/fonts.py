"""The fonts: the system's for text, the first good one that is installed for code."""

from PySide6.QtGui import QFont, QFontDatabase

from ui.look.theme import Theme

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


def point_size(theme: Theme, zoom: float, factor: float = 1.0) -> float:
    """A text size in points: the theme's body size, zoomed (percent), times `factor`."""
    return round(theme.base_size * zoom / 100 * factor, 2)


def body_font(theme: Theme, zoom: float = 100, factor: float = 1.0, family: str = "") -> QFont:
    """A font for text: of this family, or the system's, which also has what the family lacks."""
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont)
    if family:
        font.setFamilies([family, *(font.families() or [font.family()])])
    font.setPointSizeF(point_size(theme, zoom, factor))
    return font


def mono_font(theme: Theme, zoom: float = 100, factor: float = 0.95) -> QFont:
    """A fixed-pitch font; a little smaller, because such fonts look larger than text of the same size."""
    installed = set(QFontDatabase.families())
    family = next((name for name in MONO_FAMILIES if name in installed), None)
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    if family is not None:
        font.setFamilies([family])
    font.setStyleHint(QFont.StyleHint.Monospace)
    font.setFixedPitch(True)
    font.setPointSizeF(point_size(theme, zoom, factor))
    return font
