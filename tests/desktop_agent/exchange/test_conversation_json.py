import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop_agent.conversation.items import NoticeItem
from desktop_agent.conversation.transcript import Transcript
from desktop_agent.exchange.conversation_json import conversations_schema, read_conversation, write_conversations
from desktop_agent.exchange.import_report import ImportReport, Skipped
from desktop_agent.exchange.json_stream import JsonArrayReader
from desktop_agent.types.blocks import Json, Text, ToolResult, ToolUse, Unknown
from desktop_agent.types.conversation_tree import ConversationTree, TreeMessage
from desktop_agent.types.messages import Message, Role
from tests.desktop_agent.exchange.sample_trees import as_imported, full_tree, long_tree, message

ROOT = Path(__file__).parents[3]


def exported(*trees: ConversationTree) -> bytes:
    file = io.BytesIO()
    write_conversations(trees, file.write)
    return file.getvalue()


def imported(data: bytes) -> tuple[list[ConversationTree | Skipped], ImportReport]:
    report = ImportReport()
    reader = JsonArrayReader(io.BytesIO(data).read)
    reader.read_head()
    return [read_conversation(entry, report) for entry in reader], report


def changed(change: Any) -> tuple[ConversationTree | Skipped, ImportReport]:
    """Read the full conversation again after this change to its JSON."""
    data = json.loads(exported(full_tree()))["conversations"][0]
    change(data)
    report = ImportReport()
    return read_conversation(data, report), report


def lines(report: ImportReport) -> list[str]:
    return [f"{sentence} {count}" for sentence, count in report.notes]


def test_everything_comes_back_and_is_the_same_bytes_again() -> None:
    trees = [full_tree(), full_tree("a" * 32), long_tree(3)]
    data = exported(*trees)
    read, report = imported(data)
    assert read == [as_imported(tree) for tree in trees]
    assert report.notes == ()
    assert exported(*(tree for tree in read if isinstance(tree, ConversationTree))) == data
    assert data.decode().count("\n") == 5
    assert "漢字" in data.decode()


def test_halves_of_a_pair_side_by_side_are_one_character() -> None:
    tree = full_tree().model_copy(update={"title": "\ud83d\ude00 \ude00\ud83d"})
    data = exported(tree)
    (read,), _ = imported(data)
    assert isinstance(read, ConversationTree)
    assert read.title == "\U0001f600 \ude00\ud83d"
    assert exported(read) == data


def test_no_number_that_json_does_not_have_is_written() -> None:
    result = ToolResult(
        tool_use_id="t", content=[Json(value={"a": [float("nan"), float("inf"), 1.0], "\ud83d": "\udc00"})]
    )
    tree = long_tree(0).model_copy(
        update={"messages": (TreeMessage(message=message("m", Role.TOOL, result)),), "head": "m"}
    )
    block = json.loads(exported(tree), parse_constant=pytest.fail)["conversations"][0]["messages"][0]["message"]
    assert block["blocks"][0]["content"][0]["value"] == {"a": [None, None, 1.0], "\ud83d": "\udc00"}


def test_the_committed_schema_is_that_of_the_models() -> None:
    path = ROOT / "docs" / "exchange.schema.json"
    schema = json.dumps(conversations_schema(), indent=2, sort_keys=True) + "\n"
    # After a change of the models: path.write_text(schema). Raise VERSION if what older versions wrote does not fit.
    assert path.read_text(encoding="utf-8") == schema


def test_what_is_written_fits_the_schema() -> None:
    jsonschema.validate(json.loads(exported(full_tree(), long_tree(0))), conversations_schema())


def test_blocks_and_properties_of_the_future_are_kept_or_reported() -> None:
    def change(data: dict[str, Any]) -> None:
        data["mood"] = "good"
        data["messages"][0]["message"]["aura"] = 1
        data["messages"][0]["message"]["blocks"] += [{"type": "smell", "of": "tea"}, 5]

    tree, report = changed(change)
    assert isinstance(tree, ConversationTree)
    assert tree.messages[0].message.blocks[2:] == (Unknown(raw={"type": "smell", "of": "tea"}), Unknown(raw=5))
    assert tree.messages[1:] == as_imported(full_tree()).messages[1:]
    assert lines(report) == [
        "A property “mood”, which this version does not know, was left out. 1",
        "A property “aura”, which this version does not know, was left out. 1",
        "Content that this version does not know was kept as it is. 2",
    ]


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.pop("title"),
        lambda data: data.update(title=5),
        lambda data: data.update(created_at="yesterday"),
        lambda data: data.update(head="nobody"),
        lambda data: data.update(id=""),
        lambda data: data.update(id="x" * 1000),
        lambda data: data.update(id="found-" + "0" * 32),
        lambda data: data["messages"].append(data["messages"][0]),
        lambda data: data["messages"].reverse(),
        lambda data: data["messages"].append("text"),
        lambda data: data["messages"][0].update(parent="m1"),
        lambda data: data["messages"][0]["message"].update(role="wizard"),
        lambda data: data["messages"][0]["message"].update(id=5),
    ],
)
def test_a_conversation_that_cannot_be_is_skipped_with_a_reason(change: Any) -> None:
    result, _ = changed(change)
    assert isinstance(result, Skipped)
    assert str(result.reason).endswith(".")


def test_instructions_that_nobody_would_see_are_reported() -> None:
    tree = long_tree(0).model_copy(
        update={"messages": (TreeMessage(message=message("m", Role.SYSTEM, Text(text="obey"))),), "head": "m"}
    )
    (read,), report = imported(exported(tree))
    assert read == tree
    assert lines(report) == ["Instructions that are in a conversation, and are not shown in it, were kept. 1"]


def test_a_moment_without_a_zone_is_in_utc() -> None:
    def change(data: dict[str, Any]) -> None:
        data["updated_at"] = data["updated_at"].removesuffix("Z")
        data["messages"][1]["message"]["created_at"] = "2026-11-26T09:31:00"

    tree, _ = changed(change)
    assert tree == as_imported(full_tree())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
TEXT = st.text(st.characters(exclude_categories=()), max_size=20)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.tuples(TEXT, st.dictionaries(TEXT, JSON, max_size=3), st.integers(0, 5)), max_size=6))
def test_any_tree_is_the_same_bytes_again(drawn: list[tuple[str, dict[str, Any], int]]) -> None:
    nodes: list[TreeMessage] = []
    for number, (text, arguments, above) in enumerate(drawn):
        blocks = [Text(text=text), ToolUse(id="t", name=text, input=arguments), Unknown(raw=arguments)]
        made = Message(id=f"m{number}", role=Role.ASSISTANT, blocks=blocks)
        nodes.append(TreeMessage(message=made, parent=f"m{above}" if above < number else None))
    tree = long_tree(0).model_copy(update={"messages": tuple(nodes), "head": nodes[-1].message.id if nodes else None})
    data = exported(tree)
    (read,), _ = imported(data)
    assert isinstance(read, ConversationTree)
    assert exported(read) == data


def test_places_that_cannot_be_stored_are_cut_and_reported() -> None:
    report = ImportReport()
    raw = {
        "id": "c",
        "title": "t" * 1_000_000,
        "created_at": "2026-01-01T00:00:00",
        "updated_at": "2026-01-01T00:00:00",
        "pinned_at": "2026-01-02T00:00:00",
        "folder": [" ", "n" * 500, *(["deep"] * 500)],
        "tags": ["x" * 500, "one", "ONE", ""],
    }
    tree = read_conversation(raw, report)
    assert isinstance(tree, ConversationTree)
    assert (len(tree.folder), max(map(len, tree.folder))) == (16, 80)
    assert tree.tags == ("one", "x" * 40)
    assert tree.pinned_at == datetime(2026, 1, 2, tzinfo=UTC)
    assert len(tree.title) == 500
    assert len(report.notes) == 3
    plain = {name: raw[name] for name in ("id", "title", "created_at", "updated_at")}
    old = read_conversation(plain, ImportReport())
    assert isinstance(old, ConversationTree)
    assert (old.folder, old.tags, old.archived_at) == ((), (), None)


def test_words_of_a_stranger_are_not_shown_as_those_of_the_program() -> None:
    forged = {"template": "Your key expired. Enter it at https://evil.example", "values": {}}
    once, _ = changed(lambda raw: raw["messages"][1]["message"].update(adjustments=[forged, forged]))
    assert isinstance(once, ConversationTree)
    items = Transcript(node.message for node in once.messages)
    notices = [str(item.sentence) for item in items if isinstance(item, NoticeItem)]
    evil = [words for words in notices if "evil" in words]
    assert evil == [f"Noted in the file that was imported: {forged['template']}"]
    (again,), _ = imported(exported(once))
    assert again == once
