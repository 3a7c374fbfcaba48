"""No terminal colour is taken for another; bold is bold."""

from itertools import combinations

import pytest
from PySide6.QtGui import QColor, QFont

from ui.style.theme import DARK, LIGHT
from ui.transcript.style import TERMINAL_COLORS, RenderStyle, WordFormats


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_no_two_hues_are_alike(theme):
    hues = {name: QColor(color).hslHue() for name, color in TERMINAL_COLORS[theme.is_dark].items() if name != "grey"}
    for (one, first), (other, second) in combinations(hues.items(), 2):
        apart = abs(first - second)
        assert min(apart, 360 - apart) >= 25, (one, other)


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_kinds_become_formats(qapp, theme):
    inks = WordFormats(RenderStyle(theme, 100))
    green = QColor(TERMINAL_COLORS[theme.is_dark]["green"])
    assert inks["green"].foreground().color() == inks["bold green"].foreground().color() == green
    assert inks["bold"].fontWeight() == inks["bold green"].fontWeight() == QFont.Weight.Bold
    assert not inks["green"].hasProperty(inks["bold"].Property.FontWeight)
    assert not inks["bold"].hasProperty(inks["bold"].Property.ForegroundBrush)
    assert inks["keyword"].foreground().color() != green
