"""Coroutines started from slots."""

import asyncio

from desktop_agent.types.errors import WrongUse
from ui.bridge.event_loop import BackgroundTasks


def test_errors_reach_who_asked_for_them(in_loop, caplog):
    errors = []

    async def work():
        tasks = BackgroundTasks(errors.append)

        async def wrong():
            raise WrongUse("not like that")

        async def broken():
            raise KeyError("secret detail")

        async def fine():
            done.set()

        done = asyncio.Event()
        for error in (wrong(), broken(), fine()):
            tasks.start(error)
        await done.wait()
        await tasks.close()

    in_loop(work())
    assert [error.kind for error in errors] == ["wrong_use", "error"]
    assert "KeyError" in str(errors[1])
    assert "secret detail" not in str(errors[1])
    assert "secret detail" in caplog.text


def test_close_cancels_what_runs_and_what_that_starts(in_loop):
    errors, ended = [], []

    async def work():
        tasks = BackgroundTasks(errors.append)

        async def last():
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("last")

        async def waits():
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("first")
                tasks.start(last())
                await asyncio.sleep(0)

        tasks.start(waits())
        await asyncio.sleep(0)
        await tasks.close()
        assert not tasks._running

    in_loop(work())
    assert ended == ["first", "last"]
    assert errors == []


def test_work_that_is_closed_before_it_began_complains_about_nothing(in_loop):
    started = []

    async def work():
        tasks = BackgroundTasks(started.append)

        async def late():
            started.append("late")

        tasks.start(late())
        await tasks.close()

    in_loop(work())
    assert started == []  # and no warning of a coroutine that was never awaited


def test_nothing_begins_after_the_end(in_loop):
    started = []

    async def work():
        tasks = BackgroundTasks(started.append)

        async def late():
            started.append("late")

        await tasks.close()
        tasks.start(late())
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    in_loop(work())
    assert started == []  # and no warning of a coroutine that was never awaited


def test_a_part_tells_when_it_is_idle_and_ends_with_all(in_loop):
    idle_calls, endings = [], []

    async def work():
        tasks = BackgroundTasks(idle_calls.append)
        go_on = asyncio.Event()
        first, second = tasks.create_group(), tasks.create_group()

        async def waits():
            try:
                await asyncio.Event().wait()
            finally:
                endings.append("second")

        first.start(go_on.wait())
        second.start(waits())
        first.when_idle(lambda: idle_calls.append("idle"))
        await asyncio.sleep(0)
        assert idle_calls == []
        go_on.set()
        await asyncio.sleep(0.01)
        assert idle_calls == ["idle"]
        await tasks.close()
        assert endings == ["second"]

    in_loop(work())
