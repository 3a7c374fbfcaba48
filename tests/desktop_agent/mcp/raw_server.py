"""A server program that writes its JSON lines by hand, so that it can send what no library would let it."""

import json
import sys
from typing import Any

options = sys.argv[1:]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
request_counts: dict[str, int] = {}
waiting: dict[str, Any] = {}
"""The id of the call for which each of the server's own requests was sent."""


def send(message: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def tool(number: int) -> dict[str, Any]:
    return {"name": f"t{number}", "description": "x", "inputSchema": {"type": "object", "properties": {}}}


def page(cursor: str | None) -> dict[str, Any]:
    start = int(cursor) if cursor and cursor.isdecimal() else 0
    if "same-cursor" in options:
        return {"tools": [tool(start)], "nextCursor": "0"}
    if "empty-pages" in options:
        return {"tools": [], "nextCursor": str(start + 1)}
    if "long-cursor" in options:
        return {"tools": [tool(0)], "nextCursor": "x" * 1_000_000}
    if "too-large" in options:
        return {"tools": [{**tool(0), "outputSchema": {"type": "object", "enum": [0] * 100_001}}]}
    tools = [tool(start * 30 + number) for number in range(30)]
    return {"tools": tools, **({"nextCursor": str(start + 1)} if start < 3 else {})}


def resources() -> dict[str, Any]:
    plain = {"uri": "x://text", "name": "te\u200bxt", "mimeType": "text/plain", "size": 5, "description": "d" * 9_000}
    return {
        "resources": [plain, {"uri": "x://picture", "name": "picture", "size": -4}, {"uri": "x" * 9_000, "name": "l"}]
    }


def read_resource(uri: str) -> dict[str, Any]:
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
    return {"messages": [{"role": "user", "content": block} for block in blocks]}


def result_of(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            able = {name: {"listChanged": True} for name in ("tools", "resources", "prompts")}
            server = {"name": "raw", "version": "1"}
            version = "2025-03-26" if "old" in options else "2025-06-18"
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
            return read_resource(params["uri"])
        case "prompts/list":
            arguments = [{"name": "a", "required": True}, {"name": "b"}]
            return {"prompts": [{"name": "greet", "title": "Greet", "arguments": arguments}]}
        case "prompts/get":
            return prompt()
        case "completion/complete":
            context_values = [f"{name}={text}" for name, text in params.get("context", {}).get("arguments", {}).items()]
            return {
                "completion": {
                    "values": [params["ref"]["type"], params["argument"]["value"] + "s", *context_values] + ["v"] * 300
                }
            }
        case _:
            return None


QUESTION = [{"role": "user", "content": {"type": "text", "text": "Name a colour."}}]


def sampling(question: str, *messages_so_far: dict[str, Any]) -> dict[str, Any]:
    messages = [{"role": message["role"], "content": message["content"]} for message in messages_so_far]
    schema = {"type": "object", "properties": {"of": {"type": "string"}}}
    tools = [{"name": "look", "description": "Looks at a thing.", "inputSchema": schema}]
    more = {"tools": tools, "toolChoice": {"mode": "auto"}} if "tools" in options else {}
    params = {"messages": messages, "maxTokens": 9, **more}
    return {"id": question, "method": "sampling/createMessage", "params": params}


def tool_results(request: dict[str, Any]) -> dict[str, Any]:
    """Return the message with the result of each call that the model requested of the server's own tool."""
    content = request["content"] if isinstance(request["content"], list) else [request["content"]]
    calls = [call for call in content if call["type"] == "tool_use"]
    answer = [{"type": "text", "text": "It is blue."}]
    return {
        "role": "user",
        "content": [{"type": "tool_result", "toolUseId": call["id"], "content": answer} for call in calls],
    }


for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method", "")
    request_counts[method] = request_counts.get(method, 0) + 1
    print(f"{method} {request_counts[method]}", file=sys.stderr, flush=True)
    if "result" in message:
        print("told", json.dumps(message["result"]), file=sys.stderr, flush=True)
        if message["id"] == "tools":
            waiting["q"] = waiting.pop("tools")
            send(sampling("q", *QUESTION, message["result"], tool_results(message["result"])))
        elif message["id"] in waiting:
            content = [{"type": "text", "text": json.dumps(message["result"])}]
            send({"id": waiting.pop(message["id"]), "result": {"content": content}})
    if "error" in message:
        failed = {"content": [{"type": "text", "text": message["error"]["message"]}], "isError": True}
        send({"id": waiting.pop(message["id"]), "result": failed})
        continue
    if "id" not in message or "result" in message:
        continue
    if method == "tools/call" and "asks" in options:
        question = f"q{message['id']}"
        waiting[question] = message["id"]
        form = {"type": "object", "properties": {"word": {"type": "string"}}}
        send({"id": question, "method": "elicitation/create", "params": {"message": "Which?", "requestedSchema": form}})
        continue
    if method == "tools/call" and "samples" in options:
        question = "tools" if "tools" in options else "q"
        waiting[question] = message["id"]
        send(sampling(question, *QUESTION))
        continue
    result = result_of(method, message.get("params") or {})
    if result is None:
        send({"id": message["id"], "error": {"code": -32601, "message": "unknown"}})
        continue
    send({"id": message["id"], "result": result})
    if method == "tools/list" and "floods" in options:
        for _ in range(2_000):
            send({"method": "notifications/tools/list_changed"})
    if method == "prompts/list" and "floods" in options:
        for number in range(500):
            send({"method": f"notifications/{('prompts', 'resources')[number % 2]}/list_changed"})
        send({"method": "notifications/message", "params": {"level": "info", "data": "flooded"}})
    if method == "tools/list" and "roots" in options:
        send({"id": "r", "method": "roots/list"})
