"""Home folders as other programs leave them, written by hand after the shapes that each reader names."""

import json
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


def write_codex(home: Path, entries: Iterable[object] | None = None) -> Path:
    path = home / ".codex" / "sessions" / f"{CODEX_SESSION}.jsonl"
    return write_lines(path, codex_session() if entries is None else entries)
