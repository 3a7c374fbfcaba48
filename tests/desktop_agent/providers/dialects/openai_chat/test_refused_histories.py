"""The conversation goes on with servers that refuse a history which others accept.

The refusals are those of Mistral (error 3230), and of Kimi and DeepSeek.
"""

import json
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest

from desktop_agent import AgentOptions, Client, Message, tool
from desktop_agent.providers.dialects.openai_chat.adapter import OpenAIChat
from desktop_agent.providers.dialects.server_families import FAMILIES
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.types.blocks import Image, Text, ToolResult, ToolUse, UrlSource
from desktop_agent.types.errors import InvalidRequest
from desktop_agent.types.messages import Role
from tests.fakes.http_server import Loopback, Reply, Request, chunk, sse
from tests.fakes.recordings import ask, simple_request

JSON = {"content-type": "application/json"}
HELLO = Reply(sse(chunk({"content": "hi"}), chunk({}, "stop")))
CALL = {"index": 0, "id": "call_0001", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}
KIMI = "thinking is enabled but reasoning_content is missing in assistant tool call message at index {index}"
DEEPSEEK = "The `reasoning_content` in the thinking mode must be passed back to the API."


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    client = HttpClient()
    yield client
    await client.aclose()


def refusal(message: str, **more: Any) -> Reply:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None, **more}
    return Reply(json.dumps({"error": error}).encode(), 400, JSON)


def mistral(request: Request) -> Reply:
    """Refuse a user message directly after tool results, as Mistral does, and say nothing about models."""
    if request.method == "GET":
        return refusal("No such page.")
    roles = [message["role"] for message in request.json["messages"]]
    if ("tool", "user") in pairwise(roles):
        body = {"object": "error", "message": "Unexpected role 'user' after role 'tool'", "type": "x", "code": "3230"}
        return Reply(json.dumps(body).encode(), 400, JSON)
    return HELLO


def stopped_after_results() -> tuple[Message, ...]:
    """Return a run that was stopped after the result of its call, and the next question."""
    result = ToolResult(
        tool_use_id="call_0001", content=(Text(text="1"), Image(source=UrlSource(url="http://x/a.png")))
    )
    return (
        Message.user("add"),
        Message(role=Role.ASSISTANT, blocks=(ToolUse(id="call_0001", name="add", input={"a": 1}),), model="m"),
        Message.tool_results([result]),
        Message.user("and now?"),
    )


@pytest.mark.parametrize(
    ("family", "model"),
    [
        ("mistral", "labs-x"),
        ("openrouter", "mistralai/devstral-medium"),
        ("vllm", "Ministral-3-8B"),
        ("stranger", "magistral"),
    ],
)
async def test_a_question_after_results_reaches_mistral(http: HttpClient, family: str, model: str) -> None:
    async with Loopback(choose=mistral) as server:
        adapter = OpenAIChat(base_url=server.url, http=http, quirks=FAMILIES[family])
        events = await ask(adapter, simple_request(model=model, messages=stopped_after_results()))
        assert events[0] == {"type": "content_delta", "text": "hi"}
        messages = server.requests[-1].json["messages"]
    assert [message["role"] for message in messages][:5] == ["user", "assistant", "tool", "assistant", "user"]
    assert messages[3] == {"role": "assistant", "content": "OK."}


async def test_other_models_get_no_answer_between(http: HttpClient) -> None:
    async with Loopback(HELLO) as server:
        adapter = OpenAIChat(base_url=server.url, http=http, quirks=FAMILIES["openai"])
        await ask(adapter, simple_request(model="gpt-5.4", messages=stopped_after_results()))
        assert [message["role"] for message in server.requests[0].json["messages"]].count("assistant") == 1


class ThinkingServer:
    """A server that calls a tool at the start of a turn, and refuses calls without reasoning, as Kimi does."""

    def __init__(self, message: str = KIMI) -> None:
        self.message = message

    def __call__(self, request: Request) -> Reply:
        messages = request.json["messages"]
        for index, message in enumerate(messages):
            if message.get("tool_calls") and not message.get("reasoning_content"):
                return refusal(self.message.format(index=index))
        if messages[-1]["role"] == "tool":
            return HELLO
        thought = chunk({"reasoning_content": "I shall add."})
        return Reply(sse(thought, chunk({"tool_calls": [CALL]}), chunk({}, "tool_calls")))


@pytest.mark.parametrize("message", [KIMI, DEEPSEEK])
async def test_a_server_that_misses_reasoning_gets_it(message: str) -> None:
    added: list[int] = []

    @tool
    async def add(a: int) -> int:
        """Add."""
        added.append(a)
        return a

    async with Loopback(choose=ThinkingServer(message)) as server:
        options = AgentOptions(model="kimi-k2.6", base_url=server.url, tools=(add,), auto_execute_tools=True)
        async with Client(options, approver="always") as client:
            assert (await client.complete("add")).text == "hi"
            assert (await client.complete("again")).text == "hi"
        posted = [request.json["messages"] for request in server.requests if request.method == "POST"]
    assert added == [1, 1]
    # The server refuses once; from then on its need is known.
    assert len(posted) == 5
    assert [message.get("reasoning_content") for message in posted[-1] if message.get("tool_calls")] == [
        "I shall add.",
        "I shall add.",
    ]
    assert all("reasoning_content" not in message for message in posted[1])


async def test_calls_of_another_model_get_a_space(http: HttpClient) -> None:
    async with Loopback(choose=ThinkingServer()) as server:
        adapter = OpenAIChat(base_url=server.url, http=http)
        events = await ask(adapter, simple_request(messages=stopped_after_results()[:3]))
        assert events[-1] == {"type": "done"}
        assert server.requests[1].json["messages"][1]["reasoning_content"] == " "


async def test_a_server_that_refuses_it_all_the_same_is_asked_only_once_more(http: HttpClient) -> None:
    async with Loopback(refusal(KIMI)) as server:
        with pytest.raises(InvalidRequest, match="reasoning_content"):
            await anext(OpenAIChat(base_url=server.url, http=http).stream(simple_request()))
        assert len(server.requests) == 2


async def test_both_kinds_of_refusal_in_one_question(http: HttpClient) -> None:
    replies = (refusal("Unknown parameter: 'stream_options'."), refusal(DEEPSEEK), HELLO)
    async with Loopback(*replies) as server:
        events = await ask(OpenAIChat(base_url=server.url, http=http), simple_request(messages=stopped_after_results()))
        assert events[0] == {"type": "content_delta", "text": "hi"}
        assert "stream_options" not in server.requests[2].json
        assert server.requests[2].json["messages"][1]["reasoning_content"] == " "
