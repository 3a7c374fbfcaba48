"""Execute one shell line: open its network proxy, limit its time and output, and explain what the sandbox refused."""

import asyncio
import signal
import socket
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from desktop_agent.network.hosts import canonical_hosts, parse_granted_host
from desktop_agent.processes.foreign_code import strip_terminal_sequences
from desktop_agent.processes.run_process import ProcessResult, Termination, run_process
from desktop_agent.processes.worker_threads import run_in_thread
from desktop_agent.sandbox.backends import Sandbox, left_running_file
from desktop_agent.sandbox.kernel_limits import counts_per_namespace
from desktop_agent.sandbox.launcher import read_left_running
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
    from desktop_agent.network.fetch import Resolver
    from desktop_agent.network.host_proxy import HostProxy


class CommandNetwork:
    """`channel` is passed on to the command's launcher, which sends a socket over it that listens in there."""

    def __init__(self, proxy: "HostProxy") -> None:
        self._proxy = proxy
        self._here, self._there = socket.socketpair()
        self._loop = asyncio.SelectorEventLoop()
        self._serving: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, name="network of a command", daemon=True)
        self._thread.start()

    @property
    def channel(self) -> int:
        """The number of a descriptor."""
        return self._there.fileno()

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about what could not be reached."""
        return self._proxy.notes

    def close(self) -> None:
        """End every connection. Waits for the thread."""
        with suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(self._stop)
        self._thread.join()
        for each in (self._here, self._there):
            each.close()

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
        """What the launcher sends; None where it ends without."""
        self._here.settimeout(0)
        is_readable = asyncio.Event()
        self._loop.add_reader(self._here, is_readable.set)
        try:
            await is_readable.wait()
        finally:
            self._loop.remove_reader(self._here)
        _, descriptors, _, _ = socket.recv_fds(self._here, 1, 1)
        return socket.socket(fileno=descriptors[0]) if descriptors else None


@asynccontextmanager
async def open_command_network(
    hosts: Sequence[str], private_hosts: Callable[[], frozenset[str]], resolve: "Resolver | None"
) -> AsyncGenerator[CommandNetwork | None, None]:
    """For as long as a command runs; None for one that names no hosts."""
    if not hosts:
        yield None
        return
    made: list[CommandNetwork] = []
    try:
        await run_in_thread(lambda _token: made.append(CommandNetwork(_build_proxy(hosts, private_hosts(), resolve))))
        yield made[0]
    finally:
        await run_in_thread(lambda _token: _close_all(made))


def _build_proxy(hosts: Sequence[str], private: frozenset[str], resolve: "Resolver | None") -> "HostProxy":
    # What speaks HTTP takes a tenth of a second to load, and most commands never need it.
    from desktop_agent.network.fetch import resolve_host
    from desktop_agent.network.host_proxy import HostProxy

    granted = [parse_granted_host(each) for each in hosts]
    return HostProxy(granted, canonical_hosts(private), resolve=resolve or resolve_host)


def _close_all(networks: Sequence[CommandNetwork]) -> None:
    for each in networks:
        each.close()


_BUBBLEWRAP, _LANDLOCK = frozenset({"bubblewrap"}), frozenset({"Landlock"})


@dataclass(frozen=True, slots=True)
class _RefusalHint:
    """What is said where one of the `signs` was read, all parts of it in one line; names of errors in capitals.

    `ways` are the confinements of which it holds, `networks` whether it holds of commands without and with hosts.
    """

    patterns: tuple[str | tuple[str, ...], ...]
    hint: str
    sandboxes: frozenset[str] = _BUBBLEWRAP | _LANDLOCK
    networks: frozenset[bool] = frozenset({False, True})


_NO_NETWORK_SIGNS = (
    "name or service not known",
    "failure in name resolution",
    "could not resolve",
    "couldn't resolve",
    "network is unreachable",
    "failed to lookup address",
    "dial tcp",
    "dial udp",
    "temporary failure resolving",
    "unknownhostexception",
    *("EAI_AGAIN", "ENOTFOUND", "ENETUNREACH"),
)
_REFUSAL_HINTS = (
    _RefusalHint(
        (
            "device or resource busy",
            (".git/hooks", "read-only file system"),
            (".git/config", "read-only file system"),
        ),
        "Hooks and settings of git repositories in the workspace are kept from commands, and files that other programs "
        "run by themselves where the line does not name them; so are the folders on the way to them from being moved: "
        "“Device or resource busy” comes from that. Ask the person to do it, or edit the file with a file tool.",
        _BUBBLEWRAP,
    ),
    _RefusalHint(
        ("read-only file system", "EROFS"),
        "“Read-only file system” comes from the confinement: a command writes only in the workspace and in $TMPDIR. "
        "Let it write there, caches and settings of programs too. What programs run by themselves (.vscode/tasks.json, "
        ".envrc, workflows, hooks) it writes only where the line names that very file; or edit it with a file tool.",
        _BUBBLEWRAP,
    ),
    _RefusalHint(
        ("permission denied", "EACCES"),
        "“Permission denied” may come from the confinement: a command writes only in the workspace and in $TMPDIR, and "
        "of home folders, /tmp and other disks it reads only development tools and their caches. Let the person put "
        "what it needs into the workspace.",
        _LANDLOCK,
    ),
    _RefusalHint(
        ("could not load cargo configuration",),
        "The person's settings of cargo hold more than what builds need, so they are closed here, and cargo stops at "
        "that. Let the person move tokens, aliases and the like elsewhere, or install bubblewrap.",
        _LANDLOCK,
    ),
    _RefusalHint(
        ("no new privileges", "effective uid is not 0", "\nsu: "),
        "Nobody becomes another user in the confinement: sudo and su do not work. Let the person do what needs them.",
    ),
    _RefusalHint(
        (
            ("/home/", "no such file or directory"),
            ("/root/", "no such file or directory"),
            ("/mnt/", "no such file or directory"),
            ("/srv/", "no such file or directory"),
        ),
        "Of home folders and other disks a command sees only the workspace, and development tools with their caches. "
        "Let the person put what it needs into the workspace.",
        _BUBBLEWRAP,
    ),
    _RefusalHint(
        (("/tmp/", "no such file or directory"),),  # noqa: S108 - not used
        "What a command leaves in /tmp and in $TMPDIR is gone when it has ended, and what others left in /tmp is not "
        "there. Keep in the workspace what the next command needs.",
    ),
    _RefusalHint(
        ("address family not supported", "EAFNOSUPPORT"),
        "Sockets with a path (unix sockets) cannot be made in the confinement, nor pairs of datagrams, as services "
        "outside could be asked through them. Use 127.0.0.1, or pipes.",
        _BUBBLEWRAP,
    ),
    _RefusalHint(
        ("address family not supported", "EAFNOSUPPORT"),
        "Sockets with a path (unix sockets) cannot be made in the confinement, and without the network no others "
        "either, also for 127.0.0.1. Name 127.0.0.1 with hosts if it needs those.",
        _LANDLOCK,
    ),
    _RefusalHint(
        (
            *_NO_NETWORK_SIGNS,
            "no matching distribution found",
        ),
        "This command had no network, as it named no host. Name with hosts each one that it must reach.",
        networks=frozenset({False}),
    ),
    _RefusalHint(
        _NO_NETWORK_SIGNS,
        "The hosts that this command named are reached through the proxy in http_proxy and https_proxy alone; other "
        "connections lead nowhere, nor can names be looked up. Use addresses with https, and programs that go by these "
        "variables; ssh and databases do not.",
        _BUBBLEWRAP,
        networks=frozenset({True}),
    ),
)


_READ_ONLY_HINT = (
    "The command was held to reading, as it looked like one that only looks and nobody was asked about it. What it "
    "wants to write, write with a file tool, or with a command that says so: the person is asked then."
)


_LIMIT_SIGNS = (
    "memory exhausted",
    "cannot allocate memory",
    "out of memory",
    "not enough memory",
    "memoryerror",
    "file too large",
    "resource temporarily unavailable",
)
_LIMITS_HINT = (
    "The command ran without a question, so none of its processes gets more than 2 GB of memory, and none of its files "
    "more than 1 GB{processes}. Let it do less at once; one that writes a file is asked about, and has no such limits."
)
_PROCESS_LIMIT_HINT = ", nor has it more than 1,024 processes"


def explain_refusals(output: str, sandbox: str, workspace: str, *, network: bool, is_read_only: bool = False) -> str:
    """Sentences for the model, empty where nothing in the output tells. `sandbox` is the name of the confinement."""
    # It may lie among temporary files.
    text = "\n" + output.replace(workspace, "")
    lowered = text.lower()
    if is_read_only and sandbox and any(sign in lowered for sign in _LIMIT_SIGNS):
        return _LIMITS_HINT.format(
            processes=_PROCESS_LIMIT_HINT if sandbox in _BUBBLEWRAP and counts_per_namespace() else ""
        )
    if is_read_only and sandbox and ("read-only file system" in lowered or "EROFS" in text):
        return _READ_ONLY_HINT
    held = is_read_only and sandbox and "permission denied" in lowered
    said = (
        each.hint
        for each in _REFUSAL_HINTS
        if sandbox in each.sandboxes
        and network in each.networks
        and any(
            _appears_in(sign, text if isinstance(sign, str) and sign.isupper() else lowered) for sign in each.patterns
        )
    )
    return " ".join((*said, *([_READ_ONLY_HINT] if held else ())))


def _appears_in(sign: str | tuple[str, ...], text: str) -> bool:
    if isinstance(sign, str):
        return sign in text
    # The lines only where it can be: most outputs have none.
    whole = all(part in text for part in sign)
    return whole and any(all(part in line for part in sign) for line in text.splitlines())


# In characters: what is listened to, and what of it the model is told, half of it from the end.
_MAX_READ = 1_000_000
_MAX_SHOWN = 60_000
_TIMEOUT_ADVICE = (
    "A command that nobody was asked about gets no more time than that. Let it do less at once; one that writes a file "
    "is asked about, and gets the time that it names."
)
_CHANGES_UNKNOWN = "Which files of the workspace it changed could not be looked at in time."


@dataclass(frozen=True, slots=True)
class PreparedCommand:
    """How one line runs, and in what. `before` is the workspace as it was, `policy` hold if there is a `sandbox`.

    `network` leads to the hosts that are granted, where the command is alone in its own.
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
    """The workspace is the first, and the line's own temporary folder the last of what it may write.

    The line is the last word of `argv`. One that `is_checkout` may write every startup file of the workspace.
    """
    workspace, temporary = policy.writable[0], policy.writable[-1]
    before = survey_before(workspace, temporary.stat().st_ctime_ns, with_programs=bool(sandbox.name))
    if (of_git := before.protected) is not None:
        runs_in = folder.relative_to(workspace).as_posix()
        kept = (
            ProtectedStartupFiles()
            if is_checkout
            else protected_startup_files(argv[-1], runs_in, workspace, before.survey)
        )
        pinned = tuple(dict.fromkeys((*of_git.pinned, *kept.pinned)))
        policy = replace(policy, read_only=(*of_git.files, *of_git.folders, *kept.read_only), pinned=pinned)
    if network is not None:
        policy = replace(policy, channel=network.channel)
    return PreparedCommand(sandbox.command(argv, folder, policy), folder, environment, sandbox, before, policy, network)


async def run_line(prepared: PreparedCommand, seconds: int, call: RunningCall) -> str:
    """What it wrote and how it ended. Raises ToolFailed for one that takes longer than `seconds`."""
    received: list[str] = []
    ended_with_it: list[int] = []

    def on_output(text: str) -> None:
        received.append(text)
        call.progress(text)

    call.so_far(_CHANGES_UNKNOWN)
    try:
        async with asyncio.timeout(seconds):
            ended = await run_process(
                prepared.argv,
                cwd=prepared.folder,
                env=prepared.environment,
                on_output=on_output,
                output_limit=_MAX_READ,
                ending=Termination(is_supervised=prepared.sandbox.is_supervised, on_ended=ended_with_it.append),
                pass_fds=() if prepared.network is None else (prepared.network.channel,),
            )
    except TimeoutError:
        output = shorten_output(strip_terminal_sequences("".join(received)))
        done = (await _describe_effects(prepared, ended_with_it, call), *await _explain(prepared, output))
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
        call.so_far(f"{_describe_ended(prepared, ended_with_it)}{_CHANGES_UNKNOWN}")
        call.so_far(await _describe_effects(prepared, ended_with_it, call))
        raise
    after = await _recheck_workspace(prepared, call, files=prepared.before.is_small)
    output = shorten_output(strip_terminal_sequences(ended.output))
    # What looks shows what others wrote: their words say nothing of it where it went well.
    why = () if prepared.policy.is_read_only and ended.exit_code == 0 else await _explain(prepared, output)
    notes = (after.warning, *why)
    return _format_result(ended, output, await _count_left_running(prepared, ended), notes)


async def _count_left_running(prepared: PreparedCommand, ended: ProcessResult) -> int:
    """How many processes it had left running, where that is known."""
    if prepared.sandbox.ends_descendants:
        return 0
    return ended.left_running + await run_in_thread(
        lambda _token: read_left_running(left_running_file(prepared.policy))
    )


async def _explain(prepared: PreparedCommand, output: str) -> tuple[str, ...]:
    """What the confinement has to do with what was written, and which hosts could not be reached."""
    policy, sandbox = prepared.policy, prepared.sandbox.name
    workspace, network, is_read_only = str(policy.writable[0]), policy.network, policy.is_read_only
    why = await run_in_thread(
        lambda _token: explain_refusals(output, sandbox, workspace, network=network, is_read_only=is_read_only)
    )
    return (why, *(prepared.network.notes if prepared.network is not None else ()))


async def _describe_effects(prepared: PreparedCommand, ended: list[int], call: RunningCall) -> str:
    """What it had done when it was broken off."""
    after = await _recheck_workspace(prepared, call, files=True)
    return " ".join(each for each in (_describe_ended(prepared, ended) + str(after.changes), after.warning) if each)


async def _recheck_workspace(prepared: PreparedCommand, call: RunningCall, *, files: bool) -> SideEffects:
    after = await run_in_thread(lambda token: prepared.before.compare(token.raise_if_cancelled, files=files))
    if after.changes is not None:
        call.changed(after.changes.saved)
    return after


def _describe_ended(prepared: PreparedCommand, ended: list[int]) -> str:
    count = sum(ended) - prepared.sandbox.extra_processes
    return f"{count:,} {'process was' if count == 1 else 'processes were'} ended. " if count > 0 else ""


def _format_result(ended: ProcessResult, output: str, left: int, notes: Sequence[str]) -> str:
    end = "" if not output or output.endswith("\n") else "\n"
    more = f" {left} {'process' if left == 1 else 'processes'} that it left running ended with it." if left else ""
    return f"{output}{end}[{_describe_exit(ended.exit_code)}{more}]" + "".join(f"\n[{each}]" for each in notes if each)


def _describe_exit(code: int) -> str:
    if code >= 0:
        return f"exit code {code}."
    name = f"signal {-code}"
    with suppress(ValueError):
        name = signal.Signals(-code).name
    return f"ended by {name}."


def shorten_output(output: str, most: int = _MAX_SHOWN) -> str:
    """The beginning and the end of what is too long."""
    if len(output) <= most:
        return output
    half = most // 2
    return f"{output[:half]}\n[{len(output) - 2 * half:,} characters are left out here.]\n{output[-half:]}"
