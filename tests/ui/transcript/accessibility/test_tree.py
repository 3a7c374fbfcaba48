"""The accessible tree in this process: bounded, in order, and true after every change."""

from PySide6.QtGui import QAccessible

from desktop_agent.conversation.items import Added, NoticeItem, Removed, Updated
from desktop_agent.types.blocks import Text, ToolResult, ToolUse
from desktop_agent.types.engine_events import CheckpointCreated, ToolFinished, TurnStarted
from desktop_agent.types.errors import Sentence
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.provider_events import ContentDelta
from tests.ui.transcript.input.test_caret import CaretHarness
from ui.transcript.viewport.prefetch import read_ahead

TEXT, NAME = QAccessible.Text.Description, QAccessible.Text.Name
LONG = "\n\n".join(f"Paragraph {number}, with a few words in it." for number in range(1500))


def tree_of(harness):
    return QAccessible.queryAccessibleInterface(harness.view)


def children(interface):
    return [interface.child(index) for index in range(interface.childCount())]


def test_thousands_of_rows_are_offered_and_only_some_are_kept(qtbot):
    harness = CaretHarness(qtbot, [Message.user(f"Message {number}") for number in range(3000)])
    root = tree_of(harness)
    count = len(harness.rows._rows)
    assert root.childCount() >= 3000
    for index in range(3000):
        assert root.child(index).text(TEXT) == f"Message {index}"
    tree = harness.view.accessible_tree
    assert len(tree._rows) <= 600
    assert len(tree.context._detached_rows) <= 48
    assert len(harness.rows._rows) == count
    assert root.indexOfChild(root.child(1234)) == 1234


def test_all_of_a_long_message_that_nobody_came_near_is_offered(qtbot):
    harness = CaretHarness(
        qtbot, [Message.assistant(LONG), *(Message.user(f"Message {number}") for number in range(100))]
    )
    text = "\n".join(block_node.text(TEXT) for block_node in children(tree_of(harness).child(0)))
    assert [line for line in text.split("\n") if line] == LONG.split("\n\n")


def test_blocks_are_those_that_stand_there_now(qtbot):
    harness = CaretHarness(qtbot, [Message.assistant(LONG)])
    row = tree_of(harness).child(0)
    blocks_before = children(row)
    qtbot.waitUntil(lambda: harness.rows.row(0).stack.last_lazy_section() is None)
    # How many there were at first depends on how far it had been read by then.
    assert row.childCount() == 1500 >= len(blocks_before)
    assert row.child(700).text(NAME) == "Paragraph 700, with a few words in it."


def test_reading_ahead_takes_a_step_also_where_its_time_is_over(qtbot):
    harness = CaretHarness(qtbot, [Message.assistant(LONG)])
    steps = 0
    while read_ahead(harness.rows, 0.0):
        steps += 1
    assert steps > 1
    assert harness.rows.row(0).stack.last_lazy_section() is None


def test_what_grows_is_read_as_it_is_now(qtbot):
    harness = CaretHarness(qtbot, [Message.user(f"Message {number}") for number in range(60)])
    harness.send(TurnStarted("t", "m", "model"), ContentDelta("Some "))
    harness.view.scroller.scroll_to_start()
    row = tree_of(harness).child(60)
    assert row.text(TEXT) == "Some "[:4]
    harness.send(ContentDelta("words"))
    assert row.text(TEXT) == "Some words"


def test_a_block_has_the_role_of_what_stands_there_now(qtbot):
    harness = CaretHarness(qtbot, [])
    notice = NoticeItem("n", "notice", Sentence("Changes were undone."), folded=("More of it",))
    harness.transcript._item_list.items.append(notice)
    harness.view.apply([Added(0)])
    row = tree_of(harness).child(0)
    assert row.child(1).role() == QAccessible.Role.StaticText
    notice.redos = {"first": False, "second": False}
    harness.view.apply([Updated(0, "state")])
    assert (row.child(1).role(), row.child(1).child(0).text(NAME)) == (QAccessible.Role.Grouping, "Redo")


def test_rows_that_are_gone_are_not_offered(qtbot):
    harness = CaretHarness(qtbot, [Message.user(f"Message {number}") for number in range(5)])
    last = tree_of(harness).child(4)
    assert last.text(NAME) == "You said"
    del harness.transcript._items[4]
    harness.view.apply([Removed(4, 1)])
    assert last.text(NAME) == ""
    assert tree_of(harness).child(3).text(TEXT) == "Message 3"


def test_a_link_or_a_button_takes_the_keyboard_and_is_announced_also_in_a_table(qtbot, monkeypatch):
    objects = []
    monkeypatch.setattr(QAccessible, "isActive", lambda: True)
    monkeypatch.setattr(QAccessible, "updateAccessibility", lambda event: objects.append(event.object()))
    table = "| What |\n|---|\n| [a train](https://example.org/train) |"
    harness = CaretHarness(
        qtbot, [Message.assistant(f"See [the map](https://example.org/map).\n\n{table}\n\n```\nx = 1\n```")]
    )
    row = tree_of(harness).child(0)
    link, cell_link = row.child(0).child(0), row.child(1).child(1).child(0).child(0)
    assert (link.text(NAME), cell_link.text(NAME)) == ("the map", "a train")
    for interface in (link, cell_link, row.child(2).child(0)):
        assert interface.state().focusable
        objects.clear()
        interface.actionInterface().doAction("SetFocus")
        assert interface.state().focused
        assert interface.object() in objects
    assert harness.view.hasFocus()


def test_buttons_are_offered_of_what_is_not_laid_out(qtbot):
    call = ToolUse(id="w", name="write_file", input={"path": "a.txt", "content": "x"})
    messages = [Message.user(f"Message {number}") for number in range(60)]
    harness = CaretHarness(
        qtbot, [Message(id="m", role=Role.ASSISTANT, blocks=(Text(text="```\nx = 1\n```"), call)), *messages]
    )
    harness.view.scroller.scroll_to_start()
    harness.view.scroller.scroll_to_end()
    harness.send(CheckpointCreated("c", "w"), ToolFinished("w", ToolResult(tool_use_id="w")))
    code, card = harness.rows.row(0), harness.rows.row(1)
    code.stack.forget_outside(0, 0)
    assert not any(block.is_laid_out for row in (code, card) for block in row.blocks)
    buttons = [[child.text(NAME) for child in children(tree_of(harness).child(index).child(0))] for index in (0, 1)]
    assert buttons == [["Copy code", "Wrap lines", "Save code as…"], ["Undo", "Show details"]]
    undone_ids = []
    harness.view.undo_requested.connect(undone_ids.append)
    tree_of(harness).child(1).child(0).child(0).actionInterface().doAction("Press")
    assert undone_ids == [harness.transcript[1].id]


def test_what_lies_over_the_rows_leads_back_to_the_transcript(qtbot):
    harness = CaretHarness(qtbot, [Message.user(f"Message {number}") for number in range(60)])
    harness.send(TurnStarted("t", "m", "model"), ContentDelta("Some"))
    harness.view.scroller.scroll_to_start()
    qtbot.waitUntil(harness.view.jump_button.isVisible)
    for part in (harness.view.jump_button, harness.view.verticalScrollBar()):
        interface = QAccessible.queryAccessibleInterface(part)
        while interface.object() is not harness.view:
            parent = interface.parent()
            assert parent.child(parent.indexOfChild(interface)).object() is interface.object()
            interface = parent


def test_the_caret_and_its_block_have_the_keyboard(qtbot):
    harness = CaretHarness(qtbot, [Message.assistant("One\n\nTwo 😀 three")])
    harness.begin()
    harness.press("down", "end")
    block_node = tree_of(harness).child(0).child(1)
    text = block_node.textInterface()
    assert (text.cursorPosition(), text.characterCount()) == (12, 12)
    assert text.text(4, 6) == "😀"
    assert tree_of(harness).focusChild().text(NAME) == "Two 😀 three"
    text.setCursorPosition(4)
    assert harness.at == (0, 1, 4)
    left, right = text.characterRect(0), text.characterRect(7)
    assert left.left() < right.left()
    assert text.offsetAtPoint(right.center()) in {7, 8}
    text.addSelection(0, 3)
    assert harness.copied() == "Two"


def test_a_row_that_is_gone_stands_nowhere_also_where_no_row_is_left(qtbot):
    harness = CaretHarness(qtbot, [Message.user("Only this")])
    node = harness.view.accessible_tree.row_node(0)
    assert node.index() == 0
    del harness.transcript._items[:]
    assert node.index() == -1
    assert node.index() == -1
    harness.view.apply([Removed(0, 1)])
    assert node.index() == -1
