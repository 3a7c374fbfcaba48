"""Events as lines."""

from typing import Any

import pytest

from desktop_agent.api.ask_command import event_to_json
from desktop_agent.types.blocks import ServerStep, ToolUse, Unknown
from desktop_agent.types.engine_events import Event, RetryScheduled, TurnStarted
from desktop_agent.types.errors import Sentence
from desktop_agent.types.provider_events import (
    AnswerNamed,
    AnswerStarted,
    ContentDelta,
    MessageDelta,
    Origin,
    RequestAdjusted,
    StopReason,
    TextClosed,
    ThinkingBlock,
    ToolArgsDelta,
    Usage,
    UsageUpdate,
)


@pytest.mark.parametrize("name", ["openai-compat/vllm", "openai-compat"])
def test_the_family_of_a_server_is_no_part_of_the_providers_name(name: str) -> None:
    block = ThinkingBlock("Hm.", name, {"field": "reasoning"})
    line = {"type": "thinking_block", "text": "Hm.", "provider": "openai-compat", "metadata": {"field": "reasoning"}}
    assert event_to_json(block) == line


def test_a_phase_and_details_are_written_where_there_are_any() -> None:
    assert event_to_json(ContentDelta("a")) == {"type": "content_delta", "text": "a"}
    assert event_to_json(ContentDelta("a", "commentary")) == {
        "type": "content_delta",
        "text": "a",
        "phase": "commentary",
    }
    end: dict[str, Any] = {"type": "message_delta", "stop_reason": "refusal", "raw": "refusal"}
    assert event_to_json(MessageDelta(StopReason.REFUSAL, "refusal")) == end
    assert event_to_json(MessageDelta(StopReason.REFUSAL, "refusal", {"a": 1})) == {**end, "details": {"a": 1}}


def test_a_call_is_written_without_what_belongs_to_its_server_and_money_is_not_usage() -> None:
    call = ToolUse(id="1", name="f", input={"a": 1}, provider="p", metadata={"arguments": "{ }"})
    assert event_to_json(call) == {"type": "tool_use", "id": "1", "name": "f", "input": {"a": 1}}
    assert "cost" not in (event_to_json(UsageUpdate(Usage(cost=1.0))) or {})


@pytest.mark.parametrize(
    "event",
    [
        AnswerStarted(Origin(provider="p"), (Sentence("x"),)),
        AnswerNamed("r"),
        TextClosed("p", {"id": 1}),
        ToolArgsDelta("1", "f", "{"),
        ToolUse(id="1", name="f", malformed="{"),
        ServerStep(provider="p", name="search", raw={}),
        Unknown(raw={}),
        RequestAdjusted((Sentence("x"),)),
        RetryScheduled(1.0, "why"),
        TurnStarted("t", "m", "model"),
    ],
    ids=lambda event: event.type,
)
def test_what_is_no_canonical_event_is_not_written(event: Event) -> None:
    assert event_to_json(event) is None
