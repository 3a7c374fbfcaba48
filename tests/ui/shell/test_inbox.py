"""The inbox: every call that waits, of all conversations, and the way to its decision."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QListWidget, QPushButton, QToolButton

from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.tool_calls import Deny
from tests.fakes.agent_run import call
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn
from ui.approval.approval_dialog import ApprovalDialog
from ui.shell.inbox import InboxDialog

DONE = Turn(ContentDelta("Done"))
CALLS = "Calls that wait for you"


def write(id_, path):
    return call(id_, "write_file").model_copy(update={"input": {"path": path, "content": "Hello"}})


async def ask(screen, folder, title):
    """Begin a conversation whose call waits, and put its dialog away; return its session."""
    folder.mkdir(exist_ok=True)
    screen.action("New conversation").trigger()
    await screen.idle()
    screen.conversation.change(title=title, title_is_automatic=False, workspace=str(folder))
    screen.write("Write")
    screen.press("Send")
    session = screen.engine._sessions[screen.conversation.id]
    dialog = await screen.wait_for(ApprovalDialog, "Approve tool call")
    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    await until(lambda: not dialog.isVisible())
    return session


async def open_inbox(screen):
    screen.action("Waiting approvals").trigger()
    await screen.idle()
    return await screen.wait_for(InboxDialog, "Waiting approvals")


def accessible_texts(screen):
    rows = screen.find(QListWidget, CALLS)
    return [rows.item(n).data(Qt.ItemDataRole.AccessibleTextRole) for n in range(rows.count())] if rows else []


def waiting(screen):
    button = screen.find(QToolButton, "Waiting approvals")
    return button.accessibleDescription().partition(".")[0] if button else ""


def test_it_lists_what_waits_and_enter_leads_to_the_decision(on_screen, tmp_path):
    async def work(screen):
        first = await ask(screen, tmp_path / "work", "Boats")
        second = await ask(screen, tmp_path / "work", "Trees")
        assert screen.conversation.id == second.record.id
        await until(lambda: waiting(screen) == "2")
        inbox = await open_inbox(screen)
        assert [words.partition(", since")[0] for words in accessible_texts(screen)] == [
            "Write a file: a.txt. The assistant asks, in the conversation Boats",
            "Write a file: b.txt. The assistant asks, in the conversation Trees",
        ]
        rows = screen.find(QListWidget, CALLS)
        QTest.keyClick(rows, Qt.Key.Key_Return)
        await until(lambda: screen.conversation.id == first.record.id)
        dialog = await screen.wait_for(ApprovalDialog, "Approve tool call")
        assert dialog.current.arguments["path"] == "a.txt"
        assert not inbox.isVisible()
        await until(lambda: screen.find(QPushButton, "Deny").isEnabled())
        screen.press("Deny")
        await until(lambda: waiting(screen) == "1")
        second.interrupt()
        await until(lambda: waiting(screen) == "")
        await until(lambda: not first.working and not second.working)

    on_screen(work, Turn(write("1", "a.txt")), Turn(write("2", "b.txt")), DONE)


def test_the_call_that_was_chosen_is_shown_among_several_of_its_conversation(on_screen, tmp_path):
    async def work(screen):
        session = await ask(screen, tmp_path / "work", "Boats")
        await open_inbox(screen)
        rows = screen.find(QListWidget, CALLS)
        QTest.keyClick(rows, Qt.Key.Key_Down)
        QTest.keyClick(rows, Qt.Key.Key_Return)
        dialog = await screen.wait_for(ApprovalDialog, "Approve tool call")
        assert dialog.current.arguments["path"] == "b.txt"
        session.interrupt()
        await until(lambda: not session.working)

    on_screen(work, Turn(write("1", "a.txt"), write("2", "b.txt")))


def test_it_follows_what_is_decided_elsewhere_stopped_renamed_and_deleted(on_screen, tmp_path):
    async def work(screen):
        folder = tmp_path / "work"
        sessions = [await ask(screen, folder, title) for title in ("Boats", "Trees", "Stones", "Clouds")]
        inbox = await open_inbox(screen)
        assert len(accessible_texts(screen)) == 4
        screen.desk.library.rename(sessions[3].record.id, "Rain")
        await until(lambda: "in the conversation Rain" in accessible_texts(screen)[3])
        QTest.keyClick(screen.find(QListWidget, CALLS), Qt.Key.Key_Down)
        (approval,) = sessions[0].approvals.open_approvals
        sessions[0].approvals.answer(approval.approval_id, Deny())
        await until(lambda: len(accessible_texts(screen)) == 3)
        # The selected row is still that of the same call.
        assert "Trees" in screen.find(QListWidget, CALLS).currentItem().data(Qt.ItemDataRole.AccessibleTextRole)
        sessions[1].interrupt()
        await until(lambda: len(accessible_texts(screen)) == 2)
        screen.desk.library.delete(sessions[2].record.id)
        await until(lambda: len(accessible_texts(screen)) == 1)
        sessions[3].interrupt()
        await until(lambda: accessible_texts(screen) == [])
        assert "Nothing waits for you." in " ".join(screen.words(inbox))
        assert "Nothing waits for you." in inbox.accessibleDescription()
        assert not screen.find(QPushButton, "Open the conversation").isEnabled()
        await until(lambda: not any(session.working for session in sessions))
        await screen.idle()

    on_screen(work, *(Turn(write(str(number), f"{number}.txt")) for number in range(4)), DONE)


def test_nothing_of_it_is_built_before_it_is_opened(on_screen):
    async def work(screen):
        assert screen.window.findChildren(InboxDialog) == []
        inbox = await open_inbox(screen)
        assert accessible_texts(screen) == []
        assert "Nothing waits for you." in " ".join(screen.words(inbox))
        QTest.keyClick(inbox, Qt.Key.Key_Escape)
        assert not inbox.isVisible()

    on_screen(work)
