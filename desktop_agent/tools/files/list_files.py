"""The tool that lists a folder."""

from collections.abc import Iterator
from itertools import islice

from pydantic import BaseModel, ConfigDict, Field

from desktop_agent.tools.files.places import path_subjects
from desktop_agent.tools.in_thread import CancelToken, run_in_thread
from desktop_agent.tools.tool import ModelSchema, RunningCall, Tool
from desktop_agent.tools.workspace import FolderEntry, Workspace, WorkspacePath
from desktop_agent.vocabulary.blocks import Text
from desktop_agent.vocabulary.errors import ToolFailed
from desktop_agent.vocabulary.tool_calls import Effect, ToolClass

MAX_ENTRIES = 1000
MAX_DEPTH = 12
# A folder with more than this is not sorted as a whole; the answer could not show it anyway.
_SCAN_LIMIT = 20_000


class ListFilesInput(BaseModel):
    """What to list."""

    model_config = ConfigDict(extra="forbid")

    path: str = Field(default=".", description="The folder, relative to the workspace folder.")
    recursive: bool = Field(default=False, description="Whether to list the folders inside as well.")


def list_files(workspace: Workspace) -> Tool[ListFilesInput]:
    """Make the tool for a workspace."""

    def work(params: ListFilesInput, token: CancelToken) -> tuple[Text, ...]:
        place = workspace.locate(params.path)
        depth = MAX_DEPTH if params.recursive else 1
        lines = list(islice(_lines(workspace, place, depth, token), MAX_ENTRIES + 1))
        if len(lines) > MAX_ENTRIES:
            lines[MAX_ENTRIES:] = [f"[Stopped after {MAX_ENTRIES:,} entries; list a folder inside to see more.]"]
        return (Text(text="\n".join(lines) or "[The folder is empty.]"),)

    async def run(params: ListFilesInput, _call: RunningCall) -> tuple[Text, ...]:
        return await run_in_thread(lambda token: work(params, token))

    return Tool(
        name="list_files",
        description=(
            "List a folder of the workspace, one entry a line: folders end in /, files have their size in bytes. "
            "Links are not followed; hidden folders are not entered."
        ),
        schema=ModelSchema(ListFilesInput),
        run=run,
        tool_class=ToolClass.READ_ONLY,
        effects=frozenset({Effect.READ}),
        subjects=lambda params: path_subjects(workspace, params.path),
        scope=str(workspace.folder),
    )


def _lines(workspace: Workspace, place: WorkspacePath, depth: int, token: CancelToken) -> Iterator[str]:
    for entry in workspace.entries(place, _SCAN_LIMIT):
        token.raise_if_cancelled()
        here = place.child(entry.name)
        line = _line(here, entry)
        if entry.kind != "folder" or depth <= 1:
            yield line
        elif entry.name.startswith("."):
            yield f"{line}  (hidden, not entered)"
        else:
            yield from _inside(workspace, here, line, depth - 1, token)


def _inside(workspace: Workspace, place: WorkspacePath, line: str, depth: int, token: CancelToken) -> Iterator[str]:
    """A folder and what is in it. One that cannot be opened does not spoil the rest."""
    listing = _lines(workspace, place, depth, token)
    try:
        first = next(listing, None)
    except ToolFailed as error:
        token.raise_if_cancelled()
        yield f"{line}  ({error})"
        return
    yield line
    if first is not None:
        yield first
        yield from listing


def _line(place: WorkspacePath, entry: FolderEntry) -> str:
    # A line end in a name would look like another entry.
    shown = "".join(each if each.isprintable() else "�" for each in str(place))
    match entry.kind:
        case "folder":
            return f"{shown}/"
        case "file":
            return f"{shown}  {entry.size:,} bytes"
        case "link":
            return f"{shown}  (link, not followed)"
        case "other":
            return f"{shown}  (not an ordinary file)"
