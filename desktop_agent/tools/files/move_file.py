"""The tool that gives a file another name or another folder."""

import stat

from pydantic import BaseModel, ConfigDict, Field

from desktop_agent.tools.files.changing import FileChange
from desktop_agent.tools.files.places import changed_paths, path_subjects
from desktop_agent.tools.in_thread import run_in_thread
from desktop_agent.tools.tool import ModelSchema, RunningCall, Tool
from desktop_agent.tools.workspace import Workspace, WorkspacePath
from desktop_agent.vocabulary.blocks import Text
from desktop_agent.vocabulary.conduct.rules import PathSubject
from desktop_agent.vocabulary.errors import Sentence, ToolFailed
from desktop_agent.vocabulary.tool_calls import Effect, Preview, TextPreview, ToolClass


class MoveFileInput(BaseModel):
    """What to move, and to where."""

    model_config = ConfigDict(extra="forbid")

    source: str = Field(min_length=1, description="The file, relative to the workspace folder.")
    target: str = Field(min_length=1, description="Its new path with its new name; folders are made as needed.")
    replace: bool = Field(default=False, description="Whether a file that is there already may be replaced.")


def move_file(workspace: Workspace) -> Tool[MoveFileInput]:
    """Make the tool for a workspace."""

    def work(params: MoveFileInput, change: FileChange) -> tuple[Text, ...]:
        change.check()
        source, target, old = _check_move(workspace, params)
        workspace.move(source, target, before_moving=change.begin, replace=params.replace)
        return change.finish(f"Moved {source} to {target}{', replacing what was there' if old else ''}.")

    def look(params: MoveFileInput) -> Preview:
        source, target, old = _check_move(workspace, params)
        lost = f"\n\nThis replaces {target} ({old:,} bytes)." if old is not None else ""
        return TextPreview(f"Moves {source}\nto {target}{lost}")

    async def run(params: MoveFileInput, call: RunningCall) -> tuple[Text, ...]:
        return await run_in_thread(lambda token: work(params, FileChange(call, token)))

    async def preview(params: MoveFileInput) -> Preview:
        return await run_in_thread(lambda _token: look(params))

    async def subjects(params: MoveFileInput) -> tuple[PathSubject, ...]:
        return (*await path_subjects(workspace, params.source), *await path_subjects(workspace, params.target))

    async def changes(params: MoveFileInput) -> tuple[str, ...]:
        return (*await changed_paths(workspace, params.source), *await changed_paths(workspace, params.target))

    return Tool(
        name="move_file",
        description="Move or rename one file of the workspace. What is at the new place is kept unless replace is set.",
        schema=ModelSchema(MoveFileInput),
        run=run,
        tool_class=ToolClass.MUTATING,
        effects=frozenset({Effect.WRITE}),
        preview=preview,
        subjects=subjects,
        changes=changes,
        scope=str(workspace.folder),
    )


def _check_move(workspace: Workspace, params: MoveFileInput) -> tuple[WorkspacePath, WorkspacePath, int | None]:
    """From where, to where, and how many bytes are replaced there, None for nothing. Raises ToolFailed."""
    source, target = workspace.locate(params.source), workspace.locate(params.target)
    if source == target:
        raise ToolFailed(Sentence("“{path}” is there already.", {"path": str(source)}))
    _file_size(workspace, source)
    if not target.parts or not workspace.exists(target):
        if not target.parts:
            raise _folder_error(target)
        return source, target, None
    size = _file_size(workspace, target)
    if not params.replace:
        what = Sentence("There is a “{path}” already.", {"path": str(target)})
        raise ToolFailed(what, "Choose another name, or set replace.")
    return source, target, size


def _file_size(workspace: Workspace, place: WorkspacePath) -> int:
    found = workspace.stat(place) if place.parts else None
    if place.parts and found is None:
        raise ToolFailed(Sentence("There is no “{path}” in the workspace.", {"path": str(place)}))
    if found is None or stat.S_ISDIR(found.st_mode):
        raise _folder_error(place)
    return found.st_size


def _folder_error(place: WorkspacePath) -> ToolFailed:
    what = Sentence("“{path}” is a folder; only files are moved.", {"path": str(place)})
    return ToolFailed(what, "Name the file, and the file that it becomes.")
