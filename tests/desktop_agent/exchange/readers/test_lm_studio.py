"""Chats of LM Studio become conversations; versions of a message are branches."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.exchange.import_report import Omission
from desktop_agent.exchange.readers.lm_studio import LmStudioReader
from desktop_agent.exchange.readers.reader import HistoryUnreadable, Machine
from desktop_agent.types.blocks import Text, Thinking, ToolResult, ToolUse
from tests.desktop_agent.exchange.readers.foreign_homes import (
    LM_STUDIO_CHAT,
    lm_studio_chat,
    lm_studio_version,
    write_lm_studio,
)


def said(text: str) -> dict[str, Any]:
    """An answer of LM Studio."""
    content = [{"type": "text", "text": text}]
    return lm_studio_version("assistant", steps=[{"type": "contentBlock", "content": content}])


def reader(home: Path) -> LmStudioReader:
    return LmStudioReader(Machine(home, {}, "linux"))


def test_a_listed_chat_has_its_name_times_and_model(tmp_path: Path) -> None:
    assert not reader(tmp_path).is_present()
    write_lm_studio(tmp_path)
    assert reader(tmp_path).is_present()
    (found,) = reader(tmp_path).list_conversations()
    assert (found.id, found.title, found.model, found.message_count) == (LM_STUDIO_CHAT, "Counting", "qwen3-4b", 3)
    assert found.created_at == datetime.fromtimestamp(1_758_816_879.741, UTC)
    assert found.updated_at == datetime.fromtimestamp(1_758_816_910, UTC)


def test_chats_without_messages_and_other_files_are_not_listed(tmp_path: Path) -> None:
    path = write_lm_studio(tmp_path, {**lm_studio_chat(), "messages": []})
    path.with_name("other.json").write_text("{}")
    lm_studio = reader(tmp_path)
    assert list(lm_studio.list_conversations()) == []
    assert lm_studio.report.omissions == {}
    path.write_text("{")
    assert list(lm_studio.list_conversations()) == []
    assert lm_studio.report.omissions == {(Omission.UNREADABLE_FILE, ""): 1}


def test_a_new_version_changes_no_id_of_other_messages(tmp_path: Path) -> None:
    chat = lm_studio_chat()
    later = said("Quite sure.")
    chat["messages"].append({"versions": [later], "currentlySelected": 0})
    write_lm_studio(tmp_path, chat)
    before = [message.id for message in reader(tmp_path).load(LM_STUDIO_CHAT).tree.branch()]
    chat["messages"][1]["versions"].append(said("Four."))
    write_lm_studio(tmp_path, chat)
    tree = reader(tmp_path).load(LM_STUDIO_CHAT).tree
    assert [message.id for message in tree.branch()] == before
    assert "Four." in [node.message.text for node in tree.messages]


def test_the_selected_version_goes_on_and_the_other_is_a_branch(tmp_path: Path) -> None:
    write_lm_studio(tmp_path)
    tree = reader(tmp_path).load(LM_STUDIO_CHAT).tree
    branch = tree.branch()
    assert [(message.role.value, message.text) for message in branch] == [
        ("user", "How many?"),
        ("assistant", ""),
        ("tool", ""),
        ("assistant", "Three."),
        ("user", "Sure?"),
    ]
    assert branch[1].blocks == (
        Thinking(text="Let me see.", provider="lm-studio"),
        ToolUse(id="1.1/1", name="search", input={"q": "x"}),
    )
    assert branch[2].blocks == (ToolResult(tool_use_id="1.1/1", content=(Text(text='{"found": 3}'),)),)
    assert branch[3].model == "qwen3"
    assert [node.message.text for node in tree.messages if node.parent == branch[0].id] == ["Two.", ""]


def test_the_first_version_goes_on_if_it_is_selected(tmp_path: Path) -> None:
    chat = lm_studio_chat()
    chat["messages"][1]["currentlySelected"] = 0
    write_lm_studio(tmp_path, chat)
    assert [message.text for message in reader(tmp_path).load(LM_STUDIO_CHAT).tree.branch()][1:] == ["Two.", "Sure?"]


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    chat = lm_studio_chat()
    file = {"type": "file", "fileIdentifier": "1.png", "fileType": "image", "sizeBytes": 4}
    chat["messages"].append(
        {"versions": [lm_studio_version("user", file, {"type": "hologram"})], "currentlySelected": 0}
    )
    write_lm_studio(tmp_path, chat)
    assert reader(tmp_path).load(LM_STUDIO_CHAT).report.omissions == {
        (Omission.HIDDEN, "status"): 1,
        (Omission.PICTURE, ""): 1,
        (Omission.UNKNOWN, "hologram"): 1,
    }


def test_a_chat_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HistoryUnreadable, match="LM Studio"):
        reader(tmp_path).load("none")
