"""The moment between the window and its first conversation."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog

from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn
from tests.fakes.window import Screen
from ui.composer.message_editor import MAX_TEXT_LENGTH
from ui.shell.commands.command_palette import CommandPalette


class Hasty(Screen):
    """Sends as soon as there is a window."""

    async def idle(self):
        if self.conversation is None:
            self.write("Hello")
            self.press("Send")
        await super().idle()


def test_what_is_sent_before_the_first_conversation_is_open_goes_into_it(qapp, in_loop, tmp_path):
    async def work():
        screen = await Hasty.open(qapp, tmp_path / "data", Turn(ContentDelta("Hi")))
        try:
            await until(lambda: screen.answers() == ["Hi"])
            await until(lambda: not screen.conversation.working)
            assert screen.editor.toPlainText() == ""
        finally:
            await screen.close()

    in_loop(work())


class Pasting(Screen):
    """Writes and pastes a long text as soon as there is a window."""

    async def idle(self):
        if self.conversation is None:
            self.write("What is in this log?")
            self.editor.insert_text(LONG)
        await super().idle()


LONG = "A line of a log.\n" * (MAX_TEXT_LENGTH // 16)


def test_a_text_that_is_pasted_before_the_first_conversation_is_open_stays_beside_what_is_written(
    qapp, in_loop, tmp_path
):
    async def work():
        screen = await Pasting.open(qapp, tmp_path / "data", Turn(ContentDelta("Hi")))
        try:
            await until(lambda: screen.conversation is not None)
            await screen.idle()
            assert screen.editor.toPlainText() == "What is in this log?"
            assert screen.window.page.composer.attachments.texts == [LONG]
            await screen.window.page._drafts.save()
            draft = await screen.desk.library.drafts.load(screen.conversation)
            assert (draft.record.text, draft.record.pasted) == ("What is in this log?", (LONG,))
        finally:
            await screen.close()

    in_loop(work())


class Impatient(Screen):
    """Presses keys as soon as there is a window."""

    keys = Qt.Key.Key_K, Qt.KeyboardModifier.ControlModifier

    def before(self):
        QTest.qWaitForWindowActive(self.front.window)
        QTest.keyClick(self.front.window.frame.composer.editor, *self.keys)


@pytest.mark.parametrize(
    ("key", "modifier", "name"),
    [
        (Qt.Key.Key_K, Qt.KeyboardModifier.ControlModifier, "Commands"),
        (Qt.Key.Key_Comma, Qt.KeyboardModifier.ControlModifier, "Settings"),
        (Qt.Key.Key_F1, Qt.KeyboardModifier.NoModifier, "Help"),
    ],
)
def test_keys_pressed_before_there_are_actions_are_not_lost(qapp, in_loop, tmp_path, key, modifier, name):
    class Here(Impatient):
        keys = key, modifier

    async def work():
        screen = await Here.open(qapp, tmp_path / "data")
        try:
            opened = await screen.wait_for(QDialog if name != "Commands" else CommandPalette, name)
            await until(lambda: screen.conversation is not None)
            await screen.idle()
            # The conversation that came meanwhile takes the keyboard from nobody.
            assert opened.isVisible()
            assert opened.isAncestorOf(QApplication.focusWidget())
        finally:
            await screen.close()

    in_loop(work())
