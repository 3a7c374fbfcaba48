"""The event loop: one Qt timer for all callbacks."""

import asyncio
import socket

import qasync
from PySide6.QtCore import QEventLoop, QTimer

from tests.frame.patience import PATIENCE
from ui.bridge.event_loop import EventLoop


def test_callbacks_run_in_order_and_timers_at_their_moment(in_loop):
    async def work() -> list[str]:
        loop, results, done = asyncio.get_running_loop(), [], asyncio.Event()
        loop.call_later(0.05, lambda: (results.append("late"), done.set()))
        loop.call_later(0.02, results.append, "early")
        loop.call_soon(results.append, "soon")
        loop.call_soon(results.append, "after it")
        loop.call_later(0.01, results.append, "never").cancel()
        await done.wait()
        return results

    assert in_loop(work()) == ["soon", "after it", "early", "late"]


def test_qt_has_its_turn_between_callbacks_that_never_end(in_loop):
    async def work() -> int:
        fired = []
        QTimer.singleShot(0, lambda: fired.append(1))
        turns = 0
        while not fired:
            turns += 1
            await asyncio.sleep(0)
        return turns

    assert in_loop(work()) < 1000


def test_a_loop_inside_a_callback_runs_the_others(in_loop):
    async def work() -> list[str]:
        loop, results, done = asyncio.get_running_loop(), [], asyncio.Event()

        def inner() -> None:
            nested = QEventLoop()
            loop.call_later(0.01, nested.quit)
            nested.exec()
            results.append("inner")
            done.set()

        loop.call_soon(inner)
        loop.call_soon(results.append, "beside it")
        await done.wait()
        return results

    assert in_loop(work()) == ["beside it", "inner"]


def test_a_loop_inside_a_task_keeps_the_other_tasks_for_later(in_loop):
    async def work() -> list[str]:
        loop, order = asyncio.get_running_loop(), []

        async def other(name: str, seconds: float) -> None:
            await asyncio.sleep(seconds)
            order.append(name)

        others = [asyncio.create_task(other(name, seconds)) for name, seconds in (("now", 0), ("soon", 0.005))]
        await asyncio.sleep(0)
        nested = QEventLoop()
        QTimer.singleShot(50, nested.quit)
        loop.call_soon(order.append, "asked for")
        nested.exec()
        order.append("inner")
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*others)
        return order

    assert in_loop(work()) == ["inner", "now", "asked for", "soon"]


def test_cancelled_timers_leave_nothing_behind(in_loop):
    async def work() -> int:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, EventLoop)
        loop.call_later(PATIENCE, print)
        for _ in range(10_000):
            loop.call_later(PATIENCE, print).cancel()
        return len(loop._callbacks._timers)

    assert in_loop(work()) < 200


def test_a_callback_that_fails_is_reported_and_the_others_run(in_loop):
    async def work() -> tuple[list[str], list[str]]:
        loop, results, errors = asyncio.get_running_loop(), [], []
        loop.set_exception_handler(lambda _, context: errors.append(str(context["exception"])))
        loop.call_soon(lambda: 1 / 0)
        loop.call_soon(results.append, "next")
        await asyncio.sleep(0.01)
        return results, errors

    assert in_loop(work()) == (["next"], ["division by zero"])


def test_a_reader_may_stop_itself_and_begin_again(in_loop):
    async def work() -> list[bytes]:
        loop, received, done = asyncio.get_running_loop(), [], asyncio.Event()
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)

            def read() -> None:
                received.append(ours.recv(1))
                loop.remove_reader(ours)
                if len(received) == 3:
                    done.set()
                else:
                    loop.add_reader(ours, read)

            loop.add_reader(ours, read)
            theirs.send(b"abc")
            await done.wait()
        return received

    assert in_loop(work()) == [b"a", b"b", b"c"]


def test_a_reader_is_called_as_long_as_there_is_something_to_read(in_loop):
    async def work() -> tuple[list[bytes], list[str], bool, bool]:
        loop, received, errors, done = asyncio.get_running_loop(), [], [], asyncio.Event()
        loop.set_exception_handler(lambda _, context: errors.append(str(context["exception"])))
        ours, theirs = socket.socketpair()
        with ours, theirs:

            def read() -> None:
                received.append(ours.recv(1))
                if len(received) == 1:
                    raise ValueError("the first one")
                if len(received) == 3:
                    done.set()

            loop.add_reader(ours, read)
            theirs.send(b"abc")
            await done.wait()
            return received, errors, loop.remove_reader(ours), loop.remove_reader(ours)

    assert in_loop(work()) == ([b"a", b"b", b"c"], ["the first one"], True, False)


def test_a_task_makes_its_steps_also_when_the_loop_has_just_stopped(qapp):
    loop, loops = EventLoop(qapp), []

    async def outlast() -> None:
        for _ in range(2):
            await asyncio.sleep(0)
            loops.append(asyncio.get_running_loop())

    async def work() -> None:
        loop.create_task(outlast())

    loop.run_until_complete(work())
    loop.run_until_complete(asyncio.sleep(0.01))
    loop.close()
    assert loops == [loop, loop]


def test_qasync_still_calls_back_when_its_loop_no_longer_runs(qapp):
    loop, running = qasync.QEventLoop(qapp), []

    def call_again() -> None:
        running.append(asyncio._get_running_loop())
        if running[-1]:
            loop.call_soon(call_again)

    async def work() -> None:
        loop.call_soon(call_again)

    loop.run_until_complete(work())
    loop.close()
    assert running[0] is loop
    assert running[-1] is None, "qasync is mended: take count_as_running out of ui/bridge/event_loop.py, and this test"
