"""The tool that runs a shell line."""

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from desktop_agent.tools.commands.bounds import bounds_for
from desktop_agent.tools.commands.confinement import Confinement, offered
from desktop_agent.tools.commands.environment import environment_of_command
from desktop_agent.tools.in_thread import in_thread
from desktop_agent.tools.processes.running import ProcessEnd, run_process
from desktop_agent.tools.tool import ModelSchema, RunningCall, Tool
from desktop_agent.tools.workspace import Workspace
from desktop_agent.vocabulary.blocks import Text
from desktop_agent.vocabulary.conduct.rules import CommandSubject, HostSubject, Subject
from desktop_agent.vocabulary.errors import Sentence, ToolFailed
from desktop_agent.vocabulary.tool_calls import CommandPreview, Effect, Outsider, Preview, ToolClass

LINE_LIMIT = 20_000
MOST_SECONDS = 600
ANY_HOST = "*"
_SYSTEM = "/usr/bin:/bin:/usr/local/bin"
# In characters: what is listened to, and what of it the model is told, half of it from the end.
_HEARD = 1_000_000
_TOLD = 60_000
# For starting, and for ending what does not want to end, in seconds.
_AROUND = 60.0


class RunCommandInput(BaseModel):
    """What to run."""

    model_config = ConfigDict(extra="forbid")

    command: str = Field(min_length=1, max_length=LINE_LIMIT, description="The line, as one types it in bash.")
    folder: str = Field(default=".", description="Where it runs, relative to the workspace folder.")
    timeout_seconds: int = Field(default=120, ge=1, le=MOST_SECONDS, description="After so long it is ended.")
    network: bool = Field(default=False, description="Whether it needs the network; without, it may have none.")


@dataclass(frozen=True, slots=True)
class _Setting:
    """How one line runs."""

    argv: list[str]
    folder: Path
    environment: dict[str, str]
    counts_left: bool


def run_command(
    workspace: Workspace, own_folders: tuple[Path, ...] = (), *, confinement: Callable[[], Confinement] = offered
) -> Tool[RunCommandInput]:
    """Make the tool for a workspace. `own_folders`: where this program keeps its data, which no command may read."""

    def set_up(wanted: RunCommandInput, temporary: Path) -> _Setting:
        folder = _folder(workspace, wanted.folder)
        bounds = bounds_for(workspace.folder, temporary, own_folders, network=wanted.network)
        way = confinement()
        argv = way.command((_shell(), "-c", wanted.command), folder, bounds)
        environment = environment_of_command(os.environ, temporary, network=wanted.network)
        return _Setting(argv, folder, environment, not way.ends_all)

    async def run(wanted: RunCommandInput, call: RunningCall) -> tuple[Text, ...]:
        temporary = await in_thread(lambda _sign: _made())
        try:
            setting = await in_thread(lambda _sign: set_up(wanted, temporary))
            return (Text(text=await _run(wanted, setting, call)),)
        finally:
            await in_thread(lambda _sign: shutil.rmtree(temporary, ignore_errors=True))

    def look(wanted: RunCommandInput) -> Preview:
        folder = _folder(workspace, wanted.folder)
        return CommandPreview(wanted.command, str(folder), confinement().title(network=wanted.network))

    async def preview(wanted: RunCommandInput) -> Preview:
        return await in_thread(lambda _sign: look(wanted))

    async def subjects(wanted: RunCommandInput) -> tuple[Subject, ...]:
        # A rule that allows a command without network must not allow it with.
        return (CommandSubject(wanted.command), *([HostSubject(ANY_HOST)] if wanted.network else ()))

    return Tool(
        name="run_command",
        description=(
            "Run a line in bash, in a folder of the workspace. The result is its exit code and what it wrote. It gets "
            "no input, and everything that it started is ended with it. It may be able to write only in the "
            "workspace and in $TMPDIR; say so with network if it needs the network."
        ),
        schema=ModelSchema(RunCommandInput),
        run=run,
        tool_class=ToolClass.MUTATING,
        effects=frozenset({Effect.READ, Effect.WRITE, Effect.EXECUTE, Effect.NETWORK}),
        preview=preview,
        subjects=subjects,
        brings=lambda wanted: Outsider("web", "a command that used the network") if wanted.network else None,
        timeout=MOST_SECONDS + _AROUND,
        scope=str(workspace.folder),
    )


async def _run(wanted: RunCommandInput, setting: _Setting, call: RunningCall) -> str:
    heard: list[str] = []

    def hear(text: str) -> None:
        heard.append(text)
        call.progress(text)

    try:
        async with asyncio.timeout(wanted.timeout_seconds):
            ended = await run_process(
                setting.argv, cwd=setting.folder, env=setting.environment, on_output=hear, output_limit=_HEARD
            )
    except TimeoutError:
        values = {"seconds": f"{wanted.timeout_seconds}", "output": shortened("".join(heard)) or "[nothing]"}
        raise ToolFailed(
            Sentence(
                "The command ran longer than {seconds} s and was ended, with all that it had started. "
                "Until then it wrote:\n{output}\n",
                values,
            ),
            "Give it more time with timeout_seconds, or let it do less at once.",
        ) from None
    return _told(ended, ended.ended_with_it if setting.counts_left else 0)


def _told(ended: ProcessEnd, left: int) -> str:
    output = shortened(ended.output)
    end = "" if not output or output.endswith("\n") else "\n"
    more = f" {left} {'process' if left == 1 else 'processes'} that it left running ended with it." if left else ""
    return f"{output}{end}[{_how(ended.exit_code)}{more}]"


def _how(code: int) -> str:
    if code >= 0:
        return f"exit code {code}."
    name = f"signal {-code}"
    with suppress(ValueError):
        name = signal.Signals(-code).name
    return f"ended by {name}."


def shortened(output: str, most: int = _TOLD) -> str:
    """The beginning and the end of what is too long."""
    if len(output) <= most:
        return output
    half = most // 2
    return f"{output[:half]}\n[{len(output) - 2 * half:,} characters are left out here.]\n{output[-half:]}"


def _folder(workspace: Workspace, path: str) -> Path:
    place = workspace.locate(path)
    folder = workspace.folder.joinpath(*place.parts)
    if not folder.is_dir():
        raise ToolFailed(Sentence("“{path}” is no folder of the workspace.", {"path": str(place)}))
    return folder


def _shell() -> str:
    # First where only the system writes: a workspace may stand in the person's path.
    return shutil.which("bash", path=_SYSTEM) or shutil.which("bash") or "/bin/sh"


def _made() -> Path:
    return Path(tempfile.mkdtemp(prefix="desktop-agent-")).resolve()
