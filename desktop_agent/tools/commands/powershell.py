"""PowerShell: find it, build its command line, and have its own parser list the commands of a line.

The list is only shown. A line reaches the parser as base64 over stdin, and no part of it ever stands in a script.
"""

import asyncio
import base64
import binascii
import os
import re
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from desktop_agent.data_files import load_table
from desktop_agent.processes.run_process import run_process
from desktop_agent.sandbox.environment import windows_environment
from desktop_agent.sandbox.policy import is_inside
from desktop_agent.types.errors import ToolFailed
from desktop_agent.types.tool_calls import Risk

_OPTIONS = ("-NoLogo", "-NoProfile", "-NonInteractive")
# Else Windows PowerShell writes in the console's code page. Where a policy forbids this, the line runs all the same.
_WRITE_UTF8 = "try { [Console]::OutputEncoding = [Text.UTF8Encoding]::new($false) } catch { }\n"
# In UTF-16 units, with the program and all quotes (CreateProcessW, lpCommandLine).
_MAX_COMMAND_LINE = 32_766


def find_powershell(environment: Mapping[str, str], workspace: Path) -> str | None:
    """Return the path of `pwsh.exe`, else of `powershell.exe`, else None. Nothing in the workspace is taken."""
    # Not by shutil.which: on Windows that looks in the current folder first.
    folders = filter(Path.is_absolute, map(Path, environment.get("PATH", "").split(os.pathsep)))
    places = [folder / "pwsh.exe" for folder in folders]
    if programs := environment.get("PROGRAMFILES"):
        places.insert(0, Path(programs, "PowerShell", "7", "pwsh.exe"))
    if root := environment.get("SYSTEMROOT"):
        places.append(Path(root, "System32", "WindowsPowerShell", "v1.0", "powershell.exe"))
    real = workspace.resolve()
    return next((str(place) for place in places if place.is_file() and not is_inside(place.resolve(), (real,))), None)


def powershell_command(program: str, line: str) -> list[str]:
    """Return the words that run a line. Raises ToolFailed for one that no command line can hold."""
    if "\0" in line:
        raise ToolFailed("The command has a null character in it, which no command line can hold.")
    words = [program, *_OPTIONS, "-Command", _WRITE_UTF8 + line]
    # As asyncio joins them on Windows.
    joined = subprocess.list2cmdline(words)
    if len(joined.encode("utf-16-le", "surrogatepass")) // 2 > _MAX_COMMAND_LINE:
        raise ToolFailed("The command is too long for a command line.", "Write it to a file, and run that.")
    return words


_FOLDER_OR_SUFFIX = re.compile(r"^.*[\\/]|\.(?:exe|com|cmd|bat)$", re.DOTALL)


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class PowerShellCommand(_Answer):
    """One command as it is written, and its words: None where only running it tells the word."""

    text: Annotated[str, Field(min_length=1, max_length=20_000)]
    words: Annotated[tuple[str | None, ...], Field(max_length=2_000, strict=False)]

    @property
    def name(self) -> str:
        """The name in lower case, without folder and `.exe`; empty where it is not known."""
        first = (self.words[:1] or ("",))[0] or ""
        return _FOLDER_OR_SUFFIX.sub("", first.lower())

    @property
    def risks(self) -> tuple[Risk, ...]:
        """What a person should look at twice."""
        risks = {risk for risk, names in _risky_names().items() if self.name in names}
        if None in self.words:
            risks.add(Risk.UNCLEAR)
        return tuple(risk for risk in Risk if risk in risks)


class ParsedScript(_Answer):
    """What PowerShell's parser says about a line: its commands, and the first thing that is wrong with it."""

    commands: Annotated[tuple[PowerShellCommand, ...], Field(max_length=200, strict=False)]
    problem: Annotated[str, Field(max_length=2_000)]


@cache
def _table() -> dict[str, Any]:
    return load_table(__name__, "powershell.toml")


@cache
def _risky_names() -> dict[Risk, frozenset[str]]:
    return {Risk(risk): frozenset(names.split()) for risk, names in _table()["risks"].items()}


# In seconds; a preview has ten.
_PARSE_SECONDS = 6.0
# In characters.
_MAX_ANSWER = 1_000_000
# While it parses these, PowerShell looks for modules, and may load them.
_LOADS_MODULES = re.compile(r"\b(?:using|configuration|import-dscresource)\b", re.IGNORECASE)


async def parse_line(program: str, line: str) -> ParsedScript | None:
    """Have PowerShell parse a line, and run nothing of it. None where it cannot, is too slow, or says too much."""
    if _LOADS_MODULES.search(line):
        return None
    encoded = base64.b64encode(line.encode("utf-8", "replace"))
    # Not the workspace, where files may lie that programs find first.
    folder = Path(program).parent
    try:
        async with asyncio.timeout(_PARSE_SECONDS):
            finished = await run_process(
                [program, *_OPTIONS, "-Command", _table()["parse"]],
                cwd=folder,
                env=windows_environment(os.environ, folder),
                stdin=encoded,
                output_limit=_MAX_ANSWER,
            )
    except (TimeoutError, ToolFailed):
        return None
    return None if finished.exit_code or finished.truncated else read_answer(finished.output, line)


def read_answer(output: str, line: str) -> ParsedScript | None:
    """Read what the parser wrote about a line. None for anything but an answer about this line."""
    try:
        answer = ParsedScript.model_validate_json(base64.b64decode(output.strip(), validate=True))
    except (binascii.Error, ValidationError, ValueError, RecursionError):
        return None
    return answer if all(command.text in line for command in answer.commands) else None
