"""Pictures of drafts whose files cannot be read, for a moment or for good."""

import errno
import os
from contextlib import contextmanager
from pathlib import Path

from PySide6.QtWidgets import QToolButton

from desktop_agent.types.blocks import Image
from desktop_agent.types.messages import Message
from tests.fakes.qt_loop import until
from tests.ui.shell.test_drafts import _new as new_conversation
from tests.ui.shell.test_drafts import answers, composer, details, png, show


@contextmanager
def unreadable(monkeypatch, path):
    """Let the disk fail to read this file."""
    read = Path.read_bytes

    def fail(self):
        if self == path:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return read(self)

    with monkeypatch.context() as failing:
        failing.setattr(Path, "read_bytes", fail)
        yield


async def with_picture(screen):
    """Attach a picture in a conversation and show another one; return the first one and the picture's file."""
    await screen.say("One")
    first = screen.conversation.id
    composer(screen).attachments.add_pasted(png())
    await until(lambda: composer(screen).draft()[1])
    await new_conversation(screen)
    await screen.idle()
    return first, screen.window.page._pictures.path_of((await images(screen, first))[0].source)


async def images(screen, conversation_id):
    return (await screen.engine.store.load_draft(conversation_id)).images


def test_a_picture_that_cannot_be_read_now_stays_in_a_draft_that_is_written_on_and_is_sent(on_screen, monkeypatch):
    async def work(screen):
        first, file = await with_picture(screen)
        with unreadable(monkeypatch, file):
            await show(screen, first)
            assert details(screen) == ["Cannot be read now"]
            screen.write("Look at this")
            await until(lambda: screen.kept_draft() == "Look at this")
            assert len(await images(screen, first)) == 1
            screen.press("Send")
            await until(lambda: "cannot be read now" in " ".join(screen.words(composer(screen))))
            assert (screen.editor.toPlainText(), details(screen)) == ("Look at this", ["Cannot be read now"])
        await screen.say("!")
        message = screen.conversation._session.history[-2]
        assert (message.text, [type(block) for block in message.blocks][1:]) == ("Look at this!", [Image])
        assert composer(screen).draft() == ("", [])

    on_screen(work, answers(), answers())


def test_a_picture_that_cannot_be_read_now_can_be_taken_off(on_screen, monkeypatch):
    async def work(screen):
        first, file = await with_picture(screen)
        with unreadable(monkeypatch, file):
            await show(screen, first)
            screen.find(QToolButton, "Remove").click()
            assert composer(screen).draft() == ("", [])
            await screen.window.page._drafts.save()
            assert await images(screen, first) == ()

    on_screen(work, answers())


def test_a_picture_that_is_damaged_is_left_out_and_that_is_said(on_screen):
    async def work(screen):
        first, file = await with_picture(screen)
        file.write_bytes(b"no picture at all")
        await show(screen, first)
        assert composer(screen).draft() == ("", [])
        assert "damaged on the disk" in " ".join(screen.words(composer(screen)))

    on_screen(work, answers())


def test_a_message_comes_back_with_a_picture_that_cannot_be_read_now(on_screen, monkeypatch):
    async def work(screen):
        first, file = await with_picture(screen)
        (picture,) = await images(screen, first)
        with unreadable(monkeypatch, file):
            message = Message.user_with_blocks([*Message.user("handed back").blocks, picture])
            await screen.window.page._drafts.return_message(screen.conversation, message)
            assert (screen.editor.toPlainText(), details(screen)) == ("handed back", ["Cannot be read now"])
            await until(lambda: screen.kept_draft() == "handed back")
        assert await images(screen, None) == (picture,)

    on_screen(work, answers())


def test_attachments_come_back_in_their_order(on_screen, tmp_path):
    names = ["a.txt", "b.png", "c.txt", "d.png"]
    for name in names:
        (tmp_path / name).write_bytes(png() if name.endswith("png") else name.encode())

    async def work(screen):
        await screen.say("One")
        first = screen.conversation.id
        for name in names:
            composer(screen).attachments.add_files([tmp_path / name])
        await composer(screen).attachments.wait_until_ready()
        await new_conversation(screen)
        await screen.idle()
        await show(screen, first)
        assert [chip._name.text() for chip in composer(screen).attachments.chips] == names

    on_screen(work, answers())
