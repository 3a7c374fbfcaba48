"""Sessions of opencode become conversations, from its database and from its files."""

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from desktop_agent.exchange.import_report import Omission
from desktop_agent.exchange.readers.opencode import OpencodeReader
from desktop_agent.exchange.readers.reader import HistoryUnreadable, Machine
from desktop_agent.types.blocks import Image, Outcome, Text, Thinking, ToolResult, ToolUse
from desktop_agent.types.messages import MessageState
from desktop_agent.types.provider_events import StopReason, Usage
from tests.desktop_agent.exchange.readers.foreign_homes import (
    OPENCODE_SESSION,
    OPENCODE_TIME,
    opencode_rows,
    write_database,
    write_older_opencode,
    write_opencode,
)

CREATED = datetime.fromtimestamp(OPENCODE_TIME / 1000, UTC)


def reader(home: Path, **environment: str) -> OpencodeReader:
    return OpencodeReader(Machine(home, environment, "linux"))


@pytest.fixture(params=["database", "files", "both"])
def home(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    if request.param != "files":
        write_opencode(tmp_path)
    if request.param != "database":
        write_older_opencode(tmp_path)
    return tmp_path


def test_the_places_follow_the_environment(tmp_path: Path) -> None:
    usual = tmp_path / ".local/share/opencode"
    assert reader(tmp_path).locations() == (usual / "opencode.db", usual / "storage")
    assert reader(tmp_path, OPENCODE_DB="/x/y.db").locations() == (Path("/x/y.db"),)
    assert reader(tmp_path, XDG_DATA_HOME="/x").locations()[0] == Path("/x/opencode/opencode.db")
    assert not reader(tmp_path).is_present()
    write_opencode(tmp_path)
    (usual / "opencode-beta.db").touch()
    assert reader(tmp_path).is_present()
    assert reader(tmp_path).locations()[1] == usual / "opencode-beta.db"


def test_sessions_are_listed_once_and_subagents_not(home: Path) -> None:
    opencode = reader(home)
    (found,) = opencode.list_conversations()
    assert (found.id, found.title, found.workspace) == (OPENCODE_SESSION, "Rename a thing", "/repo")
    assert (found.created_at, found.updated_at) == (CREATED, CREATED + timedelta(seconds=9))
    assert opencode.report.omissions == {(Omission.HIDDEN, "subagent"): 1}


def test_a_session_becomes_prompts_answers_and_results(home: Path) -> None:
    tree = reader(home).load(OPENCODE_SESSION).tree
    branch = tree.branch()
    assert [message.role.value for message in branch] == [
        *("user", "assistant", "tool", "assistant", "tool", "assistant"),
    ]
    assert [type(block) for block in branch[0].blocks] == [Text, Image]
    assert branch[1].blocks[0] == Thinking(text="Mechanical.", provider="anthropic")
    edit = branch[1].blocks[1]
    assert isinstance(edit, ToolUse)
    assert (edit.name, edit.input) == ("edit_file", {"path": "/repo/a.rs", "old_text": "old", "new_text": "new"})
    assert branch[2].blocks == (ToolResult(tool_use_id="call_1", content=(Text(text="done"),)),)
    assert branch[4].blocks == (ToolResult(tool_use_id="call_2", content=(Text(text="no"),), outcome=Outcome.FAILED),)
    assert branch[5].text == "Renamed it."
    assert branch[5].stop_reason is StopReason.END_TURN
    assert branch[5].usage == Usage(
        input_tokens=36, output_tokens=88, cache_read_tokens=10, cache_write_tokens=20, reasoning_tokens=8
    )
    assert (tree.title, tree.model, tree.workspace) == ("Rename a thing", "claude-opus-4-7", "/repo")


def test_a_subagent_is_a_branch_of_its_call(home: Path) -> None:
    tree = reader(home).load(OPENCODE_SESSION).tree
    (side,) = [node for node in tree.messages if node.message.injected_by == "subagent"]
    caller = next(node.message for node in tree.messages if node.message.id == side.parent)
    assert side.message.text == "Check"
    assert [call.id for call in caller.tool_uses] == ["call_2"]


def test_what_is_left_out_is_counted(home: Path) -> None:
    assert reader(home).load(OPENCODE_SESSION).report.omissions == {
        (Omission.HIDDEN, "synthetic"): 1,
        (Omission.HIDDEN, "step-start"): 1,
        (Omission.HIDDEN, "step-finish"): 1,
    }


def test_what_is_left_out_of_files_is_counted_for_the_session(tmp_path: Path) -> None:
    write_older_opencode(tmp_path)
    folder = tmp_path / ".local/share/opencode/storage/message" / OPENCODE_SESSION
    (folder / "linked.json").symlink_to(tmp_path / "elsewhere.json")
    opencode = reader(tmp_path)
    assert opencode.load(OPENCODE_SESSION).report.count(Omission.LINK) == 1
    assert opencode.report.omissions == {}


def test_a_session_that_runs_is_read_with_its_log(tmp_path: Path) -> None:
    connection: sqlite3.Connection = write_opencode(tmp_path, keep_log=True)
    assert [found.id for found in reader(tmp_path).list_conversations()] == [OPENCODE_SESSION]
    assert len(reader(tmp_path).load(OPENCODE_SESSION).tree.branch()) == 6
    connection.close()


def test_the_table_of_a_newer_version_is_read(tmp_path: Path) -> None:
    tool = {"type": "tool", "id": "call_1", "name": "bash"}
    tool["state"] = {"status": "error", "input": {"command": "x"}, "content": [], "error": {"message": "no"}}
    rows = [
        ("user", {"text": "Run x", "time": {"created": OPENCODE_TIME}}),
        ("model-switched", {"model": {"id": "m"}}),
        (
            "assistant",
            {"content": [tool, {"type": "text", "text": "It failed."}], "model": {"id": "m", "providerID": "p"}},
        ),
        ("compaction", {"summary": "…", "recent": ""}),
    ]
    newer = [
        {"id": str(number), "session_id": OPENCODE_SESSION, "type": kind, "seq": number, "data": data}
        for number, (kind, data) in enumerate(rows)
    ]
    session = opencode_rows()["session"]
    write_database(tmp_path / ".local/share/opencode/opencode.db", {"session": session, "session_message": newer})
    loaded = reader(tmp_path).load(OPENCODE_SESSION)
    branch = loaded.tree.branch()
    assert [(message.role.value, message.text) for message in branch] == [
        ("user", "Run x"),
        ("assistant", ""),
        ("tool", ""),
        ("assistant", "It failed."),
    ]
    assert branch[1].tool_uses[0].name == "run_command"
    assert branch[1].model == "m"
    assert loaded.report.omissions == {(Omission.HIDDEN, "model-switched"): 1, (Omission.SUMMARY, ""): 1}


def test_two_answers_one_after_the_other_stay_two(tmp_path: Path) -> None:
    rows = opencode_rows()
    info = {"role": "assistant", "time": {"created": OPENCODE_TIME + 5000}}
    session = {"session_id": OPENCODE_SESSION}
    rows["message"].append({"id": "msg_9", **session, "time_created": OPENCODE_TIME + 5000, "data": info})
    rows["part"].append({"id": "prt_9", "message_id": "msg_9", **session, "data": {"type": "text", "text": "More."}})
    write_database(tmp_path / ".local/share/opencode/opencode.db", rows)
    assert [message.text for message in reader(tmp_path).load(OPENCODE_SESSION).tree.branch()][-2:] == [
        "Renamed it.",
        "More.",
    ]


def test_a_stopped_answer_is_marked_and_an_automatic_title_replaced(tmp_path: Path) -> None:
    rows = opencode_rows()
    rows["session"][0]["title"] = "New session - 2026-05-15T08:45:04.540Z"
    rows["message"][1]["data"] |= {"error": {"name": "MessageAbortedError", "data": {"message": ""}}}
    write_database(tmp_path / ".local/share/opencode/opencode.db", rows)
    tree = reader(tmp_path).load(OPENCODE_SESSION).tree
    assert tree.title == "Rename it"
    assert tree.branch()[-1].state is MessageState.INTERRUPTED


@pytest.mark.parametrize("session_id", ["none", "../session", ""])
def test_a_session_that_is_not_there_is_refused(home: Path, session_id: str) -> None:
    with pytest.raises(HistoryUnreadable, match="opencode"):
        reader(home).load(session_id)
