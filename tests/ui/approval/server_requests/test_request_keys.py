"""Keys of the dialog for what servers ask: none that was meant for a message answers, or lands in a form."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QShortcut
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QListWidget, QPlainTextEdit, QWidget

from desktop_agent.types.mcp import ElicitationAnswer, SamplingAnswer
from tests.ui.approval.server_requests.test_request_dialog import REVIEW, Driver, form, page
from ui.bridge.mcp.requests import PendingSampling, RequestOrigin
from ui.style.accessibility import install_accessibility

CONTROL = Qt.KeyboardModifier.ControlModifier
OPTIONAL = {"properties": {"name": {"type": "string", "title": "Name"}}}
REQUEST = PendingSampling("1", REVIEW)
ANSWER = PendingSampling("1", REVIEW, SamplingAnswer("All is well.", "m"))
OPTIONAL_FORM = form(schema=OPTIONAL)
ALL = [REQUEST, ANSWER, OPTIONAL_FORM, page("https://example.org/")]


class Writer(Driver):
    """A person who writes in a field of the window while a question comes up."""

    def __init__(self, qtbot, words="Pleas"):
        self.window = QWidget()
        qtbot.addWidget(self.window)
        self.field = QPlainTextEdit(self.window)
        self.window.show()
        self.window.activateWindow()
        qtbot.waitUntil(self.window.isActiveWindow)
        self.field.setFocus()
        super().__init__(qtbot, window=self.window)
        qtbot.keyClicks(self.field, words)

    def show(self, *requests):
        request_page = super().show(*requests)
        self._qtbot.waitUntil(self.dialog.isActiveWindow)
        return request_page

    def type(self, words):
        for letter in words:
            self._qtbot.keyClicks(QApplication.focusWidget() or self.dialog, letter)

    def key(self, key, modifiers=Qt.KeyboardModifier.NoModifier):
        self._qtbot.keyClick(QApplication.focusWidget() or self.dialog, key, modifiers)

    @property
    def typed(self):
        return "".join(field.text() for field in self.dialog.findChildren(QLineEdit))

    @property
    def hint(self):
        labels = self.dialog.findChildren(QLabel)
        return any(label.text().startswith("You were typing") and label.isVisible() for label in labels)


@pytest.mark.parametrize("question", ALL, ids=["request", "answer", "form", "page"])
@pytest.mark.parametrize("count", [1, 2])
def test_keys_meant_for_a_message_answer_nothing_however_long_the_question_stands(qtbot, question, count):
    writer = Writer(qtbot)
    writer.show(question, *(form(str(number + 2)) for number in range(count - 1)))
    assert writer.hint
    writer.type("ads ADS")
    # Sends a message, in the composer.
    writer.key(Qt.Key.Key_Return, CONTROL)
    writer.key(Qt.Key.Key_D, CONTROL)
    writer.key(Qt.Key.Key_Return)
    writer.key(Qt.Key.Key_Escape)
    assert writer.answers == []
    assert writer.typed == ""
    assert writer.field.toPlainText() == "Pleasads ADS"
    assert writer.hint


@pytest.mark.parametrize("turn", ["tab", "click"])
@pytest.mark.parametrize(("question", "letter"), [(REQUEST, "a"), (ANSWER, "s")])
def test_letters_are_keys_again_when_the_person_turns_to_the_dialog(qtbot, turn, question, letter):
    writer = Writer(qtbot)
    writer.show(question)
    if turn == "tab":
        writer.key(Qt.Key.Key_Tab)
    else:
        qtbot.mouseClick(writer.dialog, Qt.MouseButton.LeftButton)
    assert not writer.hint
    writer.type(letter)
    assert writer.answers == [("1", True)]


@pytest.mark.parametrize("turn", ["tab", "click"])
def test_a_form_is_filled_in_by_who_turns_to_it(qtbot, turn):
    writer = Writer(qtbot)
    writer.show(OPTIONAL_FORM)
    if turn == "click":
        qtbot.mouseClick(writer.dialog, Qt.MouseButton.LeftButton)
    for _ in range(5):
        if not isinstance(QApplication.focusWidget(), QLineEdit):
            writer.key(Qt.Key.Key_Tab)
    writer.type("Ada")
    writer.key(Qt.Key.Key_Return, CONTROL)
    assert writer.answers == [("1", ElicitationAnswer("accept", {"name": "Ada"}))]


def test_who_has_written_nothing_can_answer_at_once(qtbot):
    writer = Writer(qtbot, "")
    writer.show(REQUEST)
    assert not writer.hint
    writer.type("a")
    assert writer.answers == [("1", True)]


def test_a_question_that_comes_when_the_form_is_gone_waits_for_who_writes_in_it(qtbot):
    writer = Writer(qtbot, "")
    writer.show(form("1"))
    writer.dialog.current.view.initial_focus.setFocus()
    writer.type("Ad")
    writer.show(PendingSampling("2", REVIEW))
    writer.type("a")
    assert writer.answers == []
    assert writer.hint


def test_the_question_after_ones_own_answer_can_be_answered_at_once(qtbot):
    writer = Writer(qtbot, "")
    writer.show(form("1"), PendingSampling("2", REVIEW))
    writer.dialog.answered.connect(lambda *_: writer.dialog.set_requests([PendingSampling("2", REVIEW)]))
    writer.dialog.current.view.initial_focus.setFocus()
    writer.type("Ada")
    writer.key(Qt.Key.Key_Return, CONTROL)
    qtbot.waitUntil(lambda: not writer.dialog.current.bar.is_input_delayed)
    assert not writer.hint
    assert [request_id for request_id, _ in writer.answers] == ["1"]


def test_a_window_that_comes_to_the_front_rests_first(qtbot):
    writer = Writer(qtbot, "")
    writer.show(REQUEST)
    other = QWidget()
    qtbot.addWidget(other)
    other.show()
    other.activateWindow()
    qtbot.waitUntil(other.isActiveWindow)
    writer.dialog.current.bar._delay_timer.setInterval(60_000)
    writer.dialog.activateWindow()
    qtbot.waitUntil(writer.dialog.isActiveWindow)
    writer.type("a")
    assert writer.answers == []
    writer.dialog.current.bar._delay_timer.stop()


@pytest.mark.parametrize("question", ALL, ids=["request", "answer", "form", "page"])
def test_bare_letters_stand_only_where_one_thing_is_allowed_once(qtbot, question):
    writer = Writer(qtbot, "")
    writer.show(question)
    keys = {shortcut.key().toString() for shortcut in writer.dialog.findChildren(QShortcut)}
    keys = {key for key in keys if "Ctrl" not in key}
    assert keys == ({"A", "D"} if question is REQUEST else {"S", "D"} if question is ANSWER else set())


def test_the_list_of_questions_takes_letters_as_no_answer_to_another(qtbot):
    writer = Writer(qtbot)
    writer.show(REQUEST, form("2", server="Second"))
    writer.type("s")
    assert writer.dialog.findChild(QListWidget).currentRow() == 0


MANY = {
    "properties": {
        "name": {"type": "string", "title": "Name"},
        "class": {"type": "string", "title": "Class", "enum": ["First", "Second"]},
        "quiet": {"type": "boolean", "title": "Quiet"},
    },
    "required": ["name"],
}


def names_by_tab(qtbot):
    parts = []
    part = QApplication.focusWidget()
    while part is not None and part not in parts:
        parts.append(part)
        qtbot.keyClick(part, Qt.Key.Key_Tab)
        part = QApplication.focusWidget()
    return [widget.accessibleName() for widget in parts]


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        (
            form(schema=MANY | {"required": []}),
            ["Message from the server", "Name", "Class", "Quiet", "Decline", "Send"],
        ),
        (page("https://example.org/"), ["Message from the server", "Address", "Open the page", "Decline"]),
        (
            REQUEST,
            ["The server's instructions to the model", "The server asks", "Answer of a model, according to the server"],
        ),
    ],
    ids=["form", "page", "request"],
)
def test_tab_walks_from_the_list_through_what_is_asked_to_the_buttons(qtbot, question, parts):
    writer = Writer(qtbot, "")
    writer.show(question, form("2"))
    writer.dialog.set_origins({question.id: RequestOrigin(can_stop=True)})
    writer.dialog.findChild(QListWidget).setFocus()
    names = names_by_tab(qtbot)
    assert [names[0], *names[1 : len(parts) + 1], names[-1]] == ["Waiting questions", *parts, "Stop the agent"]
    assert all(names)


def name_and_description(widget):
    interface = QAccessible.queryAccessibleInterface(widget)
    return interface.text(QAccessible.Text.Name), interface.text(QAccessible.Text.Description)


def test_a_screen_reader_hears_which_fields_are_optional_and_reads_the_heading_first(qtbot):
    install_accessibility(QApplication.instance())
    writer = Writer(qtbot, "")
    request_page = writer.show(form(schema=MANY))
    name, one, quiet = (row.initial_focus for row in request_page.view.rows)
    assert name_and_description(name) == ("Name", "")
    assert name_and_description(one)[1] == "Nothing chosen. Optional."
    assert name_and_description(quiet) == ("Quiet", "")
    first = next(label for label in request_page.findChildren(QLabel) if label.isVisible())
    assert first.text() == "“Notes” asks you to fill in a form"
