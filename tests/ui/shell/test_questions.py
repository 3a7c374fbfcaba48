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
    return Turn(
        *(ToolUse(id=f"q{number}", name="ask_user", input=question) for number, question in enumerate(questions))
    )


def card(screen):
    return screen.find(QFrame, "Question of the agent")


def choices(screen):
    return [button.accessibleName() for button in card(screen).findChildren(QAbstractButton) if button.isCheckable()]


def answer_field(screen):
    return screen.find(QPlainTextEdit, "Answer in your own words")


def results(screen):
    history = screen.engine._sessions[screen.conversation.id].history
    blocks = [block for message in history for block in message.blocks if isinstance(block, ToolResult)]
    return ["".join(part.text for part in block.content) for block in blocks]


@pytest.fixture
def ask_user(on_screen):
    """Return a function that runs `answer(screen)` once the card is shown, and returns the results of the calls."""

    def run(answer, *questions):
        call_results = []

        async def work(screen):
            screen.write("paint it")
            screen.press("Send")
            await until(lambda: card(screen))
            await answer(screen)
            await until(lambda: not screen.conversation.working)
            await screen.engine._sessions[screen.conversation.id].wait_idle()
            assert card(screen) is None
            call_results.extend(results(screen))
            await screen.idle()

        on_screen(work, asks(*questions), Turn(ContentDelta("ok")), defaults=ASKS)
        return call_results

    return run


def test_one_choice_by_its_number(ask_user):
    async def answer(screen):
        assert choices(screen) == ["red", "green", "blue"]
        assert "Which colour?" in screen.words(card(screen))
        assert not screen.find(QPushButton, "Answer").isEnabled()
        screen.action("Answer the question").trigger()
        first = screen.find(QRadioButton, "red")
        QTest.keyClick(first, Qt.Key.Key_2)
        QTest.keyClick(screen.find(QRadioButton, "green"), Qt.Key.Key_Return)

    assert ask_user(answer, COLOURS) == ["The person answered:\ngreen"]


def test_choices_have_their_numbers_and_the_keys_are_said_where_they_work(ask_user):
    async def answer(screen):
        words = screen.words(card(screen))
        for text in ("1. red", "2. green", "3. blue", "To answer with the keyboard, press Ctrl+J."):
            assert text in words
        screen.action("Answer the question").trigger()
        assert "Press a number to choose, Enter to answer." in screen.words(card(screen))
        answer_field(screen).setFocus()
        assert "Press Enter to answer." in screen.words(card(screen))
        assert screen.find(QRadioButton, "green").accessibleDescription() == "Key 2"
        screen.editor.setFocus()
        assert "To answer with the keyboard, press Ctrl+J." in screen.words(card(screen))
        screen.press("Skip")

    ask_user(answer, COLOURS)


def test_an_answer_that_is_not_given_yet_is_saved_with_the_draft(ask_user):
    async def answer(screen):
        screen.write("draft")
        answer_field(screen).setFocus()
        QTest.keyClicks(answer_field(screen), "violet")
        await until(lambda: screen.kept_draft() == "draft\n\nviolet")
        assert screen.editor.toPlainText() == "draft"
        QTest.keyClick(answer_field(screen), Qt.Key.Key_Return)
        await until(lambda: screen.kept_draft() == "draft")

    assert ask_user(answer, COLOURS) == ["The person answered:\nviolet"]


def test_it_says_how_many_more_wait(qapp, qtbot):
    from desktop_agent.types.engine_events import QuestionAsked
    from ui.composer.question_card import QuestionCard
    from ui.style.theme import ThemeSource

    question_card = QuestionCard(ThemeSource())
    qtbot.addWidget(question_card)
    questions = [QuestionAsked(str(number), "Why?", (), several=False, free_text=True) for number in range(3)]
    titles = []
    for count in (1, 2, 3):
        question_card.show_questions(questions[:count])
        titles.append(question_card._title.text())
    assert titles == ["The agent asks", "The agent asks (1 more waits)", "The agent asks (2 more wait)"]


def test_a_long_choice_is_read_whole_in_a_narrow_window(qapp, qtbot):
    from desktop_agent.types.engine_events import QuestionAsked
    from ui.composer.question_card import QuestionCard
    from ui.style.theme import ThemeSource
    from ui.style.widgets import WrappedChoice

    question_card = QuestionCard(ThemeSource())
    qtbot.addWidget(question_card)
    long = "Delete those that are older than ten years, and keep the others where they are until somebody asks"
    question_card.show_questions([QuestionAsked("1", "What now?", (long, "Nothing"), several=False, free_text=True)])
    assert question_card.minimumSizeHint().width() <= 316
    question_card.resize(316, 500)
    question_card.show()
    first, second = question_card.findChildren(WrappedChoice)
    qtbot.waitUntil(lambda: first.height() == first.heightForWidth(first.width()) > second.height())
    assert first.width() <= 316


def test_several_choices_and_own_words_together(ask_user):
    async def answer(screen):
        for name in ("blue", "red"):
            QTest.keyClick(screen.find(QCheckBox, name), Qt.Key.Key_Space)
        QTest.keyClicks(answer_field(screen), "and gold")
        QTest.keyClick(answer_field(screen), Qt.Key.Key_Return)

    assert ask_user(answer, {**COLOURS, "several": True}) == ["The person answered:\nred\nblue\nand gold"]


def test_where_one_is_taken_own_words_and_a_choice_put_each_other_out(ask_user):
    async def answer(screen):
        red = screen.find(QRadioButton, "red")
        red.click()
        QTest.keyClicks(answer_field(screen), "gold")
        assert not red.isChecked()
        red.click()
        assert answer_field(screen).toPlainText() == ""
        assert red.isChecked()
        QTest.keyClicks(answer_field(screen), "gold")
        screen.press("Answer")

    assert ask_user(answer, COLOURS) == ["The person answered:\ngold"]


def test_letters_at_a_choice_are_own_words(ask_user):
    async def answer(screen):
        screen.action("Answer the question").trigger()
        QTest.keyClicks(screen.find(QRadioButton, "red"), "v")
        assert answer_field(screen).hasFocus()
        QTest.keyClicks(answer_field(screen), "iolet 2")
        QTest.keyClick(answer_field(screen), Qt.Key.Key_Return)

    assert ask_user(answer, COLOURS) == ["The person answered:\nviolet 2"]


def test_without_own_words_there_is_no_place_for_them(ask_user):
    async def answer(screen):
        assert answer_field(screen) is None
        screen.find(QRadioButton, "blue").click()
        screen.press("Answer")

    assert ask_user(answer, {**COLOURS, "free_text": False}) == ["The person answered:\nblue"]


def test_a_question_may_be_left_unanswered(ask_user):
    async def answer(screen):
        screen.press("Skip")

    assert ask_user(answer, {"question": "Why?"})[0].startswith("The question was withdrawn.")


def test_several_questions_come_in_order(ask_user):
    async def answer(screen):
        await until(lambda: len(screen.conversation.session_controls.questions) == 2)
        assert "The agent asks (1 more waits)" in screen.words(card(screen))
        assert "First?" in screen.words(card(screen))
        screen.action("Answer the question").trigger()
        QTest.keyClicks(answer_field(screen), "1")
        QTest.keyClick(answer_field(screen), Qt.Key.Key_Return)
        assert "Second?" in screen.words(card(screen))
        # Who answers with keys goes on with keys.
        assert answer_field(screen).hasFocus()
        QTest.keyClicks(answer_field(screen), "2")
        QTest.keyClick(answer_field(screen), Qt.Key.Key_Return)

    answers = ask_user(answer, {"question": "First?"}, {"question": "Second?"})
    assert answers == ["The person answered:\n1", "The person answered:\n2"]


def test_it_takes_no_focus_and_writing_goes_on(ask_user):
    async def answer(screen):
        screen.write("meanwhile")
        assert screen.editor.toPlainText() == "meanwhile"
        assert screen.editor.hasFocus()
        screen.find(QRadioButton, "red").click()
        screen.press("Answer")

    ask_user(answer, COLOURS)


def test_stop_takes_it_away(ask_user):
    async def answer(screen):
        screen.press("Stop")

    ask_user(answer, COLOURS)
