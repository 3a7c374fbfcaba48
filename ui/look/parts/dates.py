"""When something was, in as few words as are useful; in local time."""

from datetime import datetime

from PySide6.QtCore import QCoreApplication, QDate, QLocale, QTime


def relative_date(moment: datetime, now: datetime) -> str:
    """A time today, "Yesterday", a weekday this week, a day this year, else a full date."""
    then, today = moment.astimezone(), now.astimezone()
    days = (today.date() - then.date()).days
    if days <= 0:
        return _time(then)
    if days == 1:
        return QCoreApplication.translate("dates", "Yesterday")
    if days < 7:
        return QLocale().dayName(then.isoweekday(), QLocale.FormatType.ShortFormat)
    return _day(then, today)


def exact_date(moment: datetime, now: datetime) -> str:
    """A day, with its year unless it is this one, and a time: what is not written anew as time goes by."""
    then = moment.astimezone()
    words = QCoreApplication.translate("dates", "{0} {1}", "a date and a time of day")
    return words.format(_day(then, now.astimezone()), _time(then))


def _day(then: datetime, today: datetime) -> str:
    is_plain = then.year == today.year
    form = (
        QCoreApplication.translate("dates", "d MMM") if is_plain else QCoreApplication.translate("dates", "d MMM yyyy")
    )
    return QLocale().toString(QDate(then.year, then.month, then.day), form)


def _time(then: datetime) -> str:
    return QLocale().toString(QTime(then.hour, then.minute), QLocale.FormatType.ShortFormat)
