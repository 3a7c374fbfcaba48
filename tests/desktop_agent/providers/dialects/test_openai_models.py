import pytest

from desktop_agent.providers.dialects.request_building import effort_for, nearest_effort, openai_model_facts
from desktop_agent.types.providers import Effort, ReasoningBudget, ReasoningEffort


@pytest.mark.parametrize(
    ("name", "efforts", "can_be_off", "by_default"),
    [
        ("gpt-6-astra", "low medium high xhigh max", False, True),
        ("gpt-6.1-sol-2026-10-01", "low medium high xhigh max", False, True),
        ("gpt-6.1-terra", "low medium high xhigh max", True, True),
        ("openai/gpt-5.6-luna", "low medium high xhigh max", True, True),
        ("gpt-5.5", "low medium high xhigh", True, True),
        ("gpt-5.4-mini", "low medium high xhigh", True, False),
        ("gpt-5.1-codex-max", "low medium high xhigh", True, False),
        ("gpt-5.1", "low medium high", True, False),
        ("GPT-5-mini", "minimal low medium high", False, True),
        ("gpt-5", "minimal low medium high", False, True),
        ("o4-mini", "low medium high", False, True),
        ("gpt-5.4-pro", "medium high xhigh", False, True),
        ("gpt-6-sol-pro", "medium high xhigh", False, True),
        ("gpt-5.2-chat-latest", "", True, False),
        ("gpt-4.1", "", True, False),
    ],
)
def test_how_a_model_reasons(name: str, efforts: str, can_be_off: bool, by_default: bool) -> None:
    model = openai_model_facts(name)
    assert model is not None
    assert (" ".join(model.efforts), model.can_be_off, model.reasons_by_default) == (efforts, can_be_off, by_default)


@pytest.mark.parametrize("name", ["gpt-7", "qwen3", "llama-4", "", "my-o4"])
def test_an_unknown_name_is_unknown(name: str) -> None:
    assert openai_model_facts(name) is None


@pytest.mark.parametrize(
    ("name", "takes"), [("gpt-5.6-sol", True), ("gpt-6-luna", True), ("gpt-5.5", False), ("o3", False)]
)
def test_which_models_take_options_for_their_cache(name: str, takes: bool) -> None:
    model = openai_model_facts(name)
    assert model is not None
    assert model.cache_options is takes


@pytest.mark.parametrize(
    ("level", "efforts", "nearest"),
    [
        ("medium", ("low", "medium"), "medium"),
        ("max", ("low", "medium", "high"), "high"),
        ("minimal", ("low", "medium"), "low"),
        ("medium", ("low", "high"), "low"),
    ],
)
def test_the_nearest_effort(level: Effort, efforts: tuple[Effort, ...], nearest: Effort) -> None:
    assert nearest_effort(level, efforts) == nearest


def test_a_budget_as_an_effort() -> None:
    assert [effort_for(ReasoningBudget(tokens=tokens)) for tokens in (1, 2048, 2049, 8192, 8193)] == [
        "low",
        "low",
        "medium",
        "medium",
        "high",
    ]
    assert effort_for(ReasoningEffort(level="xhigh")) == "xhigh"
