"""What a session costs for each event of the model, compared with a bare loop over the same events."""

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
from tests.bench.engine.sessions import MODEL, in_memory_session, set_up, stored_session
from tests.fakes.scripted_provider import ScriptedProvider, Turn

EVENTS = 50_000
THOUGHTS = 10_000
ROUNDS = 5


def measured() -> dict[str, Any]:
    """Return events per second of this process's CPU time with all threads: medians, and ratios of the same rounds."""
    variants: dict[str, Callable[[], Awaitable[None]]] = {
        "bare_loop": _bare,
        "answer_builder": _build,
        "session_unkept": lambda: _session(in_memory_session),
        "session_kept": lambda: _session(stored_session),
    }
    for variant in variants.values():
        _seconds(variant)
    rounds = [{name: _seconds(variant) for name, variant in variants.items()} for _ in range(ROUNDS)]

    def over(name: str, floor: str) -> float:
        return round(statistics.median(seconds[name] / seconds[floor] for seconds in rounds), 2)

    return {
        "events": EVENTS,
        "per_cpu_second": {
            name: round(EVENTS / statistics.median(seconds[name] for seconds in rounds)) for name in variants
        },
        "unkept_over_bare_loop": over("session_unkept", "bare_loop"),
        "unkept_over_answer_builder": over("session_unkept", "answer_builder"),
        "kept_over_bare_loop": over("session_kept", "bare_loop"),
        "kept_over_answer_builder": over("session_kept", "answer_builder"),
    }


def _script() -> ScriptedProvider:
    events: list[ProviderEvent] = [ThinkingDelta(f"thought {n} ") for n in range(THOUGHTS)]
    events += [ContentDelta(f"word {n} ") for n in range(EVENTS - THOUGHTS)]
    return ScriptedProvider(Turn(*events))


def _seconds(variant: Callable[[], Awaitable[None]]) -> float:
    gc.collect()
    began = time.process_time()
    asyncio.run(_await(variant))
    return time.process_time() - began


async def _await(variant: Callable[[], Awaitable[None]]) -> None:
    await variant()


def _events() -> Any:
    return _script().stream(ModelRequest(MODEL, (Message.user("go"),)))


async def _bare() -> None:
    async for _ in _events():
        pass


async def _build() -> None:
    answer = AnswerBuilder("answer", MODEL)
    async for event in _events():
        answer.feed(event, now())
    if not answer.message(MessageState.COMPLETE, now()).text:
        raise RuntimeError("nothing was said")


async def _session(open_session: Callable[[SessionSetup], AbstractAsyncContextManager[Session]]) -> None:
    async with open_session(set_up(_script())) as session:
        session.send(Message.user("go"))
        await session.wait_idle()
        if not session.history[-1].text:
            raise RuntimeError("nothing was said")
