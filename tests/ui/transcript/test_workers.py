"""A worker that outlives what its jobs do."""

import threading

import pytest

from ui.transcript.workers import JobQueue


@pytest.fixture
def workshop(qapp):
    made = JobQueue()
    yield made
    made.close()


def test_a_job_that_raises_ends_alone(workshop, qtbot, caplog):
    results = []

    def fail():
        raise ValueError("words of the conversation")

    workshop.submit("a", fail, results.append)
    workshop.submit("b", lambda: 2, results.append)
    qtbot.waitUntil(lambda: results == [2])
    assert not workshop.is_busy
    workshop.submit("a", lambda: 1, results.append)
    qtbot.waitUntil(lambda: results == [2, 1])
    (record,) = caplog.records
    assert "ValueError" in record.getMessage()
    assert "test_workers.py" in record.getMessage()
    assert "conversation" not in caplog.text


def test_a_job_that_nobody_wants_any_more_is_not_done(workshop, qtbot):
    is_running, may_end, results = threading.Event(), threading.Event(), []
    workshop.submit("at hand", lambda: (is_running.set(), may_end.wait(20)), results.append)
    workshop.submit("a", lambda: "a", results.append)
    workshop.submit("b", lambda: "b", results.append)
    assert is_running.wait(20)
    assert workshop.cancel("a")
    assert not workshop.cancel("a")
    assert not workshop.cancel("at hand")
    assert [workshop.has(key) for key in ("at hand", "a", "b")] == [True, False, True]
    may_end.set()
    qtbot.waitUntil(lambda: len(results) == 2)
    assert results[1] == "b"
    assert not workshop.has("b")


def test_jobs_that_follow_soon_are_done_by_the_same_thread(workshop, qtbot):
    threads = []
    for number in range(3):
        workshop.submit(number, threading.current_thread, threads.append)
        qtbot.waitUntil(lambda number=number: len(threads) == number + 1)
    assert len(set(threads)) == 1
    qtbot.waitUntil(lambda: not threads[0].is_alive())
    workshop.submit("later", threading.current_thread, threads.append)
    qtbot.waitUntil(lambda: len(threads) == 4)
    assert threads[3] is not threads[0]


def test_who_closes_it_does_not_wait_for_more_jobs(qapp, qtbot):
    workshop, closing, threads = JobQueue(), [], []
    workshop.closing.connect(lambda: closing.append(1))
    workshop.submit("a", threading.current_thread, threads.append)
    qtbot.waitUntil(lambda: bool(threads))
    workshop.close()
    assert closing == [1]
    assert not threads[0].is_alive()
