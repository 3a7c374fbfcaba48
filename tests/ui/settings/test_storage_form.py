"""The page of storage: which backup is selected."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from PySide6.QtWidgets import QListWidget, QWidget

from tests.ui.settings.sources import recorded_sources
from ui.bridge.backups import Backup, StoredCounts
from ui.settings.storage_form import StorageSettings
from ui.style.theme import ThemeSource

FIRST = datetime(2026, 3, 1, tzinfo=UTC)


def backup(number, *, is_automatic=False):
    counts = StoredCounts(1, 0, 2)
    return Backup(Path(f"/data/{number}"), FIRST + timedelta(days=number), counts, 2000, is_automatic)


@pytest.mark.parametrize(("is_automatic", "selected"), [(False, "3"), (True, "1")])
def test_a_backup_that_the_program_writes_by_itself_takes_no_selection(qtbot, is_automatic, selected):
    page = StorageSettings(ThemeSource(), QWidget(), recorded_sources().disk, MagicMock())
    qtbot.addWidget(page)
    rows = next(widget for widget in page.findChildren(QListWidget) if widget.accessibleName() == "Backups")
    page.show_backups([backup(2), backup(1)])
    assert rows.currentRow() == 0
    rows.setCurrentRow(1)
    page.show_backups([backup(3, is_automatic=is_automatic), backup(2), backup(1)])
    assert rows.currentItem().toolTip() == f"/data/{selected}"
