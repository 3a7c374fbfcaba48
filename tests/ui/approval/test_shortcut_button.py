"""A button and its key stand side by side, from whichever side one reads."""

import subprocess
import sys

import pytest
from PySide6.QtCore import QRect, Qt
from PySide6.QtWidgets import QHBoxLayout, QStyle, QWidget

from ui.approval.guarded_dialog import ShortcutButton
from ui.style.style_sheet import apply_theme
from ui.style.theme import DARK, LIGHT, STRONG_DARK, STRONG_LIGHT, ThemeSource

FROM_THE_RIGHT = Qt.LayoutDirection.RightToLeft


@pytest.fixture(params=[LIGHT, DARK, STRONG_LIGHT, STRONG_DARK], ids=lambda theme: theme.name)
def themes(request, qapp):
    font, palette, source = qapp.font(), qapp.palette(), ThemeSource(request.param)
    apply_theme(qapp, source)
    yield source
    qapp.setStyleSheet("")
    qapp.setFont(font)
    qapp.setPalette(palette)


def cap_of(button):
    """Return where its key is drawn."""
    room = QRect(button.width() - button._key_width() - 8, 0, button._key_width(), button.height())
    return QStyle.visualRect(button.layoutDirection(), button.rect(), room)


def differing(first, second, area):
    """Return in how many pixels of the area two pictures differ."""
    places = [(x, y) for x in range(area.left(), area.right() + 1) for y in range(area.top(), area.bottom() + 1)]
    return sum(first.pixel(x, y) != second.pixel(x, y) for x, y in places)


@pytest.mark.parametrize("kind", ["", "primary", "danger"])
@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("direction", [Qt.LayoutDirection.LeftToRight, FROM_THE_RIGHT])
def test_no_word_stands_under_the_key(qtbot, qapp, themes, direction, is_late, kind, request):
    # That of the program: texts are aligned by it, also in a window of another direction.
    request.addfinalizer(lambda: qapp.setLayoutDirection(Qt.LayoutDirection.LayoutDirectionAuto))
    window = QWidget()
    qtbot.addWidget(window)
    button = ShortcutButton(themes, "Deny and stop", "Shift+D", kind)
    if not is_late:
        qapp.setLayoutDirection(direction)
    QHBoxLayout(window).addWidget(button)
    window.show()
    qapp.setLayoutDirection(direction)
    qtbot.waitUntil(lambda: button.width() >= button.sizeHint().width())
    button._shows_key = False
    with_words = button.grab().toImage()
    button.setText("")
    without = button.grab().toImage()
    cap = cap_of(button)
    assert differing(with_words, without, cap) == 0
    assert differing(with_words, without, button.rect()) > 0


ENTER = """
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from ui.approval.guarded_dialog import ShortcutButton
from ui.style.theme import ThemeSource

app = QApplication([])
button = ShortcutButton(ThemeSource(), "Allow once", "A", "primary")
button.show()
QTest.qWaitForWindowExposed(button)
for name in ("Return", "Enter", "Space"):
    presses = []
    pressed = button.clicked.connect(lambda: presses.append(name))
    QTest.keyClick(button, Qt.Key[f"Key_{name}"])
    button.clicked.disconnect(pressed)
    print(name, len(presses))
"""


def test_enter_presses_it_on_no_desktop(real_display):
    # GNOME's theme counts Enter among the keys that press a button.
    environment = {**real_display, "XDG_CURRENT_DESKTOP": "GNOME"}
    command = [sys.executable, "-c", ENTER]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL
    )
    assert done.stdout.splitlines() == ["Return 0", "Enter 0", "Space 1"]
