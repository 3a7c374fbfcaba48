from collections.abc import Callable, Sequence

import pytest
from pydantic import BaseModel, ConfigDict

from desktop_agent.tools.tool import AnyTool, ModelSchema, RunningCall, Tool
from desktop_agent.types.blocks import Text
from desktop_agent.types.permissions import CommandSubject, HostSubject, PathSubject, Subject
from desktop_agent.types.tool_calls import Effect, ToolClass


class Wanted(BaseModel):
    model_config = ConfigDict(extra="forbid")

    path: str
    more: dict[str, object] = {}


class About(BaseModel):
    """The input of a tool that says what a call is about."""

    model_config = ConfigDict(extra="forbid")

    paths: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()


async def run(_input: BaseModel, _call: RunningCall) -> tuple[Text, ...]:
    return ()


async def subjects(about: About) -> tuple[Subject, ...]:
    return (
        *(PathSubject(each) for each in about.paths),
        *(HostSubject(each) for each in about.hosts),
        *(CommandSubject(each) for each in about.lines),
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
            schema=ModelSchema(Wanted),
            run=run,
            tool_class=tool_class,
            effects=frozenset(effects),
            scope=scope,
        )

    return make


def open_tool(
    effects: Sequence[Effect], name: str = "act", tool_class: ToolClass = ToolClass.MUTATING, scope: str = "/ws"
) -> AnyTool:
    """A tool whose arguments are what a call is about: paths, hosts, lines."""
    return Tool(
        name=name,
        description="",
        schema=ModelSchema(About),
        run=run,
        tool_class=tool_class,
        effects=frozenset(effects),
        subjects=subjects,
        scope=scope,
    )


@pytest.fixture
def make_open_tool() -> MakeTool:
    return open_tool
