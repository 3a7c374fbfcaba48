import json
from typing import Any

import pytest

from desktop_agent.providers.dialects.anthropic.request import DEFAULT_MAX_TOKENS
from desktop_agent.types.errors import CapabilityMissing, ToolCallingNotSupported
from desktop_agent.types.messages import Message
from desktop_agent.types.providers import Capabilities, JsonFormat, ReasoningBudget, ReasoningEffort, ToolChoice
from tests.desktop_agent.providers.dialects.anthropic.bodies import (
    TOOL,
    adjustments_of,
    body,
    make_body,
    make_request,
    plain,
)
from tests.desktop_agent.providers.sdk_types import judge

STRANGER = Capabilities()
SCHEMA = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object", "properties": {}}}}}


def test_the_least_that_is_sent() -> None:
    assert plain(body(make_request(model="m"))) == {
        "model": "m",
        "max_tokens": DEFAULT_MAX_TOKENS,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        "stream": True,
    }


def test_sampling_is_never_sent_and_that_is_said() -> None:
    request = make_request(temperature=0.0, top_p=0.5, top_k=3)
    assert not {"temperature", "top_p", "top_k"} & body(request).keys()
    assert [adjustment for adjustment in adjustments_of(request) if "sampling" in adjustment] == adjustments_of(request)
    assert len(adjustments_of(request)) == 3


@pytest.mark.parametrize(
    ("model", "requested", "expected", "adjustment_count"),
    [
        ("claude-opus-5", None, 128_000, 0),
        ("claude-haiku-4-5", None, 64_000, 0),
        ("claude-haiku-4-5", 99_000, 64_000, 1),
        ("claude-haiku-4-5", 5, 5, 0),
        ("m", 99_000, 99_000, 0),
    ],
)
def test_max_tokens(model: str, requested: int | None, expected: int, adjustment_count: int) -> None:
    request = make_request(model=model, max_tokens=requested)
    assert body(request)["max_tokens"] == expected
    assert len(adjustments_of(request)) == adjustment_count


def test_tools_and_stops() -> None:
    bare = type(TOOL)("g", "", {"properties": {}})
    fields = plain(body(make_request(tools=(TOOL, bare), stop_sequences=("END", " "))))
    assert fields["tools"] == [
        {"name": "f", "description": "Does f.", "input_schema": TOOL.input_schema},
        {"name": "g", "input_schema": {"type": "object", "properties": {}}},
    ]
    assert fields["stop_sequences"] == ["END"]
    assert len(adjustments_of(make_request(stop_sequences=("END", " ")))) == 1


def test_answers_by_a_schema() -> None:
    fields = body(make_request(response_format=JsonFormat(json_schema=SCHEMA), reasoning=ReasoningEffort(level="low")))
    schema = fields["output_config"]["format"]["schema"]
    assert fields["output_config"]["effort"] == "low"
    assert schema["additionalProperties"] is False
    assert schema["properties"]["a"]["items"]["additionalProperties"] is False
    assert "additionalProperties" not in SCHEMA
    with pytest.raises(CapabilityMissing):
        make_body(make_request(response_format=JsonFormat(json_schema=SCHEMA)), Capabilities(structured_output=False))


def test_json_without_a_schema_is_asked_for_in_words() -> None:
    request = make_request(response_format=JsonFormat(), system_prompt="S")
    assert body(request)["system"][0]["text"].startswith("S\n\n")
    assert "output_config" not in body(request)
    assert len(adjustments_of(request)) == 1


def test_the_persons_own_words_win() -> None:
    own: dict[str, Any] = {
        "max_tokens": 7,
        "metadata": {"user_id": "u"},
        "output_config": {"effort": "max"},
        "service_tier": "auto",
        "betas": ["one", "two"],
    }
    request = make_request(extra_options=own, response_format=JsonFormat(json_schema=SCHEMA))
    fields = body(request)
    assert fields["max_tokens"] == 7
    assert fields["metadata"] == {"user_id": "u"}
    assert fields["output_config"]["effort"] == "max"
    assert fields["output_config"]["format"]["type"] == "json_schema"
    assert "betas" not in fields
    assert make_body(request).betas == ("one", "two")
    assert make_body(make_request()).betas == ()


def test_what_a_model_cannot() -> None:
    with pytest.raises(ToolCallingNotSupported):
        make_body(make_request(tools=(TOOL,)), Capabilities(tools=False))
    make_body(make_request(), Capabilities(tools=False))


def test_what_is_counted_and_what_is_kept() -> None:
    request = make_request(
        model="claude-sonnet-4-6",
        tools=(TOOL,),
        system_prompt="S",
        tool_choice=ToolChoice("required"),
        reasoning=ReasoningEffort(level="low"),
        response_format=JsonFormat(json_schema=SCHEMA),
        stop_sequences=("x",),
        extra_options={"metadata": {"user_id": "u"}},
    )
    request_body = make_body(request)
    counted = json.loads(json.dumps(request_body.count_fields))
    assert judge("/v1/messages/count_tokens", counted) == []
    assert not {"max_tokens", "stream", "stop_sequences", "metadata"} & counted.keys()
    assert {"model", "messages", "system", "tools"} <= counted.keys()
    warm = json.loads(json.dumps(request_body.cache_warming_fields))
    assert judge("/v1/messages", warm) == []
    assert (warm["max_tokens"], "stream" in warm, "tool_choice" in warm) == (0, False, False)
    assert warm["output_config"] == {"effort": "low"}
    budget = make_body(
        make_request(Message.user("hi"), model="claude-sonnet-4-5", reasoning=ReasoningBudget(tokens=2000))
    )
    assert "thinking" in budget.fields
    assert "thinking" not in budget.cache_warming_fields
