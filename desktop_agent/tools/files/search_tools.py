"""The tools find_files and search_files."""

import asyncio
import heapq
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from desktop_agent.processes.worker import Worker, WorkerFailed, WorkerFailure
from desktop_agent.processes.worker_process import WorkerLimits
from desktop_agent.processes.worker_threads import CancelToken, run_in_thread
from desktop_agent.tools.files.read_tools import path_subjects
from desktop_agent.tools.files.search_process import (
    GLOB_LIMIT,
    FileWalk,
    Glob,
    SearchMessage,
    SearchRequest,
    compile_expression,
)
from desktop_agent.tools.tool import ModelSchema, RunningCall, Tool, run_tool_in_thread
from desktop_agent.tools.workspace import Workspace, WorkspacePath
from desktop_agent.types.blocks import Text
from desktop_agent.types.errors import Sentence, ToolFailed
from desktop_agent.types.tool_calls import Effect, ToolClass

MAX_FOUND = 500


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
        found: list[tuple[float, str, int]] = []
        for file, size in walk.files():
            if glob.matches(file.parts[len(place.parts) :] or file.parts[-1:]):
                found.append((_modified_at(workspace, file), str(file), size))
        newest = heapq.nlargest(MAX_FOUND, found)
        lines = [_line(*file) for file in sorted(newest, key=lambda file: (-file[0], file[1]))]
        if len(found) > len(lines):
            lines.append(f"[{len(found) - len(lines):,} older files are left out.]")
        if walk.is_cut:
            lines.append("[There are too many files; not all were looked at. Look in a folder inside.]")
        return (Text(text="\n".join(lines) or f"[No file is called “{params.names}”; hidden ones do not count.]"),)

    return Tool(
        name="find_files",
        description="Find files of the workspace by name, the newest first. Hidden files and folders are passed over.",
        schema=ModelSchema(FindFilesInput),
        run=run_tool_in_thread(work),
        tool_class=ToolClass.READ_ONLY,
        effects=frozenset({Effect.READ}),
        subjects=lambda params: path_subjects(workspace, params.path),
        scope=str(workspace.folder),
    )


def _modified_at(workspace: Workspace, place: WorkspacePath) -> float:
    """Return when it was last written to, in seconds since 1970; 0 for what is gone by now."""
    try:
        status = workspace.stat(place)
    except ToolFailed:
        return 0.0
    return status.st_mtime if status else 0.0


def _line(changed: float, path: str, size: int) -> str:
    # A line end in a name would look like another file.
    printable = "".join(char if char.isprintable() else "�" for char in path)
    when = datetime.fromtimestamp(changed).astimezone().strftime("%Y-%m-%d %H:%M")
    return f"{printable}  {size:,} bytes, {when}"


MAX_MATCHES = 200
PATTERN_LIMIT = 1_000
# In seconds. A hostile expression ends here; a large workspace should not.
SEARCH_SECONDS = 20.0
# Processor seconds are counted for a process that nobody waits for any more.
_LIMITS = WorkerLimits(memory=2_000_000_000, seconds=60.0)


class SearchFilesInput(BaseModel):
    """What to look for."""

    model_config = ConfigDict(extra="forbid")

    pattern: str = Field(
        min_length=1, max_length=PATTERN_LIMIT, description="The text to look for, or a regular expression (Python)."
    )
    is_expression: bool = Field(default=False, description="Whether the pattern is a regular expression.")
    ignore_case: bool = Field(default=False, description="Whether upper and lower case are the same.")
    path: str = Field(default=".", description="The folder or file to look in, relative to the workspace folder.")
    names: str | None = Field(
        default=None, max_length=GLOB_LIMIT, description="Only files like this: *.py anywhere, or src/**/*.py."
    )
    context: int = Field(default=0, ge=0, le=5, description="How many lines to show before and after each match.")


@dataclass(slots=True)
class _SearchOutput:
    lines: list[str] = field(default_factory=list[str])
    path: str = ""
    current: str = ""
    end: dict[str, int] | None = None

    def add(self, messages: Iterable[SearchMessage]) -> None:
        for message in messages:
            match message:
                case ("in", path):
                    self.current = path
                case ("hit", path, number, text, before, after):
                    self._add_match(path, number, text, before, after)
                case ("end", counts):
                    self.end = counts

    def _add_match(self, path: str, number: int, text: str, before: list[str], after: list[str]) -> None:
        if path != self.path:
            self.lines += ["", _printable(path)] if self.lines else [_printable(path)]
            self.path = path
        elif before or after:
            self.lines.append("--")
        self.lines += [f"{number - len(before) + index:>6}  {line}" for index, line in enumerate(before)]
        self.lines.append(f"{number:>6}: {text}")
        self.lines += [f"{number + 1 + index:>6}  {line}" for index, line in enumerate(after)]


def search_files(workspace: Workspace, *, timeout: float = SEARCH_SECONDS) -> Tool[SearchFilesInput]:
    """Make the tool for a workspace. `timeout` is in seconds: what was found until then is the answer."""

    async def run(params: SearchFilesInput, _call: RunningCall) -> tuple[Text, ...]:
        request = await run_in_thread(lambda _token: _build_request(workspace, params))
        output = _SearchOutput()
        out_of_time = False
        task = "desktop_agent.tools.files.search_process:search"
        worker = Worker(task, list[SearchMessage], _LIMITS, timeout=timeout)
        try:
            async with asyncio.timeout(timeout):
                await worker.run(lambda: output.add(worker.call(request)))
        except TimeoutError:
            out_of_time = True
        except WorkerFailed as error:
            if error.failure is not WorkerFailure.SLOW:
                raise ToolFailed(
                    "The search broke off before its end.", "Try it again, or look in fewer files."
                ) from None
            out_of_time = True
        return (Text(text=_format_answer(output, timeout if out_of_time else None)),)

    return Tool(
        name="search_files",
        description=(
            "Look for a text or a regular expression in the text files of the workspace: path, line number and line of "
            f"each match, at most {MAX_MATCHES}. Hidden and binary files, and those above 10 MB, are passed over."
        ),
        schema=ModelSchema(SearchFilesInput),
        run=run,
        tool_class=ToolClass.READ_ONLY,
        effects=frozenset({Effect.READ}),
        subjects=lambda params: path_subjects(workspace, params.path),
        timeout=timeout + 40,
        concurrency=2,
        scope=str(workspace.folder),
    )


def _build_request(workspace: Workspace, params: SearchFilesInput) -> SearchRequest:
    """Check the request here, where a sentence can be returned. Raises ToolFailed."""
    place = workspace.locate(params.path)
    if place.parts and not workspace.exists(place):
        raise ToolFailed(Sentence("There is no “{path}” in the workspace.", {"path": str(place)}))
    if params.names is not None:
        Glob(params.names)
    try:
        compile_expression(params.pattern, is_expression=params.is_expression, ignore_case=params.ignore_case)
    except (re.error, RecursionError, OverflowError) as error:
        why = error.msg if isinstance(error, re.error) else "it is nested too deep or counts too far"
        what = Sentence("The regular expression cannot be read: {why}.", {"why": why})
        raise ToolFailed(what, "Correct it, or look for plain text.") from None
    return SearchRequest(
        folder=str(workspace.folder),
        parts=place.parts,
        pattern=params.pattern,
        names=params.names,
        is_expression=params.is_expression,
        ignore_case=params.ignore_case,
        context=params.context,
        most=MAX_MATCHES,
    )


def _format_answer(output: _SearchOutput, seconds: float | None) -> str:
    notes: list[str] = []
    end = output.end or {}
    if seconds is not None:
        where = f" in {_printable(output.current)}" if output.current else ""
        notes.append(f"Stopped after {seconds:g} s{where}; the rest was not looked at. Make the search narrower.")
    if end.get("more"):
        notes.append(f"Stopped after {MAX_MATCHES} matches; make the search narrower to see others.")
    if end.get("cut"):
        notes.append("There are too many files; not all were looked at.")
    if large := end.get("large"):
        notes.append(f"{large:,} {'file' if large == 1 else 'files'} above 10 MB not looked at.")
    if not output.lines and seconds is None:
        notes.insert(0, f"No match in {end.get('looked', 0):,} text files.")
    note = f"[{' '.join(notes)}]" if notes else ""
    return "\n".join([*output.lines, *([note] if note else [])])


def _printable(path: str) -> str:
    # A line end in a name would look like a match.
    return "".join(char if char.isprintable() else "�" for char in path)
