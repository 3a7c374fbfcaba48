"""What others wrote, displayed faithfully: bidirectional text in its written order, JSON, dates.

Right-to-left letters reorder the words and signs between them (Unicode annex 9): `mv א ב` would look like `mv ב א`.
Each run of such letters is isolated here, so that each word reads as its language does, and the words keep their order.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Sequence
from datetime import date, datetime
from itertools import accumulate, pairwise
from math import isinf

from PySide6.QtCore import QCoreApplication, QDate, QLocale, QMimeData, QTime
from PySide6.QtGui import QInputMethodEvent, QTextCharFormat, QTextLayout
from PySide6.QtWidgets import QPlainTextEdit

from desktop_agent.types.blocks import JsonObject
from ui.style.text import LEFT_ISOLATE, POP_ISOLATE, RIGHT_ISOLATE, replace_hidden, show_hidden, strip_bidi_marks

LEFT_TO_RIGHT_MARK = "\u200e"
"""Put before a text whose first letter decides its direction, to make it left-to-right."""

_RIGHT_TO_LEFT_RUN = re.compile(
    "(?:[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe\U00010800-\U00010fff\U0001e800-\U0001efff][\u0300-\u036f]*)+"
)
_ISOLATED = rf"{RIGHT_ISOLATE}\g<0>{POP_ISOLATE}"


def in_logical_order(text: str) -> str:
    """Isolate the runs of a left-to-right text. The text has no marks of its own: they were made visible."""
    return text if text.isascii() else _RIGHT_TO_LEFT_RUN.sub(_ISOLATED, text)


def isolate(text: str) -> str:
    """Isolate a text inside a sentence of any language, so that the text around it does not change its order either."""
    return f"{LEFT_ISOLATE}{in_logical_order(text)}{POP_ISOLATE}" if _RIGHT_TO_LEFT_RUN.search(text) else text


def isolate_untrusted(text: str) -> str:
    """Isolate what somebody else wrote: hidden characters are visible, and its order is the written one."""
    return isolate(show_hidden(text))


def bidi_mark_positions(text: str) -> list[int]:
    """Return the positions of the marks in the result of `in_logical_order`, in Qt's units (UTF-16)."""
    edges = [] if text.isascii() else [edge for match in _RIGHT_TO_LEFT_RUN.finditer(text) for edge in match.span()]
    units = [_utf16_length(part) for part in (text[start:end] for start, end in pairwise([0, *edges]))]
    return [edge + index for index, edge in enumerate(accumulate(units))]


def displayed_positions(text: str, positions: Sequence[int]) -> list[int]:
    """Map rising positions of the text to positions in the result of `in_logical_order`, in Qt's units (UTF-16)."""
    if text.isascii():
        return list(positions)
    before = [mark - index for index, mark in enumerate(bidi_mark_positions(text))]
    units = accumulate(_utf16_length(text[start:end]) for start, end in pairwise([0, *positions]))
    return [position + bisect_right(before, position) for position in units]


def _utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def make_format_range(start: int, length: int, form: QTextCharFormat) -> QTextLayout.FormatRange:
    """Return a format for a part of a laid-out text, in UTF-16 units."""
    part = QTextLayout.FormatRange()
    part.start, part.length, part.format = start, length, form
    return part


class LogicalOrderText(QPlainTextEdit):
    """A text view; copied or dragged text has no order marks."""

    @property
    def text(self) -> str:
        return strip_bidi_marks(self.toPlainText())

    def set_text(self, text: str) -> None:
        """Show this text."""
        self.setPlainText(in_logical_order(text))

    def inputMethodEvent(self, e: QInputMethodEvent) -> None:
        """Ignore it while read-only: Qt would insert text that was composed in another field and comes late."""
        if self.isReadOnly():
            e.ignore()
        else:
            super().inputMethodEvent(e)

    def createMimeDataFromSelection(self) -> QMimeData:
        data = QMimeData()
        data.setText(strip_bidi_marks(self.textCursor().selection().toPlainText()))
        return data


_MAX_NUMBER_LENGTH = 40


def arguments_as_json(arguments: JsonObject) -> str:
    """Return pretty JSON with hidden characters as JSON escapes: parsing it returns the same arguments."""
    plain = json.dumps(arguments, indent=2, ensure_ascii=False)
    return replace_hidden(plain, lambda character: json.dumps(character)[1:-1])


def arguments_from_json(text: str) -> tuple[JsonObject | None, str]:
    """Parse arguments; or return None and why not. Strict JSON: no NaN, no key twice, an object at the top level."""
    try:
        value = json.loads(
            text, parse_constant=_reject_constant, parse_float=_parse_finite, object_pairs_hook=_unique_keys
        )
    except json.JSONDecodeError as error:
        template = QCoreApplication.translate("Json", "Line {0}, column {1}: {2}")
        return None, template.format(error.lineno, error.colno, _error_text(error))
    except _InvalidJson as error:
        return None, str(error)
    except RecursionError:
        return None, QCoreApplication.translate("Json", "This is nested too deep. Remove some levels.")
    except ValueError:
        return None, QCoreApplication.translate("Json", "A number has too many digits. Write it shorter, or as text.")
    if not isinstance(value, dict):
        return None, QCoreApplication.translate("Json", "The arguments must be a JSON object: write {…} around them.")
    return value, ""  # pyright: ignore[reportUnknownVariableType]  # JSON from a person; `validate` reads it next


class _InvalidJson(ValueError):
    """JSON that the library accepts and we do not; says why in the current language."""


def _error_text(error: json.JSONDecodeError) -> str:
    """Explain an error of the library, whose messages differ a little between versions of Python."""
    translate = QCoreApplication.translate
    if not error.doc.strip():
        return translate("Json", "There is nothing here. Write {} if there are no arguments.")
    kinds = {
        "Expecting property name": translate(
            "Json", "A name in double quotes is missing here. Write one, or remove the comma before it."
        ),
        "Illegal trailing comma": translate("Json", "There is a comma too many. Remove it."),
        "Expecting ':'": translate("Json", "A colon is missing here, between a name and its value. Write one."),
        "Expecting ','": translate("Json", "A comma, or the closing bracket, is missing here. Write it."),
        "Expecting value": translate(
            "Json",
            "A value is missing here. Write one: a text in double quotes, a number, true, false, null, […], {…}.",
        ),
        "Unterminated string": translate(
            "Json", "The text that begins here has no end. Write a double quote after it."
        ),
        "Invalid control character": translate(
            "Json", "A text contains a line break or a tab. Write \\n or \\t instead."
        ),
        "Invalid \\": translate("Json", "A single backslash cannot be used here. Write it twice: \\\\"),
        "Extra data": translate("Json", "There is text after the end of the JSON. Remove it."),
    }
    texts = (words for beginning, words in kinds.items() if error.msg.startswith(beginning))
    return next(texts, translate("Json", "This is not valid JSON. Compare it with the original arguments."))


def _reject_constant(name: str) -> None:
    words = QCoreApplication.translate("Json", "{0} is not JSON. Write a number, or null.")
    raise _InvalidJson(words.format(name))


def _parse_finite(text: str) -> float:
    number = float(text)
    if isinf(number):
        words = QCoreApplication.translate("Json", "The number {0} is too large. Write a smaller one, or a text.")
        raise _InvalidJson(words.format(text[:_MAX_NUMBER_LENGTH]))
    return number


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise _InvalidJson(QCoreApplication.translate("Json", "A name is used twice. Remove one of the two."))
    return values


def relative_date(moment: datetime, now: datetime) -> str:
    """Return a time today, "Yesterday", a weekday this week, a day this year, else a full date."""
    then, today = moment.astimezone(), now.astimezone()
    days = (today.date() - then.date()).days
    if days <= 0:
        return _time(then)
    if days == 1:
        return QCoreApplication.translate("dates", "Yesterday")
    if days < 7:
        return QLocale().dayName(then.isoweekday(), QLocale.FormatType.ShortFormat)
    return _day(then, today)


def date_in_group(moment: datetime, now: datetime) -> str:
    """Return what a heading such as "Yesterday" or "May 2026" leaves open: a time, a weekday this week, or a day."""
    then, today = moment.astimezone(), now.astimezone()
    days = (today.date() - then.date()).days
    if days <= 1:
        return _time(then)
    return relative_date(moment, now) if days < 7 else _day(then, then)


def exact_date(moment: datetime, now: datetime) -> str:
    """Return a day and a time, with the year unless it is this one, for texts that are not updated later."""
    then = moment.astimezone()
    words = QCoreApplication.translate("dates", "{0} {1}", "a date and a time of day")
    return words.format(_day(then, now.astimezone()), _time(then))


def format_day(day: date, today: date) -> str:
    """Return a day, with the year unless it is this one."""
    is_plain = day.year == today.year
    form = (
        QCoreApplication.translate("dates", "d MMM") if is_plain else QCoreApplication.translate("dates", "d MMM yyyy")
    )
    return write_date(day, form)


_MONTH_FIRST = {
    "d MMM": "MMM d",
    "d MMM yyyy": "MMM d, yyyy",
    "dddd, d MMMM": "dddd, MMMM d",
    "dddd, d MMMM yyyy": "dddd, MMMM d, yyyy",
}
"""The English forms of a date as they are written in the United States."""


def write_date(day: date, form: str) -> str:
    """Write a day in a form of the language, in the order of the system's region."""
    locale = QLocale()
    if locale.dateFormat(QLocale.FormatType.ShortFormat).startswith("M"):
        form = _MONTH_FIRST.get(form, form)
    return locale.toString(QDate(day.year, day.month, day.day), form)


def _day(then: datetime, today: datetime) -> str:
    return format_day(then.date(), today.date())


def _time(then: datetime) -> str:
    return QLocale().toString(QTime(then.hour, then.minute), QLocale.FormatType.ShortFormat)
