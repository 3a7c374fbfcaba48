"""Answers over HTTP, in whatever pieces they come."""

import json

import httpx2
import pytest

from desktop_agent.tools.mcp.wire.answers import EventStream, WholeAnswer

GOOD = b'{"jsonrpc":"2.0","id":1,"result":{}}'
HALVES = (b'{"jsonrpc":"2.0",', b'"id":2,"result":{}}')
HALF = b'{"jsonrpc":"2.0","id":1,"result":{"x":"a\\ud800"}}'
MANY = b'{"jsonrpc":"2.0","id":1,"result":{"x":[%b]}}' % b",".join([b"[]"] * 150_000)


class Pieces(httpx2.AsyncByteStream):
    def __init__(self, data: bytes, size: int):
        self._pieces = iter([data[at : at + size] for at in range(0, len(data), size)])

    def __aiter__(self):
        return self

    async def __anext__(self):
        try:
            return next(self._pieces)
        except StopIteration:
            raise StopAsyncIteration from None


async def whole(stream) -> bytes:
    return b"".join([piece async for piece in stream])


async def events(data: bytes, size: int, most: int = 10_000_000):
    answer = httpx2.Response(
        200, headers={"content-type": "text/event-stream"}, stream=EventStream(Pieces(data, size), most)
    )
    answer.request = httpx2.Request("POST", "http://host/")
    return [(each.event, each.id, each.data) async for each in httpx2.EventSource(answer)]


@pytest.mark.parametrize("size", [1, 7, 100_000])
async def test_an_answer_that_can_be_read_stays_and_another_is_repaired(size):
    assert await whole(WholeAnswer(Pieces(GOOD, size), 1_000)) == GOOD
    assert json.loads(await whole(WholeAnswer(Pieces(HALF, size), 1_000)))["result"] == {"x": "a?"}
    assert await whole(WholeAnswer(Pieces(b"<html>", size), 1_000)) == b"<html>"
    assert json.loads(await whole(WholeAnswer(Pieces(b"[%b]" % GOOD, size), 1_000))) == json.loads(GOOD)


async def test_too_many_values_become_a_failure_of_the_call():
    assert json.loads(await whole(WholeAnswer(Pieces(MANY, 65_536), 10_000_000)))["error"]["code"]
    ((_, _, data),) = await events(b"data: %b\n\n" % MANY, 65_536)
    assert json.loads(data)["error"]["code"]


async def test_what_is_larger_than_it_may_be_ends_there():
    with pytest.raises(httpx2.ReadError):
        await whole(WholeAnswer(Pieces(b"x" * 2_000, 100), 1_000))
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


async def test_what_is_no_message_is_told_and_not_passed_on():
    told: list[str] = []
    data = b"data:1\n\n: nothing\n\n\n\nid: 7\ndata:\n\ndata: " + GOOD + b"\n\ndata: <html>"
    passed = await whole(EventStream(Pieces(data, 9), 1_000, told.append))
    assert passed == b"id: 7\ndata:\n\ndata: " + GOOD + b"\n\n"
    assert told == ["1", "<html>"]
