"""When something was, in as few words as are useful."""

from datetime import datetime

from PySide6.QtCore import QCoreApplication, QDate, QLocale, QTime


def relative_date(moment: datetime, now: datetime) -> str:
    """A time today, "Yesterday", a weekday this week, a day this year, else a full date; all in local time."""
    then, today = moment.astimezone(), now.astimezone()
    locale = QLocale()
    date = QDate(then.year, then.month, then.day)
    days = (today.date() - then.date()).days
    if days <= 0:
        return locale.toString(QTime(then.hour, then.minute), QLocale.FormatType.ShortFormat)
    if days == 1:
        return QCoreApplication.translate("dates", "Yesterday")
    if days < 7:
        return locale.dayName(date.dayOfWeek(), QLocale.FormatType.ShortFormat)
    if then.year == today.year:
        return locale.toString(date, QCoreApplication.translate("dates", "d MMM"))
    return locale.toString(date, QCoreApplication.translate("dates", "d MMM yyyy"))
