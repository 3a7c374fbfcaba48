"""Sampling requests with the server's own tools are passed on whole, or refused."""

import pytest
from mcp_types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ImageContent,
    SamplingMessage,
    TextContent,
    Tool,
    ToolChoice,
    ToolResultContent,
    ToolUseContent,
)

from desktop_agent.mcp.elicitation_and_sampling import (
    MAX_SAMPLING_LENGTH,
    MAX_SAMPLING_TOOLS,
    make_sampling_result,
    parse_sampling_request,
)
from desktop_agent.types.blocks import Outcome, Text, ToolResult, ToolUse
from desktop_agent.types.mcp import SamplingAnswer
from desktop_agent.types.tool_calls import ToolSpec

PLAIN = {"type": "object", "properties": {}}
LOOK = Tool(name="look", description="Looks.", input_schema=PLAIN)


def text(content):
    return TextContent(text=content)


def call(call_id, name="look", **arguments):
    return ToolUseContent(id=call_id, name=name, input=arguments)


def result(call_id, *content, **fields):
    return ToolResultContent(tool_use_id=call_id, content=list(content), **fields)


def parse(*messages, tools=(LOOK,), **fields):
    sampling_messages = [SamplingMessage(role=role, content=list(content)) for role, *content in messages]
    params = CreateMessageRequestParams(messages=sampling_messages, max_tokens=10, tools=list(tools), **fields)
    return parse_sampling_request("Server", params)


def test_calls_and_what_came_of_them_are_read_in_order():
    request = parse(
        ("user", text("Go.")),
        ("assistant", call("a", of="sky"), text("I look."), call("b")),
        ("user", result("b", text("x"), text("y")), result("a", structured_content={"k": 1}, is_error=True)),
        tool_choice=ToolChoice(mode="required"),
    )
    assert request.messages == (
        ("user", "Go."),
        ("assistant", "I look."),
        ("assistant", ToolUse(id="a", name="look", input={"of": "sky"})),
        ("assistant", ToolUse(id="b", name="look")),
        ("user", ToolResult(tool_use_id="b", content=(Text(text="x"), Text(text="y")))),
        ("user", ToolResult(tool_use_id="a", content=(Text(text='{"k": 1}'),), outcome=Outcome.FAILED)),
    )
    assert (request.tools, request.tool_choice) == ((ToolSpec("look", "Looks.", PLAIN),), "required")
    assert parse(("user", text("Go.")), tools=()).tool_choice == "auto"


@pytest.mark.parametrize(
    "messages",
    [
        [("assistant", call("a"))],
        [("user", result("a", text("x")))],
        [("assistant", call("a")), ("user", text("x"))],
        [("assistant", call("a")), ("user", result("a"), text("x"))],
        [("assistant", call("a"), call("b")), ("user", result("a"))],
        [("assistant", call("a"), call("a")), ("user", result("a"))],
        [("assistant", call("a")), ("assistant", result("a"))],
        [("user", call("a")), ("user", result("a"))],
        [("assistant", call("a", "a b")), ("user", result("a"))],
        [("assistant", call("a")), ("user", result("a", ImageContent(data="aGk=", mime_type="image/png")))],
    ],
    ids=[
        "open call",
        "no call",
        "other words",
        "words beside",
        "one is missing",
        "twice the same id",
        "answered by itself",
        "the person calls",
        "odd name",
        "picture",
    ],
)
def test_calls_that_fit_no_model_are_refused(messages):
    assert parse(*messages) is None


@pytest.mark.parametrize(
    "tools",
    [
        [LOOK] * 2,
        [Tool(name=f"t{number}", input_schema=PLAIN) for number in range(MAX_SAMPLING_TOOLS + 1)],
        [Tool(name="a b", input_schema=PLAIN)],
        [Tool(name="a", input_schema={"type": "string"})],
        [Tool(name="a", description="x" * MAX_SAMPLING_LENGTH, input_schema=PLAIN)],
        [Tool(name="a", input_schema={**PLAIN, "title": "x" * MAX_SAMPLING_LENGTH})],
    ],
    ids=["two of a name", "many", "odd name", "no object", "long", "long schema"],
)
def test_tools_that_nobody_could_be_shown_are_refused(tools):
    assert parse(("user", text("Go.")), tools=tools) is None


def test_long_arguments_and_results_count():
    for long_call in (call("a", of="x" * MAX_SAMPLING_LENGTH), call("a")):
        answer = result("a", text("x" * MAX_SAMPLING_LENGTH))
        assert parse(("assistant", long_call), ("user", answer)) is None
    assert parse(("assistant", call("a", of="x" * 1_000)), ("user", result("a", text("x" * 1_000)))) is not None


def test_what_goes_back_has_the_form_that_was_asked_for():
    answer = SamplingAnswer("Hm.", "m", is_truncated=True, calls=(ToolUse(id="a", name="look", input={"of": "sky"}),))
    with_calls = make_sampling_result(answer, with_tools=True)
    assert isinstance(with_calls, CreateMessageResultWithTools)
    assert with_calls.content == [text("Hm."), call("a", of="sky")]
    assert with_calls.stop_reason == "toolUse"
    silent = make_sampling_result(SamplingAnswer("", "m", calls=answer.calls), with_tools=True)
    assert silent.content == [call("a", of="sky")]
    without_calls = make_sampling_result(SamplingAnswer("Blue.", "m"), with_tools=True)
    assert (without_calls.content, without_calls.stop_reason) == ([text("Blue.")], "endTurn")
    plain = make_sampling_result(SamplingAnswer("Bl", "m", is_truncated=True), with_tools=False)
    assert isinstance(plain, CreateMessageResult)
    assert (plain.content, plain.stop_reason) == (text("Bl"), "maxTokens")
