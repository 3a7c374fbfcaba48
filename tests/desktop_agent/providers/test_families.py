"""Chat Completions for every family of servers and all options: only what the table allows differs."""

import itertools
import re
from typing import Any

import pytest

from desktop_agent.providers.dialects.openai_chat.adapter import build_body
from desktop_agent.providers.dialects.openai_chat.messages import Recipient
from desktop_agent.providers.dialects.server_families import FAMILIES, ServerQuirks
from desktop_agent.providers.transport.json_codec import dumps, loads
from desktop_agent.types.blocks import Base64Source, Block, Image, Json, Text, Thinking, ToolResult, ToolUse
from desktop_agent.types.errors import AgentError
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.providers import (
    Capabilities,
    JsonFormat,
    ModelRequest,
    PromptCaching,
    ProviderConfig,
    Reasoning,
    ReasoningAdaptive,
    ReasoningBetweenTools,
    ReasoningBudget,
    ReasoningDisabled,
    ReasoningEffort,
    ToolChoice,
)
from desktop_agent.types.tool_calls import ToolSpec
from tests.desktop_agent.providers.deviations import ALLOWED
from tests.desktop_agent.providers.sdk_types import findings, judge

MODELS = ("m", "gpt-5.1", "gpt-5.6-sol", "gpt-5", "gpt-6-sol", "o3", "grok-4.7", "anthropic/claude-opus-5")
WISHES: tuple[Reasoning | None, ...] = (
    None,
    ReasoningDisabled(),
    ReasoningEffort(level="max"),
    ReasoningEffort(level="minimal"),
    ReasoningBudget(tokens=3000),
    ReasoningAdaptive(),
    ReasoningBetweenTools(),
)
CHOICES = (ToolChoice(), ToolChoice("required"), ToolChoice("named", "f"), ToolChoice("none"))
CACHINGS = (PromptCaching(), PromptCaching(lifetime="long"), PromptCaching(enabled=False))
FORMATS = (None, JsonFormat(), JsonFormat(json_schema={"type": "object"}))
PICTURE = Image(source=Base64Source(media_type="image/png", data="iVBORw0KGgo="))
TOOL = ToolSpec("f", "Does f.", {"$schema": "x", "type": "object", "properties": {}})


def history(quirks: ServerQuirks) -> tuple[Message, ...]:
    """Return a history with every kind of block."""
    states: tuple[dict[str, Any], ...] = (
        {"field": "reasoning_content"},
        {"field": "reasoning"},
        {"field": "content.thinking", "signature": "s"},
        {"field": "reasoning_details", "reasoning_details": [{"type": "reasoning.text", "text": "x", "index": 0}]},
        {"field": "thinking_blocks", "thinking_blocks": [{"type": "thinking", "thinking": "x", "signature": "s"}]},
        {"field": "extra_content", "call_id": "c1", "extra_content": {"google": {"thought_signature": "x"}}},
    )
    thoughts = [Thinking(text="t", provider=quirks.thinking_provider, metadata=state) for state in states]
    calls = [ToolUse(id="c1", name="f", input={"a": 1}), ToolUse(id="c2", name="f", malformed="{")]
    blocks: tuple[Block, ...] = (*thoughts, Text(text="b"), *calls)
    content = (Text(text="ok"), Json(value=[1]), PICTURE)
    results = (ToolResult(tool_use_id="c1", content=content), ToolResult(tool_use_id="c2"))
    return (
        Message.system("Be kind."),
        Message.user_with_blocks((Text(text="a"), PICTURE)),
        Message(role=Role.ASSISTANT, blocks=blocks, model="m"),
        Message.tool_results(results),
        Message.user("x"),
    )


def bodies(quirks: ServerQuirks) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = []
    caching, shape = itertools.cycle(CACHINGS), itertools.cycle(FORMATS)
    for model, wish, choice in itertools.product(MODELS, WISHES, CHOICES):
        config = ProviderConfig(
            temperature=1,
            top_p=0.1,
            top_k=2,
            max_tokens=5,
            stop_sequences=("a",),
            reasoning=wish,
            response_format=next(shape),
            caching=next(caching),
        )
        request = ModelRequest(model, history(quirks), (TOOL,), choice, config, "conversation")
        try:
            results.append(loads(dumps(build_body(request, Recipient(quirks), Capabilities()).fields)))
        except AgentError:
            continue  # refused before the network
    return results


@pytest.mark.parametrize("family", FAMILIES)
def test_only_what_the_table_gives_this_family_differs(family: str) -> None:
    path = "/v1/chat/completions"
    paths: set[str] = set()
    all_bodies = bodies(FAMILIES[family])
    assert len(all_bodies) > 60
    for body in all_bodies:
        assert judge(path, body) == []
        paths |= {re.sub(r"\[\d+\]", "[]", finding.path) for _, finding in findings(path, body)}
    assert paths == {
        allowance.path for allowance in ALLOWED if allowance.dialect == "openai-chat" and family in allowance.families
    }
