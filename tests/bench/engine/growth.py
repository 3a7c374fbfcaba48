"""What a turn costs by the length of the history before it, and in which stage."""

import asyncio
import cProfile
import gc
import math
import pstats
import statistics
import time
from collections.abc import Iterator
from typing import Any

from desktop_agent.agent.guards import Guards
from desktop_agent.agent.model_request import build_request, prepare_pictures, without_abandoned
from desktop_agent.agent.tool_calls.doom_loop import DoomLoopDetector
from desktop_agent.agent.tool_calls.tool_batch import ToolBatch
from desktop_agent.agent.tool_calls.tool_gate import ToolGate
from desktop_agent.agent.turn_boundary import TurnBoundary
from desktop_agent.conversation.history import compacted_view, normalised_history
from desktop_agent.engine.session_writer import SessionWriter
from desktop_agent.types.blocks import Text, ToolResult, ToolUse
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.policies import HookAllow, Hooks, PreToolUse
from desktop_agent.types.provider_events import ContentDelta, Usage, UsageUpdate
from tests.bench.engine.sessions import Noting, say, set_up, stored_session
from tests.fakes.scripted_provider import ScriptedProvider, Turn

SIZES = (100, 300, 1_000, 3_000, 10_000)
PROMPTS = 12
TURNS = 2
"""Turns of each prompt: a call, and the answer to its result."""

STAGES = {
    "the request": build_request,
    "the request: repair": normalised_history,
    "the request: summaries": compacted_view,
    "the request: pictures": prepare_pictures,
    "the request: abandoned answers": without_abandoned,
    "turn boundaries": TurnBoundary.before_turn,
    "additions to the instructions": TurnBoundary.instruction_addenda,
    "copies of the history": SessionWriter.history,
    "guards": Guards.consult,
    "calls": ToolBatch.run,
    "calls: gates": ToolGate.pass_through,
    "calls: doom loop": DoomLoopDetector.__init__,
    "events": SessionWriter.write_event,
    "commits": SessionWriter.commit,
}
"""The function of each stage. Its time includes the functions that it calls, so a stage inside another counts twice."""


def measured() -> dict[str, Any]:
    """Return CPU milliseconds of this process per turn, the exponent of their growth, and shares at the longest."""
    asyncio.run(_turn_seconds(SIZES[0]))
    turn_seconds = {size: statistics.median(asyncio.run(_turn_seconds(size)) for _ in range(3)) for size in SIZES}
    hooked = {size: asyncio.run(_turn_seconds(size, hooked=True)) for size in (SIZES[0], SIZES[-1])}
    return {
        "cpu_ms_per_turn": {str(size): round(seconds * 1000, 3) for size, seconds in turn_seconds.items()},
        "exponent": exponent(turn_seconds),
        "exponent_of_the_longest": exponent({size: turn_seconds[size] for size in SIZES[-2:]}),
        "cpu_ms_per_turn_with_a_hook": {str(size): round(seconds * 1000, 3) for size, seconds in hooked.items()},
        "share_of_cpu_at_the_longest": _shares(),
    }


def exponent(seconds_by_size: dict[int, float]) -> float:
    """Return the exponent of the power law that fits best: 1 means proportional to the history."""
    points = [(math.log(size), math.log(seconds)) for size, seconds in seconds_by_size.items()]
    return round(statistics.linear_regression(*zip(*points, strict=True)).slope, 3)


def profile() -> pstats.Stats:
    """Profile turns after the longest history."""
    profiler = cProfile.Profile()
    asyncio.run(_turn_seconds(SIZES[-1], profiler))
    return pstats.Stats(profiler)


def _shares() -> dict[str, float]:
    stats: Any = profile()
    shares: dict[str, float] = {}
    for name, function in STAGES.items():
        code = function.__code__
        calls = stats.stats.get((code.co_filename, code.co_firstlineno, code.co_name))
        shares[name] = round(calls[3] / stats.total_tt, 3) if calls else 0.0
    return shares


async def _turn_seconds(size: int, profiler: cProfile.Profile | None = None, *, hooked: bool = False) -> float:
    """Return the CPU seconds of a turn: the median over prompts, each of which is a run with a call."""
    noting = Noting(time.monotonic)
    provider = ScriptedProvider(*_script())
    hooks = Hooks(pre_tool_use=(_allow,)) if hooked else Hooks()
    times: list[float] = []
    async with stored_session(set_up(provider, noting.tool, hooks=hooks), tuple(history(size))) as session:
        await say(session)
        gc.collect()
        gc.freeze()
        if profiler is not None:
            profiler.enable()
        for _ in range(PROMPTS - 1):
            began = time.process_time()
            await say(session)
            times.append((time.process_time() - began) / TURNS)
        if profiler is not None:
            profiler.disable()
        gc.unfreeze()
    if len(noting.seconds) != PROMPTS:
        raise RuntimeError("a call did not run")
    return statistics.median(times)


async def _allow(_: PreToolUse) -> HookAllow:
    return HookAllow()


def _script() -> Iterator[Turn]:
    for number in range(PROMPTS):
        yield Turn(ContentDelta("Let me see."), ToolUse(id=f"n{number}", name="note", input={"number": number}))
        yield Turn(ContentDelta("done"), UsageUpdate(Usage(input_tokens=10, output_tokens=5)))


def history(size: int) -> Iterator[Message]:
    """Yield prompts, calls, results and answers in turn, `size` messages in all."""
    for number in range(size // 4):
        use = ToolUse(id=f"c{number}", name="note", input={"number": number})
        result = ToolResult(tool_use_id=use.id, content=(Text(text="What came of it, in a line or two. " * 4),))
        yield Message.user(f"Question {number}, as people ask them.")
        yield Message(role=Role.ASSISTANT, blocks=(Text(text="Let me see."), use), model="measured")
        yield Message.tool_results([result])
        yield Message.assistant(f"Answer {number}, which is somewhat longer than the question was. " * 4)
