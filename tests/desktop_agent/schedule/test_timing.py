"""When a scheduled prompt runs: by the clock on the wall, over changes of that clock."""

from datetime import UTC, datetime, time, timedelta, tzinfo
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from pydantic import ValidationError

from desktop_agent.schedule.timing import Clock, check_cron_line, newest_slot, slots_after
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.schedules import LAST_DAY, LAST_TIME, WEEKDAYS, Cron, Interval, Monthly, Once, Timing, Weekly

BERLIN = ZoneInfo("Europe/Berlin")


def clock_at(moment: datetime, zone: tzinfo = BERLIN) -> Clock:
    return Clock(moment.timestamp, zone)


def following(timing: Timing, after: datetime, count: int, zone: tzinfo = BERLIN) -> list[str]:
    clock = clock_at(after, zone)
    return [slot.wall.isoformat(" ", "minutes") for slot in islice(slots_after(timing, clock, clock.now()), count)]


def at(*parts: int, zone: tzinfo = BERLIN, fold: int = 0) -> datetime:
    year, month, day, hour, minute = parts
    return datetime(year, month, day, hour, minute, tzinfo=zone, fold=fold).astimezone(UTC)


def test_days_of_the_week_and_of_the_month() -> None:
    friday = at(2026, 11, 27, 9, 0)
    weekdays = Weekly(days=WEEKDAYS, at=time(9))
    assert following(weekdays, friday, 2) == ["2026-11-30 09:00", "2026-12-01 09:00"]
    assert following(Weekly(days=(6, 2), at=time(7, 5)), friday, 2) == ["2026-11-29 07:05", "2026-12-02 07:05"]
    assert following(Monthly(day=31, at=time(8)), friday, 2) == ["2026-12-31 08:00", "2027-01-31 08:00"]
    assert following(Monthly(day=LAST_DAY, at=time(8)), friday, 2) == ["2026-11-30 08:00", "2026-12-31 08:00"]
    assert following(Cron(line="*/20 9 * * 5"), friday, 2) == ["2026-11-27 09:20", "2026-11-27 09:40"]
    assert following(Once(at=datetime.fromisoformat("2026-11-27T09:01")), friday, 2) == ["2026-11-27 09:01"]
    assert following(Once(at=datetime.fromisoformat("2026-11-27T09:00")), friday, 2) == []


def test_the_hour_that_the_clock_leaves_out_is_due_when_it_has_passed_and_counts_as_in_time() -> None:
    timing = Weekly(days=tuple(range(7)), at=time(2, 30))
    since, change = at(2026, 3, 28, 12, 0), at(2026, 3, 29, 3, 0)
    assert newest_slot(timing, clock_at(change), since, change - timedelta(seconds=1)) is None
    slot = newest_slot(timing, clock_at(change), since, change)
    assert slot is not None
    assert (slot.key, slot.is_late) == ("2026-03-29T02:30", False)
    assert following(timing, change, 1) == ["2026-03-30 02:30"]


def test_the_hour_that_comes_twice_has_its_slots_once() -> None:
    timing = Weekly(days=tuple(range(7)), at=time(2, 30))
    since = at(2026, 10, 24, 12, 0)
    first, second = at(2026, 10, 25, 2, 30), at(2026, 10, 25, 2, 30, fold=1)
    assert second - first == timedelta(hours=1)
    slots = [newest_slot(timing, clock_at(moment), since, moment) for moment in (first, second)]
    assert [slot and slot.key for slot in slots] == ["2026-10-25T02:30"] * 2
    # It has run by then: what was checked lies behind it, until the next day.
    assert newest_slot(timing, clock_at(second), first, second) is None
    assert following(timing, first, 1) == ["2026-10-26 02:30"]


def test_an_interval_goes_by_the_time_that_passes() -> None:
    start = at(2026, 10, 25, 2, 0)
    timing = Interval(minutes=30, start=start)
    walls = ["2026-10-25 02:30", "2026-10-25 02:00", "2026-10-25 02:30", "2026-10-25 03:00"]
    assert following(timing, start, 4) == walls
    now = start + timedelta(minutes=65)
    slot = newest_slot(timing, clock_at(now), start, now)
    assert slot is not None
    assert slot.moment == start + timedelta(minutes=60)
    assert newest_slot(timing, clock_at(now), slot.moment, now) is None


def test_a_day_that_a_country_left_out_is_late_at_the_next_one() -> None:
    apia = ZoneInfo("Pacific/Apia")
    timing = Weekly(days=(4,), at=time(9))  # Friday, 30 December 2011, which Samoa never had
    since, after = at(2011, 12, 29, 12, 0, zone=apia), at(2011, 12, 31, 0, 5, zone=apia)
    slot = newest_slot(timing, clock_at(after, apia), since, after)
    assert slot is not None
    assert slot.key == "2011-12-30T09:00"
    assert following(timing, after, 1, apia) == ["2012-01-06 09:00"]


def test_of_all_that_was_missed_the_newest_counts_and_is_late() -> None:
    now = at(2026, 11, 27, 9, 3)
    slot = newest_slot(Cron(line="0 * * * *"), clock_at(now), now - timedelta(days=400), now)
    assert slot is not None
    assert (slot.key, slot.is_late) == ("2026-11-27T09:00", True)
    soon = at(2026, 11, 27, 9, 1)
    slot = newest_slot(Cron(line="0 * * * *"), clock_at(soon), now - timedelta(days=400), soon)
    assert slot is not None
    assert not slot.is_late


@pytest.mark.parametrize("line", ["", "* * * *", "* * * * * *", "61 * * * *", "0 0 30 2 *", "@daily", "a b c d e"])
def test_a_cron_line_that_names_no_time_is_refused(line: str) -> None:
    with pytest.raises(WrongUse):
        check_cron_line(line)


def test_a_cron_line_of_five_fields_is_taken() -> None:
    check_cron_line("*/5 9-17 1,15 jan-jun mon-fri")


@pytest.mark.parametrize("zone", [BERLIN, ZoneInfo("America/New_York"), ZoneInfo("Asia/Tokyo"), None])
def test_the_last_day_of_all_is_a_time_that_every_zone_can_count(zone: tzinfo | None) -> None:
    once, clock = Once(at=datetime(9999, 12, 31)), Clock(zone=zone)  # noqa: DTZ001
    assert once.at == LAST_TIME
    assert [slot.wall for slot in slots_after(once, clock, clock.now())] == [LAST_TIME]
    assert newest_slot(once, clock, clock.now() - timedelta(days=1), clock.now()) is None


def test_an_interval_counts_from_a_moment_and_not_from_a_clock_on_some_wall() -> None:
    with pytest.raises(ValidationError):
        Interval(minutes=5, start=datetime(2026, 11, 27, 9, 0))  # noqa: DTZ001
