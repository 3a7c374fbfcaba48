"""Tools that are only described here: whoever described them runs them."""

from typing import NoReturn, cast

from desktop_agent.tools.tool import AnyTool, RunningCall, Tool
from desktop_agent.vocabulary.blocks import JsonObject
from desktop_agent.vocabulary.errors import ToolFailed, WrongUse
from desktop_agent.vocabulary.tool_calls import ToolSpec


class _UncheckedSchema:
    """Arguments are for the caller to check."""

    def __init__(self, json_schema: JsonObject) -> None:
        self.json_schema = json_schema

    def checked(self, arguments: JsonObject) -> JsonObject:
        """As they came."""
        return arguments


def to_tool_spec(described: object) -> ToolSpec:
    """What the model is told of it. Raises WrongUse for what is no tool."""
    if isinstance(described, ToolSpec):
        return described
    if isinstance(described, Tool):
        return cast("AnyTool", described).spec
    name = getattr(described, "__name__", type(described).__name__)
    raise WrongUse(f"“{name}” is not a tool.", "Make it one with @tool.")


def to_tool(described: AnyTool | ToolSpec) -> AnyTool:
    """The tool itself, or one that can be offered and not run."""
    if isinstance(described, Tool):
        return described

    spec = to_tool_spec(described)

    async def run(_input: JsonObject, _call: RunningCall) -> NoReturn:
        raise ToolFailed(f"“{spec.name}” runs elsewhere.")

    schema = _UncheckedSchema(spec.input_schema)
    return Tool(name=spec.name, description=spec.description, schema=schema, run=run)
