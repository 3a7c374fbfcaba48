"""Whole request bodies."""

import json
import re
from typing import Any

import pytest

from desktop_agent.providers.dialects.gemini.request import RequestBody, bare_model_name, build_body
from desktop_agent.providers.transport.json_codec import dumps
from desktop_agent.types.blocks import Base64Source, Image, Text, ToolResult
from desktop_agent.types.errors import (
    CapabilityMissing,
    ImageRefused,
    ImagesNotSupported,
    ToolCallingNotSupported,
    WrongUse,
)
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.providers import (
    Capabilities,
    JsonFormat,
    ModelRequest,
    ProviderConfig,
    ReasoningEffort,
    ToolChoice,
)
from desktop_agent.types.tool_calls import ToolSpec
from tests.desktop_agent.providers.dialects.gemini.stream import ACCOUNT, MODEL
from tests.desktop_agent.providers.dialects.gemini.test_messages import (
    ELSEWHERE,
    PICTURE,
    PNG,
    answer_with,
    call,
    recorded,
)
from tests.desktop_agent.providers.sdk_types import judge

TOOL = ToolSpec("f", "Does f.", {"$schema": "x", "type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}})
HI = [{"role": "user", "parts": [{"text": "hi"}]}]


def request(*messages: Message, model: str = MODEL, **more: Any) -> ModelRequest:
    config = ProviderConfig(**{name: more.pop(name) for name in list(more) if name in ProviderConfig.model_fields})
    return ModelRequest(model, messages or (Message.user("hi"),), config=config, **more)


def make_body(question: ModelRequest, capabilities: Capabilities = Capabilities()) -> RequestBody:  # noqa: B008
    body = build_body(question, ACCOUNT, capabilities)
    assert judge(f"/v1beta/models/{MODEL}:streamGenerateContent", json.loads(dumps(body.fields))) == []
    return body


def fields(*messages: Message, capabilities: Capabilities = Capabilities(), **more: Any) -> dict[str, Any]:  # noqa: B008
    return json.loads(dumps(make_body(request(*messages, **more), capabilities).fields))


def test_a_question_and_nothing_else() -> None:
    assert fields(show_reasoning=False, conversation_id="c") == {"contents": HI}
    assert fields() == {"contents": HI, "generationConfig": {"thinkingConfig": {"includeThoughts": True}}}


def test_instructions_stand_above() -> None:
    sent_fields = fields(Message.user("hi"), Message.system("late"), system_prompt="first")
    assert sent_fields["systemInstruction"] == {"parts": [{"text": "first\n\nlate"}]}


def test_generation() -> None:
    schema = {"type": "object", "additionalProperties": False}
    sent_fields = fields(
        temperature=0.0,
        top_p=0.5,
        top_k=3,
        max_tokens=9,
        stop_sequences=("x",),
        response_format=JsonFormat(json_schema=schema),
        show_reasoning=False,
    )
    assert sent_fields["generationConfig"] == {
        "temperature": 0.0,
        "topP": 0.5,
        "topK": 3,
        "maxOutputTokens": 9,
        "stopSequences": ["x"],
        "responseMimeType": "application/json",
        "responseJsonSchema": schema,
    }
    loose = fields(response_format=JsonFormat(), show_reasoning=False)
    assert loose["generationConfig"] == {"responseMimeType": "application/json"}


def test_tools_and_the_choice_among_them() -> None:
    sent_fields = fields(tools=(TOOL, ToolSpec("g", "", {"type": "object"})))
    assert sent_fields["tools"] == [
        {
            "functionDeclarations": [
                {
                    "name": "f",
                    "description": "Does f.",
                    "parametersJsonSchema": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}},
                },
                {"name": "g", "parametersJsonSchema": {"type": "object"}},
            ]
        }
    ]
    assert "toolConfig" not in sent_fields
    assert "tools" not in fields(tool_choice=ToolChoice("required"))
    for choice, expected in (
        (ToolChoice("none"), {"mode": "NONE"}),
        (ToolChoice("required"), {"mode": "ANY"}),
        (ToolChoice("named", "f"), {"mode": "ANY", "allowedFunctionNames": ["f"]}),
    ):
        chosen = fields(tools=(TOOL,), tool_choice=choice)
        assert chosen["toolConfig"] == {"functionCallingConfig": expected}


def test_extra_options_win_and_reach_into_the_generation() -> None:
    extra: dict[str, Any] = {
        "generationConfig": {"seed": 7, "temperature": 1, "thinkingConfig": {"thinkingBudget": 5}},
        "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "OFF"}],
        "tools": [{"googleSearch": {}}],
    }
    sent_fields = fields(temperature=0.5, top_k=3, reasoning=ReasoningEffort(), extra_options=extra, tools=(TOOL,))
    assert sent_fields["generationConfig"] == {
        "temperature": 1,
        "topK": 3,
        "seed": 7,
        "thinkingConfig": {"includeThoughts": True, "thinkingBudget": 5},
    }
    assert sent_fields["tools"] == [{"googleSearch": {}}]
    silent = {"generationConfig": {"thinkingConfig": {"includeThoughts": False}}}
    generation = fields(reasoning=ReasoningEffort(level="low"), extra_options=silent)["generationConfig"]
    assert generation == {"thinkingConfig": {"includeThoughts": False, "thinkingLevel": "LOW"}}


def test_names_of_tools_that_the_api_refuses_are_written_in_others() -> None:
    refused = ["", "1f", "my tool", "my/tool", "ü", "x" * 129, "-a", "f\n"]
    body = make_body(request(tools=tuple(ToolSpec(name, "", {}) for name in refused)))
    declared = [declaration["name"] for declaration in body.fields["tools"][0]["functionDeclarations"]]
    assert len(set(declared)) == len(refused)
    assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}", name) for name in declared)
    chosen = make_body(request(tools=(ToolSpec("1f", "", {}),), tool_choice=ToolChoice("named", "1f")))
    assert chosen.fields["toolConfig"]["functionCallingConfig"]["allowedFunctionNames"] == ["_1f"]


def test_names_of_tools_that_it_takes() -> None:
    for name in ("f", "_1", "mcp:server.tool-x", "x" * 128):
        body = make_body(request(tools=(ToolSpec(name, "d", {"type": "object"}),)))
        assert body.fields["tools"][0]["functionDeclarations"][0]["name"] == name


def test_what_is_said_differently_is_told() -> None:
    capabilities = Capabilities(sampling=False, forced_tools=False)
    question = request(
        temperature=0.5, tools=(TOOL,), tool_choice=ToolChoice("required"), reasoning=ReasoningEffort(level="max")
    )
    body = make_body(question, capabilities)
    assert "temperature" not in body.fields["generationConfig"]
    assert "toolConfig" not in body.fields
    assert len(body.adjustments) == 3
    assert make_body(request(Message.user("hi"), answer_with(call(), origin=ELSEWHERE))).adjustments
    assert make_body(request()).adjustments == ()


@pytest.mark.parametrize(
    ("question", "capabilities", "error_type"),
    [
        (request(tools=(TOOL,)), Capabilities(tools=False), ToolCallingNotSupported),
        (request(Message.user_with_blocks((PICTURE,))), Capabilities(images=False), ImagesNotSupported),
        (
            request(
                Message.user("x"),
                answer_with(call()),
                Message.tool_results([ToolResult(tool_use_id="c1", content=(PICTURE,))]),
            ),
            Capabilities(images=False),
            ImagesNotSupported,
        ),
        (request(response_format=JsonFormat()), Capabilities(structured_output=False), CapabilityMissing),
        (request(stop_sequences=tuple("abcdef")), Capabilities(), WrongUse),
        (request(Message.system("only this")), Capabilities(), WrongUse),
        (request(Message(role=Role.USER, blocks=(Text(text=""),))), Capabilities(), WrongUse),
    ],
)
def test_refused_before_the_network(
    question: ModelRequest, capabilities: Capabilities, error_type: type[Exception]
) -> None:
    with pytest.raises(error_type) as caught:
        make_body(question, capabilities)
    assert str(caught.value).endswith(".")


def test_too_many_bytes_of_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("desktop_agent.providers.dialects.gemini.request.MAX_INLINE_BYTES", len(PNG) * 2)
    two = Image(source=Base64Source(media_type="image/png", data=PNG))
    make_body(request(Message.user_with_blocks((two, two))))
    with pytest.raises(ImageRefused, match="100 MB"):
        make_body(request(Message.user_with_blocks((two, two, two))))


def test_the_same_request_is_the_same_bytes() -> None:
    signed = recorded("tools_parallel")
    question = request(Message.user("a"), signed, Message.user("c"), tools=(TOOL,), system_prompt="s")
    assert dumps(make_body(question).fields) == dumps(make_body(question).fields)
    longer = request(
        *question.messages, answer_with(Text(text="d")), Message.user("e"), tools=(TOOL,), system_prompt="s"
    )
    assert make_body(longer).fields["contents"][:3] == make_body(question).fields["contents"][:3]


def test_names_with_and_without_their_folder() -> None:
    assert bare_model_name("models/x") == bare_model_name("x") == "x"
