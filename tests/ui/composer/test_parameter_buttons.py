"""The switch for reasoning: what it offers for which model."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMenu

from desktop_agent.types.providers import (
    Capabilities,
    ReasoningAdaptive,
    ReasoningBetweenTools,
    ReasoningBudget,
    ReasoningDisabled,
    ReasoningEffort,
)
from ui.composer.parameter_buttons import ReasoningPicker, is_unsupported, reasoning_choices
from ui.style.theme import ThemeSource

MAX = ReasoningEffort(level="max")
ALL = Capabilities(
    reasoning=True,
    reasoning_modes=frozenset({"disabled", "between_tools", "effort", "adaptive"}),
    efforts=("low", "high", "xhigh", "max"),
    default_effort="high",
)
FORCED = Capabilities(reasoning_modes=frozenset({"effort"}), efforts=("minimal", "medium"), reasons_by_default=True)
BUDGETS = Capabilities(
    reasoning_modes=frozenset({"disabled", "budget"}), budget=(1024, 16_384), reasons_by_default=False
)


def words(capabilities, current=None):
    return [choice.text for choice in reasoning_choices(capabilities, current)]


def test_the_choices_are_those_of_the_model():
    assert words(ALL) == ["Default", "Off", "Between tools", "Low", "High", "Very high", "Maximum", "Adaptive"]
    assert words(FORCED) == ["Default", "Minimal", "Medium"]
    assert words(BUDGETS) == ["Default", "Off", "Up to 2,048 tokens", "Up to 8,192 tokens", "Up to 16,384 tokens"]
    assert [choice.hint for choice in reasoning_choices(ALL, None)][:2] == ["High", ""]
    assert reasoning_choices(BUDGETS, None)[0].hint == "Off"


def test_nothing_is_offered_where_nothing_can_be_chosen():
    assert words(Capabilities(reasoning=False)) == []
    assert words(Capabilities(reasoning=True, reasoning_modes=frozenset())) == []


@pytest.mark.parametrize("able", [Capabilities(), Capabilities(reasoning=True)])
def test_of_an_unknown_model_the_usual_is_offered(able):
    assert words(able) == ["Default", "Off", "Low", "Medium", "High"]
    assert words(able, MAX) == ["Default", "Off", "Low", "Medium", "High", "Maximum"]
    assert not is_unsupported(able, MAX)


@pytest.mark.parametrize(
    ("able", "choice", "lacking"),
    [
        (ALL, None, False),
        (ALL, MAX, False),
        (ALL, ReasoningAdaptive(), False),
        (ALL, ReasoningEffort(level="medium"), True),
        (FORCED, ReasoningDisabled(), True),
        (FORCED, ReasoningBetweenTools(), True),
        (BUDGETS, ReasoningBudget(tokens=5000), False),
        (BUDGETS, ReasoningBudget(tokens=50_000), True),
        (ALL, ReasoningBudget(tokens=5000), True),
        (Capabilities(reasoning=False), ReasoningDisabled(), True),
        (Capabilities(reasoning=False), None, False),
    ],
)
def test_what_a_model_lacks(able, choice, lacking):
    assert is_unsupported(able, choice) is lacking


@pytest.fixture
def switch(qtbot):
    picker = ReasoningPicker(ThemeSource())
    qtbot.addWidget(picker)
    picker.show_choices(ALL, MAX)
    picker.resize(picker.sizeHint())
    return picker


def test_the_switch_is_named_and_says_what_holds(switch):
    assert switch.accessibleName() == "Reasoning"
    assert switch.text().strip() == "Maximum"
    assert switch.accessibleDescription() == "Maximum"
    assert "Ctrl+Shift+R" in switch.toolTip()
    switch.show_choices(ALL, None)
    assert switch.accessibleDescription() == "Default (High)"
    assert switch.text().strip() == "Reasoning"
    switch.show_choices(Capabilities(reasoning=False), None)
    assert switch.isHidden()


def test_a_choice_is_made_by_keyboard(switch, qtbot, qt_messages):
    qt_messages.expect("grabbing the keyboard")
    qtbot.mouseClick(switch, Qt.MouseButton.LeftButton)
    menu = switch.findChild(QMenu)
    assert [action.text() for action in menu.actions() if action.isChecked()] == ["Maximum"]
    with qtbot.waitSignal(switch.reasoning_chosen) as signal:
        qtbot.keyClick(menu, Qt.Key.Key_Down)
        qtbot.keyClick(menu, Qt.Key.Key_Return)
    assert signal.args == [ReasoningAdaptive()]
    switch.open_menu()
    with qtbot.waitSignal(switch.reasoning_chosen) as signal:
        menu.actions()[0].trigger()
    assert signal.args == [None]
    menu.close()


def test_without_room_the_words_go_and_come_back(switch):
    whole = switch.sizeHint()
    switch.show()
    switch.resize(switch.minimumSizeHint())
    assert switch.toolButtonStyle() == Qt.ToolButtonStyle.ToolButtonIconOnly
    assert abs(switch.sizeHint().width() - whole.width()) < 12
    switch.resize(switch.sizeHint())
    assert switch.toolButtonStyle() == Qt.ToolButtonStyle.ToolButtonTextBesideIcon
