"""The tool that runs a shell line."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from desktop_agent.network.granted_hosts import MOST_HOSTS, granted_host, granted_hosts
from desktop_agent.tools.commands.aftermath.changes import NOT_ALL
from desktop_agent.tools.commands.aftermath.repositories import memory_of
from desktop_agent.tools.commands.bounds import bounds_for
from desktop_agent.tools.commands.clearing import remove_tree
from desktop_agent.tools.commands.confinement import Confinement, offered
from desktop_agent.tools.commands.environment import environment_of_command, proxy_environment
from desktop_agent.tools.commands.granted_network import GrantedNetwork, granted_network
from desktop_agent.tools.commands.known_places import is_around_home
from desktop_agent.tools.commands.line_run import Setting, run_line, setting_of
from desktop_agent.tools.files.places import relative_of
from desktop_agent.tools.in_thread import in_thread
from desktop_agent.tools.tool import ModelSchema, RunningCall, Tool
from desktop_agent.tools.workspace import Workspace
from desktop_agent.vocabulary.blocks import Text
from desktop_agent.vocabulary.conduct.rules import CommandSubject, HostSubject, Subject
from desktop_agent.vocabulary.errors import Sentence, ToolFailed
from desktop_agent.vocabulary.tool_calls import CommandPreview, Effect, Preview, ToolClass, UntrustedSource

if TYPE_CHECKING:
    from desktop_agent.network.checked_backend import Resolver

LINE_LIMIT = 20_000
MOST_SECONDS = 600
# For a command that nobody was asked about.
_UNASKED_SECONDS = 60
ANY_HOST = "*"
"""Where nothing holds a command to the hosts that it names."""
_NAMED = 3
_SYSTEM = "/usr/bin:/bin:/usr/local/bin"
# For starting, and for ending what does not want to end, in seconds.
_AROUND = 60.0
_NOT_HELD = (
    "Nothing on this system can hold the command to reading, so it was not run. Call again: the person is asked then."
)
_NOT_STARTED = "The command was not started."


class RunCommandInput(BaseModel):
    """What to run."""

    model_config = ConfigDict(extra="forbid")

    command: str = Field(min_length=1, max_length=LINE_LIMIT, description="The line, as one types it in bash.")
    folder: str = Field(default=".", description="Where it runs, relative to the workspace folder.")
    timeout_seconds: int = Field(default=120, ge=1, le=MOST_SECONDS, description="After so long it is ended.")
    hosts: Annotated[list[str], AfterValidator(granted_hosts)] = Field(
        default=[],
        max_length=MOST_HOSTS,
        description=(
            "The hosts that it must reach, each by name: “example.org”, “*.example.org” for all below it, "
            "“example.org:8443” for one port. Without any it has no network. For a package manager name its index and, "
            "where that is another, the host of its files."
        ),
    )


_DESCRIPTION = (
    "Run a line in bash, in a folder of the workspace. The result is its exit code and what it wrote. It gets no "
    "input, and everything that it started is ended with it. It may be able to write only in the workspace and in "
    "$TMPDIR, which is gone afterwards, but not hooks and settings of git (.git/hooks, .git/config), and other files "
    "that programs run by themselves (.vscode/tasks.json, .envrc, workflows) only where the line names them; it "
    "reaches no other hosts than those that are named with hosts, and those by http and https."
)


def run_command(
    workspace: Workspace,
    own_folders: tuple[Path, ...] = (),
    private_hosts: Callable[[], frozenset[str]] = frozenset,
    *,
    confinement: Callable[[], Confinement] = offered,
    resolve: "Resolver | None" = None,
    is_checkout: Callable[[str, str], bool] = lambda _line, _workspace: False,
) -> Tool[RunCommandInput]:
    """Make the tool for a workspace. `own_folders`: where this program keeps its data, which no command may read.

    `private_hosts` are names that may lead into a private network; `resolve` finds the addresses of hosts.
    `is_checkout` says of a line in a workspace whether it may write every startup file there, as git does with what it
    tracks.
    """
    commands = _Commands(workspace, own_folders, private_hosts, confinement, resolve, is_checkout)
    return Tool(
        name="run_command",
        description=_DESCRIPTION,
        schema=ModelSchema(RunCommandInput),
        run=commands.run,
        tool_class=ToolClass.MUTATING,
        effects=frozenset({Effect.READ, Effect.WRITE, Effect.EXECUTE, Effect.NETWORK}),
        preview=commands.preview,
        subjects=commands.subjects,
        brings=lambda wanted: _outsider(wanted) if wanted.hosts else None,
        timeout=MOST_SECONDS + _AROUND,
        scope=str(workspace.folder),
    )


@dataclass(frozen=True)
class _Commands:
    """What the tool does, in one workspace. The fields are as in `run_command`."""

    workspace: Workspace
    own_folders: tuple[Path, ...]
    private_hosts: Callable[[], frozenset[str]]
    confinement: Callable[[], Confinement]
    resolve: "Resolver | None"
    is_checkout: Callable[[str, str], bool]

    async def run(self, wanted: RunCommandInput, call: RunningCall) -> tuple[Text, ...]:
        call.so_far(_NOT_STARTED)
        made: list[Path] = []
        try:
            await in_thread(lambda _sign: made.extend(_made() for _ in range(2)))
            way = await in_thread(lambda _sign: self.confinement())
            if call.is_read_only and not way.holds:
                raise ToolFailed(_NOT_HELD)
            hosts = wanted.hosts if way.own_network else ()
            async with granted_network(hosts, self.private_hosts, self.resolve) as network:
                only_reads = call.is_read_only
                seconds = min(wanted.timeout_seconds, _UNASKED_SECONDS) if only_reads else wanted.timeout_seconds
                setting = await in_thread(lambda _sign: self._set_up(wanted, made, way, network, only_reads=only_reads))
                return (Text(text=await run_line(setting, seconds, call)),)
        finally:
            await in_thread(lambda _sign: _removed(made))

    async def preview(self, wanted: RunCommandInput) -> Preview:
        return await in_thread(lambda _sign: self._look(wanted))

    async def subjects(self, wanted: RunCommandInput) -> tuple[Subject, ...]:
        # A rule that allows a command without hosts must not allow it with.
        folder = await relative_of(self.workspace, wanted.folder)
        # The first time it is tried, which takes a moment.
        way = await in_thread(lambda _sign: self.confinement())
        if not wanted.hosts:
            return (CommandSubject(wanted.command, folder, is_sandboxed=way.holds),)
        # To rules a host is the same at every port.
        named = tuple(dict.fromkeys(granted_host(each).host for each in wanted.hosts))
        hosts = named if way.own_network else (*named, ANY_HOST)
        return (CommandSubject(wanted.command, folder), *map(HostSubject, hosts))

    def _set_up(
        self,
        wanted: RunCommandInput,
        made: list[Path],
        way: Confinement,
        network: GrantedNetwork | None,
        *,
        only_reads: bool,
    ) -> Setting:
        folder, has_network, (temporary, copies) = _folder(self.workspace, wanted.folder), bool(wanted.hosts), made
        copies = copies if way.name else None
        bounds = bounds_for(self.workspace.folder, temporary, self.own_folders, network=has_network, copies=copies)
        bounds = replace(bounds, only_reads=only_reads)
        environment = environment_of_command(os.environ, temporary, network=has_network, only_reads=only_reads)
        environment |= dict(bounds.variables)
        if network is not None:
            environment |= proxy_environment(wanted.hosts)
        is_checkout = self.is_checkout(wanted.command, str(self.workspace.folder))
        argv = (_shell(), "-c", wanted.command)
        return setting_of(argv, folder, environment, bounds, way, network, is_checkout=is_checkout)

    def _look(self, wanted: RunCommandInput) -> Preview:
        folder, way = _folder(self.workspace, wanted.folder), self.confinement()
        title = _title(self.workspace, way, wanted.hosts)
        return CommandPreview(wanted.command, str(folder), title, hosts=tuple(wanted.hosts), only_hosts=way.own_network)


def _outsider(wanted: RunCommandInput) -> UntrustedSource:
    # Who trusts what one line brought has not seen what another brings.
    line = "\n".join((wanted.folder, wanted.command, *wanted.hosts)).encode("utf-8", "replace")
    named = ", ".join((*wanted.hosts[:_NAMED], *(["…"] if len(wanted.hosts) > _NAMED else ())))
    return UntrustedSource("web", f"a command that may reach {named}", hashlib.sha256(line).hexdigest())


def _folder(workspace: Workspace, path: str) -> Path:
    place = workspace.locate(path)
    folder = workspace.folder.joinpath(*place.parts)
    if not folder.is_dir():
        raise ToolFailed(Sentence("“{path}” is no folder of the workspace.", {"path": str(place)}))
    return folder


def _title(workspace: Workspace, way: Confinement, hosts: Sequence[str]) -> str:
    said = way.title(hosts, around_home=is_around_home(workspace.folder))
    return f"{said} {NOT_ALL}" if way.name and memory_of(workspace.folder.resolve()).is_cut else said


def _shell() -> str:
    # First where only the system writes: a workspace may stand in the person's path.
    return shutil.which("bash", path=_SYSTEM) or shutil.which("bash") or "/bin/sh"


def _made() -> Path:
    return Path(tempfile.mkdtemp(prefix="desktop-agent-")).resolve()


def _removed(folders: list[Path]) -> None:
    for each in folders:
        remove_tree(each)
