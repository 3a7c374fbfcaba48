"""What was decided, newest first, and the chosen one in full."""

from dataclasses import replace
from datetime import UTC, datetime
from unittest.mock import MagicMock

import pytest
import shiboken6
from PySide6.QtCore import Qt
from PySide6.QtGui import QFontInfo, QGuiApplication, QTextCursor, QTextLayout
from PySide6.QtWidgets import QListWidget, QPlainTextEdit, QPushButton

from desktop_agent.types.blocks import Outcome
from desktop_agent.types.permissions import AuditEntry
from tests.ui.drawn_order import from_left, rows_of
from ui.settings.permissions import AuditLogSettings
from ui.style.list_rows import RowRole
from ui.style.theme import ThemeSource

ENTRY = AuditEntry(
    "c",
    "Refactor\u202e the job",
    datetime(2026, 3, 1, 12, tzinfo=UTC),
    "write_file",
    {"path": "a\u202e.txt", "content": "x"},
    ("researcher",),
    "allowed",
    "person",
    "allow_once",
    outcome=Outcome.SUCCEEDED,
)


@pytest.fixture
def form(qtbot):
    settings = AuditLogSettings(ThemeSource(), MagicMock())
    qtbot.addWidget(settings)
    settings.show()
    return settings


def rows(form):
    items = form.findChild(QListWidget)
    return [(items.item(row).text(), items.item(row).data(RowRole.SUBTITLE)) for row in range(items.count())]


def button(form, name):
    return next(candidate for candidate in form.findChildren(QPushButton) if candidate.accessibleName() == name)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "Allowed by you · done"),
        ({"by": "rule"}, "Allowed by a rule · done"),
        ({"by": "mode", "outcome": Outcome.FAILED}, "Allowed by the mode · failed"),
        ({"outcome": Outcome.LIMIT}, "Allowed by you · stopped at a limit"),
        ({"outcome": Outcome.DENIED}, "Allowed by you · denied"),
        ({"by": "default"}, "Allowed without asking: it only reads · done"),
        ({"state": "denied", "outcome": Outcome.DENIED}, "Denied by you ·"),
        ({"state": "denied", "by": "program", "outcome": Outcome.DENIED}, "Denied without asking ·"),
        ({"state": "stopped", "by": "program", "outcome": Outcome.CANCELLED}, "Stopped before it was started ·"),
        ({"state": "waiting", "by": "", "outcome": None}, "Not decided ·"),
    ],
)
def test_each_says_who_decided_and_what_came_of_it(form, changes, words):
    form.show_entries([replace(ENTRY, **changes)], is_all=True)

    ((title, story),) = rows(form)
    assert title.startswith("researcher → Write a file: a⟨U+202E⟩.txt")
    assert story.startswith(words)


def test_nothing_hidden_stays_hidden(form):
    form.show_entries([ENTRY], is_all=True)

    details = form.findChild(QPlainTextEdit).toPlainText()
    assert "\u202e" not in details + "".join(map(str, rows(form)))
    assert '"content": "x"' in details


def test_the_chosen_one_is_shown_in_full(form):
    edited = replace(ENTRY, was_edited=True, reason="A rule wants it.", message="not there", input={"path": "b"})
    form.show_entries([ENTRY, edited], is_all=True)
    form.findChild(QListWidget).setCurrentRow(1)

    details = form.findChild(QPlainTextEdit).toPlainText()
    assert "You edited the arguments." in details
    assert "A rule wants it." in details
    assert "not there" in details


def test_only_the_arguments_are_set_as_code(form):
    form.show_entries([ENTRY], is_all=True)

    details = form.findChild(QPlainTextEdit)
    is_fixed_pitch = {}
    for position in (0, details.toPlainText().index('"content"')):
        cursor = QTextCursor(details.document())
        cursor.setPosition(position + 1)
        is_fixed_pitch[position > 0] = QFontInfo(cursor.charFormat().font()).fixedPitch()
    assert is_fixed_pitch == {False: False, True: True}
    assert details.verticalScrollBar().value() == 0


def test_older_ones_are_asked_for_while_there_are_any(qtbot):
    rules = MagicMock()
    form = AuditLogSettings(ThemeSource(), rules)
    qtbot.addWidget(form)
    form.show()
    form.show_entries([ENTRY], is_all=False)
    qtbot.mouseClick(button(form, "Show older"), Qt.MouseButton.LeftButton)

    rules.read_more.assert_called_once_with()
    form.show_entries([ENTRY, ENTRY], is_all=True)
    assert not button(form, "Show older").isVisible()


def test_without_calls_there_is_nothing_to_export(form):
    assert not button(form, "Export…").isVisible()
    assert rows(form) == []


def test_a_theme_that_changes_after_it_is_gone_finds_nothing_of_it(qtbot):
    themes = ThemeSource()
    form = AuditLogSettings(themes, MagicMock())
    shiboken6.delete(form)
    with qtbot.captureExceptions() as failures:
        themes.changed.emit()
    assert failures == []


def test_letters_from_the_right_reorder_nothing(form):
    form.show_entries([replace(ENTRY, tool="run", agent_path=(), input={"line": "mv א ב > ג"})], is_all=True)
    item = form.findChild(QListWidget).item(0)
    assert item.data(Qt.ItemDataRole.AccessibleTextRole).startswith("run: mv א ב > ג. Allowed")
    layout = QTextLayout(item.text())
    layout.beginLayout()
    layout.createLine().setLineWidth(900)
    layout.endLayout()
    assert from_left(layout) == "run:mvאב>ג"
    details = form.findChild(QPlainTextEdit)
    assert {"run:mvאב>ג", '"line":"mvאב>ג"'} <= set(rows_of(details))
    details.selectAll()
    details.copy()
    assert '"line": "mv א ב > ג"' in QGuiApplication.clipboard().text()
