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

_NOTHING_YET = "No file was changed."
_UNDER_WAY = "It was changing the file at that very moment; look whether it did."


class Change:
    """The one change that a call makes: each step says what holds from there on, should the call be broken off."""

    def __init__(self, call: RunningCall, sign: StopSign) -> None:
        self._call = call
        self._sign = sign
        call.so_far(_NOTHING_YET)

    def check(self) -> None:
        """Nothing has happened yet. Raises Stopped when nothing should."""
        self._sign.check()

    def last_look(self) -> None:
        """Right before the effect. Raises Stopped when there should be none."""
        self._sign.check()
        self._call.so_far(_UNDER_WAY)

    def done(self, report: str) -> tuple[Text, ...]:
        """It has taken effect; the result."""
        self._call.so_far(f"It had taken effect by then: {report}")
        return (Text(text=report),)


def changing_tool(
    workspace: Workspace,
    name: str,
    description: str,
    arguments: type[Wanted],
    work: Callable[[Wanted, Change], tuple[Text, ...]],
    look: Callable[[Wanted], Preview],
) -> Tool[Wanted]:
    """A tool that changes the file at `path`. `work` does it and `look` shows it beforehand, both in a thread."""

    async def run(wanted: Wanted, call: RunningCall) -> tuple[Text, ...]:
        return await in_thread(lambda sign: work(wanted, Change(call, sign)))

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
