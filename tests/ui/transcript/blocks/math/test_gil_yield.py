"""A worker that computes gives the interpreter up now and then."""

import sys
import threading

import pytest

from ui.transcript.blocks.math import gil_yield as breath_module
from ui.transcript.blocks.math.gil_yield import _LONG, _SHORT, GilYielder
from ui.transcript.blocks.math.typesetting import load, typeset


class Clock:
    """Stands in for the module time: what passes is what a test says."""

    def __init__(self):
        self.now = self.worked = 0.0
        self.pauses = []

    def perf_counter(self):
        return self.now

    def pthread_getcpuclockid(self, thread):
        return thread

    def clock_gettime(self, clock):
        assert clock == threading.main_thread().ident
        return self.worked

    def acquire(self, timeout):
        self.pauses.append(timeout)
        self.now += timeout


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(breath_module, "time", made)
    make = GilYielder.__init__

    def with_clock(breath):
        make(breath)
        breath._never_released = made

    monkeypatch.setattr(GilYielder, "__init__", with_clock)
    return made


def in_worker(callback):
    """What it gives in a thread."""
    given = []
    thread = threading.Thread(target=lambda: given.append(callback()))
    thread.start()
    thread.join()
    return given[0]


def breathing(clock, breath, calls, worked):
    """A call every hundred microseconds; of them the window works this part."""

    def run():
        for _ in range(calls):
            clock.now += 0.0001
            clock.worked += 0.0001 * worked
            breath()
        return clock.pauses

    return in_worker(run)


def test_it_pauses_after_each_half_millisecond(clock):
    pauses = breathing(clock, GilYielder(), 51, 0.0)
    assert pauses == [_SHORT] * len(pauses)
    assert 8 <= len(pauses) <= 11


def test_it_pauses_longer_while_the_window_works(clock):
    breath = GilYielder()
    pauses = breathing(clock, breath, 30, 1.0)
    assert set(pauses) == {_LONG}
    clock.pauses = []
    assert breathing(clock, breath, 30, 0.0)[-1] == _SHORT


def test_it_pauses_where_nobody_can_tell_what_the_window_does(clock, monkeypatch):
    monkeypatch.delattr(Clock, "pthread_getcpuclockid")
    assert set(breathing(clock, GilYielder(), 30, 1.0)) == {breath_module._UNKNOWN}


def test_the_main_thread_never_pauses(clock):
    breath = GilYielder()
    for _ in range(100):
        clock.now += 0.001
        breath()
    assert clock.pauses == []


def test_it_is_called_by_code_that_knows_nothing_of_it(clock):
    breath = GilYielder()

    def job():
        before = sys.gettrace()
        with breath.during_calls():
            for _ in range(200):
                clock.now += 0.0001
                chr_of(65)
        assert sys.gettrace() is before
        return clock.pauses

    def chr_of(code):
        return chr(code)

    assert len(in_worker(job)) >= 5


def test_it_is_called_before_every_import(clock):
    breath, before = GilYielder(), list(sys.meta_path)

    def job():
        with breath.during_imports():
            sys.modules.pop("this", None)
            clock.now += 1
            for finder in sys.meta_path[:1]:
                assert finder.find_spec("anything", None) is None
        return clock.pauses

    assert len(in_worker(job)) == 1
    assert sys.meta_path == before


@pytest.mark.parametrize(
    "latex",
    [r"\frac{a+b}{c-d}", "+".join("abcdefgh" * 12), r"\begin{pmatrix} a & b \\ c & d \end{pmatrix}", "x" * 300],
)
def test_while_a_formula_is_typeset_a_pause_is_never_far(qapp, monkeypatch, latex):
    load()
    typeset(latex, display=True)
    asked, calls = [], 0

    def count(frame, event, argument):
        nonlocal calls
        calls += 1

    monkeypatch.setattr(breath_module.GilYielder, "__call__", lambda _: asked.append(calls))

    def job():
        sys.settrace(count)
        typeset(latex, display=True)
        sys.settrace(None)

    in_worker(job)
    gaps = [after - before for before, after in zip([0, *asked], [*asked, calls], strict=True)]
    # A thousand calls of functions take about half a millisecond.
    assert max(gaps) < 4000
    assert len(asked) > 10


def test_a_pause_ends(monkeypatch):
    breath, asked = GilYielder(), []
    monkeypatch.setattr(GilYielder, "_pause", lambda _: asked.append(1) or 0.0001)

    def job():
        while len(asked) < 3:
            breath()
        return asked

    assert in_worker(job) == [1, 1, 1]
