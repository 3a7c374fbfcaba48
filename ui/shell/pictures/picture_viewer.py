"""The attachments viewer: all pictures of a conversation, large, in a window that is not modal."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from PySide6.QtCore import QByteArray, QCoreApplication, QSize, Qt, Signal
from PySide6.QtGui import QAction, QCloseEvent, QGuiApplication, QKeySequence
from PySide6.QtWidgets import QDialog, QWidget

from desktop_agent.conversation.items import AnswerItem, Item, PictureItem, ToolCallItem, UserItem
from desktop_agent.types.blocks import Image, UrlSource
from ui.shell.pictures.picture_canvas import (
    MAX_SHOWN_PIXELS,
    DecodedPicture,
    PictureCanvas,
    ViewerPicture,
    decode_picture,
)
from ui.style.boxes import hbox, vbox
from ui.style.controls import ElidedLabel, IconButton, announce, button, label, set_keys_tooltip, show_in_front
from ui.style.layouts import FlowRows
from ui.style.text import join_names, show_hidden
from ui.style.theme import SPACE_M, SPACE_S, ThemeSource
from ui.transcript.blocks.image_store import (
    MAX_PIXELS,
    ImageFiles,
    InMemoryImage,
    RemoteImages,
    ViewableImage,
    locate_image,
)
from ui.transcript.workers import JobQueue


def conversation_pictures(items: Iterable[Item], remote: RemoteImages) -> Iterator[ViewerPicture]:
    """Return the pictures that people sent, models made and tools returned, and those loaded from the web."""
    loaded = remote.loaded()
    for item in items:
        if isinstance(item, UserItem):
            yield from _of_images(item.images, remote)
        elif isinstance(item, PictureItem):
            yield from _of_images((item.image,), remote)
        elif isinstance(item, ToolCallItem) and item.result:
            yield from _of_images([part for part in item.result.content if isinstance(part, Image)], remote)
        elif isinstance(item, AnswerItem) and loaded:
            text = str(item.text)
            positions = sorted((text.find(address), address) for address in loaded)
            yield from (
                _loaded_picture(picture)
                for position, address in positions
                if position >= 0 and (picture := remote.state_of(address).picture)
            )


def to_viewer_picture(picture: Image | InMemoryImage) -> ViewerPicture | None:
    """Return one picture; None if its data is not stored here."""
    if isinstance(picture, InMemoryImage):
        return _loaded_picture(picture)
    if isinstance(picture.source, UrlSource):
        return None
    return ViewerPicture(picture.source, picture.name or _default_name())


def index_of(pictures: Sequence[ViewerPicture], source: ViewableImage) -> int | None:
    """Return the index of a picture, which may occur twice."""
    exact = next((index for index, picture in enumerate(pictures) if picture.source is source), None)
    if exact is not None:
        return exact
    return next((index for index, picture in enumerate(pictures) if picture.source == source), None)


def _of_images(images: Iterable[Image], remote: RemoteImages) -> Iterator[ViewerPicture]:
    for image in images:
        loaded = remote.state_of(image.source.url).picture if isinstance(image.source, UrlSource) else None
        if picture := (_loaded_picture(loaded) if loaded else to_viewer_picture(image)):
            yield picture


def _loaded_picture(picture: InMemoryImage) -> ViewerPicture:
    return ViewerPicture(picture, picture.name or _default_name())


def _default_name() -> str:
    return QCoreApplication.translate("PictureViewer", "Picture")


_MAX_SCREEN_SHARE = 0.8
"""The largest share of the screen when it opens."""


_MIN_NAME_WIDTH = 96
"""Pixels of its name that stay visible in a narrow window."""


class PictureViewer(QDialog):
    """Not modal. `save_requested` carries the picture to save."""

    save_requested = Signal(object)
    earlier_wanted = Signal()
    """The person steps before the first picture, and there may be earlier ones."""

    def __init__(self, themes: ThemeSource, pictures: ImageFiles, parent: QWidget) -> None:
        super().__init__(parent)
        self._themes = themes
        self._pictures = pictures
        self._jobs = JobQueue()
        self._list: Sequence[ViewerPicture] = ()
        self._index = 0
        self._has_earlier = False
        self._job_number = 0
        self._geometry = QByteArray()
        self.canvas = PictureCanvas(themes)
        self._name = ElidedLabel("", Qt.TextElideMode.ElideMiddle)
        self._name.setMinimumWidth(_MIN_NAME_WIDTH)
        self._place = label("", "muted")
        self._percent = button("", self._fit_or_full, "quiet", self.tr("Zoom"))
        self._note = label("", "muted", wrap=True)
        self._picture_controls: list[QWidget | QAction] = []
        self._step_controls: list[QWidget | QAction] = []
        self._build()
        self.canvas.zoomed.connect(self._show_zoom)
        # A bound method of this window cannot be called any more when `destroyed` is emitted.
        self.destroyed.connect(self._jobs.close)

    @property
    def current(self) -> ViewerPicture | None:
        return self._list[self._index] if self._list else None

    def show_pictures(self, pictures: Sequence[ViewerPicture], index: int, *, has_earlier: bool = False) -> None:
        """Open or raise the viewer with this picture. `has_earlier`: there may be some before these."""
        self._list, self._index, self._has_earlier = pictures, index, has_earlier
        if not self.isVisible():
            if self._geometry.isEmpty():
                self.resize(self._first_size())
            else:
                self.restoreGeometry(self._geometry)
        show_in_front(self)
        self.canvas.setFocus(Qt.FocusReason.OtherFocusReason)
        self._show_current()

    def set_pictures(self, pictures: Sequence[ViewerPicture], index: int) -> None:
        """Show the picture at `index` of these, which are all pictures of the conversation."""
        self._list, self._index, self._has_earlier = pictures, index, False
        self._show_current()

    def step(self, by: int) -> None:
        """Show the next or previous picture, without wrapping round."""
        if self._index + by < 0 and self._has_earlier:
            self.earlier_wanted.emit()
            return
        index = max(0, min(len(self._list) - 1, self._index + by))
        if index != self._index:
            self._index = index
            self._show_current()

    def _first_size(self) -> QSize:
        room = (self.screen() or QGuiApplication.primaryScreen()).availableSize() * _MAX_SCREEN_SHARE
        return room.boundedTo(QSize(1200, 860))

    def _show_current(self) -> None:
        picture = self.current
        if picture is None:
            return
        name = show_hidden(picture.name)
        self.setWindowTitle(self.tr("Picture: {0}").format(name))
        self._name.show_text(name)
        has_several = len(self._list) > 1
        # How many earlier pictures there are is not known.
        place = "" if self._has_earlier else self.tr("{0} of {1}").format(self._index + 1, len(self._list))
        self._place.setText(place)
        self._place.setVisible(has_several and bool(place))
        for control in self._step_controls:
            control.setVisible(has_several or self._has_earlier)
        self.canvas.setAccessibleName(self.tr("Picture: {0}").format(name))
        self._note.hide()
        self.canvas.show_words(self.tr("Loading…"))
        location = locate_image(picture.source, self._pictures)
        self._job_number += 1
        number = self._job_number

        def job() -> DecodedPicture:
            # When leafing through many, decode only the last one.
            return decode_picture(location) if number == self._job_number else DecodedPicture(QSize())

        self._jobs.submit(number, job, lambda decoded: self._show(number, picture, decoded))

    def _show(self, number: int, picture: ViewerPicture, decoded: DecodedPicture) -> None:
        if number != self._job_number or self.current is None:
            return
        sentence = self._sentence(decoded)
        if decoded.levels:
            self.canvas.show_picture(decoded)
        else:
            self.canvas.show_words(sentence)
        self._note.setText(sentence)
        self._note.setVisible(bool(sentence) and bool(decoded.levels))
        size = (
            self.tr("{0} × {1} pixels").format(decoded.original_size.width(), decoded.original_size.height())
            if decoded.levels
            else ""
        )
        self.canvas.setAccessibleDescription(" ".join(filter(None, (size, sentence))))
        name = show_hidden(picture.name)
        announce(self.canvas, join_names(filter(None, (name, self._place.text(), size, sentence))))

    def _sentence(self, decoded: DecodedPicture) -> str:
        """Say what is unusual about the picture, and what to do about it."""
        millions = f"{decoded.megapixels:.0f}"
        if not decoded.levels and decoded.megapixels * 1_000_000 > MAX_PIXELS:
            limit = str(MAX_PIXELS // 1_000_000)
            template = self.tr(
                "This picture has {0} megapixels; more than {1} are not opened here. "
                "Save it, and open it in an image editor."
            )
            return template.format(millions, limit)
        if not decoded.levels:
            return self.tr(
                "This picture cannot be read: its file is damaged or gone. Ask the model for it again, or attach "
                "it again."
            )
        if decoded.size != decoded.original_size:
            template = self.tr(
                "This picture has {0} megapixels. To spare memory it is shown with {1}; "
                "save it and open it in an image editor to see all of them."
            )
            return template.format(millions, str(MAX_SHOWN_PIXELS // 1_000_000))
        return ""

    def _show_zoom(self) -> None:
        has_picture = self.canvas.image is not None
        for control in self._picture_controls:
            control.setEnabled(has_picture)
        self._percent.setText(self.tr("{0} %").format(round(self.canvas.zoom * 100)) if has_picture else "")

    def _fit_or_full(self) -> None:
        if self.canvas.fits:
            self.canvas.zoom_to(1.0)
        else:
            self.canvas.fit()

    def _copy(self) -> None:
        if self.canvas.image is not None:
            QGuiApplication.clipboard().setImage(self.canvas.image)
            announce(self.canvas, self.tr("Copied"))

    def _save(self) -> None:
        if self.current is not None:
            self.save_requested.emit(self.current)

    def _build(self) -> None:
        self.setModal(False)
        self.setWindowFlag(Qt.WindowType.WindowMinMaxButtonsHint)
        self._percent.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        # Wide enough that nothing moves while the number changes.
        self._percent.setMinimumWidth(self._percent.fontMetrics().horizontalAdvance("1600 %") + 2 * SPACE_M)
        canvas = self.canvas
        controls = (
            self._add("chevron-left", self.tr("Previous picture"), lambda: self.step(-1), "Left", "PgUp", is_step=True),
            self._add("chevron-right", self.tr("Next picture"), lambda: self.step(1), "Right", "PgDown", is_step=True),
            self._add("minus", self.tr("Zoom out"), lambda: canvas.zoom_by(-1), "-"),
            self._percent,
            self._add("plus", self.tr("Zoom in"), lambda: canvas.zoom_by(1), "+", "="),
            self._add("fit", self.tr("Fit to window"), canvas.fit, "0"),
            self._add("copy", self.tr("Copy picture"), self._copy, QKeySequence.StandardKey.Copy),
        )
        save = self._add("save", self.tr("Save picture as…"), self._save, QKeySequence.StandardKey.Save)
        save.setEnabled(True)
        self._picture_controls.remove(save)
        self._percent.setToolTip(self.tr("Actual size (1)"))
        self._picture_controls.append(self._percent)
        self._shortcut(self.tr("Actual size"), lambda: canvas.zoom_to(1.0), "1")
        edges = (SPACE_M, SPACE_S, SPACE_M, SPACE_S)
        self._note.setContentsMargins(*edges)
        parts = (self._name, self._place, *controls, save)
        # In a narrow window the controls are below the name.
        rows = FlowRows(parts, wide=self._name, trailing=True)
        bar = hbox(rows, margins=edges, grow=rows)
        vbox(bar, self.canvas, self._note, parent=self, spacing=0, margins=0, grow=self.canvas)

    def _add(
        self,
        icon: str,
        name: str,
        command: Callable[[], None],
        *keys: str | QKeySequence.StandardKey,
        is_step: bool = False,
    ) -> IconButton:
        icon_button = IconButton(self._themes, icon, name)
        action = self._shortcut(name, command, *keys)
        icon_button.clicked.connect(action.trigger)
        set_keys_tooltip(icon_button, name, action.shortcut().toString())
        (self._step_controls if is_step else self._picture_controls).append(icon_button)
        return icon_button

    def _shortcut(self, name: str, command: Callable[[], None], *keys: str | QKeySequence.StandardKey) -> QAction:
        action = QAction(name, self)
        action.setShortcuts([QKeySequence(key) for key in keys])

        def press() -> None:  # without the argument of `triggered`
            command()

        action.triggered.connect(press)
        self.addAction(action)
        return action

    def done(self, result: int) -> None:
        """Close it, also by Esc, and release the picture's memory."""
        self._geometry = self.saveGeometry()
        self._list = ()
        self.canvas.show_words("")
        super().done(result)

    def closeEvent(self, event: QCloseEvent) -> None:
        self.done(QDialog.DialogCode.Rejected)
        event.accept()
