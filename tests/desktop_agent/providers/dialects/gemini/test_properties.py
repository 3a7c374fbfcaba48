"""Any history: what is written can be read back by a reader of its own, and every rule of the API holds."""

import json
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from desktop_agent.providers.dialects.gemini.messages import (
    NO_SIGNATURE,
    Recipient,
    encode_history,
    last_question_index,
)
from desktop_agent.providers.transport.json_codec import dumps
from desktop_agent.types.blocks import Block, Json, Outcome, Text, Thinking, ToolResult, ToolUse
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.provider_events import Origin
from tests.desktop_agent.providers.dialects.gemini.stream import ACCOUNT, MODEL, OWN, answer, chunk, sse
from tests.frame.examples import examples

STRICT = Recipient(MODEL, ACCOUNT, checks_signatures=True)
FOREIGN = Origin(provider="openai", account="else")
WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
SIGNATURES = st.from_regex(r"[A-Za-z0-9+/]{4,12}={0,2}", fullmatch=True)
NAMES = st.sampled_from(["f", "get_time", "mcp:x.y-z"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
ARGUMENTS = st.dictionaries(WORDS, VALUES, max_size=3)


@st.composite
def wire_parts(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Parts as a model streams them: words, signed words, calls of which the first of a step may be signed."""
    parts: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(0, 5))):
        kind = draw(st.sampled_from(["text", "signed", "call", "signed call", "thought", "step"]))
        signature = {"thoughtSignature": draw(SIGNATURES)} if kind.startswith("signed") else {}
        if kind in ("text", "signed"):
            parts.append({"text": draw(WORDS), **signature})
        elif kind == "thought":
            parts.append({"text": draw(WORDS), "thought": True})
        elif kind == "step":
            parts.append({"executableCode": {"language": "PYTHON", "code": draw(WORDS)}})
        else:
            given_id = draw(st.none() | st.sampled_from(["a", "b"]))
            call = {"name": draw(NAMES), "args": draw(ARGUMENTS)}
            parts.append({"functionCall": call | ({"id": f"{given_id}{len(parts)}"} if given_id else {}), **signature})
    return parts


def read_back(parts: list[dict[str, Any]]) -> list[Any]:
    """An independent reading: words joined where no signature parts them, all else as it stands."""
    found: list[Any] = []
    for part in parts:
        if part.get("thought"):
            if found and isinstance(found[-1], str):
                found.append("")  # what was said before and after a thought are two pieces
        elif "text" in part and "thoughtSignature" not in part:
            if found and isinstance(found[-1], str):
                found[-1] += part["text"]
            else:
                found.append(part["text"])
        else:
            found.append(part)
    return [each for each in found if each != ""]


def joined(parts: list[Any]) -> list[Any]:
    """Neighbouring words as one: how they were cut says nothing."""
    out: list[Any] = []
    for each in parts:
        if out and isinstance(each, str) and isinstance(out[-1], str):
            out[-1] += each
        else:
            out.append(each)
    return out


@settings(max_examples=examples(150), deadline=None)
@given(wire_parts(), st.integers(1, 3))
def test_what_came_goes_back_as_it_came(parts: list[dict[str, Any]], per_chunk: int) -> None:
    chunks = [chunk(*parts[at : at + per_chunk]) for at in range(0, len(parts), per_chunk)]
    message = answer(sse(*chunks, chunk(finish="STOP")))
    items = encode_history((Message.user("hi"), message), Recipient(MODEL, ACCOUNT)).items
    written = [part for item in json.loads(dumps(items)) if item["role"] == "model" for part in item["parts"]]
    assert joined(read_back(written)) == joined(read_back(parts))
    signatures = [part["thoughtSignature"] for part in parts if "thoughtSignature" in part]
    assert [part["thoughtSignature"] for part in written if "thoughtSignature" in part] == signatures


@st.composite
def histories(draw: st.DrawFn) -> tuple[Message, ...]:
    """Any messages, in any order, of this model and of others, with results missing, doubled and astray."""
    messages: list[Message] = [Message.user("start")]
    for _ in range(draw(st.integers(0, 6))):
        kind = draw(st.sampled_from(["user", "own", "wire", "foreign", "tool", "system"]))
        if kind == "user":
            messages.append(Message.user(draw(WORDS)))
        elif kind == "system":
            messages.append(Message.system(draw(WORDS)))
        elif kind == "wire":
            messages.append(answer(sse(chunk(*draw(wire_parts())), chunk(finish="STOP"))))
        elif kind == "tool":
            ids = draw(st.lists(st.sampled_from(["a", "b", "c"]), max_size=4))
            outcomes = st.sampled_from(list(Outcome))
            results = [
                ToolResult(tool_use_id=each, content=(Json(value=draw(VALUES)),), outcome=draw(outcomes))
                for each in ids
            ]
            messages.append(Message.tool_results(results))
        else:
            calls = draw(st.lists(st.sampled_from(["a", "b", "c"]), max_size=3, unique=True))
            blocks: list[Block] = [
                Text(text=draw(WORDS)),
                Thinking(text="t", provider="x", metadata={"signature": "s"}),
            ]
            blocks += [ToolUse(id=each, name=draw(NAMES), input=draw(ARGUMENTS)) for each in calls]
            origin = OWN if kind == "own" else FOREIGN
            messages.append(Message(role=Role.ASSISTANT, blocks=tuple(blocks), origin=origin))
    return tuple(messages)


@settings(max_examples=examples(200), deadline=None)
@given(histories())
def test_the_rules_of_the_api_hold(messages: tuple[Message, ...]) -> None:
    found = encode_history(messages, STRICT)
    items = json.loads(dumps(found.items))
    assert all(item["parts"] for item in items)
    assert all(first["role"] != second["role"] for first, second in pairwise(items))
    for place, item in enumerate(items):
        calls = [part["functionCall"] for part in item["parts"] if "functionCall" in part]
        behind: list[dict[str, Any]] = items[place + 1]["parts"] if place + 1 < len(items) else []
        responses = [part["functionResponse"] for part in behind if "functionResponse" in part]
        if item["role"] == "model":
            assert [each["name"] for each in responses] == [each["name"] for each in calls]
            assert [each.get("id") for each in responses] == [each.get("id") for each in calls]
            assert all(len(each["response"].keys() & {"output", "error"}) == 1 for each in responses)
            # They come first in their content, before any words.
            assert [part for part in behind[: len(calls)] if "functionResponse" not in part] == []
    for item in items[last_question_index(items) :]:
        calls = [part for part in item["parts"] if "functionCall" in part]
        assert not calls or any("thoughtSignature" in part for part in calls)
    assert found.unsigned == (NO_SIGNATURE in dumps(items).decode())
    assert encode_history(messages, STRICT) == found
