"""The style sheet and palette of the whole application, made from a theme and a zoom.

The sheet is `resources/style/window.qss`. Controls set the dynamic property `kind`: "primary", "danger", "quiet",
"link" for buttons; "title", "heading", "muted", "error", "chip" and so on for labels and frames.
"""

from collections.abc import Sequence

from PySide6.QtCore import QObject
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication

from resources import resource_path
from ui.style.theme import Theme, ThemeSource, body_font, point_size


def palette_for(theme: Theme) -> QPalette:
    """Return the palette of the Fusion style; disabled text is muted."""
    role = QPalette.ColorRole
    palette = QPalette()
    for where, colour in {
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
        palette.setColor(where, QColor(colour))
    for where in (role.WindowText, role.Text, role.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, where, QColor(theme.muted))
    return palette


MIN_SCROLL_BAR_WIDTH = 8
"""Pixels: a narrower scroll bar is hard to hit."""

_TEMPLATE = """
* {{ outline: 0; }}
QMainWindow, QDialog {{ background: {window}; }}
QToolTip {{ background: {surface}; color: {text}; border: 1px solid {border}; padding: {xs}px {s}px; }}

QLabel[kind="title"] {{ font-size: {title}pt; font-weight: 600; }}
QLabel[kind="heading"] {{ font-size: {heading}pt; font-weight: 600; }}
QLabel[kind="strong"] {{ font-weight: 600; }}
QLabel[kind="muted"] {{ color: {muted}; }}
QLabel[kind="small"] {{ color: {muted}; font-size: {small}pt; }}
QLabel[kind="error"] {{ color: {danger}; }}
QLabel[kind="warning"] {{ color: {warning}; }}
QLabel[kind="ok"] {{ color: {success}; }}
QLabel[tag="safe"], QLabel[tag="caution"], QLabel[tag="risk"] {{
  padding: 2px {s}px; border-radius: 0.5em; font-size: {small}pt; font-weight: 600; }}
QLabel[tag="safe"] {{ color: {success}; background: {success_background}; }}
QLabel[tag="caution"] {{ color: {warning}; background: {warning_background}; }}
QLabel[tag="risk"] {{ color: {danger}; background: {danger_background}; }}

QPushButton, QToolButton {{
  background: {surface}; border: 1px solid {border}; border-radius: {radius}px;
  padding: {button_y}px {button_x}px; min-height: {line}px; }}
QPushButton:hover, QToolButton:hover {{ background: {hover}; }}
QPushButton:pressed, QToolButton:pressed, QToolButton:checked {{ background: {pressed}; }}
QPushButton:disabled, QToolButton:disabled {{ color: {muted}; background: {hover}; border-color: {hover}; }}
QPushButton:focus, QToolButton:focus {{
  border: 2px solid {accent}; padding: {button_y_focus}px {button_x_focus}px; }}
QPushButton[kind="primary"], QToolButton[kind="primary"] {{
  background: {accent}; border-color: {accent}; color: {on_accent}; font-weight: 600; }}
QPushButton[kind="primary"]:hover, QToolButton[kind="primary"]:hover {{
  background: {accent_hover}; border-color: {accent_hover}; }}
QPushButton[kind="primary"]:focus, QToolButton[kind="primary"]:focus {{ border: 2px solid {text}; }}
QPushButton[kind="primary"]:disabled, QToolButton[kind="primary"]:disabled {{
  background: {hover}; border-color: {hover}; color: {muted}; }}
QPushButton[kind="danger"] {{ color: {danger}; border-color: {danger}; background: {window}; }}
QPushButton[kind="danger"]:hover {{ background: {danger_background}; }}
QPushButton[kind="danger"]:disabled {{ color: {muted}; border-color: {border}; }}
QPushButton[kind="quiet"], QToolButton[kind="quiet"] {{ background: transparent; border-color: transparent; }}
QToolButton[kind="quiet"] {{ padding: {button_y}px {s}px; }}
QToolButton[kind="quiet"]:checked {{ background: {pressed}; border-color: {border}; }}
QToolButton[kind="quiet"]:focus {{ padding: {button_y_focus}px {field_x_focus}px; }}
QPushButton[kind="quiet"]:hover, QToolButton[kind="quiet"]:hover {{ background: {hover}; }}
QPushButton[kind="quiet"]:focus, QToolButton[kind="quiet"]:focus {{ border-color: {accent}; }}
QPushButton[kind="link"] {{ background: transparent; border-color: transparent; color: {link}; padding: 2px {xs}px; }}
QPushButton[kind="link"]:hover {{ background: {hover}; }}
QPushButton[kind="link"]:focus {{ border: 1px solid {accent}; padding: 2px {xs}px; }}
QToolButton[kind="quiet"][square="true"], QToolButton[kind="primary"][square="true"] {{
  padding: {square}px; min-height: 0; }}
QToolButton[square="true"]:focus {{ padding: {square_focus}px; }}
QPushButton[keyed="true"] {{ text-align: left; }}
QPushButton[keyed="true"][layoutDirection="1"] {{ text-align: right; }}
QPushButton[kind="figure"], QPushButton[kind="figure"]:hover, QPushButton[kind="figure"]:focus {{
  color: {muted}; font-size: {small}pt; background: transparent; border: 1px solid transparent; padding: 3px;
  min-height: 0; text-align: right; }}
QPushButton[kind="figure"][layoutDirection="1"] {{ text-align: left; }}
QPushButton[kind="figure"]:hover {{ background: {hover}; }}
QPushButton[kind="figure"]:focus {{ border-color: {accent}; }}
QToolButton::menu-indicator {{ image: none; width: 0; }}

QLineEdit, QPlainTextEdit, QTextEdit, QSpinBox, QDoubleSpinBox, QComboBox {{
  background: {window}; border: 1px solid {border}; border-radius: {radius}px;
  selection-background-color: {selection}; selection-color: {text}; }}
QLineEdit, QSpinBox, QDoubleSpinBox, QComboBox {{ padding: {button_y}px {s}px; min-height: {line}px; }}
QLineEdit {{ padding: {button_y}px {line_x}px; }}
/* The button inside is no taller than its drawing, or it hangs below the middle. */
QLineEdit > QToolButton, QLineEdit > QToolButton:hover, QLineEdit > QToolButton:focus {{
  border: 0; padding: 0; min-height: 0; background: transparent; }}
QPlainTextEdit, QTextEdit {{ padding: {xs}px; }}
QLineEdit:focus, QPlainTextEdit:focus, QTextEdit:focus, QSpinBox:focus, QDoubleSpinBox:focus, QComboBox:focus {{
  border: 2px solid {accent}; }}
QLineEdit:focus, QSpinBox:focus, QDoubleSpinBox:focus, QComboBox:focus {{
  padding: {button_y_focus}px {field_x_focus}px; }}
QLineEdit:focus {{ padding: {button_y_focus}px {line_x_focus}px; }}
QPlainTextEdit:focus, QTextEdit:focus {{ padding: {text_focus}px; }}
QPlainTextEdit[invalid="true"], QLineEdit[invalid="true"] {{ border-color: {danger}; }}
QPlainTextEdit[kind="code"] {{ background: {code_background}; }}
QPlainTextEdit[kind="bare"], QPlainTextEdit[kind="bare"]:focus {{ background: transparent; border: 0; padding: 0; }}
QLineEdit:disabled, QPlainTextEdit:disabled, QSpinBox:disabled, QComboBox:disabled {{
  color: {muted}; background: {surface}; }}
QAbstractSpinBox QLineEdit, QAbstractSpinBox QLineEdit:focus {{
  border: 0; padding: 0 {s}px; min-height: 0; background: transparent; }}
QComboBox::drop-down {{ border: 0; width: {icon}px; padding-right: {xs}px; }}
QComboBox::down-arrow {{ image: url("{chevron}"); width: {chevron_size}px; height: {chevron_size}px; }}
/* A list below the box: as the menu that it is otherwise, its rows do not fit when they have our padding. */
QComboBox {{ combobox-popup: 0; }}
QComboBox QAbstractItemView {{
  background: {window}; border: 1px solid {edge}; padding: {xs}px; outline: 0;
  selection-background-color: {hover}; selection-color: {text}; }}
QComboBox QAbstractItemView::item {{ padding: {xs}px {s}px; min-height: {line}px; color: {text}; }}
QComboBox QAbstractItemView::item:selected {{ background: {hover}; color: {text}; }}
QSpinBox, QDoubleSpinBox {{ min-width: {spin}px; }}
QAbstractSpinBox::up-button, QAbstractSpinBox::down-button {{
  subcontrol-origin: border; width: {icon}px; border: 0; background: transparent; margin: 2px; }}
QAbstractSpinBox::up-button {{ subcontrol-position: top right; }}
QAbstractSpinBox::down-button {{ subcontrol-position: bottom right; }}
QAbstractSpinBox::up-button:hover, QAbstractSpinBox::down-button:hover {{ background: {hover}; border-radius: 4px; }}
QAbstractSpinBox::up-arrow {{ image: url("{chevron_up}"); width: {arrow}px; height: {arrow}px; }}
QAbstractSpinBox::down-arrow {{ image: url("{chevron}"); width: {arrow}px; height: {arrow}px; }}

QCheckBox {{
  spacing: {s}px; padding: 2px; border: 2px solid transparent; border-radius: 4px; }}
QCheckBox:focus {{ border-color: {accent}; }}
QCheckBox::indicator, QTreeView::indicator {{
  width: {check}px; height: {check}px; border: 1px solid {muted}; border-radius: 4px; background: {window}; }}
QCheckBox::indicator:checked, QTreeView::indicator:checked {{
  background: {accent}; border-color: {accent}; image: url("{tick}"); }}

QRadioButton {{
  spacing: {s}px; padding: 2px; border: 2px solid transparent; border-radius: 4px; }}
QRadioButton:focus {{ border-color: {accent}; }}
QCheckBox[beside="true"], QRadioButton[beside="true"] {{ spacing: {beside}px; }}
QRadioButton::indicator {{
  width: {radio}px; height: {radio}px; border: 1px solid {muted}; border-radius: {radio_radius}px;
  background: {window}; }}
QRadioButton::indicator:checked {{
  border: 1px solid {accent}; background: qradialgradient(cx: 0.5, cy: 0.5, radius: 0.5, fx: 0.5, fy: 0.5,
    stop: 0 {accent}, stop: 0.55 {accent}, stop: 0.65 {window}, stop: 1 {window}); }}

QListView, QTreeView {{ background: transparent; border: 0; }}
QListView::item {{ border-radius: {radius}px; }}
QTreeView::item {{ padding: {xs}px {s}px; }}
QTreeView::item:selected {{ background: {pressed}; color: {text}; }}

QTableView {{
  background: {window}; border: 1px solid {border}; selection-background-color: {pressed}; selection-color: {text}; }}
QTableView::item {{ padding: 0 {s}px; }}
QTableView:focus {{ border-color: {accent}; }}
QTableView::item:focus {{ border: 2px solid {accent}; }}
QTableView QLineEdit, QTableView QLineEdit:focus {{ border-radius: 0; padding: 0 {xs}px; min-height: 0; }}
QHeaderView {{ background: transparent; border: 0; }}
QHeaderView::section {{
  background: {surface}; color: {muted}; border: 0; border-bottom: 1px solid {border}; padding: {xs}px {s}px; }}

QMenu {{ background: {window}; border: 1px solid {edge}; border-radius: {radius}px; padding: {xs}px; }}
QMenu::item {{ padding: {button_y}px {l}px; border-radius: 4px; }}
QMenu::item:selected {{ background: {hover}; }}
QMenu::item:disabled {{ color: {muted}; }}
QMenu::separator {{ height: 1px; background: {border}; margin: {xs}px {s}px; }}

QScrollArea {{ background: transparent; border: 0; }}
QScrollBar:vertical {{ background: transparent; width: {bar}px; margin: 0; }}
QScrollBar:horizontal {{ background: transparent; height: {bar}px; margin: 0; }}
QScrollBar::handle {{ background: {scroll}; border-radius: {bar_radius}px; margin: 2px; }}
QScrollBar::handle:vertical {{ min-height: 32px; }}
QScrollBar::handle:horizontal {{ min-width: 32px; }}
QScrollBar::handle:disabled {{ background: transparent; }}
QScrollBar::handle:hover {{ background: {muted}; }}
QScrollBar::add-line, QScrollBar::sub-line {{ width: 0; height: 0; }}
QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
QSplitter::handle {{ background: {border}; }}
QSplitter[kind="bare"]::handle {{ background: transparent; }}
QProgressBar {{ background: {hover}; border: 0; border-radius: 2px; max-height: 4px; text-align: center; }}
QProgressBar::chunk {{ background: {accent}; border-radius: 2px; }}

QFrame[kind="card"] {{ background: {surface}; border: 1px solid {border}; border-radius: {radius_l}px; }}
QFrame[kind="chip"] {{ background: {surface}; border: 1px solid {border}; border-radius: {radius}px; }}
QFrame[kind="chip"]:focus {{ border: 2px solid {accent}; }}
QFrame[kind="composer"] {{ background: {window}; border: 1px solid {border}; border-radius: {radius_xl}px; }}
QFrame[kind="composer"][focused="true"] {{ border-color: {accent}; }}
QFrame[kind="popup"] {{ background: {window}; border: 1px solid {edge}; border-radius: {radius}px; }}
QFrame[kind="line"] {{ background: {border}; border: 0; max-height: 1px; min-height: 1px; }}
QFrame[kind="line-upright"] {{ background: {border}; border: 0; max-width: 1px; min-width: 1px; }}
QWidget[kind="sidebar"] {{ background: {sidebar}; }}
QWidget[kind="page"] {{ background: {window}; }}
QFrame[kind="banner"][level="error"] {{ background: {danger_background}; border: 1px solid {danger}; }}
QFrame[kind="banner"][level="notice"] {{ background: {warning_background}; border: 1px solid {warning}; }}
QFrame[kind="banner"][level="undo"] {{ background: {surface}; border: 1px solid {border}; }}
QFrame[kind="banner"][level="remark"] {{ background: {surface}; border: 1px solid {border}; }}
QFrame[kind="banner"] {{ border-radius: {radius}px; }}
"""


def mix_colours(one: str, other: str, share: float) -> str:
    """Return a colour between two (#rrggbb) with this `share` of the second, 0 to 1."""
    pairs = ((int(one[i : i + 2], 16), int(other[i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


def selected_background(theme: Theme) -> str:
    """Return the background of a chosen row and of a pressed button: one step beyond `hover`."""
    return mix_colours(theme.hover, theme.text, 0.07)


def style_sheet(theme: Theme, zoom: int = 100) -> str:
    """Return the sheet; `zoom` in percent scales text and the room around it."""
    return _TEMPLATE.format(
        **_colours(theme),
        **_text_sizes(theme, zoom),
        **{name: round(pixels * zoom / 100) for name, pixels in _PIXELS.items()},
        **_rounded_sizes(zoom),
        **_icon_files(theme),
        **_unscaled_sizes(zoom),
    )


def apply_theme(app: QApplication, source: ThemeSource) -> None:
    """Apply the source's current theme to the whole application."""
    theme, zoom = source.theme, source.zoom
    # With a sheet in force the style hides behind the sheet's own; it is set once, before the first.
    if not app.styleSheet() and not app.property(_HAS_STYLE):
        app.setStyle("Fusion")
    app.setPalette(palette_for(theme))
    app.setFont(body_font(theme, zoom))
    app.setStyleSheet(style_sheet(theme, zoom))


def create_application(arguments: Sequence[str]) -> QApplication:
    """Create Qt's application in the style that the sheet is made for.

    Setting a style later makes Python wrap it with all its enumerations: a tenth of the start.
    """
    app = QApplication([*arguments, "-style", "Fusion"])
    app.setProperty(_HAS_STYLE, True)
    return app


class ThemeApplier(QObject):
    """Applies each change of a theme source to the application."""

    def __init__(self, app: QApplication, source: ThemeSource, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._app = app
        self._source = source
        source.changed.connect(self._apply)
        self._apply()

    def _apply(self) -> None:
        apply_theme(self._app, self._source)


_HAS_STYLE = "hasStyle"
_PIXELS = {
    "xs": 4,
    "s": 8,
    "l": 16,
    "radius": 8,
    "radius_l": 12,
    "radius_xl": 16,
    "line": 20,
    "button_y": 5,
    "button_y_focus": 4,
    "button_x": 13,
    "button_x_focus": 12,
    "field_x_focus": 7,
    "text_focus": 3,
    "square": 6,
    "square_focus": 5,
    "icon": 20,
    "spin": 140,
    "check": 16,
    "chevron_size": 14,
    "arrow": 10,
}


def _unscaled_sizes(zoom: int) -> dict[str, int]:
    """Return sizes that contain what no zoom scales: a margin in every line of text, one around every box."""
    room, in_line, around_box = round(_PIXELS["s"] * zoom / 100), 2, 4
    return {"line_x": room - in_line, "line_x_focus": room - in_line - 1, "beside": room - around_box}


def _colours(theme: Theme) -> dict[str, str]:
    names = [name for name, value in theme.__dataclass_fields__.items() if value.type is str and name != "name"]
    colours = {name: str(getattr(theme, name)) for name in names}
    return colours | {
        "pressed": selected_background(theme),
        "edge": mix_colours(theme.border, theme.text, 0.25 if theme.is_dark else 0.1),
        "scroll": mix_colours(theme.window, theme.muted, 0.45),
        "accent_hover": mix_colours(theme.accent, theme.text, 0.15),
    }


def _text_sizes(theme: Theme, zoom: int) -> dict[str, float]:
    factors = {"title": 1.9, "heading": 1.2, "small": 0.88}
    return {name: point_size(theme, zoom, factor) for name, factor in factors.items()}


def _rounded_sizes(zoom: int) -> dict[str, int]:
    """Return the radii. Qt draws square corners if two radii are more than a side, by however little."""
    half, bar = round(7 * zoom / 100), max(MIN_SCROLL_BAR_WIDTH, round(12 * zoom / 100))
    border, margin = 1, 2
    return {"radio": 2 * half, "radio_radius": half + border, "bar": bar, "bar_radius": (bar - 2 * margin) // 2}


def _icon_files(theme: Theme) -> dict[str, str]:
    """Write icons to files: style sheets take pictures by file name only, and cannot tint them."""
    shade = "light" if theme.is_dark else "dark"
    on_accent = "dark" if theme.is_dark else "light"
    files = {"chevron": f"chevron-{shade}", "chevron_up": f"chevron-up-{shade}", "tick": f"tick-{on_accent}"}
    return {name: resource_path("style", f"{file}.svg").as_posix() for name, file in files.items()}
