"""The handle that stops from anywhere."""

import asyncio
import threading

from desktop_agent.api.conversation import InterruptHandle, StopRequest


async def test_it_acts_on_the_loop_whoever_calls() -> None:
    threads: list[threading.Thread] = []
    stopping = StopRequest(lambda: threads.append(threading.current_thread()))
    stopping.request()
    await asyncio.sleep(0)
    assert threads == []
    stopping.bind(asyncio.get_running_loop())
    await asyncio.to_thread(InterruptHandle(stopping))
    await asyncio.sleep(0)  # from Python 3.14 on a thread that is done already is not waited for
    stopping.request()
    assert len(threads) == 1
    await asyncio.sleep(0)
    assert threads == [threading.current_thread()] * 2


async def test_what_was_asked_for_is_done_once() -> None:
    pressed: list[bool] = []
    stopping = StopRequest(lambda: pressed.append(True))
    stopping.bind(asyncio.get_running_loop())
    stopping.run_pending()
    assert pressed == []
    stopping.request()
    stopping.run_pending()
    assert pressed == [True]
    await asyncio.sleep(0)
    assert pressed == [True]


def test_a_closed_loop_is_no_error() -> None:
    pressed: list[bool] = []
    loop = asyncio.new_event_loop()
    stopping = StopRequest(lambda: pressed.append(True))
    stopping.bind(loop)
    loop.close()
    stopping.request()
    assert pressed == []
