"""Topics in the newest backup of Cherry Studio become conversations."""

import os
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from desktop_agent.exchange.import_report import Omission
from desktop_agent.exchange.readers.cherry_studio import CherryStudioReader
from desktop_agent.exchange.readers.reader import LIMITS, HistoryUnreadable, Limits, Machine
from desktop_agent.types.blocks import Json, Thinking, ToolResult, ToolUse
from desktop_agent.types.errors import Sentence
from tests.desktop_agent.exchange.readers.foreign_homes import CHERRY_TOPIC, cherry_backup, write_cherry


def reader(home: Path, limits: Limits = LIMITS) -> CherryStudioReader:
    return CherryStudioReader(Machine(home, {}, "linux"), limits)


def test_topics_of_a_backup_are_listed(tmp_path: Path) -> None:
    assert not reader(tmp_path).is_present()
    write_cherry(tmp_path)
    assert reader(tmp_path).is_present()
    (found,) = reader(tmp_path).list_conversations()
    assert (found.id, found.title, found.model, found.message_count) == (CHERRY_TOPIC, "Counting", "m2", 4)
    assert found.created_at == datetime(2026, 3, 1, 10, 0, 1, tzinfo=UTC)
    assert found.updated_at == datetime(2026, 3, 1, 10, 0, 4, tzinfo=UTC)


def test_only_the_newest_backup_is_read(tmp_path: Path) -> None:
    os.utime(write_cherry(tmp_path), (0, 0))
    newer = cherry_backup()
    newer["indexedDB"]["topics"][0]["id"] = "topic-2"
    write_cherry(tmp_path, newer, "cherry-studio.20260401.zip")
    assert [found.id for found in reader(tmp_path).list_conversations()] == ["topic-2"]
    with pytest.raises(HistoryUnreadable, match="newest backup") as caught:
        reader(tmp_path).load(CHERRY_TOPIC)
    # A sentence of its own, so that it can be translated.
    assert caught.value.sentence.values["reason"] == Sentence("it is not in the newest backup")


def test_answers_of_two_models_are_branches_and_the_selected_one_goes_on(tmp_path: Path) -> None:
    write_cherry(tmp_path)
    loaded = reader(tmp_path).load(CHERRY_TOPIC)
    branch = loaded.tree.branch()
    assert [(message.role.value, message.text) for message in branch] == [
        ("user", "How many?"),
        ("assistant", ""),
        ("tool", ""),
        ("assistant", "Three."),
        ("user", "Sure?"),
    ]
    assert branch[1].blocks == (
        Thinking(text="Hm.", provider="cherry-studio"),
        ToolUse(id="b4", name="search", input={"q": "x"}),
    )
    assert branch[2].blocks == (ToolResult(tool_use_id="b4", content=(Json(value={"found": 3}),)),)
    assert [node.message.model for node in loaded.tree.messages if node.parent == "n1"] == ["m1", "m2"]
    assert loaded.report.omissions == {(Omission.HIDDEN, "citation"): 1}


def test_without_a_selection_the_first_answer_goes_on(tmp_path: Path) -> None:
    backup = cherry_backup()
    del backup["indexedDB"]["topics"][0]["messages"][2]["foldSelected"]
    write_cherry(tmp_path, backup)
    assert [message.text for message in reader(tmp_path).load(CHERRY_TOPIC).tree.branch()] == [
        "How many?",
        "Two.",
        "Sure?",
    ]


def test_code_with_a_fence_in_it_stays_one_block(tmp_path: Path) -> None:
    backup = cherry_backup()
    code = {"id": "code", "type": "code", "language": "markdown", "content": "```\nx\n```"}
    backup["indexedDB"]["message_blocks"].append(code)
    backup["indexedDB"]["topics"][0]["messages"][-1]["blocks"] = ["code"]
    write_cherry(tmp_path, backup)
    assert reader(tmp_path).load(CHERRY_TOPIC).tree.branch()[-1].text == "````markdown\n```\nx\n```\n````"


def test_messages_of_older_versions_have_their_text_themselves(tmp_path: Path) -> None:
    messages = [{"id": "n1", "role": "user", "content": "Hi"}, {"id": "n2", "role": "assistant", "content": "Hello"}]
    write_cherry(tmp_path, {"indexedDB": {"topics": [{"id": CHERRY_TOPIC, "messages": messages}]}})
    assert [message.text for message in reader(tmp_path).load(CHERRY_TOPIC).tree.branch()] == ["Hi", "Hello"]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 nothing", b"{}"])
def test_a_damaged_backup_is_counted_and_refused(tmp_path: Path, content: bytes) -> None:
    write_cherry(tmp_path).write_bytes(content)
    cherry = reader(tmp_path)
    assert list(cherry.list_conversations()) == []
    assert cherry.report.count(Omission.UNREADABLE_FILE) == 1
    with pytest.raises(HistoryUnreadable, match="damaged"):
        cherry.load(CHERRY_TOPIC)


def test_a_backup_that_unpacks_to_more_than_the_limit_is_refused(tmp_path: Path) -> None:
    path = write_cherry(tmp_path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data.json", b" " * 3_000_000)
    assert path.stat().st_size < 10_000
    with pytest.raises(HistoryUnreadable, match="too large"):
        reader(tmp_path, Limits(document=1_000_000)).load(CHERRY_TOPIC)
