"""When a scheduled prompt runs, and how its last run ended, in words."""

from datetime import datetime, time
from itertools import pairwise

from PySide6.QtCore import QCoreApplication, QLocale, QTime

from desktop_agent.types.schedules import LAST_DAY, WEEKDAYS, Cron, Interval, Monthly, Once, RunResult, Timing, Weekly
from ui.style.text_display import write_date

_EVERY_DAY = 7


def timing_words(timing: Timing) -> str:
    """Return when it runs: "Every weekday at 9:00"."""
    match timing:
        case Once():
            return _tr("Once, {0}").format(moment_words(timing.at))
        case Weekly():
            return _weekly_words(timing)
        case Monthly(day=day) if day == LAST_DAY:
            return _tr("On the last day of every month at {0}").format(time_words(timing.at))
        case Monthly():
            return _tr("On day {0} of every month at {1}").format(timing.day, time_words(timing.at))
        case Interval():
            return _interval_words(timing.minutes)
        case Cron():
            return _tr("By the cron line {0}").format(" ".join(timing.line.split()))


def moment_words(wall: datetime) -> str:
    """Return a local day and time, with the year unless it is the current one."""
    is_this_year = wall.year == datetime.now().year  # noqa: DTZ005  the wall clock
    form = _tr("dddd, d MMMM") if is_this_year else _tr("dddd, d MMMM yyyy")
    return _tr("{0}, {1}").format(write_date(wall.date(), form), time_words(wall.time()))


def time_words(at: time) -> str:
    """Return a time of day."""
    return QLocale().toString(QTime(at.hour, at.minute), QLocale.FormatType.ShortFormat)


def result_words(result: RunResult) -> str:
    """Return how a run ended."""
    words: dict[RunResult, str] = {
        "completed": _tr("done"),
        "failed": _tr("failed"),
        "limit": _tr("stopped at a limit"),
        "cancelled": _tr("stopped"),
        "interrupted": _tr("interrupted when the program ended"),
        "refused": _tr("could not begin"),
        "missed": _tr("missed, and skipped"),
    }
    return words.get(result, _tr("ended"))


def _weekly_words(timing: Weekly) -> str:
    at = time_words(timing.at)
    if len(timing.days) == _EVERY_DAY:
        return _tr("Every day at {0}").format(at)
    if timing.days == WEEKDAYS:
        return _tr("Every weekday at {0}").format(at)
    return _tr("Every {0} at {1}").format(_join([day_name(day) for day in timing.days]), at)


def day_name(day: int, form: QLocale.FormatType = QLocale.FormatType.LongFormat) -> str:
    """Return the name of a weekday, 0 being Monday."""
    return QLocale().standaloneDayName(day + 1, form)


def _interval_words(minutes: int) -> str:
    for size, one, many in (
        (24 * 60, _tr("Every 24 hours"), _tr("Every {0} days, exactly")),
        (60, _tr("Every hour"), _tr("Every {0} hours")),
    ):
        if minutes % size == 0:
            return one if minutes == size else many.format(minutes // size)
    return _tr("Every minute") if minutes == 1 else _tr("Every {0} minutes").format(minutes)


def _join(words: list[str]) -> str:
    """Join "Monday", "Tuesday", "Friday" as a sentence does."""
    joined = words[0]
    for index, (_, word) in enumerate(pairwise(words)):
        template = _tr("{0} and {1}") if index == len(words) - 2 else _tr("{0}, {1}")
        joined = template.format(joined, word)
    return joined


def _tr(text: str) -> str:
    return QCoreApplication.translate("ScheduleWords", text)
