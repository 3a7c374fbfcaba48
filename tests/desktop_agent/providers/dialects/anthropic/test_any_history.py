"""Whatever a history holds: nothing that the page refuses is sent, and what is sent reads back as what was said."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from desktop_agent.providers.dialects.anthropic.messages import BEGIN_PROMPT, CONTINUE_PROMPT, NO_RESULT
from desktop_agent.types.blocks import Block, Outcome, ServerStep, Text, Thinking, ToolResult, ToolUse, Unknown
from desktop_agent.types.messages import Message, MessageState, Role
from desktop_agent.types.provider_events import Origin, StopReason
from desktop_agent.types.providers import PromptCaching
from tests.desktop_agent.providers.dialects.anthropic.bodies import THOUGHTS, TOOL, account, asked, body, made, plain
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


def _origin(kind: str, model: str) -> Origin | None:
    found = {
        "own": Origin(provider="anthropic", account=account(model)),
        "elsewhere": Origin(provider="anthropic", account="0"),
        "foreign": Origin(provider="gemini", account=account(model)),
    }
    return found.get(kind)


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
    one = st.one_of(
        WORDS.map(Message.user),
        WORDS.map(Message.system),
        st.lists(RESULT, max_size=3).map(Message.tool_results),
        answers(model),
        answers(model),
    )
    return model, tuple(draw(st.lists(one, max_size=8)))


def read_back(messages: list[dict[str, Any]]) -> list[tuple[str, str, Any]]:
    """A small reader of its own: role, kind and content of every block."""
    return [
        (each["role"], part["type"], part.get("text", part.get("id", part.get("tool_use_id"))))
        for each in messages
        for part in each["content"]
    ]


@settings(max_examples=examples(300), deadline=None)
@given(histories())
def test_nothing_that_is_refused(drawn: tuple[str, tuple[Message, ...]]) -> None:
    model, given_messages = drawn
    for lifetime in ("short", "long"):
        request = asked(model=model, tools=(TOOL,), system_prompt="S", caching=PromptCaching(lifetime=lifetime))
        request = type(request)(model, given_messages, request.tools, request.tool_choice, request.config)
        found = body(request)
        steps = [part for each in found["messages"] for part in each["content"] if "tool_use_id" in part]
        uses = [
            part["id"] for each in found["messages"] for part in each["content"] if part["type"] == "server_tool_use"
        ]
        assert all(part["tool_use_id"] in uses for part in steps if part["type"] == "web_search_tool_result")
        last = found["messages"][-1]
        said = [each for each in given_messages if each.role is Role.ASSISTANT and each.blocks]
        assert last["role"] != "assistant" or any(each.stop_reason is StopReason.PAUSE_TURN for each in said)


@settings(max_examples=examples(300), deadline=None)
@given(histories())
def test_what_is_sent_reads_back_as_what_was_said(drawn: tuple[str, tuple[Message, ...]]) -> None:
    model, given_messages = drawn
    if any(each.stop_reason is StopReason.REFUSAL for each in given_messages):
        return
    request = type(asked())(model, given_messages)
    written = read_back(plain(body(request)["messages"]))
    for role, wire_role in ((Role.USER, "user"), (Role.ASSISTANT, "assistant")):
        texts = [
            block.text
            for each in given_messages
            if each.role is role
            for block in each.blocks
            if isinstance(block, Text) and block.text.strip()
        ]
        found = [text for found_role, kind, text in written if (found_role, kind) == (wire_role, "text")]
        assert [text for text in found if text not in (CONTINUE_PROMPT, BEGIN_PROMPT)] == texts
    calls = [block for each in given_messages for block in each.tool_uses if each.role is Role.ASSISTANT]
    ids = [name for _, kind, name in written if kind == "tool_use"]
    assert len(ids) == len(calls)
    assert [name for _, kind, name in written if kind == "tool_result"] == ids


@settings(max_examples=examples(200), deadline=None)
@given(histories())
def test_what_was_asked_is_what_the_next_request_begins_with(drawn: tuple[str, tuple[Message, ...]]) -> None:
    """A prefix stays a prefix: else every cache would miss and every bound block be stripped."""
    model, given_messages = drawn
    request = type(asked())(model, given_messages)
    before = made(request)
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
    kept = [part for each in after for part in each["content"] if part.get("signature") == "bmV3"]
    wire = plain(before.fields["messages"])
    assert len(kept) == 1
    assert [part for each in wire for part in each["content"]] == [part for each in after for part in each["content"]][
        : sum(len(each["content"]) for each in wire)
    ]


def assert_bound(read: list[dict[str, Any]], now: list[dict[str, Any]], model: str) -> None:
    """Where the new thinking is sent to a model that binds, there stands before it exactly what was read then."""
    parts = [part for each in now for part in each["content"]]
    places = [place for place, part in enumerate(parts) if part.get("signature") == "bmV3"]
    if places and model in ("claude-fable-5-2", "somebody-elses"):
        assert parts[: places[0]] == [part for each in read for part in each["content"]]


@settings(max_examples=examples(100), deadline=None)
@given(histories())
def test_thinking_is_own_or_nothing(drawn: tuple[str, tuple[Message, ...]]) -> None:
    model, given_messages = drawn
    found = plain(body(type(asked())(model, given_messages))["messages"])
    sent = [part for each in found for part in each["content"] if part["type"] in THOUGHTS]
    own = [
        block
        for each in given_messages
        for block in each.blocks
        if isinstance(block, Thinking) and block.provider == "anthropic"
    ]
    allowed = [{"thinking": each.text, **each.metadata} for each in own if each.metadata.get("signature")]
    allowed += [each.metadata for each in own if "data" in each.metadata]
    assert all(part in allowed for part in sent)


def test_words_for_what_is_missing_are_words() -> None:
    assert all(each.strip() for each in (CONTINUE_PROMPT, BEGIN_PROMPT, NO_RESULT))
