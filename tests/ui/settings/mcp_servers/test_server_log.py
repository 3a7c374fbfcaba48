"""The log follows its end until somebody reads, stays bounded, and does no more work than it must."""

from datetime import UTC, datetime

import pytest
from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QComboBox, QListView, QPlainTextEdit

from desktop_agent.types.mcp import McpLogLine
from ui.settings.mcp_servers.server_log import MAX_LINES, LogDelegate, LogFilter, LogModel, LogPane
from ui.style.theme import ThemeSource

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def lines(first, count, level=""):
    return [McpLogLine(AT, level, f"line {number}") for number in range(first, first + count)]


@pytest.fixture
def pane(qtbot):
    log_pane = LogPane(ThemeSource(), "Own")
    qtbot.addWidget(log_pane)
    log_pane.resize(500, 400)
    log_pane.show()
    return log_pane


def view_of(pane):
    return pane.findChild(QListView)


def first_seen(pane):
    QCoreApplication.sendPostedEvents()
    return view_of(pane).indexAt(view_of(pane).viewport().rect().topLeft()).data()


def test_it_follows_the_end_until_somebody_reads(pane):
    bar = view_of(pane).verticalScrollBar()
    pane.show_lines(lines(0, 100))
    assert bar.value() == bar.maximum() > 0
    pane.add_lines(lines(100, 50))
    assert bar.value() == bar.maximum()
    bar.setValue(20)
    reading = first_seen(pane)
    pane.add_lines(lines(150, 50))
    assert first_seen(pane) == reading
    bar.setValue(bar.maximum())
    pane.add_lines(lines(200, 50))
    assert bar.value() == bar.maximum()


def test_what_is_read_stays_though_lines_go_above_it(pane):
    pane.show_lines(lines(0, MAX_LINES))
    view_of(pane).verticalScrollBar().setValue(500)
    reading = first_seen(pane)
    pane.add_lines(lines(MAX_LINES, 30))
    assert pane.model.rowCount() == MAX_LINES
    assert first_seen(pane) == reading


def test_a_flood_lays_out_and_paints_what_is_seen_and_no_more(pane, monkeypatch):
    rows_asked, measurements = [], []
    size = LogDelegate.sizeHint
    monkeypatch.setattr(LogDelegate, "sizeHint", lambda *args: (measurements.append(1), size(*args))[1])
    view_of(pane).setItemDelegate(LogDelegate(ThemeSource(), pane))
    pane.show_lines(lines(0, MAX_LINES))
    data = pane.model.data

    def counted(index, role=Qt.ItemDataRole.DisplayRole):
        rows_asked.append(index.row())
        return data(index, role)

    pane.model.data = counted
    long_lines = [McpLogLine(AT, "info", "x" * 2_000) for _ in range(MAX_LINES)]
    pane.add_lines(long_lines)
    pane.grab()
    assert 0 < len(set(rows_asked)) < 40
    assert len(rows_asked) < 1_000
    assert 0 < len(measurements) < 20


@pytest.mark.parametrize(
    ("log_filter", "levels"),
    [
        (LogFilter.ALL, ["", "debug", "info", "notice", "warning", "error", "emergency", "odd"]),
        (LogFilter.INFO, ["info", "notice", "warning", "error", "emergency", "odd"]),
        (LogFilter.WARNINGS, ["warning", "error", "emergency"]),
        (LogFilter.ERRORS, ["error", "emergency"]),
        (LogFilter.WRITTEN, [""]),
    ],
)
def test_a_filter_shows_its_levels(log_filter, levels):
    rows = LogModel()
    rows.set_filter(log_filter)
    all_levels = ("", "debug", "info", "notice", "warning", "error", "emergency", "odd")
    rows.add([McpLogLine(AT, level, "x") for level in all_levels])
    assert [line.level for line in rows.lines()] == levels


def test_it_is_bounded_whatever_is_shown(qtmodeltester):
    rows = LogModel()
    rows.set_filter(LogFilter.ERRORS)
    qtmodeltester.check(rows)
    for turn in range(30):
        rows.add([*lines(0, 90, "info"), *lines(turn, 1, "error")])
    assert rows.rowCount() == 11
    rows.set_filter(LogFilter.ALL)
    assert rows.rowCount() == MAX_LINES
    rows.add(lines(0, 5_000))
    assert rows.rowCount() == MAX_LINES
    assert rows.lines()[-1].text == "line 4999"


def test_chosen_lines_are_copied_or_all_that_are_shown(pane, qtbot):
    pane.show_lines([*lines(0, 2), *lines(2, 1, "error")])
    pane.copy()
    assert [line[9:] for line in QGuiApplication.clipboard().text().split("\n")] == [
        "line 0",
        "line 1",
        "[error] line 2",
    ]
    view_of(pane).setCurrentIndex(pane.model.index(1))
    view_of(pane).setFocus()
    qtbot.keyClick(view_of(pane), Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    pane.copy()
    assert QGuiApplication.clipboard().text().endswith(" line 1")
    details = pane.findChild(QPlainTextEdit)
    assert details.isVisible()
    assert details.toPlainText().endswith("line 1")


def test_the_filter_is_a_choice_of_the_person(pane):
    pane.show_lines([*lines(0, 2), *lines(2, 1, "error")])
    choice = pane.findChild(QComboBox)
    choice.setCurrentIndex(choice.findText("Errors"))
    choice.activated.emit(choice.currentIndex())
    assert [line.text for line in pane.model.lines()] == ["line 2"]
