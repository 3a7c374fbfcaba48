"""The window over a real engine."""

import asyncio
import os
from unittest.mock import MagicMock

import pytest
from PySide6.QtCore import QFile, Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QListView, QPushButton, QWidget

from desktop_agent.api.command_line import LaunchOptions
from desktop_agent.conversation.items import NoticeItem, ToolCallItem
from desktop_agent.engine import connections
from desktop_agent.engine.engine import RunDefaults
from desktop_agent.types.blocks import Outcome, ToolUse
from desktop_agent.types.engine_events import Envelope, ErrorOccurred
from desktop_agent.types.errors import DiskFull, QuotaExhausted, RemedyAction, WrongUse
from desktop_agent.types.messages import Role, now
from desktop_agent.types.provider_events import ContentDelta, MessageDelta, StopReason, Usage, UsageUpdate
from tests.fakes.agent_run import call
from tests.fakes.model_server import endpoint, model_server
from tests.fakes.qt_loop import prompts, until
from tests.fakes.scripted_provider import Turn, Wait
from tests.fakes.window import Screen
from ui.approval.approval_dialog import ApprovalDialog
from ui.bridge import conversation_listing
from ui.bridge.drafts import ComposerDraft, Draft
from ui.shell.banners import BannerFrame
from ui.shell.layout import PAGE_WIDTH


def waiting():
    return Wait(asyncio.Event(), asyncio.Event())


@pytest.fixture(autouse=True)
def no_local_servers(monkeypatch):
    monkeypatch.setattr(connections, "LOCAL_SERVERS", ())


def test_without_a_provider_there_is_the_welcome(on_screen):
    async def work(screen):
        assert screen.find(QWidget, "Message") is None
        assert any("demo" in word.lower() for word in screen.words()) or screen.find(QWidget, "Try the demo")
        assert screen.conversation is None

    on_screen(work, connected=False)


def test_the_demo_opens_a_conversation(on_screen):
    async def work(screen):
        screen.press("Try the demo")
        await until(lambda: screen.conversation is not None)
        await screen.idle()
        assert screen.conversation.endpoint_id == "demo"
        await until(lambda: screen.window.page.models.picker.accessibleDescription() == "Demo")
        await screen.say("What is 6 * 7?")
        assert "42" in screen.answers()[-1]

    on_screen(work, connected=False)


def test_the_demo_is_found_among_the_commands(on_screen):
    async def work(screen):
        screen.action("Try the demo").trigger()
        await until(lambda: screen.conversation is not None and screen.conversation.is_demo)
        await screen.idle()

    on_screen(work, connected=False)


def test_what_is_sent_is_answered_in_the_transcript(on_screen):
    async def work(screen):
        assert screen.window.windowTitle() == "New conversation — Desktop Agent"
        await screen.say("Say hello")
        assert screen.answers() == ["Hello"]
        assert screen.editor.toPlainText() == ""
        assert screen.window.windowTitle() == "Say hello — Desktop Agent"
        assert screen.find(QPushButton, "Tokens and cost").text() == "1,234 tokens"
        rows = screen.find(QListView, "Conversations").model()
        assert [rows.index(n, 0).data() for n in range(rows.rowCount())] == ["Today", "Say hello"]

    on_screen(work, Turn(ContentDelta("Hel"), ContentDelta("lo"), UsageUpdate(Usage(total_tokens=1234))))


def test_enter_sends(on_screen):
    async def work(screen):
        screen.write("Hello")
        QTest.keyClick(screen.editor, Qt.Key.Key_Return)
        await until(lambda: screen.answers() == ["Hi"])
        await until(lambda: not screen.conversation.working)

    on_screen(work, Turn(ContentDelta("Hi")))


def test_stop_stands_where_send_was_and_stops(on_screen):
    async def work(screen):
        wait = waiting()
        screen.provider._turns += [Turn(ContentDelta("half"), wait), Turn(ContentDelta("whole"))]
        assert screen.find(QWidget, "Stop") is None
        screen.write("Hello")
        screen.press("Send")
        await wait.reached.wait()
        await screen.wait_for(QWidget, "Stop")
        assert screen.find(QWidget, "Send") is None
        screen.press("Stop")
        await screen.wait_for(QWidget, "Send")
        assert screen.answers() == ["half"]
        assert screen.conversation.transcript[1].interrupted
        assert screen.provider.closed_early == 1
        offer = await until(lambda: last_notice(screen))
        screen.window.page.transcript.remedy_requested.emit(offer.id, offer.action)
        await until(lambda: screen.answers() == ["half", "whole"])
        await until(lambda: not screen.conversation.working)
        assert last_notice(screen) is None

    on_screen(work)


def last_notice(screen):
    last = screen.conversation.transcript[-1]
    return last if isinstance(last, NoticeItem) else None


def test_what_cannot_be_sent_comes_back(on_screen, tmp_path):
    async def work(screen):
        screen.conversation.change(workspace=str(tmp_path / "gone"))
        screen.write("precious words")
        screen.press("Send")
        await until(lambda: screen.editor.toPlainText() == "precious words" and not screen.conversation.working)
        assert screen.editor.toPlainText() == "precious words"
        assert screen.conversation.is_empty
        screen.conversation.change(workspace=None)
        screen.press("Send")
        await until(lambda: screen.answers() == ["ok"])
        await until(lambda: not screen.conversation.working)

    on_screen(work, Turn(ContentDelta("ok")))


def test_a_folder_that_qt_cannot_name_is_not_taken_and_it_is_said(on_screen, tmp_path):
    folder = tmp_path / "work"
    (folder / os.fsdecode(b"caf\xe9 noir")).mkdir(parents=True)
    named_by_qt = QFile.decodeName(b"caf\xe9 noir")

    async def work(screen):
        picker = screen.window.page.workspace_picker
        picker.folder_chosen.emit(folder, screen.conversation.id)
        await until(lambda: screen.conversation.workspace == str(folder))
        picker.folder_chosen.emit(folder / named_by_qt, screen.conversation.id)
        words = (await until(lambda: screen.banners.findChild(BannerFrame))).words
        assert "There is no folder" in words
        assert "Rename it, or choose another folder." in words
        assert screen.conversation.workspace == str(folder)
        await screen.say("It works in the one before")
        assert not screen.banners.keys

    on_screen(work, Turn(ContentDelta("ok")))


def test_a_folder_that_a_link_took_the_place_of_is_said_until_it_is_chosen_again(on_screen, tmp_path):
    folder, keys = tmp_path / "work", tmp_path / "keys"
    folder.mkdir()
    keys.mkdir()
    (tmp_path / "alias").symlink_to(folder)

    async def choose(screen, chosen, real):
        screen.window.page.workspace_picker.folder_chosen.emit(chosen, screen.conversation.id)
        await until(lambda: screen.conversation.workspace == str(real))

    async def work(screen):
        await choose(screen, tmp_path / "alias", folder)
        await screen.say("One")
        (tmp_path / "alias").unlink()
        (tmp_path / "alias").symlink_to(keys)
        # What was a link when it was chosen is followed no more.
        await screen.say("Two")
        folder.rename(tmp_path / "aside")
        folder.symlink_to(keys)
        screen.write("Three")
        screen.press("Send")
        problem = f"“{folder}” leads to “{keys}” now. Choose the folder again if that is right, or another one."
        await until(lambda: problem in screen.words())
        assert screen.window.page.composer.editor.toPlainText() == "Three"
        assert screen.answers() == ["1", "2"]
        screen.desk.library.new()
        await until(lambda: screen.conversation.is_empty)
        # It takes over the folder as it was chosen, and does not follow it.
        assert screen.conversation.workspace == str(folder)
        screen.write("Three")
        screen.press("Send")
        await until(lambda: problem in screen.words())
        await choose(screen, folder, keys)
        await until(lambda: problem not in screen.words())
        await screen.say("Three")

    on_screen(work, *(Turn(ContentDelta(number)) for number in "123"))


def test_a_call_is_approved_in_the_dialog(on_screen, tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    write = call("1", "write_file").model_copy(update={"input": {"path": "a.txt", "content": "new"}})

    async def work(screen):
        screen.conversation.change(workspace=str(folder))
        screen.write("Write")
        screen.press("Send")
        dialog = await screen.wait_for(ApprovalDialog, "Approve tool call")
        assert not (folder / "a.txt").exists()
        await until(lambda: screen.find(QWidget, "Allow once").isEnabled())
        screen.press("Allow once")
        await until(lambda: screen.answers() == ["done"])
        await until(lambda: not screen.conversation.working)
        assert (folder / "a.txt").read_text() == "new"
        assert not dialog.isVisible()

    on_screen(work, Turn(write), Turn(ContentDelta("done")))


def test_a_denial_and_a_stop_reach_the_session(on_screen, tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    write = call("1", "write_file").model_copy(update={"input": {"path": "a.txt", "content": "new"}})

    async def work(screen):
        screen.conversation.change(workspace=str(folder))
        screen.write("Write")
        screen.press("Send")
        await screen.wait_for(ApprovalDialog, "Approve tool call")
        await until(lambda: screen.find(QWidget, "Deny").isEnabled())
        screen.press("Deny")
        await until(lambda: screen.answers() == ["all right"])
        await until(lambda: not screen.conversation.working)
        screen.write("Again")
        screen.press("Send")
        dialog = await screen.wait_for(ApprovalDialog, "Approve tool call")
        # Closed, it is only put off; the card brings it back.
        dialog.reject()
        assert screen.conversation.working
        screen.window.page.transcript.approval_requested.emit("any")
        await until(dialog.isVisible)
        screen.conversation.stop()
        await until(lambda: not screen.conversation.working)
        await until(lambda: not dialog.isVisible())
        outcomes = [item.outcome for item in screen.conversation.transcript if isinstance(item, ToolCallItem)]
        assert outcomes == [Outcome.DENIED, Outcome.CANCELLED]
        assert list(folder.iterdir()) == []

    on_screen(work, Turn(write), Turn(ContentDelta("all right")), Turn(write))


def test_a_failed_answer_is_told_in_place_and_can_be_tried_again(on_screen):
    async def work(screen):
        await screen.say("Hello")
        notice, offer = [item for item in screen.conversation.transcript if isinstance(item, NoticeItem)]
        assert "empty" in str(notice.sentence)
        assert str(offer.sentence) == "There is no answer to this yet."
        assert offer.action is RemedyAction.RETRY
        assert screen.banners.keys == []
        screen.window.page.transcript.remedy_requested.emit(notice.id, RemedyAction.RETRY)
        await until(lambda: screen.answers() == ["now"])
        await until(lambda: not screen.conversation.working)
        screen.window.page.transcript.remedy_requested.emit(notice.id, RemedyAction.CONTINUE)
        await until(lambda: screen.answers() == ["now", "more"])
        await until(lambda: not screen.conversation.working)
        assert prompts(screen.conversation)[-1] == "Continue."
        assert offer not in list(screen.conversation.transcript)

    on_screen(work, Turn(QuotaExhausted("empty")), Turn(ContentDelta("now")), Turn(ContentDelta("more")))


def test_continue_goes_on_with_results_without_saying_anything(on_screen):
    async def work(screen):
        chat = screen.engine.preferences.chat.model_copy(update={"max_tool_iterations": 1})
        await screen.engine.change_preferences(screen.engine.preferences.model_copy(update={"chat": chat}))
        await screen.say("Hello")
        notice = screen.conversation.transcript[-1]
        assert isinstance(notice, NoticeItem)
        screen.window.page.transcript.remedy_requested.emit(notice.id, notice.action)
        await until(lambda: screen.answers() == ["done"])
        await until(lambda: not screen.conversation.working)
        assert prompts(screen.conversation)[-1] == "Hello"
        assert screen.provider.requests[-1].messages[-1].role is Role.TOOL

    counted = ToolUse(id="1", name="calculate", input={"expression": "6 * 7"})
    on_screen(work, Turn(counted), Turn(ContentDelta("done")))


def test_continue_after_half_an_answer_does_not_ask_for_it_again(on_screen):
    async def work(screen):
        await screen.say("Hello")
        notice = screen.conversation.transcript[-1]
        assert notice.action is RemedyAction.CONTINUE
        screen.write("half a thought")
        action = screen.action("Continue answer")
        assert action.applies()
        action.trigger()
        await until(lambda: screen.answers() == ["half", " and half"])
        await until(lambda: not screen.conversation.working)
        assert not action.applies()
        texts = [message.text for message in screen.provider.requests[-1].messages]
        assert texts == ["Hello", "half", "Continue."]
        assert screen.editor.toPlainText() == "half a thought"

    cut = Turn(ContentDelta("half"), MessageDelta(StopReason.MAX_TOKENS))
    on_screen(work, cut, Turn(ContentDelta(" and half")))


def test_a_problem_of_the_program_is_a_banner(on_screen):
    async def work(screen):
        async def fails():
            raise DiskFull("The disk is full.")

        screen.desk._tasks.start(fails())
        await until(lambda: screen.banners.keys)
        assert "The disk is full." in screen.words(screen.banners)

    on_screen(work)


def test_a_deleted_conversation_comes_back(on_screen):
    async def work(screen):
        await screen.say("Hello")
        id_ = screen.conversation.id
        screen.window.sidebar.delete_requested.emit(id_)
        await until(lambda: screen.banners.keys)
        await screen.idle()
        assert screen.conversation.is_empty
        (undo,) = [button for button in screen.banners.findChildren(QPushButton) if button.text() == "Undo"]
        QTest.mouseClick(undo, Qt.MouseButton.LeftButton)
        await until(lambda: screen.conversation.id == id_)
        assert screen.answers() == ["Hi"]
        await screen.idle()
        assert screen.banners.keys == []

    on_screen(work, Turn(ContentDelta("Hi")))


def test_a_draft_lasts_over_a_restart(on_screen):
    async def write(screen):
        screen.write("half a thou")
        await until(lambda: screen.kept_draft() == "half a thou")
        screen.write("ght")  # the moment before the end counts too

    async def check(screen):
        assert screen.editor.toPlainText() == "half a thought"

    on_screen(write)
    on_screen(check)


def test_a_draft_begun_before_the_prompt_is_on_the_disk_is_kept(on_screen):
    async def write(screen):
        conversation, tasks = screen.conversation, screen.desk._tasks
        begun = []

        def on_changes(_):
            if not begun:
                begun.append(conversation._session.is_new)
                tasks.start(screen.desk.library.drafts.save(conversation, ComposerDraft(Draft("and then"))))

        conversation._session.subscribe(on_changes=on_changes)
        screen.write("Hello")
        screen.press("Send")
        await until(lambda: screen.answers() == ["Hi"])
        await until(lambda: not conversation.working)
        await screen.idle()
        assert begun == [True]
        assert screen.banners.keys == []
        assert (await screen.desk.library.drafts.load(conversation)).record.text == "and then"

    on_screen(write, Turn(ContentDelta("Hi")))


def test_a_conversation_that_somebody_else_wrote_in_is_opened_again(on_screen):
    async def work(screen):
        original, may_end = screen.conversation, asyncio.Event()
        original_session, events = original._session, []
        original._session.subscribe(on_event=events.append)
        screen.provider._turns[:] = [Turn(ContentDelta("half"), Wait(may_end)), Turn(ContentDelta("again"))]
        screen.write("Hello")
        screen.press("Send")
        await until(lambda: screen.answers() == ["half"])
        await original._session.flush()
        last = [event for event in events if event.run_id][-1]
        # Somebody without locks goes on in this very run.
        strange = [
            Envelope(last.seq + offset, last.run_id, None, None, now(), ErrorOccurred.of(WrongUse("x")))
            for offset in (1, 2)
        ]
        await screen.engine.store.append_journal(original.id, strange)
        id_ = original.id
        may_end.set()
        await until(lambda: screen.conversation is not None and screen.conversation._session is not original_session)
        await screen.idle()
        assert screen.conversation.id == id_
        await screen.say("more")
        assert screen.answers()[-1] == "again"

    on_screen(work)


def test_a_draft_stays_with_its_conversation(on_screen):
    async def work(screen):
        await screen.say("one")
        first = screen.conversation.id
        screen.action("New conversation").trigger()
        await screen.idle()
        await screen.say("two")
        screen.write("about two")
        screen.desk.library.open(first)  # at once, before the draft's own pause is over
        await until(lambda: screen.conversation.id == first)
        await screen.idle()
        assert screen.editor.toPlainText() == ""
        screen.write("about one")
        screen.desk.library.new()
        await screen.idle()
        assert screen.editor.toPlainText() == ""
        screen.desk.library.open(first)
        await until(lambda: screen.conversation.id == first)
        await screen.idle()
        assert screen.editor.toPlainText() == "about one"
        screen.action("Previous conversation").trigger()
        await until(lambda: screen.conversation.id != first)
        await screen.idle()
        assert screen.editor.toPlainText() == "about two"

    on_screen(work, Turn(), Turn())


def test_the_next_start_shows_what_was_shown_last_not_what_was_written_last(on_screen):
    ids = []

    async def work(screen):
        await screen.say("one")
        ids.append(screen.conversation.id)
        folder = await screen.engine.store.folders.create("Work")
        ids.append(folder.id)
        screen.desk.library.new()
        await screen.say("two")
        screen.desk.library.listing.open_folder(folder.id)
        screen.desk.library.open(ids[0])
        await until(lambda: screen.conversation.id == ids[0])
        await screen.idle()

    async def check(screen):
        await screen.idle()
        assert [screen.conversation.id, screen.desk.library.listing.folder] == ids

    on_screen(work, Turn(), Turn())
    on_screen(check)


def test_a_sent_draft_is_gone(on_screen):
    async def send(screen):
        screen.write("Hello")
        await until(lambda: screen.kept_draft() == "Hello")
        screen.press("Send")
        await until(lambda: screen.answers() == ["Hi"])
        await until(lambda: not screen.conversation.working)

    async def check(screen):
        assert screen.answers() == ["Hi"]  # the same place
        assert screen.editor.toPlainText() == ""
        screen.desk.library.new()
        await screen.idle()
        assert screen.editor.toPlainText() == ""

    on_screen(send, Turn(ContentDelta("Hi")))
    on_screen(check)


def test_closing_while_idle_asks_nothing(on_screen):
    async def work(screen):
        screen.window.close()
        assert screen.question() is None
        assert screen.desk.closed.done()

    on_screen(work)


def test_closing_while_working_asks_once(on_screen):
    async def work(screen):
        wait = waiting()
        screen.provider._turns.append(Turn(ContentDelta("half"), wait))
        screen.write("Hello")
        screen.press("Send")
        await wait.reached.wait()
        # Also when another conversation is on the screen by now.
        screen.action("New conversation").trigger()
        await screen.idle()
        screen.window.close()
        screen.window.close()
        assert screen.question() is not None
        assert not screen.desk.closed.done()
        screen.answer_question("Keep working")
        await until(lambda: screen.question() is None)
        assert not screen.desk.closed.done()
        screen.window.close()
        screen.answer_question("Stop and close")
        await until(screen.desk.closed.done)

    async def check(screen):
        assert screen.answers() == ["half"]

    on_screen(work)
    on_screen(check)


def test_when_the_work_has_ended_that_is_asked_about_the_window_goes_on_closing(on_screen):
    async def work(screen):
        wait = waiting()
        screen.provider._turns.append(Turn(ContentDelta("half"), wait))
        screen.write("Hello")
        screen.press("Send")
        await wait.reached.wait()
        screen.window.close()
        assert screen.question() is not None
        wait.until.set()
        await until(screen.desk.closed.done)
        assert screen.question() is None

    on_screen(work)


SHORTCUTS = {
    "New conversation": "Ctrl+N",
    "Settings": "Ctrl+,",
    "Attach files": "Ctrl+Shift+A",
    "Choose model": "Ctrl+M",
    "Next conversation": "Ctrl+Tab",
    **{f"Conversation {number}": f"Ctrl+{number}" for number in range(1, 10)},
    "Normal text size": "Ctrl+0",
    "Larger text": "Ctrl++",
    "Smaller text": "Ctrl+-",
    "Quit": "Ctrl+Q",
}


def test_actions_have_their_shortcuts_and_no_key_means_two_things(on_screen):
    async def work(screen):
        keys = {action.text(): action.shortcut() for action in screen.window.actions()}
        for text, expected in SHORTCUTS.items():
            assert keys[text].matches(QKeySequence(expected)) == QKeySequence.SequenceMatch.ExactMatch, text
        used = [key.toString() for key in keys.values() if not key.isEmpty()]
        assert len(used) == len(set(used))

    on_screen(work)


def test_actions_do_what_they_say(on_screen):
    async def work(screen):
        await screen.say("one")
        first = screen.conversation.id
        screen.action("New conversation").trigger()
        assert screen.conversation.is_empty
        screen.action("Conversation 1").trigger()
        await until(lambda: screen.conversation.id == first)
        screen.action("Larger text").trigger()
        await screen.idle()
        assert screen.engine.preferences.appearance.zoom == 110
        screen.action("Normal text size").trigger()
        await screen.idle()
        assert screen.engine.preferences.appearance.zoom == 100
        screen.action("Settings").trigger()
        await screen.idle()
        dialog = next(widget for widget in QApplication.topLevelWidgets() if widget.accessibleName() == "Settings")
        assert dialog.isVisible()
        dialog.close()
        screen.action("Connect a model").trigger()
        assert screen.find(QWidget, "Message") is None
        screen.action("Quit").trigger()
        assert screen.desk.closed.done()

    on_screen(work, Turn(ContentDelta("Hi")))


def test_a_server_named_without_a_model_uses_its_first(on_screen, in_loop, tmp_path, qapp):
    async def work():
        async with model_server("a", "b") as server:
            command_line_endpoint = endpoint(server, "command-line")
            screen = await Screen.open(
                qapp,
                tmp_path / "data",
                connected=False,
                defaults=RunDefaults(endpoint=command_line_endpoint),
                place=LaunchOptions(None, command_line_endpoint, None),
            )
            assert screen.conversation.model == "a"
            screen.action("New conversation").trigger()
            await screen.idle()
            assert screen.conversation.model == "a"
            await screen.say("Hello")
            assert screen.answers() == ["Hello"]
            await screen.close()

    in_loop(work())


def test_a_model_connected_at_the_welcome_begins_a_conversation(in_loop, tmp_path, qapp):
    async def work():
        async with model_server("a") as server:
            screen = await Screen.open(qapp, tmp_path / "data", connected=False)
            address = screen.find(QLineEdit, "Address of the server")
            for text in ("ftp://x", "http://me:secret@127.0.0.1/v1", "http://", f" 127.0.0.1:{server.port}/v1/ "):
                assert screen.conversation is None
                address.setText(text)
                QTest.keyClick(address, Qt.Key.Key_Return)
                await screen.idle()
            await until(lambda: screen.conversation is not None)
            await screen.idle()
            assert screen.conversation.model == "a"
            (saved,) = screen.engine.preferences.providers.endpoints
            assert saved.id == f"custom:{server.url}"
            await screen.say("Hello")
            assert screen.answers() == ["Hello"]
            await screen.close()

    in_loop(work())


def test_the_window_returns_to_its_place(on_screen):
    async def move(screen):
        screen.window.resize(700, 500)

    async def check(screen):
        assert (screen.window.width(), screen.window.height()) == (700, 500)

    on_screen(move)
    on_screen(check)


def test_wrong_use_is_a_banner_too(on_screen):
    async def work(screen):
        screen.desk.library.open("nobody")
        await until(lambda: screen.banners.keys)
        screen.window.banners.show_error(WrongUse("again"))
        assert len(screen.banners.keys) == 2

    on_screen(work)


def test_in_a_narrow_window_the_list_gives_way_first(on_screen):
    async def work(screen):
        screen.window.resize(680, 600)
        await until(lambda: screen.window.width() == 680)
        await until(lambda: screen.window.frame.width() >= PAGE_WIDTH)
        assert 150 <= screen.window.sidebar.width() <= 680 - PAGE_WIDTH

    on_screen(work)


def test_no_two_actions_have_the_same_keys(on_screen):
    async def work(screen):
        keys = [keys.toString() for action in screen.window.actions() for keys in action.shortcuts()]
        assert len(keys) > 20
        assert sorted(keys) == sorted(set(keys))

    on_screen(work)


def test_the_first_window_is_no_larger_than_the_screen(on_screen):
    async def work(screen):
        room = screen.window.screen().availableSize()
        assert room.width() < 1180, "else this shows nothing"
        assert screen.window.width() <= room.width()
        assert screen.window.height() < room.height(), "a title bar comes on top"

    on_screen(work)


def test_there_is_a_way_back_from_connecting_a_model(on_screen):
    async def work(screen):
        await screen.say("Hello")
        window = screen.window

        def is_back():
            return window.window_layout.pages.currentWidget() is window.frame

        for leave in ("button", "escape", "row"):
            screen.action("Connect a model").trigger()
            welcome = window._welcome
            assert welcome.isVisible()
            if leave == "button":
                screen.press("Back")
            elif leave == "escape":
                QTest.keyClick(welcome, Qt.Key.Key_Escape)
            else:
                window.sidebar.choose_row(0)
            await until(is_back)

    on_screen(work, Turn(ContentDelta("Hi")))


def test_where_no_conversation_is_open_the_welcome_has_no_way_back(qtbot):
    from ui.style.theme import ThemeSource
    from ui.welcome.welcome_page import WelcomePage

    welcome = WelcomePage(ThemeSource(), MagicMock(), MagicMock())
    qtbot.addWidget(welcome)
    welcome.show()
    (back_button,) = [button for button in welcome.findChildren(QPushButton) if button.text() == "Back"]
    assert back_button.isHidden()
    with qtbot.assertNotEmitted(welcome.back_requested):
        QTest.keyClick(welcome, Qt.Key.Key_Escape)


def test_whoever_goes_on_down_the_list_reaches_the_oldest_conversation(on_screen, monkeypatch):
    monkeypatch.setattr(conversation_listing, "PAGE", 40)

    async def work(screen):
        for number in range(100):
            await screen.engine.store.create_conversation(title=str(number))
        screen.desk.library.refresh()
        view = screen.find(QListView, "Conversations")
        # The next page is read as soon as its end is near, which that of the first one is when it is laid out.
        await until(lambda: view.model().count >= 40)
        screen.window.sidebar.focus_list()

        def is_at_the_oldest():
            QTest.keyClick(view, Qt.Key.Key_End)
            return (view.model().count, view.currentIndex().data()) == (100, "0")

        await until(is_at_the_oldest)

    on_screen(work)
