"""What is offered below messages: where, what, and that nothing moves for it."""

from dataclasses import replace
from itertools import pairwise

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest

from desktop_agent.conversation.branches import Versions
from desktop_agent.conversation.transcript import Transcript
from desktop_agent.types.blocks import Outcome, Text, ToolResult, ToolUse
from desktop_agent.types.engine_events import ToolFinished, TurnStarted
from desktop_agent.types.errors import RemedyAction, Sentence
from desktop_agent.types.messages import AttachedText, Message, label_attached
from desktop_agent.types.provider_events import ContentDelta, TextClosed
from tests.fakes.transcript_feed import Feed
from tests.fakes.transcript_view import Standing
from ui.transcript.input.context_menu import MenuEntry
from ui.transcript.rows.message_actions import carrier_of, commands_at
from ui.transcript.rows.render_context import Alternative, AlternativeGroup, MessageActions

OF_PROMPTS, OF_ANSWERS = (
    ["Edit", "Copy", "Branch from here", "Delete…"],
    ["Copy", "Regenerate", "Regenerate with…", "Branch from here", "Delete…"],
)


def talk():
    answer = Message.assistant("Look:").model_copy(update={"id": "first"})
    answer = answer.model_copy(update={"blocks": (*answer.blocks, ToolUse(id="1", name="look", input={}))})
    result = Message.tool_results([ToolResult(tool_use_id="1", content=(Text(text="x"),), outcome=Outcome.SUCCEEDED)])
    prompts = [Message.user(text).model_copy(update={"id": text}) for text in ("a", "b")]
    last = Message.assistant("Done.").model_copy(update={"id": "last"})
    return [prompts[0], answer, result, last, prompts[1], Message.assistant("B.").model_copy(update={"id": "other"})]


@pytest.fixture
def harness(qtbot):
    harness = Standing(qtbot)
    harness.view.set_message_actions(MessageActions())
    harness.transcript = Transcript(talk())
    harness.feed = Feed(harness.transcript)
    harness.view.set_transcript(harness.transcript)
    return harness


def names(harness, row):
    view = harness.rows
    return [command.name for command in commands_at(harness.transcript, row, view.render_context)]


def buttons(harness, row):
    harness.rows.settle()
    return [control.name for _, control in harness.rows.row(row).controls() if control.name != "Show details"]


def offered_at(harness, row):
    """Return the entries of the message's menu by their texts."""
    menu = harness.view.context_menu.build_menu(harness.view.row_viewport.row_box(row).center(), harness.view)
    return {action.text().replace("&", ""): action for action in menu.actions() if action.text()}


def test_prompts_and_the_ends_of_answers_have_buttons(harness):
    assert [carrier_of(harness.transcript, row) for row in range(6)] == [0, 3, 3, 3, 4, 5]
    assert carrier_of(harness.transcript, -1) is None
    assert [buttons(harness, row) for row in range(6)] == [OF_PROMPTS, [], [], OF_ANSWERS, OF_PROMPTS, OF_ANSWERS]
    assert names(harness, 1) == OF_ANSWERS


def test_a_notice_has_none_and_does_not_take_them_from_the_answer(harness):
    harness.view.apply(harness.transcript.add_notice(Sentence("It broke off."), error=True))
    assert buttons(harness, 5) == OF_ANSWERS
    assert carrier_of(harness.transcript, 6) == 5
    harness.view.apply(harness.transcript.add_message(Message.user("c")))
    harness.view.apply(harness.transcript.add_notice(Sentence("No answer."), error=True))
    assert carrier_of(harness.transcript, 8) is None
    assert names(harness, 8) == []


def test_an_answer_that_grows_has_none_and_keeps_their_room(harness):
    actions = harness.rows.render_context.message_actions
    harness.view.apply(harness.transcript.add_message(Message.user("c")))
    harness.view.set_message_actions(replace(actions, is_working=True))
    harness.send(TurnStarted("t", "m", "model"), ContentDelta("So "), ContentDelta("be it."))
    assert buttons(harness, 7) == []
    heights = harness.rows.total, harness.top_of(7)
    harness.send(TextClosed("p"))
    harness.view.set_message_actions(actions)
    assert buttons(harness, 7) == OF_ANSWERS
    assert (harness.rows.total, harness.top_of(7)) == heights


def test_what_continues_an_answer_takes_its_buttons(harness):
    added = harness.transcript.add_message(Message.assistant("And more."))
    harness.view.apply(added)
    assert buttons(harness, 5) == []
    assert buttons(harness, 6) == OF_ANSWERS


def test_they_are_visible_under_the_pointer_the_focus_and_the_caret_and_at_the_end(harness):
    viewport = harness.view.row_viewport

    def visible():
        harness.picture()
        rows = (harness.rows.row(row) for row in range(6))
        return [row.footer is not None and row.footer.is_shown for row in rows]

    assert visible() == [False] * 5 + [True]
    QTest.mouseMove(harness.view.viewport(), viewport.row_box(2).center())
    assert visible() == [False, False, False, True, False, True]
    viewport.hover((-1, ""))
    viewport.focus((0, ""))
    assert visible() == [True] + [False] * 4 + [True]
    viewport.focus((-1, ""))
    viewport.move_caret(4)
    assert visible() == [False] * 4 + [True] * 2


def test_the_buttons_of_code_are_visible_where_its_row_is_pointed_at(harness):
    harness.view.apply(harness.transcript.add_message(Message.assistant("```py\nx = 1\n```")))
    harness.rows.settle()
    viewport = harness.view.row_viewport
    block, copy = next(
        (block, control) for block, control in harness.rows.row(6).controls() if control.name == "Copy code"
    )

    def is_visible():
        picture, box = harness.picture(), copy.box.translated(viewport.block_box(6, block).topLeft())
        points = ((x, y) for x in range(box.left(), box.right()) for y in range(box.top(), box.bottom()))
        return len({picture.pixel(x, y) for x, y in points}) > 1

    assert not is_visible()
    QTest.mouseMove(harness.view.viewport(), viewport.row_box(6).center())
    assert is_visible()
    viewport.hover((2, ""))
    assert not is_visible()
    viewport.focus((6, ""))
    assert is_visible()
    viewport.focus((-1, ""))
    viewport.move_caret(6)
    assert is_visible()


def test_keys_and_buttons_say_which_message(harness):
    view, requests = harness.view, []
    view.edit_requested.connect(lambda id_: requests.append(("edit", id_)))
    view.regenerate_requested.connect(lambda id_: requests.append(("regenerate", id_)))
    view.branch_requested.connect(lambda id_: requests.append(("branch", id_)))
    view.delete_requested.connect(lambda id_: requests.append(("delete", id_)))
    harness.click(0, "Edit")
    harness.click(3, "Regenerate")
    harness.click(5, "Branch from here")
    view.row_viewport.focus((1, ""))
    for key in (Qt.Key.Key_R, Qt.Key.Key_B, Qt.Key.Key_E, Qt.Key.Key_Delete):
        QTest.keyClick(view, key)
    assert requests == [
        ("edit", "a"),
        ("regenerate", "last"),
        ("branch", "other"),
        ("regenerate", "last"),
        ("branch", "last"),
        ("delete", "last"),
    ]


def test_a_message_that_is_only_a_file_is_called_by_its_name(qtbot):
    label = label_attached(AttachedText("notes.txt", "words"))
    harness = Standing(qtbot, [Message.user(label)])
    harness.view.set_message_actions(MessageActions())
    harness.rows.settle()
    assert harness.rows.row(0).footer.subject() == "notes.txt"


def test_keys_that_count_as_keypad_are_commands_too(harness):
    requests = []
    harness.view.delete_requested.connect(requests.append)
    harness.view.row_viewport.focus((1, ""))
    QTest.keyClick(harness.view, Qt.Key.Key_Delete, Qt.KeyboardModifier.KeypadModifier)
    assert requests == ["last"]


@pytest.mark.parametrize(("action", "name"), [(RemedyAction.CONTINUE, "Continue"), (RemedyAction.GO_ON, "Ask anyway")])
def test_an_answer_that_can_go_on_does_so_by_its_button_its_key_and_its_menu(harness, action, name):
    requests = []
    harness.view.remedy_requested.connect(lambda id_, chosen: requests.append((id_, chosen)))
    harness.view.apply(harness.transcript.add_notice(Sentence("A limit was reached."), action=action))
    notice = harness.transcript[6].id
    with_continue = [*OF_ANSWERS[:3], name, *OF_ANSWERS[3:]]
    assert [buttons(harness, row) for row in (3, 5)] == [OF_ANSWERS, with_continue]
    harness.click(5, name)
    for row in (2, 5, 6):
        harness.view.row_viewport.focus((row, ""))
        QTest.keyClick(harness.view, Qt.Key.Key_G)
    entry = offered_at(harness, 5)[name]
    assert entry.shortcut().toString() == "G"
    entry.trigger()
    assert requests == [(notice, action)] * 4
    node = harness.view.accessible_tree.row_node(5).child_nodes()[-1].find_child(name)
    assert node.name() == "Continue this answer"


def test_only_what_ends_a_conversation_at_rest_can_go_on(harness):
    offer = Sentence("The model can go on from here.")
    harness.view.apply(harness.transcript.add_notice(offer, action=RemedyAction.CONTINUE))
    harness.view.apply(harness.transcript.add_notice(Sentence("You chose another mode.")))
    assert "Continue" in buttons(harness, 5)
    harness.view.set_message_actions(MessageActions(refusal="Another window has it."))
    commands = commands_at(harness.transcript, 5, harness.rows.render_context)
    assert {command.name: command.refusal for command in commands}["Continue"] == "Another window has it."
    harness.view.set_message_actions(MessageActions())
    harness.view.apply(harness.transcript.add_message(Message.user("c")))
    assert [buttons(harness, row) for row in (5, 8)] == [OF_ANSWERS, OF_PROMPTS]
    harness.view.apply(harness.transcript.add_notice(offer, action=RemedyAction.CONTINUE))
    assert buttons(harness, 8) == ["Edit", "Continue", *OF_PROMPTS[1:]]
    harness.view.set_message_actions(MessageActions(is_working=True))
    assert buttons(harness, 8) == OF_PROMPTS


def test_versions_are_walked_at_prompts_and_at_the_ends_of_answers(harness):
    versions = {"a": Versions(("old", "a"), 1), "first": Versions(("first", "x", "y"), 0)}
    harness.view.set_message_actions(MessageActions(versions, continuations=("f", "g")))
    requests = []
    harness.view.version_requested.connect(requests.append)
    assert names(harness, 0) == [*OF_PROMPTS, "Previous version", "Next version"]
    assert buttons(harness, 3) == ["Previous version", "Next version", *OF_ANSWERS]
    assert names(harness, 5) == [*OF_ANSWERS, "Show what followed"]
    harness.click(0, "Previous version")
    harness.click(0, "Next version")
    harness.click(3, "Next version")
    harness.click(5, "Show what followed")
    harness.view.row_viewport.focus((2, ""))
    QTest.keyClick(harness.view, Qt.Key.Key_Right, Qt.KeyboardModifier.AltModifier)
    assert requests == ["old", "x", "g", "x"]


def test_what_cannot_be_done_says_why(harness):
    harness.view.set_message_actions(MessageActions(is_working=True))
    requests = []
    harness.view.edit_requested.connect(requests.append)
    refusals = {
        command.name: command.refusal for command in commands_at(harness.transcript, 0, harness.rows.render_context)
    }
    working = "The model is still working. Wait, or press Stop first."
    assert refusals == {"Edit": working, "Copy": "", "Branch from here": working, "Delete…": working}
    harness.click(0, "Edit")
    assert requests == []
    node = harness.view.accessible_tree.row_node(0).child_node(1).find_child("Edit")
    state = QAccessible.queryAccessibleInterface(node).state()
    assert state.disabled
    assert node.description() == working
    harness.view.set_message_actions(MessageActions(refusal="Another window has it."))
    assert node.description() == "Another window has it."
    assert {command.refusal for command in commands_at(harness.transcript, 5, harness.rows.render_context)} == {
        "",
        "Another window has it.",
    }


def test_the_buttons_are_in_the_accessible_tree_and_stops_of_tab(harness):
    row = harness.view.accessible_tree.row_node(4)
    (*_, footer) = row.child_nodes()
    assert [node.name() for node in footer.child_nodes()] == [
        "Edit your message",
        "Copy your message",
        "Branch from your message",
        "Delete your message…",
    ]
    assert {node.description() for node in footer.child_nodes()} == {"b"}
    harness.view.row_viewport.focus((4, ""))
    QTest.keyClick(harness.view, Qt.Key.Key_Tab)
    assert harness.view.row_viewport.focused == (4, "1/Edit")
    requests = []
    harness.view.edit_requested.connect(requests.append)
    QTest.keyClick(harness.view, Qt.Key.Key_Return)
    assert requests == ["b"]


def test_the_accessible_names_tell_prompts_from_answers(harness):
    versions = {"a": Versions(("old", "a"), 1), "first": Versions(("first", "x", "y"), 1)}
    harness.view.set_message_actions(MessageActions(versions))
    footers = [harness.view.accessible_tree.row_node(row).child_nodes()[-1] for row in (0, 3)]
    nodes = [node for footer in footers for node in footer.child_nodes()]
    names = [node.name() for node in nodes]
    assert len(set(names)) == len(names) == 13
    assert {"Previous version of your message", "Regenerate this answer with…", "Copy this answer"} <= {*names}
    assert [node.description() for node in nodes] == ["a"] * 5 + ["This is the newest version."] + ["Done."] * 7


def test_what_an_answer_is_about_is_said_without_its_marks(harness):
    answer = "## `run` **failed**\n\n```py\n{\n```\n- *all* of 6*7 and 2 * 3"
    harness.view.apply(harness.transcript.add_message(Message.assistant(answer)))
    last = harness.view.accessible_tree.row_node(len(harness.transcript) - 1)
    assert last.child_nodes()[-1].child_nodes()[0].description() == "run failed { all of 6*7 and 2 * 3"


def test_the_buttons_of_calls_and_code_say_what_they_are_about(harness):
    harness.view.apply(harness.transcript.add_message(Message.assistant("```py\n\n{\nx = 1\n```")))
    blocks = [node for row in (2, 6) for node in harness.view.accessible_tree.row_node(row).child_nodes()]
    descriptions = {node.name(): node.description() for block in blocks for node in block.child_nodes()}
    assert descriptions["Show details"] == "look"
    assert descriptions["Copy code"] == descriptions["Wrap lines"] == descriptions["Save code as…"] == "x = 1"


def test_the_menu_offers_the_same_with_its_keys(harness):
    chosen = []
    models = AlternativeGroup("With another model", [Alternative("Large", chosen.append), Alternative("Small", print)])
    harness.view.set_message_actions(MessageActions(alternatives=lambda: [models]))
    offered = offered_at(harness, 3)
    assert offered["Regenerate"].shortcut().toString() == "R"
    assert offered["Branch from here"].isEnabled()
    assert offered["Copy message"].shortcut().toString() == "C"
    submenu = offered["With another model"].menu()
    assert [action.text() for action in submenu.actions()] == ["Large", "Small"]
    submenu.actions()[0].trigger()
    assert chosen == ["last"]
    harness.view.set_message_actions(MessageActions(is_working=True))
    offered = offered_at(harness, 0)
    assert not offered["Edit"].isEnabled()
    assert "still working" in offered["Edit"].toolTip()


def test_what_deletes_is_last_in_the_menu_and_by_itself(harness):
    for row in (0, 1, 3):
        menu = harness.view.context_menu.build_menu(harness.view.row_viewport.row_box(row).center(), harness.view)
        *_, line, last = menu.actions()
        assert (line.isSeparator(), last.text(), last.shortcut().toString()) == (True, "Delete…", "Del")
        assert [action.text() for action in menu.actions()].count("Delete…") == 1


def test_a_whole_answer_is_copied(harness, qapp, qtbot):
    qapp.clipboard().clear()
    harness.click(3, "Copy")
    qtbot.waitUntil(lambda: qapp.clipboard().text() == "Look:\n\nDone.")
    harness.click(0, "Copy")
    qtbot.waitUntil(lambda: qapp.clipboard().text() == "a")


def test_a_call_that_was_unfolded_keeps_its_buttons(harness):
    harness.view.apply(harness.transcript.add_message(Message.user("c")))
    answer = Message.assistant("").model_copy(update={"blocks": (ToolUse(id="2", name="look", input={}),)})
    harness.view.apply(harness.transcript.add_message(answer))
    harness.send(ToolFinished("2", ToolResult(tool_use_id="2", content=(), outcome=Outcome.SUCCEEDED)))
    assert buttons(harness, 7) == OF_ANSWERS
    harness.click(7, "Show details")
    assert buttons(harness, 7) == OF_ANSWERS


def test_nothing_is_below_the_messages_of_a_view_without_actions(qtbot):
    harness = Standing(qtbot, talk())
    assert [buttons(harness, row) for row in range(6)] == [[]] * 6
    assert MenuEntry("x", None).sections == ()


@pytest.mark.parametrize("width", [120, 200, 260, 700])
def test_all_buttons_have_room_in_a_narrow_column(harness, width):
    versions = {"a": Versions(("old", "a"), 1), "last": Versions(("x", "last"), 1)}
    harness.view.set_message_actions(MessageActions(versions, continuations=("f",)))
    for row in (0, 3, 5):
        footer = harness.rows.row(row).footer
        style = harness.rows.render_context.style
        height = footer.layout(width, style)
        boxes = [box for _, box in footer._placed]
        assert height == max(box.bottom() for box in boxes) + 1
        edge = style.px(6)
        assert all(-edge <= box.left() and box.right() < width + edge for box in boxes if box.width() <= width)
        assert not any(one.intersects(other_box) for number, one in enumerate(boxes) for other_box in boxes[:number])
        lines = [[box for box in boxes if box.top() == top] for top in sorted({box.top() for box in boxes})]
        # None begins a line that had room on the line above.
        for above, line in pairwise(lines):
            assert sum(box.width() for box in (*above, line[0])) > width + 2 * edge


def test_the_menu_copies_the_markdown_of_the_whole_answer(harness, qtbot, qapp):
    qapp.clipboard().clear()
    offered_at(harness, 1)["Copy message as Markdown"].trigger()
    qtbot.waitUntil(lambda: qapp.clipboard().text() == "Look:\n\nDone.")
