from collections.abc import Callable, Sequence

import pytest
from pydantic import BaseModel, ConfigDict

from desktop_agent.tools.tool import AnyTool, ModelSchema, RunningCall, Tool
from desktop_agent.types.blocks import Text
from desktop_agent.types.permissions import CommandSubject, HostSubject, PathSubject, Subject
from desktop_agent.types.tool_calls import Effect, ToolClass


class PathInput(BaseModel):
    model_config = ConfigDict(extra="forbid")

    path: str
    more: dict[str, object] = {}


class SubjectsInput(BaseModel):
    """The input of a tool whose arguments are the subjects of a call."""

    model_config = ConfigDict(extra="forbid")

    paths: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()


async def run(_input: BaseModel, _call: RunningCall) -> tuple[Text, ...]:
    return ()


async def subjects(arguments: SubjectsInput) -> tuple[Subject, ...]:
    return (
        *(PathSubject(text) for text in arguments.paths),
        *(HostSubject(text) for text in arguments.hosts),
        *(CommandSubject(text) for text in arguments.lines),
    )


MakeTool = Callable[..., AnyTool]


@pytest.fixture
def make_tool() -> MakeTool:
    def make(
        *effects: Effect, name: str = "touch", tool_class: ToolClass = ToolClass.MUTATING, scope: str = ""
    ) -> AnyTool:
        return Tool(
            name=name,
            description="",
            schema=ModelSchema(PathInput),
            run=run,
            tool_class=tool_class,
            effects=frozenset(effects),
            scope=scope,
        )

    return make


def open_tool(
    effects: Sequence[Effect], name: str = "act", tool_class: ToolClass = ToolClass.MUTATING, scope: str = "/ws"
) -> AnyTool:
    """Return a tool whose arguments are the subjects of a call: paths, hosts and command lines."""
    return Tool(
        name=name,
        description="",
        schema=ModelSchema(SubjectsInput),
        run=run,
        tool_class=tool_class,
        effects=frozenset(effects),
        subjects=subjects,
        scope=scope,
    )


@pytest.fixture
def make_open_tool() -> MakeTool:
    return open_tool
