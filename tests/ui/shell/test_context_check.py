"""A message that does not fit what the model can read is not sent before the person knows."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPushButton

from desktop_agent.types.provider_events import ContentDelta, Usage, UsageUpdate
from desktop_agent.types.providers import Capabilities, ModelInfo
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import ScriptedProvider, Turn

MODELS = (ModelInfo("m", "Small", Capabilities(context_window=4_000)), ModelInfo("n", "Unknown"))
LARGER = (ModelInfo("m", "Larger", Capabilities(context_window=20_000)),)
LONG = "a word or two " * 1600
SPENT = UsageUpdate(Usage(input_tokens=15_900, output_tokens=60, total_tokens=15_960))
TOO_LONG = "over the model's limit of"


async def begin(screen, *turns, models=MODELS):
    screen.provider = ScriptedProvider(*turns, models=models)
    screen.engine.connections._providers["scripted"] = screen.provider
    screen.desk.servers.refresh_models(again=True)
    await until(lambda: screen.desk.servers.capabilities("scripted", "m").context_window)
    await screen.idle()


def warning(screen):
    return next((words for words in screen.words(screen.window.page.composer) if TOO_LONG in words), "")


def paste(screen, text):
    QApplication.clipboard().setText(text)
    screen.editor.setFocus()
    QTest.keyClick(screen.editor, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)


def draft(screen):
    return screen.window.page.composer.draft()[0]


def test_what_is_too_long_is_said_while_it_is_written_and_goes_when_it_fits(on_screen):
    async def work(screen):
        await begin(screen)
        paste(screen, LONG)
        await until(lambda: warning(screen))
        assert warning(screen).startswith("About ")
        assert screen.find(QPushButton, "Summarise older messages") is None
        screen.window.page.composer.set_draft("Short.")
        assert not warning(screen)

    on_screen(work)


def test_enter_at_once_sends_nothing_before_it_was_said_and_the_second_sends(on_screen):
    async def work(screen):
        await begin(screen, Turn(ContentDelta("Hi")))
        paste(screen, LONG)
        QTest.keyClick(screen.editor, Qt.Key.Key_Return)
        assert warning(screen)
        assert draft(screen).strip() == LONG.strip()
        await screen.idle()
        assert screen.provider.requests == []
        QTest.keyClick(screen.editor, Qt.Key.Key_Return)
        await until(lambda: screen.answers() == ["Hi"])
        assert draft(screen) == ""
        await until(lambda: not warning(screen))

    on_screen(work)


def test_what_was_changed_after_the_warning_is_warned_about_again(on_screen):
    async def work(screen):
        await begin(screen, Turn(ContentDelta("Hi")))
        paste(screen, LONG)
        QTest.keyClick(screen.editor, Qt.Key.Key_Return)
        first_warning = warning(screen)
        assert first_warning
        # Quicker than the next look at what is written.
        paste(screen, LONG + "and more " * 900)
        QTest.keyClick(screen.editor, Qt.Key.Key_Return)
        assert draft(screen)
        assert warning(screen) != first_warning
        QTest.keyClick(screen.editor, Qt.Key.Key_Return)
        await until(lambda: screen.answers() == ["Hi"])

    on_screen(work)


def test_another_model_takes_the_warning_away(on_screen, qt_messages):
    qt_messages.expect("grabbing the keyboard")

    async def work(screen):
        await begin(screen)
        paste(screen, LONG)
        await until(lambda: warning(screen))
        screen.press("Choose another model")
        assert screen.window.page.models.picker._popup.isVisible()
        screen.window.page.models.picker._popup.hide()
        screen.window.page.models.picker.model_chosen.emit("scripted", "n")
        await until(lambda: not warning(screen))

    on_screen(work)


def test_a_long_conversation_can_be_summarised_where_it_is_said(on_screen):
    async def work(screen):
        turns = [Turn(ContentDelta("An answer."), SPENT) for _ in range(3)]
        await begin(screen, *turns, Turn(ContentDelta("In short.")), models=LARGER)
        for text in ("One", "Two", "Three"):
            await screen.say(text)
        paste(screen, LONG)
        await until(lambda: warning(screen))
        assert warning(screen).startswith("About ")
        count = len(screen.provider.requests)
        screen.press("Summarise older messages")
        await until(lambda: len(screen.provider.requests) > count)
        await until(lambda: not screen.conversation.working)
        # What the summary stands for is not counted any more, though the last answer had read it.
        await until(lambda: not warning(screen))
        assert draft(screen).strip() == LONG.strip()

    on_screen(work)


def test_what_does_not_fit_stays_as_it_is_written(on_screen):
    async def work(screen):
        await begin(screen)
        screen.write("What is this?")
        screen.editor.insert_text("x" * 60_000)
        QTest.keyClick(screen.editor, Qt.Key.Key_Home)
        QTest.keyClick(screen.editor, Qt.Key.Key_Return)
        assert warning(screen)
        assert screen.editor.toPlainText() == "What is this?"
        assert screen.editor.textCursor().position() == 0
        assert screen.window.page.composer.attachments.texts == ["x" * 60_000]

    on_screen(work)


def test_the_warning_stays_with_its_conversation(on_screen):
    async def work(screen):
        await begin(screen, Turn(ContentDelta("Hi")))
        await screen.say("One")
        first = screen.conversation.id
        paste(screen, LONG)
        await until(lambda: warning(screen))
        screen.action("New conversation").trigger()
        await until(lambda: screen.conversation.id != first)
        await screen.idle()
        assert not warning(screen)
        screen.desk.library.open(first)
        await until(lambda: screen.conversation.id == first)
        await screen.idle()
        assert draft(screen)
        assert warning(screen)

    on_screen(work)
