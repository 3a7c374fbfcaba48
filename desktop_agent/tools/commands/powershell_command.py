"""The run_command tool on Windows: run a line in PowerShell. Nothing confines it, so each line is asked about."""

import os
import shlex
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from desktop_agent.processes.worker_threads import run_in_thread
from desktop_agent.sandbox.backends import Sandbox
from desktop_agent.sandbox.environment import windows_environment
from desktop_agent.sandbox.policy import SandboxPolicy
from desktop_agent.tools.commands.execution import PreparedCommand, prepare_command, run_line
from desktop_agent.tools.commands.powershell import (
    ParsedScript,
    PowerShellCommand,
    find_powershell,
    parse_line,
    powershell_command,
)
from desktop_agent.tools.commands.run_command import (
    MAX_LINE_LENGTH,
    MAX_SECONDS,
    NOT_STARTED,
    command_folder,
    command_tool,
    make_temporary_folder,
    remove_tree,
)
from desktop_agent.tools.files.read_tools import relative_path
from desktop_agent.tools.tool import RunningCall, Tool
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.blocks import Text
from desktop_agent.types.errors import Sentence, ToolFailed
from desktop_agent.types.permissions import CommandSubject, Subject
from desktop_agent.types.tool_calls import CommandPart, CommandPreview, Preview

_MAX_PARSED_LINES = 50
_MAX_PROBLEM = 200
_DESCRIPTION = (
    "Run a line in PowerShell, in a folder of the workspace. The result is its exit code and what it wrote; for the "
    "exit code of a program end the line with “exit $LASTEXITCODE”. It gets no input, and everything that it started "
    "is ended with it. Temporary files belong in $env:TEMP, which is gone afterwards. Nothing confines it, and the "
    "person is asked about each line."
)
_NO_POWERSHELL = "There is no PowerShell on this system."
_ALWAYS_ASKED = Sentence("On Windows nothing confines a command, so each one is asked about, and no rule can allow it.")


def _as_shell_line(command: PowerShellCommand) -> str:
    """Write a command such that rules, which read bash, find its words."""
    return " ".join(('"$_"' if word is None else shlex.quote(word)) for word in (command.name, *command.words[1:]))


# What it leaves running ends with its job object.
_WITHOUT_SANDBOX = Sandbox(
    "",
    lambda argv, _folder, _policy: list(argv),
    Sentence("There is no sandbox on Windows."),
    ends_descendants=True,
)


class RunPowerShellInput(BaseModel):
    """What to run."""

    model_config = ConfigDict(extra="forbid")

    command: str = Field(
        min_length=1, max_length=MAX_LINE_LENGTH, description="The line, as one types it in PowerShell."
    )
    folder: str = Field(default=".", description="Where it runs, relative to the workspace folder.")
    timeout_seconds: int = Field(default=120, ge=1, le=MAX_SECONDS, description="After so long it is ended.")


def run_powershell(
    workspace: Workspace, find_program: Callable[[], str | None] | None = None
) -> Tool[RunPowerShellInput]:
    """Make the tool for a workspace. Rules that deny one command hold for it too."""
    find = find_program or (lambda: find_powershell(os.environ, workspace.folder))
    tool = command_tool(_PowerShellTool(workspace, find), RunPowerShellInput, _DESCRIPTION)
    return replace(tool, always_asked=_ALWAYS_ASKED)


@dataclass(frozen=True)
class _PowerShellTool:
    """The tool in one workspace. `parsed` are lines with what the parser said: a call is looked at several times."""

    workspace: Workspace
    find_program: Callable[[], str | None]
    parsed: OrderedDict[str, ParsedScript | None] = field(default_factory=OrderedDict[str, ParsedScript | None])

    async def run(self, params: RunPowerShellInput, call: RunningCall) -> tuple[Text, ...]:
        call.report_partial_result(NOT_STARTED)
        program = await self._program()
        if program is None:
            raise ToolFailed(_NO_POWERSHELL)
        temporary = await run_in_thread(lambda _token: make_temporary_folder())
        try:
            prepared = await run_in_thread(lambda _token: self._prepare(params, program, temporary))
            return (Text(text=await run_line(prepared, params.timeout_seconds, call)),)
        finally:
            await run_in_thread(lambda _token: remove_tree(temporary))

    async def preview(self, params: RunPowerShellInput) -> Preview:
        folder = await run_in_thread(lambda _token: command_folder(self.workspace, params.folder))
        script = await self._parse(params.command)
        return CommandPreview(
            params.command,
            str(folder),
            _WITHOUT_SANDBOX.title(()),
            parts=() if script is None else tuple(CommandPart(part.text, part.risks) for part in script.commands),
            language="powershell",
            problem="" if script is None else script.problem[:_MAX_PROBLEM],
        )

    async def subjects(self, params: RunPowerShellInput) -> tuple[Subject, ...]:
        """Return the line, and each command of it as a line of its own: rules that deny one find it there."""
        folder = await relative_path(self.workspace, params.folder)
        script = await self._parse(params.command)
        commands = () if script is None else script.commands
        lines = (_as_shell_line(command) for command in commands if command.name)
        return (
            CommandSubject(params.command, folder),
            *(CommandSubject(line, folder) for line in dict.fromkeys(lines)),
        )

    async def _program(self) -> str | None:
        return await run_in_thread(lambda _token: self.find_program())

    async def _parse(self, line: str) -> ParsedScript | None:
        if line not in self.parsed:
            program = await self._program()
            # Also what failed: a preview that differs the next time would be asked about again.
            self.parsed[line] = None if program is None else await parse_line(program, line)
            if len(self.parsed) > _MAX_PARSED_LINES:
                self.parsed.popitem(last=False)
        return self.parsed.get(line)

    def _prepare(self, params: RunPowerShellInput, program: str, temporary: Path) -> PreparedCommand:
        folder = command_folder(self.workspace, params.folder)
        policy = SandboxPolicy((self.workspace.folder, temporary), hidden=(), network=True)
        environment = windows_environment(os.environ, temporary)
        return prepare_command(
            powershell_command(program, params.command), folder, environment, policy, _WITHOUT_SANDBOX
        )
