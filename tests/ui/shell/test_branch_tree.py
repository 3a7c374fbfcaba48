"""The dialog with all branches: what it shows, by mouse and by keyboard, and what is done from there."""

import asyncio
import time
from datetime import UTC, datetime

from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtTest import QTest

from desktop_agent.conversation.message_tree import MessageTree
from desktop_agent.types.conversation_tree import MessageOutline
from desktop_agent.types.messages import Role
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.qt_loop import held, until
from tests.fakes.scripted_provider import Turn, Wait
from tests.ui.shell.test_branches import run, settled, turns, view
from tests.ui.shell.test_message_deletion import answer, question
from ui.shell.branch_tree.branch_model import BranchModel
from ui.style.list_rows import RowRole


def outline(id_, parent, role=Role.USER, line=None, calls=0, *, is_injected=False):
    return MessageOutline(id_, parent, role, is_injected, datetime.now(UTC), line if line is not None else id_, calls)


def rows_of(model, parent=QModelIndex()):  # noqa: B008  Qt's own default
    return [model.index(number, 0, parent) for number in range(model.rowCount(parent))]


def words_of(model, parent=QModelIndex()):  # noqa: B008  Qt's own default
    return [index.data().replace("\u2068", "").replace("\u2069", "") for index in rows_of(model, parent)]


A, U, T = Role.ASSISTANT, Role.USER, Role.TOOL
TALK = (
    outline("hi", None),
    outline("", "hi", A, "", 2),
    outline("result", "", T, ""),
    outline("there", "result", A),
    outline("first", "there"),
    outline("one", "first", A),
    outline("more", "one"),
    outline("", "hi", A, ""),
    outline("second", "there"),
    outline("note", "second", is_injected=True),
    outline("two", "note", A),
)
TALK = tuple(message for message in TALK if message.id or message.tool_calls)


def test_the_line_in_view_is_flat_and_other_versions_are_folded_where_they_begin():
    model = BranchModel()
    model.show_tree(MessageTree(TALK, "two"))
    assert words_of(model) == ["You: hi", "Assistant: there", "You: second", "Assistant: two"]
    hi, there, second, two = rows_of(model)
    assert "2 tool calls" in there.data(RowRole.DETAIL)
    assert [model.hasChildren(index) for index in (hi, there, second, two)] == [False, False, True, False]
    assert "1 other version" in second.data(RowRole.DETAIL)
    assert words_of(model, second) == ["You: first"]
    (first,) = rows_of(model, second)
    assert "2 messages below" in first.data(RowRole.DETAIL)
    assert (first.data(RowRole.FADED), second.data(RowRole.FADED)) == (True, False)
    assert words_of(model, first) == ["Assistant: one", "You: more"]
    assert model.parent(rows_of(model, first)[1]) == first
    assert model.end_of_view() == two
    assert [index.data(RowRole.BADGE) for index in (hi, there, second, two, first)] == ["", "", "", "unread", ""]
    spoken = [index.data(Qt.ItemDataRole.AccessibleTextRole) for index in (hi, second, two, first)]
    assert ["end of the shown branch" in text for text in spoken] == [False, False, True, False]
    assert [", shown" in text for text in spoken] == [True, True, False, False]
    assert model.find("more") == rows_of(model, first)[1]
    assert not model.find("nothing").isValid()


def test_lines_are_without_the_signs_of_markdown():
    model = BranchModel()
    model.show_tree(MessageTree((outline("a", None, U, "---"), outline("b", "a", A, "## **Why** `x`")), "b"))
    assert words_of(model) == ["You: ---", "Assistant: Why x"]


def test_another_branch_in_view_is_the_flat_one():
    model = BranchModel()
    model.show_tree(MessageTree(TALK, "first"))
    assert words_of(model) == ["You: hi", "Assistant: there", "You: first", "Assistant: one", "You: more"]
    assert [index.data(RowRole.FADED) for index in rows_of(model)] == [False, False, False, True, True]
    model.show_tree(MessageTree((), None))
    assert (model.rowCount(), model.end_of_view().isValid()) == (0, False)


def test_a_conversation_of_thousands_of_messages_is_no_work():
    messages = [outline("0", None)]
    for number in range(1, 6_000):
        parent = str(number - 1) if number % 3 else str(max(0, number - 3))
        messages.append(outline(str(number), parent, A if number % 2 else U))
    started = time.process_time()
    model = BranchModel()
    model.show_tree(MessageTree(messages, "5999"))
    assert model.rowCount() > 1
    assert time.process_time() - started < 0.5


def dialog(screen):
    return screen.window.page.branches.tree._dialog


async def open_tree(screen):
    screen.window.page.branches.tree.open()
    await until(dialog(screen).tree.rows.rowCount)
    return dialog(screen).tree


def test_branches_are_opened_deleted_and_branched_from_by_keyboard(on_screen):
    async def work(screen):
        await screen.say("a")
        await run(screen, "Regenerate")
        tree = await open_tree(screen)
        assert words_of(tree.rows) == ["You: a", "Assistant: two"]
        assert tree.currentIndex().row() == 1
        tree.setFocus()
        QTest.keyClick(tree, Qt.Key.Key_Right)
        QTest.keyClick(tree, Qt.Key.Key_Down)
        assert tree.current.line == "one"
        QTest.keyClick(tree, Qt.Key.Key_Return)
        await until(lambda: screen.answers() == ["one"])
        await until(lambda: words_of(tree.rows) == ["You: a", "Assistant: one"])
        assert tree.current.line == "one"
        assert screen.window.page.transcript.row_viewport.rows.render_context.message_actions.versions
        tree.setCurrentIndex(tree.rows.index(0, 0))
        dialog(screen)._branch.click()
        await until(lambda: screen.answers() == [])
        await until(lambda: tree.rows.index(1, 0).data(RowRole.FADED))
        tree.setCurrentIndex(tree.rows.find(tree.rows.row_at(tree.rows.index(1, 0)).entry.first_id))
        QTest.keyClick(tree, Qt.Key.Key_Delete)
        await until(lambda: question(screen) is not None)
        answer(question(screen), "Delete for good")
        await until(lambda: words_of(tree.rows) == ["You: a", "Assistant: one"])
        await settled(screen)
        assert view(screen) is not None

    on_screen(work, *turns("one", "two"))


def test_why_nothing_can_be_shown_is_said_in_the_dialog(on_screen):
    gate, reached = asyncio.Event(), asyncio.Event()

    async def work(screen):
        await screen.say("a")
        await run(screen, "Regenerate")
        tree = await open_tree(screen)
        screen.write("b")
        screen.press("Send")
        await until(lambda: reached.is_set() and tree.rows.rowCount() > 2)
        tree.setCurrentIndex(tree.rows.index(0, 0, tree.rows.index(1, 0)))
        tree.setFocus()
        QTest.keyClick(tree, Qt.Key.Key_Return)
        await until(lambda: "still working" in dialog(screen)._problem.text)
        gate.set()
        await settled(screen)

    on_screen(work, *turns("one", "two"), Turn(Wait(gate, reached), ContentDelta("three")))


def test_the_dialog_follows_the_conversation_that_is_shown(on_screen):
    async def work(screen):
        await screen.say("a")
        tree = await open_tree(screen)
        screen.window.sidebar.new_requested.emit()
        await until(lambda: tree.rows.rowCount() == 0)
        assert not dialog(screen)._show.isEnabled()
        await screen.say("b")
        await until(lambda: words_of(tree.rows) == ["You: b", "Assistant: two"])

    on_screen(work, *turns("one", "two"))


def test_the_menu_of_a_conversation_opens_its_branches(on_screen):
    async def work(screen):
        await screen.say("a")
        first = screen.conversation.id
        screen.window.sidebar.new_requested.emit()
        await until(lambda: screen.conversation.id != first)
        for _ in range(2):  # another one, and the one that is shown
            rows = screen.window.sidebar.view
            rows.action_requested.emit("branches", [first])
            await until(lambda: screen.conversation.id == first and dialog(screen).isVisible())
            await until(lambda: words_of(dialog(screen).tree.rows) == ["You: a", "Assistant: one"])
            dialog(screen).reject()

    on_screen(work, *turns("one"))


def test_a_conversation_that_is_chosen_while_a_branch_loads_stays(on_screen):
    async def work(screen):
        await screen.say("a")
        await run(screen, "Regenerate")
        tree = await open_tree(screen)
        tree.setCurrentIndex(tree.rows.index(0, 0, tree.rows.index(1, 0)))
        tree.setFocus()
        is_called, may_go_on = held(screen.conversation.branches, "show")
        QTest.keyClick(tree, Qt.Key.Key_Return)
        await is_called.wait()
        screen.window.sidebar.new_requested.emit()
        await until(lambda: screen.conversation.is_empty)
        may_go_on.set()
        await screen.idle()
        assert screen.conversation.is_empty

    on_screen(work, *turns("one", "two"))
