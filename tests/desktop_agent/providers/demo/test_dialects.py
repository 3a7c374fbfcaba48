"""Our dialects and the demo server: the same answer in all four, and tool loops that the strict server accepts."""

import base64
import io
import math
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from PIL import Image

from desktop_agent.conversation.answer_builder import AnswerBuilder
from desktop_agent.providers.demo import scripted_model
from desktop_agent.providers.demo.http import Request
from desktop_agent.providers.demo.scripted_model import Call, ReceivedRequest, Script
from desktop_agent.providers.provider import Provider, make_provider
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.types.blocks import JsonObject, Outcome, Text, Thinking, ToolResult, ToolUse
from desktop_agent.types.errors import ProviderError
from desktop_agent.types.messages import Message, MessageState, Role, now
from desktop_agent.types.provider_events import StopReason
from desktop_agent.types.providers import (
    Dialect,
    ModelRequest,
    ProviderConfig,
    ReasoningAdaptive,
    ReasoningDisabled,
    ToolChoice,
)
from desktop_agent.types.tool_calls import ToolSpec
from tests.desktop_agent.providers.sdk_types import judge_bytes
from tests.fakes import strict_server
from tests.fakes.recording_server import RecordingServer

DIALECTS: tuple[Dialect, ...] = ("openai-chat", "openai-responses", "anthropic", "gemini")
SIGNED = DIALECTS[1:]
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}}}
TOOLS = tuple(ToolSpec(name, f"Does {name}.", SCHEMA) for name in ("read_file", "write_file", "calculate"))
# Models of vendors are asked to show their reasoning; of an unknown model name nothing is known.
SHOWN: dict[str, JsonObject] = {
    "openai-responses": {"reasoning": {"summary": "auto"}},
    "gemini": {"generationConfig": {"thinkingConfig": {"includeThoughts": True}}},
}
RESULTS = {
    "write_file": "Created notes/hello.txt (82 bytes).",
    "calculate": "6 * 7 = 42",
    "read_file": scripted_model.FILE_CONTENT,
}


@dataclass
class Talk:
    """One provider, its server, and the conversation so far."""

    provider: Provider
    server: RecordingServer
    requests: list[Request]
    history: list[Message] = field(default_factory=list)
    request: ModelRequest = field(default_factory=lambda: ModelRequest("demo", (), TOOLS, conversation_id="c"))

    async def ask(self, prompt: Message | None = None) -> Message:
        """Ask once, and add the answer to the history."""
        self.history += [prompt] if prompt is not None else []
        builder = AnswerBuilder("m", "demo")
        async for event in self.provider.stream(replace(self.request, messages=tuple(self.history))):
            builder.feed(event, now())
        answer = builder.message(MessageState.COMPLETE, now())
        self.history.append(answer)
        return answer

    async def loop(self, prompt: str) -> Message:
        """Ask, and answer calls until there are none."""
        answer = await self.ask(Message.user(prompt))
        while answer.tool_uses:
            results = [
                ToolResult(tool_use_id=use.id, content=(Text(text=RESULTS[use.name]),)) for use in answer.tool_uses
            ]
            answer = await self.ask(Message.tool_results(results))
        return answer

    @property
    def replayed(self) -> int:
        """Return how many reasoning states the last request sent back unchanged."""
        question = self.server.connections[-1].question
        assert question is not None
        return question.replayed


def thoughts(message: Message) -> str:
    return "".join(block.text for block in message.blocks if isinstance(block, Thinking))


@pytest.fixture
async def talk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Talk]:
    requests: list[Request] = []
    answer_request = strict_server.answer_request

    async def record_and_answer(received: Request, *more: Any) -> Any:
        requests.append(received)
        return await answer_request(received, *more)

    monkeypatch.setattr(strict_server, "answer_request", record_and_answer)
    server, http = strict_server.strict_server(speed=math.inf), HttpClient()
    endpoint = strict_server.demo_endpoint(await server.start(), request.param)
    provider = make_provider(endpoint.dialect, endpoint.base_url, None, http)
    yield Talk(provider, server, requests)
    await provider.aclose()
    await http.aclose()
    await server.aclose()
    complaints = [
        line
        for sent_request in requests
        if sent_request.method == "POST"
        for line in judge_bytes(sent_request.path, sent_request.body, sent_request.headers)
    ]
    assert complaints == []


all_dialects = pytest.mark.parametrize("talk", DIALECTS, indirect=True)
signed_dialects = pytest.mark.parametrize("talk", SIGNED, indirect=True)


@all_dialects
async def test_the_same_text_and_thought(talk: Talk) -> None:
    await talk.provider.list_models()
    wish = ProviderConfig(reasoning=ReasoningAdaptive(), extra_options=SHOWN.get(talk.provider.dialect, {}))
    talk.request = replace(talk.request, config=wish)
    answer = await talk.ask(Message.user("Hello!"))
    assert (answer.text, thoughts(answer)) == (scripted_model.GREETING, scripted_model.GREETING_THOUGHT)
    assert answer.stop_reason is StopReason.END_TURN
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.cache_read_tokens in (None, 0)) == (2, True)
    assert answer.usage.reasoning_tokens is None or answer.usage.reasoning_tokens > 10


@all_dialects
async def test_the_same_calls_in_the_same_order(talk: Talk) -> None:
    answer = await talk.ask(Message.user("use both tools"))
    assert [(use.name, use.input) for use in answer.tool_uses] == [
        ("write_file", {"path": scripted_model.FILE_PATH, "content": scripted_model.FILE_CONTENT}),
        ("calculate", {"expression": "6 * 7"}),
    ]
    assert answer.text == "I will call `write_file` and `calculate`."
    assert answer.stop_reason is StopReason.TOOL_USE


@all_dialects
async def test_a_whole_loop_with_two_rounds(talk: Talk) -> None:
    answer = await talk.loop("write a file and check it")
    assert answer.text.count("**succeeded**") == 2
    assert talk.replayed == (0 if talk.provider.dialect == "openai-chat" else 2)
    assert (await talk.ask(Message.user("And the weather?"))).text == scripted_model.SHORT
    again = await talk.loop("use both tools")
    assert again.text.count("**succeeded**") == 2
    assert talk.replayed >= (0 if talk.provider.dialect == "openai-chat" else 3)


@all_dialects
async def test_instructions_and_pictures(talk: Talk) -> None:
    out = io.BytesIO()
    Image.new("RGB", (31, 17), "teal").save(out, "PNG")
    talk.request = replace(talk.request, config=ProviderConfig(system_prompt="Be kind.", max_tokens=5000))
    data = base64.b64encode(out.getvalue()).decode()
    answer = await talk.ask(Message.user_with_base64_image("look", data, "image/png"))
    assert "31 x 17 pixels" in answer.text
    assert talk.server.connections[-1].question is not None
    assert talk.server.connections[-1].question.length == len("Be kind.") + len("look")


@all_dialects
async def test_without_reasoning_and_with_a_forced_tool(talk: Talk) -> None:
    off = ProviderConfig(reasoning=ReasoningDisabled())
    talk.request = replace(talk.request, config=off, tool_choice=ToolChoice("named", "calculate"))
    answer = await talk.ask(Message.user("use both tools"))
    assert len(answer.tool_uses) == 2
    assert thoughts(answer) == "" or talk.provider.dialect == "gemini"


@all_dialects
async def test_an_error_in_the_middle_comes_after_the_text(talk: Talk) -> None:
    with pytest.raises(ProviderError, match="The demo was asked for an error"):
        await talk.ask(Message.user("error please"))
    talk.history.clear()
    assert (await talk.ask(Message.user("Hello!"))).text == scripted_model.GREETING


@signed_dialects
async def test_a_changed_history_is_never_refused(talk: Talk) -> None:
    await talk.loop("use both tools")
    talk.history[0] = Message.user("use both tools, please")
    assert (await talk.ask(Message.user("And the weather?"))).text == scripted_model.SHORT
    talk.request = replace(talk.request, tools=TOOLS[:1], config=ProviderConfig(system_prompt="Be kind."))
    assert (await talk.ask(Message.user("And now?"))).text == scripted_model.SHORT


@all_dialects
async def test_another_dialects_history_is_taken(talk: Talk) -> None:
    for dialect in DIALECTS:
        http = HttpClient()
        endpoint = strict_server.demo_endpoint(await talk.server.start(), dialect)
        elsewhere = Talk(make_provider(dialect, endpoint.base_url, None, http), talk.server, talk.requests)
        await elsewhere.loop("write a file and check it")
        await http.aclose()
        talk.history = list(elsewhere.history)
        assert (await talk.ask(Message.user("And the weather?"))).text == scripted_model.SHORT


@all_dialects
@pytest.mark.parametrize("name", ["default_api.look/x", "7look", "schön", "x" * 200])
async def test_a_call_of_what_no_server_can_name_is_taken(talk: Talk, name: str) -> None:
    """Models call tools that were never offered, and some servers check the names in the history."""
    call = ToolUse(id="c1", name=name, input={})
    result = ToolResult(tool_use_id="c1", content=(Text(text="There is no such tool."),), outcome=Outcome.FAILED)
    talk.history += [
        Message.user("Look."),
        Message(role=Role.ASSISTANT, blocks=(call,), model="another"),
        Message.tool_results([result]),
        Message.assistant("It is not there."),
    ]
    assert (await talk.ask(Message.user("And the weather?"))).text == scripted_model.SHORT
    named = set(re.findall(r'"name": ?"([^"]*)"', talk.requests[-1].body.decode())) - {tool.name for tool in TOOLS}
    valid = r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}" if talk.provider.dialect == "gemini" else r"[a-zA-Z0-9_-]{1,64}"
    assert len(named) == 1
    assert re.fullmatch(valid, named.pop())


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_tool_is_called_by_its_own_name_whatever_servers_take(dialect: Dialect) -> None:
    offered: list[str] = []

    def call_it(question: ReceivedRequest) -> Script:
        offered.extend(question.tools or ())
        return tuple(Call(name, {}) for name in offered)

    server, http = strict_server.strict_server(speed=math.inf, play=call_it), HttpClient()
    endpoint = strict_server.demo_endpoint(await server.start(), dialect)
    talk = Talk(make_provider(dialect, endpoint.base_url, None, http), server, [])
    names = ["read_file", "prüfe/alles", "x" * 70]
    talk.request = replace(talk.request, tools=tuple(ToolSpec(name, "Does it.", SCHEMA) for name in names))
    answer = await talk.ask(Message.user("go"))
    assert [call.name for call in answer.tool_uses] == names
    assert offered[0] == "read_file"
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", name) for name in offered)
    await talk.provider.aclose()
    await http.aclose()
    await server.aclose()


@all_dialects
async def test_models_and_token_counts(talk: Talk) -> None:
    (model,) = await talk.provider.list_models()
    assert model.id == "demo"
    counted = await talk.provider.count_tokens(replace(talk.request, messages=(Message.user("four" * 4),)))
    assert counted.margin > 0 or counted.tokens == 5
