"""Shapes of other programs that go wrong in every way: nothing is raised, and the report says what was left out."""

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.exchange.import_conversations import ConversationImport
from desktop_agent.exchange.import_report import ExchangeFailed, ImportReport, Skipped
from desktop_agent.types.conversation_tree import ConversationTree
from desktop_agent.types.errors import Sentence

EXPORTS = Path(__file__).parent / "exports"
ODD: list[Any] = [None, True, 5, -1e300, "", "text", [], {}, [[]], [None], {"a": None}, "\ud800", "1" * 5000, 10**400]


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
