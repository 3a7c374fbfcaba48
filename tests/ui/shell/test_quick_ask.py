"""The small window for a quick question."""

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QDialog
from shiboken6 import delete

from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.desktop_portal import SCREENSHOT, desktop_portal
from tests.fakes.qt_loop import held, until
from tests.fakes.scripted_provider import Turn
from tests.ui.bridge.desktop.conftest import bus
from tests.ui.shell.test_side_windows import editor, shown_windows, windows
from ui.bridge.desktop import screenshot
from ui.bridge.single_instance import StartRequest
from ui.shell.side_windows import quick_ask

__all__ = ["bus"]

CTRL_SHIFT = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier


def answers(text="Yes"):
    return Turn(ContentDelta(text))


async def ask(screen):
    await until(lambda: screen.desk._desktop)
    await screen.idle()
    screen.front.on_started_again(StartRequest(quick_ask=True))
    window = await until(lambda: next(iter(shown_windows(screen)), None))
    await until(lambda: window.page._drafts.is_loaded)
    return window


async def ask_and_wait(window, text):
    finished_runs = []
    window.conversation.finished.connect(lambda: finished_runs.append(1))
    QTest.keyClicks(editor(window), text)
    QTest.keyClick(editor(window), Qt.Key.Key_Return)
    await until(lambda: finished_runs)


def test_a_question_is_answered_in_a_new_conversation_and_goes_on_in_the_main_window(on_screen):
    async def work(screen):
        await screen.say("One")
        first = screen.conversation.id
        screen.write("Half a thought")
        window = await ask(screen)
        assert window.conversation.id != first
        assert editor(window).toPlainText() == ""
        await ask_and_wait(window, "How far is the moon?")
        conversation_id = window.conversation.id
        assert screen.conversation.id == first
        window.main_requested.emit()
        await until(lambda: screen.conversation.id == conversation_id)
        assert screen.answers() == ["384,400 km"]
        assert shown_windows(screen) == []
        await screen.idle()
        # The next one begins anew.
        window = await ask(screen)
        assert window.conversation.is_empty
        assert window.conversation.id != conversation_id
        await screen.idle()

    on_screen(work, answers(), answers("384,400 km"))


def test_what_was_not_sent_is_there_again_and_nowhere_else(on_screen, tmp_path):
    async def work(screen):
        window = await ask(screen)
        QTest.keyClicks(editor(window), "Unsent")
        QTest.keyClick(editor(window), Qt.Key.Key_Escape)
        assert shown_windows(screen) == []
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


def picture_file(folder):
    picture = QImage(60, 40, QImage.Format.Format_RGB32)
    picture.fill(0x336699)
    assert picture.save(str(folder / "shot of it.png"))
    return QUrl.fromLocalFile(str(folder / "shot of it.png")).toString(QUrl.ComponentFormattingOption.FullyEncoded)


def test_a_screenshot_that_the_person_chose_is_attached_with_a_preview(on_screen, bus, tmp_path):
    async def work(screen):
        with desktop_portal(bus, SCREENSHOT, Screenshot=True) as portal:
            window = await ask(screen)
            QTest.keyClicks(editor(window), "What is this?")
            QTest.keyClick(editor(window), Qt.Key.Key_S, CTRL_SHIFT)
            await until(lambda: portal.of("asked"))
            assert portal.of("asked") == [{"modal": True, "interactive": True}]
            # It is away, and stays so, while the person chooses what is behind it.
            assert shown_windows(screen) == []
            screen.front.on_started_again(StartRequest(quick_ask=True))
            assert shown_windows(screen) == []
        # The portal has ended without an answer.
        await until(lambda: shown_windows(screen) == [window])
        assert "Your desktop refused the screenshot." in " ".join(screen.words(window.page.composer))
        with desktop_portal(bus, SCREENSHOT, Screenshot=picture_file(tmp_path)):
            QTest.keyClick(editor(window), Qt.Key.Key_S, CTRL_SHIFT)
            attachments = window.page.composer.attachments
            await until(lambda: len(attachments.pictures) == 1)
            await until(lambda: shown_windows(screen) == [window])
            assert attachments.pictures[0].name == "Screenshot"
            assert editor(window).toPlainText() == "What is this?"
            assert window.focusWidget() is editor(window)
            attachments.clear()
            editor(window).clear()
        await screen.idle()

    on_screen(work)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "No screenshot was taken."),
        (False, "Your desktop refused the screenshot. Take one with the keys of your desktop"),
        ("file:///nowhere/at/all.png", "The screenshot of your desktop cannot be read."),
        ("", "The screenshot of your desktop cannot be read."),
        ("missing", "Your desktop has no portal for screenshots."),
    ],
)
def test_why_there_is_no_screenshot_is_said(on_screen, bus, answer, words):
    async def work(screen):
        with desktop_portal(bus, *([] if answer == "missing" else [SCREENSHOT]), Screenshot=answer):
            window = await ask(screen)
            QTest.keyClick(editor(window), Qt.Key.Key_S, CTRL_SHIFT)
            await until(lambda: any(words in text for text in screen.words(window.page.composer)))
            await until(lambda: shown_windows(screen) == [window])
            assert not window.page.composer.attachments.pictures
        await screen.idle()

    on_screen(work)


def test_a_dialog_may_close_while_the_screen_is_taken(on_screen, bus, monkeypatch):
    monkeypatch.setattr(screenshot, "keys_kind", lambda: "x11")

    async def work(screen):
        async def take_while_a_dialog_closes(grab):
            assert shown_windows(screen) == []
            dialog = QDialog(screen.window)
            dialog.show()
            dialog.screen()
            delete(dialog)
            return await screenshot.take_screenshot(grab)

        monkeypatch.setattr(quick_ask, "take_screenshot", take_while_a_dialog_closes)
        with desktop_portal(bus):
            window = await ask(screen)
            buttons = window.findChildren(QAbstractButton)
            next(button for button in buttons if button.accessibleName() == "Attach a screenshot").click()
            await until(lambda: window.page.composer.attachments.pictures)
            await until(lambda: shown_windows(screen) == [window])
        await screen.idle()

    on_screen(work)


def test_the_program_ends_while_the_person_chooses(on_screen, bus):
    async def work(screen):
        with desktop_portal(bus, SCREENSHOT, Screenshot=True) as portal:
            window = await ask(screen)
            QTest.keyClick(editor(window), Qt.Key.Key_S, CTRL_SHIFT)
            await until(lambda: portal.of("asked"))
            await screen.desk._desktop.windows.close()
            await screen.desk._tasks.close()
            assert shown_windows(screen) == []

    on_screen(work)


def test_the_next_question_may_begin_while_the_one_before_goes_to_the_main_window(on_screen):
    async def work(screen):
        window = await ask(screen)
        await ask_and_wait(window, "How far is the moon?")
        conversation_id = window.conversation.id
        is_called, may_go_on = held(window, "save_draft")
        window.main_requested.emit()
        await is_called.wait()
        screen.front.on_started_again(StartRequest(quick_ask=True))
        await until(lambda: window.conversation.id != conversation_id)
        await until(lambda: window.page._drafts.is_loaded)
        QTest.keyClicks(editor(window), "And the sun?")
        may_go_on.set()
        await until(lambda: screen.conversation.id == conversation_id)
        await screen.idle()
        assert editor(window).toPlainText() == "And the sun?"

    on_screen(work, answers("384,400 km"))
