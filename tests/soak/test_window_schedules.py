"""What `python -m tests.soak window-schedules` would notice, and a small part of it."""

import asyncio
import sqlite3
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from desktop_agent.storage.opening import DATABASE_NAME
from desktop_agent.storage.store import Store
from desktop_agent.types.messages import Message
from desktop_agent.types.schedules import Cron, ScheduledPrompt
from tests.soak.set_clock import MISSING, find_library
from tests.soak.stored_runs import find_lost, find_repeated
from tests.soak.window_schedules import ZONE, Calls, find_wrong_calls, live, main, read_calls

PROMPT = ScheduledPrompt(title="say-a", prompt="say-a", timing=Cron(line="*/5 * * * *"))
DUE = datetime(2026, 10, 25, 0, 0, tzinfo=UTC)
"""The first two o'clock in the night in which the clock of Berlin is set back."""
SLACK = timedelta(minutes=1)


@pytest.mark.exhaustive("tests/soak/test_window_kills.py, and tests/desktop_agent/schedule/test_scheduler.py")
@pytest.mark.timeout(900)
def test_kills_and_set_clocks_of_the_window_repeat_nothing_and_forget_nothing() -> None:
    library = find_library()
    if library is None:
        pytest.skip(MISSING)
    report = asyncio.run(live(4, 7, library))
    assert report.faults == []
    assert (report.kills, report.settled) == (4, 1)


def test_where_libfaketime_is_missing_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--faketime", str(tmp_path)]) == 2
    assert "apt-get download" in capsys.readouterr().out


async def stored_run(folder: Path) -> None:
    """Store one correct run: claimed half a minute after its time, and completed."""
    store = await Store.open(folder)
    await store.schedules.save(PROMPT, DUE - timedelta(minutes=2))
    (schedule,) = await store.schedules.all()
    record, message = await store.create_conversation(title="t"), Message.user("say-a")
    now = DUE + timedelta(seconds=30)
    assert await store.schedules.runs.claim(schedule, "2026-10-25T02:00", record.id, message.id, now, is_due=True)
    await store.commit(record.id, message)
    (run,) = await store.schedules.runs.unfinished()
    await store.schedules.runs.end(run, "completed")
    await store.close()


def faults(folder: Path, *changes: str, request_count: int = 1) -> list[str]:
    """Return the faults in the stored run after these changes, four minutes after its time."""
    with closing(sqlite3.connect(folder / DATABASE_NAME)) as db:
        for change in changes:
            db.execute(change)
        since, now = DUE - timedelta(minutes=4), DUE + timedelta(minutes=4)
        return [*find_repeated(db, Counter({"say-a": request_count}), ZONE), *find_lost(db, since, now, SLACK, ZONE)]


async def test_a_run_as_it_should_be_is_no_fault(tmp_path: Path) -> None:
    await stored_run(tmp_path)
    assert faults(tmp_path) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("UPDATE schedule_runs SET message = 'another'", "belongs to no run"),
        ("UPDATE schedule_runs SET claimed_at = claimed_at + 400000000", "after its time"),
        ("UPDATE schedule_runs SET claimed_at = claimed_at - 60000000", "after its time"),
        ("UPDATE schedule_runs SET slot = '2026-10-25T01:55'", "did not run for 2026-10-25 02:00:00"),
        ("UPDATE schedule_runs SET state = 'claimed', result = ''", "claimed and forgotten"),
        ("UPDATE schedule_runs SET result = 'missed'", "is ended missed"),
    ],
)
async def test_a_run_that_is_lost_late_or_without_its_prompt_is_noticed(
    tmp_path: Path, change: str, expected: str
) -> None:
    await stored_run(tmp_path)
    assert expected in " ".join(faults(tmp_path, change))


async def test_a_model_that_was_asked_twice_is_noticed(tmp_path: Path) -> None:
    await stored_run(tmp_path)
    assert faults(tmp_path, request_count=2) == ["the model was asked 2 times for 1 runs of say-a"]


def test_calls_that_waited_are_decided_or_wait_still() -> None:
    before, after = Calls({"a": "t1", "b": "t2"}, frozenset({"t1", "t2"})), Calls({"a": "t1", "b": "t2"})
    assert list(find_wrong_calls(before, before, {}, Counter())) == []
    assert list(find_wrong_calls(before, after, {"a": "Allow once", "b": "Deny"}, Counter({"t1": 1}))) == []
    assert list(find_wrong_calls(before, after, {"a": "Allow once"}, Counter({"t1": 2, "t2": 1}))) == [
        "t2 waited, was not decided, and does not wait any more",
        "t1 took effect 2 times",
        "t2 took effect, and was not allowed",
    ]


def test_the_journal_says_which_calls_wait() -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE TABLE runs (number, finished)")
        db.execute("CREATE TABLE journal (number, type, event)")
        db.executemany("INSERT INTO runs VALUES (?, ?)", [(1, 0), (2, 1)])
        rows = [
            (1 << 32 | 1, "approval_requested", '{"approval_id": "a", "tool_use_id": "t1"}'),
            (1 << 32 | 2, "approval_requested", '{"approval_id": "b", "tool_use_id": "t2"}'),
            (1 << 32 | 3, "approval_resolved", '{"approval_id": "b", "tool_use_id": "t2"}'),
            (1 << 32 | 4, "approval_requested", '{"approval_id": "c", "tool_use_id": "t3"}'),
            (1 << 32 | 5, "tool_finished", '{"result": {"tool_use_id": "t3"}}'),
            (2 << 32 | 1, "approval_requested", '{"approval_id": "d", "tool_use_id": "t4"}'),
        ]
        db.executemany("INSERT INTO journal VALUES (?, ?, ?)", rows)
        assert read_calls(db) == Calls({"a": "t1", "b": "t2", "c": "t3", "d": "t4"}, frozenset({"t1"}))
