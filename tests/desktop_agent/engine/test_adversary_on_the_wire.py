"""A hostile model server, over a real socket and through a dialect: see test_adversary.py."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.providers.provider import make_provider
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.types.blocks import Outcome as CallOutcome
from desktop_agent.types.engine_events import RunEnd, ToolFinished, ToolStarted
from desktop_agent.types.messages import Message
from desktop_agent.types.policies import Limits
from tests.desktop_agent.engine.enemy import SMALL, Arena, Outcome, Peak, arena
from tests.desktop_agent.engine.hostile_server import (
    HostileServer,
    Written,
    event,
    fine,
    piece_of_call,
    repeated,
    these,
)
from tests.fakes.agent_run import tool
from tests.fakes.http_server import chunk, sse
from tests.frame.selection import few

READ = tool("read", read_only=True)
ONE_ANSWER = Outcome(RunEnd.LIMIT, ["the length of one answer"], [])
MEGABYTE = 1_000_000
WIRE = 2 * MEGABYTE
"""Characters that may be under way: in the socket, in its buffers, in what was read at once."""


@asynccontextmanager
async def fighting(
    folder: Path, answer: Callable[[int], Written], limits: Limits = SMALL, *, status: int = 200
) -> AsyncIterator[Arena]:
    http = HttpClient()
    async with HostileServer(answer, status=status) as server:
        provider = make_provider("openai-chat", server.url, None, http)
        try:
            async with arena(folder, provider, limits, tools=(READ,), enemy=server) as place:
                yield place
        finally:
            await provider.aclose()
            await http.aclose()


async def fought(
    folder: Path,
    answer: Callable[[int], Written],
    limits: Limits = SMALL,
    *,
    uncounted: int = WIRE,
    status: int = 200,
) -> tuple[Outcome, Arena]:
    async with fighting(folder, answer, limits, status=status) as place:
        with Peak(limits, uncounted):
            outcome = await place.fight()
        await place.check_still_works()
        return outcome, place


FLOODS: dict[str, Callable[[int], dict[str, Any]]] = {
    "text": lambda n: chunk({"content": f"word {n} "}),
    "thinking": lambda n: chunk({"reasoning_content": f"hm {n} "}),
    "text and thinking in turn": lambda n: chunk({"content" if n % 2 else "reasoning_content": "a"}),
    "pieces of a call": lambda n: piece_of_call("1234 ", **({} if n else {"id": "c", "name": "read"})),
    "pieces of a call that is never named": lambda n: piece_of_call("1234567890" * 10),
    "calls that are never named": lambda n: piece_of_call("", n, name="read"),
    "calls that only begin": lambda n: piece_of_call("", n, id=f"c{n}", name="read"),
    "calls": lambda n: piece_of_call(json.dumps({"word": str(n)}), n, id=f"c{n}", name="read"),
}


@pytest.mark.parametrize("flood", few(FLOODS, 3, "test_adversary.py, without the wire"))
async def test_a_flood_of_anything_ends_and_the_connection_with_it(tmp_path: Path, flood: str) -> None:
    async with fighting(tmp_path, lambda _: repeated(FLOODS[flood])) as place:
        with Peak(SMALL, WIRE):
            assert await place.fight() == ONE_ANSWER
        await place.until(lambda: place.enemy.disconnects == 1)
        assert not place.of(ToolStarted)
        await place.check_still_works()


async def test_what_comes_behind_the_end_counts_once(tmp_path: Path) -> None:
    late = piece_of_call('{"word": "a"}', id="late", name="read")
    whole = sse(chunk({"content": "Said."}), chunk({}, "stop"), "[DONE]", chunk({"content": " And more."}), late)
    outcome, place = await fought(tmp_path, lambda number: these(whole) if number == 0 else fine())
    assert outcome == Outcome(RunEnd.COMPLETED, [], [])
    assert place.session.history[1].text == "Said. And more."
    assert [event.outcome for event in place.of(ToolFinished)] == [CallOutcome.SUCCEEDED]


async def test_signs_of_life_for_ever_end_with_stop(tmp_path: Path) -> None:
    async def alive(_: int) -> Written:
        while True:
            yield b": alive\n\n"
            await asyncio.sleep(0)

    async with fighting(tmp_path, alive) as place:
        with Peak(SMALL, WIRE):
            place.session.send(Message.user("go"))
            await place.until(lambda: place.enemy.requests)
            await asyncio.sleep(0.2)
            place.session.interrupt()
            await place.session.wait_idle()
        assert place.outcome() == Outcome(RunEnd.CANCELLED, [], [])
        await place.until(lambda: place.enemy.disconnects == 1)
        await place.check_still_works()


async def test_it_is_too_long_for_ever(tmp_path: Path) -> None:
    body = json.dumps({"error": {"code": "context_length_exceeded", "message": "too long"}}).encode()
    outcome, place = await fought(tmp_path, lambda _: these(body), status=400)
    assert outcome == Outcome(RunEnd.FAILED, [], ["context_length"])
    assert place.enemy.requests <= 2


async def test_an_error_without_end(tmp_path: Path) -> None:
    async def endless(_: int) -> Written:
        while True:
            yield b"x" * 64_000

    outcome, _ = await fought(tmp_path, endless, status=400)
    assert outcome == Outcome(RunEnd.FAILED, [], ["invalid_request"])


@pytest.mark.exhaustive("tests/desktop_agent/agent/tool_calls/test_many.py, without the wire")
async def test_ten_thousand_calls_in_one_answer(tmp_path: Path) -> None:
    count, limits = 10_000, Limits(tool_iterations=1)

    async def many(_: int) -> Written:
        for first in range(0, count, 100):
            calls = (piece_of_call(f'{{"word": "{n}"}}', n, id=f"c{n}", name="read") for n in range(first, first + 100))
            yield b"".join(map(event, calls))
        yield sse(chunk({}, "tool_calls"))

    async with fighting(tmp_path, many, limits) as place:
        outcome = await place.fight()
        await place.check_still_works()
    assert outcome == Outcome(RunEnd.LIMIT, ["calls of one answer", "tool rounds"], [])
    ends = [event.outcome for event in place.of(ToolFinished)]
    assert ends.count(CallOutcome.SUCCEEDED) == limits.calls_per_turn
    assert ends.count(CallOutcome.LIMIT) == count - limits.calls_per_turn


async def test_fifty_megabytes_of_arguments(tmp_path: Path) -> None:
    size, part = 50 * MEGABYTE, 64_000

    async def pieces(_: int) -> Written:
        yield event(piece_of_call('{"word": "', id="c", name="read"))
        for _ in range(size // part):
            yield event(piece_of_call("x" * part))
        yield sse(piece_of_call('"}'), chunk({}, "tool_calls"))

    async def whole(_: int) -> Written:
        yield b'data: {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "c", "function": '
        yield b'{"name": "read", "arguments": "'
        for _ in range(size // part):
            yield b"x" * part
        yield b'"}}]}}]}\n\n'

    outcome, place = await fought(tmp_path / "pieces", pieces, Limits())
    assert outcome == ONE_ANSWER
    assert not place.of(ToolStarted)
    outcome, place = await fought(tmp_path / "whole", whole, uncounted=size)
    assert outcome == Outcome(RunEnd.FAILED, [], ["unreadable"])
    assert not place.of(ToolStarted)
