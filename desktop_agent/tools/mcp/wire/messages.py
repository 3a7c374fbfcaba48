"""Messages from bytes: bounded by how many values they hold, repaired where that is possible, else answered for.

A message that cannot be read must not leave a call waiting: one with an id becomes a failure of that call.
"""

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from desktop_agent.tools.answers import clean_json
from desktop_agent.tools.json_pieces import is_nested_deeper

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
