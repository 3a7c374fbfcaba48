"""Keys of the approval dialog: no letter grants more than once, and none that was meant for a message decides."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QCheckBox,
    QLabel,
    QLineEdit,
    QListWidget,
    QPlainTextEdit,
    QPushButton,
    QRadioButton,
    QWidget,
)

from desktop_agent.types.errors import Sentence
from desktop_agent.types.tool_calls import AllowOnce, Deny, DenyAndStop
from tests.frame.selection import few
from tests.ui.approval.test_approval_dialog import MORE, Driver, call
from ui.bridge.permissions import RuleOffer

NONE, SHIFT = Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ShiftModifier
LETTERS = [Qt.Key(code) for code in range(Qt.Key.Key_A, Qt.Key.Key_Z + 1)]
BARE = [*LETTERS, Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter]
OFFERS = (
    RuleOffer("here", Sentence("exactly the command “{command}”", {"command": "git push"}), "/work"),
    RuleOffer("always", Sentence("commands that begin with “{command}”", {"command": "git"})),
)


def one_call(driver):
    driver.show(call(offers=OFFERS))


def list_focused(driver):
    driver.show(call(1, offers=OFFERS), call(2))
    assert driver.part(QListWidget, "Waiting calls").hasFocus()


def arguments_edited(driver):
    driver.show(call(offers=OFFERS))
    driver.click("Edit arguments")
    driver.part(QPlainTextEdit, "Arguments as JSON").setFocus()


def message_written(driver):
    driver.show(call(offers=OFFERS))
    driver.part(QLineEdit, "Message to the model").setFocus()


def rules_open(driver):
    driver.show(call(offers=OFFERS))
    driver.key(Qt.Key.Key_W, MORE)
    assert any(button.hasFocus() for button in driver.dialog.findChildren(QRadioButton))


def others_marked(driver):
    driver.show(call(1), call(2), call(3))
    driver.dialog.findChild(QCheckBox).setChecked(True)


def each_bare_key(qtbot, state, modifiers=NONE):
    """Press one key after the other and yield the driver each time: a new one after each key that did something."""
    driver, state_before = None, None
    for key in BARE:
        if driver is None or state_of(driver) != state_before:
            if driver is not None:
                driver.dialog.close()
            driver = Driver(qtbot)
            state(driver)
            state_before = state_of(driver)
        driver.key(key, modifiers)
        yield driver
    driver.dialog.close()


def state_of(driver):
    """Return all that a key can change: decisions, visibility, texts, checked buttons and the focus."""
    parts = [driver.dialog, *driver.dialog.findChildren(QWidget)]
    checked = [part.isChecked() for part in parts if isinstance(part, QAbstractButton)]
    texts = [part.text() for part in parts if isinstance(part, QLineEdit | QLabel)]
    texts += [part.toPlainText() for part in parts if isinstance(part, QPlainTextEdit)]
    return list(driver.decisions), [part.isVisible() for part in parts], checked, texts, QApplication.focusWidget()


STATES = [one_call, list_focused, arguments_edited, message_written, rules_open]


@pytest.mark.parametrize("state", few(STATES, 2, "the same table of keys"))
@pytest.mark.parametrize("modifiers", [NONE, SHIFT])
def test_no_bare_key_grants_more_than_once(qtbot, state, modifiers):
    for driver in each_bare_key(qtbot, state, modifiers):
        assert all(isinstance(decision, AllowOnce | Deny | DenyAndStop) for _, decision in driver.decisions)
        opened = [button for button in driver.dialog.findChildren(QRadioButton) if button.isVisible()]
        assert bool(opened) == (state is rules_open and bool(driver.dialog.isVisible()))


@pytest.mark.parametrize("state", STATES)
def test_nothing_has_a_letter_or_enter_that_it_was_not_given(qtbot, state):
    driver = Driver(qtbot)
    state(driver)
    shortcuts = {shortcut.key().toString() for shortcut in driver.dialog.findChildren(QShortcut)}
    edit = set() if state is arguments_edited else {"E"}
    assert {shortcut for shortcut in shortcuts if "Ctrl" not in shortcut} == {"A", "D", "Shift+D"} | edit
    for button in driver.dialog.findChildren(QPushButton):
        assert button.shortcut() == QKeySequence()
        assert not button.autoDefault()
        assert not button.isDefault()
        assert not button.hasFocus()


def test_the_keys_of_what_grants_more_stand_on_it(qtbot):
    driver = Driver(qtbot)
    one_call(driver)
    for name, keys in (("Allow for this conversation", "Ctrl+Shift+C"), ("Always allow…", "Ctrl+Shift+W")):
        assert driver.button(name).accessibleDescription() == keys


class Writer(Driver):
    """A person who writes in a field of the window while the dialog comes up."""

    def __init__(self, qtbot, words):
        super().__init__(qtbot)
        self.field = QPlainTextEdit(self.window)
        self.field.show()
        self.window.activateWindow()
        qtbot.waitUntil(self.window.isActiveWindow)
        self.field.setFocus()
        assert self.field.hasFocus()
        qtbot.keyClicks(self.field, words)

    def type(self, words):
        for letter in words:
            self.bot.keyClicks(QApplication.focusWidget() or self.dialog, letter)


def hint(driver):
    return any(
        label.text().startswith("You were typing") and label.isVisible() for label in driver.dialog.findChildren(QLabel)
    )


@pytest.mark.parametrize("calls", [1, 2])
def test_letters_meant_for_a_message_decide_nothing_however_long_the_dialog_stands(qtbot, calls):
    writer = Writer(qtbot, "Pleas")
    writer.show(*(call(number, offers=OFFERS) for number in range(calls)))
    writer.type("eadDAc w")
    writer.key(Qt.Key.Key_Return)
    assert writer.decisions == []
    assert writer.dialog.isVisible()
    assert writer.part(QPlainTextEdit, "Arguments as JSON").isHidden()
    assert hint(writer)


def test_what_was_meant_for_a_message_is_written_in_it(qtbot):
    writer = Writer(qtbot, "Pleas")
    writer.show(call(offers=OFFERS))
    writer.type("e do it")
    writer.key(Qt.Key.Key_Backspace)
    writer.key(Qt.Key.Key_Return)
    assert writer.field.toPlainText() == "Please do i"
    assert writer.decisions == []
    assert writer.dialog.isActiveWindow()
    writer.key(Qt.Key.Key_Tab)
    writer.key(Qt.Key.Key_A)
    assert writer.field.toPlainText() == "Please do i"
    assert writer.decisions == [("call-1", AllowOnce())]


@pytest.mark.parametrize("turn", ["tab", "click"])
def test_letters_are_keys_again_when_the_person_turns_to_the_dialog(qtbot, turn):
    writer = Writer(qtbot, "Pleas")
    writer.show(call())
    if turn == "tab":
        writer.key(Qt.Key.Key_Tab)
    else:
        qtbot.mouseClick(writer.dialog, Qt.MouseButton.LeftButton)
    assert not hint(writer)
    writer.part(QPlainTextEdit, "Arguments").setFocus()
    writer.type("a")
    assert writer.decisions == [("call-1", AllowOnce())]


def test_a_call_that_comes_after_another_was_answered_elsewhere_waits_as_well(qtbot):
    writer = Writer(qtbot, "Pleas")
    writer.show(call(1))
    writer.dialog.set_approvals([call(2)])
    writer.settled()
    writer.type("ea")
    assert writer.decisions == []


def test_who_has_written_nothing_can_answer_at_once(qtbot):
    writer = Writer(qtbot, "")
    writer.show(call())
    assert not hint(writer)
    writer.type("a")
    assert writer.decisions == [("call-1", AllowOnce())]


@pytest.mark.parametrize("calls", [1, 2])
@pytest.mark.parametrize("letter", ["e", "x", "w"])
def test_every_letter_on_its_way_lengthens_the_rest(qtbot, monkeypatch, calls, letter):
    driver = Driver(qtbot, input_delay_ms=60_000)
    driver.dialog.set_approvals([call(number) for number in range(calls)])
    driver.dialog.open()
    delay_timer, starts = driver.dialog._bar._delay_timer, []
    monkeypatch.setattr(delay_timer, "start", lambda: starts.append(letter))
    qtbot.waitUntil(driver.dialog.isActiveWindow)
    qtbot.keyClicks(QApplication.focusWidget(), letter)
    assert starts
    assert driver.part(QPlainTextEdit, "Arguments as JSON").isHidden()
    driver.dialog.reject()


def test_a_window_that_comes_to_the_front_rests_first(qtbot):
    driver = Driver(qtbot)
    driver.show(call())
    other = QWidget()
    qtbot.addWidget(other)
    other.show()
    other.activateWindow()
    qtbot.waitUntil(other.isActiveWindow)
    driver.dialog._bar._delay_timer.setInterval(60_000)
    driver.dialog.activateWindow()
    qtbot.waitUntil(driver.dialog.isActiveWindow)
    driver.key(Qt.Key.Key_A)
    assert driver.decisions == []
    driver.dialog.reject()


def test_no_bare_key_allows_the_other_calls_too(qtbot):
    for driver in each_bare_key(qtbot, others_marked):
        assert not any(isinstance(decision, AllowOnce) for _, decision in driver.decisions)


def test_what_allows_the_other_calls_too_says_so_with_its_own_keys(qtbot):
    driver = Driver(qtbot)
    driver.show(call(1), call(2), call(3))
    button, box = driver.button("Allow once"), driver.dialog.findChild(QCheckBox)
    assert (button.text(), button.accessibleDescription()) == ("Allow once", "A")
    box.setChecked(True)
    assert button.text() == "Allow these 3 calls once"
    assert button.accessibleDescription() == "Ctrl+Shift+A. Allow these 3 calls once"
    box.setChecked(False)
    assert (button.text(), button.accessibleDescription()) == ("Allow once", "A")
    driver.key(Qt.Key.Key_A, MORE)
    assert driver.decisions == []
    box.setChecked(True)
    driver.key(Qt.Key.Key_A, MORE)
    assert [approval_id for approval_id, _ in driver.decisions] == ["call-1", "call-2", "call-3"]


@pytest.mark.parametrize("writes", ["Ctrl+Shift+C", "Ctrl+Shift+W", "Ctrl+Shift+A"])
def test_no_keys_at_all_decide_for_who_was_writing(qtbot, writes):
    writer = Writer(qtbot, "Pleas")
    writer.show(call(1, offers=OFFERS), call(2))
    writer.dialog.findChild(QCheckBox).setChecked(True)
    writer.key(getattr(Qt.Key, f"Key_{writes[-1]}"), MORE)
    assert writer.decisions == []
    assert not any(button.isVisible() for button in writer.dialog.findChildren(QRadioButton))


def test_a_call_that_comes_when_another_is_gone_waits_for_who_writes_a_message_about_that(qtbot):
    driver = Driver(qtbot)
    driver.show(call(1))
    message = driver.part(QLineEdit, "Message to the model")
    message.setFocus()
    qtbot.keyClicks(message, "Use an")
    driver.dialog.set_approvals([call(2)])
    driver.settled()
    driver.key(Qt.Key.Key_A)
    assert driver.decisions == []
    assert hint(driver)


def test_what_was_meant_for_a_message_about_a_call_that_has_gone_is_written_nowhere_else(qtbot):
    writer = Writer(qtbot, "Pleas")
    writer.show(call(1))
    message = writer.part(QLineEdit, "Message to the model")
    message.setFocus()
    writer.type("Use an")
    writer.dialog.set_approvals([call(2)])
    writer.settled()
    writer.type("other")
    assert writer.field.toPlainText() == "Pleas"
    assert writer.decisions == []


def test_the_call_after_a_message_of_ones_own_can_be_answered_at_once(qtbot):
    driver = Driver(qtbot)
    driver.show(call(1), call(2))
    message = driver.part(QLineEdit, "Message to the model")
    message.setFocus()
    qtbot.keyClicks(message, "Use another")
    driver.key(Qt.Key.Key_Return)
    driver.settled()
    assert not hint(driver)
    driver.key(Qt.Key.Key_A)
    assert driver.decisions == [("call-1", Deny(message="Use another")), ("call-2", AllowOnce())]
