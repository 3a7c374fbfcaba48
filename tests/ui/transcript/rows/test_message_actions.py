"""What is offered below messages: where, what, and that nothing moves for it."""

from dataclasses import replace

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
def standing(qtbot):
    standing = Standing(qtbot)
    standing.view.set_message_actions(MessageActions())
    standing.transcript = Transcript(talk())
    standing.feed = Feed(standing.transcript)
    standing.view.set_transcript(standing.transcript)
    return standing


def names(standing, row):
    view = standing.rows
    return [command.name for command in commands_at(standing.transcript, row, view.render_context)]


def buttons(standing, row):
    standing.rows.settle()
    return [control.name for _, control in standing.rows.row(row).controls() if control.name != "Show details"]


def offered_at(standing, row):
    """The entries of the menu about a message, by their words."""
    menu = standing.view.context_menu.build_menu(standing.view.row_viewport.row_box(row).center(), standing.view)
    return {action.text().replace("&", ""): action for action in menu.actions() if action.text()}


def test_prompts_and_the_ends_of_answers_have_buttons(standing):
    assert [carrier_of(standing.transcript, row) for row in range(6)] == [0, 3, 3, 3, 4, 5]
    assert carrier_of(standing.transcript, -1) is None
    assert [buttons(standing, row) for row in range(6)] == [OF_PROMPTS, [], [], OF_ANSWERS, OF_PROMPTS, OF_ANSWERS]
    assert names(standing, 1) == OF_ANSWERS


def test_a_notice_has_none_and_does_not_take_them_from_the_answer(standing):
    standing.view.apply(standing.transcript.add_notice(Sentence("It broke off."), error=True))
    assert buttons(standing, 5) == OF_ANSWERS
    assert carrier_of(standing.transcript, 6) == 5
    standing.view.apply(standing.transcript.add_message(Message.user("c")))
    standing.view.apply(standing.transcript.add_notice(Sentence("No answer."), error=True))
    assert carrier_of(standing.transcript, 8) is None
    assert names(standing, 8) == []


def test_an_answer_that_grows_has_none_and_keeps_their_room(standing):
    actions = standing.rows.render_context.message_actions
    standing.view.apply(standing.transcript.add_message(Message.user("c")))
    standing.view.set_message_actions(replace(actions, is_working=True))
    standing.send(TurnStarted("t", "m", "model"), ContentDelta("So "), ContentDelta("be it."))
    assert buttons(standing, 7) == []
    before = standing.rows.total, standing.top_of(7)
    standing.send(TextClosed("p"))
    standing.view.set_message_actions(actions)
    assert buttons(standing, 7) == OF_ANSWERS
    assert (standing.rows.total, standing.top_of(7)) == before


def test_what_continues_an_answer_takes_its_buttons(standing):
    added = standing.transcript.add_message(Message.assistant("And more."))
    standing.view.apply(added)
    assert buttons(standing, 5) == []
    assert buttons(standing, 6) == OF_ANSWERS


def test_they_are_visible_under_the_pointer_the_focus_and_the_caret_and_at_the_end(standing):
    viewport = standing.view.row_viewport

    def visible():
        standing.picture()
        rows = (standing.rows.row(row) for row in range(6))
        return [row.footer is not None and row.footer.is_shown for row in rows]

    assert visible() == [False] * 5 + [True]
    QTest.mouseMove(standing.view.viewport(), viewport.row_box(2).center())
    assert visible() == [False, False, False, True, False, True]
    viewport.hover((-1, ""))
    viewport.focus((0, ""))
    assert visible() == [True] + [False] * 4 + [True]
    viewport.focus((-1, ""))
    viewport.move_caret(4)
    assert visible() == [False] * 4 + [True] * 2


def test_the_buttons_of_code_are_visible_where_its_row_is_pointed_at(standing):
    standing.view.apply(standing.transcript.add_message(Message.assistant("```py\nx = 1\n```")))
    standing.rows.settle()
    viewport = standing.view.row_viewport
    block, copy = next(
        (block, control) for block, control in standing.rows.row(6).controls() if control.name == "Copy code"
    )

    def is_visible():
        picture, box = standing.picture(), copy.box.translated(viewport.block_box(6, block).topLeft())
        points = ((x, y) for x in range(box.left(), box.right()) for y in range(box.top(), box.bottom()))
        return len({picture.pixel(x, y) for x, y in points}) > 1

    assert not is_visible()
    QTest.mouseMove(standing.view.viewport(), viewport.row_box(6).center())
    assert is_visible()
    viewport.hover((2, ""))
    assert not is_visible()
    viewport.focus((6, ""))
    assert is_visible()
    viewport.focus((-1, ""))
    viewport.move_caret(6)
    assert is_visible()


def test_keys_and_buttons_say_which_message(standing):
    view, asked = standing.view, []
    view.edit_requested.connect(lambda id_: asked.append(("edit", id_)))
    view.regenerate_requested.connect(lambda id_: asked.append(("regenerate", id_)))
    view.branch_requested.connect(lambda id_: asked.append(("branch", id_)))
    view.delete_requested.connect(lambda id_: asked.append(("delete", id_)))
    standing.click(0, "Edit")
    standing.click(3, "Regenerate")
    standing.click(5, "Branch from here")
    view.row_viewport.focus((1, ""))
    for key in (Qt.Key.Key_R, Qt.Key.Key_B, Qt.Key.Key_E, Qt.Key.Key_Delete):
        QTest.keyClick(view, key)
    assert asked == [
        ("edit", "a"),
        ("regenerate", "last"),
        ("branch", "other"),
        ("regenerate", "last"),
        ("branch", "last"),
        ("delete", "last"),
    ]


def test_a_message_that_is_only_a_file_is_called_by_its_name(qtbot):
    label = label_attached(AttachedText("notes.txt", "words"))
    standing = Standing(qtbot, [Message.user(label)])
    standing.view.set_message_actions(MessageActions())
    standing.rows.settle()
    assert standing.rows.row(0).footer.subject() == "notes.txt"


def test_keys_that_count_as_keypad_are_commands_too(standing):
    asked = []
    standing.view.delete_requested.connect(asked.append)
    standing.view.row_viewport.focus((1, ""))
    QTest.keyClick(standing.view, Qt.Key.Key_Delete, Qt.KeyboardModifier.KeypadModifier)
    assert asked == ["last"]


@pytest.mark.parametrize(("action", "name"), [(RemedyAction.CONTINUE, "Continue"), (RemedyAction.GO_ON, "Ask anyway")])
def test_an_answer_that_can_go_on_does_so_by_its_button_its_key_and_its_menu(standing, action, name):
    asked = []
    standing.view.remedy_requested.connect(lambda id_, chosen: asked.append((id_, chosen)))
    standing.view.apply(standing.transcript.add_notice(Sentence("A limit was reached."), action=action))
    notice = standing.transcript[6].id
    with_continue = [*OF_ANSWERS[:3], name, *OF_ANSWERS[3:]]
    assert [buttons(standing, row) for row in (3, 5)] == [OF_ANSWERS, with_continue]
    standing.click(5, name)
    for row in (2, 5, 6):
        standing.view.row_viewport.focus((row, ""))
        QTest.keyClick(standing.view, Qt.Key.Key_G)
    offered = offered_at(standing, 5)[name]
    assert offered.shortcut().toString() == "G"
    offered.trigger()
    assert asked == [(notice, action)] * 4
    node = standing.view.accessible_tree.row_node(5).child_nodes()[-1].find_child(name)
    assert node.name() == "Continue this answer"


def test_only_what_ends_a_conversation_at_rest_can_go_on(standing):
    offer = Sentence("The model can go on from here.")
    standing.view.apply(standing.transcript.add_notice(offer, action=RemedyAction.CONTINUE))
    standing.view.apply(standing.transcript.add_notice(Sentence("You chose another mode.")))
    assert "Continue" in buttons(standing, 5)
    standing.view.set_message_actions(MessageActions(refusal="Another window has it."))
    commands = commands_at(standing.transcript, 5, standing.rows.render_context)
    assert {each.name: each.refusal for each in commands}["Continue"] == "Another window has it."
    standing.view.set_message_actions(MessageActions())
    standing.view.apply(standing.transcript.add_message(Message.user("c")))
    assert [buttons(standing, row) for row in (5, 8)] == [OF_ANSWERS, OF_PROMPTS]
    standing.view.apply(standing.transcript.add_notice(offer, action=RemedyAction.CONTINUE))
    assert buttons(standing, 8) == ["Edit", "Continue", *OF_PROMPTS[1:]]
    standing.view.set_message_actions(MessageActions(is_working=True))
    assert buttons(standing, 8) == OF_PROMPTS


def test_versions_are_walked_at_prompts_and_at_the_ends_of_answers(standing):
    versions = {"a": Versions(("old", "a"), 1), "first": Versions(("first", "x", "y"), 0)}
    standing.view.set_message_actions(MessageActions(versions, continuations=("f", "g")))
    asked = []
    standing.view.version_requested.connect(asked.append)
    assert names(standing, 0) == [*OF_PROMPTS, "Previous version", "Next version"]
    assert buttons(standing, 3) == ["Previous version", "Next version", *OF_ANSWERS]
    assert names(standing, 5) == [*OF_ANSWERS, "Show what followed"]
    standing.click(0, "Previous version")
    standing.click(0, "Next version")
    standing.click(3, "Next version")
    standing.click(5, "Show what followed")
    standing.view.row_viewport.focus((2, ""))
    QTest.keyClick(standing.view, Qt.Key.Key_Right, Qt.KeyboardModifier.AltModifier)
    assert asked == ["old", "x", "g", "x"]


def test_what_cannot_be_done_says_why(standing):
    standing.view.set_message_actions(MessageActions(is_working=True))
    asked = []
    standing.view.edit_requested.connect(asked.append)
    refusals = {
        command.name: command.refusal for command in commands_at(standing.transcript, 0, standing.rows.render_context)
    }
    working = "The model is still working. Wait, or press Stop first."
    assert refusals == {"Edit": working, "Copy": "", "Branch from here": working, "Delete…": working}
    standing.click(0, "Edit")
    assert asked == []
    node = standing.view.accessible_tree.row_node(0).child_node(1).find_child("Edit")
    state = QAccessible.queryAccessibleInterface(node).state()
    assert state.disabled
    assert node.description() == working
    standing.view.set_message_actions(MessageActions(refusal="Another window has it."))
    assert node.description() == "Another window has it."
    assert {command.refusal for command in commands_at(standing.transcript, 5, standing.rows.render_context)} == {
        "",
        "Another window has it.",
    }


def test_the_buttons_are_in_the_accessible_tree_and_stops_of_tab(standing):
    row = standing.view.accessible_tree.row_node(4)
    (*_, footer) = row.child_nodes()
    assert [node.name() for node in footer.child_nodes()] == [
        "Edit your message",
        "Copy your message",
        "Branch from your message",
        "Delete your message…",
    ]
    assert {node.description() for node in footer.child_nodes()} == {"b"}
    standing.view.row_viewport.focus((4, ""))
    QTest.keyClick(standing.view, Qt.Key.Key_Tab)
    assert standing.view.row_viewport.focused == (4, "1/Edit")
    asked = []
    standing.view.edit_requested.connect(asked.append)
    QTest.keyClick(standing.view, Qt.Key.Key_Return)
    assert asked == ["b"]


def test_the_accessible_names_tell_prompts_from_answers(standing):
    versions = {"a": Versions(("old", "a"), 1), "first": Versions(("first", "x", "y"), 1)}
    standing.view.set_message_actions(MessageActions(versions))
    footers = [standing.view.accessible_tree.row_node(row).child_nodes()[-1] for row in (0, 3)]
    nodes = [node for footer in footers for node in footer.child_nodes()]
    names = [node.name() for node in nodes]
    assert len(set(names)) == len(names) == 13
    assert {"Previous version of your message", "Regenerate this answer with…", "Copy this answer"} <= {*names}
    assert [node.description() for node in nodes] == ["a"] * 5 + ["This is the newest version."] + ["Done."] * 7


def test_what_an_answer_is_about_is_said_without_its_marks(standing):
    answer = "## `run` **failed**\n\n```py\n{\n```\n- *all* of 6*7 and 2 * 3"
    standing.view.apply(standing.transcript.add_message(Message.assistant(answer)))
    last = standing.view.accessible_tree.row_node(len(standing.transcript) - 1)
    assert last.child_nodes()[-1].child_nodes()[0].description() == "run failed { all of 6*7 and 2 * 3"


def test_the_buttons_of_calls_and_code_say_what_they_are_about(standing):
    standing.view.apply(standing.transcript.add_message(Message.assistant("```py\n\n{\nx = 1\n```")))
    blocks = [node for row in (2, 6) for node in standing.view.accessible_tree.row_node(row).child_nodes()]
    told = {node.name(): node.description() for block in blocks for node in block.child_nodes()}
    assert told["Show details"] == "look"
    assert told["Copy code"] == told["Wrap lines"] == told["Save code as…"] == "x = 1"


def test_the_menu_offers_the_same_with_its_keys(standing):
    chosen = []
    models = AlternativeGroup("With another model", [Alternative("Large", chosen.append), Alternative("Small", print)])
    standing.view.set_message_actions(MessageActions(alternatives=lambda: [models]))
    offered = offered_at(standing, 3)
    assert offered["Regenerate"].shortcut().toString() == "R"
    assert offered["Branch from here"].isEnabled()
    assert offered["Copy message"].shortcut().toString() == "C"
    submenu = offered["With another model"].menu()
    assert [action.text() for action in submenu.actions()] == ["Large", "Small"]
    submenu.actions()[0].trigger()
    assert chosen == ["last"]
    standing.view.set_message_actions(MessageActions(is_working=True))
    offered = offered_at(standing, 0)
    assert not offered["Edit"].isEnabled()
    assert "still working" in offered["Edit"].toolTip()


def test_what_deletes_is_last_in_the_menu_and_by_itself(standing):
    for row in (0, 1, 3):
        menu = standing.view.context_menu.build_menu(standing.view.row_viewport.row_box(row).center(), standing.view)
        *_, line, last = menu.actions()
        assert (line.isSeparator(), last.text(), last.shortcut().toString()) == (True, "Delete…", "Del")
        assert [action.text() for action in menu.actions()].count("Delete…") == 1


def test_a_whole_answer_is_copied(standing, qapp, qtbot):
    qapp.clipboard().clear()
    standing.click(3, "Copy")
    qtbot.waitUntil(lambda: qapp.clipboard().text() == "Look:\n\nDone.")
    standing.click(0, "Copy")
    qtbot.waitUntil(lambda: qapp.clipboard().text() == "a")


def test_a_call_that_was_unfolded_keeps_its_buttons(standing):
    standing.view.apply(standing.transcript.add_message(Message.user("c")))
    answer = Message.assistant("").model_copy(update={"blocks": (ToolUse(id="2", name="look", input={}),)})
    standing.view.apply(standing.transcript.add_message(answer))
    standing.send(ToolFinished("2", ToolResult(tool_use_id="2", content=(), outcome=Outcome.SUCCEEDED)))
    assert buttons(standing, 7) == OF_ANSWERS
    standing.click(7, "Show details")
    assert buttons(standing, 7) == OF_ANSWERS


def test_nothing_is_below_the_messages_of_a_view_without_actions(qtbot):
    standing = Standing(qtbot, talk())
    assert [buttons(standing, row) for row in range(6)] == [[]] * 6
    assert MenuEntry("x", None).sections == ()


@pytest.mark.parametrize("width", [120, 200, 260, 700])
def test_all_buttons_have_room_in_a_narrow_column(standing, width):
    versions = {"a": Versions(("old", "a"), 1), "last": Versions(("x", "last"), 1)}
    standing.view.set_message_actions(MessageActions(versions, continuations=("f",)))
    for row in (0, 3, 5):
        footer = standing.rows.row(row).footer
        style = standing.rows.render_context.style
        height = footer.layout(width, style)
        boxes = [box for _, box in footer._placed]
        assert height == max(box.bottom() for box in boxes) + 1
        edge = style.px(6)
        assert all(-edge <= box.left() and box.right() < width + edge for box in boxes if box.width() <= width)
        assert not any(one.intersects(two) for number, one in enumerate(boxes) for two in boxes[:number])
        lines = height // style.px(26)
        assert {120: lines > 1, 700: lines == 1}.get(width, True)


def test_the_menu_copies_the_markdown_of_the_whole_answer(standing, qtbot, qapp):
    qapp.clipboard().clear()
    offered_at(standing, 1)["Copy message as Markdown"].trigger()
    qtbot.waitUntil(lambda: qapp.clipboard().text() == "Look:\n\nDone.")
