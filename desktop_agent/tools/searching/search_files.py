"""The tool that looks for a text in the files of a workspace."""

import asyncio
import json
import re
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from desktop_agent.tools.files.places import path_subjects
from desktop_agent.tools.in_thread import run_in_thread
from desktop_agent.tools.processes.own_part import child_command, minimal_environment
from desktop_agent.tools.processes.running import Termination, run_process
from desktop_agent.tools.searching.globs import GLOB_LIMIT, Glob
from desktop_agent.tools.searching.matching import SearchRequest, compile_expression, encode_request
from desktop_agent.tools.tool import ModelSchema, RunningCall, Tool
from desktop_agent.tools.workspace import Workspace
from desktop_agent.vocabulary.blocks import Text
from desktop_agent.vocabulary.errors import Sentence, ToolFailed
from desktop_agent.vocabulary.tool_calls import Effect, ToolClass

MAX_MATCHES = 200
PATTERN_LIMIT = 1_000
# In seconds. A hostile expression ends here; a large workspace should not.
SEARCH_SECONDS = 20.0
PART = "searching"
_MODULE = "desktop_agent.tools.searching.matching"
_OUTPUT_LIMIT = 8_000_000


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
    """What the searching process has said so far."""

    rest: str = ""
    lines: list[str] = field(default_factory=list[str])
    path: str = ""
    current: str = ""
    end: dict[str, Any] | None = None

    def add(self, text: str) -> None:
        """Take more of its words."""
        *whole, self.rest = (self.rest + text).split("\n")
        for each in whole:
            self._handle_line(each)

    def _handle_line(self, line: str) -> None:
        try:
            said: list[Any] = json.loads(line)
        except ValueError:
            return  # no word of ours: what Python says when it fails
        match said:
            case ["in", path]:
                self.current = path
            case ["hit", path, number, text, before, after]:
                self._add_match(path, number, text, before, after)
            case ["end", notes]:
                self.end = notes
            case _:
                pass

    def _add_match(self, path: str, number: int, text: str, before: list[str], after: list[str]) -> None:
        if path != self.path:
            self.lines += ["", _printable(path)] if self.lines else [_printable(path)]
            self.path = path
        elif before or after:
            self.lines.append("--")
        self.lines += [f"{number - len(before) + at:>6}  {line}" for at, line in enumerate(before)]
        self.lines.append(f"{number:>6}: {text}")
        self.lines += [f"{number + 1 + at:>6}  {line}" for at, line in enumerate(after)]


def search_files(workspace: Workspace, *, patience: float = SEARCH_SECONDS) -> Tool[SearchFilesInput]:
    """Make the tool for a workspace. `patience` is in seconds: what was found until then is the answer."""

    async def run(params: SearchFilesInput, _call: RunningCall) -> tuple[Text, ...]:
        asked = await run_in_thread(lambda _token: _build_request(workspace, params))
        output = _SearchOutput()
        out_of_time = False
        try:
            async with asyncio.timeout(patience):
                ended = await run_process(
                    child_command(PART, _MODULE),
                    cwd=workspace.folder.anchor,
                    env=minimal_environment(),
                    stdin=encode_request(asked),
                    on_output=output.add,
                    output_limit=_OUTPUT_LIMIT,
                    ending=Termination(grace=0),
                )
        except TimeoutError:
            out_of_time = True
        else:
            if ended.exit_code != 0 or output.end is None:
                raise ToolFailed("The search broke off before its end.", "Try it again, or look in fewer files.")
        return (Text(text=_format_answer(output, patience if out_of_time else None)),)

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
        timeout=patience + 40,
        concurrency=2,
        scope=str(workspace.folder),
    )


def _build_request(workspace: Workspace, params: SearchFilesInput) -> SearchRequest:
    """Checked here, where the sentence can be told. Raises ToolFailed."""
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
    told = f"[{' '.join(notes)}]" if notes else ""
    return "\n".join([*output.lines, *([told] if told else [])])


def _printable(path: str) -> str:
    # A line end in a name would look like a match.
    return "".join(each if each.isprintable() else "�" for each in path)
