"""The cards of scheduled prompts, which are made anew whenever one of them runs."""

from dataclasses import replace
from datetime import UTC, datetime
from unittest.mock import MagicMock

import pytest
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QVBoxLayout, QWidget

from desktop_agent.types.schedules import MAX_PROMPT, Cron, ScheduledPrompt, ScheduledRun
from ui.bridge.schedule.schedules import ListedSchedule
from ui.settings.schedule_form import ScheduleCard, ScheduleEditor, ScheduleForm

PROMPT = ScheduledPrompt(title="Weather", prompt="What is new?", timing=Cron(line="0 9 * * 1-5"))
RUN = ScheduledRun(PROMPT.id, "now", "conversation", "message", "claimed", "", datetime(2026, 3, 1, tzinfo=UTC))
RUNS = ListedSchedule(PROMPT, last_run=RUN)
HAS_RUN = ListedSchedule(PROMPT, last_run=replace(RUN, state="ended", result="completed"))


class Driver:
    def __init__(self, qtbot):
        self.window, self.form = QWidget(), ScheduleForm(MagicMock())
        qtbot.addWidget(self.window)
        QVBoxLayout(self.window).addWidget(self.form)
        self.show(ListedSchedule(PROMPT))
        with qtbot.waitExposed(self.window):
            self.window.show()
        qtbot.waitUntil(self.window.isActiveWindow)

    def show(self, *items):
        self.form.show_items(items)

    def focus(self, name):
        buttons = self.form.findChildren(QPushButton)
        next(button for button in buttons if button.accessibleName() == name and button.isVisible()).setFocus()

    @property
    def focused(self):
        return QApplication.focusWidget().accessibleName()


@pytest.fixture
def driver(qtbot):
    return Driver(qtbot)


def test_the_keyboard_stays_at_the_button_and_meanwhile_at_the_card(driver):
    driver.focus("Run Weather now")
    driver.show(RUNS)
    assert driver.focused == "Scheduled prompt Weather"
    assert isinstance(QApplication.focusWidget(), ScheduleCard)
    driver.show(replace(RUNS, waits=True))
    assert driver.focused == "Scheduled prompt Weather"
    driver.show(HAS_RUN)
    assert driver.focused == "Run Weather now"


def test_the_keyboard_comes_back_only_from_where_it_waited(driver):
    driver.focus("Run Weather now")
    driver.show(RUNS)
    driver.focus("Edit Weather")
    driver.show(HAS_RUN)
    assert driver.focused == "Edit Weather"


def test_the_keyboard_stays_at_its_button_where_others_come_before_it(driver):
    driver.focus("Delete Weather")
    driver.show(HAS_RUN)
    assert driver.focused == "Delete Weather"
    driver.focus("Pause Weather")
    driver.show(replace(HAS_RUN, prompt=PROMPT.model_copy(update={"is_on": False})))
    assert driver.focused == "Resume Weather"


def test_a_prompt_that_is_too_long_or_blank_is_refused_with_the_reason(qtbot):
    editor = ScheduleEditor(PROMPT, ())
    qtbot.addWidget(editor)
    saved = []
    editor.saved.connect(saved.append)
    for prompt, reason in (
        ("a" * (MAX_PROMPT + 1), "The prompt has more than 200,000 characters. Shorten it."),
        (" \n ", "There is nothing to send yet. Write the prompt."),
    ):
        editor.form.show_values({"prompt": prompt})
        editor.save()
        assert reason in [label.text() for label in editor.findChildren(QLabel)]
        assert saved == []
    editor.form.show_values({"prompt": "a" * MAX_PROMPT + "\n"})
    editor.save()
    assert [len(prompt.prompt) for prompt in saved] == [MAX_PROMPT]
