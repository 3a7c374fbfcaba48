"""The frame of a conversation, before there is one."""

from PySide6.QtWidgets import QLabel

from desktop_agent.vocabulary.errors import Sentence
from ui.look.theme import ThemeSource
from ui.shell.page_frame import PageFrame


def test_what_is_wrong_with_a_picture_is_said_before_there_is_a_conversation(qtbot):
    frame = PageFrame(ThemeSource())
    qtbot.addWidget(frame)
    frame.show()
    frame.composer.attachments.problem.emit(Sentence("The picture is damaged."), Sentence("Take another."))
    words = "\n".join(each.text() for each in frame.composer.findChildren(QLabel) if each.isVisible())
    assert "The picture is damaged." in words
    assert "Take another." in words


def test_what_is_said_is_scrolled_into_view_until_one_goes_on_writing(qtbot):
    frame = PageFrame(ThemeSource())
    qtbot.addWidget(frame)
    frame.resize(320, 260)
    frame.show()
    shown, composer = frame._written, frame.composer
    composer.show_problem(Sentence("The picture is damaged. " * 12))
    problems = composer._problems
    bar = shown.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0 and problems.mapTo(shown.viewport(), problems.rect().topLeft()).y() == 0)
    composer.set_draft("a\n" * 8)
    composer.show_problem(Sentence("The picture is damaged. " * 12))
    qtbot.waitUntil(lambda: problems.mapTo(shown.viewport(), problems.rect().topLeft()).y() == 0)
    composer.editor.insertPlainText("b")
    qtbot.waitUntil(lambda: bar.value() == bar.maximum())
