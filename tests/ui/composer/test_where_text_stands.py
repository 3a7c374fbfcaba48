"""Where words stand in the composer: whole lines, and all of them at one left edge."""

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QLabel, QPlainTextEdit

from desktop_agent.conversation.picture_preparation import import_picture_async
from desktop_agent.types.engine_events import QuestionAsked
from ui.composer.composer import Composer
from ui.composer.message_editor import MessageEditor
from ui.composer.question_card import QuestionCard
from ui.style.theme import ReadingStyle, ThemeSource


@pytest.fixture
def themes(qapp):
    return ThemeSource()


@pytest.fixture
def composer(themes, qtbot):
    new_composer = Composer(themes, import_picture_async)
    qtbot.addWidget(new_composer)
    new_composer.resize(600, 400)
    new_composer.show()
    return new_composer


@pytest.mark.parametrize("is_compact", [False, True])
def test_only_whole_lines_are_seen_wherever_it_is_scrolled(themes, composer, is_compact):
    themes.set_reading_style(ReadingStyle(is_compact=is_compact))
    editor = composer.editor
    editor.setPlainText("\n".join(f"Line {number}" for number in range(40)))
    line = round(editor.blockBoundingRect(editor.document().firstBlock()).height())
    for place in (0, 7, editor.verticalScrollBar().maximum()):
        editor.verticalScrollBar().setValue(place)
        assert editor.viewport().height() == 10 * line + 1
        assert editor.cursorForPosition(QPoint(2, 2)).blockNumber() == place
        assert editor.cursorForPosition(QPoint(2, 10 * line - 2)).blockNumber() == place + 9


def test_it_has_its_height_again_after_it_had_no_room_beside_its_scroll_bar(themes, qtbot):
    editor = MessageEditor(themes)
    qtbot.addWidget(editor)
    editor.setPlainText("word " * 60)
    editor.show()
    editor.resize(200, editor.height())
    height = editor.height()
    for width in range(200, 0, -1):
        editor.resize(width, editor.height())
    editor.resize(200, editor.height())
    assert editor.height() == height


def test_remarks_begin_where_the_text_begins(composer):
    (notice,) = [label for label in composer.findChildren(QLabel) if label.property("kind") == "warning"]
    notice.setText("It is scaled down.")
    notice.show()
    composer.layout().activate()
    text = composer.editor.viewport().mapTo(composer, QPoint(0, 0)).x()
    assert notice.mapTo(composer, notice.contentsRect().topLeft()).x() == text


def test_the_field_of_a_question_begins_where_the_question_does(themes, qtbot):
    card = QuestionCard(themes)
    qtbot.addWidget(card)
    card.resize(500, 300)
    card.show_questions([QuestionAsked("q", "Which?", ("This", "That"), several=False, free_text=True)])
    card.show()
    (question,) = [label for label in card.findChildren(QLabel) if label.text() == "Which?"]
    field = card.findChild(QPlainTextEdit)
    qtbot.waitUntil(lambda: field.width() > 300)
    assert field.mapTo(card, QPoint(0, 0)).x() == question.mapTo(card, QPoint(0, 0)).x()
