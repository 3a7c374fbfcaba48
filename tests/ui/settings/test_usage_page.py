"""The page of usage: what is said of cost, tokens and the unknown, the chart and the table by keyboard, the budgets."""

from datetime import date, timedelta
from unittest.mock import MagicMock

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QLabel, QPushButton, QScrollArea, QWidget

from desktop_agent.types.spending import NANOS, BudgetState, UsageFigures, UsageReport, UsageRow
from ui.settings.usage import usage_page as module
from ui.settings.usage.usage_chart import UsageChart, round_up
from ui.settings.usage.usage_page import UsageSettings, by_period, first_day
from ui.settings.usage.usage_table import UsageTable
from ui.style.theme import ThemeSource

TODAY = date(2026, 3, 30)
PRICED = UsageFigures(answers=2, tokens=1_500, input_tokens=1_000, cache_read_tokens=400, cost_nanos=2 * NANOS)
UNPRICED = UsageFigures(answers=1, unpriced=1, tokens=700, input_tokens=700)


@pytest.fixture
def page(qtbot, monkeypatch):
    monkeypatch.setattr(module, "local_today", lambda: TODAY)
    usage_settings = UsageSettings(ThemeSource(), QWidget(), MagicMock())
    qtbot.addWidget(usage_settings)
    usage_settings.resize(560, 900)
    usage_settings.show()
    return usage_settings


def days(**figures):
    return UsageReport(
        "day", tuple(UsageRow(f"2026-03-{day.removeprefix('d')}", figure) for day, figure in figures.items())
    )


def words(page):
    return [label.text() for label in page.findChildren(QLabel) if label.isVisibleTo(page) and label.text()]


def cells(page):
    model = page.findChild(UsageTable).rows
    return [[model.index(row, column).data() for column in range(7)] for row in range(model.rowCount())]


def test_where_no_cost_is_known_the_chart_is_of_tokens_until_somebody_chooses(page):
    measure = next(menu for menu in page.findChildren(QComboBox) if menu.accessibleName() == "In the chart")
    page.show_report(days(d29=UNPRICED))
    assert measure.currentText() == "Tokens"
    assert page.findChild(UsageChart).bars[-2].value == 700
    page.show_report(days(d29=PRICED + UNPRICED))
    assert measure.currentText() == "Cost"
    measure.activated.emit(0)
    page.show_report(days(d29=UNPRICED))
    assert measure.currentText() == "Cost"


def test_what_nobody_knows_is_said_and_is_never_nothing(page):
    page.choose("month", "day", "cost")
    page.show_report(days(d29=UNPRICED))
    assert "Cost not known · 700 tokens" in words(page)
    assert cells(page) == [["29 Mar", "1", "700", "0", "", "700", "not known"]]
    bar = page.findChild(UsageChart).bars[-2]
    assert (bar.value, bar.text) == (None, "29 Mar: not known, 700 tokens")
    page.show_report(days(d29=PRICED + UNPRICED))
    assert "≥ $2.00 · 2,200 tokens" in words(page)
    assert any(line.startswith("Answers whose cost is not known: 1 of 3.") for line in words(page))


def test_days_without_use_are_nothing_in_the_chart_and_not_in_the_table(page):
    page.show_report(days(d28=PRICED, d30=PRICED))
    chart = page.findChild(UsageChart)
    assert len(chart.bars) == 30
    assert [bar.text for bar in chart.bars[-3:]] == [
        "28 Mar: $2.00, 1,500 tokens",
        "29 Mar: nothing",
        "30 Mar: $2.00, 1,500 tokens",
    ]
    assert [row[0] for row in cells(page)] == ["30 Mar", "28 Mar"]
    assert "40 % of what models read came from the cache." in words(page)


def test_the_arrow_keys_read_the_bars(page, qtbot):
    page.show_report(days(d28=PRICED, d30=UNPRICED))
    chart = page.findChild(UsageChart)
    assert chart.accessibleName() == "Cost by day"
    assert "28 Mar: $2.00" in chart.accessibleDescription()
    qtbot.keyClick(chart, Qt.Key.Key_End)
    assert chart.accessibleDescription() == chart.current.text == "30 Mar: not known, 700 tokens"
    qtbot.keyClick(chart, Qt.Key.Key_Left)
    assert chart.accessibleDescription() == "29 Mar: nothing"
    qtbot.keyClick(chart, Qt.Key.Key_Home)
    qtbot.keyClick(chart, Qt.Key.Key_Left)
    assert chart.current is chart.bars[0]


def test_it_asks_for_what_is_chosen_and_shows_no_other_answer(page):
    grouping = next(box for box in page.findChildren(QComboBox) if box.accessibleName() == "Grouped by")
    grouping.setCurrentIndex(grouping.findData("project"))
    assert page._reports.load.call_args.args == ("project", TODAY - timedelta(days=29))
    page.show_report(days(d28=PRICED))
    assert not page.report.rows
    page.show_report(UsageReport("project", (UsageRow("/home/ada/import", PRICED), UsageRow("", UNPRICED))))
    assert [row[0] for row in cells(page)] == ["import", "No folder"]
    assert [bar.title for bar in page.findChild(UsageChart).bars] == ["import", "No folder"]


def test_without_use_there_is_a_sentence_and_no_export(page):
    page.show_report(UsageReport("day"))
    assert "No model was used in this period." in words(page)
    assert not page.findChild(UsageChart).isVisible()


def test_budgets_are_said_with_figures_and_that_money_cannot_hold_without_a_price(page):
    page.show_budgets(
        (BudgetState("day", "cost", 5, 4.1, lacks_prices=True), BudgetState("month", "tokens", 1000, 999))
    )
    assert "Money today: ≥ $4.10 of $5.00 (82 %)\nTokens this month: 999 of 1,000 (99 %)" in words(page)
    assert any("a money budget does not count" in line for line in words(page))
    page.show_budgets((BudgetState("day", "cost", 5, 4.1),))
    assert not any("a money budget does not count" in line for line in words(page))


def test_many_days_become_months_and_many_months_years():
    rows = [UsageRow((TODAY - timedelta(days=days_ago)).isoformat(), PRICED) for days_ago in range(0, 2_000, 10)]
    assert len(by_period(rows, first_day("week", TODAY), TODAY)) == 7
    months = by_period(rows, first_day("year", TODAY), TODAY)
    assert [(title, figures.answers) for title, figures in months] == [
        ("Jan 2026", 6),
        ("Feb 2026", 6),
        ("Mar 2026", 6),
    ]
    years = by_period(rows, None, TODAY)
    assert [title for title, _ in years] == ["2020", "2021", "2022", "2023", "2024", "2025", "2026"]
    assert sum(figures.answers for _, figures in years) == 2 * len(rows)


def test_a_day_of_another_year_and_one_that_cannot_be_read():
    rows = [UsageRow("2025-12-31", PRICED), UsageRow("nonsense", PRICED)]
    periods = by_period(rows, date(2025, 12, 30), TODAY)
    assert periods[0][0] == "Dec 2025"
    assert by_period(rows[1:], None, TODAY) == [("30 Mar", UsageFigures())]


@pytest.mark.parametrize(("highest", "end"), [(0, 1), (0.3, 0.3), (6.05, 8), (9.1, 10), (1_000, 1_000), (4.2e6, 5e6)])
def test_the_scale_ends_at_a_round_number(highest, end):
    assert round_up(highest) == pytest.approx(end)


def test_a_long_table_begins_with_ten_rows_and_never_scrolls_by_itself(qtbot):
    usage_settings = UsageSettings(ThemeSource(), QWidget(), MagicMock())
    page = QScrollArea()
    qtbot.addWidget(page)
    page.setWidgetResizable(True)
    page.setWidget(usage_settings)
    page.resize(560, 400)
    page.show()
    usage_settings.show_report(UsageReport("day", tuple(UsageRow(f"2026-03-{day:02}", PRICED) for day in range(1, 31))))
    table = usage_settings.findChild(UsageTable)
    more = next(button for button in usage_settings.findChildren(QPushButton) if button.text() == "Show all 30 rows")
    assert len(cells(usage_settings)) == 10

    more.click()

    qtbot.waitUntil(lambda: usage_settings.height() > table.height() > page.height())
    assert (len(cells(usage_settings)), more.isVisible(), table.verticalScrollBar().maximum()) == (30, False, 0)
    # The page follows the arrow keys.
    table.setCurrentIndex(table.rows.index(0, 0))
    QTest.keyClick(table, Qt.Key.Key_End, Qt.KeyboardModifier.ControlModifier)
    row = table.visualRect(table.currentIndex())
    assert table.currentIndex().row() == 29
    assert page.viewport().rect().contains(table.viewport().mapTo(page.viewport(), row.center()))
    # An answer is counted meanwhile.
    usage_settings.request()
    usage_settings.show_report(
        UsageReport("day", tuple(UsageRow(f"2026-03-{day:02}", UNPRICED) for day in range(1, 31)))
    )
    assert (len(cells(usage_settings)), cells(usage_settings)[-1][-1], table.currentIndex().row()) == (
        30,
        "not known",
        29,
    )
    usage_settings.choose("week", "day")
    usage_settings.show_report(UsageReport("day", tuple(UsageRow(f"2026-03-{day:02}", PRICED) for day in range(1, 13))))
    assert (len(cells(usage_settings)), more.text()) == (10, "Show all 12 rows")
