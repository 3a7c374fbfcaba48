"""A server that is nothing but lines of JSON, so that it can say what no library would let it. Run as a program."""

import json
import sys
from typing import Any

words = sys.argv[1:]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
asked: dict[str, int] = {}
waiting: dict[str, Any] = {}
"""The call for which each question is asked."""


def send(message: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def tool(number: int) -> dict[str, Any]:
    return {"name": f"t{number}", "description": "x", "inputSchema": {"type": "object", "properties": {}}}


def page(cursor: str | None) -> dict[str, Any]:
    at = int(cursor) if cursor and cursor.isdecimal() else 0
    if "same-cursor" in words:
        return {"tools": [tool(at)], "nextCursor": "0"}
    if "empty-pages" in words:
        return {"tools": [], "nextCursor": str(at + 1)}
    if "long-cursor" in words:
        return {"tools": [tool(0)], "nextCursor": "x" * 1_000_000}
    found = [tool(at * 30 + number) for number in range(30)]
    return {"tools": found, **({"nextCursor": str(at + 1)} if at < 3 else {})}


def resources() -> dict[str, Any]:
    plain = {"uri": "x://text", "name": "te\u200bxt", "mimeType": "text/plain", "size": 5, "description": "d" * 9_000}
    return {
        "resources": [plain, {"uri": "x://picture", "name": "picture", "size": -4}, {"uri": "x" * 9_000, "name": "l"}]
    }


def read(uri: str) -> dict[str, Any]:
    if uri == "x://picture":
        return {"contents": [{"uri": uri, "mimeType": "image/png", "blob": PIXEL}]}
    if uri == "x://odd":
        return {"contents": [{"uri": uri, "mimeType": "application/x-odd", "blob": "AAAA"}] * 5_000}
    return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": "hello"}]}


def prompt() -> dict[str, Any]:
    blocks: list[dict[str, Any]] = [
        {"type": "text", "text": "first"},
        {"type": "image", "data": PIXEL, "mimeType": "image/png"},
        {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "x://text", "name": "text"},
    ]
    return {"messages": [{"role": "user", "content": each} for each in blocks]}


def result_of(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            able = {name: {"listChanged": True} for name in ("tools", "resources", "prompts")}
            server = {"name": "raw", "version": "1"}
            version = "2025-03-26" if "old" in words else "2025-06-18"
            return {"protocolVersion": version, "capabilities": {**able, "completions": {}}, "serverInfo": server}
        case "tools/list":
            return page(params.get("cursor"))
        case "tools/call":
            return {"content": [{"type": "hologram", "data": "x" * 100_000}, {"type": "text", "text": "seen"}]}
        case "resources/list":
            return resources()
        case "resources/templates/list":
            return {"resourceTemplates": [{"uriTemplate": "x://{name}", "name": "any"}]}
        case "resources/read":
            return read(params["uri"])
        case "prompts/list":
            arguments = [{"name": "a", "required": True}, {"name": "b"}]
            return {"prompts": [{"name": "greet", "title": "Greet", "arguments": arguments}]}
        case "prompts/get":
            return prompt()
        case "completion/complete":
            known = [f"{name}={text}" for name, text in params.get("context", {}).get("arguments", {}).items()]
            return {
                "completion": {
                    "values": [params["ref"]["type"], params["argument"]["value"] + "s", *known] + ["v"] * 300
                }
            }
        case _:
            return None


QUESTION = [{"role": "user", "content": {"type": "text", "text": "Name a colour."}}]


def sampling(question: str, *said: dict[str, Any]) -> dict[str, Any]:
    messages = [{"role": each["role"], "content": each["content"]} for each in said]
    schema = {"type": "object", "properties": {"of": {"type": "string"}}}
    tools = [{"name": "look", "description": "Looks at a thing.", "inputSchema": schema}]
    more = {"tools": tools, "toolChoice": {"mode": "auto"}} if "tools" in words else {}
    params = {"messages": messages, "maxTokens": 9, **more}
    return {"id": question, "method": "sampling/createMessage", "params": params}


def answered(asked_for: dict[str, Any]) -> dict[str, Any]:
    """What the server's own tool gives for each call that the model asked for."""
    content = asked_for["content"] if isinstance(asked_for["content"], list) else [asked_for["content"]]
    calls = [each for each in content if each["type"] == "tool_use"]
    seen = [{"type": "text", "text": "It is blue."}]
    return {
        "role": "user",
        "content": [{"type": "tool_result", "toolUseId": each["id"], "content": seen} for each in calls],
    }


for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method", "")
    asked[method] = asked.get(method, 0) + 1
    print(f"{method} {asked[method]}", file=sys.stderr, flush=True)
    if "result" in message:
        print("told", json.dumps(message["result"]), file=sys.stderr, flush=True)
        if message["id"] == "tools":
            waiting["q"] = waiting.pop("tools")
            send(sampling("q", *QUESTION, message["result"], answered(message["result"])))
        elif message["id"] in waiting:
            content = [{"type": "text", "text": json.dumps(message["result"])}]
            send({"id": waiting.pop(message["id"]), "result": {"content": content}})
    if "error" in message:
        failed = {"content": [{"type": "text", "text": message["error"]["message"]}], "isError": True}
        send({"id": waiting.pop(message["id"]), "result": failed})
        continue
    if "id" not in message or "result" in message:
        continue
    if method == "tools/call" and "asks" in words:
        question = f"q{message['id']}"
        waiting[question] = message["id"]
        form = {"type": "object", "properties": {"word": {"type": "string"}}}
        send({"id": question, "method": "elicitation/create", "params": {"message": "Which?", "requestedSchema": form}})
        continue
    if method == "tools/call" and "samples" in words:
        question = "tools" if "tools" in words else "q"
        waiting[question] = message["id"]
        send(sampling(question, *QUESTION))
        continue
    result = result_of(method, message.get("params") or {})
    if result is None:
        send({"id": message["id"], "error": {"code": -32601, "message": "unknown"}})
        continue
    send({"id": message["id"], "result": result})
    if method == "tools/list" and "floods" in words:
        for _ in range(2_000):
            send({"method": "notifications/tools/list_changed"})
    if method == "prompts/list" and "floods" in words:
        for number in range(500):
            send({"method": f"notifications/{('prompts', 'resources')[number % 2]}/list_changed"})
        send({"method": "notifications/message", "params": {"level": "info", "data": "flooded"}})
    if method == "tools/list" and "roots" in words:
        send({"id": "r", "method": "roots/list"})
