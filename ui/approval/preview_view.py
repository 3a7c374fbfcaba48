"""The preview of a call's effect: a diff or text, a network request or a picture; commands are in `command_preview`."""

from PySide6.QtCore import QBuffer, QObject, QSize, Qt, QThreadPool, Signal, Slot
from PySide6.QtGui import QImage, QPainter, QPaintEvent
from PySide6.QtWidgets import QPlainTextEdit, QSizePolicy, QWidget

from desktop_agent.types.line_diff import MAX_LINES, DiffLine, count_lines, diff_texts, whole_file_lines
from desktop_agent.types.tool_calls import (
    CommandPreview,
    DiffPreview,
    NetworkPreview,
    PicturePreview,
    Preview,
    TextPreview,
)
from ui.approval.code_view import CodeView
from ui.approval.command_preview import CommandView
from ui.approval.dialog_layout import Shrinkable
from ui.approval.labels import wrapping_label
from ui.approval.untrusted_text import MAX_CHARACTERS, describe_host, fold_lines, truncate_text
from ui.style.boxes import hbox, vbox
from ui.style.controls import label, show_words
from ui.style.image_reader import image_reader
from ui.style.text import format_number, show_hidden, strip_bidi_marks, translated
from ui.style.text_display import isolate_untrusted
from ui.style.theme import SPACE_S, SPACE_XS, ThemeSource

MIN_ROWS, MAX_ROWS = 6, 100
MAX_TOTAL_ROWS = 3 * MAX_LINES


class TextView(QWidget):
    """The preview of a text or a diff. Each `show_` returns the heading for it."""

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__()
        self._view = CodeView(themes, self.tr("Preview of the effect"), MIN_ROWS, MAX_ROWS)
        self.shrinkable = self.initial_focus = self._view
        # Blanks must not push the end of a line out of the view.
        self._view.setLineWrapMode(QPlainTextEdit.LineWrapMode.WidgetWidth)
        vbox(self._view, parent=self, margins=0)

    def show_text(self, preview: TextPreview) -> str:
        """Show what a tool says about its effect."""
        text, omitted = truncate_text(show_hidden(translated(preview.text)))
        self._view.show_lines([], [fold_lines(text)])
        if omitted:
            words = self.tr("What will happen. Not all of it is shown: {0} characters more")
            return words.format(format_number(omitted))
        return self.tr("What will happen")

    def show_diff(self, preview: DiffPreview) -> str:
        """Show a new, changed or deleted file."""
        heading, lines = self._heading_and_lines(preview)
        lines, words = _fold_long_lines(lines)
        pairs = zip(lines, words, strict=True)
        self._view.show_lines(lines, [self._line_text(line, text) for line, text in pairs])
        if any(line.kind == "more" for line in lines):
            return self.tr("{0}. Not all of it is shown.").format(heading)
        return heading

    def _line_text(self, line: DiffLine, text: str) -> str:
        if line.kind == "gap":
            one, several = self.tr("1 unchanged line"), self.tr("{0} unchanged lines")
            return one if line.text == "1" else several.format(line.text)
        return self.tr("{0} more lines, not shown").format(line.text) if line.kind == "more" else text

    def _heading_and_lines(self, preview: DiffPreview) -> tuple[str, list[DiffLine]]:
        path = isolate_untrusted(preview.path)
        if preview.before is None:
            lines = whole_file_lines("added", preview.after or "")
            return self.tr("New file: {0}").format(path), lines
        if preview.after is None:
            lines = whole_file_lines("removed", preview.before)
            count = count_lines(lines, "removed")
            words = self.tr("Deletes {0}: 1 line") if count == 1 else self.tr("Deletes {0}: {1} lines")
            return words.format(path, count), lines
        lines = diff_texts(preview.before, preview.after)
        added, removed = count_lines(lines, "added"), count_lines(lines, "removed")
        return self._change_summary(added, removed).format(path, added, removed), lines

    def _change_summary(self, added: int, removed: int) -> str:
        if not added and not removed:
            return self.tr("{0}: no change")
        return self.tr("{0}: 1 line added, {2} removed") if added == 1 else self.tr("{0}: {1} lines added, {2} removed")


def _fold_long_lines(lines: list[DiffLine]) -> tuple[list[DiffLine], list[str]]:
    """Fold very long lines into several rows, of which only the first has a number; stop at the limit."""
    rows: list[DiffLine] = []
    words: list[str] = []
    characters = 0
    for index, line in enumerate(lines):
        if line.kind != "more" and (len(rows) >= MAX_TOTAL_ROWS or characters >= MAX_CHARACTERS):
            hidden_lines = sum(int(line.text) if line.kind == "more" else line.kind != "gap" for line in lines[index:])
            return [*rows, DiffLine("more", str(hidden_lines))], [*words, ""]
        pieces = fold_lines(show_hidden(line.text)).split("\n")
        rows += [line, *(DiffLine(line.kind, "") for _ in pieces[1:])]
        words += pieces
        characters += len(line.text)
    return rows, words


MAX_ADDRESS_ROWS = 6


class NetworkView(QWidget):
    """The preview of a network request. `show_request` returns the heading for it."""

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__()
        self._method = label()
        self._method.setProperty("tag", "risk")
        self._host = wrapping_label(kind="heading")
        self._address = self.initial_focus = CodeView(themes, self.tr("Address"), MAX_ADDRESS_ROWS, MAX_ADDRESS_ROWS)
        self._address.setLineWrapMode(QPlainTextEdit.LineWrapMode.WidgetWidth)
        self._note = wrapping_label(kind="muted")
        top = hbox(self._method, self._host, spacing=SPACE_S, grow=self._host)
        vbox(top, self._address, self._note, parent=self, spacing=SPACE_S, margins=0)

    def show_request(self, preview: NetworkPreview) -> str:
        """Show a request, and return the heading."""
        self._method.setText(show_hidden(preview.method))
        self._host.setText(describe_host(preview.host))
        self._address.show_lines([], [fold_lines(show_hidden(preview.url))])
        self._note.setText(isolate_untrusted(translated(preview.note)))
        self._note.setVisible(bool(preview.note))
        return self.tr("Network request")


# Larger than any screen.
MAX_SIDE = 2_400
_MIN_SIZE = QSize(120, 90)
_PREFERRED_SIZE = QSize(480, 320)


class PictureView(QWidget):
    """The preview of a picture. `show_picture` returns the heading for it."""

    initial_focus = None

    def __init__(self) -> None:
        super().__init__()
        self._canvas = self.shrinkable = _ImageCanvas()
        self._note = wrapping_label(kind="muted")
        self._load: _ImageLoad | None = None
        vbox(self._canvas, self._note, parent=self, spacing=SPACE_S, margins=0, grow=self._canvas)

    def show_picture(self, preview: PicturePreview) -> str:
        """Start to decode a picture, and return the heading."""
        name = isolate_untrusted(preview.name)
        self._canvas.setAccessibleName(strip_bidi_marks(self.tr("Picture: {0}").format(name)))
        self._canvas.show_image(QImage())
        self._show_note(translated(preview.note), self.tr("Reading the picture…"))
        self._load = _ImageLoad(preview)
        self._load.finished.connect(self._on_loaded)
        QThreadPool.globalInstance().start(self._load.run)
        return self.tr("The picture {0}").format(name)

    @Slot(object, QImage)
    def _on_loaded(self, load: "_ImageLoad", image: QImage) -> None:
        # Pictures of earlier requests may still arrive.
        if load is not self._load:
            return
        self._load = None
        self._canvas.show_image(image)
        broken = self.tr("The picture cannot be shown: its file is damaged or of another kind.")
        self._show_note(translated(load.preview.note), broken if image.isNull() else "")

    def _show_note(self, note: str, state: str) -> None:
        words = " ".join(filter(None, (isolate_untrusted(note), state)))
        show_words(self._note, words)


class _ImageLoad(QObject):
    """A picture being decoded. It lives in the main thread; the worker only emits."""

    finished = Signal(object, QImage)
    """The load itself, and its picture."""

    def __init__(self, preview: PicturePreview) -> None:
        super().__init__()
        self.preview = preview

    def run(self) -> None:
        self.finished.emit(self, _decode_image(self.preview.data))


class _ImageCanvas(QWidget):
    spare_height = _PREFERRED_SIZE.height() - _MIN_SIZE.height()
    shrunk_height = 0

    def __init__(self) -> None:
        super().__init__()
        self._image = QImage()
        self.setMinimumSize(_MIN_SIZE)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def shrink_by(self, pixels: int) -> None:
        self.shrunk_height = pixels
        self.updateGeometry()

    def sizeHint(self) -> QSize:
        return _PREFERRED_SIZE - QSize(0, self.shrunk_height)

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
    """Decode a picture, no larger than MAX_SIDE; null when it cannot be read."""
    device = QBuffer()
    reader = image_reader(data, device)
    if reader is None:
        return QImage()
    reader.setAutoTransform(True)
    size = reader.size()
    if size.isValid() and max(size.width(), size.height()) > MAX_SIDE:
        reader.setScaledSize(size.scaled(MAX_SIDE, MAX_SIDE, Qt.AspectRatioMode.KeepAspectRatio))
    return reader.read()


class PreviewView(QWidget):
    """The preview of a call. Hidden if the tool cannot predict its effect."""

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__()
        self._heading = wrapping_label(kind="strong")
        self._status = wrapping_label(kind="muted")
        self._status.hide()
        self._reserves_status = False
        self._text = TextView(themes)
        self._command = CommandView(themes)
        self._network = NetworkView(themes)
        self._picture = PictureView()
        self._shown: TextView | CommandView | NetworkView | PictureView = self._text
        layout = vbox(self._heading, self._status, parent=self, spacing=SPACE_XS, margins=0)
        layout.addSpacing(SPACE_S - SPACE_XS)
        # Not a stack, which would be as high as its highest page.
        self._views = (self._text, self._command, self._network, self._picture)
        for view in self._views:
            layout.addWidget(view)
            view.setVisible(view is self._shown)

    @property
    def shrinkables(self) -> tuple[Shrinkable, ...]:
        return (self._picture.shrinkable, self._text.shrinkable)

    @property
    def initial_focus(self) -> QWidget | None:
        return None if self.isHidden() else self._shown.initial_focus

    def set_known_folder(self, folder: str) -> None:
        """Set the folder that the header shows: the preview leaves it out."""
        self._command.known_folder = folder

    def set_reserve_status(self, reserved: bool) -> None:  # noqa: FBT001  # a setter, like Qt's own
        """Reserve a line for `show_waiting` while arguments are edited, so that the rest does not jump."""
        self._reserves_status = reserved
        self._status.setVisible(reserved)

    def show_preview(self, preview: Preview | None) -> None:
        """Show a preview; None hides the view."""
        self.setVisible(preview is not None)
        self._status.setText("")
        self._status.setVisible(self._reserves_status)
        match preview:
            case None:
                return
            case DiffPreview():
                self._shown, heading = self._text, self._text.show_diff(preview)
            case CommandPreview():
                self._shown, heading = self._command, self._command.show_command(preview)
            case NetworkPreview():
                self._shown, heading = self._network, self._network.show_request(preview)
            case PicturePreview():
                self._shown, heading = self._picture, self._picture.show_picture(preview)
            case TextPreview():
                self._shown, heading = self._text, self._text.show_text(preview)
        for view in self._views:
            view.setVisible(view is self._shown)
        self._heading.setText(heading)

    def show_waiting(self, *, valid: bool) -> None:
        """Show that the preview is of other arguments: the edited ones are being checked, or are not valid."""
        checking = self.tr("Updating the preview for the edited arguments…")
        last = self.tr("The edited arguments cannot be used yet; this is the last preview.")
        self._status.setText(checking if valid else last)
        self._status.show()
