"""Options that cannot be sent as requested, and the adjustments that say so."""

from typing import Any

import pytest
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming

from desktop_agent.providers.dialects.openai_chat.adapter import RequestBody, build_body
from desktop_agent.providers.dialects.openai_chat.messages import Recipient
from desktop_agent.providers.dialects.server_families import FAMILIES
from desktop_agent.types.blocks import Text, ToolUse
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.providers import (
    Capabilities,
    JsonFormat,
    ModelRequest,
    PromptCaching,
    ProviderConfig,
    ReasoningAdaptive,
    ReasoningBetweenTools,
    ReasoningBudget,
    ReasoningDisabled,
    ReasoningEffort,
    ToolChoice,
)
from desktop_agent.types.tool_calls import ToolSpec
from tests.desktop_agent.providers.wire_shapes import misfits

TOOL = ToolSpec("f", "Does f.", {"type": "object", "properties": {}})
SCHEMA = {"$schema": "x", "type": "object", "properties": {"a": {"type": "string"}}}
ADAPTIVE, BETWEEN, OFF = ReasoningAdaptive(), ReasoningBetweenTools(), ReasoningDisabled()


def effort(level: Any) -> ReasoningEffort:
    return ReasoningEffort(level=level)


def body(
    family: str,
    model: str = "m",
    capabilities: Capabilities | None = None,
    *without: str,
    tools: bool = False,
    **config: Any,
) -> RequestBody:
    choice = config.pop("tool_choice", ToolChoice())
    request = ModelRequest(
        model,
        (Message.system("S"), Message.user("hi")),
        tools=(TOOL,) if tools else (),
        tool_choice=choice,
        config=ProviderConfig(**config),
        conversation_id="c",
    )
    return build_body(request, Recipient(FAMILIES[family]), capabilities or Capabilities(), frozenset(without))


def adjustments_of(request_body: RequestBody) -> list[str]:
    return [str(adjustment) for adjustment in request_body.adjustments]


@pytest.mark.parametrize("family", FAMILIES)
def test_who_asks_for_nothing_is_told_nothing(family: str) -> None:
    for model in ("m", "gpt-4.1", "gpt-5.6-sol", "grok-4.7"):
        for tools in (False, True):
            assert adjustments_of(body(family, model, tools=tools)) == []


@pytest.mark.parametrize("family", FAMILIES)
def test_what_can_be_had_is_not_talked_about(family: str) -> None:
    assert adjustments_of(body(family, temperature=0.5, top_p=0.5, max_tokens=9, stop_sequences=("x",))) == []


SENTENCES: list[tuple[str, str, dict[str, Any], str]] = [
    (
        "openai",
        "gpt-5.6-luna",
        {"reasoning": effort("max")},
        "“gpt-5.6-luna” has no reasoning level “max”, so it reasons at “xhigh”.",
    ),
    (
        "openai",
        "gpt-5.6-luna",
        {"reasoning": ReasoningBudget(tokens=100)},
        "Reasoning has levels here: 100 tokens became “low”.",
    ),
    ("openai", "gpt-5.6-luna", {"reasoning": effort("low"), "tools": True}, "does not reason here while it has tools"),
    ("openai", "gpt-5.4", {"reasoning": effort("low"), "tools": True}, "does not reason here while it has tools"),
    ("openai", "gpt-5", {"reasoning": OFF}, "“gpt-5” always reasons, so it reasons at “minimal”."),
    ("openai", "gpt-4.1", {"reasoning": effort("low")}, "How hard “gpt-4.1” reasons cannot be chosen"),
    ("openai", "gpt-9", {"reasoning": effort("low"), "tools": True}, "How hard “gpt-9” reasons cannot be chosen"),
    ("openai", "gpt-5.1", {"reasoning": ADAPTIVE}, "does not choose by itself how much to reason"),
    ("openai", "gpt-5.6-sol", {"reasoning": BETWEEN}, "Reasoning only between calls"),
    (
        "openai",
        "gpt-5.6-sol",
        {"temperature": 0.5, "top_p": 0.5},
        "“gpt-5.6-sol” does not take temperature, top_p while",
    ),
    ("openai", "o3", {"stop_sequences": ("x",)}, "“o3” takes no stop sequences, so they were left out."),
    ("openai", "gpt-4.1", {"stop_sequences": tuple("abcde")}, "four stop sequences"),
    (
        "openai",
        "gpt-4.1",
        {"caching": PromptCaching(lifetime="long")},
        "The cache lifetime of “gpt-4.1” cannot be chosen",
    ),
    ("openai", "gpt-4.1", {"top_k": 3}, "This API has no top_k"),
    ("openrouter", "m", {"reasoning": effort("max")}, "“m” has no reasoning level “max”, so it reasons at “xhigh”."),
    ("openai", "gpt-4o", {"reasoning": ADAPTIVE}, "“gpt-4o” does not choose by itself how much to reason"),
    ("openrouter", "m", {"reasoning": BETWEEN}, "Reasoning only between calls"),
    ("deepseek", "m", {"reasoning": effort("medium")}, "“m” has no reasoning level “medium”, so it reasons at “high”."),
    ("deepseek", "m", {"reasoning": ReasoningBudget(tokens=9)}, "9 tokens became “low”"),
    ("deepseek", "m", {"response_format": JsonFormat(json_schema=SCHEMA)}, "told the schema in words"),
    ("stranger", "m", {"response_format": JsonFormat()}, "asked in words to answer in JSON"),
    ("mistral", "m", {"reasoning": effort("low")}, "How hard “m” reasons cannot be chosen"),
    ("mistral", "m", {"reasoning": OFF}, "Reasoning cannot be turned on or off here for “m”"),
    ("llamacpp", "m", {"reasoning": effort("low")}, "How hard “m” reasons cannot be chosen"),
    ("xai", "grok-4.7", {"reasoning": OFF}, "“grok-4.7” always reasons"),
    (
        "xai",
        "grok-4.6",
        {"reasoning": effort("max")},
        "“grok-4.6” has no reasoning level “max”, so it reasons at “high”.",
    ),
    ("xai", "grok-4", {"reasoning": effort("max")}, "How hard “grok-4” reasons cannot be chosen"),
    ("xai", "grok-4", {"stop_sequences": ("x",)}, "takes no stop sequences"),
    ("ollama", "m", {"tools": True, "tool_choice": ToolChoice("required")}, "cannot be made to call a tool"),
    ("ollama", "m", {"tools": True, "tool_choice": ToolChoice("named", "f")}, "cannot be made to call a tool"),
]


@pytest.mark.parametrize(
    ("family", "model", "wish", "expected"), SENTENCES, ids=[f"{a}-{b}-{d[:30]}" for a, b, _, d in SENTENCES]
)
def test_each_adjustment_is_said_once(family: str, model: str, wish: dict[str, Any], expected: str) -> None:
    (sentence,) = adjustments_of(body(family, model, **wish))
    assert expected in sentence


@pytest.mark.parametrize(
    ("capabilities", "wish", "expected", "missing"),
    [
        (Capabilities(max_output_tokens=5), {"max_tokens": 9}, "at most 5 tokens", None),
        (Capabilities(sampling=False), {"temperature": 0.5}, "does not take temperature", "temperature"),
        (
            Capabilities(forced_tools=False),
            {"tools": True, "tool_choice": ToolChoice("required")},
            "call a tool",
            "tool_choice",
        ),
        (Capabilities(structured_output=False), {"response_format": JsonFormat()}, "in words", "response_format"),
        (Capabilities(efforts=("low",)), {"reasoning": effort("high")}, "reasons at “low”", None),
        (Capabilities(efforts=()), {"reasoning": effort("high")}, "cannot be chosen", "reasoning_effort"),
    ],
)
def test_what_is_known_of_a_model_is_believed(
    capabilities: Capabilities, wish: dict[str, Any], expected: str, missing: str | None
) -> None:
    request_body = body("vllm", "m", capabilities, **wish)
    (sentence,) = adjustments_of(request_body)
    assert expected in sentence
    assert missing not in request_body.fields


def test_limits_below_what_is_known_are_the_persons() -> None:
    request_body = body("vllm", "m", Capabilities(max_output_tokens=9), max_tokens=5)
    assert request_body.fields["max_tokens"] == 5
    assert adjustments_of(request_body) == []
    assert body("vllm", "m", Capabilities(max_output_tokens=9), max_tokens=50).fields["max_tokens"] == 9


def test_what_a_server_refused_is_said_where_somebody_asked_for_it() -> None:
    assert adjustments_of(body("vllm", "m", None, "temperature", "stream_options", temperature=0.5))[-1] == (
        "This server does not accept temperature, so the question was sent without."
    )
    assert adjustments_of(body("vllm", "m", None, "stream_options")) == []
    assert adjustments_of(body("vllm", "m", None, "max_tokens", max_tokens=3)) == []


class TestFormats:
    """JSON on demand."""

    def test_a_schema(self) -> None:
        request_body = body("openai", "gpt-4.1", response_format=JsonFormat(json_schema=SCHEMA, name="n"))
        inner = {"type": "object", "properties": {"a": {"type": "string"}}}
        expected = {"type": "json_schema", "json_schema": {"name": "n", "schema": inner, "strict": True}}
        assert request_body.fields["response_format"] == expected
        assert adjustments_of(request_body) == []
        loose = body("openai", "gpt-4.1", response_format=JsonFormat(json_schema=SCHEMA, strict=False))
        assert "strict" not in loose.fields["response_format"]["json_schema"]
        mistral = body("mistral", response_format=JsonFormat(json_schema=SCHEMA))
        assert "strict" not in mistral.fields["response_format"]["json_schema"]

    def test_any_object_with_the_word_in_the_instructions(self) -> None:
        request_body = body("openai", "gpt-4.1", response_format=JsonFormat()).fields
        assert request_body["response_format"] == {"type": "json_object"}
        assert "JSON" in request_body["messages"][0]["content"]
        only_schema = body("lmstudio", response_format=JsonFormat()).fields["response_format"]
        assert only_schema == {"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "object"}}}

    @pytest.mark.parametrize(
        "request_body",
        [
            body("stranger", response_format=JsonFormat(json_schema=SCHEMA)),
            body("vllm", "m", None, "response_format", response_format=JsonFormat(json_schema=SCHEMA)),
            body("deepseek", response_format=JsonFormat(json_schema=SCHEMA)),
        ],
    )
    def test_in_words_where_it_is_not_taken(self, request_body: RequestBody) -> None:
        assert request_body.fields.get("response_format") in (None, {"type": "json_object"})
        assert request_body.fields["messages"][0]["content"].startswith("S\n\nAnswer with a JSON object")
        assert '"properties":{"a":{"type":"string"}}' in request_body.fields["messages"][0]["content"]
        assert len(adjustments_of(request_body)) == 1


class TestCaching:
    """Caching options of OpenAI and OpenRouter."""

    def test_off(self) -> None:
        off = PromptCaching(enabled=False)
        assert "prompt_cache_key" not in body("openai", "gpt-4.1", caching=off).fields
        request_body = body("openai", "gpt-5.6-sol", caching=off).fields
        assert "prompt_cache_key" not in request_body
        assert request_body["prompt_cache_options"] == {"mode": "explicit"}

    def test_long(self) -> None:
        request_body = body("openai", "gpt-5.6-sol", caching=PromptCaching(lifetime="long"))
        assert request_body.fields["prompt_cache_key"] == "c"
        marks = [message["content"][-1].get("prompt_cache_breakpoint") for message in request_body.fields["messages"]]
        assert marks == [{"mode": "explicit", "ttl": "12h"}] * 2
        assert adjustments_of(request_body) == []

    def test_of_claude_at_openrouter(self) -> None:
        """OpenRouter caches Anthropic's models on request only; without a cache each turn costs ten times as much."""
        for model in ("anthropic/claude-opus-5", "~anthropic/claude-latest"):
            assert body("openrouter", model).fields["cache_control"] == {"type": "ephemeral"}
            assert "cache_control" not in body("openrouter", model, caching=PromptCaching(enabled=False)).fields
            request_body = body("openrouter", model, caching=PromptCaching(lifetime="long"))
            assert request_body.fields["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
            assert adjustments_of(request_body) == []
        assert "cache_control" not in body("openrouter", "openai/gpt-6-sol").fields
        assert "cache_control" not in body("stranger", "anthropic/claude-opus-5").fields
        refused = body("openrouter", "anthropic/claude-opus-5", None, "cache_control")
        assert "cache_control" not in refused.fields
        assert adjustments_of(refused) == []


def test_showing_of_reasoning_means_something_at_openrouter() -> None:
    assert body("openrouter", show_reasoning=False).fields["reasoning"] == {"exclude": True}
    request_body = body("openrouter", show_reasoning=False, reasoning=effort("low")).fields["reasoning"]
    assert request_body == {"effort": "low", "exclude": True}
    assert body("openrouter", show_reasoning=False, reasoning=OFF).fields["reasoning"] == {"enabled": False}
    assert body("openrouter", reasoning=ADAPTIVE).fields["reasoning"] == {"enabled": True}
    assert "reasoning" not in body("openrouter").fields


def test_groq_hides_reasoning_only_of_models_that_are_known_to_reason() -> None:
    reasons = Capabilities(reasoning=True)
    assert body("groq", "m", reasons, show_reasoning=False).fields["reasoning_format"] == "hidden"
    assert "reasoning_format" not in body("groq", "m", reasons).fields
    assert "reasoning_format" not in body("groq", show_reasoning=False).fields


WISHES = [None, ADAPTIVE, BETWEEN, OFF, ReasoningBudget(tokens=9000), *map(effort, ("minimal", "high", "max"))]


@pytest.mark.parametrize(
    "model", ["gpt-4.1", "gpt-5", "gpt-5.1", "gpt-5.4", "gpt-5.6-sol", "gpt-6-luna", "o4-mini", "new"]
)
@pytest.mark.parametrize("wish", WISHES, ids=repr)
def test_everything_sent_to_openai_is_of_its_own_shape(model: str, wish: Any) -> None:
    answer = Message(role=Role.ASSISTANT, blocks=(Text(text="a"), ToolUse(id="c1", name="f", input={"x": 1})))
    for tools in (False, True):
        for caching in (PromptCaching(), PromptCaching(enabled=False), PromptCaching(lifetime="long")):
            config = ProviderConfig(
                reasoning=wish,
                temperature=0.5,
                top_p=0.5,
                top_k=3,
                max_tokens=9,
                stop_sequences=("x",),
                caching=caching,
                response_format=JsonFormat(json_schema=SCHEMA),
                system_prompt="S",
            )
            request = ModelRequest(
                model, (Message.user("hi"), answer), tools=(TOOL,) if tools else (), config=config, conversation_id="c"
            )
            fields = build_body(request, Recipient(FAMILIES["openai"]), Capabilities()).fields
            assert misfits(fields, CompletionCreateParamsStreaming) == []
