"""A message that was not delivered comes back to who wrote it."""

import asyncio
from dataclasses import replace
from io import BytesIO

from PIL import Image as Picture
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from desktop_agent.conversation.items import NoticeItem, UserItem
from desktop_agent.conversation.picture_preparation import import_picture_async
from desktop_agent.types.messages import Message
from desktop_agent.types.policies import HookDeny, Hooks
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn


class WaitingHook:
    """A hook that lets a prompt wait, and then returns the verdict that the test sets."""

    def __init__(self):
        self.asked, self.decided = asyncio.Event(), asyncio.Event()
        self.verdict = HookDeny("not today.")

    async def __call__(self, moment):
        self.asked.set()
        await self.decided.wait()
        return self.verdict

    def add_to(self, engine):
        original = engine._setup
        engine._setup = lambda store: replace(original(store), hooks=Hooks().add_user_prompt_submit(self))


async def send_to_hook(screen, text="precious words"):
    """Send a message that waits for the hook; return the hook."""
    hook = WaitingHook()
    hook.add_to(screen.engine)
    screen.action("New conversation").trigger()
    await screen.idle()
    if text:
        screen.write(text)
    screen.press("Send")
    await hook.asked.wait()
    assert screen.editor.toPlainText() == ""
    assert prompts(screen) == [text]
    return hook


def prompts(screen):
    return [item.text for item in screen.conversation.transcript if isinstance(item, UserItem)]


async def wait_for_end(screen):
    await until(lambda: not screen.conversation.working)
    await screen.engine._sessions[screen.conversation.id].wait_idle()
    await screen.idle()


def test_what_a_hook_refuses_stands_in_the_composer_again_and_nowhere_else(on_screen):
    async def refused(screen):
        hook = await send_to_hook(screen)
        hook.decided.set()
        await wait_for_end(screen)
        assert screen.editor.toPlainText() == "precious words"
        assert prompts(screen) == []
        assert "not today." in " ".join(
            str(item.sentence) for item in screen.conversation.transcript if isinstance(item, NoticeItem)
        )
        # The same message goes out when nobody minds it any more.
        hook.verdict = None
        await screen.say("!")
        assert prompts(screen) == ["precious words!"]
        assert screen.answers() == ["ok"]
        assert screen.editor.toPlainText() == ""

    on_screen(refused, Turn(ContentDelta("ok")))


def test_a_refused_message_is_in_the_composer_again_after_a_restart(on_screen):
    async def refused(screen):
        hook = await send_to_hook(screen)
        hook.decided.set()
        await wait_for_end(screen)

    async def check(screen):
        assert screen.conversation.title == "precious words"
        assert prompts(screen) == []
        assert screen.editor.toPlainText() == "precious words"
        screen.action("New conversation").trigger()
        await screen.idle()
        assert screen.editor.toPlainText() == ""

    on_screen(refused)
    on_screen(check)


def test_what_is_being_written_by_then_stays_and_the_message_follows_it(on_screen):
    async def work(screen):
        hook = await send_to_hook(screen)
        screen.write("the next")
        for _ in range(4):
            QTest.keyClick(screen.editor, Qt.Key.Key_Left)
        hook.decided.set()
        await wait_for_end(screen)
        assert screen.editor.toPlainText() == "the next\n\nprecious words"
        screen.write("very ")
        assert screen.editor.toPlainText() == "the very next\n\nprecious words"

    on_screen(work)


def test_stop_gives_back_what_was_not_sent_yet(on_screen):
    async def work(screen):
        await send_to_hook(screen)
        screen.press("Stop")
        await wait_for_end(screen)
        assert screen.editor.toPlainText() == "precious words"
        assert prompts(screen) == []

    on_screen(work)


def test_pictures_come_back_too(on_screen):
    async def work(screen):
        data = BytesIO()
        Picture.new("RGB", (20, 10), "red").save(data, "PNG")
        composer = screen.window.page.composer
        screen.action("New conversation").trigger()
        await screen.idle()
        imported = await import_picture_async(data.getvalue(), "red.png")
        hook = WaitingHook()
        hook.add_to(screen.engine)
        screen.action("New conversation").trigger()
        await screen.idle()
        composer.attachments.add_pasted(data.getvalue())
        await until(lambda: composer.draft()[1])
        screen.press("Send")
        await hook.asked.wait()
        await until(lambda: composer.draft() == ("", []))
        hook.decided.set()
        await wait_for_end(screen)
        text, (picture,) = composer.draft()
        assert (text, picture.name, picture.taken.data) == ("", "Pasted picture", imported.data)
        assert prompts(screen) == []

    on_screen(work)


def test_behind_another_conversation_it_waits_in_its_own(on_screen):
    async def work(screen):
        hook = await send_to_hook(screen)
        first = screen.conversation.id
        screen.write("the next")
        screen.action("New conversation").trigger()
        await screen.idle()
        session = screen.engine._sessions[first]
        hook.decided.set()
        await until(lambda: not session.working)
        await session.wait_idle()
        await screen.idle()
        assert screen.editor.toPlainText() == ""
        screen.desk.library.open(first)
        await until(lambda: screen.conversation.id == first)
        await screen.idle()
        assert screen.editor.toPlainText() == "the next\n\nprecious words"
        assert prompts(screen) == []

    on_screen(work)


def test_a_message_in_a_conversation_without_a_model_stays_and_the_models_are_shown(on_screen, qt_messages):
    qt_messages.expect("grabbing the keyboard")

    async def work(screen):
        imported = await screen.engine.store.create_conversation(title="Imported")
        await screen.engine.store.commit(imported.id, Message.user("Hello"), Message.assistant("Hi."))
        screen.desk.library.open(imported.id)
        await screen.idle()
        screen.write("precious words")
        screen.press("Send")
        await screen.idle()
        assert prompts(screen) == ["Hello"]
        assert screen.editor.toPlainText() == "precious words"
        assert any("Choose a model first." in word for word in screen.words())
        assert screen.window.page.models.picker._popup.isVisible()
        screen.window.page.models.picker._popup.hide()
        screen.window.page.models.choose_model("scripted", "m")
        await screen.idle()
        assert not any("Choose a model first." in word for word in screen.words())
        assert screen.editor.toPlainText() == "precious words"

    on_screen(work, Turn(ContentDelta("never")))
