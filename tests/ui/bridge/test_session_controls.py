"""Mode, waiting messages and questions of a conversation, as the screens see them."""

import asyncio

import pytest

from desktop_agent.types.blocks import Image, Text, UrlSource
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.messages import AttachedText, Message, label_attached, split_attached
from tests.fakes.qt_loop import Bridge, Heard, until
from tests.fakes.scripted_provider import Turn, Wait

PICTURE = Image(source=UrlSource(url="https://example.org/a.png"))


@pytest.fixture
def working(in_loop, tmp_path):
    """Return a function that runs `work(conversation)` while the model is silent."""

    def run(work):
        async def whole():
            wait = Wait(asyncio.Event(), asyncio.Event())
            bridge = await Bridge.open(tmp_path, Turn(wait), Turn(), Turn())
            bridge.library.new()
            conversation = bridge.library.current
            conversation.send(Message.user("begin"))
            await wait.reached.wait()
            await work(conversation)
            wait.until.set()
            await until(lambda: not conversation.working and not conversation.session_controls.queue)
            await bridge.idle()
            await bridge.close()

        in_loop(whole())

    return run


def test_what_is_attached_to_a_waiting_message_stays_when_its_words_change(working):
    async def work(conversation):
        controls, file = conversation.session_controls, AttachedText("notes.txt", "to read")
        blocks = (Text(text="First"), Text(text=label_attached(file)))
        conversation.send(Message(role="user", blocks=blocks))
        await until(lambda: controls.queue)
        [message] = controls.queue
        assert (message.text, message.files) == ("First", ("notes.txt",))
        for words in ("Last", ""):
            controls.edit_queued_message(message.id, words)
            [message] = controls.queue
            assert (message.text, message.files) == (words, ("notes.txt",))
            entry = controls._entry(message.id)
            assert split_attached(entry.message.text) == (words, (file,))

    working(work)


def waiting(conversation):
    return [(message.text, message.when, message.pictures) for message in conversation.session_controls.queue]


def test_what_is_sent_meanwhile_waits_and_says_so(working):
    async def work(conversation):
        changes = Heard(conversation.session_controls.queue_changed)
        conversation.send(Message.user("soon"))
        conversation.send(Message.user_with_blocks([Text(text="later"), PICTURE]), "idle")
        assert waiting(conversation) == [("soon", "soon", 0), ("later", "idle", 1)]
        assert len(changes) == 2
        changes.leave()

    working(work)


def test_other_words_keep_the_pictures_and_no_words_at_all_are_refused(working):
    async def work(conversation):
        controls = conversation.session_controls
        conversation.send(Message.user_with_blocks([Text(text="one"), PICTURE]))
        conversation.send(Message.user("two"))
        first, second = (message.id for message in controls.queue)
        controls.edit_queued_message(first, "other")
        assert waiting(conversation) == [("other", "soon", 1), ("two", "soon", 0)]
        controls.edit_queued_message(first, " ")
        assert waiting(conversation)[0] == ("", "soon", 1)
        with pytest.raises(WrongUse):
            controls.edit_queued_message(second, " ")
        with pytest.raises(WrongUse):
            controls.edit_queued_message("gone", "x")

    working(work)


def test_what_was_taken_out_can_be_put_back_where_it_was(working):
    async def work(conversation):
        controls = conversation.session_controls
        for text in ("one", "two", "three"):
            conversation.send(Message.user(text), "idle")
        removed = controls.remove_message(controls.queue[1].id)
        assert [text_message.text for text_message in controls.queue] == ["one", "three"]
        controls.restore_message(removed)
        assert [text_message.text for text_message in controls.queue] == ["one", "two", "three"]
        with pytest.raises(WrongUse):
            controls.restore_message(removed)
        with pytest.raises(WrongUse):
            controls.remove_message("gone")
        for message in controls.queue:
            controls.remove_message(message.id)

    working(work)


def test_a_request_is_shown_once_it_was_announced(working):
    async def work(conversation):
        controls, modes = conversation.session_controls, conversation._session.modes
        changes = Heard(controls.modes_changed)
        modes.request_by_agent("plan")
        assert controls.requested_mode is None
        modes.at_turn_boundary()
        assert controls.requested_mode.name == "plan"
        assert len(changes) == 1
        controls.reject_mode()
        assert (controls.requested_mode, controls.mode.name) == (None, "default")
        changes.leave()

    working(work)
