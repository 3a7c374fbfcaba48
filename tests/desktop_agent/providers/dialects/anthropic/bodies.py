"""The rules of the protocol page, written apart from the code: they check every request body in these tests."""

import asyncio
import json
import re
from typing import Any

from desktop_agent.providers.catalogue.catalogue import Catalogue
from desktop_agent.providers.dialects.anthropic.request import RequestBody, build_body
from desktop_agent.providers.dialects.request_building import account_digest
from desktop_agent.providers.transport.json_codec import dumps
from desktop_agent.types.blocks import Block, Text, Thinking, ToolResult, ToolUse
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.provider_events import Origin, StopReason
from desktop_agent.types.providers import Capabilities, ModelInfo, ModelRequest, ProviderConfig
from desktop_agent.types.tool_calls import ToolSpec
from tests.desktop_agent.providers.sdk_types import judge

Json = dict[str, Any]
ROOT = "https://api.anthropic.com"
TABLE = Catalogue(shipped=True)
asyncio.run(TABLE.warm_up())
TOOL = ToolSpec("f", "Does f.", {"type": "object", "properties": {"a": {"type": "integer"}}})

# Accepted thinking types by model, from the page's table.
TYPES: dict[str, set[str]] = {
    "claude-fable-5-2": {"adaptive"},
    "claude-fable-5-1": {"adaptive"},
    "claude-fable-5": {"adaptive"},
    "claude-opus-5-5": {"adaptive"},
    "claude-sonnet-5-5": {"adaptive", "between_tools"},
    "claude-haiku-5-5": {"adaptive", "disabled"},
    "claude-opus-5": {"adaptive", "disabled"},
    "claude-sonnet-5": {"adaptive", "disabled"},
    "claude-opus-4-8": {"adaptive", "disabled"},
    "claude-opus-4-7": {"adaptive", "disabled"},
    "claude-opus-4-6": {"adaptive", "disabled", "enabled"},
    "claude-sonnet-4-6": {"adaptive", "disabled", "enabled"},
    "claude-opus-4-5": {"disabled", "enabled"},
    "claude-sonnet-4-5": {"disabled", "enabled"},
    "claude-haiku-4-5": {"disabled", "enabled"},
}
THOUGHTS = ("thinking", "redacted_thinking")
NOT_FORCED = {"claude-opus-5-5", "claude-fable-5-1", "claude-fable-5-2", "claude-sonnet-5-5"}
LATE_SYSTEM = {"claude-fable-5-2", "claude-fable-5-1", "claude-fable-5", "claude-opus-4-8", "claude-opus-5"}
SMALL = {"claude-opus-4-5", "claude-sonnet-4-5", "claude-haiku-4-5"}


def capabilities_of(model: str) -> Capabilities:
    return TABLE.merged("anthropic", ModelInfo(model)).capabilities


def make_request(*messages: Message, model: str = "claude-opus-5", **more: Any) -> ModelRequest:
    config = ProviderConfig(**{name: more.pop(name) for name in list(more) if name in ProviderConfig.model_fields})
    return ModelRequest(model, messages or (Message.user("hi"),), config=config, **more)


def account(model: str = "claude-opus-5") -> str:
    return account_digest(ROOT, model)


def make_body(request: ModelRequest, capabilities: Capabilities | None = None, **more: Any) -> RequestBody:
    known_capabilities = capabilities or capabilities_of(request.model)
    return build_body(request, known_capabilities, account(request.model), **more)


def body(request: ModelRequest, capabilities: Capabilities | None = None, **more: Any) -> Json:
    """Return the body as it is sent; assert that neither the SDK's types nor the rules refuse it."""
    sent_fields = json.loads(dumps(make_body(request, capabilities, **more).fields))
    assert judge("/v1/messages", sent_fields) == []
    assert refusals(sent_fields) == []
    return sent_fields


def adjustments_of(request: ModelRequest, capabilities: Capabilities | None = None) -> list[str]:
    """Return the adjustments as sentences."""
    return [str(adjustment) for adjustment in make_body(request, capabilities).adjustments]


def plain(value: Any) -> Any:
    """Remove cache marks."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items() if name != "cache_control"}
    return [plain(item) for item in value] if isinstance(value, list) else value


def messages(*history: Message, capabilities: Capabilities | None = None, **more: Any) -> list[Json]:
    return plain(body(make_request(*history, **more), capabilities)["messages"])


def answer(*blocks: Block | str, prefix: str = "", model: str = "claude-opus-5", **more: Any) -> Message:
    """Return an answer of Anthropic's API."""
    content = tuple(Text(text=block) if isinstance(block, str) else block for block in blocks)
    origin = more.pop("origin", Origin(provider="anthropic", account=account(model), prefix=prefix))
    more.setdefault("stop_reason", StopReason.END_TURN)
    return Message(role=Role.ASSISTANT, blocks=content, model=model, origin=origin, **more)


def foreign(*blocks: Block | str, **more: Any) -> Message:
    return answer(*blocks, origin=Origin(provider="gemini", account="other"), **more)


def thought(text: str = "Hm", signature: str = "c2ln") -> Thinking:
    return Thinking(text=text, provider="anthropic", metadata={"type": "thinking", "signature": signature})


def call(call_id: str = "toolu_1", **more: Any) -> ToolUse:
    return ToolUse(id=call_id, name=more.pop("name", "f"), **more)


def result(call_id: str = "toolu_1", text: str = "ok", **more: Any) -> ToolResult:
    return ToolResult(tool_use_id=call_id, content=(Text(text=text),), **more)


def results(*tool_results: ToolResult) -> Message:
    return Message.tool_results(tool_results)


def refusals(body: Json) -> list[str]:
    """Return everything in this body that the protocol page says is refused."""
    problems = [f"{name} is refused" for name in ("temperature", "top_p", "top_k") if name in body]
    problems += _thinking_refusals(body)
    problems += _message_refusals(body["messages"], body["model"])
    problems += _mark_refusals(body)
    for tool in body.get("tools", []):
        if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool["name"]):
            problems.append(f"name of a tool: {tool['name']}")
    return problems


def _thinking_refusals(body: Json) -> list[str]:
    problems: list[str] = []
    model, thinking = body["model"], body.get("thinking") or {}
    thinking_type, effort = thinking.get("type"), body.get("output_config", {}).get("effort")
    if thinking_type and thinking_type not in TYPES.get(model, {thinking_type}):
        problems.append(f"{model} refuses {thinking_type}")
    if thinking_type in ("disabled", "between_tools") and "display" in thinking:
        problems.append("display")
    if thinking_type == "between_tools" and effort not in (None, "low", "medium", "high"):
        problems.append("between_tools beside a high effort")
    if thinking_type == "disabled" and model == "claude-opus-5" and effort in ("xhigh", "max"):
        problems.append("disabled at xhigh or max")
    if thinking_type == "enabled" and not 1024 <= thinking["budget_tokens"] < body["max_tokens"]:
        problems.append("budget_tokens")
    if body.get("tool_choice", {}).get("type") in ("any", "tool") and model in NOT_FORCED:
        problems.append("a forced call")
    most = 64_000 if model in SMALL else 128_000
    if model in TYPES and not 0 <= body["max_tokens"] <= most:
        problems.append("max_tokens")
    return problems


def _message_refusals(messages: list[Json], model: str) -> list[str]:
    problems: list[str] = []
    if not messages or messages[0]["role"] != "user":
        problems.append("does not begin with a user message")
    ids = [part["id"] for entry in messages for part in entry["content"] if part["type"] == "tool_use"]
    if len(set(ids)) != len(ids):
        problems.append("an id twice")
    for index, message in enumerate(messages):
        before = messages[index - 1] if index else {"role": "", "content": []}
        after = messages[index + 1]["role"] if index + 1 < len(messages) else ""
        content = message["content"]
        if not content or any(part["type"] == "text" and not part["text"].strip() for part in content):
            problems.append("empty text or message")
        if message["role"] == before["role"]:
            problems.append("two messages of one role")
        match message["role"]:
            case "system" if model not in LATE_SYSTEM or before["role"] != "user" or after not in ("", "assistant"):
                problems.append("system out of place")
            case "user":
                problems += _user_refusals(content, before)
            case "assistant" if after:
                problems += _answer_refusals(content, after)
            case _:
                pass
    return problems


def _answer_refusals(content: list[Json], after: str) -> list[str]:
    problems = ["ends in thinking"] if content[-1]["type"] in THOUGHTS else []
    if after != "user" and any(part["type"] == "tool_use" for part in content):
        problems.append("calls without results")
    return problems


def _user_refusals(content: list[Json], before: Json) -> list[str]:
    problems: list[str] = []
    calls = [part["id"] for part in before["content"] if part["type"] == "tool_use"]
    answered = [part["tool_use_id"] for part in content if part["type"] == "tool_result"]
    if answered != (calls if before["role"] == "assistant" else []):
        problems.append("results do not match the calls before them")
    if any(part["type"] == "tool_result" for part in content[len(answered) :]):
        problems.append("a result behind text")
    if any(part["type"] == "text" and part.get("citations") for part in content):
        problems.append("citations of a user")
    if any(part.get("is_error") and not part.get("content") for part in content):
        problems.append("an error without words")
    return problems


def _mark_refusals(body: Json) -> list[str]:
    blocks = [*body.get("tools", []), *body.get("system", []), *(b for m in body["messages"] for b in m["content"])]
    marks = [block["cache_control"] for block in blocks if "cache_control" in block]
    problems = ["more than four marks"] if len(marks) + ("cache_control" in body) > 4 else []
    ttls = [mark.get("ttl", "5m") for mark in marks]
    if ttls != sorted(ttls):
        problems.append("5m before 1h")
    if any(
        "cache_control" in block and block["type"] in ("thinking", "redacted_thinking")
        for block in blocks
        if "type" in block
    ):
        problems.append("a mark on thinking")
    return problems
