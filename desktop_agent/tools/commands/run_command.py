"""The run_command tool: run a shell line in the sandbox."""

import hashlib
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from desktop_agent.network.hosts import MAX_HOSTS, normalise_granted_hosts, parse_granted_host
from desktop_agent.processes.worker_threads import run_in_thread
from desktop_agent.sandbox.backends import Sandbox, available_sandbox
from desktop_agent.sandbox.environment import command_environment, proxy_environment
from desktop_agent.sandbox.policy import build_policy, contains_home
from desktop_agent.tools.commands.execution import (
    CommandNetwork,
    PreparedCommand,
    open_command_network,
    prepare_command,
    run_line,
)
from desktop_agent.tools.commands.git_repositories import repository_memory
from desktop_agent.tools.commands.side_effects import INCOMPLETE_PROTECTION
from desktop_agent.tools.files.read_tools import relative_path
from desktop_agent.tools.open_folders import HAS_DESCRIPTORS
from desktop_agent.tools.tool import ModelSchema, RunningCall, Tool
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.blocks import Text
from desktop_agent.types.errors import Sentence, ToolFailed, join_remedy
from desktop_agent.types.permissions import CommandSubject, HostSubject, Subject
from desktop_agent.types.tool_calls import CommandPreview, Effect, Preview, ToolClass, UntrustedSource, command_source

if TYPE_CHECKING:
    from desktop_agent.network.fetch import Resolver


def remove_tree(folder: Path) -> None:
    """Remove a folder as far as possible. Never fails, and follows no link.

    Nested folders are moved to the top one first: then no path is too long, and nesting needs no recursion.
    """
    if not HAS_DESCRIPTORS:
        shutil.rmtree(folder, ignore_errors=True)
        return
    with suppress(OSError):
        top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            _empty_folder(top)
        finally:
            os.close(top)
        folder.rmdir()


def _empty_folder(top: int) -> None:
    names = _clear_one_level(top, top)
    while names:
        name = names.pop()
        with suppress(OSError):
            descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=top)
            try:
                names += _clear_one_level(descriptor, top)
            finally:
                os.close(descriptor)
            os.rmdir(name, dir_fd=top)


def _clear_one_level(descriptor: int, top: int) -> list[str]:
    """Remove the files in a folder, and move its folders to the top; return their names there."""
    names: list[str] = []
    with os.scandir(descriptor) as entries:
        listing = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in listing:
        with suppress(OSError):
            if not is_folder:
                os.unlink(name, dir_fd=descriptor)
                continue
            new = secrets.token_hex(16)
            # A folder without all rights cannot be moved into another one, nor looked into.
            os.chmod(name, stat.S_IRWXU, dir_fd=descriptor)
            os.rename(name, new, src_dir_fd=descriptor, dst_dir_fd=top)
            names.append(new)
    return names


MAX_LINE_LENGTH = 20_000
MAX_SECONDS = 600
# For a command that runs without a question.
_UNASKED_SECONDS = 60
ANY_HOST = "*"
"""The subject of a command that nothing restricts to the hosts that it names."""
_MAX_NAMED_HOSTS = 3
_SYSTEM_PATH = "/usr/bin:/bin:/usr/local/bin"
# For starting, and for ending what does not want to end, in seconds.
OVERHEAD_SECONDS = 60.0
_NO_SANDBOX = (
    "Nothing on this system can hold the command to reading, so it was not run. Call again: the person is asked then."
)
NOT_STARTED = "The command was not started."
_Params = TypeVar("_Params", bound=BaseModel)
_Params_contra = TypeVar("_Params_contra", bound=BaseModel, contravariant=True)


class RunCommandInput(BaseModel):
    """What to run."""

    model_config = ConfigDict(extra="forbid")

    command: str = Field(min_length=1, max_length=MAX_LINE_LENGTH, description="The line, as one types it in bash.")
    folder: str = Field(default=".", description="Where it runs, relative to the workspace folder.")
    timeout_seconds: int = Field(default=120, ge=1, le=MAX_SECONDS, description="After so long it is ended.")
    hosts: Annotated[list[str], AfterValidator(normalise_granted_hosts)] = Field(
        default=[],
        max_length=MAX_HOSTS,
        description=(
            "The hosts that it must reach, each by name: “example.org”, “*.example.org” for all below it, "
            "“example.org:8443” for one port. Without any it has no network. For a package manager name its index and, "
            "where that is another, the host of its files."
        ),
    )


class CommandCalls(Protocol[_Params_contra]):
    """What a tool that runs commands does with its calls, in one workspace; each shell has one."""

    @property
    def workspace(self) -> Workspace: ...
    async def run(self, params: _Params_contra, call: RunningCall, /) -> tuple[Text, ...]: ...
    async def preview(self, params: _Params_contra, /) -> Preview: ...
    async def subjects(self, params: _Params_contra, /) -> tuple[Subject, ...]: ...


def command_tool(calls: CommandCalls[_Params], params: type[_Params], description: str) -> Tool[_Params]:
    """Declare the tool that runs commands. It has this name for every shell, so that rules hold for all."""
    return Tool(
        name="run_command",
        description=description,
        schema=ModelSchema(params),
        run=calls.run,
        tool_class=ToolClass.MUTATING,
        effects=frozenset({Effect.READ, Effect.WRITE, Effect.EXECUTE, Effect.NETWORK}),
        preview=calls.preview,
        subjects=calls.subjects,
        timeout=MAX_SECONDS + OVERHEAD_SECONDS,
        scope=str(calls.workspace.folder),
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
    confinement: Callable[[], Sandbox] = available_sandbox,
    resolve: "Resolver | None" = None,
    is_checkout: Callable[[str, str], bool] = lambda _line, _workspace: False,
) -> Tool[RunCommandInput]:
    """Make the tool for a workspace. `own_folders`: where this program keeps its data, which no command may read.

    `private_hosts` are names that may lead into a private network; `resolve` finds the addresses of hosts.
    `is_checkout` says of a line in a workspace whether it may write every startup file there, as git does with tracked
    files.
    """
    commands = _CommandTool(workspace, own_folders, private_hosts, confinement, resolve, is_checkout)
    return replace(command_tool(commands, RunCommandInput, _DESCRIPTION), brings=_untrusted_source)


@dataclass(frozen=True)
class _CommandTool:
    """The tool in one workspace. The fields are as in `run_command`."""

    workspace: Workspace
    own_folders: tuple[Path, ...]
    private_hosts: Callable[[], frozenset[str]]
    find_sandbox: Callable[[], Sandbox]
    resolve: "Resolver | None"
    is_checkout: Callable[[str, str], bool]

    async def run(self, params: RunCommandInput, call: RunningCall) -> tuple[Text, ...]:
        call.report_partial_result(NOT_STARTED)
        folders: list[Path] = []
        try:
            await run_in_thread(lambda _token: folders.extend(make_temporary_folder() for _ in range(2)))
            sandbox = await run_in_thread(lambda _token: self.find_sandbox())
            if call.is_read_only and not sandbox.is_enforced:
                raise ToolFailed(_NO_SANDBOX)
            hosts = params.hosts if sandbox.has_own_network else ()
            async with open_command_network(hosts, self.private_hosts, self.resolve) as network:
                is_read_only = call.is_read_only
                seconds = min(params.timeout_seconds, _UNASKED_SECONDS) if is_read_only else params.timeout_seconds
                prepared = await run_in_thread(
                    lambda _token: self._prepare(params, folders, sandbox, network, is_read_only=is_read_only)
                )
                return (Text(text=await run_line(prepared, seconds, call)),)
        finally:
            await run_in_thread(lambda _token: _remove_folders(folders))

    async def preview(self, params: RunCommandInput) -> Preview:
        return await run_in_thread(lambda _token: self._build_preview(params))

    async def subjects(self, params: RunCommandInput) -> tuple[Subject, ...]:
        # A rule that allows a command without hosts must not allow it with hosts.
        folder = await relative_path(self.workspace, params.folder)
        # The first time it is tried, which takes a moment.
        sandbox = await run_in_thread(lambda _token: self.find_sandbox())
        if not params.hosts:
            return (CommandSubject(params.command, folder, is_sandboxed=sandbox.is_enforced),)
        # To rules a host is the same at every port.
        host_names = tuple(dict.fromkeys(parse_granted_host(host).host for host in params.hosts))
        hosts = host_names if sandbox.has_own_network else (*host_names, ANY_HOST)
        return (CommandSubject(params.command, folder), *map(HostSubject, hosts))

    def _prepare(
        self,
        params: RunCommandInput,
        folders: list[Path],
        sandbox: Sandbox,
        network: CommandNetwork | None,
        *,
        is_read_only: bool,
    ) -> PreparedCommand:
        folder = command_folder(self.workspace, params.folder)
        has_network = bool(params.hosts)
        temporary, copies_folder = folders
        copies = copies_folder if sandbox.name else None
        policy = build_policy(self.workspace.folder, temporary, self.own_folders, network=has_network, copies=copies)
        policy = replace(policy, is_read_only=is_read_only)
        environment = command_environment(os.environ, temporary, network=has_network, is_read_only=is_read_only)
        environment |= dict(policy.variables)
        if network is not None:
            environment |= proxy_environment(params.hosts)
        is_checkout = self.is_checkout(params.command, str(self.workspace.folder))
        argv = (_shell(), "-c", params.command)
        return prepare_command(argv, folder, environment, policy, sandbox, network, is_checkout=is_checkout)

    def _build_preview(self, params: RunCommandInput) -> Preview:
        folder, sandbox = command_folder(self.workspace, params.folder), self.find_sandbox()
        title = _title(self.workspace, sandbox, params.hosts)
        only_hosts = sandbox.has_own_network and sandbox.is_enforced
        return CommandPreview(params.command, str(folder), title, hosts=tuple(params.hosts), only_hosts=only_hosts)


def _untrusted_source(params: RunCommandInput) -> UntrustedSource | None:
    if not params.hosts:
        return None
    # Trust in what one line brought says nothing about another line.
    line = "\n".join((params.folder, params.command, *params.hosts)).encode("utf-8", "replace")
    hosts = ", ".join((*params.hosts[:_MAX_NAMED_HOSTS], *(["…"] if len(params.hosts) > _MAX_NAMED_HOSTS else ())))
    return command_source(hosts, hashlib.sha256(line).hexdigest())


def command_folder(workspace: Workspace, path: str) -> Path:
    """Return where a line runs. Raises ToolFailed where that is no folder of the workspace."""
    place = workspace.locate(path)
    folder = workspace.folder.joinpath(*place.parts)
    if not folder.is_dir():
        raise ToolFailed(Sentence("“{path}” is not a folder of the workspace.", {"path": str(place)}))
    return folder


def _title(workspace: Workspace, sandbox: Sandbox, hosts: Sequence[str]) -> Sentence:
    title = sandbox.title(hosts, around_home=contains_home(workspace.folder))
    is_cut = sandbox.name and repository_memory(workspace.folder.resolve()).is_cut
    return join_remedy(title, INCOMPLETE_PROTECTION) if is_cut else title


def _shell() -> str:
    # First where only the system writes: a workspace may be in the person's PATH.
    return shutil.which("bash", path=_SYSTEM_PATH) or shutil.which("bash") or "/bin/sh"


def make_temporary_folder() -> Path:
    """Make the folder of one command."""
    return Path(tempfile.mkdtemp(prefix="desktop-agent-")).resolve()


def _remove_folders(folders: list[Path]) -> None:
    for folder in folders:
        remove_tree(folder)
