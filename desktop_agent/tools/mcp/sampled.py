"""What a server wants a model to answer, as it comes over the wire, and what goes back.

Tools: https://modelcontextprotocol.io/specification/2025-11-25/client/sampling. The server runs its calls itself.
"""

import json
import re
from typing import TYPE_CHECKING, Any, Literal, cast

from desktop_agent.vocabulary.blocks import Outcome, Text, ToolResult, ToolUse
from desktop_agent.vocabulary.mcp.asking import SamplingAnswer, SamplingContent, SamplingRequest, SamplingTool

if TYPE_CHECKING:
    from mcp_types import (
        CreateMessageRequestParams,
        CreateMessageResult,
        CreateMessageResultWithTools,
        SamplingMessageContentBlock,
    )

MAX_SAMPLING_MESSAGES = 50
MAX_SAMPLING_TOOLS = 30
MAX_SAMPLING_LENGTH = 100_000
"""Characters of all that a person would have to read."""
# As models take them.
_VALID_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")

_Entry = tuple[Literal["user", "assistant"], SamplingContent]


class _UnsupportedRequest(Exception):
    """It cannot be shown to a person as it is, or no model could be asked it."""


def parse_sampling_request(title: str, params: "CreateMessageRequestParams") -> SamplingRequest | None:
    """None for what cannot be shown to a person as it is: pictures, sounds, or more than somebody reads."""
    try:
        request = SamplingRequest(
            title,
            tuple(_parse_messages(params)),
            params.system_prompt or None,
            params.max_tokens,
            tools=_parse_tools(params),
            tool_choice=(params.tool_choice.mode if params.tool_choice else None) or "auto",
        )
        return request if request.characters <= MAX_SAMPLING_LENGTH else None
    except (_UnsupportedRequest, RecursionError):
        return None


def make_sampling_result(
    answer: SamplingAnswer, *, with_tools: bool
) -> "CreateMessageResult | CreateMessageResultWithTools":
    """What the model said, in the form that fits the question."""
    from mcp_types import CreateMessageResult, CreateMessageResultWithTools, TextContent, ToolUseContent

    text, why = TextContent(type="text", text=answer.text), "maxTokens" if answer.is_truncated else "endTurn"
    if not with_tools:
        return CreateMessageResult(role="assistant", content=text, model=answer.model, stop_reason=why)
    content: list[SamplingMessageContentBlock] = [text] if answer.text or not answer.calls else []
    content.extend(ToolUseContent(id=each.id, name=each.name, input=each.input) for each in answer.calls)
    why = "toolUse" if answer.calls else why
    return CreateMessageResultWithTools(role="assistant", content=content, model=answer.model, stop_reason=why)


def _parse_tools(params: "CreateMessageRequestParams") -> tuple[SamplingTool, ...]:
    given = params.tools or []
    names = {each.name for each in given}
    fits = all(_VALID_NAME.fullmatch(each.name) and each.input_schema.get("type") == "object" for each in given)
    if len(given) > MAX_SAMPLING_TOOLS or len(names) < len(given) or not fits:
        raise _UnsupportedRequest
    return tuple(SamplingTool(each.name, each.description or "", each.input_schema) for each in given)


def _parse_messages(params: "CreateMessageRequestParams") -> list[_Entry]:
    """All that was said. Each call is answered in the next message, and nothing else is in that."""
    if len(params.messages) > MAX_SAMPLING_MESSAGES:
        raise _UnsupportedRequest
    entries: list[_Entry] = []
    open_calls: set[str] = set()
    for message in params.messages:
        said = _message_content(message.content)
        answered = [each.tool_use_id for each in said if isinstance(each, ToolResult)]
        calls = [each.id for each in said if isinstance(each, ToolUse)]
        if sorted(answered) != sorted(open_calls) or (answered and len(answered) < len(said)):
            raise _UnsupportedRequest
        if (answered and message.role != "user") or (calls and message.role != "assistant"):
            raise _UnsupportedRequest
        open_calls = set(calls)
        if len(open_calls) < len(calls):
            raise _UnsupportedRequest
        entries.extend((message.role, each) for each in said)
    if open_calls:
        raise _UnsupportedRequest
    return entries


def _message_content(content: Any) -> list[SamplingContent]:
    """The text first, all of it in one; then calls, or what came of them."""
    blocks = cast("list[Any]", content if isinstance(content, list) else [content])
    texts = [each.text for each in blocks if each.type == "text"]
    others = [_tool_content(each) for each in blocks if each.type != "text"]
    return [*(["\n".join(texts)] if texts or not others else []), *others]


def _tool_content(block: Any) -> SamplingContent:
    if block.type == "tool_use" and _VALID_NAME.fullmatch(block.name):
        return ToolUse(id=block.id, name=block.name, input=block.input)
    if block.type != "tool_result" or any(each.type != "text" for each in block.content):
        raise _UnsupportedRequest
    texts = [each.text for each in block.content]
    if not texts and block.structured_content is not None:
        texts = [json.dumps(block.structured_content, ensure_ascii=False)]
    outcome = Outcome.FAILED if block.is_error else Outcome.SUCCEEDED
    parts = tuple(Text(text=each) for each in texts)
    return ToolResult(tool_use_id=block.tool_use_id, content=parts, outcome=outcome)
