"""Modes are written, copied, checked as one types, changed, removed and put back."""

from datetime import timedelta

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QComboBox,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QRadioButton,
    QScrollArea,
    QWidget,
)

from desktop_agent.types.messages import now
from desktop_agent.types.permissions import (
    PLAN_MODE,
    ArgumentsPattern,
    CommandPattern,
    HostPattern,
    Mode,
    PathPattern,
    Rule,
    RuleEffect,
    RuleScope,
)
from desktop_agent.types.preferences import MAX_MODES, ModePreferences, Preferences
from tests.ui.settings.sources import recorded_sources
from ui.bridge.settings import AvailableTool, ToolGroup
from ui.settings.modes_form import ModeSettings
from ui.settings.rule_editor import EFFECTS, RuleEditor
from ui.settings.settings_dialog import SettingsDialog
from ui.style.theme import ThemeSource

NO_NETWORK = Rule(id="n", effect=RuleEffect.DENY, tool="fetch_page", scope=RuleScope.ALWAYS, origin="a mode")
CAREFUL = Mode(name="careful", title="Careful", mutating="deny", addendum="Look twice.", rules=(NO_NETWORK,))
BUILT_IN = ToolGroup(
    "",
    (
        AvailableTool("read_file", "Reads", False, "read_file"),
        AvailableTool("run_command", "Runs", True, "run_command"),
    ),
)
SERVED = ToolGroup(
    "Tickets", (AvailableTool("t__find", "Finds", False, "t__find @ 0f"), AvailableTool("t__close", "Closes", True, ""))
)


class Driver:
    """The page alone: the whole dialog takes several times as long to build."""

    def __init__(self, qtbot, *modes):
        self.bot = qtbot
        self.saved = []
        self.form = self.build(modes)
        self.form.show_tools((BUILT_IN, SERVED))
        qtbot.addWidget(self.form.window())
        self.form.window().show()

    def build(self, modes):
        form = ModeSettings()
        form.changed.connect(self.saved.append)
        form.show_items(modes)
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

    def type(self, name, text):
        field = self.part(QWidget, name)
        field.setFocus()
        QTest.keyClicks(field, text)

    def pick(self, name, words):
        box = self.part(QComboBox, name)
        index = box.findText(words)
        assert index >= 0, [box.itemText(row) for row in range(box.count())]
        box.setCurrentIndex(index)

    def rule(self, effect, tool, about="With any arguments", text=""):
        self.click("Add rule…")
        self.pick("Decision about the calls", effect)
        self.pick("Tool", tool)
        self.pick("Applies to", about)
        if text:
            self.type("Folder, host or command", text)

    @property
    def words(self):
        return [label.text() for label in self.form.findChildren(QLabel) if label.isVisible() and label.text()]


class DialogDriver(Driver):
    """The page in the dialog."""

    def build(self, modes):
        sources = recorded_sources(Preferences(modes=ModePreferences(defined=modes)))
        sources.settings.change = lambda preferences: self.saved.append(preferences.modes.defined)
        self.dialog = SettingsDialog(ThemeSource(), sources)
        self.dialog.show_page("modes")
        return self.dialog.modes


@pytest.fixture
def driver(qtbot):
    return Driver(qtbot, CAREFUL)


def test_each_says_what_happens_in_it_with_its_rules_word_for_word(driver):
    assert {"Plan", "Nothing is changed", "Accept edits", "Changes files without asking"} <= set(driver.words)
    assert {"Careful", "Look twice.", "Deny", "“Read a web page” with any arguments"} <= set(driver.words)
    assert driver.part(QPushButton, "Remove Plan") is None


def test_a_new_one_is_written_with_a_rule(driver):
    driver.click("Add mode…")
    driver.type("Name", "No pushing!")
    assert driver.part(QLineEdit, "Short name").text() == "no-pushing"
    driver.part(QRadioButton, "Files change without asking; the rest is asked about").click()
    driver.type("Instructions", "Never push.")
    driver.rule("Deny", "Run a command", "Commands that begin with", "git push")
    assert "Deny: commands that begin with “git push”" in driver.words
    save = driver.part(QPushButton, "Save")
    assert [driver.part(QPushButton, "Add rule").property("kind"), save.property("kind")] == ["primary", ""]
    driver.click("Add rule")
    assert save.property("kind") == "primary"
    driver.click("Save")
    ((existing, new_mode),) = driver.saved
    (rule,) = new_mode.rules
    assert existing == CAREFUL
    assert (new_mode.name, new_mode.title, new_mode.mutating, new_mode.addendum) == (
        "no-pushing",
        "No pushing!",
        "accept_edits",
        "Never push.",
    )
    assert (rule.effect, rule.tool, rule.pattern, rule.scope, rule.origin) == (
        RuleEffect.DENY,
        "run_command",
        CommandPattern(words=("git", "push")),
        RuleScope.ALWAYS,
        "a mode",
    )
    assert "No pushing!" in driver.words


@pytest.mark.parametrize(
    ("about", "text", "pattern"),
    [
        ("With any arguments", "", None),
        ("With files in the folder", "/usr/share/../share/", PathPattern(prefix="/usr/share")),
        ("With the host", "https://Docs.Example.org:8080/page", HostPattern(host="docs.example.org")),
        ("With the host", "*.example.org", HostPattern(host="*.example.org")),
        ("With the host", "bücher.example", HostPattern(host="xn--bcher-kva.example")),
        ("Exactly the command", "make 'all tests'", CommandPattern(words=("make", "all tests"), exact=True)),
    ],
)
def test_what_a_rule_is_about(driver, about, text, pattern):
    driver.click("Edit Careful")
    driver.rule("Ask", "Run a command", about)
    if text:
        driver.part(QLineEdit, "Folder, host or command").setText(text)
    driver.click("Add rule")
    driver.click("Save")
    assert driver.saved[-1][0].rules[1].pattern == pattern


@pytest.mark.parametrize(
    ("about", "text", "words"),
    [
        ("With files in the folder", "notes", "full path"),
        ("With the host", "not a host", "name of a host"),
        ("Commands that begin with", "echo 'a", "no end"),
        ("Commands that begin with", "", "first words"),
    ],
)
def test_what_is_no_rule_is_said(driver, about, text, words):
    driver.click("Edit Careful")
    driver.rule("Deny", "Run a command", about, text)
    assert (words in " ".join(driver.words)) is bool(text)
    driver.click("Add rule")
    assert words in " ".join(driver.words)
    # And the mode is not kept without it as if it had never been written.
    driver.click("Save")
    assert "A rule is not finished. Add it, or cancel it." in driver.words
    assert driver.saved == []
    driver.click("Cancel rule")
    driver.click("Save")
    assert driver.saved == [(CAREFUL,)]


def test_what_is_allowed_of_a_server_is_the_tool_as_it_is_and_what_is_denied_whatever_it_becomes(driver):
    driver.click("Edit Careful")
    for effect, tool in (("Allow", "Find (t)"), ("Deny", "Find (t)"), ("Ask", "Every tool")):
        driver.rule(effect, tool)
        driver.click("Add rule")
    driver.rule("Allow", "Close (t)")
    assert "is not running" in " ".join(driver.words)
    driver.click("Cancel rule")
    driver.click("Save")
    assert [rule.tool for rule in driver.saved[-1][0].rules] == ["fetch_page", "t__find @ 0f", "t__find", "*"]
    assert "every tool with any arguments" in driver.words


def test_a_rule_that_is_changed_is_another_rule_and_one_can_be_removed(driver):
    driver.click("Edit Careful")
    driver.click("Change the rule: “Read a web page” with any arguments")
    # It is not known here, and stays.
    assert driver.part(QComboBox, "Tool").currentText() == "Read a web page (not here now)"
    driver.pick("Decision about the calls", "Ask")
    driver.click("Change rule")
    driver.click("Save")
    (rule,) = driver.saved[-1][0].rules
    assert (rule.effect, rule.tool) == (RuleEffect.ASK, "fetch_page")
    assert rule.id != NO_NETWORK.id
    driver.click("Edit Careful")
    driver.click("Remove the rule: “Read a web page” with any arguments")
    driver.click("Save")
    assert driver.saved[-1][0].rules == ()


def test_a_rule_that_cannot_be_written_here_is_shown_and_stays(qtbot):
    digest = Rule(effect=RuleEffect.ALLOW, tool="a", pattern=ArgumentsPattern(digest="0"), scope=RuleScope.ALWAYS)
    driver = Driver(qtbot, CAREFUL.model_copy(update={"rules": (digest,)}))
    driver.click("Edit Careful")
    words = "a with exactly these arguments"
    assert driver.part(QPushButton, f"Change the rule: {words}") is None
    assert driver.part(QPushButton, f"Remove the rule: {words}") is not None
    driver.click("Save")
    assert driver.saved[-1][0].rules == (digest,)


def test_what_is_wrong_is_said_as_one_types_and_not_before(driver):
    driver.click("Add mode…")
    assert not any("short name" in text and "has small letters" in text for text in driver.words)
    driver.type("Short name", "Bad")
    assert any("has small letters" in text for text in driver.words)
    driver.part(QLineEdit, "Short name").clear()
    driver.type("Short name", "careful")
    assert "Another mode has this short name. Choose another one." in driver.words
    driver.click("Save")
    assert "A mode needs a name. Write one." in driver.words
    assert driver.part(QLineEdit, "Name").hasFocus()
    assert driver.saved == []


@pytest.mark.parametrize("title", ["CAREFUL", "plan"])
def test_no_two_have_one_name(driver, title):
    driver.click("Add mode…")
    driver.type("Name", title)
    assert "Another mode has this name. Choose another one." in driver.words
    driver.click("Save")
    assert driver.saved == []
    driver.type("Name", " too")
    driver.click("Save")
    assert [mode.title for mode in driver.saved[-1]] == ["Careful", f"{title} too"]


def test_copies_are_numbered_and_one_keeps_its_name_when_edited(driver):
    for _ in range(3):
        driver.click("Copy Careful")
        driver.click("Save")
    driver.click("Edit Careful")
    driver.click("Save")
    titles = ["Careful", "Careful (copy)", "Careful (copy) 2", "Careful (copy) 3"]
    assert [mode.title for mode in driver.saved[-1]] == titles


def test_the_short_name_of_one_that_is_there_stays(driver):
    driver.click("Edit Careful")
    assert not driver.part(QLineEdit, "Short name").isEnabled()
    driver.type("Name", "Slow")
    driver.click("Save")
    assert [(specialist.name, specialist.title) for specialist in driver.saved[-1]] == [("careful", "Slow")]


def test_copies_begin_as_the_other_is(driver):
    driver.click("Copy Plan")
    assert driver.part(QPlainTextEdit, "Instructions").toPlainText() == PLAN_MODE.addendum
    driver.click("Save")
    driver.click("Copy Careful")
    driver.click("Save")
    plan, careful = driver.saved[-1][1:]
    assert (plan.name, plan.title, plan.mutating) == ("plan-copy", "Plan (copy)", "deny")
    assert careful == CAREFUL.model_copy(update={"name": "careful-copy", "title": "Careful (copy)"})
    # Two copies of one are two modes.
    driver.click("Copy Plan")
    driver.click("Save")
    assert driver.saved[-1][-1].name == "plan-copy-2"


def test_what_is_copied_from_the_top_of_the_page_is_in_sight_where_it_is_written(qtbot):
    driver = DialogDriver(qtbot, *(Mode(name=f"m{number}", title=f"M{number}") for number in range(9)))
    driver.click("Copy Plan")
    page = next(area for area in driver.dialog.findChildren(QScrollArea) if area.isVisible())
    title = driver.part(QLineEdit, "Name")
    qtbot.waitUntil(lambda: page.viewport().rect().contains(title.mapTo(page.viewport(), title.rect().center())))


def test_one_is_removed_and_put_back_where_it_was(qtbot):
    other = Mode(name="other", title="Other")
    driver = Driver(qtbot, CAREFUL, other)
    driver.click("Remove Careful")
    assert driver.saved == [(other,)]
    assert "The mode “Careful” is removed. Conversations that used it now ask you more often." in driver.words
    driver.click("Undo")
    assert driver.saved[-1] == (CAREFUL, other)
    assert driver.part(QPushButton, "Undo") is None
    driver.click("Remove Careful")
    driver.click("Copy Plan")
    driver.click("Save")
    # Something else was done since.
    assert driver.part(QPushButton, "Undo") is None


def test_escape_leaves_everything_as_it_was(qtbot):
    driver = DialogDriver(qtbot, CAREFUL)
    driver.click("Edit Careful")
    driver.click("Add rule…")
    QTest.keyClick(driver.part(QComboBox, "Decision about the calls"), Qt.Key.Key_Escape)
    assert driver.part(QLineEdit, "Name") is not None
    driver.type("Name", "x")
    QTest.keyClick(driver.part(QLineEdit, "Name"), Qt.Key.Key_Escape)
    assert driver.dialog.isVisible()
    assert driver.part(QLineEdit, "Name") is None
    assert driver.saved == []


def test_the_number_of_modes_is_limited(qtbot):
    driver = Driver(qtbot, *(Mode(name=f"m{number}", title=f"M{number}") for number in range(MAX_MODES)))
    assert not driver.part(QPushButton, "Add mode…").isEnabled()
    assert f"There can be {MAX_MODES} modes. Remove one first." in driver.words
    driver.click("Copy Plan")
    assert driver.part(QLineEdit, "Name") is None
    driver.click("Remove M0")
    assert driver.part(QPushButton, "Add mode…").isEnabled()


IN_A_DAY = now() + timedelta(days=1)
WRITES = Rule(
    effect=RuleEffect.DENY, tool="write_file", also=("edit_file",), scope=RuleScope.ALWAYS, expires_at=IN_A_DAY
)


def changed(qtbot, rule, edit=lambda editor: None):
    editor = RuleEditor(rule, [BUILT_IN])
    qtbot.addWidget(editor)
    saved_rules = []
    editor.saved.connect(saved_rules.append)
    edit(editor)
    editor._save()
    return saved_rules[0]


def test_what_is_not_shown_of_a_rule_stands_when_it_is_changed(qtbot):
    rule = WRITES.model_copy(update={"pattern": PathPattern(prefix="/a")})
    changed_rule = changed(qtbot, rule)
    assert changed_rule.id != rule.id
    assert changed_rule == rule.model_copy(update={"id": changed_rule.id})
    asking_rule = changed(qtbot, WRITES, lambda editor: editor._effect.setCurrentIndex(EFFECTS.index(RuleEffect.ASK)))
    assert (asking_rule.effect, asking_rule.also, asking_rule.expires_at) == (RuleEffect.ASK, ("edit_file",), IN_A_DAY)


@pytest.mark.parametrize(
    ("folder", "place"), [("web/app", "in the folder web/app"), (None, "in every folder"), (".", "in the top folder")]
)
def test_commands_stay_in_their_folder_which_is_said(qtbot, folder, place):
    previews = []

    def write(editor):
        editor._pattern.setText("npm run test")
        previews.append(editor._preview.text())

    pattern = CommandPattern(words=("npm", "test"), folder=folder)
    rule = Rule(effect=RuleEffect.ALLOW, tool="run_command", pattern=pattern, scope=RuleScope.ALWAYS)
    assert changed(qtbot, rule, write).pattern == CommandPattern(words=("npm", "run", "test"), folder=folder)
    assert previews == [f"Allow: commands that begin with “npm run test”, {place} of the workspace"]


def test_what_was_held_back_in_every_folder_is_not_allowed_in_every_folder(qtbot):
    pattern = CommandPattern(words=("npm", "test"), folder=None)
    rule = Rule(effect=RuleEffect.DENY, tool="run_command", pattern=pattern, scope=RuleScope.ALWAYS)
    allows = changed(qtbot, rule, lambda editor: editor._effect.setCurrentIndex(EFFECTS.index(RuleEffect.ALLOW)))
    assert allows.pattern == CommandPattern(words=("npm", "test"))


def test_other_tools_go_with_the_tool_that_they_were_named_with(qtbot):
    other = changed(qtbot, WRITES, lambda editor: editor._tools.select("run_command"))
    assert (other.tool, other.also) == ("run_command", ())


def test_what_was_held_back_together_is_not_allowed_together(qtbot):
    rule = WRITES.model_copy(update={"tool": "read_file"})
    allows = changed(qtbot, rule, lambda editor: editor._effect.setCurrentIndex(EFFECTS.index(RuleEffect.ALLOW)))
    assert (allows.effect, allows.tool, allows.also) == (RuleEffect.ALLOW, "read_file", ())


def test_what_is_being_written_outlives_what_is_done_to_other_modes(qtbot):
    other = Mode(name="other", title="Other")
    driver = Driver(qtbot, CAREFUL, other)
    driver.click("Edit Careful")
    driver.part(QPlainTextEdit, "Instructions").setPlainText("Look thrice.")
    begins = [driver.part(QPushButton, name) for name in ("Edit Other", "Copy Other", "Copy Plan")]
    assert [begin.isEnabled() for begin in begins] == [False] * 3
    assert driver.part(QPushButton, "Add mode…") is None
    assert begins[0].toolTip() == "Save or cancel your changes first"
    driver.form.edit("other")
    driver.form.copy(other)
    driver.click("Remove Other")
    assert driver.saved[-1] == (CAREFUL,)
    driver.click("Undo")
    assert driver.saved[-1] == (CAREFUL, other)
    driver.form.show_items([other, CAREFUL, Mode(name="third", title="Third")])
    assert driver.part(QPlainTextEdit, "Instructions").toPlainText() == "Look thrice."
    assert driver.part(QPushButton, "Edit Careful") is None
    driver.click("Save")
    assert [specialist.name for specialist in driver.saved[-1]] == ["other", "careful", "third"]
    assert driver.saved[-1][1].addendum == "Look thrice."
    assert driver.part(QPushButton, "Edit Other").isEnabled()


def test_a_mode_that_is_gone_meanwhile_is_made_again(qtbot):
    driver = Driver(qtbot, CAREFUL)
    driver.click("Edit Careful")
    driver.form.show_items([])
    driver.click("Save")
    assert driver.saved[-1] == (CAREFUL,)


def test_a_name_that_another_mode_got_meanwhile_is_refused(qtbot):
    driver = Driver(qtbot)
    driver.click("Copy Plan")
    name = driver.part(QLineEdit, "Short name").text()
    driver.form.show_items([Mode(name=name, title="Mine")])
    driver.click("Save")
    assert any("Another mode has this short name" in text for text in driver.words)
    assert driver.saved == []


def test_editors_have_names(qtbot):
    driver = Driver(qtbot, CAREFUL)
    driver.click("Edit Careful")
    assert driver.part(QWidget, "Mode editor") is not None
    driver.click("Add rule…")
    assert driver.part(RuleEditor, "Rule editor") is not None
