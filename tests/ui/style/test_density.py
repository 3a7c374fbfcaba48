"""Compact: lists, the sidebar and the composer take less room, and all of it comes back."""

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from PySide6.QtWidgets import QListView

from desktop_agent.conversation.picture_preparation import import_picture_async
from ui.composer.composer import Composer
from ui.sidebar.conversation_list import ConversationList
from ui.style.theme import ReadingStyle, ThemeSource


@dataclass
class Record:
    id: str
    title: str
    updated_at: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    is_pinned: bool = False
    tags: tuple[str, ...] = ()


@pytest.fixture
def themes(qapp):
    return ThemeSource()


def measured(themes, measure):
    """Comfortable, compact, and comfortable again."""
    found = [measure()]
    for reading in (ReadingStyle(is_compact=True), ReadingStyle()):
        themes.set_reading_style(reading)
        found.append(measure())
    return found


def test_the_sidebar(themes, qtbot):
    pane = ConversationList(themes)
    qtbot.addWidget(pane)
    pane.resize(240, 500)
    pane.show()
    pane.set_conversations([Record(str(number), f"Title {number}") for number in range(4)])
    rows = pane.findChild(QListView)

    def measure():
        pane.layout().activate()
        return rows.visualRect(rows.model().index(1, 0)).height(), rows.geometry().top()

    (height, top), (compact_height, compact_top), after = measured(themes, measure)
    assert (compact_height, compact_top < top) == (height - 8, True)
    assert after == (height, top)


def test_the_composer(themes, qtbot):
    composer = Composer(themes, import_picture_async)
    qtbot.addWidget(composer)
    composer.show()
    editor = composer.editor

    def measure():
        for each in (editor.parentWidget(), composer):
            each.layout().invalidate()
            each.layout().activate()
        return editor.height(), composer.sizeHint().height() - editor.height()

    (height, around), (compact_height, compact_around), after = measured(themes, measure)
    assert (compact_height, compact_around) == (height - 12, around - 8)
    assert after == (height, around)
