"""The tool that finds files by their names."""

import heapq
from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from desktop_agent.tools.files.places import path_subjects
from desktop_agent.tools.in_thread import CancelToken, run_in_thread
from desktop_agent.tools.searching.globs import GLOB_LIMIT, Glob
from desktop_agent.tools.searching.walking import FileWalk
from desktop_agent.tools.tool import ModelSchema, RunningCall, Tool
from desktop_agent.tools.workspace import Workspace, WorkspacePath
from desktop_agent.vocabulary.blocks import Text
from desktop_agent.vocabulary.errors import ToolFailed
from desktop_agent.vocabulary.tool_calls import Effect, ToolClass

MAX_FOUND = 500

_FoundFile = tuple[float, str, int]


class FindFilesInput(BaseModel):
    """What to find."""

    model_config = ConfigDict(extra="forbid")

    names: str = Field(
        min_length=1, max_length=GLOB_LIMIT, description="A pattern: *.py means names anywhere, src/**/*.py paths."
    )
    path: str = Field(default=".", description="The folder to look in, relative to the workspace folder.")


def find_files(workspace: Workspace) -> Tool[FindFilesInput]:
    """Make the tool for a workspace."""

    def work(params: FindFilesInput, token: CancelToken) -> tuple[Text, ...]:
        place, glob = workspace.locate(params.path), Glob(params.names)
        walk = FileWalk(workspace, place, token.raise_if_cancelled)
        newest: list[_FoundFile] = []
        count = 0
        for file, size in walk.files():
            if glob.matches(file.parts[len(place.parts) :] or file.parts[-1:]):
                count += 1
                _push_newest(newest, (_modified_at(workspace, file), str(file), size))
        lines = [_line(*each) for each in sorted(newest, key=lambda each: (-each[0], each[1]))]
        if count > len(lines):
            lines.append(f"[{count - len(lines):,} older files are left out.]")
        if walk.is_cut:
            lines.append("[There are too many files; not all were looked at. Look in a folder inside.]")
        return (Text(text="\n".join(lines) or f"[No file is called “{params.names}”; hidden ones do not count.]"),)

    async def run(params: FindFilesInput, _call: RunningCall) -> tuple[Text, ...]:
        return await run_in_thread(lambda token: work(params, token))

    return Tool(
        name="find_files",
        description="Find files of the workspace by name, the newest first. Hidden files and folders are passed over.",
        schema=ModelSchema(FindFilesInput),
        run=run,
        tool_class=ToolClass.READ_ONLY,
        effects=frozenset({Effect.READ}),
        subjects=lambda params: path_subjects(workspace, params.path),
        scope=str(workspace.folder),
    )


def _push_newest(newest: list[_FoundFile], found: _FoundFile) -> None:
    if len(newest) < MAX_FOUND:
        heapq.heappush(newest, found)
    else:
        heapq.heappushpop(newest, found)


def _modified_at(workspace: Workspace, place: WorkspacePath) -> float:
    """When it was last written to, in seconds since 1970; 0 for what is gone by now."""
    try:
        found = workspace.stat(place)
    except ToolFailed:
        return 0.0
    return found.st_mtime if found else 0.0


def _line(changed: float, path: str, size: int) -> str:
    # A line end in a name would look like another file.
    shown = "".join(each if each.isprintable() else "�" for each in path)
    when = datetime.fromtimestamp(changed).astimezone().strftime("%Y-%m-%d %H:%M")
    return f"{shown}  {size:,} bytes, {when}"
