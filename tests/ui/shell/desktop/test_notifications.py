"""What happens in a conversation that nobody looks at is marked in the list, and said on the desktop."""

import asyncio

import pytest
from PySide6.QtWidgets import QListView

from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.agent_run import call
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn, Wait
from ui.approval.approval_dialog import ApprovalDialog
from ui.bridge.desktop.notifications import DesktopNotifications
from ui.bridge.organiser import Organiser
from ui.shell.desktop import notifications
from ui.style.list_rows import RowRole


def badges(screen):
    model = screen.find(QListView, "Conversations").model()
    rows = [model.index(n, 0) for n in range(model.rowCount())]
    return {row.data(): row.data(RowRole.BADGE) for row in rows if row.data(RowRole.BADGE)}


def test_a_conversation_that_works_is_marked_and_unread_until_it_is_looked_at(on_screen):
    wait = Wait(asyncio.Event(), asyncio.Event())

    async def work(screen):
        screen.write("Tides")
        screen.press("Send")
        await wait.reached.wait()
        first = screen.conversation.id
        await until(lambda: badges(screen) == {"Tides": "working"})
        screen.action("New conversation").trigger()
        await screen.idle()
        assert badges(screen) == {"Tides": "working"}
        wait.until.set()
        await until(lambda: badges(screen) == {"Tides": "unread"})
        screen.desk.library.open(first)
        await until(lambda: badges(screen) == {})
        await screen.idle()

    on_screen(work, Turn(ContentDelta("half"), wait))


def test_a_call_that_waits_is_marked_until_it_is_decided(on_screen, tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    write = call("1", "write_file").model_copy(update={"input": {"path": "a.txt", "content": "new"}})

    async def work(screen):
        screen.conversation.change(workspace=str(folder))
        screen.write("Write")
        screen.press("Send")
        await screen.wait_for(ApprovalDialog, "Approve tool call")
        await until(lambda: badges(screen) == {"Write": "attention"})
        screen.conversation.approvals.waiting()
        await until(lambda: screen.find(ApprovalDialog, "Approve tool call") is not None)
        screen.conversation.stop()
        await until(lambda: badges(screen) == {})
        await until(lambda: not screen.conversation.working)

    on_screen(work, Turn(write))


def test_behind_another_window_it_is_said_what_happens_unless_that_is_off(on_screen, monkeypatch):
    shown_notifications = []
    monkeypatch.setattr(notifications, "is_active", lambda: False)
    monkeypatch.setattr(DesktopNotifications, "show", lambda _self, *words: shown_notifications.append(words))

    async def work(screen):
        activity = screen.desk.library.activity.changed
        for state in ("working", "waits", "asks", "done", "failed"):
            activity.emit("c1", " Tides\n today ", state)
        assert shown_notifications == [
            ("c1", "Tides today", "A question waits for your answer."),
            ("c1", "Tides today", "The answer is done."),
            ("c1", "Tides today", "The answer could not be finished."),
        ]
        await until(lambda: screen.front.state_file.text("window/unread") == "c1")
        preferences = screen.engine.preferences
        chat = preferences.chat.model_copy(update={"notifications": False})
        await screen.engine.change_preferences(preferences.model_copy(update={"chat": chat}))
        activity.emit("c1", "Tides", "done")
        assert len(shown_notifications) == 3

    on_screen(work)


def test_a_click_on_it_leads_to_its_conversation(on_screen, monkeypatch):
    servers = []
    monkeypatch.setattr(notifications, "is_active", lambda: False)
    monkeypatch.setattr(DesktopNotifications, "show", lambda server, *_: servers.append(server))

    async def work(screen):
        await screen.say("Tides")
        first = screen.conversation.id
        screen.action("New conversation").trigger()
        await until(lambda: screen.conversation.id != first)
        servers.clear()
        screen.desk.library.activity.changed.emit(first, "Tides", "done")
        (server,) = servers
        server.activated.emit(first, "default")
        await until(lambda: screen.conversation.id == first)

    on_screen(work, Turn(ContentDelta("High")))


@pytest.mark.parametrize("way", ["delete", "trash"])
def test_a_deleted_conversation_leaves_no_notification_and_is_not_unread(on_screen, monkeypatch, way):
    withdrawn = []
    monkeypatch.setattr(DesktopNotifications, "withdraw", lambda _self, key: withdrawn.append(key))

    async def work(screen):
        await screen.say("Tides")
        first = screen.conversation.id
        screen.action("New conversation").trigger()
        await until(lambda: screen.conversation.id != first)
        screen.desk.library.activity.changed.emit(first, "Tides", "done")
        await until(lambda: screen.front.state_file.text("window/unread") == first)
        withdrawn.clear()
        if way == "delete":
            screen.desk.library.delete(first)
        else:
            Organiser(screen.engine, screen.desk.library, screen.desk._tasks).trash([first])
        await until(lambda: withdrawn == [first])
        assert screen.front.state_file.text("window/unread") == ""
        await screen.idle()

    on_screen(work, Turn(ContentDelta("High")))


def test_a_closed_conversation_that_was_never_stored_leaves_no_notification(on_screen, monkeypatch):
    withdrawn = []
    monkeypatch.setattr(DesktopNotifications, "withdraw", lambda _self, key: withdrawn.append(key))

    async def work(screen):
        screen.desk.library.new(in_memory=True)
        await screen.say("Tides")
        unstored = screen.conversation.id
        withdrawn.clear()
        screen.desk.library.close_unstored(unstored)
        await until(lambda: unstored in withdrawn)

    on_screen(work, Turn(ContentDelta("High")))
