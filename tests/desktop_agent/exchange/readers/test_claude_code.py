"""Sessions of Claude Code become conversations with their branches, calls and subagents."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from desktop_agent.exchange.import_report import Omission
from desktop_agent.exchange.readers.claude_code import ClaudeCodeReader
from desktop_agent.exchange.readers.reader import HistoryUnreadable, LoadedConversation, Machine
from desktop_agent.types.blocks import Image, Outcome, Text, Thinking, ToolResult, ToolUse
from desktop_agent.types.messages import Message, MessageState, Role
from desktop_agent.types.provider_events import StopReason, Usage
from tests.desktop_agent.exchange.readers.foreign_homes import (
    CLAUDE_SESSION,
    call,
    claude_entry,
    claude_session,
    result,
    write_claude_code,
    write_json,
    write_lines,
)


def reader(home: Path, **environment: str) -> ClaudeCodeReader:
    return ClaudeCodeReader(Machine(home, environment, "linux"))


def load(home: Path, entries: list[object] | None = None) -> LoadedConversation:
    write_claude_code(home, entries)
    return reader(home).load(CLAUDE_SESSION)


def shown(messages: tuple[Message, ...]) -> list[tuple[str, str]]:
    return [(message.role.value, message.text) for message in messages]


def test_the_places_follow_the_environment(tmp_path: Path) -> None:
    usual = reader(tmp_path).locations()
    assert usual == (tmp_path / ".claude" / "projects", tmp_path / ".config" / "claude" / "projects")
    moved = str(tmp_path / "elsewhere")
    assert reader(tmp_path, CLAUDE_CONFIG_DIR=moved).locations() == (tmp_path / "elsewhere" / "projects",)
    assert not reader(tmp_path).is_present()
    write_claude_code(tmp_path)
    assert reader(tmp_path).is_present()


def test_a_listed_session_has_its_title_times_folder_and_model(tmp_path: Path) -> None:
    write_claude_code(tmp_path)
    (found,) = reader(tmp_path).list_conversations()
    assert (found.id, found.title) == (CLAUDE_SESSION, "What a.py does")
    assert found.created_at == datetime(2026, 5, 19, 10, tzinfo=UTC)
    assert found.updated_at == datetime(2026, 5, 19, 10, 1, 0, 500_000, UTC)
    assert (found.workspace, found.model) == ("/home/ann/app", "claude-opus-4-7")


def test_a_title_that_a_person_gave_wins_and_stays(tmp_path: Path) -> None:
    own = {"type": "custom-title", "customTitle": "Mine"}
    write_claude_code(tmp_path, [*claude_session(), {**own, "customTitle": "Old"}, own, claude_session()[-1]])
    assert [found.title for found in reader(tmp_path).list_conversations()] == ["Mine"]
    tree = reader(tmp_path).load(CLAUDE_SESSION).tree
    assert (tree.title, tree.title_is_automatic) == ("Mine", False)


def test_a_session_without_a_title_is_called_after_its_prompt(tmp_path: Path) -> None:
    write_claude_code(tmp_path, claude_session()[:-1])
    assert [found.title for found in reader(tmp_path).list_conversations()] == ["What does a.py do?"]


def test_sessions_without_a_message_and_subagents_are_not_listed(tmp_path: Path) -> None:
    write_claude_code(tmp_path, [{"type": "summary", "summary": "Of another session", "leafUuid": "z"}])
    write_lines(tmp_path / ".claude/projects/-home-ann-app/agent-a1.jsonl", claude_session())
    assert list(reader(tmp_path).list_conversations()) == []


def test_the_branch_in_view_is_the_last_one(tmp_path: Path) -> None:
    tree = load(tmp_path).tree
    assert shown(tree.branch()) == [
        ("user", "What does a.py do?"),
        ("assistant", "I look."),
        ("tool", ""),
        ("assistant", "It sets x."),
        ("user", "/review a.py"),
        ("assistant", "Fine."),
    ]
    assert (tree.workspace, tree.model, tree.title) == ("/home/ann/app", "claude-opus-4-7", "What a.py does")
    assert tree.origin is not None
    assert (tree.origin.program, tree.origin.id) == ("claude-code", CLAUDE_SESSION)


def test_a_prompt_that_was_written_anew_keeps_its_first_version(tmp_path: Path) -> None:
    tree = load(tmp_path).tree
    versions = [node.message.text for node in tree.messages if node.parent == "a5"]
    assert versions == ["Make it y.", "/review a.py"]


def test_one_answer_in_four_entries_is_one_message(tmp_path: Path) -> None:
    answer = load(tmp_path).tree.branch()[1]
    assert [type(block) for block in answer.blocks] == [Thinking, Text, ToolUse, ToolUse]
    assert answer.stop_reason is StopReason.TOOL_USE
    assert answer.usage == Usage(input_tokens=1000, output_tokens=40, cache_read_tokens=900, cache_write_tokens=90)
    assert answer.created_at == datetime(2026, 5, 19, 10, 0, 5, tzinfo=UTC)


def test_results_of_calls_at_once_are_one_message_and_no_branches(tmp_path: Path) -> None:
    tree = load(tmp_path).tree
    results = tree.branch()[2]
    assert results.blocks == (
        ToolResult(tool_use_id="toolu_1", content=(Text(text="     1→x = 1"),)),
        ToolResult(tool_use_id="toolu_2", content=(Text(text="a.py"),)),
    )
    assert [node.message.id for node in tree.messages if node.parent == "a1"] == [results.id]


def test_calls_have_our_names_and_arguments(tmp_path: Path) -> None:
    tree = load(tmp_path).tree
    calls = {block.id: block for node in tree.messages for block in node.message.tool_uses}
    assert (calls["toolu_1"].name, calls["toolu_1"].input) == (
        "read_file",
        {"path": "/home/ann/app/a.py", "max_lines": 20},
    )
    assert (calls["toolu_2"].name, calls["toolu_2"].input) == ("run_command", {"command": "ls", "description": "List"})
    assert (calls["toolu_3"].name, calls["toolu_3"].input) == (
        "edit_file",
        {"path": "/home/ann/app/a.py", "old_text": "x", "new_text": "y", "replace_all": False},
    )


def test_reasoning_goes_back_to_nobody(tmp_path: Path) -> None:
    thinking = load(tmp_path).tree.branch()[1].blocks[0]
    assert thinking == Thinking(text="I read it.", provider="anthropic")
    assert load(tmp_path).tree.branch()[1].origin is None


def test_what_the_person_refused_is_denied_and_what_failed_failed(tmp_path: Path) -> None:
    failed = [
        claude_entry("assistant", "a8", "a7", [call("toolu_8", "Bash", command="false")]),
        claude_entry("user", "r8", "a8", [result("toolu_8", "Exit code 1", is_error=True)]),
    ]
    tree = load(tmp_path, [*claude_session(), *failed]).tree
    outcomes = [
        block.outcome for node in tree.messages for block in node.message.blocks if isinstance(block, ToolResult)
    ]
    assert outcomes == [Outcome.SUCCEEDED, Outcome.SUCCEEDED, Outcome.DENIED, Outcome.FAILED]


def test_pictures_are_kept_and_damaged_ones_counted(tmp_path: Path) -> None:
    loaded = load(tmp_path)
    assert isinstance(loaded.tree.branch()[0].blocks[1], Image)
    bad = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "bm8gcGljdHVyZQ=="}}
    loaded = load(tmp_path, [claude_entry("user", "u1", None, ["Look", bad])])
    assert list(loaded.tree.messages[0].message.blocks) == [Text(text="Look")]
    assert loaded.report.omissions == {(Omission.PICTURE, ""): 1}


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    counts = load(tmp_path, [*claude_session(), {"type": "hologram", "uuid": "h"}]).report.omissions
    assert counts == {
        (Omission.HIDDEN, "file-history-snapshot"): 1,
        (Omission.HIDDEN, "meta"): 1,
        (Omission.HIDDEN, "turn_duration"): 1,
        (Omission.UNKNOWN, "hologram"): 1,
    }


def compacted(boundary_parent: str | None) -> list[object]:
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": None}
    return [
        {**boundary, "logicalParentUuid": boundary_parent, "timestamp": "2026-05-19T11:00:00Z"},
        claude_entry("user", "c1", "b", "This session is being continued…", isCompactSummary=True),
        claude_entry("user", "c2", "c1", "Go on."),
    ]


def test_a_compaction_keeps_the_messages_and_leaves_out_their_summary(tmp_path: Path) -> None:
    loaded = load(tmp_path, [*claude_session(), *compacted("a7")])
    assert [message.text for message in loaded.tree.branch()][-2:] == ["Fine.", "Go on."]
    assert loaded.report.count(Omission.SUMMARY) == 1


def test_a_summary_of_messages_that_are_not_there_is_kept(tmp_path: Path) -> None:
    branch = load(tmp_path, compacted("elsewhere")).tree.branch()
    assert [message.text for message in branch] == ["This session is being continued…", "Go on."]


def test_entries_that_a_compaction_repeats_are_taken_once(tmp_path: Path) -> None:
    once = load(tmp_path).tree
    twice = load(tmp_path, [*claude_session()[:-1], *claude_session()])
    assert [node.message.id for node in twice.tree.messages] == [node.message.id for node in once.messages]
    assert twice.report.count(Omission.REPEATED) > 5


def test_a_stopped_answer_is_marked(tmp_path: Path) -> None:
    stop = [{"type": "text", "text": "[Request interrupted by user]"}]
    tree = load(tmp_path, [*claude_session(), claude_entry("user", "u9", "a7", stop)]).tree
    assert tree.branch()[-1].state is MessageState.INTERRUPTED
    assert tree.branch()[-1].text == "Fine."


def test_a_prompt_that_was_written_meanwhile_is_a_prompt(tmp_path: Path) -> None:
    queued = {"type": "attachment", "uuid": "q", "parentUuid": "a7", "timestamp": "2026-05-19T11:00:00Z"}
    queued |= {"attachment": {"type": "queued_command", "prompt": "And b.py?", "commandMode": "prompt"}}
    assert shown(load(tmp_path, [*claude_session(), queued]).tree.branch())[-1] == ("user", "And b.py?")


def subagent() -> list[object]:
    side = {"isSidechain": True, "agentId": "ab12"}
    return [
        claude_entry("user", "k1", None, "Find it.", **side),
        claude_entry("assistant", "k2", "k1", [{"type": "text", "text": "Found."}], **side),
    ]


def task() -> list[object]:
    return [
        claude_entry("user", "u1", None, "Search."),
        claude_entry("assistant", "a1", "u1", [call("toolu_t", "Task", prompt="Find it.", subagent_type="Explore")]),
    ]


def task_end() -> list[object]:
    done = result("toolu_t", [{"type": "text", "text": "Found."}])
    return [
        claude_entry("user", "r1", "a1", [done], toolUseResult={"agentId": "ab12", "status": "completed"}),
        claude_entry("assistant", "a2", "r1", [{"type": "text", "text": "There."}]),
    ]


@pytest.mark.parametrize("layout", ["inside", "beside", "folder"])
def test_a_subagent_is_a_branch_of_its_call(tmp_path: Path, layout: str) -> None:
    folder = tmp_path / ".claude/projects/-home-ann-app"
    if layout == "inside":
        write_claude_code(tmp_path, [*task(), *subagent(), *task_end()])
    else:
        write_claude_code(tmp_path, [*task(), *task_end()])
        place = folder if layout == "beside" else folder / CLAUDE_SESSION.split("/")[1] / "subagents"
        write_lines(place / "agent-ab12.jsonl", subagent())
        write_json(place / "agent-ab12.meta.json", {"agentType": "Explore", "toolUseId": "toolu_t"})
    tree = reader(tmp_path).load(CLAUDE_SESSION).tree
    assert [text for _, text in shown(tree.branch())] == ["Search.", "", "", "There."]
    parents = {node.message.id: node.parent for node in tree.messages}
    assert (parents["k1"], parents["k2"]) == ("a1", "k1")
    assert [node.message.injected_by for node in tree.messages if node.message.id == "k1"] == ["subagent"]


def test_a_skipped_entry_does_not_cut_the_conversation_in_two(tmp_path: Path) -> None:
    lines = [json.dumps(entry) for entry in claude_session()]
    lines[10] = lines[10][:60]  # a5, whose uuid is not known then
    path = write_claude_code(tmp_path)
    path.write_text("\n".join(lines) + "\n")
    loaded = reader(tmp_path).load(CLAUDE_SESSION)
    assert [message.role for message in loaded.tree.branch()][:3] == [Role.USER, Role.ASSISTANT, Role.TOOL]
    assert loaded.tree.branch()[-1].text == "Fine."
    assert loaded.report.count(Omission.BAD_LINE) == 1
    assert loaded.report.count(Omission.MISSING_PARENT) == 2


@pytest.mark.parametrize("session_id", ["-home-ann-app/none", "../../secret", "/etc/passwd", "", "a/../b", "x/\0"])
def test_an_id_that_is_not_there_is_refused_with_a_sentence(tmp_path: Path, session_id: str) -> None:
    write_claude_code(tmp_path)
    with pytest.raises(HistoryUnreadable) as caught:
        reader(tmp_path).load(session_id)
    assert str(caught.value).startswith("This conversation of Claude Code cannot be read: ")
