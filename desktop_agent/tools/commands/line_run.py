"""One line on its way: what is looked at before it, what it says, and what it has done when it ends or is stopped."""

import asyncio
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from desktop_agent.tools.answers import strip_terminal_sequences
from desktop_agent.tools.commands.aftermath.changes import SideEffects, WorkspaceBefore, survey_before
from desktop_agent.tools.commands.aftermath.startup import ProtectedStartupFiles, protected_startup_files
from desktop_agent.tools.commands.bounds import SandboxPolicy
from desktop_agent.tools.commands.confinement import Sandbox, left_running_file
from desktop_agent.tools.commands.granted_network import CommandNetwork
from desktop_agent.tools.commands.refusals import explain_refusals
from desktop_agent.tools.confining.staying import read_left_running
from desktop_agent.tools.in_thread import run_in_thread
from desktop_agent.tools.processes.running import ProcessResult, Termination, run_process
from desktop_agent.tools.tool import RunningCall
from desktop_agent.vocabulary.errors import Sentence, ToolFailed

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
