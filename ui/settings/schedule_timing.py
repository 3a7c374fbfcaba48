"""The editor of when a prompt runs, with the next times below it."""

from datetime import UTC, datetime, time, timedelta

from PySide6.QtCore import QDate, QLocale, QSignalBlocker, Qt, QTime, Signal
from PySide6.QtWidgets import QCheckBox, QDateEdit, QDateTimeEdit, QTimeEdit, QWidget

from desktop_agent.types.messages import now
from desktop_agent.types.schedules import (
    LAST_DAY,
    LAST_TIME,
    MAX_CRON_LINE,
    MAX_INTERVAL,
    WEEKDAYS,
    Cron,
    Interval,
    Monthly,
    Once,
    Timing,
    Weekly,
)
from ui.bridge.schedule.preview import PREVIEWED, TimingPreview, preview_timing
from ui.forms.controls import SpinBoxFilter, menu, number_box, text_line
from ui.settings.schedule_words import day_name, moment_words
from ui.style.boxes import hbox, vbox
from ui.style.controls import ElidedLabel, announce
from ui.style.layouts import FlowRows, PartFocus
from ui.style.text import translate_sentence
from ui.style.theme import SPACE_M, SPACE_S, SPACE_XS

_EVERY_DAY = tuple(range(7))
_NINE = time(9, 0)


def _show_in_order(box: QDateTimeEdit) -> None:
    """Show 09:05 in a mirrored window too, where Qt would show 05:09: digits run from left to right everywhere."""
    pattern = box.displayFormat()
    box.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
    # The same pattern again would change nothing.
    for display_format in (f"{pattern} ", pattern):
        box.setDisplayFormat(display_format)
    box.unsetLayoutDirection()


class TimingEditor(QWidget):
    """`timing` is the chosen timing; None without a day of the week, or with an empty cron line."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._start = now()
        self._previewed: list[str] = []
        kinds = [
            ("once", self.tr("Once")),
            ("daily", self.tr("Every day")),
            ("weekly", self.tr("On days of the week")),
            ("monthly", self.tr("Every month")),
            ("interval", self.tr("Every … minutes")),
            ("cron", self.tr("By a cron line")),
        ]
        self._kind = menu(kinds)
        short = QLocale.FormatType.ShortFormat
        self._day_boxes = [QCheckBox(day_name(day, short)) for day in _EVERY_DAY]
        self._days = FlowRows(self._day_boxes, gap=SPACE_M)
        days = [(day, str(day)) for day in range(1, 32)]
        self._month_day = menu([*days, (LAST_DAY, self.tr("Last day"))])
        self._date, self._time = QDateEdit(), QTimeEdit()
        self._date.setMaximumDate(QDate(LAST_TIME.year, LAST_TIME.month, LAST_TIME.day))
        self._minutes = number_box(1, MAX_INTERVAL, suffix=self.tr(" minutes"))
        self._cron = text_line(max_length=MAX_CRON_LINE, placeholder="0 9 * * 1-5")
        # Lines that never wrap: a form gives too little height to what wraps within a field.
        self._preview = [ElidedLabel() for _ in range(PREVIEWED + 1)]
        self._parts: dict[QWidget, tuple[str, ...]] = {
            self._date: ("once",),
            self._days: ("weekly",),
            self._month_day.widget: ("monthly",),
            self._time: ("once", "daily", "weekly", "monthly"),
            self._minutes.widget: ("interval",),
            self._cron.widget: ("cron",),
        }
        self._build()
        self.set_timing(Weekly(days=WEEKDAYS, at=_NINE))

    @property
    def timing(self) -> Timing | None:
        """The chosen timing; None if it is incomplete."""
        time_of_day = time(self._time.time().hour(), self._time.time().minute())
        match self._kind.read():
            case "once":
                day = self._date.date()
                return Once(at=datetime(day.year(), day.month(), day.day(), time_of_day.hour, time_of_day.minute))  # noqa: DTZ001
            case "daily":
                return Weekly(days=_EVERY_DAY, at=time_of_day)
            case "weekly":
                days = tuple(day for day, box in enumerate(self._day_boxes) if box.isChecked())
                return Weekly(days=days, at=time_of_day) if days else None
            case "monthly":
                return Monthly(day=self._month_day.read(), at=time_of_day)
            case "interval":
                return Interval(minutes=self._minutes.read(), start=self._start)
            case _:
                line = self._cron.read()
                return Cron(line=line) if line else None

    @property
    def preview(self) -> TimingPreview:
        """The next times, or what is wrong."""
        timing = self.timing
        return TimingPreview() if timing is None else preview_timing(timing)

    @property
    def problem(self) -> str:
        """What is wrong, in words; "" if nothing is."""
        if self.timing is None:
            return (
                self.tr("Choose at least one day.")
                if self._kind.read() == "weekly"
                else self.tr("Write a cron line of five fields.")
            )
        problem = self.preview.problem
        return "" if problem is None else translate_sentence(problem)

    def set_timing(self, timing: Timing) -> None:
        """Show a timing, without a signal."""
        time_of_day = timing.at if isinstance(timing, Weekly | Monthly) else _NINE
        moment = timing.at if isinstance(timing, Once) else datetime.now(UTC).astimezone() + timedelta(days=1)
        time_of_day = timing.at.time() if isinstance(timing, Once) else time_of_day
        self._start = timing.start if isinstance(timing, Interval) else now()
        is_daily = isinstance(timing, Weekly) and len(timing.days) == len(_EVERY_DAY)
        self._kind.show("daily" if is_daily else timing.type)
        with QSignalBlocker(self._date), QSignalBlocker(self._time):
            self._date.setDate(QDate(moment.year, moment.month, moment.day))
            self._time.setTime(QTime(time_of_day.hour, time_of_day.minute))
        days = timing.days if isinstance(timing, Weekly) and not is_daily else WEEKDAYS
        for day, box in enumerate(self._day_boxes):
            with QSignalBlocker(box):
                box.setChecked(day in days)
        self._month_day.show(timing.day if isinstance(timing, Monthly) else 1)
        self._minutes.show(timing.minutes if isinstance(timing, Interval) else 60)
        self._cron.show(timing.line if isinstance(timing, Cron) else "")
        self._refresh()

    def first_wrong(self) -> QWidget:
        """Return the control to focus: the wrong one, else the first."""
        kind = self._kind.read()
        wrong = {"cron": self._cron.widget, "weekly": self._day_boxes[0]}
        return wrong.get(kind, self._kind.widget) if self.problem else self._kind.widget

    def _on_changed(self) -> None:
        self._refresh()
        self.changed.emit()

    def _refresh(self) -> None:
        kind = self._kind.read()
        for part, kinds in self._parts.items():
            part.setVisible(kind in kinds)
        preview = self.preview
        words = [self.tr("The next runs:"), *map(moment_words, preview.walls)] if preview.walls else []
        if words != self._previewed and self.isVisible():
            announce(self, "\n".join(words))
        self._previewed = words
        for number, line in enumerate(self._preview):
            text = words[number] if number < len(words) else ""
            line.show_text(text)
            line.setVisible(bool(text))

    def _build(self) -> None:
        self._kind.widget.setAccessibleName(self.tr("How often"))
        self._date.setAccessibleName(self.tr("Day"))
        self._time.setAccessibleName(self.tr("Time"))
        self._month_day.widget.setAccessibleName(self.tr("Day of the month"))
        self._days.setAccessibleName(self.tr("Days of the week"))
        for day, box in enumerate(self._day_boxes):
            box.setAccessibleName(day_name(day))
            box.toggled.connect(self._on_changed)
        for line in self._preview:
            line.setProperty("kind", "muted")
        self._minutes.widget.setAccessibleName(self.tr("Minutes between two runs"))
        self._cron.widget.setAccessibleName(self.tr("Cron line"))
        self._cron.widget.setAccessibleDescription(self.tr("Minute, hour, day, month and weekday."))
        for box in (self._date, self._time):
            SpinBoxFilter(box)
            _show_in_order(box)
        PartFocus(self, self._kind.widget)
        often = hbox(self._kind.widget, end_stretch=True)
        row = hbox(self._month_day.widget, self._date, self._time, spacing=SPACE_S, end_stretch=True)
        more = hbox(self._minutes.widget, end_stretch=True)
        parts = (often, self._days, row, more, self._cron.widget, *self._preview)
        vbox(*parts, parent=self, spacing=SPACE_XS, margins=0)
        for control in (self._kind, self._month_day, self._minutes, self._cron):
            if control.changed is not None:
                control.changed.connect(self._on_changed)
        self._date.dateChanged.connect(self._on_changed)
        self._time.timeChanged.connect(self._on_changed)
