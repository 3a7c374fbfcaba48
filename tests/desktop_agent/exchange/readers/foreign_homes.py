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
