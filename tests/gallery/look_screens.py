"""The parts that every screen is made of."""

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QCheckBox, QComboBox, QGridLayout, QLineEdit, QToolButton, QVBoxLayout, QWidget

from resources import resource_path
from tests.gallery.screens import screen
from ui.style.controls import button, label, line
from ui.style.theme import ThemeSource, themed_icon


@screen("look-controls", 760, 560)
def controls(_theme: ThemeSource) -> QWidget:
    window = QWidget(windowTitle="Controls")
    column = QVBoxLayout(window)
    for kind in ("title", "heading", "strong", "", "muted", "small", "error", "warning", "ok"):
        column.addWidget(label(f"{kind or 'plain'}: The quick brown fox — 敏捷的狐狸 — الثعلب السريع 🦊", kind))
    column.addWidget(line())
    for kind in ("primary", "", "danger", "quiet", "link"):
        column.addWidget(button(kind or "plain", lambda: None, kind))
    disabled = button("disabled", lambda: None)
    disabled.setEnabled(False)
    choice = QComboBox()
    choice.addItems(["A choice", "Another"])
    tick = QCheckBox("Ticked")
    tick.setChecked(True)
    written = QLineEdit("A line of text")
    choice.setAccessibleName("Box")
    written.setAccessibleName("Field")
    for widget in (disabled, choice, tick, written):
        column.addWidget(widget)
    return window


@screen("look-icons", 520, 420)
def icons(theme: ThemeSource) -> QWidget:
    window = QWidget(windowTitle="Icons")
    grid = QGridLayout(window)
    for place, file in enumerate(sorted(resource_path("icons").glob("*.svg"))):
        shown = QToolButton()
        shown.setIcon(themed_icon(file.stem, theme.theme))
        shown.setIconSize(QSize(24, 24))
        shown.setToolTip(file.stem)
        shown.setAccessibleName(file.stem)
        grid.addWidget(shown, place // 8, place % 8)
    return window
