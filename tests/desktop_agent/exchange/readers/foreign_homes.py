"""Home folders as other programs leave them, written by hand after the shapes that each reader names."""

import json
import sqlite3
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
"""A PNG picture of one pixel."""


def write_lines(path: Path, entries: Iterable[object]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return path


def write_json(path: Path, value: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


def claude_entry(kind: str, uuid: str, parent: str | None, content: Any, **more: Any) -> dict[str, Any]:
    """An entry of Claude Code. For an answer `message` is its id at the API, and `content` a list of blocks."""
    message: dict[str, Any] = {"role": kind, "content": content}
    if kind == "assistant":
        message |= {"id": more.pop("message", f"msg_{uuid}"), "type": "message", "model": "claude-opus-4-7"}
        message |= {"stop_reason": more.pop("stop_reason", None), "usage": more.pop("usage", {})}
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/home/ann/app",
        "sessionId": "5e551011-0000-4000-8000-000000000001",
        "version": "2.1.144",
        "gitBranch": "main",
        "type": kind,
        "message": message,
        "uuid": uuid,
        "timestamp": more.pop("timestamp", "2026-05-19T10:00:00.000Z"),
        **more,
    }


def call(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def result(call_id: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


CLAUDE_SESSION = "-home-ann-app/5e551011-0000-4000-8000-000000000001"


def claude_session() -> list[dict[str, Any]]:
    """A prompt with a picture, two calls at once, a denied edit, and the second prompt written anew."""
    usage = {"input_tokens": 10, "output_tokens": 40, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 90}
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
    answer = {"message": "msg_a", "stop_reason": "tool_use", "usage": usage, "timestamp": "2026-05-19T10:00:05.000Z"}
    edit = call("toolu_3", "Edit", file_path="/home/ann/app/a.py", old_string="x", new_string="y", replace_all=False)
    denied = "The user doesn't want to proceed with this tool use. The tool use was rejected."
    return [
        {"type": "file-history-snapshot", "messageId": "u1", "snapshot": {}, "isSnapshotUpdate": False},
        claude_entry("user", "u0", None, "<local-command-caveat>…</local-command-caveat>", isMeta=True),
        claude_entry("user", "u1", "u0", [{"type": "text", "text": "What does a.py do?"}, picture]),
        claude_entry(
            "assistant", "a1", "u1", [{"type": "thinking", "thinking": "I read it.", "signature": "c2ln"}], **answer
        ),
        claude_entry("assistant", "a2", "a1", [{"type": "text", "text": "I look."}], **answer),
        claude_entry(
            "assistant", "a3", "a2", [call("toolu_1", "Read", file_path="/home/ann/app/a.py", limit=20)], **answer
        ),
        claude_entry("assistant", "a4", "a3", [call("toolu_2", "Bash", command="ls", description="List")], **answer),
        claude_entry("user", "r1", "a3", [result("toolu_1", "     1→x = 1")], toolUseResult={"type": "text"}),
        claude_entry("user", "r2", "a4", [result("toolu_2", [{"type": "text", "text": "a.py"}])], toolUseResult={}),
        {
            "type": "system",
            "subtype": "turn_duration",
            "uuid": "s1",
            "parentUuid": "r2",
            "timestamp": "2026-05-19T10:00:09Z",
        },
        claude_entry(
            "assistant", "a5", "s1", [{"type": "text", "text": "It sets x."}], timestamp="2026-05-19T10:00:10Z"
        ),
        claude_entry("user", "u2", "a5", "Make it y."),
        claude_entry("assistant", "a6", "u2", [edit]),
        claude_entry(
            "user", "r3", "a6", [result("toolu_3", denied, is_error=True)], toolUseResult="User rejected tool use"
        ),
        claude_entry("user", "u3", "a5", "<command-name>/review</command-name>\n<command-args>a.py</command-args>"),
        claude_entry(
            "assistant", "a7", "u3", [{"type": "text", "text": "Fine."}], timestamp="2026-05-19T10:01:00.500Z"
        ),
        {"type": "ai-title", "aiTitle": "What a.py does", "sessionId": "5e551011-0000-4000-8000-000000000001"},
    ]


def write_claude_code(home: Path, entries: Iterable[object] | None = None) -> Path:
    path = home / ".claude" / "projects" / f"{CLAUDE_SESSION}.jsonl"
    return write_lines(path, claude_session() if entries is None else entries)


CODEX_SESSION = "2026/04/01/rollout-2026-04-01T00-00-00-0195f0c0-0000-7000-8000-000000000001"


def codex_entry(kind: str, second: int = 0, /, **payload: Any) -> dict[str, Any]:
    return {"timestamp": f"2026-04-01T00:00:{second:02}.000Z", "type": kind, "payload": payload}


def codex_item(kind: str, second: int = 0, /, **payload: Any) -> dict[str, Any]:
    return codex_entry("response_item", second, type=kind, **payload)


def codex_message(role: str, *texts: str, second: int = 0) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return codex_item("message", second, role=role, content=[{"type": kind, "text": text} for text in texts])


def codex_session() -> list[dict[str, Any]]:
    """A prompt with a picture, reasoning, a command and a patch, and a turn that was rolled back."""
    patch = "*** Begin Patch\n*** Update File: src/main.rs\n@@\n fn main() {\n-old\n+new\n*** End Patch"
    failed = '{"output":"no such file","metadata":{"exit_code":2,"duration_seconds":0.0}}'
    usage = {"input_tokens": 100, "cached_input_tokens": 25, "output_tokens": 40, "reasoning_output_tokens": 5}
    picture = {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"}
    ask = [{"type": "input_text", "text": "Fix main.rs"}, picture]
    return [
        codex_entry("session_meta", 0, id="thread-1", cwd="/repo", cli_version="0.104.0", source="cli"),
        codex_message("developer", "<permissions instructions>…"),
        codex_message("user", "<environment_context>\n  <cwd>/repo</cwd>\n</environment_context>"),
        codex_entry("turn_context", 0, turn_id="1", model="gpt-5.2-codex", cwd="/repo"),
        codex_item("message", 1, role="user", content=ask),
        codex_entry("event_msg", 1, type="user_message", message="Fix main.rs"),
        codex_item("reasoning", 2, summary=[{"type": "summary_text", "text": "I look."}], encrypted_content="c2VjcmV0"),
        codex_item(
            "function_call", 3, name="exec_command", arguments='{"cmd":"ls","workdir":"/repo"}', call_id="call_1"
        ),
        codex_item("function_call", 3, name="shell", arguments='{"command":["bash","-lc","cat x"]}', call_id="call_2"),
        codex_item(
            "function_call_output", 4, call_id="call_1", output="Chunk ID: 1\nProcess exited with code 0\nmain.rs"
        ),
        codex_item("function_call_output", 4, call_id="call_2", output=failed),
        codex_item("custom_tool_call", 5, status="completed", call_id="call_3", name="apply_patch", input=patch),
        codex_item("custom_tool_call_output", 6, call_id="call_3", output="Success."),
        codex_message("assistant", "Done.", second=7),
        codex_entry("event_msg", 7, type="token_count", info={"last_token_usage": usage}),
        codex_message("user", "Now in Go", second=8),
        codex_message("assistant", "func main() {}", second=9),
        codex_entry("event_msg", 9, type="thread_rolled_back", num_turns=1),
        codex_message("user", "Now in C", second=10),
        codex_message("assistant", "int main", second=11),
        codex_entry("event_msg", 12, type="turn_aborted", reason="interrupted"),
    ]


CODEX_THREAD = "0195f0c0-0000-7000-8000-000000000001"
CODEX_AGENT = "0195f0c0-0000-7000-8000-00000000000a"


def codex_caller(result: dict[str, Any], *events: dict[str, Any]) -> list[dict[str, Any]]:
    """A session that starts a subagent. The first version of these calls names its thread, the second one its path."""
    arguments = json.dumps({"message": "Look around", "task_name": "look"})
    return [
        codex_entry("session_meta", 0, id=CODEX_THREAD, cwd="/repo", source="cli"),
        codex_message("user", "Find it", second=1),
        codex_item("function_call", 2, name="spawn_agent", arguments=arguments, call_id="call_s"),
        *events,
        codex_item("function_call_output", 2, call_id="call_s", output=json.dumps(result)),
        codex_message("assistant", "Found.", second=9),
    ]


def codex_agent(*before: dict[str, Any], **meta: Any) -> list[dict[str, Any]]:
    """The rollout of the subagent, with what it repeats of its session `before` its own work."""
    spawn = {"parent_thread_id": CODEX_THREAD, "depth": 1, "agent_path": "/root/look", "agent_nickname": "Curie"}
    source = {"subagent": {"thread_spawn": spawn}}
    return [
        codex_entry("session_meta", 3, id=CODEX_AGENT, cwd="/repo", source=source, thread_source="subagent", **meta),
        *before,
        codex_message("user", "Look around", second=4),
        codex_item("function_call", 5, name="exec_command", arguments='{"cmd":"ls"}', call_id="call_a"),
        codex_item("function_call_output", 5, call_id="call_a", output="here.txt"),
        codex_message("assistant", "It is here.", second=6),
    ]


def write_codex_agent(home: Path, entries: list[dict[str, Any]], thread: str = CODEX_AGENT) -> Path:
    return write_lines(home / f".codex/sessions/2026/04/02/rollout-2026-04-02T00-00-03-{thread}.jsonl", entries)


def write_codex(home: Path, entries: Iterable[object] | None = None) -> Path:
    path = home / ".codex" / "sessions" / f"{CODEX_SESSION}.jsonl"
    return write_lines(path, codex_session() if entries is None else entries)


def write_database(
    path: Path, tables: dict[str, list[dict[str, Any]]], *, keep_log: bool = False
) -> sqlite3.Connection:
    """Make a database of these rows, whose columns are those of each table's first row; objects are stored as JSON.

    `keep_log`: in write-ahead mode, with the rows in the log; the connection must stay open for that.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    if keep_log:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
    for table, rows in tables.items():
        columns = ", ".join(f'"{name}"' for name in rows[0])
        connection.execute(f'CREATE TABLE "{table}" ({columns})')
        for row in rows:
            values = [json.dumps(value) if isinstance(value, dict | list) else value for value in row.values()]
            connection.execute(f'INSERT INTO "{table}" VALUES ({", ".join("?" * len(values))})', values)
    if not keep_log:
        connection.close()
    return connection


OPENCODE_SESSION = "ses_1"
OPENCODE_TIME = 1_778_834_704_000


def opencode_messages() -> list[tuple[str, dict[str, Any], list[dict[str, Any]]]]:
    """A prompt with a picture, an answer with an edit and a task for a subagent, and one that failed."""
    tokens = {"input": 6, "output": 80, "reasoning": 8, "cache": {"write": 20, "read": 10}}
    answer = {"role": "assistant", "modelID": "claude-opus-4-7", "providerID": "anthropic"}
    edit = {"filePath": "/repo/a.rs", "oldString": "old", "newString": "new"}
    time = {"start": 1, "end": 2}
    return [
        (
            "msg_1",
            {"role": "user", "time": {"created": OPENCODE_TIME}, "agent": "build"},
            [
                {"type": "text", "text": "Rename it"},
                {"type": "text", "text": "Called the Read tool", "synthetic": True},
                {"type": "file", "mime": "image/png", "filename": "a.png", "url": f"data:image/png;base64,{PIXEL}"},
            ],
        ),
        (
            "msg_2",
            {**answer, "finish": "stop", "tokens": tokens, "time": {"created": OPENCODE_TIME + 1000}},
            [
                {"type": "step-start", "snapshot": "abc"},
                {
                    "type": "reasoning",
                    "text": "Mechanical.",
                    "metadata": {"anthropic": {"signature": "x"}},
                    "time": time,
                },
                {
                    "type": "tool",
                    "tool": "edit",
                    "callID": "call_1",
                    "state": {"status": "completed", "input": edit, "output": "done", "title": "a.rs", "time": time},
                },
                {
                    "type": "tool",
                    "tool": "task",
                    "callID": "call_2",
                    "state": {
                        "status": "error",
                        "input": {"prompt": "Check"},
                        "error": "no",
                        "metadata": {"sessionId": "ses_2"},
                    },
                },
                {"type": "text", "text": "Renamed it."},
                {"type": "step-finish", "reason": "stop", "tokens": tokens, "cost": 0},
            ],
        ),
    ]


def opencode_rows() -> dict[str, list[dict[str, Any]]]:
    session = {"id": OPENCODE_SESSION, "parent_id": None, "directory": "/repo", "title": "Rename a thing"}
    session |= {"time_created": OPENCODE_TIME, "time_updated": OPENCODE_TIME + 9000, "model": None}
    child = {**session, "id": "ses_2", "parent_id": OPENCODE_SESSION, "title": "Child session - 1"}
    messages, parts = [], []
    told = ("msg_3", {"role": "user", "time": {"created": 1}}, [{"type": "text", "text": "Check"}])
    for session_id, (message_id, info, contents) in [
        *((OPENCODE_SESSION, message) for message in opencode_messages()),
        ("ses_2", told),
    ]:
        created = info["time"]["created"]
        messages.append({"id": message_id, "session_id": session_id, "time_created": created, "data": info})
        for number, part in enumerate(contents):
            part_id = f"prt_{message_id}_{number}"
            parts.append({"id": part_id, "message_id": message_id, "session_id": session_id, "data": part})
    return {"session": [session, child], "message": messages, "part": parts}


def write_opencode(home: Path, *, keep_log: bool = False) -> sqlite3.Connection:
    return write_database(home / ".local/share/opencode/opencode.db", opencode_rows(), keep_log=keep_log)


def write_older_opencode(home: Path) -> None:
    storage, rows = home / ".local/share/opencode/storage", opencode_rows()
    for row in rows["session"]:
        time = {"created": row["time_created"], "updated": row["time_updated"]}
        session = {"id": row["id"], "directory": row["directory"], "title": row["title"], "time": time}
        session |= {"parentID": row["parent_id"]} if row["parent_id"] else {}
        write_json(storage / "session" / "project" / f"{row['id']}.json", session)
    for row in rows["message"]:
        write_json(storage / "message" / row["session_id"] / f"{row['id']}.json", {"id": row["id"], **row["data"]})
    for row in rows["part"]:
        write_json(storage / "part" / row["message_id"] / f"{row['id']}.json", {"id": row["id"], **row["data"]})


GEMINI_SESSION = "app/chats/session-2026-08-21T10-00-0a1b2c3d"


def gemini_message(message_id: str, kind: str, content: Any, **more: Any) -> dict[str, Any]:
    return {
        "id": message_id,
        "timestamp": f"2026-08-21T10:00:0{message_id[-1]}.000Z",
        "type": kind,
        "content": content,
        **more,
    }


def gemini_session() -> list[dict[str, Any]]:
    """A prompt, an answer with two calls that is written twice, and a second prompt that was gone back from."""
    response = {"functionResponse": {"id": "c1", "name": "replace", "response": {"output": "Done."}}}
    edit = {"file_path": "/app/a.py", "old_string": "x", "new_string": "y", "instruction": "Rename"}
    calls = [
        {"id": "c1", "name": "replace", "args": edit, "status": "success", "result": [response]},
        {"id": "c2", "name": "run_shell_command", "args": {"command": "ls"}, "status": "cancelled", "result": None},
    ]
    thoughts = [{"subject": "Looking", "description": "I look.", "timestamp": "2026-08-21T10:00:01.000Z"}]
    tokens = {"input": 100, "output": 20, "cached": 60, "thoughts": 5, "tool": 0, "total": 125}
    answer = gemini_message("m2", "gemini", "I rename it.", thoughts=thoughts, tokens=None, model="gemini-3-pro")
    head = {"sessionId": "0a1b2c3d-e", "projectHash": "ab", "startTime": "2026-08-21T10:00:00.000Z", "kind": "main"}
    return [
        {**head, "lastUpdated": "2026-08-21T10:00:00.000Z"},
        gemini_message("m0", "user", [{"text": "<session_context>\nToday\n</session_context>"}]),
        gemini_message("m1", "user", [{"text": "Rename x"}, {"inlineData": {"mimeType": "image/png", "data": PIXEL}}]),
        answer,
        {**answer, "tokens": tokens, "toolCalls": calls},
        gemini_message("m3", "info", "Update available"),
        gemini_message("m4", "user", "And z"),
        gemini_message("m5", "gemini", "No.", model="gemini-3-pro"),
        {"$rewindTo": "m4"},
        gemini_message("m6", "user", "And w"),
        gemini_message(
            "m7", "gemini", [{"text": "Hm", "thought": True}, {"text": "Yes."}], thoughts=[{"description": "Hm"}]
        ),
        {"$set": {"lastUpdated": "2026-08-21T10:00:08.000Z"}},
        {"$set": {"summary": "Renaming x"}},
    ]


def write_gemini(home: Path, entries: Iterable[object] | None = None) -> Path:
    path = home / ".gemini" / "tmp" / f"{GEMINI_SESSION}.jsonl"
    write_lines(path, gemini_session() if entries is None else entries)
    (home / ".gemini/tmp/app/.project_root").write_text("/home/ann/app\n")
    return path


GOOSE_SESSION = "20260401_1"


def goose_messages() -> list[dict[str, Any]]:
    """A prompt, an answer with a call, its result with a picture, and what only the model saw."""
    command = {"status": "success", "value": {"name": "developer__shell", "arguments": {"command": "ls"}}}
    failed = {"status": "error", "error": "no such tool"}
    listing = {"content": [{"type": "text", "text": "a.py"}, {"type": "image", "data": PIXEL, "mimeType": "image/png"}]}
    return [
        {"id": "g1", "role": "user", "created": 1_775_001_600, "content": [{"type": "text", "text": "List it"}]},
        {
            "id": "g2",
            "role": "assistant",
            "created": 1_775_001_601,
            "content": [
                {"type": "thinking", "thinking": "I list.", "signature": "x"},
                {"type": "text", "text": "Here."},
                {"type": "toolRequest", "id": "t1", "toolCall": command},
                {"type": "toolRequest", "id": "t2", "toolCall": command},
            ],
        },
        {
            "id": "g3",
            "role": "user",
            "created": 1_775_001_602,
            "content": [
                {"type": "toolResponse", "id": "t1", "toolResult": {"status": "success", "value": listing}},
                {"type": "toolResponse", "id": "t2", "toolResult": failed},
            ],
        },
        {"id": "g4", "role": "assistant", "created": 1_775_001_603, "content": [{"type": "text", "text": "One file."}]},
        {
            "id": "g5",
            "role": "user",
            "created": 1_775_001_604,
            "content": [{"type": "text", "text": "For the model"}],
            "metadata": {"userVisible": False, "agentVisible": True},
        },
    ]


def write_goose(home: Path, *, keep_log: bool = False) -> sqlite3.Connection:
    session = {"id": GOOSE_SESSION, "name": "Listing", "description": "", "user_set_name": 1, "session_type": "user"}
    session |= {"working_dir": "/repo", "created_at": "2026-04-01 00:00:00", "updated_at": "2026-04-01 00:10:00"}
    session |= {"model_config_json": {"model_name": "qwen3"}}
    rows = [
        {
            "id": number,
            "message_id": message["id"],
            "session_id": GOOSE_SESSION,
            "role": message["role"],
            "content_json": message["content"],
            "created_timestamp": message["created"],
            "metadata_json": message.get("metadata"),
        }
        for number, message in enumerate(goose_messages(), 1)
    ]
    sessions = [session, {**session, "id": "20260401_2", "session_type": "sub_agent"}]
    path = home / ".local/share/goose/sessions/sessions.db"
    return write_database(path, {"sessions": sessions, "messages": rows}, keep_log=keep_log)


def write_older_goose(home: Path, session_id: str = GOOSE_SESSION) -> Path:
    head = {"working_dir": "/repo", "description": "Listing", "message_count": 5, "total_tokens": None}
    return write_lines(home / f".local/share/goose/sessions/{session_id}.jsonl", [head, *goose_messages()])


LM_STUDIO_CHAT = "folder/1758816879741"


def lm_studio_version(role: str, *contents: Any, steps: list[Any] | None = None) -> dict[str, Any]:
    if role == "assistant":
        return {"type": "multiStep", "role": role, "senderInfo": {"senderName": "qwen3"}, "steps": steps or []}
    return {"type": "singleStep", "role": role, "content": list(contents)}


def lm_studio_chat() -> dict[str, Any]:
    """A prompt, an answer in two versions, the second with reasoning and a call, and another prompt."""

    def step(*contents: Any, **more: Any) -> dict[str, Any]:
        return {"type": "contentBlock", "stepIdentifier": "s", "content": list(contents), **more}

    asked = {
        "type": "toolCallRequest",
        "callId": 1,
        "toolCallRequestId": "9",
        "name": "search",
        "parameters": {"q": "x"},
    }
    told = {"type": "toolCallResult", "callId": 1, "toolCallRequestId": "9", "content": '{"found": 3}'}
    second = [
        step({"type": "text", "text": "Let me see."}, style={"type": "thinking", "ended": True}),
        step(asked),
        {"type": "status", "stepIdentifier": "t", "statusState": {"status": "done", "text": "Done"}},
        step(told),
        step({"type": "text", "text": "Three."}),
    ]
    text = {"type": "text", "text": "How many?"}
    first = lm_studio_version("assistant", steps=[step({"type": "text", "text": "Two."})])
    return {
        "name": "Counting",
        "createdAt": 1_758_816_879_741,
        "userLastMessagedAt": 1_758_816_900_000,
        "assistantLastMessagedAt": 1_758_816_910_000,
        "messages": [
            {"versions": [lm_studio_version("user", text)], "currentlySelected": 0},
            {"versions": [first, lm_studio_version("assistant", steps=second)], "currentlySelected": 1},
            {"versions": [lm_studio_version("user", {"type": "text", "text": "Sure?"})], "currentlySelected": 0},
        ],
        "lastUsedModel": {"identifier": "qwen3-4b"},
    }


def write_lm_studio(home: Path, chat: Any = None) -> Path:
    path = home / ".lmstudio" / "conversations" / f"{LM_STUDIO_CHAT}.conversation.json"
    return write_json(path, lm_studio_chat() if chat is None else chat)


JAN_THREAD = "5ebd5ac5-1a4d-4a62-a0b2-4a2cf4c2a26d"


def jan_messages() -> list[dict[str, Any]]:
    """A prompt with a picture, an answer of today with a call, and one of 2025 with reasoning in its text."""
    base = {"object": "thread.message", "thread_id": JAN_THREAD, "status": "ready", "metadata": {"modelId": "jan-v1"}}
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    call = {"type": "tool_call", "tool_call_id": "c1", "tool_name": "search", "input": {"q": "x"}, "output": "Found"}
    older = {"tool": {"id": "c2", "function": {"name": "open", "arguments": '{"u": 1}'}}, "response": {"error": "no"}}

    def text(value: str, kind: str = "text") -> dict[str, Any]:
        return {"type": kind, "text": {"value": value, "annotations": []}}

    return [
        {**base, "id": "j1", "role": "user", "created_at": 1_758_816_879, "content": [text("Look"), picture]},
        {
            **base,
            "id": "j2",
            "role": "assistant",
            "created_at": 1_758_816_880_000,
            "content": [text("I see.", "reasoning"), call, text("Found it.")],
        },
        {
            **base,
            "id": "j3",
            "role": "assistant",
            "created_at": 1_758_816_881,
            "status": "stopped",
            "content": [text("<think>Hm.</think>\n\nWell")],
            "metadata": {"tool_calls": [older]},
        },
    ]


def write_jan(home: Path, messages: Iterable[object] | None = None) -> Path:
    folder = home / ".local/share/Jan/data/threads" / JAN_THREAD
    thread = {"id": JAN_THREAD, "title": "Looking", "created": 1_758_816_800, "updated": 1_758_816_900}
    write_json(folder / "thread.json", {**thread, "assistants": [{"id": "jan", "model": {"id": "jan-v1"}}]})
    return write_lines(folder / "messages.jsonl", jan_messages() if messages is None else messages)


WEBUI_CHAT = "0b1d7e2c-chat"


def webui_chat() -> dict[str, Any]:
    """A prompt with a picture, answered twice; the second answer has reasoning and a call, and goes on."""
    reasoning = (
        '<details type="reasoning" done="true" duration="3">\n<summary>Thought</summary>\n&gt; Hm &amp; so\n</details>'
    )
    call = (
        '<details type="tool_calls" done="true" id="c" name="search" arguments="&quot;{\\&quot;q\\&quot;: 1}&quot;" '
        'result="&quot;Found&quot;" files="">\n<summary>Done</summary>\n</details>'
    )

    def message(message_id: str, parent: str | None, role: str, content: str, **more: Any) -> dict[str, Any]:
        return {
            "id": message_id,
            "parentId": parent,
            "role": role,
            "content": content,
            "timestamp": 1_758_816_879,
            **more,
        }

    files = [{"type": "image", "url": f"data:image/png;base64,{PIXEL}"}, {"type": "file", "name": "a.pdf"}]
    usage = {"prompt_tokens": 10, "completion_tokens": 5}
    messages = [
        message("w4", "w3", "user", "Thanks"),
        message("w1", None, "user", "What?", files=files),
        message("w2", "w1", "assistant", "This.", model="llama3"),
        message("w3", "w1", "assistant", f"{reasoning}\nSo:\n{call}\nThat.", model="qwen3", usage=usage),
    ]
    history = {"messages": {entry["id"]: entry for entry in messages}, "currentId": "w4"}
    return {"title": "What", "models": ["qwen3"], "history": history}


def write_webui(home: Path, chat: Any = None, *, keep_log: bool = False) -> sqlite3.Connection:
    row = {"id": WEBUI_CHAT, "user_id": "u", "title": "What", "created_at": 1_758_816_800, "updated_at": 1_758_816_900}
    row |= {"chat": webui_chat() if chat is None else chat}
    return write_database(home / ".open-webui/webui.db", {"chat": [row]}, keep_log=keep_log)


CHERRY_TOPIC = "topic-1"


def cherry_backup() -> dict[str, Any]:
    """A prompt that two models answered, the second with a call, and another prompt after the second answer."""

    def block(block_id: str, kind: str, **more: Any) -> dict[str, Any]:
        return {"id": block_id, "type": kind, "createdAt": "2026-03-01T10:00:00.000Z", "status": "success", **more}

    def message(message_id: str, role: str, *blocks: str, **more: Any) -> dict[str, Any]:
        time = f"2026-03-01T10:00:0{message_id[-1]}.000Z"
        return {
            "id": message_id,
            "role": role,
            "topicId": CHERRY_TOPIC,
            "createdAt": time,
            "blocks": list(blocks),
            **more,
        }

    call = block("b4", "tool", toolId="t", toolName="search", arguments={"q": "x"}, content={"found": 3})
    topics = [{"id": CHERRY_TOPIC, "name": "Counting"}]
    slices = {"assistants": json.dumps({"assistants": [{"id": "a", "topics": topics}], "defaultAssistant": None})}
    return {
        "time": 1_772_359_200_000,
        "version": 5,
        "localStorage": {"persist:cherry-studio": json.dumps(slices)},
        "indexedDB": {
            "topics": [
                {
                    "id": CHERRY_TOPIC,
                    "messages": [
                        message("n1", "user", "b1"),
                        message("n2", "assistant", "b2", askId="n1", model={"id": "m1"}),
                        message("n3", "assistant", "b3", "b4", "b5", askId="n1", model={"id": "m2"}, foldSelected=True),
                        message("n4", "user", "b6", "b7"),
                    ],
                },
                {"id": "empty", "messages": []},
            ],
            "message_blocks": [
                block("b1", "main_text", content="How many?"),
                block("b2", "main_text", content="Two."),
                block("b3", "thinking", content="Hm.", thinking_millsec=10),
                call,
                block("b5", "main_text", content="Three."),
                block("b6", "main_text", content="Sure?"),
                block("b7", "citation"),
            ],
        },
    }


def write_cherry(home: Path, backup: Any = None, name: str = "cherry-studio.20260301.zip") -> Path:
    path = home / "Downloads" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data.json", json.dumps(cherry_backup() if backup is None else backup))
    return path
