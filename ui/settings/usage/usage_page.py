"""The page of usage: figures, a chart and a table for a span of days, and the budgets."""

from collections.abc import Sequence
from datetime import date, timedelta
from itertools import groupby
from typing import Literal

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QWidget

from desktop_agent.types.errors import Sentence
from desktop_agent.types.messages import now
from desktop_agent.types.spending import NO_USAGE, BudgetState, UsageFigures, UsageGrouping, UsageReport, UsageRow
from ui.bridge.settings import UsageReports
from ui.settings.usage.usage_chart import Bar, UsageChart
from ui.settings.usage.usage_table import FIRST_ROWS, UsageTable
from ui.settings.usage.usage_text import (
    budget_figures,
    budget_title,
    cache_text,
    cost_text,
    month_title,
    parse_day,
    row_title,
    tokens_text,
)
from ui.style.boxes import hbox, vbox
from ui.style.controls import button, label, show_words
from ui.style.layouts import FlowRows
from ui.style.server_fields import Status, StatusLine
from ui.style.text import format_count, format_dollars, format_number, labelled
from ui.style.text_display import format_day
from ui.style.theme import SPACE_L, SPACE_M, SPACE_S, ThemeSource
from ui.style.widgets import ComboBox

UsageSpan = Literal["week", "month", "year", "all"]
UsageMeasure = Literal["cost", "tokens"]
_MAX_DAYS, _MAX_MONTHS = 62, 36
"""With more days than this, the bars stand for months; with more months, for years."""


def first_day(span: UsageSpan, today: date) -> date | None:
    """Return the first day of a span that ends today; None if it has none."""
    match span:
        case "week":
            return today - timedelta(days=6)
        case "month":
            return today - timedelta(days=29)
        case "year":
            return today.replace(month=1, day=1)
        case "all":
            return None


def local_today() -> date:
    """Return today in the person's time zone."""
    return now().astimezone().date()


class UsageSettings(QWidget):
    """Tokens and cost for a span, by day, model or project; the cache; what is unknown; budgets; an export."""

    export_requested = Signal()

    def __init__(self, themes: ThemeSource, form: QWidget, reports: UsageReports) -> None:
        super().__init__()
        self._reports = reports
        self.report = UsageReport("day")
        self._span = _choices(
            self.tr("Time"),
            (self.tr("7 days"), "week"),
            (self.tr("30 days"), "month"),
            (self.tr("This year"), "year"),
            (self.tr("All time"), "all"),
        )
        self._grouping = _choices(
            self.tr("Grouped by"),
            (self.tr("By day"), "day"),
            (self.tr("By model"), "model"),
            (self.tr("By workspace folder"), "project"),
        )
        self._measure = _choices(self.tr("In the chart"), (self.tr("Cost"), "cost"), (self.tr("Tokens"), "tokens"))
        self._export = button(self.tr("Export as CSV…"), self.export_requested.emit)
        self._total = label(kind="title", wrap=True)
        self._cache = label(kind="muted", wrap=True)
        self._unknown = label(kind="muted", wrap=True)
        self._none = label(self.tr("No model was used in this period."), "muted", wrap=True)
        self._chart = UsageChart(themes)
        self._table = UsageTable(themes)
        self._all_rows = button("", self._show_all_rows, "edge-link")
        self._is_whole = False
        self._is_measure_chosen = False
        self._state = StatusLine(themes)
        self._budgets = label(wrap=True)
        self._unpriced_note = label(
            self.tr(
                "This includes answers of models without a price: a money budget does not count those. A token "
                "budget does."
            ),
            "warning",
            wrap=True,
        )
        self._total.setAccessibleDescription(self.tr("Total"))
        self._span.setCurrentIndex(1)
        self._build(form)
        for box in (self._span, self._grouping):
            box.currentIndexChanged.connect(self._on_chosen)
        self._measure.currentIndexChanged.connect(self._show)
        self._measure.activated.connect(self._on_measure_chosen)
        self.show_budgets(())
        self._show()
        self._connect(reports)

    def _connect(self, reports: UsageReports) -> None:
        reports.loaded.connect(self.show_report)
        reports.budgets_changed.connect(self.show_budgets)
        reports.exported.connect(self.show_result)
        reports.counted.connect(self._on_counted)

    def refresh(self) -> None:
        """Show what was used until now."""
        self._reports.load_budgets()
        self._on_counted()

    def _on_counted(self) -> None:
        if self.isVisible():
            self.request()

    @property
    def span(self) -> UsageSpan:
        return self._span.currentData()

    @property
    def grouping(self) -> UsageGrouping:
        return self._grouping.currentData()

    def request(self) -> None:
        """Request the report of the current choices."""
        self._reports.load(self.grouping, first_day(self.span, local_today()))

    def choose(self, span: UsageSpan, grouping: UsageGrouping, measure: UsageMeasure | None = None) -> None:
        """Set the choices, and request their report."""
        _select(self._span, span)
        _select(self._grouping, grouping)
        if measure is not None:
            _select(self._measure, measure)
            self._on_measure_chosen()
        self._on_chosen()

    def show_report(self, report: UsageReport) -> None:
        """Show a report, unless another grouping is chosen by now."""
        if report.grouping == self.grouping:
            self.report = report
            if not self._is_measure_chosen:
                # Models on this computer have no price: a chart of their cost would be empty.
                _select(self._measure, "tokens" if report.rows and report.total.cost is None else "cost")
            self._show()

    def show_budgets(self, states: Sequence[BudgetState]) -> None:
        """Show how much of each budget is used."""
        show_words(self._budgets, "\n".join(labelled(budget_title(state), budget_figures(state)) for state in states))
        self._unpriced_note.setVisible(any(state.lacks_prices for state in states))

    def show_result(self, result: Sentence | str) -> None:
        """Show that the export is done; "" hides it."""
        self._state.show_state(Status.OK, result)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.show_result("")
        self._on_chosen()

    def _on_measure_chosen(self, *_: object) -> None:
        self._is_measure_chosen = True

    def _on_chosen(self, *_: object) -> None:
        self._is_whole = False
        self.request()

    def _show(self, *_: object) -> None:
        report, today = self.report, local_today()
        total = report.total
        is_empty = not report.rows
        for widget in (self._total, self._chart, self._table):
            widget.setVisible(not is_empty)
        self._export.setEnabled(not is_empty)
        self._none.setVisible(is_empty)
        self._cache.setVisible(bool(cache_text(total)))
        self._unknown.setVisible(total.unpriced > 0)
        figures = (cost_text(total), self.tr("{0} tokens").format(tokens_text(total)))
        if total.cost is None:
            figures = (self.tr("Cost not known"), figures[1])
        self._total.setText(" · ".join(figures))
        self._cache.setText(self._cache_words(total))
        self._unknown.setText(self._unknown_words(total))
        self._chart.show_bars(
            self._chart_title(), self._bars(today), self._axis_text, is_lying=report.grouping != "day"
        )
        self._show_table(today)

    def _show_table(self, today: date) -> None:
        count = len(self.report.rows)
        self._table.show_report(self.report, today, is_whole=self._is_whole)
        self._all_rows.setText(self.tr("Show all {0} rows").format(format_number(count)))
        self._all_rows.setAccessibleName(self._all_rows.text())
        self._all_rows.setVisible(count > FIRST_ROWS and not self._is_whole)

    def _show_all_rows(self) -> None:
        self._is_whole = True
        self._show_table(local_today())
        self._table.setFocus()

    def _cache_words(self, total: UsageFigures) -> str:
        words = self.tr("{0} of what models read came from the cache.").format(cache_text(total))
        if total.saved_nanos <= 0:
            return words
        return self.tr("{0} That saved {1}.").format(words, format_dollars(total.saved_nanos / 1_000_000_000))

    def _unknown_words(self, total: UsageFigures) -> str:
        words = self.tr("Answers whose cost is not known: {0} of {1}. You can set prices on the page Models.")
        return words.format(format_number(total.unpriced), format_number(total.answers))

    @property
    def _shows_cost(self) -> bool:
        return self._measure.currentData() == "cost"

    def _axis_text(self, value: float) -> str:
        return format_dollars(value) if self._shows_cost else format_count(round(value))

    def _chart_title(self) -> str:
        titles = {
            ("day", True): self.tr("Cost by day"),
            ("day", False): self.tr("Tokens by day"),
            ("model", True): self.tr("Cost by model"),
            ("model", False): self.tr("Tokens by model"),
            ("project", True): self.tr("Cost by workspace folder"),
            ("project", False): self.tr("Tokens by workspace folder"),
        }
        return titles[self.report.grouping, self._shows_cost]

    def _bars(self, today: date) -> list[Bar]:
        if self.report.grouping == "day":
            periods = by_period(self.report.rows, first_day(self.span, today), today)
        else:
            periods = [(row_title(self.report.grouping, row.key, today), row.figures) for row in self.report.rows]
        bars = [self._bar(title, figures) for title, figures in periods]
        return bars if self.report.grouping == "day" else sorted(bars, key=lambda bar: -(bar.value or 0.0))

    def _bar(self, title: str, figures: UsageFigures) -> Bar:
        nothing = figures == NO_USAGE
        cost, tokens = ("–", "–") if nothing else (cost_text(figures), tokens_text(figures))
        if self._shows_cost:
            value, figure = (0.0 if nothing else figures.cost), cost
        else:
            known = figures.known_tokens
            value, figure = (0.0 if nothing else None if known is None else float(known)), tokens
        text = self.tr("{0}: nothing") if nothing else self.tr("{0}: {1}, {2} tokens")
        return Bar(title, value, figure, text.format(title, cost, tokens))

    def _build(self, form: QWidget) -> None:
        about = self.tr(
            "Every answer counts, also those of specialists, summaries, titles and MCP servers. Deleting a "
            "conversation does not change the counts. Days follow the clock of this computer."
        )
        about_budgets = self.tr(
            "For all conversations together, in every window on this data folder. At 80 % you are warned. At 100 % "
            "no model is asked any more, until you raise the budget or the day or month is over. “Ask anyway” makes "
            "one exception."
        )
        vbox(
            label(about, "muted", wrap=True),
            FlowRows((self._span, self._grouping, self._measure, self._export)),
            vbox(self._total, self._cache, self._unknown, spacing=SPACE_S, margins=0),
            self._none,
            self._chart,
            self._table,
            FlowRows((self._all_rows,)),
            self._state,
            hbox(label(self.tr("Budgets"), "heading"), margins=(0, SPACE_L, 0, 0)),
            label(about_budgets, "muted", wrap=True),
            self._budgets,
            self._unpriced_note,
            form,
            parent=self,
            spacing=SPACE_M,
            margins=0,
            end_stretch=True,
        )


def _select(box: ComboBox, value: str) -> None:
    with QSignalBlocker(box):
        box.setCurrentIndex(box.findData(value))


def _choices(name: str, *choices: tuple[str, str]) -> ComboBox:
    box = ComboBox()
    for words, value in choices:
        box.addItem(words, value)
    box.setAccessibleName(name)
    return box


def by_period(rows: Sequence[UsageRow], since: date | None, today: date) -> list[tuple[str, UsageFigures]]:
    """Return every day from the first to today, also days without usage; or, for long spans, every month or year."""
    used = {day: row.figures for row in rows if (day := parse_day(row.key)) is not None}
    first, last = since or min(used, default=today), max(today, max(used, default=today))
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    if len(days) <= _MAX_DAYS:
        return [(format_day(day, today), used.get(day, NO_USAGE)) for day in days]
    months = [(month, list(group)) for month, group in groupby(days, key=lambda day: day.replace(day=1))]
    if len(months) <= _MAX_MONTHS:
        return [(month_title(month), _sum_of(group, used)) for month, group in months]
    years = groupby(days, key=lambda day: day.year)
    return [(str(year), _sum_of(group, used)) for year, group in ((year, list(group)) for year, group in years)]


def _sum_of(days: Sequence[date], used: dict[date, UsageFigures]) -> UsageFigures:
    return sum((used[day] for day in days if day in used), NO_USAGE)
