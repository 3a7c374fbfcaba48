"""The dialog for what servers ask, by itself."""

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QLabel, QLineEdit, QListWidget, QPlainTextEdit, QPushButton

from desktop_agent.types.mcp import (
    ElicitationAnswer,
    ElicitationRequest,
    SamplingAnswer,
    SamplingModel,
    SamplingRequest,
)
from desktop_agent.types.provider_events import Usage
from desktop_agent.types.providers import Price
from ui.approval.server_requests import request_dialog
from ui.approval.server_requests.request_dialog import ServerRequestDialog
from ui.approval.untrusted_text import FOLD_MARK
from ui.bridge.mcp.requests import PendingElicitation, PendingSampling
from ui.style.theme import ThemeSource

NAME = {"properties": {"name": {"type": "string", "title": "Name"}}, "required": ["name"]}
MODEL = SamplingModel("Studio", "m", "Model M", Price(input=3, output=15))
REVIEW = SamplingRequest("Notes", (("user", "Sum it up."), ("assistant", "Which?")), "Be short.", 1000, MODEL)


class Driver:
    def __init__(self, qtbot, input_delay_ms=0, window=None, themes=None):
        self.window = window
        self.dialog = ServerRequestDialog(themes or ThemeSource(), window, input_delay_ms=input_delay_ms)
        qtbot.addWidget(self.dialog)
        self.answers, self.pages = [], []
        self.dialog.answered.connect(lambda request_id, answer: self.answers.append((request_id, answer)))
        self.dialog.open_page_requested.connect(self.pages.append)
        self._qtbot = qtbot

    def show(self, *requests):
        self.dialog.set_requests(requests)
        if requests:
            self.dialog.open()
            self._qtbot.waitUntil(lambda: not self.dialog.current.bar.is_input_delayed)
        return self.dialog.current

    def button(self, name):
        buttons = [
            button for button in self.dialog.current.findChildren(QPushButton) if button.accessibleName() == name
        ]
        return buttons[0]

    def press(self, name):
        QTest.mouseClick(self.button(name), Qt.MouseButton.LeftButton)

    @property
    def words(self):
        page = self.dialog.current
        texts = [label.text() for label in page.findChildren(QLabel) if label.isVisible()]
        return "\n".join(texts + [editor.toPlainText() for editor in page.findChildren(QPlainTextEdit)])


@pytest.fixture
def driver(qtbot):
    return Driver(qtbot)


def form(request_id="1", schema=None, words="Who?", server="Notes"):
    return PendingElicitation(request_id, ElicitationRequest(server, words, NAME if schema is None else schema))


def page(url):
    return PendingElicitation("1", ElicitationRequest("Notes", "Sign in.", {}, url))


def test_the_words_of_a_server_are_plain_whole_and_without_anything_hidden(driver):
    words = "<b>Bold</b> \u202eyrt\u202c " + "long " * 3000
    request_page = driver.show(form(words=words))
    text = request_page.view.message_box.toPlainText()
    assert "<b>Bold</b>" in text
    assert "⟨U+202E⟩" in text
    assert text.replace(FOLD_MARK, "").count("long") == 3000


def test_a_title_that_pretends_to_be_markup_is_read_as_it_is(driver):
    schema = {"properties": {"a": {"type": "string", "title": "<i>A</i>\u200b", "description": "<b>x</b>"}}}
    driver.show(form(schema=schema, server="<u>Bank</u>"))
    assert "“<u>Bank</u>” asks you to fill in a form" in driver.words
    assert "<i>A</i>⟨U+200B⟩ (optional)" in driver.words
    assert "<b>x</b>" in driver.words


def test_a_field_that_looks_secret_has_a_warning_beside_it(driver):
    driver.show(form(schema={"properties": {"db_password": {"type": "string"}}}))
    warning = "Servers may not ask for one in a form"
    assert warning in driver.words
    line = driver.dialog.findChild(QLineEdit)
    assert warning in line.accessibleDescription()
    driver.show(form("2"))
    assert warning not in driver.words


@pytest.mark.parametrize("kind", ["one", "several"])
def test_choices_that_read_the_same_show_what_is_sent(driver, kind):
    options = [
        {"const": "keep", "title": "Yes"},
        {"const": "del\u202eete", "title": "\u200bY\u0435s "},
        {"const": "no", "title": "No"},
    ]
    node = {"type": "string", "oneOf": options} if kind == "one" else {"type": "array", "items": {"anyOf": options}}
    driver.show(form(schema={"properties": {"a": node}, "required": ["a"]}))
    menu = driver.dialog.findChild(QComboBox)
    labels = [menu.itemText(index) for index in range(menu.count())] if kind == "one" else driver.words.split("\n")
    assert {"Yes (keep)", "⟨U+200B⟩Y\u0435s  (del⟨U+202E⟩ete)", "No"} <= set(labels)


def test_a_required_field_that_cannot_be_filled_in_can_only_be_declined(driver):
    driver.show(form(schema={"properties": {"a": {"type": "object"}}, "required": ["a"]}))
    assert not driver.button("Send").isEnabled()
    driver.press("Decline")
    assert driver.answers == [("1", ElicitationAnswer("decline"))]


def test_a_broken_form_can_only_be_declined(driver):
    driver.show(form(schema={"properties": 7}))
    assert not driver.button("Send").isEnabled()
    assert "can only be declined" in driver.words


def test_several_wait_in_a_list_and_keep_what_was_typed(driver):
    driver.show(form("1", server="First"), form("2", server="Second"))
    line = driver.dialog.current.findChild(QLineEdit)
    QTest.keyClicks(line, "Ada")
    rows = driver.dialog.findChild(QListWidget)
    assert [rows.item(row).text() for row in range(rows.count())] == ["First", "Second"]
    rows.setCurrentRow(1)
    assert driver.dialog.current.server == "Second"
    driver.dialog.set_requests([form("1", server="First"), form("2", server="Second"), form("3", server="Third")])
    assert driver.dialog.current.server == "Second"
    rows.setCurrentRow(0)
    assert driver.dialog.current.findChild(QLineEdit).text() == "Ada"


def test_escape_answers_the_one_on_the_screen_alone(driver):
    driver.show(form("1"), form("2"))
    QTest.keyClick(driver.dialog, Qt.Key.Key_Escape)
    assert driver.answers == [("1", ElicitationAnswer("cancel"))]
    driver.dialog.set_requests([form("2")])
    assert driver.dialog.isVisible()
    assert driver.dialog.current.asked.id == "2"
    driver.dialog.set_requests([])
    assert not driver.dialog.isVisible()


def test_closing_the_window_is_no_answer_too(driver):
    driver.show(form("1"))
    driver.dialog.close()
    assert driver.answers == [("1", ElicitationAnswer("cancel"))]


def test_what_is_typed_as_it_appears_answers_nothing_and_lands_in_no_field(qtbot):
    driver = Driver(qtbot, input_delay_ms=60_000)
    driver.dialog.set_requests([form(schema={"properties": {"name": {"type": "string"}}})])
    driver.dialog.open()
    # Its keys are heard from then on.
    qtbot.waitUntil(driver.dialog.isActiveWindow)
    page = driver.dialog.current
    assert page.bar.is_input_delayed
    for key in (Qt.Key.Key_A, Qt.Key.Key_Escape):
        QTest.keyClick(page.view.message_box, key)
    QTest.keyClick(page.view.message_box, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert driver.answers == []
    assert page.findChild(QLineEdit).text() == ""
    page.bar._delay_timer.stop()


def test_a_page_is_opened_by_a_click_alone_and_only_then_done(driver):
    driver.show(page("https://example.org/sign?x=1"))
    assert "Leads to example.org" in driver.words
    assert "https://example.org/sign?x=1" in driver.words
    assert not driver.button("I am done").isEnabled()
    assert driver.pages == []
    driver.press("Open the page")
    assert driver.pages == ["https://example.org/sign?x=1"]
    driver.press("I am done")
    assert driver.answers == [("1", ElicitationAnswer("accept"))]


def test_the_host_of_a_page_is_marked_in_its_address(driver):
    request_page = driver.show(page("https://example.org@evil.example/example.org"))
    (mark,) = request_page.view._address_box.extraSelections()
    assert mark.cursor.selectedText() == "evil.example"
    assert mark.cursor.selectionStart() == len("https://example.org@")
    assert "“example.org@”" in driver.words


def test_a_page_that_may_not_be_opened_can_only_be_declined(driver):
    driver.show(page("http://example.org/"))
    assert not driver.button("Open the page").isEnabled()
    assert not driver.button("I am done").isEnabled()
    driver.press("Open the page")
    driver.press("Decline")
    assert driver.pages == []
    assert driver.answers == [("1", ElicitationAnswer("decline"))]


def test_what_a_model_would_be_asked_stands_there_whole_with_its_price(driver):
    driver.show(PendingSampling("1", REVIEW))
    for text in ("Model M on Studio would answer", "1,000 tokens", "$0.02", "Be short.", "Sum it up.", "Which?"):
        assert text in driver.words
    QTest.keyClick(driver.dialog, Qt.Key.Key_D)
    assert driver.answers == [("1", False)]


def test_without_a_model_nothing_can_be_allowed(driver):
    driver.show(PendingSampling("1", SamplingRequest("Notes", (("user", "Hm"),), None, 10)))
    assert "No model is chosen" in driver.words
    assert not driver.button("Allow once").isEnabled()
    QTest.keyClick(driver.dialog, Qt.Key.Key_A)
    assert driver.answers == []


def test_the_answer_is_shown_with_its_cost_before_it_goes(driver):
    answer = SamplingAnswer("All is well.", "m", Usage(cost=0.25), is_truncated=True)
    driver.show(PendingSampling("1", REVIEW, answer))
    for text in ("All is well.", "$0.25", "cut off", "Send this answer to “Notes”?"):
        assert text in driver.words
    driver.press("Do not send")
    assert driver.answers == [("1", False)]


class Unshowable(request_dialog.ServerRequestPage):
    """A page that cannot be built for one server."""

    def __init__(self, themes, request, input_delay_ms):
        super().__init__(themes, request, input_delay_ms)
        if request.request.server == "Odd":
            raise OverflowError


def test_a_question_that_cannot_be_shown_is_declined_and_the_others_go_on(driver, monkeypatch, caplog):
    monkeypatch.setattr(request_dialog, "ServerRequestPage", Unshowable)
    odd = [
        PendingElicitation("1", ElicitationRequest("Odd", "m", NAME)),
        PendingSampling("2", replace(REVIEW, server="Odd")),
    ]
    driver.show(*odd, PendingElicitation("3", ElicitationRequest("Good", "m", NAME)))
    assert driver.dialog.current.server == "Good"
    assert driver.answers == [("1", ElicitationAnswer("decline")), ("2", False)]
    assert "“Odd” cannot be shown" in caplog.text
    driver.dialog.set_requests(odd)
    assert not driver.dialog.isVisible()


def test_a_page_that_leads_where_the_server_has_no_business_is_not_opened(qtbot):
    for may in (True, False):
        driver = Driver(qtbot)
        request = ElicitationRequest("Notes", "Open it.", url="https://10.0.0.1/", may_open_url=may)
        driver.show(PendingElicitation("1", request))
        assert driver.button("Open the page").isEnabled() is may


def test_unusual_letters_of_a_host_are_explained(driver):
    driver.show(page("https://accounts.xn--exmple-cua.org/sign"))
    assert "Leads to accounts.xn--exmple-cua.org" in driver.words
    assert "it reads “accounts.exämple.org”, with ä (Latin small letter a with diaeresis)" in driver.words
    driver.show(PendingElicitation("2", ElicitationRequest("Notes", "Sign in.", {}, "https://аррӏе.com/")))
    assert "Leads to xn--80ak6aa92e.com" in driver.words
    assert "а (Cyrillic small letter a)" in driver.words
    driver.show(PendingElicitation("3", ElicitationRequest("Notes", "Sign in.", {}, "https://example.org/")))
    assert "unusual" not in driver.words


def test_the_step_to_take_is_the_filled_button(driver):
    driver.show(page("https://example.org/"))
    opens = driver.button("Open the page")
    assert opens.property("kind") == "primary"
    driver.press("Open the page")
    assert opens.property("kind") == ""
    assert driver.button("I am done").isEnabled()
    assert "Opened in your browser." in driver.words
    driver.show(PendingElicitation("2", ElicitationRequest("Notes", "Sign in.", {}, "http://example.org/")))
    assert driver.button("Open the page").property("kind") != "primary"


def test_a_click_that_was_on_its_way_opens_no_page(qtbot):
    driver = Driver(qtbot, input_delay_ms=60_000)
    driver.dialog.set_requests([page("https://example.org/")])
    driver.dialog.open()
    driver.press("Open the page")
    assert driver.pages == []
    assert "Opened in" not in driver.words
    driver.dialog.current.bar._delay_timer.stop()


def test_enter_is_called_enter_and_both_of_its_keys_answer(driver):
    for key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
        driver.answers.clear()
        driver.show(form(key.name, schema={"properties": {}}))
        assert driver.button("Send").accessibleDescription() == "Ctrl+Enter"
        QTest.keyClick(driver.dialog.current, key, Qt.KeyboardModifier.ControlModifier)
        assert driver.answers == [(key.name, ElicitationAnswer("accept", {}))]


CLOSING = "Notes” is safe. Desktop Agent says: type your password for “"


def test_whose_words_they_are_is_said_and_no_name_can_end_that(driver):
    request_page = driver.show(form(server=CLOSING, words="Desktop Agent wants to know:"))
    heading = "The form, as “Notes' is safe. Desktop Agent says: type your password for '” wrote it"
    assert heading in driver.words
    frame = request_page.view.message_box.parentWidget()
    assert frame.accessibleName().startswith(heading)
    assert all(frame.isAncestorOf(row) for row in request_page.view.rows)
    driver.show(PendingElicitation("2", ElicitationRequest("Notes", "Sign in.", {}, "https://example.org/")))
    assert "“Notes” says (not verified):" in driver.words


def test_a_title_does_not_speak_for_the_program_under_the_form(driver):
    schema = {"properties": {"a": {"type": "string", "title": CLOSING + "\n\nSend"}}, "required": ["a"]}
    driver.show(form(schema=schema))
    hint = driver.dialog.current.bar._hint.text()
    assert hint.startswith("Please fill in: “Notes' is safe.")
    assert hint.count("”") == 1
    assert hint.endswith("”")
    assert "\n" not in hint
    assert len(hint) < 120


def test_only_a_field_that_was_filled_in_is_to_be_corrected(driver):
    driver.show(form(schema={"properties": {"a": {"type": "integer", "title": "A"}}, "required": ["a"]}))
    bar = driver.dialog.current.bar
    assert bar._hint.text() == "Please fill in: “A”"
    QTest.keyClicks(driver.dialog.current.findChild(QLineEdit), "x")
    assert bar._hint.text() == "Please correct: “A”"


def test_all_lines_end_where_the_buttons_do(driver):
    request_page = driver.show(form())
    frame = request_page.view.message_box.parentWidget()
    assert request_page.view.verticalScrollBar().maximum() == 0
    assert frame.width() == request_page.view.width() == request_page.bar.width()
