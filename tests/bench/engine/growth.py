"""What a turn costs by the length of the history before it, and which stage it goes to."""

import asyncio
import cProfile
import gc
import math
import pstats
import statistics
import time
from collections.abc import Iterator
from typing import Any

from desktop_agent.types.blocks import Text, ToolResult, ToolUse
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.policies import HookAllow, Hooks, PreToolUse
from desktop_agent.types.provider_events import ContentDelta, Usage, UsageUpdate
from tests.bench.engine.sessions import Noting, kept, say, set_up
from tests.fakes.scripted_provider import ScriptedProvider, Turn

SIZES = (100, 300, 1_000, 3_000, 10_000)
PROMPTS = 12
TURNS = 2
"""For each prompt: a call, and the answer to its result."""

# Functions that stand for a stage; what they call counts for them, and a stage inside another one counts there too.
STAGES = {
    "the request": ("request.py", "build_request"),
    "the request: repair": ("repair.py", "repaired"),
    "the request: summaries": ("compacted.py", "as_sent"),
    "the request: pictures": ("pictures.py", "with_pictures"),
    "the request: answers given up": ("request.py", "without_given_up"),
    "edges": ("edge.py", "cross"),
    "additions to the instructions": ("edge.py", "addenda"),
    "copies of the history": ("writer.py", "history"),
    "guards": ("guards.py", "consult"),
    "calls": ("round.py", "run"),
    "calls: gates": ("gates.py", "enter"),
    "calls: doom loop": ("doom_loop.py", "__init__"),
    "events": ("writer.py", "take"),
    "commits": ("writer.py", "commit"),
    "state of the conversation": ("conduct.py", "keep"),
    "end of the prompt": ("conduct.py", "settle"),
    "title, prompt, start": ("session.py", "_start"),
}


def measured() -> dict[str, Any]:
    """CPU milliseconds of this process for one turn, the exponent of their growth, and shares at the longest."""
    asyncio.run(_turn_seconds(SIZES[0]))
    taken = {size: statistics.median(asyncio.run(_turn_seconds(size)) for _ in range(3)) for size in SIZES}
    hooked = {size: asyncio.run(_turn_seconds(size, hooked=True)) for size in (SIZES[0], SIZES[-1])}
    return {
        "cpu_ms_per_turn": {str(size): round(seconds * 1000, 3) for size, seconds in taken.items()},
        "exponent": exponent(taken),
        "exponent_of_the_longest": exponent({size: taken[size] for size in SIZES[-2:]}),
        "cpu_ms_per_turn_with_a_hook": {str(size): round(seconds * 1000, 3) for size, seconds in hooked.items()},
        "share_of_cpu_at_the_longest": _shares(),
    }


def exponent(taken: dict[int, float]) -> float:
    """Of the power law that fits best: 1 is proportional to the history."""
    points = [(math.log(size), math.log(seconds)) for size, seconds in taken.items()]
    return round(statistics.linear_regression(*zip(*points, strict=True)).slope, 3)


def profile() -> pstats.Stats:
    """Of turns behind the longest history."""
    profiler = cProfile.Profile()
    asyncio.run(_turn_seconds(SIZES[-1], profiler))
    return pstats.Stats(profiler)


def _shares() -> dict[str, float]:
    stats: Any = profile()
    stages = {place: name for name, place in STAGES.items()}
    shares: dict[str, float] = {}
    for (path, _, function), (_, _, _, cumulative, _) in stats.stats.items():
        stage = stages.get((path.replace("\\", "/").rpartition("/")[2], function))
        if stage is not None and "desktop_agent" in path:
            shares[stage] = round(shares.get(stage, 0.0) + cumulative / stats.total_tt, 3)
    return {name: shares.get(name, 0.0) for name in STAGES}


async def _turn_seconds(size: int, profiler: cProfile.Profile | None = None, *, hooked: bool = False) -> float:
    """The median over prompts: each is a run of its own with a call in it."""
    noting = Noting(time.monotonic)
    provider = ScriptedProvider(*_script())
    hooks = Hooks(pre_tool_use=(_allows,)) if hooked else Hooks()
    taken: list[float] = []
    async with kept(set_up(provider, noting.tool, hooks=hooks), tuple(history(size))) as session:
        await say(session)
        gc.collect()
        gc.freeze()
        if profiler is not None:
            profiler.enable()
        for _ in range(PROMPTS - 1):
            began = time.process_time()
            await say(session)
            taken.append((time.process_time() - began) / TURNS)
        if profiler is not None:
            profiler.disable()
        gc.unfreeze()
    if len(noting.seconds) != PROMPTS:
        raise RuntimeError("a call did not run")
    return statistics.median(taken)


async def _allows(_: PreToolUse) -> HookAllow:
    return HookAllow()


def _script() -> Iterator[Turn]:
    for number in range(PROMPTS):
        yield Turn(ContentDelta("Let me see."), ToolUse(id=f"n{number}", name="note", input={"number": number}))
        yield Turn(ContentDelta("done"), UsageUpdate(Usage(input_tokens=10, output_tokens=5)))


def history(size: int) -> Iterator[Message]:
    """Prompts, calls, results and answers in turn, so many messages in all."""
    for number in range(size // 4):
        use = ToolUse(id=f"c{number}", name="note", input={"number": number})
        result = ToolResult(tool_use_id=use.id, content=(Text(text="What came of it, in a line or two. " * 4),))
        yield Message.user(f"Question {number}, as people ask them.")
        yield Message(role=Role.ASSISTANT, blocks=(Text(text="Let me see."), use), model="measured")
        yield Message.tool_results([result])
        yield Message.assistant(f"Answer {number}, which is somewhat longer than the question was. " * 4)
