"""The small window for a quick question."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtTest import QTest

from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn
from tests.ui.shell.test_side_windows import editor, shown, windows
from ui.bridge.single_instance import StartRequest

CTRL_SHIFT = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier


def answers(text="Yes"):
    return Turn(ContentDelta(text))


async def ask(screen):
    await until(lambda: screen.desk._desktop)
    await screen.idle()
    screen.front.on_started_again(StartRequest(quick_ask=True))
    window = await until(lambda: next(iter(shown(screen)), None))
    await until(lambda: window.page._drafts.is_loaded)
    return window


async def say(window, text):
    ended = []
    window.conversation.finished.connect(lambda: ended.append(1))
    QTest.keyClicks(editor(window), text)
    QTest.keyClick(editor(window), Qt.Key.Key_Return)
    await until(lambda: ended)


def test_a_question_is_answered_in_a_new_conversation_and_goes_on_in_the_main_window(on_screen):
    async def work(screen):
        await screen.say("One")
        first = screen.conversation.id
        screen.write("Half a thought")
        window = await ask(screen)
        assert window.conversation.id != first
        assert editor(window).toPlainText() == ""
        await say(window, "How far is the moon?")
        asked = window.conversation.id
        assert screen.conversation.id == first
        window.main_requested.emit()
        await until(lambda: screen.conversation.id == asked)
        assert screen.answers() == ["384,400 km"]
        assert shown(screen) == []
        await screen.idle()
        # The next one begins anew.
        window = await ask(screen)
        assert window.conversation.is_empty
        assert window.conversation.id != asked
        await screen.idle()

    on_screen(work, answers(), answers("384,400 km"))


def test_what_was_not_sent_is_there_again_and_nowhere_else(on_screen, tmp_path):
    async def work(screen):
        window = await ask(screen)
        QTest.keyClicks(editor(window), "Unsent")
        QTest.keyClick(editor(window), Qt.Key.Key_Escape)
        assert shown(screen) == []
        assert screen.editor.toPlainText() == ""
        window = await ask(screen)
        assert editor(window).toPlainText() == "Unsent"
        assert windows(screen) == [window]
        await screen.idle()

    async def later(screen):
        await until(lambda: screen.editor.toPlainText() == "Unsent")

    on_screen(work, folder=tmp_path / "data")
    # At the end of the program it is kept.
    on_screen(later, folder=tmp_path / "data")


def test_the_clipboard_is_attached_with_one_key(on_screen):
    async def work(screen):
        window = await ask(screen)
        attachments = window.page.composer.attachments
        clipboard = QGuiApplication.clipboard()
        clipboard.setText("A text of somebody")
        window.activateWindow()
        QTest.keyClick(
            editor(window), Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
        )
        assert attachments.texts == ["A text of somebody"]
        picture = QImage(20, 10, QImage.Format.Format_RGB32)
        picture.fill(0x336699)
        clipboard.setImage(picture)
        QTest.keyClick(
            editor(window), Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
        )
        await until(lambda: len(attachments.pictures) == 1)
        clipboard.clear()
        QTest.keyClick(
            editor(window), Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
        )
        await until(lambda: any("no picture on the clipboard" in words for words in screen.words(window.page.composer)))
        attachments.clear()
        await screen.idle()

    on_screen(work)
