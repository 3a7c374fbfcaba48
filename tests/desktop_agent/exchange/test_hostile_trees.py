"""Shapes of other programs that go wrong in every way: nothing is raised, and the report says what was left out."""

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.exchange.foreign_tree import ForeignConversation, ForeignMessage, build_tree
from desktop_agent.exchange.import_conversations import ConversationImport
from desktop_agent.exchange.import_report import ExchangeFailed, ImportReport, Skipped
from desktop_agent.types.blocks import Text
from desktop_agent.types.conversation_tree import ConversationTree
from desktop_agent.types.errors import Sentence
from desktop_agent.types.messages import Role

EXPORTS = Path(__file__).parent / "exports"
ODD: list[Any] = [None, True, 5, -1e300, "", "text", [], {}, [[]], [None], {"a": None}, "\ud800", "1" * 5000, 10**400]


def foreign(*messages: tuple[str, str | None], head: str | None = None) -> tuple[ConversationTree, list[str]]:
    report = ImportReport()
    made = [ForeignMessage(id_, parent, Role.USER, [Text(text=id_)]) for id_, parent in messages]
    tree = build_tree(ForeignConversation("p", "c", messages=made, head=head), report)
    return tree, [str(sentence) for sentence, _ in report.notes]


def shape(tree: ConversationTree) -> list[tuple[str, str | None]]:
    names = {node.message.id: node.message.text for node in tree.messages}
    return [(node.message.text, names[node.parent] if node.parent else None) for node in tree.messages]


def test_circles_become_rows() -> None:
    tree, notes = foreign(("a", "c"), ("b", "a"), ("c", "b"), ("self", "self"))
    assert shape(tree) == [("a", None), ("b", "a"), ("c", "b"), ("self", None)]
    assert notes == ["Messages that follow each other in a circle were put in a row."]


def test_what_follows_nobody_begins_a_branch() -> None:
    tree, notes = foreign(("a", None), ("b", "gone"), ("a", "b"), head="gone")
    assert shape(tree) == [("a", None), ("b", None)]
    assert tree.head == tree.messages[-1].message.id
    assert notes == [
        "A message whose id another one has was left out.",
        "A message that follows none of this conversation was put at its beginning.",
    ]


def test_messages_may_stand_in_any_order_and_be_very_many() -> None:
    chain = [(str(number), str(number - 1) if number else None) for number in range(5000)]
    random.Random(1).shuffle(chain)
    tree, notes = foreign(*chain)
    assert (len(tree.messages), notes) == (5000, [])
    assert [node.message.text for node in tree.messages] == [str(number) for number in range(5000)]


def test_answers_in_pieces_are_joined_where_nothing_branches() -> None:
    pieces = [("a", None), ("b", "a"), ("c", "b"), ("d", "c"), ("e", "c")]
    messages = [ForeignMessage(id_, parent, Role.ASSISTANT, [Text(text=id_)]) for id_, parent in pieces]
    tree = build_tree(ForeignConversation("p", "c", messages=messages, head="b"), ImportReport())
    assert shape(tree) == [("a\n\nb\n\nc", None), ("d", "a\n\nb\n\nc"), ("e", "a\n\nb\n\nc")]
    assert tree.head == tree.messages[0].message.id


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    inner = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    return [path, *(place for key, member in inner for place in places(member, (*path, key)))]


@pytest.mark.parametrize("name", ["chatgpt.json", "claude.json"])
@pytest.mark.parametrize("seed", range(20))
def test_any_value_may_be_of_any_type(name: str, seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    data = json.loads((EXPORTS / name).read_text(encoding="utf-8"))
    broken: list[Any] = []
    for _ in range(20):
        conversation = copy.deepcopy(chance.choice(data))
        for _ in range(chance.choice((1, 1, 3))):
            *above, last = chance.choice(places(conversation)[1:])
            target = conversation
            try:
                for key in above:
                    target = target[key]
                target[last] = chance.choice(ODD)
            except (TypeError, KeyError, IndexError):
                continue
        broken.append(conversation)
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([*broken, *data]), encoding="utf-8")
    try:
        with ConversationImport(path) as export:
            results = list(export)
    except ExchangeFailed:
        pytest.fail("what is whole was refused")
    assert len(results) == 20 + len(data)
    assert all(isinstance(result, (ConversationTree, Skipped)) for result in results)


def test_the_report_is_bounded() -> None:
    report = ImportReport()
    for number in range(5000):
        report.add(Sentence("“{name}” is not known.", {"name": f"{number} " + "x" * 1000}))
    notes = list(report.notes)
    assert len(notes) == 201
    assert notes[-1][1] == 4800
    assert all(len(str(sentence)) < 200 for sentence, _ in notes)
