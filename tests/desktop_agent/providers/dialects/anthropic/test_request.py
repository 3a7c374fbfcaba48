import json
from typing import Any

import pytest

from desktop_agent.providers.dialects.anthropic.request import DEFAULT_MAX_TOKENS
from desktop_agent.types.errors import CapabilityMissing, ToolCallingNotSupported
from desktop_agent.types.messages import Message
from desktop_agent.types.providers import Capabilities, JsonFormat, ReasoningBudget, ReasoningEffort, ToolChoice
from tests.desktop_agent.providers.dialects.anthropic.bodies import TOOL, asked, body, made, plain, said
from tests.desktop_agent.providers.sdk_types import judge

STRANGER = Capabilities()
SCHEMA = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object", "properties": {}}}}}


def test_the_least_that_is_sent() -> None:
    assert plain(body(asked(model="m"))) == {
        "model": "m",
        "max_tokens": DEFAULT_MAX_TOKENS,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        "stream": True,
    }


def test_sampling_is_never_sent_and_that_is_said() -> None:
    request = asked(temperature=0.0, top_p=0.5, top_k=3)
    assert not {"temperature", "top_p", "top_k"} & body(request).keys()
    assert [each for each in said(request) if "sampling" in each] == said(request)
    assert len(said(request)) == 3


@pytest.mark.parametrize(
    ("model", "wanted", "sent", "words"),
    [
        ("claude-opus-5", None, 128_000, 0),
        ("claude-haiku-4-5", None, 64_000, 0),
        ("claude-haiku-4-5", 99_000, 64_000, 1),
        ("claude-haiku-4-5", 5, 5, 0),
        ("m", 99_000, 99_000, 0),
    ],
)
def test_max_tokens(model: str, wanted: int | None, sent: int, words: int) -> None:
    request = asked(model=model, max_tokens=wanted)
    assert body(request)["max_tokens"] == sent
    assert len(said(request)) == words


def test_tools_and_stops() -> None:
    bare = type(TOOL)("g", "", {"properties": {}})
    found = plain(body(asked(tools=(TOOL, bare), stop_sequences=("END", " "))))
    assert found["tools"] == [
        {"name": "f", "description": "Does f.", "input_schema": TOOL.input_schema},
        {"name": "g", "input_schema": {"type": "object", "properties": {}}},
    ]
    assert found["stop_sequences"] == ["END"]
    assert len(said(asked(stop_sequences=("END", " ")))) == 1


def test_answers_by_a_schema() -> None:
    found = body(asked(response_format=JsonFormat(json_schema=SCHEMA), reasoning=ReasoningEffort(level="low")))
    schema = found["output_config"]["format"]["schema"]
    assert found["output_config"]["effort"] == "low"
    assert schema["additionalProperties"] is False
    assert schema["properties"]["a"]["items"]["additionalProperties"] is False
    assert "additionalProperties" not in SCHEMA
    with pytest.raises(CapabilityMissing):
        made(asked(response_format=JsonFormat(json_schema=SCHEMA)), Capabilities(structured_output=False))


def test_json_without_a_schema_is_asked_for_in_words() -> None:
    request = asked(response_format=JsonFormat(), system_prompt="S")
    assert body(request)["system"][0]["text"].startswith("S\n\n")
    assert "output_config" not in body(request)
    assert len(said(request)) == 1


def test_the_persons_own_words_win() -> None:
    own: dict[str, Any] = {
        "max_tokens": 7,
        "metadata": {"user_id": "u"},
        "output_config": {"effort": "max"},
        "service_tier": "auto",
        "betas": ["one", "two"],
    }
    request = asked(extra_options=own, response_format=JsonFormat(json_schema=SCHEMA))
    found = body(request)
    assert found["max_tokens"] == 7
    assert found["metadata"] == {"user_id": "u"}
    assert found["output_config"]["effort"] == "max"
    assert found["output_config"]["format"]["type"] == "json_schema"
    assert "betas" not in found
    assert made(request).betas == ("one", "two")
    assert made(asked()).betas == ()


def test_what_a_model_cannot() -> None:
    with pytest.raises(ToolCallingNotSupported):
        made(asked(tools=(TOOL,)), Capabilities(tools=False))
    made(asked(), Capabilities(tools=False))


def test_what_is_counted_and_what_is_kept() -> None:
    request = asked(
        model="claude-sonnet-4-6",
        tools=(TOOL,),
        system_prompt="S",
        tool_choice=ToolChoice("required"),
        reasoning=ReasoningEffort(level="low"),
        response_format=JsonFormat(json_schema=SCHEMA),
        stop_sequences=("x",),
        extra_options={"metadata": {"user_id": "u"}},
    )
    found = made(request)
    counted = json.loads(json.dumps(found.count_fields))
    assert judge("/v1/messages/count_tokens", counted) == []
    assert not {"max_tokens", "stream", "stop_sequences", "metadata"} & counted.keys()
    assert {"model", "messages", "system", "tools"} <= counted.keys()
    warm = json.loads(json.dumps(found.cache_warming_fields))
    assert judge("/v1/messages", warm) == []
    assert (warm["max_tokens"], "stream" in warm, "tool_choice" in warm) == (0, False, False)
    assert warm["output_config"] == {"effort": "low"}
    budget = made(asked(Message.user("hi"), model="claude-sonnet-4-5", reasoning=ReasoningBudget(tokens=2000)))
    assert "thinking" in budget.fields
    assert "thinking" not in budget.cache_warming_fields
