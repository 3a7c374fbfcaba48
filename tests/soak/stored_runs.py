"""Checks of scheduled runs in the database: repeated, late and missing ones."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from sqlite3 import Connection
from zoneinfo import ZoneInfo

from desktop_agent.schedule.timing import GRACE
from desktop_agent.types.schedules import Cron, Interval, ScheduledPrompt, Weekly

_DAY = timedelta(days=1)


def read_prompts(db: Connection) -> dict[str, ScheduledPrompt]:
    """Return the scheduled prompts by their ids."""
    prompts = (ScheduledPrompt.model_validate_json(body) for (body,) in db.execute("SELECT body FROM schedules"))
    return {prompt.id: prompt for prompt in prompts}


def find_repeated(db: Connection, request_counts: Counter[str], zone: ZoneInfo) -> Iterator[str]:
    """Yield runs that were made twice or at a wrong time. `request_counts`: how often the model got each text."""
    prompts = read_prompts(db)
    stored: Counter[str] = Counter(id_ for (id_,) in db.execute("SELECT id FROM messages WHERE role = 'user'"))
    sql = "SELECT schedule, slot, message, state, result, claimed_at FROM schedule_runs ORDER BY number"
    runs = db.execute(sql).fetchall()
    by_message = Counter(row[2] for row in runs if row[2])
    yield from (f"the prompt {id_} is there {count} times" for id_, count in stored.items() if count > 1)
    yield from (f"the prompt {id_} belongs to no run" for id_ in stored if id_ not in by_message)
    yield from (f"two runs have the prompt {id_}" for id_, count in by_message.items() if count > 1)
    slots = Counter((row[0], row[1]) for row in runs)
    yield from (f"{prompts[id_].title} {slot} ran {count} times" for (id_, slot), count in slots.items() if count > 1)
    begun: Counter[str] = Counter()
    for schedule, slot, message, state, result, claimed_at in runs:
        prompt = prompts[schedule]
        begun[prompt.prompt] += stored[message]
        if (stored[message] == 0) != (state == "claimed" or result in {"missed", "refused"}):
            yield f"{prompt.title} {slot} is {state} {result}, and its prompt is there {stored[message]} times"
        late = _wall(datetime.fromtimestamp(claimed_at / 1e6, UTC), zone) - _slot_wall(slot, zone)
        if isinstance(prompt.timing, Interval):
            late = datetime.fromtimestamp(claimed_at / 1e6, UTC) - datetime.fromisoformat(slot)
        latest = GRACE if prompt.missed == "skip" and not _is_left_out(slot, zone) else _period(prompt)
        if late < timedelta(0) or (result != "missed" and late > latest):
            yield f"{prompt.title} {slot} was claimed {late} after its time"
    for text, count in request_counts.items():
        if count > begun[text]:
            yield f"the model was asked {count} times for {begun[text]} runs of {text}"


def find_lost(db: Connection, since: datetime, now: datetime, slack: timedelta, zone: ZoneInfo) -> Iterator[str]:
    """Yield prompts neither run nor skipped, though their latest time lay between `since` and `slack` before now.

    Between the two the clock was not set back.
    """
    for id_, prompt in read_prompts(db).items():
        newest = _newest(prompt, now - slack, zone)
        if newest <= _wall(since, zone) or now - since < slack:
            continue
        runs = db.execute("SELECT slot, claimed_at FROM schedule_runs WHERE schedule = ?", (id_,)).fetchall()
        is_known = any(
            _slot_wall(slot, zone) == newest
            or (_slot_wall(slot, zone) > newest and claimed_at >= since.timestamp() * 1e6)
            for slot, claimed_at in runs
        )
        if not is_known:
            yield f"{prompt.title} did not run for {newest}, and it is {_wall(now, zone)}"
    sql = "SELECT schedule, slot, claimed_at FROM schedule_runs WHERE state = 'claimed'"
    for schedule, slot, claimed_at in db.execute(sql).fetchall():
        if abs(now - datetime.fromtimestamp(claimed_at / 1e6, UTC)) > slack:
            yield f"{read_prompts(db)[schedule].title} {slot} was claimed and forgotten"


def _newest(prompt: ScheduledPrompt, now: datetime, zone: ZoneInfo) -> datetime:
    """Return the latest wall-clock time at which a prompt was due, computed without the scheduler."""
    wall = _wall(now, zone)
    match prompt.timing:
        case Interval(minutes=minutes, start=start):
            step = timedelta(minutes=minutes)
            return _wall(start + (now - start) // step * step, zone)
        case Weekly(at=at):
            today = datetime.combine(wall.date(), at)
            return today if today <= wall else today - _DAY
        case _:
            minutes = _period(prompt) // timedelta(minutes=1)
            return wall.replace(minute=wall.minute - wall.minute % minutes, second=0, microsecond=0)


def _period(prompt: ScheduledPrompt) -> timedelta:
    match prompt.timing:
        case Interval(minutes=minutes):
            return timedelta(minutes=minutes)
        case Cron(line=line):
            first = line.split()[0]
            return timedelta(minutes=int(first.removeprefix("*/")) if first != "*" else 1)
        case _:
            return _DAY


def _wall(moment: datetime, zone: ZoneInfo) -> datetime:
    return moment.astimezone(zone).replace(tzinfo=None, fold=0)


def _slot_wall(slot: str, zone: ZoneInfo) -> datetime:
    moment = datetime.fromisoformat(slot)
    return moment if moment.tzinfo is None else _wall(moment, zone)


def _is_left_out(slot: str, zone: ZoneInfo) -> bool:
    """Return whether the wall clock skipped this time, so that the prompt is due right after it."""
    moment = _slot_wall(slot, zone)
    return _wall(moment.replace(tzinfo=zone).astimezone(UTC), zone) != moment
