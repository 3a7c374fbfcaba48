"""When a scheduled prompt runs.

Times are those of the wall clock, without a zone: a slot is a minute that the clock on the wall shows, and no slot is
used twice. So an hour that the clock repeats in autumn repeats no run, and a slot in the hour that it skips in spring
is due after that hour, as in cron. Only intervals are counted by the time that passes.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice

from cronsim import CronSim, CronSimError

from desktop_agent.types.errors import WrongUse
from desktop_agent.types.schedules import LAST_DAY, Cron, Interval, Monthly, Once, Timing, Weekly

GRACE = timedelta(minutes=2)
"""A run that begins later than this after its time counts as missed."""
_MINUTE = timedelta(minutes=1)
_FIELDS = 5


@dataclass(frozen=True)
class Clock:
    """The time, and the zone of the clock on the wall; None is the system's, whatever it is by now."""

    seconds: Callable[[], float] = time.time
    zone: tzinfo | None = None

    def now(self) -> datetime:
        """Return the moment, in UTC."""
        if self.zone is None and hasattr(time, "tzset"):
            # The person may have travelled: the C library reads the zone again only when asked to.
            time.tzset()
        return datetime.fromtimestamp(self.seconds(), UTC)

    def wall(self, moment: datetime) -> datetime:
        """Return what the clock on the wall shows at a moment, without a zone."""
        return moment.astimezone(self.zone).replace(tzinfo=None, fold=0)

    def moments(self, wall: datetime) -> tuple[datetime, ...]:
        """Return the moments at which the clock on the wall shows this, in order: mostly one, two where it comes twice.

        For a time that the clock skips it is the moment that it would be without the change.
        """
        before, after = (wall.replace(tzinfo=self.zone, fold=fold).astimezone(UTC) for fold in (0, 1))
        return (before,) if after <= before else (before, after)


@dataclass(frozen=True)
class Slot:
    """A time at which a prompt is to run. `wall` is what the clock on the wall shows then."""

    key: str
    wall: datetime
    moment: datetime
    is_late: bool


def check_cron_line(line: str) -> None:
    """Raise WrongUse for a line that is none, or that names no time at all."""
    fields = line.split()
    if len(fields) != _FIELDS:
        raise WrongUse("A cron line has five fields: minute, hour, day, month and weekday.", "Write all five.")
    try:
        next(CronSim(line, datetime(2026, 1, 1)))  # noqa: DTZ001  the wall clock
    except (CronSimError, StopIteration) as error:
        raise WrongUse("This cron line never matches a time.", "Check each of its five fields.") from error


def newest_slot(timing: Timing, clock: Clock, since: datetime, now: datetime) -> Slot | None:
    """Return the last slot after `since` that has come by now."""
    if isinstance(timing, Interval):
        step = timedelta(minutes=timing.minutes)
        count = (now - timing.start) // step
        moment = timing.start + count * step
        return _interval_slot(clock, moment, now) if count > 0 and moment > since else None
    current_wall = clock.wall(now)
    wall = _last_until(timing, current_wall)
    if wall is None or wall <= clock.wall(since):
        return None
    # In an hour that comes twice, the later one that has passed. A time that the clock skips may still be ahead.
    passed = [moment for moment in clock.moments(wall) if moment <= now]
    return Slot(_key(wall), wall, passed[-1] if passed else now, is_late=bool(passed) and now - passed[-1] > GRACE)


def slots_after(timing: Timing, clock: Clock, now: datetime) -> Iterator[Slot]:
    """Yield the slots that come, soonest first; never more than the timing has."""
    if isinstance(timing, Interval):
        step = timedelta(minutes=timing.minutes)
        count = max((now - timing.start) // step, 0)
        while True:
            count += 1
            yield _interval_slot(clock, timing.start + count * step, now)
    for wall in _walls_after(timing, clock.wall(now)):
        moments = clock.moments(wall)
        yield Slot(_key(wall), wall, next((moment for moment in moments if moment > now), moments[-1]), is_late=False)


def next_walls(timing: Timing, clock: Clock, count: int) -> tuple[datetime, ...]:
    """Return what the clock on the wall shows at the next runs, at most `count` of them. Raises WrongUse."""
    if isinstance(timing, Cron):
        check_cron_line(timing.line)
    return tuple(slot.wall for slot in islice(slots_after(timing, clock, clock.now()), count))


def _key(wall: datetime) -> str:
    return wall.isoformat(timespec="minutes")


def _interval_slot(clock: Clock, moment: datetime, now: datetime) -> Slot:
    key = moment.astimezone(UTC).isoformat(timespec="seconds")
    return Slot(key, clock.wall(moment), moment, is_late=now - moment > GRACE)


def _last_until(timing: Once | Weekly | Monthly | Cron, wall: datetime) -> datetime | None:
    if isinstance(timing, Once):
        return timing.at if timing.at <= wall else None
    after = wall.replace(second=0, microsecond=0) + _MINUTE
    return next(_cron(timing, after, reverse=True), None)


def _walls_after(timing: Once | Weekly | Monthly | Cron, wall: datetime) -> Iterator[datetime]:
    if isinstance(timing, Once):
        if timing.at > wall:
            yield timing.at
        return
    yield from _cron(timing, wall, reverse=False)


def _cron(timing: Weekly | Monthly | Cron, start: datetime, *, reverse: bool) -> Iterator[datetime]:
    try:
        return CronSim(_line_of(timing), start, reverse=reverse)
    except CronSimError:
        # Stored by another version.
        return iter(())


def _line_of(timing: Weekly | Monthly | Cron) -> str:
    if isinstance(timing, Cron):
        return timing.line
    clock = f"{timing.at.minute} {timing.at.hour}"
    if isinstance(timing, Monthly):
        return f"{clock} {'L' if timing.day == LAST_DAY else timing.day} * *"
    # Cron counts from Sunday.
    return f"{clock} * * {','.join(str((day + 1) % 7) for day in timing.days)}"
