"""Specialists are written, checked, changed and removed."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDoubleSpinBox, QLabel, QLineEdit, QPlainTextEdit, QPushButton, QSpinBox

from desktop_agent.vocabulary.conduct.limits import Limits
from desktop_agent.vocabulary.conduct.specialists import Specialist
from desktop_agent.vocabulary.preferences import Preferences, Specialists
from ui.look.theme import ThemeSource
from ui.preferences.settings_dialog import SettingsDialog

REVIEWER = Specialist(
    name="reviewer",
    description="Reads code",
    system_prompt="You review.",
    mode="plan",
    tools=("read_file",),
    limits=Limits(tokens=5000, turns=7),
)


class Driver:
    def __init__(self, qtbot):
        self.bot = qtbot
        self.dialog = SettingsDialog(ThemeSource(), Preferences(specialists=Specialists(defined=(REVIEWER,))))
        qtbot.addWidget(self.dialog)
        self.said = []
        self.dialog.preferences_changed.connect(lambda each: self.said.append(each.specialists.defined))
        self.dialog.open_specialists()
        self.dialog.show()

    def part(self, kind, name):
        inside = self.dialog.specialists.findChildren(kind)
        return next((each for each in inside if each.accessibleName() == name and each.isVisible()), None)

    def click(self, name):
        self.bot.mouseClick(self.part(QPushButton, name), Qt.MouseButton.LeftButton)

    def write(self, **fields):
        for name, text in fields.items():
            field = self.part(QPlainTextEdit if name == "Instructions" else QLineEdit, name)
            field.setPlainText(text) if name == "Instructions" else field.setText(text)

    @property
    def words(self):
        return [each.text() for each in self.dialog.specialists.findChildren(QLabel) if each.isVisible()]


@pytest.fixture
def driver(qtbot):
    return Driver(qtbot)


def test_each_is_shown_with_what_it_may_use(driver):
    assert {"reviewer", "Reads code", "Tools: read_file · Budget: 50 % · At most 5k tokens"} <= set(driver.words)


def test_a_new_one_is_written(driver):
    driver.click("Add specialist…")
    assert driver.part(QLineEdit, "Name").hasFocus()
    driver.write(Name="researcher", Description="Looks up", Instructions="You look up.", Model="m2")
    driver.write(Tools="fetch_page, read_file")
    driver.part(QSpinBox, "Share of the budget").setValue(25)
    driver.part(QSpinBox, "Most tokens").setValue(9000)
    driver.part(QDoubleSpinBox, "Most cost").setValue(1.5)
    driver.click("Save")
    made = Specialist(
        name="researcher",
        description="Looks up",
        system_prompt="You look up.",
        model="m2",
        tools=("fetch_page", "read_file"),
        share=0.25,
        limits=Limits(tokens=9000, cost=1.5),
    )
    assert driver.said == [(REVIEWER, made)]
    assert "researcher" in driver.words
    assert driver.part(QLineEdit, "Name") is None


def test_what_is_not_shown_stays_when_one_is_changed(driver):
    driver.click("Edit reviewer")
    driver.write(Description="Reads all code")
    driver.click("Save")
    assert driver.said == [(REVIEWER.model_copy(update={"description": "Reads all code"}),)]


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"Name": "two words"}, "Name", "begins with a letter"),
        ({"Name": "réviseur"}, "Name", "begins with a letter"),
        ({"Name": ""}, "Name", "begins with a letter"),
        ({"Name": "reviewer"}, "Name", "Another specialist or tool"),
        ({"Name": "ask_user"}, "Name", "Another specialist or tool"),
        ({"Name": "read_file"}, "Name", "Another specialist or tool"),
        ({"Description": " "}, "Description", "Write one"),
        ({"Instructions": " "}, "Instructions", "needs instructions"),
    ],
)
def test_what_cannot_be_saved_is_said_where_it_is(driver, fields, field, words):
    driver.dialog.specialists.show_tools(("read_file",))
    driver.click("Add specialist…")
    driver.write(**{"Name": "x", "Description": "d", "Instructions": "i", **fields})
    driver.click("Save")
    assert driver.said == []
    assert words in " ".join(driver.words)
    assert driver.part(QPlainTextEdit if field == "Instructions" else QLineEdit, field).property("invalid") == "true"


def test_escape_leaves_everything_as_it_was(driver):
    driver.click("Edit reviewer")
    driver.write(Description="other")
    driver.bot.keyClick(driver.part(QLineEdit, "Description"), Qt.Key.Key_Escape)
    assert driver.dialog.isVisible()
    assert "Reads code" in driver.words
    assert driver.said == []


def test_one_is_removed(driver):
    driver.click("Remove reviewer")
    assert driver.said == [()]
    assert "There is no specialist yet." in driver.words


def test_what_comes_back_meanwhile_leaves_what_is_being_written(driver):
    driver.click("Add specialist…")
    driver.write(Name="half")
    driver.dialog.set_preferences(driver.dialog._preferences.model_copy())
    assert driver.part(QLineEdit, "Name").text() == "half"
