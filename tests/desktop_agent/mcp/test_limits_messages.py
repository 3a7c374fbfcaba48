"""The parsing of the bytes that a hostile server sends."""

import json

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from desktop_agent.mcp import limits
from desktop_agent.mcp.diagnostics import is_connection_lost
from desktop_agent.mcp.limits import MAX_LOG_MESSAGE_BYTES, MAX_VALUES, SERVER_FAILED, count_values, parse_messages


def answer(inside: str, call: str = "7") -> bytes:
    return f'{{"jsonrpc":"2.0","id":{call},"result":{{"x":{inside}}}}}'.encode()


def parse_only(data: bytes):
    (message,) = parse_messages(data).messages
    return message


def test_what_can_be_read_comes_as_it_is():
    parsed = parse_messages(answer('"\\u00e4"'))
    assert parsed.is_whole
    assert parsed.messages[0].result == {"x": "ä"}


@pytest.mark.parametrize("inside", [",".join(["[]"] * 200_000), ",".join(["{}"] * 200_000)])
@pytest.mark.parametrize("order", [answer, lambda inside: b'{"result":{"x":%b},"id":7}' % inside.encode()])
def test_an_answer_of_too_many_values_fails_its_call_unread(inside, order, monkeypatch):
    parsed = []
    monkeypatch.setattr(limits.json, "loads", lambda text, **_: parsed.append(len(text)) or int(text))
    message = parse_only(order(f"[{inside}]"))
    assert isinstance(message, JSONRPCError)
    assert message.id == 7
    assert "values" in message.error.message
    assert parsed == [1]  # the id alone


def test_signs_within_a_text_are_no_values():
    table = json.dumps('a,b,"c\\",[{' * 50_000)
    assert count_values(answer(table)) < 10
    assert parse_messages(answer(table)).is_whole


def test_counting_ends_where_there_is_enough(monkeypatch):
    looked = []
    counted = limits._count_separators
    monkeypatch.setattr(limits, "_count_separators", lambda *span: looked.append(span) or counted(*span))
    count_values(b'["a",' * 1_000_000)
    assert len(looked) < MAX_VALUES + 10


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        (b'"a\\ud800b"', "a?b"),
        (b'"a\xff"', "a�"),
        (b'"tail\\udc00"', "tail?"),
        (b"9" * 5_000, "9" * 5_000),
        (b"[1," + b"9" * 301 + b",1e999999]", None),
    ],
)
def test_what_only_python_can_read_is_repaired(inside, expected):
    message = parse_only(b'{"jsonrpc":"2.0","id":"q","result":{"x":%b}}' % inside)
    assert isinstance(message, JSONRPCResponse)
    assert expected is None or message.result == {"x": expected}


@pytest.mark.parametrize(
    "data",
    [
        answer("[" * 100_000 + "]" * 100_000),
        answer("[" * 400 + "]" * 400),
        b'{"jsonrpc":"2.0","id":7,"result":{"x":',
        b'{"jsonrpc":"2.0","id":7,"result":"no object"}',
        b'{"jsonrpc":"2.0","id":7,"result":{"method":"x","y":[}}',
    ],
)
def test_what_nobody_can_read_fails_its_call_at_once(data):
    message = parse_only(data)
    assert isinstance(message, JSONRPCError)
    assert message.id == 7


def test_a_failure_of_the_server_is_not_taken_for_the_end_of_the_connection():
    message = parse_only(b'{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"no","data":[1]}}')
    assert isinstance(message, JSONRPCError)
    assert (message.id, message.error.message, message.error.data) == (7, "no", [1])
    assert message.error.code == SERVER_FAILED
    assert not is_connection_lost(MCPError(message.error.code, message.error.message))
    assert is_connection_lost(MCPError(CONNECTION_CLOSED, "Connection closed"))


def test_a_request_that_is_too_much_is_answered_by_the_library_without_its_inside():
    request = b'{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"x":[%b]}}'
    for count in (20_000, 200_000):
        message = parse_only(request % b",".join([b"1"] * count))
        assert isinstance(message, JSONRPCRequest)
        assert (message.id, message.method, message.params) == ("e", "elicitation/create", {})


def test_a_large_message_for_the_log_is_a_word_about_it():
    log_message = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"%b"}}'
    small, large = parse_only(log_message % b"x"), parse_only(log_message % (b"x" * MAX_LOG_MESSAGE_BYTES))
    assert isinstance(small, JSONRPCNotification)
    assert small.params == {"level": "error", "data": "x"}
    assert "left out" in large.params["data"]


def test_a_batch_is_taken_apart():
    first = json.loads(answer("1"))
    messages = parse_messages(json.dumps([first, "odd", {"jsonrpc": "2.0", "id": 8, "result": {}}]).encode()).messages
    assert [message.id for message in messages] == [7, 8]


@pytest.mark.parametrize("data", [b"Listening on port 80", b"<html>", b"", b"5", b'{"a": ', b"\xff\xfe"])
def test_what_is_no_message_is_none(data):
    assert parse_messages(data).messages == ()
