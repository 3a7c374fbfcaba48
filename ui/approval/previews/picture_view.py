"""The picture that a call is about, as large as there is room. It is read in a worker: large ones take a while."""

from PySide6.QtCore import QBuffer, QByteArray, QObject, QRunnable, QSize, Qt, QThreadPool, Signal, Slot
from PySide6.QtGui import QImage, QImageReader, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from desktop_agent.vocabulary.images import media_type_of
from desktop_agent.vocabulary.tool_calls import PicturePreview
from ui.approval.parts.middle import GivesWay
from ui.approval.parts.wrapped_text import WrappedText
from ui.look.theme import SPACE_S
from ui.look.written.order import shown_apart, without_order_marks

# Larger than any screen that it could be shown on.
MOST_SIDE = 2_400
_SMALLEST = QSize(120, 90)
_USUAL = QSize(480, 320)


class PictureView(QWidget):
    """`show_picture` answers with the heading above it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._canvas = _Canvas()
        self._note = WrappedText(kind="muted")
        self._reading: _Reading | None = None
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_S)
        layout.addWidget(self._canvas, 1)
        layout.addWidget(self._note)

    @property
    def giver(self) -> GivesWay:
        """What can be lower."""
        return self._canvas

    @property
    def first(self) -> QWidget | None:
        """Where reading begins: nowhere, a picture has no text."""
        return None

    @property
    def words(self) -> str:
        """All that it says, for a screen reader."""
        return "\n".join(filter(None, (self._canvas.accessibleName(), self._note.text())))

    def show_picture(self, preview: PicturePreview) -> str:
        """This picture."""
        name = shown_apart(preview.name)
        self._canvas.setAccessibleName(without_order_marks(self.tr("Picture: {0}").format(name)))
        self._canvas.show_image(QImage())
        self._say(preview.note, self.tr("Reading the picture…"))
        self._reading = _Reading(preview)
        self._reading.done.connect(self._read)
        QThreadPool.globalInstance().start(_Work(self._reading))
        return self.tr("The picture {0}").format(name)

    @Slot(object, QImage)
    def _read(self, reading: "_Reading", image: QImage) -> None:
        # One that was on its way before the last was asked for still arrives.
        if reading is not self._reading:
            return
        self._reading = None
        self._canvas.show_image(image)
        broken = self.tr("The picture cannot be shown: its file is damaged or of another kind.")
        self._say(reading.preview.note, broken if image.isNull() else "")

    def _say(self, note: str, state: str) -> None:
        words = " ".join(filter(None, (shown_apart(note), state)))
        self._note.setText(words)
        self._note.setVisible(bool(words))


class _Reading(QObject):
    """One picture on its way. Lives in the window's thread; the worker only emits."""

    done = Signal(object, QImage)
    """Itself, and the picture."""

    def __init__(self, preview: PicturePreview) -> None:
        super().__init__()
        self.preview = preview


class _Work(QRunnable):
    def __init__(self, reading: _Reading) -> None:
        super().__init__()
        self._reading = reading

    def run(self) -> None:
        self._reading.done.emit(self._reading, _image_of(self._reading.preview.data))


class _Canvas(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self._image = QImage()
        self._given = 0
        self.setMinimumSize(_SMALLEST)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    @property
    def spare(self) -> int:
        return _USUAL.height() - _SMALLEST.height()

    @property
    def given(self) -> int:
        return self._given

    def give_way(self, pixels: int) -> None:
        self._given = pixels
        self.updateGeometry()

    def sizeHint(self) -> QSize:
        return _USUAL - QSize(0, self._given)

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


def _image_of(data: bytes) -> QImage:
    """No larger than is of use; null when it cannot be read."""
    # Left to itself, Qt reads SVG too, and the files that it names.
    kind = media_type_of(data)
    if kind is None:
        return QImage()
    buffer = QBuffer()
    buffer.setData(QByteArray(data))
    reader = QImageReader(buffer, QByteArray(kind.removeprefix("image/").encode()))
    reader.setAutoDetectImageFormat(False)
    reader.setAutoTransform(True)
    size = reader.size()
    if size.isValid() and max(size.width(), size.height()) > MOST_SIDE:
        reader.setScaledSize(size.scaled(MOST_SIDE, MOST_SIDE, Qt.AspectRatioMode.KeepAspectRatio))
    return reader.read()
