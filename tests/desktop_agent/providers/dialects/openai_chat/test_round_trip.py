"""What a model wrote in Chat Completions is sent back to it unchanged: random conversations, streamed and stored."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop_agent.conversation.answer_builder import AnswerBuilder
from desktop_agent.providers.dialects.openai_chat.messages import Recipient, encode_messages
from desktop_agent.providers.dialects.openai_chat.response_stream import FrameReader
from desktop_agent.providers.dialects.server_families import FAMILIES, ServerQuirks
from desktop_agent.providers.part_builder import PartBuilder
from desktop_agent.providers.transport.sse import SseDecoder
from desktop_agent.types.blocks import Text, ToolResult
from desktop_agent.types.messages import Message, MessageState, now
from desktop_agent.types.providers import ModelRequest
from tests.fakes.http_server import chunk, sse
from tests.frame.examples import examples

Wire = dict[str, Any]

words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="<"), min_size=1, max_size=12)
# An answer that is only blank is not sent again.
spoken = words.filter(str.strip)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=5,
)
# Models write JSON with their own blanks, escapes and number formats; it is sent back letter by letter.
arguments = st.builds(
    lambda value, space, ascii_only: json.dumps(value, indent=space, ensure_ascii=ascii_only),
    st.dictionaries(words, values, max_size=3),
    st.sampled_from([None, 1]),
    st.booleans(),
)


@st.composite
def turns(draw: st.DrawFn) -> Wire:
    """Draw a prompt, the answer as its server writes it, and the results of its calls."""
    ids = draw(st.lists(st.from_regex(r"call_[a-z0-9]{1,12}", fullmatch=True), unique=True, max_size=3))
    return {
        "prompt": draw(words),
        "thought": draw(st.just("") | words),
        "text": draw(spoken if not ids else st.just("") | spoken),
        "calls": [
            {
                "id": call_id,
                "type": "function",
                "function": {"name": draw(st.sampled_from("fgh")), "arguments": arguments_text},
            }
            for call_id, arguments_text in zip(
                ids, draw(st.lists(arguments, min_size=len(ids), max_size=len(ids))), strict=True
            )
        ],
        "results": draw(st.lists(words, min_size=len(ids), max_size=len(ids))),
    }


def detail(turn: Wire) -> Wire:
    return {"type": "reasoning.text", "index": 0, "text": turn["thought"], "signature": "c2ln", "format": "x"}


def answer(turn: Wire, quirks: ServerQuirks, size: int) -> Message:
    """Return the answer, streamed in pieces of `size` letters and bytes, folded, stored and loaded."""

    def cut(text: str) -> list[str]:
        return [text[start : start + size] for start in range(0, len(text), size)]

    deltas: list[Wire] = []
    if turn["thought"] and quirks.replay == "reasoning_details":
        deltas.append({"reasoning": turn["thought"], "reasoning_details": [detail(turn)]})
    elif turn["thought"]:
        deltas += [{"reasoning_content": fragment} for fragment in cut(turn["thought"])]
    deltas += [{"content": fragment} for fragment in cut(turn["text"])]
    for index, call in enumerate(turn["calls"]):
        head = {**call, "function": {**call["function"], "arguments": ""}}
        deltas.append({"tool_calls": [{"index": index, **head}]})
        for fragment in cut(call["function"]["arguments"]):
            deltas.append({"tool_calls": [{"index": index, "function": {"arguments": fragment}}]})
    body = sse(*map(chunk, deltas), chunk(finish="tool_calls" if turn["calls"] else "stop"))
    builder = PartBuilder(quirks.thinking_provider, keeps_arguments=True)
    reader, decoder, folded = FrameReader(builder, {}), SseDecoder(), AnswerBuilder("a", "m")
    for start in range(0, len(body), size):
        for frame in decoder.feed(body[start : start + size]):
            reader.read(frame)
    reader.end()
    for event in builder.take_events():
        folded.feed(event, now())
    return Message.model_validate_json(folded.message(MessageState.COMPLETE, now()).model_dump_json())


def expected(turn: Wire, quirks: ServerQuirks) -> list[Wire]:
    assistant: Wire = {"role": "assistant", "content": turn["text"] or (None if quirks.null_content else "")}
    if turn["calls"]:
        assistant["tool_calls"] = turn["calls"]
    match quirks.replay:
        case "reasoning_details" if turn["thought"]:
            assistant["reasoning_details"] = [detail(turn)]
        case "reasoning" if turn["thought"]:
            assistant["reasoning"] = turn["thought"]
        case "reasoning_content" if turn["calls"]:
            assistant["reasoning_content"] = turn["thought"]
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": result}
        for call, result in zip(turn["calls"], turn["results"], strict=True)
    ]
    return [{"role": "user", "content": turn["prompt"]}, assistant, *results]


@pytest.mark.parametrize("family", ["openai", "deepseek", "openrouter", "vllm"])
@given(st.lists(turns(), min_size=1, max_size=4), st.integers(1, 9))
@settings(max_examples=examples(60), deadline=None)
def test_what_a_model_wrote_goes_back_as_it_was(family: str, conversation: list[Wire], size: int) -> None:
    quirks = FAMILIES[family]
    history: list[Message] = []
    for turn in conversation:
        results = [
            ToolResult(tool_use_id=call["id"], content=(Text(text=result),))
            for call, result in zip(turn["calls"], turn["results"], strict=True)
        ]
        history += [Message.user(turn["prompt"]), answer(turn, quirks, size)]
        history += [Message.tool_results(results)] if results else []
    messages = encode_messages(ModelRequest("m", (*history, Message.user("go on"))), Recipient(quirks))
    expected_messages = [message for turn in conversation for message in expected(turn, quirks)]
    assert messages == [*expected_messages, {"role": "user", "content": "go on"}]
