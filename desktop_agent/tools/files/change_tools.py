"""The tools that change one file: write_file, edit_file, move_file and delete_file."""

import stat
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field

from desktop_agent.processes.worker_threads import CancelToken, run_in_thread
from desktop_agent.tools.checkpoints.snapshots import MAX_SAVED_BYTES, FileStamp, file_stamp
from desktop_agent.tools.files.read_tools import changed_paths, path_subjects
from desktop_agent.tools.files.text_files import (
    NotText,
    TextEdit,
    TextFile,
    TextFormat,
    decode_text,
    decode_with_newlines,
    encode_text,
    normalize_newlines,
    replace_passage,
)
from desktop_agent.tools.tool import ModelSchema, RunningCall, Tool
from desktop_agent.tools.workspace import Workspace, WorkspacePath
from desktop_agent.types.blocks import Text, detect_media_type
from desktop_agent.types.errors import Sentence, ToolFailed
from desktop_agent.types.permissions import PathSubject
from desktop_agent.types.tool_calls import DiffPreview, Effect, PicturePreview, Preview, TextPreview, ToolClass


class SingleFileInput(BaseModel):
    """Arguments about one file."""

    model_config = ConfigDict(extra="forbid")

    path: str = Field(min_length=1)


Params = TypeVar("Params", bound=BaseModel)

_NOT_CHANGED = "No file was changed."
_IN_PROGRESS = "It was changing the file at that very moment; look whether it did."


class FileChange:
    """The one change that a call makes: each step reports what holds from there on, should the call be interrupted."""

    def __init__(self, call: RunningCall, token: CancelToken) -> None:
        self._call = call
        self._token = token
        call.report_partial_result(_NOT_CHANGED)

    def check(self) -> None:
        """Report that nothing has happened yet. Raises Stopped when nothing should."""
        self._token.raise_if_cancelled()

    def begin(self) -> None:
        """Report that the effect is about to happen. Raises Stopped when it should not."""
        self._token.raise_if_cancelled()
        self._call.report_partial_result(_IN_PROGRESS)

    def finish(self, report: str) -> tuple[Text, ...]:
        """Report that it has taken effect; return the result."""
        self._call.report_partial_result(f"It had taken effect by then: {report}")
        return (Text(text=report),)


def file_changing_tool(
    workspace: Workspace,
    name: str,
    description: str,
    arguments: type[Params],
    work: Callable[[Params, FileChange], tuple[Text, ...]],
    preview_of: Callable[[Params], Preview],
    paths_of: Callable[[Params], tuple[str, ...]],
) -> Tool[Params]:
    """Make a tool that changes one file. `work` does it, `preview_of` shows it first, both in a thread.

    `paths_of` are the paths that a call may change, as the model wrote them.
    """

    async def run(params: Params, call: RunningCall) -> tuple[Text, ...]:
        return await run_in_thread(lambda token: work(params, FileChange(call, token)))

    async def preview(params: Params) -> Preview:
        return await run_in_thread(lambda _token: preview_of(params))

    async def subjects(params: Params) -> tuple[PathSubject, ...]:
        return tuple([subject for path in paths_of(params) for subject in await path_subjects(workspace, path)])

    async def changes(params: Params) -> tuple[str, ...]:
        return tuple([changed for path in paths_of(params) for changed in await changed_paths(workspace, path)])

    return Tool(
        name=name,
        description=description,
        schema=ModelSchema(arguments),
        run=run,
        tool_class=ToolClass.MUTATING,
        effects=frozenset({Effect.WRITE}),
        preview=preview,
        subjects=subjects,
        changes=changes,
        scope=str(workspace.folder),
    )


def _one_path(params: SingleFileInput) -> tuple[str, ...]:
    return (params.path,)


CONTENT_LIMIT = 4_000_000
_MAX_OLD_BYTES = 64_000_000
_DIFF_LIMIT = 2_000_000


class WriteFileInput(SingleFileInput):
    """What to write."""

    path: str = Field(min_length=1, description="The file, relative to the workspace folder; made if it is not there.")
    content: str = Field(max_length=CONTENT_LIMIT, description="The whole new text of the file.")


@dataclass(frozen=True, slots=True)
class _ExistingFile:
    """What the file holds now: text, or bytes that are none, or (neither) nothing."""

    text: TextFile | None = None
    binary_size: int | None = None

    @property
    def format(self) -> TextFormat | None:
        return self.text.format if self.text else None


def write_file(workspace: Workspace) -> Tool[WriteFileInput]:
    """Make the tool for a workspace."""

    def work(params: WriteFileInput, change: FileChange) -> tuple[Text, ...]:
        change.check()
        place = workspace.locate(params.path)
        old = _read_existing(workspace, place)
        data, used = encode_text(params.content, old.format)
        workspace.write(place, data, before_replacing=change.begin)
        return change.finish(_report(place, old, len(data), used))

    def preview(params: WriteFileInput) -> Preview:
        place = workspace.locate(params.path)
        return _preview(place, _read_existing(workspace, place), params.content)

    return file_changing_tool(
        workspace,
        "write_file",
        (
            "Write a text file of the workspace, replacing the whole file if it is there and making its folders "
            "if they are not. An existing file keeps its encoding and line ends."
        ),
        WriteFileInput,
        work,
        preview,
        _one_path,
    )


def _read_existing(workspace: Workspace, place: WorkspacePath) -> _ExistingFile:
    if place.parts and not workspace.exists(place):
        return _ExistingFile()
    data = workspace.read(place, _MAX_OLD_BYTES)
    try:
        return _ExistingFile(text=decode_text(data))
    except NotText:
        return _ExistingFile(binary_size=len(data))


def _preview(place: WorkspacePath, old: _ExistingFile, content: str) -> Preview:
    before = old.text.text if old.text else None
    if old.binary_size is not None:
        values = {"path": str(place), "size": f"{old.binary_size:,}", "text": content}
        words = "Replaces the binary file “{path}” ({size} bytes) with this text:\n\n{text}"
        return TextPreview(Sentence(words, values))
    if before is not None and len(before) > _DIFF_LIMIT:
        values = {"path": str(place), "size": f"{len(before):,}", "text": content}
        return TextPreview(Sentence("Replaces “{path}” ({size} characters) with this text:\n\n{text}", values))
    return DiffPreview(str(place), before, normalize_newlines(content))


def _report(place: WorkspacePath, old: _ExistingFile, size: int, used: TextFormat) -> str:
    is_new = old.text is None and old.binary_size is None
    report = f"{'Created' if is_new else 'Replaced'} {place} ({size:,} bytes)."
    if old.format and used.encoding != old.format.encoding:
        report += f" It is {used.title} now, because {old.format.encoding.upper()} cannot hold the new text."
    return report


PASSAGE_LIMIT = 1_000_000
_FILE_LIMIT = 16_000_000


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

    def planned_edit(params: EditFileInput) -> tuple[WorkspacePath, TextEdit, FileStamp | None]:
        place = workspace.locate(params.path)
        stamp = file_stamp(workspace.stat(place)) if place.parts else None
        return place, _edit(workspace, place, params), stamp

    def check_unchanged(place: WorkspacePath, stamp: FileStamp | None, change: FileChange) -> None:
        change.check()
        if file_stamp(workspace.stat(place)) != stamp:
            what = Sentence("“{path}” was changed by another program meanwhile.", {"path": str(place)})
            raise ToolFailed(what, "Read it again.")
        change.begin()

    def work(params: EditFileInput, change: FileChange) -> tuple[Text, ...]:
        change.check()
        place, edit, stamp = planned_edit(params)
        data, used = encode_text(edit.after, edit.format)
        workspace.write(place, data, before_replacing=lambda: check_unchanged(place, stamp, change))
        note = "" if used.encoding == edit.format.encoding else f" It is {used.title} now."
        return change.finish(f"Edited {place}: {edit.description}.{note}")

    def preview(params: EditFileInput) -> Preview:
        place, edit, _stamp = planned_edit(params)
        if len(edit.before) > _DIFF_LIMIT:
            count = len(edit.lines)
            values = {"path": str(place), "count": f"{count:,}", "old": params.old_text, "new": params.new_text}
            once = "Changes “{path}” in one place.\n\nOld:\n{old}\n\nNew:\n{new}"
            more = "Changes “{path}” in {count} places.\n\nOld:\n{old}\n\nNew:\n{new}"
            return TextPreview(Sentence(once if count == 1 else more, values))
        return DiffPreview(str(place), normalize_newlines(edit.before), normalize_newlines(edit.after))

    return file_changing_tool(
        workspace,
        "edit_file",
        (
            "Replace a passage of a text file of the workspace. The old text must stand in the file exactly once, "
            "unless all of it is to be replaced. Encoding and line ends are kept."
        ),
        EditFileInput,
        work,
        preview,
        _one_path,
    )


def _edit(workspace: Workspace, place: WorkspacePath, params: EditFileInput) -> TextEdit:
    data = workspace.read(place, _FILE_LIMIT)
    try:
        text, format_ = decode_with_newlines(data)
    except NotText:
        raise ToolFailed(Sentence("“{path}” is not text and cannot be edited.", {"path": str(place)})) from None
    return replace_passage(str(place), text, format_, params.old_text, params.new_text, replace_all=params.replace_all)


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

    def preview(params: MoveFileInput) -> Preview:
        source, target, old = _check_move(workspace, params)
        values = {"source": str(source), "target": str(target), "size": "" if old is None else f"{old:,}"}
        lost = "Moves “{source}”\nto “{target}”.\n\nThis replaces what is there ({size} bytes)."
        return TextPreview(Sentence("Moves “{source}”\nto “{target}”." if old is None else lost, values))

    return file_changing_tool(
        workspace,
        "move_file",
        "Move or rename one file of the workspace. What is at the new place is kept unless replace is set.",
        MoveFileInput,
        work,
        preview,
        lambda params: (params.source, params.target),
    )


def _check_move(workspace: Workspace, params: MoveFileInput) -> tuple[WorkspacePath, WorkspacePath, int | None]:
    """Return from where, to where, and how many bytes are replaced there, None for nothing. Raises ToolFailed."""
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
    status = workspace.stat(place) if place.parts else None
    if place.parts and status is None:
        raise ToolFailed(Sentence("There is no “{path}” in the workspace.", {"path": str(place)}))
    if status is None or stat.S_ISDIR(status.st_mode):
        raise _folder_error(place)
    return status.st_size


def _folder_error(place: WorkspacePath) -> ToolFailed:
    what = Sentence("“{path}” is a folder; only files are moved.", {"path": str(place)})
    return ToolFailed(what, "Name the file, and the file that it becomes.")


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

    def preview(params: DeleteFileInput) -> Preview:
        place = workspace.locate(params.path)
        return _folder_preview(workspace, place) if _is_folder(workspace, place) else _file_preview(workspace, place)

    return file_changing_tool(
        workspace,
        "delete_file",
        "Delete one file of the workspace, or one folder with nothing in it.",
        DeleteFileInput,
        work,
        preview,
        _one_path,
    )


def _is_folder(workspace: Workspace, place: WorkspacePath) -> bool:
    """Return whether it is a folder. Raises ToolFailed for nothing, for the workspace, and a write-protected file."""
    if not place.parts:
        raise ToolFailed("The workspace folder itself cannot be deleted.")
    status = workspace.stat(place)
    if status is None:
        raise ToolFailed(Sentence("There is no “{path}” in the workspace.", {"path": str(place)}))
    if stat.S_ISREG(status.st_mode) and not status.st_mode & 0o222:
        raise ToolFailed(Sentence("“{path}” is write-protected.", {"path": str(place)}))
    return stat.S_ISDIR(status.st_mode)


def _folder_preview(workspace: Workspace, place: WorkspacePath) -> Preview:
    if workspace.entries(place, 1):
        raise ToolFailed(Sentence("“{path}” is a folder with something in it.", {"path": str(place)}))
    return TextPreview(Sentence("Deletes the empty folder “{path}”.", {"path": str(place)}))


def _file_preview(workspace: Workspace, place: WorkspacePath) -> Preview:
    status = workspace.stat(place)
    size = status.st_size if status else 0
    if size > _SHOWN_LIMIT:
        lost = "Deletes “{path}” ({size} bytes). It is too large to be kept, so this cannot be undone."
        values = {"path": str(place), "size": f"{size:,}"}
        return TextPreview(Sentence(lost if size > MAX_SAVED_BYTES else "Deletes “{path}” ({size} bytes).", values))
    data = workspace.read(place, _SHOWN_LIMIT)
    if detect_media_type(data):
        return PicturePreview(
            str(place), data, Sentence("Deletes this picture ({size} bytes).", {"size": f"{len(data):,}"})
        )
    try:
        return DiffPreview(str(place), decode_text(data).text, None)
    except NotText:
        values = {"path": str(place), "size": f"{len(data):,}"}
        return TextPreview(Sentence("Deletes the binary file “{path}” ({size} bytes).", values))
