from typing import Any

import pytest

from desktop_agent.providers.dialects.openai_chat.adapter import build_body
from desktop_agent.providers.dialects.openai_chat.messages import Recipient
from desktop_agent.providers.dialects.server_families import FAMILIES
from desktop_agent.types.errors import CapabilityMissing, ToolCallingNotSupported
from desktop_agent.types.messages import Message
from desktop_agent.types.providers import (
    Capabilities,
    ModelRequest,
    ProviderConfig,
    ReasoningBudget,
    ReasoningDisabled,
    ReasoningEffort,
)
from desktop_agent.types.tool_calls import ToolSpec

TOOL = ToolSpec("f", "Does f.", {"type": "object", "properties": {}})
EFFORT = ReasoningEffort(level="max")
OFF = ReasoningDisabled()


def switched(family: str, model: str = "m", reasoning: Any = None, *, tools: bool = False) -> dict[str, Any]:
    config = ProviderConfig(reasoning=reasoning, temperature=0.5, stop_sequences=("x",))
    request = ModelRequest(model, (Message.user("hi"),), tools=(TOOL,) if tools else (), config=config)
    fields = build_body(request, Recipient(FAMILIES[family]), Capabilities()).fields
    names = ("reasoning_effort", "reasoning", "thinking", "chat_template_kwargs", "temperature", "stop")
    return {name: fields[name] for name in names if name in fields}


FREE = {"temperature": 0.5, "stop": ["x"]}
WARM = {"temperature": 0.5}  # OpenAI's reasoning models take no stop sequences at all


@pytest.mark.parametrize(
    ("family", "reasoning", "expected"),
    [
        ("stranger", EFFORT, {"reasoning_effort": "max", **FREE}),
        ("stranger", OFF, {"reasoning_effort": "none", **FREE}),
        ("groq", EFFORT, {"reasoning_effort": "max", **FREE}),
        ("mistral", OFF, FREE),
        ("openrouter", EFFORT, {"reasoning": {"effort": "xhigh"}, **FREE}),
        ("openrouter", ReasoningBudget(tokens=9), {"reasoning": {"max_tokens": 9}, **FREE}),
        ("openrouter", OFF, {"reasoning": {"enabled": False}, **FREE}),
        ("deepseek", OFF, {"thinking": {"type": "disabled"}, **FREE}),
        (
            "deepseek",
            ReasoningEffort(level="medium"),
            {"thinking": {"type": "enabled"}, "reasoning_effort": "high", **FREE},
        ),
        ("deepseek", EFFORT, {"thinking": {"type": "enabled"}, "reasoning_effort": "max", **FREE}),
        ("ollama", OFF, {"reasoning_effort": "none", **FREE}),
        ("ollama", EFFORT, {"reasoning_effort": "max", **FREE}),
        ("ollama", None, FREE),
        ("llamacpp", OFF, {"chat_template_kwargs": {"enable_thinking": False}, **FREE}),
        ("llamacpp", EFFORT, FREE),
    ],
)
def test_switches(family: str, reasoning: Any, expected: dict[str, Any]) -> None:
    assert switched(family, reasoning=reasoning) == expected


@pytest.mark.parametrize(
    ("model", "reasoning", "tools", "expected"),
    [
        ("gpt-4.1", EFFORT, True, FREE),
        ("gpt-9-new", EFFORT, True, FREE),
        ("gpt-5-chat-latest", EFFORT, False, FREE),
        ("gpt-6-astra", None, False, {}),
        ("gpt-6-astra", OFF, False, {"reasoning_effort": "low"}),
        ("gpt-6.1-sol-2026-11-01", EFFORT, False, {"reasoning_effort": "xhigh"}),
        ("gpt-6-sol", None, False, {}),
        ("gpt-6-sol", OFF, False, {"reasoning_effort": "none", **WARM}),
        ("gpt-6-luna", EFFORT, True, {"reasoning_effort": "none", **WARM}),
        ("gpt-6.1-terra", None, True, {"reasoning_effort": "none", **WARM}),
        ("gpt-5.6-luna", None, True, {"reasoning_effort": "none", **WARM}),
        ("gpt-5.6-luna", ReasoningEffort(level="minimal"), False, {"reasoning_effort": "low"}),
        ("gpt-5.4", EFFORT, True, WARM),
        ("gpt-5.4", EFFORT, False, {"reasoning_effort": "xhigh"}),
        ("gpt-5.4", None, False, WARM),
        ("gpt-5.1", EFFORT, True, {"reasoning_effort": "high"}),
        ("gpt-5-mini", OFF, True, {"reasoning_effort": "minimal"}),
        ("gpt-5", ReasoningBudget(tokens=100), False, {"reasoning_effort": "low"}),
        ("o4-mini", EFFORT, True, {"reasoning_effort": "high"}),
        ("o3", None, False, {}),
    ],
)
def test_openai_models(model: str, reasoning: Any, tools: bool, expected: dict[str, Any]) -> None:
    assert switched("openai", model, reasoning, tools=tools) == expected


@pytest.mark.parametrize("model", ["gpt-6-astra", "gpt-6.1-sol"])
def test_tools_on_responses_only(model: str) -> None:
    with pytest.raises(ToolCallingNotSupported, match="Responses"):
        switched("openai", model, tools=True)


@pytest.mark.parametrize("model", ["gpt-5.6-pro", "gpt-6-sol-pro", "o3-pro", "gpt-5-pro-2025-10-06"])
def test_models_on_responses_only(model: str) -> None:
    with pytest.raises(CapabilityMissing, match="Responses"):
        switched("openai", model)


@pytest.mark.parametrize(
    ("model", "reasoning", "expected"),
    [
        ("grok-4.6", EFFORT, {"reasoning_effort": "high", "temperature": 0.5}),
        ("grok-4.7", EFFORT, {"reasoning_effort": "xhigh", "temperature": 0.5}),
        ("grok-4.6", OFF, {"temperature": 0.5}),
        ("grok-4", EFFORT, {"temperature": 0.5}),
        ("grok-4-fast-non-reasoning", EFFORT, FREE),
        ("grok-2", EFFORT, FREE),
    ],
)
def test_xai(model: str, reasoning: Any, expected: dict[str, Any]) -> None:
    assert switched("xai", model, reasoning) == expected
