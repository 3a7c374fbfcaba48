"""The handle that stops from anywhere."""

import asyncio
import threading

from desktop_agent.faces.backing.stopping import InterruptHandle, Stopping


async def test_it_acts_on_the_loop_whoever_calls() -> None:
    threads: list[threading.Thread] = []
    stopping = Stopping(lambda: threads.append(threading.current_thread()))
    stopping.ask()
    await asyncio.sleep(0)
    assert threads == []
    stopping.bind(asyncio.get_running_loop())
    await asyncio.to_thread(InterruptHandle(stopping))
    stopping.ask()
    assert len(threads) == 1
    await asyncio.sleep(0)
    assert threads == [threading.current_thread()] * 2


async def test_what_was_asked_for_is_done_once() -> None:
    pressed: list[bool] = []
    stopping = Stopping(lambda: pressed.append(True))
    stopping.bind(asyncio.get_running_loop())
    stopping.settle()
    assert pressed == []
    stopping.ask()
    stopping.settle()
    assert pressed == [True]
    await asyncio.sleep(0)
    assert pressed == [True]


def test_a_closed_loop_is_no_error() -> None:
    pressed: list[bool] = []
    loop = asyncio.new_event_loop()
    stopping = Stopping(lambda: pressed.append(True))
    stopping.bind(loop)
    loop.close()
    stopping.ask()
    assert pressed == []
