"""What is typed while the transcript or a button of the page has the keyboard is written in the composer."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.scripted_provider import Turn

_MODIFIER = Qt.KeyboardModifier


async def reading(screen):
    """Have an answer on the screen and the keyboard in the transcript. Returns the page."""
    await screen.say("Say something")
    screen.window.page.transcript.setFocus()
    return screen.window.page


def test_typing_in_the_transcript_goes_on_in_the_composer(on_screen):
    async def work(screen):
        page = await reading(screen)
        QTest.keyClicks(page.transcript, "A")
        assert page.composer.editor.hasFocus()
        QTest.keyClicks(page.composer.editor, "nd so on")
        assert page.composer.draft()[0] == "And so on"

    on_screen(work, Turn(ContentDelta("Some words.")))


def test_typing_on_a_button_goes_on_in_the_composer(on_screen):
    async def work(screen):
        page = await reading(screen)
        page.models.picker.setFocus()
        QTest.keyClicks(page.models.picker, "A")
        assert page.composer.editor.hasFocus()
        assert page.composer.draft()[0] == "A"

    on_screen(work, Turn(ContentDelta("Some words.")))


def test_a_paste_goes_into_the_composer(on_screen):
    async def work(screen):
        page = await reading(screen)
        QApplication.clipboard().setText("from elsewhere")
        QTest.keyClick(page.transcript, Qt.Key.Key_V, _MODIFIER.ControlModifier)
        assert page.composer.editor.hasFocus()
        assert page.composer.draft()[0] == "from elsewhere"

    on_screen(work, Turn(ContentDelta("Some words.")))


def test_keys_that_write_nothing_stay_with_the_transcript(on_screen):
    async def work(screen):
        page = await reading(screen)
        for key, modifier in (
            (Qt.Key.Key_Space, _MODIFIER.NoModifier),
            (Qt.Key.Key_Escape, _MODIFIER.NoModifier),
            (Qt.Key.Key_Delete, _MODIFIER.NoModifier),
            (Qt.Key.Key_J, _MODIFIER.ControlModifier),
            (Qt.Key.Key_J, _MODIFIER.AltModifier),
        ):
            QTest.keyClick(page.transcript, key, modifier)
            assert page.transcript.hasFocus(), key
            assert page.composer.draft()[0] == "", key

    on_screen(work, Turn(ContentDelta("Some words.")))


def test_it_goes_nowhere_while_nothing_can_be_written(on_screen):
    async def work(screen):
        page = await reading(screen)
        page.composer.hide()
        QTest.keyClicks(page.transcript, "A")
        assert page.transcript.hasFocus()
        assert page.composer.draft()[0] == ""

    on_screen(work, Turn(ContentDelta("Some words.")))
