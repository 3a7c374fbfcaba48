"""The trash on a small screen with large letters."""

from unittest.mock import MagicMock

from PySide6.QtWidgets import QPushButton

from ui.settings.trash_dialog import TrashDialog
from ui.style.style_sheet import apply_theme
from ui.style.theme import ThemeSource


def test_with_large_text_every_button_is_inside(qtbot, qapp):
    font, palette, themes = qapp.font(), qapp.palette(), ThemeSource()
    themes.use(themes.theme, 229)
    apply_theme(qapp, themes)
    try:
        library = MagicMock()
        library.trash.days = 30
        dialog = TrashDialog(themes, library)
        qtbot.addWidget(dialog)
        dialog.show()
        hint = next(label for label in dialog.findChildren(type(dialog._hint)) if "30 days" in label.text())
        dialog.resize(300, 1400)
        qtbot.waitUntil(hint.isVisible)
        dialog.resize(300, 560)
        buttons = [button for button in dialog.findChildren(QPushButton) if button.isVisible()]
        assert len(buttons) == 4
        rect = dialog.rect()
        qtbot.waitUntil(
            lambda: all(rect.contains(button.mapTo(dialog, button.rect().bottomRight())) for button in buttons)
        )
    finally:
        qapp.setStyleSheet("")
        qapp.setFont(font)
        qapp.setPalette(palette)
