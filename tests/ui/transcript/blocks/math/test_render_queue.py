"""Which formulas are drawn, and in which order."""

import threading

import pytest

from ui.transcript.blocks.math import formulas as orders_module
from ui.transcript.blocks.math.formulas import RenderQueue
from ui.transcript.workers import JobQueue


class Stand:
    """Jobs are named; `done` says which were done, `kept` which results came."""

    def __init__(self, job_queue, bot):
        self.job_queue, self.bot = job_queue, bot
        self.done, self.kept, self.told = [], [], []
        self.gate = threading.Event()
        self.gate.set()
        self.tickets = RenderQueue(job_queue, lambda name, result: self.kept.append((name, result)))

    def add(self, name, notify=None):
        """Ask for a job; who hears of it says `name`."""

        def job():
            self.done.append(name)
            self.gate.wait(20)
            return name.upper()

        return self.tickets.add(name, job, lambda: self.told.append(name) or notify)

    def wait(self):
        """Until nothing waits any more."""
        self.bot.waitUntil(lambda: not self.tickets._queued and not self.tickets._ready_listeners)


@pytest.fixture
def stand(qapp, qtbot):
    job_queue = JobQueue()
    made = Stand(job_queue, qtbot)
    yield made
    made.gate.set()
    job_queue.close()


def test_what_is_on_the_screen_comes_before_what_is_beside_it(stand):
    for name in "abcdef":
        order = stand.add(name)
        if name in "df":
            order.mark_visible()
    stand.wait()
    assert stand.done == ["d", "f", "a", "b", "c", "e"]
    assert stand.kept == [(name, name.upper()) for name in stand.done]
    assert sorted(stand.told) == list("abcdef")


def test_what_was_seen_last_comes_first(stand, monkeypatch):
    monkeypatch.setattr(orders_module, "_MAX_RUNNING", 0)
    for names in ("abc", "xyz"):
        beats = stand.tickets._ticks
        for name in names:
            stand.add(name).mark_visible()
        stand.bot.waitUntil(lambda beats=beats: stand.tickets._ticks > beats + orders_module._VISIBLE_TICKS)
    monkeypatch.setattr(orders_module, "_MAX_RUNNING", 2)
    stand.wait()
    assert stand.done == list("xyzabc")


def test_what_only_flew_by_is_never_done(stand):
    for name in "abc":
        order = stand.add(name)
        order.mark_visible()
        order.cancel()
    stand.add("d").mark_visible()
    stand.wait()
    assert stand.done == ["d"]


def test_nothing_is_done_at_once(stand):
    stand.add("a").mark_visible()
    stand.tickets._on_tick()
    assert not stand.job_queue.is_busy
    stand.wait()
    assert stand.done == ["a"]


def test_what_is_in_the_hands_of_the_worker_is_taken_out_of_them(stand):
    stand.gate.clear()
    asked = [stand.add(name) for name in "abc"]
    for order in asked:
        order.mark_visible()
    stand.bot.waitUntil(lambda: stand.done == ["a"])
    stand.bot.waitUntil(lambda: len(stand.job_queue._jobs) == 1)
    asked[1].cancel()
    assert not stand.job_queue._jobs
    stand.gate.set()
    stand.wait()
    assert stand.done == ["a", "c"]


def test_what_is_dropped_while_it_is_done_is_kept_and_not_told(stand):
    stand.gate.clear()
    order = stand.add("a")
    order.mark_visible()
    stand.bot.waitUntil(lambda: stand.done == ["a"])
    order.cancel()
    stand.gate.set()
    stand.wait()
    assert stand.kept == [("a", "A")]
    assert stand.told == []


def test_one_job_for_all_who_wait_for_the_same(stand):
    first, _ = stand.add("a"), stand.add("a")
    first.mark_visible()
    first.cancel()
    stand.wait()
    assert stand.done == ["a"]
    assert stand.told == ["a"]


def test_who_waits_for_many_is_told_once(stand, monkeypatch):
    monkeypatch.setattr(orders_module, "_MAX_BATCH", 1000)
    calls = []
    notify = lambda: calls.append(1)  # noqa: E731  the same one for all
    for name in "abcdef":
        stand.add(name, notify).mark_visible()
    stand.wait()
    assert sorted(stand.told) == list("abcdef")
    assert calls == [1]


def test_too_many_are_not_kept_waiting_unless_they_are_seen(stand, monkeypatch):
    monkeypatch.setattr(orders_module, "_MAX_QUEUED", 2)
    orders = [stand.add(name) for name in "abc"]
    assert list(stand.tickets._queued) == ["b", "c"]
    orders[0].mark_visible()
    stand.wait()
    assert sorted(stand.done) == list("abc")
    assert "a" in stand.told


def test_what_the_worker_gave_up_is_asked_of_it_again(stand):
    stand.gate.clear()
    for name in "ab":
        stand.add(name).mark_visible()
    stand.bot.waitUntil(lambda: len(stand.job_queue._jobs) == 1)
    key = next(iter(stand.job_queue._jobs))
    assert stand.job_queue.cancel(key)
    stand.gate.set()
    stand.add("c").mark_visible()
    stand.wait()
    assert sorted(stand.done) == list("abc")


def test_nobody_waits_after_other_rows_are_shown(stand):
    for name in "abc":
        stand.add(name).mark_visible()
    stand.tickets.clear()
    assert not stand.tickets._queued
    stand.add("d").mark_visible()
    stand.wait()
    assert stand.done == ["d"]


def test_it_rests_when_nothing_waits_and_when_the_workshop_is_closed(stand):
    stand.add("a").mark_visible()
    stand.wait()
    stand.bot.waitUntil(lambda: not stand.tickets._timer.isActive())
    stand.add("b").mark_visible()
    assert stand.tickets._timer.isActive()
    stand.job_queue.close()
    assert not stand.tickets._timer.isActive()
    stand.add("c").mark_visible()
    assert not stand.tickets._timer.isActive()


def test_what_is_painted_until_it_is_told_is_not_done_again(stand, monkeypatch):
    order = stand.add("a")
    order.mark_visible()
    monkeypatch.setattr(stand.tickets, "_notify", order.mark_visible)
    stand.bot.waitUntil(lambda: bool(stand.kept))
    for _ in range(orders_module._VISIBLE_TICKS):
        stand.tickets._on_tick()
    assert stand.told == []
    monkeypatch.undo()
    stand.wait()
    assert stand.done == stand.told == ["a"]
