"""What the tools that change one file have in common."""

from collections.abc import Callable
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field

from desktop_agent.tools.files.places import changed_paths, path_subjects
from desktop_agent.tools.in_thread import CancelToken, run_in_thread
from desktop_agent.tools.tool import ModelSchema, RunningCall, Tool
from desktop_agent.tools.workspace import Workspace
from desktop_agent.vocabulary.blocks import Text
from desktop_agent.vocabulary.tool_calls import Effect, Preview, ToolClass


class SingleFileInput(BaseModel):
    """Arguments about one file."""

    model_config = ConfigDict(extra="forbid")

    path: str = Field(min_length=1)


Params = TypeVar("Params", bound=SingleFileInput)

_NOT_CHANGED = "No file was changed."
_IN_PROGRESS = "It was changing the file at that very moment; look whether it did."


class FileChange:
    """The one change that a call makes: each step says what holds from there on, should the call be broken off."""

    def __init__(self, call: RunningCall, token: CancelToken) -> None:
        self._call = call
        self._token = token
        call.so_far(_NOT_CHANGED)

    def check(self) -> None:
        """Nothing has happened yet. Raises Stopped when nothing should."""
        self._token.raise_if_cancelled()

    def begin(self) -> None:
        """Right before the effect. Raises Stopped when there should be none."""
        self._token.raise_if_cancelled()
        self._call.so_far(_IN_PROGRESS)

    def finish(self, report: str) -> tuple[Text, ...]:
        """It has taken effect; the result."""
        self._call.so_far(f"It had taken effect by then: {report}")
        return (Text(text=report),)


def file_changing_tool(
    workspace: Workspace,
    name: str,
    description: str,
    arguments: type[Params],
    work: Callable[[Params, FileChange], tuple[Text, ...]],
    preview_of: Callable[[Params], Preview],
) -> Tool[Params]:
    """A tool that changes the file at `path`. `work` does it and `preview_of` shows it beforehand, both in a thread."""

    async def run(params: Params, call: RunningCall) -> tuple[Text, ...]:
        return await run_in_thread(lambda token: work(params, FileChange(call, token)))

    async def preview(params: Params) -> Preview:
        return await run_in_thread(lambda _token: preview_of(params))

    return Tool(
        name=name,
        description=description,
        schema=ModelSchema(arguments),
        run=run,
        tool_class=ToolClass.MUTATING,
        effects=frozenset({Effect.WRITE}),
        preview=preview,
        subjects=lambda params: path_subjects(workspace, params.path),
        changes=lambda params: changed_paths(workspace, params.path),
        scope=str(workspace.folder),
    )
