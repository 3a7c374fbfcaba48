"""Messages from bytes: bounded by how many values they hold, repaired where that is possible, else answered for.

A message that cannot be read must not leave a call waiting: one with an id becomes a failure of that call.
"""

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from desktop_agent.tools.answers import clean
from desktop_agent.tools.json_pieces import is_nested_deeper

if TYPE_CHECKING:
    from mcp_types import JSONRPCError, JSONRPCMessage

MOST_VALUES = 100_000
"""Of one message: the library's models take a second for some hundred thousand."""
MOST_ASKED = 10_000
"""Of what a server asks of us."""
LARGEST_LOGGED = 50_000
"""Bytes of one message for the log."""
MOST_IN_BATCH = 100
SERVER_FAILED = -32099
"""In place of -32000, which servers say of any failure of theirs, and the library of a connection that is gone."""
MOST_LEVELS = 200
_PIECE = 1_000_000
_NEAR = 4_000
_MOST_DIGITS = 300
_ID = re.compile(rb'(?<!\\)"id"\s*:\s*(-?\d{1,18}|"[^"\\]{0,200}")')
_METHOD = re.compile(rb'(?<!\\)"method"\s*:\s*"([a-zA-Z/_.-]{1,100})"')
_ANSWER = re.compile(rb'(?<!\\)"(result|error)"\s*:')
_VALUES = (b",", b"[", b"{")


@dataclass(frozen=True, slots=True)
class Read:
    """`is_whole`: these are what came, unchanged. `is_json`: what came could be read, and not only who meant it."""

    messages: "tuple[JSONRPCMessage, ...]"
    is_whole: bool = False
    is_json: bool = True


def read(data: bytes) -> Read:
    """Those of a line, an answer or an event; none where it is no message at all. Large ones need a thread."""
    from mcp_types import jsonrpc_message_adapter

    count = values_in(data)
    if count > MOST_VALUES:
        return Read(_instead(data, f"it holds more than {MOST_VALUES:,} values"), is_json=False)
    try:
        message = jsonrpc_message_adapter.validate_json(data, by_name=False)
    except (ValueError, RecursionError):
        return _repaired(data)
    bounded = _bounded(message, len(data), count)
    return Read((bounded,), is_whole=bounded is message)


def values_in(data: bytes) -> int:
    """About how many values JSON holds; as far as MOST_VALUES and one more.

    Signs within texts are not counted where that matters: a text may be a large table.
    """
    if _counted(data, 0, len(data)) <= MOST_VALUES:
        return _counted(data, 0, len(data))
    count, at = 0, 0
    while at < len(data) and count <= MOST_VALUES:
        begin = data.find(b'"', at)
        count += _counted(data, at, len(data) if begin < 0 else begin)
        if begin < 0:
            break
        at = _after_text(data, begin + 1)
    return count


def _counted(data: bytes, start: int, end: int) -> int:
    # Piece by piece: other threads wait while the bytes are gone through.
    pieces = range(start, end, _PIECE)
    return sum(data.count(sign, at, min(at + _PIECE, end)) for at in pieces for sign in _VALUES)


def _after_text(data: bytes, at: int) -> int:
    while (end := data.find(b'"', at)) >= 0:
        before = end
        while before > at and data[before - 1] == ord("\\"):
            before -= 1
        at = end + 1
        if (end - before) % 2 == 0:
            return at
    return len(data)


def _bounded(message: "JSONRPCMessage", size: int, count: int) -> "JSONRPCMessage":
    from mcp_types import CONNECTION_CLOSED, JSONRPCError, JSONRPCNotification, JSONRPCRequest

    if isinstance(message, JSONRPCError) and message.error.code == CONNECTION_CLOSED:
        return with_code(message, SERVER_FAILED)
    if isinstance(message, JSONRPCRequest) and count > MOST_ASKED:
        # The library answers by itself that something is missing.
        return JSONRPCRequest(jsonrpc="2.0", id=message.id, method=message.method, params={})
    if isinstance(message, JSONRPCNotification) and size > LARGEST_LOGGED and message.method == "notifications/message":
        said: dict[str, Any] = {"level": "info", "data": f"[left out: a message of {size:,} bytes]"}
        return JSONRPCNotification(jsonrpc="2.0", method=message.method, params=said)
    return message


def with_code(message: "JSONRPCError", code: int) -> "JSONRPCError":
    """The same failure under another number."""
    return message.model_copy(update={"error": message.error.model_copy(update={"code": code})})


def _repaired(data: bytes) -> Read:
    """Half characters, bytes that are no UTF-8 and huge numbers are replaced; batches are taken apart."""
    try:
        found: Any = json.loads(data.decode("utf-8", "replace"), parse_int=_integer)
        found = None if is_nested_deeper(found, MOST_LEVELS) else clean(found)
    except (ValueError, RecursionError):
        found = None
    if found is None:
        instead = _instead(data, "it is no JSON, or nested too deep") if data.lstrip()[:1] in (b"{", b"[") else ()
        return Read(instead, is_json=False)
    batch = cast("list[Any]", found) if isinstance(found, list) else [found]
    return Read(tuple(message for each in batch[:MOST_IN_BATCH] for message in _single(each)))


def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) <= _MOST_DIGITS else digits


def _single(value: Any) -> "tuple[JSONRPCMessage, ...]":
    from mcp_types import jsonrpc_message_adapter

    if not isinstance(value, dict):
        return ()
    try:
        return (_bounded(jsonrpc_message_adapter.validate_python(value, by_name=False), 0, 0),)
    except (ValueError, RecursionError):
        named = cast("dict[str, Any]", value)
        call = named.get("id")
        is_answer = "method" not in named and isinstance(call, int | str) and not isinstance(call, bool)
        return (unreadable(call, "it is no message of the protocol"),) if is_answer and call is not None else ()


def _instead(data: bytes, why: str) -> "tuple[JSONRPCMessage, ...]":
    """What stands for a message that is not read: by its id alone, which stands near an end of it."""
    from mcp_types import JSONRPCRequest

    call, method = _near(_ID, data), _near(_METHOD, data)
    if call is None:
        return ()
    identity = cast("int | str", json.loads(call))
    if method is not None and _near(_ANSWER, data) is None:
        return (JSONRPCRequest(jsonrpc="2.0", id=identity, method=method.decode(), params={}),)
    return (unreadable(identity, why),)


def _near(pattern: re.Pattern[bytes], data: bytes) -> bytes | None:
    found = pattern.search(data, 0, _NEAR) or pattern.search(data, max(0, len(data) - _NEAR))
    return found[1] if found else None


def unreadable(call: int | str, why: str) -> "JSONRPCError":
    """What stands for an answer that cannot be made use of."""
    return failed(call, f"its answer cannot be read: {why}")


def failed(call: int | str, message: str) -> "JSONRPCError":
    """The failure of a call, in words of ours."""
    from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError

    return JSONRPCError(jsonrpc="2.0", id=call, error=ErrorData(code=INTERNAL_ERROR, message=message))
