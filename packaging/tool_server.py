"""An MCP server in a few lines (Model Context Protocol 2025-06-18), for the check of the packaged program.

Run as a program it uses its standard streams; any Python is enough for it.
"""

import json
import sys
from typing import Any

UNKNOWN = {"code": -32601, "message": "unknown"}


def answered(message: dict[str, Any]) -> dict[str, Any] | None:
    """Return the reply to one message; None where there is none."""
    if "id" not in message or "method" not in message:
        return None
    result = result_of(message["method"], message.get("params") or {})
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    return {**reply, "error": UNKNOWN} if result is None else {**reply, "result": result}


def result_of(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """Return the result of a method; there is one tool, which returns what it got."""
    match method:
        case "initialize":
            info = {"name": "packed", "version": "1"}
            return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            schema = {"type": "object", "properties": {"said": {"type": "string"}}}
            return {"tools": [{"name": "echo", "description": "Says it again.", "inputSchema": schema}]}
        case "tools/call":
            return {"content": [{"type": "text", "text": f"Heard: {params['arguments']['said']}"}]}
        case _:
            return None


def main() -> None:
    """Answer line by line until the other end closes."""
    for line in sys.stdin:
        if answer := answered(json.loads(line)):
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
