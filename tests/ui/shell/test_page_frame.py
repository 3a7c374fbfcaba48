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
