"""The picture that a call is about, as large as there is room. It is read in a worker: large ones take a while."""

from PySide6.QtCore import QBuffer, QByteArray, QObject, QRunnable, QSize, Qt, QThreadPool, Signal, Slot
from PySide6.QtGui import QImage, QImageReader, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from desktop_agent.vocabulary.images import detect_media_type
from desktop_agent.vocabulary.tool_calls import PicturePreview
from ui.approval.parts.middle import Shrinkable
from ui.approval.parts.wrapped_text import WrappingLabel
from ui.look.theme import SPACE_S
from ui.look.written.order import isolate_untrusted, strip_bidi_marks

# Larger than any screen that it could be shown on.
MAX_SIDE = 2_400
_MIN_SIZE = QSize(120, 90)
_PREFERRED_SIZE = QSize(480, 320)


class PictureView(QWidget):
    """`show_picture` answers with the heading above it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._canvas = _ImageCanvas()
        self._note = WrappingLabel(kind="muted")
        self._load: _ImageLoad | None = None
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_S)
        layout.addWidget(self._canvas, 1)
        layout.addWidget(self._note)

    @property
    def shrinkable(self) -> Shrinkable:
        """What can be lower."""
        return self._canvas

    @property
    def initial_focus(self) -> QWidget | None:
        """Where reading begins: nowhere, a picture has no text."""
        return None

    @property
    def accessible_text(self) -> str:
        """All that it says, for a screen reader."""
        return "\n".join(filter(None, (self._canvas.accessibleName(), self._note.text())))

    def show_picture(self, preview: PicturePreview) -> str:
        """This picture."""
        name = isolate_untrusted(preview.name)
        self._canvas.setAccessibleName(strip_bidi_marks(self.tr("Picture: {0}").format(name)))
        self._canvas.show_image(QImage())
        self._show_note(preview.note, self.tr("Reading the picture…"))
        self._load = _ImageLoad(preview)
        self._load.finished.connect(self._on_loaded)
        QThreadPool.globalInstance().start(_LoadTask(self._load))
        return self.tr("The picture {0}").format(name)

    @Slot(object, QImage)
    def _on_loaded(self, reading: "_ImageLoad", image: QImage) -> None:
        # One that was on its way before the last was asked for still arrives.
        if reading is not self._load:
            return
        self._load = None
        self._canvas.show_image(image)
        broken = self.tr("The picture cannot be shown: its file is damaged or of another kind.")
        self._show_note(reading.preview.note, broken if image.isNull() else "")

    def _show_note(self, note: str, state: str) -> None:
        words = " ".join(filter(None, (isolate_untrusted(note), state)))
        self._note.setText(words)
        self._note.setVisible(bool(words))


class _ImageLoad(QObject):
    """One picture on its way. Lives in the window's thread; the worker only emits."""

    finished = Signal(object, QImage)
    """Itself, and the picture."""

    def __init__(self, preview: PicturePreview) -> None:
        super().__init__()
        self.preview = preview


class _LoadTask(QRunnable):
    def __init__(self, reading: _ImageLoad) -> None:
        super().__init__()
        self._reading = reading

    def run(self) -> None:
        self._reading.finished.emit(self._reading, _decode_image(self._reading.preview.data))


class _ImageCanvas(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self._image = QImage()
        self._shrunk = 0
        self.setMinimumSize(_MIN_SIZE)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    @property
    def spare_height(self) -> int:
        return _PREFERRED_SIZE.height() - _MIN_SIZE.height()

    @property
    def shrunk_height(self) -> int:
        return self._shrunk

    def shrink_by(self, pixels: int) -> None:
        self._shrunk = pixels
        self.updateGeometry()

    def sizeHint(self) -> QSize:
        return _PREFERRED_SIZE - QSize(0, self._shrunk)

    def show_image(self, image: QImage) -> None:
        self._image = image
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        del event
        if self._image.isNull():
            return
        ratio = self.devicePixelRatioF()
        room = (self.size() * ratio).boundedTo(self._image.size())
        shown = self._image.scaled(room, Qt.AspectRatioMode.KeepAspectRatio, Qt.TransformationMode.SmoothTransformation)
        shown.setDevicePixelRatio(ratio)
        size = shown.deviceIndependentSize().toSize()
        painter = QPainter(self)
        painter.drawImage((self.width() - size.width()) // 2, (self.height() - size.height()) // 2, shown)


def _decode_image(data: bytes) -> QImage:
    """No larger than is of use; null when it cannot be read."""
    # Left to itself, Qt reads SVG too, and the files that it names.
    kind = detect_media_type(data)
    if kind is None:
        return QImage()
    buffer = QBuffer()
    buffer.setData(QByteArray(data))
    reader = QImageReader(buffer, QByteArray(kind.removeprefix("image/").encode()))
    reader.setAutoDetectImageFormat(False)
    reader.setAutoTransform(True)
    size = reader.size()
    if size.isValid() and max(size.width(), size.height()) > MAX_SIDE:
        reader.setScaledSize(size.scaled(MAX_SIDE, MAX_SIDE, Qt.AspectRatioMode.KeepAspectRatio))
    return reader.read()
