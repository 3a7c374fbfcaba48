"""The frame of a conversation, before there is one."""

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDropEvent, QImage
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QWidget

from desktop_agent.conversation.history import ConversationUsage
from desktop_agent.types.errors import Sentence
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.provider_events import Usage
from ui.composer.file_drops import FileDrops
from ui.shell.context_usage import UsageMeter
from ui.shell.layout import PageFrame
from ui.style.boxes import vbox
from ui.style.controls import IconButton
from ui.style.style_sheet import style_sheet
from ui.style.theme import ThemeSource


def test_what_is_wrong_with_a_picture_is_said_before_there_is_a_conversation(qtbot):
    frame = PageFrame(ThemeSource())
    qtbot.addWidget(frame)
    frame.show()
    frame.composer.attachments.problem.emit(Sentence("The picture is damaged."), Sentence("Take another."))
    words = "\n".join(label.text() for label in frame.composer.findChildren(QLabel) if label.isVisible())
    assert "The picture is damaged." in words
    assert "Take another." in words


def test_files_of_other_programs_can_be_dropped_anywhere_on_the_page(qtbot, tmp_path):
    frame = PageFrame(ThemeSource())
    FileDrops(frame, frame.composer)
    qtbot.addWidget(frame)
    frame.resize(600, 500)
    frame.show()
    qtbot.waitUntil(lambda: frame.composer.mapTo(frame, QPoint(0, 0)).y() > 300)
    [hint] = [label for label in frame.findChildren(QLabel) if label.text() == "Drop to attach"]
    attached = []
    frame.composer.editor.files_inserted.disconnect()
    frame.composer.editor.files_inserted.connect(attached.append)
    data = QMimeData()
    data.setText("a word")
    assert not drag(QDragEnterEvent, frame, data).isAccepted()
    assert drag(QDragEnterEvent, frame.composer.editor.viewport(), data).isAccepted()
    assert not hint.isVisible()
    data.setUrls([QUrl.fromLocalFile(str(tmp_path / "notes.txt"))])
    for target in (frame, frame.composer, frame.composer.editor.viewport(), frame):
        assert drag(QDragEnterEvent, target, data).isAccepted()
        assert hint.isVisible()
        middle = frame.composer.mapTo(frame, frame.composer.rect().center())
        assert frame.childAt(middle) is hint
        QApplication.sendEvent(frame, QDragLeaveEvent())
        assert not hint.isVisible()
    drag(QDragEnterEvent, frame, data)
    assert drag(QDropEvent, frame, data).isAccepted()
    assert not hint.isVisible()
    assert attached == [[tmp_path / "notes.txt"]]
    assert frame.window().focusWidget() is frame.composer.editor


@pytest.mark.parametrize("url", [QUrl.fromLocalFile("/notes.txt"), QUrl("https://garden.example/roses")])
def test_what_is_dropped_is_copied_and_never_moved_away(qtbot, url):
    frame = PageFrame(ThemeSource())
    FileDrops(frame, frame.composer)
    qtbot.addWidget(frame)
    frame.show()
    frame.composer.editor.files_inserted.disconnect()
    data = QMimeData()
    data.setUrls([url])
    both, move = Qt.DropAction.CopyAction | Qt.DropAction.MoveAction, Qt.DropAction.MoveAction
    for actions, expected in ((both, Qt.DropAction.CopyAction), (move, move)):
        for kind in (QDragEnterEvent, QDropEvent):
            # With Shift, moving is proposed, as it is by some programs without it.
            event = drag(kind, frame, data, actions, Qt.KeyboardModifier.ShiftModifier)
            assert (event.isAccepted(), event.dropAction()) == (True, expected)


def test_what_is_written_and_not_attached_is_not_said_to_be_attached(qtbot):
    frame = PageFrame(ThemeSource())
    FileDrops(frame, frame.composer)
    qtbot.addWidget(frame)
    frame.show()
    [hint] = [label for label in frame.findChildren(QLabel) if label.text() == "Drop to attach"]
    link, table = QMimeData(), QMimeData()
    link.setUrls([QUrl("https://garden.example/roses")])
    table.setText("roses\t3")
    table.setImageData(QImage(4, 4, QImage.Format.Format_RGB32))
    for data in (link, table):
        assert drag(QDragEnterEvent, frame.composer.editor.viewport(), data).isAccepted()
        assert not hint.isVisible()
        drag(QDragEnterEvent, frame, data)
        assert not hint.isVisible()
        drag(QDropEvent, frame, data)
    assert frame.composer.editor.toPlainText() == "https://garden.example/rosesroses\t3"


def test_links_that_are_dropped_on_the_page_stand_in_lines_of_their_own(qtbot):
    frame = PageFrame(ThemeSource())
    FileDrops(frame, frame.composer)
    qtbot.addWidget(frame)
    frame.show()
    editor, data = frame.composer.editor, QMimeData()
    data.setUrls([QUrl("https://garden.example/roses")])
    frame.composer.set_draft("Read this:")
    for _ in range(2):
        drag(QDragEnterEvent, frame, data)
        drag(QDropEvent, frame, data)
    assert editor.toPlainText() == "Read this:\nhttps://garden.example/roses\nhttps://garden.example/roses"
    editor.undo()
    assert editor.toPlainText() == "Read this:\nhttps://garden.example/roses"


def drag(kind, frame, data, actions=Qt.DropAction.CopyAction, keys=Qt.KeyboardModifier.NoModifier):
    position = QPointF(50, 50) if kind is QDropEvent else QPoint(50, 50)
    event = kind(position, actions, data, Qt.MouseButton.LeftButton, keys)
    QApplication.sendEvent(frame, event)
    return event


def test_what_is_said_is_scrolled_into_view_until_one_goes_on_writing(qtbot):
    frame = PageFrame(ThemeSource())
    qtbot.addWidget(frame)
    frame.resize(320, 260)
    frame.show()
    scroll_area, composer = frame._composer_scroll, frame.composer
    composer.show_problem(Sentence("The picture is damaged. " * 12))
    problems = composer._problems
    bar = scroll_area.verticalScrollBar()
    qtbot.waitUntil(
        lambda: bar.maximum() > 0 and problems.mapTo(scroll_area.viewport(), problems.rect().topLeft()).y() == 0
    )
    composer.set_draft("a\n" * 8)
    composer.show_problem(Sentence("The picture is damaged. " * 12))
    qtbot.waitUntil(lambda: problems.mapTo(scroll_area.viewport(), problems.rect().topLeft()).y() == 0)
    composer.editor.insertPlainText("b")
    qtbot.waitUntil(lambda: bar.value() == bar.maximum())


def test_what_the_figures_leave_is_the_title_s(qtbot):
    frame, meter = PageFrame(ThemeSource()), UsageMeter()
    qtbot.addWidget(frame)
    frame.set_content(meter, QWidget(), QWidget())
    used = Usage(input_tokens=48_000, output_tokens=2_400, cache_read_tokens=39_840, total_tokens=50_400, cost=0.42)
    meter.show_usage(used, ConversationUsage(lambda: [Message(role=Role.ASSISTANT, usage=used)]), 200_000)
    frame.resize(340, 300)
    frame.show()
    frame.title.show_text("A short word about the weather of tomorrow")
    qtbot.waitUntil(lambda: "tokens" not in meter.text())
    qtbot.waitUntil(lambda: meter.width() == meter.sizeHint().width())
    qtbot.waitUntil(lambda: frame.title.geometry().right() + 20 > meter.geometry().left())
    frame.resize(900, 300)
    qtbot.waitUntil(lambda: "tokens" in meter.text())


def test_the_composer_is_painted_without_the_focus_once_something_else_has_it(qtbot):
    window = QWidget()
    qtbot.addWidget(window)
    other, frame = QLineEdit(), PageFrame(ThemeSource())
    vbox(other, frame, parent=window)
    frame.set_content(UsageMeter(), QWidget(), QWidget())
    assert frame.composer.frame.property("focused") == "true"
    window.show()
    other.setFocus()
    qtbot.waitUntil(other.hasFocus)
    assert frame.composer.frame.property("focused") == "false"


@pytest.mark.parametrize("zoom", [100, 200])
def test_the_heading_is_as_high_before_the_figures_as_with_them(qtbot, zoom):
    themes = ThemeSource()
    themes.use(themes.theme, zoom)
    frame, meter, transcript = PageFrame(themes), UsageMeter(), QWidget()
    qtbot.addWidget(frame)
    frame.setStyleSheet(style_sheet(themes.theme, zoom))
    frame.set_content(meter, QWidget(), transcript)
    frame.resize(900, 600)
    frame.title.show_text("Tides")
    with qtbot.waitExposed(frame):
        frame.show()
    top = transcript.y()
    used = Usage(total_tokens=160)
    meter.show_usage(used, ConversationUsage(lambda: [Message(role=Role.ASSISTANT, usage=used)]), None)
    qtbot.waitUntil(lambda: meter.width() == meter.sizeHint().width())
    assert transcript.y() == top


def test_the_figures_leave_the_buttons_before_the_title_as_high_as_they_are(qtbot):
    themes = ThemeSource()
    frame, meter, button = PageFrame(themes), UsageMeter(), IconButton(themes, "sidebar", "Open")
    qtbot.addWidget(frame)
    frame.setStyleSheet(style_sheet(themes.theme))
    frame.add_before_title(button)
    frame.set_content(meter, QWidget(), QWidget())
    frame.resize(640, 400)
    frame.show()
    qtbot.waitUntil(lambda: button.height() >= button.sizeHint().height())
    used = Usage(total_tokens=160)
    meter.show_usage(used, ConversationUsage(lambda: [Message(role=Role.ASSISTANT, usage=used)]), None)
    qtbot.waitUntil(lambda: meter.width() == meter.sizeHint().width())
    assert button.height() >= button.sizeHint().height()
