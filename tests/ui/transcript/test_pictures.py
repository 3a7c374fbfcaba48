"""Pictures come from a worker at the size they are shown, and the cache is bounded."""

import base64
import hashlib

import pytest
from PySide6.QtCore import QBuffer, QIODevice, QSize, Qt
from PySide6.QtGui import QColor, QImage
from PySide6.QtTest import QTest

from desktop_agent.conversation.transcript import Transcript
from desktop_agent.types.blocks import Base64Source, Image, StoredSource, Text, UrlSource
from desktop_agent.types.messages import Message, Role
from tests.fakes.transcript_feed import NoPictures
from ui.shell.pictures.picture_viewer import conversation_pictures
from ui.style.theme import ThemeSource
from ui.transcript.blocks import image_store as pictures_module
from ui.transcript.blocks.image_store import ThumbnailCache, decode_image, encoded_image_size, image_size
from ui.transcript.view import TranscriptView
from ui.transcript.workers import JobQueue


def png(width, height, color="#ff0000") -> bytes:
    image = QImage(width, height, QImage.Format.Format_RGB32)
    image.fill(QColor(color))
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.save(buffer, "PNG")
    return bytes(buffer.data())


def stored(folder, width, height, color="#ff0000") -> StoredSource:
    data = png(width, height, color)
    digest = hashlib.sha256(data).hexdigest()
    (folder / digest).write_bytes(data)
    return StoredSource(digest=digest, media_type="image/png", size=len(data), width=width, height=height)


@pytest.fixture
def workshop(qapp):
    job_queue = JobQueue()
    yield job_queue
    job_queue.close()


def test_a_picture_arrives_later_and_is_then_there(tmp_path, workshop, qtbot):
    thumbnails = ThumbnailCache(NoPictures(tmp_path), workshop)
    source, calls = stored(tmp_path, 400, 200), []
    assert thumbnails.get(source, QSize(100, 50), lambda: calls.append(1)) == (False, None)
    thumbnails.get(source, QSize(100, 50), lambda: calls.append(2))
    qtbot.waitUntil(lambda: len(calls) == 2)
    is_done, picture = thumbnails.get(source, QSize(100, 50), lambda: None)
    assert is_done
    assert picture.size() == QSize(100, 50)
    assert picture.toImage().pixelColor(5, 5) == QColor("#ff0000")


def test_a_picture_that_several_wait_for_is_counted_once(tmp_path, workshop, qtbot):
    thumbnails, calls = ThumbnailCache(NoPictures(tmp_path), workshop), []
    source = stored(tmp_path, 400, 200)
    # A block asks whenever it is painted.
    for _ in range(5):
        thumbnails.get(source, QSize(100, 50), lambda: calls.append(1))
    qtbot.waitUntil(lambda: len(calls) == 5)
    assert thumbnails._size == 100 * 50 * 4


def test_a_missing_or_damaged_file_is_said_to_be_so(tmp_path, workshop, qtbot):
    thumbnails = ThumbnailCache(NoPictures(tmp_path), workshop)
    source = stored(tmp_path, 40, 20)
    (tmp_path / source.digest).write_bytes(b"\x89PNG\r\n\x1a\nnonsense")
    calls = []
    thumbnails.get(source, QSize(4, 2), lambda: calls.append(1))
    qtbot.waitUntil(lambda: calls == [1])
    assert thumbnails.get(source, QSize(4, 2), lambda: None) == (True, None)


def test_the_cache_is_bounded(tmp_path, workshop, qtbot, monkeypatch):
    monkeypatch.setattr("ui.transcript.blocks.image_store._MAX_THUMBNAIL_BYTES", 3 * 10 * 10 * 4)
    thumbnails, calls = ThumbnailCache(NoPictures(tmp_path), workshop), []
    sources = [stored(tmp_path, 50, 50, color) for color in ("#100000", "#200000", "#300000", "#400000", "#500000")]
    for source in sources:
        thumbnails.get(source, QSize(10, 10), lambda: calls.append(1))
    qtbot.waitUntil(lambda: len(calls) == 5)
    assert len(thumbnails._cache) == 3
    assert thumbnails.get(sources[-1], QSize(10, 10), lambda: None)[0]


def test_sizes_are_known_without_decoding():
    data = base64.b64encode(png(31, 17)).decode()
    assert image_size(Base64Source(media_type="image/png", data=data)) == QSize(31, 17)
    assert not image_size(UrlSource(url="https://x.org/a.png")).isValid()


def test_a_message_shows_its_picture_at_its_own_proportions_and_opens_it(tmp_path, qtbot):
    image = Image(source=stored(tmp_path, 1600, 800), name="chart.png")
    remote = Image(source=UrlSource(url="https://x.org/a.png"), name="far")
    view = TranscriptView(ThemeSource(), NoPictures(tmp_path))
    qtbot.addWidget(view, before_close_func=lambda closing: closing.close_workers())
    view.resize(900, 600)
    messages = [Message.user_with_blocks([image]), Message.user_with_blocks([Text(text="x"), remote])]
    view.set_transcript(Transcript(messages))
    view.show()
    rows = view.row_viewport.rows
    (block, control), *_ = rows.row(0).controls()
    assert control.name == "Open picture: chart.png"
    assert control.box.width() == 2 * control.box.height() or abs(control.box.width() - 2 * control.box.height()) == 1
    assert control.box.height() <= 320
    height = rows.total
    box = control.box.translated(rows.row(0).stack.block_box(block).topLeft()).translated(
        view.row_viewport.row_box(0).topLeft()
    )

    def red():
        return view.viewport().grab().toImage().pixelColor(box.center()) == QColor("#ff0000")

    qtbot.waitUntil(red)
    assert rows.total == height
    with qtbot.waitSignal(view.image_opened) as opened:
        QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=box.center())
    assert opened.args == [image]
    assert rows.row(1).spoken_text() == "Picture: far, x.org\nx"


def test_a_picture_that_the_model_made_stands_in_its_answer_and_opens(tmp_path, qtbot):
    image = Image(source=stored(tmp_path, 1600, 800))
    view = TranscriptView(ThemeSource(), NoPictures(tmp_path))
    qtbot.addWidget(view, before_close_func=lambda closing: closing.close_workers())
    answer = Message(role=Role.ASSISTANT, blocks=(Text(text="Here:"), image, Text(text="Done.")))
    view.set_transcript(Transcript([Message.user("Draw."), answer]))
    rows = view.row_viewport.rows
    assert [rows.row(index).spoken_text() for index in range(rows.count)] == ["Draw.", "Here:", "Picture", "Done."]
    assert [rows.row(index).label for index in (1, 2, 3)] == ["Assistant said"] * 3
    (_, control), *_ = rows.row(2).controls()
    with qtbot.waitSignal(view.image_opened) as opened:
        control.press()
    assert opened.args == [image]
    (picture,) = conversation_pictures(rows.transcript, rows.render_context.remote)
    assert picture.source == image.source


def test_a_picture_that_the_model_named_by_its_address_is_copied_as_markdown(tmp_path, qtbot):
    view = TranscriptView(ThemeSource(), NoPictures(tmp_path))
    qtbot.addWidget(view, before_close_func=lambda each: each.close_workers())
    answer = Message(role=Role.ASSISTANT, blocks=(Image(source=UrlSource(url="https://x.org/a.png")),))
    view.set_transcript(Transcript([answer]))
    assert view.row_viewport.rows.row(0).source() == "![](<https://x.org/a.png>)"


def test_a_closed_workshop_delivers_nothing_and_takes_nothing(qapp, qtbot):
    workshop, results = JobQueue(), []
    workshop.submit("a", lambda: 1, results.append)
    workshop.close()
    workshop.submit("b", lambda: 2, results.append)
    qtbot.wait(50)
    assert results == []


def test_only_so_many_jobs_wait(qapp, qtbot, monkeypatch):
    monkeypatch.setattr("ui.transcript.workers._MAX_WAITING", 2)
    workshop, results = JobQueue(), []
    for number in range(50):
        workshop.submit(number, lambda number=number: number, results.append)
    qtbot.waitUntil(lambda: 49 in results)
    workshop.close()
    assert len(results) <= 50
    assert not workshop._jobs


@pytest.mark.parametrize("together", [False, True])
def test_of_3_000_pictures_only_those_near_the_screen_are_decoded(tmp_path, qtbot, monkeypatch, together):
    decoded = []
    original = pictures_module.decode_image
    monkeypatch.setattr(
        pictures_module, "decode_image", lambda path, size: decoded.append(path) or original(path, size)
    )
    source = stored(tmp_path, 640, 480)
    names = [f"{number:064x}" for number in range(3000)]
    for name in names:
        (tmp_path / name).symlink_to(tmp_path / source.digest)
    images = [Image(source=source.model_copy(update={"digest": name}), name=name) for name in names]
    view = TranscriptView(ThemeSource(), NoPictures(tmp_path))
    qtbot.addWidget(view, before_close_func=lambda closing: closing.close_workers())
    view.resize(900, 600)
    messages = [images] if together else [[image] for image in images]
    view.set_transcript(Transcript([Message.user_with_blocks(message) for message in messages]))
    view.show()
    qtbot.waitUntil(lambda: bool(decoded) and not view._job_queue.is_busy)
    assert len(set(decoded)) <= 24
    for _ in range(6):
        QTest.keyClick(view, Qt.Key.Key_PageUp)
        qtbot.waitUntil(lambda: not view._job_queue.is_busy)
    view.scroller.scroll_to_start()
    qtbot.waitUntil(lambda: not view._job_queue.is_busy)
    assert len(set(decoded)) <= 160
    assert view._render_context.thumbnails._size <= 64 * 1024 * 1024


def test_a_small_picture_is_not_blown_up(tmp_path):
    source = stored(tmp_path, 40, 20)
    assert decode_image(tmp_path / source.digest, QSize(400, 200)).size() == QSize(40, 20)
    assert decode_image(tmp_path / source.digest, QSize(4, 2)).size() == QSize(4, 2)


def test_what_is_too_large_to_be_decoded_is_not_tried(tmp_path, monkeypatch):
    monkeypatch.setattr(pictures_module, "MAX_PIXELS", 700)
    assert decode_image(png(40, 20), QSize(4, 2)).isNull()
    assert not decode_image(png(30, 20), QSize(4, 2)).isNull()


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_the_kinds_of_pictures_that_messages_hold_are_read(qapp, kind):
    image = QImage(30, 20, QImage.Format.Format_RGB32)
    image.fill(QColor("#ff0000"))
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    assert image.save(buffer, kind)
    data = bytes(buffer.data())
    assert encoded_image_size(data) == decode_image(data).size() == QSize(30, 20)


def test_a_drawing_that_names_further_files_is_not_read(qapp, tmp_path):
    (tmp_path / "own.png").write_bytes(png(8, 8))
    head = b'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="8" height="8">'
    data = head + f'<image width="8" height="8" xlink:href="{tmp_path}/own.png"/></svg>'.encode()
    (tmp_path / "drawn").write_bytes(data)
    # Qt would.
    assert QImage.fromData(data).pixelColor(4, 4) == QColor("#ff0000")
    assert decode_image(data).isNull()
    assert decode_image(tmp_path / "drawn", QSize(4, 4)).isNull()
    assert encoded_image_size(data).isEmpty()


def test_no_more_pixels_than_wanted(tmp_path):
    image = decode_image(png(400, 200), most=20_000)
    assert image.size() == QSize(200, 100)
    assert decode_image(tmp_path / "gone").isNull()
    assert decode_image("no base64!").isNull()
