"""The handle that stops from anywhere."""

import asyncio
import threading

from desktop_agent.faces.backing.stopping import InterruptHandle


async def test_it_acts_on_the_loop_whoever_calls() -> None:
    threads: list[threading.Thread] = []
    handle = InterruptHandle(lambda: threads.append(threading.current_thread()))
    handle.interrupt()
    await asyncio.sleep(0)
    assert threads == []
    handle.bind(asyncio.get_running_loop())
    await asyncio.to_thread(handle)
    handle.interrupt()
    assert len(threads) == 1
    await asyncio.sleep(0)
    assert threads == [threading.current_thread()] * 2


async def test_what_was_asked_for_is_done_once() -> None:
    pressed: list[bool] = []
    handle = InterruptHandle(lambda: pressed.append(True))
    handle.bind(asyncio.get_running_loop())
    handle.settle()
    assert pressed == []
    handle.interrupt()
    handle.settle()
    assert pressed == [True]
    await asyncio.sleep(0)
    assert pressed == [True]


def test_a_closed_loop_is_no_error() -> None:
    pressed: list[bool] = []
    loop = asyncio.new_event_loop()
    handle = InterruptHandle(lambda: pressed.append(True))
    handle.bind(loop)
    loop.close()
    handle.interrupt()
    assert pressed == []
