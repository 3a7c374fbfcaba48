"""Read pictures of the types that messages may have."""

from PySide6.QtCore import QBuffer, QByteArray, QIODevice
from PySide6.QtGui import QImageReader


def image_reader(data: bytes, device: QBuffer) -> QImageReader | None:
    """Return a reader of the picture, which does not keep the device alive; None for a type that is not allowed.

    Qt could read more, but among those is SVG, which can reference other files, and Qt opens them.
    """
    # Late: a window that starts shows no picture.
    from desktop_agent.types.blocks import detect_media_type

    kind = detect_media_type(data)
    if kind is None:
        return None
    device.setData(QByteArray(data))
    device.open(QIODevice.OpenModeFlag.ReadOnly)
    reader = QImageReader(device, QByteArray(kind.removeprefix("image/").encode()))
    reader.setAutoDetectImageFormat(False)
    return reader
