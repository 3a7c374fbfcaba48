"""Pictures large: in a window of its own, by mouse and keys, with every limit said in words."""

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QGuiApplication, QImage, QPainter, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget

from tests.fakes.transcript_feed import NoPictures
from tests.ui.transcript.test_pictures import png, stored
from ui.shell.pictures import picture_canvas, picture_viewer
from ui.shell.pictures.picture_canvas import ViewerPicture, decode_picture
from ui.shell.pictures.picture_viewer import PictureViewer
from ui.style.theme import ThemeSource
from ui.transcript.blocks import image_store
from ui.transcript.blocks.image_store import InMemoryImage


@pytest.fixture
def viewer(qtbot, tmp_path):
    window = QWidget()
    qtbot.addWidget(window)
    new_viewer = PictureViewer(ThemeSource(), NoPictures(tmp_path), window)
    yield new_viewer
    new_viewer.close()
    new_viewer._jobs.close()


@pytest.fixture
def three(viewer, qtbot, tmp_path):
    colors = ("#ff0000", "#00ff00", "#0000ff")
    pictures = [ViewerPicture(stored(tmp_path, 1000, 500, color), f"{color[1:]}.png") for color in colors]
    viewer.show_pictures(pictures, 0)
    viewer.resize(600, 500)
    wait(viewer, qtbot)
    return pictures


def wait(viewer, qtbot):
    qtbot.waitUntil(lambda: viewer.canvas.image is not None)


def middle(viewer):
    image = viewer.canvas.grab().toImage()
    return image.pixelColor(image.rect().center()).name()


def press(viewer, key, modifiers=Qt.KeyboardModifier.NoModifier):
    QTest.keyClick(viewer, key, modifiers)


def test_it_shows_all_of_it_and_steps_through_the_others(viewer, three, qtbot):
    assert not viewer.isModal()
    assert viewer.windowTitle() == "Picture: ff0000.png"
    assert (viewer.canvas.fits, middle(viewer)) == (True, "#ff0000")
    for key, color in ((Qt.Key.Key_Right, "#00ff00"), (Qt.Key.Key_Right, "#0000ff"), (Qt.Key.Key_Left, "#00ff00")):
        press(viewer, key)
        wait(viewer, qtbot)
        assert middle(viewer) == color
    press(viewer, Qt.Key.Key_Left)
    press(viewer, Qt.Key.Key_Left)
    wait(viewer, qtbot)
    assert viewer.current is three[0]
    assert viewer._place.text() == "1 of 3"


def test_keys_and_wheel_zoom(viewer, three):
    canvas = viewer.canvas
    fitting = canvas.zoom
    press(viewer, Qt.Key.Key_Plus)
    assert canvas.zoom == pytest.approx(fitting * 1.25)
    press(viewer, Qt.Key.Key_Minus)
    assert canvas.zoom == pytest.approx(fitting)
    press(viewer, Qt.Key.Key_1)
    assert (canvas.zoom, viewer._percent.text()) == (1.0, "100 %")
    press(viewer, Qt.Key.Key_0)
    assert canvas.fits
    center = QPointF(canvas.rect().center())
    turn = QWheelEvent(
        center,
        canvas.mapToGlobal(center),
        QPoint(),
        QPoint(0, 240),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(canvas, turn)
    assert canvas.zoom == pytest.approx(fitting * 1.25**2)


def test_dragging_moves_what_is_larger_than_the_view(viewer, qtbot, tmp_path):
    halves = QImage(2000, 1000, QImage.Format.Format_RGB32)
    halves.fill(QColor("#ff0000"))
    painter = QPainter(halves)
    painter.fillRect(1000, 0, 1000, 1000, QColor("#0000ff"))
    painter.end()
    halves.save(str(tmp_path / "halves.png"))
    data = (tmp_path / "halves.png").read_bytes()
    viewer.show_pictures([ViewerPicture(InMemoryImage("halves", "halves.png", data), "halves.png")], 0)
    viewer.resize(600, 500)
    wait(viewer, qtbot)
    canvas = viewer.canvas
    assert canvas.cursor().shape() == Qt.CursorShape.ArrowCursor
    QTest.mouseDClick(canvas, Qt.MouseButton.LeftButton, pos=canvas.rect().center())
    assert canvas.zoom == 1.0
    QTest.mouseRelease(canvas, Qt.MouseButton.LeftButton)
    assert canvas.cursor().shape() == Qt.CursorShape.OpenHandCursor
    start = canvas.rect().center()
    QTest.mousePress(canvas, Qt.MouseButton.LeftButton, pos=start)
    QTest.mouseMove(canvas, start + QPoint(200, 0))
    QTest.mouseRelease(canvas, Qt.MouseButton.LeftButton, pos=start + QPoint(200, 0))
    assert middle(viewer) == "#ff0000"


def test_arrow_keys_move_what_is_larger_than_the_view_and_leaf_otherwise(viewer, three, qtbot):
    canvas = viewer.canvas
    canvas.setFocus()
    canvas.zoom_to(4.0)
    start = canvas._pan_zoom.picture_rect().topLeft()
    for key, x, y in (
        (Qt.Key.Key_Right, -1, 0),
        (Qt.Key.Key_Left, 0, 0),
        (Qt.Key.Key_Down, 0, -1),
        (Qt.Key.Key_Up, 0, 0),
    ):
        QTest.keyClick(canvas, key)
        moved = canvas._pan_zoom.picture_rect().topLeft() - start
        assert ((moved.x() > 0) - (moved.x() < 0), (moved.y() > 0) - (moved.y() < 0)) == (x, y)
    assert viewer.current is three[0]
    QTest.keyClick(canvas, Qt.Key.Key_Right, Qt.KeyboardModifier.ControlModifier)
    assert canvas._pan_zoom.picture_rect().topLeft() == start
    press(viewer, Qt.Key.Key_0)
    QTest.keyClick(canvas, Qt.Key.Key_Right)
    assert viewer.current is three[1]


def test_copy_gives_every_pixel(viewer, three, qtbot):
    QGuiApplication.clipboard().clear()
    press(viewer, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    copied = QGuiApplication.clipboard().image()
    assert (copied.width(), copied.height(), copied.pixelColor(9, 9).name()) == (1000, 500, "#ff0000")
    QGuiApplication.clipboard().clear()


def test_save_asks_for_what_is_looked_at(viewer, three, qtbot):
    press(viewer, Qt.Key.Key_Right)
    with qtbot.waitSignal(viewer.save_requested) as signal:
        press(viewer, Qt.Key.Key_S, Qt.KeyboardModifier.ControlModifier)
    assert signal.args == [three[1]]
    assert three[1].file_name == "00ff00.png"


def test_esc_closes_and_gives_the_memory_back(viewer, three):
    press(viewer, Qt.Key.Key_Escape)
    assert not viewer.isVisible()
    assert viewer.canvas.image is None
    assert viewer.current is None


def test_every_part_has_a_name(viewer, three):
    names = {button.accessibleName() for button in viewer.findChildren(QAbstractButton) if button.isVisible()}
    assert names == {
        "Previous picture",
        "Next picture",
        "Zoom out",
        "Zoom in",
        "Zoom",
        "Fit to window",
        "Copy picture",
        "Save picture as…",
    }
    assert viewer.canvas.accessibleName() == "Picture: ff0000.png"
    assert viewer.canvas.accessibleDescription() == "1000 × 500 pixels"


def test_a_single_one_has_no_others(viewer, qtbot, tmp_path):
    viewer.show_pictures([ViewerPicture(stored(tmp_path, 40, 20), "a.png")], 0)
    wait(viewer, qtbot)
    assert not [
        button
        for button in viewer.findChildren(QAbstractButton)
        if "Next" in button.accessibleName() and button.isVisible()
    ]
    assert viewer.canvas.zoom == 1.0


def test_a_large_one_is_shown_smaller_and_says_so(viewer, qtbot, monkeypatch):
    monkeypatch.setattr(picture_canvas, "MAX_SHOWN_PIXELS", 100_000)
    big = InMemoryImage("big", "big.png", png(1000, 1000))
    viewer.show_pictures([ViewerPicture(big, "big.png")], 0)
    wait(viewer, qtbot)
    assert viewer.canvas.image.width() * viewer.canvas.image.height() <= 101_000
    assert "has 1 megapixels" in viewer._note.text()
    assert "image editor" in viewer._note.text()
    assert viewer._note.isVisible()


@pytest.mark.parametrize("how", ["huge", "damaged", "gone"])
def test_what_cannot_be_shown_says_why(viewer, qtbot, tmp_path, monkeypatch, how):
    source = stored(tmp_path, 1000, 1000)
    if how == "huge":
        monkeypatch.setattr(image_store, "MAX_PIXELS", 10_000)
        monkeypatch.setattr(picture_viewer, "MAX_PIXELS", 10_000)
    elif how == "damaged":
        (tmp_path / source.digest).write_bytes(b"nonsense")
    else:
        (tmp_path / source.digest).unlink()
    viewer.show_pictures([ViewerPicture(source, "a.png")], 0)
    qtbot.waitUntil(lambda: viewer.canvas.words not in ("", "Loading…"))
    assert ("megapixels" if how == "huge" else "cannot be read") in viewer.canvas.words
    copy = next(button for button in viewer.findChildren(QAbstractButton) if button.accessibleName() == "Copy picture")
    assert not copy.isEnabled()


def test_who_leafs_quickly_sees_the_last_one_and_pays_for_few(viewer, three, qtbot, monkeypatch):
    decoded = []
    monkeypatch.setattr(picture_viewer, "decode_picture", lambda where: decoded.append(where) or decode_picture(where))
    for _ in range(30):
        viewer.step(1)
        viewer.step(-1)
    viewer.step(2)
    wait(viewer, qtbot)
    qtbot.waitUntil(lambda: not viewer._jobs.is_busy)
    assert middle(viewer) == "#0000ff"
    assert len(decoded) < 10


def test_halves_are_what_they_are_halves_of():
    image = QImage(2048, 1024, QImage.Format.Format_RGB32)
    image.fill(QColor("#336699"))
    painter = QPainter(image)
    painter.fillRect(0, 512, 2048, 512, QColor("#ffffff"))
    painter.end()
    half = picture_canvas._halve(image)
    assert (half.width(), half.height()) == (1024, 512)
    for y, color in (
        (0, "#336699"),
        (127, "#336699"),
        (128, "#336699"),
        (255, "#336699"),
        (256, "#ffffff"),
        (511, "#ffffff"),
    ):
        assert half.pixelColor(700, y).name() == color


def test_hidden_characters_of_a_name_are_told(viewer, qtbot, monkeypatch):
    announcements = []
    monkeypatch.setattr(picture_viewer, "announce", lambda _, words: announcements.append(words))
    viewer.show_pictures([ViewerPicture(InMemoryImage("x", "a", png(4, 2)), "a\u202egnp.exe")], 0)
    wait(viewer, qtbot)
    assert announcements == ["a⟨U+202E⟩gnp.exe, 1 of 1, 4 × 2 pixels"]


def test_its_name_is_seen_in_the_narrowest_window(viewer, three):
    viewer.resize(viewer.minimumSizeHint())
    assert viewer._name.width() >= 96
    assert viewer._name.text().endswith(".png")
