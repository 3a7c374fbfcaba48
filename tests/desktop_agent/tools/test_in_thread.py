import asyncio
import threading

import pytest

from desktop_agent.tools.in_thread import Stopped, StopSign, in_thread


async def test_results_and_errors_come_back() -> None:
    assert await in_thread(lambda _sign: 42) == 42
    with pytest.raises(LookupError):
        await in_thread(lambda _sign: {}["nothing"])


async def test_a_cancel_is_passed_on_only_when_the_thread_has_ended() -> None:
    started, ended = threading.Event(), threading.Event()

    def work(sign: StopSign) -> None:
        started.set()
        while True:
            try:
                sign.check()
            except Stopped:
                ended.set()
                raise

    task = asyncio.ensure_future(in_thread(work))
    await asyncio.to_thread(started.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


async def test_a_cancel_during_the_last_steps_is_still_a_cancel() -> None:
    started, go_on = threading.Event(), threading.Event()

    def work(_sign: StopSign) -> str:
        started.set()
        go_on.wait(10)
        return "done"

    task = asyncio.ensure_future(in_thread(work))
    await asyncio.to_thread(started.wait, 10)
    task.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
