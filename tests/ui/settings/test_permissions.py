"""Rules that stand, and a call that is judged and never made."""

from datetime import UTC, datetime
from unittest.mock import MagicMock

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QFontInfo
from PySide6.QtWidgets import QComboBox, QLabel, QLineEdit, QPushButton

from desktop_agent.permissions.rule_proposals import BUNDLES, describe_rule
from desktop_agent.types.errors import Sentence
from desktop_agent.types.permissions import CommandPattern, Mode, Rule, RuleEffect, RuleScope
from ui.settings import permissions
from ui.settings.modes_form import ModeCard, ModeSettings
from ui.settings.permissions import RuleSettings
from ui.style.theme import ThemeSource

MADE = datetime(2026, 3, 1, 12, tzinfo=UTC)


def rule(id_="1", **changes):
    values = {
        "id": id_,
        "effect": RuleEffect.ALLOW,
        "tool": "run_command",
        "pattern": CommandPattern(words=("git", "push")),
        "scope": RuleScope.WORKSPACE,
        "workspace": "/work",
        "created_at": MADE,
    }
    return Rule(**{**values, **changes})


class Driver:
    def __init__(self, qtbot):
        self.revoked, self.dry_runs = [], []
        rules = MagicMock()
        rules.revoke = self.revoked.append
        rules.dry_run = lambda *args: self.dry_runs.append(args)
        self.form = RuleSettings(ThemeSource(), rules, lambda: "conversation")
        qtbot.addWidget(self.form)
        self.form.show()
        self.bot = qtbot

    @property
    def words(self):
        return [label.text() for label in self._visible(QLabel)]

    def buttons(self, name):
        return [button for button in self._visible(QPushButton) if button.accessibleName().startswith(name)]

    def _visible(self, kind):
        # What was added to a layout comes into sight in the next turn of the loop.
        self.bot.wait(20)
        return [widget for widget in self.form.findChildren(kind) if widget.isVisible()]

    def part(self, kind):
        return self.form.findChild(kind)


@pytest.fixture
def driver(qtbot):
    return Driver(qtbot)


def test_each_rule_says_what_where_who_and_when(driver):
    used = datetime(2026, 3, 2, 12, tzinfo=UTC)
    driver.form.show_rules([rule(), rule("2", effect=RuleEffect.DENY, scope=RuleScope.ALWAYS, last_used_at=used)])

    assert {"Allow", "Deny", "Everywhere", "Only in the folder /work"} <= set(driver.words)
    assert sum(text.startswith("commands that begin with “git push”") for text in driver.words) == 2
    assert any("never used" in text for text in driver.words)
    assert any("last used" in text for text in driver.words)


@pytest.mark.parametrize("width", [340, 900])
def test_every_command_of_a_rule_is_shown_and_none_is_cut(driver, width):
    words = [describe_rule(rule(pattern=bundle)) for bundle in BUNDLES]
    driver.form.resize(width, 900)
    driver.form.show_rules([rule(str(index), pattern=bundle) for index, bundle in enumerate(BUNDLES)])

    assert set(map(str, words)) <= set(driver.words)
    for bundle, rule_words in zip(BUNDLES, words, strict=True):
        label = next(label for label in driver.form.findChildren(QLabel) if label.text() == str(rule_words))
        assert all(" ".join(beginning) in label.text() for beginning in bundle.beginnings)
        assert label.height() >= label.heightForWidth(label.width())


def test_a_rule_is_taken_back_after_a_question(driver):
    driver.form.show_rules([rule("1"), rule("2")])

    for answer, revoked in (("Keep the rule", []), ("Really revoke the rule", ["2"])):
        driver.bot.mouseClick(driver.buttons("Revoke the rule")[1], Qt.MouseButton.LeftButton)
        driver.bot.mouseClick(driver.buttons(answer)[0], Qt.MouseButton.LeftButton)
        assert driver.revoked == revoked
    driver.form.show_rules([rule("1")])
    assert len(driver.buttons("Revoke the rule")) == 1


def test_what_a_rule_asks_stays_while_others_come_and_it_is_used(driver):
    driver.form.show_rules([rule("1")])
    driver.bot.mouseClick(driver.buttons("Revoke the rule")[0], Qt.MouseButton.LeftButton)
    (keep,) = driver.buttons("Keep the rule")
    keep.setFocus()
    driver.form.show_rules([rule("2"), rule("1", last_used_at=MADE)])

    assert len(driver.buttons("Revoke the rule")) == 2
    assert driver.buttons("Keep the rule") == [keep]
    assert driver.form.focusWidget() is keep
    assert any("last used" in text for text in driver.words)
    driver.bot.mouseClick(driver.buttons("Really revoke the rule")[0], Qt.MouseButton.LeftButton)
    assert driver.revoked == ["1"]


def test_without_rules_it_says_how_to_make_one(driver):
    driver.form.show_rules([rule()])
    driver.form.show_rules([])

    assert any("Always allow" in text for text in driver.words)


def test_of_thousands_of_rules_a_bounded_number_is_shown_and_the_oldest_can_be_revoked(driver):
    driver.form.show_rules([rule(str(number)) for number in range(permissions.MAX_CARDS + 7)])
    assert len(driver.buttons("Revoke the rule")) == permissions.MAX_CARDS

    (older,) = driver.buttons("Show older rules (7)")
    older.setFocus()
    driver.bot.keyClick(older, Qt.Key.Key_Space)
    assert len(driver.buttons("Revoke the rule")) == permissions.MAX_CARDS + 7
    assert not driver.buttons("Show older rules")
    assert driver.form.focusWidget() is driver.buttons("Revoke the rule")[permissions.MAX_CARDS]

    driver.bot.mouseClick(driver.buttons("Revoke the rule")[-1], Qt.MouseButton.LeftButton)
    driver.bot.mouseClick(driver.buttons("Really revoke the rule")[0], Qt.MouseButton.LeftButton)
    assert driver.revoked == [str(permissions.MAX_CARDS + 6)]


def test_a_tag_is_as_high_as_its_words_and_has_the_colour_that_it_has_in_a_mode(driver):
    effects = (RuleEffect.DENY, RuleEffect.ASK, RuleEffect.ALLOW)
    driver.form.resize(600, 900)
    driver.form.show_rules([rule(str(effect), effect=effect) for effect in effects])
    tags = [label for label in driver._visible(QLabel) if label.property("tag")]
    assert [tag.property("tag") for tag in tags] == ["risk", "caution", "safe"]
    assert [tag.height() for tag in tags] == [tag.sizeHint().height() for tag in tags]
    mode = Mode(name="mine", title="Mine", rules=tuple(Rule(effect=effect, tool="read_file") for effect in effects))
    page = ModeSettings()
    card = ModeCard(mode, page)
    for widget in (page, card):
        driver.bot.addWidget(widget)
    in_modes = [label.property("tag") for label in card.findChildren(QLabel) if label.property("tag")]
    assert in_modes == ["risk", "caution", "safe"]


def test_the_buttons_of_a_mode_are_below_its_name_where_there_is_no_room_beside_it(qtbot):
    page = ModeSettings()
    card = ModeCard(Mode(name="mine", title="Only the documents"), page)
    for widget in (page, card):
        qtbot.addWidget(widget)
    card.resize(260, 300)
    card.show()
    name = next(label for label in card.findChildren(QLabel) if label.text() == "Only the documents")
    buttons = card.findChildren(QPushButton)
    assert len(buttons) == 3
    qtbot.waitUntil(
        lambda: all(
            card.mapFromGlobal(button.mapToGlobal(QPoint())).y() > name.geometry().bottom() for button in buttons
        )
    )


def test_it_says_what_rules_are_and_how_a_call_is_tried(driver):
    driver.form.dry_run.show_tools(("read_file",))
    assert any(text.startswith("Rules decide about calls") for text in driver.words)
    assert any(text.endswith("Nothing is run.") for text in driver.words)
    field = driver.part(QLineEdit)
    assert field.accessibleDescription() in driver.words
    assert QFontInfo(field.font()).fixedPitch()


def test_a_call_is_judged(driver):
    driver.form.dry_run.show_tools(("read_file", "write_file"))
    driver.part(QComboBox).setCurrentText("Write a file")
    driver.part(QLineEdit).setText('{"path": "a.txt"}')
    driver.bot.mouseClick(driver.buttons("Check")[0], Qt.MouseButton.LeftButton)

    assert driver.dry_runs == [("conversation", "write_file", {"path": "a.txt"})]
    driver.form.dry_run.show_verdict(Sentence("You would be asked: {why}", {"why": Sentence("A rule.")}))
    assert "You would be asked: A rule." in driver.words


def test_what_is_no_json_object_is_said_and_not_judged(driver):
    driver.form.dry_run.show_tools(("read_file",))
    driver.part(QLineEdit).setText("[1]")
    driver.bot.keyClick(driver.part(QLineEdit), Qt.Key.Key_Return)

    assert driver.dry_runs == []
    assert any("JSON object" in text for text in driver.words)


def test_without_a_conversation_there_is_nothing_to_try(driver):
    driver.form.dry_run.show_tools(())

    assert not driver.part(QLineEdit).isVisible()
    assert any("Open a conversation" in text for text in driver.words)
