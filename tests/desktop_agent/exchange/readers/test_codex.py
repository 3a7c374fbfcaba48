"""Rollouts of Codex CLI become conversations with calls, edits and turns that were rolled back."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from desktop_agent.exchange.import_report import Omission
from desktop_agent.exchange.readers.codex import CodexReader
from desktop_agent.exchange.readers.reader import HistoryUnreadable, LoadedConversation, Machine
from desktop_agent.types.blocks import Image, Outcome, ServerStep, Text, Thinking, ToolResult, ToolUse
from desktop_agent.types.messages import MessageState
from desktop_agent.types.provider_events import Usage
from tests.desktop_agent.exchange.readers.foreign_homes import (
    CODEX_AGENT,
    CODEX_SESSION,
    CODEX_THREAD,
    codex_agent,
    codex_caller,
    codex_entry,
    codex_item,
    codex_message,
    codex_session,
    write_codex,
    write_codex_agent,
    write_lines,
)


def reader(home: Path, **environment: str) -> CodexReader:
    return CodexReader(Machine(home, environment, "linux"))


def load(home: Path, entries: list[object] | None = None) -> LoadedConversation:
    write_codex(home, entries)
    return reader(home).load(CODEX_SESSION)


def calls(loaded: LoadedConversation) -> dict[str, tuple[str, dict[str, object]]]:
    return {call.id: (call.name, call.input) for node in loaded.tree.messages for call in node.message.tool_uses}


def test_the_places_follow_the_environment(tmp_path: Path) -> None:
    assert reader(tmp_path).locations()[0] == tmp_path / ".codex" / "sessions"
    moved = tmp_path / "moved"
    assert reader(tmp_path, CODEX_HOME=str(moved)).locations() == (moved / "sessions", moved / "archived_sessions")
    assert not reader(tmp_path).is_present()
    write_codex(tmp_path)
    assert reader(tmp_path).is_present()


def test_a_listed_session_has_its_prompt_times_folder_and_model(tmp_path: Path) -> None:
    write_codex(tmp_path)
    (found,) = reader(tmp_path).list_conversations()
    assert (found.id, found.title) == (CODEX_SESSION, "Fix main.rs")
    assert found.created_at == datetime(2026, 4, 1, tzinfo=UTC)
    assert found.updated_at == datetime(2026, 4, 1, 0, 0, 12, tzinfo=UTC)
    assert (found.workspace, found.model) == ("/repo", "gpt-5.2-codex")


def test_a_name_that_was_given_is_the_title(tmp_path: Path) -> None:
    write_codex(tmp_path)
    names = [{"id": "thread-1", "thread_name": name} for name in ("Old", "Main in C")]
    write_lines(tmp_path / ".codex/session_index.jsonl", names)
    assert [found.title for found in reader(tmp_path).list_conversations()] == ["Main in C"]
    tree = reader(tmp_path).load(CODEX_SESSION).tree
    assert (tree.title, tree.title_is_automatic) == ("Main in C", False)


def test_what_an_editor_adds_is_not_the_title(tmp_path: Path) -> None:
    write_codex(tmp_path, [codex_message("user", "# Context\nfiles\n## My request for Codex:\nFix it")])
    assert [found.title for found in reader(tmp_path).list_conversations()] == ["Fix it"]


def test_compressed_sessions_and_subagents_are_counted(tmp_path: Path) -> None:
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "thread-1"}}}
    path = write_codex(tmp_path, [codex_entry("session_meta", 0, id="2", source=source), *codex_session()[1:]])
    path.with_name("rollout-old.jsonl.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    path.with_name(f"{path.name}.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    codex = reader(tmp_path)
    assert list(codex.list_conversations()) == []
    assert codex.report.omissions == {(Omission.HIDDEN, "subagent"): 1, (Omission.COMPRESSED, ""): 1}


STARTED = codex_entry(
    "event_msg", 2, type="sub_agent_activity", kind="started", event_id="call_s", agent_thread_id=CODEX_AGENT
)
CALLERS = {
    "by thread": codex_caller({"agent_id": CODEX_AGENT, "nickname": "Curie"}),
    "by path": codex_caller({"task_name": "/root/look"}),
    "by event": codex_caller({}, STARTED),
}


@pytest.mark.parametrize("shape", CALLERS)
def test_a_subagent_is_a_branch_of_its_call(tmp_path: Path, shape: str) -> None:
    write_codex_agent(tmp_path, codex_agent())
    write_codex_agent(tmp_path, codex_session(), "0195f0c0-0000-7000-8000-00000000000b")
    loaded = load(tmp_path, CALLERS[shape])
    assert [message.text for message in loaded.tree.branch()] == ["Find it", "", "", "Found."]
    prompt = next(node for node in loaded.tree.messages if node.message.text == "Look around")
    assert (prompt.parent, prompt.message.injected_by) == ("item-3", "subagent")
    assert [node.message.text for node in loaded.tree.messages][4:] == ["Look around", "", "", "It is here."]
    assert calls(loaded)["call_a"] == ("run_command", {"command": "ls"})
    assert (loaded.tree.title, loaded.report.omissions) == ("Find it", {})


def test_a_subagent_of_a_subagent_is_a_branch_of_its_call(tmp_path: Path) -> None:
    deep = "0195f0c0-0000-7000-8000-00000000000c"
    output = json.dumps({"agent_id": deep})
    call = codex_item("function_call", 7, name="spawn_agent", arguments="{}", call_id="call_d")
    result = codex_item("function_call_output", 7, call_id="call_d", output=output)
    write_codex_agent(tmp_path, [*codex_agent(), call, result])
    source = {"subagent": {"thread_spawn": {"parent_thread_id": CODEX_AGENT, "depth": 2}}}
    write_codex_agent(
        tmp_path, [codex_entry("session_meta", 8, id=deep, source=source), codex_message("user", "Deeper")], deep
    )
    tree = load(tmp_path, CALLERS["by thread"]).tree
    parents = {node.message.text: node.parent for node in tree.messages}
    assert "call_d" in [
        call.id for node in tree.messages if node.message.id == parents["Deeper"] for call in node.message.tool_uses
    ]


def test_what_a_subagent_repeats_of_its_session_is_there_once(tmp_path: Path) -> None:
    known = CALLERS["by thread"][:2]
    write_codex_agent(tmp_path, codex_agent(*known, forked_from_id=CODEX_THREAD))
    tree = load(tmp_path, CALLERS["by thread"]).tree
    assert [node.message.text for node in tree.messages].count("Find it") == 1
    copy = [*codex_agent()[:1], *CALLERS["by thread"][:3], *codex_agent()[1:]]
    copy[0]["payload"] |= {"parent_thread_id": CODEX_THREAD, "source": {"subagent": {"thread_spawn": {}}}}
    write_codex_agent(tmp_path, copy)
    texts = [node.message.text for node in reader(tmp_path).load(CODEX_SESSION).tree.messages]
    assert (texts.count("Find it"), "Look around" in texts) == (1, True)
    own = [{**entry, "ordinal": number} for number, entry in enumerate(codex_agent(codex_message("user", "Other")))]
    own[0]["payload"] |= {"forked_from_id": CODEX_THREAD, "subagent_history_start_ordinal": 2}
    write_codex_agent(tmp_path, own)
    tree = reader(tmp_path).load(CODEX_SESSION).tree
    texts = [node.message.text for node in tree.messages]
    assert ("Other" in texts, "Look around" in texts) == (False, True)


def test_a_subagent_is_in_no_list_and_is_counted_where_its_session_is_gone(tmp_path: Path) -> None:
    session = write_codex(tmp_path, CALLERS["by thread"])
    write_codex_agent(tmp_path, codex_agent())
    codex = reader(tmp_path)
    assert [found.title for found in codex.list_conversations()] == ["Find it"]
    assert codex.report.omissions == {}
    session.unlink()
    assert list(codex.list_conversations()) == []
    assert codex.report.omissions == {(Omission.HIDDEN, "subagent"): 1}


def test_a_subagent_whose_call_is_not_known_comes_last(tmp_path: Path) -> None:
    write_codex_agent(tmp_path, codex_agent())
    tree = load(
        tmp_path, [entry for entry in CALLERS["by path"] if entry["payload"].get("type") != "function_call_output"]
    ).tree
    parents = {node.message.text: node.parent for node in tree.messages}
    assert parents["Look around"] == tree.head


def test_archived_sessions_are_there_too(tmp_path: Path) -> None:
    path = tmp_path / ".codex/archived_sessions/rollout-1.jsonl"
    write_lines(path, codex_session())
    (found,) = reader(tmp_path).list_conversations()
    assert reader(tmp_path).load(found.id).tree.title == "Fix main.rs"


def test_a_session_becomes_prompts_answers_and_results(tmp_path: Path) -> None:
    branch = load(tmp_path).tree.branch()
    assert [(message.role.value, message.text) for message in branch] == [
        ("user", "Fix main.rs"),
        ("assistant", ""),
        ("tool", ""),
        ("assistant", ""),
        ("tool", ""),
        ("assistant", "Done."),
        ("user", "Now in C"),
        ("assistant", "int main"),
    ]
    assert [type(block) for block in branch[0].blocks] == [Text, Image]
    assert [type(block) for block in branch[1].blocks] == [Thinking, ToolUse, ToolUse]
    assert branch[5].usage == Usage(input_tokens=100, output_tokens=40, cache_read_tokens=25, reasoning_tokens=5)
    assert branch[5].model == "gpt-5.2-codex"
    assert branch[7].state is MessageState.INTERRUPTED


def test_a_turn_that_was_rolled_back_is_a_branch(tmp_path: Path) -> None:
    tree = load(tmp_path).tree
    texts = {node.message.text: node for node in tree.messages if node.message.text}
    assert texts["Now in Go"].parent == texts["Now in C"].parent == texts["Done."].message.id
    assert texts["func main() {}"].parent == texts["Now in Go"].message.id


def test_calls_have_our_names_and_a_small_patch_is_an_edit(tmp_path: Path) -> None:
    assert calls(load(tmp_path)) == {
        "call_1": ("run_command", {"command": "ls", "folder": "/repo"}),
        "call_2": ("run_command", {"command": "cat x"}),
        "call_3": (
            "edit_file",
            {"path": "src/main.rs", "old_text": "fn main() {\nold", "new_text": "fn main() {\nnew"},
        ),
    }


PATCHES = {
    "*** Add File: a\n+x\n+y": ("write_file", {"path": "a", "content": "x\ny\n"}),
    "*** Delete File: a": ("delete_file", {"path": "a"}),
    "*** Update File: a\n-x": ("edit_file", {"path": "a", "old_text": "x", "new_text": ""}),
    "*** Update File: a\n@@\n-x\n+y\n@@\n-z\n+w": None,
    "*** Update File: a\n*** Move to: b\n-x\n+y": None,
    "*** Update File: a\n+y": None,
    "*** Add File: a\n+x\n*** Delete File: b": None,
    "": None,
}


@pytest.mark.parametrize("body", PATCHES)
def test_only_a_patch_of_one_place_is_an_edit(tmp_path: Path, body: str) -> None:
    patch = f"*** Begin Patch\n{body}\n*** End Patch"
    call = codex_item("custom_tool_call", call_id="c", name="apply_patch", input=patch)
    by_shell = json.dumps({"command": ["apply_patch", patch]})
    entries = [
        codex_message("user", "x"),
        call,
        codex_item("function_call", call_id="d", name="shell", arguments=by_shell),
    ]
    expected = PATCHES[body] or ("apply_patch", {"input": patch})
    assert calls(load(tmp_path, entries)) == {"c": expected, "d": expected}


def test_results_say_whether_the_call_failed(tmp_path: Path) -> None:
    results = [
        block for node in load(tmp_path).tree.messages for block in node.message.blocks if isinstance(block, ToolResult)
    ]
    assert [result.outcome for result in results] == [Outcome.SUCCEEDED, Outcome.FAILED, Outcome.SUCCEEDED]
    assert results[1].content == (Text(text="no such file"),)


def test_reasoning_goes_back_to_nobody_and_a_search_to_no_server(tmp_path: Path) -> None:
    search = codex_item("web_search_call", status="completed", action={"type": "search", "query": "rust"})
    branch = load(tmp_path, [*codex_session(), search]).tree.branch()
    assert branch[1].blocks[0] == Thinking(text="I look.", provider="openai-responses")
    step = branch[-1].blocks[-1]
    assert isinstance(step, ServerStep)
    assert (step.provider, step.text) == ("codex", "rust")


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    more = [codex_entry("compacted", message="…"), codex_item("hologram"), codex_entry("world_state")]
    assert load(tmp_path, [*codex_session(), *more]).report.omissions == {
        (Omission.HIDDEN, "developer"): 1,
        (Omission.HIDDEN, "context"): 1,
        (Omission.HIDDEN, "event_msg"): 1,
        (Omission.SUMMARY, ""): 1,
        (Omission.UNKNOWN, "hologram"): 1,
        (Omission.HIDDEN, "world_state"): 1,
    }


def test_a_rollout_of_early_2025_has_bare_items(tmp_path: Path) -> None:
    old = [
        {"id": "thread-1", "timestamp": "2025-05-07T17:24:21.597Z", "instructions": None},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
        {"record_type": "state"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]},
    ]
    assert [message.text for message in load(tmp_path, old).tree.branch()] == ["Hello", "Hi"]
    assert [found.title for found in reader(tmp_path).list_conversations()] == ["Hello"]


def test_a_session_that_is_not_there_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(HistoryUnreadable, match="This conversation of Codex cannot be read: it is not there"):
        reader(tmp_path).load("2026/04/01/rollout-x")
