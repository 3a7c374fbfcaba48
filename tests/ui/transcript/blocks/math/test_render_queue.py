"""Which formulas are drawn, and in which order."""

import threading

import pytest

from ui.transcript.blocks.math import formulas as orders_module
from ui.transcript.blocks.math.formulas import RenderQueue
from ui.transcript.workers import JobQueue


class QueueHarness:
    """A queue of named jobs; `done` are those that ran, `kept` the results that arrived."""

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
        """Wait until nothing is queued any more."""
        self.bot.waitUntil(lambda: not self.tickets._queued and not self.tickets._ready_listeners)


@pytest.fixture
def harness(qapp, qtbot):
    job_queue = JobQueue()
    queue_stand = QueueHarness(job_queue, qtbot)
    yield queue_stand
    queue_stand.gate.set()
    job_queue.close()


def test_what_is_on_the_screen_comes_before_what_is_beside_it(harness):
    for name in "abcdef":
        ticket = harness.add(name)
        if name in "df":
            ticket.mark_visible()
    harness.wait()
    assert harness.done == ["d", "f", "a", "b", "c", "e"]
    assert harness.kept == [(name, name.upper()) for name in harness.done]
    assert sorted(harness.told) == list("abcdef")


def test_what_was_seen_last_comes_first(harness, monkeypatch):
    monkeypatch.setattr(orders_module, "_MAX_RUNNING", 0)
    for names in ("abc", "xyz"):
        beats = harness.tickets._ticks
        for name in names:
            harness.add(name).mark_visible()
        harness.bot.waitUntil(lambda beats=beats: harness.tickets._ticks > beats + orders_module._VISIBLE_TICKS)
    monkeypatch.setattr(orders_module, "_MAX_RUNNING", 2)
    harness.wait()
    assert harness.done == list("xyzabc")


def test_what_only_flew_by_is_never_done(harness):
    for name in "abc":
        ticket = harness.add(name)
        ticket.mark_visible()
        ticket.cancel()
    harness.add("d").mark_visible()
    harness.wait()
    assert harness.done == ["d"]


def test_nothing_is_done_at_once(harness):
    harness.add("a").mark_visible()
    harness.tickets._on_tick()
    assert not harness.job_queue.is_busy
    harness.wait()
    assert harness.done == ["a"]


def test_what_is_in_the_hands_of_the_worker_is_taken_out_of_them(harness):
    harness.gate.clear()
    tickets = [harness.add(name) for name in "abc"]
    for order in tickets:
        order.mark_visible()
    harness.bot.waitUntil(lambda: harness.done == ["a"])
    harness.bot.waitUntil(lambda: len(harness.job_queue._jobs) == 1)
    tickets[1].cancel()
    assert not harness.job_queue._jobs
    harness.gate.set()
    harness.wait()
    assert harness.done == ["a", "c"]


def test_what_is_dropped_while_it_is_done_is_kept_and_not_told(harness):
    harness.gate.clear()
    ticket = harness.add("a")
    ticket.mark_visible()
    harness.bot.waitUntil(lambda: harness.done == ["a"])
    ticket.cancel()
    harness.gate.set()
    harness.wait()
    assert harness.kept == [("a", "A")]
    assert harness.told == []


def test_one_job_for_all_who_wait_for_the_same(harness):
    first, _ = harness.add("a"), harness.add("a")
    first.mark_visible()
    first.cancel()
    harness.wait()
    assert harness.done == ["a"]
    assert harness.told == ["a"]


def test_who_waits_for_many_is_told_once(harness, monkeypatch):
    monkeypatch.setattr(orders_module, "_MAX_BATCH", 1000)
    calls = []
    notify = lambda: calls.append(1)  # noqa: E731  the same one for all
    for name in "abcdef":
        harness.add(name, notify).mark_visible()
    harness.wait()
    assert sorted(harness.told) == list("abcdef")
    assert calls == [1]


def test_too_many_are_not_kept_waiting_unless_they_are_seen(harness, monkeypatch):
    monkeypatch.setattr(orders_module, "_MAX_QUEUED", 2)
    tickets = [harness.add(name) for name in "abc"]
    assert list(harness.tickets._queued) == ["b", "c"]
    tickets[0].mark_visible()
    harness.wait()
    assert sorted(harness.done) == list("abc")
    assert "a" in harness.told


def test_what_the_worker_gave_up_is_asked_of_it_again(harness):
    harness.gate.clear()
    for name in "ab":
        harness.add(name).mark_visible()
    harness.bot.waitUntil(lambda: len(harness.job_queue._jobs) == 1)
    key = next(iter(harness.job_queue._jobs))
    assert harness.job_queue.cancel(key)
    harness.gate.set()
    harness.add("c").mark_visible()
    harness.wait()
    assert sorted(harness.done) == list("abc")


def test_nobody_waits_after_other_rows_are_shown(harness):
    for name in "abc":
        harness.add(name).mark_visible()
    harness.tickets.clear()
    assert not harness.tickets._queued
    harness.add("d").mark_visible()
    harness.wait()
    assert harness.done == ["d"]


def test_it_rests_when_nothing_waits_and_when_the_workshop_is_closed(harness):
    harness.add("a").mark_visible()
    harness.wait()
    harness.bot.waitUntil(lambda: not harness.tickets._timer.isActive())
    harness.add("b").mark_visible()
    assert harness.tickets._timer.isActive()
    harness.job_queue.close()
    assert not harness.tickets._timer.isActive()
    harness.add("c").mark_visible()
    assert not harness.tickets._timer.isActive()


def test_what_is_painted_until_it_is_told_is_not_done_again(harness, monkeypatch):
    ticket = harness.add("a")
    ticket.mark_visible()
    monkeypatch.setattr(harness.tickets, "_notify", ticket.mark_visible)
    harness.bot.waitUntil(lambda: bool(harness.kept))
    for _ in range(orders_module._VISIBLE_TICKS):
        harness.tickets._on_tick()
    assert harness.told == []
    monkeypatch.undo()
    harness.wait()
    assert harness.done == harness.told == ["a"]
