"""Interleaved items: every character is shown when it arrives, and stored however the answer ends."""

import asyncio
import json
import random
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from desktop_agent.api.client import Client
from desktop_agent.conversation.answer_builder import AnswerBuilder
from desktop_agent.providers.provider import make_provider
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.types.blocks import Text, Thinking
from desktop_agent.types.errors import ProviderError
from desktop_agent.types.messages import Message, MessageState, now
from desktop_agent.types.options import AgentOptions
from desktop_agent.types.provider_events import ContentDelta, Done, ThinkingDelta
from tests.fakes.http_server import Loopback, Reply
from tests.fakes.recordings import simple_request
from tests.frame.patience import PATIENCE

WORDS = ["one ", "zwei ", "trois ", "четыре ", "五 ", "😀 ", "\n\n", "<b>", "seven "]
LIMIT = PATIENCE
Ending = Literal["cut", "error", "stop"]


@dataclass
class Item:
    thinks: bool
    pieces: list[str]

    @property
    def whole(self) -> str:
        return "".join(self.pieces)


def items_of(seed: int, most: int = 4) -> list[Item]:
    chance = random.Random(seed)
    return [
        Item(chance.random() < 0.4, ["w", *(chance.choice(WORDS) for _ in range(chance.randint(1, 9)))])
        for _ in range(chance.randint(2, most))
    ]


def turns(items: list[Item], seed: int) -> list[tuple[int, str]]:
    """Return (item index, piece) in a random order that keeps each item's pieces in order."""
    chance = random.Random(seed)
    remaining = {index: list(item.pieces) for index, item in enumerate(items)}
    order: list[tuple[int, str]] = []
    while remaining:
        index = chance.choice(list(remaining))
        order.append((index, remaining[index].pop(0)))
        if not remaining[index]:
            del remaining[index]
    return order


def data(value: Any, name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(value, ensure_ascii=False)}\n\n".encode()


def responses(items: list[Item], seed: int) -> list[bytes]:
    numbered = seed % 2 == 0  # llama.cpp numbers nothing
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {"id": "resp_1"}}]
    for index, item in enumerate(items):
        part_type = {"type": "reasoning", "summary": []} if item.thinks else {"type": "message", "content": []}
        number = {"output_index": index} if numbered else {}
        events.append({"type": "response.output_item.added", "item": {"id": f"i{index}", **part_type}, **number})
    for index, piece in turns(items, seed):
        part_type = "reasoning_text" if items[index].thinks else "output_text"
        number = {"output_index": index, "content_index": 0} if numbered else {}
        events.append({"type": f"response.{part_type}.delta", "item_id": f"i{index}", "delta": piece, **number})
    return [data(event, event["type"]) for event in events]


def anthropic(items: list[Item], seed: int) -> list[bytes]:
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {"id": "msg_1", "usage": {}}}]
    for index, item in enumerate(items):
        block = {"type": "thinking", "thinking": ""} if item.thinks else {"type": "text", "text": ""}
        events.append({"type": "content_block_start", "index": index, "content_block": block})
    for index, piece in turns(items, seed):
        part_type = "thinking" if items[index].thinks else "text"
        delta = {"type": f"{part_type}_delta", part_type: piece}
        events.append({"type": "content_block_delta", "index": index, "delta": delta})
    return [data(event, event["type"]) for event in events]


def chat(items: list[Item], seed: int) -> list[bytes]:
    fields = ("content", "reasoning_content")
    deltas = ({fields[items[index].thinks]: piece} for index, piece in turns(items, seed))
    return [data({"choices": [{"index": 0, "delta": delta}]}) for delta in deltas]


def gemini(items: list[Item], seed: int) -> list[bytes]:
    parts = (
        {"text": piece, **({"thought": True} if items[index].thinks else {})} for index, piece in turns(items, seed)
    )
    return [data({"candidates": [{"content": {"role": "model", "parts": [part]}}]}) for part in parts]


MAKERS = {"openai-chat": chat, "openai-responses": responses, "anthropic": anthropic, "gemini": gemini}
HAS_ITEMS = ("openai-responses", "anthropic")
ERROR = data({"type": "error", "error": {"type": "overloaded_error", "message": "busy", "code": 503}}, "error")


async def answer_of(dialect: str, server: Loopback, characters: int) -> tuple[Message, str | None]:
    """Read until `characters` arrived or the answer ended; return the message and the kind of the error."""
    http = HttpClient()
    root = server.root if dialect in ("anthropic", "gemini") else server.url
    events = make_provider(dialect, root, None, http).stream(simple_request())
    answer, character_count, failure = AnswerBuilder("m", "model"), 0, None
    try:
        async with asyncio.timeout(LIMIT):
            async for event in events:
                answer.feed(event, now())
                character_count += len(event.text) if isinstance(event, ContentDelta | ThinkingDelta) else 0
                if character_count >= characters:
                    break
    except ProviderError as error:
        failure = error.kind
    finally:
        await events.aclose()
        await http.aclose()
    return answer.message(MessageState.INTERRUPTED, now()), failure


@pytest.mark.parametrize("ending", ["cut", "error", "stop"])
@pytest.mark.parametrize("dialect", MAKERS)
async def test_all_that_came_is_kept(dialect: str, ending: Ending) -> None:
    for seed in range(12):
        items = items_of(seed)
        body = MAKERS[dialect](items, seed)
        reply = {
            "cut": Reply(body, cut=True),
            "error": Reply([*body, ERROR]),
            "stop": Reply(body, hold=asyncio.Event()),
        }[ending]
        async with Loopback(reply) as server:
            total = sum(len(item.whole) for item in items)
            message, failure = await answer_of(dialect, server, total if ending == "stop" else total + 1)
        assert failure == {"cut": "truncated", "error": "overloaded", "stop": None}[ending]
        if dialect in HAS_ITEMS:
            blocks = [(isinstance(block, Thinking), block.text) for block in message.blocks]
            assert blocks == [(item.thinks, item.whole) for item in items]
            continue
        order = turns(items, seed)
        for block_class, thinks in ((Text, False), (Thinking, True)):
            text = "".join(block.text for block in message.blocks if isinstance(block, block_class))
            assert text == "".join(piece for index, piece in order if items[index].thinks is thinks)


@pytest.mark.parametrize("dialect", MAKERS)
async def test_every_piece_is_shown_before_the_next_one_comes(dialect: str) -> None:
    items = items_of(3)
    pieces = MAKERS[dialect](items, 3)
    texts = [piece for _, piece in turns(items, 3)]
    first = len(pieces) - len(texts)
    for count in range(1, len(texts) + 1):
        async with Loopback(Reply(pieces[: first + count], hold=asyncio.Event())) as server:
            total = sum(map(len, texts[:count]))
            message, failure = await answer_of(dialect, server, total)
        assert failure is None
        assert sum(len(block.text) for block in message.blocks) == total


LLAMA_TEXT = [f"word{number} " for number in range(40)]
LLAMA_THOUGHT = ["I ", "think ", "so."]


def llama(pieces: int) -> list[bytes]:
    """Return events in llama.cpp's order: reasoning ends after all the text, nothing is numbered (server-task.cpp)."""
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {"id": "resp_1", "object": "response", "status": "in_progress"}},
        {"type": "response.in_progress", "response": {"id": "resp_1", "object": "response", "status": "in_progress"}},
        {
            "type": "response.output_item.added",
            "item": {
                "id": "rs_1",
                "summary": [],
                "type": "reasoning",
                "content": [],
                "encrypted_content": "",
                "status": "in_progress",
            },
        },
    ]
    events += [
        {"type": "response.reasoning_text.delta", "delta": fragment, "item_id": "rs_1"} for fragment in LLAMA_THOUGHT
    ]
    begun = {"content": [], "id": "msg_1", "role": "assistant", "status": "in_progress", "type": "message"}
    events += [
        {"type": "response.output_item.added", "item": begun},
        {"type": "response.content_part.added", "item_id": "msg_1", "part": {"type": "output_text", "text": ""}},
    ]
    events += [
        {"type": "response.output_text.delta", "item_id": "msg_1", "delta": fragment}
        for fragment in LLAMA_TEXT[:pieces]
    ]
    return [data(event, event["type"]) for event in events]


def llama_end() -> list[bytes]:
    text, thought = "".join(LLAMA_TEXT), "".join(LLAMA_THOUGHT)
    reasoning = {
        "id": "rs_1",
        "summary": [],
        "type": "reasoning",
        "content": [{"text": thought, "type": "reasoning_text"}],
        "encrypted_content": "",
        "status": "completed",
    }
    part = {"type": "output_text", "annotations": [], "logprobs": [], "text": text}
    message = {"type": "message", "status": "completed", "id": "msg_1", "content": [part], "role": "assistant"}
    usage = {"input_tokens": 9, "output_tokens": 43, "total_tokens": 52}
    response = {"id": "resp_1", "object": "response", "status": "completed", "output": [reasoning, message]}
    events = [
        {"type": "response.output_item.done", "item": reasoning},
        {"type": "response.output_text.done", "item_id": "msg_1", "text": text},
        {"type": "response.content_part.done", "item_id": "msg_1", "part": part},
        {"type": "response.output_item.done", "item": message},
        {"type": "response.completed", "response": {**response, "usage": usage}},
    ]
    return [data(event, str(event["type"])) for event in events]


async def test_reasoning_that_ends_behind_the_text_stands_before_it_with_its_state() -> None:
    async with Loopback(Reply([*llama(40), *llama_end()])) as server:
        http = HttpClient()
        provider = make_provider("openai-responses", server.url, None, http)
        answer, kinds = AnswerBuilder("m", "model"), list[type]()
        async for event in provider.stream(simple_request()):
            answer.feed(event, now())
            kinds.append(type(event))
        await http.aclose()
    thought, text = answer.message(MessageState.COMPLETE, now()).blocks
    assert isinstance(thought, Thinking)
    assert isinstance(text, Text)
    assert (thought.text, text.text) == ("".join(LLAMA_THOUGHT), "".join(LLAMA_TEXT))
    assert thought.metadata["item"]["id"] == "rs_1"
    assert (kinds.count(ContentDelta), kinds[-1]) == (40, Done)


async def test_stop_keeps_what_a_run_showed_beside_open_reasoning() -> None:
    async with Loopback(Reply(llama(40), hold=asyncio.Event())) as server:
        options = AgentOptions(model="m", dialect="openai-responses", base_url=server.url)
        async with asyncio.timeout(LIMIT), Client(options) as client:
            character_count = 0
            async for event in client.stream("hi"):
                character_count += isinstance(event, ContentDelta) and len(event.text)
                if character_count == len("".join(LLAMA_TEXT)):
                    client.interrupt()
            message = client.history[-1]
    assert message.state is MessageState.INTERRUPTED
    assert [block.text for block in message.blocks] == ["".join(LLAMA_THOUGHT), "".join(LLAMA_TEXT)]
