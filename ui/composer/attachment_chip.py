"""One attachment above the message: what it is, what it weighs, and a way to take it off again."""

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QBrush, QImage, QKeyEvent, QPainter, QPainterPath, QPixmap
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from ui.look.controls import IconButton, label
from ui.look.icons import pixmap
from ui.look.sentences import plain_tooltip
from ui.look.theme import RADIUS_S, SPACE_S, SPACE_XS, ThemeSource

THUMBNAIL_SIZE = 36
MAX_NAME_WIDTH = 170


class AttachmentChip(QFrame):
    """A picture or a long pasted text. Delete removes it while it has the focus."""

    removed = Signal()

    def __init__(self, themes: ThemeSource, icon_name: str, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._icon_name = icon_name
        self._has_picture = False
        self._drawing = QLabel()
        self._drawing.setFixedSize(QSize(THUMBNAIL_SIZE, THUMBNAIL_SIZE))
        self._drawing.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._name = label()
        self._name.setText(self._name.fontMetrics().elidedText(name, Qt.TextElideMode.ElideMiddle, MAX_NAME_WIDTH))
        self._detail = label(kind="small")
        self.remove_button = IconButton(themes, "close", self.tr("Remove"))
        self.remove_button.setAccessibleDescription(name)
        self.setProperty("kind", "chip")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setToolTip(plain_tooltip(name))
        self.remove_button.clicked.connect(self._emit_removed)
        themes.changed.connect(self._draw_icon)
        self._build_layout()
        self._draw_icon()

    @property
    def detail(self) -> str:
        """The second line."""
        return self._detail.text()

    def show_detail(self, text: str) -> None:
        """What it weighs, or that it is being prepared."""
        self._detail.setText(text)
        self.setAccessibleDescription(text)

    def show_picture(self, image: QImage) -> None:
        """Show a thumbnail instead of the icon."""
        if image.isNull():
            return
        self._has_picture = True
        self._drawing.setPixmap(_rounded_thumbnail(image, THUMBNAIL_SIZE, self.devicePixelRatioF()))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Delete and Backspace remove it."""
        if event.key() in {Qt.Key.Key_Delete, Qt.Key.Key_Backspace}:
            self._emit_removed()
        else:
            super().keyPressEvent(event)

    def _emit_removed(self) -> None:
        self.removed.emit()

    def _draw_icon(self) -> None:
        if not self._has_picture:
            ratio = 2 if self.devicePixelRatioF() > 1 else 1
            self._drawing.setPixmap(pixmap(self._icon_name, self._themes.theme.muted, 22, ratio))

    def _build_layout(self) -> None:
        words = QVBoxLayout()
        words.setSpacing(0)
        words.addWidget(self._name)
        words.addWidget(self._detail)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(SPACE_S, SPACE_XS, SPACE_XS, SPACE_XS)
        layout.setSpacing(SPACE_S)
        layout.addWidget(self._drawing)
        layout.addLayout(words)
        layout.addWidget(self.remove_button)


def _rounded_thumbnail(image: QImage, side: int, ratio: float) -> QPixmap:
    whole = QPixmap(round(side * ratio), round(side * ratio))
    whole.setDevicePixelRatio(ratio)
    whole.fill(Qt.GlobalColor.transparent)
    painter = QPainter(whole)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    path = QPainterPath()
    path.addRoundedRect(0, 0, side, side, RADIUS_S, RADIUS_S)
    scaled = image.scaled(
        round(side * ratio),
        round(side * ratio),
        Qt.AspectRatioMode.KeepAspectRatioByExpanding,
        Qt.TransformationMode.SmoothTransformation,
    )
    scaled.setDevicePixelRatio(ratio)
    painter.fillPath(path, QBrush(scaled))
    painter.end()
    return whole
