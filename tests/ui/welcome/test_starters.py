"""First messages to click in the demo."""

import re

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton, QWidget

from desktop_agent.providers.demo.scripted_model import Call, ReceivedRequest, play
from desktop_agent.types.providers import DEMO_ENDPOINT, DEMO_MODEL
from tests.fakes.qt_loop import until
from ui.shell.conversation_page import DEMO_STARTERS, StarterMessages


def test_a_click_or_a_key_sends(qtbot):
    starters = StarterMessages(("Why?", "How?"))
    qtbot.addWidget(starters)
    starters.show()
    first, second = (each for each in starters.findChildren(QPushButton) if each.text() in ("Why?", "How?"))
    with qtbot.waitSignal(starters.chosen) as said:
        qtbot.mouseClick(second, Qt.MouseButton.LeftButton)
    assert said.args == ["How?"]
    with qtbot.waitSignal(starters.chosen) as said:
        qtbot.keyClick(first, Qt.Key.Key_Space)
    assert said.args == ["Why?"]


@pytest.mark.parametrize("message", DEMO_STARTERS)
def test_each_shows_another_side_of_the_demo(message):
    tools = ("calculate", "write_file", "read_file")
    question = ReceivedRequest(True, message, 1, (), tools, (), len(message))
    called = [step.name for step in play(question) if isinstance(step, Call)]
    wanted = {"Calculate 6 * 7": ["calculate"], "Write a file": ["write_file"]}
    assert called == wanted.get(message, [])
    said = [re.sub(r"\W+", " ", repr(play(ReceivedRequest(True, each, 1, (), tools, (), 9)))) for each in DEMO_STARTERS]
    assert len(set(said)) == len(said)


def test_the_demo_offers_them_until_something_is_said(on_screen):
    async def work(screen):
        screen.press("Try the demo")
        await until(lambda: screen.conversation is not None)
        await screen.idle()
        assert screen.find(QWidget, "Suggestions") is not None
        screen.press("Calculate 6 * 7")
        await until(lambda: screen.answers() and "42" in screen.answers()[-1])
        await until(lambda: not screen.conversation.working)
        assert screen.find(QWidget, "Suggestions") is None

    on_screen(work, connected=False)


def test_other_models_are_offered_no_messages(on_screen):
    async def work(screen):
        shown = screen.find(QWidget, "Suggestions").findChildren(QPushButton)
        assert [each.text() for each in shown if each.isVisible()] == ["Do not store this conversation"]

    on_screen(work)


def test_the_demo_is_chosen_from_the_models_before_it_ever_ran(on_screen):
    async def work(screen):
        assert screen.find(QPushButton, "Calculate 6 * 7") is None
        screen.window.page.models.picker.model_chosen.emit(DEMO_ENDPOINT, DEMO_MODEL)
        await screen.idle()
        assert screen.find(QPushButton, "Calculate 6 * 7") is not None
        screen.press("Calculate 6 * 7")
        await until(lambda: screen.answers() and "42" in screen.answers()[-1])
        await until(lambda: not screen.conversation.working)
        # It is not what other conversations begin with.
        assert screen.engine.preferences.providers.endpoint_id != DEMO_ENDPOINT

    on_screen(work)
