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

if TYPE_CHECKING:
    from mcp_types import JSONRPCError, JSONRPCMessage


MAX_VALUES = 100_000
"""Of one message: the library's models take a second for some hundred thousand."""
MAX_REQUEST_VALUES = 10_000
"""Of what a server asks of us."""
MAX_LOG_MESSAGE_BYTES = 50_000
"""Bytes of one message for the log."""
MAX_BATCH = 100
SERVER_FAILED = -32099
"""In place of -32000, which servers say of any failure of theirs, and the library of a connection that is gone."""
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
    """`is_whole`: these are what came, unchanged. `is_json`: what came could be read, and not only who meant it."""

    messages: "tuple[JSONRPCMessage, ...]"
    is_whole: bool = False
    is_json: bool = True


def parse_messages(data: bytes) -> ParsedMessages:
    """Those of a line, an answer or an event; none where it is no message at all. Large ones need a thread."""
    from mcp_types import jsonrpc_message_adapter

    count = count_values(data)
    if count > MAX_VALUES:
        return ParsedMessages(_replacement(data, f"it holds more than {MAX_VALUES:,} values"), is_json=False)
    try:
        message = jsonrpc_message_adapter.validate_json(data, by_name=False)
    except (ValueError, RecursionError):
        return _parse_repaired(data)
    bounded = _bound_message(message, len(data), count)
    return ParsedMessages((bounded,), is_whole=bounded is message)


def count_values(data: bytes) -> int:
    """About how many values JSON holds; as far as MOST_VALUES and one more.

    Signs within texts are not counted where that matters: a text may be a large table.
    """
    if _count_separators(data, 0, len(data)) <= MAX_VALUES:
        return _count_separators(data, 0, len(data))
    count, at = 0, 0
    while at < len(data) and count <= MAX_VALUES:
        begin = data.find(b'"', at)
        count += _count_separators(data, at, len(data) if begin < 0 else begin)
        if begin < 0:
            break
        at = _end_of_string(data, begin + 1)
    return count


def _count_separators(data: bytes, start: int, end: int) -> int:
    # Piece by piece: other threads wait while the bytes are gone through.
    pieces = range(start, end, _COUNT_CHUNK)
    return sum(data.count(sign, at, min(at + _COUNT_CHUNK, end)) for at in pieces for sign in _VALUE_SEPARATORS)


def _end_of_string(data: bytes, at: int) -> int:
    while (end := data.find(b'"', at)) >= 0:
        before = end
        while before > at and data[before - 1] == ord("\\"):
            before -= 1
        at = end + 1
        if (end - before) % 2 == 0:
            return at
    return len(data)


def _bound_message(message: "JSONRPCMessage", size: int, count: int) -> "JSONRPCMessage":
    from mcp_types import CONNECTION_CLOSED, JSONRPCError, JSONRPCNotification, JSONRPCRequest

    if isinstance(message, JSONRPCError) and message.error.code == CONNECTION_CLOSED:
        return with_error_code(message, SERVER_FAILED)
    if isinstance(message, JSONRPCRequest) and count > MAX_REQUEST_VALUES:
        # The library answers by itself that something is missing.
        return JSONRPCRequest(jsonrpc="2.0", id=message.id, method=message.method, params={})
    if (
        isinstance(message, JSONRPCNotification)
        and size > MAX_LOG_MESSAGE_BYTES
        and message.method == "notifications/message"
    ):
        said: dict[str, Any] = {"level": "info", "data": f"[left out: a message of {size:,} bytes]"}
        return JSONRPCNotification(jsonrpc="2.0", method=message.method, params=said)
    return message


def with_error_code(message: "JSONRPCError", code: int) -> "JSONRPCError":
    """The same failure under another number."""
    return message.model_copy(update={"error": message.error.model_copy(update={"code": code})})


def _parse_repaired(data: bytes) -> ParsedMessages:
    """Half characters, bytes that are no UTF-8 and huge numbers are replaced; batches are taken apart."""
    try:
        found: Any = json.loads(data.decode("utf-8", "replace"), parse_int=_parse_integer)
        found = None if is_nested_deeper(found, MAX_DEPTH) else clean_json(found)
    except (ValueError, RecursionError):
        found = None
    if found is None:
        instead = _replacement(data, "it is no JSON, or nested too deep") if data.lstrip()[:1] in (b"{", b"[") else ()
        return ParsedMessages(instead, is_json=False)
    batch = cast("list[Any]", found) if isinstance(found, list) else [found]
    return ParsedMessages(tuple(message for each in batch[:MAX_BATCH] for message in _validate_message(each)))


def _parse_integer(digits: str) -> int | str:
    return int(digits) if len(digits) <= _MAX_DIGITS else digits


def _validate_message(value: Any) -> "tuple[JSONRPCMessage, ...]":
    from mcp_types import jsonrpc_message_adapter

    if not isinstance(value, dict):
        return ()
    try:
        return (_bound_message(jsonrpc_message_adapter.validate_python(value, by_name=False), 0, 0),)
    except (ValueError, RecursionError):
        named = cast("dict[str, Any]", value)
        call = named.get("id")
        is_answer = "method" not in named and isinstance(call, int | str) and not isinstance(call, bool)
        return (
            (unreadable_response(call, "it is no message of the protocol"),) if is_answer and call is not None else ()
        )


def _replacement(data: bytes, why: str) -> "tuple[JSONRPCMessage, ...]":
    """What stands for a message that is not read: by its id alone, which stands near an end of it."""
    from mcp_types import JSONRPCRequest

    call, method = _search_ends(_ID_FIELD, data), _search_ends(_METHOD_FIELD, data)
    if call is None:
        return ()
    identity = cast("int | str", json.loads(call))
    if method is not None and _search_ends(_RESPONSE_FIELD, data) is None:
        return (JSONRPCRequest(jsonrpc="2.0", id=identity, method=method.decode(), params={}),)
    return (unreadable_response(identity, why),)


def _search_ends(pattern: re.Pattern[bytes], data: bytes) -> bytes | None:
    found = pattern.search(data, 0, _SEARCH_WINDOW) or pattern.search(data, max(0, len(data) - _SEARCH_WINDOW))
    return found[1] if found else None


def unreadable_response(call: int | str, why: str) -> "JSONRPCError":
    """What stands for an answer that cannot be made use of."""
    return error_response(call, f"its answer cannot be read: {why}")


def error_response(call: int | str, message: str) -> "JSONRPCError":
    """The failure of a call, in words of ours."""
    from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError

    return JSONRPCError(jsonrpc="2.0", id=call, error=ErrorData(code=INTERNAL_ERROR, message=message))


MAX_TOOLS = 200
MAX_LISTED = 1_000
"""Of resources, templates or prompts."""
MAX_TOOL_NAME_LENGTH = 200
UNUSABLE_TOOLS_KEY = "desktop-agent/left-out"
"""In the list's own notes: pairs of the name of a tool that cannot be taken, and why."""
_LISTS = ("resources", "resourceTemplates", "prompts")
_ANNOTATIONS = ("title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


def bound_lists(result: Any) -> Any:
    """The result of a request, as it came over the wire; one more than may be stays, which says that there are more."""
    if not isinstance(result, dict):
        return result
    found = cast("dict[str, Any]", result)
    for name in _LISTS:
        if isinstance(found.get(name), list):
            found = {**found, name: found[name][: MAX_LISTED + 1]}
    return _bound_tools(found) if isinstance(found.get("tools"), list) else found


def _bound_tools(found: dict[str, Any]) -> dict[str, Any]:
    kept: list[Any] = []
    left_out: list[list[str]] = []
    for each in found["tools"][: MAX_TOOLS + 1]:
        why = _tool_problem(each)
        if why:
            left_out.append([_name_of(each), why])
        else:
            kept.append(_known_fields(each))
    notes: Any = found.get("_meta")
    others = cast("dict[str, Any]", notes) if isinstance(notes, dict) else {}
    return {**found, "tools": kept, "_meta": {**others, UNUSABLE_TOOLS_KEY: left_out}}


def _tool_problem(tool: Any) -> str:
    """Why it cannot be taken; empty where it can."""
    if not isinstance(tool, dict):
        return "it is no description of a tool."
    said = cast("dict[str, Any]", tool)
    name, schema = said.get("name"), said.get("inputSchema")
    if not isinstance(name, str) or not name.strip():
        return "it has no name."
    if len(name) > MAX_TOOL_NAME_LENGTH:
        return f"its name is longer than {MAX_TOOL_NAME_LENGTH} characters."
    if not isinstance(schema, dict) or cast("dict[str, Any]", schema).get("type") != "object":
        return "the schema of its arguments does not say “type”: “object”."
    return "" if _is_valid_schema(cast("dict[str, Any]", schema)) else "the schema of its arguments cannot be read."


def _is_valid_schema(schema: dict[str, Any]) -> bool:
    """As the library wants it, which otherwise takes none of the tools."""
    properties, required = schema.get("properties"), schema.get("required")
    is_named = properties is None or (
        isinstance(properties, dict)
        and all(isinstance(each, dict | bool) for each in cast("dict[str, Any]", properties).values())
    )
    is_list = required is None or (
        isinstance(required, list) and all(isinstance(each, str) for each in cast("list[Any]", required))
    )
    return is_named and is_list and isinstance(schema.get("$schema"), str | None)


def _known_fields(tool: dict[str, Any]) -> dict[str, Any]:
    """What is made use of, without what is of a wrong kind."""
    said: Any = tool.get("annotations")
    hints = cast("dict[str, Any]", said) if isinstance(said, dict) else {}
    texts = {name: tool[name] for name in ("title", "description") if isinstance(tool.get(name), str)}
    kinds = {name: str if name == "title" else bool for name in _ANNOTATIONS}
    believed = {name: hints[name] for name, kind in kinds.items() if isinstance(hints.get(name), kind)}
    notes = {"annotations": believed} if isinstance(said, dict) else {}
    return {"name": tool["name"], **texts, "inputSchema": tool["inputSchema"], **notes}


def _name_of(tool: Any) -> str:
    name: Any = cast("dict[str, Any]", tool).get("name") if isinstance(tool, dict) else None
    return name[:MAX_TOOL_NAME_LENGTH] if isinstance(name, str) and name.strip() else "?"


MAX_OPEN_REQUESTS = 100
"""Questions of a server that have no answer yet."""
_ANSWER_TIMEOUT = 10.0
"""Seconds that it gets to take an answer when there are so many."""
_MESSAGES_BEFORE_PAUSE = 50
_BUSY_SECONDS = 0.005
_MIN_PAUSE = 0.01
_MAX_PAUSE = 0.05


class ReadPacer:
    """Gives the loop a breath after many messages, or after some that took long."""

    def __init__(self) -> None:
        self._count = 0
        self._busy_seconds = 0.0
        self._started_at = time.perf_counter()

    def begin(self) -> None:
        """Something came: what follows is work."""
        self._started_at = time.perf_counter()

    async def pause_if_busy(self) -> None:
        """It was taken. Rests as long as the work took, within bounds: so half of the time stays for others."""
        self._count += 1
        self._busy_seconds += time.perf_counter() - self._started_at
        if self._count < _MESSAGES_BEFORE_PAUSE and self._busy_seconds < _BUSY_SECONDS:
            return
        rest = min(max(self._busy_seconds, _MIN_PAUSE), _MAX_PAUSE)
        self._count, self._busy_seconds = 0, 0.0
        await asyncio.sleep(rest)


class OpenRequests:
    """What a server asked that has no answer yet: each keeps a task and its answer in memory."""

    def __init__(self, most: int = MAX_OPEN_REQUESTS, patience: float = _ANSWER_TIMEOUT) -> None:
        self._max_open = most
        self._timeout = patience
        self._open: set[int | str] = set()
        self._room = asyncio.Event()

    def __len__(self) -> int:
        return len(self._open)

    async def admit(self, message: "JSONRPCMessage") -> bool:
        """Whether it may be heeded; not where it asks under an id that is open. Waits while there are too many.

        Raises TimeoutError where the server takes none of the answers.
        """
        from mcp_types import JSONRPCNotification, JSONRPCRequest

        if isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            # It is no more waited for, and may get no answer.
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
        """It was written."""
        from mcp_types import JSONRPCError, JSONRPCResponse

        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._close(message.id)

    def _close(self, identity: object) -> None:
        if isinstance(identity, int | str):
            self._open.discard(identity)
            self._room.set()


_KNOWN_TYPES = frozenset({"text", "image", "audio", "resource", "resource_link"})
_MAX_TYPE_LENGTH = 100


def replace_unknown_content(result: Any) -> Any:
    """The result of a request, as it came over the wire."""
    if not isinstance(result, dict):
        return result
    found = cast("dict[str, Any]", result)
    blocks, messages = found.get("content"), found.get("messages")
    if isinstance(blocks, list):
        given = cast("list[Any]", blocks)
        first, rest = limit_parts(given)
        said = [{"type": "text", "text": omitted_parts_note(rest).text}] if rest else []
        return {**found, "content": [*(_known_block(each) for each in first), *said]}
    if isinstance(messages, list):
        # One more than is taken says that there are more.
        return {**found, "messages": [_known_message(each) for each in cast("list[Any]", messages)[: MAX_PARTS + 1]]}
    return found


def _known_message(message: Any) -> Any:
    if not isinstance(message, dict):
        return message
    found = cast("dict[str, Any]", message)
    return {**found, "content": _known_block(found.get("content"))}


def _known_block(block: Any) -> Any:
    if not isinstance(block, dict):
        return block
    kind = cast("dict[str, Any]", block).get("type")
    if kind in _KNOWN_TYPES or not isinstance(kind, str):
        return cast("dict[str, Any]", block)
    return {"type": "text", "text": f"[left out: {kind[:_MAX_TYPE_LENGTH]}, which is of no known kind]"}


MAX_SCHEMA_SECONDS = 2.0
"""Of a thread's own time, for all schemas of a server."""
MAX_SCHEMA_CHARACTERS = 400_000
"""Of descriptions and schemas of a server's tools together."""


class SchemaBudget:
    """What is left for one server's list of tools; `sign` ends it at once."""

    def __init__(self, sign: CancelToken, clock: Callable[[], float] = time.thread_time) -> None:
        self._sign = sign
        self._clock = clock
        self._deadline = clock() + MAX_SCHEMA_SECONDS
        self._characters = MAX_SCHEMA_CHARACTERS

    def has_time(self) -> bool:
        """Whether there is time left."""
        return not self._sign.is_cancelled and self._clock() < self._deadline

    def take(self, characters: int) -> bool:
        """Whether so many fit; then they are counted."""
        if characters > self._characters:
            return False
        self._characters -= characters
        return True
