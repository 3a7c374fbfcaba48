"""The repair of answers over HTTP, in whatever pieces they arrive."""

import json

import httpx2
import pytest
from mcp_types import CONNECTION_CLOSED

from desktop_agent.mcp.http_responses import Body, PendingRequest, repair_events, repair_message
from desktop_agent.mcp.limits import SERVER_FAILED

GOOD = b'{"jsonrpc":"2.0","id":1,"result":{}}'
HALVES = (b'{"jsonrpc":"2.0",', b'"id":2,"result":{}}')
HALF = b'{"jsonrpc":"2.0","id":1,"result":{"x":"a\\ud800"}}'
MANY = b'{"jsonrpc":"2.0","id":1,"result":{"x":[%b]}}' % b",".join([b"[]"] * 150_000)


MINE = PendingRequest(1)
ANYBODY = PendingRequest()


class Pieces(httpx2.AsyncByteStream):
    def __init__(self, data: bytes, size: int, broken: Exception | None = None):
        self._pieces = iter([data[start : start + size] for start in range(0, len(data), size)])
        self._broken = broken

    def __aiter__(self):
        return self

    async def __anext__(self):
        try:
            return next(self._pieces)
        except StopIteration:
            raise self._broken or StopAsyncIteration() from None


async def collect(stream, into: bytearray) -> None:
    async for chunk in stream:
        into += chunk


async def read_all(stream) -> bytes:
    await collect(stream, data := bytearray())
    return bytes(data)


async def events(data: bytes, size: int, most: int = 10_000_000, question: PendingRequest = ANYBODY):
    answer = httpx2.Response(
        200,
        headers={"content-type": "text/event-stream"},
        stream=Body(pieces := Pieces(data, size), repair_events(pieces, most, question)),
    )
    answer.request = httpx2.Request("POST", "http://host/")
    return [(event.event, event.id, event.data) async for event in httpx2.EventSource(answer)]


async def answered(data: bytes, size: int = 9, status: int = 200, question: PendingRequest = MINE):
    return json.loads(await read_all(repair_message(Pieces(data, size), 10_000_000, question, status)))


@pytest.mark.parametrize("size", [1, 7, 100_000])
async def test_an_answer_that_can_be_read_stays_and_another_is_repaired(size):
    assert await read_all(repair_message(Pieces(GOOD, size), 1_000, MINE)) == GOOD
    assert (await answered(HALF, size))["result"] == {"x": "a?"}
    assert await answered(b"[%b]" % GOOD, size) == json.loads(GOOD)
    assert await answered(b"\xef\xbb\xbf" + GOOD, size) == json.loads(GOOD)
    # The library does not read an answer for which no request waits.
    assert await read_all(repair_message(Pieces(b"<html>", size), 1_000, ANYBODY)) == b"<html>"


async def test_an_answer_is_that_to_its_question_or_says_why_there_is_none():
    other_answer = b'{"jsonrpc":"2.0","id":99,"result":{"a":1}}'
    assert await answered(b"[%b,%b]" % (other_answer, GOOD)) == json.loads(GOOD)
    assert (await answered(GOOD, question=PendingRequest("1")))["id"] == "1"
    unread = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}'
    message = await answered(unread)
    assert (message["id"], message["error"]["message"]) == (1, "what?")
    for data, why in (
        (other_answer, "another question"),
        (b"<html>", "not an answer"),
        (b" ", "empty"),
        (b"[]", "not an answer"),
    ):
        message = await answered(data)
        assert message["id"] == 1
        assert why in message["error"]["message"]


async def test_a_refusal_keeps_its_words_and_says_when_the_session_is_forgotten():
    refusal = b'{"jsonrpc":"2.0","id":"server-error","error":{"code":%d,"message":"boom"}}'
    session = PendingRequest(1, has_session=True)
    for status, code, question, expected_code in (
        (500, -32000, MINE, SERVER_FAILED),
        (500, -32602, session, -32602),
        (400, -32602, session, -32602),
        (404, -32601, session, -32601),
        (404, -32600, MINE, -32600),
        (404, -32600, session, CONNECTION_CLOSED),
        (400, -32000, session, CONNECTION_CLOSED),
    ):
        message = await answered(refusal % code, status=status, question=question)
        assert (message["id"], message["error"]) == (1, {"code": expected_code, "message": "boom"})
    # The library then uses the status.
    assert await read_all(repair_message(Pieces(b"oops", 9), 1_000, MINE, 502)) == b"oops"


async def test_too_many_values_become_a_failure_of_the_call():
    assert (await answered(MANY, 65_536))["error"]["code"]
    ((_, _, data),) = await events(b"data: %b\n\n" % MANY, 65_536)
    assert json.loads(data)["error"]["code"]


async def test_what_is_larger_than_it_may_be_ends_there():
    with pytest.raises(httpx2.ReadError):
        await read_all(repair_message(Pieces(b"x" * 2_000, 100), 1_000, MINE))
    for flood in (b"data: " + b"x" * 2_000, b"data: x\n" * 20_000, b"data:" + b"x" * 1_500 + b"\n"):
        with pytest.raises(httpx2.ReadError):
            await events(flood, 64, 1_000)


@pytest.mark.parametrize("size", [1, 2, 3, 1_000])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
async def test_events_come_as_they_were_whatever_ends_their_lines(size, end):
    good = [b": hello", b"", b"id: 4", b"event: message", b"data: " + GOOD, b"", b""]
    lines = [*good, b"data:" + HALVES[0], b"data: " + HALVES[1], b"", b""]
    (first, second) = await events(end.join(lines), size)
    assert first == ("message", "4", GOOD.decode())
    assert second[2] == b"\n".join(HALVES).decode()
    (repaired,) = await events(end.join([b"id: 5", b"data: " + HALF, b"", b""]), size)
    assert repaired[1] == "5"
    assert json.loads(repaired[2])["result"] == {"x": "a?"}


@pytest.mark.parametrize("size", [1, 2, 1_000])
@pytest.mark.parametrize("end", [b"", b"\n", b"\r", b"\r\n", b"\n: bye", b"\n\n"])
async def test_the_last_event_needs_no_blank_line_and_a_mark_at_the_start_is_no_part_of_it(size, end):
    data = b"\xef\xbb\xbfdata: " + GOOD + end
    assert await events(data, size, question=MINE) == [("message", "", GOOD.decode())]
    # An incomplete event is dropped, as nobody knows what it lacks.
    assert await events(b"id: 4\ndata: " + GOOD[:-2], size) == []
    assert await events(b"id: 4\ndata:" + end.replace(b"\n\n", b""), size) == []


async def test_what_came_whole_before_a_stream_broke_is_passed_on():
    broken = httpx2.RemoteProtocolError("cut")
    for data, expected in ((b"data: " + GOOD, b"data: " + GOOD + b"\n\n"), (b"data: " + GOOD[:-1], b"")):
        passed = bytearray()
        with pytest.raises(httpx2.RemoteProtocolError):
            await collect(repair_events(Pieces(data, 9, broken), 1_000, MINE), passed)
        assert passed == expected


@pytest.mark.parametrize("name", [b"event: message\n", b"event:message\n", b"event: result\n", b""])
async def test_an_event_of_another_name_or_id_is_the_answer_if_it_answers_the_question(name):
    note = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}'
    other_answer = b'{"jsonrpc":"2.0","id":99,"result":{"a":1}}'
    received = await events(b"id: 4\n" + name + b"data: " + GOOD + b"\n\n", 9, question=MINE)
    assert received == [("message", "4", GOOD.decode())]
    received = await events(name + b"data: [%b,%b,%b]\n\n" % (other_answer, note, GOOD), 9, question=MINE)
    assert [(name_of_event, json.loads(text)) for name_of_event, _, text in received] == [
        ("message", json.loads(note)),
        ("message", json.loads(GOOD)),
    ]
    ((_, _, text),) = await events(name + b"data: " + other_answer + b"\n\n", 9, question=MINE)
    assert "another question" in json.loads(text)["error"]["message"]
    assert len(await events(name + b"data: " + other_answer + b"\n\n", 9)) == 1


async def test_what_is_no_message_is_told_and_not_passed_on():
    noted: list[str] = []
    data = b"data:1\n\n: nothing\n\n\n\nid: 7\ndata:\n\ndata: " + GOOD + b"\n\ndata: <html>"
    passed = await read_all(repair_events(Pieces(data, 9), 1_000, ANYBODY, noted.append))
    assert passed == b"id: 7\ndata:\n\ndata: " + GOOD + b"\n\n"
    assert noted == ["1", "<html>"]
