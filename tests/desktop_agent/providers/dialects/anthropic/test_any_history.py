"""Any history: nothing that the protocol page refuses is sent, and all texts and calls of the history are."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from desktop_agent.providers.dialects.anthropic.messages import BEGIN_PROMPT, CONTINUE_PROMPT, NO_RESULT
from desktop_agent.types.blocks import Block, Outcome, ServerStep, Text, Thinking, ToolResult, ToolUse, Unknown
from desktop_agent.types.messages import Message, MessageState, Role
from desktop_agent.types.provider_events import Origin, StopReason
from desktop_agent.types.providers import PromptCaching
from tests.desktop_agent.providers.dialects.anthropic.bodies import (
    THOUGHTS,
    TOOL,
    account,
    body,
    make_body,
    make_request,
    plain,
)
from tests.frame.examples import examples

MODELS = ("claude-opus-5", "claude-fable-5-2", "claude-sonnet-5", "claude-sonnet-4-5", "somebody-elses")
WORDS = st.sampled_from(["", " ", "\n", "hi", "é\u2028", "a\x00b", "long " * 50])
IDS = st.sampled_from(["toolu_1", "toolu_2", "call 3", "", "x" * 300])
SIGNED = st.builds(
    lambda text, signature: Thinking(
        text=text, provider="anthropic", metadata={"type": "thinking", "signature": signature}
    ),
    WORDS,
    st.sampled_from(["", "c2ln", "b3RoZXI="]),
)
THOUGHT = st.one_of(
    SIGNED,
    st.just(Thinking(text="", provider="anthropic", metadata={"type": "redacted_thinking", "data": "EmwK"})),
    st.just(Thinking(text="Hm", provider="gemini", metadata={"thought": True})),
    st.just(Thinking(text="Hm", provider="", metadata={})),
)
CALL = st.builds(
    ToolUse,
    id=IDS,
    name=st.sampled_from(["f", "a.b", ""]),
    input=st.sampled_from([{}, {"a": 1}, {"a": {"é": [None, 2.5]}}]),
    malformed=st.sampled_from([None, None, '{"a']),
)
STEP = st.sampled_from(
    [
        ServerStep(provider=provider, name="web_search", raw=raw)
        for provider in ("anthropic", "openai-responses")
        for raw in (
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
        )
    ]
    + [Unknown(raw={"type": "novel"}, provider="openai-chat")]
)
ORIGINS = st.sampled_from(["own", "elsewhere", "none", "foreign"])


def _origin(whose: str, model: str) -> Origin | None:
    origins = {
        "own": Origin(provider="anthropic", account=account(model)),
        "elsewhere": Origin(provider="anthropic", account="0"),
        "foreign": Origin(provider="gemini", account=account(model)),
    }
    return origins.get(whose)


@st.composite
def answers(draw: st.DrawFn, model: str) -> Message:
    blocks: list[Block] = draw(st.lists(st.one_of(st.builds(Text, text=WORDS), THOUGHT, CALL, STEP), max_size=5))
    return Message(
        role=Role.ASSISTANT,
        blocks=tuple(blocks),
        model=draw(st.sampled_from([model, None, "another"])),
        origin=_origin(draw(ORIGINS), model),
        state=draw(st.sampled_from(list(MessageState))),
        stop_reason=draw(st.sampled_from([None, *StopReason])),
    )


RESULT = st.builds(
    ToolResult,
    tool_use_id=IDS,
    content=st.lists(st.builds(Text, text=WORDS), max_size=2).map(tuple),
    outcome=st.sampled_from(list(Outcome)),
)


@st.composite
def histories(draw: st.DrawFn) -> tuple[str, tuple[Message, ...]]:
    model = draw(st.sampled_from(MODELS))
    message = st.one_of(
        WORDS.map(Message.user),
        WORDS.map(Message.system),
        st.lists(RESULT, max_size=3).map(Message.tool_results),
        answers(model),
        answers(model),
    )
    return model, tuple(draw(st.lists(message, max_size=8)))


def read_back(messages: list[dict[str, Any]]) -> list[tuple[str, str, Any]]:
    """Return role, type and content of every block."""
    return [
        (message["role"], block["type"], block.get("text", block.get("id", block.get("tool_use_id"))))
        for message in messages
        for block in message["content"]
    ]


@settings(max_examples=examples(300), deadline=None)
@given(histories())
def test_nothing_is_sent_that_the_api_refuses(drawn: tuple[str, tuple[Message, ...]]) -> None:
    model, given_messages = drawn
    for lifetime in ("short", "long"):
        request = make_request(model=model, tools=(TOOL,), system_prompt="S", caching=PromptCaching(lifetime=lifetime))
        request = type(request)(model, given_messages, request.tools, request.tool_choice, request.config)
        fields = body(request)
        steps = [block for message in fields["messages"] for block in message["content"] if "tool_use_id" in block]
        uses = [
            block["id"]
            for message in fields["messages"]
            for block in message["content"]
            if block["type"] == "server_tool_use"
        ]
        assert all(block["tool_use_id"] in uses for block in steps if block["type"] == "web_search_tool_result")
        last = fields["messages"][-1]
        answers_given = [message for message in given_messages if message.role is Role.ASSISTANT and message.blocks]
        assert last["role"] != "assistant" or any(
            message.stop_reason is StopReason.PAUSE_TURN for message in answers_given
        )


@settings(max_examples=examples(300), deadline=None)
@given(histories())
def test_what_is_sent_reads_back_as_what_was_said(drawn: tuple[str, tuple[Message, ...]]) -> None:
    model, given_messages = drawn
    if any(message.stop_reason is StopReason.REFUSAL for message in given_messages):
        return
    request = type(make_request())(model, given_messages)
    blocks_sent = read_back(plain(body(request)["messages"]))
    for role, wire_role in ((Role.USER, "user"), (Role.ASSISTANT, "assistant")):
        texts = [
            block.text
            for message in given_messages
            if message.role is role
            for block in message.blocks
            if isinstance(block, Text) and block.text.strip()
        ]
        texts_sent = [
            text for found_role, block_type, text in blocks_sent if (found_role, block_type) == (wire_role, "text")
        ]
        assert [text for text in texts_sent if text not in (CONTINUE_PROMPT, BEGIN_PROMPT)] == texts
    calls = [block for message in given_messages for block in message.tool_uses if message.role is Role.ASSISTANT]
    ids = [name for _, block_type, name in blocks_sent if block_type == "tool_use"]
    assert len(ids) == len(calls)
    assert [name for _, block_type, name in blocks_sent if block_type == "tool_result"] == ids


@settings(max_examples=examples(200), deadline=None)
@given(histories())
def test_what_was_asked_is_what_the_next_request_begins_with(drawn: tuple[str, tuple[Message, ...]]) -> None:
    """A prefix stays a prefix, else every cache would miss and every bound thinking block would be dropped."""
    model, given_messages = drawn
    request = type(make_request())(model, given_messages)
    before = make_body(request)
    answer = Message(
        role=Role.ASSISTANT,
        blocks=(
            Thinking(text="", provider="anthropic", metadata={"type": "thinking", "signature": "bmV3"}),
            Text(text="new"),
        ),
        model=model,
        origin=Origin(provider="anthropic", account=account(model), prefix=before.prefix),
        stop_reason=StopReason.END_TURN,
    )
    later = (*given_messages, answer, Message.user("next"))
    assert_bound(plain(before.fields["messages"]), plain(body(type(request)(model, later)))["messages"], model)
    after = plain(body(type(request)(model, later[:-1])))["messages"]
    new_thoughts = [block for message in after for block in message["content"] if block.get("signature") == "bmV3"]
    wire = plain(before.fields["messages"])
    assert len(new_thoughts) == 1
    assert [block for message in wire for block in message["content"]] == [
        block for message in after for block in message["content"]
    ][: sum(len(message["content"]) for message in wire)]


def assert_bound(messages_read: list[dict[str, Any]], messages_sent: list[dict[str, Any]], model: str) -> None:
    """Assert that new thinking is sent to a model that binds only behind exactly the messages that it had read."""
    parts = [block for message in messages_sent for block in message["content"]]
    indexes = [index for index, block in enumerate(parts) if block.get("signature") == "bmV3"]
    if indexes and model in ("claude-fable-5-2", "somebody-elses"):
        assert parts[: indexes[0]] == [block for message in messages_read for block in message["content"]]


@settings(max_examples=examples(100), deadline=None)
@given(histories())
def test_thinking_is_own_or_nothing(drawn: tuple[str, tuple[Message, ...]]) -> None:
    model, given_messages = drawn
    messages_sent = plain(body(type(make_request())(model, given_messages))["messages"])
    thoughts_sent = [
        sent_block for message in messages_sent for sent_block in message["content"] if sent_block["type"] in THOUGHTS
    ]
    own = [
        block
        for message in given_messages
        for block in message.blocks
        if isinstance(block, Thinking) and block.provider == "anthropic"
    ]
    allowed = [{"thinking": message.text, **message.metadata} for message in own if message.metadata.get("signature")]
    allowed += [message.metadata for message in own if "data" in message.metadata]
    assert all(sent_block in allowed for sent_block in thoughts_sent)


def test_words_for_what_is_missing_are_words() -> None:
    assert all(text.strip() for text in (CONTINUE_PROMPT, BEGIN_PROMPT, NO_RESULT))
