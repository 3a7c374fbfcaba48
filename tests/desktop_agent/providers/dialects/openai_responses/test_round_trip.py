"""Answers are sent back unchanged, and no history, however it arose, makes items that the server refuses."""

import base64
import json
import random
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from desktop_agent.conversation.answer_builder import AnswerBuilder
from desktop_agent.providers.dialects.openai_responses.messages import EncodedHistory, Recipient, encode_input
from desktop_agent.providers.dialects.server_families import FAMILIES
from desktop_agent.types.blocks import Outcome, ServerStep, Text, Thinking, ToolResult, ToolUse, Unknown
from desktop_agent.types.messages import Message, MessageState, Role, now
from desktop_agent.types.provider_events import AnswerStarted, Origin
from desktop_agent.types.providers import ModelRequest
from tests.desktop_agent.providers.dialects.openai_responses.events import (
    PROVIDER,
    Folded,
    added,
    arguments,
    completed,
    done,
    event,
    stream,
    text,
)
from tests.desktop_agent.providers.sdk_types import judge
from tests.frame.examples import examples

ACCOUNT = "account-1"
SEARCH = {
    "id": "ws_1",
    "type": "web_search_call",
    "status": "completed",
    "action": {"type": "search", "query": "q"},
}
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"0" * 40).decode()
Item = dict[str, Any]

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
names = st.from_regex(r"[A-Za-z0-9_-]{1,12}", fullmatch=True)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
phases = st.sampled_from([None, "commentary", "final_answer"])


@st.composite
def annotations(draw: st.DrawFn) -> list[Item]:
    spots = draw(st.lists(st.integers(0, 50), max_size=2))
    return [
        {"type": "url_citation", "start_index": start, "end_index": start + 1, "url": "https://a.example", "title": "A"}
        for start in spots
    ]


@st.composite
def messages_out(draw: st.DrawFn) -> Item:
    parts = draw(
        st.lists(
            st.builds(
                lambda text, marks: {"type": "output_text", "text": text, "annotations": marks}, words, annotations()
            )
            | st.builds(lambda text: {"type": "refusal", "refusal": text}, words),
            min_size=1,
            max_size=3,
        )
    )
    phase = draw(phases)
    item: Item = {"type": "message", "role": "assistant", "status": "completed", "content": parts}
    return {**item, "phase": phase} if phase else item


@st.composite
def calls_out(draw: st.DrawFn) -> Item:
    arguments_text = json.dumps(
        draw(st.dictionaries(words, values, max_size=3)), indent=draw(st.sampled_from([None, 1]))
    )
    call: Item = {"type": "function_call", "name": draw(names), "arguments": arguments_text, "status": "completed"}
    return {**call, "namespace": "n"} if draw(st.booleans()) else call


reasonings_out = st.builds(
    lambda parts: {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": each} for each in parts],
        "encrypted_content": "blob",
    },
    st.lists(words, max_size=2),
)
steps_out = st.builds(
    lambda query: {"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": query}},
    words,
) | st.builds(lambda value: {"type": "telepathy_call", "value": value}, values)
pictures_out = st.builds(
    lambda text: {"type": "image_generation_call", "status": "completed", "revised_prompt": text, "result": PNG}, words
)


@st.composite
def outputs(draw: st.DrawFn) -> list[Item]:
    """Draw an answer: any items, the last of which is not reasoning."""
    items = draw(st.lists(messages_out() | calls_out() | reasonings_out | steps_out | pictures_out, max_size=5))
    items.append(draw(messages_out() | calls_out()))
    numbered = [{"id": f"item_{index}", **item} for index, item in enumerate(items)]
    return [
        {**item, "call_id": f"call_{index}"} if item["type"] == "function_call" else item
        for index, item in enumerate(numbered)
    ]


def pieces_of(index: int, item: Item) -> list[Item]:
    """Return the events of one item, with its text in two pieces."""
    empty = {"message": {"content": []}, "reasoning": {"summary": [], "encrypted_content": "gA"}}
    events = [
        added(index, **item | empty.get(item["type"], {}) | ({"status": "in_progress"} if "status" in item else {}))
    ]
    if item["type"] == "function_call":
        half = len(item["arguments"]) // 2
        events[0]["item"]["arguments"] = ""
        events += [
            arguments(index, item["id"], piece) for piece in (item["arguments"][:half], item["arguments"][half:])
        ]
    for content_index, part in enumerate(item.get("content", ())):
        if part["type"] == "output_text":
            half = len(part["text"]) // 2
            events += [
                text(index, item["id"], piece, content_index) for piece in (part["text"][:half], part["text"][half:])
            ]
        else:
            position = {"output_index": index, "item_id": item["id"], "content_index": content_index}
            events.append(event("refusal.delta", **position, delta=part["refusal"]))
    return [*events, done(index, **item)]


def answered(items: list[Item], *, streamed: bool) -> Message:
    return folded(items, [frame for index, item in enumerate(items) for frame in pieces_of(index, item)] * streamed)


def folded(items: list[Item], events: list[Item]) -> Message:
    builder = AnswerBuilder("m1", "model")
    builder.feed(AnswerStarted(Origin(provider=PROVIDER, account=ACCOUNT)), now())
    for provider_event in Folded(stream(*events, completed(*items))).events:
        builder.feed(provider_event, now())
    return builder.message(MessageState.COMPLETE, now())


def encode(*messages: Message, binds: bool = True) -> EncodedHistory:
    request = ModelRequest("model", messages)
    return encode_input(request, Recipient(FAMILIES["openai"], ACCOUNT, binds=binds), [])


@settings(max_examples=examples(80), deadline=None)
@given(outputs(), st.booleans())
def test_an_answer_goes_back_as_it_came(items: list[Item], streamed: bool) -> None:
    message = answered(items, streamed=streamed)
    stored_message = Message.model_validate_json(message.model_dump_json())
    items_sent = [item for item in encode(stored_message).items if item["type"] != "function_call_output"]
    assert items_sent == items


@settings(max_examples=examples(80), deadline=None)
@given(outputs(), st.randoms(use_true_random=False))
def test_items_that_were_written_side_by_side_go_back_in_the_order_of_the_output(
    items: list[Item], chance: random.Random
) -> None:
    remaining = [pieces_of(index, item) for index, item in enumerate(items)]
    events: list[Item] = []
    while remaining := [pieces for pieces in remaining if pieces]:
        events.append(chance.choice(remaining).pop(0))
    message = folded(items, events)
    stored_message = Message.model_validate_json(message.model_dump_json())
    items_sent = [item for item in encode(stored_message).items if item["type"] != "function_call_output"]
    assert items_sent == items


@settings(max_examples=examples(40), deadline=None)
@given(outputs())
def test_one_that_was_made_elsewhere_goes_back_as_what_it_says(items: list[Item]) -> None:
    message = answered(items, streamed=True)
    stranger = message.model_copy(update={"origin": Origin(provider=PROVIDER, account="account-2")})
    items_sent = [item for item in encode(stranger).items if item["type"] != "function_call_output"]
    texts = [
        part.get("text") or part.get("refusal")
        for item in items
        if item["type"] == "message"
        for part in item["content"]
    ]
    assert [item["content"] for item in items_sent if item["type"] == "message"] == texts
    expected_calls = [(item["call_id"], item["name"]) for item in items if item["type"] == "function_call"]
    assert [(item["call_id"], item["name"]) for item in items_sent if item["type"] == "function_call"] == expected_calls
    assert {item["type"] for item in items_sent} <= {"message", "function_call"}
    assert not any("id" in item for item in items_sent)


# Histories of any kind: foreign blocks, cut answers, and missing, repeated or stray results.

blocks_of_answers = st.one_of(
    st.builds(Text, text=words),
    st.builds(
        lambda said, name: Text(text=said, provider=PROVIDER, metadata={"id": f"msg_{name}"}),
        words,
        st.sampled_from("ab"),
    ),
    st.builds(
        lambda name, state: Thinking(
            text="", provider=PROVIDER, metadata={"item": {"id": name, "type": "reasoning", "summary": []} | state}
        ),
        st.sampled_from(["rs_1", "rs_2"]),
        st.sampled_from([{"encrypted_content": "blob"}, {"encrypted_content": ""}, {}]),
    ),
    st.builds(Thinking, text=words, provider=st.sampled_from(["", "anthropic", PROVIDER])),
    st.builds(
        lambda call_id, name: ToolUse(id=call_id, name=name, input={"a": 1}), st.sampled_from(["c1", "c2"]), names
    ),
    st.builds(
        lambda call_id: ToolUse(
            id=call_id, name="f", provider=PROVIDER, metadata={"item": {"type": "function_call", "id": f"fc_{call_id}"}}
        ),
        st.sampled_from(["c3", "c4"]),
    ),
    st.just(ToolUse(id="c5", name="f", malformed="{")),
    st.just(ServerStep(provider=PROVIDER, name="web_search_call", raw=SEARCH)),
    st.just(ServerStep(provider="anthropic", name="x", raw={"type": "x"})),
    st.just(Unknown(raw={"type": "odd"}, provider="")),
)
origins = st.sampled_from(
    [
        None,
        Origin(provider=PROVIDER, account=ACCOUNT),
        Origin(provider=PROVIDER, account=ACCOUNT, prefix="other"),
        Origin(provider="anthropic", account="x"),
    ]
)


@st.composite
def histories(draw: st.DrawFn) -> tuple[Message, ...]:
    messages: list[Message] = []
    for _ in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(["user", "answer", "answer", "results", "system"]))
        if kind == "user":
            messages.append(Message.user(draw(words)))
        elif kind == "system":
            messages.append(Message.system(draw(words)))
        elif kind == "results":
            ids = draw(st.lists(st.sampled_from(["c1", "c2", "c3", "c4", "c5", "stray"]), max_size=4))
            outcome = draw(st.sampled_from(Outcome))
            results = [ToolResult(tool_use_id=call_id, content=(Text(text="r"),), outcome=outcome) for call_id in ids]
            messages.append(Message.tool_results(results))
        else:
            blocks = draw(
                st.lists(blocks_of_answers, max_size=6, unique_by=lambda block: getattr(block, "id", id(block)))
            )
            state = draw(st.sampled_from(MessageState))
            messages.append(Message(role=Role.ASSISTANT, blocks=tuple(blocks), state=state, origin=draw(origins)))
    return tuple(messages)


def reasoning_with(state: str) -> Thinking:
    item = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": state}
    return Thinking(text="", provider=PROVIDER, metadata={"item": item})


STEP = ServerStep(provider=PROVIDER, name="web_search_call", raw=SEARCH)
# The step after reasoning without state does not go back, so neither does the reasoning before that.
UNFOLLOWED = Message(role=Role.ASSISTANT, blocks=(reasoning_with("blob"), reasoning_with(""), STEP))


@settings(max_examples=examples(200), deadline=None)
@example(history=(UNFOLLOWED,), binds=False)
@given(histories(), st.booleans())
def test_any_history_makes_items_that_belong_together(history: tuple[Message, ...], binds: bool) -> None:
    items = encode(*history, binds=binds).items
    waiting: list[str] = []
    for index, item in enumerate(items):
        following = items[index + 1] if index + 1 < len(items) else {"type": "end"}
        match item["type"]:
            case "reasoning":
                assert following["type"] in ("reasoning", "message", "function_call", "web_search_call")
                assert following.get("role", "assistant") == "assistant"
                assert item.get("encrypted_content") or item.get("content")
            case "function_call":
                assert isinstance(json.loads(item["arguments"]), dict)
                waiting.append(item["call_id"])
            case "function_call_output":
                assert item["call_id"] == waiting.pop(0)
            case "message" if item["role"] != "assistant":
                assert not waiting
            case _:
                pass
    assert not waiting
    assert (
        judge("/v1/responses", {"model": "m", "stream": True, "input": [*items, {"role": "user", "content": "?"}]})
        == []
    )


@settings(max_examples=examples(50), deadline=None)
@given(histories())
def test_the_same_history_gives_the_same_items(history: tuple[Message, ...]) -> None:
    before = [message.model_dump_json() for message in history]
    first, second = encode(*history), encode(*history)
    assert (first.items, first.prefix, first.reasoning) == (second.items, second.prefix, second.reasoning)
    assert [message.model_dump_json() for message in history] == before
