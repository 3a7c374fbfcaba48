"""What the agent asks, answered in the window."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QCheckBox, QFrame, QPlainTextEdit, QPushButton, QRadioButton

from desktop_agent.engine.engine import RunDefaults
from desktop_agent.types.blocks import ToolResult, ToolUse
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn

ASKS = RunDefaults(questions=True)
COLOURS = {"question": "Which colour?", "choices": ["red", "green", "blue"]}


def asks(*questions):
    return Turn(*(ToolUse(id=f"q{at}", name="ask_user", input=each) for at, each in enumerate(questions)))


def card(screen):
    return screen.find(QFrame, "Question of the agent")


def choices(screen):
    return [each.accessibleName() for each in card(screen).findChildren(QAbstractButton) if each.isCheckable()]


def own(screen):
    return screen.find(QPlainTextEdit, "Answer in your own words")


def results(screen):
    history = screen.engine._sessions[screen.conversation.id].history
    blocks = [block for message in history for block in message.blocks if isinstance(block, ToolResult)]
    return ["".join(part.text for part in block.content) for block in blocks]


@pytest.fixture
def asked(on_screen):
    """Runs `answer(screen)` when the card is there; answers with the results of the calls."""

    def run(answer, *questions):
        told = []

        async def work(screen):
            screen.write("paint it")
            screen.press("Send")
            await until(lambda: card(screen))
            await answer(screen)
            await until(lambda: not screen.conversation.working)
            await screen.engine._sessions[screen.conversation.id].wait_idle()
            assert card(screen) is None
            told.extend(results(screen))
            await screen.idle()

        on_screen(work, asks(*questions), Turn(ContentDelta("ok")), defaults=ASKS)
        return told

    return run


def test_one_choice_by_its_number(asked):
    async def answer(screen):
        assert choices(screen) == ["red", "green", "blue"]
        assert "Which colour?" in screen.words(card(screen))
        assert not screen.find(QPushButton, "Answer").isEnabled()
        screen.action("Answer the question").trigger()
        first = screen.find(QRadioButton, "red")
        QTest.keyClick(first, Qt.Key.Key_2)
        QTest.keyClick(screen.find(QRadioButton, "green"), Qt.Key.Key_Return)

    assert asked(answer, COLOURS) == ["The person answered:\ngreen"]


def test_choices_have_their_numbers_and_the_keys_are_said_where_they_work(asked):
    async def answer(screen):
        words = screen.words(card(screen))
        for each in ("1. red", "2. green", "3. blue", "To answer with the keyboard, press Ctrl+J."):
            assert each in words
        screen.action("Answer the question").trigger()
        assert "Press a number to choose, Enter to answer." in screen.words(card(screen))
        own(screen).setFocus()
        assert "Press Enter to answer." in screen.words(card(screen))
        assert screen.find(QRadioButton, "green").accessibleDescription() == "Key 2"
        screen.editor.setFocus()
        assert "To answer with the keyboard, press Ctrl+J." in screen.words(card(screen))
        screen.press("Skip")

    asked(answer, COLOURS)


def test_an_answer_that_is_not_given_yet_is_saved_with_the_draft(asked):
    async def answer(screen):
        screen.write("draft")
        own(screen).setFocus()
        QTest.keyClicks(own(screen), "violet")
        await until(lambda: screen.kept_draft() == "draft\n\nviolet")
        assert screen.editor.toPlainText() == "draft"
        QTest.keyClick(own(screen), Qt.Key.Key_Return)
        await until(lambda: screen.kept_draft() == "draft")

    assert asked(answer, COLOURS) == ["The person answered:\nviolet"]


def test_it_says_how_many_more_wait(qapp, qtbot):
    from desktop_agent.types.engine_events import QuestionAsked
    from ui.composer.question_card import QuestionCard
    from ui.style.theme import ThemeSource

    made = QuestionCard(ThemeSource())
    qtbot.addWidget(made)
    questions = [QuestionAsked(str(at), "Why?", (), several=False, free_text=True) for at in range(3)]
    seen = []
    for count in (1, 2, 3):
        made.show_questions(questions[:count])
        seen.append(made._title.text())
    assert seen == ["The agent asks", "The agent asks (1 more waits)", "The agent asks (2 more wait)"]


def test_a_long_choice_is_read_whole_in_a_narrow_window(qapp, qtbot):
    from desktop_agent.types.engine_events import QuestionAsked
    from ui.composer.question_card import QuestionCard
    from ui.style.theme import ThemeSource
    from ui.style.widgets import WrappedChoice

    made = QuestionCard(ThemeSource())
    qtbot.addWidget(made)
    long = "Delete those that are older than ten years, and keep the others where they are until somebody asks"
    made.show_questions([QuestionAsked("1", "What now?", (long, "Nothing"), several=False, free_text=True)])
    assert made.minimumSizeHint().width() <= 316
    made.resize(316, 500)
    made.show()
    first, second = made.findChildren(WrappedChoice)
    qtbot.waitUntil(lambda: first.height() == first.heightForWidth(first.width()) > second.height())
    assert first.width() <= 316


def test_several_choices_and_own_words_together(asked):
    async def answer(screen):
        for name in ("blue", "red"):
            QTest.keyClick(screen.find(QCheckBox, name), Qt.Key.Key_Space)
        QTest.keyClicks(own(screen), "and gold")
        QTest.keyClick(own(screen), Qt.Key.Key_Return)

    assert asked(answer, {**COLOURS, "several": True}) == ["The person answered:\nred\nblue\nand gold"]


def test_where_one_is_taken_own_words_and_a_choice_put_each_other_out(asked):
    async def answer(screen):
        red = screen.find(QRadioButton, "red")
        red.click()
        QTest.keyClicks(own(screen), "gold")
        assert not red.isChecked()
        red.click()
        assert own(screen).toPlainText() == ""
        assert red.isChecked()
        QTest.keyClicks(own(screen), "gold")
        screen.press("Answer")

    assert asked(answer, COLOURS) == ["The person answered:\ngold"]


def test_letters_at_a_choice_are_own_words(asked):
    async def answer(screen):
        screen.action("Answer the question").trigger()
        QTest.keyClicks(screen.find(QRadioButton, "red"), "v")
        assert own(screen).hasFocus()
        QTest.keyClicks(own(screen), "iolet 2")
        QTest.keyClick(own(screen), Qt.Key.Key_Return)

    assert asked(answer, COLOURS) == ["The person answered:\nviolet 2"]


def test_without_own_words_there_is_no_place_for_them(asked):
    async def answer(screen):
        assert own(screen) is None
        screen.find(QRadioButton, "blue").click()
        screen.press("Answer")

    assert asked(answer, {**COLOURS, "free_text": False}) == ["The person answered:\nblue"]


def test_a_question_may_be_left_unanswered(asked):
    async def answer(screen):
        screen.press("Skip")

    assert asked(answer, {"question": "Why?"})[0].startswith("The question was withdrawn.")


def test_several_questions_come_in_order(asked):
    async def answer(screen):
        await until(lambda: len(screen.conversation.session_controls.questions) == 2)
        assert "The agent asks (1 more waits)" in screen.words(card(screen))
        assert "First?" in screen.words(card(screen))
        screen.action("Answer the question").trigger()
        QTest.keyClicks(own(screen), "1")
        QTest.keyClick(own(screen), Qt.Key.Key_Return)
        assert "Second?" in screen.words(card(screen))
        # Who answers with keys goes on with keys.
        assert own(screen).hasFocus()
        QTest.keyClicks(own(screen), "2")
        QTest.keyClick(own(screen), Qt.Key.Key_Return)

    told = asked(answer, {"question": "First?"}, {"question": "Second?"})
    assert told == ["The person answered:\n1", "The person answered:\n2"]


def test_it_takes_no_focus_and_writing_goes_on(asked):
    async def answer(screen):
        screen.write("meanwhile")
        assert screen.editor.toPlainText() == "meanwhile"
        assert screen.editor.hasFocus()
        screen.find(QRadioButton, "red").click()
        screen.press("Answer")

    asked(answer, COLOURS)


def test_stop_takes_it_away(asked):
    async def answer(screen):
        screen.press("Stop")

    asked(answer, COLOURS)
