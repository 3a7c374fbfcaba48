from collections.abc import Callable

import pytest
from pydantic import BaseModel, ConfigDict

from desktop_agent.tools.tool import AnyTool, Progress, Tool
from desktop_agent.vocabulary.blocks import Text
from desktop_agent.vocabulary.tool_calls import Effect, ToolClass


class Wanted(BaseModel):
    model_config = ConfigDict(extra="forbid")

    path: str
    more: dict[str, object] = {}


async def run(_input: Wanted, _progress: Progress) -> tuple[Text, ...]:
    return ()


MakeTool = Callable[..., AnyTool]


@pytest.fixture
def make_tool() -> MakeTool:
    def make(
        *effects: Effect, name: str = "touch", tool_class: ToolClass = ToolClass.MUTATING, scope: str = ""
    ) -> AnyTool:
        return Tool(
            name=name,
            description="",
            input_model=Wanted,
            run=run,
            tool_class=tool_class,
            effects=frozenset(effects),
            scope=scope,
        )

    return make
