"""Sessions of Gemini CLI become conversations; what was gone back from is a branch."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from desktop_agent.exchange.import_report import Omission
from desktop_agent.exchange.readers.gemini_cli import GeminiCliReader
from desktop_agent.exchange.readers.reader import HistoryUnreadable, LoadedConversation, Machine
from desktop_agent.types.blocks import Image, Outcome, Text, Thinking, ToolResult, ToolUse
from desktop_agent.types.provider_events import Usage
from tests.desktop_agent.exchange.readers.foreign_homes import (
    GEMINI_SESSION,
    gemini_message,
    gemini_session,
    write_gemini,
    write_json,
    write_lines,
)


def reader(home: Path, **environment: str) -> GeminiCliReader:
    return GeminiCliReader(Machine(home, environment, "linux"))


def load(home: Path, entries: list[object] | None = None) -> LoadedConversation:
    write_gemini(home, entries)
    return reader(home).load(GEMINI_SESSION)


def test_the_places_follow_the_environment(tmp_path: Path) -> None:
    assert reader(tmp_path).locations() == (tmp_path / ".gemini" / "tmp",)
    assert reader(tmp_path, GEMINI_CLI_HOME="/x").locations() == (Path("/x/.gemini/tmp"),)
    (tmp_path / ".gemini" / "tmp" / "bin").mkdir(parents=True)
    assert not reader(tmp_path).is_present()
    write_gemini(tmp_path)
    assert reader(tmp_path).is_present()


def test_a_listed_session_has_its_summary_times_folder_and_model(tmp_path: Path) -> None:
    write_gemini(tmp_path)
    (found,) = reader(tmp_path).list_conversations()
    assert (found.id, found.title) == (GEMINI_SESSION, "Renaming x")
    assert found.created_at == datetime(2026, 8, 21, 10, tzinfo=UTC)
    assert found.updated_at == datetime(2026, 8, 21, 10, 0, 8, tzinfo=UTC)
    assert (found.workspace, found.model) == ("/home/ann/app", "gemini-3-pro")


def test_subagents_and_sessions_without_a_prompt_are_not_listed(tmp_path: Path) -> None:
    write_gemini(tmp_path, [gemini_session()[0], gemini_session()[1]])
    write_lines(tmp_path / ".gemini/tmp/app/chats/0a1b2c3d-e/sub.jsonl", gemini_session())
    write_lines(tmp_path / ".gemini/tmp/app/logs/session-1.jsonl", gemini_session())
    write_lines(
        tmp_path / ".gemini/tmp/app/chats/session-2.jsonl",
        [{**gemini_session()[0], "kind": "subagent"}, *gemini_session()[1:]],
    )
    assert list(reader(tmp_path).list_conversations()) == []


def test_a_session_becomes_prompts_answers_and_results(tmp_path: Path) -> None:
    branch = load(tmp_path).tree.branch()
    assert [(message.role.value, message.text) for message in branch] == [
        ("user", "Rename x"),
        ("assistant", "I rename it."),
        ("tool", ""),
        ("user", "And w"),
        ("assistant", "Yes."),
    ]
    assert [type(block) for block in branch[0].blocks] == [Text, Image]
    assert [type(block) for block in branch[1].blocks] == [Thinking, Text, ToolUse, ToolUse]
    assert branch[1].blocks[0] == Thinking(text="**Looking** I look.", provider="gemini")
    assert branch[1].model == "gemini-3-pro"
    assert branch[1].usage == Usage(
        input_tokens=100, output_tokens=25, cache_read_tokens=60, reasoning_tokens=5, total_tokens=125
    )
    assert branch[2].blocks == (
        ToolResult(tool_use_id="c1", content=(Text(text="Done."),)),
        ToolResult(tool_use_id="c2", outcome=Outcome.CANCELLED),
    )
    assert branch[4].blocks == (Thinking(text="Hm", provider="gemini"), Text(text="Yes."))


def test_calls_have_our_names_and_arguments(tmp_path: Path) -> None:
    edit, command = load(tmp_path).tree.branch()[1].tool_uses
    assert edit.name == "edit_file"
    assert edit.input == {"path": "/app/a.py", "old_text": "x", "new_text": "y", "instruction": "Rename"}
    assert (command.name, command.input) == ("run_command", {"command": "ls"})


def test_what_was_gone_back_from_is_a_branch(tmp_path: Path) -> None:
    parents = {node.message.text: node.parent for node in load(tmp_path).tree.messages if node.message.text}
    assert parents["And z"] == parents["And w"] == "m2-results"
    assert parents["No."] == "m4"


def with_subagents(home: Path) -> Path:
    """A session whose first call is the work of a subagent, which called another one; return their folder."""
    entries = gemini_session()
    entries[4]["toolCalls"][0]["agentId"] = "a-1"
    write_gemini(home, entries)
    folder = home / ".gemini/tmp/app/chats/0a1b2c3d-e"
    head = {"sessionId": "a-1", "kind": "subagent"}
    call = {"id": "s-c1", "name": "helper", "args": {}, "status": "success", "agentId": "a-2"}
    asked = gemini_message("s2", "gemini", "I ask.", toolCalls=[call])
    write_lines(folder / "a-1.jsonl", [head, gemini_message("s1", "user", "Find x"), asked])
    # As it was written before the lines.
    write_json(folder / "a-2.json", {**head, "messages": [gemini_message("t1", "user", "Count x")]})
    return folder


def test_the_work_of_subagents_is_a_branch_beside_the_result_of_the_call(tmp_path: Path) -> None:
    with_subagents(tmp_path)
    (found,) = reader(tmp_path).list_conversations()
    loaded = reader(tmp_path).load(found.id)
    nodes = {node.message.id: node for node in loaded.tree.messages}
    assert {id_: nodes[id_].parent for id_ in ("m2-results", "s1", "s2", "t1")} == {
        "m2-results": "m2",
        "s1": "m2",
        "s2": "s1",
        "t1": "s2",
    }
    assert [nodes[id_].message.injected_by for id_ in ("m1", "s1", "t1")] == [None, "subagent", "subagent"]
    assert [message.text for message in loaded.tree.branch()][-1] == "Yes."


def test_no_link_and_no_name_leads_a_subagent_out_of_its_folder(tmp_path: Path) -> None:
    folder = with_subagents(tmp_path)
    (folder / "a-1.jsonl").rename(tmp_path / "secret.jsonl")
    (folder / "a-1.jsonl").symlink_to(tmp_path / "secret.jsonl")
    assert len(reader(tmp_path).load(GEMINI_SESSION).tree.messages) == len(load(tmp_path / "b").tree.messages)
    entries = gemini_session()
    entries[4]["toolCalls"][0]["agentId"] = "../../../../../secret"
    assert len(load(tmp_path, entries).tree.messages) == len(load(tmp_path / "b").tree.messages)
    (folder / "a-1.jsonl").unlink()
    with_subagents(tmp_path)
    folder.rename(tmp_path / "away")
    folder.symlink_to(tmp_path / "away")
    assert len(reader(tmp_path).load(GEMINI_SESSION).tree.messages) == len(load(tmp_path / "b").tree.messages)


def test_subagents_that_name_one_another_come_to_an_end(tmp_path: Path) -> None:
    folder = with_subagents(tmp_path)
    call = {"id": "t-c1", "name": "helper", "args": {}, "status": "success", "agentId": "a-1"}
    messages = [gemini_message("t1", "gemini", "Again.", toolCalls=[call])]
    write_json(folder / "a-2.json", {"sessionId": "a-2", "messages": messages})
    loaded = reader(tmp_path).load(GEMINI_SESSION)
    assert loaded.report.count(Omission.REPEATED) == 2


def test_a_new_list_keeps_what_was_there_and_leaves_out_its_summary(tmp_path: Path) -> None:
    entries = gemini_session()
    summary = gemini_message("m8", "user", "<state_snapshot>…</state_snapshot>")
    shortened = {**entries[9], "content": "masked"}
    new = {"$set": {"messages": [summary, shortened, entries[10], gemini_message("m9", "user", "Go on")]}}
    loaded = load(tmp_path, [*entries, new])
    assert [message.text for message in loaded.tree.branch()][-3:] == ["And w", "Yes.", "Go on"]
    assert loaded.report.count(Omission.SUMMARY) == 1


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    more = [gemini_message("m8", "hologram", ""), {"odd": 1}]
    assert load(tmp_path, [*gemini_session(), *more]).report.omissions == {
        (Omission.HIDDEN, "context"): 1,
        (Omission.HIDDEN, "info"): 1,
        (Omission.UNKNOWN, "odd"): 1,
        (Omission.UNKNOWN, "hologram"): 1,
    }


def test_a_file_of_the_older_kind_is_read_unless_a_newer_one_took_its_place(tmp_path: Path) -> None:
    path = tmp_path / ".gemini/tmp/app/chats/session-1.json"
    write_json(path, {**gemini_session()[0], "messages": gemini_session()[1:6]})
    path.write_text(path.read_text().replace("{", "{\n", 1))
    (found,) = reader(tmp_path).list_conversations()
    assert (found.title, found.model) == ("Rename x", "gemini-3-pro")
    assert len(reader(tmp_path).load(found.id).tree.branch()) == 3
    write_lines(path.with_suffix(".jsonl"), gemini_session())
    assert [found.title for found in reader(tmp_path).list_conversations()] == ["Renaming x"]
    assert len(reader(tmp_path).load(found.id).tree.branch()) == 5


def test_a_session_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HistoryUnreadable, match="Gemini CLI"):
        reader(tmp_path).load("app/chats/session-none")
