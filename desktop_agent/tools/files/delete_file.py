"""The tool that deletes a file, or an empty folder."""

import stat

from pydantic import Field

from desktop_agent.tools.files.changing import FileChange, SingleFileInput, file_changing_tool
from desktop_agent.tools.files.text_files import NotText, decode_text
from desktop_agent.tools.keeping.looking import MAX_SAVED_BYTES
from desktop_agent.tools.tool import Tool
from desktop_agent.tools.workspace import Workspace, WorkspacePath
from desktop_agent.vocabulary.blocks import Text
from desktop_agent.vocabulary.errors import Sentence, ToolFailed
from desktop_agent.vocabulary.images import detect_media_type
from desktop_agent.vocabulary.tool_calls import DiffPreview, PicturePreview, Preview, TextPreview

_SHOWN_LIMIT = 2_000_000


class DeleteFileInput(SingleFileInput):
    """What to delete."""

    path: str = Field(min_length=1, description="The file or empty folder, relative to the workspace folder.")


def delete_file(workspace: Workspace) -> Tool[DeleteFileInput]:
    """Make the tool for a workspace."""

    def work(params: DeleteFileInput, change: FileChange) -> tuple[Text, ...]:
        change.check()
        place = workspace.locate(params.path)
        if _is_folder(workspace, place):
            change.begin()
            workspace.remove_folder(place)
            return change.finish(f"Deleted the empty folder {place}.")
        workspace.remove(place, before_removing=change.begin)
        return change.finish(f"Deleted {place}.")

    def look(params: DeleteFileInput) -> Preview:
        place = workspace.locate(params.path)
        return _folder_preview(workspace, place) if _is_folder(workspace, place) else _file_preview(workspace, place)

    return file_changing_tool(
        workspace,
        "delete_file",
        "Delete one file of the workspace, or one folder with nothing in it.",
        DeleteFileInput,
        work,
        look,
    )


def _is_folder(workspace: Workspace, place: WorkspacePath) -> bool:
    """Raises ToolFailed for nothing, for the workspace itself, and for a file that is write-protected."""
    if not place.parts:
        raise ToolFailed("The workspace folder itself cannot be deleted.")
    found = workspace.stat(place)
    if found is None:
        raise ToolFailed(Sentence("There is no “{path}” in the workspace.", {"path": str(place)}))
    if stat.S_ISREG(found.st_mode) and not found.st_mode & 0o222:
        raise ToolFailed(Sentence("“{path}” is write-protected.", {"path": str(place)}))
    return stat.S_ISDIR(found.st_mode)


def _folder_preview(workspace: Workspace, place: WorkspacePath) -> Preview:
    if workspace.entries(place, 1):
        raise ToolFailed(Sentence("“{path}” is a folder with something in it.", {"path": str(place)}))
    return TextPreview(f"Deletes the empty folder {place}.")


def _file_preview(workspace: Workspace, place: WorkspacePath) -> Preview:
    found = workspace.stat(place)
    size = found.st_size if found else 0
    if size > _SHOWN_LIMIT:
        kept = " It is too large to be kept, so this cannot be undone." if size > MAX_SAVED_BYTES else ""
        return TextPreview(f"Deletes {place} ({size:,} bytes).{kept}")
    data = workspace.read(place, _SHOWN_LIMIT)
    if detect_media_type(data):
        return PicturePreview(str(place), data, f"Deletes this picture ({len(data):,} bytes).")
    try:
        return DiffPreview(str(place), decode_text(data).text, None)
    except NotText:
        return TextPreview(f"Deletes the binary file {place} ({len(data):,} bytes).")
