"""One line on its way: what is looked at before it, what it says, and what it has done when it ends or is stopped."""

import asyncio
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from desktop_agent.tools.answers import without_terminal_commands
from desktop_agent.tools.commands.aftermath.changes import After, Before, before_command
from desktop_agent.tools.commands.aftermath.startup import Kept, kept_from
from desktop_agent.tools.commands.bounds import Bounds
from desktop_agent.tools.commands.confinement import Confinement, count_in
from desktop_agent.tools.commands.granted_network import GrantedNetwork
from desktop_agent.tools.commands.refusals import why_refused
from desktop_agent.tools.confining.staying import left_running
from desktop_agent.tools.in_thread import in_thread
from desktop_agent.tools.processes.running import Ending, ProcessEnd, run_process
from desktop_agent.tools.tool import RunningCall
from desktop_agent.vocabulary.errors import Sentence, ToolFailed

# In characters: what is listened to, and what of it the model is told, half of it from the end.
_HEARD = 1_000_000
_TOLD = 60_000
_LESS = (
    "A command that nobody was asked about gets no more time than that. Let it do less at once; one that writes a file "
    "is asked about, and gets the time that it names."
)
_NOT_LOOKED = "Which files of the workspace it changed could not be looked at in time."


@dataclass(frozen=True, slots=True)
class Setting:
    """How one line runs, and in what. `before` is the workspace as it was, `bounds` hold if there is a `way`.

    `network` leads to the hosts that are granted, where the command is alone in its own.
    """

    argv: list[str]
    folder: Path
    environment: dict[str, str]
    way: Confinement
    before: Before
    bounds: Bounds
    network: GrantedNetwork | None = None


def setting_of(
    argv: Sequence[str],
    folder: Path,
    environment: dict[str, str],
    bounds: Bounds,
    way: Confinement,
    network: GrantedNetwork | None = None,
    *,
    is_checkout: bool = False,
) -> Setting:
    """The workspace is the first, and the line's own temporary folder the last of what it may write.

    The line is the last word of `argv`. One that `is_checkout` may write every startup file of the workspace.
    """
    workspace, temporary = bounds.writable[0], bounds.writable[-1]
    before = before_command(workspace, temporary.stat().st_ctime_ns, with_programs=bool(way.name))
    if (of_git := before.guarded) is not None:
        runs_in = folder.relative_to(workspace).as_posix()
        kept = Kept() if is_checkout else kept_from(argv[-1], runs_in, workspace, before.seen)
        pinned = tuple(dict.fromkeys((*of_git.pinned, *kept.pinned)))
        bounds = replace(bounds, read_only=(*of_git.files, *of_git.folders, *kept.read_only), pinned=pinned)
    if network is not None:
        bounds = replace(bounds, channel=network.channel)
    return Setting(way.command(argv, folder, bounds), folder, environment, way, before, bounds, network)


async def run_line(setting: Setting, seconds: int, call: RunningCall) -> str:
    """What it wrote and how it ended. Raises ToolFailed for one that takes longer than `seconds`."""
    heard: list[str] = []
    ended_with_it: list[int] = []

    def hear(text: str) -> None:
        heard.append(text)
        call.progress(text)

    call.so_far(_NOT_LOOKED)
    try:
        async with asyncio.timeout(seconds):
            ended = await run_process(
                setting.argv,
                cwd=setting.folder,
                env=setting.environment,
                on_output=hear,
                output_limit=_HEARD,
                ending=Ending(stays=setting.way.stays, told=ended_with_it.append),
                pass_fds=() if setting.network is None else (setting.network.channel,),
            )
    except TimeoutError:
        output = shortened(without_terminal_commands("".join(heard)))
        done = (await _done(setting, ended_with_it, call), *await _why(setting, output))
        values = {"seconds": f"{seconds}", "output": output or "[nothing]", "done": " ".join(filter(None, done))}
        raise ToolFailed(
            Sentence(
                "The command ran longer than {seconds} s and was ended, with all that it had started. "
                "Until then it wrote:\n{output}\n{done}\n",
                values,
            ),
            _LESS
            if setting.bounds.only_reads
            else "Give it more time with timeout_seconds, or let it do less at once.",
        ) from None
    except asyncio.CancelledError:
        call.so_far(f"{_processes(setting, ended_with_it)}{_NOT_LOOKED}")
        call.so_far(await _done(setting, ended_with_it, call))
        raise
    after = await _looked_again(setting, call, files=setting.before.is_small)
    output = shortened(without_terminal_commands(ended.output))
    # What looks shows what others wrote: their words say nothing of it where it went well.
    why = () if setting.bounds.only_reads and ended.exit_code == 0 else await _why(setting, output)
    notes = (after.warning, *why)
    return _told(ended, output, await _left(setting, ended), notes)


async def _left(setting: Setting, ended: ProcessEnd) -> int:
    """How many processes it had left running, where that is known."""
    if setting.way.ends_all:
        return 0
    return ended.ended_with_it + await in_thread(lambda _sign: left_running(count_in(setting.bounds)))


async def _why(setting: Setting, output: str) -> tuple[str, ...]:
    """What the confinement has to do with what was written, and which hosts could not be reached."""
    bounds, way = setting.bounds, setting.way.name
    workspace, network, only_reads = str(bounds.writable[0]), bounds.network, bounds.only_reads
    why = await in_thread(lambda _sign: why_refused(output, way, workspace, network=network, only_reads=only_reads))
    return (why, *(setting.network.notes if setting.network is not None else ()))


async def _done(setting: Setting, ended: list[int], call: RunningCall) -> str:
    """What it had done when it was broken off."""
    after = await _looked_again(setting, call, files=True)
    return " ".join(each for each in (_processes(setting, ended) + str(after.changes), after.warning) if each)


async def _looked_again(setting: Setting, call: RunningCall, *, files: bool) -> After:
    after = await in_thread(lambda sign: setting.before.again(sign.check, files=files))
    if after.changes is not None:
        call.changed(after.changes.kept)
    return after


def _processes(setting: Setting, ended: list[int]) -> str:
    count = sum(ended) - setting.way.own_processes
    return f"{count:,} {'process was' if count == 1 else 'processes were'} ended. " if count > 0 else ""


def _told(ended: ProcessEnd, output: str, left: int, notes: Sequence[str]) -> str:
    end = "" if not output or output.endswith("\n") else "\n"
    more = f" {left} {'process' if left == 1 else 'processes'} that it left running ended with it." if left else ""
    return f"{output}{end}[{_how(ended.exit_code)}{more}]" + "".join(f"\n[{each}]" for each in notes if each)


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
