import asyncio
import io
import threading
from pathlib import Path

import pytest
from PIL import Image
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDragMoveEvent, QDropEvent, QImage, QInputMethodEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QFileDialog,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QToolButton,
    QWidget,
)
from shiboken6 import delete

from desktop_agent.conversation.picture_preparation import import_picture_async
from desktop_agent.types.errors import ImageRefused, Sentence
from desktop_agent.types.messages import AttachedText
from desktop_agent.types.tool_calls import UntrustedSource
from tests.fakes.qt_loop import until
from tests.frame.patience import PATIENCE
from ui.bridge.event_loop import EventLoop
from ui.composer import attachments
from ui.composer.attachment_chips import AttachmentChip, PastedText
from ui.composer.attachment_items import (
    AttachmentFetch,
    FetchResult,
    PendingPicture,
    ServerPicture,
    estimated_tokens,
    thumbnail,
)
from ui.composer.composer import Composer
from ui.composer.message_editor import MAX_TEXT_LENGTH
from ui.style.boxes import vbox
from ui.style.theme import ThemeSource


def png(width=40, height=30, colour="red"):
    target = io.BytesIO()
    Image.new("RGB", (width, height), colour).save(target, "PNG")
    return target.getvalue()


@pytest.fixture
def run(qapp):
    """Return a function that runs a coroutine on Qt's loop."""
    qapp.setQuitOnLastWindowClosed(False)
    loop = EventLoop(qapp)
    asyncio.set_event_loop(loop)
    with loop:
        yield loop.run_until_complete
    asyncio.set_event_loop(None)


class Driver:
    def __init__(self, qtbot, intake=import_picture_async):
        self.bot = qtbot
        self.composer = Composer(ThemeSource(), intake)
        self.composer.resize(600, 200)
        qtbot.addWidget(self.composer)
        self.composer.show()
        self.sent, self.stops, self.edits = [], [], []
        self.composer.send_requested.connect(lambda text, pictures: self.sent.append((text, pictures)))
        self.composer.stop_requested.connect(lambda: self.stops.append(1))
        self.composer.editor.edit_last_pressed.connect(lambda: self.edits.append(1))
        self.editor = self.part(QPlainTextEdit, "Message")

    def part(self, kind, name):
        return next(widget for widget in self.composer.findChildren(kind) if widget.accessibleName() == name)

    @property
    def chips(self):
        return {chip.accessibleName(): chip for chip in self.composer.findChildren(AttachmentChip) if chip.isVisible()}

    @property
    def words(self):
        return " ".join(label.text() for label in self.composer.findChildren(QLabel) if label.isVisible())

    @property
    def problems(self):
        """Return the problems that the composer shows."""
        label = self.composer._problems
        return label.text().split("\n") if label.isVisible() else []

    def type(self, text):
        self.bot.keyClicks(self.editor, text)

    def key(self, key, modifiers=Qt.KeyboardModifier.NoModifier):
        self.bot.keyClick(self.editor, key, modifiers)

    def paste(self, mime):
        QApplication.clipboard().setMimeData(mime)
        self.editor.paste()

    async def ready(self):
        tasks = [entry.task for entry in self.composer.attachments._entries if entry.task is not None]
        if tasks:
            await asyncio.wait(tasks)


@pytest.fixture
def driver(qtbot):
    return Driver(qtbot)


def with_text(text):
    mime = QMimeData()
    mime.setText(text)
    return mime


def with_files(*paths):
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    mime.setText("\n".join(str(path) for path in paths))
    return mime


def test_shift_tab_leads_from_the_message_to_what_is_attached_above_it(driver, run, tmp_path):
    window, above = QWidget(), QPushButton("Above")
    driver.bot.addWidget(window)
    vbox(above, driver.composer, parent=window)
    window.show()

    async def steps():
        for name in ("a.txt", "b.txt"):
            (tmp_path / name).write_text("words")
        driver.paste(with_files(tmp_path / "a.txt", tmp_path / "b.txt"))
        await driver.ready()

    run(steps())
    driver.editor.setFocus()
    stops = []
    for _ in range(5):
        driver.bot.keyClick(window.focusWidget(), Qt.Key.Key_Backtab)
        stops.append(window.focusWidget().accessibleName() or window.focusWidget().text())
    driver.composer.setParent(None)
    assert stops == ["Remove", "Attached file: b.txt", "Remove", "Attached file: a.txt", "Above"]


def test_attachments_stay_in_the_order_in_which_they_were_chosen(driver, run):
    attachments = driver.composer.attachments

    async def steps():
        first_read = asyncio.Event()

        async def slowly():
            await first_read.wait()
            return [AttachedText("first", "words", "x://1", "Server")]

        async def at_once():
            return [AttachedText("second", "words", "x://2", "Server")]

        attachments.add_fetches(
            [attachments.create_fetch("first", slowly), attachments.create_fetch("second", at_once)]
        )
        await until(lambda: any(isinstance(item, AttachedText) for item in driver.composer.draft()[1]))
        first_read.set()
        await driver.ready()

    run(steps())
    assert [item.title for item in driver.composer.draft()[1]] == ["first", "second"]
    names = [chip.accessibleName() for chip in attachments.chips]
    assert names == ["Attached resource: first", "Attached resource: second"]
    driver.bot.waitUntil(lambda: attachments.chips[0].x() < attachments.chips[1].x())


def test_blanks_alone_are_nothing_to_send(driver):
    send = driver.part(QAbstractButton, "Send")
    driver.key(Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert (driver.editor.toPlainText(), send.isEnabled()) == ("\n", False)
    driver.type("Hello")
    assert send.isEnabled()


def test_enter_sends_and_empties(driver):
    driver.type("Hello")
    driver.key(Qt.Key.Key_Return)
    assert driver.sent == [("Hello", [])]
    assert driver.composer.draft() == ("", [])


@pytest.mark.parametrize(
    ("draft", "sent"),
    [
        ("Hello\n", "Hello"),
        ("\n \n\t\nHello\n\nthere \n \n", "Hello\n\nthere"),
        ("    indented = 1\n    more = 2\n", "    indented = 1\n    more = 2"),
    ],
)
@pytest.mark.parametrize("later", [False, True])
def test_blank_lines_around_a_prompt_are_not_sent(driver, draft, sent, later):
    queued = []
    driver.composer.queue_requested.connect(lambda text, attached: queued.append((text, attached)))
    driver.composer.editor.setPlainText(draft)
    driver.composer.send(later=later)
    assert (queued if later else driver.sent) == [(sent, [])]
    driver.composer.editor.setPlainText("\n \n")
    driver.composer.send(later=later)
    assert len(queued + driver.sent) == 1


def test_nothing_is_not_sent(driver):
    driver.key(Qt.Key.Key_Return)
    driver.type("  ")
    driver.key(Qt.Key.Key_Return)
    assert driver.sent == []
    assert not driver.part(QToolButton, "Send").isEnabled() or driver.editor.toPlainText()


def test_shift_enter_makes_a_real_line_break(driver):
    driver.type("a")
    driver.key(Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    driver.type("b")
    assert driver.editor.blockCount() == 2
    driver.key(Qt.Key.Key_Enter)
    assert driver.sent == [("a\nb", [])]


def test_enter_and_shift_enter_can_be_swapped(driver):
    driver.composer.set_enter_sends(False)
    driver.type("a")
    driver.key(Qt.Key.Key_Return)
    assert driver.sent == []
    driver.key(Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert driver.sent == [("a", [])]


def test_the_button_sends(driver):
    driver.type("Hi")
    driver.bot.mouseClick(driver.part(QToolButton, "Send"), Qt.MouseButton.LeftButton)
    assert driver.sent == [("Hi", [])]


def test_up_in_an_empty_editor_edits_the_last_prompt(driver):
    driver.key(Qt.Key.Key_Up)
    assert driver.edits == [1]
    driver.type("a")
    driver.key(Qt.Key.Key_Up)
    assert driver.edits == [1]


@pytest.mark.parametrize(("key", "step"), [(Qt.Key.Key_Up, -1), (Qt.Key.Key_Down, 1)])
def test_with_ctrl_they_walk_messages_where_nothing_is_written(driver, key, step):
    steps = []
    driver.composer.editor.navigate_pressed.connect(steps.append)
    driver.key(key, Qt.KeyboardModifier.ControlModifier)
    assert (driver.edits, steps) == ([], [step])
    driver.key(key, Qt.KeyboardModifier.AltModifier)
    driver.type("a")
    driver.key(key, Qt.KeyboardModifier.ControlModifier)
    assert (driver.edits, steps) == ([], [step])


def test_stop_stands_where_send_was_and_answers_at_once(driver):
    send, stop = driver.part(QToolButton, "Send"), driver.part(QWidget, "Stop")
    assert (send.isVisible(), stop.isVisible()) == (True, False)
    driver.composer.set_working(True)
    assert (send.isVisible(), stop.isVisible()) == (False, True)
    labels = []
    driver.composer.stop_requested.connect(lambda: labels.append(stop.text()))
    driver.bot.mouseClick(stop, Qt.MouseButton.LeftButton)
    assert labels == ["Stopping…"]
    driver.key(Qt.Key.Key_Escape)
    assert driver.stops == [1]
    driver.composer.set_working(False)
    assert (send.isVisible(), stop.isVisible()) == (True, False)


def test_stop_works_at_the_press_and_does_not_wait_for_the_release(driver):
    driver.composer.set_working(True)
    stop = driver.part(QWidget, "Stop")
    driver.bot.mousePress(stop, Qt.MouseButton.LeftButton)
    assert driver.stops == [1]
    driver.bot.mouseRelease(stop, Qt.MouseButton.LeftButton)
    assert driver.stops == [1]


def test_escape_stops_only_while_working(driver):
    driver.key(Qt.Key.Key_Escape)
    assert driver.stops == []
    driver.composer.set_working(True)
    driver.key(Qt.Key.Key_Escape)
    assert driver.stops == [1]
    driver.composer.set_working(True)
    driver.key(Qt.Key.Key_Escape)
    assert driver.stops == [1, 1]


def test_a_message_can_be_sent_while_the_agent_works(driver):
    driver.composer.set_working(True)
    driver.type("and also this")
    driver.key(Qt.Key.Key_Return)
    assert driver.sent == [("and also this", [])]


def test_the_editor_grows_to_ten_lines(driver):
    heights = []
    for lines in (1, 3, 10, 30):
        driver.editor.setPlainText("\n".join("x" * lines))
        heights.append(driver.editor.height())
    height_of_1, height_of_3, height_of_10, height_of_30 = heights
    assert height_of_1 < height_of_3 < height_of_10 == height_of_30
    driver.editor.setPlainText("word " * 200)
    assert driver.editor.height() > height_of_3


def test_text_is_pasted_even_beside_a_picture(driver):
    mime = with_text("from a spreadsheet")
    mime.setImageData(QImage(4, 4, QImage.Format.Format_RGB32))
    mime.setHtml("<b>from a spreadsheet</b>")
    driver.paste(mime)
    assert driver.editor.toPlainText() == "from a spreadsheet"
    assert driver.chips == {}


def test_the_words_of_a_copied_page_are_pasted_where_it_has_no_plain_text(driver):
    mime = QMimeData()
    mime.setHtml("<p>One <b>bold</b> word &amp; a picture <img src='https://pictures.example/a.png'></p><p>Two</p>")
    driver.paste(mime)
    assert driver.editor.toPlainText() == "One bold word & a picture \nTwo"
    assert driver.chips == {}


def test_of_a_picture_beside_its_address_the_picture_is_taken(driver, run):
    async def steps():
        mime = QMimeData()
        mime.setUrls([QUrl("https://pictures.example/a.png")])
        mime.setImageData(QImage(4, 4, QImage.Format.Format_RGB32))
        driver.paste(mime)
        await driver.ready()

    run(steps())
    assert list(driver.chips) == ["Attached image: Pasted picture"]
    assert driver.editor.toPlainText() == ""


def test_a_huge_text_becomes_an_attachment_and_nothing_is_lost(driver):
    driver.type("Look: ")
    huge = "line of text\n" * (MAX_TEXT_LENGTH // 10)
    driver.paste(with_text(huge))
    assert list(driver.chips) == ["Pasted text, 1.3 MB"]
    assert driver.editor.toPlainText() == "Look: "
    assert driver.composer.draft() == ("Look: ", [PastedText(huge)])
    driver.key(Qt.Key.Key_Return)
    assert driver.sent == [("Look:", [PastedText(huge)])]
    assert driver.chips == {}


def test_one_endless_line_becomes_an_attachment_too(driver):
    driver.paste(with_text("x" * 60_000))
    assert list(driver.chips) == ["Pasted text, 60 KB"]


def test_a_long_draft_comes_back_whole(driver):
    text = "y" * (MAX_TEXT_LENGTH + 1)
    driver.composer.set_draft(text)
    assert driver.composer.draft() == ("", [PastedText(text)])
    assert driver.editor.toPlainText() == ""


def test_a_pasted_picture_is_taken_in(driver, run):
    async def steps():
        mime = QMimeData()
        mime.setImageData(QImage(40, 30, QImage.Format.Format_RGB32))
        driver.paste(mime)
        chip = driver.chips["Attached image: Pasted picture"]
        assert chip._detail.text() == "Preparing…"
        assert not driver.part(QToolButton, "Send").isEnabled()
        await driver.ready()
        assert "about 255 tokens" in chip._detail.text()
        driver.type("What is this?")
        driver.key(Qt.Key.Key_Return)

    run(steps())
    [(text, [picture])] = driver.sent
    assert text == "What is this?"
    assert (picture.name, picture.taken.width, picture.taken.height) == ("Pasted picture", 40, 30)
    assert driver.chips == {}


def test_pasted_files_are_attached_by_their_bytes(driver, run, tmp_path):
    (tmp_path / "one.png").write_bytes(png())
    (tmp_path / "notes.txt").write_text("no picture")

    async def steps():
        driver.paste(with_files(tmp_path / "one.png", tmp_path / "notes.txt"))
        await driver.ready()

    run(steps())
    assert list(driver.chips) == ["Attached image: one.png", "Attached file: notes.txt"]
    assert driver.editor.toPlainText() == ""


def test_of_a_pasted_folder_the_path_is_written(driver, run, tmp_path):
    async def steps():
        driver.paste(with_files(tmp_path))
        await driver.ready()

    run(steps())
    assert driver.chips == {}
    assert driver.editor.toPlainText() == f"{tmp_path}\n"


def test_who_removes_the_last_attachment_goes_on_writing(driver, run):
    async def steps():
        for _ in range(2):
            driver.editor.picture_inserted.emit(png())
        await driver.ready()

    window = QWidget()
    vbox(QPushButton("New conversation"), driver.composer, parent=window)
    window.show()
    run(steps())
    first, second = driver.composer.attachments.chips
    driver.bot.mouseClick(first.remove_button, Qt.MouseButton.LeftButton)
    assert second.hasFocus()
    driver.bot.mouseClick(second.remove_button, Qt.MouseButton.LeftButton)
    assert driver.composer.attachments.chips == []
    assert driver.editor.hasFocus()
    # The test's own widgets outlive the window.
    driver.composer.setParent(None)


def test_a_picture_can_be_dropped_anywhere(driver, run, tmp_path):
    (tmp_path / "one.png").write_bytes(png())
    mime = with_files(tmp_path / "one.png")

    async def steps():
        buttons, keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
        enter = QDragEnterEvent(QPoint(5, 5), Qt.DropAction.CopyAction, mime, buttons, keys)
        driver.composer.dragEnterEvent(enter)
        assert enter.isAccepted()
        driver.composer.dropEvent(QDropEvent(QPointF(5, 5), Qt.DropAction.CopyAction, mime, buttons, keys))
        await driver.ready()

    run(steps())
    assert list(driver.chips) == ["Attached image: one.png"]


def test_the_cursor_stays_in_the_message_while_an_input_method_composes(driver):
    driver.editor.setPlainText("a")
    QApplication.sendEvent(driver.editor, QInputMethodEvent("x" * 500, []))
    for key in (Qt.Key.Key_Down, Qt.Key.Key_PageDown, Qt.Key.Key_End):
        driver.key(key)
        assert driver.editor.textCursor().position() <= 1


def test_text_can_be_dropped_before_the_end_of_a_message(driver):
    message = "word " * 300
    driver.editor.setPlainText(message)
    cursor = driver.editor.textCursor()
    cursor.setPosition(len(message) - 2)
    driver.editor.setTextCursor(cursor)
    place = QPointF(driver.editor.cursorRect().center())
    drop = (Qt.DropAction.CopyAction, with_text("one two three"), Qt.MouseButton.LeftButton, Qt.KeyboardModifier(0))
    for event in (QDragEnterEvent(place.toPoint(), *drop), QDragMoveEvent(place.toPoint(), *drop)):
        QApplication.sendEvent(driver.editor.viewport(), event)
    QApplication.sendEvent(driver.editor.viewport(), QDropEvent(place, *drop))
    assert driver.editor.toPlainText() == f"{message[:-2]}one two three{message[-2:]}"


@pytest.mark.parametrize(
    ("name", "data", "sentence"),
    [
        ("broken.png", b"\x89PNG\r\n\x1a\nbroken", "“broken.png” is damaged"),
        ("text.jpg", b"no picture at all", "“text.jpg” is not a PNG"),
        ("missing.png", None, "“missing.png” cannot be read: No such file or directory."),
    ],
)
def test_a_bad_file_is_a_sentence_and_leaves_the_text_alone(driver, run, tmp_path, name, data, sentence):
    if data is not None:
        (tmp_path / name).write_bytes(data)

    async def steps():
        driver.type("keep me")
        driver.composer.attach_files([tmp_path / name])
        await driver.ready()

    run(steps())
    [words] = driver.problems
    assert sentence in words
    assert words.count(". ") == 1, "a remedy follows"
    assert driver.chips == {}
    assert driver.editor.toPlainText() == "keep me"


def test_a_device_is_not_read(driver, run):
    async def steps():
        driver.composer.attach_files([Path("/dev/zero")])
        await driver.ready()

    run(steps())
    assert len(driver.problems) == 1


def test_delete_removes_the_focused_chip(driver, run, tmp_path):
    for name in ("one.png", "two.png"):
        (tmp_path / name).write_bytes(png())

    async def steps():
        driver.composer.attach_files([tmp_path / "one.png", tmp_path / "two.png"])
        await driver.ready()

    run(steps())
    first = driver.chips["Attached image: one.png"]
    driver.bot.keyClick(first, Qt.Key.Key_Delete)
    assert list(driver.chips) == ["Attached image: two.png"]
    remove = driver.chips["Attached image: two.png"].remove_button
    assert remove.accessibleName() == "Remove"
    driver.bot.mouseClick(remove, Qt.MouseButton.LeftButton)
    assert driver.composer.draft() == ("", [])


def test_removing_a_picture_on_its_way_forgets_it(qtbot, run):
    has_begun = asyncio.Event()

    async def never(data, name):
        has_begun.set()
        await asyncio.Event().wait()

    driver = Driver(qtbot, never)

    async def steps():
        driver.editor.picture_inserted.emit(png())
        await has_begun.wait()
        task = driver.composer.attachments._entries[0].task
        driver.bot.keyClick(driver.chips["Attached image: Pasted picture"], Qt.Key.Key_Backspace)
        await asyncio.wait([task])
        assert task.cancelled()

    run(steps())
    assert driver.chips == {}


def test_a_composer_may_be_gone_before_a_small_picture_is_drawn(qtbot, run, monkeypatch):
    may_draw = threading.Event()

    def draw_late(*args):
        may_draw.wait(PATIENCE)
        return thumbnail(*args)

    monkeypatch.setattr(attachments, "thumbnail", draw_late)
    driver = Driver(qtbot)

    async def steps():
        driver.editor.picture_inserted.emit(png())
        await until(lambda: driver.composer.attachments.pictures)
        task = driver.composer.attachments._entries[0].task
        delete(driver.composer)
        may_draw.set()
        await asyncio.wait([task])
        assert task.exception() is None

    run(steps())


@pytest.mark.parametrize(
    "fetched",
    [
        FetchResult([AttachedText("a.txt", "words")]),
        FetchResult(folder="a"),
        FetchResult(problems=[ImageRefused(Sentence("damaged"))]),
    ],
)
def test_a_composer_may_be_gone_before_its_file_is_read(qtbot, run, fetched):
    read = asyncio.Event()

    async def fetch():
        await read.wait()
        return fetched

    driver = Driver(qtbot)

    async def steps():
        driver.composer.attachments.add_fetches([AttachmentFetch("a.txt", fetch)])
        task = driver.composer.attachments._entries[0].task
        await asyncio.sleep(0)
        delete(driver.composer)
        read.set()
        await asyncio.wait([task])
        assert task.exception() is None

    run(steps())


def test_a_blind_model_is_named_before_sending(driver, run):
    async def steps():
        driver.composer.set_supports_images(False)
        assert "cannot see" not in driver.words
        driver.editor.picture_inserted.emit(png())
        assert "This model cannot see pictures." in driver.words
        await driver.ready()
        driver.composer.set_supports_images(None)
        assert "cannot see" not in driver.words

    run(steps())


def test_a_draft_comes_back_with_its_pictures(driver, run):
    async def steps():
        picture = PendingPicture("old.png", await import_picture_async(png(800, 600), "old.png"))
        driver.composer.set_draft("half a", [picture])
        await driver.ready()
        assert driver.composer.draft() == ("half a", [picture])
        assert list(driver.chips) == ["Attached image: old.png"]
        driver.type(" b")
        assert driver.editor.toPlainText() == "half a b"

    run(steps())


def test_changes_are_reported_once_after_a_pause(driver):
    reports = []
    driver.composer.draft_timer.timeout.connect(lambda: reports.append(driver.composer.draft()[0]))
    driver.type("abc")
    driver.bot.waitUntil(lambda: bool(reports))
    assert reports == ["abc"]


def test_a_restored_draft_is_no_change(driver):
    with driver.bot.assertNotEmitted(driver.composer.draft_timer.timeout, wait=600):
        driver.composer.set_draft("as it was")


def test_files_are_chosen_without_waiting(driver, run, tmp_path):
    (tmp_path / "one.png").write_bytes(png())

    async def steps():
        driver.bot.mouseClick(driver.part(QToolButton, "Attach files"), Qt.MouseButton.LeftButton)
        dialog = driver.composer.findChild(QFileDialog)
        assert dialog.isVisible()
        dialog.filesSelected.emit([str(tmp_path / "one.png")])
        dialog.close()
        await driver.ready()

    run(steps())
    assert list(driver.chips) == ["Attached image: one.png"]


def test_a_chosen_file_is_attached_as_what_it_is(driver, run, tmp_path):
    files = {"notes.md": b"# Milk", "photo": png(), "data.bin": b"\0\xff"}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)

    async def steps():
        driver.composer.attach_files([tmp_path / name for name in (*files, "gone.txt")])
        await driver.ready()
        await asyncio.gather(*(entry.task for entry in driver.composer.attachments._entries if entry.task is not None))

    run(steps())
    # Each takes its place when it is read.
    assert sorted(driver.chips) == ["Attached file: notes.md", "Attached image: photo"]
    text, picture = sorted(driver.composer.draft()[1], key=lambda item: isinstance(item, PendingPicture))
    assert text == AttachedText("notes.md", "# Milk")
    assert (picture.name, picture.server) == ("photo", "")
    assert set(driver.composer._problems.text().split("\n")) == {
        "“data.bin” is neither a picture nor a text in UTF-8. Save it as a text in UTF-8, or choose a picture.",
        "There is no file “gone.txt” that can be read. Choose a picture or a text.",
    }


@pytest.mark.parametrize(
    ("width", "height", "tokens"), [(10, 10, 255), (1024, 1024, 765), (2048, 4096, 1105), (4096, 8192, 1105)]
)
def test_tokens_follow_the_published_examples(width, height, tokens):
    assert estimated_tokens(width, height) == tokens


def test_a_failing_intake_does_not_keep_the_message_from_being_sent(qtbot, run):
    async def broken(data, name):
        raise MemoryError

    driver = Driver(qtbot, broken)

    async def steps():
        driver.type("still here")
        driver.editor.picture_inserted.emit(png())
        task = driver.composer.attachments._entries[0].task
        with pytest.raises(MemoryError):
            await task
        driver.key(Qt.Key.Key_Return)

    run(steps())
    assert driver.sent == [("still here", [])]


def test_what_was_not_delivered_stands_where_nothing_stood(driver):
    driver.composer.restore_message("back again")
    assert driver.composer.draft() == ("back again", [])
    driver.type("!")
    assert driver.editor.toPlainText() == "back again!"


def test_nothing_that_is_being_written_is_lost_to_what_was_not_delivered(run, driver, tmp_path):
    imported = run(import_picture_async(png(), "a.png"))

    async def steps():
        driver.type("written")
        (tmp_path / "b.png").write_bytes(png(50, 50))
        driver.composer.attach_files([tmp_path / "b.png"])  # it is still on its way in
        driver.composer.restore_message("back", [PendingPicture("a.png", imported)])
        driver.composer.restore_message("", [])
        await driver.ready()

    run(steps())
    text, pictures = driver.composer.draft()
    assert text == "written\n\nback"
    assert [picture.name for picture in pictures] == ["b.png", "a.png"]


def test_what_is_too_long_for_the_editor_comes_back_beside_it(driver):
    driver.type("written")
    long = "x" * (MAX_TEXT_LENGTH + 1)
    driver.composer.restore_message(long)
    assert driver.editor.toPlainText() == "written"
    assert driver.composer.draft() == ("written", [PastedText(long)])


SERVERS_WORDS = UntrustedSource("mcp", "Tickets", "tickets")


def deleted(editor):
    QTest.keyClick(editor, Qt.Key.Key_Delete)


@pytest.mark.parametrize(
    ("take_away", "bring_back"),
    [(deleted, QPlainTextEdit.undo), (QPlainTextEdit.cut, QPlainTextEdit.paste)],
    ids=["deleted and undone", "cut and pasted"],
)
def test_whose_words_they_are_is_known_on_when_they_come_back(take_away, bring_back, driver):
    driver.composer.restore_message("words of a server", [SERVERS_WORDS])
    driver.editor.selectAll()
    take_away(driver.editor)
    assert driver.composer.draft() == ("", [])
    bring_back(driver.editor)
    assert driver.composer.draft() == ("words of a server", [SERVERS_WORDS])
    driver.composer.send()
    assert driver.sent == [("words of a server", [SERVERS_WORDS])]


@pytest.mark.parametrize("replaced", [lambda composer: composer.set_draft("mine"), lambda composer: composer.send()])
def test_whose_words_they_were_is_forgotten_with_them(replaced, driver):
    driver.composer.restore_message("words of a server", [SERVERS_WORDS])
    replaced(driver.composer)
    driver.editor.undo()
    driver.editor.setPlainText("mine")
    assert driver.composer.draft() == ("mine", [])


def slow_intake(may_begin):
    async def intake(data, name):
        await may_begin.wait()
        return await import_picture_async(data, name)

    return intake


def test_enter_while_a_picture_is_prepared_sends_when_it_is_ready(qtbot, run):
    async def work():
        may_begin = asyncio.Event()
        driver = Driver(qtbot, slow_intake(may_begin))
        driver.editor.setPlainText("Look")
        driver.composer.attachments.add_pasted(png())
        QTest.keyClick(driver.editor, Qt.Key.Key_Return)
        assert driver.sent == []
        texts = [label.text() for label in driver.composer.findChildren(QLabel) if label.isVisible()]
        assert any("Your message is sent when" in words for words in texts)
        may_begin.set()
        async with asyncio.timeout(20):
            while not driver.sent:
                await asyncio.sleep(0.01)
        ((text, (picture,)),) = driver.sent
        assert (text, picture.name) == ("Look", "Pasted picture")

    run(work())


@pytest.mark.parametrize("way", ["taken off", "damaged", "in part"])
def test_nothing_is_sent_without_what_it_was_to_be_sent_with_also_where_other_things_came(qtbot, run, way):
    async def pieces():
        return [ServerPicture("files", "broken.png", b"no picture"), ServerPicture("files", "red.png", png())]

    async def work():
        may_begin = asyncio.Event()
        driver = Driver(qtbot, slow_intake(may_begin))
        attachments = driver.composer.attachments
        driver.editor.setPlainText("Look")
        if way == "in part":
            attachments.add_fetches([attachments.create_fetch("pictures", pieces)])
        else:
            attachments.add_pasted(png() if way != "damaged" else b"no picture")
            attachments.add_pasted(png())
        QTest.keyClick(driver.editor, Qt.Key.Key_Return)
        if way == "taken off":
            QTest.keyClick(attachments.chips[0], Qt.Key.Key_Delete)
        if way != "in part":
            attachments.add_text("beside it")
        may_begin.set()
        await attachments.wait_until_ready()
        QApplication.sendPostedEvents()
        assert driver.sent == []
        assert driver.editor.toPlainText() == "Look"
        # What came is drawn small too.
        await asyncio.gather(*(entry.task for entry in attachments._entries if entry.task is not None))

    run(work())


@pytest.mark.parametrize("way", ["escape", "editing", "taken off", "another conversation", "damaged"])
def test_what_is_to_be_sent_when_it_is_ready_can_be_taken_back(qtbot, run, way):
    async def work():
        may_begin = asyncio.Event()
        driver = Driver(qtbot, slow_intake(may_begin))
        attachments = driver.composer.attachments
        driver.editor.setPlainText("Look")
        attachments.add_pasted(png() if way != "damaged" else b"no picture")
        attachments.add_pasted(png())
        QTest.keyClick(driver.editor, Qt.Key.Key_Return)
        if way == "escape":
            QTest.keyClick(driver.editor, Qt.Key.Key_Escape)
        elif way == "editing":
            QTest.keyClicks(driver.editor, "!")
        elif way == "taken off":
            QTest.keyClick(attachments.chips[0], Qt.Key.Key_Delete)
        elif way == "another conversation":
            driver.composer.leave_conversation()
        may_begin.set()
        await attachments.wait_until_ready()
        QApplication.sendPostedEvents()
        assert driver.sent == []
        assert "Look" in driver.editor.toPlainText()
        assert driver.stops == []

    run(work())
