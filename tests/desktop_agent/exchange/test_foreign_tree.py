"""A tree comes out of anything: gaps, circles, clashing ids, too many messages."""

import random
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop_agent.exchange.foreign_tree import Draft, Overview, Thread, TreeBuilder, conversation_tree
from desktop_agent.exchange.import_report import ImportReport, Omission
from desktop_agent.types.blocks import Text, ToolResult, ToolUse
from desktop_agent.types.conversation_tree import ConversationOrigin
from desktop_agent.types.messages import Role

NOW = datetime(2026, 5, 19, tzinfo=UTC)


def draft(entry_id: str, parent: str | None = None, role: Role = Role.USER) -> Draft:
    return Draft(entry_id, role, NOW, parent, [Text(text=entry_id)])


def new_tree(max_messages: int = 100) -> TreeBuilder:
    return TreeBuilder(ImportReport(), max_messages)


def links(tree: TreeBuilder) -> dict[str, str | None]:
    return {node.message.id: node.parent for node in tree.build(None)[0]}


def test_a_message_follows_what_stands_before_an_entry_that_is_not_shown() -> None:
    tree = new_tree()
    tree.add(draft("a"))
    tree.pass_over("x", "a")
    tree.pass_over("y", "x")
    tree.add(Draft("empty", Role.USER, NOW, "y"))
    tree.add(draft("b", "empty"))
    assert links(tree) == {"a": None, "b": "a"}


def test_a_parent_may_stand_later_in_the_file() -> None:
    tree = new_tree()
    tree.add(draft("b", "a"))
    tree.add(draft("a"))
    assert links(tree) == {"a": None, "b": "a"}


def test_after_a_gap_a_message_follows_the_one_before_it() -> None:
    tree = new_tree()
    for entry_id, parent in (("a", None), ("b", "lost"), ("c", "b")):
        tree.add(draft(entry_id, parent))
    assert links(tree) == {"a": None, "b": "a", "c": "b"}
    assert tree.report.count(Omission.MISSING_PARENT) == 1


@pytest.mark.parametrize("parents", [{"a": "a"}, {"a": "c", "b": "a", "c": "b"}, {"a": None, "b": "c", "c": "b"}])
def test_a_circle_is_opened(parents: dict[str, str | None]) -> None:
    tree = new_tree()
    for entry_id, parent in parents.items():
        tree.add(draft(entry_id, parent))
    assert set(links(tree)) == set(parents)
    assert tree.report.count(Omission.CIRCLE) == 1


def test_a_circle_of_entries_that_are_not_shown_ends() -> None:
    tree = new_tree()
    tree.pass_over("x", "y")
    tree.pass_over("y", "x")
    tree.add(draft("a", "x"))
    assert links(tree) == {"a": None}


def test_a_second_message_of_one_id_and_one_too_many_are_counted() -> None:
    tree = new_tree(2)
    assert [tree.add(draft(entry_id)) for entry_id in ("a", "a", "b", "c")] == [True, False, True, False]
    assert [tree.report.count(omission) for omission in (Omission.REPEATED, Omission.TOO_MANY)] == [1, 1]


@pytest.mark.parametrize("entry_id", ["", "x" * 5000])
def test_an_id_that_cannot_be_used_is_replaced(entry_id: str) -> None:
    tree = new_tree()
    tree.add(draft(entry_id))
    tree.add(draft("b", entry_id))
    ((message_id, _), (_, parent)) = links(tree).items()
    assert parent == message_id
    assert len(message_id) == 32


def test_the_head_is_the_message_that_an_entry_stands_for() -> None:
    tree = new_tree()
    tree.add(draft("a"))
    tree.add(draft("b", "a"))
    tree.pass_over("x", "a")
    assert [tree.build(head)[1] for head in ("x", "unknown", None)] == ["a", "b", "b"]
    assert new_tree().build("a") == ((), None)


ids = st.sampled_from("abcdefgh")


@given(st.lists(st.tuples(st.booleans(), ids, st.none() | ids), max_size=12), st.none() | ids)
def test_any_links_make_a_tree(entries: list[tuple[bool, str, str | None]], head: str | None) -> None:
    tree = new_tree()
    for is_shown, entry_id, parent in entries:
        if is_shown:
            tree.add(draft(entry_id, parent))
        else:
            tree.pass_over(entry_id, parent)
    built = conversation_tree(ConversationOrigin(program="p", id="i"), Overview(), tree, head, NOW)
    assert len(built.messages) == len(tree)
    assert (built.head is None) == (not len(tree))
    built.branch()


def test_a_thread_puts_results_behind_their_answer_and_goes_on_there() -> None:
    tree = new_tree()
    thread = Thread(tree)
    thread.add(draft("u"))
    thread.add_block("a", NOW, ToolUse(id="1", name="x"))
    thread.add_block("a2", NOW, ToolUse(id="2", name="x"))
    thread.add_result(ToolResult(tool_use_id="2"), NOW)
    thread.add_block("b", NOW, Text(text="done"))
    thread.add_result(ToolResult(tool_use_id="1"), NOW)
    thread.add_result(ToolResult(tool_use_id="1"), NOW)
    thread.add_result(ToolResult(tool_use_id="3"), NOW)
    assert links(tree) == {"u": None, "a": "u", "a-results": "a", "b": "a-results"}
    assert [tree.report.count(omission) for omission in (Omission.REPEATED, Omission.STRAY_RESULT)] == [1, 1]
    thread.tail = "u"
    thread.add_block("c", NOW, Text(text="other"))
    assert links(tree)["c"] == "u"


def test_answers_in_pieces_are_joined_where_nothing_branches() -> None:
    tree = new_tree()
    for entry_id, parent in (("a", None), ("b", "a"), ("c", "b"), ("d", "c"), ("e", "c")):
        tree.add(draft(entry_id, parent, Role.ASSISTANT))
    tree.join_pieces()
    messages, head = tree.build("b")
    texts = [(node.message.text, node.parent) for node in messages]
    assert texts == [("a\n\nb\n\nc", None), ("d", "a"), ("e", "a")]
    assert head == "a"


def test_pieces_are_joined_before_the_one_that_they_follow_is_known() -> None:
    tree = new_tree()
    for entry_id, parent in (("c", "b"), ("b", "a"), ("a", None), ("x", "x")):
        tree.add(draft(entry_id, parent, Role.ASSISTANT))
    tree.join_pieces()
    assert [node.message.text for node in tree.build(None)[0]] == ["a\n\nb\n\nc", "x"]


def test_a_long_chain_in_any_order_becomes_a_row() -> None:
    tree = TreeBuilder(ImportReport())
    chain = [(str(number), str(number - 1) if number else None) for number in range(5000)]
    random.Random(1).shuffle(chain)
    for entry_id, parent in chain:
        tree.add(draft(entry_id, parent))
    assert [node.message.text for node in tree.build(None)[0]] == [str(number) for number in range(5000)]
