"""Items that a server writes side by side: every character is shown as it comes, and kept however the answer ends."""

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
    """Which item says what, one after the other, in a random order."""
    chance = random.Random(seed)
    left = {place: list(item.pieces) for place, item in enumerate(items)}
    said: list[tuple[int, str]] = []
    while left:
        place = chance.choice(list(left))
        said.append((place, left[place].pop(0)))
        if not left[place]:
            del left[place]
    return said


def data(value: Any, name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(value, ensure_ascii=False)}\n\n".encode()


def responses(items: list[Item], seed: int) -> list[bytes]:
    numbered = seed % 2 == 0  # llama.cpp numbers nothing
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {"id": "resp_1"}}]
    for place, item in enumerate(items):
        kind = {"type": "reasoning", "summary": []} if item.thinks else {"type": "message", "content": []}
        number = {"output_index": place} if numbered else {}
        events.append({"type": "response.output_item.added", "item": {"id": f"i{place}", **kind}, **number})
    for place, piece in turns(items, seed):
        kind = "reasoning_text" if items[place].thinks else "output_text"
        number = {"output_index": place, "content_index": 0} if numbered else {}
        events.append({"type": f"response.{kind}.delta", "item_id": f"i{place}", "delta": piece, **number})
    return [data(event, event["type"]) for event in events]


def anthropic(items: list[Item], seed: int) -> list[bytes]:
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {"id": "msg_1", "usage": {}}}]
    for place, item in enumerate(items):
        block = {"type": "thinking", "thinking": ""} if item.thinks else {"type": "text", "text": ""}
        events.append({"type": "content_block_start", "index": place, "content_block": block})
    for place, piece in turns(items, seed):
        kind = "thinking" if items[place].thinks else "text"
        delta = {"type": f"{kind}_delta", kind: piece}
        events.append({"type": "content_block_delta", "index": place, "delta": delta})
    return [data(event, event["type"]) for event in events]


def chat(items: list[Item], seed: int) -> list[bytes]:
    fields = ("content", "reasoning_content")
    deltas = ({fields[items[place].thinks]: piece} for place, piece in turns(items, seed))
    return [data({"choices": [{"index": 0, "delta": delta}]}) for delta in deltas]


def gemini(items: list[Item], seed: int) -> list[bytes]:
    parts = (
        {"text": piece, **({"thought": True} if items[place].thinks else {})} for place, piece in turns(items, seed)
    )
    return [data({"candidates": [{"content": {"role": "model", "parts": [part]}}]}) for part in parts]


MAKERS = {"openai-chat": chat, "openai-responses": responses, "anthropic": anthropic, "gemini": gemini}
HAS_ITEMS = ("openai-responses", "anthropic")
ERROR = data({"type": "error", "error": {"type": "overloaded_error", "message": "busy", "code": 503}}, "error")


async def answer_of(dialect: str, server: Loopback, characters: int) -> tuple[Message, str | None]:
    """Read until everything came, and stop; or until the answer ends by itself. What is kept, and the error's kind."""
    http = HttpClient()
    root = server.root if dialect in ("anthropic", "gemini") else server.url
    events = make_provider(dialect, root, None, http).stream(simple_request())
    answer, came, failure = AnswerBuilder("m", "model"), 0, None
    try:
        async with asyncio.timeout(LIMIT):
            async for event in events:
                answer.feed(event, now())
                came += len(event.text) if isinstance(event, ContentDelta | ThinkingDelta) else 0
                if came >= characters:
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
            kept = [(isinstance(each, Thinking), each.text) for each in message.blocks]
            assert kept == [(item.thinks, item.whole) for item in items]
            continue
        order = turns(items, seed)
        for kind, thinks in ((Text, False), (Thinking, True)):
            said = "".join(each.text for each in message.blocks if isinstance(each, kind))
            assert said == "".join(piece for place, piece in order if items[place].thinks is thinks)


@pytest.mark.parametrize("dialect", MAKERS)
async def test_every_piece_is_shown_before_the_next_one_comes(dialect: str) -> None:
    items = items_of(3)
    pieces = MAKERS[dialect](items, 3)
    said = [piece for _, piece in turns(items, 3)]
    first = len(pieces) - len(said)
    for count in range(1, len(said) + 1):
        async with Loopback(Reply(pieces[: first + count], hold=asyncio.Event())) as server:
            total = sum(map(len, said[:count]))
            message, failure = await answer_of(dialect, server, total)
        assert failure is None
        assert sum(len(each.text) for each in message.blocks) == total


LLAMA_TEXT = [f"word{number} " for number in range(40)]
LLAMA_THOUGHT = ["I ", "think ", "so."]


def llama(pieces: int) -> list[bytes]:
    """The real server's order: reasoning ends behind all the text, and nothing is numbered (server-task.cpp)."""
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
    events += [{"type": "response.reasoning_text.delta", "delta": each, "item_id": "rs_1"} for each in LLAMA_THOUGHT]
    begun = {"content": [], "id": "msg_1", "role": "assistant", "status": "in_progress", "type": "message"}
    events += [
        {"type": "response.output_item.added", "item": begun},
        {"type": "response.content_part.added", "item_id": "msg_1", "part": {"type": "output_text", "text": ""}},
    ]
    events += [
        {"type": "response.output_text.delta", "item_id": "msg_1", "delta": each} for each in LLAMA_TEXT[:pieces]
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
    ended = {"id": "resp_1", "object": "response", "status": "completed", "output": [reasoning, message]}
    events = [
        {"type": "response.output_item.done", "item": reasoning},
        {"type": "response.output_text.done", "item_id": "msg_1", "text": text},
        {"type": "response.content_part.done", "item_id": "msg_1", "part": part},
        {"type": "response.output_item.done", "item": message},
        {"type": "response.completed", "response": {**ended, "usage": usage}},
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
            shown = 0
            async for event in client.stream("hi"):
                shown += isinstance(event, ContentDelta) and len(event.text)
                if shown == len("".join(LLAMA_TEXT)):
                    client.interrupt()
            kept = client.history[-1]
    assert kept.state is MessageState.INTERRUPTED
    assert [each.text for each in kept.blocks] == ["".join(LLAMA_THOUGHT), "".join(LLAMA_TEXT)]
