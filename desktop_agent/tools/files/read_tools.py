"""The tools read_file, list_files and view_image, and the subjects of a path for rules."""

import base64
from collections.abc import Iterator
from hashlib import sha256
from itertools import islice

from pydantic import BaseModel, ConfigDict, Field

from desktop_agent.processes.pdf_text import PDF_START, read_pdf_text_async
from desktop_agent.processes.worker_threads import CancelToken, run_in_thread
from desktop_agent.tools.files.text_files import NotText, TextFile, TextFormat, decode_text
from desktop_agent.tools.tool import ModelSchema, RunningCall, Tool, run_tool_in_thread
from desktop_agent.tools.workspace import FolderEntry, Workspace, WorkspacePath
from desktop_agent.types.blocks import Base64Source, Image, ResultPart, Text, detect_media_type, read_image_size
from desktop_agent.types.errors import ImageRefused, Sentence, ToolFailed, WrongUse
from desktop_agent.types.permissions import PathSubject
from desktop_agent.types.tool_calls import Effect, ToolClass


async def path_subjects(workspace: Workspace, path: str) -> tuple[PathSubject, ...]:
    """Return the absolute path, links followed. Raises OutsideWorkspace, and ToolFailed for a name that is no text."""
    place = await _locate(workspace, path)
    return (PathSubject(workspace.folder.joinpath(*place.parts).as_posix()),)


async def changed_paths(workspace: Workspace, path: str) -> tuple[str, ...]:
    """Return the path relative to the workspace; nothing for its own folder. Raises as `path_subjects` does."""
    place = await _locate(workspace, path)
    return (str(place),) if place.parts else ()


async def relative_path(workspace: Workspace, path: str) -> str:
    """Return a folder relative to the workspace, `.` for the workspace. Raises as `path_subjects` does."""
    return str(await _locate(workspace, path))


async def _locate(workspace: Workspace, path: str) -> WorkspacePath:
    place = await run_in_thread(lambda _token: workspace.locate(path))
    try:
        "/".join((str(workspace.folder), *place.parts)).encode()
    except UnicodeEncodeError:
        # Shown with a replacement, it would be another file's name to a rule.
        raise ToolFailed(
            Sentence("The name of “{path}” on the disk has bytes that are not text.", {"path": str(place)})
        ) from None
    return place


FILE_LIMIT = 64_000_000
ANSWER_LIMIT = 256 * 1024
# Characters.
_PDF_TEXT_LIMIT = 10_000_000


class ReadFileInput(BaseModel):
    """What to read."""

    model_config = ConfigDict(extra="forbid")

    path: str = Field(min_length=1, description="The file, relative to the workspace folder.")
    start_line: int = Field(default=1, ge=1, description="The first line to read, counted from 1.")
    max_lines: int | None = Field(default=None, ge=1, description="How many lines to read; without it as many as fit.")


def read_file(workspace: Workspace) -> Tool[ReadFileInput]:
    """Make the tool for a workspace."""

    pdf_reader = _PdfReader()

    def load(path: str, token: CancelToken) -> tuple[str, bytes]:
        token.raise_if_cancelled()
        place = workspace.locate(path)
        return str(place), workspace.read(place, FILE_LIMIT)

    async def run(params: ReadFileInput, _call: RunningCall) -> tuple[Text, ...]:
        path, data = await run_in_thread(lambda token: load(params.path, token))
        pdf = TextFile(await pdf_reader.text(path, data), TextFormat()) if data.startswith(PDF_START) else None
        return await run_in_thread(lambda _token: _parts(pdf or _decode(path, data), params))

    return Tool(
        name="read_file",
        description=(
            "Read a text file of the workspace, or the text of a PDF. A long file is read in parts: "
            "the result says how many lines are left and where to go on."
        ),
        schema=ModelSchema(ReadFileInput),
        run=run,
        tool_class=ToolClass.READ_ONLY,
        effects=frozenset({Effect.READ}),
        subjects=lambda params: path_subjects(workspace, params.path),
        scope=str(workspace.folder),
    )


class _PdfReader:
    """Reads PDFs, and keeps the text of the last one: a long one is read in parts, and each would take as long."""

    def __init__(self) -> None:
        self._digest = b""
        self._text = ""

    async def text(self, path: str, data: bytes) -> str:
        """Return the text of all pages. Raises ToolFailed."""
        digest = await run_in_thread(lambda _token: sha256(data).digest())
        if digest != self._digest:
            try:
                text = await read_pdf_text_async(data, path, _PDF_TEXT_LIMIT)
            except WrongUse as error:
                raise ToolFailed(error.sentence, error.remedy) from None
            self._digest, self._text = digest, text
        return self._text


def _decode(path: str, data: bytes) -> TextFile:
    try:
        return decode_text(data)
    except NotText:
        raise _not_text(path, data) from None


def _parts(file: TextFile, params: ReadFileInput) -> tuple[Text, ...]:
    body, note = _excerpt(file, params)
    return (Text(text=body), Text(text=note)) if note else (Text(text=body),)


def _not_text(path: str, data: bytes) -> ToolFailed:
    media_type = detect_media_type(data)
    what = f"a picture ({media_type})" if media_type else "a binary file"
    values = {"path": path, "what": what, "size": f"{len(data):,}"}
    return ToolFailed(Sentence("“{path}” is {what} of {size} bytes and cannot be read as text.", values))


def _excerpt(file: TextFile, params: ReadFileInput) -> tuple[str, str]:
    """Return the lines that were asked for, as far as they fit, with a note about the rest."""
    lines = file.text.split("\n")
    if lines[-1] == "":
        lines.pop()
    first = params.start_line - 1
    if lines and first >= len(lines):
        values = {"count": f"{len(lines):,}", "start": f"{params.start_line:,}"}
        raise ToolFailed(Sentence("The file has {count} lines; there is no line {start}.", values))
    last = len(lines) if params.max_lines is None else min(len(lines), first + params.max_lines)
    shown_lines, cut = _fit_lines(lines[first:last])
    body = "\n".join(shown_lines)
    if first + len(shown_lines) == len(lines) and not cut and file.text.endswith("\n"):
        body += "\n"
    return body, _note(file, params.start_line, len(shown_lines), len(lines), cut=cut)


def _fit_lines(lines: list[str]) -> tuple[list[str], bool]:
    """Return as many whole lines as the limit on bytes allows; a first line that is too long by itself is cut."""
    room = ANSWER_LIMIT
    for index, line in enumerate(lines):
        room -= len(line.encode()) + 1
        if room < 0 and index:
            return lines[:index], False
        if room < 0:
            return [line.encode()[:ANSWER_LIMIT].decode("utf-8", "ignore")], True
    return lines, False


def _note(file: TextFile, start: int, shown: int, total: int, *, cut: bool) -> str:
    notes: list[str] = []
    if total == 0:
        notes.append("The file is empty.")
    if cut:
        notes.append(f"Line {start:,} is too long and was cut.")
    remaining = total - (start - 1) - shown
    if remaining > 0:
        notes.append(
            f"{remaining:,} more {'line' if remaining == 1 else 'lines'}; go on with start_line {start + shown}."
        )
    if file.format.encoding != "utf-8":
        notes.append(f"The file's encoding is {file.format.title}.")
    return f"[{' '.join(notes)}]" if notes else ""


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

    return Tool(
        name="list_files",
        description=(
            "List a folder of the workspace, one entry a line: folders end in /, files have their size in bytes. "
            "Links are not followed; hidden folders are not entered."
        ),
        schema=ModelSchema(ListFilesInput),
        run=run_tool_in_thread(work),
        tool_class=ToolClass.READ_ONLY,
        effects=frozenset({Effect.READ}),
        subjects=lambda params: path_subjects(workspace, params.path),
        scope=str(workspace.folder),
    )


def _lines(workspace: Workspace, place: WorkspacePath, depth: int, token: CancelToken) -> Iterator[str]:
    for entry in workspace.entries(place, _SCAN_LIMIT):
        token.raise_if_cancelled()
        entry_place = place.child(entry.name)
        line = _line(entry_place, entry)
        if entry.kind != "folder" or depth <= 1:
            yield line
        elif entry.name.startswith("."):
            yield f"{line}  (hidden, not entered)"
        else:
            yield from _inside(workspace, entry_place, line, depth - 1, token)


def _inside(workspace: Workspace, place: WorkspacePath, line: str, depth: int, token: CancelToken) -> Iterator[str]:
    """Yield a folder and what is in it. One that cannot be opened does not spoil the rest."""
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
    printable = "".join(char if char.isprintable() else "�" for char in str(place))
    match entry.kind:
        case "folder":
            return f"{printable}/"
        case "file":
            return f"{printable}  {entry.size:,} bytes"
        case "link":
            return f"{printable}  (link, not followed)"
        case "other":
            return f"{printable}  (not an ordinary file)"


PICTURE_LIMIT = 20_000_000


class ViewImageInput(BaseModel):
    """What to look at."""

    model_config = ConfigDict(extra="forbid")

    path: str = Field(min_length=1, description="The picture, relative to the workspace folder.")


def view_image(workspace: Workspace) -> Tool[ViewImageInput]:
    """Make the tool for a workspace. An image that is too large for a model is scaled when it is sent."""

    def work(params: ViewImageInput, token: CancelToken) -> tuple[ResultPart, ...]:
        token.raise_if_cancelled()
        place = workspace.locate(params.path)
        data = workspace.read(place, PICTURE_LIMIT)
        media_type, size = detect_media_type(data), read_image_size(data)
        if media_type is None or size is None:
            what = Sentence("“{path}” is not a picture that can be shown.", {"path": str(place)})
            raise ToolFailed(what, "PNG, JPEG, GIF and WebP can be.")
        try:
            source = Base64Source(media_type=media_type, data=base64.b64encode(data).decode())
        except ImageRefused as error:
            raise ToolFailed(error.sentence, error.remedy) from None
        description = f"{place}: {size[0]:,} × {size[1]:,} pixels, {media_type}, {len(data):,} bytes."
        return Text(text=description), Image(source=source, name=place.parts[-1])

    return Tool(
        name="view_image",
        description="Look at a picture of the workspace: PNG, JPEG, GIF or WebP.",
        schema=ModelSchema(ViewImageInput),
        run=run_tool_in_thread(work),
        tool_class=ToolClass.READ_ONLY,
        effects=frozenset({Effect.READ}),
        subjects=lambda params: path_subjects(workspace, params.path),
        scope=str(workspace.folder),
    )
