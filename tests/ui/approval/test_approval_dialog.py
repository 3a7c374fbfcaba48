import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QLabel,
    QLineEdit,
    QListWidget,
    QPlainTextEdit,
    QPushButton,
    QWidget,
)

from desktop_agent.types.errors import Sentence
from desktop_agent.types.tool_calls import (
    AllowForConversation,
    AllowOnce,
    Deny,
    DenyAndStop,
    DiffPreview,
    Effect,
    TextPreview,
    ToolClass,
)
from ui.approval.approval_dialog import ApprovalDialog
from ui.bridge.permissions import PendingApproval
from ui.style.theme import DARK, ThemeSource

MORE = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
"""With what grants more than once."""

DIFF = DiffPreview("a.txt", "one\ntwo", "one\nthree")


def needs_text(arguments):
    return None if isinstance(arguments.get("content"), str) else "content: must be text"


def call(number=1, tool="write_file", **changes):
    values = {
        "approval_id": f"call-{number}",
        "tool": tool,
        "arguments": {"path": "a.txt", "content": f"text {number}"},
        "effects": frozenset({Effect.WRITE}),
        "preview": DIFF,
        "validate": needs_text,
    }
    return PendingApproval(**{**values, **changes})


class Driver:
    def __init__(self, qtbot, input_delay_ms=0):
        self.bot = qtbot
        self.window = QWidget()
        qtbot.addWidget(self.window)
        self.window.show()
        self.themes = ThemeSource()
        self.dialog = ApprovalDialog(self.themes, self.window, input_delay_ms)
        self.decisions, self.postponed, self.previews = [], [], []
        self.dialog.decided.connect(lambda *args: self.decisions.append(args))
        self.dialog.postponed.connect(lambda: self.postponed.append(1))
        self.dialog.preview_requested.connect(lambda *args: self.previews.append(args))

    def show(self, *calls):
        self.dialog.set_approvals(calls)
        self.dialog.open()
        self.bot.waitUntil(self.dialog.isVisible)
        self.settled()

    def settled(self):
        if self.dialog.isVisible():
            self.bot.waitUntil(lambda: self.button("Deny").isEnabled())

    def button(self, name):
        return next(button for button in self.dialog.findChildren(QPushButton) if button.accessibleName() == name)

    def click(self, name):
        self.bot.mouseClick(self.button(name), Qt.MouseButton.LeftButton)
        self.settled()

    def key(self, key, modifiers=Qt.KeyboardModifier.NoModifier):
        self.bot.keyClick(QApplication.focusWidget() or self.dialog, key, modifiers)

    def part(self, kind, name):
        return next(widget for widget in self.dialog.findChildren(kind) if widget.accessibleName() == name)

    @property
    def words(self):
        return [label.text() for label in self.dialog.findChildren(QLabel) if not label.isHidden()]

    @property
    def preview(self):
        return self.part(QPlainTextEdit, "Preview of the effect")

    def edit(self, text):
        if self.part(QPlainTextEdit, "Arguments as JSON").isHidden():
            self.click("Edit arguments")
        self.part(QPlainTextEdit, "Arguments as JSON").setPlainText(text)


@pytest.fixture
def driver(qtbot):
    return Driver(qtbot)


def test_it_says_who_asks_for_what(driver):
    driver.show(call(agent_path=("researcher", "writer"), arguments={"path": "\u202ea.txt", "content": "y" * 3000}))
    assert driver.dialog.accessibleName() == "Approve tool call"
    assert driver.dialog.windowModality() == Qt.WindowModality.WindowModal
    assert "The agent researcher → writer asks to use" in driver.words
    assert {"Write a file", "Can change things", "Writes files", "a.txt: 1 line added, 1 removed"} <= set(driver.words)
    arguments_text = driver.part(QPlainTextEdit, "Arguments").toPlainText()
    assert "\\u202e" in arguments_text
    assert not any(text.startswith("In the folder") for text in driver.words)
    assert arguments_text.count("y") == 3000
    assert driver.preview.toPlainText() == "one\ntwo\nthree"


def test_it_says_in_which_folder_the_call_works(driver):
    driver.show(call(workspace="/home/ada/demo workspace"))
    assert "In the folder /home/ada/demo workspace" in driver.words
    assert "In the folder /home/ada/demo workspace" in driver.dialog.accessibleDescription()


def test_only_what_can_be_written_in_looks_so(driver):
    driver.show(call())
    assert driver.preview.hasFocus()
    assert driver.preview.cursorWidth() == 0
    driver.key(Qt.Key.Key_Right)
    assert driver.preview.cursorWidth() == 1
    assert driver.part(QPlainTextEdit, "Arguments").property("kind") == "code"
    assert driver.part(QPlainTextEdit, "Arguments as JSON").property("kind") is None


@pytest.mark.parametrize(
    ("undoable", "sentences"),
    [(True, ["This call can be undone."]), (False, ["This call cannot be undone."]), (None, [])],
)
def test_it_says_whether_it_can_be_undone(driver, undoable, sentences):
    driver.show(call(undoable=undoable))
    assert [text for text in driver.words if "undone" in text] == sentences


def test_what_only_reads_leaves_nothing_to_be_undone(driver):
    driver.show(call(tool_class=ToolClass.READ_ONLY, effects=frozenset({Effect.NETWORK}), undoable=False))
    assert [text for text in driver.words if "undone" in text] == []


def test_a_tool_of_a_server_comes_with_the_words_of_that_server_and_no_other_does(driver):
    driver.show(call(1, server="Tickets\u202e", server_description="Writes <b>a</b> comment."), call(2))
    words_of_server = driver.part(QPlainTextEdit, "The server's own words")
    assert any("of the server “Tickets" in text and "\u202e" not in text for text in driver.words)
    assert words_of_server.toPlainText() == "Writes <b>a</b> comment."
    assert words_of_server.isReadOnly()
    assert "Writes <b>a</b> comment." in driver.dialog.accessibleDescription()
    driver.part(QListWidget, "Waiting calls").setCurrentRow(1)
    assert not words_of_server.isVisible()


def test_the_exact_name_of_a_tool_is_told_beside_its_words(driver):
    driver.show(call(1, "tickets__add-comment", server="Tickets"))
    title = next(label for label in driver.dialog.findChildren(QLabel) if label.text() == "Add comment (tickets)")
    assert "tickets__add-comment" in title.toolTip()


def test_reasons_that_came_later_are_shown_for_the_call_on_the_screen(driver):
    driver.show(call(1))
    driver.dialog.set_approvals([call(1, reasons=(Sentence("A rule wants this to be asked."),))])
    assert "A rule wants this to be asked." in driver.words


def test_reading_is_said_to_be_reading(driver):
    driver.show(call(tool_class=ToolClass.READ_ONLY, effects=frozenset({Effect.READ}), preview=None))
    assert {"Only reads", "Reads files"} <= set(driver.words)
    assert not driver.preview.isVisible()


@pytest.mark.parametrize(
    ("name", "decision"),
    [
        ("Allow once", AllowOnce()),
        ("Allow for this conversation", AllowForConversation()),
        ("Deny", Deny()),
        ("Deny and stop", DenyAndStop()),
    ],
)
def test_each_button_decides_and_the_dialog_closes(driver, name, decision):
    driver.show(call())
    driver.click(name)
    assert driver.decisions == [("call-1", decision)]
    assert not driver.dialog.isVisible()
    assert driver.postponed == []


@pytest.mark.parametrize(
    ("key", "modifiers", "decision"),
    [
        (Qt.Key.Key_A, Qt.KeyboardModifier.NoModifier, AllowOnce()),
        (Qt.Key.Key_C, MORE, AllowForConversation()),
        (Qt.Key.Key_D, Qt.KeyboardModifier.NoModifier, Deny()),
        (Qt.Key.Key_D, Qt.KeyboardModifier.ShiftModifier, DenyAndStop()),
    ],
)
def test_each_key_decides(driver, key, modifiers, decision):
    driver.show(call())
    driver.key(key, modifiers)
    assert driver.decisions == [("call-1", decision)]


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Enter])
def test_enter_decides_nothing_wherever_the_focus_is(driver, key, qt_messages):
    # The menu of the modes opens.
    qt_messages.expect("grabbing the keyboard")
    driver.show(call(1), call(2))
    for part in driver.dialog.findChildren(QWidget):
        if part.focusPolicy() != Qt.FocusPolicy.NoFocus and part.isVisible() and part.isEnabled():
            driver.bot.keyClick(part, key)
            if (menu := QApplication.activePopupWidget()) is not None:
                menu.close()
    assert driver.decisions == []


def test_letters_in_a_text_field_are_letters(driver):
    driver.show(call())
    message = driver.part(QLineEdit, "Message to the model")
    message.setFocus()
    driver.bot.keyClicks(message, "a c d D e")
    assert (driver.decisions, message.text()) == ([], "a c d D e")
    driver.click("Deny")
    assert driver.decisions == [("call-1", Deny(message="a c d D e"))]


def test_enter_in_the_message_denies_with_it(driver):
    driver.show(call())
    message = driver.part(QLineEdit, "Message to the model")
    driver.bot.keyClicks(message, "Use another file.")
    driver.bot.keyClick(message, Qt.Key.Key_Return)
    assert driver.decisions == [("call-1", Deny(message="Use another file."))]


def test_what_was_on_its_way_decides_nothing(qtbot):
    driver = Driver(qtbot, input_delay_ms=60_000)
    driver.dialog.set_approvals([call()])
    driver.dialog.open()
    for key in (Qt.Key.Key_A, Qt.Key.Key_C, Qt.Key.Key_D):
        driver.key(key)
    for name in ("Allow once", "Deny"):
        qtbot.mouseClick(driver.button(name), Qt.MouseButton.LeftButton)
        assert not driver.button(name).isEnabled()
    assert driver.decisions == []
    driver.dialog.reject()


def test_the_next_call_rests_too(qtbot):
    driver = Driver(qtbot)
    driver.show(call(1), call(2))
    driver.dialog._bar._delay_timer.setInterval(60_000)
    qtbot.mouseClick(driver.button("Allow once"), Qt.MouseButton.LeftButton)
    qtbot.mouseClick(driver.button("Allow once"), Qt.MouseButton.LeftButton)
    driver.key(Qt.Key.Key_A)
    assert [decision[0] for decision in driver.decisions] == ["call-1"]
    driver.dialog.reject()


@pytest.mark.parametrize("how", ["escape", "close"])
def test_closing_decides_nothing(driver, how):
    driver.show(call())
    if how == "escape":
        driver.key(Qt.Key.Key_Escape)
    else:
        driver.dialog.close()
    assert (driver.decisions, driver.postponed) == ([], [1])
    assert not driver.dialog.isVisible()


def test_every_call_has_its_own_decision(driver):
    driver.show(call(1), call(2, "run_command"), call(3))
    rows = driver.part(QListWidget, "Waiting calls")
    assert [rows.item(i).text() for i in range(3)] == ["Write a file", "Run a command", "Write a file"]
    rows.setCurrentRow(1)
    driver.settled()
    driver.click("Deny")
    assert driver.dialog.current.approval_id == "call-1"
    driver.click("Allow once")
    driver.click("Allow for this conversation")
    assert [(i, type(d)) for i, d in driver.decisions] == [
        ("call-2", Deny),
        ("call-1", AllowOnce),
        ("call-3", AllowForConversation),
    ]


def test_one_decision_for_all_of_a_kind(driver):
    driver.show(call(1), call(2, "run_command"), call(3))
    box = driver.dialog.findChild(QCheckBox)
    assert box.text() == "Also for the other call of “Write a file”"
    box.setChecked(True)
    driver.edit('{"path": "b", "content": "edited"}')
    driver.click("Allow once")
    assert driver.decisions == [
        ("call-1", AllowOnce(edited_input={"path": "b", "content": "edited"})),
        ("call-3", AllowOnce()),
    ]
    assert driver.dialog.current.approval_id == "call-2"
    assert box.isHidden()


def test_one_decision_for_all_of_a_kind_is_for_those_that_were_there(driver):
    driver.show(call(1), call(2))
    box = driver.dialog.findChild(QCheckBox)
    box.setChecked(True)
    driver.dialog.set_approvals([call(1), call(2), call(3, "run_command")])
    assert box.isChecked()
    driver.dialog.set_approvals([call(1), call(3, "run_command"), call(4)])
    assert not box.isChecked()
    box.setChecked(True)
    driver.part(QListWidget, "Waiting calls").setCurrentRow(2)
    assert not box.isChecked()


def test_a_listener_that_answers_at_once_may_set_the_calls(driver):
    calls = [call(1), call(2)]
    driver.dialog.decided.connect(lambda *_: driver.dialog.set_approvals([]))
    driver.show(*calls)
    driver.click("Allow once")
    assert driver.dialog.current is None
    assert not driver.dialog.isVisible()


def test_calls_answered_elsewhere_disappear(driver):
    driver.show(call(1), call(2))
    driver.dialog.set_approvals([call(2)])
    assert driver.dialog.current.approval_id == "call-2"
    driver.dialog.set_approvals([])
    assert not driver.dialog.isVisible()
    assert (driver.decisions, driver.postponed) == ([], [])


def test_a_decided_call_does_not_come_back(driver):
    driver.show(call(1), call(2))
    driver.click("Allow once")
    driver.dialog.set_approvals([call(1), call(2)])
    assert driver.dialog.current.approval_id == "call-2"


def test_new_calls_leave_the_one_on_the_screen_alone(driver):
    driver.show(call(1))
    driver.edit('{"content": "half')
    driver.dialog.set_approvals([call(1), call(2)])
    assert driver.dialog.current.approval_id == "call-1"
    assert driver.part(QPlainTextEdit, "Arguments as JSON").toPlainText() == '{"content": "half'


@pytest.mark.parametrize(
    ("text", "problem"), [("{", "Line 1"), ('{"content": 1}', "content: must be text"), ("[]", "JSON object")]
)
def test_invalid_arguments_cannot_be_allowed(driver, text, problem):
    driver.show(call())
    driver.edit(text)
    assert any(problem in words for words in driver.words)
    assert not driver.button("Allow once").isEnabled()
    assert not driver.button("Allow for this conversation").isEnabled()
    assert driver.button("Deny").isEnabled()
    driver.dialog._bar.allow_once()
    driver.dialog._bar.allow_for_conversation()
    assert driver.decisions == []
    driver.edit('{"path": "c", "content": "fine"}')
    assert driver.button("Allow once").isEnabled()
    driver.click("Allow once")
    assert driver.decisions == [("call-1", AllowOnce(edited_input={"path": "c", "content": "fine"}))]


def test_edits_that_change_nothing_are_no_edits(driver):
    driver.show(call())
    driver.edit('{"content": "text 1", "path": "a.txt"}')
    driver.click("Allow once")
    assert driver.decisions == [("call-1", AllowOnce())]


def test_true_is_another_value_than_one(driver):
    driver.show(call(arguments={"content": "text", "deep": {"count": 1}}))
    driver.edit('{"content": "text", "deep": {"count": true}}')
    driver.click("Allow once")
    assert driver.decisions[0][1].edited_input["deep"]["count"] is True


def test_the_preview_follows_the_edits(driver):
    driver.show(call())
    driver.edit('{"path": "a.txt", "content": "new"}')
    driver.bot.waitUntil(lambda: bool(driver.previews))
    assert driver.previews == [("call-1", {"path": "a.txt", "content": "new"})]
    driver.dialog.set_preview(*driver.previews[-1], DiffPreview("a.txt", None, "new"))
    assert "New file: a.txt" in driver.words
    assert driver.preview.toPlainText() == "new"
    driver.click("Edit arguments")  # discards
    assert driver.preview.toPlainText() == "one\ntwo\nthree"


def test_what_cannot_be_used_yet_leaves_the_heading_of_the_last_preview(driver):
    driver.show(call())
    notice = "The edited arguments cannot be used yet; this is the last preview."
    driver.edit('{"path": "b.txt",')
    assert {"a.txt: 1 line added, 1 removed", notice} <= set(driver.words)
    driver.edit('{"path": "b.txt", "content": "new"}')
    assert "a.txt: 1 line added, 1 removed" in driver.words
    driver.bot.waitUntil(lambda: bool(driver.previews))
    driver.dialog.set_preview(*driver.previews[-1], DiffPreview("b.txt", None, "new"))
    assert "New file: b.txt" in driver.words
    assert not any("preview" in text for text in driver.words)


@pytest.mark.parametrize("later", ["edited again", "edited to what cannot be used", "discarded"])
def test_a_preview_is_never_shown_beside_other_arguments(driver, later):
    driver.show(call())
    driver.edit('{"path": "b.txt", "content": "new"}')
    driver.bot.waitUntil(lambda: bool(driver.previews))
    if later == "discarded":
        driver.click("Edit arguments")
    else:
        driver.edit('{"path": "c.txt", "content": "new"}' if later == "edited again" else "{")
    driver.dialog.set_preview(*driver.previews[0], DiffPreview("b.txt", None, "new"))
    assert driver.preview.toPlainText() == "one\ntwo\nthree"
    assert "New file: b.txt" not in driver.words
    if later == "edited again":
        driver.bot.waitUntil(lambda: len(driver.previews) == 2)
        # What is asked about next may have the same arguments as one before it.
        driver.dialog.set_preview(*driver.previews[0], DiffPreview("b.txt", None, "new"))
        assert driver.preview.toPlainText() == "one\ntwo\nthree"
        driver.dialog.set_preview(*driver.previews[1], DiffPreview("c.txt", None, "new"))
        assert "New file: c.txt" in driver.words


def test_who_comes_back_to_an_edited_call_gets_a_new_preview_of_it(driver):
    driver.show(call(1), call(2))
    driver.edit('{"path": "b.txt", "content": "new"}')
    rows = driver.part(QListWidget, "Waiting calls")
    rows.setCurrentRow(1)
    rows.setCurrentRow(0)
    assert "Updating the preview for the edited arguments…" in driver.words
    driver.bot.waitUntil(lambda: bool(driver.previews))
    driver.dialog.set_preview(*driver.previews[-1], TextPreview("of the edited ones"))
    assert driver.preview.toPlainText() == "of the edited ones"


def test_edits_and_message_wait_for_who_looks_at_another_conversation(driver):
    driver.show(call(1))
    driver.edit('{"path": "b.txt", "content": "kept"}')
    driver.part(QLineEdit, "Message to the model").setText("Not there.")
    driver.dialog.set_approvals([call(2)])
    driver.settled()
    assert driver.part(QLineEdit, "Message to the model").text() == ""
    driver.click("Deny")
    assert driver.decisions == [("call-2", Deny(message=""))]
    driver.show(call(1))
    assert driver.part(QLineEdit, "Message to the model").text() == "Not there."
    driver.click("Allow once")
    assert driver.decisions[-1] == ("call-1", AllowOnce(edited_input={"path": "b.txt", "content": "kept"}))


def test_the_message_waits_for_who_comes_back_later(driver):
    driver.show(call())
    message = driver.part(QLineEdit, "Message to the model")
    driver.bot.keyClicks(message, "Use another file.")
    driver.key(Qt.Key.Key_Escape)
    assert not driver.dialog.isVisible()
    driver.show(call())
    assert message.text() == "Use another file."


def test_edits_survive_a_look_at_another_call(driver):
    driver.show(call(1), call(2))
    driver.edit('{"content": "kept"}')
    rows = driver.part(QListWidget, "Waiting calls")
    rows.setCurrentRow(1)
    assert driver.part(QPlainTextEdit, "Arguments as JSON").isHidden()
    rows.setCurrentRow(0)
    assert driver.part(QPlainTextEdit, "Arguments as JSON").toPlainText() == '{"content": "kept"}'


def test_escape_leaves_the_editor_first(driver):
    driver.show(call())
    driver.key(Qt.Key.Key_E)
    assert not driver.part(QPlainTextEdit, "Arguments as JSON").isHidden()
    driver.key(Qt.Key.Key_Escape)
    assert driver.dialog.isVisible()
    assert driver.part(QPlainTextEdit, "Arguments as JSON").isHidden()
    driver.key(Qt.Key.Key_Escape)
    assert not driver.dialog.isVisible()


def test_escape_and_the_key_of_the_editor_keep_what_was_edited(driver):
    driver.show(call())
    driver.edit('{"path": "b.txt", "content": "unfinished')
    driver.part(QPlainTextEdit, "Arguments as JSON").setFocus()
    driver.key(Qt.Key.Key_Escape)
    assert driver.postponed == [1]
    driver.show(call())
    driver.preview.setFocus()
    driver.key(Qt.Key.Key_E)
    assert driver.part(QPlainTextEdit, "Arguments as JSON").toPlainText() == '{"path": "b.txt", "content": "unfinished'
    driver.key(Qt.Key.Key_D, MORE)
    assert driver.part(QPlainTextEdit, "Arguments as JSON").isHidden()


def test_long_arguments_are_checked_after_a_pause(driver):
    driver.show(call())
    driver.edit('{"content": "' + "x" * 150_000 + '"}')
    assert not driver.button("Allow once").isEnabled()
    driver.bot.waitUntil(lambda: driver.button("Allow once").isEnabled())


def test_added_and_removed_lines_have_grounds_of_their_own(driver):
    driver.show(call(preview=DiffPreview("a.txt", "one\ntwo", "one\nthree")))
    driver.themes.use(DARK, 100)
    picture = driver.preview.viewport().grab().toImage()
    right = picture.width() - 4
    height = driver.preview.fontMetrics().lineSpacing()
    rows = [picture.pixelColor(QPoint(right, 4 + height * i + height // 2)).name() for i in range(3)]
    assert rows[1] == DARK.removed_background
    assert rows[2] == DARK.added_background
    assert rows[0] not in rows[1:]


def test_html_in_a_call_is_text(driver):
    driver.show(call(tool="<b>x</b>", preview=TextPreview("<img src='http://a/b'>")))
    assert "<b>x</b>" in driver.words
    assert driver.preview.toPlainText() == "<img src='http://a/b'>"


def test_very_many_arguments_are_shown_in_part_and_said_to_be(driver):
    driver.show(call(arguments={"content": "text", "numbers": [7] * 400_000}))
    arguments_text = driver.part(QPlainTextEdit, "Arguments").toPlainText()
    assert arguments_text.count("\n") < 40_000
    assert any(text.startswith("Arguments, without the last ") for text in driver.words)
    driver.dialog.set_approvals([call(2)])
    assert "Arguments" in driver.words
