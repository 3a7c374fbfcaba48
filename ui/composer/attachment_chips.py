"""The chips above the message editor, one for each attachment, and the row that holds them."""

from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QBrush, QImage, QKeyEvent, QPainter, QPainterPath, QPixmap
from PySide6.QtWidgets import QApplication, QFrame, QLabel, QScrollArea, QWidget

from desktop_agent.types.messages import AttachedText
from desktop_agent.types.tool_calls import UntrustedSource
from ui.composer.attachment_items import AttachmentFetch, PendingPicture, UnreadablePicture, picture_notices
from ui.style.boxes import hbox, vbox
from ui.style.controls import IconButton, button, label
from ui.style.layouts import place_before_in_tab_order
from ui.style.removal import remove_widget
from ui.style.text import plain_tooltip
from ui.style.theme import RADIUS_S, SPACE_S, SPACE_XS, ThemeSource, pixmap

if TYPE_CHECKING:
    import asyncio

    from desktop_agent.types.providers import ImageLimits


THUMBNAIL_SIZE = 36
_ICON_SIZE = 22
MAX_NAME_WIDTH = 170
"""Pixels at 100 % zoom."""
MANY_CHIPS = 3
"""From so many on, all can be removed at once."""


class AttachmentChip(QFrame):
    """A picture, a resource or a long pasted text. Delete removes the chip while it has the focus."""

    removed = Signal()

    def __init__(self, themes: ThemeSource, icon_name: str, name: str) -> None:
        super().__init__()
        self._themes = themes
        self._icon_name = icon_name
        self._picture: QImage | None = None
        self._drawing = QLabel()
        self._drawing.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._name = label()
        self._detail = label(kind="small")
        self.remove_button = IconButton(themes, "close", self.tr("Remove"))
        self.show_name(name)
        self.setProperty("kind", "chip")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.remove_button.clicked.connect(self.removed)
        themes.changed.connect(self._elide_name)
        self._build_layout()
        themes.follow(self._draw)

    def show_name(self, name: str) -> None:
        """Show what the attachment is called."""
        self._full_name = name
        self._elide_name()
        self.remove_button.setAccessibleDescription(name)
        self.setToolTip(plain_tooltip(name))

    def _elide_name(self) -> None:
        width = self._themes.scaled(MAX_NAME_WIDTH)
        self._name.setText(self._name.fontMetrics().elidedText(self._full_name, Qt.TextElideMode.ElideMiddle, width))

    def show_detail(self, text: str) -> None:
        """Show the size, or that the attachment is being prepared."""
        self._detail.setText(text)
        self.setAccessibleDescription(text)

    def show_picture(self, image: QImage) -> None:
        """Show a thumbnail instead of the icon."""
        if not image.isNull():
            self._picture = image
            self._draw()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in {Qt.Key.Key_Delete, Qt.Key.Key_Backspace}:
            self.removed.emit()
        else:
            super().keyPressEvent(event)

    def _draw(self) -> None:
        side, ratio = self._themes.scaled(THUMBNAIL_SIZE), self.devicePixelRatioF()
        self._drawing.setFixedSize(QSize(side, side))
        if self._picture is not None:
            self._drawing.setPixmap(_rounded_thumbnail(self._picture, side, ratio))
            return
        muted, size = self._themes.theme.muted, self._themes.scaled(_ICON_SIZE)
        self._drawing.setPixmap(pixmap(self._icon_name, muted, size, 2 if ratio > 1 else 1))

    def _build_layout(self) -> None:
        words = vbox(self._name, self._detail, spacing=0)
        margins = (SPACE_S, SPACE_XS, SPACE_XS, SPACE_XS)
        hbox(self._drawing, words, self.remove_button, parent=self, spacing=SPACE_S, margins=margins)


def _rounded_thumbnail(image: QImage, side: int, ratio: float) -> QPixmap:
    canvas = QPixmap(round(side * ratio), round(side * ratio))
    canvas.setDevicePixelRatio(ratio)
    canvas.fill(Qt.GlobalColor.transparent)
    painter = QPainter(canvas)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    path = QPainterPath()
    path.addRoundedRect(0, 0, side, side, RADIUS_S, RADIUS_S)
    by_expanding, smoothly = Qt.AspectRatioMode.KeepAspectRatioByExpanding, Qt.TransformationMode.SmoothTransformation
    scaled = image.scaled(canvas.size(), by_expanding, smoothly)
    scaled.setDevicePixelRatio(ratio)
    painter.fillPath(path, QBrush(scaled))
    painter.end()
    return canvas


_RETRY_MS = 20


@dataclass(frozen=True, slots=True)
class PastedText:
    """A pasted text too long for the editor. It is sent after the typed text."""

    text: str


Attachment = PendingPicture | UnreadablePicture | AttachedText | PastedText | UntrustedSource
"""What goes with a text. An UntrustedSource has no chip: it stands for words in the text itself."""


@dataclass(eq=False)
class AttachmentEntry:
    """A chip and its attachment, which is missing while `fetch` is under way."""

    chip: AttachmentChip
    attachment: PendingPicture | UnreadablePicture | AttachedText | PastedText | None = None
    fetch: AttachmentFetch | None = None
    is_picture: bool = False
    task: "asyncio.Task[None] | None" = None


class AttachmentRow(QScrollArea):
    """The row of chips. Removing the one with the focus moves it to the next."""

    changed = Signal()
    focus_left = Signal()
    """The last one was removed while it had the focus."""
    lost = Signal()
    """An attachment was removed, or could not be fetched whole."""
    folder_found = Signal(str)
    """The path of a folder among the files; it cannot be attached."""
    problem = Signal(object, object)
    """What is wrong with a picture and what to do about it: two Sentences."""

    def __init__(self, editor: QWidget) -> None:
        """Tab comes to the chips before it comes to the editor below them."""
        super().__init__()
        self._editor = editor
        self._entries: list[AttachmentEntry] = []
        self._prompt_sources: list[UntrustedSource] = []
        self._waiting: list[tuple[AttachmentEntry, Coroutine[Any, Any, None]]] = []
        self._retry_timer = QTimer(self, interval=_RETRY_MS)
        self._retry_timer.timeout.connect(self._start_waiting)
        inner = QWidget()
        self._row = hbox(parent=inner, spacing=SPACE_S, margins=0, start_stretch=True)
        self.remove_all_button = button(self.tr("Remove all"), self._remove_all, "link")
        self.remove_all_button.hide()
        self._row.insertWidget(0, self.remove_all_button)
        self.setWidget(inner)
        self.setWidgetResizable(True)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAccessibleName(self.tr("Attachments"))
        inner.setAutoFillBackground(False)
        self.hide()

    @property
    def pictures(self) -> list[PendingPicture]:
        """Pictures that are ready, in order."""
        return [item for item in self.items if isinstance(item, PendingPicture)]

    @property
    def texts(self) -> list[str]:
        return [item.text for item in self.items if isinstance(item, PastedText)]

    @property
    def is_preparing(self) -> bool:
        return any(entry.fetch is not None for entry in self._entries)

    @property
    def items(self) -> list[Attachment]:
        """Return the attachments that are ready, in order."""
        ready = (entry.attachment for entry in self._entries)
        return [*(attachment for attachment in ready if attachment is not None), *self._prompt_sources]

    def items_beside(self, text: str) -> list[Attachment]:
        """Return what goes with this text: with none, no prompt sources. Those are kept: an undo may bring it back."""
        has_words = bool(text or self.texts)
        return [item for item in self.items if has_words or not isinstance(item, UntrustedSource)]

    def notices(self, limits: "ImageLimits | None", *, can_see: bool | None, has_text: bool) -> list[str]:
        """Return what will be changed about the pictures, as `picture_notices` does, and that a link wrote the text."""
        # Including those that are being prepared.
        has_pictures = any(entry.is_picture for entry in self._entries)
        notices = picture_notices(self.pictures, limits, can_see=can_see) if has_pictures else []
        if has_text and any(source.kind == "web" for source in self._prompt_sources):
            notices.append(self.tr("This text comes from a link. Read all of it before you send it."))
        return notices

    @property
    def chips(self) -> list[AttachmentChip]:
        return [entry.chip for entry in self._entries]

    def take_pending(self) -> list[AttachmentFetch]:
        """Remove the fetches that are under way without cancelling them, to be added elsewhere."""
        fetches: list[AttachmentFetch] = []
        for entry in tuple(self._entries):
            if entry.fetch is not None:
                fetches.append(entry.fetch)
                entry.fetch = None
                self._discard_entry(entry)
        self.changed.emit()
        return fetches

    async def wait_until_ready(self) -> None:
        """Wait until no fetch is under way."""
        import asyncio

        self._start_waiting()
        while tasks := [entry.task for entry in self._entries if entry.fetch is not None and entry.task is not None]:
            await asyncio.wait(tasks)

    def clear(self) -> None:
        """Remove all attachments and cancel the fetches under way."""
        self._prompt_sources.clear()
        for entry in tuple(self._entries):
            self._discard_entry(entry)
        self.changed.emit()

    def _add_entry(self, entry: AttachmentEntry, before: AttachmentEntry | None = None) -> AttachmentEntry:
        """Add an entry at the end, or before another one."""
        entry.chip.removed.connect(lambda: self._remove_entry(entry))
        index = len(self._entries) if before is None else self._entries.index(before)
        self._entries.insert(index, entry)
        self._row.insertWidget(index, entry.chip)
        place_before_in_tab_order(self._editor, self.remove_all_button)
        next_stop = self.remove_all_button if before is None else before.chip
        place_before_in_tab_order(next_stop, entry.chip, entry.chip.remove_button)
        self._update_remove_all()
        self._fit_height_to([entry.chip])
        self.show()
        return entry

    def fit_height(self) -> None:
        """Make it as high as its chips, which are higher after a zoom."""
        self.setMinimumHeight(0)
        self._fit_height_to(self.chips)

    def _fit_height_to(self, chips: Sequence[AttachmentChip]) -> None:
        """Make room for these chips beside all others."""
        if chips:
            height = max(chip.sizeHint().height() for chip in chips) + self.horizontalScrollBar().sizeHint().height()
            self.setFixedHeight(max(height, self.minimumHeight()))

    def _remove_entry(self, entry: AttachmentEntry) -> None:
        index = self._entries.index(entry)
        focus = QApplication.focusWidget()
        had_focus = focus is not None and (focus is entry.chip or entry.chip.isAncestorOf(focus))
        self._discard_entry(entry)
        self.lost.emit()
        if had_focus and self._entries:
            self._entries[min(index, len(self._entries) - 1)].chip.setFocus()
        elif had_focus:
            self.focus_left.emit()
        self.changed.emit()

    def _discard_entry(self, entry: AttachmentEntry) -> None:
        if entry not in self._entries:
            return
        self._entries.remove(entry)
        if entry.fetch is not None:
            entry.fetch.cancel()
        if entry.task is not None:
            entry.task.cancel()
        remove_widget(self._row, entry.chip)
        self._update_remove_all()
        self.setVisible(bool(self._entries))

    def _remove_all(self) -> None:
        """Remove all attachments, pasted texts too."""
        for entry in tuple(self._entries):
            self._discard_entry(entry)
        self.lost.emit()
        self.focus_left.emit()
        self.changed.emit()

    def _update_remove_all(self) -> None:
        self.remove_all_button.setVisible(len(self._entries) >= MANY_CHIPS)

    def _start_task(self, entry: AttachmentEntry, work: Coroutine[Any, Any, None]) -> None:
        self._waiting.append((entry, work))
        self._start_waiting()

    @Slot()
    def _start_waiting(self) -> None:
        """Start what waits for the event loop: the window accepts pastes before it runs."""
        # Late: the window is drawn first.
        import asyncio

        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._retry_timer.start()
            return
        self._retry_timer.stop()
        waiting, self._waiting = self._waiting, []
        for entry, work in waiting:
            if entry in self._entries:
                entry.task = loop.create_task(work)
            else:
                work.close()
