from typing import Any

import pytest

from desktop_agent.providers.dialects.openai_responses.adapter import ReasoningOptions, reasoning_options
from desktop_agent.providers.dialects.server_families import FAMILIES
from desktop_agent.types.messages import Message
from desktop_agent.types.providers import (
    Capabilities,
    ModelRequest,
    ProviderConfig,
    Reasoning,
    ReasoningAdaptive,
    ReasoningBetweenTools,
    ReasoningBudget,
    ReasoningDisabled,
    ReasoningEffort,
)

OFF = ReasoningDisabled()
NOTHING = Capabilities()


def switched(
    model: str, wish: Reasoning | None, family: str = "openai", capabilities: Capabilities = NOTHING, **config: Any
) -> ReasoningOptions:
    request = ModelRequest(model, (Message.user("hi"),), config=ProviderConfig(reasoning=wish, **config))
    return reasoning_options(request, FAMILIES[family], capabilities)


def effort(level: Any) -> ReasoningEffort:
    return ReasoningEffort(level=level)


@pytest.mark.parametrize(
    ("model", "wish", "reasoning", "sampling", "adjusted"),
    [
        ("gpt-6-sol", None, {"summary": "auto"}, False, ""),
        ("gpt-6-sol", ReasoningAdaptive(), {"summary": "auto"}, False, ""),
        (
            "gpt-5.4",
            ReasoningAdaptive(),
            {},
            True,
            "“gpt-5.4” does not choose by itself how much to reason, so it does not.",
        ),
        (
            "gpt-4o",
            ReasoningAdaptive(),
            {},
            True,
            "“gpt-4o” does not choose by itself how much to reason, so it does not.",
        ),
        ("gpt-6-sol", effort("max"), {"effort": "max", "summary": "auto"}, False, ""),
        ("gpt-6-sol", OFF, {"effort": "none"}, True, ""),
        (
            "gpt-6-astra",
            OFF,
            {"effort": "low", "summary": "auto"},
            False,
            "“gpt-6-astra” always reasons, so it reasons at “low”.",
        ),
        (
            "gpt-5",
            effort("max"),
            {"effort": "high", "summary": "auto"},
            False,
            "“gpt-5” has no reasoning level “max”, so it reasons at “high”.",
        ),
        (
            "gpt-5.6-sol",
            ReasoningBudget(tokens=4000),
            {"effort": "medium", "summary": "auto"},
            False,
            "Reasoning has levels here: 4000 tokens became “medium”.",
        ),
        ("gpt-5.4", None, {}, True, ""),
        ("gpt-5.4", effort("low"), {"effort": "low", "summary": "auto"}, False, ""),
        (
            "gpt-6-sol",
            ReasoningBetweenTools(),
            {"summary": "auto"},
            False,
            "Reasoning only between calls cannot be asked for here, so the model decides.",
        ),
        ("gpt-4.1", None, {}, True, ""),
        ("gpt-4.1", OFF, {}, True, ""),
        (
            "gpt-4.1",
            effort("low"),
            {},
            True,
            "How hard “gpt-4.1” reasons cannot be chosen, so that was left out.",
        ),
        ("gpt-9", None, {"summary": "auto"}, True, ""),
        ("gpt-9", effort("max"), {"effort": "max", "summary": "auto"}, True, ""),
        ("gpt-9", OFF, {"effort": "none"}, True, ""),
    ],
)
def test_models_of_openai(model: str, wish: Reasoning | None, reasoning: Any, sampling: bool, adjusted: str) -> None:
    for family in ("openai", "azure"):
        options = switched(model, wish, family)  # type: ignore[arg-type]
        assert (options.reasoning, options.sampling, " ".join(map(str, options.adjustments))) == (
            reasoning,
            sampling,
            adjusted,
        )


def test_without_summaries() -> None:
    assert switched("gpt-6-sol", None, show_reasoning=False).reasoning == {}


def test_the_catalogue_is_believed_before_the_names() -> None:
    capabilities = Capabilities(efforts=("high",), reasoning_modes=frozenset({"effort"}), reasons_by_default=False)
    assert switched("gpt-6-sol", OFF, capabilities=capabilities).reasoning == {"effort": "high", "summary": "auto"}
    assert switched("gpt-6-sol", None, capabilities=capabilities).reasoning == {}
    assert switched("gpt-9", effort("low"), capabilities=capabilities).reasoning["effort"] == "high"
    assert switched("gpt-6-sol", effort("low"), capabilities=Capabilities(reasoning=False)).reasoning == {}
    assert not switched("gpt-5.4", None, capabilities=Capabilities(sampling=False)).sampling


@pytest.mark.parametrize(
    ("model", "wish", "reasoning", "adjusted"),
    [
        ("grok-4.6", effort("max"), {"effort": "high"}, True),
        ("grok-4.7", effort("xhigh"), {"effort": "xhigh"}, False),
        ("grok-4.7", OFF, {}, True),
        ("grok-3", effort("low"), {}, True),
        ("grok-4.5-non-reasoning", effort("low"), {}, True),
        ("grok-4.7", None, {}, False),
    ],
)
def test_models_of_xai(model: str, wish: Reasoning | None, reasoning: Any, adjusted: bool) -> None:
    options = switched(model, wish, "xai")
    assert (options.reasoning, bool(options.adjustments)) == (reasoning, adjusted)


@pytest.mark.parametrize("family", ["stranger", "lmstudio", "llamacpp", "vllm", "ollama", "openrouter"])
def test_others_get_only_what_was_asked_for(family: str) -> None:
    assert switched("qwen3", None, family).reasoning == {}
    assert switched("qwen3", effort("high"), family).reasoning == {"effort": "high"}
    assert switched("qwen3", OFF, family).reasoning == {"effort": "none"}
    capabilities = Capabilities(efforts=("low", "high"), sampling=False)
    options = switched("gpt-oss", effort("max"), family, capabilities)
    assert (options.reasoning, options.sampling, len(options.adjustments)) == ({"effort": "high"}, False, 1)
