"""Limits on what an MCP server may send: size and repair of JSON-RPC messages, lists, content types, rate, schemas.

A message that cannot be read must not leave a call waiting: one with an id becomes a failure of that call.
"""

import asyncio
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from desktop_agent.processes.foreign_code import MAX_PARTS, clean_json, limit_parts, omitted_parts_note
from desktop_agent.processes.worker_threads import CancelToken, is_nested_deeper
from desktop_agent.types.errors import Sentence

if TYPE_CHECKING:
    from mcp_types import JSONRPCError, JSONRPCMessage


MAX_VALUES = 100_000
"""Values of one message: the library's models take a second for a few hundred thousand."""
MAX_REQUEST_VALUES = 10_000
"""Values of one request of a server."""
MAX_LOG_MESSAGE_BYTES = 50_000
"""Bytes of one message for the log."""
MAX_BATCH = 100
PARSE_IN_THREAD_BYTES = 4_000
SERVER_FAILED = -32099
"""In place of a server's own -32000, which the library uses for a lost connection, and ANSWER_TOO_LARGE."""
ANSWER_TOO_LARGE = -32098
"""Of an answer with more than MAX_VALUES values, which is not read."""
MAX_DEPTH = 200
_COUNT_CHUNK = 1_000_000
_SEARCH_WINDOW = 4_000
_MAX_DIGITS = 300
_ID_FIELD = re.compile(rb'(?<!\\)"id"\s*:\s*(-?\d{1,18}|"[^"\\]{0,200}")')
_METHOD_FIELD = re.compile(rb'(?<!\\)"method"\s*:\s*"([a-zA-Z/_.-]{1,100})"')
_RESPONSE_FIELD = re.compile(rb'(?<!\\)"(result|error)"\s*:')
_VALUE_SEPARATORS = (b",", b"[", b"{")


@dataclass(frozen=True, slots=True)
class ParsedMessages:
    """Messages of one line, response or event.

    `is_whole`: they are unchanged. `is_json`: the data could be parsed, and not only the id that it belongs to.
    """

    messages: "tuple[JSONRPCMessage, ...]"
    is_whole: bool = False
    is_json: bool = True


def parse_messages(data: bytes) -> ParsedMessages:
    """Parse a line, a response or an event; no messages if it has none. Large data belongs in a thread."""
    from mcp_types import jsonrpc_message_adapter

    count = count_values(data)
    if count > MAX_VALUES:
        messages = _replacement(data, f"it holds more than {MAX_VALUES:,} values", ANSWER_TOO_LARGE)
        return ParsedMessages(messages, is_json=False)
    try:
        message = jsonrpc_message_adapter.validate_json(data, by_name=False)
    except (ValueError, RecursionError):
        return _parse_repaired(data)
    bounded = _bound_message(message, len(data), count)
    return ParsedMessages((bounded,), is_whole=bounded is message)


async def parse_messages_by_size(data: bytes) -> ParsedMessages:
    """Parse as `parse_messages` does, large data in a thread."""
    return parse_messages(data) if len(data) < PARSE_IN_THREAD_BYTES else await asyncio.to_thread(parse_messages, data)


def count_values(data: bytes) -> int:
    """Estimate how many values JSON has, up to MAX_VALUES + 1.

    Separators inside strings are left out where that matters: a string may be a large table.
    """
    if _count_separators(data, 0, len(data)) <= MAX_VALUES:
        return _count_separators(data, 0, len(data))
    count, offset = 0, 0
    while offset < len(data) and count <= MAX_VALUES:
        quote = data.find(b'"', offset)
        count += _count_separators(data, offset, len(data) if quote < 0 else quote)
        if quote < 0:
            break
        offset = _end_of_string(data, quote + 1)
    return count


def _count_separators(data: bytes, start: int, end: int) -> int:
    # In chunks: other threads wait while the bytes are counted.
    chunks = range(start, end, _COUNT_CHUNK)
    return sum(
        data.count(separator, offset, min(offset + _COUNT_CHUNK, end))
        for offset in chunks
        for separator in _VALUE_SEPARATORS
    )


def _end_of_string(data: bytes, offset: int) -> int:
    while (end := data.find(b'"', offset)) >= 0:
        escapes = end
        while escapes > offset and data[escapes - 1] == ord("\\"):
            escapes -= 1
        offset = end + 1
        if (end - escapes) % 2 == 0:
            return offset
    return len(data)


def _bound_message(message: "JSONRPCMessage", size: int, count: int) -> "JSONRPCMessage":
    from mcp_types import CONNECTION_CLOSED, JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

    if isinstance(message, JSONRPCResponse):
        result = bound_lists(replace_unknown_content(message.result))
        return message if result == message.result else message.model_copy(update={"result": result})
    if isinstance(message, JSONRPCError) and message.error.code in {CONNECTION_CLOSED, ANSWER_TOO_LARGE}:
        return with_error_code(message, SERVER_FAILED)
    if isinstance(message, JSONRPCRequest) and count > MAX_REQUEST_VALUES:
        # The library replies by itself that the parameters are missing.
        return JSONRPCRequest(jsonrpc="2.0", id=message.id, method=message.method, params={})
    if (
        isinstance(message, JSONRPCNotification)
        and size > MAX_LOG_MESSAGE_BYTES
        and message.method == "notifications/message"
    ):
        params: dict[str, Any] = {"level": "info", "data": f"[left out: a message of {size:,} bytes]"}
        return JSONRPCNotification(jsonrpc="2.0", method=message.method, params=params)
    return message


def with_error_code(message: "JSONRPCError", code: int) -> "JSONRPCError":
    """Return the same error with another code."""
    return message.model_copy(update={"error": message.error.model_copy(update={"code": code})})


def _parse_repaired(data: bytes) -> ParsedMessages:
    """Replace surrogates, invalid UTF-8 and huge numbers; split batches."""
    try:
        text = data.decode("utf-8", "replace")
        parsed: Any = json.loads(text, parse_int=lambda digits: int(digits) if len(digits) <= _MAX_DIGITS else digits)
        parsed = None if is_nested_deeper(parsed, MAX_DEPTH) else clean_json(parsed)
    except (ValueError, RecursionError):
        parsed = None
    if parsed is None:
        messages = _replacement(data, "it is no JSON, or nested too deep") if data.lstrip()[:1] in (b"{", b"[") else ()
        return ParsedMessages(messages, is_json=False)
    batch = cast("list[Any]", parsed) if isinstance(parsed, list) else [parsed]
    return ParsedMessages(tuple(message for item in batch[:MAX_BATCH] for message in _validate_message(item)))


def _validate_message(value: Any) -> "tuple[JSONRPCMessage, ...]":
    from mcp_types import jsonrpc_message_adapter

    if not isinstance(value, dict):
        return ()
    try:
        return (_bound_message(jsonrpc_message_adapter.validate_python(value, by_name=False), 0, 0),)
    except (ValueError, RecursionError):
        fields = cast("dict[str, Any]", value)
        request_id = fields.get("id")
        if "method" in fields or not isinstance(request_id, int | str) or isinstance(request_id, bool):
            return ()
        return (unreadable_response(request_id, "it is not a message of the protocol"),)


def _replacement(data: bytes, reason: str, code: int | None = None) -> "tuple[JSONRPCMessage, ...]":
    """Return a message in place of one that is not parsed, with its id, which is near one of its ends."""
    from mcp_types import JSONRPCRequest

    id_field, method = _search_ends(_ID_FIELD, data), _search_ends(_METHOD_FIELD, data)
    if id_field is None:
        return ()
    request_id = cast("int | str", json.loads(id_field))
    if method is not None and _search_ends(_RESPONSE_FIELD, data) is None:
        return (JSONRPCRequest(jsonrpc="2.0", id=request_id, method=method.decode(), params={}),)
    response = unreadable_response(request_id, reason)
    return (response if code is None else with_error_code(response, code),)


def _search_ends(pattern: re.Pattern[bytes], data: bytes) -> bytes | None:
    match = pattern.search(data, 0, _SEARCH_WINDOW) or pattern.search(data, max(0, len(data) - _SEARCH_WINDOW))
    return match[1] if match else None


def unreadable_response(request_id: int | str, reason: str) -> "JSONRPCError":
    """Return an error response in place of a response that cannot be read."""
    return error_response(request_id, f"its answer cannot be read: {reason}")


def error_response(request_id: int | str, message: str) -> "JSONRPCError":
    """Return an error response with a message of this program."""
    from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError

    return JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=INTERNAL_ERROR, message=message))


MAX_TOOLS = 200
MAX_LISTED = 1_000
"""Items of a list of resources, templates or prompts."""
MAX_TOOL_NAME_LENGTH = 200
UNUSABLE_TOOLS_KEY = "desktop-agent/left-out"
"""In the list's `_meta`: pairs of the name of a tool that cannot be used, and the template of the reason."""
# The newest version whose schemas the library checks beyond their type.
_STRICT_VERSION = "2025-11-25"
_LISTS = ("resources", "resourceTemplates", "prompts")
_ANNOTATIONS = ("title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


def bound_lists(result: Any) -> Any:
    """Return a result with bounded lists. One item more than the limit stays and shows that there are more."""
    if not isinstance(result, dict):
        return result
    fields = cast("dict[str, Any]", result)
    for name in _LISTS:
        if isinstance(fields.get(name), list):
            fields = {**fields, name: fields[name][: MAX_LISTED + 1]}
    return _bound_tools(fields) if isinstance(fields.get("tools"), list) else fields


def _bound_tools(result: dict[str, Any]) -> dict[str, Any]:
    kept: list[Any] = []
    unusable: list[list[str]] = []
    for tool in result["tools"][: MAX_TOOLS + 1]:
        problem = _tool_problem(tool)
        if problem is not None:
            unusable.append([_name_of(tool), problem.template])
        else:
            kept.append(_known_fields(tool))
    meta: Any = result.get("_meta")
    known_meta = cast("dict[str, Any]", meta) if isinstance(meta, dict) else {}
    return {**result, "tools": kept, "_meta": {**known_meta, UNUSABLE_TOOLS_KEY: unusable}}


def _tool_problem(tool: Any) -> Sentence | None:
    """Return why a tool cannot be used, without values; None where it can."""
    from mcp_types.methods import validate_server_result

    if not isinstance(tool, dict):
        return Sentence("it is not a description of a tool.")
    fields = cast("dict[str, Any]", tool)
    name, schema = fields.get("name"), fields.get("inputSchema")
    if not isinstance(name, str) or not name.strip():
        return Sentence("it has no name.")
    if len(name) > MAX_TOOL_NAME_LENGTH:
        return Sentence("its name is too long.")
    if not isinstance(schema, dict) or cast("dict[str, Any]", schema).get("type") != "object":
        return Sentence("the schema of its arguments does not say “type”: “object”.")
    try:
        # As the library checks the list: it would refuse the whole list for one tool.
        validate_server_result("tools/list", _STRICT_VERSION, {"tools": [_known_fields(fields)]})
    except (ValueError, RecursionError):
        return Sentence("the schema of its arguments cannot be read.")
    return None


def _known_fields(tool: dict[str, Any]) -> dict[str, Any]:
    """The fields that are used, without those of a wrong type."""
    annotations: Any = tool.get("annotations")
    hints = cast("dict[str, Any]", annotations) if isinstance(annotations, dict) else {}
    texts = {name: tool[name] for name in ("title", "description") if isinstance(tool.get(name), str)}
    kinds = {name: str if name == "title" else bool for name in _ANNOTATIONS}
    known_hints = {name: hints[name] for name, kind in kinds.items() if isinstance(hints.get(name), kind)}
    fields = {"annotations": known_hints} if isinstance(annotations, dict) else {}
    return {"name": tool["name"], **texts, "inputSchema": tool["inputSchema"], **fields}


def _name_of(tool: Any) -> str:
    name: Any = cast("dict[str, Any]", tool).get("name") if isinstance(tool, dict) else None
    return name[:MAX_TOOL_NAME_LENGTH] if isinstance(name, str) and name.strip() else "?"


MAX_OPEN_REQUESTS = 100
"""Requests of a server without a response."""
# Seconds that a server with that many gets to read a response.
_ANSWER_TIMEOUT = 10.0
_MESSAGES_BEFORE_PAUSE = 50
_BUSY_SECONDS = 0.005
_MIN_PAUSE = 0.01
_MAX_PAUSE = 0.05


class ReadPacer:
    """Pauses after many messages, or after some that took long, so that the event loop stays free."""

    def __init__(self) -> None:
        self._count = 0
        self._busy_seconds = 0.0
        self._started_at = time.perf_counter()

    def begin(self) -> None:
        """Start to measure the work on a message."""
        self._started_at = time.perf_counter()

    async def pause_if_busy(self) -> None:
        """Count a message. The pause is as long as the work, within bounds: half of the time is free for others."""
        self._count += 1
        self._busy_seconds += time.perf_counter() - self._started_at
        if self._count < _MESSAGES_BEFORE_PAUSE and self._busy_seconds < _BUSY_SECONDS:
            return
        pause = min(max(self._busy_seconds, _MIN_PAUSE), _MAX_PAUSE)
        self._count, self._busy_seconds = 0, 0.0
        await asyncio.sleep(pause)


class OpenRequests:
    """Requests of a server without a response: each keeps a task and its response in memory."""

    def __init__(self, limit: int = MAX_OPEN_REQUESTS, timeout: float = _ANSWER_TIMEOUT) -> None:
        self._max_open = limit
        self._timeout = timeout
        self._open: set[int | str] = set()
        self._room = asyncio.Event()

    def __len__(self) -> int:
        return len(self._open)

    async def admit(self, message: "JSONRPCMessage") -> bool:
        """Return whether to handle a message: not a request whose id is open already. Waits while too many are open.

        Raises TimeoutError if the server reads none of the responses.
        """
        from mcp_types import JSONRPCNotification, JSONRPCRequest

        if isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            # Nobody waits for it any more, and it may get no response.
            self._close((message.params or {}).get("requestId"))
        if not isinstance(message, JSONRPCRequest):
            return True
        while len(self._open) >= self._max_open:
            self._room.clear()
            async with asyncio.timeout(self._timeout):
                await self._room.wait()
        if message.id in self._open:
            return False
        self._open.add(message.id)
        return True

    def mark_answered(self, message: "JSONRPCMessage") -> None:
        """Record that a message was sent."""
        from mcp_types import JSONRPCError, JSONRPCResponse

        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._close(message.id)

    def _close(self, request_id: object) -> None:
        if isinstance(request_id, int | str):
            self._open.discard(request_id)
            self._room.set()


_KNOWN_TYPES = frozenset({"text", "image", "audio", "resource", "resource_link"})
_MAX_TYPE_LENGTH = 100


def replace_unknown_content(result: Any) -> Any:
    """Return a result with content of unknown types replaced by notes."""
    if not isinstance(result, dict):
        return result
    fields = cast("dict[str, Any]", result)
    blocks, messages = fields.get("content"), fields.get("messages")
    if isinstance(blocks, list):
        content = cast("list[Any]", blocks)
        kept, rest = limit_parts(content)
        note = [{"type": "text", "text": omitted_parts_note(rest).text}] if rest else []
        return {**fields, "content": [*(_known_block(item) for item in kept), *note]}
    if isinstance(messages, list):
        # One more than are used shows that there are more.
        return {**fields, "messages": [_known_message(item) for item in cast("list[Any]", messages)[: MAX_PARTS + 1]]}
    return fields


def _known_message(message: Any) -> Any:
    if not isinstance(message, dict):
        return message
    fields = cast("dict[str, Any]", message)
    return {**fields, "content": _known_block(fields.get("content"))}


def _known_block(block: Any) -> Any:
    if not isinstance(block, dict):
        return block
    kind = cast("dict[str, Any]", block).get("type")
    if kind in _KNOWN_TYPES or not isinstance(kind, str):
        return cast("dict[str, Any]", block)
    return {"type": "text", "text": f"[left out: {kind[:_MAX_TYPE_LENGTH]}, which is of no known kind]"}


MAX_SCHEMA_SECONDS = 2.0
"""CPU time of the thread, for all schemas of a server."""
MAX_SCHEMA_CHARACTERS = 400_000
"""Characters of the descriptions and schemas of all tools of a server."""


class SchemaBudget:
    """The time and characters left for one server's list of tools; `cancel_token` ends it at once."""

    def __init__(self, cancel_token: CancelToken, clock: Callable[[], float] = time.thread_time) -> None:
        self._cancel_token = cancel_token
        self._clock = clock
        self._deadline = clock() + MAX_SCHEMA_SECONDS
        self._characters = MAX_SCHEMA_CHARACTERS

    def has_time(self) -> bool:
        """Return whether there is time left."""
        return not self._cancel_token.is_cancelled and self._clock() < self._deadline

    def take(self, characters: int) -> bool:
        """Count so many characters if they fit; return whether they do."""
        if characters > self._characters:
            return False
        self._characters -= characters
        return True
