"""Specialists are written, checked, changed and removed."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QSpinBox,
    QWidget,
)

from desktop_agent.types.errors import Sentence
from desktop_agent.types.policies import Limits, Specialist
from desktop_agent.types.preferences import Preferences, SpecialistPreferences
from desktop_agent.types.providers import Endpoint, ModelInfo
from tests.ui.settings.sources import recorded_sources
from ui.bridge.model_servers import ModelGroup
from ui.bridge.settings import AvailableTool, ToolGroup
from ui.settings.settings_dialog import SettingsDialog
from ui.settings.specialists_form import SpecialistSettings
from ui.style.theme import ThemeSource

REVIEWER = Specialist(
    name="reviewer",
    description="Reads code",
    system_prompt="You review.",
    mode="plan",
    tools=("read_file",),
    limits=Limits(tokens=5000, turns=7, seconds=100.25, cost=0.125),
    share=0.333,
)
BUILT_IN = ToolGroup(
    "",
    (
        AvailableTool("read_file", "Reads", False, "read_file"),
        AvailableTool("write_file", "Writes", True, "write_file"),
    ),
)
SERVED = ToolGroup("Tickets", (AvailableTool("t__find", "Finds", False, ""),))
STUDIO = ModelGroup(
    Endpoint(id="s", title="Studio", base_url="http://127.0.0.1:9/v1"), (ModelInfo("large"), ModelInfo("small"))
)
SILENT = ModelGroup(Endpoint(id="q", title="Quiet", base_url="http://127.0.0.1:8/v1"), (), Sentence("It is off."))


class Driver:
    """The page alone: the whole dialog takes several times as long to build."""

    def __init__(self, qtbot):
        self.bot = qtbot
        self.saved = []
        self.form = self.build()
        self.form.show_tools((BUILT_IN, SERVED))
        self.form.show_models([STUDIO, SILENT])
        qtbot.addWidget(self.form.window())
        self.form.window().show()

    def build(self):
        form = SpecialistSettings()
        form.changed.connect(self.saved.append)
        form.show_items((REVIEWER,))
        form.resize(560, 640)
        return form

    def part(self, kind, name):
        widgets = self.form.findChildren(kind)
        return next((widget for widget in widgets if widget.accessibleName() == name and widget.isVisible()), None)

    def click(self, name):
        button = self.part(QPushButton, name)
        # Until what was just laid out has its place.
        self.bot.waitUntil(lambda: button.height() > 0)
        self.bot.mouseClick(button, Qt.MouseButton.LeftButton)

    def tick(self, name):
        self.part(QCheckBox, name).click()

    @property
    def tools(self):
        boxes = [box for box in self.form.findChildren(QCheckBox) if box.isVisible()]
        return {box.accessibleName(): box.isChecked() for box in boxes}

    @property
    def models(self):
        menu = self.part(QComboBox, "Model")
        return [menu.itemText(row) for row in range(menu.count())]

    def choose_model(self, words):
        self.part(QComboBox, "Model").setCurrentIndex(self.models.index(words))

    def type(self, name, text):
        field = self.part(QWidget, name)
        field.setFocus()
        QTest.keyClicks(field, text)

    def write(self, **fields):
        for name, text in fields.items():
            field = self.part(QPlainTextEdit if name == "Instructions" else QLineEdit, name)
            field.setPlainText(text) if name == "Instructions" else field.setText(text)

    @property
    def words(self):
        return [label.text() for label in self.form.findChildren(QLabel) if label.isVisible()]


class DialogDriver(Driver):
    """The page in the dialog."""

    def build(self):
        sources = recorded_sources(Preferences(specialists=SpecialistPreferences(defined=(REVIEWER,))))
        sources.settings.change = lambda preferences: self.saved.append(preferences.specialists.defined)
        self.dialog = SettingsDialog(ThemeSource(), sources)
        self.dialog.show_page("specialists")
        return self.dialog.specialists


@pytest.fixture
def driver(qtbot):
    return Driver(qtbot)


def test_each_is_shown_with_what_it_may_use(driver):
    facts = "Tools: Read a file · Budget: 33 % · At most 5k tokens · At most $0.12 · At most 1.67 min"
    assert {"reviewer", "Reads code", facts} <= set(driver.words)


def test_a_new_one_is_written(driver):
    driver.click("Add specialist…")
    assert driver.part(QLineEdit, "Name").hasFocus()
    driver.write(Name="researcher", Description="Looks up", Instructions="You look up.")
    driver.choose_model("small")
    driver.tick("Find (t)")
    driver.tick("Read a file")
    driver.tick("Write a file – may change something")
    driver.tick("Write a file – may change something")
    assert "2 chosen. It never has more tools than its caller." in driver.words
    driver.part(QSpinBox, "Share of the budget").setValue(25)
    driver.part(QSpinBox, "Token limit").setValue(9000)
    driver.part(QDoubleSpinBox, "Cost limit").setValue(1.5)
    driver.part(QDoubleSpinBox, "Time limit").setValue(2.5)
    driver.part(QSpinBox, "Turn limit").setValue(12)
    driver.click("Save")
    specialist = Specialist(
        name="researcher",
        description="Looks up",
        system_prompt="You look up.",
        model="small",
        tools=("t__find", "read_file"),
        share=0.25,
        limits=Limits(tokens=9000, cost=1.5, seconds=150, turns=12),
    )
    assert driver.saved == [(REVIEWER, specialist)]
    assert "researcher" in driver.words
    assert driver.part(QLineEdit, "Name") is None


def test_the_models_that_servers_listed_are_offered_and_another_by_its_name(driver):
    driver.click("Edit reviewer")
    assert driver.models == ["Same as its caller", "Studio", "large", "small", "Another model…"]
    driver.choose_model("Another model…")
    driver.click("Save")
    assert "Write the name of the model, or choose one from the list." in driver.words
    driver.type("Name of the model", "tiny")
    # A list that comes meanwhile changes nothing of what is written.
    driver.form.show_models([SILENT])
    driver.click("Save")
    assert driver.saved[-1][0].model == "tiny"
    driver.click("Edit reviewer")
    assert driver.models == ["Same as its caller", "tiny (not listed)", "Another model…"]
    assert driver.part(QComboBox, "Model").currentText() == "tiny (not listed)"
    driver.choose_model("Same as its caller")
    driver.click("Save")
    assert driver.saved[-1][0].model is None


def test_tools_that_are_not_known_now_stay_and_are_marked(driver):
    driver.form.show_tools((SERVED,))
    driver.click("Edit reviewer")
    assert driver.tools == {"Find (t)": False, "Read a file": True}
    assert "Not available now; the caller must have them" in driver.words
    driver.tick("Read a file")
    driver.tick("Find (t)")
    # It is there still, for who slipped; and what comes late finds what is ticked.
    assert driver.tools == {"Find (t)": True, "Read a file": False}
    driver.form.show_tools((BUILT_IN, SERVED))
    assert driver.tools == {"Read a file": False, "Write a file – may change something": False, "Find (t)": True}
    driver.click("Save")
    assert driver.saved[-1][0].tools == ("t__find",)


def test_of_many_tools_one_is_looked_for(driver):
    many = ToolGroup("Many", tuple(AvailableTool(f"m__{number}", "", False, "") for number in range(30)))
    driver.form.show_tools((BUILT_IN, many))
    driver.click("Add specialist…")
    driver.type("Find a tool", "WRITE")
    assert list(driver.tools) == ["Write a file – may change something"]
    assert "Many" not in driver.words
    driver.tick("Write a file – may change something")
    driver.part(QLineEdit, "Find a tool").clear()
    assert len(driver.tools) == 32
    assert driver.tools["Write a file – may change something"]


def test_what_is_not_shown_stays_when_one_is_changed(driver):
    driver.click("Edit reviewer")
    driver.write(Description="Reads all code")
    driver.click("Save")
    assert driver.saved == [(REVIEWER.model_copy(update={"description": "Reads all code"}),)]


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
    driver.click("Add specialist…")
    driver.write(**{"Name": "x", "Description": "d", "Instructions": "i", **fields})
    driver.click("Save")
    assert driver.saved == []
    assert words in " ".join(driver.words)
    assert driver.part(QPlainTextEdit if field == "Instructions" else QLineEdit, field).property("invalid") == "true"


def test_what_is_wrong_is_said_as_one_types_and_not_before(driver):
    driver.click("Add specialist…")
    assert "begins with a letter" not in " ".join(driver.words)
    driver.type("Name", "two ")
    assert "begins with a letter" not in " ".join(driver.words)
    driver.type("Name", "words")
    assert "begins with a letter" in " ".join(driver.words)
    # Of what was not touched yet, nothing is said.
    assert "Write one." not in " ".join(driver.words)
    driver.part(QLineEdit, "Name").clear()
    driver.type("Name", "words")
    assert "begins with a letter" not in " ".join(driver.words)


def test_escape_leaves_everything_as_it_was(qtbot):
    driver = DialogDriver(qtbot)
    driver.click("Edit reviewer")
    driver.write(Description="other")
    driver.bot.keyClick(driver.part(QLineEdit, "Description"), Qt.Key.Key_Escape)
    assert driver.dialog.isVisible()
    assert "Reads code" in driver.words
    assert driver.saved == []


def test_one_is_removed_and_put_back(driver):
    driver.click("Remove reviewer")
    assert driver.saved == [()]
    assert "There is no specialist yet." in driver.words
    assert "The specialist “reviewer” is removed. No conversation uses it from its next prompt on." in driver.words
    driver.click("Undo")
    assert driver.saved[-1] == (REVIEWER,)
    assert driver.part(QPushButton, "Undo") is None


def test_what_comes_back_meanwhile_leaves_what_is_being_written(qtbot):
    driver = DialogDriver(qtbot)
    driver.click("Add specialist…")
    driver.write(Name="half")
    driver.dialog.set_preferences(driver.dialog._preferences.model_copy())
    assert driver.part(QLineEdit, "Name").text() == "half"


def test_what_is_being_written_outlives_what_is_done_to_other_specialists(driver):
    other = REVIEWER.model_copy(update={"name": "other"})
    driver.form.show_items([REVIEWER, other])
    driver.click("Edit reviewer")
    assert driver.part(QWidget, "Specialist editor") is not None
    driver.part(QPlainTextEdit, "Instructions").setPlainText("You look.")
    assert not driver.part(QPushButton, "Edit other").isEnabled()
    assert driver.part(QPushButton, "Add specialist…") is None
    driver.form.edit("other")
    driver.click("Remove other")
    assert driver.saved[-1] == (REVIEWER,)
    driver.form.show_items([other, REVIEWER])
    assert driver.part(QPlainTextEdit, "Instructions").toPlainText() == "You look."
    driver.click("Save")
    assert [(specialist.name, specialist.system_prompt) for specialist in driver.saved[-1]] == [
        ("other", "You review."),
        ("reviewer", "You look."),
    ]
    assert driver.part(QPushButton, "Edit other").isEnabled()
    assert driver.part(QPushButton, "Add specialist…") is not None


def test_a_menu_of_models_that_is_open_stays_while_they_are_listed_again(driver, qt_messages):
    qt_messages.expect("grabbing the keyboard")
    driver.click("Edit reviewer")
    menu = driver.part(QComboBox, "Model")
    menu.showPopup()
    menu.view().setCurrentIndex(menu.model().index(menu.findData("small"), 0))
    driver.form.show_models([STUDIO, SILENT])
    QTest.keyClick(menu.view(), Qt.Key.Key_Return)
    assert menu.currentText() == "small"
