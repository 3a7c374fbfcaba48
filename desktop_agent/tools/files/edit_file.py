"""The tool that changes a passage of a text file."""

from pydantic import Field

from desktop_agent.tools.files.changing import FileChange, SingleFileInput, file_changing_tool
from desktop_agent.tools.files.passages import TextEdit, replace_passage
from desktop_agent.tools.files.text_files import NotText, decode_with_newlines, encode_text, normalize_newlines
from desktop_agent.tools.keeping.looking import FileStamp, file_stamp
from desktop_agent.tools.tool import Tool
from desktop_agent.tools.workspace import Workspace, WorkspacePath
from desktop_agent.vocabulary.blocks import Text
from desktop_agent.vocabulary.errors import Sentence, ToolFailed
from desktop_agent.vocabulary.tool_calls import DiffPreview, Preview, TextPreview

PASSAGE_LIMIT = 1_000_000
_FILE_LIMIT = 16_000_000
_DIFF_LIMIT = 2_000_000


class EditFileInput(SingleFileInput):
    """What to change."""

    path: str = Field(min_length=1, description="The file, relative to the workspace folder.")
    old_text: str = Field(
        min_length=1,
        max_length=PASSAGE_LIMIT,
        description="The text to replace, exactly as it stands in the file, with enough around it to be found once.",
    )
    new_text: str = Field(max_length=PASSAGE_LIMIT, description="What stands there afterwards; empty to delete it.")
    replace_all: bool = Field(default=False, description="Whether to replace it everywhere it stands.")


def edit_file(workspace: Workspace) -> Tool[EditFileInput]:
    """Make the tool for a workspace."""

    def judged(params: EditFileInput) -> tuple[WorkspacePath, TextEdit, FileStamp | None]:
        place = workspace.locate(params.path)
        stamp = file_stamp(workspace.stat(place)) if place.parts else None
        return place, _edit(workspace, place, params), stamp

    def last_look(place: WorkspacePath, stamp: FileStamp | None, change: FileChange) -> None:
        change.check()
        if file_stamp(workspace.stat(place)) != stamp:
            what = Sentence("“{path}” was changed by another program meanwhile.", {"path": str(place)})
            raise ToolFailed(what, "Read it again.")
        change.begin()

    def work(params: EditFileInput, change: FileChange) -> tuple[Text, ...]:
        change.check()
        place, made, stamp = judged(params)
        data, used = encode_text(made.after, made.format)
        workspace.write(place, data, before_replacing=lambda: last_look(place, stamp, change))
        note = "" if used.encoding == made.format.encoding else f" It is {used.title} now."
        return change.finish(f"Edited {place}: {made.description}.{note}")

    def look(params: EditFileInput) -> Preview:
        place, made, _stamp = judged(params)
        if len(made.before) > _DIFF_LIMIT:
            return TextPreview(
                f"Edits {place}: {made.description}.\n\nOld:\n{params.old_text}\n\nNew:\n{params.new_text}"
            )
        return DiffPreview(str(place), normalize_newlines(made.before), normalize_newlines(made.after))

    return file_changing_tool(
        workspace,
        "edit_file",
        (
            "Replace a passage of a text file of the workspace. The old text must stand in the file exactly once, "
            "unless all of it is to be replaced. Encoding and line ends are kept."
        ),
        EditFileInput,
        work,
        look,
    )


def _edit(workspace: Workspace, place: WorkspacePath, params: EditFileInput) -> TextEdit:
    data = workspace.read(place, _FILE_LIMIT)
    try:
        text, format_ = decode_with_newlines(data)
    except NotText:
        raise ToolFailed(Sentence("“{path}” is no text and cannot be edited.", {"path": str(place)})) from None
    return replace_passage(str(place), text, format_, params.old_text, params.new_text, replace_all=params.replace_all)
