"""A conversation that wanders through all dialects stays acceptable to each, and loses nothing on the way.

Every visit is a real question over a loopback socket, answered with a recorded stream of that dialect; what the model
said, and with which state, is whatever the dialect made of it.
"""

import base64
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image as Pillow

from desktop_agent.agent.model_request import PictureSupport, prepare_pictures, without_abandoned
from desktop_agent.conversation.answer_builder import AnswerBuilder
from desktop_agent.conversation.history import normalised_history
from desktop_agent.conversation.picture_preparation import PictureFitter
from desktop_agent.providers.dialects.openai_chat.adapter import OpenAIChat
from desktop_agent.providers.dialects.server_families import FAMILIES
from desktop_agent.providers.provider import Provider, make_provider
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.types.blocks import (
    Base64Source,
    Image,
    Outcome,
    StoredSource,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Unknown,
)
from desktop_agent.types.errors import ProviderError
from desktop_agent.types.messages import Message, MessageState, Role, now
from desktop_agent.types.provider_events import StopReason
from desktop_agent.types.providers import ModelRequest
from desktop_agent.types.tool_calls import ToolSpec
from tests.desktop_agent.providers.sdk_types import judge
from tests.fakes.http_server import Loopback, Reply, Request
from tests.fakes.recordings import recordings
from tests.frame.examples import examples
from tests.frame.selection import few

DIALECTS = ("anthropic", "openai-responses", "gemini", "openai-chat")
CHAT_FAMILIES = ("openrouter", "deepseek", "mistral", "ollama", "stranger", "litellm", "google-openai")
STREAMS = {
    dialect: [
        path.read_bytes()
        for path in recordings(*(("openai-chat", "compat") if dialect == "openai-chat" else (dialect,)))
    ]
    for dialect in DIALECTS
}
TOOLS = tuple(ToolSpec(name, f"Does {name}.", {"type": "object", "properties": {}}) for name in ("get_weather", "f"))
# Fields in which servers send replay state.
SECRETS = frozenset({"signature", "data", "encrypted_content", "thoughtSignature", "thought_signature"})


def png() -> str:
    out = io.BytesIO()
    Pillow.new("RGB", (8, 8), "red").save(out, "PNG")
    return base64.b64encode(out.getvalue()).decode()


PICTURE = Image(source=Base64Source(media_type="image/png", data=png()), name="red.png")


@dataclass(frozen=True)
class Visit:
    """One request and what follows. `family` is for chat servers; the person stops after `stopped_after` events."""

    dialect: str
    family: str
    stream: int
    stopped_after: int | None
    then: Literal["prompt", "picture", "nothing"]
    answered: bool
    outcome: Outcome


VISITS = st.builds(
    Visit,
    dialect=st.sampled_from(DIALECTS),
    family=st.sampled_from(CHAT_FAMILIES),
    stream=st.integers(0, 50),
    stopped_after=st.none() | st.integers(1, 12),
    then=st.sampled_from(["prompt", "prompt", "picture", "nothing"]),
    answered=st.booleans(),
    outcome=st.sampled_from(Outcome),
)
# Replay state in the formats of all servers, but of unknown origin.
_EVERY_STATE = {
    "type": "thinking",
    "signature": "STRAY",
    "item": {"type": "reasoning", "id": "STRAY", "summary": [], "encrypted_content": "STRAY"},
    "thoughtSignature": "STRAY",
    "on": "text",
    "part_text": "Hm.",
    "field": "reasoning_content",
    "reasoning_details": [{"type": "reasoning.text", "text": "STRAY"}],
    "thinking_blocks": [{"type": "thinking", "thinking": "STRAY", "signature": "STRAY"}],
}
# Messages that none of these servers sent, but that a history may contain.
STRAY = st.lists(
    st.sampled_from(
        [
            Message.system("Be brief."),
            Message(
                role=Role.ASSISTANT,
                blocks=(Thinking(text="STRAY THOUGHT", provider="someone", metadata=_EVERY_STATE), Text(text="Hm.")),
            ),
            Message(
                role=Role.ASSISTANT,
                blocks=(Text(text="Calling."), ToolUse(id="bad id!", name="f", malformed='{"a":')),
            ),
            Message(role=Role.ASSISTANT, blocks=(Unknown(raw={"type": "STRAY"}, provider="someone"),)),
            Message(role=Role.ASSISTANT, blocks=(ToolUse(id="", name="get weather", input={"a": 1}),)),
            Message(role=Role.USER, blocks=(PICTURE,)),
            Message.user("two in a row"),
            Message.tool_results([ToolResult(tool_use_id="ghost")]),
            Message(role=Role.ASSISTANT),
        ]
    ),
    max_size=3,
)


@dataclass
class Walk:
    """A conversation on its way from server to server."""

    server: Loopback
    http: HttpClient
    repairs: bool = True
    tools: tuple[ToolSpec, ...] = ()  # the same for all visits: another list would change the prefix
    history: list[Message] = field(default_factory=list[Message])
    body: bytes = b""
    fitter: PictureFitter = field(default_factory=PictureFitter)

    def provider(self, visit: Visit) -> Provider:
        if visit.dialect == "openai-chat":
            return OpenAIChat(base_url=self.server.url, http=self.http, quirks=FAMILIES[visit.family])
        root = self.server.root if visit.dialect in ("anthropic", "gemini") else self.server.url
        return make_provider(visit.dialect, root, None, self.http)

    async def go(self, visit: Visit) -> None:
        provider = self.provider(visit)
        streams = STREAMS[visit.dialect]
        self.body = streams[visit.stream % len(streams)]
        # A history from a library may be in disorder; that of a conversation is normalised.
        history = without_abandoned(normalised_history(self.history) if self.repairs else self.history)
        messages, _ = await prepare_pictures(
            history, PictureSupport(_nothing, self.fitter, provider.picture_limits("m"))
        )
        request = ModelRequest("m", tuple(messages), tools=self.tools)
        before = len(self.server.requests)
        answer = await self.asked(provider, request, visit.stopped_after)
        for request_sent in self.server.requests[before:]:
            check(visit, request_sent, messages, answer)
        self.react(visit, answer)

    async def asked(self, provider: Provider, request: ModelRequest, stopped_after: int | None) -> Message:
        builder = AnswerBuilder(f"answer-{len(self.history)}", "m")
        state, event_count = MessageState.COMPLETE, 0
        events = provider.stream(request)
        try:
            async for event in events:
                builder.feed(event, now())
                event_count += 1
                if event_count == stopped_after:
                    state = MessageState.INTERRUPTED
                    break
        except ProviderError:
            state = MessageState.INTERRUPTED
        finally:
            await events.aclose()
        return builder.message(state, now())

    def react(self, visit: Visit, answer: Message) -> None:
        """Add the results and the next prompt, as a conversation would."""
        if answer.blocks:
            self.history.append(answer)
        if answer.tool_uses and visit.answered:
            parts = (Text(text=f"result {len(self.history)}"), PICTURE)
            results = [
                ToolResult(tool_use_id=call.id, content=parts, outcome=visit.outcome) for call in answer.tool_uses
            ]
            self.history.append(Message.tool_results(results))
        if visit.then == "picture":
            text = Text(text=f"look {len(self.history)}")
            self.history.append(Message.user_with_blocks([text, PICTURE]))
        elif visit.then == "prompt":
            self.history.append(Message.user(f"prompt {len(self.history)}"))


async def _nothing(_: StoredSource) -> bytes:
    raise AssertionError("nothing is stored here")


def check(visit: Visit, request_sent: Request, messages: list[Message], answer: Message) -> None:
    """Assert the request's shape, its texts, its calls and results, and where replay state is sent."""
    body = request_sent.json
    assert judge(request_sent.path, body, request_sent.headers) == []
    strings = list(leaves(body))
    refused = {message.id for message in messages if message.stop_reason is StopReason.REFUSAL}
    if not refused:
        # Gemini splits a text where it has a signature.
        state = {secret for message in messages for secret in secrets_of(message)}
        joined = "".join(sent_text for sent_text in strings if sent_text not in state)
        assert [text for text in spoken(messages) if text not in joined] == []
        calls, results = calls_in(visit.dialect, body)
        assert len(calls) == sum(len(message.tool_uses) for message in messages)
    calls, results = calls_in(visit.dialect, body)
    assert sorted(calls) == sorted(results)
    assert not any("STRAY" in sent_text for sent_text in strings)
    origin = answer.origin
    if origin is None:
        return
    own_secrets, foreign_secrets = set(spoken(messages)), set[str]()
    for message in messages:
        is_own = message.origin is not None and (message.origin.provider, message.origin.account) == (
            origin.provider,
            origin.account,
        )
        (own_secrets if is_own else foreign_secrets).update(secrets_of(message) | thoughts_of(message))
    # The short thought of one recording stands in the long one of another.
    foreign_secrets = {sent_text for sent_text in foreign_secrets if not any(sent_text in mine for mine in own_secrets)}
    leaked = [sent_text for sent_text in foreign_secrets if any(sent_text in string for string in strings)]
    assert leaked == []
    for secret in due(visit, messages, origin.provider, origin.account):
        assert any(secret in sent_text for sent_text in strings), secret


def leaves(value: Any) -> Iterator[str]:
    """Yield every string of a body."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner)


def spoken(messages: list[Message]) -> Iterator[str]:
    for message in messages:
        for block in message.blocks:
            if isinstance(block, Text) and block.text.strip():
                yield block.text.strip()


def secrets_of(message: Message) -> set[str]:
    """Return the replay state of a message's reasoning and calls."""
    secrets: set[str] = set()

    def collect(value: Any) -> None:
        for name, inner in value.items() if isinstance(value, dict) else ():
            if name in SECRETS and isinstance(inner, str) and inner:
                secrets.add(inner)
            collect(inner)
        for inner in value if isinstance(value, list) else ():
            collect(inner)

    for block in message.blocks:
        if isinstance(block, Thinking | ToolUse | Text):
            collect(block.metadata)
    return secrets


def thoughts_of(message: Message) -> set[str]:
    """Return the reasoning that was shown."""
    return {block.text for block in message.blocks if isinstance(block, Thinking) and len(block.text) > 8}


def due(visit: Visit, messages: list[Message], provider: str, account: str) -> set[str]:
    """Return the state that this server must get back: of its complete answers in the unfinished turn."""
    secrets: set[str] = set()
    for message in reversed(messages):
        if message.role is Role.USER:
            break
        if message.role is not Role.ASSISTANT:
            continue
        origin = message.origin
        if origin is None or (origin.provider, origin.account) != (provider, account):
            break
        if message.state is MessageState.COMPLETE and message.tool_uses:
            secrets |= secrets_of(message)
    # Each family of chat servers accepts it in its own way, which the tests of that dialect check.
    return secrets if visit.dialect != "openai-chat" else set()


def calls_in(dialect: str, body: Any) -> tuple[list[str], list[str]]:
    """Return the ids (for Gemini the names) of the calls in a body, and of the results."""
    match dialect:
        case "openai-chat":
            messages = body["messages"]
            calls = [call["id"] for message in messages for call in message.get("tool_calls", ())]
            return calls, [message["tool_call_id"] for message in messages if message["role"] == "tool"]
        case "openai-responses":
            named = partial(_ids, body["input"], "type", "call_id")
            return named("function_call"), named("function_call_output")
        case "anthropic":
            blocks = [
                block
                for message in body["messages"]
                if isinstance(message["content"], list)
                for block in message["content"]
            ]
            return _ids(blocks, "type", "id", "tool_use"), _ids(blocks, "type", "tool_use_id", "tool_result")
        case _:
            parts = [part for content in body["contents"] for part in content["parts"]]
            return (
                [part["functionCall"]["name"] for part in parts if "functionCall" in part],
                [part["functionResponse"]["name"] for part in parts if "functionResponse" in part],
            )


def _ids(items: list[Any], key: str, name: str, expected: str) -> list[str]:
    return [item[name] for item in items if item.get(key) == expected]


async def walk(
    stray: list[Message], visits: list[Visit], tools: tuple[ToolSpec, ...] = TOOLS, *, repairs: bool = True
) -> None:
    def reply(_: Request) -> Reply:
        return Reply(walked.body)

    async with Loopback(choose=reply) as server:
        walked = Walk(server, HttpClient(), repairs, tools, [Message.user("Hello."), *stray])
        if walked.history[-1].role is not Role.USER:
            walked.history.append(Message.user("And now?"))
        try:
            for visit in visits:
                await walked.go(visit)
        finally:
            await walked.http.aclose()


@given(STRAY, st.lists(VISITS, min_size=2, max_size=6), st.sampled_from([(), TOOLS]), st.booleans())
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
async def test_a_conversation_may_wander(
    stray: list[Message], visits: list[Visit], tools: tuple[ToolSpec, ...], repairs: bool
) -> None:
    await walk(stray, visits, tools, repairs=repairs)


# On a push each dialect is followed by the next one; the walks above cover all pairs at random.
PAIRS = few(
    [
        (first, DIALECTS[(index + step) % len(DIALECTS)])
        for index, first in enumerate(DIALECTS)
        for step in (1, 2, 3, 0)
    ],
    len(DIALECTS),
    "test_a_conversation_may_wander",
)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_conversation_with_one_dialect_sends_back_all_its_state(dialect: str) -> None:
    """Visit every recording once, continue without a prompt, and then again with one."""
    for then in ("nothing", "prompt"):
        visits = [
            Visit(dialect, "openrouter", number, None, then, answered=True, outcome=Outcome.SUCCEEDED)
            for number in range(len(STREAMS[dialect]))
        ]
        await walk([], visits)


@pytest.mark.parametrize(("first", "second"), PAIRS)
async def test_every_recording_of_one_goes_on_in_every_other(first: str, second: str) -> None:
    for number in range(len(STREAMS[first])):
        begin = Visit(first, "mistral", number, None, "nothing", answered=True, outcome=Outcome.FAILED)
        go_on = Visit(second, "deepseek", 0, None, "prompt", answered=True, outcome=Outcome.DENIED)
        await walk([], [begin, go_on, begin])


def test_the_checks_can_fail() -> None:
    sent = Request(
        "POST", "/v1/chat/completions", {}, json.dumps({"model": "m", "messages": [], "stream": True}).encode(), 0
    )
    visit = Visit("openai-chat", "stranger", 0, None, "nothing", answered=True, outcome=Outcome.FAILED)
    with pytest.raises(AssertionError):
        check(visit, sent, [Message.user("lost")], Message.assistant("x"))
