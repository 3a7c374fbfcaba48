"""What the tools that change one file have in common."""

from collections.abc import Callable
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field

from desktop_agent.tools.files.places import changes_of, subjects_of
from desktop_agent.tools.in_thread import StopSign, in_thread
from desktop_agent.tools.tool import ModelSchema, RunningCall, Tool
from desktop_agent.tools.workspace import Workspace
from desktop_agent.vocabulary.blocks import Text
from desktop_agent.vocabulary.tool_calls import Effect, Preview, ToolClass


class OneFile(BaseModel):
    """Arguments about one file."""

    model_config = ConfigDict(extra="forbid")

    path: str = Field(min_length=1)


Wanted = TypeVar("Wanted", bound=OneFile)


def changing_tool(
    workspace: Workspace,
    name: str,
    description: str,
    arguments: type[Wanted],
    work: Callable[[Wanted, StopSign], tuple[Text, ...]],
    look: Callable[[Wanted], Preview],
) -> Tool[Wanted]:
    """A tool that changes the file at `path`. `work` does it and `look` shows it beforehand, both in a thread."""

    async def run(wanted: Wanted, _call: RunningCall) -> tuple[Text, ...]:
        return await in_thread(lambda sign: work(wanted, sign))

    async def preview(wanted: Wanted) -> Preview:
        return await in_thread(lambda _sign: look(wanted))

    return Tool(
        name=name,
        description=description,
        schema=ModelSchema(arguments),
        run=run,
        tool_class=ToolClass.MUTATING,
        effects=frozenset({Effect.WRITE}),
        preview=preview,
        subjects=lambda wanted: subjects_of(workspace, wanted.path),
        changes=lambda wanted: changes_of(workspace, wanted.path),
        scope=str(workspace.folder),
    )
