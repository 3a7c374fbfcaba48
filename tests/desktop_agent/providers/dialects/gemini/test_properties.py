"""Any history: an independent reader reads back what was written, and every rule of the API holds."""

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
    """Draw parts as a model streams them: text, signed text, and calls, of which any may be signed."""
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
    """Read parts independently: join text that no signature separates, keep everything else."""
    pieces: list[Any] = []
    for part in parts:
        if part.get("thought"):
            if pieces and isinstance(pieces[-1], str):
                pieces.append("")  # what was said before and after a thought are two pieces
        elif "text" in part and "thoughtSignature" not in part:
            if pieces and isinstance(pieces[-1], str):
                pieces[-1] += part["text"]
            else:
                pieces.append(part["text"])
        else:
            pieces.append(part)
    return [piece for piece in pieces if piece != ""]


def joined(parts: list[Any]) -> list[Any]:
    """Join neighbouring texts, as their cutting means nothing."""
    out: list[Any] = []
    for piece in parts:
        if out and isinstance(piece, str) and isinstance(out[-1], str):
            out[-1] += piece
        else:
            out.append(piece)
    return out


@settings(max_examples=examples(150), deadline=None)
@given(wire_parts(), st.integers(1, 3))
def test_what_came_goes_back_as_it_came(parts: list[dict[str, Any]], per_chunk: int) -> None:
    chunks = [chunk(*parts[start : start + per_chunk]) for start in range(0, len(parts), per_chunk)]
    message = answer(sse(*chunks, chunk(finish="STOP")))
    items = encode_history((Message.user("hi"), message), Recipient(MODEL, ACCOUNT)).items
    parts_sent = [part for item in json.loads(dumps(items)) if item["role"] == "model" for part in item["parts"]]
    assert joined(read_back(parts_sent)) == joined(read_back(parts))
    signatures = [part["thoughtSignature"] for part in parts if "thoughtSignature" in part]
    assert [part["thoughtSignature"] for part in parts_sent if "thoughtSignature" in part] == signatures


@st.composite
def histories(draw: st.DrawFn) -> tuple[Message, ...]:
    """Draw messages in any order, of this model and of others, with missing, repeated and stray results."""
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
                ToolResult(tool_use_id=call_id, content=(Json(value=draw(VALUES)),), outcome=draw(outcomes))
                for call_id in ids
            ]
            messages.append(Message.tool_results(results))
        else:
            calls = draw(st.lists(st.sampled_from(["a", "b", "c"]), max_size=3, unique=True))
            blocks: list[Block] = [
                Text(text=draw(WORDS)),
                Thinking(text="t", provider="x", metadata={"signature": "s"}),
            ]
            blocks += [ToolUse(id=call_id, name=draw(NAMES), input=draw(ARGUMENTS)) for call_id in calls]
            origin = OWN if kind == "own" else FOREIGN
            messages.append(Message(role=Role.ASSISTANT, blocks=tuple(blocks), origin=origin))
    return tuple(messages)


@settings(max_examples=examples(200), deadline=None)
@given(histories())
def test_the_rules_of_the_api_hold(messages: tuple[Message, ...]) -> None:
    history = encode_history(messages, STRICT)
    items = json.loads(dumps(history.items))
    assert all(item["parts"] for item in items)
    assert all(first["role"] != second["role"] for first, second in pairwise(items))
    for index, item in enumerate(items):
        calls = [part["functionCall"] for part in item["parts"] if "functionCall" in part]
        behind: list[dict[str, Any]] = items[index + 1]["parts"] if index + 1 < len(items) else []
        responses = [part["functionResponse"] for part in behind if "functionResponse" in part]
        if item["role"] == "model":
            assert [entry["name"] for entry in responses] == [entry["name"] for entry in calls]
            assert [entry.get("id") for entry in responses] == [entry.get("id") for entry in calls]
            assert all(len(entry["response"].keys() & {"output", "error"}) == 1 for entry in responses)
            # Responses come first in their content, before any text.
            assert [part for part in behind[: len(calls)] if "functionResponse" not in part] == []
    for item in items[last_question_index(items) :]:
        calls = [part for part in item["parts"] if "functionCall" in part]
        assert not calls or any("thoughtSignature" in part for part in calls)
    assert history.unsigned == (NO_SIGNATURE in dumps(items).decode())
    assert encode_history(messages, STRICT) == history
