"""Chats of Open WebUI become conversations with all their branches."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from desktop_agent.exchange.import_report import Omission
from desktop_agent.exchange.readers.open_webui import OpenWebUiReader
from desktop_agent.exchange.readers.reader import HistoryUnreadable, LoadedConversation, Machine
from desktop_agent.types.blocks import Image, Text, Thinking, ToolResult, ToolUse
from desktop_agent.types.provider_events import Usage
from tests.desktop_agent.exchange.readers.foreign_homes import WEBUI_CHAT, webui_chat, write_database, write_webui


def reader(home: Path, **environment: str) -> OpenWebUiReader:
    return OpenWebUiReader(Machine(home, environment, "linux"))


def load(home: Path, chat: object = None) -> LoadedConversation:
    write_webui(home, chat)
    return reader(home).load(WEBUI_CHAT)


def test_the_places_follow_the_environment(tmp_path: Path) -> None:
    usual = tmp_path / ".open-webui/webui.db"
    assert reader(tmp_path).locations()[0] == usual
    assert reader(tmp_path, DATA_DIR="/x").locations()[0] == Path("/x/webui.db")
    assert reader(tmp_path, DATABASE_URL="sqlite:////x/y.db").locations()[0] == Path("/x/y.db")
    assert reader(tmp_path, DATABASE_URL="postgresql://x").locations()[0] == usual
    assert not reader(tmp_path).is_present()
    write_webui(tmp_path)
    assert reader(tmp_path).is_present()


@pytest.mark.parametrize("keep_log", [False, True])
def test_chats_are_listed_whether_the_program_runs_or_not(tmp_path: Path, keep_log: bool) -> None:
    connection = write_webui(tmp_path, keep_log=keep_log)
    (found,) = reader(tmp_path).list_conversations()
    assert (found.id, found.title) == (WEBUI_CHAT, "What")
    assert found.created_at == datetime.fromtimestamp(1_758_816_800, UTC)
    connection.close()


def test_a_chat_becomes_its_branches(tmp_path: Path) -> None:
    loaded = load(tmp_path)
    branch = loaded.tree.branch()
    assert [(message.role.value, message.text) for message in branch] == [
        ("user", "What?"),
        ("assistant", "So:"),
        ("tool", ""),
        ("assistant", "That."),
        ("user", "Thanks"),
    ]
    assert [type(block) for block in branch[0].blocks] == [Text, Image]
    assert branch[1].blocks == (
        Thinking(text="Hm & so", provider="open-webui"),
        Text(text="So:"),
        ToolUse(id="w3/2", name="search", input={"q": 1}),
    )
    assert branch[2].blocks == (ToolResult(tool_use_id="w3/2", content=(Text(text="Found"),)),)
    assert branch[3].usage == Usage(input_tokens=10, output_tokens=5)
    assert (branch[3].model, loaded.tree.model) == ("qwen3", "qwen3")
    assert {node.message.text for node in loaded.tree.messages if node.parent == "w1"} == {"This.", "So:"}
    assert loaded.report.omissions == {(Omission.HIDDEN, "file"): 1}


def test_parents_that_are_missing_or_go_in_a_circle_lose_nothing(tmp_path: Path) -> None:
    chat = webui_chat()
    messages = chat["history"]["messages"]
    messages["w1"]["parentId"] = "w4"
    messages["w2"]["parentId"] = "lost"
    loaded = load(tmp_path, chat)
    assert len(loaded.tree.messages) == 6
    assert loaded.report.count(Omission.CIRCLE) == loaded.report.count(Omission.MISSING_PARENT) == 1


def test_markup_without_an_end_is_text(tmp_path: Path) -> None:
    chat = webui_chat()
    chat["history"]["messages"]["w3"]["content"] = '<details type="reasoning" ' * 20_000
    assert load(tmp_path, chat).tree.branch()[1].text.startswith('<details type="reasoning" <details')


def test_the_table_of_a_newer_version_is_read(tmp_path: Path) -> None:
    rows = [
        {"id": f"{WEBUI_CHAT}-a", "chat_id": WEBUI_CHAT, "role": "user", "parent_id": None, "content": '"Hi"'},
        {"id": f"{WEBUI_CHAT}-b", "chat_id": WEBUI_CHAT, "role": "assistant", "parent_id": "a", "content": '"Hello"'},
    ]
    rows = [{**row, "created_at": number} for number, row in enumerate(rows, 1)]
    chat = {"id": WEBUI_CHAT, "title": "What", "chat": {"history": {"messages": {}}}}
    write_database(tmp_path / ".open-webui/webui.db", {"chat": [chat], "chat_message": rows})
    branch = reader(tmp_path).load(WEBUI_CHAT).tree.branch()
    assert [(message.id, message.text) for message in branch] == [("a", "Hi"), ("b", "Hello")]


def test_a_chat_that_is_not_there_is_refused(tmp_path: Path) -> None:
    write_webui(tmp_path)
    with pytest.raises(HistoryUnreadable, match="Open WebUI"):
        reader(tmp_path).load("none")
