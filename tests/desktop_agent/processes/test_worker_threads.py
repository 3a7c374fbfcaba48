import asyncio
import contextvars
import threading

import pytest

from desktop_agent.processes.worker_threads import (
    CancelToken,
    Stopped,
    WorkerThread,
    is_large,
    run_by_size,
    run_in_own_thread,
    run_in_thread,
)
from desktop_agent.types.blocks import Json, ToolResult
from desktop_agent.types.messages import Message


async def test_results_and_errors_come_back() -> None:
    assert await run_in_thread(lambda _sign: 42) == 42
    with pytest.raises(LookupError):
        await run_in_thread(lambda _sign: {}["nothing"])


async def test_a_cancel_is_passed_on_only_when_the_thread_has_ended() -> None:
    started, ended = threading.Event(), threading.Event()

    def work(sign: CancelToken) -> None:
        started.set()
        while True:
            try:
                sign.raise_if_cancelled()
            except Stopped:
                ended.set()
                raise

    task = asyncio.ensure_future(run_in_thread(work))
    await asyncio.to_thread(started.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


async def test_a_cancel_during_the_last_steps_is_still_a_cancel() -> None:
    started, go_on = threading.Event(), threading.Event()

    def work(_sign: CancelToken) -> str:
        started.set()
        go_on.wait(10)
        return "done"

    task = asyncio.ensure_future(run_in_thread(work))
    await asyncio.to_thread(started.wait, 10)
    task.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task


WORD: contextvars.ContextVar[str] = contextvars.ContextVar("WORD")


async def test_foreign_work_has_a_thread_of_its_own_and_the_callers_context() -> None:
    WORD.set("here")
    thread, word = await run_in_own_thread(lambda _sign: (threading.current_thread(), WORD.get()))
    assert thread is not threading.main_thread()
    assert thread.daemon
    assert word == "here"
    with pytest.raises(LookupError):
        await run_in_own_thread(lambda _sign: {}["nothing"])


async def test_foreign_work_may_raise_what_a_future_refuses() -> None:
    def work(_sign: CancelToken) -> None:
        raise StopIteration("odd")

    with pytest.raises(RuntimeError, match="StopIteration"):
        await run_in_own_thread(work)


async def test_foreign_work_that_does_not_end_is_left_alone_and_not_heard_any_more() -> None:
    started, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def work(_sign: CancelToken) -> str:
        started.set()
        go_on.wait(60)
        ended.set()
        return "too late"

    task = asyncio.ensure_future(run_in_own_thread(work, grace=0.01))
    await asyncio.to_thread(started.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not ended.is_set()
    go_on.set()
    await asyncio.to_thread(ended.wait, 10)


async def test_foreign_work_that_looks_at_the_sign_has_ended_when_the_cancel_is_passed_on() -> None:
    started, ended = threading.Event(), threading.Event()

    def work(sign: CancelToken) -> None:
        started.set()
        try:
            while True:
                sign.raise_if_cancelled()
        finally:
            ended.set()

    task = asyncio.ensure_future(run_in_own_thread(work, grace=60.0))
    await asyncio.to_thread(started.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


def test_work_that_outlives_its_loop_does_no_harm() -> None:
    started, go_on = threading.Event(), threading.Event()

    def work(_sign: CancelToken) -> None:
        started.set()
        go_on.wait(60)

    async def main() -> None:
        task = asyncio.ensure_future(run_in_own_thread(work, grace=0.01))
        await asyncio.to_thread(started.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    (left,) = [thread for thread in threading.enumerate() if thread.name == "tool"]
    go_on.set()
    left.join(10)
    assert not left.is_alive()


@pytest.mark.parametrize(
    ("value", "large"),
    [
        (list(range(900)), False),
        (list(range(2_000)), True),
        ({"a": [{"b": [0] * 20} for _ in range(100)]}, True),
        ("x" * 10_000, False),
        ("x" * 1_000_000, True),
        (Message.user("hello"), False),
        (Message.tool_results([ToolResult(tool_use_id="1", content=(Json(value=[0] * 2_000),))]), True),
    ],
)
async def test_work_on_what_is_large_is_done_in_a_thread(value: object, large: bool) -> None:
    assert is_large(value) is large
    thread = await run_by_size(threading.get_ident, value)
    assert (thread != threading.get_ident()) is large


async def test_what_such_work_raises_is_raised_here() -> None:
    def burst() -> None:
        raise StopIteration("early")

    with pytest.raises((StopIteration, RuntimeError), match=r"early|StopIteration"):
        await run_by_size(burst, [0] * 2_000)


async def test_a_job_that_fails_when_nobody_waits_any_more_is_no_error_of_the_loop() -> None:
    """The loop reports what nobody retrieves: the fixture that looks for leaks fails then."""
    worker, started, goes_on = WorkerThread("test"), threading.Event(), threading.Event()

    def work() -> None:
        started.set()
        goes_on.wait()
        raise LookupError

    waiting = asyncio.create_task(worker.run(work))
    await asyncio.to_thread(started.wait)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    goes_on.set()
    await worker.run(lambda: None)
    worker.stop()
