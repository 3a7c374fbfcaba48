from typing import Any

import pytest

from desktop_agent.providers.dialects.gemini.request import build_body as gemini_body
from desktop_agent.providers.dialects.openai_chat.adapter import build_body as chat_body
from desktop_agent.providers.dialects.openai_chat.messages import Recipient as ChatRecipient
from desktop_agent.providers.dialects.openai_responses.adapter import build_body as responses_body
from desktop_agent.providers.dialects.openai_responses.messages import Recipient as ResponsesRecipient
from desktop_agent.providers.dialects.server_families import FAMILIES
from desktop_agent.types.blocks import Image, Text, ToolResult, ToolUse, UrlSource
from desktop_agent.types.errors import ImagesNotSupported, ToolCallingNotSupported
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.providers import Capabilities, ModelRequest, ProviderConfig
from desktop_agent.types.tool_calls import ToolSpec

PICTURE = Image(source=UrlSource(url="https://a.example/b.png"))
QUESTION = (Message.user("hi"),)


def body(dialect: str, request: ModelRequest, capabilities: Capabilities) -> Any:
    match dialect:
        case "gemini":
            return gemini_body(request, "account", capabilities)
        case "openai-responses":
            return responses_body(request, ResponsesRecipient(FAMILIES["openai"], "account"), capabilities)
        case _:
            return chat_body(request, ChatRecipient(FAMILIES["openai"], "account"), capabilities)


@pytest.fixture(params=["gemini", "openai-responses", "openai-chat"])
def dialect(request: pytest.FixtureRequest) -> str:
    return request.param


def limit(fields: dict[str, Any]) -> Any:
    names = ("max_output_tokens", "max_completion_tokens", "maxOutputTokens")
    return next(
        options[name] for options in (fields, fields.get("generationConfig", {})) for name in names if name in options
    )


@pytest.mark.parametrize(("requested", "most", "expected"), [(9, 8, 8), (8, 8, 8), (3, 8, 3), (9, None, 9)])
def test_no_longer_answer_is_asked_for_than_the_model_can_give(
    dialect: str, requested: int, most: int | None, expected: int
) -> None:
    request = ModelRequest("m", QUESTION, config=ProviderConfig(max_tokens=requested))
    request_body = body(dialect, request, Capabilities(max_output_tokens=most))
    assert limit(request_body.fields) == expected
    expected_adjustments = ["“m” answers with at most 8 tokens, so that is the limit."] if requested != expected else []
    assert [str(adjustment) for adjustment in request_body.adjustments] == expected_adjustments


def test_tools_for_a_model_that_calls_none(dialect: str) -> None:
    request = ModelRequest("m{x}", QUESTION, (ToolSpec("f", "", {"type": "object"}),))
    with pytest.raises(ToolCallingNotSupported, match=r"“m\{x\}” does not call tools"):
        body(dialect, request, Capabilities(tools=False))


@pytest.mark.parametrize("is_in_result", [False, True])
def test_pictures_for_a_model_that_reads_none(dialect: str, *, is_in_result: bool) -> None:
    call = Message(role=Role.ASSISTANT, blocks=(ToolUse(id="c", name="f"),))
    result = Message.tool_results([ToolResult(tool_use_id="c", content=(Text(text="x"), PICTURE))])
    messages = (*QUESTION, call, result) if is_in_result else (Message.user_with_blocks((PICTURE,)),)
    with pytest.raises(ImagesNotSupported, match="“m” does not read pictures"):
        body(dialect, ModelRequest("m", messages), Capabilities(images=False))
