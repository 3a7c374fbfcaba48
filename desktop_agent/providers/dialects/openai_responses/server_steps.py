"""Output items that are neither text, reasoning nor a call of ours: kept whole, and said in a few words."""

from typing import Any

from desktop_agent.providers.transport.json_text import array_in, is_object, object_in, repair_json, repair_text
from desktop_agent.vocabulary.blocks import ServerStep, Unknown

PROVIDER = "openai-responses"
"""What blocks of this dialect are marked with; which server and model they belong to stands in a message's origin."""

# The reference of the Responses API (output items), November 2026.
_STEP_TYPES = frozenset(
    {
        "additional_tools",
        "apply_patch_call",
        "apply_patch_call_output",
        "code_interpreter_call",
        "compaction",
        "computer_call",
        "computer_call_output",
        "file_search_call",
        "function_call_output",
        "custom_tool_call_output",
        "image_generation_call",
        "local_shell_call",
        "local_shell_call_output",
        "mcp_approval_request",
        "mcp_approval_response",
        "mcp_call",
        "mcp_list_tools",
        "program",
        "program_output",
        "shell_call",
        "shell_call_output",
        "tool_search_call",
        "tool_search_output",
        "web_search_call",
    }
)
_MAX_TEXT_LENGTH = 2000


def parse_step(item: dict[str, Any]) -> ServerStep | Unknown:
    """The item as a block."""
    name = item.get("type")
    raw = repair_json(item)
    if isinstance(name, str) and name in _STEP_TYPES:
        return ServerStep(provider=PROVIDER, name=name, text=_step_text(item)[:_MAX_TEXT_LENGTH], raw=raw)
    return Unknown(raw=raw, provider=PROVIDER)


def _step_text(item: dict[str, Any]) -> str:
    """What was searched, run or called: the item's own words, in one or a few lines."""
    action = object_in(item, "action")
    candidates = (
        _lines(array_in(action, "queries")) or action.get("query") or action.get("url") or action.get("pattern"),
        _lines(array_in(action, "commands")) or _lines(array_in(action, "command"), " "),
        _lines(array_in(item, "queries")),
        item.get("code"),
        item.get("revised_prompt"),
        _call_text(item),
        item.get("result") if item.get("type") == "program_output" else None,
        _lines([each.get("name") for each in array_in(item, "tools") if is_object(each)], ", "),
    )
    return next((repair_text(each) for each in candidates if isinstance(each, str) and each), "")


def _call_text(item: dict[str, Any]) -> str:
    """A call on another server: whose, which, and with what."""
    name, label, arguments = item.get("name"), item.get("server_label"), item.get("arguments")
    if not isinstance(name, str) or not name:
        return ""
    where = f"{label}: " if isinstance(label, str) and label else ""
    return f"{where}{name} {arguments if isinstance(arguments, str) else ''}".rstrip()


def _lines(values: list[Any], between: str = "\n") -> str:
    return between.join(value for value in values if isinstance(value, str) and value)
