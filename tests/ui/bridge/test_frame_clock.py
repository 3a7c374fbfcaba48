"""At most one tick a frame, and none when idle."""

import pytest

from ui.bridge import event_loop
from ui.bridge.event_loop import FRAME_SECONDS, FrameClock


@pytest.fixture
def clock(qtbot):
    clock = FrameClock()
    yield clock
    clock.stop()
    clock.deleteLater()


def test_many_requests_are_one_tick(qtbot, clock):
    ticks = []
    clock.tick.connect(lambda: ticks.append(1))
    with qtbot.waitSignal(clock.tick):
        for _ in range(50):
            clock.request()
    qtbot.wait(50)
    assert ticks == [1]


def test_idle_it_does_nothing(qtbot, clock):
    with qtbot.assertNotEmitted(clock.tick, wait=60):
        pass
    assert not clock._timer.isActive()


def test_the_next_tick_waits_for_the_next_frame(qtbot, clock, monkeypatch):
    moment = 100.0
    monkeypatch.setattr(event_loop, "monotonic", lambda: moment)
    with qtbot.waitSignal(clock.tick):
        clock.request()
    moment += 0.010
    clock.request()
    seconds_left = clock._timer.interval() / 1000
    assert moment + seconds_left >= 100.0 + FRAME_SECONDS
    assert seconds_left <= FRAME_SECONDS
    clock.stop()
    moment += 1
    clock.request()
    assert clock._timer.interval() == 0


def test_a_tick_asked_for_in_a_tick_comes(qtbot, clock):
    ticks = []

    def again():
        ticks.append(1)
        if len(ticks) < 3:
            clock.request()

    clock.tick.connect(again)
    clock.request()
    qtbot.waitUntil(lambda: len(ticks) == 3)


def test_stop_forgets_a_tick(qtbot, clock):
    clock.request()
    clock.stop()
    with qtbot.assertNotEmitted(clock.tick, wait=60):
        pass
