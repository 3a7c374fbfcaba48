"""Execute one shell line: open its network proxy, limit its time and output, and explain what the sandbox refused."""

import asyncio
import signal
import socket
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from desktop_agent.data_files import load_table
from desktop_agent.network.hosts import canonical_hosts, parse_granted_host
from desktop_agent.processes.foreign_code import strip_terminal_sequences
from desktop_agent.processes.run_process import ProcessResult, Termination, run_process
from desktop_agent.processes.worker_threads import run_in_thread
from desktop_agent.sandbox.backends import Sandbox, left_running_file
from desktop_agent.sandbox.kernel_limits import counts_per_namespace
from desktop_agent.sandbox.policy import SandboxPolicy
from desktop_agent.tools.commands.side_effects import (
    ProtectedStartupFiles,
    SideEffects,
    WorkspaceBefore,
    protected_startup_files,
    survey_before,
)
from desktop_agent.tools.tool import RunningCall
from desktop_agent.types.errors import Sentence, ToolFailed

if TYPE_CHECKING:
    from desktop_agent.network.command_proxy import CommandProxy
    from desktop_agent.network.fetch import Resolver


class CommandNetwork:
    """The network of one command. Over `channel` the launcher sends a socket that listens in that network."""

    def __init__(self, proxy: "CommandProxy") -> None:
        self._proxy = proxy
        self._own_end, self._launcher_end = socket.socketpair()
        self._loop = asyncio.SelectorEventLoop()
        self._serving: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, name="network of a command", daemon=True)
        self._thread.start()

    @property
    def channel(self) -> int:
        return self._launcher_end.fileno()

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about what could not be reached."""
        return self._proxy.notes

    def close(self) -> None:
        """End every connection. Waits for the thread."""
        with suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(self._stop)
        self._thread.join()
        for end in (self._own_end, self._launcher_end):
            end.close()

    def _stop(self) -> None:
        if self._serving is not None:
            self._serving.cancel()

    def _run(self) -> None:
        try:
            self._serving = self._loop.create_task(self._serve())
            with suppress(asyncio.CancelledError):
                self._loop.run_until_complete(self._serving)
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        listening = await self._listener()
        if listening is not None:
            with listening:
                await self._proxy.serve(listening)

    async def _listener(self) -> socket.socket | None:
        """Return the socket that the launcher sends; None where it ends without sending one."""
        self._own_end.settimeout(0)
        is_readable = asyncio.Event()
        self._loop.add_reader(self._own_end, is_readable.set)
        try:
            await is_readable.wait()
        finally:
            self._loop.remove_reader(self._own_end)
        _, descriptors, _, _ = socket.recv_fds(self._own_end, 1, 1)
        return socket.socket(fileno=descriptors[0]) if descriptors else None


@asynccontextmanager
async def open_command_network(
    hosts: Sequence[str], private_hosts: Callable[[], frozenset[str]], resolve: "Resolver | None"
) -> AsyncGenerator[CommandNetwork | None, None]:
    """Open a network while a command runs; None for one that names no hosts."""
    if not hosts:
        yield None
        return
    networks: list[CommandNetwork] = []
    try:
        await run_in_thread(
            lambda _token: networks.append(CommandNetwork(_build_proxy(hosts, private_hosts(), resolve)))
        )
        yield networks[0]
    finally:
        for network in networks:
            await run_in_thread(lambda _token, network=network: network.close())


def _build_proxy(hosts: Sequence[str], private: frozenset[str], resolve: "Resolver | None") -> "CommandProxy":
    # What speaks HTTP takes a tenth of a second to load, and most commands never need it.
    from desktop_agent.network.command_proxy import CommandProxy
    from desktop_agent.network.fetch import resolve_host

    granted = [parse_granted_host(host) for host in hosts]
    return CommandProxy(granted, canonical_hosts(private), resolve=resolve or resolve_host)


@dataclass(frozen=True, slots=True)
class _RefusalHint:
    patterns: tuple[str | tuple[str, ...], ...]
    text: str
    sandboxes: frozenset[str]
    networks: frozenset[bool]

    def applies(self, output: str, lowered: str) -> bool:
        return any(
            _appears_in(pattern, output if isinstance(pattern, str) and pattern.isupper() else lowered)
            for pattern in self.patterns
        )


@cache
def refusal_texts() -> dict[str, Any]:
    """Read refusal_hints.toml."""
    return load_table(__name__, "refusal_hints.toml")


@cache
def refusal_hints() -> tuple[_RefusalHint, ...]:
    """Return the hints for the model about each kind of refusal, in their order in the result."""
    return tuple(
        _RefusalHint(
            tuple(pattern if isinstance(pattern, str) else tuple(pattern) for pattern in hint["patterns"]),
            hint["text"],
            frozenset(hint.get("sandboxes", ("bubblewrap", "Landlock"))),
            frozenset(hint.get("networks", (False, True))),
        )
        for hint in refusal_texts()["hints"]
    )


def explain_refusals(output: str, sandbox: str, workspace: str, *, network: bool, is_read_only: bool = False) -> str:
    """Return sentences for the model, empty where the output shows no refusal. `sandbox` is the sandbox's name."""
    # Its path must not match a pattern: it may lie among temporary files.
    text = "\n" + output.replace(workspace, "")
    lowered = text.lower()
    texts = refusal_texts()
    if is_read_only and sandbox and any(pattern in lowered for pattern in texts["limit_patterns"]):
        has_process_limit = sandbox == "bubblewrap" and counts_per_namespace()
        return texts["limits"].format(processes=texts["process_limit"] if has_process_limit else "")
    if is_read_only and sandbox and ("read-only file system" in lowered or "EROFS" in text):
        return texts["read_only"]
    is_write_refused = is_read_only and sandbox and "permission denied" in lowered
    hints = (
        hint.text
        for hint in refusal_hints()
        if sandbox in hint.sandboxes and network in hint.networks and hint.applies(text, lowered)
    )
    return " ".join((*hints, *([texts["read_only"]] if is_write_refused else ())))


def _appears_in(pattern: str | tuple[str, ...], text: str) -> bool:
    if isinstance(pattern, str):
        return pattern in text
    # Single lines are searched only where all parts occur: in most outputs they do not.
    is_complete = all(part in text for part in pattern)
    return is_complete and any(all(part in line for part in pattern) for line in text.splitlines())


# In characters: what is read, and what of it the model gets, half of it from the end.
_MAX_READ = 1_000_000
_MAX_SHOWN = 60_000
_TIMEOUT_ADVICE = (
    "A command that nobody was asked about gets no more time than that. Let it do less at once; one that writes a file "
    "is asked about, and gets the time that it names."
)
_CHANGES_UNKNOWN = "Which files of the workspace it changed could not be looked at in time."


@dataclass(frozen=True, slots=True)
class PreparedCommand:
    """How one line runs. `before` is the workspace as it was; `policy` holds if there is a `sandbox`.

    `network` leads to the granted hosts, where the command is alone in its own.
    """

    argv: list[str]
    folder: Path
    environment: dict[str, str]
    sandbox: Sandbox
    before: WorkspaceBefore
    policy: SandboxPolicy
    network: CommandNetwork | None = None


def prepare_command(
    argv: Sequence[str],
    folder: Path,
    environment: dict[str, str],
    policy: SandboxPolicy,
    sandbox: Sandbox,
    network: CommandNetwork | None = None,
    *,
    is_checkout: bool = False,
) -> PreparedCommand:
    """Prepare a line. Of the writable folders the first is the workspace, the last the line's own temporary folder.

    The line is the last word of `argv`. One that `is_checkout` may write every startup file of the workspace.
    """
    workspace, temporary = policy.writable[0], policy.writable[-1]
    before = survey_before(workspace, temporary.stat().st_ctime_ns, with_programs=bool(sandbox.name))
    if (git_paths := before.protected) is not None:
        runs_in = folder.relative_to(workspace).as_posix()
        protected = (
            ProtectedStartupFiles()
            if is_checkout
            else protected_startup_files(argv[-1], runs_in, workspace, before.survey)
        )
        pinned = tuple(dict.fromkeys((*policy.pinned, *git_paths.pinned, *protected.pinned)))
        policy = replace(policy, read_only=(*git_paths.files, *git_paths.folders, *protected.read_only), pinned=pinned)
    if network is not None:
        policy = replace(policy, channel=network.channel)
    return PreparedCommand(sandbox.command(argv, folder, policy), folder, environment, sandbox, before, policy, network)


async def run_line(prepared: PreparedCommand, seconds: int, call: RunningCall) -> str:
    """Run it; return its output and how it ended. Raises ToolFailed for one that takes longer than `seconds`."""
    received: list[str] = []
    ended_counts: list[int] = []

    def on_output(text: str) -> None:
        received.append(text)
        call.progress(text)

    call.report_partial_result(_CHANGES_UNKNOWN)
    try:
        async with asyncio.timeout(seconds):
            finished = await run_process(
                prepared.argv,
                cwd=prepared.folder,
                env=prepared.environment,
                on_output=on_output,
                output_limit=_MAX_READ,
                ending=Termination(is_supervised=prepared.sandbox.is_supervised, on_ended=ended_counts.append),
                pass_fds=() if prepared.network is None else (prepared.network.channel,),
            )
    except TimeoutError:
        output = shorten_output(strip_terminal_sequences("".join(received)))
        done = (await _describe_effects(prepared, ended_counts, call), *await _explain(prepared, output))
        values = {"seconds": f"{seconds}", "output": output or "[nothing]", "done": " ".join(filter(None, done))}
        raise ToolFailed(
            Sentence(
                "The command ran longer than {seconds} s and was ended, with all that it had started. "
                "Until then it wrote:\n{output}\n{done}\n",
                values,
            ),
            _TIMEOUT_ADVICE
            if prepared.policy.is_read_only
            else "Give it more time with timeout_seconds, or let it do less at once.",
        ) from None
    except asyncio.CancelledError:
        call.report_partial_result(f"{_describe_ended(prepared, ended_counts)}{_CHANGES_UNKNOWN}")
        call.report_partial_result(await _describe_effects(prepared, ended_counts, call))
        raise
    effects = await _recheck_workspace(prepared, call, files=prepared.before.is_small)
    output = shorten_output(strip_terminal_sequences(finished.output))
    # A read-only command shows what others wrote: where it succeeded, refusals in there are not its own.
    why = () if prepared.policy.is_read_only and finished.exit_code == 0 else await _explain(prepared, output)
    notes = (effects.warning, *why)
    return _format_result(finished, output, await _count_left_running(prepared, finished), notes)


async def _count_left_running(prepared: PreparedCommand, finished: ProcessResult) -> int:
    """Return how many processes it had left running, where that is known."""
    if prepared.sandbox.ends_descendants:
        return 0
    # Imported late: the rest of that module runs in child processes alone.
    from desktop_agent.sandbox.launcher import read_left_running

    return finished.left_running + await run_in_thread(
        lambda _token: read_left_running(left_running_file(prepared.policy))
    )


async def _explain(prepared: PreparedCommand, output: str) -> tuple[str, ...]:
    """Explain what the sandbox refused, and which hosts could not be reached."""
    policy, sandbox = prepared.policy, prepared.sandbox.name
    workspace, network, is_read_only = str(policy.writable[0]), policy.network, policy.is_read_only
    why = await run_in_thread(
        lambda _token: explain_refusals(output, sandbox, workspace, network=network, is_read_only=is_read_only)
    )
    return (why, *(prepared.network.notes if prepared.network is not None else ()))


async def _describe_effects(prepared: PreparedCommand, ended_counts: list[int], call: RunningCall) -> str:
    effects = await _recheck_workspace(prepared, call, files=True)
    return " ".join(
        sentence
        for sentence in (_describe_ended(prepared, ended_counts) + str(effects.changes), effects.warning)
        if sentence
    )


async def _recheck_workspace(prepared: PreparedCommand, call: RunningCall, *, files: bool) -> SideEffects:
    effects = await run_in_thread(lambda token: prepared.before.compare(token.raise_if_cancelled, files=files))
    if effects.changes is not None:
        call.report_file_changes(effects.changes.file_changes)
    return effects


def _describe_ended(prepared: PreparedCommand, counts: list[int]) -> str:
    count = sum(counts) - prepared.sandbox.extra_processes
    return f"{count:,} {'process was' if count == 1 else 'processes were'} ended. " if count > 0 else ""


def _format_result(finished: ProcessResult, output: str, left_running: int, notes: Sequence[str]) -> str:
    end = "" if not output or output.endswith("\n") else "\n"
    processes = "process" if left_running == 1 else "processes"
    more = f" {left_running} {processes} that it left running ended with it." if left_running else ""
    further = "".join(f"\n[{note}]" for note in notes if note)
    return f"{output}{end}[{_describe_exit(finished.exit_code)}{more}]{further}"


def _describe_exit(code: int) -> str:
    if code >= 0:
        return f"exit code {code}."
    name = f"signal {-code}"
    with suppress(ValueError):
        name = signal.Signals(-code).name
    return f"ended by {name}."


def shorten_output(output: str, most: int = _MAX_SHOWN) -> str:
    """Return the beginning and the end of what is too long."""
    if len(output) <= most:
        return output
    half = most // 2
    return f"{output[:half]}\n[{len(output) - 2 * half:,} characters are left out here.]\n{output[-half:]}"
