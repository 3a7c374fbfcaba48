"""Lists of tools, resources and prompts, one thing at a time: what is wrong with one of them leaves the others."""

from typing import Any, cast

MAX_TOOLS = 200
MAX_LISTED = 1_000
"""Of resources, templates or prompts."""
MAX_TOOL_NAME_LENGTH = 200
UNUSABLE_TOOLS_KEY = "desktop-agent/left-out"
"""In the list's own notes: pairs of the name of a tool that cannot be taken, and why."""
_LISTS = ("resources", "resourceTemplates", "prompts")
_ANNOTATIONS = ("title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


def bound_lists(result: Any) -> Any:
    """The result of a request, as it came over the wire; one more than may be stays, which says that there are more."""
    if not isinstance(result, dict):
        return result
    found = cast("dict[str, Any]", result)
    for name in _LISTS:
        if isinstance(found.get(name), list):
            found = {**found, name: found[name][: MAX_LISTED + 1]}
    return _bound_tools(found) if isinstance(found.get("tools"), list) else found


def _bound_tools(found: dict[str, Any]) -> dict[str, Any]:
    kept: list[Any] = []
    left_out: list[list[str]] = []
    for each in found["tools"][: MAX_TOOLS + 1]:
        why = _tool_problem(each)
        if why:
            left_out.append([_name_of(each), why])
        else:
            kept.append(_known_fields(each))
    notes: Any = found.get("_meta")
    others = cast("dict[str, Any]", notes) if isinstance(notes, dict) else {}
    return {**found, "tools": kept, "_meta": {**others, UNUSABLE_TOOLS_KEY: left_out}}


def _tool_problem(tool: Any) -> str:
    """Why it cannot be taken; empty where it can."""
    if not isinstance(tool, dict):
        return "it is no description of a tool."
    said = cast("dict[str, Any]", tool)
    name, schema = said.get("name"), said.get("inputSchema")
    if not isinstance(name, str) or not name.strip():
        return "it has no name."
    if len(name) > MAX_TOOL_NAME_LENGTH:
        return f"its name is longer than {MAX_TOOL_NAME_LENGTH} characters."
    if not isinstance(schema, dict) or cast("dict[str, Any]", schema).get("type") != "object":
        return "the schema of its arguments does not say “type”: “object”."
    return "" if _is_valid_schema(cast("dict[str, Any]", schema)) else "the schema of its arguments cannot be read."


def _is_valid_schema(schema: dict[str, Any]) -> bool:
    """As the library wants it, which otherwise takes none of the tools."""
    properties, required = schema.get("properties"), schema.get("required")
    is_named = properties is None or (
        isinstance(properties, dict)
        and all(isinstance(each, dict | bool) for each in cast("dict[str, Any]", properties).values())
    )
    is_list = required is None or (
        isinstance(required, list) and all(isinstance(each, str) for each in cast("list[Any]", required))
    )
    return is_named and is_list and isinstance(schema.get("$schema"), str | None)


def _known_fields(tool: dict[str, Any]) -> dict[str, Any]:
    """What is made use of, without what is of a wrong kind."""
    said: Any = tool.get("annotations")
    hints = cast("dict[str, Any]", said) if isinstance(said, dict) else {}
    texts = {name: tool[name] for name in ("title", "description") if isinstance(tool.get(name), str)}
    kinds = {name: str if name == "title" else bool for name in _ANNOTATIONS}
    believed = {name: hints[name] for name, kind in kinds.items() if isinstance(hints.get(name), kind)}
    notes = {"annotations": believed} if isinstance(said, dict) else {}
    return {"name": tool["name"], **texts, "inputSchema": tool["inputSchema"], **notes}


def _name_of(tool: Any) -> str:
    name: Any = cast("dict[str, Any]", tool).get("name") if isinstance(tool, dict) else None
    return name[:MAX_TOOL_NAME_LENGTH] if isinstance(name, str) and name.strip() else "?"
