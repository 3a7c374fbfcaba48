"""Why it is asked, trust in what came from outside, and the rules that may be made of a call."""

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton, QRadioButton

from desktop_agent.permissions.rule_proposals import BUNDLES, describe_rule
from desktop_agent.types.errors import Sentence
from desktop_agent.types.permissions import CommandsPattern, Rule, RuleEffect
from desktop_agent.types.tool_calls import AllowAlways, AllowOnce, CommandPreview
from tests.ui.approval.test_approval_dialog import MORE, Driver, call
from ui.bridge.permissions import RuleOffer

WORDS = Sentence("commands that begin with “{command}”", {"command": "git push"})
OFFERS = (RuleOffer("here", WORDS, "/work"), RuleOffer("always", WORDS))
TAINTED = (Sentence("Content from {outsider} came in.", {"outsider": "example.org"}),)


def press(driver, key, modifiers=Qt.KeyboardModifier.NoModifier):
    driver.bot.keyClick(driver.dialog, key, modifiers)


def choices(driver):
    return [button for button in driver.dialog.findChildren(QRadioButton) if button.isVisible()]


def button_named(driver, text):
    return next(button for button in driver.dialog.findChildren(QPushButton) if button.text() == text)


def test_a_rule_is_shown_before_it_is_granted(qtbot):
    driver = Driver(qtbot)
    driver.show(call(offers=OFFERS))

    press(driver, Qt.Key.Key_W, MORE)
    rule_buttons = choices(driver)
    assert [button.accessibleName() for button in rule_buttons] == [
        "commands that begin with “git push”. Only in conversations of the folder /work",
        "commands that begin with “git push”. In every conversation",
    ]
    grant = button_named(driver, "Allow and keep this rule")
    assert driver.decisions == []
    rule_buttons[1].click()
    grant.click()
    assert driver.decisions == [("call-1", AllowAlways(rule_id="always"))]


def test_the_narrowest_rule_is_chosen_and_said_to_be(qtbot):
    driver = Driver(qtbot)
    driver.show(call(offers=OFFERS))

    press(driver, Qt.Key.Key_W, MORE)
    assert [choice.isChecked() for choice in choices(driver)] == [True, False]
    first = choices(driver)[0].parentWidget()
    assert "Allows the least" in [label.text() for label in first.findChildren(QLabel)]
    assert driver.words.count("Allows the least") == 1
    button_named(driver, "Allow and keep this rule").click()
    assert driver.decisions == [("call-1", AllowAlways(rule_id="here"))]


def test_rules_stand_under_the_name_of_the_place_where_they_hold(qtbot):
    driver = Driver(qtbot)
    other = Sentence("exactly the command “{command}”", {"command": "git push"})
    driver.show(call(offers=(RuleOffer("exactly", other, "/work"), *OFFERS)))

    press(driver, Qt.Key.Key_W, MORE)
    rules = driver.dialog._rules.findChildren(QLabel)
    strong = [rule.text() for rule in rules if rule.property("kind") == "strong" and rule.isVisible()]
    assert strong == ["Only in conversations of the folder /work", "In every conversation"]


SEVERAL = Rule(effect=RuleEffect.ALLOW, tool="run_command", pattern=BUNDLES[0])
LONG = CommandsPattern(title="All of it", beginnings=tuple(("command", f"number-{number}") for number in range(12)))


@pytest.mark.parametrize("width", [420, 780])
def test_every_command_of_a_rule_is_shown_and_none_is_cut(qtbot, width):
    driver = Driver(qtbot)
    patterns = (BUNDLES[0], BUNDLES[1], LONG)
    words = [describe_rule(SEVERAL.model_copy(update={"pattern": pattern})) for pattern in patterns]
    driver.show(call(offers=tuple(RuleOffer(str(index), sentence, "/work") for index, sentence in enumerate(words))))
    driver.dialog.resize(width, 700)
    press(driver, Qt.Key.Key_W, MORE)
    qtbot.wait(50)

    for rule_words, choice, pattern in zip(words, choices(driver), patterns, strict=True):
        label = next(label for label in driver.dialog.findChildren(QLabel) if label.text() == str(rule_words))
        assert all(" ".join(beginning) in label.text() for beginning in pattern.beginnings)
        assert label.height() >= label.heightForWidth(label.width())
        assert all(" ".join(beginning) in choice.accessibleName() for beginning in pattern.beginnings)
        assert label.width() <= driver.dialog.width()


def test_a_rule_that_is_marked_is_seen_as_a_whole(qtbot):
    driver = Driver(qtbot)
    words = describe_rule(SEVERAL)
    driver.show(call(offers=tuple(RuleOffer(str(number), words, "/work") for number in range(6))))
    press(driver, Qt.Key.Key_W, MORE)
    qtbot.wait(50)

    for mark in (lambda button: button.setFocus(), lambda button: button.click()):
        for choice in (choices(driver)[-1], choices(driver)[0], choices(driver)[2]):
            mark(choice)
            row = choice.parentWidget()
            assert row.visibleRegion().boundingRect() == row.rect()


def test_escape_leaves_the_rules_and_not_the_dialog(qtbot):
    driver = Driver(qtbot)
    driver.show(call(offers=OFFERS))

    press(driver, Qt.Key.Key_W, MORE)
    qtbot.keyClick(choices(driver)[0], Qt.Key.Key_Escape)
    assert choices(driver) == []
    assert driver.dialog.isVisible()
    assert driver.postponed == []


def test_without_rules_there_is_nothing_to_choose(qtbot):
    driver = Driver(qtbot)
    driver.show(call())

    press(driver, Qt.Key.Key_W, MORE)
    assert choices(driver) == []


def test_of_edited_arguments_no_rule_is_made(qtbot):
    driver = Driver(qtbot)
    driver.show(call(offers=OFFERS))

    press(driver, Qt.Key.Key_W, MORE)
    press(driver, Qt.Key.Key_E)
    driver.dialog._arguments._editor.setPlainText('{"path": "a.txt", "content": "other"}')
    assert choices(driver) == []
    always = driver.part(QPushButton, "Always allow…")
    assert "from the original arguments" in always.toolTip()
    assert always.toolTip() in always.accessibleDescription()
    driver.dialog._bar.allow_always("here")
    assert driver.decisions == []


def test_a_rule_of_one_call_is_not_offered_for_the_next(qtbot):
    driver = Driver(qtbot)
    first, second = call(1, offers=OFFERS), call(2, tool="other")
    driver.show(first, second)

    press(driver, Qt.Key.Key_W, MORE)
    driver.dialog._show_approval(second.approval_id)
    assert choices(driver) == []


def test_the_reason_is_shown_and_read_to_a_screen_reader(qtbot):
    driver = Driver(qtbot)
    driver.show(call(reasons=TAINTED, untrusted_sources=("example.org",)))

    assert driver.dialog._reasons.accessible_text == "Content from example.org came in."
    assert "Content from example.org came in." in driver.dialog.accessibleDescription()


def test_what_came_from_outside_can_be_trusted(qtbot):
    driver = Driver(qtbot)
    trusted = []
    driver.dialog.trusted.connect(lambda: trusted.append(1))
    driver.show(call(reasons=TAINTED, untrusted_sources=("example.org",)))

    button_named(driver, "Trust example.org in this conversation").click()
    assert trusted == [1]
    assert driver.decisions == []


def test_a_click_that_was_on_its_way_trusts_nobody(qtbot):
    driver = Driver(qtbot, input_delay_ms=60_000)
    trusted = []
    driver.dialog.trusted.connect(lambda: trusted.append(1))
    driver.dialog.set_approvals([call(reasons=TAINTED, untrusted_sources=("example.org",))])
    driver.dialog.open()

    button_named(driver, "Trust example.org in this conversation").click()
    assert trusted == []


def test_other_reasons_offer_no_trust(qtbot):
    driver = Driver(qtbot)
    driver.show(call(reasons=(Sentence("A rule wants this to be asked."),)))

    buttons = [button for button in driver.dialog.findChildren(QPushButton) if button.isVisible()]
    assert not any("Trust" in button.text() for button in buttons)
    driver.dialog._bar.allow_once()
    assert driver.decisions == [("call-1", AllowOnce())]


def test_calls_of_one_tool_are_told_apart_in_the_list():
    preview = CommandPreview("git  status\n--short", "/", "")
    assert call(preview=preview).subject == "git status --short"
    assert replace(call(), preview=None).subject == "a.txt"


def test_what_is_always_asked_can_be_allowed_once_alone(qtbot):
    driver = Driver(qtbot)
    line = CommandPreview(
        "ls", "/work", "Not confined: it can do all. No sandbox.", language="powershell", problem="Bad }"
    )
    driver.show(call(preview=line, is_always_asked=True))

    for name in ("Allow for this conversation", "Always allow…"):
        assert not driver.button(name).isEnabled()
        assert driver.button(name).toolTip() == "You are asked about every call of this tool."
    press(driver, Qt.Key.Key_W, MORE)
    press(driver, Qt.Key.Key_C, MORE)
    driver.dialog.bar.allow_for_conversation()
    assert (choices(driver), driver.decisions) == ([], [])
    assert any("Not confined: it can do all." in text for text in driver.words)
    assert any("The shell cannot read this line: " in text and "Bad }" in text for text in driver.words)

    # The next call is offered what it may have.
    driver.show(call(is_always_asked=True), call(2, offers=OFFERS))
    driver.dialog.show_call("call-2")
    driver.settled()
    assert driver.button("Allow for this conversation").isEnabled()
    assert driver.button("Allow for this conversation").toolTip() != "You are asked about every call of this tool."
    driver.dialog.show_call("call-1")
    driver.settled()
    press(driver, Qt.Key.Key_A)
    assert driver.decisions == [("call-1", AllowOnce())]


def filled(driver):
    buttons = driver.dialog.findChildren(QPushButton)
    return [button.text() for button in buttons if button.isVisible() and button.property("kind") == "primary"]


def test_one_action_is_filled_at_a_time(qtbot):
    driver = Driver(qtbot)
    driver.show(call(offers=OFFERS))
    assert filled(driver) == ["Allow once"]
    press(driver, Qt.Key.Key_W, MORE)
    assert filled(driver) == ["Allow and keep this rule"]
    button_named(driver, "Cancel").click()
    assert filled(driver) == ["Allow once"]


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Enter])
def test_enter_neither_trusts_nor_makes_a_rule(qtbot, key):
    driver = Driver(qtbot)
    trusted = []
    driver.dialog.trusted.connect(lambda: trusted.append(1))
    driver.show(call(reasons=TAINTED, untrusted_sources=("example.org",), offers=OFFERS))
    press(driver, Qt.Key.Key_W, MORE)
    for name in ("Trust example.org in this conversation", "Allow and keep this rule"):
        qtbot.keyClick(driver.part(QPushButton, name), key)
    assert driver.decisions == trusted == []
    assert choices(driver) != []
