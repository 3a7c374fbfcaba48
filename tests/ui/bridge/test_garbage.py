"""Cycles of old objects are given up in idle moments, and nothing wakes up for it afterwards."""

import gc
import weakref

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QKeyEvent, QWindow

from ui.bridge import event_loop as module
from ui.bridge.event_loop import MAX_UNCOLLECTED, MIDDLE, OLD, YOUNG, FrameClock, IdleGarbageCollector, collect


class Ring:
    def __init__(self):
        self.other = self


@pytest.fixture(autouse=True)
def as_it_was():
    frozen = gc.get_freeze_count()
    gc.collect()
    yield
    if not frozen:
        gc.unfreeze()


class Desk:
    def __init__(self, clock):
        self.clock, self.works = clock, False
        self.garbage = IdleGarbageCollector(clock.tick, lambda: self.works, clock)

    def rest(self):
        """Act as if nobody had done anything for a while after many objects were made."""
        self.garbage._last_activity -= 100
        self.garbage._timer.stop()
        self.garbage._on_idle()


@pytest.fixture
def desk(qtbot, monkeypatch):
    monkeypatch.setattr(module, "_MIN_MIDDLE_COLLECTIONS", 0)
    clock = FrameClock()
    desk = Desk(clock)
    yield desk
    desk.garbage.close()
    clock.stop()
    clock.deleteLater()


def old_ring():
    """Return a weak reference to garbage that only a collection of all generations finds."""
    ring = Ring()
    reference = weakref.ref(ring)
    gc.collect()
    return reference


def test_an_old_cycle_is_given_up_at_rest(desk):
    reference = old_ring()
    assert reference()
    gc.collect(1)
    assert reference()
    desk.clock.tick.emit()
    assert desk.garbage._timer.isActive()
    assert reference()
    desk.rest()
    assert reference() is None
    assert not desk.garbage._timer.isActive()


def test_a_run_is_not_disturbed_and_its_end_is_news(desk):
    reference = old_ring()
    desk.works = True
    desk.clock.tick.emit()
    desk.rest()
    assert reference()
    assert not desk.garbage._timer.isActive()
    desk.works = False
    desk.clock.tick.emit()
    desk.rest()
    assert reference() is None


def test_input_puts_it_off(desk, qapp):
    window = QWindow()
    desk.garbage.watch(window)
    qapp.sendEvent(window, QEvent(QEvent.Type.UpdateRequest))
    assert not desk.garbage._timer.isActive()
    key = QKeyEvent(QEvent.Type.KeyPress, Qt.Key.Key_A, Qt.KeyboardModifier.NoModifier, "a")
    qapp.sendEvent(window, key)
    assert desk.garbage._timer.isActive()
    reference = old_ring()
    desk.garbage._timer.stop()
    desk.garbage._on_idle()
    assert reference()
    assert desk.garbage._timer.isActive()
    assert 0 < desk.garbage._timer.interval() <= module._IDLE_MS


def test_with_nothing_new_nothing_is_looked_at(desk, monkeypatch):
    looks = []
    monkeypatch.setattr(module, "collect", looks.append)
    monkeypatch.setattr(module, "_MIN_MIDDLE_COLLECTIONS", 1000)
    desk.clock.tick.emit()
    desk.rest()
    assert not looks


def test_what_is_left_is_not_looked_at_again(monkeypatch):
    ring = Ring()
    collect(0)
    assert not any(item is ring for item in gc.get_objects())
    assert gc.get_freeze_count() > 0


def test_frozen_garbage_is_found_when_there_is_twice_as_much(monkeypatch):
    monkeypatch.setattr(module, "_MIN_FROZEN", 1)
    ring = Ring()
    reference = weakref.ref(ring)
    frozen = collect(1)
    assert frozen > 1
    del ring
    assert collect(frozen) == frozen
    assert reference()
    filler = [[] for _ in range(frozen + 1000)]
    collect(frozen)
    frozen_now = collect(frozen)
    assert reference() is None
    assert len(filler) < frozen_now


def test_python_itself_is_the_last_resort(desk):
    assert gc.get_threshold() == (YOUNG, MIDDLE, OLD)
    assert MAX_UNCOLLECTED <= 1_000_000
    desk.garbage.close()
    assert gc.get_threshold() != (YOUNG, MIDDLE, OLD)
