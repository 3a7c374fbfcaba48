"""The request body, also checked against the vendor's own types."""

from typing import Any

import pytest

from desktop_agent.providers.dialects.openai_responses.adapter import (
    ResponsesRequest,
    build_body,
    count_fields,
    refused_fields,
)
from desktop_agent.providers.dialects.openai_responses.messages import Recipient
from desktop_agent.providers.dialects.server_families import FAMILIES
from desktop_agent.providers.transport.error_responses import error_from_status
from desktop_agent.providers.transport.json_codec import dumps
from desktop_agent.types.blocks import Text, Thinking, ToolResult
from desktop_agent.types.errors import ImagesNotSupported, ToolCallingNotSupported
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.providers import (
    Capabilities,
    JsonFormat,
    ModelRequest,
    PromptCaching,
    ProviderConfig,
    ReasoningDisabled,
    ReasoningEffort,
    ToolChoice,
)
from desktop_agent.types.tool_calls import ToolSpec
from tests.desktop_agent.providers.sdk_types import judge

ASKED = Message.user("hi")
TOOL = ToolSpec("get", "Gets.", {"type": "object", "properties": {}, "$schema": "x"})
NOTHING = Capabilities()


def body(
    family: str = "openai",
    model: str = "gpt-6-sol",
    capabilities: Capabilities = NOTHING,
    without: frozenset[str] = frozenset(),
    **more: Any,
) -> ResponsesRequest:
    config = ProviderConfig(**more.pop("config", {}))
    request = ModelRequest(**{"model": model, "messages": (ASKED,), "config": config, **more})
    request_body = build_body(request, Recipient(FAMILIES[family], "acc"), capabilities, without)
    assert judge("/v1/responses", request_body.fields) == []
    return request_body


def adjustments_of(request_body: ResponsesRequest) -> str:
    return " ".join(map(str, request_body.adjustments))


def test_the_least_that_is_sent_to_openai() -> None:
    request_body = body(config={"show_reasoning": False})
    assert request_body.fields == {
        "model": "gpt-6-sol",
        "stream": True,
        "store": False,
        "stream_options": {"include_obfuscation": False},
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}],
    }
    assert request_body.adjustments == ()


@pytest.mark.parametrize("family", ["stranger", "lmstudio", "llamacpp", "vllm", "openrouter", "ollama"])
def test_strangers_get_the_old_core(family: str) -> None:
    request_body = body(
        family, config={"system_prompt": "Be kind.", "max_tokens": 9}, conversation_id="c", tools=(TOOL,)
    )
    assert set(request_body.fields) == {
        "model",
        "stream",
        "store",
        "instructions",
        "max_output_tokens",
        "tools",
        "input",
    }
    assert request_body.fields["store"] is False


def test_all_that_can_be_wished_for() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    request_body = body(
        tools=(TOOL,),
        tool_choice=ToolChoice("named", "get"),
        conversation_id="conv",
        config={
            "system_prompt": "Be kind.",
            "max_tokens": 99,
            "reasoning": ReasoningEffort(level="high"),
            "response_format": JsonFormat(json_schema=schema, name="thing"),
            "caching": PromptCaching(lifetime="long"),
        },
    )
    fields = request_body.fields
    assert fields["instructions"] == "Be kind."
    assert fields["max_output_tokens"] == 99
    assert fields["reasoning"] == {"effort": "high", "summary": "auto"}
    assert fields["text"] == {"format": {"type": "json_schema", "name": "thing", "schema": schema, "strict": True}}
    assert fields["tools"] == [
        {
            "type": "function",
            "name": "get",
            "parameters": {"type": "object", "properties": {}},
            "strict": False,
            "description": "Gets.",
        }
    ]
    assert fields["tool_choice"] == {"type": "function", "name": "get"}
    assert fields["prompt_cache_key"] == "conv"
    assert fields["prompt_cache_options"] == {"mode": "implicit", "ttl": "12h"}


@pytest.mark.parametrize("family", ["openai", "azure", "xai", "llamacpp", "stranger"])
def test_any_object_as_the_format_is_named_in_the_messages_too(family: str) -> None:
    fields = body(family, config={"system_prompt": "Be kind.", "response_format": JsonFormat()}).fields
    assert fields["text"] == {"format": {"type": "json_object"}}
    # OpenAI refuses the mode unless a message says JSON; local servers take instructions at the top only.
    field = "input" if family in ("openai", "azure", "xai") else "instructions"
    assert "JSON" in str(fields[field])
    assert fields["instructions"].startswith("Be kind.")


def test_sampling_stands_aside_while_a_model_reasons() -> None:
    request_body = body(config={"temperature": 0.5, "top_p": 0.9, "top_k": 3})
    assert not {"temperature", "top_p", "top_k"} & request_body.fields.keys()
    assert "does not take temperature, top_p while it reasons" in adjustments_of(request_body)
    assert "no top_k" in adjustments_of(request_body)
    off = body(config={"temperature": 0.5, "reasoning": ReasoningDisabled()})
    assert (off.fields["temperature"], off.adjustments) == (0.5, ())
    assert body("llamacpp", config={"temperature": 0.5}).fields["temperature"] == 0.5


def test_stop_sequences_are_said_to_be_left_out() -> None:
    request_body = body(config={"stop_sequences": ("END",)})
    assert "no stop sequences" in adjustments_of(request_body)
    assert "stop" not in request_body.fields


def test_caching_may_be_turned_off_where_a_model_can_be_told() -> None:
    off = {"caching": PromptCaching(enabled=False)}
    assert body(config=off, conversation_id="c").fields["prompt_cache_options"] == {"mode": "explicit"}
    older = body(model="gpt-5.5", config=off, conversation_id="c").fields
    assert not {"prompt_cache_options", "prompt_cache_key"} & older.keys()


def test_a_long_lifetime_that_a_model_does_not_know() -> None:
    request_body = body(model="gpt-5.5", config={"caching": PromptCaching(lifetime="long")})
    assert "prompt_cache_options" not in request_body.fields
    assert "cannot be chosen" in adjustments_of(request_body)


@pytest.mark.parametrize(
    ("family", "model", "asks"),
    [
        ("openai", "gpt-6-sol", False),
        ("azure", "gpt-5.6-sol", True),
        ("azure", "gpt-4.1", False),
        ("xai", "grok-4.7", True),
        ("vllm", "gpt-oss", False),
    ],
)
def test_reasoning_state_is_asked_for_where_it_does_not_come_by_itself(family: str, model: str, asks: bool) -> None:
    fields = body(family, model).fields
    assert fields.get("include") == (["reasoning.encrypted_content"] if asks else None)


@pytest.mark.parametrize(
    ("choice", "family", "capabilities", "expected", "adjusted"),
    [
        (ToolChoice("none"), "openai", NOTHING, "none", False),
        (ToolChoice("required"), "openai", NOTHING, "required", False),
        (ToolChoice("required"), "openai", Capabilities(forced_tools=False), None, True),
        (ToolChoice("named", "get"), "ollama", NOTHING, None, True),
    ],
)
def test_tool_choice(
    choice: ToolChoice, family: str, capabilities: Capabilities, expected: Any, adjusted: bool
) -> None:
    request_body = body(family, capabilities=capabilities, tools=(TOOL,), tool_choice=choice)
    assert request_body.fields.get("tool_choice") == expected
    assert bool(request_body.adjustments) is adjusted
    assert "tools" in request_body.fields


def test_none_without_a_way_to_say_so_is_no_tools() -> None:
    assert "tools" not in body("ollama", tools=(TOOL,), tool_choice=ToolChoice("none")).fields
    assert "tool_choice" not in body(tool_choice=ToolChoice("required")).fields


def test_extra_options_win_and_count_for_the_prefix() -> None:
    mine = body(config={"system_prompt": "a", "extra_options": {"instructions": "b", "store": True}})
    assert (mine.fields["instructions"], mine.fields["store"]) == ("b", True)
    assert "store" not in mine.droppable
    assert mine.prefix == body(config={"system_prompt": "b"}).prefix
    assert mine.prefix != body(config={"system_prompt": "a"}).prefix


@pytest.mark.parametrize(
    "change",
    [
        {"config": {"system_prompt": "other"}},
        {"tools": (TOOL,)},
        {"config": {"reasoning": ReasoningEffort(level="low")}},
        {"config": {"response_format": JsonFormat()}},
        {"messages": (Message.user("other"),)},
    ],
)
def test_what_changes_the_prefix(change: dict[str, Any]) -> None:
    assert body(**change).prefix != body().prefix


@pytest.mark.parametrize(
    "change", [{"config": {"max_tokens": 5}}, {"conversation_id": "c"}, {"config": {"show_reasoning": False}}]
)
def test_what_does_not_change_the_prefix(change: dict[str, Any]) -> None:
    assert body(**change).prefix == body().prefix


def test_what_a_server_cannot_do() -> None:
    with pytest.raises(ToolCallingNotSupported):
        body(capabilities=Capabilities(tools=False), tools=(TOOL,))
    picture = Message.user_with_image("see", "https://a.example/b.png")
    in_result = Message.tool_results([ToolResult(tool_use_id="c", content=(picture.blocks[1],))])  # type: ignore[arg-type]
    for message in (picture, in_result):
        with pytest.raises(ImagesNotSupported):
            body(capabilities=Capabilities(images=False), messages=(message,))


def test_what_was_refused_is_left_out_and_said() -> None:
    config = {"reasoning": ReasoningEffort(level="high")}
    request_body = body(config=config, without=frozenset({"reasoning.summary", "stream_options"}))
    assert request_body.fields["reasoning"] == {"effort": "high"}
    assert "stream_options" not in request_body.fields
    assert "does not accept reasoning.summary, stream_options" in adjustments_of(request_body)
    assert "reasoning" not in body(without=frozenset({"reasoning.summary"})).fields
    assert "may store the conversation" in adjustments_of(body("vllm", without=frozenset({"store"})))


REASONED = Message(
    role=Role.ASSISTANT,
    blocks=(
        Thinking(
            text="",
            provider="openai-responses",
            metadata={"item": {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "b"}},
        ),
        Text(text="A"),
    ),
)


@pytest.mark.parametrize(
    ("family", "error", "named"),
    [
        ("openai", {"message": "no", "param": "reasoning.summary"}, {"reasoning.summary"}),
        ("openai", {"message": "no", "param": "reasoning"}, {"reasoning"}),
        ("openai", {"message": "no", "param": "reasoning.context"}, {"reasoning"}),
        ("openai", {"message": "no", "param": "prompt_cache_options.ttl"}, {"prompt_cache_options"}),
        ("openai", {"message": "store is bad", "param": "input[0].id"}, set()),
        ("openai", {"message": "no", "param": "max_output_tokens"}, set()),
        ("vllm", {"message": "unknown field `store`"}, {"store"}),
        ("vllm", {"message": "summaries are not available here"}, set()),
        ("vllm", {"message": "unknown effort: high"}, {"reasoning.effort"}),
        ("vllm", {"message": "Item of type 'reasoning' was provided without its item"}, set()),
        ("vllm", {"message": "max_output_tokens must be smaller"}, set()),
    ],
)
def test_which_field_an_error_is_about(family: str, error: dict[str, Any], named: set[str]) -> None:
    config = {"reasoning": ReasoningEffort(level="high"), "max_tokens": 5, "caching": PromptCaching(lifetime="long")}
    request_body = body(family, config=config, messages=(ASKED, REASONED, ASKED))
    answer = error_from_status(400, {}, dumps({"error": {"type": "invalid_request_error", **error}}))
    assert refused_fields(answer, request_body) == named


def test_the_list_of_a_strict_server() -> None:
    answer = error_from_status(
        422, {}, dumps({"detail": [{"loc": ["body", "store"], "msg": "Extra inputs not permitted"}]})
    )
    assert refused_fields(answer, body("vllm")) == {"store"}


def test_what_is_counted() -> None:
    fields = count_fields(body(config={"max_tokens": 5}, tools=(TOOL,)))
    assert judge("/v1/responses/input_tokens", fields) == []
    assert set(fields) == {"model", "input", "reasoning", "tools"}
