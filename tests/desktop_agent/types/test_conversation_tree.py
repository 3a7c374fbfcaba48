"""A conversation with all its branches."""

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from desktop_agent.types.conversation_tree import ConversationTree, MessageOutline, TreeMessage
from desktop_agent.types.messages import AttachedText, Message, Role, label_attached

_AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def _node(id_: str, parent: str | None = None) -> TreeMessage:
    return TreeMessage(message=Message(id=id_, role=Role.USER, created_at=_AT), parent=parent)


def _tree(*nodes: TreeMessage, head: str | None = None) -> ConversationTree:
    return ConversationTree(id="c", title="T", created_at=_AT, updated_at=_AT, messages=nodes, head=head)


def test_the_branch_in_view_ends_in_the_head() -> None:
    tree = _tree(_node("a"), _node("b", "a"), _node("other", "a"), _node("c", "b"), head="c")
    assert [message.id for message in tree.branch()] == ["a", "b", "c"]


def test_without_a_head_no_branch_is_in_view() -> None:
    assert _tree(_node("a")).branch() == ()


@pytest.mark.parametrize(
    ("nodes", "head"),
    [
        ((_node("a"), _node("a")), None),
        ((_node("b", "a"), _node("a")), None),
        ((_node("a", "a"),), None),
        ((_node("a"),), "b"),
    ],
    ids=["an id twice", "before its parent", "its own parent", "an unknown head"],
)
def test_a_tree_that_is_none_is_refused(nodes: tuple[TreeMessage, ...], head: str | None) -> None:
    with pytest.raises(ValidationError):
        _tree(*nodes, head=head)


def test_json_keeps_everything() -> None:
    tree = _tree(_node("a"), _node("b", "a"), head="b")
    assert ConversationTree.model_validate_json(tree.model_dump_json()) == tree


def test_the_outline_of_a_prompt_that_is_only_a_file_has_its_name() -> None:
    label = label_attached(AttachedText("notes.txt", "# Shopping"))
    assert MessageOutline.of(Message.user(label), None).line == "notes.txt"
    assert MessageOutline.of(Message.user("[x]: what?"), None).line == "[x]: what?"
