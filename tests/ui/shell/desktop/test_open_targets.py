"""Links and files come into the composer of a new conversation. Nothing is sent."""

import os

import pytest
from PIL import Image as Picture

from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.qt_loop import held, until
from tests.fakes.scripted_provider import Turn
from ui.bridge.desktop.links import conversation_link
from ui.bridge.single_instance import StartRequest

FROM_LINK = "This text comes from a link. Read all of it before you send it."


async def hand_over(screen, *targets):
    screen.front.on_started_again(StartRequest(targets))
    await screen.idle()


def composer(screen):
    return screen.window.page.composer


def chips(screen):
    return [chip.accessibleName() for chip in composer(screen).attachments.chips]


def answers():
    return Turn(ContentDelta("Yes"))


def test_a_text_of_a_link_is_marked_and_waits_to_be_read(on_screen):
    async def work(screen):
        await screen.say("One")
        first = screen.conversation.id
        await hand_over(screen, "desktop-agent://new?prompt=Delete+everything")
        assert screen.conversation.id != first
        assert screen.conversation.is_empty
        assert screen.editor.toPlainText() == "Delete everything"
        assert FROM_LINK in screen.words(composer(screen))
        assert len(screen.provider.requests) == 1
        # It is a draft like any other, marked also when it comes back.
        await until(lambda: screen.kept_draft() == "Delete everything")
        screen.desk.library.open(first)
        await until(lambda: screen.conversation.id == first)
        await screen.idle()
        assert FROM_LINK not in screen.words(composer(screen))
        screen.action("New conversation").trigger()
        await until(lambda: screen.editor.toPlainText() == "Delete everything")
        assert FROM_LINK in screen.words(composer(screen))
        # Sent by the person, it still counts as something from outside.
        finished = screen.conversation.finished
        finished_runs = []
        finished.connect(lambda: finished_runs.append(1))
        screen.press("Send")
        await until(lambda: finished_runs)
        session = screen.engine._sessions[screen.conversation.id]
        await session.wait_idle()
        assert [source.name for source in session.permission_policy.untrusted_content.sources] == [
            "desktop-agent://new"
        ]
        assert FROM_LINK not in screen.words(composer(screen))

    on_screen(work, answers(), answers())


def test_what_is_written_stays_before_what_a_link_brings(on_screen):
    async def work(screen):
        await screen.say("One")
        screen.action("New conversation").trigger()
        await screen.idle()
        screen.write("My own words")
        await hand_over(screen, "desktop-agent://new?prompt=And+more")
        await until(lambda: screen.editor.toPlainText() == "My own words\n\nAnd more")
        assert FROM_LINK in screen.words(composer(screen))
        await hand_over(screen, "desktop-agent://new")
        await until(lambda: screen.editor.toPlainText() == "My own words\n\nAnd more")

    on_screen(work, answers())


def test_a_link_leads_to_a_conversation_and_to_a_message(on_screen):
    async def work(screen):
        await screen.say("One")
        first = screen.conversation.id
        message = screen.conversation.transcript[0].message_id
        screen.action("New conversation").trigger()
        await screen.idle()
        await hand_over(screen, conversation_link(first))
        assert screen.conversation.id == first
        screen.action("New conversation").trigger()
        await screen.idle()
        arrivals = []
        screen.window.page.messages.arrived.connect(lambda conversation, row: arrivals.append((conversation.id, row)))
        await hand_over(screen, conversation_link(first, message))
        await until(lambda: arrivals == [(first, 0)])

    on_screen(work, answers())


def test_what_cannot_be_opened_is_said_in_a_sentence_each(on_screen, tmp_path):
    os.mkfifo(tmp_path / "pipe")

    async def work(screen):
        screen.write("My own words")
        conversation = screen.conversation
        await hand_over(screen, "desktop-agent://run", conversation_link("none"), str(tmp_path), str(tmp_path / "pipe"))
        await until(lambda: len(screen.banners.keys) == 4)
        words = " ".join(screen.words(screen.banners))
        for part in ("does not know this link", "There is no conversation “none”", "is a folder", "a device or a chan"):
            assert part in words
        assert screen.conversation is conversation
        assert screen.editor.toPlainText() == "My own words"

    on_screen(work)


def test_files_are_attached_to_a_new_conversation(on_screen, tmp_path):
    Picture.new("RGB", (40, 30), "red").save(tmp_path / "red.png")
    (tmp_path / "notes.txt").write_text("Milk\r\nBread")
    (tmp_path / "data.bin").write_bytes(b"\0\1")

    async def work(screen):
        await screen.say("One")
        first = screen.conversation.id
        names = ("red.png", "notes.txt", "data.bin")
        await hand_over(screen, *(str(tmp_path / name) for name in names))
        await until(lambda: sorted(chips(screen)) == ["Attached file: notes.txt", "Attached image: red.png"])
        assert screen.conversation.id != first
        assert any("“data.bin” is neither a picture nor a text" in words for words in screen.words(composer(screen)))
        assert len(screen.provider.requests) == 1
        finished_runs = []
        screen.conversation.finished.connect(lambda: finished_runs.append(1))
        await until(lambda: not composer(screen).attachments.is_preparing)
        screen.write("Look")
        screen.press("Send")
        await until(lambda: finished_runs)
        session = screen.engine._sessions[screen.conversation.id]
        await session.wait_idle()
        text = " ".join(block.text for block in session.history[0].blocks if block.type == "text")
        assert "[The file “notes.txt”, up to " in text
        assert "Milk\nBread" in text
        assert str(tmp_path) not in text
        # A file of the person's own is nothing from outside.
        assert not session.permission_policy.untrusted_content.has_arrived

    on_screen(work, answers(), answers())


def test_a_folder_full_of_files_was_not_meant(on_screen, tmp_path):
    for number in range(25):
        (tmp_path / f"{number}.txt").write_text("a")

    async def work(screen):
        await hand_over(screen, *(str(tmp_path / f"{number}.txt") for number in range(25)))
        await until(lambda: len(chips(screen)) == 20)
        assert any("Only the first 20" in words for words in screen.words(screen.banners))

    on_screen(work)


@pytest.mark.parametrize("target", ["desktop-agent://new?prompt=Hello", "a.txt"])
def test_what_comes_while_the_demo_starts_goes_to_the_new_conversation(on_screen, tmp_path, target):
    (tmp_path / "a.txt").write_text("text of a file")

    async def work(screen):
        await screen.say("One")
        await until(lambda: screen.desk._desktop)
        await screen.idle()
        is_called, may_go_on = held(screen.engine, "new_demo_session")
        screen.desk.library.new_demo()
        await is_called.wait()
        screen.front.on_started_again(StartRequest((target if "://" in target else str(tmp_path / target),)))
        await until(lambda: composer(screen).draft()[1])
        may_go_on.set()
        await screen.idle()
        assert screen.conversation.is_demo
        await until(lambda: composer(screen).draft()[1])

    on_screen(work, answers())
