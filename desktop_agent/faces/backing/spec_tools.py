"""Tools that are only described here: whoever described them runs them."""

from typing import NoReturn

from desktop_agent.tools.tool import AnyTool, RunningCall, Tool
from desktop_agent.vocabulary.blocks import JsonObject
from desktop_agent.vocabulary.errors import ToolFailed
from desktop_agent.vocabulary.tool_calls import ToolSpec


class _Described:
    """Arguments are for the caller to check."""

    def __init__(self, json_schema: JsonObject) -> None:
        self.json_schema = json_schema

    def checked(self, arguments: JsonObject) -> JsonObject:
        """As they came."""
        return arguments


def as_tool(described: AnyTool | ToolSpec) -> AnyTool:
    """The tool itself, or one that can be offered and not run."""
    if isinstance(described, Tool):
        return described

    async def run(_input: JsonObject, _call: RunningCall) -> NoReturn:
        raise ToolFailed(f"“{described.name}” runs elsewhere.")

    schema = _Described(described.input_schema)
    return Tool(name=described.name, description=described.description, schema=schema, run=run)
