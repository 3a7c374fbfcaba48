"""Closing the window while the disk refuses what was said."""

import asyncio
import base64
import json
import threading
from contextlib import contextmanager

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog, QLineEdit, QPushButton

from desktop_agent.conversation.picture_preparation import ImportedPicture
from desktop_agent.engine import connections
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import ContentDelta
from tests.desktop_agent.api.test_ask import png
from tests.fakes.qt_loop import LIMIT, until
from tests.fakes.scripted_provider import Turn
from ui.composer.attachment_items import PendingPicture


@pytest.fixture(autouse=True)
def no_local_servers(monkeypatch):
    monkeypatch.setattr(connections, "LOCAL_SERVERS", ())


@contextmanager
def moved_folder(screen, tmp_path):
    """Have the data folder somewhere else meanwhile."""
    folder, target = screen.engine.folder, tmp_path / "elsewhere"
    folder.rename(target)
    try:
        yield
    finally:
        assert not folder.exists(), "made again, it would stand in the way of the one that is put back"
        target.rename(folder)


class RunToEnd:
    """A task that runs the window until its closing is confirmed."""

    def __init__(self, screen):
        self.over = False
        screen.desk._tasks.start(self._run(screen))

    async def _run(self, screen):
        await screen.desk.wait_until_closed()
        self.over = True


async def ask_to_close(screen):
    screen.window.close()
    return await until(screen.question)


def test_what_could_not_be_written_is_asked_about_and_saved_elsewhere(on_screen, tmp_path):
    async def work(screen):
        run_to_end = RunToEnd(screen)
        with moved_folder(screen, tmp_path):
            await until(lambda: run_to_end)
            screen.write("precious")
            screen.press("Send")
            await until(lambda: screen.answers() == ["gold"])
            await until(lambda: not screen.conversation.working)
            box = await ask_to_close(screen)
            assert "precious" in " ".join(screen.words(box))
            assert "gone" in " ".join(screen.words(box))
            screen.answer_question("Save elsewhere…")
            dialog = await until(lambda: screen.window.findChild(QFileDialog))
            assert dialog.findChild(QLineEdit).text().startswith("Unsaved conversations")
            dialog.findChild(QLineEdit).setText(str(tmp_path / "rest.md"))
            save = next(button for button in dialog.findChildren(QPushButton) if "Save" in button.text())
            QTest.mouseClick(save, Qt.MouseButton.LeftButton)
            await until(lambda: run_to_end.over)
            text = (tmp_path / "rest.md").read_text()
            assert "precious" in text
            lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
            assert [line["message"]["blocks"][0]["text"] for line in lines if "message" in line] == ["precious", "gold"]
            assert await screen.desk.exit_code() == 0

    on_screen(work, Turn(ContentDelta("gold")))


def test_trying_again_when_the_disk_is_back_ends_in_peace(on_screen, tmp_path):
    async def work(screen):
        run_to_end = RunToEnd(screen)
        with moved_folder(screen, tmp_path):
            screen.write("precious")
            screen.press("Send")
            await until(lambda: screen.answers() == ["gold"])
            await until(lambda: not screen.conversation.working)
            await ask_to_close(screen)
        screen.answer_question("Try again")
        await until(lambda: run_to_end.over)
        assert await screen.desk.exit_code() == 0

    on_screen(work, Turn(ContentDelta("gold")))


def test_keeping_it_open_keeps_it_open_and_quitting_without_fails(on_screen, tmp_path, capsys):
    async def work(screen):
        run_to_end = RunToEnd(screen)
        with moved_folder(screen, tmp_path):
            screen.write("precious")
            screen.press("Send")
            await until(lambda: screen.answers() == ["gold"])
            await until(lambda: not screen.conversation.working)
            await ask_to_close(screen)
            screen.answer_question("Keep open")
            await until(lambda: not screen.desk.closed.done())
            assert screen.question() is None
            assert not screen.front.is_ended
            assert not run_to_end.over
            await ask_to_close(screen)
            screen.answer_question("Quit without saving")
            await until(lambda: run_to_end.over)
            assert await screen.desk.exit_code() == 1
            assert "“precious” could not be saved" in capsys.readouterr().err

    on_screen(work, Turn(ContentDelta("gold")))


def test_a_draft_that_could_not_be_kept_is_asked_about(on_screen, tmp_path):
    async def work(screen):
        run_to_end = RunToEnd(screen)
        with moved_folder(screen, tmp_path):
            screen.write("half a thought")
            await until(lambda: screen.banners.keys)
            box = await ask_to_close(screen)
            assert "message that you are writing" in " ".join(screen.words(box))
            screen.answer_question("Quit without saving")
            await until(lambda: run_to_end.over)
            assert await screen.desk.exit_code() == 1

    on_screen(work)


def test_a_draft_that_is_just_being_refused_is_not_taken_for_kept(on_screen, tmp_path):
    async def work(screen):
        # It has a place on the disk, and its draft is there.
        await screen.say("first")
        with moved_folder(screen, tmp_path):
            screen.editor.setPlainText("half a thought")
            screen.window.page._drafts.save_soon()
            await screen.desk._save_draft()
            assert screen.desk._lost_draft.record.text == "half a thought"
            await screen.idle()

    on_screen(work, Turn(ContentDelta("gold")))


def test_what_comes_after_the_question_is_in_the_file_too(on_screen, tmp_path):
    async def work(screen):
        run_to_end = RunToEnd(screen)
        with moved_folder(screen, tmp_path):
            screen.write("precious")
            screen.press("Send")
            await until(lambda: screen.answers() == ["silver"])
            await until(lambda: not screen.conversation.working)
            await ask_to_close(screen)
            screen.answer_question("Save elsewhere…")
            dialog = await until(lambda: screen.window.findChild(QFileDialog))
            # A prompt that waited, a program of the person's own: the engine goes on behind the question.
            screen.conversation._session.send(Message.user("more"))
            await until(lambda: screen.answers() == ["silver", "gold"])
            await until(lambda: not screen.conversation.working)
            dialog.findChild(QLineEdit).setText(str(tmp_path / "rest.md"))
            save = next(button for button in dialog.findChildren(QPushButton) if "Save" in button.text())
            QTest.mouseClick(save, Qt.MouseButton.LeftButton)
            await until(lambda: run_to_end.over)
            assert "gold" in (tmp_path / "rest.md").read_text()
            # And what comes while everything ends.
            screen.conversation._session.change_record(title="named at the end")
            await screen.engine.write_all()
            assert await screen.desk.exit_code() == 0
            assert "named at the end" in (tmp_path / "rest.md").read_text()
            (tmp_path / "rest.md").unlink()
            (tmp_path / "rest.md").mkdir()
            screen.conversation._session.change_record(title="named too late")
            assert await screen.desk.exit_code() == 1

    on_screen(work, Turn(ContentDelta("silver")), Turn(ContentDelta("gold")))


def test_a_draft_and_its_picture_are_named_and_saved_beside_conversations(on_screen, tmp_path):
    async def work(screen):
        run_to_end = RunToEnd(screen)
        with moved_folder(screen, tmp_path):
            screen.write("precious")
            screen.press("Send")
            await until(lambda: screen.answers() == ["gold"])
            await until(lambda: not screen.conversation.working)
            screen.write("and this")
            imported = ImportedPicture(png(), "image/png", 3, 2)
            screen.window.page.composer.restore_message("", [PendingPicture("cat.png", imported)])
            box = await ask_to_close(screen)
            assert "“precious” could not be saved" in " ".join(screen.words(box))
            assert "The message that you are writing could not be saved either." in " ".join(screen.words(box))
            screen.answer_question("Save elsewhere…")
            dialog = await until(lambda: screen.window.findChild(QFileDialog))
            dialog.findChild(QLineEdit).setText(str(tmp_path / "rest.md"))
            save = next(button for button in dialog.findChildren(QPushButton) if "Save" in button.text())
            QTest.mouseClick(save, Qt.MouseButton.LeftButton)
            await until(lambda: run_to_end.over)
            text = (tmp_path / "rest.md").read_text()
            assert "# What was being written\n\nand this\n\n(a picture: cat.png)" in text
            line = next(line for line in text.splitlines() if line.startswith('{"draft"'))
            draft = Message.model_validate(json.loads(line)["draft"])
            assert [block.type for block in draft.blocks] == ["text", "image"]
            assert base64.b64decode(draft.blocks[1].source.data) == png()

    on_screen(work, Turn(ContentDelta("gold")))


class Busy:
    """The disk, from the moment in which a conversation is shown until it is let go: no draft can be read."""

    def __init__(self, screen):
        self._free = threading.Event()
        self._screen = screen
        self._seen = 0
        screen.desk.library.opened.connect(self._hold)

    def _hold(self):
        self._seen += 1
        if self._seen == 1:
            self._screen.engine.store._thread._worker.submit(lambda: self._free.wait(LIMIT))

    async def shown(self, id_):
        self._screen.desk.library.open(id_)
        await until(lambda: self._screen.conversation.id == id_)

    def on_nested_end(self):
        self._free.set()


def test_what_is_written_before_the_draft_is_there_is_kept_at_the_end(on_screen):
    async def work(screen):
        await screen.say("one")
        first = screen.conversation.id
        screen.write("old")
        await until(lambda: screen.kept_draft() == "old")
        screen.desk.library.new()
        await screen.idle()
        busy = Busy(screen)
        await busy.shown(first)
        screen.write("new")
        asyncio.get_running_loop().call_later(0, busy.on_nested_end)

    async def check(screen):
        assert screen.editor.toPlainText() == "old\n\nnew"

    on_screen(work, Turn(ContentDelta("Hi")))
    on_screen(check)


def test_what_is_written_before_the_draft_is_there_stays_with_its_conversation(on_screen):
    async def work(screen):
        await screen.say("one")
        first = screen.conversation.id
        screen.desk.library.new()
        await screen.idle()
        busy = Busy(screen)
        await busy.shown(first)
        screen.write("about one")
        screen.desk.library.new()
        await until(lambda: screen.conversation.id != first)
        busy.on_nested_end()
        await screen.idle()
        assert screen.editor.toPlainText() == ""
        screen.desk.library.open(first)
        await until(lambda: screen.conversation.id == first)
        await screen.idle()
        assert screen.editor.toPlainText() == "about one"

    on_screen(work, Turn(ContentDelta("Hi")))


def test_the_system_asks_nobody_and_hears_that_something_was_lost(on_screen, tmp_path, capsys):
    async def work(screen):
        run_to_end = RunToEnd(screen)
        with moved_folder(screen, tmp_path):
            screen.write("precious")
            screen.press("Send")
            await until(lambda: screen.answers() == ["gold"])
            await until(lambda: not screen.conversation.working)
            await ask_to_close(screen)
            screen.front.end_without_asking()  # while the question stands
            await until(lambda: run_to_end.over)
            assert screen.question() is None
            assert await screen.desk.exit_code() == 1

    on_screen(work, Turn(ContentDelta("gold")))
