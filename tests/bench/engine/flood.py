"""What a session costs for each event of the model, beside a bare loop over the same events."""

import asyncio
import gc
import statistics
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from desktop_agent.conversation.answer_builder import AnswerBuilder
from desktop_agent.engine.session import Session
from desktop_agent.engine.session_controls import SessionSetup
from desktop_agent.types.messages import Message, MessageState, now
from desktop_agent.types.provider_events import ContentDelta, ProviderEvent, ThinkingDelta
from desktop_agent.types.providers import ModelRequest
from tests.bench.engine.sessions import MODEL, kept, set_up, unkept
from tests.fakes.scripted_provider import ScriptedProvider, Turn

EVENTS = 50_000
THOUGHTS = 10_000
ROUNDS = 5


def measured() -> dict[str, Any]:
    """Events per second of CPU time of this process, all threads together; medians, and ratios of the same rounds."""
    ways: dict[str, Callable[[], Awaitable[None]]] = {
        "bare_loop": _bare,
        "answer_builder": _built,
        "session_unkept": lambda: _session(unkept),
        "session_kept": lambda: _session(kept),
    }
    for way in ways.values():
        _seconds(way)
    rounds = [{name: _seconds(way) for name, way in ways.items()} for _ in range(ROUNDS)]

    def over(name: str, floor: str) -> float:
        return round(statistics.median(each[name] / each[floor] for each in rounds), 2)

    return {
        "events": EVENTS,
        "per_cpu_second": {name: round(EVENTS / statistics.median(each[name] for each in rounds)) for name in ways},
        "unkept_over_bare_loop": over("session_unkept", "bare_loop"),
        "unkept_over_answer_builder": over("session_unkept", "answer_builder"),
        "kept_over_bare_loop": over("session_kept", "bare_loop"),
        "kept_over_answer_builder": over("session_kept", "answer_builder"),
    }


def _script() -> ScriptedProvider:
    events: list[ProviderEvent] = [ThinkingDelta(f"thought {n} ") for n in range(THOUGHTS)]
    events += [ContentDelta(f"word {n} ") for n in range(EVENTS - THOUGHTS)]
    return ScriptedProvider(Turn(*events))


def _seconds(way: Callable[[], Awaitable[None]]) -> float:
    gc.collect()
    began = time.process_time()
    asyncio.run(_awaited(way))
    return time.process_time() - began


async def _awaited(way: Callable[[], Awaitable[None]]) -> None:
    await way()


def _asked() -> Any:
    return _script().stream(ModelRequest(MODEL, (Message.user("go"),)))


async def _bare() -> None:
    async for _ in _asked():
        pass


async def _built() -> None:
    answer = AnswerBuilder("answer", MODEL)
    async for event in _asked():
        answer.feed(event, now())
    if not answer.message(MessageState.COMPLETE, now()).text:
        raise RuntimeError("nothing was said")


async def _session(made: Callable[[SessionSetup], AbstractAsyncContextManager[Session]]) -> None:
    async with made(set_up(_script())) as session:
        session.send(Message.user("go"))
        await session.wait_idle()
        if not session.history[-1].text:
            raise RuntimeError("nothing was said")
