"""The tool that reads a text file."""

from pydantic import BaseModel, ConfigDict, Field

from desktop_agent.tools.files.places import path_subjects
from desktop_agent.tools.files.text_files import NotText, TextFile, decode_text
from desktop_agent.tools.in_thread import CancelToken, run_in_thread
from desktop_agent.tools.tool import ModelSchema, RunningCall, Tool
from desktop_agent.tools.workspace import Workspace
from desktop_agent.vocabulary.blocks import Text
from desktop_agent.vocabulary.errors import Sentence, ToolFailed
from desktop_agent.vocabulary.images import detect_media_type
from desktop_agent.vocabulary.tool_calls import Effect, ToolClass

FILE_LIMIT = 64_000_000
ANSWER_LIMIT = 256 * 1024


class ReadFileInput(BaseModel):
    """What to read."""

    model_config = ConfigDict(extra="forbid")

    path: str = Field(min_length=1, description="The file, relative to the workspace folder.")
    start_line: int = Field(default=1, ge=1, description="The first line to read, counted from 1.")
    max_lines: int | None = Field(default=None, ge=1, description="How many lines to read; without it as many as fit.")


def read_file(workspace: Workspace) -> Tool[ReadFileInput]:
    """Make the tool for a workspace."""

    def work(params: ReadFileInput, token: CancelToken) -> tuple[Text, ...]:
        token.raise_if_cancelled()
        place = workspace.locate(params.path)
        data = workspace.read(place, FILE_LIMIT)
        try:
            file = decode_text(data)
        except NotText:
            raise _not_text(str(place), data) from None
        body, note = _excerpt(file, params)
        return (Text(text=body), Text(text=note)) if note else (Text(text=body),)

    async def run(params: ReadFileInput, _call: RunningCall) -> tuple[Text, ...]:
        return await run_in_thread(lambda token: work(params, token))

    return Tool(
        name="read_file",
        description=(
            "Read a text file of the workspace. A long file is read in parts: "
            "the result says how many lines are left and where to go on."
        ),
        schema=ModelSchema(ReadFileInput),
        run=run,
        tool_class=ToolClass.READ_ONLY,
        effects=frozenset({Effect.READ}),
        subjects=lambda params: path_subjects(workspace, params.path),
        scope=str(workspace.folder),
    )


def _not_text(path: str, data: bytes) -> ToolFailed:
    media_type = detect_media_type(data)
    what = f"a picture ({media_type})" if media_type else "a binary file"
    values = {"path": path, "what": what, "size": f"{len(data):,}"}
    return ToolFailed(Sentence("“{path}” is {what} of {size} bytes and cannot be read as text.", values))


def _excerpt(file: TextFile, params: ReadFileInput) -> tuple[str, str]:
    """The lines that were asked for, as far as they fit, and what the reader must know besides."""
    lines = file.text.split("\n")
    if lines[-1] == "":
        lines.pop()
    first = params.start_line - 1
    if lines and first >= len(lines):
        values = {"count": f"{len(lines):,}", "start": f"{params.start_line:,}"}
        raise ToolFailed(Sentence("The file has {count} lines; there is no line {start}.", values))
    last = len(lines) if params.max_lines is None else min(len(lines), first + params.max_lines)
    taken, cut = _fit_lines(lines[first:last])
    body = "\n".join(taken)
    if first + len(taken) == len(lines) and not cut and file.text.endswith("\n"):
        body += "\n"
    return body, _note(file, params.start_line, len(taken), len(lines), cut=cut)


def _fit_lines(lines: list[str]) -> tuple[list[str], bool]:
    """As many whole lines as the limit on bytes allows; a first line that is too long by itself is cut."""
    room = ANSWER_LIMIT
    for index, line in enumerate(lines):
        room -= len(line.encode()) + 1
        if room < 0 and index:
            return lines[:index], False
        if room < 0:
            return [line.encode()[:ANSWER_LIMIT].decode("utf-8", "ignore")], True
    return lines, False


def _note(file: TextFile, start: int, taken: int, total: int, *, cut: bool) -> str:
    notes: list[str] = []
    if total == 0:
        notes.append("The file is empty.")
    if cut:
        notes.append(f"Line {start:,} is too long and was cut.")
    left = total - (start - 1) - taken
    if left > 0:
        notes.append(f"{left:,} more {'line' if left == 1 else 'lines'}; go on with start_line {start + taken}.")
    if file.format.encoding != "utf-8":
        notes.append(f"The file's encoding is {file.format.title}.")
    return f"[{' '.join(notes)}]" if notes else ""
