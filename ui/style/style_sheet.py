"""The style sheet and palette of the whole application, made from a theme and a zoom.

The sheet is `resources/style/window.qss`. Controls set the dynamic property `kind`: "primary", "danger", "quiet",
"link", "edge-link" for buttons; "title", "heading", "muted", "error", "chip" and so on for labels and frames.
"""

import re
from collections.abc import Sequence
from functools import cache
from string import Template

from PySide6.QtCore import QObject
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication

from resources import resource_path
from ui.style.theme import SPACE_S, Theme, ThemeSource, body_font, chevron_towards, point_size


def palette_for(theme: Theme) -> QPalette:
    """Return the palette of the Fusion style; disabled text is muted."""
    role = QPalette.ColorRole
    palette = QPalette()
    for colour_role, colour in {
        role.Window: theme.window,
        role.WindowText: theme.text,
        role.Base: theme.window,
        role.AlternateBase: theme.surface,
        role.Text: theme.text,
        role.PlaceholderText: theme.muted,
        role.Button: theme.surface,
        role.ButtonText: theme.text,
        role.BrightText: theme.danger,
        role.ToolTipBase: theme.surface,
        role.ToolTipText: theme.text,
        role.Highlight: theme.selection,
        role.HighlightedText: theme.text,
        role.Accent: theme.accent,
        role.Link: theme.link,
        role.LinkVisited: theme.link,
        role.Light: theme.hover,
        role.Midlight: theme.hover,
        role.Mid: theme.border,
        role.Dark: theme.border,
        role.Shadow: theme.border,
    }.items():
        palette.setColor(colour_role, QColor(colour))
    for colour_role in (role.WindowText, role.Text, role.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, colour_role, QColor(theme.muted))
    return palette


MIN_SCROLL_BAR_WIDTH = 8
"""Pixels: a narrower scroll bar is hard to hit."""


def mix_colours(first: str, second: str, share: float) -> str:
    """Return a colour between two (#rrggbb) with this `share` of the second, 0 to 1."""
    pairs = ((int(first[i : i + 2], 16), int(second[i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


def selected_background(theme: Theme) -> str:
    """Return the background of a chosen row and of a pressed button: one step beyond `hover`."""
    return mix_colours(theme.hover, theme.text, 0.07)


def field_edge(theme: Theme) -> str:
    """Return the edge by which a field is seen, 3:1 on every page (WCAG 2.2, 1.4.11); also a scroll bar's handle."""
    return theme.border if theme.outline else mix_colours(theme.window, theme.muted, 0.6 if theme.is_dark else 0.75)


def style_sheet(theme: Theme, zoom: int = 100) -> str:
    """Return the sheet; `zoom` in percent scales text and the room around it."""
    sizes = _text_sizes(zoom) | _rounded_sizes(zoom) | _unscaled_sizes(zoom)
    sheet = _SCALED.sub(lambda pixels: f"{_scaled(int(pixels[1]), zoom)}px", _template())
    return Template(sheet).substitute(_colours(theme) | sizes | _icon_files(theme))


@cache
def _template() -> str:
    return resource_path("style", "window.qss").read_text(encoding="utf-8")


def _scaled(pixels: int, zoom: int) -> int:
    return round(pixels * zoom / 100)


def apply_theme(app: QApplication, source: ThemeSource) -> None:
    """Apply the source's current theme to the whole application."""
    # A sheet wraps the style in its own; so the style is set once, before the first sheet.
    if not app.styleSheet() and not app.property(_HAS_STYLE):
        app.setStyle("Fusion")
    apply_palette_and_font(app, source)
    app.setStyleSheet(style_sheet(source.theme, source.zoom))


def apply_palette_and_font(app: QApplication, source: ThemeSource) -> None:
    """Apply all of the source's theme but the sheet."""
    app.setPalette(palette_for(source.theme))
    app.setFont(body_font(source.zoom))


def create_application(arguments: Sequence[str]) -> QApplication:
    """Create Qt's application in the style that the sheet is made for.

    Setting a style later makes Python wrap it with all its enumerations: a tenth of the start.
    """
    app = QApplication([*arguments, "-style", "Fusion"])
    app.setProperty(_HAS_STYLE, True)
    return app


class ThemeApplier(QObject):
    """Applies each change of a theme source to the application; at first palette and font alone, until `apply`.

    Create it before the first widget: a new sheet takes away the fonts that widgets set for the same change before.
    """

    def __init__(self, app: QApplication, source: ThemeSource, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._app = app
        self._source = source
        source.changed.connect(self.apply)
        apply_palette_and_font(app, source)

    def apply(self) -> None:
        """Apply the theme as it is now, with the sheet."""
        apply_theme(self._app, self._source)


_HAS_STYLE = "hasStyle"
_SCALED = re.compile(r"\b(\d+)dp\b")


def _unscaled_sizes(zoom: int) -> dict[str, object]:
    """Return sizes that contain what no zoom scales: a margin in every line of text, one around every box."""
    room, in_line, around_box = _scaled(SPACE_S, zoom), 2, 4
    return {"line_x": room - in_line, "line_x_focus": room - in_line - 1, "beside": room - around_box}


def _colours(theme: Theme) -> dict[str, str]:
    texts = {name: value for name, value in theme._asdict().items() if isinstance(value, str)}
    return texts | {
        "pressed": selected_background(theme),
        "outline": theme.outline or "transparent",
        "edge": mix_colours(theme.border, theme.text, 0.25 if theme.is_dark else 0.1),
        "field_edge": field_edge(theme),
        "accent_hover": mix_colours(theme.accent, theme.text, 0.15),
    }


def _text_sizes(zoom: int) -> dict[str, object]:
    factors = {"title": 1.9, "heading": 1.2, "small": 0.88}
    return {name: point_size(zoom, factor) for name, factor in factors.items()}


def _rounded_sizes(zoom: int) -> dict[str, object]:
    """Return the radii. Qt draws square corners if two radii are more than a side, by however little."""
    half, bar = _scaled(7, zoom), max(MIN_SCROLL_BAR_WIDTH, _scaled(12, zoom))
    border, margin = 1, 2
    return {"radio": 2 * half, "radio_radius": half + border, "bar": bar, "bar_radius": (bar - 2 * margin) // 2}


def _icon_files(theme: Theme) -> dict[str, object]:
    """Return picture files. A sheet takes file names only and cannot tint, so there are two shades of each."""
    shade = "light" if theme.is_dark else "dark"
    on_accent = "dark" if theme.is_dark else "light"
    files = {
        "chevron": f"chevron-{shade}",
        "chevron_up": f"chevron-up-{shade}",
        "chevron_left": f"chevron-left-{shade}",
        "chevron_right": f"chevron-right-{shade}",
        "chevron_end": f"{chevron_towards('end')}-{shade}",
        "tick": f"tick-{on_accent}",
    }
    return {name: resource_path("style", f"{file}.svg").as_posix() for name, file in files.items()}
