"""Text that is held back until its meaning is known: reasoning tags and possible repetitions. Real sockets."""

import asyncio
import json
from itertools import takewhile
from typing import Any

import pytest

from desktop_agent.api.client import Client
from desktop_agent.types.blocks import ServerStep, Text, Thinking
from desktop_agent.types.engine_events import RunEnd
from desktop_agent.types.messages import MessageState
from desktop_agent.types.provider_events import AnswerNamed, ContentDelta
from desktop_agent.types.providers import Dialect
from tests.fakes.demo_server import DIALECTS
from tests.fakes.http_server import Loopback, Reply
from tests.fakes.vendor_streams import ROOTS, said
from tests.frame.patience import PATIENCE


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("pieces", [["<think>Hm.</think>Hello"], ["<th", "ink>H", "m.</thi", "nk>\n", "Hello"]])
async def test_reasoning_in_tags_is_read_in_every_dialect(dialect: Dialect, pieces: list[str]) -> None:
    async with (
        Loopback(Reply(said(dialect, pieces))) as server,
        Client(model="m", dialect=dialect, base_url=f"{server.root}/{ROOTS[dialect]}") as client,
    ):
        await client.complete("hi")
        thought, text = client.history[-1].blocks
        assert isinstance(thought, Thinking)
        assert isinstance(text, Text)
        assert (thought.text, text.text) == ("Hm.", "Hello")
        # No server gets it back in a form that it would refuse.
        await client.complete("again")
        assert "Hello" in server.requests[-1].body.decode()


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("pieces", [["<thi"], ["ab", "abc"], ["\n <", "seed:th"]], ids=["a tag", "again", "two pieces"])
async def test_stop_loses_nothing_that_was_received(dialect: Dialect, pieces: list[str]) -> None:
    # All in one piece: when the answer's id is known, the rest has been read too.
    begun = b"".join(takewhile(lambda event: b"never sent" not in event, said(dialect, [*pieces, "never sent"])))
    async with (
        Loopback(Reply(begun, hold=asyncio.Event())) as server,
        Client(model="m", dialect=dialect, base_url=f"{server.root}/{ROOTS[dialect]}") as client,
    ):
        async with asyncio.timeout(PATIENCE):
            async for event in client.stream("hi"):
                if isinstance(event, AnswerNamed):
                    client.interrupt()
        answer = client.history[-1]
        assert client.ended is RunEnd.CANCELLED
        assert (answer.text.strip(), answer.state) == ("".join(pieces).strip(), MessageState.INTERRUPTED)


STEP = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}}
OPEN_REASONING: list[dict[str, Any]] = [
    {"type": "response.output_item.added", "item": {"id": "rs_1", "type": "reasoning", "summary": []}},
    {"type": "response.reasoning_text.delta", "item_id": "rs_1", "delta": "Hm"},
    {"type": "response.output_item.added", "item": {**STEP, "status": "in_progress"}},
    {"type": "response.output_item.done", "item": STEP},
]


def begun(dialect: str, shape: str) -> bytes:
    """Return an answer up to a place where part of it is held back."""
    if shape == "a step":
        created = {"type": "response.created", "response": {"id": "resp_1"}}
        return b"".join(f"data: {json.dumps(frame)}\n\n".encode() for frame in (created, *OPEN_REASONING))
    pieces = {"a tag": ["<think>Hm, ", "so</thi"], "again": ["I am here", "I am here, and so are you."]}[shape]
    return b"".join(takewhile(lambda event: b"never sent" not in event, said(dialect, [*pieces, "never sent"])))


async def kept(dialect: Dialect, reply: Reply, *, stops: bool) -> list[tuple[type, str]]:
    async with (
        Loopback(reply) as server,
        Client(model="m", dialect=dialect, base_url=f"{server.root}/{ROOTS[dialect]}") as client,
    ):
        async with asyncio.timeout(PATIENCE):
            async for event in client.stream("hi"):
                if stops and isinstance(event, AnswerNamed):
                    client.interrupt()
        assert client.ended is (RunEnd.CANCELLED if stops else RunEnd.FAILED)
        return [(type(block), getattr(block, "text", "")) for block in client.history[-1].blocks]


@pytest.mark.parametrize(
    ("dialect", "shape"),
    [*((dialect, shape) for dialect in DIALECTS for shape in ("a tag", "again")), ("openai-responses", "a step")],
)
async def test_stop_keeps_what_a_cut_keeps(dialect: Dialect, shape: str) -> None:
    body = begun(dialect, shape)
    stopped = await kept(dialect, Reply(body, hold=asyncio.Event()), stops=True)
    assert stopped == await kept(dialect, Reply(body, cut=True), stops=False)
    assert (
        stopped
        == {
            "a tag": [(Thinking, "Hm, so</thi")],
            "again": [(Text, "I am here, and so are you.")],
            "a step": [(Thinking, "Hm"), (ServerStep, "q")],
        }[shape]
    )


def data(*events: dict[str, Any]) -> bytes:
    return b"".join(f"data: {json.dumps(each)}\n\n".encode() for each in events)


REPORTED = {
    "anthropic": data(
        {"type": "message_start", "message": {"usage": {"input_tokens": 100, "cache_read_input_tokens": 900}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hi"}},
    ),
    "gemini": data(
        {
            "candidates": [{"content": {"parts": [{"text": "Hi"}]}}],
            "usageMetadata": {"promptTokenCount": 1000, "cachedContentTokenCount": 900, "totalTokenCount": 1000},
        }
    ),
    "openai-chat": data(
        {
            "choices": [{"index": 0, "delta": {"content": "Hi"}}],
            "usage": {"prompt_tokens": 1000, "prompt_tokens_details": {"cached_tokens": 900}},
        }
    ),
}


@pytest.mark.parametrize("dialect", [dialect for dialect in DIALECTS if dialect in REPORTED])
async def test_stop_keeps_what_the_server_said_that_was_used(dialect: Dialect) -> None:
    """Usage is billed, stopped or not. The Responses dialect reports none before the end."""
    async with (
        Loopback(Reply(REPORTED[dialect], hold=asyncio.Event())) as server,
        Client(model="m", dialect=dialect, base_url=f"{server.root}/{ROOTS[dialect]}") as client,
    ):
        async with asyncio.timeout(PATIENCE):
            async for event in client.stream("hi"):
                if isinstance(event, ContentDelta):
                    client.interrupt()
        answer = client.history[-1]
    assert answer.state is MessageState.INTERRUPTED
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.cache_read_tokens) == (1000, 900)
