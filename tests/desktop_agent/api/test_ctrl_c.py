"""Ctrl-C in a terminal while code of the caller's own has the main thread: nothing swallows it, nothing is torn."""

import asyncio
import signal
import sys
from textwrap import dedent

import pytest

from tests.fakes.ask_command import LIMIT, ROOT, finished

# Each kind of foreign code holds up the event loop in the main thread, where Python handles signals.
PROGRAM = """
    import asyncio, signal, time, sys
    from desktop_agent.api.client import Client
    from tests.fakes.scripted_provider import ScriptedProvider, Turn
    from desktop_agent.tools.decorator import tool
    from desktop_agent.types.blocks import ToolUse
    from desktop_agent.types.policies import Guard
    from desktop_agent.types.policies import Hooks
    from desktop_agent.types.engine_events import RunFinished, RunStarted
    from desktop_agent.types.provider_events import ContentDelta

    PLACE, held, running = sys.argv[1], [], []

    def hold(place):
        if place == PLACE and not held:
            held.append(True)
            print("holding", flush=True)
            try:
                while not running[0].cancelling():
                    time.sleep(0.01)
                print("cancelled", flush=True)
                time.sleep(60)
            finally:
                print("let go", flush=True)

    @tool
    async def work():
        "Work."
        hold("tool")
        return "done"

    async def hook(_):
        hold("hook")

    async def guard(_):
        hold("guard")

    def listener(envelope):
        if isinstance(envelope.event, RunFinished):
            print("ended", envelope.event.reason, flush=True)
        if isinstance(envelope.event, RunStarted):
            hold("listener")

    async def main():
        running.append(asyncio.current_task())
        provider = ScriptedProvider(Turn(ToolUse(id="1", name="work")), Turn(ContentDelta("done")))
        async with Client(
            model="m",
            provider=provider,
            tools=(work,),
            auto_execute_tools=True,
            hooks=Hooks().add_pre_tool_use(hook),
            guards=(Guard("g", guard, 1),),
            listener=listener,
        ) as client:
            await client.complete("go")
            print("completed", flush=True)

    # Whoever starts the tests in the background may have it ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT can be sent to a child there")
@pytest.mark.parametrize("place", ["listener", "hook", "tool", "guard"])
async def test_it_ends_the_run_once_and_then_the_program(place: str) -> None:
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        dedent(PROGRAM),
        place,
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert child.stdout is not None
    async with asyncio.timeout(LIMIT):
        assert await child.stdout.readline() == b"holding\n"
        # The first one cancels the main task, which cannot be heard yet; the second breaks into the code itself.
        child.send_signal(signal.SIGINT)
        assert await child.stdout.readline() == b"cancelled\n"
        child.send_signal(signal.SIGINT)
    ended = await finished(child)
    assert ended.out.splitlines() == ["let go", "ended cancelled"]
    assert ended.code == -signal.SIGINT
    assert ended.err.rstrip().endswith("KeyboardInterrupt")
